//! The sort of the segments of an array.
//!
//! The launches depend on the numbers of keys and of segments, and on how long a segment may be, but not on the
//! offsets.

mod long;
mod middle;

use super::{Address, Arrays, PERSISTENT_BLOCKS, Queue, align, bits, elements, suffix, with_numbers, with_values};
use crate::Error;
use crate::gpu::kernels::Shape;
use crate::gpu::operation::Operation;
use crate::key_order::KeyOrder;
use kernels_gpu::kernels::sort::detect_runs::DETECTION_THREADS;
use kernels_gpu::kernels::sort::indices::SetIndices;
use kernels_gpu::kernels::sort::merge_pass::MIN_BLOCKS_PER_SM;
use kernels_gpu::kernels::sort::segments::find_segments::{self, FIND_THREADS, FindSegments};
use kernels_gpu::kernels::sort::segments::long::COUNTERS;
use kernels_gpu::kernels::sort::segments::merge_segments::{self, MergeSegments};
use kernels_gpu::kernels::sort::segments::middle::MiddleSegments;
use kernels_gpu::kernels::sort::segments::middle_runs::MAX_MIDDLE;
use kernels_gpu::kernels::sort::segments::sort_rows::{self, MAX_ROW, ROW_THREADS, SortRows};
use kernels_gpu::kernels::sort::segments::sort_segments::SortSegments as SortTiles;
use kernels_gpu::kernels::sort::segments::sort_short_segments::{self, MAX_SHORT, SHORT_THREADS, SortShortSegments};
use kernels_gpu::kernels::sort::segments::sort_wide_rows::{self, SortWideRows, WIDE_ROW_THREADS, has_wide_rows};
use kernels_gpu::kernels::sort::segments::{self, Segments, Tiles, UNIT_WORDS, most_units, passes};
use kernels_gpu::key::{Coding, Key};
use kernels_gpu::tuning::{ROW, Tile};
use kernels_gpu::warp::sort_lanes::MINUS_ONE;
use long::LongPlan;
use std::ptr;

/// The most keys. Runs of the last pass have fewer than 2^32 keys, and more keys and their copy exceed the memory of
/// any GPU.
const MAX_KEYS: usize = 1 << 35;

/// Blocks for each multiprocessor that sort runs of long segments. It holds two at once.
const RUN_BLOCKS: usize = 4;

/// Segments of an array that is in the GPU's memory.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct Bounds {
    segments: Segments,
    /// Most keys of a segment.
    longest: usize,
}

impl Bounds {
    /// The segments between `count + 1` offsets of 8 bytes, each of at most `longest` keys.
    pub(in crate::gpu) fn of_offsets(offsets: Address, count: usize, longest: usize) -> Self {
        Self { segments: Segments { offsets: offsets as *const usize, count, length: 0 }, longest }
    }

    /// The segments of `length` keys of an array of `n`. The last one may be shorter. `length` is not 0.
    pub(in crate::gpu) fn of_length(length: usize, n: usize) -> Self {
        Self { segments: Segments { offsets: ptr::null(), count: n.div_ceil(length), length }, longest: length.min(n) }
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
    /// The number of units. Behind it are the number of middle segments of each list, and the number of units of each
    /// level of the division of long segments.
    units: usize,
    /// The number of tiles with longer segments, right behind the other numbers, and the list of such tiles.
    longer: usize,
    /// The lists of middle segments.
    middle: usize,
    /// The workspace of the division of long segments, if there is one.
    long: usize,
    end: usize,
}

impl SegmentPlan {
    /// The plan for keys of type `K` with values of `value_bytes` bytes, or 0.
    const fn of<K: Key>(value_bytes: usize) -> Self {
        let block = ROW.sort_segments.of(size_of::<K>(), value_bytes);
        let merge = ROW.merge_runs.of(size_of::<K>(), value_bytes);
        Self { value_bytes, block, merge, tiles: Tiles::of(block.keys()) }
    }

