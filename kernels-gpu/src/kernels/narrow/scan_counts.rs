//! The prefix sum of the histogram, in the order of the sort.

use super::Narrow;
use crate::block::scan::{BLOCK_WORDS, sum_before};
use crate::block::shared_memory::shared_memory;
use crate::key::Coding;
use cuda_std::prelude::*;

/// Most counts of a thread in a round.
const PER_THREAD: usize = 16;

/// Threads of the block, for keys of this many bytes.
pub const fn threads(key_bytes: usize) -> usize {
    if key_bytes == 1 { 256 } else { 1024 }
}

shared_memory! {
    struct Memory() {
        sums: [u32; BLOCK_WORDS],
    }
}

/// Bytes of dynamic shared memory.
pub const SHARED_BYTES: u32 = Memory::bytes();

/// Kernel: sets word `code` of `offsets` to the number of keys with lesser ordered bits.
///
/// # Safety
/// `counts` has the number of keys of each value, fewer than 2^32 in all, and `offsets` has [`Narrow::VALUES`] words,
/// in global memory. The launch is one block of `NT` threads, with [`SHARED_BYTES`].
#[kernel(u8 = <u8, 256, 1>, u16 = <u16, 1024, PER_THREAD>)]
pub unsafe fn scan_counts<N: Narrow, const NT: usize, const EACH: usize>(
    counts: *const u32,
    offsets: *mut u32,
    coding: Coding<N>,
) {
    const { assert!(NT == threads(size_of::<N>()) && N::VALUES.is_multiple_of(NT * EACH)) };
    // SAFETY: `counts` and `offsets` have `VALUES` words each. This launch only reads `counts`, and each thread writes
    // the offsets of its own codes. The launch has `SHARED_BYTES`.
    let (counts, offsets, memory) =
        unsafe { (Global::new(counts, N::VALUES), GlobalMut::new(offsets, N::VALUES), Memory::at_start()) };
    let (mut first, mut before) = (thread::thread_idx_x() * EACH as u32, 0);
    while first < N::VALUES as u32 {
        let (mut own, mut sum) = ([0; EACH], 0);
        for i in 0..EACH {
            let key = coding.decode(N::of_value(first + i as u32));
            own[i] = counts.get(key.value() as usize);
        }
        for i in 0..EACH {
            sum += own[i];
        }
        // SAFETY: all threads of the block, which are whole warps, make this call: each has the same number of rounds.
        // A barrier follows.
        let (of_threads, of_all) = unsafe { sum_before(sum, memory.sums) };
        thread::sync_threads();
        let mut offset = before + of_threads;
        for i in 0..EACH {
            offsets.set(first as usize + i, offset);
            offset += own[i];
        }
        (first, before) = (first + const { (NT * EACH) as u32 }, before + of_all);
    }
}
