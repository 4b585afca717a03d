//! A pass of the sort: every group of K neighbouring runs is merged into one.
//!
//! ```text
//!   from     │ run 0   │ run 1   │ run 2   │ run 3   │        split_runs divides each run among the tiles
//!               ░░         ░░░       ░          ░░           the segments of one tile
//!   shared   │░░→ ←░░░│░→ ←░░│                               side by side: pairs, each with its ends together
//!            │░░░░░→      ←░░░│                              a round merges every pair, log2 K rounds merge all
//!            │░░░░░░░░│
//!   to       │ … tile … │
//! ```
//!
//! So K runs become one for the price of one pass over memory; the rounds are in shared memory. A pair takes a whole number
//! of threads there, VT keys each: where its two segments do not fill them, the greatest key does, which merges to the end.

use crate::block_scan::sum_up_to;
use crate::key::{Bits, Coding};
use crate::sort::detect_runs::Detection;
use crate::sort::multiway_co_rank::{Range, multiway_co_rank, sum};
use crate::sort::runs::{Division, LongRuns, MAX_RUNS, Runs, Shuffle, TileOfRuns};
use crate::tile;
use crate::tuning::{ROW, Tile};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// How many boundaries a warp of [`split_runs`] finds, one after the other: each is close to the one before, but it is faster
/// to find many at once, as many as there can be warps on the GPU.
pub const fn boundaries_per_warp(tiles: usize) -> u32 {
    tiles.div_ceil(ROW.split_warps) as u32
}

/// Threads of a block of [`split_runs`] as the host launches it.
pub const SPLIT_THREADS: u32 = 4 * WARP_SIZE;

/// Blocks of [`SPLIT_THREADS`] threads that [`split_runs`] needs for `tiles` tiles.
pub const fn split_blocks(tiles: usize) -> usize {
    tiles.div_ceil((boundaries_per_warp(tiles) * SPLIT_THREADS / WARP_SIZE) as usize)
}

/// Kernel: writes to `splits[t * k + i]` how many keys of run `i` of its group the merge takes before tile `t`.
///
/// # Safety
/// `from` has `n` keys in ascending runs of `run` keys; `run`, `k`, `tile_keys` and `rank_tolerance` are as [`Runs`] says; `splits` has
/// capacity for `k` numbers for each of its tiles. Blocks are of whole warps, a warp for `per_warp` tiles.
/// `order` is that of `block_sort`. The first `shuffled_runs` runs, which are of `run` keys, form groups in the order of a
/// [`Shuffle`] by `random`.
#[kernel(u32 = <u32>, u64 = <u64>)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn split_runs<B: Bits>(
    from: *const B,
    n: usize,
    run: usize,
    k: u32,
    tile_keys: u32,
    rank_tolerance: u32,
    splits: *mut u32,
    per_warp: u32,
    order: *mut u32,
    shuffled_runs: u32,
    random: u64,
) {
    // SAFETY: the caller's promise.
    let runs = unsafe { Runs::new_unchecked(n, run, k, tile_keys, rank_tolerance) };
    let runs = runs.shuffled(Shuffle { runs: shuffled_runs, random });
    // SAFETY: the caller's promise.
    let (from, splits) = unsafe { (Global::new(from, n), GlobalMut::new(splits, runs.tiles() * k as usize)) };
    // SAFETY: the caller's promise.
    if !unsafe { Detection::new(order) }.is_done() {
        // SAFETY: whole warps come here.
        unsafe { find_splits(runs, from, splits, per_warp as usize) };
    }
}

