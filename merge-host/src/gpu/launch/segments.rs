//! The sort of the segments of an array.
//!
//! The launches depend on the numbers of keys and of segments, and on how long a segment may be, but not on the
//! offsets.

mod middle;

use super::divide::DividePlan;
use super::{
    Address, Arrays, PERSISTENT_BLOCKS, Queue, Thresholds, align, bits, elements, slice, suffix, with_numbers,
    with_values,
};
use crate::Error;
use crate::gpu::kernels::Shape;
use crate::gpu::operation::{KeyCoding, OnNumbers};
use crate::key::sealed::GpuBits;
use kernels_gpu::kernels::sort::detect_runs::DETECTION_THREADS;
use kernels_gpu::kernels::sort::divide::workspace::{HEAD_WORDS, Job};
use kernels_gpu::kernels::sort::indices::SetIndices;
use kernels_gpu::kernels::sort::merge_pass::MIN_BLOCKS_PER_SM;
use kernels_gpu::kernels::sort::segments::find_segments::{self, FIND_THREADS, FindSegments};
use kernels_gpu::kernels::sort::segments::merge_segments::{self, MergeSegments};
use kernels_gpu::kernels::sort::segments::middle::MiddleSegments;
use kernels_gpu::kernels::sort::segments::middle_runs::MAX_MIDDLE;
use kernels_gpu::kernels::sort::segments::sort_rows::{self, MAX_ROW, ROW_THREADS, SortRows};
use kernels_gpu::kernels::sort::segments::sort_segments::SortSegments as SortTiles;
use kernels_gpu::kernels::sort::segments::sort_short_segments::{self, MAX_SHORT, SHORT_THREADS, SortShortSegments};
use kernels_gpu::kernels::sort::segments::sort_wide_rows::{self, SortWideRows, WIDE_ROW_THREADS, has_wide_rows};
use kernels_gpu::kernels::sort::segments::{self, SegmentLists, Segments, Tiles, UNIT_WORDS, most_units, passes};
use kernels_gpu::key::{Bits, Coding};
use kernels_gpu::tuning::{ROW, Tile};
use kernels_gpu::warp::sort_lanes::MINUS_ONE;
use std::ptr;

/// The most keys. Runs of the last pass have fewer than 2^32 keys, and more keys and their copy exceed the memory of
/// any GPU.
const MAX_KEYS: usize = 1 << 35;

/// Blocks for each multiprocessor that sort runs of long segments. It holds two at once.
const RUN_BLOCKS: usize = 4;

/// Segments of an array that is in the GPU's memory.
#[derive(Clone, Copy)]
pub struct Bounds {
    segments: Segments,
    /// Most keys of a segment.
    longest: usize,
}

impl Bounds {
    /// The segments between `count + 1` offsets of 8 bytes, each of at most `longest` keys.
    pub fn of_offsets(offsets: Address, count: usize, longest: usize) -> Self {
        Self { segments: Segments { offsets: offsets as *const usize, count, length: 0 }, longest }
    }

    /// The segments of `length` keys of an array of `n`. The last one may be shorter. `length` is not 0.
    pub fn of_length(length: usize, n: usize) -> Self {
        Self { segments: Segments { offsets: ptr::null(), count: n.div_ceil(length), length }, longest: length.min(n) }
    }

    /// The segments, as kernels take them.
    pub(super) fn segments(self) -> Segments {
        self.segments
    }

    /// Number of segments.
    pub(in crate::gpu) fn count(self) -> usize {
        self.segments.count
    }

    /// Most keys of a segment.
    pub(in crate::gpu) fn longest(self) -> usize {
        self.longest
    }

    /// Whether a segment of the `n` keys may be a middle one: with up to [`MAX_MIDDLE`] keys, but too many for lanes.
    fn may_be_middle(self, n: usize) -> bool {
        let Segments { offsets, count, length } = self.segments;
        let is_middle = |keys: usize| (MAX_SHORT + 1..=MAX_MIDDLE).contains(&keys);
        !offsets.is_null() || is_middle(self.longest) || is_middle(n - (count - 1) * length)
    }
}

/// The shapes of a sort of segments.
#[derive(Clone, Copy)]
struct SegmentPlan {
    value_bytes: usize,
    block: Tile,
    merge: Tile,
    tiles: Tiles,
}

/// Offsets of the parts of a workspace, in bytes, and its end. The keys' scratch array is at its start.
struct Layout {
    values: usize,
    firsts: usize,
    list: usize,
    /// The number of units. Behind it are the numbers of middle segments of each list.
    units: usize,
    /// The number of tiles with longer segments, right behind the other numbers, and the list of such tiles.
    longer: usize,
    /// The lists of middle segments.
    middle: usize,
    /// The lists of the division of long segments, if there is one.
    division: usize,
    end: usize,
}

