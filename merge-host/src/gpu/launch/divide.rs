//! The sort that divides keys, again and again, until one block sorts what is left together.

use super::{Address, Arrays, Entry, Queue, Thresholds, bits, elements, suffix, with_numbers};
use crate::Error;
use crate::gpu::kernels::Shape;
use kernels_gpu::kernels::sort::divide::choose_digits::{self, ChooseDigits};
use kernels_gpu::kernels::sort::divide::count_digits::{self, CountDigits};
use kernels_gpu::kernels::sort::divide::count_twice::{self, CountTwice};
use kernels_gpu::kernels::sort::divide::divide::{self, Divide};
use kernels_gpu::kernels::sort::divide::divide_with_values::DivideWithValues;
use kernels_gpu::kernels::sort::divide::once::{self, CountOnce, DivideOnce, SortOnce};
use kernels_gpu::kernels::sort::divide::place_buckets::{self, PlaceBuckets};
use kernels_gpu::kernels::sort::divide::place_parts::{self, PlaceParts};
use kernels_gpu::kernels::sort::divide::sort_buckets::{self, SortBuckets, SortLongBuckets};
use kernels_gpu::kernels::sort::divide::sort_buckets_with_values::{self, SortBucketsWithValues, SortWideBuckets};
use kernels_gpu::kernels::sort::divide::sort_rest::{self, SortRest};
use kernels_gpu::kernels::sort::divide::sort_rest_with_values::{self, SortRestWithValues};
use kernels_gpu::kernels::sort::divide::workspace::{HEAD_WORDS, Job, Layout, Plan};
use kernels_gpu::kernels::sort::divide::{self as divisions, FEW_LEFT};
use kernels_gpu::kernels::sort::tile_in_order;
use kernels_gpu::key::{Coding, Key};
use kernels_gpu::tuning::{self, DivideTile, Tile};

/// Blocks of a multiprocessor, for kernels that place and sort what is left.
const FEW_BLOCKS: usize = 4;

/// Blocks of a multiprocessor that move what is left for later levels. There is something left where uneven keys are divided, which takes
/// [four divisions](Thresholds::four_divisions), and fewer blocks find sooner that there is nothing.
const fn left_blocks(levels: u32) -> usize {
    if levels > 3 { 32 } else { 16 }
}

/// Blocks of a multiprocessor that choose the digits of segments, and place their buckets.
const SEGMENT_BLOCKS: usize = 8;

/// Blocks of a multiprocessor that sort buckets of keys of 4 bytes alone.
const BUCKET_BLOCKS: usize = 16;

/// The same of long buckets, with the levels of [`left_blocks`].
const fn long_bucket_blocks(levels: u32) -> usize {
    if levels > 3 { 24 } else { 8 }
}

/// Buckets that larger blocks sort, of which a multiprocessor holds one.
const LONG_BUCKETS: Tile = tuning::ROW.sort_long_buckets.of(4, 0);

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
    /// What is known of the keys.
    pub order: Address,
}

impl DividePlan {
    /// By these thresholds, for `n` keys of type `K`, if there are not too many, with values of `value_bytes` bytes, or 0, which are to begin as the
    /// keys' indices if it `indexes`.
    pub(super) const fn of<K: Key>(
        thresholds: &Thresholds,
        n: usize,
        value_bytes: usize,
        indexes: bool,
    ) -> Option<Self> {
        if n > divisions::MOST_KEYS {
            return None;
        }
        let &Thresholds { two_divisions, four_divisions, most_digits, several_tiles, counted_twice, .. } = thresholds;
        let (tile, bucket) = thresholds.divide(size_of::<K>(), value_bytes, n);
        let usual = divisions::usual_len(bucket.keys());
        let digits_once = if value_bytes == 0 { most_digits[0] } else { thresholds.digits_in_order };
        let once = digits_once as usize * usual;
        // As many divisions as make buckets; or else more than are needed where keys are spread evenly.
        let (levels, most_digits) = match n {
            _ if n <= once => (1, most_digits[0]),
            _ if value_bytes == 0 && n <= two_divisions => (2, most_digits[1]),
            // Uneven keys of 8 bytes are merged, and those with values are merged or sorted by all of their bits.
            _ if n < four_divisions || value_bytes > 0 || size_of::<K>() == 8 => (3, most_digits[1]),
            _ => (4, most_digits[1]),
        };
        let tiles = if value_bytes > 0 && n >= several_tiles.0 { several_tiles.1 } else { 1 };
        let (in_order, tile_keys, bucket_keys) = ((value_bytes > 0) as u32, tile.keys() as u32, bucket.keys() as u32);
        let twice = (value_bytes == 0 && n >= counted_twice) as u32;
        // Uneven keys of 8 bytes are merged, and few digits have too many of few keys.
        let has_long = value_bytes == 0 && size_of::<K>() == 4 && levels > 2;
        let long = if has_long { LONG_BUCKETS.keys() as u32 } else { 0 };
        let n = n as u32;
        let plan = Plan { n, levels, tile: tile_keys, tiles, bucket: bucket_keys, long, in_order, twice };
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
        let of_some = twice.into_iter().chain(long).chain(in_order);
        of_all.into_iter().chain(of_some).chain([divide, sort_buckets, sort_rest]).collect()
    }

