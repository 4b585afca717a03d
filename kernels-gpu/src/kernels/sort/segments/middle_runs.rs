//! Common parts of the sorts of middle segments: the assignment of segments to blocks, the runs that warps sort, and
//! the merges of these runs by a block.
//!
//! ```text
//!   registers   │ 32 keys of a lane, 1024 of a warp │ 1024 │ 1024 │ 1024 │     sorted across lanes
//!   shared      │ run 0 →                 ← run 1 │ run 2 →    ← run 3 │     every other run descends
//!   shared      │ run 0 →                                  ← run 1     │     merged in pairs, 32 keys a thread
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

/// Upper limit on the keys of a segment. Longer ones are divided.
pub const MAX_MIDDLE: usize = 9 * RUN as usize;

/// Threads of a block for segments of up to `keys` keys: 32 for each run.
pub const fn threads(keys: usize) -> usize {
    keys.div_ceil(RUN as usize) * WARP_SIZE as usize
}

/// Upper limit on the threads of a block.
pub const MOST_THREADS: usize = threads(MAX_MIDDLE);

/// The segments of an array that a launch sorts.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct WhichSegments {
    /// Keys of the array.
    pub n: usize,
    /// Length of all segments, if they have one length; the last segment may be shorter. Otherwise 0, and the segments
    /// are listed.
    pub length: u32,
    /// Number of the list in `middle`.
    pub list: u32,
    /// The lists.
    pub middle: MiddleSegments,
}

shared_memory! {
    /// The segment of a block. Threads read these words again and again instead of keeping them in registers.
    pub(super) struct SegmentWords() {
        /// The number of the next segment; the first key and the number of keys of the current one; and the number of
        /// segments in the list.
        words: [u64; SEGMENT_WORDS],
        /// The entry of the next segment, whose load is in flight.
        entry: [u32; ENTRY_WORDS],
    }
}

const SEGMENT_WORDS: u32 = 4;
const NUMBER: u32 = 0;
const START: u32 = 1;
const LEN: u32 = 2;
const COUNT: u32 = 3;

impl SegmentWords {
    /// Begins before the first segment of a block. [`next`](Self::next) then has the same argument.
    ///
    /// # Safety
    /// Thread 0 makes this call, before its first call of [`next`](Self::next). The lists meet the requirements of
    /// [`MiddleSegments`], and nothing is appended to the list `which.list` any more.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn begin(self, which: WhichSegments) {
        if which.length == 0 {
            // SAFETY: the caller ensures the requirements of `MiddleSegments`.
            self.words.set(COUNT, unsafe { which.middle.open() }.count(which.list as usize) as u64);
        }
        // SAFETY: this is thread 0, as the caller ensures, with the same lists.
        unsafe { self.fetch(thread::block_idx_x() as u64, which) };
    }

    /// Makes segment `i` the next one, and starts the load of its entry, if there is one.
    ///
    /// # Safety
    /// Thread 0 makes this call. The lists meet the requirements of [`MiddleSegments`], and nothing is appended to the
    /// list `list` any more.
    #[inline(always)]
    #[track_caller]
    unsafe fn fetch(self, i: u64, WhichSegments { length, list, middle, .. }: WhichSegments) {
        self.words.set(NUMBER, i);
        if length == 0 && i < self.words.get(COUNT) {
            // SAFETY: the caller ensures the requirements of `MiddleSegments`.
            unsafe { middle.open() }.fetch(self.entry, list as usize, i as usize);
        }
    }

    /// Makes the next segment the current one. It has no keys if there are no more segments.
    ///
    /// # Safety
    /// Thread 0 makes this call, between two barriers. The lists meet the requirements of [`MiddleSegments`], and
    /// nothing is appended to the list `which.list` any more.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn next(self, which: WhichSegments) {
        let (n, length, i) = (which.n, which.length, self.words.get(NUMBER));
        let Listed { start, len } = if length > 0 {
            let start = (i as usize * length as usize).min(n);
            Listed { start, len: (length as usize).min(n - start) as u32 }
        } else if i < self.words.get(COUNT) {
            shared::wait_for_copies();
            Listed::of_entry(self.entry)
        } else {
            Listed { start: 0, len: 0 }
        };
        // SAFETY: this is thread 0, as the caller ensures, with the same lists. The entry that the load overwrites has
        // been read.
        unsafe { self.fetch(i + thread::grid_dim_x() as u64, which) };
        self.words.set(START, start as u64);
        self.words.set(LEN, len as u64);
    }

    /// The first key.
    #[inline(always)]
    #[track_caller]
    pub fn start(self) -> usize {
        self.words.get(START) as usize
    }

    /// Number of keys.
    #[inline(always)]
    #[track_caller]
    pub fn len(self) -> usize {
        self.words.get(LEN) as usize
    }

    /// The segment as an entry of a list.
    #[inline(always)]
    #[track_caller]
    pub fn listed(self) -> Listed {
        Listed { start: self.start(), len: self.len() as u32 }
    }
}

/// Number of the first key of this thread's row.
#[inline(always)]
pub(super) fn own_row() -> u32 {
    recomputed(thread::thread_idx_x()) * LANE_KEYS as u32
}

/// End of the last run of `len` keys.
#[inline(always)]
pub(super) fn end_of_runs(len: usize) -> u32 {
    (len as u32).next_multiple_of(RUN)
}

/// Sorts the run of this thread's row. `left` is the number of keys of the segment from the run's first key on. Stores
/// the run in `slots`, where the last run ends at `end`.
///
/// # Safety
/// All lanes of a warp make this call, and `left` is the same for all. Nothing else uses the slots of their rows.
#[inline(always)]
#[track_caller]
pub(super) unsafe fn sort_run<T: Bits>(
    mut row: [T; LANE_KEYS],
    left: u32,
    slots: Swizzled<T>,
    end: impl Fn() -> u32,
    minus_one: u32,
) {
    // Lanes with only the greatest keys are groups of their own.
    let (lane, lanes) = (warp::lane_id(), left.div_ceil(LANE_KEYS as u32).min(WARP_SIZE));
    let group = if lane < lanes { Group { first: 0, lanes } } else { Group { first: lane, lanes: 1 } };
    // SAFETY: no branch separates the lanes, so that the 32 lanes of the warp make both calls. Lanes below `lanes` have
    // the group of lanes `0 .. lanes`, and `lanes` is at most 32. Each other lane is a group of its own.
    unsafe {
        sort_lanes(&mut row, group, minus_one);
        sync_warp(FULL_MASK);
    }
    put(&row, RUN, end(), slots);
}

/// Merges the runs in `slots`, which end at `end`, until one run is left. Ends with a barrier.
///
/// # Safety
/// All threads of the block make this call, after a barrier. Nothing else uses the slots, and each thread has a row.
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

/// Stores this thread's row of runs of `run` keys, of which the last one ends at `end`. Every other run descends.
#[inline(always)]
#[track_caller]
fn put<T: Bits>(row: &[T; LANE_KEYS], run: u32, end: u32, slots: Swizzled<T>) {
    let own = own_row();
    let downwards = own & run != 0;
    let begin = own & !(run - 1);
    let from_end = begin + (begin + run).min(end) - own - LANE_KEYS as u32;
    slots.set_row(if downwards { from_end } else { own }, downwards, row);
}