/// Kernel: as [`split_runs`], for the runs that [`detect_runs`](crate::sort::detect_runs::detect_runs) has found, if they are few.
/// There are [`MAX_RUNS`] splits for each tile.
///
/// # Safety
/// As for [`split_runs`]; `starts` are those that `copy_runs` wrote, `order` is what `detect_runs` wrote.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn split_long_runs<B: Bits>(
    from: *const B,
    n: usize,
    tile_keys: u32,
    splits: *mut u32,
    starts: *const usize,
    per_warp: u32,
    order: *mut u32,
) {
    // SAFETY: the caller's promise.
    let runs = LongRuns { starts: unsafe { Global::new(starts, MAX_RUNS as usize + 1) }, n, tile_keys };
    // SAFETY: the caller's promise.
    let (from, splits) = unsafe { (Global::new(from, n), GlobalMut::new(splits, runs.tiles() * MAX_RUNS as usize)) };
    // SAFETY: the caller's promise.
    if unsafe { Detection::new(order) }.is_of_long_runs() {
        // SAFETY: whole warps come here.
        unsafe { find_splits(runs, from, splits, per_warp as usize) };
    }
}

/// Finds the splits of `per_warp` tiles, one warp.
///
/// # Safety
/// The lanes of whole warps make this call.
#[inline(always)]
unsafe fn find_splits<B: Bits>(runs: impl Division, from: Global<B>, splits: GlobalMut<u32>, per_warp: usize) {
    let (lane, k) = (warp::lane_id(), runs.k());
    let warp = thread::block_idx_x() * (thread::block_dim_x() / WARP_SIZE) + thread::thread_idx_x() / WARP_SIZE;
    let first = warp as usize * per_warp;
    let mut known: Option<u32> = None;
    for t in first..(first + per_warp).min(runs.tiles()) {
        let tile = runs.tile(t);
        let own = runs.run_of(tile, lane, from);
        let length = own.len() as u32;
        let split = if tile.rank == 0 {
            0
        } else {
            // A tile takes from no run more than its own length; with more keys it would exceed the length of a tile.
            let too_many = runs.tile_keys() + 2 * runs.rank_tolerance() + 1;
            let (low, high) = match known {
                None => (0, length),
                Some(low) => (low, low.saturating_add(too_many).min(length)),
            };
            // SAFETY: the lanes of a warp have the same tile, and so the same path through here.
            unsafe { multiway_co_rank(Range { run: own, low, high }, tile.rank as u64, runs.rank_tolerance()) }
        };
        known = Some(split);
        if lane < k {
            splits.set(t * k as usize + lane as usize, split);
        }
    }
}

/// Keys that a tile of that many slots in shared memory takes: `k / 2` pairs of siblings may each leave up to
/// `items_per_thread - 1` slots empty, and there may be `rank_tolerance` keys more at both ends. A multiple of 32, so that tiles
/// without tolerance begin at whole lines of
/// memory.
pub const fn tile_keys(slots: usize, items_per_thread: usize, k: u32, rank_tolerance: u32) -> u32 {
    ((slots - k as usize / 2 * (items_per_thread - 1) - 2 * rank_tolerance as usize) / 32 * 32) as u32
}

/// The runs of `n` keys in tiles of shape `shape`, `k` of them merged at a time.
///
/// # Panics
/// As [`Runs::new`] does, which includes tiles of that shape being too small for `k` runs and `rank_tolerance`.
pub const fn runs_in_tiles(n: usize, run: usize, k: u32, shape: Tile, rank_tolerance: u32) -> Runs {
    Runs::new(n, run, k, tile_keys(shape.keys(), shape.items_per_thread, k, rank_tolerance), rank_tolerance)
}

/// As [`runs_in_tiles`], for a kernel whose tiles are of `NT * VT` keys.
///
/// # Safety
/// The arguments are such that `runs_in_tiles` does not panic.
#[inline(always)]
pub(super) unsafe fn runs_of_pass<const NT: usize, const VT: usize>(
    n: usize,
    run: usize,
    k: u32,
    rank_tolerance: u32,
) -> Runs {
    // SAFETY: the caller's promise.
    unsafe { Runs::new_unchecked(n, run, k, tile_keys(NT * VT, VT, k, rank_tolerance), rank_tolerance) }
}

/// Bytes of dynamic shared memory for tiles of that many slots.
pub const fn shared_bytes<B>(slots: usize) -> u32 {
    (slots * size_of::<B>()) as u32 + PLAN_BYTES
}

