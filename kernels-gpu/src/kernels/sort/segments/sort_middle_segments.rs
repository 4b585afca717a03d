//! Segments of more than 1024 keys that one block holds: each by runs of 1024 that a warp sorts in registers, and merges of them.
//!
//! ```text
//!   registers   │ 32 keys of a lane, 1024 of a warp │ 1024 │ 1024 │ 1024 │     sorted across lanes
//!   shared      │ run 0 →                 ← run 1 │ run 2 →    ← run 3 │     every other one downwards
//!   shared      │ run 0 →                                  ← run 1     │     each two are merged, a row of 32 keys by a thread
//!   global      │ segment                                              │
//! ```
//!
//! The last run has the greatest keys behind its own, up to whole runs of 1024. Keys of 4 bytes with values are sorted with their indices, by which values are
//! moved in the end.

use super::middle::{Listed, MiddleSegments};
use super::tagged_key::TaggedKey;
use crate::block::shared_memory::shared_memory;
use crate::block::swizzled::{ROW_KEYS, Swizzled};
use crate::block::tile::{Slots, merge_to_registers};
use crate::kernels::sort::elements::{Arrays, Elements, has_values};
use crate::key::{Bits, Coding};
use crate::warp::sort_lanes::{Group, LANE_KEYS, sort_lanes};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, sync_warp};
use cuda_std::{recomputed, shared};

const _: () = assert!(ROW_KEYS == LANE_KEYS, "a lane sorts a row");

/// Keys of a run that a warp sorts.
const RUN: u32 = WARP_SIZE * LANE_KEYS as u32;

/// The most keys of a segment: some more than 8192, since digits that divide keys evenly have about a power of two.
pub const MAX_MIDDLE: usize = 9 * RUN as usize;

/// Threads of a block for segments of up to `keys` keys: of whole runs.
pub const fn threads(keys: usize) -> usize {
    keys.div_ceil(RUN as usize) * WARP_SIZE as usize
}

/// The most threads of a block.
const MOST_THREADS: usize = threads(MAX_MIDDLE);

shared_memory! {
    /// Shared memory of a block of `threads` threads.
    struct Memory<B: Word>(threads: usize) {
        slots: [B; LANE_KEYS * threads],
        /// Which part of the keys the segment is.
        segment: [u64; SEGMENT_WORDS],
    }
}

/// The words of a segment: its number, its first key, how many it has, and its level. Each thread reads them again and again instead of keeping them in
/// registers.
const SEGMENT_WORDS: u32 = 4;
const NUMBER: u32 = 0;
const START: u32 = 1;
const LEN: u32 = 2;
const LEVEL: u32 = 3;

/// Bytes of dynamic shared memory for blocks of `threads` threads, for keys of `key_bytes` bytes with values of `value_bytes` bytes or 0.
pub const fn shared_bytes(key_bytes: usize, value_bytes: usize, threads: usize) -> u32 {
    if key_bytes == 4 && value_bytes == 0 { Memory::<u32>::bytes(threads) } else { Memory::<u64>::bytes(threads) }
}

