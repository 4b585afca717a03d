//! Layout of the segments of a tile in shared memory.
//!
//! ```text
//!   segments   0 ░░░   1 ░░   2 ░░░░   3 ░░         one of each run that has keys in the tile
//!   slots      │░░░→  ←░░│░░░░→    ←░░│             two by two, with their ends together
//!              └ begin   └ begin      └ end         multiples of VT: a pair takes a whole number of threads
//! ```
//!
//! If two segments do not fill their slots, the greatest key fills the rest and merges to the end.

use crate::block::scan::sum_up_to;
use crate::block::shared_memory::shared_memory;
use crate::kernels::sort::runs::{Division, MAX_RUNS, TileOfRuns};
use crate::key::Bits;
use crate::keys::Keys;
use crate::warp::multiway_co_rank::{Range, multiway_co_rank, sum};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

const _: () = assert!(MAX_RUNS == WARP_SIZE, "a lane has a run");

shared_memory! {
    /// Layout of the segments of a tile in shared memory. Empty segments are left out. If all keys of a tile come from
    /// one run, the tile needs no rounds and is copied.
    ///
    /// The first two warps write the layout in [`divide`](Self::divide), and a barrier comes before other warps read
    /// it.
    pub struct Plan() {
        /// Start of each segment in the array.
        starts: [usize; MAX_RUNS],
        pub(super) lengths: [u32; MAX_RUNS],
        /// Slot of each segment's first key. Of two siblings, the first ascends from its first slot, and the second
        /// descends from its last.
        pub(super) first_slots: [u32; MAX_RUNS],
        /// Number of keys of the segments before.
        pub(in crate::kernels::sort) before: [u32; MAX_RUNS],
        /// First slot of each pair, and the end.
        pub(super) siblings: [u32; MAX_RUNS / 2 + 1],
        pub(super) segments: [u32; 1],
        keys: [u32; 1],
        /// Start of the tile, in two words.
        begin: [u32; 2],
    }
}

impl Plan {
    /// Lays out the segments in pairs of whole multiples of `items_per_thread` slots. This lane's segment begins at
    /// `start` in the array and has `length` keys.
    ///
    /// # Safety
    /// The lanes of one whole warp make this call.
    #[inline(always)]
    unsafe fn lay_out(self, start: usize, length: u32, items_per_thread: u32) {
        let lane = warp::lane_id();
        // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make this call. No branch surrounds the votes,
        // shuffles and sums below.
        let present = unsafe { warp::ballot(FULL_MASK, length > 0) };
        if length > 0 {
            let segment = (present & ((1 << lane) - 1)).count_ones();
            self.starts.set(segment, start);
            self.lengths.set(segment, length);
        }
        let segments = present.count_ones();
        if lane >= segments {
            self.lengths.set(lane, 0);
        }
        // SAFETY: the 32 lanes of the warp make the call, outside any branch. It separates the writes of lengths from
        // the reads.
        unsafe { warp::sync_warp(FULL_MASK) };
        let length = self.lengths.get(lane);
        // SAFETY: the 32 lanes of the warp make the call, outside any branch. Lane `lane ^ 1` is one of the 32.
        let both = length + unsafe { warp::shuffle_xor(FULL_MASK, length, 1) };
        let slots = both.div_ceil(items_per_thread) * items_per_thread;
        // Each pair is counted at its first lane. SAFETY: the 32 lanes of the warp make both calls, outside any branch.
        let (end, sum) = unsafe { (sum_up_to(if lane.is_multiple_of(2) { slots } else { 0 }), sum_up_to(length)) };
        self.before.set(lane, sum - length);
        let begin = end - slots;
        self.first_slots.set(lane, if lane.is_multiple_of(2) { begin } else { end.wrapping_sub(1) });
        if lane.is_multiple_of(2) {
            self.siblings.set(lane / 2, begin);
        }
        if lane == WARP_SIZE - 1 {
            self.siblings.set(MAX_RUNS / 2, end);
            self.segments.set(0, segments);
            self.keys.set(0, sum);
        }
    }

