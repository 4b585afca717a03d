//! Segments of more than 1024 keys alone that one block holds: each by [runs](super::middle_runs) of 1024 that a warp
//! sorts in registers, and merges of them.
//!
//! The last run has the greatest keys behind its own, up to whole runs of 1024.

use super::middle::MiddleSegments;
use super::middle_runs::{MOST_THREADS, RUN, SegmentWords, end_of_runs, merge_runs, own_row, sort_run};
use crate::block::shared_memory::shared_memory;
use crate::block::swizzled::Swizzled;
use crate::key::{Bits, Coding};
use crate::warp::sort_lanes::LANE_KEYS;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, sync_warp};
use cuda_std::{recomputed, shared};

shared_memory! {
    /// Shared memory of a block of `threads` threads.
    struct Memory<B: Word>(threads: usize) {
        slots: [B; LANE_KEYS * threads],
        segment: SegmentWords {},
    }
}

/// Bytes of dynamic shared memory for blocks of `threads` threads, for keys of `key_bytes` bytes.
pub const fn shared_bytes(key_bytes: usize, threads: usize) -> u32 {
    if key_bytes == 4 { Memory::<u32>::bytes(threads) } else { Memory::<u64>::bytes(threads) }
}

/// Kernel: sorts each segment of `class` that `middle` lists; or, if `length` is not 0, each segment of `length` keys,
/// of which the last one may have fewer. Blocks take one after the other. Keys of an odd level are in `scratch` before.
///
/// # Safety
/// There are `n` keys, in global memory, and as many in `scratch` if there are segments of odd levels, which do not
/// overlap, and `middle` is what [`MiddleSegments`] says, after all launches that list segments. Blocks have as many
/// [`threads`](super::middle_runs::threads) as the longest segment asks for, or more, and [`shared_bytes`] of dynamic
/// shared memory. `minus_one` is [`MINUS_ONE`](crate::warp::sort_lanes::MINUS_ONE).
#[kernel(
    u32 = <u32> within (MOST_THREADS, 2),
    u64 = <u64> within (MOST_THREADS, 1),
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn sort_middle_segments<B: Bits>(
    keys: *mut B,
    scratch: *mut B,
    n: usize,
    length: u32,
    middle: MiddleSegments,
    class: u32,
    coding: Coding<B>,
    minus_one: u32,
) {
    // SAFETY: the launch has `shared_bytes`. Thread 0 alone writes the words of a segment, between barriers; those for
    // the slots are where `sort` says.
    let Memory { slots, segment } = unsafe { Memory::<B>::at_start(thread::block_dim_x() as usize) };
    if thread::thread_idx_x() == 0 {
        // SAFETY: the caller promises the lists.
        unsafe { segment.begin(length, middle, class) };
    }
    loop {
        if thread::thread_idx_x() == 0 {
            // SAFETY: the caller promises the lists. A barrier comes before, but for the first time, and one behind.
            unsafe { segment.next(n, length, middle, class) };
        }
        thread::sync_threads();
        if segment.len() == 0 {
            return;
        }
        let level = segment.level();
        // SAFETY: the caller promises the keys, of which a segment is used by one block.
        let part = |keys: *mut B| unsafe { GlobalMut::new(keys, n) }.slice(segment.start(), segment.len());
        let from = if level % 2 == 0 { keys } else { scratch };
        let encode = if level == 0 { coding } else { Coding::NONE };
        // SAFETY: all threads of the block are here, with the same segment. Its last barrier comes before the next
        // one's words.
        unsafe { sort(|| part(from), || part(keys), Swizzled::new(slots), (encode, coding), minus_one) };
    }
}

/// Sorts the keys of `from`, in `slots`, to `to`, which has as many and may be the same. Ends with a barrier.
///
/// # Safety
/// All threads of the block make this call, after a barrier, and nothing else uses the keys and the slots, of which
/// each thread has a row. There are as many as keys or more.
#[inline(always)]
unsafe fn sort<B: Bits>(
    from: impl Fn() -> GlobalMut<B>,
    to: impl Fn() -> GlobalMut<B>,
    slots: Swizzled<B>,
    (encode, decode): (Coding<B>, Coding<B>),
    minus_one: u32,
) {
    let end = || end_of_runs(to().len());
    // The same for all lanes of a warp.
    if own_row() < end() {
        // SAFETY: all lanes of the warp are here, which have the rows of a run, and there is a key at least.
        unsafe { load_and_sort_run(&from, slots, encode, minus_one) };
    }
    thread::sync_threads();
    // SAFETY: all threads of the block are here, after a barrier.
    unsafe { merge_runs(slots, end) };
    let (keys, mut i) = (to(), recomputed(thread::thread_idx_x()));
    while i < keys.len() as u32 {
        keys.set(i as usize, decode.decode(slots.get(i)));
        i += thread::block_dim_x();
    }
    thread::sync_threads();
}

/// Sorts the run that this thread's row is of.
///
/// # Safety
/// All lanes of a warp make this call. Nothing else uses the keys and slots of their rows.
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
    // SAFETY: all lanes are here, for the other call, too.
    unsafe { sync_warp(FULL_MASK) };
    let own_len = (from.len() as u32).saturating_sub(own);
    let other = coding.decode(B::MAX);
    let mut row = if left >= RUN { slots.row(own) } else { slots.part_of_row(own, own_len, other) };
    coding.encode_all(&mut row);
    // SAFETY: as above.
    unsafe { sort_run(row, left, slots, || end_of_runs(keys().len()), minus_one) };
}
