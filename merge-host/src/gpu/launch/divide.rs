//! The sort that divides keys, again and again, until one block sorts what is left together.

use super::{Address, Arrays, Entry, Queue, align, arguments, bits};
use crate::Error;
use crate::gpu::kernels::Shape;
use kernels_gpu::key::{Coding, Key};
use kernels_gpu::sort::block_sort;
use kernels_gpu::sort::divide::workspace::{Elements, HEAD_WORDS, Job, Layout};
use kernels_gpu::sort::divide::{
    self as divisions, choose_digits, count_digits, divide, divide_indexed, place_buckets, sort_buckets,
    sort_buckets_indexed,
};
use kernels_gpu::tuning::{self, DivideTile, Tile};
use std::ffi::c_void;

/// Up to so many keys, launches for a third division would take longer than they save.
const TWO_DIVISIONS: usize = 1 << 24;

/// The most digits of a division that is to be the last one, where there are few keys, and where there are many.
const MOST_DIGITS: (u32, u32) = (1024, 512);

/// Where there are fewer parts than this, they are of one tile each; and at most of so many.
const PARTS: (usize, usize) = (4096, 16);

/// Blocks of a multiprocessor, for kernels that place and sort what is left.
const FEW_BLOCKS: usize = 4;

/// What goes with the keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum With {
    /// Nothing: equal keys cannot be told from each other.
    Nothing,
    /// Their indices, which become the values.
    Indices,
    /// Their indices, which keep equal keys in order, and values of so many bytes.
    Values(usize),
}

impl With {
    /// Bytes of a value, besides its index.
    const fn value_bytes(self) -> usize {
        match self {
            With::Nothing | With::Indices => 0,
            With::Values(value_bytes) => value_bytes,
        }
    }
}

/// How keys are divided.
#[derive(Clone, Copy)]
pub(super) struct DividePlan {
    n: usize,
    with: With,
    /// Divisions, at most.
    levels: u32,
    /// The most digits of a last division.
    most_digits: u32,
    tile: DivideTile,
    /// Tiles of a part.
    tiles: usize,
    bucket: Tile,
}

/// Where the words of a sort that divides are.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// Those of [`DividePlan::list_bytes`].
    pub lists: Address,
    /// Those of [`DividePlan::index_bytes`].
    pub indices: Address,
    /// What `detect_runs` has found, or zeros.
    pub order: Address,
    /// Whether `detect_runs` has been called.
    pub detects: bool,
}

impl DividePlan {
    /// For `n` keys of type `K`, if there are not too many, with values of `value_bytes` bytes, or 0, which are to become
    /// the indices if `indexes`.
    pub(super) const fn of<K: Key>(n: usize, value_bytes: usize, indexes: bool) -> Option<Self> {
        if n > divisions::MOST_KEYS {
            return None;
        }
        let with = match value_bytes {
            0 => With::Nothing,
            4 if indexes => With::Indices,
            _ => With::Values(value_bytes),
        };
        let (tile, bucket) = match with {
            With::Nothing => tuning::divide(size_of::<K>(), n),
            _ => tuning::divide_indexed(size_of::<K>(), with.value_bytes()),
        };
        // One division if that makes buckets; or else, for many keys, one level more than are needed where keys are spread evenly.
        let one_division = MOST_DIGITS.0 as usize * divisions::usual_len(bucket.keys());
        let (levels, most_digits) = match n {
            _ if n <= one_division => (1, MOST_DIGITS.0),
            _ if n <= TWO_DIVISIONS => (2, MOST_DIGITS.1),
            _ => (3, MOST_DIGITS.1),
        };
        // A part is one tile if nothing is kept for the next.
        let most_tiles = if tile.left > 0 { PARTS.1 } else { 1 };
        let tiles = match n / tile.keys() / PARTS.0 {
            0 => 1,
            tiles if tiles < most_tiles => tiles,
            _ => most_tiles,
        };
        Some(Self { n, with, levels, most_digits, tile, tiles, bucket })
    }