    /// Divides the group's runs for `tile`, which is tile `t`, at its splits and the next tile's splits. If `splits` is
    /// empty, two warps search these splits now. Ends with a barrier.
    ///
    /// # Safety
    /// All threads of the block make this call, two warps or more. `splits` is empty, or
    /// [`split_runs`](super::split_runs::split_runs) has written it.
    #[inline(always)]
    pub(in crate::kernels::sort) unsafe fn divide<B: Bits, D: Division>(
        self,
        runs: D,
        t: usize,
        tile: TileOfRuns,
        from: Keys<B>,
        splits: Global<u32>,
        items_per_thread: u32,
    ) {
        let (thread, k) = (thread::thread_idx_x(), runs.k() as usize);
        let lane = thread % WARP_SIZE;
        let (mut begin, mut split) = (0, 0);
        if thread < 2 * WARP_SIZE {
            // The first warp has the splits at the tile's start, and the second the splits at its end.
            let at_end = thread >= WARP_SIZE;
            let (start, length) = runs.extent_of(tile, lane);
            let count = (tile.length - tile.rank).min(runs.tile_keys() as usize);
            let rank = tile.rank + if at_end { count } else { 0 };
            split = if rank == 0 { 0 } else { length };
            if rank > 0 && rank < tile.length {
                if splits.is_empty() {
                    let run = from.slice(start, length as usize);
                    // SAFETY: `rank` is the same for all lanes of a warp, so that the 32 lanes make the call.
                    split = unsafe {
                        multiway_co_rank(Range { run, low: 0, high: length }, rank as u64, runs.rank_tolerance())
                    };
                } else if lane < runs.k() {
                    split = splits.get((t + (thread / WARP_SIZE) as usize) * k + lane as usize);
                }
            }
            begin = start;
            if at_end {
                self.first_slots.set(lane, split);
            } else {
                // SAFETY: `at_end` is false for the first warp, so that its 32 lanes make the call.
                let begin = tile.group as u64 + unsafe { sum(split) };
                if lane == 0 {
                    self.begin.set(0, begin as u32);
                    self.begin.set(1, (begin >> 32) as u32);
                }
            }
        }
        thread::sync_threads();
        if thread < WARP_SIZE {
            let end = self.first_slots.get(lane);
            // SAFETY: this is the first warp, so that its 32 lanes make the calls. Each lane writes next the slot that
            // it has read.
            unsafe {
                let length = if D::MAY_DESCEND { clamp_lengths(split, end) } else { end - split };
                self.lay_out(begin + split as usize, length, items_per_thread);
            }
        }
        thread::sync_threads();
    }

    /// Number of keys of the tile.
    #[inline(always)]
    #[track_caller]
    pub(in crate::kernels::sort) fn keys(self) -> usize {
        self.keys.get(0) as usize
    }

    /// The tile's part of an output array.
    #[inline(always)]
    #[track_caller]
    pub(in crate::kernels::sort) fn part_of<T: Word>(self, array: GlobalMut<T>) -> GlobalMut<T> {
        array.slice(self.begin(), self.keys())
    }

    /// Start of the tile in an output array.
    #[inline(always)]
    #[track_caller]
    pub(in crate::kernels::sort) fn begin(self) -> usize {
        self.begin.get(0) as usize | (self.begin.get(1) as usize) << 32
    }

    /// A segment of the array of the keys, or of the array of their values.
    #[inline(always)]
    #[track_caller]
    pub(in crate::kernels::sort) fn segment_of<T: Word>(self, segment: u32, array: Global<T>) -> Global<T> {
        array.slice(self.starts.get(segment), self.lengths.get(segment) as usize)
    }

    /// Number of segments.
    #[inline(always)]
    pub(in crate::kernels::sort) fn segments(self) -> u32 {
        self.segments.get(0)
    }
}

/// Number of keys of the lane's run between two splits. The sum of the second splits is no less than the sum of the
/// first. If the lane's second split is below its first, the lane takes no keys, and other runs take fewer instead. So
/// the lengths add up to the difference of the sums.
///
/// # Safety
/// The lanes of one whole warp make this call.
#[inline(always)]
#[track_caller]
unsafe fn clamp_lengths(begin: u32, end: u32) -> u32 {
    let length = end.saturating_sub(begin);
    // SAFETY: the 32 lanes of the warp make both calls, as the caller ensures.
    let all = unsafe { sum(end) - sum(begin) };
    // SAFETY: the 32 lanes of the warp make the call, outside any branch.
    if all == unsafe { sum(length) } {
        return length;
    }
    let length = length.min(all as u32);
    // SAFETY: the sums are the same for all lanes, so that the 32 lanes make the call. No lane has more than `all`,
    // which is at most the keys of a tile. So 32 lengths sum up to less than 2^32.
    let before = unsafe { sum_up_to(length) } - length;
    length.min((all as u32).saturating_sub(before))
}