/// Words of shared memory besides the tile: for each segment where it begins, which is two words, its length, its first slot and how
/// many keys come before it; for each pair where it begins, and one for where the last one ends; how many segments there are, and
/// how many keys; where the tile begins, which is two words.
const PLAN_WORDS: u32 = 5 * MAX_RUNS + MAX_RUNS / 2 + 5;

/// Bytes of a line of memory.
pub(super) const LINE: usize = 128;

/// Keys that a thread has in registers on their way from global to shared memory.
const AT_ONCE: usize = 16;

/// Bytes of shared memory of a [`Plan`].
pub(super) const PLAN_BYTES: u32 = PLAN_WORDS * size_of::<u32>() as u32;

/// Where the segments of a tile go, in shared memory. Segments of no keys are left out: a tile whose keys are all of one run
/// needs no rounds, and is copied.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// Where segments begin in the array.
    starts: Shared<usize>,
    lengths: Shared<u32>,
    /// The slot of a segment's first key; sibling segments lie upwards from the first slot and downwards from the last.
    first_slots: Shared<u32>,
    /// Keys of the segments before.
    pub(super) before: Shared<u32>,
    /// Where pairs begin, and after the last one the end.
    siblings: Shared<u32>,
    segments: Shared<u32>,
    keys: Shared<u32>,
    begin: Shared<u32>,
}

impl Plan {
    /// # Safety
    /// The launch has [`PLAN_BYTES`] of dynamic shared memory from byte `at` on, which is a multiple of 8.
    #[inline(always)]
    pub(super) unsafe fn at(at: u32) -> Self {
        // SAFETY: the caller's promise; a barrier divides writing the plan from reading it.
        let array = |word: u32, length| unsafe { Shared::dynamic(at + word * 4, length) };
        Self {
            // SAFETY: the caller's promise.
            starts: unsafe { Shared::dynamic(at, MAX_RUNS) },
            lengths: array(2 * MAX_RUNS, MAX_RUNS),
            first_slots: array(3 * MAX_RUNS, MAX_RUNS),
            before: array(4 * MAX_RUNS, MAX_RUNS),
            siblings: array(5 * MAX_RUNS, MAX_RUNS / 2 + 1),
            segments: array(5 * MAX_RUNS + MAX_RUNS / 2 + 1, 1),
            keys: array(5 * MAX_RUNS + MAX_RUNS / 2 + 2, 1),
            begin: array(5 * MAX_RUNS + MAX_RUNS / 2 + 3, 2),
        }
    }

