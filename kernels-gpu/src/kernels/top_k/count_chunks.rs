//! How many keys of each chunk are less than the k-th key, and how many may equal it.

use super::{DIGITS, Digit, MAX_BLOCKS, Places, Progress};
use crate::key::Bits;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, reduce_add};

/// Threads of a block: one warp.
pub const THREADS: usize = WARP_SIZE as usize;

/// Kernel: adds to `places` the keys whose digit `number`, which has been chosen last, is less than that of the k-th key, and replaces those that may
/// equal it.
///
/// # Safety
/// `of_blocks` is what [`count_digit`](super::count_digit::count_digit) has written for as many blocks, for the digit that `progress` ends with, and
/// `places` has [`PLACE_WORDS`](super::PLACE_WORDS), those of the digit before if there is one. Blocks are of [`THREADS`] threads.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn count_chunks<B: Bits>(of_blocks: *const u32, places: *mut u32, progress: *mut u64, number: u32) {
    let (block, lane) = (thread::block_idx_x(), warp::lane_id());
    // SAFETY: `progress` and `of_blocks` are only read here, and of `places` each block uses its own.
    let (progress, of_blocks, places) =
        unsafe { (Progress::new(progress), Global::new(of_blocks, MAX_BLOCKS * DIGITS), Places::new(places)) };
    let of_block = of_blocks.slice(block as usize * DIGITS, DIGITS);
    let chosen = progress.prefix() as u32 & ((1 << Digit::of(size_of::<B>(), number).bits) - 1);
    let mut less = 0;
    for row in 0..DIGITS as u32 / WARP_SIZE {
        let value = row * WARP_SIZE + lane;
        // All are read, so that the loads do not wait for what has been chosen.
        let count = of_block.get(value as usize);
        less += if value < chosen { count } else { 0 };
    }
    // SAFETY: `FULL_MASK` names the 32 lanes of the block's warp, which are all here.
    let less = unsafe { reduce_add(FULL_MASK, less) };
    if lane == 0 {
        // Candidates that have been collected are counted anew, without the keys that were less.
        let is_first = number == 0 || number == 1 && progress.collected() > 0;
        let before = if is_first { 0 } else { places.of_block(block)[0] };
        places.set(block, [before + less, of_block.get(chosen as usize)]);
    }
}
