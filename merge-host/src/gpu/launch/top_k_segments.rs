//! The first k elements of each segment of an array.
//!
//! ```text
//!   k ≤ MAX_K   many segments   select                     a block for each segment
//!               few segments    select, select             from parts of segments, then from the results of parts
//!   k > MAX_K                   copy, sort, copy_firsts    a sort of all segments
//! ```
//!
//! The launches depend on the numbers of elements and of segments, and on how long a segment may be, but not on the
//! offsets.

use super::segments::{self, Bounds, sort_segments};
use super::{Address, Arrays, PERSISTENT_BLOCKS, Queue, align, elements, slice, suffix, with_values};
use crate::Error;
use crate::gpu::kernels::Shape;
use crate::gpu::operation::{KeyCoding, OnNumbers};
use crate::key::sealed::GpuBits;
use kernels_gpu::kernels::top_k::segments::copy_firsts::{self, CopyFirsts};
use kernels_gpu::kernels::top_k::segments::select_segments::SelectSegments;
use kernels_gpu::kernels::top_k::segments::{
    MAX_K, MAX_SEGMENT, MAX_THREADS, MIN_THREADS, Parts, SLOTS, items_per_thread, resident_threads, shared_bytes,
};
use kernels_gpu::key::{Bits, Coding};

/// Most blocks that a multiprocessor holds at once, however small they are.
const MOST_RESIDENT: usize = 32;

/// Launched blocks for each block that a multiprocessor holds at once. Several are balanced where segments differ in
/// length. A block for each of many short segments would take longer to launch than to run.
const BLOCKS_IN_TURN: usize = 4;

/// Fewest keys of a part of a segment, and fewest keys of a part for each of its k results.
const PART_KEYS: usize = 4096;
const PART_KEYS_PER_RESULT: usize = 8;

/// Segments of up to this many keys are not divided into parts: a second launch would take longer.
const UNDIVIDED: usize = 1 << 14;

/// Most parts of all segments together, which bounds the workspace.
const MOST_PARTS: usize = 1024;

/// Whether blocks select the first `k` elements of segments of up to `longest` elements. Otherwise segments are sorted.
const fn is_selected(k: usize, longest: usize) -> bool {
    k <= MAX_K && longest <= MAX_SEGMENT
}

/// Fewest keys of a part, for segments with several parts.
fn least_part(k: usize) -> usize {
    PART_KEYS.max(PART_KEYS_PER_RESULT * k)
}

/// Most parts of each of `segments` segments of up to `longest` keys.
fn most_parts(segments: usize, longest: usize, k: usize) -> usize {
    let has_parts = longest > UNDIVIDED && is_selected(k, longest);
    if has_parts { (MOST_PARTS / segments.max(1)).min(longest / least_part(k)).max(1) } else { 1 }
}

/// Offsets of the parts of a workspace for `len` elements and a sort of their segments, in bytes, and its end.
struct Layout {
    values: usize,
    sort: usize,
    end: usize,
}

impl Layout {
    /// The workspace for `len` elements, without a sort.
    fn of<B: Bits>(len: usize, value_bytes: usize) -> Self {
        let values = align(len.saturating_mul(size_of::<B>()));
        let sort = values.saturating_add(align(len.saturating_mul(value_bytes)));
        Self { values, sort, end: sort }
    }

    /// The workspace for a copy of `n` elements, and for the sort of the copy's segments.
    fn of_sort<B: Bits>(n: usize, value_bytes: usize) -> Self {
        let layout = Self::of::<B>(n, value_bytes);
        let end = layout.sort.saturating_add(segments::workspace_bytes::<B>(n, value_bytes));
        Self { end, ..layout }
    }
}

/// Bytes of workspace for the first `k` of up to `longest` elements of each of `count` segments, of `n` elements in
/// all, with values of `value_bytes` bytes, or 0.
pub(in crate::gpu) fn workspace_bytes<B: Bits>(
    n: usize,
    (count, longest): (usize, usize),
    k: usize,
    value_bytes: usize,
) -> usize {
    if k == 0 || n == 0 {
        return 0;
    }
    if !is_selected(k, longest) {
        return Layout::of_sort::<B>(n, value_bytes).end;
    }
    let parts = most_parts(count, longest, k);
    if parts == 1 { 0 } else { Layout::of::<B>(count * parts * k, value_bytes).end }
}

/// The first `k` elements of each segment of `from`, sorted, at every `k`th element of `out`. If `from.values` is 0 and
/// `out` has values, they become the indices of the keys in their segments.
#[derive(Clone, Copy)]
pub struct TopKSegments {
    pub coding: KeyCoding,
    pub from: Arrays,
    pub bounds: Bounds,
    pub k: usize,
    pub out: Arrays,
}

impl OnNumbers for TopKSegments {
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        let segments = (self.bounds.count(), self.bounds.longest());
        workspace_bytes::<B>(self.from.len, segments, self.k, self.out.value_bytes)
    }

    unsafe fn queue<B: GpuBits>(&self, coding: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        if self.k == 0 || self.from.len == 0 {
            return Ok(());
        }
        let selecting = Selecting::<B> { queue, coding, of: *self, workspace };
        // SAFETY: `Operation::launch` requires valid arrays, with written ones apart, and `workspace_bytes` of
        // workspace. The offsets are as `Bounds` documents.
        unsafe { if is_selected(self.k, self.bounds.longest()) { selecting.select() } else { selecting.sort() } }
    }
}