    /// The workspace for `n` keys of type `K`, at most [`MAX_KEYS`].
    const fn layout<K: Key>(self, n: usize) -> Layout {
        let tiles = self.tiles.count(n);
        let values = align(n * size_of::<K>());
        let firsts = values + align(n * self.value_bytes);
        let list = firsts + align((tiles + 1) * size_of::<usize>());
        let units = list + align(most_units(tiles) * UNIT_WORDS * size_of::<usize>());
        let unit_words = self.counters_before_longer::<K>(n);
        let longer = units + unit_words * size_of::<u32>();
        let longer_words = if has_short::<K>(self.value_bytes) { tiles + 1 } else { 0 };
        let middle = units + align((unit_words + longer_words) * size_of::<u32>());
        let long = middle + middle::list_bytes::<K>(n, self.value_bytes);
        let end = match self.long::<K>(n) {
            Some(plan) => long + plan.bytes(),
            None => long,
        };
        Layout { values, firsts, list, units, longer, middle, long, end }
    }

    /// The number of counters before the counter of tiles with longer segments.
    const fn counters_before_longer<K: Key>(self, n: usize) -> usize {
        let of_levels = if self.long::<K>(n).is_some() { COUNTERS } else { 0 };
        1 + middle::count_words::<K>(n, self.value_bytes) + of_levels
    }

    /// The division of long segments, if there is one for this number of keys.
    const fn long<K: Key>(self, n: usize) -> Option<LongPlan> {
        LongPlan::of::<K>(n, self.value_bytes, self.tiles)
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
    fn sort_shape<K>(self, blocks: usize) -> Shape {
        let Tile { threads, .. } = self.block;
        let shared_bytes = segments::shared_bytes(size_of::<K>(), self.value_bytes, threads, self.block.keys());
        Shape { blocks, threads: threads as u32, shared_bytes }
    }

    /// The launch of a block for each of `tiles` tiles, which sorts the tile's segments of few keys.
    fn sort_short_shape<K>(self, tiles: usize) -> Shape {
        let shared_bytes = sort_short_segments::shared_bytes(size_of::<K>(), self.value_bytes, self.block.keys());
        Shape { blocks: tiles, threads: SHORT_THREADS as u32, shared_bytes }
    }

    /// The launch of `blocks` blocks that merge tiles.
    fn merge_shape<K>(self, blocks: usize) -> Shape {
        let shared_bytes = merge_segments::shared_bytes(size_of::<K>(), self.value_bytes, self.merge.keys());
        Shape { blocks, threads: self.merge.threads as u32, shared_bytes }
    }
}

/// Whether segments of few keys are sorted in registers: keys alone, or 4-byte keys with values.
const fn has_short<K: Key>(value_bytes: usize) -> bool {
    value_bytes == 0 || size_of::<K>() == 4
}

/// Bytes of workspace for a sort of the segments of `n` keys with values of `value_bytes` bytes, or 0. `usize::MAX` for
/// more keys than any GPU has memory for.
pub(in crate::gpu) const fn workspace_bytes<K: Key>(n: usize, value_bytes: usize) -> usize {
    match n {
        0 => 0,
        n if n > MAX_KEYS => usize::MAX,
        n => SegmentPlan::of::<K>(value_bytes).layout::<K>(n).end,
    }
}

/// The offset of the number of units in such a workspace. Behind it are the numbers of middle segments of each list, if
/// there are lists.
#[cfg(test)]
pub(in crate::gpu) fn units_at<K: Key>(n: usize, value_bytes: usize) -> usize {
    if n == 0 { 0 } else { SegmentPlan::of::<K>(value_bytes).layout::<K>(n).units }
}

/// Queues the stable sort of each segment of `at`. Values first become the indices of the keys in the array if it
/// `indexes`.
///
/// # Safety
/// The keys, the values, the offsets, and a workspace of [`workspace_bytes`] at a multiple of 16 are in the GPU's
/// memory and do not overlap. The offsets begin with 0, never decrease and end with the number of keys. Nothing else
/// uses the arrays until the sort has ended.
pub(in crate::gpu) unsafe fn sort_segments<K: Key>(
    queue: &impl Queue,
    order: KeyOrder,
    at: Arrays,
    bounds: Bounds,
    indexes: bool,
    workspace: Address,
) -> Result<(), Error> {
    if at.len == 0 {
        return Ok(());
    }
    let coding = order.coding::<K>();
    let sorting = Sorting::<_, K> { queue, coding, at, bounds, suffix: suffix::<K>(at.value_bytes) };
    let (has_one_length, has_short) = (bounds.segments.offsets.is_null(), has_short::<K>(at.value_bytes));
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
        let places = Places::of::<K>(at, workspace);
        if has_one_length && has_short && bounds.longest > MAX_SHORT && bounds.longest <= MAX_MIDDLE {
            return middle::sort_of_length::<K>(queue, coding, at, (bounds, places.middle));
        }
        sorting.find(&places)?;
        if has_short {
            sorting.sort_short(&places)?;
            if bounds.longest <= MAX_SHORT {
                return Ok(());
            }
        }
        if middle::has_lists::<K>(at.len, at.value_bytes) {
            sorting.sort_listed(&places)?;
            if places.plan.long::<K>(at.len).is_some() || bounds.longest <= MAX_MIDDLE {
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
    firsts: *mut usize,
    list: *mut usize,
    units: *mut u32,
    /// The counts of the lists of middle segments.
    counts: Address,
    /// Null if there are no segments that lanes sort in registers.
    longer: *mut u32,
    middle: MiddleSegments,
    /// The workspace of the division of long segments.
    long: Address,
}

impl Places {
    fn of<K: Key>(at: Arrays, workspace: Address) -> Self {
        let plan = SegmentPlan::of::<K>(at.value_bytes);
        let layout = plan.layout::<K>(at.len);
        let part = |begin: usize| workspace + begin as Address;
        let counts = part(layout.units) + size_of::<u32>() as Address;
        let has_short = has_short::<K>(at.value_bytes);
        Self {
            plan,
            tiles: plan.tiles.count(at.len),
            scratch: (workspace, part(layout.values)),
            firsts: part(layout.firsts) as *mut usize,
            list: part(layout.list) as *mut usize,
            units: part(layout.units) as *mut u32,
            counts,
            longer: if has_short { part(layout.longer) as *mut u32 } else { ptr::null_mut() },
            middle: middle::lists::<K>(at.len, at.value_bytes, counts, part(layout.middle)),
            long: part(layout.long),
        }
    }
}

/// The steps of [`sort_segments`]. Its conditions are the conditions of each step, which follows the steps before it.
struct Sorting<'a, Q, K: Key> {
    queue: &'a Q,
    coding: Coding<K::Bits>,
    at: Arrays,
    bounds: Bounds,
    suffix: String,
}

impl<Q: Queue, K: Key> Sorting<'_, Q, K> {
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
            shared_bytes: sort_wide_rows::shared_bytes(size_of::<K>(), value_bytes),
        };
        with_values!(value_bytes, V => {
            let at = elements::<K, V>((self.at.keys, self.at.values));
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
            shared_bytes: sort_rows::shared_bytes(size_of::<K>(), length),
        };
        let (keys, n) = (self.at.keys as *mut K::Bits, self.at.len);
        // SAFETY: there are `n` keys. `count` rows of `length` keys cover them, and the blocks cover all rows, with the
        // kernel's threads and shared bytes.
        unsafe {
            self.queue.launch(&self.suffix, shape, &SortRows { keys, n, length: length as u32, coding: self.coding })
        }
    }