    /// Lays out segments, the lane's own from `start` of the array on and `length` long, in pairs of whole
    /// multiples of `items_per_thread`.
    ///
    /// # Safety
    /// The lanes of one whole warp make this call.
    #[inline(always)]
    unsafe fn lay_out(self, start: usize, length: u32, items_per_thread: u32) {
        let lane = warp::lane_id();
        // SAFETY: the caller's promise, here and below.
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
        // SAFETY: the caller's promise.
        unsafe { warp::sync_warp(FULL_MASK) };
        let length = self.lengths.get(lane);
        // SAFETY: the caller's promise.
        let both = length + unsafe { warp::shuffle_xor(FULL_MASK, length, 1) };
        let slots = both.div_ceil(items_per_thread) * items_per_thread;
        // Each pair is counted at its first lane.
        // SAFETY: the caller's promise.
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

    /// Divides the group's runs for `tile`, which is tile `t`, at its splits and those of the next, or at those that two warps
    /// search now if `splits` is empty. Ends with a barrier.
    ///
    /// # Safety
    /// All threads of the block make this call, two warps or more; `splits` are those of [`split_runs`].
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub(super) unsafe fn divide<B: Bits>(
        self,
        runs: impl Division,
        t: usize,
        tile: TileOfRuns,
        from: Global<B>,
        splits: Global<u32>,
        items_per_thread: u32,
    ) {
        let (thread, k) = (thread::thread_idx_x(), runs.k() as usize);
        let lane = thread % WARP_SIZE;
        let (mut begin, mut split) = (0, 0);
        if thread < 2 * WARP_SIZE {
            // The first warp has the indices at which the tile begins, the second those where it ends.
            let at_end = thread >= WARP_SIZE;
            let (start, length) = runs.extent_of(tile, lane);
            let count = (tile.length - tile.rank).min(runs.tile_keys() as usize);
            let rank = tile.rank + if at_end { count } else { 0 };
            split = if rank == 0 { 0 } else { length };
            if rank > 0 && rank < tile.length {
                if splits.is_empty() {
                    let run = from.slice(start, length as usize);
                    // SAFETY: the lanes of a warp have the same rank.
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
                // SAFETY: this is the first warp.
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
            // SAFETY: this is the first warp.
            unsafe {
                warp::sync_warp(FULL_MASK);
                self.lay_out(begin + split as usize, end - split, items_per_thread);
            }
        }
        thread::sync_threads();
    }

    /// How many keys the tile has.
    #[inline(always)]
    #[track_caller]
    pub(super) fn keys(self) -> usize {
        self.keys.get(0) as usize
    }

    /// The tile's part of an array that is written.
    #[inline(always)]
    #[track_caller]
    pub(super) fn part_of<T: Word>(self, array: GlobalMut<T>) -> GlobalMut<T> {
        array.slice(self.begin(), self.keys())
    }

    /// Where the tile begins in such an array.
    #[inline(always)]
    #[track_caller]
    fn begin(self) -> usize {
        self.begin.get(0) as usize | (self.begin.get(1) as usize) << 32
    }

    /// A segment of the array of the keys, or of that of their values.
    #[inline(always)]
    #[track_caller]
    pub(super) fn segment_of<T: Word>(self, segment: u32, array: Global<T>) -> Global<T> {
        array.slice(self.starts.get(segment), self.lengths.get(segment) as usize)
    }

    /// For each segment calls `source` with the segment, and what that returns for each of its keys, with the key's index in it
    /// and its slot in the tile. A warp takes a segment; where there are few, all warps take one after the other.
    #[inline(always)]
    pub(super) fn each_segment<const NT: usize, F: Fn(u32, u32)>(self, source: impl Fn(u32) -> F) {
        let (thread, segments) = (thread::thread_idx_x(), self.segments.get(0));
        if segments > 2 {
            let mut segment = thread / WARP_SIZE;
            while segment < segments {
                self.each_key(segment, thread % WARP_SIZE, WARP_SIZE, source(segment));
                segment += NT as u32 / WARP_SIZE;
            }
        } else {
            let mut segment = 0;
            while segment < segments {
                self.each_key(segment, thread, NT as u32, source(segment));
                segment += 1;
            }
        }
    }

    /// Reads the keys of all segments, many at once, and stores each in its slot of `tile` as `pack` makes it, which is passed
    /// the key and how many come before it in all segments. `packing` returns `pack`; all threads call it, once, while the first
    /// keys are on their way.
    ///
    /// A warp takes [`AT_ONCE`] rows of a segment at a time.
    #[inline(always)]
    pub(super) fn each_loaded_key<const NT: usize, T: Word, U: Word, P: Fn(T, u32, bool) -> U>(
        self,
        keys: Global<T>,
        tile: Shared<U>,
        packing: impl FnOnce() -> P,
    ) {
        const AT_ONCE_OF_WARP: u32 = AT_ONCE as u32 * WARP_SIZE;
        let (lane, segments) = (thread::thread_idx_x() % WARP_SIZE, self.segments());
        // Further on by `keys` keys, counting as if all segments were filled up to a multiple of what a warp takes.
        let advance = |(mut segment, begin): (u32, u32), keys: u32| {
            let mut begin = begin + keys;
            while segment < segments {
                let taken = self.lengths.get(segment).next_multiple_of(AT_ONCE_OF_WARP);
                if begin < taken {
                    break;
                }
                (segment, begin) = (segment + 1, begin - taken);
            }
            (segment, begin)
        };
        let load = |(segment, begin): (u32, u32)| {
            let mut loaded = [T::from_register(0); AT_ONCE];
            if segment < segments {
                let keys = self.segment_of(segment, keys);
                let first = (begin + lane) as usize;
                let left = keys.len() as i32 - first as i32;
                let keys = keys.place(first);
                for i in 0..AT_ONCE {
                    let row = i * WARP_SIZE as usize;
                    if (row as i32) < left {
                        loaded[i] = keys.get(row as isize);
                    }
                }
            }
            loaded
        };
        let mut at = advance((0, 0), thread::thread_idx_x() / WARP_SIZE * AT_ONCE_OF_WARP);
        let mut loaded = load(at);
        let pack = packing();
        while at.0 < segments {
            let (segment, first) = (at.0, at.1 + lane);
            let (left, before) = (self.lengths.get(segment) as i32 - first as i32, self.before.get(segment) + first);
            let (first_slot, row_bytes) = (self.first_slots.get(segment), WARP_SIZE * size_of::<U>() as u32);
            let store = |slot: u32, row_bytes: u32| {
                let address = tile.address(slot);
                for i in 0..AT_ONCE {
                    let row = i as u32 * WARP_SIZE;
                    let is_here = (row as i32) < left;
                    let packed = pack(loaded[i], before + row, is_here);
                    if is_here {
                        tile.set_at(address.wrapping_add((i as u32).wrapping_mul(row_bytes)), packed);
                    }
                }
            };
            if segment.is_multiple_of(2) {
                store(first_slot + first, row_bytes);
            } else {
                store(first_slot.wrapping_sub(first), row_bytes.wrapping_neg());
            }
            at = advance(at, NT as u32 / WARP_SIZE * AT_ONCE_OF_WARP);
            loaded = load(at);
        }
    }

    /// Has all lines of the values of all segments brought to the cache.
    #[inline(always)]
    pub(super) fn prefetch<const NT: usize, T: Word>(self, values: Global<T>) {
        let line = LINE / size_of::<T>();
        let mut segment = thread::thread_idx_x() / WARP_SIZE;
        while segment < self.segments() {
            let values = self.segment_of(segment, values);
            let mut i = (thread::thread_idx_x() % WARP_SIZE) as usize * line;
            while i < values.len() {
                values.prefetch(i);
                i += WARP_SIZE as usize * line;
            }
            segment += NT as u32 / WARP_SIZE;
        }
    }

    /// How many segments there are.
    #[inline(always)]
    pub(super) fn segments(self) -> u32 {
        self.segments.get(0)
    }

    /// Calls `load` for keys `first`, `first + stride`, … of a segment.
    #[inline(always)]
    fn each_key(self, segment: u32, first: u32, stride: u32, load: impl Fn(u32, u32)) {
        let (length, first_slot) = (self.lengths.get(segment), self.first_slots.get(segment));
        let mut i = first;
        if segment.is_multiple_of(2) {
            while i < length {
                load(i, first_slot + i);
                i += stride;
            }
        } else {
            while i < length {
                load(i, first_slot - i);
                i += stride;
            }
        }
    }

    /// Calls `fill` for the slots between the two segments of each pair. A warp takes a pair.
    #[inline(always)]
    pub(super) fn each_gap<const NT: usize>(self, fill: impl Fn(u32)) {
        let (lane, mut segment) = (thread::thread_idx_x() % WARP_SIZE, thread::thread_idx_x() / WARP_SIZE * 2);
        let segments = self.segments.get(0);
        while segment < segments {
            let mut slot = self.first_slots.get(segment) + self.lengths.get(segment) + lane;
            let end = self.siblings.get(segment / 2 + 1) - self.lengths.get(segment + 1);
            while slot < end {
                fill(slot);
                slot += WARP_SIZE;
            }
            segment += NT as u32 / WARP_SIZE * 2;
        }
    }

    /// Where the last pair ends.
    #[inline(always)]
    fn end(self) -> u32 {
        self.siblings.get(MAX_RUNS / 2)
    }

    /// How many rounds there are.
    #[inline(always)]
    pub(super) fn levels(self) -> u32 {
        self.segments.get(0).next_power_of_two().trailing_zeros()
    }

    /// The list of pairs that round `level` merges to slot `slot` among others, and whether it lies upwards then. A list
    /// of `items_per_thread` slots of its own for a thread beyond the last pair.
    #[inline(always)]
    pub(super) fn list(self, position: Position, level: u32, items_per_thread: u32) -> (List, bool) {
        let Position { slot, pair } = position;
        let Some(pair) = pair else {
            return (List { begin: slot, half: slot, end: slot + items_per_thread }, true);
        };
        let list = pair >> level;
        let (begin, end) = (self.siblings.get(list << level), self.siblings.get((list + 1) << level));
        // Keys of the segments of the first half.
        let (first, middle) = (list << (level + 1), (list << (level + 1)) + (1 << level));
        let half = begin + (self.before.get(middle) - self.before.get(first));
        // The second half of the next list lies downwards from its end.
        (List { begin, half, end }, list.is_multiple_of(2))
    }

    /// The position of the thread with slots from `slot` on.
    #[inline(always)]
    pub(super) fn position(self, slot: u32) -> Position {
        Position { slot, pair: (slot < self.end()).then(|| self.siblings_of(slot)) }
    }

    /// The pair that slot `slot` is in, if it is before the end.
    #[inline(always)]
    fn siblings_of(self, slot: u32) -> u32 {
        let (mut pair, mut half) = (0, MAX_RUNS / 4);
        // The last pair that begins at or before the slot: empty ones before it begin where it does.
        while half > 0 {
            if self.siblings.get(pair + half) <= slot {
                pair += half;
            }
            half /= 2;
        }
        pair
    }
}

/// Two runs to be merged: slots `begin .. half`, upwards, and `half .. end`, downwards, with greatest keys after the last.
#[derive(Clone, Copy)]
pub(super) struct List {
    pub(super) begin: u32,
    pub(super) half: u32,
    pub(super) end: u32,
}

/// A thread's slots in a tile: from `slot` on, in a pair if they are before the end.
#[derive(Clone, Copy)]
pub(super) struct Position {
    slot: u32,
    pub(super) pair: Option<u32>,
}

/// Blocks on a multiprocessor, as many as shared memory allows: with more registers a thread there would be fewer.
pub const MIN_BLOCKS_PER_SM: usize = 3;

/// Kernel: merges each group of `k` runs of `from` to the same indices of `to`, one block a tile, or several one after the other if
/// there are fewer blocks and `SEVERAL` is true, which takes more registers. The splits are those that
/// [`split_runs`] found, or that it finds itself if `splits` is null: that takes longer, but no launch. Keys are stored as
/// `always` and `when_negative` decode them ([`Coding`]). `order` is that of `block_sort`; the last two arguments are those of
/// `split_runs`.
///
/// # Safety
/// `from` has `n` keys in ascending runs of `run` keys, as [`Runs`] says, for tiles of [`tile_keys`]; `to` has capacity for `n`
/// and does not overlap `from`; `splits` are those of `split_runs`. Blocks are of `NT` threads, two warps or more, one for
/// each tile unless `SEVERAL`, with [`shared_bytes`] of dynamic shared memory for `NT * VT` slots.
#[kernel(
    u32 = <u32, { ROW.runs_4.threads }, { ROW.runs_4.items_per_thread }, true> within (ROW.runs_4.threads, MIN_BLOCKS_PER_SM),
    u64 = <u64, { ROW.runs_8.threads }, { ROW.runs_8.items_per_thread }, true> within (ROW.runs_8.threads, MIN_BLOCKS_PER_SM),
    u32small = <u32, { ROW.small_runs_4.threads }, { ROW.small_runs_4.items_per_thread }, false>,
    u64small = <u64, { ROW.small_runs_8.threads }, { ROW.small_runs_8.items_per_thread }, false>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_runs<B: Bits, const NT: usize, const VT: usize, const SEVERAL: bool>(
    from: *const B,
    n: usize,
    run: usize,
    k: u32,
    rank_tolerance: u32,
    to: *mut B,
    splits: *const u32,
    always: B,
    when_negative: B,
    order: *mut u32,
    shuffled_runs: u32,
    random: u64,
) {
    // SAFETY: the caller's promise.
    let runs = unsafe { runs_of_pass::<NT, VT>(n, run, k, rank_tolerance) };
    let runs = runs.shuffled(Shuffle { runs: shuffled_runs, random });
    // SAFETY: the caller's promise.
    let (from, to) = unsafe { (Global::new(from, n), GlobalMut::new(to, n)) };
    // SAFETY: the caller's promise.
    if unsafe { Detection::new(order) }.is_done() {
        return;
    }
    let tiles = runs.tiles();
    // SAFETY: the caller's promise.
    let splits = unsafe { Global::new(splits, if splits.is_null() { 0 } else { tiles * k as usize }) };
    let mut t = thread::block_idx_x() as usize;
    while t < tiles {
        // SAFETY: the caller's promise.
        unsafe { merge_tile::<B, NT, VT>(runs, t, from, to, splits, Coding { always, when_negative }) };
        if !SEVERAL {
            break;
        }
        t += thread::grid_dim_x() as usize;
        if t < tiles {
            thread::sync_threads();
        }
    }
}

/// This block's tile and its splits, which are empty if `splits` is null. `None` if an order has been found.
///
/// # Safety
/// `splits` and `order` are as for [`merge_runs`].
#[inline(always)]
pub(super) unsafe fn own_tile(runs: Runs, splits: *const u32, order: *mut u32) -> Option<(usize, Global<u32>)> {
    let t = thread::block_idx_x() as usize;
    // SAFETY: the caller's promise.
    let splits = unsafe { Global::new(splits, if splits.is_null() { 0 } else { (t + 2) * runs.k() as usize }) };
    // SAFETY: the caller's promise.
    (!unsafe { Detection::new(order) }.is_done()).then_some((t, splits))
}

/// Kernel: as [`merge_runs`], for the runs of which [`split_long_runs`] has found the splits. Blocks are persistent, and take one
/// tile after the other, so that there are few of them where there is nothing to do.
///
/// # Safety
/// As for [`merge_runs`], but for the number of blocks; `starts` and `order` are as for [`split_long_runs`].
#[kernel(
    u32 = <u32, { ROW.runs_4.threads }, { ROW.runs_4.items_per_thread }> within (ROW.runs_4.threads, MIN_BLOCKS_PER_SM),
    u64 = <u64, { ROW.runs_8.threads }, { ROW.runs_8.items_per_thread }> within (ROW.runs_8.threads, MIN_BLOCKS_PER_SM),
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_long_runs<B: Bits, const NT: usize, const VT: usize>(
    from: *const B,
    n: usize,
    to: *mut B,
    splits: *const u32,
    starts: *const usize,
    always: B,
    when_negative: B,
    order: *mut u32,
) {
    // SAFETY: the caller's promise.
    if !unsafe { Detection::new(order) }.is_of_long_runs() {
        return;
    }
    // SAFETY: the caller's promise.
    let (runs, splits) = unsafe { long_runs(n, tile_keys(NT * VT, VT, MAX_RUNS, 0), splits, starts) };
    // SAFETY: the caller's promise.
    let (from, to) = unsafe { (Global::new(from, n), GlobalMut::new(to, n)) };
    let mut t = thread::block_idx_x();
    while t < runs.tiles() as u32 {
        // SAFETY: the caller's promise.
        unsafe { merge_tile::<B, NT, VT>(runs, t as usize, from, to, splits, Coding { always, when_negative }) };
        thread::sync_threads();
        t += thread::grid_dim_x();
    }
}

/// The long runs, of fewer than 2^32 keys, and the splits of their tiles.
///
/// # Safety
/// The arguments are as for [`merge_long_runs`].
#[inline(always)]
pub(super) unsafe fn long_runs(
    n: usize,
    tile_keys: u32,
    splits: *const u32,
    starts: *const usize,
) -> (LongRuns, Global<u32>) {
    // SAFETY: the caller's promise.
    let runs = LongRuns { starts: unsafe { Global::new(starts, MAX_RUNS as usize + 1) }, n, tile_keys };
    // SAFETY: the caller's promise.
    (runs, unsafe { Global::new(splits, runs.tiles() * MAX_RUNS as usize) })
}

/// The arrays of a pass with values: those read, and those written.
#[derive(Clone, Copy)]
pub(super) struct PairArrays<B, V> {
    pub(super) from: Global<B>,
    pub(super) values_from: Global<V>,
    pub(super) to: GlobalMut<B>,
    pub(super) values_to: GlobalMut<V>,
}

impl<B: Word, V: Word> PairArrays<B, V> {
    /// # Safety
    /// All have `n` elements, in global memory, and those written do not overlap any other.
    #[inline(always)]
    pub(super) unsafe fn new(
        (from, values_from): (*const B, *const V),
        (to, values_to): (*mut B, *mut V),
        n: usize,
    ) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                from: Global::new(from, n),
                values_from: Global::new(values_from, n),
                to: GlobalMut::new(to, n),
                values_to: GlobalMut::new(values_to, n),
            }
        }
    }
}