/// Kernel: sorts each segment of `class` that `middle` lists, with its values; or, if `length` is not 0, each segment of `length` keys, of which the last one
/// may have fewer. Stable. Blocks take one after the other. Those of an odd level are in `scratch` before.
///
/// # Safety
/// `at` has `n` elements, in global memory, as has `scratch` if there are segments of odd levels, which do not overlap, and `middle` is what [`MiddleSegments`]
/// says, after all launches that list segments. Blocks have as many [`threads`] as the longest segment asks for, or more, and [`shared_bytes`] of dynamic
/// shared memory. `minus_one` is [`MINUS_ONE`](crate::warp::sort_lanes::MINUS_ONE).
#[kernel(
    u32 = <u32, u32, ()> within (MOST_THREADS, 2),
    u64 = <u64, u64, ()> within (MOST_THREADS, 1),
    u32v4 = <u32, u64, u32> within (MOST_THREADS, 1),
    u32v8 = <u32, u64, u64> within (MOST_THREADS, 1),
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn sort_middle_segments<B: Bits, T: TaggedKey<B>, V: Word>(
    at: Elements<B, V>,
    scratch: Elements<B, V>,
    n: usize,
    length: u32,
    middle: MiddleSegments,
    class: u32,
    coding: Coding<B>,
    minus_one: u32,
) {
    // SAFETY: the launch has `shared_bytes`. Thread 0 alone writes the words of a segment, between barriers; those for the slots are where `sort` says.
    let Memory { slots, segment } = unsafe { Memory::<T>::at_start(thread::block_dim_x() as usize) };
    if thread::thread_idx_x() == 0 {
        segment.set(NUMBER, thread::block_idx_x() as u64);
    }
    loop {
        if thread::thread_idx_x() == 0 {
            // SAFETY: the caller promises the lists.
            let middle = unsafe { middle.open() };
            let i = segment.get(NUMBER) as usize;
            let Listed { start, len, level } = if length > 0 {
                let start = (i * length as usize).min(n);
                Listed { start, len: (length as usize).min(n - start) as u32, level: 0 }
            } else if i < middle.count(class as usize) {
                middle.get(class as usize, i)
            } else {
                Listed { start: 0, len: 0, level: 0 }
            };
            segment.set(NUMBER, (i + thread::grid_dim_x() as usize) as u64);
            segment.set(START, start as u64);
            segment.set(LEN, len as u64);
            segment.set(LEVEL, level as u64);
        }
        thread::sync_threads();
        if segment.get(LEN) == 0 {
            return;
        }
        let level = segment.get(LEVEL);
        let part = |side: Elements<B, V>| {
            // SAFETY: the caller promises the elements, of which a segment is used by one block.
            let all = unsafe { side.arrays(n) };
            all.slice(segment.get(START) as usize, segment.get(LEN) as usize)
        };
        let from = if level % 2 == 0 { at } else { scratch };
        let encode = if level == 0 { coding } else { Coding::NONE };
        // SAFETY: all threads of the block are here, with the same segment. Its last barrier comes before the next one's words.
        unsafe {
            let slots = Swizzled::<T>::new(slots);
            sort(|| part(from), || part(at), slots, (encode, coding), minus_one);
        }
    }
}

/// The number of the first key of this thread's row.
#[inline(always)]
fn own_row() -> u32 {
    recomputed(thread::thread_idx_x()) * LANE_KEYS as u32
}

/// Where the last run of `len` keys ends.
#[inline(always)]
fn end_of_runs(len: usize) -> u32 {
    (len as u32).next_multiple_of(RUN)
}

/// Sorts the keys of `from`, in `slots`, to `to`, which has as many and may be the same, and moves the values there. Ends with a barrier.
///
/// # Safety
/// All threads of the block make this call, after a barrier, and nothing else uses the keys and the slots, of which each thread has a row. There are as
/// many as keys or more.
#[inline(always)]
unsafe fn sort<B: Bits, T: TaggedKey<B>, V: Word>(
    from: impl Fn() -> Arrays<B, V>,
    to: impl Fn() -> Arrays<B, V>,
    slots: Swizzled<T>,
    (encode, decode): (Coding<B>, Coding<B>),
    minus_one: u32,
) {
    let end = || end_of_runs(to().keys.len());
    // The same for all lanes of a warp, here and below.
    if own_row() < end() {
        // SAFETY: all lanes of the warp are here, which have the rows of a run, and there is a key at least.
        unsafe { sort_run::<B, T>(&|| from().keys, slots, encode, minus_one) };
    }
    thread::sync_threads();
    let mut run = RUN;
    while run < end() {
        let mut merged = [T::MAX; LANE_KEYS];
        let (own, end) = (own_row(), end());
        if own < end {
            let begin = own & !(2 * run - 1);
            let both = (end - begin).min(2 * run);
            merged = merge_to_registers(slots.part(begin, both), run.min(both), own - begin);
        }
        thread::sync_threads();
        run *= 2;
        if own_row() < end {
            put(&merged, run, end, slots);
        }
        thread::sync_threads();
    }
    let (Arrays { keys, values: to_values }, first) = (to(), recomputed(thread::thread_idx_x()));
    let mut i = first;
    while i < keys.len() as u32 {
        keys.set(i as usize, decode.decode(slots.get(i).key()));
        i += thread::block_dim_x();
    }
    if const { has_values::<V>() } {
        // All are read before any is written.
        let values = from().values;
        let mut moved = [V::from_register(0); LANE_KEYS];
        let at = |i: usize| first + i as u32 * thread::block_dim_x();
        for i in 0..LANE_KEYS {
            if at(i) < keys.len() as u32 {
                moved[i] = values.get(slots.get(at(i)).index() as usize);
            }
        }
        thread::sync_threads();
        for i in 0..LANE_KEYS {
            if at(i) < keys.len() as u32 {
                to_values.set(at(i) as usize, moved[i]);
            }
        }
    }
    thread::sync_threads();
}