impl SegmentPlan {
    /// The plan for keys with bits `B` and values of `value_bytes` bytes, or 0.
    const fn of<B: Bits>(value_bytes: usize) -> Self {
        let block = ROW.sort_segments.of(size_of::<B>(), value_bytes);
        let merge = ROW.merge_runs.of(size_of::<B>(), value_bytes);
        Self { value_bytes, block, merge, tiles: Tiles::of(block.keys()) }
    }

    /// The workspace for `n` keys with bits `B`, at most [`MAX_KEYS`].
    const fn layout<B: Bits>(self, n: usize) -> Layout {
        let tiles = self.tiles.count(n);
        let values = align(n * size_of::<B>());
        let firsts = values + align(n * self.value_bytes);
        let list = firsts + align((tiles + 1) * size_of::<usize>());
        let units = list + align(most_units(tiles) * UNIT_WORDS * size_of::<usize>());
        let unit_words = self.counters_before_longer::<B>(n);
        let longer = units + unit_words * size_of::<u32>();
        let longer_words = if has_short::<B>(self.value_bytes) { tiles + 1 } else { 0 };
        let middle = units + align((unit_words + longer_words) * size_of::<u32>());
        let division = middle + middle::list_bytes::<B>(n, self.value_bytes);
        let end = match self.division::<B>(n) {
            Some(plan) => division + align(plan.list_bytes()),
            None => division,
        };
        Layout { values, firsts, list, units, longer, middle, division, end }
    }

    /// The number of counters before the counter of tiles with longer segments.
    const fn counters_before_longer<B: Bits>(self, n: usize) -> usize {
        1 + middle::count_words::<B>(n, self.value_bytes)
    }

    /// The division of segments of more than [`MAX_MIDDLE`] keys, if there may be any among `n` keys that are not too
    /// many to be divided.
    const fn division<B: Bits>(self, n: usize) -> Option<DividePlan> {
        if n <= MAX_MIDDLE {
            return None;
        }
        DividePlan::of_segments::<B>(&Thresholds::DEFAULT, n, self.value_bytes)
    }

    /// Whether segments of up to `longest` keys may be long ones. A segment of a tile begins at the tile's last key at
    /// the latest.
    const fn may_be_long(self, longest: usize) -> bool {
        longest > self.tiles.overhang + 1
    }

    /// The first tile of `n` keys that may contain the beginning of a segment that is short for its tile. If all
    /// segments have one length that is not short, only the last one may be short.
    fn first_short(self, bounds: Bounds, n: usize) -> usize {
        let (slots, Segments { offsets, count, length }) = (self.block.keys(), bounds.segments);
        if !offsets.is_null() || bounds.longest <= slots {
            return 0;
        }
        let last = (count - 1) * length;
        if n - last > slots { self.tiles.count(n) } else { last / self.tiles.keys }
    }

    /// The launch of `blocks` blocks that sort tiles.
    fn sort_shape<B>(self, blocks: usize) -> Shape {
        let Tile { threads, .. } = self.block;
        let shared_bytes = segments::shared_bytes(size_of::<B>(), self.value_bytes, threads, self.block.keys());
        Shape { blocks, threads: threads as u32, shared_bytes }
    }

    /// The launch of a block for each of `tiles` tiles, which sorts the tile's segments of few keys.
    fn sort_short_shape<B>(self, tiles: usize) -> Shape {
        let shared_bytes = sort_short_segments::shared_bytes(size_of::<B>(), self.value_bytes, self.block.keys());
        Shape { blocks: tiles, threads: SHORT_THREADS as u32, shared_bytes }
    }

    /// The launch of `blocks` blocks that merge tiles.
    fn merge_shape<B>(self, blocks: usize) -> Shape {
        let shared_bytes = merge_segments::shared_bytes(size_of::<B>(), self.value_bytes, self.merge.keys());
        Shape { blocks, threads: self.merge.threads as u32, shared_bytes }
    }
}

/// Whether segments of few keys are sorted in registers: keys alone, or 4-byte keys with values.
const fn has_short<B: Bits>(value_bytes: usize) -> bool {
    value_bytes == 0 || size_of::<B>() == 4
}