    /// Finds the first segment of each tile, and lists long and middle segments.
    unsafe fn find(&self, places: &Places) -> Result<(), Error> {
        let &Places { plan, tiles, firsts, list, units, middle, .. } = places;
        let (segments, n) = (self.bounds.segments, self.at.len);
        let density = segments.count as f32 / n as f32;
        let find = FindSegments { segments, n, density, firsts, list, units, middle };
        let shape = Shape { blocks: find_segments::blocks(tiles), threads: FIND_THREADS, shared_bytes: 0 };
        let counters = plan.counters_before_longer::<K>(n) + usize::from(!places.longer.is_null());
        // SAFETY: the counters, `firsts` and `list` are in the workspace, with room for all tiles. The blocks of
        // `shape` cover all tiles.
        unsafe {
            self.queue.clear(units as Address, counters)?;
            self.queue.launch(&self.suffix, shape, &find)
        }
    }

    /// Sorts segments of few keys, and lists tiles that have longer segments.
    unsafe fn sort_short(&self, places: &Places) -> Result<(), Error> {
        let &Places { plan, tiles, firsts, longer, middle, .. } = places;
        with_values!(self.at.value_bytes, V => {
            let (at, n) = (elements::<K, V>((self.at.keys, self.at.values)), self.at.len);
            let (segments, coding, minus_one) = (self.bounds.segments, self.coding, MINUS_ONE);
            let first_tile = plan.first_short(self.bounds, n);
            let short = SortShortSegments { segments, at, n, firsts, longer, middle, first_tile, coding, minus_one };
            // SAFETY: `FindSegments` has written `firsts`, and `longer` has room for all tiles. There is a block for
            // each tile from `first_tile` on, with the kernel's threads and shared bytes.
            unsafe { self.queue.launch(&self.suffix, plan.sort_short_shape::<K>(tiles - first_tile), &short) }
        })
    }