/// The steps of [`TopKSegments`], whose arrays and workspace are as [`Operation`](crate::gpu::operation::Operation)
/// demands.
struct Selecting<'a, B: Bits> {
    queue: &'a dyn Queue,
    coding: Coding<B>,
    of: TopKSegments,
    workspace: Address,
}

impl<B: Bits> Selecting<'_, B> {
    /// Selects from each segment, or from parts of segments and then from their results.
    unsafe fn select(&self) -> Result<(), Error> {
        let TopKSegments { from, bounds, k, out, .. } = self.of;
        let count = bounds.count();
        let blocks = self.queue.blocks(resident_threads(size_of::<B>()) / MAX_THREADS);
        let most = most_parts(count, bounds.longest(), k).min(blocks / count).max(1);
        let (segments, n, least) = (bounds.segments(), from.len, least_part(k));
        let parts = Parts { segments, n, k: k as u32, most: most as u32, least: least as u32, of_results: false };
        // The usual number of keys of a job.
        let length = n.div_ceil(count * most);
        if most == 1 {
            // SAFETY: `from` has the `n` elements of the segments, and `out` has `k` elements for each.
            return unsafe { self.launch(from, out, parts, length) };
        }
        let layout = Layout::of::<B>(count * most * k, out.value_bytes);
        let results = Arrays {
            keys: self.workspace,
            values: self.workspace + layout.values as Address,
            len: count * most * k,
            value_bytes: out.value_bytes,
            count: 0,
        };
        // SAFETY: the workspace has `k` elements for each part, since `most` is at most `most_parts`. The second launch
        // reads the results of the first one.
        unsafe {
            self.launch(from, results, parts, length)?;
            self.launch(results, out, Parts { of_results: true, ..parts }, most * k)
        }
    }

    /// Launches a selection from segments or parts that have about `length` keys.
    unsafe fn launch(&self, from: Arrays, out: Arrays, parts: Parts, length: usize) -> Result<(), Error> {
        let tile_threads = length.div_ceil(items_per_thread(size_of::<B>())).next_power_of_two();
        // Twice as many slots as are needed, so that a bound is found in few steps.
        let least_threads = (2 * self.of.k).div_ceil(SLOTS).next_power_of_two();
        let threads = tile_threads.max(least_threads).clamp(MIN_THREADS, MAX_THREADS);
        let resident = (resident_threads(size_of::<B>()) / threads).min(MOST_RESIDENT);
        let blocks = self.queue.blocks(BLOCKS_IN_TURN * resident).min(parts.jobs());
        let shape = Shape { blocks, threads: threads as u32, shared_bytes: shared_bytes(size_of::<B>(), threads) };
        let value_bytes = self.of.out.value_bytes;
        with_values!(value_bytes, V => {
            let (from, out) = (slice::<B, V>(from), elements::<B, V>((out.keys, out.values)));
            let select = SelectSegments { from, out, parts, coding: self.coding };
            // SAFETY: the caller passes elements and parts that belong together, and `k` elements of `out` for each
            // job. A block has `SLOTS * threads >= k` slots, with the kernel's shared bytes.
            unsafe { self.queue.launch(&suffix::<B>(value_bytes), shape, &select) }
        })
    }

    /// Sorts a copy of the segments, and copies the first elements of each.
    unsafe fn sort(&self) -> Result<(), Error> {
        let TopKSegments { from, bounds, k, out, .. } = self.of;
        let (n, value_bytes, has_indices) = (from.len, out.value_bytes, from.values == 0);
        let layout = Layout::of_sort::<B>(n, value_bytes);
        let values = self.workspace + layout.values as Address;
        let sorted = Arrays { keys: self.workspace, values, len: n, value_bytes, count: 0 };
        let sort_workspace = self.workspace + layout.sort as Address;
        let segments = bounds.segments();
        let blocks = self.queue.blocks(PERSISTENT_BLOCKS).min(segments.count);
        let shape = Shape { blocks, threads: copy_firsts::THREADS as u32, shared_bytes: 0 };
        // SAFETY: the workspace has `n` elements for the copy, and behind them the workspace of the sort. The copy is
        // complete before it is sorted. `out` has `k` elements for each segment.
        unsafe {
            self.queue.copy(from.keys, sorted.keys, n * size_of::<B>())?;
            if value_bytes > 0 && !has_indices {
                self.queue.copy(from.values, sorted.values, n * value_bytes)?;
            }
            let indexes = value_bytes > 0 && has_indices;
            sort_segments::<B>(self.queue, self.coding, sorted, bounds, indexes, sort_workspace)?;
            with_values!(value_bytes, V => {
                let (from, out) = (slice::<B, V>(sorted), elements::<B, V>((out.keys, out.values)));
                let copy = CopyFirsts { from, out, segments, k, has_indices };
                self.queue.launch(&suffix::<B>(value_bytes), shape, &copy)
            })
        }
    }
}
