//! The merge of the runs of an array in the GPU's memory into another one.
//!
//! ```text
//!   runs   │   │      │ │    │     │   │ │    up to 32: one pass, from `keys` to `out`
//!   keys → out → scratch → out                more: the fewest passes, the last one to `out`; `keys` stays unchanged
//! ```
//!
//! Two runs are merged like two arrays.
//!
//! The launches depend on the numbers of keys and of runs, but not on the offsets.

use super::merge::{Runs, split_bytes, two_phase};
use super::{Address, Arrays, Queue, align, bits, slice, suffix, with_values};
use crate::Error;
use crate::gpu::kernels::Shape;
use crate::gpu::operation::{KeyCoding, OnNumbers};
use crate::key::sealed::GpuBits;
use kernels_gpu::kernels::sort::merge_pass::many_runs::{
    self, MergeManyRuns, SplitManyRuns, keys_of_tile, tile_shape, words_of_tile,
};
use kernels_gpu::kernels::sort::merge_pass::{MIN_BLOCKS_PER_SM, split_runs, takes_several};
use kernels_gpu::kernels::sort::runs::{OffsetRuns, Passes};
use kernels_gpu::key::{Bits, Coding};
use kernels_gpu::tuning;
use std::ptr;

/// Most keys, and most runs: a run of a pass has an index and a length of 32 bits.
pub(in crate::gpu) const MOST: usize = u32::MAX as usize;

/// The passes over `n` keys with bits `B` in `count` runs, with values of `value_bytes` bytes, or 0.
fn passes<B: Bits>(n: usize, offsets: *const usize, count: usize, value_bytes: usize) -> Vec<OffsetRuns> {
    let mut merged = 1;
    let pass = |k| {
        let runs = runs_of_pass::<B>(n, value_bytes, (offsets, count), merged, k);
        merged = runs.merged[1];
        runs
    };
    Passes::of(count).map(pass).collect()
}

/// The runs of a pass that merges `k` runs into one. Each run of the pass is `merged` of the `count` runs between the
/// offsets.
pub(super) fn runs_of_pass<B: Bits>(
    n: usize,
    value_bytes: usize,
    (offsets, count): (*const usize, usize),
    merged: usize,
    k: u32,
) -> OffsetRuns {
    let merged = [merged, merged * k as usize];
    OffsetRuns {
        offsets,
        count,
        merged,
        n,
        groups: count.div_ceil(merged[1]),
        k,
        tile_keys: keys_of_tile(size_of::<B>(), value_bytes, k),
        rank_tolerance: many_runs::rank_tolerance(value_bytes),
    }
}

/// Offsets of the parts of a workspace, in bytes, and its end, a multiple of 16. The keys' scratch array is at its
/// start.
pub(super) struct Layout {
    values: usize,
    splits: usize,
    pub(super) end: usize,
}

impl Layout {
    /// The layout for these passes over `n` keys with bits `B`.
    pub(super) fn of<B: Bits>(n: usize, value_bytes: usize, passes: &[OffsetRuns]) -> Self {
        // A single pass needs no scratch.
        let scratch = if passes.len() > 1 { n } else { 0 };
        let values = align(scratch * size_of::<B>());
        let splits = values + align(scratch * value_bytes);
        let words = passes.iter().map(|runs| runs.tile_count() * words_of_tile(runs.k)).max();
        Self { values, splits, end: splits + align(words.unwrap_or(0) * size_of::<u32>()) }
    }
}

/// Bytes of workspace for the merge of `n` keys with bits `B` in `count` runs, with values of `value_bytes` bytes, or
/// 0. `usize::MAX` if there are more than [`MOST`] of either.
pub(in crate::gpu) fn workspace_bytes<B: Bits>(n: usize, count: usize, value_bytes: usize) -> usize {
    match n.max(count) {
        _ if n == 0 => 0,
        most if most > MOST => usize::MAX,
        _ if count <= 2 => split_bytes(n, tuning::merge(size_of::<B>(), value_bytes).keys()),
        _ => Layout::of::<B>(n, value_bytes, &passes::<B>(n, ptr::null(), count, value_bytes)).end,
    }
}