    /// The launch of `blocks` blocks that divide tiles.
    fn divide_shape<K: Key>(self, blocks: usize) -> Shape {
        let Self { tile, value_bytes, .. } = self;
        let shared_bytes = match value_bytes {
            0 => divide::shared_bytes(tile.keys(), size_of::<K>()),
            _ => tile_in_order::shared_bytes(tile.threads, tile.items_per_thread, size_of::<K>(), value_bytes),
        };
        Shape { blocks, threads: tile.threads as u32, shared_bytes }
    }

    /// Those that move keys.
    fn moving_entries<K: Key>(self) -> [Entry; 3] {
        let keys = bits(size_of::<K>());
        if self.value_bytes == 0 {
            let tiles =
                if self.tile == tuning::ROW.divide_many.of(4, 0) { format!("{keys}many") } else { keys.clone() };
            let sort_buckets = if size_of::<K>() == 4 { "sort_buckets" } else { "sort_wide_buckets" };
            return [("divide", tiles), (sort_buckets, keys.clone()), ("sort_rest", keys)];
        }
        let suffix = suffix::<K>(self.value_bytes);
        ["divide_with_values", "sort_buckets_with_values", "sort_rest_with_values"]
            .map(|kernel| (kernel, suffix.clone()))
    }

    /// Bytes of the heads of the lists, which say what there is to do, and that there is nothing where keys are not divided.
    pub(super) const HEAD_BYTES: usize = HEAD_WORDS * size_of::<u32>();

    /// Bytes of the lists.
    pub(super) fn list_bytes(self) -> usize {
        Layout::of(&self.plan).words as usize * size_of::<u32>()
    }

    /// The divisions of the keys of `at`, with the keys and values of `scratch` as the other side, and the sort of what they make, in place.
    /// Other `cleared` words before the lists become 0 with what decides.
    pub(super) fn division<K: Key>(
        self,
        coding: Coding<K::Bits>,
        at: Arrays,
        scratch: (Address, Address),
        words: Words,
        cleared: u32,
        random: u64,
    ) -> Division<K> {
        let job = Job::new(words.lists as *mut u32, words.order as *mut u32, self.plan);
        let sides = [(at.keys, at.values), scratch];
        Division { how: self, job, coding, sides, cleared, random }
    }

    /// Tiles that the passes of merges get where keys are not divided after all, if this [`is_once`](Self::is_once).
    pub(super) const fn tile(self) -> Tile {
        self.bucket
    }

    /// Queues the one division of `keys`, with `scratch` as the other side. Words that are between those of `order` and the lists, which are behind
    /// these, become 0 before.
    ///
    /// # Safety
    /// All of these are in the GPU's memory, of the plan's number of keys, and nothing else uses them until the sort has ended. The words of
    /// `order` are some, and this [`is_once`](Self::is_once).
    pub(super) unsafe fn divide_once<K: Key>(
        self,
        queue: &impl Queue,
        coding: Coding<K::Bits>,
        [keys, scratch]: [Address; 2],
        words: Words,
        random: u64,
    ) -> Result<(), Error> {
        let Self { plan, tile, .. } = self;
        let suffix = bits(size_of::<K>());
        let (keys, scratch) = (keys as *mut K::Bits, scratch as *mut K::Bits);
        let job = Job::new(words.lists as *mut u32, words.order as *mut u32, plan);
        let (first, count) = job.at.once(&plan);
        let end = words.lists + ((first + count) * size_of::<u32>()) as Address;
        // SAFETY: these are the words of the order and of the lists, and what is between them.
        unsafe { queue.clear(words.order, (end - words.order) as usize / size_of::<u32>())? };
        let parts = plan.parts(plan.n) as usize;
        let count = Shape {
            blocks: parts.min(once::ONCE_BLOCKS * queue.multiprocessors()),
            threads: count_digits::COUNT_THREADS as u32,
            shared_bytes: once::COUNT_ONCE_SHARED_BYTES,
        };
        // SAFETY: the caller's promise for the arrays, here and below; shapes are those that the kernels ask for.
        unsafe { queue.launch(&suffix, count, &CountOnce { job, keys, coding, random, always_divides: 0 })? };
        let divide = Shape {
            blocks: parts + 1,
            threads: tile.threads as u32,
            shared_bytes: once::shared_bytes(tile.keys(), size_of::<K>()),
        };
        let decodes = u32::from(coding != Coding::NONE);
        // SAFETY: as above.
        unsafe { queue.launch(&suffix, divide, &DivideOnce { job, from: keys, to: scratch, coding, decodes }) }
    }

