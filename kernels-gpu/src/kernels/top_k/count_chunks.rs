//! Counts the keys of each chunk that are less than the k-th key, and the keys that may equal it.

use super::{BELOW, COUNTS, DIGITS, MAX_BLOCKS, Places, Progress};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, reduce_add};

/// Threads of a block: one warp.
pub const THREADS: usize = WARP_SIZE as usize;

/// Kernel: updates `places` after the choice of digit `number`. For each chunk, it adds the keys with a lesser digit to
/// the number of lesser keys. It replaces the number of keys that may equal the k-th key. Does nothing unless digit
/// `number` was the last one chosen.
///
/// # Safety
/// `of_blocks` is the result of [`count_digit`](super::count_digit::count_digit) for the same number of blocks and for
/// the last digit in `progress`. `places` has [`PLACE_WORDS`](super::PLACE_WORDS) words, with the numbers after the
/// digit before, if any. Blocks have [`THREADS`] threads.
#[kernel(u32 = <THREADS>, u64 = <THREADS>)]
pub unsafe fn count_chunks<const NT: usize>(of_blocks: *const u32, places: *mut u32, progress: *mut u64, number: u32) {
    const { assert!(NT == WARP_SIZE as usize, "a block is a warp") };
    let (block, lane) = (thread::block_idx_x(), warp::lane_id());
    // SAFETY: this launch only reads `progress` and `of_blocks`, which has `COUNTS` words for each of up to
    // `MAX_BLOCKS` blocks. A block uses its own two words of `places`.
    let (progress, of_blocks, places) =
        unsafe { (Progress::new(progress), Global::new(of_blocks, MAX_BLOCKS * COUNTS), Places::new(places)) };
    if progress.digits() != number + 1 {
        return;
    }
    let of_block = of_blocks.slice(block as usize * COUNTS, COUNTS);
    let chosen = progress.prefix() as u32 & ((1 << progress.chosen_bits()) - 1);
    let mut less = 0;
    for row in 0..DIGITS / NT {
        let value = (row * NT) as u32 + lane;
        // All counts are read, so that the loads do not depend on the chosen digit.
        let count = of_block.get(value as usize);
        less += if value < chosen { count } else { 0 };
    }
    // SAFETY: `FULL_MASK` names the 32 lanes of the block's only warp, which all make this call: the return above is
    // uniform.
    let less = unsafe { reduce_add(FULL_MASK, less) };
    if lane == 0 {
        let before = if number == 0 {
            // Keys with a prefix less than the guessed one, unless the guess was wrong.
            if progress.chosen_bits() > 0 { of_block.get(BELOW) } else { 0 }
        } else if progress.collected() > 0 && progress.collection() + 1 == number {
            // Collected candidates are counted from 0: the lesser keys are in `out` already.
            0
        } else {
            places.of_block(block)[0]
        };
        places.set(block, [before + less, of_block.get(chosen as usize)]);
    }
}