    /// The entry points that are launched.
    pub(super) fn entries<K: Key>(self) -> Vec<Entry> {
        let of_all = ["choose_digits", "count_digits", "place_buckets"].map(|kernel| (kernel, bits(size_of::<K>())));
        let [divide, sort_buckets, sort_rest] = self.moving_entries::<K>();
        [&of_all[..], &[divide, sort_buckets, sort_rest]].concat()
    }

    /// Those that move keys.
    fn moving_entries<K: Key>(self) -> [Entry; 3] {
        let keys = bits(size_of::<K>());
        if self.with == With::Nothing {
            let tiles = if self.tile == tuning::ROW.divide_many_4 { format!("{keys}many") } else { keys.clone() };
            return [("divide", tiles), ("sort_buckets", keys.clone()), ("sort_rest", keys)];
        }
        let suffix = format!("{keys}v{}", self.with.value_bytes());
        ["divide_indexed", "sort_buckets_indexed", "sort_rest_indexed"].map(|kernel| (kernel, suffix.clone()))
    }

    /// Keys of a part.
    const fn part_keys(self) -> usize {
        self.tile.keys() * self.tiles
    }

    /// Bytes of the lists.
    pub(super) fn list_bytes(self) -> usize {
        Layout::of(self.n, self.levels, self.part_keys(), self.bucket.keys()).words as usize * size_of::<u32>()
    }

    /// Bytes of indices, besides those that are values.
    pub(super) fn index_bytes(self) -> usize {
        if matches!(self.with, With::Values(_)) { 2 * align(self.n * size_of::<u32>()) } else { 0 }
    }

    /// The two sides between which keys of `at` and of `scratch`, and what goes with them, are divided.
    fn sides<K: Key>(self, at: Arrays, scratch: (Address, Address), indices: Address) -> [Elements<K::Bits, u32>; 2] {
        let side = |keys: Address, indices: Address, values: Address| Elements {
            keys: keys as *mut K::Bits,
            indices: indices as *mut u32,
            values: values as *mut u32,
        };
        match self.with {
            With::Nothing => [side(at.keys, 0, 0), side(scratch.0, 0, 0)],
            With::Indices => [side(at.keys, at.values, 0), side(scratch.0, scratch.1, 0)],
            With::Values(_) => {
                let more = indices + align(self.n * size_of::<u32>()) as u64;
                [side(at.keys, indices, at.values), side(scratch.0, more, scratch.1)]
            }
        }
    }