    /// Queues the sort of what [`divide_once`](Self::divide_once) has made, in place; or else, if there is `tiles_to`, the sort of each tile to the
    /// same indices of that array, one of both sides, as that coding decodes them.
    ///
    /// # Safety
    /// As for `divide_once`.
    pub(super) unsafe fn sort_once<K: Key>(
        self,
        queue: &impl Queue,
        coding: Coding<K::Bits>,
        [keys, scratch]: [Address; 2],
        tiles_to: Option<(Address, Coding<K::Bits>)>,
        words: Words,
        random: u64,
    ) -> Result<(), Error> {
        let Self { plan, bucket, .. } = self;
        let job = Job::new(words.lists as *mut u32, words.order as *mut u32, plan);
        let Tile { threads, items_per_thread } = bucket;
        let shape = Shape {
            blocks: divisions::usual_buckets(plan.n as usize, bucket.keys()),
            threads: threads as u32,
            shared_bytes: once::sort_shared_bytes(threads, items_per_thread, size_of::<K>()),
        };
        let (merges, (to, decode)) = (u32::from(tiles_to.is_some()), tiles_to.unwrap_or((keys, Coding::NONE)));
        let [keys, scratch, to] = [keys, scratch, to].map(|at| at as *mut K::Bits);
        let sort = SortOnce { job, keys, scratch, coding, to, decode, random, merges };
        // SAFETY: the caller's promise for the arrays; the shape is the one that the kernel asks for.
        unsafe { queue.launch(&bits(size_of::<K>()), shape, &sort) }
    }
}

/// The divisions of one array, level by level, from one of its sides to the other. They may run beside what sorts keys that are not divided: of both
/// one finds nothing to do.
pub(super) struct Division<K: Key> {
    how: DividePlan,
    job: Job,
    coding: Coding<K::Bits>,
    sides: [(Address, Address); 2],
    cleared: u32,
    random: u64,
}

