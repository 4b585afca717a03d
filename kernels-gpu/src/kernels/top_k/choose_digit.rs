//! Which digit the k-th key has.

use super::{COUNT_WORDS, DIGITS, Digit, PROGRESS_NUMBERS};
use crate::block::shared_memory::shared_memory;
use crate::key::Bits;
use cuda_std::prelude::*;

/// Threads of a block: one for every other digit.
pub const THREADS: usize = DIGITS / 2;

shared_memory! {
    struct Memory() {
        sums: [u64; THREADS],
    }
}

/// Bytes of dynamic shared memory.
pub const SHARED_BYTES: u32 = Memory::bytes();

/// Kernel: chooses digit `number` of the k-th key by `counts`, which are 0 afterwards, and writes to `progress` what is known then. Candidates of the
/// first digit are going to be collected if there are `capacity` at most.
///
/// # Safety
/// `counts` are those that [`count_digit`](super::count_digit::count_digit) has counted, `k` of them or more, and `progress` that of the digits before. One block of
/// [`THREADS`] threads, with [`SHARED_BYTES`].
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn choose_digit<B: Bits>(counts: *mut u32, progress: *mut u64, k: u64, capacity: u64, number: u32) {
    let thread = thread::thread_idx_x();
    // SAFETY: the launch has `SHARED_BYTES`. A thread writes its own sum, with a barrier before others read it, and one before it is written again.
    // Each thread uses its own four words of `counts`. Of `progress`, all numbers are read before a barrier, and one thread writes it after that.
    let (memory, counts, progress) = unsafe {
        (Memory::at_start(), GlobalMut::new(counts, COUNT_WORDS), GlobalMut::new(progress, PROGRESS_NUMBERS))
    };
    let count = |value: u32| {
        let word = 2 * value as usize;
        let count = counts.get(word) as u64 | (counts.get(word + 1) as u64) << 32;
        counts.set(word, 0);
        counts.set(word + 1, 0);
        count
    };
    let (prefix, rank) = if number == 0 { (0, k) } else { (progress.get(0), progress.get(1)) };
    let own = [count(2 * thread), count(2 * thread + 1)];
    let mut sum = own[0] + own[1];
    let mut distance = 1;
    while distance < const { THREADS as u32 } {
        memory.sums.set(thread, sum);
        thread::sync_threads();
        if thread >= distance {
            sum += memory.sums.get(thread - distance);
        }
        thread::sync_threads();
        distance *= 2;
    }
    let before = sum - own[0] - own[1];
    if before < rank && rank <= sum {
        let is_second = before + own[0] < rank;
        let (before, candidates) = if is_second { (before + own[0], own[1]) } else { (before, own[0]) };
        let value = 2 * thread + is_second as u32;
        let bits = Digit::of(size_of::<B>(), number).bits;
        progress.set(0, prefix << bits | value as u64);
        progress.set(1, rank - before);
        if number == 0 {
            let is_collected = candidates <= capacity;
            progress.set(2, if is_collected { candidates } else { 0 });
            progress.set(3, if is_collected { before } else { 0 });
        }
    }
}
