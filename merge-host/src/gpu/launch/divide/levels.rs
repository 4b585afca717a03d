//! Divisions level by level, from one side of the array to the other, and the sort of the buckets.

use super::super::{Address, Arrays, Queue, bits, elements, suffix, with_values};
use super::plan::{LONG_BUCKETS, long_suffix};
use super::{DividePlan, Words};
use crate::Error;
use crate::gpu::kernels::Shape;
use kernels_gpu::kernels::sort::divide as divisions;
use kernels_gpu::kernels::sort::divide::choose_digits::{self, ChooseDigits, LevelParameters};
use kernels_gpu::kernels::sort::divide::count_digits::{self, CountDigits};
use kernels_gpu::kernels::sort::divide::count_twice::{self, CountTwice};
use kernels_gpu::kernels::sort::divide::divide::Divide;
use kernels_gpu::kernels::sort::divide::place_buckets::{self, PlaceBuckets};
use kernels_gpu::kernels::sort::divide::place_parts::{self, PlaceParts};
use kernels_gpu::kernels::sort::divide::sort_buckets::{self, SortBuckets, is_by_keys};
use kernels_gpu::kernels::sort::divide::sort_rest::{self, SortRest};
use kernels_gpu::kernels::sort::divide::workspace::{Job, Layout};
use kernels_gpu::key::{Bits, Coding};
use kernels_gpu::tuning::Tile;

/// Blocks for each multiprocessor that sort the rest. As a rule there is none.
const REST_BLOCKS: usize = 2;

/// Blocks for each multiprocessor that move keys left for later levels. Keys are left where uneven keys are divided,
/// which takes [four divisions](super::super::Thresholds::four_divisions). With fewer divisions, fewer blocks find
/// sooner that there is nothing to do.
const fn left_blocks(levels: u32) -> usize {
    if levels > 3 { 32 } else { 16 }
}

/// Blocks for each multiprocessor that choose the digits of segments, and place their buckets.
const SEGMENT_BLOCKS: usize = 8;

/// Blocks for each multiprocessor that sort buckets of 4-byte keys alone.
const BUCKET_BLOCKS: usize = 16;

/// Blocks for each multiprocessor that sort long buckets, in a plan of `levels` levels.
const fn long_bucket_blocks(levels: u32) -> usize {
    if levels > 3 { 24 } else { 8 }
}

/// Blocks that place the parts of the first segment.
const PLACE_FIRST_BLOCKS: usize = 32;

/// Blocks for each multiprocessor that place the parts of other segments.
const PLACE_BLOCKS: usize = 16;

impl DividePlan {
    /// The divisions of the keys of `at`, with the keys and values of `scratch` as the other side, and the sort of the
    /// buckets, in place. The choice of digits also clears the `cleared` words before the lists.
    pub(in crate::gpu::launch) fn division<B: Bits>(
        self,
        coding: Coding<B>,
        at: Arrays,
        scratch: (Address, Address),
        words: Words,
        cleared: u32,
        random: u64,
    ) -> Division<B> {
        let job = Job::new(words.lists as *mut u32, words.order as *mut u32, self.plan);
        let sides = [(at.keys, at.values), scratch];
        Division { how: self, job, coding, sides, cleared, random, segments: 1, busy: divisions::FEW_LEFT }
    }

    /// The divisions of the segments that `job` lists, up to `segments` of up to `longest` keys.
    pub(in crate::gpu::launch) fn division_of_segments<B: Bits>(
        self,
        coding: Coding<B>,
        at: Arrays,
        scratch: (Address, Address),
        job: Job,
        (segments, longest): (usize, usize),
        random: u64,
    ) -> Division<B> {
        let sides = [(at.keys, at.values), scratch];
        // Evenly spread keys need a second level if one level has too few digits for the longest segment.
        let once = self.most_digits as usize * job.usual as usize;
        let busy = if longest <= once { 1 } else { divisions::FEW_LEFT };
        Division { how: self, job, coding, sides, cleared: 0, random, segments, busy }
    }
}

