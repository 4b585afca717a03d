//! Detecting order before a sort, and using it: keys in order stay, descending keys are reversed, a few long runs are
//! merged. Before that, keys that are nearly in their places are sorted by windows.

use super::super::runs::{DetectedRuns, merge_long_runs, runs_begin_at};
use super::super::{Address, Arrays, PERSISTENT_BLOCKS, Queue, bits, elements, suffix, with_numbers, with_values};
use super::Planned;
use super::layout::Workspace;
use crate::Error;
use kernels_gpu::kernels::sort::detect_runs::{self, DetectRuns, Reverse};
use kernels_gpu::kernels::sort::indices::SetIndices;
use kernels_gpu::kernels::sort::runs::MAX_RUNS;
use kernels_gpu::kernels::sort::windows::{self, MergeWindows, SortWindows};
use kernels_gpu::key::{Bits, Coding};

/// Blocks for each multiprocessor that sort windows, and that merge their halves.
const WINDOW_BLOCKS: usize = 16;

impl<B: Bits> Planned<B> {
    /// Queues the first launches for keys that are not divided: setting their indices, if there are to be any, and the
    /// work on detected runs.
    pub(super) unsafe fn use_order(&self, queue: &dyn Queue) -> Result<(), Error> {
        let Self { plan, coding, at, workspace: Workspace { scratch, detected, splits, .. }, .. } = *self;
        let n = at.len;
        if plan.sets_indices(n) {
            // SAFETY: the steps require the conditions of this function.
            unsafe { self.set_indices(queue, detected)? };
        }
        if plan.detects(n) {
            // SAFETY: the plan detects runs, so its workspace has the description at `detected`, which `detect_runs`
            // has written, the scratch arrays, and the splits of long runs.
            unsafe { use_runs::<B>(queue, coding, at, DetectedRuns { at: detected, scratch, splits })? };
        }
        Ok(())
    }

    /// Queues setting values to the keys' indices, unless the words at `order`, or 0, say that nothing needs them.
    pub(super) unsafe fn set_indices(&self, queue: &dyn Queue, order: Address) -> Result<(), Error> {
        let (Arrays { values, len: n, value_bytes, .. }, order) = (self.at, order as *mut u32);
        let merges = u32::from(self.plan.radix.is_none());
        let shape = queue.persistent(PERSISTENT_BLOCKS, detect_runs::DETECTION_THREADS, 0);
        with_numbers!(value_bytes, I => {
            // SAFETY: there are `n` values of the width of `I`, and the kernel writes only values with an index below
            // `n`. `order` is null or the words of the workspace.
            unsafe {
                let set = SetIndices { to: values as *mut I, n, first: 0, order, merges };
                queue.launch(&bits(value_bytes), shape, &set)
            }
        })
    }

    /// Queues the sort of windows, and the merge of their halves, for keys that are nearly in their places.
    pub(super) unsafe fn sort_windows(&self, queue: &dyn Queue) -> Result<(), Error> {
        let Self { coding, at: Arrays { keys, values, len: n, value_bytes, .. }, workspace, .. } = *self;
        let (order, suffix) = (workspace.detected as *mut u32, suffix::<B>(value_bytes));
        let (sort, merge) =
            (windows::sort_shape(size_of::<B>(), value_bytes), windows::merge_shape(size_of::<B>(), value_bytes));
        let sort_bytes = windows::sort_shared_bytes(sort.threads, sort.items_per_thread, size_of::<B>(), value_bytes);
        let merge_bytes = windows::merge_shared_bytes(size_of::<B>(), value_bytes, merge.keys());
        let sort_shape = queue.persistent(WINDOW_BLOCKS, sort.threads as u32, sort_bytes);
        let merge_shape = queue.persistent(WINDOW_BLOCKS, merge.threads as u32, merge_bytes);
        with_values!(value_bytes, V => {
            let (at, scratch) = (elements::<B, V>((keys, values)), elements::<B, V>(workspace.scratch));
            // SAFETY: both sides have `n` elements with values of type `V`, and `choose_digits` has written the
            // `DETECTION_WORDS` words at `order`. The shapes have the threads and shared bytes of the kernels.
            unsafe {
                let sort = SortWindows { from: at, to: scratch, n, encode: coding, order };
                queue.launch(&suffix, sort_shape, &sort)?;
                let merge = MergeWindows { from: scratch, to: at, n, decode: coding, order };
                queue.launch(&suffix, merge_shape, &merge)
            }
        })
    }

    /// Queues the detection of runs. The words at `detected` begin with words that are 0, or that `choose_digits` has
    /// set.
    pub(super) unsafe fn detect_runs(&self, queue: &dyn Queue) -> Result<(), Error> {
        let Self { coding, at: Arrays { keys, len: n, value_bytes, .. }, .. } = *self;
        let words = self.workspace.detected;
        // Equal keys have equal bits, and may be reversed, but not with their values.
        let equal_ascends = u32::from(value_bytes > 0);
        let most_descents = if merges_runs(n) { MAX_RUNS - 1 } else { 0 };
        let (keys, found, starts) = (keys as *const B, words as *mut u32, runs_begin_at(words) as *mut usize);
        let detect = DetectRuns { keys, n, coding, equal_ascends, most_descents, found, starts };
        let shape =
            queue.persistent(PERSISTENT_BLOCKS, detect_runs::DETECTION_THREADS, detect_runs::DETECTION_SHARED_BYTES);
        // SAFETY: there are `n` keys, and `RUNS_BYTES` at `words` have room for the beginnings of `MAX_RUNS` runs. The
        // shape has the kernel's threads and shared bytes.
        unsafe { queue.launch(&bits(size_of::<B>()), shape, &detect) }
    }
}

/// Whether detected runs of `n` keys are merged: the kernels have indices of 32 bits.
fn merges_runs(n: usize) -> bool {
    u32::try_from(n).is_ok()
}

/// Queues the work on detected runs: none for sorted keys, a reversal of descending keys, or a merge of a few long
/// runs. The other kernels of the sort then do nothing.
///
/// # Safety
/// The conditions of [`sort`](super::sort()) hold, and [`detect_runs`](Planned::detect_runs) has been called before.
unsafe fn use_runs<B: Bits>(
    queue: &dyn Queue,
    coding: Coding<B>,
    at: Arrays,
    detected: DetectedRuns,
) -> Result<(), Error> {
    let Arrays { keys, values, len: n, value_bytes, .. } = at;
    let found = detected.at as *mut u32;
    let shape = queue.persistent(PERSISTENT_BLOCKS, detect_runs::DETECTION_THREADS, 0);
    let reverse = |array: Address, width| {
        with_numbers!(width, T => {
            // SAFETY: `array` has `n` numbers of `width` bytes, the width of `T`, and `detect_runs` has written
            // `found`.
            unsafe { queue.launch(&bits(width), shape, &Reverse { array: array as *mut T, n, found }) }
        })
    };
    reverse(keys, size_of::<B>())?;
    if value_bytes > 0 {
        reverse(values, value_bytes)?;
    }
    if merges_runs(n) {
        // SAFETY: `n` fits 32 bits. `detected` is in the workspace of the plan, and `detect_runs` has written its
        // description.
        unsafe { merge_long_runs::<B>(queue, coding, at, detected)? };
    }
    Ok(())
}
