//! The sort that divides keys, again and again, until one block sorts what is left together.

use super::sort::DETECTION_KEYS;
use super::{Address, Arrays, Entry, Queue, arguments, bits};
use crate::Error;
use crate::gpu::kernels::Shape;
use kernels_gpu::key::{Coding, Key};
use kernels_gpu::sort::block_sort;
use kernels_gpu::sort::divide::workspace::{Elements, Job, Layout, Plan};
use kernels_gpu::sort::divide::{
    self as divisions, FEW_LEFT, choose_digits, count_digits, count_twice, divide, divide_with_values, once,
    place_buckets, place_parts, sort_buckets, sort_buckets_with_values,
};
use kernels_gpu::tuning::{self, DivideTile, Tile};
use std::ffi::c_void;

/// Up to so many keys alone, launches for a third division take longer than they save.
const TWO_DIVISIONS: usize = 1 << 24;

/// From so many keys on, without values and with them, launches for a fourth division take little time beside the others: uneven keys may
/// need it, and fewer of them with values are merged sooner.
const FOUR_DIVISIONS: (usize, usize) = (1 << 26, 1 << 27);

/// The most digits of a division that is to be the last one, where there are few keys, and where there are many.
const MOST_DIGITS: (u32, u32) = (1024, 512);

/// The same of keys with values, however many.
const DIGITS_IN_ORDER: usize = divisions::MOST_DIGITS_IN_ORDER as usize - 2;

/// From so many keys with values on, parts are of several tiles: of how many.
const SEVERAL_TILES: (usize, u32) = ((1 << 26) + 1, 16);

/// From so many keys alone on, digits of two levels may be counted at once.
const COUNTED_TWICE: usize = 1 << 26;

// The words for that are cleared only where runs are detected.
const _: () = assert!(COUNTED_TWICE >= DETECTION_KEYS);

/// Blocks of a multiprocessor, for kernels that place and sort what is left.
const FEW_BLOCKS: usize = 4;

/// Blocks of a multiprocessor that move what is left for later levels.
const LEFT_BLOCKS: usize = 32;

/// Blocks of a multiprocessor that choose the digits of segments, and place their buckets.
const SEGMENT_BLOCKS: usize = 8;

/// Blocks of a multiprocessor that sort buckets of keys alone.
const BUCKET_BLOCKS: usize = 12;

/// Buckets that larger blocks sort, of which a multiprocessor holds one.
const LONG_BUCKETS: Tile = tuning::ROW.long_buckets_4;

/// Blocks that place the parts of the first segment.
const PLACE_FIRST_BLOCKS: usize = 32;

/// Blocks of a multiprocessor that place the parts of other segments.
const PLACE_BLOCKS: usize = 16;

/// How keys are divided.
#[derive(Clone, Copy)]
pub(super) struct DividePlan {
    plan: Plan,
    /// Bytes of a value, or 0.
    value_bytes: usize,
    /// Values are to begin as the keys' indices.
    indexes: bool,
    /// The most digits of a last division.
    most_digits: u32,
    tile: DivideTile,
    bucket: Tile,
}

/// Where the words of a sort that divides are.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// Those of [`DividePlan::list_bytes`].
    pub lists: Address,
    /// What `detect_runs` has found, or zeros.
    pub order: Address,
    /// Whether `detect_runs` has been called.
    pub detects: bool,
}

impl DividePlan {
    /// For `n` keys of type `K`, if there are not too many, with values of `value_bytes` bytes, or 0, which are to begin as the
    /// keys' indices if it `indexes`.
    pub(super) const fn of<K: Key>(n: usize, value_bytes: usize, indexes: bool) -> Option<Self> {
        if n > divisions::MOST_KEYS {
            return None;
        }
        let (tile, bucket) = match value_bytes {
            0 => tuning::divide(size_of::<K>(), n),
            _ => tuning::divide_with_values(size_of::<K>(), value_bytes),
        };
        let usual = divisions::usual_len(bucket.keys());
        let once = if value_bytes == 0 { MOST_DIGITS.0 as usize } else { DIGITS_IN_ORDER } * usual;
        let four = if value_bytes == 0 { FOUR_DIVISIONS.0 } else { FOUR_DIVISIONS.1 };
        // As many divisions as make buckets; or else more than are needed where keys are spread evenly.
        let (levels, most_digits) = match n {
            _ if n <= once => (1, MOST_DIGITS.0),
            _ if value_bytes == 0 && n <= TWO_DIVISIONS => (2, MOST_DIGITS.1),
            // Uneven keys of 8 bytes are merged.
            _ if n < four || value_bytes == 0 && size_of::<K>() == 8 => (3, MOST_DIGITS.1),
            _ => (4, MOST_DIGITS.1),
        };
        let tiles = if value_bytes > 0 && n >= SEVERAL_TILES.0 { SEVERAL_TILES.1 } else { 1 };
        let (in_order, tile_keys, bucket_keys) = ((value_bytes > 0) as u32, tile.keys() as u32, bucket.keys() as u32);
        let twice = (value_bytes == 0 && n >= COUNTED_TWICE) as u32;
        // Uneven keys of 8 bytes are merged, and few digits have too many of few keys.
        let has_long = value_bytes == 0 && size_of::<K>() == 4 && levels > 2;
        let long = if has_long { LONG_BUCKETS.keys() as u32 } else { 0 };
        let plan = Plan { n: n as u32, levels, tile: tile_keys, tiles, bucket: bucket_keys, long, in_order, twice };
        Some(Self { plan, value_bytes, indexes, most_digits, tile, bucket })
    }

