//! The sort of tiles, and the passes of merges that make one run of all tiles.

use super::super::divide::Words;
use super::super::{Arrays, Queue, bits, elements, with_values};
use super::SortPlan;
use super::layout::Workspace;
use super::order::use_order;
use super::plan::splits_shape;
use crate::Error;
use crate::gpu::kernels::Shape;
use kernels_gpu::kernels::sort::block_sort::BlockSort;
use kernels_gpu::kernels::sort::merge_pass::merge_runs::MergeRuns;
use kernels_gpu::kernels::sort::merge_pass::split_runs::SplitRuns;
use kernels_gpu::kernels::sort::runs::{Passes, Shuffle};
use kernels_gpu::key::{Coding, Key};

/// Blocks for each multiprocessor in passes of merges, if keys may have been divided. They are many more than it holds
/// at once, which is faster, but fewer than there are tiles.
const FALLBACK_BLOCKS: usize = 24;

/// Queues the work on detected runs, the sort of tiles, and the passes of merges. If keys are divided, these launches
/// do nothing. A single division that is enough by itself is queued here as well.
///
/// # Safety
/// The conditions of [`sort`](super::sort()) hold.
pub(super) unsafe fn merge_sort<K: Key>(
    queue: &impl Queue,
    plan: SortPlan,
    coding: Coding<K::Bits>,
    at: Arrays,
    workspace: Workspace,
    random: u64,
) -> Result<(), Error> {
    let Arrays { keys, values, len: n, value_bytes } = at;
    let Workspace { scratch, detected, lists, splits, .. } = workspace;
    let (suffix, order, splits) = (plan.suffix::<K>(), detected as *mut u32, splits as *mut u32);
    let mut passes = plan.passes(n);
    // The last kernel decodes.
    let decode = |passes: Passes| if passes.left() == 0 { coding } else { Coding::NONE };
    // SAFETY: `use_order` requires the conditions of this function, for the same plan, arrays and workspace.
    unsafe { use_order::<K>(queue, plan, coding, at, workspace)? };
    // Blocks of most passes take one tile after the other. Fewer blocks then start if there is nothing to do.
    let few_blocks = |shape: Shape| match plan.divide {
        Some(_) if plan.takes_several::<K>() => {
            Shape { blocks: shape.blocks.min(FALLBACK_BLOCKS * queue.multiprocessors()), ..shape }
        }
        _ => shape,
    };
    // Passes alternate between the arrays and the scratch, and have to end in the arrays.
    let (mut from, mut to) = ((keys, values), scratch);
    if !passes.left().is_multiple_of(2) {
        (from, to) = (to, from);
    }
    if let Some(divide) = plan.once() {
        let (sides, tiles) = ([keys, scratch.0], (from.0, decode(passes)));
        let words = Words { lists, order: detected };
        // SAFETY: `once()` is a plan that `is_once`. Both sides have `n` keys, and the words and the lists are in the
        // workspace.
        unsafe {
            divide.divide_once::<K>(queue, coding, sides, words, random)?;
            divide.sort_once::<K>(queue, coding, sides, Some(tiles), words, random)?;
        }
    } else {
        let (input, output, encode, decode) = ((keys, values), from, coding, decode(passes));
        with_values!(value_bytes, V => {
            let (from, to) = (elements::<K, V>(input), elements::<K, V>(output));
            let sort = BlockSort { from, to, n, encode, decode, order, random };
            // SAFETY: both arrays have `n` elements with values of type `V`. The shape has a block for each tile, with
            // the kernel's threads and shared bytes.
            unsafe { queue.launch(&plan.block_suffix::<K>(), plan.block_shape::<K>(n), &sort)? }
        });
    }
    let mut run = plan.first_run();
    // The number of runs that the first pass merges in an unpredictable order. The order of the merged runs is then
    // unpredictable as well.
    let mut shuffled = if value_bytes == 0 { (n / run) as u32 } else { 0 };
    while let Some(k) = passes.next() {
        let runs = plan.runs_of_pass(n, run, k).shuffled(Shuffle { runs: shuffled, random });
        let tiles = runs.tile_count();
        let (splits_shape, per_warp) = splits_shape(queue, tiles);
        if !splits.is_null() {
            let split = SplitRuns { from: from.0 as *const K::Bits, runs, splits, per_warp, order };
            // SAFETY: `splits` has `k` words for each tile of any pass (`split_bytes`), and `splits_shape` covers all
            // tiles.
            unsafe { queue.launch(&bits(size_of::<K>()), splits_shape, &split)? };
        }
        let (input, output, decode) = (from, to, decode(passes));
        with_values!(value_bytes, V => {
            let (from, to) = (elements::<K, V>(input), elements::<K, V>(output));
            let merge = MergeRuns { from, to, runs, splits, decode, order };
            // SAFETY: `from` and `to` are the array and its scratch, with `n` elements each. The splits of this pass
            // are written, or null if the kernel finds them by itself. The shape has the kernel's threads and shared
            // bytes.
            unsafe { queue.launch(&suffix, few_blocks(plan.runs_shape::<K>(tiles)), &merge)? }
        });
        (from, to) = (to, from);
        run *= k as usize;
        shuffled = 0;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::sort;
    use super::*;
    use crate::gpu::Address;
    use crate::{SortKernel, SortOrder};
    use cuda_std::launch::Arguments;
    use kernels_gpu::kernels::sort::merge_pass::merge_runs::MERGE_RUNS;
    use std::cell::Cell;

    /// A GPU of few multiprocessors, which notes how many blocks merge runs.
    struct SmallGpu {
        merging: Cell<usize>,
    }

    impl Queue for SmallGpu {
        fn multiprocessors(&self) -> usize {
            4
        }

        unsafe fn launch<A: Arguments>(&self, _: &str, shape: Shape, _: &A) -> Result<(), Error> {
            if A::KERNEL.name == MERGE_RUNS.name {
                self.merging.set(shape.blocks);
            }
            Ok(())
        }

        unsafe fn clear(&self, _: Address, _: usize) -> Result<(), Error> {
            Ok(())
        }

        unsafe fn copy(&self, _: Address, _: Address, _: usize) -> Result<(), Error> {
            Ok(())
        }

        fn join(&self, work: impl FnOnce(&Self, &Self) -> Result<(), Error>) -> Result<(), Error> {
            work(self, self)
        }
    }

    #[test]
    fn blocks_that_take_one_tile_are_as_many_as_tiles() {
        // Keys of 8 bytes that may be divided, but are few.
        let (n, gpu) = (1 << 20, SmallGpu { merging: Cell::new(0) });
        let plan = SortPlan::of::<u64>(n, 0, false);
        assert!(plan.once().is_some() && plan.suffix::<u64>() == "u64small");
        let at = Arrays::keys(1 << 20, n);
        // SAFETY: nothing is launched.
        unsafe { sort::<u64>(&gpu, (SortKernel::Auto, SortOrder::Ascending), at, false, 1 << 20).unwrap() };
        assert!(gpu.merging.get() >= n.div_ceil(plan.runs.keys()), "{} blocks", gpu.merging.get());
    }
}
