//! The sort of tiles, and the passes of merges that make one run of all tiles.

use super::super::many_runs::splits_shape;
use super::super::{Address, Arrays, Queue, bits, elements, with_values};
use super::Planned;
use super::layout::Workspace;
use crate::Error;
use kernels_gpu::kernels::sort::block_sort::BlockSort;
use kernels_gpu::kernels::sort::merge_pass::merge_runs::MergeRuns;
use kernels_gpu::kernels::sort::merge_pass::split_runs::SplitRuns;
use kernels_gpu::kernels::sort::runs::{Passes, Runs, Shuffle};
use kernels_gpu::key::{Bits, Coding};

/// Blocks for each multiprocessor in passes of merges, if keys may have been divided. They are many more than it holds
/// at once, which is faster, but fewer than there are tiles.
const FALLBACK_BLOCKS: usize = 24;

impl<B: Bits> Planned<B> {
    /// Queues the work on detected runs, the sort of tiles, and the passes of merges. If keys are divided, these
    /// launches do nothing. A single division that is enough by itself is queued here as well.
    pub(super) unsafe fn merge_sort(&self, queue: &dyn Queue) -> Result<(), Error> {
        let Self { plan, coding, at, workspace, random } = *self;
        let mut passes = plan.passes(at.len);
        // The last kernel decodes.
        let decode = |passes: Passes| if passes.left() == 0 { coding } else { Coding::NONE };
        // Passes alternate between the arrays and the scratch, and have to end in the arrays.
        let (mut from, mut to) = ((at.keys, at.values), workspace.scratch);
        if !passes.left().is_multiple_of(2) {
            (from, to) = (to, from);
        }
        // SAFETY: the steps require the conditions of this function. `from` and `to` are the arrays and their scratch.
        unsafe {
            self.use_order(queue)?;
            self.sort_tiles(queue, from, decode(passes))?;
        }
        let mut run = plan.first_run();
        // The number of runs that the first pass merges in an unpredictable order. The order of the merged runs is then
        // unpredictable as well.
        let mut shuffled = if at.value_bytes == 0 { (at.len / run) as u32 } else { 0 };
        while let Some(k) = passes.next() {
            let runs = plan.runs_of_pass(at.len, run, k).shuffled(Shuffle { runs: shuffled, random });
            // SAFETY: `from` and `to` are the arrays and their scratch, and the launches before have sorted the runs of
            // `from`.
            unsafe { self.merge(queue, runs, [from, to], decode(passes))? };
            (from, to) = (to, from);
            run *= k as usize;
            shuffled = 0;
        }
        Ok(())
    }

    /// Sorts the tiles of the arrays to `to`, by a single division if there is one.
    unsafe fn sort_tiles(&self, queue: &dyn Queue, to: (Address, Address), decode: Coding<B>) -> Result<(), Error> {
        let Self { plan, coding, at: Arrays { keys, values, len: n, value_bytes, .. }, random, .. } = *self;
        let Workspace { scratch, detected, .. } = self.workspace;
        if let Some(divide) = plan.once() {
            let (sides, words) = ([keys, scratch.0], self.words());
            // SAFETY: `once()` is a plan that `is_once`. Both sides have `n` keys, and the words and the lists are in
            // the workspace.
            return unsafe {
                divide.divide_once::<B>(queue, coding, sides, words, random)?;
                divide.sort_once::<B>(queue, coding, sides, Some((to.0, decode)), words, random)
            };
        }
        with_values!(value_bytes, V => {
            let (from, to) = (elements::<B, V>((keys, values)), elements::<B, V>(to));
            let sort = BlockSort { from, to, n, encode: coding, decode, order: detected as *mut u32, random };
            // SAFETY: both arrays have `n` elements with values of type `V`. The shape has a block for each tile, with
            // the kernel's threads and shared bytes.
            unsafe { queue.launch(&plan.block_suffix::<B>(), plan.block_shape::<B>(n), &sort) }
        })
    }

    /// Merges the runs of `from` to `to`.
    unsafe fn merge(
        &self,
        queue: &dyn Queue,
        runs: Runs,
        [from, to]: [(Address, Address); 2],
        decode: Coding<B>,
    ) -> Result<(), Error> {
        let Self { plan, at, workspace, .. } = *self;
        let (tiles, order) = (runs.tile_count(), workspace.detected as *mut u32);
        let splits = workspace.splits as *mut u32;
        if !splits.is_null() {
            let (shape, per_warp) = splits_shape(queue, tiles);
            let split = SplitRuns { from: from.0 as *const B, runs, splits, per_warp, order };
            // SAFETY: `splits` has `k` words for each tile of any pass (`split_bytes`), and `splits_shape` covers all
            // tiles.
            unsafe { queue.launch(&bits(size_of::<B>()), shape, &split)? };
        }
        let mut shape = plan.runs_shape::<B>(tiles);
        if plan.divide.is_some() && plan.takes_several::<B>() {
            // Blocks take one tile after the other. Fewer blocks then start if there is nothing to do.
            shape.blocks = shape.blocks.min(FALLBACK_BLOCKS * queue.multiprocessors());
        }
        with_values!(at.value_bytes, V => {
            let (from, to) = (elements::<B, V>(from), elements::<B, V>(to));
            let merge = MergeRuns { from, to, runs, splits, decode, order };
            // SAFETY: `from` and `to` are the array and its scratch, with all elements each. The splits of this pass
            // are written, or null if the kernel finds them by itself. The shape has the kernel's threads and shared
            // bytes.
            unsafe { queue.launch(&plan.suffix::<B>(), shape, &merge) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SortPlan, sort};
    use super::*;
    use crate::SortKernel;
    use crate::gpu::launch::{Launch, OnTwo};
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

        unsafe fn add(&self, launch: Launch<'_>) -> Result<(), Error> {
            if launch.kernel == MERGE_RUNS.name {
                self.merging.set(launch.shape.blocks);
            }
            Ok(())
        }

        unsafe fn clear(&self, _: Address, _: usize) -> Result<(), Error> {
            Ok(())
        }

        unsafe fn copy(&self, _: Address, _: Address, _: usize) -> Result<(), Error> {
            Ok(())
        }

        fn join(&self, work: &OnTwo<'_>) -> Result<(), Error> {
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
        unsafe { sort::<u64>(&gpu, (SortKernel::Auto, Coding::NONE), at, false, 1 << 20).unwrap() };
        assert!(gpu.merging.get() >= n.div_ceil(plan.runs.keys()), "{} blocks", gpu.merging.get());
    }
}