    /// Queues the divisions of the keys of `at`, with the keys and values of `scratch` as the other side, and the sort of what they
    /// make, in place. Nothing is done where keys are in order, or not spread evenly.
    ///
    /// # Safety
    /// All of these are in the GPU's memory, of the plan's number of keys, and nothing else uses them until the sort has ended. The
    /// words of `order` are those of `detect_runs`, if that has been called, and else 0.
    pub(super) unsafe fn sort<K: Key>(
        self,
        queue: &impl Queue,
        coding: Coding<K::Bits>,
        at: Arrays,
        scratch: (Address, Address),
        words: Words,
        random: u64,
    ) -> Result<(), Error> {
        let Self { n, levels, most_digits, tile, bucket, with, .. } = self;
        let launch = |entry: &Entry, shape, arguments: &[*mut c_void]| {
            // SAFETY: the arguments below are those of the kernels; the caller's promise for the arrays.
            unsafe { queue.launch(entry, shape, arguments) }
        };
        let launch_bits =
            |kernel, shape, arguments: &[*mut c_void]| launch(&(kernel, bits(size_of::<K>())), shape, arguments);
        // SAFETY: the caller's promise.
        unsafe { queue.clear(words.lists, HEAD_WORDS)? };
        // Keys go in whole sectors only where what is left of them may stay.
        let whole_digits = if tile.left > 0 { tile.threads } else { 0 };
        let pointers = (words.lists as *mut u32, words.order as *mut u32);
        let job = Job::new(pointers, n, levels, (whole_digits, self.part_keys(), bucket.keys()), with != With::Nothing);
        let sides = self.sides::<K>(at, scratch, words.indices);
        let [divide_entry, buckets_entry, rest_entry] = self.moving_entries::<K>();
        let (key_bytes, value_bytes) = (size_of::<K>(), with.value_bytes());
        let parts = n.div_ceil(self.part_keys());
        let (detects, always_divides) = (u32::from(words.detects), 0u32);
        let decodes = u32::from(coding != Coding::NONE);
        for level in 0..levels {
            let (from, to) = (sides[level as usize % 2], sides[1 - level as usize % 2]);
            let coding = if level == 0 { coding } else { Coding::NONE };
            // The first level is one segment.
            let of_segments = if level == 0 { 1 } else { FEW_BLOCKS * queue.multiprocessors() };
            let choose = Shape {
                blocks: of_segments,
                threads: choose_digits::CHOOSE_THREADS,
                shared_bytes: choose_digits::CHOOSE_SHARED_BYTES,
            };
            let (keys, indices) = (from.keys, from.indices);
            let choose_arguments =
                arguments![job, keys, indices, level, coding, most_digits, random, detects, always_divides];
            launch_bits("choose_digits", choose, &choose_arguments)?;
            let count = Shape {
                blocks: parts.min(count_digits::COUNT_BLOCKS * queue.multiprocessors()),
                threads: count_digits::COUNT_THREADS as u32,
                shared_bytes: count_digits::COUNT_SHARED_BYTES,
            };
            launch_bits("count_digits", count, &arguments![job, keys, indices, level, coding])?;
            let place = Shape {
                blocks: of_segments,
                threads: place_buckets::PLACE_THREADS,
                shared_bytes: place_buckets::PLACE_SHARED_BYTES,
            };
            launch_bits("place_buckets", place, &arguments![job, level, decodes])?;
            // Segments may have a part each that is not full.
            let parts = parts + if level > 0 { divisions::MOST_DIGITS as usize } else { 0 };
            let of_tile = (tile.threads, tile.items_per_thread, tile.left);
            let divide = Shape {
                // Blocks that take one part each are faster than those that take several. From the third level on there is nothing
                // to do, as a rule, and few blocks do it sooner.
                blocks: if level < 2 { parts } else { of_segments },
                threads: tile.threads as u32,
                shared_bytes: match with {
                    With::Nothing => divide::shared_bytes(tile.keys(), key_bytes),
                    _ => divide_indexed::shared_bytes(of_tile, key_bytes, value_bytes),
                },
            };
            let keys_alone = arguments![job, from.keys, to.keys, level, coding];
            let with_indices = arguments![job, from, to, level, coding];
            launch(&divide_entry, divide, if with == With::Nothing { &keys_alone } else { &with_indices })?;
        }
        let keys_alone = arguments![job, sides[0].keys, sides[1].keys, coding];
        let with_indices = arguments![job, sides[0], sides[1], coding];
        let arguments = if with == With::Nothing { &keys_alone } else { &with_indices };
        let Tile { threads, items_per_thread } = bucket;
        let (shared_bytes, rest_bytes) = match with {
            With::Nothing => (
                sort_buckets::shared_bytes::<K::Bits>(threads, items_per_thread),
                block_sort::shared_bytes::<K::Bits>(threads, items_per_thread),
            ),
            _ => (
                sort_buckets_indexed::shared_bytes(threads, items_per_thread, key_bytes, value_bytes),
                block_sort::shared_bytes::<u64>(threads, items_per_thread),
            ),
        };
        let blocks = divisions::usual_buckets(n, bucket.keys());
        launch(&buckets_entry, Shape { blocks, threads: threads as u32, shared_bytes }, arguments)?;
        launch(&rest_entry, queue.persistent(FEW_BLOCKS, threads as u32, rest_bytes), arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_take_at_most_a_hundredth_of_what_keys_and_values_take() {
        fn check<K: Key>() {
            for n in [(1 << 21) + 1, 10_000_000, 1 << 28, divisions::MOST_KEYS] {
                for (value_bytes, indexes) in [(0, false), (4, true), (4, false), (8, false)] {
                    let plan = DividePlan::of::<K>(n, value_bytes, indexes).expect("there are not too many");
                    let bytes = plan.list_bytes();
                    assert!(bytes * 100 <= n * (size_of::<K>() + value_bytes), "{bytes} bytes for {n} keys");
                }
            }
        }
        check::<u32>();
        check::<u64>();
        assert!(DividePlan::of::<u32>(divisions::MOST_KEYS + 1, 0, false).is_none());
    }
}