    /// Whether one division is enough that nothing has to stay in order in.
    pub(super) const fn is_once(self) -> bool {
        self.plan.is_once()
    }

    /// The entry points that are launched.
    pub(super) fn entries<K: Key>(self) -> Vec<Entry> {
        let of_key = |kernel| (kernel, bits(size_of::<K>()));
        if self.is_once() {
            return ["count_once", "divide_once", "sort_once"].map(of_key).into();
        }
        let [divide, sort_buckets, sort_rest] = self.moving_entries::<K>();
        let of_all = ["choose_digits", "count_digits", "place_buckets"].map(of_key);
        let twice = (self.plan.twice != 0).then(|| of_key("count_twice"));
        let long = (self.plan.long > 0).then(|| of_key("sort_long_buckets"));
        let in_order = (self.value_bytes > 0).then(|| of_key("place_parts"));
        of_all.into_iter().chain(twice).chain(long).chain(in_order).chain([divide, sort_buckets, sort_rest]).collect()
    }

    /// Those that move keys.
    fn moving_entries<K: Key>(self) -> [Entry; 3] {
        let keys = bits(size_of::<K>());
        if self.value_bytes == 0 {
            let tiles = if self.tile == tuning::ROW.divide_many_4 { format!("{keys}many") } else { keys.clone() };
            let sort_buckets = if size_of::<K>() == 4 { "sort_buckets" } else { "sort_wide_buckets" };
            return [("divide", tiles), (sort_buckets, keys.clone()), ("sort_rest", keys)];
        }
        let suffix = format!("{keys}v{}", self.value_bytes);
        ["divide_with_values", "sort_buckets_with_values", "sort_rest_with_values"]
            .map(|kernel| (kernel, suffix.clone()))
    }

    /// How many words of the lists are 0 before the first kernel, if `detect_runs` has been called.
    pub(super) fn cleared(self) -> usize {
        Layout::cleared(&self.plan)
    }

    /// Bytes of the lists.
    pub(super) fn list_bytes(self) -> usize {
        Layout::of(&self.plan).words as usize * size_of::<u32>()
    }

