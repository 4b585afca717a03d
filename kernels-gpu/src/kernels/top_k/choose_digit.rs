//! Chooses the next digit of the k-th key.

use super::{BELOW, COUNT_WORDS, DIGITS, Digit, Progress};
use crate::block::scan::block_sum_up_to;
use crate::block::shared_memory::shared_memory;
use crate::key::Bits;
use cuda_std::prelude::*;

/// Threads of a block: one for two digits.
pub const THREADS: usize = DIGITS / 2;

shared_memory! {
    struct Memory() {
        sums: [u64; THREADS],
        /// Number of keys with a lesser prefix.
        below: [u64; 1],
    }
}

/// Bytes of dynamic shared memory.
pub const SHARED_BYTES: u32 = Memory::bytes();

/// Kernel: chooses the next digit of the k-th key from the histogram `counts`, which it clears, and writes the new
/// state to `progress`. Does nothing if all bits of the k-th key are known.
///
/// Requests a collection of the candidates if there are at most `capacity`, none have been collected, and the digit is
/// one of the first `collections`.
///
/// # Safety
/// `counts` is the result of [`count_digit`](super::count_digit::count_digit), and `progress`
/// the state after `number` digits. The launch is one block of [`THREADS`] threads, with [`SHARED_BYTES`].
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn choose_digit<B: Bits>(
    counts: *mut u32,
    progress: *mut u64,
    capacity: u64,
    number: u32,
    collections: u32,
) {
    let thread = thread::thread_idx_x();
    // SAFETY: the launch has `SHARED_BYTES`. A thread writes its own slot of `sums`; one barrier comes before other
    // threads read it, and another before it is written again. Thread 0 writes `below` before the first barrier. Thread
    // t alone uses words 4t to 4t + 3 of `counts`, and thread 0 also the two words of `BELOW`. All reads of `progress`
    // come before the first barrier; at most one thread writes to it, after the last one.
    let (memory, counts, progress) =
        unsafe { (Memory::at_start(), GlobalMut::new(counts, COUNT_WORDS), Progress::new(progress)) };
    let count = |value: u32| {
        let word = 2 * value as usize;
        let count = counts.get(word) as u64 | (counts.get(word + 1) as u64) << 32;
        counts.set(word, 0);
        counts.set(word + 1, 0);
        count
    };
    let (prefix, left, k) = (progress.prefix(), progress.left(), progress.selected() as u64);
    if left == 0 {
        return;
    }
    let is_first = number == 0;
    let (rank, collected) = (if is_first { k } else { progress.rank() }, progress.collected());
    if thread == 0 {
        let below = count(BELOW as u32);
        // From the second digit on, `rank` counts candidates only, so that keys with a lesser prefix do not matter.
        memory.below.set(0, if is_first { below } else { 0 });
    }
    let own = [count(2 * thread), count(2 * thread + 1)];
    // A barrier of the sum comes before `below` is read.
    let sum = block_sum_up_to::<THREADS>(own[0] + own[1], memory.sums) + memory.below.get(0);
    let before = sum - own[0] - own[1];
    if before < rank && rank <= sum {
        let is_second = before + own[0] < rank;
        let (before, candidates) = if is_second { (before + own[0], own[1]) } else { (before, own[0]) };
        let (digit, value) = (Digit::of_left(left), 2 * thread + is_second as u32);
        progress.set_prefix(prefix << digit.bits | value as u64, digit.shift, digit.bits);
        progress.set_rank(rank - before, number);
        // If no bit is left to count, the last collection takes the keys directly from the whole array.
        let is_collected = collected == 0 && number < collections && candidates <= capacity && digit.shift > 0;
        if is_collected {
            progress.set_collection(candidates, k - (rank - before), number);
        }
    }
    let is_below = rank <= memory.below.get(0);
    if is_first && (is_below && thread == 0 || sum < rank && thread == const { THREADS as u32 - 1 }) {
        // The guessed prefix is wrong: start again from the first bit.
        progress.set_prefix(0, const { 8 * size_of::<B>() as u32 }, 0);
        progress.set_rank(k, number);
    }
}