/// Bytes of workspace for a sort of the segments of `n` keys with values of `value_bytes` bytes, or 0. `usize::MAX` for
/// more keys than any GPU has memory for.
pub(in crate::gpu) const fn workspace_bytes<B: Bits>(n: usize, value_bytes: usize) -> usize {
    match n {
        0 => 0,
        n if n > MAX_KEYS => usize::MAX,
        n => SegmentPlan::of::<B>(value_bytes).layout::<B>(n).end,
    }
}

/// The offset of the number of units in such a workspace. Behind it are the numbers of middle segments of each list, if
/// there are lists.
#[cfg(feature = "emulator")]
pub fn units_at<B: Bits>(n: usize, value_bytes: usize) -> usize {
    if n == 0 { 0 } else { SegmentPlan::of::<B>(value_bytes).layout::<B>(n).units }
}

/// The offset of the number of segments that are divided, if any may be.
#[cfg(feature = "emulator")]
pub fn divided_at<B: Bits>(n: usize, value_bytes: usize) -> usize {
    SegmentPlan::of::<B>(value_bytes).layout::<B>(n).division
}

/// Queues the stable sort of each segment of `at`. Values first become the indices of the keys in the array if it
/// `indexes`.
///
/// # Safety
/// The keys, the values, the offsets, and a workspace of [`workspace_bytes`] at a multiple of 16 are in the GPU's
/// memory and do not overlap. The offsets begin with 0, never decrease and end with the number of keys. Nothing else
/// uses the arrays until the sort has ended.
pub(in crate::gpu) unsafe fn sort_segments<B: Bits>(
    queue: &dyn Queue,
    coding: Coding<B>,
    at: Arrays,
    bounds: Bounds,
    indexes: bool,
    workspace: Address,
) -> Result<(), Error> {
    if at.len == 0 {
        return Ok(());
    }
    let sorting = Sorting::<B> { queue, coding, at, bounds, suffix: suffix::<B>(at.value_bytes) };
    let (has_one_length, has_short) = (bounds.segments.offsets.is_null(), has_short::<B>(at.value_bytes));
    // SAFETY: the arrays, the offsets and the workspace are as this function demands, which each step needs.
    unsafe {
        if indexes {
            sorting.set_indices()?;
        }
        if bounds.longest <= 1 {
            return Ok(());
        }
        if has_one_length && has_short && has_wide_rows(bounds.longest) {
            return sorting.sort_wide_rows();
        }
        if has_one_length && at.value_bytes == 0 && bounds.longest <= MAX_ROW {
            return sorting.sort_rows();
        }
        let places = Places::of::<B>(at, bounds.longest, workspace);
        if has_one_length && has_short && bounds.longest > MAX_SHORT && bounds.longest <= MAX_MIDDLE {
            return middle::sort_of_length::<B>(queue, coding, at, (bounds, places.middle));
        }
        sorting.find(&places)?;
        if has_short {
            sorting.sort_short(&places)?;
            if bounds.longest <= MAX_SHORT {
                return Ok(());
            }
        }
        sorting.divide(&places)?;
        if middle::has_lists::<B>(at.len, at.value_bytes) {
            if bounds.may_be_middle(at.len) {
                middle::sort_listed::<B>(queue, coding, at, places.middle, bounds.longest)?;
            }
            if places.division.is_some() || bounds.longest <= MAX_MIDDLE {
                return Ok(());
            }
        }
        sorting.sort_in_tiles(&places)
    }
}

/// Where the parts of a workspace are.
struct Places {
    plan: SegmentPlan,
    /// The number of tiles.
    tiles: usize,
    /// Keys and values once more.
    scratch: (Address, Address),
    lists: SegmentLists,
    middle: MiddleSegments,
    /// The division of long segments, and its job, if there may be any and they are divided.
    division: Option<(DividePlan, Job)>,
}

impl Places {
    fn of<B: Bits>(at: Arrays, longest: usize, workspace: Address) -> Self {
        let plan = SegmentPlan::of::<B>(at.value_bytes);
        let layout = plan.layout::<B>(at.len);
        let part = |begin: usize| workspace + begin as Address;
        let counts = part(layout.units) + size_of::<u32>() as Address;
        let has_short = has_short::<B>(at.value_bytes);
        Self {
            plan,
            tiles: plan.tiles.count(at.len),
            scratch: (workspace, part(layout.values)),
            lists: SegmentLists {
                firsts: part(layout.firsts) as *mut usize,
                longer: if has_short { part(layout.longer) as *mut u32 } else { ptr::null_mut() },
                units: part(layout.list) as *mut usize,
                unit_count: part(layout.units) as *mut u32,
            },
            middle: middle::lists::<B>(at.len, at.value_bytes, counts, part(layout.middle)),
            division: plan
                .division::<B>(at.len)
                .filter(|_| longest > MAX_MIDDLE)
                .map(|plan| (plan, plan.job(part(layout.division)))),
        }
    }
}