impl<K: Key> Division<K> {
    /// Queues what decides whether keys are divided: the choice of the first level's digits. They are not where keys are in order, or too uneven.
    /// If there is one level only, its digits are counted as well: keys are not divided if those of a digit are too many for a block.
    ///
    /// # Safety
    /// All arrays are in the GPU's memory, of the plan's number of keys, and nothing else uses them until this has ended.
    pub(super) unsafe fn decide(&self, queue: &impl Queue) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let cleared = Layout::cleared(&self.how.plan);
            if cleared > 0 {
                queue.clear(self.job.words as Address + DividePlan::HEAD_BYTES as Address, cleared)?;
            }
            self.choose(queue, 0)?;
            if self.how.plan.levels == 1 { self.place(queue, 0) } else { Ok(()) }
        }
    }

    /// Queues the first division.
    ///
    /// # Safety
    /// As for [`decide`](Self::decide), which has been called before. Where keys are not divided, something else may use the arrays, and the words
    /// of the lists but for their heads.
    pub(super) unsafe fn begin(&self, queue: &impl Queue) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            if self.how.plan.levels > 1 {
                self.place(queue, 0)?;
            }
            self.divide(queue, 0)
        }
    }

    /// Queues the other divisions and the sort of what they make.
    ///
    /// # Safety
    /// As for [`begin`](Self::begin), which has been called before, until the sort has ended.
    pub(super) unsafe fn finish(&self, queue: &impl Queue) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            for level in 1..self.how.plan.levels {
                self.choose(queue, level)?;
                self.place(queue, level)?;
                self.divide(queue, level)?;
            }
            self.sort_buckets(queue)
        }
    }

    /// The coding of what a level reads: the first one encodes keys, and the last kernels decode them.
    fn coding_at(&self, level: u32) -> Coding<K::Bits> {
        if level == 0 { self.coding } else { Coding::NONE }
    }

    /// What a level reads, and what it writes.
    fn sides_at(&self, level: u32) -> ((Address, Address), (Address, Address)) {
        (self.sides[level as usize % 2], self.sides[1 - level as usize % 2])
    }

    /// The keys that a level reads.
    fn keys_at(&self, level: u32) -> *mut K::Bits {
        let ((keys, _), _) = self.sides_at(level);
        keys as *mut K::Bits
    }

    /// Blocks for the segments of a level. The first level is one segment.
    fn segment_blocks(queue: &impl Queue, level: u32) -> usize {
        if level == 0 { 1 } else { SEGMENT_BLOCKS * queue.multiprocessors() }
    }

    /// Queues the choice of a level's digits.
    ///
    /// # Safety
    /// As for [`decide`](Self::decide).
    unsafe fn choose(&self, queue: &impl Queue, level: u32) -> Result<(), Error> {
        let &Self { how: DividePlan { most_digits, .. }, job, cleared, random, .. } = self;
        let (keys, coding) = (self.keys_at(level), self.coding_at(level));
        let shape = Shape {
            blocks: Self::segment_blocks(queue, level),
            threads: choose_digits::CHOOSE_THREADS,
            shared_bytes: choose_digits::CHOOSE_SHARED_BYTES,
        };
        let (single, always_divides) = (most_digits, 0);
        let choose = ChooseDigits { job, keys, level, coding, single, random, cleared, always_divides };
        // SAFETY: the caller's promise for the arrays; the shape is the one that the kernel asks for.
        unsafe { queue.launch(&bits(size_of::<K>()), shape, &choose) }
    }

    /// Queues the counts of a level's digits, and where they go.
    ///
    /// # Safety
    /// As for [`decide`](Self::decide).
    unsafe fn place(&self, queue: &impl Queue, level: u32) -> Result<(), Error> {
        let &Self { how: DividePlan { plan, value_bytes, .. }, job, .. } = self;
        let (suffix, decodes) = (bits(size_of::<K>()), u32::from(self.coding != Coding::NONE));
        let (keys, coding) = (self.keys_at(level), self.coding_at(level));
        if level == 0 && plan.twice != 0 {
            let twice = Shape {
                blocks: queue.multiprocessors(),
                threads: count_twice::TWICE_THREADS as u32,
                shared_bytes: count_twice::TWICE_SHARED_BYTES,
            };
            // SAFETY: the caller's promise for the arrays, here and below; shapes are those that the kernels ask for.
            unsafe { queue.launch(&suffix, twice, &CountTwice { job, keys, coding })? };
        }
        let parts = plan.parts(plan.n) as usize;
        let count = Shape {
            blocks: parts.min(count_digits::count_blocks(size_of::<K>()) * queue.multiprocessors()),
            threads: count_digits::COUNT_THREADS as u32,
            shared_bytes: count_digits::COUNT_SHARED_BYTES,
        };
        // SAFETY: as above.
        unsafe { queue.launch(&suffix, count, &CountDigits { job, keys, level, coding })? };
        if value_bytes > 0 {
            // Some blocks for each segment, as a rule; and a warp for each digit of the first one.
            let blocks = if level == 0 { PLACE_FIRST_BLOCKS } else { PLACE_BLOCKS * queue.multiprocessors() };
            let parts = Shape { blocks, threads: place_parts::PARTS_THREADS, shared_bytes: 0 };
            // SAFETY: as above.
            unsafe { queue.launch(&suffix, parts, &PlaceParts { job, level })? };
        }
        let place = Shape {
            blocks: Self::segment_blocks(queue, level),
            threads: place_buckets::PLACE_THREADS,
            shared_bytes: place_buckets::PLACE_SHARED_BYTES,
        };
        // SAFETY: as above.
        unsafe { queue.launch(&suffix, place, &PlaceBuckets { job, level, decodes }) }
    }

    /// Queues the division of a level.
    ///
    /// # Safety
    /// As for [`finish`](Self::finish).
    unsafe fn divide(&self, queue: &impl Queue, level: u32) -> Result<(), Error> {
        let &Self { how, job, .. } = self;
        let DividePlan { plan, value_bytes, indexes, .. } = how;
        let ((from, to), coding, indexes) = (self.sides_at(level), self.coding_at(level), u32::from(indexes));
        // Segments may have a part each that is not full.
        let parts = plan.parts(plan.n) as usize + if level > 0 { divisions::MOST_DIGITS as usize } else { 0 };
        // Blocks that take one tile each are faster than those that take several.
        let blocks = if level < FEW_LEFT {
            parts * plan.tiles as usize
        } else {
            left_blocks(plan.levels) * queue.multiprocessors()
        };
        let shape = how.divide_shape::<K>(blocks);
        let [(_, suffix), ..] = self.how.moving_entries::<K>();
        if value_bytes == 0 {
            let (from, to) = (from.0 as *mut K::Bits, to.0 as *mut K::Bits);
            // SAFETY: the caller's promise for the arrays; shapes are those that the kernels ask for.
            return unsafe { queue.launch(&suffix, shape, &Divide { job, from, to, level, coding }) };
        }
        with_numbers!(value_bytes, V => {
            let (from, to) = (elements::<K, V>(from), elements::<K, V>(to));
            // SAFETY: as above.
            unsafe { queue.launch(&suffix, shape, &DivideWithValues { job, from, to, level, coding, indexes }) }
        })
    }

    /// Queues the sort of buckets, and of what is left.
    ///
    /// # Safety
    /// As for [`finish`](Self::finish).
    unsafe fn sort_buckets(&self, queue: &impl Queue) -> Result<(), Error> {
        let &Self { how: DividePlan { plan, value_bytes, bucket, .. }, job, coding, sides, .. } = self;
        let [_, (_, suffix), _] = self.how.moving_entries::<K>();
        let Tile { threads, items_per_thread } = bucket;
        let shared_bytes = match (value_bytes, size_of::<K>()) {
            (0, 4) => sort_buckets::shared_bytes::<K::Bits>(threads, items_per_thread),
            (_, key_bytes) => sort_buckets_with_values::shared_bytes(threads, items_per_thread, key_bytes, value_bytes),
        };
        let rest_bytes = match value_bytes {
            0 => sort_rest::shared_bytes::<K::Bits>(bucket.keys()),
            _ => sort_rest_with_values::shared_bytes(bucket.keys()),
        };
        let blocks = divisions::usual_buckets(plan.n as usize, bucket.keys());
        // Fewer that take several are faster for keys of 4 bytes alone, and end sooner where keys are not divided.
        let takes_several = value_bytes == 0 && size_of::<K>() == 4;
        let most_blocks = if takes_several { BUCKET_BLOCKS * queue.multiprocessors() } else { blocks };
        let blocks = blocks.min(most_blocks);
        let shape = Shape { blocks, threads: threads as u32, shared_bytes };
        let rest = queue.persistent(FEW_BLOCKS, threads as u32, rest_bytes);
        if value_bytes > 0 {
            return with_numbers!(value_bytes, V => {
                let (at, scratch) = (elements::<K, V>(sides[0]), elements::<K, V>(sides[1]));
                // SAFETY: the caller's promise for the arrays, here and below; shapes are those that the kernels ask for.
                unsafe {
                    queue.launch(&suffix, shape, &SortBucketsWithValues { job, at, scratch, coding })?;
                    queue.launch(&suffix, rest, &SortRestWithValues { job, at, scratch, coding })
                }
            });
        }
        let (keys, scratch) = (sides[0].0 as *mut K::Bits, sides[1].0 as *mut K::Bits);
        // SAFETY: as above.
        unsafe {
            if size_of::<K>() == 4 {
                queue.launch(&suffix, shape, &SortBuckets { job, keys, scratch, coding })?;
            } else {
                queue.launch(&suffix, shape, &SortWideBuckets { job, keys, scratch, coding })?;
            }
        }
        if plan.long > 0 {
            let Tile { threads, items_per_thread } = LONG_BUCKETS;
            let shared_bytes = sort_buckets::shared_bytes::<K::Bits>(threads, items_per_thread);
            let blocks = long_bucket_blocks(plan.levels) * queue.multiprocessors();
            let shape = Shape { blocks, threads: threads as u32, shared_bytes };
            // SAFETY: as above.
            unsafe { queue.launch(&suffix, shape, &SortLongBuckets { job, keys, scratch, coding })? };
        }
        // SAFETY: as above.
        unsafe { queue.launch(&suffix, rest, &SortRest { job, keys, scratch, coding }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_take_at_most_a_hundredth_of_what_keys_and_values_take() {
        fn check<K: Key>() {
            for n in [(1 << 19) + 1, (1 << 21) + 1, 10_000_000, 1 << 24, 1 << 26, 1 << 28, divisions::MOST_KEYS] {
                for (value_bytes, indexes) in [(0, false), (4, true), (4, false), (8, false)] {
                    let plan = DividePlan::of::<K>(&Thresholds::DEFAULT, n, value_bytes, indexes)
                        .expect("there are not too many");
                    let bytes = plan.list_bytes();
                    assert!(bytes * 100 <= n * (size_of::<K>() + value_bytes), "{bytes} bytes for {n} keys");
                }
            }
        }
        check::<u32>();
        check::<u64>();
        assert!(DividePlan::of::<u32>(&Thresholds::DEFAULT, divisions::MOST_KEYS + 1, 0, false).is_none());
    }
}