/// Merges tile `t`, at splits that the block finds itself if `splits` is empty.
///
/// # Safety
/// As for [`merge_runs`].
#[inline(always)]
unsafe fn merge_tile<B: Bits, const NT: usize, const VT: usize>(
    runs: impl Division,
    t: usize,
    from: Global<B>,
    to: GlobalMut<B>,
    splits: Global<u32>,
    coding: Coding<B>,
) {
    let tile = runs.tile(t);
    // SAFETY: the caller's promise; barriers divide writing the tile and the plan from reading them.
    let (keys, plan) =
        unsafe { (Shared::<B>::dynamic(0, (NT * VT) as u32), Plan::at((NT * VT * size_of::<B>()) as u32)) };
    // SAFETY: the caller's promise.
    unsafe { plan.divide(runs, t, tile, from, splits, VT as u32) };
    plan.each_segment::<NT, _>(|segment| {
        let source = plan.segment_of(segment, from);
        move |i, slot| keys.copy_async(slot, source, i as usize)
    });
    plan.each_gap::<NT>(|slot| keys.set(slot, B::MAX));
    shared::wait_for_copies();
    merge_segments::<B, NT, VT>(plan, keys);

    // Shared to global. A warp writes whole lines of memory, wherever the tile begins. Indices taken modulo 2^32 first are
    // different for all threads only if `NT` divides that.
    const { assert!(NT.is_power_of_two()) };
    let first = thread::thread_idx_x().wrapping_sub(plan.begin() as u32) % NT as u32;
    tile::decode_to_global::<_, NT>(keys, plan.part_of(to), coding, first);
}

/// Merges the segments of a tile in shared memory by rounds: in each, a list of `1 << level` pairs of segments is merged from
/// its two halves. Loads have been waited for; the barrier that divides them from here is in this function.
#[inline(always)]
#[track_caller]
pub(super) fn merge_segments<B: Bits, const NT: usize, const VT: usize>(plan: Plan, keys: Shared<B>) {
    // A thread beyond the last pair merges a list of its own, so that all threads do the same.
    let slot = thread::thread_idx_x() * VT as u32;
    let position = plan.position(slot);
    if position.pair.is_none() {
        tile::store_blocked([B::MAX; VT], slot, keys);
    }
    thread::sync_threads();

    let levels = plan.levels();
    let mut level = 0;
    while level < levels {
        let (List { begin, half, end }, upwards) = plan.list(position, level, VT as u32);
        let merged: [B; VT] = tile::merge_to_registers(keys.slice(begin, end - begin), half - begin, slot - begin);
        thread::sync_threads();
        let first = if upwards { slot } else { end - VT as u32 - (slot - begin) };
        // SAFETY: all threads of the block are here.
        unsafe { tile::store_blocked_or_reversed(merged, first, upwards, keys) };
        level += 1;
        thread::sync_threads();
    }
}