    /// Divides long segments, and sorts all segments that one block sorts alone.
    unsafe fn sort_listed(&self, places: &Places) -> Result<(), Error> {
        let &Places { plan, scratch, firsts, counts, middle, .. } = places;
        let (queue, at, longest) = (self.queue, self.at, self.bounds.longest);
        // SAFETY: `FindSegments` has written `firsts` and the lists, the counters of the division were cleared with the
        // others, and its workspace is at `places.long`.
        unsafe {
            if let Some(plan) = plan.long::<K>(at.len)
                && longest > MAX_MIDDLE
            {
                let words = middle::count_words::<K>(at.len, at.value_bytes);
                let workspace = (counts + (words * size_of::<u32>()) as Address, places.long);
                let segments = (self.bounds.segments, firsts as *const usize);
                plan.divide::<K>(queue, self.coding, segments, (at, scratch), middle, workspace)?;
            }
            middle::sort_listed::<K>(queue, self.coding, (at, scratch), middle, longest)
        }
    }

    /// Sorts what is left tile by tile, and merges the runs of long segments.
    unsafe fn sort_in_tiles(&self, places: &Places) -> Result<(), Error> {
        let &Places { plan, tiles, firsts, list, units, longer, .. } = places;
        let (queue, longest, n) = (self.queue, self.bounds.longest, self.at.len);
        with_values!(self.at.value_bytes, V => {
            let (keys, scratch) = (elements::<K, V>((self.at.keys, self.at.values)), elements::<K, V>(places.scratch));
            let (segments, coding) = (self.bounds.segments, self.coding);
            let sort_tiles = SortTiles { segments, keys, scratch, n, firsts, longer, list, units, coding };
            if !middle::has_lists::<K>(n, self.at.value_bytes) {
                let blocks = if longer.is_null() { tiles } else { tiles.min(RUN_BLOCKS * queue.multiprocessors()) };
                // SAFETY: both arrays have `n` elements with values of type `V`, and `FindSegments` has written
                // `firsts`, `list` and `units`. The shape has the kernel's threads and shared bytes.
                unsafe { queue.launch(&self.suffix, plan.sort_shape::<K>(blocks), &sort_tiles)? };
                if !plan.may_be_long(longest) {
                    return Ok(());
                }
            }
            let blocks = |each: usize| most_units(tiles).min(each * queue.multiprocessors());
            let runs = SortTiles { firsts: ptr::null(), longer: ptr::null(), ..sort_tiles };
            // SAFETY: `FindSegments` has written `list` and `units`, and the units are inside both arrays. The shape
            // has the kernel's threads and shared bytes.
            unsafe { queue.launch(&self.suffix, plan.sort_shape::<K>(blocks(RUN_BLOCKS)), &runs)? };
            let first_run = plan.block.keys();
            for pass in 0..passes(longest, first_run).left() {
                let merge = MergeSegments { keys, scratch, list, units, pass, first_run, coding };
                // SAFETY: the launch before has sorted the runs of this pass, in units that are inside both arrays. The
                // shape has the kernel's threads and shared bytes.
                unsafe { queue.launch(&self.suffix, plan.merge_shape::<K>(blocks(MIN_BLOCKS_PER_SM)), &merge)? };
            }
        });
        Ok(())
    }
}

/// The sort of each segment of `at`. Values become the keys' indices first if it `indexes`.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct SortSegments {
    pub(in crate::gpu) order: KeyOrder,
    pub(in crate::gpu) at: Arrays,
    pub(in crate::gpu) bounds: Bounds,
    pub(in crate::gpu) indexes: bool,
}

impl<K: Key> Operation<K> for SortSegments {
    fn workspace_bytes(&self) -> usize {
        workspace_bytes::<K>(self.at.len, self.at.value_bytes)
    }

    unsafe fn launch(&self, queue: &impl Queue, workspace: Address) -> Result<(), Error> {
        let Self { order, at, bounds, indexes } = *self;
        // SAFETY: `Operation::launch` requires valid arrays, with written ones apart, and `workspace_bytes` of
        // workspace. The offsets are as `Bounds` documents.
        unsafe { sort_segments::<K>(queue, order, at, bounds, indexes, workspace) }
    }
}
