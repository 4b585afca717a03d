//! What some of the keys tell of all of them: which bits they begin with, and a bound that about enough of them do not exceed.

use super::{CHUNK_UNIT, DIGIT_BITS, Progress, prefix};
use crate::block::scan::{BLOCK_WORDS, block_range};
use crate::block::shared_memory::{self, shared_memory};
use crate::kernels::sort::clear;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, reduce_add};

/// Threads of a block.
pub const THREADS: usize = 512;

/// How many keys are read, some of them twice if there are fewer: as many as a chunk is a multiple of.
pub const SAMPLE: usize = CHUNK_UNIT;

/// A bound of more of the sample is none: too many keys would not exceed it, by chance up to twice the share.
pub const MOST_RANK: usize = SAMPLE / 32;

/// The most steps of the search for a bound: one for each bit of the difference of two keys.
const STEPS: u32 = 64;

shared_memory! {
    struct Memory() {
        scan: [u32; BLOCK_WORDS],
        /// How many keys of the sample do not exceed what each step tries.
        counts: [u32; STEPS],
    }
}

/// Bytes of dynamic shared memory.
pub const SHARED_BYTES: u32 = Memory::bytes();

const _: () = shared_memory::check(SHARED_BYTES);

/// Which of `n` keys is number `i` of the sample: one of the keys that are its share. Where in its share it is differs, so that keys that repeat
/// themselves do not all look alike.
#[inline(always)]
pub fn position(i: usize, n: usize) -> usize {
    let mut hash = (i as u32).wrapping_mul(0x9e37_79b1);
    hash = (hash ^ hash >> 15).wrapping_mul(0x85eb_ca77);
    i * n / SAMPLE + (((hash ^ hash >> 13) as u64 * (n / SAMPLE) as u64) >> 32) as usize
}

/// Kernel: reads a sample of the `n` keys, and writes to `progress` the bits that these have in common at their beginning, so that a digit is left at least.
///
/// If `rank` is not 0, it looks for a bound too: the sample's key of that rank, from 1 on, or a little more. If no more than [`MOST_RANK`] do not exceed
/// it, it writes the bound, and the bits that the least key has in common with that.
///
/// # Safety
/// `keys` has `n` keys, at least one, and `rank` is at most [`MOST_RANK`]. `progress` is nobody else's. One block of [`THREADS`] threads, with [`SHARED_BYTES`].
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn take_sample<B: Bits>(keys: *const B, n: usize, progress: *mut u64, rank: u32, coding: Coding<B>) {
    // SAFETY: there are so many keys, as the caller promises, which nothing writes during the launch. The launch has `SHARED_BYTES`; one thread writes `progress`.
    // Barriers come between clearing, adding and reading each word of `counts`.
    let (keys, memory, progress) = unsafe { (Global::new(keys, n), Memory::at_start(), Progress::new(progress)) };
    let thread = thread::thread_idx_x();
    clear::<THREADS>(memory.counts, STEPS);
    let mut sample = [B::MIN; SAMPLE / THREADS];
    for i in 0..SAMPLE / THREADS {
        sample[i] = keys.get(position(thread as usize + i * THREADS, n));
    }
    coding.encode_all(&mut sample);
    let (mut least, mut greatest) = (B::MAX, B::MIN);
    for i in 0..SAMPLE / THREADS {
        least = if sample[i] < least { sample[i] } else { least };
        greatest = if sample[i] > greatest { sample[i] } else { greatest };
    }
    // SAFETY: all threads of the block are here, whole warps, and nothing else uses `scan`.
    let (least, greatest) = unsafe { block_range(least, greatest, memory.scan) };
    // How many bits follow those that the least key has in common with another one: those of a digit, at least.
    let bits_left = |end: B| {
        let differing = const { 8 * size_of::<B>() as u32 } - (least ^ end).leading_zeros();
        if differing < DIGIT_BITS { DIGIT_BITS } else { differing }
    };
    let left = bits_left(greatest);
    if thread == 0 {
        progress.set_prefix(prefix(least, left), left, 0);
    }
    if rank == 0 {
        return;
    }
    // One of these numbers is the sample's key of that rank. It need not be found just so.
    let enough = (rank + rank / 4).min(MOST_RANK as u32);
    let (mut bound, mut other, mut count, mut step) = (greatest, least, SAMPLE as u32, 0);
    while other < bound && count > enough && step < STEPS {
        let middle = other + (bound - other).shifted_down(1);
        let mut of_thread = 0;
        for i in 0..SAMPLE / THREADS {
            of_thread += (sample[i] <= middle) as u32;
        }
        // SAFETY: all threads of the block are here, whole warps: what they branch on is the same for all.
        let of_warp = unsafe { reduce_add(FULL_MASK, of_thread) };
        if warp::lane_id() == 0 {
            memory.counts.fetch_add(step, of_warp);
        }
        thread::sync_threads();
        let of_middle = memory.counts.get(step);
        if of_middle >= rank {
            (bound, count) = (middle, of_middle);
        } else {
            other = middle + B::ONE;
        }
        step += 1;
    }
    if thread == 0 && count <= MOST_RANK as u32 {
        let left = bits_left(bound);
        progress.set_prefix(prefix(least, left), left, 0);
        progress.set_bound(bound.to_register());
    }
}
