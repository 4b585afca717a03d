//! The numbers of keys at which a sort changes its kernels.

use kernels_gpu::tuning::{DivideTile, ROW, Tile};

/// The numbers of keys, and of digits, that decide which kernels a sort is made of. A GPU gets
/// [`DEFAULT`](Self::DEFAULT). Tests in the emulator, which takes long for many keys, pass smaller numbers.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    /// Up to this many keys, as far as a block holds them, are sorted by one block in one launch.
    pub one_block: usize,
    /// Up to this many keys, kernels have other shapes, and no launches find splits.
    pub small_sort: usize,
    /// Keys that are merged in any case are sorted without detecting runs, which takes about 40 µs, if there are fewer.
    pub detection_keys: usize,
    /// Inputs of up to this many 4-byte keys (alone, with values) are merged even if they could be sorted by all bits.
    pub merged: [usize; 2],
    /// Inputs of up to this many keys alone (4-byte, 8-byte) are not divided.
    pub undivided: [usize; 2],
    /// Inputs of up to this many keys with values (4-byte, 8-byte keys) are not divided.
    pub undivided_with_values: [usize; 2],
    /// Sorts by all bits of keys (alone, with 4-byte values) use the small shape up to the first number, and the middle
    /// shape up to the second.
    pub few_radix: [[usize; 2]; 2],
    /// From this many 4-byte keys alone on, tiles of divisions are larger.
    pub many_4: usize,
    /// Up to this many keys alone, the launches of a third division take longer than they save.
    pub two_divisions: usize,
    /// From this many 4-byte keys alone on, there is a fourth division for uneven keys. They are sorted by all of their
    /// bits otherwise, which takes as long, or longer. The launches take little time beside the others.
    pub four_divisions: usize,
    /// The most digits of a division that is to be the last one, for few keys and for many.
    pub most_digits: [u32; 2],
    /// The most digits of a single division of keys with values.
    pub digits_in_order: u32,
    /// From this many keys with values on, parts have several tiles: the second number.
    pub several_tiles: (usize, u32),
    /// From this many keys alone on, digits of two levels may be counted at once.
    pub counted_twice: usize,
    /// From this many keys on, keys that are nearly in their places may be sorted by windows. For fewer keys, the
    /// launches take longer than they save.
    pub windows: usize,
    /// More keys than this are sorted in parts, which are merged in pairs.
    pub whole: usize,
}

impl Thresholds {
    /// The fastest numbers with the shapes of [`ROW`], on the GPU on which these were measured.
    pub const DEFAULT: Self = Self {
        one_block: 1 << 13,
        small_sort: 1 << 20,
        detection_keys: 1 << 26,
        merged: [1 << 17, 1 << 15],
        undivided: [1 << 17, 1 << 19],
        undivided_with_values: [1 << 23, 1 << 20],
        few_radix: [[1 << 19, 1 << 20], [1 << 18, 1 << 22]],
        many_4: 1 << 29,
        two_divisions: 1 << 24,
        four_divisions: 1 << 27,
        most_digits: [1024, 512],
        digits_in_order: kernels_gpu::kernels::sort::divide::MOST_DIGITS_IN_ORDER - 2,
        several_tiles: ((1 << 26) + 1, 16),
        counted_twice: 1 << 26,
        windows: 1 << 25,
        whole: kernels_gpu::kernels::sort::divide::MOST_KEYS,
    };

    /// The most keys that are merged even if they could be sorted by all bits, with values of `value_bytes` bytes, or
    /// 0.
    pub const fn merged(&self, value_bytes: usize) -> usize {
        self.merged[(value_bytes > 0) as usize]
    }

    /// The most keys of `bytes` bytes that are not divided, with values of `value_bytes` bytes, or 0.
    pub const fn undivided(&self, bytes: usize, value_bytes: usize) -> usize {
        let of_width = if value_bytes == 0 { self.undivided } else { self.undivided_with_values };
        of_width[(bytes == 8) as usize]
    }

    /// The shapes of tiles and of buckets for the sort that divides `n` keys of `bytes` bytes with values of
    /// `value_bytes` bytes, or 0.
    pub const fn divide(&self, bytes: usize, value_bytes: usize, n: usize) -> (DivideTile, Tile) {
        let is_many = bytes == 4 && value_bytes == 0 && n >= self.many_4;
        let tiles = if is_many { ROW.divide_many } else { ROW.divide };
        (tiles.of(bytes, value_bytes), ROW.sort_buckets.of(bytes, value_bytes))
    }

    /// The shape of tiles in sorts by all bits of `n` 4-byte keys with values of `value_bytes` bytes, or 0. Also the
    /// suffix of the kernels that are compiled with this shape.
    pub const fn radix(&self, value_bytes: usize, n: usize) -> (DivideTile, &'static str) {
        let [few, middle] = self.few_radix[(value_bytes > 0) as usize];
        match value_bytes {
            0 | 4 if n <= few => (ROW.sort_by_radix_small.of(4, value_bytes), "small"),
            0 | 4 if n <= middle => (ROW.sort_by_radix_middle.of(4, value_bytes), "middle"),
            _ => (ROW.sort_by_radix.of(4, value_bytes), ""),
        }
    }
}
