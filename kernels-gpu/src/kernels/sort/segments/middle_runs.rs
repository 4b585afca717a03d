//! What sorts of middle segments have in common: which segment a block sorts, and the runs that its warps sort and it
//! merges.
//!
//! ```text
//!   registers   │ 32 keys of a lane, 1024 of a warp │ 1024 │ 1024 │ 1024 │     sorted across lanes
//!   shared      │ run 0 →                 ← run 1 │ run 2 →    ← run 3 │     every other one downwards
//!   shared      │ run 0 →                                  ← run 1     │     each two are merged, a row of 32 keys by a thread
//! ```

use super::middle::{ENTRY_WORDS, Listed, MiddleSegments};
use crate::block::shared_memory::shared_memory;
use crate::block::swizzled::{ROW_KEYS, Swizzled};
use crate::block::tile::{Slots, merge_to_registers};
use crate::key::Bits;
use crate::warp::sort_lanes::{Group, LANE_KEYS, sort_lanes};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, sync_warp};
use cuda_std::{recomputed, shared};

const _: () = assert!(ROW_KEYS == LANE_KEYS, "a lane sorts a row");

/// Keys of a run that a warp sorts.
pub(super) const RUN: u32 = WARP_SIZE * LANE_KEYS as u32;

/// The most keys of a segment: some more than 8192, since digits that divide keys evenly have about a power of two.
pub const MAX_MIDDLE: usize = 9 * RUN as usize;

/// Threads of a block for segments of up to `keys` keys: of whole runs.
pub const fn threads(keys: usize) -> usize {
    keys.div_ceil(RUN as usize) * WARP_SIZE as usize
}

/// The most threads of a block.
pub const MOST_THREADS: usize = threads(MAX_MIDDLE);

/// Which segments of an array a launch sorts.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct WhichSegments {
    /// Keys of the array.
    pub n: usize,
    /// The length of all segments, of which the last one may have fewer keys; or 0 for those of a list.
    pub length: u32,
    /// The list of `middle`.
    pub list: u32,
    /// The lists.
    pub middle: MiddleSegments,
}

shared_memory! {
    /// Which part of the keys the segment of a block is. Each thread reads this again and again instead of keeping it
    /// in registers.
    pub(super) struct SegmentWords() {
        /// The number of the next one, its own first key, how many it has, and its level; and how many segments the
        /// list has.
        words: [u64; SEGMENT_WORDS],
        /// The entry of the next one, which is on its way.
        entry: [u32; ENTRY_WORDS],
    }
}

const SEGMENT_WORDS: u32 = 5;
const NUMBER: u32 = 0;
const START: u32 = 1;
const LEN: u32 = 2;
const LEVEL: u32 = 3;
const COUNT: u32 = 4;

impl SegmentWords {
    /// Begins before the first segment of a block, of those that [`next`](Self::next) is told of.
    ///
    /// # Safety
    /// As for the first call of that, before which thread 0 makes this one.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn begin(self, which: WhichSegments) {
        if which.length == 0 {
            // SAFETY: the caller promises the lists.
            self.words.set(COUNT, unsafe { which.middle.open() }.count(which.list as usize) as u64);
        }
        // SAFETY: the caller's promise.
        unsafe { self.fetch(thread::block_idx_x() as u64, which) };
    }

    /// Makes segment `i` the next one, and brings its entry on its way, if there is one.
    ///
    /// # Safety
    /// As for [`next`](Self::next).
    #[inline(always)]
    #[track_caller]
    unsafe fn fetch(self, i: u64, WhichSegments { length, list, middle, .. }: WhichSegments) {
        self.words.set(NUMBER, i);
        if length == 0 && i < self.words.get(COUNT) {
            // SAFETY: the caller promises the lists.
            unsafe { middle.open() }.fetch(self.entry, list as usize, i as usize);
        }
    }

    /// Makes the segment the next one of the block. It has no keys if there are no more.
    ///
    /// # Safety
    /// The lists are what [`MiddleSegments`] says, and nothing is appended to this one any more. Thread 0 makes this
    /// call, between two barriers.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn next(self, which: WhichSegments) {
        let (n, length, i) = (which.n, which.length, self.words.get(NUMBER));
        let Listed { start, len, level } = if length > 0 {
            let start = (i as usize * length as usize).min(n);
            Listed { start, len: (length as usize).min(n - start) as u32, level: 0 }
        } else if i < self.words.get(COUNT) {
            shared::wait_for_copies();
            Listed::of_entry(self.entry)
        } else {
            Listed { start: 0, len: 0, level: 0 }
        };
        // SAFETY: the caller's promise. The entry has been read.
        unsafe { self.fetch(i + thread::grid_dim_x() as u64, which) };
        self.words.set(START, start as u64);
        self.words.set(LEN, len as u64);
        self.words.set(LEVEL, level as u64);
    }

    /// The first key.
    #[inline(always)]
    #[track_caller]
    pub fn start(self) -> usize {
        self.words.get(START) as usize
    }

    /// How many keys there are.
    #[inline(always)]
    #[track_caller]
    pub fn len(self) -> usize {
        self.words.get(LEN) as usize
    }

    /// By how many digits it has been divided.
    #[inline(always)]
    #[track_caller]
    pub fn level(self) -> u64 {
        self.words.get(LEVEL)
    }

    /// The segment as lists have it.
    #[inline(always)]
    #[track_caller]
    pub fn listed(self) -> Listed {
        Listed { start: self.start(), len: self.len() as u32, level: self.level() as u32 }
    }
}

/// The number of the first key of this thread's row.
#[inline(always)]
pub(super) fn own_row() -> u32 {
    recomputed(thread::thread_idx_x()) * LANE_KEYS as u32
}

/// Where the last run of `len` keys ends.
#[inline(always)]
pub(super) fn end_of_runs(len: usize) -> u32 {
    (len as u32).next_multiple_of(RUN)
}

/// Sorts the run that this thread's row is of, of a segment of which `left` keys are from the first one of the run on.
/// Stores it in `slots`, where the last run ends at `end`.
///
/// # Safety
/// All lanes of a warp make this call. Nothing else uses the slots of their rows.
#[inline(always)]
#[track_caller]
pub(super) unsafe fn sort_run<T: Bits>(
    mut row: [T; LANE_KEYS],
    left: u32,
    slots: Swizzled<T>,
    end: impl Fn() -> u32,
    minus_one: u32,
) {
    // Lanes that have nothing but the greatest keys are groups of their own.
    let (lane, lanes) = (warp::lane_id(), left.div_ceil(LANE_KEYS as u32).min(WARP_SIZE));
    let group = if lane < lanes { Group { first: 0, lanes } } else { Group { first: lane, lanes: 1 } };
    // SAFETY: all lanes are here; those of a group have the same one.
    unsafe {
        sort_lanes(&mut row, group, minus_one);
        sync_warp(FULL_MASK);
    }
    put(&row, RUN, end(), slots);
}

/// Merges the runs in `slots`, which end at `end`, until one is left. Ends with a barrier.
///
/// # Safety
/// All threads of the block make this call, after a barrier, and nothing else uses the slots, of which each thread has
/// a row.
#[inline(always)]
#[track_caller]
pub(super) unsafe fn merge_runs<T: Bits>(slots: Swizzled<T>, end: impl Fn() -> u32) {
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