    /// Queues the divisions of the keys of `at`, with the keys and values of `scratch` as the other side, and the sort of what they
    /// make, in place. Nothing is done where keys are in order, or not spread evenly.
    ///
    /// # Safety
    /// All of these are in the GPU's memory, of the plan's number of keys, and nothing else uses them until the sort has ended. The
    /// words of `order` are those of `detect_runs`, if that has been called, and [`cleared`](Self::cleared) words of the lists are 0 then.
    pub(super) unsafe fn sort<K: Key>(
        self,
        queue: &impl Queue,
        coding: Coding<K::Bits>,
        at: Arrays,
        scratch: (Address, Address),
        words: Words,
        random: u64,
    ) -> Result<(), Error> {
        let Self { plan, value_bytes, bucket, .. } = self;
        let launch = |entry: &Entry, shape, arguments: &[*mut c_void]| {
            // SAFETY: the arguments below are those of the kernels; the caller's promise for the arrays.
            unsafe { queue.launch(entry, shape, arguments) }
        };
        let job = Job::new(words.lists as *mut u32, words.order as *mut u32, plan);
        let side = |keys: Address, values: Address| Elements { keys: keys as *mut K::Bits, values: values as *mut u32 };
        let sides = [side(at.keys, at.values), side(scratch.0, scratch.1)];
        let [_, buckets_entry, rest_entry] = self.moving_entries::<K>();
        // SAFETY: the caller's promise.
        unsafe { self.divide::<K>(queue, job, coding, sides, words.detects, random)? };
        let keys_alone = arguments![job, sides[0].keys, sides[1].keys, coding];
        let with_values = arguments![job, sides[0], sides[1], coding];
        let arguments = if value_bytes == 0 { &keys_alone } else { &with_values };
        let Tile { threads, items_per_thread } = bucket;
        let shared_bytes = match (value_bytes, size_of::<K>()) {
            (0, 4) => sort_buckets::shared_bytes::<K::Bits>(threads, items_per_thread),
            (_, key_bytes) => sort_buckets_with_values::shared_bytes(threads, items_per_thread, key_bytes, value_bytes),
        };
        let rest_bytes = match value_bytes {
            0 => block_sort::shared_bytes::<K::Bits>(threads, items_per_thread),
            _ => block_sort::shared_bytes::<u64>(threads, items_per_thread),
        };
        let blocks = divisions::usual_buckets(plan.n as usize, bucket.keys());
        // Fewer that take several are as fast for keys alone, and end sooner where keys are not divided.
        let most_blocks = if value_bytes == 0 { BUCKET_BLOCKS * queue.multiprocessors() } else { blocks };
        let blocks = blocks.min(most_blocks);
        launch(&buckets_entry, Shape { blocks, threads: threads as u32, shared_bytes }, arguments)?;
        if plan.long > 0 {
            let Tile { threads, items_per_thread } = LONG_BUCKETS;
            let shared_bytes = sort_buckets::shared_bytes::<K::Bits>(threads, items_per_thread);
            let blocks = BUCKET_BLOCKS * queue.multiprocessors();
            let shape = Shape { blocks, threads: threads as u32, shared_bytes };
            launch(&("sort_long_buckets", bits(size_of::<K>())), shape, arguments)?;
        }
        launch(&rest_entry, queue.persistent(FEW_BLOCKS, threads as u32, rest_bytes), arguments)
    }

    /// Tiles that the passes of merges get where keys are not divided after all, if this [`is_once`](Self::is_once).
    pub(super) const fn tile(self) -> Tile {
        self.bucket
    }

    /// Queues the one division of `keys`, with `scratch` as the other side, and the sort of what it makes, in place; or else the sort of
    /// each tile to the same indices of `tiles_to`, one of both sides, as that coding decodes them.
    ///
    /// # Safety
    /// As for [`sort`](Self::sort), if this [`is_once`](Self::is_once).
    pub(super) unsafe fn sort_once<K: Key>(
        self,
        queue: &impl Queue,
        coding: Coding<K::Bits>,
        [keys, scratch]: [Address; 2],
        (tiles_to, decode): (Address, Coding<K::Bits>),
        words: Words,
        random: u64,
    ) -> Result<(), Error> {
        let Self { plan, tile, bucket, .. } = self;
        let launch = |kernel, shape, arguments: &[*mut c_void]| {
            // SAFETY: the arguments below are those of the kernels; the caller's promise for the arrays.
            unsafe { queue.launch(&(kernel, bits(size_of::<K>())), shape, arguments) }
        };
        let job = Job::new(words.lists as *mut u32, words.order as *mut u32, plan);
        let (first, count) = job.at.once(&plan);
        // SAFETY: these are words of the lists.
        unsafe { queue.clear(words.lists + (first * size_of::<u32>()) as Address, count)? };
        let parts = plan.parts(plan.n) as usize;
        let count = Shape {
            blocks: parts.min(once::ONCE_BLOCKS * queue.multiprocessors()),
            threads: count_digits::COUNT_THREADS as u32,
            shared_bytes: once::COUNT_ONCE_SHARED_BYTES,
        };
        let always_divides = 0u32;
        launch("count_once", count, &arguments![job, keys, coding, random, always_divides])?;
        let divide = Shape {
            blocks: parts + 1,
            threads: tile.threads as u32,
            shared_bytes: once::shared_bytes(tile.keys(), size_of::<K>()),
        };
        let decodes = u32::from(coding != Coding::NONE);
        launch("divide_once", divide, &arguments![job, keys, scratch, coding, decodes])?;
        let Tile { threads, items_per_thread } = bucket;
        let sort = Shape {
            blocks: divisions::usual_buckets(plan.n as usize, bucket.keys()),
            threads: threads as u32,
            shared_bytes: once::sort_shared_bytes(threads, items_per_thread, size_of::<K>()),
        };
        launch("sort_once", sort, &arguments![job, keys, scratch, coding, tiles_to, decode, random])
    }