/// Sorts the run that this thread's row is of.
///
/// # Safety
/// All lanes of a warp make this call. Nothing else uses the keys and slots of their rows.
#[inline(always)]
unsafe fn sort_run<B: Bits, T: TaggedKey<B>>(
    keys: &impl Fn() -> GlobalMut<B>,
    slots: Swizzled<T>,
    coding: Coding<B>,
    minus_one: u32,
) {
    let (from, lane) = (keys(), warp::lane_id());
    let first = own_row() - lane * LANE_KEYS as u32;
    let left = from.len() as u32 - first;
    let (is_here, own) = (|i: u32| left >= RUN || i * WARP_SIZE + lane < left, own_row());
    let at = |i: u32| first + i * WARP_SIZE + lane;
    let own_len = (from.len() as u32).saturating_sub(own);
    let mut row;
    if let Some(from) = T::alone(from) {
        for i in 0..LANE_KEYS as u32 {
            if is_here(i) {
                slots.copy_async_mut(at(i), from, at(i) as usize);
            }
        }
        shared::wait_for_copies();
        // SAFETY: all lanes are here, for the other calls, too.
        unsafe { sync_warp(FULL_MASK) };
        let other = T::new(coding.decode(B::MAX), 0);
        row = if left >= RUN { slots.row(own) } else { slots.part_of_row(own, own_len, other) };
        if coding != Coding::NONE {
            for key in row.iter_mut() {
                *key = T::new(coding.encode(key.key()), 0);
            }
        }
    } else {
        let mut held = [B::MAX; LANE_KEYS];
        for i in 0..LANE_KEYS as u32 {
            if is_here(i) {
                held[i as usize] = from.get(at(i) as usize);
            }
        }
        coding.encode_all(&mut held);
        for i in 0..LANE_KEYS as u32 {
            slots.set(at(i), T::new(held[i as usize], at(i)));
        }
        // SAFETY: as above.
        unsafe { sync_warp(FULL_MASK) };
        row = slots.part_of_row(own, own_len, T::MAX);
    }
    // Lanes that have nothing but the greatest keys are groups of their own.
    let (lane, lanes) = (warp::lane_id(), left.div_ceil(LANE_KEYS as u32).min(WARP_SIZE));
    let group = if lane < lanes { Group { first: 0, lanes } } else { Group { first: lane, lanes: 1 } };
    // SAFETY: as above; lanes of a group have the same one.
    unsafe {
        sort_lanes(&mut row, group, minus_one);
        sync_warp(FULL_MASK);
    }
    put(&row, RUN, end_of_runs(keys().len()), slots);
}

/// Stores this thread's row of runs of `run` keys, of which the last one ends at `end`: every other run downwards.
#[inline(always)]
#[track_caller]
fn put<T: Bits>(row: &[T; LANE_KEYS], run: u32, end: u32, slots: Swizzled<T>) {
    let own = own_row();
    let downwards = own & run != 0;
    let begin = own & !(run - 1);
    let from_end = begin + (begin + run).min(end) - own - LANE_KEYS as u32;
    slots.set_row(if downwards { from_end } else { own }, downwards, row);
}
