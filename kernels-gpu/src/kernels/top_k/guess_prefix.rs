//! A guess which bits all keys begin with.

use super::{CHUNK_UNIT, DIGIT_BITS, Progress, prefix};
use crate::block::scan::{BLOCK_WORDS, block_range};
use crate::block::shared_memory::shared_memory;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;

/// Threads of a block.
pub const THREADS: usize = 512;

/// How many keys are read: as many as a chunk is a multiple of.
const SAMPLE: usize = CHUNK_UNIT;

shared_memory! {
    struct Memory() {
        scan: [u32; BLOCK_WORDS],
    }
}

/// Bytes of dynamic shared memory.
pub const SHARED_BYTES: u32 = Memory::bytes();

/// Kernel: writes to `progress` the bits that some of the `n` keys have in common at their beginning, so that a digit is left at least.
///
/// # Safety
/// `keys` has `n` keys, at least one. `progress` is nobody else's. One block of [`THREADS`] threads, with [`SHARED_BYTES`].
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn guess_prefix<B: Bits>(keys: *const B, n: usize, progress: *mut u64, coding: Coding<B>) {
    // SAFETY: there are so many keys, as the caller promises, which nothing writes during the launch. The launch has `SHARED_BYTES`; one thread writes `progress`.
    let (keys, memory, progress) = unsafe { (Global::new(keys, n), Memory::at_start(), Progress::new(progress)) };
    let distance = n.div_ceil(SAMPLE);
    let (mut least, mut greatest) = (B::MAX, B::MIN);
    let mut at = thread::thread_idx_x() as usize * distance;
    // A number of steps that is known lets the loads be in flight together.
    for _ in 0..SAMPLE / THREADS {
        if at < n {
            let key = coding.encode(keys.get(at));
            least = if key < least { key } else { least };
            greatest = if key > greatest { key } else { greatest };
        }
        at += THREADS * distance;
    }
    // SAFETY: all threads of the block are here, whole warps, and nothing else uses `scan`.
    let (least, greatest) = unsafe { block_range(least, greatest, memory.scan) };
    if thread::thread_idx_x() == 0 {
        let differing = const { 8 * size_of::<B>() as u32 } - (least ^ greatest).leading_zeros();
        let left = if differing < DIGIT_BITS { DIGIT_BITS } else { differing };
        progress.set_prefix(prefix(least, left), left, 0);
    }
}
