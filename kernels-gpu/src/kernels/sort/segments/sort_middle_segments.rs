//! Segments of more than 1024 keys that one block holds. Warps sort [runs](super::middle_runs) of 1024 keys in
//! registers, and the block merges them. Keys with values are sorted as numbers (`middle_by_numbers`), stably.
//!
//! The last run is filled up with the greatest keys, to a whole run of 1024.

use super::middle_by_numbers::{Memory, Sort};
use super::middle_runs::{MOST_THREADS, RUN, SegmentWords, WhichSegments, end_of_runs, merge_runs, own_row, sort_run};
use crate::block::shared_memory::{of_widths, shared_memory};
use crate::block::swizzled::Swizzled;
use crate::elements::{Elements, has_values};
use crate::key::{Bits, Coding};
use crate::warp::sort_lanes::LANE_KEYS;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, sync_warp};
use cuda_std::{recomputed, shared};

shared_memory! {
    /// Shared memory of a block of `threads` threads, for keys without values.
    struct KeyMemory<B: Word>(threads: usize) {
        slots: [B; LANE_KEYS * threads],
        segment: SegmentWords {},
    }
}

/// Bytes of dynamic shared memory for blocks of `threads` threads, for keys of `key_bytes` bytes with values of
/// `value_bytes` bytes, or 0.
pub const fn shared_bytes(key_bytes: usize, value_bytes: usize, threads: usize) -> u32 {
    match (key_bytes, value_bytes) {
        (4, 0) => KeyMemory::<u32>::bytes(threads),
        (8, 0) => KeyMemory::<u64>::bytes(threads),
        _ => of_widths!(key_bytes, value_bytes, Memory::bytes(threads)),
    }
}

/// Kernel: sorts each segment of `which`. A block takes one segment after another.
///
/// # Safety
/// `at` has `which.n` elements, in global memory. The lists meet the requirements of
/// [`MiddleSegments`](super::middle::MiddleSegments), and all launches that list segments have run before. Blocks have
/// at least the [`threads`](super::middle_runs::threads) that the longest segment needs, with [`shared_bytes`] of
/// dynamic shared memory. `minus_one` is [`MINUS_ONE`](crate::warp::sort_lanes::MINUS_ONE).
#[kernel(
    u32 = <u32, ()> within (MOST_THREADS, 2),
    u64 = <u64, ()> within (MOST_THREADS, 1),
    u32v4 = <u32, u32> within (MOST_THREADS, 2),
    u32v8 = <u32, u64> within (MOST_THREADS, 2),
)]
pub unsafe fn sort_middle_segments<B: Bits, V: Word>(
    at: Elements<B, V>,
    which: WhichSegments,
    coding: Coding<B>,
    minus_one: u32,
) {
    const {
        assert!(
            size_of::<B>() == 4 || !has_values::<V>(),
            "a number has all bits of a key, or an index and as many as are left out fit beside it"
        )
    };
    let threads = thread::block_dim_x() as usize;
    // SAFETY: the launch has `shared_bytes`. Thread 0 alone writes the words of a segment, between barriers.
    let segment = unsafe {
        if const { has_values::<V>() } {
            Memory::<B, V>::at_start(threads).segment
        } else {
            KeyMemory::<B>::at_start(threads).segment
        }
    };
    if thread::thread_idx_x() == 0 {
        // SAFETY: this is thread 0, before its first call of `next`. The lists meet the requirements of
        // `MiddleSegments`.
        unsafe { segment.begin(which) };
    }
    loop {
        if thread::thread_idx_x() == 0 {
            // To keep the address of the list takes registers.
            let which = WhichSegments { list: recomputed(which.list), ..which };
            // SAFETY: this is thread 0. A barrier comes before, at the end of the sort, except for the first call, and
            // another one follows. This launch appends nothing.
            unsafe { segment.next(which) };
        }
        thread::sync_threads();
        if segment.len() == 0 {
            return;
        }
        // SAFETY: `segment` is the same for all threads, so that all threads of the block make one call, after a
        // barrier. No other block uses the segment. The launch has `shared_bytes`, and `at` has `which.n` elements.
        // Each sort ends with a barrier, before thread 0 writes the words of the next segment.
        unsafe {
            if const { has_values::<V>() } {
                let memory = Memory::<B, V>::at_start(threads);
                Sort { at, n: which.n, coding, memory }.sort(minus_one);
            } else {
                let keys = || GlobalMut::new(at.keys, which.n).slice(segment.start(), segment.len());
                sort_keys(keys, Swizzled::new(KeyMemory::<B>::at_start(threads).slots), coding, minus_one);
            }
        }
    }
}

/// Sorts `keys` in `slots`. Ends with a barrier.
///
/// # Safety
/// All threads of the block make this call, after a barrier. Nothing else uses the keys or the slots. Each thread has a
/// row of slots, and there is a slot for each key.
#[inline(always)]
unsafe fn sort_keys<B: Bits>(keys: impl Fn() -> GlobalMut<B>, slots: Swizzled<B>, coding: Coding<B>, minus_one: u32) {
    let end = || end_of_runs(keys().len());
    // The same for all lanes of a warp.
    if own_row() < end() {
        // SAFETY: `end()` is a multiple of `RUN`, so that the 32 lanes of the warp make the call. Their rows are one
        // run, which begins before the last key.
        unsafe { load_and_sort_run(&keys, slots, coding, minus_one) };
    }
    thread::sync_threads();
    // SAFETY: no branch surrounds the call, so that all threads of the block make it, after a barrier. Nothing else
    // uses the slots.
    unsafe { merge_runs(slots, end) };
    let (keys, mut i) = (keys(), recomputed(thread::thread_idx_x()));
    while i < keys.len() as u32 {
        keys.set(i as usize, coding.decode(slots.get(i)));
        i += thread::block_dim_x();
    }
    thread::sync_threads();
}

/// Loads and sorts the run of this thread's row.
///
/// # Safety
/// All lanes of a warp make this call. The run has at least one key. Nothing else uses the keys and slots of its rows.
#[inline(always)]
unsafe fn load_and_sort_run<B: Bits>(
    keys: &impl Fn() -> GlobalMut<B>,
    slots: Swizzled<B>,
    coding: Coding<B>,
    minus_one: u32,
) {
    let (from, lane, own) = (keys(), warp::lane_id(), own_row());
    let first = own - lane * LANE_KEYS as u32;
    let left = from.len() as u32 - first;
    for i in 0..LANE_KEYS as u32 {
        let at = first + i * WARP_SIZE + lane;
        if left >= RUN || i * WARP_SIZE + lane < left {
            slots.copy_async_mut(at, from, at as usize);
        }
    }
    shared::wait_for_copies();
    // SAFETY: no branch surrounds the call, so that the 32 lanes of the warp make it.
    unsafe { sync_warp(FULL_MASK) };
    let own_len = (from.len() as u32).saturating_sub(own);
    let other = coding.decode(B::MAX);
    let mut row = if left >= RUN { slots.row(own) } else { slots.part_of_row(own, own_len, other) };
    coding.encode_all(&mut row);
    // SAFETY: no branch surrounds the call, so that the 32 lanes of the warp make it. Nothing else uses the slots of
    // their rows, as the caller ensures.
    unsafe { sort_run(row, left, slots, || end_of_runs(keys().len()), minus_one) };
}
