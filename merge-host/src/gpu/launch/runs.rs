//! The merge of the runs that the sort has detected.

use super::many_runs::{Pass, runs_of_pass};
use super::{Address, Arrays, PERSISTENT_BLOCKS, Queue, align, bits, with_numbers};
use crate::Error;
use kernels_gpu::kernels::sort::detect_runs::{self, CopyRuns};
use kernels_gpu::kernels::sort::merge_pass::many_runs::words_of_tile;
use kernels_gpu::kernels::sort::runs::{MAX_RUNS, OffsetRuns};
use kernels_gpu::key::{Bits, Coding};
use std::ptr;

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
    queue: &dyn Queue,
    coding: Coding<B>,
    Arrays { keys, values, len: n, value_bytes, .. }: Arrays,
    detected: DetectedRuns,
) -> Result<(), Error> {
    let DetectedRuns { at: words, scratch: (scratch, scratch_values), splits } = detected;
    let found = words as *mut u32;
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
            unsafe {
                let copy = CopyRuns { from, to, n, coding, found, begins, starts };
                queue.launch(&bits(value_bytes), copy_shape, &copy)?;
            }
        });
    }
    let array = |(keys, values): (Address, Address)| Arrays { keys, values, len: n, value_bytes, count: 0 };
    let pass = Pass {
        runs: pass_of::<B>(n, value_bytes, starts),
        from: array((scratch, scratch_values)),
        to: array((keys, values)),
        encode: Coding::NONE,
        decode: coding,
        splits,
        found: words,
    };
    // SAFETY: both arrays have `n` elements and do not overlap. The launches before have written the copy and `starts`,
    // if there are long runs. `splits` has `split_bytes`.
    unsafe { pass.queue(queue) }
}

/// The pass over `n` keys in up to [`MAX_RUNS`] runs. Runs that are not there are empty, and begin at the array's end.
fn pass_of<B: Bits>(n: usize, value_bytes: usize, starts: *const usize) -> OffsetRuns {
    runs_of_pass::<B>(n, value_bytes, (starts, MAX_RUNS as usize), 1, MAX_RUNS)
}

/// Bytes of the splits of long runs that have `n` keys in all.
pub(super) fn split_bytes<B: Bits>(n: usize, value_bytes: usize) -> usize {
    pass_of::<B>(n, value_bytes, ptr::null()).tile_count() * words_of_tile(MAX_RUNS) * size_of::<u32>()
}