/// Queues the stable merge of the runs of `from` to `out`: of equal keys, keys of an earlier run go first.
///
/// # Safety
/// The arrays are in the GPU's memory and have the same number of elements. `workspace` begins at a multiple of 16 and
/// has [`workspace_bytes`]. There are `count + 1` offsets of 8 bytes, which begin with 0, never decrease and end with
/// at most the number of keys. `out` and the workspace overlap nothing, except that `out` may be `from` where it [can
/// be](MergeMany::can_be_in_place). Until the merge has ended, nothing else uses these two, and nothing writes the
/// other arrays.
pub(in crate::gpu) unsafe fn merge_many_runs<B: Bits>(
    queue: &dyn Queue,
    coding: Coding<B>,
    from: Arrays,
    (offsets, count): (Address, usize),
    out: Arrays,
    workspace: Address,
) -> Result<(), Error> {
    let Arrays { len: n, value_bytes, .. } = from;
    if n == 0 {
        return Ok(());
    }
    if count == 1 {
        // SAFETY: `from` and `out` have one length, and are apart: a single run is not merged in place.
        return unsafe { copy::<B>(queue, from, out) };
    }
    if count == 2 {
        let runs = Runs::Divided { all: from, offsets };
        // SAFETY: there are three offsets. The workspace has a split for each tile.
        return unsafe { two_phase::<B>(queue, coding, runs, out, workspace) };
    }
    let passes = passes::<B>(n, offsets as *const usize, count, value_bytes);
    // SAFETY: the passes are made for these `n` keys and offsets, and `workspace_bytes` is `Layout::end` for the same
    // passes. Nothing writes the offsets between passes.
    unsafe { merge_passes::<B>(queue, coding, from, &passes, out, workspace, |_| Ok(())) }
}

/// Queues the copy of keys and values, unless `out` is `from`.
///
/// # Safety
/// Both have the same number of elements, in the GPU's memory, and are apart or the same. Until the copy has ended,
/// nothing else uses `out`, and nothing writes `from`.
pub(super) unsafe fn copy<B: Bits>(queue: &dyn Queue, from: Arrays, out: Arrays) -> Result<(), Error> {
    if from.keys == out.keys {
        return Ok(());
    }
    // SAFETY: both have `len` keys and values of `value_bytes` bytes. Their keys have different addresses, so they do
    // not overlap.
    unsafe {
        queue.copy(from.keys, out.keys, from.len * size_of::<B>())?;
        queue.copy(from.values, out.values, from.len * from.value_bytes)
    }
}

/// Queues passes over the runs of `from`. They write to the scratch arrays and to `out` in turn, and the last one
/// writes to `out`. `before(i)` queues work that goes before pass `i`.
///
/// # Safety
/// The arrays meet the conditions of [`merge_many_runs`], with a workspace of [`Layout::end`] bytes. When a pass
/// begins, its offsets are as [`OffsetRuns`] requires.
pub(super) unsafe fn merge_passes<B: Bits>(
    queue: &dyn Queue,
    coding: Coding<B>,
    from: Arrays,
    passes: &[OffsetRuns],
    out: Arrays,
    workspace: Address,
    before: impl Fn(usize) -> Result<(), Error>,
) -> Result<(), Error> {
    let Arrays { len: n, value_bytes, .. } = from;
    let layout = Layout::of::<B>(n, value_bytes, passes);
    let part = |begin: usize| workspace + begin as Address;
    let scratch = Arrays { keys: workspace, values: part(layout.values), ..from };
    let (mut from, mut encode) = (from, coding);
    for (i, &runs) in passes.iter().enumerate() {
        let after = passes.len() - 1 - i;
        let to = if after.is_multiple_of(2) { out } else { scratch };
        let decode = if after == 0 { coding } else { Coding::NONE };
        let pass = Pass { runs, from, to, encode, decode, splits: part(layout.splits), found: 0 };
        before(i)?;
        // SAFETY: `splits` has `words_of_tile` words for each tile of any pass (`Layout::of`). The offsets are as
        // `OffsetRuns` requires. Outputs alternate between `out` and the scratch, so no pass writes the array that it
        // reads.
        unsafe { pass.queue(queue)? };
        (from, encode) = (to, Coding::NONE);
    }
    Ok(())
}

/// A pass over runs of any lengths, from one array to another one.
pub(super) struct Pass<B> {
    pub(super) runs: OffsetRuns,
    pub(super) from: Arrays,
    pub(super) to: Arrays,
    /// The order of the keys of `from`.
    pub(super) encode: Coding<B>,
    /// How the keys of `to` are decoded.
    pub(super) decode: Coding<B>,
    /// Words for the splits: [`words_of_tile`] for each tile.
    pub(super) splits: Address,
    /// The words of the detection that has found the runs, if one has, or 0. The pass does nothing if there are none.
    pub(super) found: Address,
}

