//! How many keys of each chunk are less than the k-th key, and how many may equal it.

use super::{BELOW, COUNTS, DIGITS, MAX_BLOCKS, Places, Progress};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, reduce_add};

/// Threads of a block: one warp.
pub const THREADS: usize = WARP_SIZE as usize;

/// Kernel: adds to `places` the keys whose digit, which has been chosen last as number `number`, is less than that of the k-th key, and replaces those that
/// may equal it. If it has been known before, does nothing.
///
/// # Safety
/// `of_blocks` is what [`count_digit`](super::count_digit::count_digit) has written for as many blocks, for the digit that `progress` ends with, and
/// `places` has [`PLACE_WORDS`](super::PLACE_WORDS), those of the digit before if there is one. Blocks are of [`THREADS`] threads.
#[kernel(u32 = <THREADS>, u64 = <THREADS>)]
pub unsafe fn count_chunks<const NT: usize>(of_blocks: *const u32, places: *mut u32, progress: *mut u64, number: u32) {
    const { assert!(NT == WARP_SIZE as usize, "a block is a warp") };
    let (block, lane) = (thread::block_idx_x(), warp::lane_id());
    // SAFETY: `progress` and `of_blocks` are only read here, and of `places` each block uses its own.
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
        // All are read, so that the loads do not wait for what has been chosen.
        let count = of_block.get(value as usize);
        less += if value < chosen { count } else { 0 };
    }
    // SAFETY: `FULL_MASK` names the 32 lanes of the block's warp, which are all here.
    let less = unsafe { reduce_add(FULL_MASK, less) };
    if lane == 0 {
        let before = if number == 0 {
            // Those that begin with less, unless what was guessed was wrong.
            if progress.chosen_bits() > 0 { of_block.get(BELOW) } else { 0 }
        } else if progress.collected() > 0 && progress.collection() + 1 == number {
            // Candidates that have been collected are counted anew, without the keys that were less.
            0
        } else {
            places.of_block(block)[0]
        };
        places.set(block, [before + less, of_block.get(chosen as usize)]);
    }
}