    /// Queues the divisions, level by level, from one of the sides to the other.
    ///
    /// # Safety
    /// As for [`sort`](Self::sort).
    unsafe fn divide<K: Key>(
        self,
        queue: &impl Queue,
        job: Job,
        coding: Coding<K::Bits>,
        sides: [Elements<K::Bits, u32>; 2],
        detects: bool,
        random: u64,
    ) -> Result<(), Error> {
        let Self { plan, value_bytes, most_digits, tile, .. } = self;
        let Plan { n, levels, .. } = plan;
        let launch = |entry: &Entry, shape, arguments: &[*mut c_void]| {
            // SAFETY: the arguments below are those of the kernels; the caller's promise for the arrays.
            unsafe { queue.launch(entry, shape, arguments) }
        };
        let launch_bits =
            |kernel, shape, arguments: &[*mut c_void]| launch(&(kernel, bits(size_of::<K>())), shape, arguments);
        let [divide_entry, ..] = self.moving_entries::<K>();
        let parts = plan.parts(n) as usize;
        let (detects, always_divides) = (u32::from(detects), 0u32);
        let (decodes, indexes) = (u32::from(coding != Coding::NONE), u32::from(self.indexes));
        for level in 0..levels {
            let (from, to) = (sides[level as usize % 2], sides[1 - level as usize % 2]);
            let coding = if level == 0 { coding } else { Coding::NONE };
            // The first level is one segment.
            let of_segments = if level == 0 { 1 } else { SEGMENT_BLOCKS * queue.multiprocessors() };
            let choose = Shape {
                blocks: of_segments,
                threads: choose_digits::CHOOSE_THREADS,
                shared_bytes: choose_digits::CHOOSE_SHARED_BYTES,
            };
            let keys = from.keys;
            let choose_arguments = arguments![job, keys, level, coding, most_digits, random, detects, always_divides];
            launch_bits("choose_digits", choose, &choose_arguments)?;
            let count = Shape {
                blocks: parts.min(count_digits::count_blocks(size_of::<K>()) * queue.multiprocessors()),
                threads: count_digits::COUNT_THREADS as u32,
                shared_bytes: count_digits::COUNT_SHARED_BYTES,
            };
            if level == 0 && plan.twice != 0 {
                let twice = Shape {
                    blocks: queue.multiprocessors(),
                    threads: count_twice::TWICE_THREADS as u32,
                    shared_bytes: count_twice::TWICE_SHARED_BYTES,
                };
                launch_bits("count_twice", twice, &arguments![job, keys, coding])?;
            }
            launch_bits("count_digits", count, &arguments![job, keys, level, coding])?;
            if value_bytes > 0 {
                // Some blocks for each segment, as a rule; and a warp for each digit of the first one.
                let blocks = if level == 0 { PLACE_FIRST_BLOCKS } else { PLACE_BLOCKS * queue.multiprocessors() };
                let place = Shape { blocks, threads: place_parts::PARTS_THREADS, shared_bytes: 0 };
                launch_bits("place_parts", place, &arguments![job, level])?;
            }
            let place = Shape {
                blocks: of_segments,
                threads: place_buckets::PLACE_THREADS,
                shared_bytes: place_buckets::PLACE_SHARED_BYTES,
            };
            launch_bits("place_buckets", place, &arguments![job, level, decodes])?;
            // Segments may have a part each that is not full.
            let parts = parts + if level > 0 { divisions::MOST_DIGITS as usize } else { 0 };
            let divide = Shape {
                // Blocks that take one tile each are faster than those that take several.
                blocks: if level < FEW_LEFT {
                    parts * plan.tiles as usize
                } else {
                    LEFT_BLOCKS * queue.multiprocessors()
                },
                threads: tile.threads as u32,
                shared_bytes: match value_bytes {
                    0 => divide::shared_bytes(tile.keys(), size_of::<K>()),
                    _ => divide_with_values::shared_bytes(
                        tile.threads,
                        tile.items_per_thread,
                        size_of::<K>(),
                        value_bytes,
                    ),
                },
            };
            let keys_alone = arguments![job, from.keys, to.keys, level, coding];
            let with_values = arguments![job, from, to, level, coding, indexes];
            launch(&divide_entry, divide, if value_bytes == 0 { &keys_alone } else { &with_values })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_take_at_most_a_hundredth_of_what_keys_and_values_take() {
        fn check<K: Key>() {
            for n in [(1 << 19) + 1, (1 << 21) + 1, 10_000_000, 1 << 28, divisions::MOST_KEYS] {
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