/// The steps of [`sort_segments`]. Its conditions are the conditions of each step, which follows the steps before it.
struct Sorting<'a, B: Bits> {
    queue: &'a dyn Queue,
    coding: Coding<B>,
    at: Arrays,
    bounds: Bounds,
    suffix: String,
}

impl<B: Bits> Sorting<'_, B> {
    /// Sets the values to the indices of the keys.
    unsafe fn set_indices(&self) -> Result<(), Error> {
        let Arrays { values, len: n, value_bytes, .. } = self.at;
        let shape = self.queue.persistent(PERSISTENT_BLOCKS, DETECTION_THREADS, 0);
        with_numbers!(value_bytes, I => {
            let set = SetIndices { to: values as *mut I, n, first: 0, order: ptr::null_mut(), merges: 1 };
            // SAFETY: there are `n` values of the width of `I`, and the kernel writes only values with an index below
            // `n`.
            unsafe { self.queue.launch(&bits(value_bytes), shape, &set) }
        })
    }

    /// Sorts rows of one length, for which [`has_wide_rows`] is true.
    unsafe fn sort_wide_rows(&self) -> Result<(), Error> {
        let (longest, value_bytes) = (self.bounds.longest, self.at.value_bytes);
        let shape = Shape {
            blocks: self.bounds.segments.count.div_ceil(sort_wide_rows::rows_per_block(longest)),
            threads: WIDE_ROW_THREADS as u32,
            shared_bytes: sort_wide_rows::shared_bytes(size_of::<B>(), value_bytes),
        };
        with_values!(value_bytes, V => {
            let at = elements::<B, V>((self.at.keys, self.at.values));
            let (n, length, coding) = (self.at.len, longest as u32, self.coding);
            let rows = SortWideRows { at, n, length, coding, minus_one: MINUS_ONE };
            // SAFETY: `at` has `n` elements with values of type `V`. `count` rows of `length` keys cover them, and the
            // blocks cover all rows, with the kernel's threads and shared bytes.
            unsafe { self.queue.launch(&self.suffix, shape, &rows) }
        })
    }

    /// Sorts rows of one length, at most [`MAX_ROW`] keys without values.
    unsafe fn sort_rows(&self) -> Result<(), Error> {
        let length = self.bounds.longest;
        let shape = Shape {
            blocks: self.bounds.segments.count.div_ceil(sort_rows::rows_per_block(length)),
            threads: ROW_THREADS as u32,
            shared_bytes: sort_rows::shared_bytes(size_of::<B>(), length),
        };
        let (keys, n) = (self.at.keys as *mut B, self.at.len);
        // SAFETY: there are `n` keys. `count` rows of `length` keys cover them, and the blocks cover all rows, with the
        // kernel's threads and shared bytes.
        unsafe {
            self.queue.launch(&self.suffix, shape, &SortRows { keys, n, length: length as u32, coding: self.coding })
        }
    }

    /// Finds the first segment of each tile, and lists long and middle segments. Segments are listed in the job of the
    /// division, if there is one.
    unsafe fn find(&self, places: &Places) -> Result<(), Error> {
        let &Places { plan, tiles, lists, middle, .. } = places;
        let (segments, n) = (self.bounds.segments, self.at.len);
        let density = segments.count as f32 / n as f32;
        let division = places.division.map_or(Job::NONE, |(_, job)| job);
        let find = FindSegments { segments, n, density, lists, middle, division };
        let shape = Shape { blocks: find_segments::blocks(tiles), threads: FIND_THREADS, shared_bytes: 0 };
        let counters = plan.counters_before_longer::<B>(n) + usize::from(!lists.longer.is_null());
        // SAFETY: the counters and the lists are in the workspace, with room for all tiles. The heads of the job
        // are cleared, and its buckets have fewer keys than `MAX_MIDDLE`. The blocks of `shape` cover all tiles.
        unsafe {
            self.queue.clear(lists.unit_count as Address, counters)?;
            if division.is_some() {
                self.queue.clear(division.words as Address, HEAD_WORDS)?;
            }
            self.queue.launch(&self.suffix, shape, &find)
        }
    }

    /// Sorts segments of few keys, and lists tiles that have longer segments.
    unsafe fn sort_short(&self, places: &Places) -> Result<(), Error> {
        let &Places { plan, tiles, lists, middle, .. } = places;
        with_values!(self.at.value_bytes, V => {
            let at = slice::<B, V>(self.at);
            let (segments, coding, minus_one) = (self.bounds.segments, self.coding, MINUS_ONE);
            let first_tile = plan.first_short(self.bounds, at.len);
            let short = SortShortSegments { segments, at, lists, middle, first_tile, coding, minus_one };
            // SAFETY: `FindSegments` has written `firsts`, and `longer` has room for all tiles. There is a block for
            // each tile from `first_tile` on, with the kernel's threads and shared bytes.
            unsafe { self.queue.launch(&self.suffix, plan.sort_short_shape::<B>(tiles - first_tile), &short) }
        })
    }

    /// Divides segments of more than [`MAX_MIDDLE`] keys, and sorts their buckets.
    unsafe fn divide(&self, places: &Places) -> Result<(), Error> {
        let Some((plan, job)) = places.division else {
            return Ok(());
        };
        let (n, longest) = (self.at.len, self.bounds.longest);
        let segments = self.bounds.segments.count.min(n / (MAX_MIDDLE + 1));
        let (scratch, random) = (places.scratch, self.queue.random());
        let division = plan.division_of_segments::<B>(self.coding, self.at, scratch, job, (segments, longest), random);
        // SAFETY: `FindSegments` has listed the segments in `job`. Both sides have `n` elements, and no other launch of
        // this sort uses the elements of these segments.
        unsafe { division.divide_segments(self.queue) }
    }

    /// Sorts what is left tile by tile, and merges the runs of long segments that have not been divided.
    unsafe fn sort_in_tiles(&self, places: &Places) -> Result<(), Error> {
        let &Places { plan, tiles, lists, division, .. } = places;
        let (queue, n) = (self.queue, self.at.len);
        let longest = if division.is_some() { MAX_MIDDLE } else { self.bounds.longest };
        with_values!(self.at.value_bytes, V => {
            let (keys, scratch) = (elements::<B, V>((self.at.keys, self.at.values)), elements::<B, V>(places.scratch));
            let (segments, coding) = (self.bounds.segments, self.coding);
            let sort_tiles = SortTiles { segments, keys, scratch, n, lists, coding };
            if !middle::has_lists::<B>(n, self.at.value_bytes) {
                let most = if lists.longer.is_null() { tiles } else { queue.blocks(RUN_BLOCKS) };
                let blocks = tiles.min(most);
                // SAFETY: both arrays have `n` elements with values of type `V`, and `FindSegments` has written
                // the lists. The shape has the kernel's threads and shared bytes.
                unsafe { queue.launch(&self.suffix, plan.sort_shape::<B>(blocks), &sort_tiles)? };
                if !plan.may_be_long(longest) {
                    return Ok(());
                }
            }
            let blocks = |each: usize| most_units(tiles).min(queue.blocks(each));
            let no_tiles = SegmentLists { firsts: ptr::null_mut(), longer: ptr::null_mut(), ..lists };
            let runs = SortTiles { lists: no_tiles, ..sort_tiles };
            // SAFETY: `FindSegments` has written the units, which are inside both arrays. The shape has the kernel's
            // threads and shared bytes.
            unsafe { queue.launch(&self.suffix, plan.sort_shape::<B>(blocks(RUN_BLOCKS)), &runs)? };
            let first_run = plan.block.keys();
            for pass in 0..passes(longest, first_run).left() {
                let merge = MergeSegments { keys, scratch, lists, pass, first_run, coding };
                // SAFETY: the launch before has sorted the runs of this pass, in units that are inside both arrays. The
                // shape has the kernel's threads and shared bytes.
                unsafe { queue.launch(&self.suffix, plan.merge_shape::<B>(blocks(MIN_BLOCKS_PER_SM)), &merge)? };
            }
        });
        Ok(())
    }
}

/// The sort of each segment of `at`. Values become the keys' indices first if it `indexes`.
#[derive(Clone, Copy)]
pub struct SortSegments {
    pub coding: KeyCoding,
    pub at: Arrays,
    pub bounds: Bounds,
    pub indexes: bool,
}

impl OnNumbers for SortSegments {
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        workspace_bytes::<B>(self.at.len, self.at.value_bytes)
    }

    unsafe fn queue<B: GpuBits>(&self, coding: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let Self { at, bounds, indexes, .. } = *self;
        // SAFETY: `Operation::launch` requires valid arrays, with written ones apart, and `workspace_bytes` of
        // workspace. The offsets are as `Bounds` documents.
        unsafe { sort_segments::<B>(queue, coding, at, bounds, indexes, workspace) }
    }
}
