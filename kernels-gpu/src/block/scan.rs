//! Sums and maxima over the threads of a block.

use crate::key::Bits;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, reduce_add, shuffle_up};

/// Words of shared memory that these functions use: four per warp of a block of 1024 threads.
pub const BLOCK_WORDS: u32 = 4 * WARP_SIZE;

/// Inclusive sum: the sum over the lanes up to this one.
///
/// # Safety
/// The lanes of one whole warp make this call.
#[inline(always)]
pub unsafe fn sum_up_to(value: u32) -> u32 {
    let (lane, mut sum, mut distance) = (warp::lane_id(), value, 1);
    while distance < WARP_SIZE {
        // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which make this call together. The loop has the same five
        // rounds in each. A lane without a lane `distance` below gets its own value.
        let before = unsafe { shuffle_up(FULL_MASK, sum, distance) };
        if lane >= distance {
            sum += before;
        }
        distance *= 2;
    }
    sum
}

/// The sums over the threads before this one and over all threads.
///
/// # Safety
/// All threads of the block, which are whole warps, make this call. `words` has [`BLOCK_WORDS`] words, and nothing else
/// uses them between the barriers before and after the call.
#[inline(always)]
#[track_caller]
pub unsafe fn sum_before(value: u32, words: Shared<u32>) -> (u32, u32) {
    let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
    let warps = thread::block_dim_x() / WARP_SIZE;
    // SAFETY: the block is whole warps and all its threads make this call, so that the 32 lanes of each warp do.
    let sum = unsafe { sum_up_to(value) };
    if lane == WARP_SIZE - 1 {
        words.set(warp, sum);
    }
    thread::sync_threads();
    let of_warp = if lane < warps { words.get(lane) } else { 0 };
    // SAFETY: no branch surrounds the two reductions, so that the 32 lanes of each warp make both.
    let (before, all) =
        unsafe { (reduce_add(FULL_MASK, if lane < warp { of_warp } else { 0 }), reduce_add(FULL_MASK, of_warp)) };
    (before + sum - value, all)
}

/// The sum over the threads up to this one, of numbers of 8 bytes. `sums` has one for each of the `NT` threads of the
/// block, which all make this call. Contains barriers, and nothing else uses `sums` between the first and the last one.
#[inline(always)]
#[track_caller]
pub fn block_sum_up_to<const NT: usize>(own: u64, sums: Shared<u64>) -> u64 {
    let (thread, mut sum, mut distance) = (thread::thread_idx_x(), own, 1);
    while distance < NT as u32 {
        sums.set(thread, sum);
        thread::sync_threads();
        if thread >= distance {
            sum += sums.get(thread - distance);
        }
        thread::sync_threads();
        distance *= 2;
    }
    sum
}

/// The least and the greatest value of all threads.
///
/// # Safety
/// All threads of the block, which are whole warps, make this call. `words` has [`BLOCK_WORDS`] words, and nothing else
/// uses them between the barrier before the call and the barrier at its end.
#[inline(always)]
#[track_caller]
pub unsafe fn block_range<B: Bits>(least: B, greatest: B, words: Shared<u32>) -> (B, B) {
    let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
    // SAFETY: the block is whole warps and all its threads make this call, so that the 32 lanes of each warp do.
    let (inverted, greatest) = unsafe { ((least ^ B::MAX).greatest_of_warp(), greatest.greatest_of_warp()) };
    let word = |of: u32, half: u32| (of * 2 + half) * WARP_SIZE;
    let set = |of: u32, value: u64| {
        words.set(word(of, 0) + warp, value as u32);
        if size_of::<B>() == 8 {
            words.set(word(of, 1) + warp, (value >> 32) as u32);
        }
    };
    if lane == 0 {
        set(0, inverted.to_register());
        set(1, greatest.to_register());
    }
    thread::sync_threads();
    let of_warp = |of: u32| {
        if lane < thread::block_dim_x() / WARP_SIZE {
            let lower = words.get(word(of, 0) + lane);
            let upper = if size_of::<B>() == 8 { words.get(word(of, 1) + lane) } else { 0 };
            B::from_register(lower as u64 | (upper as u64) << 32)
        } else {
            B::MIN
        }
    };
    let (inverted, greatest) = (of_warp(0), of_warp(1));
    thread::sync_threads();
    // SAFETY: no branch surrounds these calls and no thread has returned, so that the 32 lanes of each warp make them.
    unsafe { (inverted.greatest_of_warp() ^ B::MAX, greatest.greatest_of_warp()) }
}
