//! Takes a sample of the keys, for a guess of their common prefix and a bound that slightly more than k keys do not
//! exceed.

use super::{CHUNK_UNIT, DIGIT_BITS, Progress, prefix};
use crate::block::clear;
use crate::block::scan::{BLOCK_WORDS, block_range};
use crate::block::shared_memory::{self, shared_memory};
use crate::elements::counted;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, reduce_add};

/// Threads of a block.
pub const THREADS: usize = 512;

/// Number of keys that are read. In shorter arrays, some keys are read twice. A chunk is a multiple of this.
pub const SAMPLE: usize = CHUNK_UNIT;

/// Greatest rank of a bound in the sample. A bound of higher rank would admit too many keys: by chance up to twice its
/// share.
pub const MOST_RANK: usize = SAMPLE / 32;

/// Maximum number of steps of the search for a bound: one per bit of the difference of two keys.
const STEPS: u32 = 64;

shared_memory! {
    struct Memory() {
        scan: [u32; BLOCK_WORDS],
        /// For each step, the number of keys of the sample that do not exceed the tested bound.
        counts: [u32; STEPS],
    }
}

/// Bytes of dynamic shared memory.
pub const SHARED_BYTES: u32 = Memory::bytes();

const _: () = shared_memory::check(SHARED_BYTES);

/// Index of sample `i` in an array of `n` keys. Sample `i` is a pseudo-random key of range `i` of `SAMPLE` equal
/// ranges, so that periodic keys do not bias the sample.
#[inline(always)]
pub fn position(i: usize, n: usize) -> usize {
    let mut hash = (i as u32).wrapping_mul(0x9e37_79b1);
    hash = (hash ^ hash >> 15).wrapping_mul(0x85eb_ca77);
    i * n / SAMPLE + (((hash ^ hash >> 13) as u64 * (n / SAMPLE) as u64) >> 32) as usize
}

/// The numbers of keys of a selection, of which the host may know only the most.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// Number of keys, at most if there is a count.
    pub n: usize,
    /// Number of keys that are selected, at most `n`.
    pub k: usize,
    /// Null, or the address of the number of keys. If it is less than `k`, all keys are selected.
    pub count: *const u64,
    /// Null, or the address that receives the number of selected keys.
    pub selected: *mut u64,
}

/// Kernel: writes the numbers of keys to `progress`, and where `lengths` says. Reads a sample of the keys and writes
/// its common prefix to `progress`, cut so that at least one digit is left. Without keys, `progress` says that all bits
/// of the k-th key are known.
///
/// If `rank` is not 0, it also searches for a bound: the sample's key of rank `rank` (from 1), or one of slightly
/// higher rank. If at most [`MOST_RANK`] samples do not exceed the bound, it writes the bound, and the common prefix of
/// the least key and the bound.
///
/// # Safety
/// `keys` has `lengths.n` keys, and the counts are null or one number each. `rank` is at most [`MOST_RANK`]. Nothing
/// else uses `progress`, which is 0, and `lengths.selected`, and nothing writes `lengths.count`. The launch is one
/// block of [`THREADS`] threads, with [`SHARED_BYTES`].
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn take_sample<B: Bits>(keys: *const B, lengths: Lengths, progress: *mut u64, rank: u32, coding: Coding<B>) {
    // SAFETY: the caller passes `lengths.n` keys at `keys`, which nothing writes during the launch, and `position` is
    // below `n`, at most that. The launch has `SHARED_BYTES`. Thread 0 alone writes `progress`. Barriers separate
    // clearing, atomic additions and reads of each word of `counts`.
    let (n, memory, progress) =
        unsafe { (counted(lengths.count, lengths.n), Memory::at_start(), Progress::new(progress)) };
    // SAFETY: `n` is at most `lengths.n`, the number of keys that the caller passes and nothing writes.
    let keys = unsafe { Global::new(keys, n) };
    let thread = thread::thread_idx_x();
    if thread == 0 {
        let selected = lengths.k.min(n);
        progress.set_lengths(n, selected);
        if !lengths.selected.is_null() {
            // SAFETY: the caller passes one number, which only this thread uses.
            unsafe { GlobalMut::new(lengths.selected, 1) }.set(0, selected as u64);
        }
    }
    if n == 0 {
        return;
    }
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
    // SAFETY: all threads of the block, which are whole warps, make this call, and nothing else uses `scan`.
    let (least, greatest) = unsafe { block_range(least, greatest, memory.scan) };
    // Number of bits after the common prefix of the least key and `end`, at least the bits of a digit.
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
    // SAFETY: all threads of the block, which are whole warps, make this call: `n` and `rank` are the same for all. The
    // words of `counts` were cleared before the barriers of `block_range`.
    let (bound, count) = unsafe { bound_of_rank(sample, (least, greatest), rank, memory.counts) };
    if thread == 0 && count <= MOST_RANK as u32 {
        let left = bits_left(bound);
        progress.set_prefix(prefix(least, left), left, 0);
        progress.set_bound(bound.to_register());
    }
}

/// A key that at least `rank` keys of the sample do not exceed, and how many do not. `sample` has this thread's keys,
/// and all keys are between `least` and `greatest`. The search need not find the sample's key of rank `rank` exactly.
///
/// # Safety
/// All threads of the block, which are whole warps, make this call, after a barrier. The [`STEPS`] words of `counts`
/// are 0, and nothing else uses them.
#[inline(always)]
unsafe fn bound_of_rank<B: Bits, const SAMPLED: usize>(
    sample: [B; SAMPLED],
    (least, greatest): (B, B),
    rank: u32,
    counts: Shared<u32>,
) -> (B, u32) {
    let enough = (rank + rank / 4).min(MOST_RANK as u32);
    let (mut bound, mut other, mut count, mut step) = (greatest, least, SAMPLE as u32, 0);
    while other < bound && count > enough && step < STEPS {
        let middle = other + (bound - other).shifted_down(1);
        let mut of_thread = 0;
        for i in 0..SAMPLED {
            of_thread += (sample[i] <= middle) as u32;
        }
        // SAFETY: all threads of the block, whole warps, make this call: they share the loop's conditions.
        let of_warp = unsafe { reduce_add(FULL_MASK, of_thread) };
        if warp::lane_id() == 0 {
            counts.fetch_add(step, of_warp);
        }
        thread::sync_threads();
        let of_middle = counts.get(step);
        if of_middle >= rank {
            (bound, count) = (middle, of_middle);
        } else {
            other = middle + B::ONE;
        }
        step += 1;
    }
    (bound, count)
}