/// The divisions of one array, or of its segments, level by level, from one side to the other. They may run beside the
/// kernels for keys that are not divided: either finds nothing to do.
pub(in crate::gpu::launch) struct Division<B: Bits> {
    how: DividePlan,
    job: Job,
    coding: Coding<B>,
    sides: [(Address, Address); 2],
    cleared: u32,
    random: u64,
    /// Upper limit on the segments of the first level.
    segments: usize,
    /// The number of levels that are likely to divide most of the keys.
    busy: u32,
}

impl<B: Bits> Division<B> {
    /// Queues the decision whether keys are divided: the choice of the first level's digits. Keys that are in order, or
    /// too uneven, are not divided. If there is only one level, its digits are counted as well: keys are not divided if
    /// a digit has too many keys for a block.
    ///
    /// # Safety
    /// All arrays are in the GPU's memory and have the plan's number of keys. Nothing else uses them until this work
    /// has ended.
    pub(in crate::gpu::launch) unsafe fn decide(&self, queue: &dyn Queue) -> Result<(), Error> {
        // SAFETY: the `cleared` words behind the heads are part of the lists (`Layout::cleared`). `choose` and `place`
        // require the conditions of this function.
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
    /// The conditions of [`decide`](Self::decide) hold, which has been called before. If keys are not divided,
    /// something else may use the arrays, and the words of the lists except for their heads.
    pub(in crate::gpu::launch) unsafe fn begin(&self, queue: &dyn Queue) -> Result<(), Error> {
        // SAFETY: `decide` has queued the choice of digits, which `place` and `divide` need. They require the
        // conditions of this function.
        unsafe {
            if self.how.plan.levels > 1 {
                self.place(queue, 0)?;
            }
            self.divide(queue, 0)
        }
    }

    /// Queues the other divisions and the sort of the buckets.
    ///
    /// # Safety
    /// The conditions of [`begin`](Self::begin) hold, which has been called before, until the sort has ended.
    pub(in crate::gpu::launch) unsafe fn finish(&self, queue: &dyn Queue) -> Result<(), Error> {
        // SAFETY: `begin` has queued level 0, which lists the segments of level 1.
        unsafe { self.divide_from(queue, 1) }
    }

    /// Queues all divisions of listed segments, and the sort of the buckets. Keys outside of the segments stay as they
    /// are.
    ///
    /// # Safety
    /// All arrays are in the GPU's memory and have the plan's number of keys. Launches before have listed the segments.
    /// Nothing else uses the segments, on either side, until the sort has ended.
    pub(in crate::gpu::launch) unsafe fn divide_segments(&self, queue: &dyn Queue) -> Result<(), Error> {
        // SAFETY: the first level is the listed segments, which launches before have listed.
        unsafe { self.divide_from(queue, 0) }
    }

    /// Queues the divisions from level `first` on, and the sort of the buckets.
    ///
    /// # Safety
    /// The conditions of [`finish`](Self::finish) or of [`divide_segments`](Self::divide_segments) hold, and launches
    /// before have listed the segments of level `first`.
    unsafe fn divide_from(&self, queue: &dyn Queue, first: u32) -> Result<(), Error> {
        // SAFETY: each level is chosen, placed and divided in this order, and then the buckets are complete.
        unsafe {
            for level in first..self.how.plan.levels {
                self.choose(queue, level)?;
                self.place(queue, level)?;
                self.divide(queue, level)?;
            }
            self.sort_buckets(queue)
        }
    }

    /// The coding of the keys that a level reads. The first level encodes keys, and the last kernels decode them.
    fn coding_at(&self, level: u32) -> Coding<B> {
        if level == 0 { self.coding } else { Coding::NONE }
    }

    /// The side that a level reads, and the side that it writes.
    fn sides_at(&self, level: u32) -> ((Address, Address), (Address, Address)) {
        (self.sides[level as usize % 2], self.sides[1 - level as usize % 2])
    }

    /// The keys that a level reads.
    fn keys_at(&self, level: u32) -> *mut B {
        let ((keys, _), _) = self.sides_at(level);
        keys as *mut B
    }

    /// Blocks for the segments of a level.
    fn segment_blocks(&self, queue: &dyn Queue, level: u32) -> usize {
        let most = SEGMENT_BLOCKS * queue.multiprocessors();
        if level == 0 { self.segments.min(most) } else { most }
    }

    /// Queues the choice of a level's digits.
    ///
    /// # Safety
    /// The conditions of [`decide`](Self::decide) hold.
    unsafe fn choose(&self, queue: &dyn Queue, level: u32) -> Result<(), Error> {
        let &Self { how: DividePlan { most_digits, .. }, job, cleared, random, .. } = self;
        let (keys, coding) = (self.keys_at(level), self.coding_at(level));
        let shape = Shape {
            blocks: self.segment_blocks(queue, level),
            threads: choose_digits::CHOOSE_THREADS,
            shared_bytes: choose_digits::CHOOSE_SHARED_BYTES,
        };
        let level = LevelParameters { number: level, single: most_digits, cleared, always_divides: 0, random };
        let choose = ChooseDigits { job, keys, coding, level };
        // SAFETY: `keys` is a side with the plan's number of keys, and `job` has the plan's words. The shape has the
        // kernel's threads and shared bytes.
        unsafe { queue.launch(&bits(size_of::<B>()), shape, &choose) }
    }

    /// Queues the counts of a level's digits, and the placement of the buckets.
    ///
    /// # Safety
    /// The conditions of [`decide`](Self::decide) hold.
    unsafe fn place(&self, queue: &dyn Queue, level: u32) -> Result<(), Error> {
        let &Self { how: DividePlan { plan, value_bytes, .. }, job, .. } = self;
        let (suffix, decodes) = (bits(size_of::<B>()), u32::from(self.coding != Coding::NONE));
        let (keys, coding) = (self.keys_at(level), self.coding_at(level));
        if level == 0 && plan.twice != 0 {
            let twice = Shape {
                blocks: queue.multiprocessors(),
                threads: count_twice::TWICE_THREADS as u32,
                shared_bytes: count_twice::TWICE_SHARED_BYTES,
            };
            // SAFETY: `keys` is a side with the plan's number of keys, and `job` has the plan's words. The shape has
            // the kernel's threads and shared bytes.
            unsafe { queue.launch(&suffix, twice, &CountTwice { job, keys, coding })? };
        }
        let parts = plan.parts(plan.n) as usize;
        let count = Shape {
            blocks: parts.min(count_digits::count_blocks(size_of::<B>()) * queue.multiprocessors()),
            threads: count_digits::COUNT_THREADS as u32,
            shared_bytes: count_digits::COUNT_SHARED_BYTES,
        };
        // SAFETY: the digits of the level have been chosen by a launch before. The shape has the kernel's threads and
        // shared bytes.
        unsafe { queue.launch(&suffix, count, &CountDigits { job, keys, level, coding })? };
        if value_bytes > 0 {
            // Usually some blocks for each segment, and a warp for each digit of the first segment.
            let is_array = level == 0 && plan.listed == 0;
            let blocks = if is_array { PLACE_FIRST_BLOCKS } else { PLACE_BLOCKS * queue.multiprocessors() };
            let parts = Shape { blocks, threads: place_parts::PARTS_THREADS, shared_bytes: 0 };
            // SAFETY: the launch before has counted the digits, in the words of `job`. The kernel has no dynamic shared
            // memory.
            unsafe { queue.launch(&suffix, parts, &PlaceParts { job, level })? };
        }
        let place = Shape {
            blocks: self.segment_blocks(queue, level),
            threads: place_buckets::PLACE_THREADS,
            shared_bytes: place_buckets::PLACE_SHARED_BYTES,
        };
        // SAFETY: the launches before have counted the digits, in the words of `job`. The shape has the kernel's
        // threads and shared bytes.
        unsafe { queue.launch(&suffix, place, &PlaceBuckets { job, level, decodes }) }
    }

    /// Queues the division of a level.
    ///
    /// # Safety
    /// The conditions of [`finish`](Self::finish) hold.
    unsafe fn divide(&self, queue: &dyn Queue, level: u32) -> Result<(), Error> {
        let &Self { how, job, .. } = self;
        let DividePlan { plan, value_bytes, indexes, .. } = how;
        let ((from, to), coding, indexes) = (self.sides_at(level), self.coding_at(level), u32::from(indexes));
        // Each segment may have a part that is not full.
        let segments = if level > 0 { self.segments.max(divisions::MOST_DIGITS as usize) } else { self.segments - 1 };
        let parts = plan.parts(plan.n) as usize + segments;
        // Blocks that take one tile each are faster than blocks that take several.
        let blocks = if level < self.busy {
            parts * plan.tiles as usize
        } else {
            left_blocks(plan.levels) * queue.multiprocessors()
        };
        let shape = how.divide_shape::<B>(blocks);
        let suffix = how.tile_suffix::<B>();
        with_values!(value_bytes, V => {
            let (from, to) = (elements::<B, V>(from), elements::<B, V>(to));
            // SAFETY: both sides have the plan's number of elements with values of type `V`, and `place` has placed the
            // buckets of the level. The shape has the tile's threads and shared bytes.
            unsafe { queue.launch(&suffix, shape, &Divide { job, from, to, level, coding, indexes }) }
        })
    }

    /// Queues the sort of the buckets, and of the rest.
    ///
    /// # Safety
    /// The conditions of [`finish`](Self::finish) hold.
    unsafe fn sort_buckets(&self, queue: &dyn Queue) -> Result<(), Error> {
        let &Self { how: DividePlan { plan, value_bytes, bucket, .. }, job, coding, sides, .. } = self;
        let suffix = suffix::<B>(value_bytes);
        let bytes =
            |tile: Tile| sort_buckets::shared_bytes(tile.threads, tile.items_per_thread, size_of::<B>(), value_bytes);
        let blocks = divisions::usual_buckets(plan.n as usize, bucket.keys());
        // For 4-byte keys alone, fewer blocks that take several buckets are faster, and end sooner if keys are not
        // divided.
        let takes_several = is_by_keys(size_of::<B>(), value_bytes);
        let most_blocks = if takes_several { BUCKET_BLOCKS * queue.multiprocessors() } else { blocks };
        let (threads, blocks) = (bucket.threads as u32, blocks.min(most_blocks));
        let shape = Shape { blocks, threads, shared_bytes: bytes(bucket) };
        let rest_tile = sort_rest::tile(size_of::<B>(), value_bytes);
        let rest_bytes = sort_rest::shared_bytes(rest_tile.keys(), size_of::<B>(), value_bytes > 0);
        let rest = queue.persistent(REST_BLOCKS, rest_tile.threads as u32, rest_bytes);
        with_values!(value_bytes, V => {
            let (at, scratch) = (elements::<B, V>(sides[0]), elements::<B, V>(sides[1]));
            let sort = SortBuckets { job, at, scratch, coding };
            // SAFETY: both sides have the plan's number of elements with values of type `V`, and all divisions are
            // queued before. Each shape has the threads and shared bytes of its kernel.
            unsafe {
                queue.launch(&suffix, shape, &sort)?;
                if plan.long > 0 {
                    let blocks = long_bucket_blocks(plan.levels) * queue.multiprocessors();
                    let threads = LONG_BUCKETS.threads as u32;
                    let shape = Shape { blocks, threads, shared_bytes: bytes(LONG_BUCKETS) };
                    queue.launch(&long_suffix::<B>(), shape, &sort)?;
                }
                queue.launch(&suffix, rest, &SortRest { job, at, scratch, coding })
            }
        })
    }
}