impl<B: Bits> Pass<B> {
    /// Queues the search of the splits, and the merges.
    ///
    /// # Safety
    /// The arrays have the keys and the values of `runs`, and do not overlap. The splits have room for all tiles. When
    /// the pass begins, the offsets are as [`OffsetRuns`] requires. Until it has ended, nothing else uses `to` and the
    /// splits, and nothing writes the other arrays.
    pub(super) unsafe fn queue(self, queue: &dyn Queue) -> Result<(), Error> {
        let Self { runs, from: Arrays { value_bytes, .. }, encode, decode, .. } = self;
        let (splits, found) = (self.splits as *mut u32, self.found as *mut u32);
        let (tiles, tile) = (runs.tile_count(), tile_shape(size_of::<B>(), value_bytes));
        let shared_bytes = many_runs::shared_bytes(size_of::<B>(), value_bytes, tile.keys());
        let (splits_shape, per_warp) = splits_shape(queue, tiles);
        let split = SplitManyRuns { from: self.from.keys as *const B, runs, encode, splits, per_warp, found };
        // SAFETY: this function requires the arrays, the offsets and room for the splits. `splits_shape` covers all
        // tiles.
        unsafe { queue.launch(&bits(size_of::<B>()), splits_shape, &split)? };
        // Where a block takes several tiles, few blocks start if there may be nothing to do.
        let is_persistent = !found.is_null() && takes_several(size_of::<B>(), value_bytes);
        let blocks = if is_persistent { queue.blocks(MIN_BLOCKS_PER_SM) } else { tiles };
        let shape = Shape { blocks, threads: tile.threads as u32, shared_bytes };
        with_values!(value_bytes, V => {
            let (from, to) = (slice::<B, V>(self.from).at, slice::<B, V>(self.to).at);
            let merge = MergeManyRuns { from, to, runs, splits, encode, decode, found };
            // SAFETY: this function requires the arrays. The launch before has written the splits, and the shape has
            // the kernel's threads and shared bytes.
            unsafe { queue.launch(&suffix::<B>(value_bytes), shape, &merge) }
        })
    }
}

/// The launch that finds the splits of `tiles` tiles, and the number of splits for each of its warps.
pub(super) fn splits_shape(queue: &dyn Queue, tiles: usize) -> (Shape, u32) {
    let per_warp = split_runs::boundaries_per_warp(tiles, queue.multiprocessors());
    let blocks = split_runs::split_blocks(tiles, per_warp);
    (Shape { blocks, threads: split_runs::SPLIT_THREADS, shared_bytes: 0 }, per_warp)
}

/// The merge of the runs of `from` to `out`. `offsets` is the address of numbers of 8 bytes, and the number of runs.
#[derive(Clone, Copy)]
pub struct MergeMany {
    pub coding: KeyCoding,
    pub from: Arrays,
    pub offsets: (Address, usize),
    pub out: Arrays,
}

impl MergeMany {
    /// Whether `out` may be the arrays of `from` for this number of runs: the first of an even number of passes writes
    /// to the scratch arrays.
    pub(in crate::gpu) fn can_be_in_place(runs: usize) -> bool {
        runs > 2 && Passes::of(runs).count().is_multiple_of(2)
    }
}

impl OnNumbers for MergeMany {
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        workspace_bytes::<B>(self.from.len, self.offsets.1, self.from.value_bytes)
    }

    unsafe fn queue<B: GpuBits>(&self, coding: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let Self { from, offsets, out, .. } = *self;
        // SAFETY: `Operation::launch` requires valid arrays, with written ones apart, and `workspace_bytes` of
        // workspace.
        unsafe { merge_many_runs::<B>(queue, coding, from, offsets, out, workspace) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_32_runs_take_one_pass_and_more_take_passes_that_are_alike() {
        let of = |count| passes::<u32>(1, ptr::null(), count, 0).iter().map(|runs| runs.k).collect::<Vec<_>>();
        assert_eq!(of(3), [4]);
        assert_eq!(of(16), [16]);
        assert_eq!(of(32), [32]);
        assert_eq!(of(33), [8, 8]);
        assert_eq!(of(1024), [32, 32]);
        assert_eq!(of(1025), [16, 16, 8]);
    }

    #[test]
    fn only_several_passes_need_the_keys_once_more() {
        let n = 1 << 28;
        let bytes = |count| workspace_bytes::<u32>(n, count, 4);
        assert!(bytes(32) < n / 50, "{}", bytes(32));
        assert!(bytes(33) >= 8 * n && bytes(33) < 8 * n + n / 50, "{}", bytes(33));
        assert_eq!(workspace_bytes::<u32>(0, 100, 0), 0);
        assert_eq!(workspace_bytes::<u32>(MOST + 1, 2, 0), usize::MAX);
        assert_eq!(workspace_bytes::<u32>(1, MOST + 1, 0), usize::MAX);
    }
}
