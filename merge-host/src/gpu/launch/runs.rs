//! The merge of the runs that the sort has detected.

use super::sort::{SortPlan, splits_shape};
use super::{Address, Arrays, PERSISTENT_BLOCKS, Queue, align, bits, elements, with_numbers, with_values};
use crate::Error;
use crate::gpu::kernels::Shape;
use kernels_gpu::kernels::sort::detect_runs::{self, CopyRuns};
use kernels_gpu::kernels::sort::merge_pass::MIN_BLOCKS_PER_SM;
use kernels_gpu::kernels::sort::merge_pass::long_runs::{MergeLongRuns, SplitLongRuns};
use kernels_gpu::kernels::sort::runs::MAX_RUNS;
use kernels_gpu::key::{Bits, Coding};

/// Bytes of the words that describe detected runs.
const WORDS_BYTES: usize = align(detect_runs::DETECTION_WORDS * size_of::<u32>());

/// Bytes of the indices at which long runs begin, and of the array's end.
const STARTS_BYTES: usize = align((MAX_RUNS as usize + 1) * size_of::<usize>());

/// Bytes of the description of detected runs: the words, and where the runs begin, as detected and in order.
pub(super) const RUNS_BYTES: usize = WORDS_BYTES + 2 * STARTS_BYTES;

/// Addresses in a workspace for detected runs.
#[derive(Clone, Copy)]
pub(super) struct DetectedRuns {
    /// The description of the runs, [`RUNS_BYTES`] bytes.
    pub(super) at: Address,
    /// Room for a copy of the keys and of the values.
    pub(super) scratch: (Address, Address),
    /// The splits of the runs.
    pub(super) splits: Address,
}

/// The address of the indices at which runs begin, in any order, for the description at `words`.
pub(super) fn runs_begin_at(words: Address) -> Address {
    words + WORDS_BYTES as u64
}

impl DetectedRuns {
    /// Where runs begin, in any order.
    fn begins(self) -> Address {
        runs_begin_at(self.at)
    }

    /// Where runs begin, in order, and the array's end.
    fn starts(self) -> Address {
        self.begins() + STARTS_BYTES as u64
    }
}

/// Queues the merge of the long runs that `detected.at` describes, if there are any.
///
/// # Safety
/// The arrays, and the arrays of `detected`, are in the GPU's memory and have room for all elements. `detect_runs` has
/// written the description. Nothing else uses the arrays until the merge has ended.
pub(super) unsafe fn merge_long_runs<B: Bits>(
    queue: &impl Queue,
    plan: SortPlan,
    coding: Coding<B>,
    Arrays { keys, values, len: n, value_bytes }: Arrays,
    detected: DetectedRuns,
) -> Result<(), Error> {
    let DetectedRuns { at: words, scratch: (scratch, scratch_values), splits } = detected;
    let (found, splits) = (words as *mut u32, splits as *mut u32);
    let (begins, starts) = (detected.begins() as *const usize, detected.starts() as *mut usize);
    let width = bits(size_of::<B>());
    let copy_shape = queue.persistent(PERSISTENT_BLOCKS, detect_runs::DETECTION_THREADS, 0);
    let (from, to) = (keys as *const B, scratch as *mut B);
    // SAFETY: `from` and `to` have `n` keys, and `RUNS_BYTES` at `words` hold `begins` and `starts`. The shape has the
    // threads of the kernel.
    unsafe { queue.launch(&width, copy_shape, &CopyRuns { from, to, n, coding, found, begins, starts })? };
    if value_bytes > 0 {
        with_numbers!(value_bytes, V => {
            // Values have no coding. The kernel puts the beginnings of the runs in order once more.
            let (from, to, coding) = (values as *const V, scratch_values as *mut V, Coding::NONE);
            // SAFETY: `from` and `to` have `n` values of the width of `V`, and the description is unchanged.
            unsafe { queue.launch(&bits(value_bytes), copy_shape, &CopyRuns { from, to, n, coding, found, begins, starts })? }
        });
    }
    let tile_keys = plan.long_run_tile_keys();
    let tiles = n.div_ceil(tile_keys as usize);
    let (splits_shape, per_warp) = splits_shape(queue, tiles);
    let split = SplitLongRuns { from: to as *const B, n, tile_keys, splits, starts, per_warp, order: found };
    // SAFETY: `splits` has `MAX_RUNS` words for each tile (`long_run_split_bytes`), and `splits_shape` covers all
    // tiles.
    unsafe { queue.launch(&width, splits_shape, &split)? };
    let Shape { threads, shared_bytes, .. } = plan.runs_shape::<B>(tiles);
    let shape = queue.persistent(MIN_BLOCKS_PER_SM, threads, shared_bytes);
    let suffix = SortPlan::of_long_runs::<B>(value_bytes).suffix::<B>();
    with_values!(value_bytes, V => {
        let (from, to) = (elements::<B, V>((scratch, scratch_values)), elements::<B, V>((keys, values)));
        let merge = MergeLongRuns { from, to, n, splits, starts, decode: coding, order: found };
        // SAFETY: both arrays have `n` elements with values of type `V`, and the launches before have written the copy,
        // `starts` and `splits`. The shape has the kernel's threads and shared bytes.
        unsafe { queue.launch(&suffix, shape, &merge) }
    })
}
