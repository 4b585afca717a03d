//! The sort of rests: a quicksort by all blocks, in rounds.
//!
//! ```text
//!   rest     │ 5 9 5 2 5 7 5 │            the median of a sample is the pivot: 5
//!   tiles    │ 5 9 5 2 │ 5 7 5 │          count:  how many keys are less than the pivot, and how many greater
//!   other    │ 2 │ 5 5 5 5 │ 9 7 │        move:   stably, to the other array
//!   sides    │ 2 │         │ 9 7 │        finish: one block sorts a short side; a long one is a rest of the next round
//! ```
//!
//! Usually a rest is one frequent value with few keys close to it, and one round is enough.
//!
//! A task is a tile of one phase of a round. Blocks take tasks in ascending order. A block waits only until all tasks of
//! the phases before its own are finished, which running blocks hold.

use super::sort_rest::sort_part;
use super::workspace::{MOST_ROUNDS, Plan, Workspace};
use crate::block::scan::{BLOCK_WORDS, sum_before};
use crate::block::shared_memory::shared_memory;
use crate::elements::Arrays;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot, shuffle_idx};

/// Keys of a sample: one for each lane.
const SAMPLE: u32 = WARP_SIZE;

shared_memory! {
    /// Shared memory of a block.
    struct Memory<B: Word>() {
        scan: [u32; BLOCK_WORDS],
        /// The number of a task; then the start and the length of its rest, and the number of the rest's first tile.
        task: [u32; 4],
        samples: [B; SAMPLE],
        pivot: [B; 1],
    }
}

/// Nanoseconds between two looks at the number of finished tasks.
const PAUSE: u32 = 200;

/// A tile of a rest.
#[derive(Clone, Copy)]
struct Tile {
    /// Index of the first key of the rest.
    start: u32,
    /// Number of keys of the rest.
    len: u32,
    /// Number of the first tile of the rest, among all tiles of the round.
    first: u32,
    /// Its own number, among all tiles of the round.
    number: u32,
}

/// What all tiles of a round share.
struct Round<B, V> {
    number: u32,
    workspace: Workspace,
    /// Number of rests.
    rests: u32,
    /// Number of tiles of all rests.
    tiles: u32,
    /// The array that has the keys, and the array that they move to.
    sides: [Arrays<B, V>; 2],
    /// Whether keys move to the scratch array.
    to_scratch: bool,
    coding: Coding<B>,
}

/// Sorts the rests to the same indices of the first side. `coding` decodes keys there.
///
/// # Safety
/// All `NT` threads of each block of the launch make this call, after a barrier. The launch has
/// [`shared_bytes`](super::sort_rest::shared_bytes) for `NT * VT` keys. The rests do not overlap, and nothing else uses
/// them, on either side. The divisions have ended.
#[inline(always)]
pub(super) unsafe fn sort_rests<B: Bits, V: Word, const NT: usize, const VT: usize>(
    workspace: Workspace,
    plan: Plan,
    [at, scratch]: [Arrays<B, V>; 2],
    coding: Coding<B>,
) {
    // SAFETY: the launch has more bytes of shared memory than this takes. Barriers come between uses of each part.
    let memory = unsafe { Memory::<B>::at_start() };
    let (mut task, mut begin, mut number) = (take(workspace, memory), 0, 0);
    loop {
        let to_scratch = (plan.levels + number).is_multiple_of(2);
        let sides = if to_scratch { [at, scratch] } else { [scratch, at] };
        let mut round = Round { number, workspace, rests: 0, tiles: 0, sides, to_scratch, coding };
        // SAFETY: all threads of the block make the call, after a barrier.
        (round.rests, round.tiles) = unsafe { round.counted::<NT, VT>(memory) };
        if round.tiles == 0 {
            return;
        }
        for phase in 0..3 {
            let end = begin + round.tiles;
            if task < end {
                wait_for(workspace, begin);
            }
            while task < end {
                // SAFETY: `task` and `begin` are the same for all threads, so that all threads of the block make these
                // calls. All tasks of earlier phases are finished.
                unsafe {
                    let tile = round.find::<NT, VT>(task - begin, memory);
                    match phase {
                        0 => round.count::<NT, VT>(tile, memory),
                        1 => round.move_tile::<NT, VT>(tile, memory),
                        _ => round.finish::<NT, VT>(tile, [at, scratch], memory),
                    }
                }
                thread::sync_threads();
                if thread::thread_idx_x() == 0 {
                    thread::device_fence();
                    workspace.tasks().fetch_add(1, 1);
                }
                task = take(workspace, memory);
            }
            begin = end;
        }
        wait_for(workspace, begin);
        number += 1;
    }
}

/// Takes the next task for the whole block. Ends with a barrier.
#[inline(always)]
#[track_caller]
fn take<B: Bits>(workspace: Workspace, memory: Memory<B>) -> u32 {
    if thread::thread_idx_x() == 0 {
        memory.task.set(0, workspace.tasks().fetch_add(0, 1));
    }
    thread::sync_threads();
    memory.task.get(0)
}

/// Waits until `tasks` tasks are finished. Ends with a barrier, after which their writes are visible.
#[inline(always)]
#[track_caller]
fn wait_for(workspace: Workspace, tasks: u32) {
    if thread::thread_idx_x() == 0 {
        while workspace.tasks().load(1) < tasks {
            thread::sleep(PAUSE);
        }
        thread::device_fence();
    }
    thread::sync_threads();
}

/// Rows of a tile, as a number that the compiler does not know, so that it does not unroll loops.
#[inline(always)]
fn rows<const VT: usize>() -> u32 {
    recomputed(VT as u32)
}

impl<B: Bits, V: Word> Round<B, V> {
    /// Tiles of a rest of `len` keys.
    #[inline(always)]
    fn tiles_of<const NT: usize, const VT: usize>(len: u32) -> u32 {
        len.div_ceil((NT * VT) as u32)
    }

    /// The number of rests, and of their tiles.
    ///
    /// # Safety
    /// All threads of the block make this call, after a barrier. Ends with a barrier.
    #[inline(always)]
    unsafe fn counted<const NT: usize, const VT: usize>(&self, memory: Memory<B>) -> (u32, u32) {
        let &Self { number, workspace, .. } = self;
        if number == MOST_ROUNDS {
            return (0, 0);
        }
        if number > 0 {
            let counts = workspace.round(number);
            return (counts.load(0), counts.load(1));
        }
        let (rests, mut i, mut own) = (workspace.rests(), thread::thread_idx_x(), 0);
        while i < rests {
            own += Self::tiles_of::<NT, VT>(workspace.rest(number, i).1);
            i += const { NT as u32 };
        }
        // SAFETY: all threads of the block make the call. Barriers come before it and behind it.
        let (_, tiles) = unsafe { sum_before(own, memory.scan) };
        thread::sync_threads();
        (rests, tiles)
    }

    /// Tile `number` of the round. Ends with a barrier.
    ///
    /// # Safety
    /// All threads of the block make this call, after a barrier, with the same number.
    #[inline(always)]
    unsafe fn find<const NT: usize, const VT: usize>(&self, number: u32, memory: Memory<B>) -> Tile {
        let &Self { workspace, rests, .. } = self;
        let (mut first_rest, mut before) = (0, 0);
        while first_rest < rests && before <= number {
            let i = first_rest + thread::thread_idx_x();
            let (start, len) = if i < rests { workspace.rest(self.number, i) } else { (0, 0) };
            let tiles = Self::tiles_of::<NT, VT>(len);
            // SAFETY: `before` and `first_rest` are the same for all threads, so that all of them make the call. A
            // barrier comes before it and behind it.
            let (own, all) = unsafe { sum_before(tiles, memory.scan) };
            let first = before + own;
            if first <= number && number < first + tiles {
                memory.task.set(1, start);
                memory.task.set(2, len);
                memory.task.set(3, first);
            }
            thread::sync_threads();
            (first_rest, before) = (first_rest + const { NT as u32 }, before + all);
        }
        let [start, len, first] = [1, 2, 3].map(|at| memory.task.get(at));
        Tile { start, len, first, number }
    }

    /// The keys of the rest.
    #[inline(always)]
    #[track_caller]
    fn rest(&self, tile: Tile) -> Arrays<B, V> {
        self.sides[0].slice(tile.start as usize, tile.len as usize)
    }

    /// The median of a sample of the rest: the same for all its tiles. Ends with a barrier.
    #[inline(always)]
    #[track_caller]
    fn pivot(&self, tile: Tile, memory: Memory<B>) -> B {
        let (Memory { samples, pivot, .. }, thread) = (memory, thread::thread_idx_x());
        if thread < SAMPLE {
            let at = (tile.len as u64 * (2 * thread as u64 + 1)) >> const { SAMPLE.trailing_zeros() + 1 };
            samples.set(thread, self.rest(tile).keys.get(at as usize));
        }
        thread::sync_threads();
        if thread < SAMPLE {
            let (own, mut rank, mut i) = (samples.get(thread), 0, 0);
            while i < SAMPLE {
                let other = samples.get(i);
                rank += u32::from(other < own || other == own && i < thread);
                i += 1;
            }
            if rank == SAMPLE / 2 {
                pivot.set(0, own);
            }
        }
        thread::sync_threads();
        pivot.get(0)
    }

    /// Index in the rest of this thread's key in row `row`. A warp has a row of neighbours, and then the next row.
    #[inline(always)]
    fn index<const NT: usize, const VT: usize>(tile: Tile, row: u32) -> u32 {
        let warp = thread::thread_idx_x() / WARP_SIZE;
        let in_tile = (warp * const { VT as u32 } + row) * WARP_SIZE + warp::lane_id();
        (tile.number - tile.first) * const { (NT * VT) as u32 } + in_tile
    }

    /// The number of this thread's keys that are less than the pivot, and greater: in the lower and the upper half.
    #[inline(always)]
    #[track_caller]
    fn own_counts<const NT: usize, const VT: usize>(&self, tile: Tile, pivot: B) -> u32 {
        const { assert!(NT * VT < 1 << 16, "a count has 16 bits") };
        let (keys, mut row, mut own) = (self.rest(tile).keys, 0, 0);
        while row < rows::<VT>() {
            let at = Self::index::<NT, VT>(tile, row);
            if at < tile.len {
                let key = keys.get(at as usize);
                own += u32::from(key < pivot) | u32::from(key > pivot) << 16;
            }
            row += 1;
        }
        own
    }

    /// First phase: counts the keys of the tile that are less than the pivot, and greater.
    ///
    /// # Safety
    /// All threads of the block make this call, after a barrier. Another one comes before the next use of the memory.
    #[inline(always)]
    unsafe fn count<const NT: usize, const VT: usize>(&self, tile: Tile, memory: Memory<B>) {
        let pivot = self.pivot(tile, memory);
        let own = self.own_counts::<NT, VT>(tile, pivot);
        // SAFETY: no branch surrounds the call, so that all threads of the block make it, between barriers.
        let (_, all) = unsafe { sum_before(own, memory.scan) };
        if thread::thread_idx_x() == 0 {
            self.workspace.counts_of_tiles(self.tiles).set(tile.number as usize, all);
            if tile.number == 0 && self.number + 1 < MOST_ROUNDS {
                // The list of the next round is empty.
                let next = self.workspace.round(self.number + 1);
                (0..2).for_each(|i| next.set(i, 0));
            }
        }
    }

    /// The keys less than the pivot and the keys greater: of the tiles from number `first` to `end`.
    ///
    /// # Safety
    /// All threads of the block make this call, after a barrier. Ends with a barrier.
    #[inline(always)]
    unsafe fn counts_of<const NT: usize>(&self, first: u32, end: u32, memory: Memory<B>) -> [u32; 2] {
        let counts = self.workspace.counts_of_tiles(self.tiles);
        let (mut i, mut own) = (first + thread::thread_idx_x(), [0; 2]);
        while i < end {
            let both = counts.get(i as usize);
            own = [own[0] + (both & 0xffff), own[1] + (both >> 16)];
            i += const { NT as u32 };
        }
        own.map(|own| {
            // SAFETY: all threads of the block make the call. A barrier comes before it and behind it.
            let (_, all) = unsafe { sum_before(own, memory.scan) };
            thread::sync_threads();
            all
        })
    }

    /// Second phase: moves the keys of the tile to the other array. Keys equal to the pivot are final there.
    ///
    /// # Safety
    /// The conditions of [`count`](Self::count) hold.
    #[inline(always)]
    unsafe fn move_tile<const NT: usize, const VT: usize>(&self, tile: Tile, memory: Memory<B>) {
        let pivot = self.pivot(tile, memory);
        // SAFETY: no branch surrounds the calls, so that all threads of the block make them. Barriers come between
        // them: `counts_of` ends with one.
        let ([less, greater], [all_less, all_greater], own) = unsafe {
            (
                self.counts_of::<NT>(tile.first, tile.number, memory),
                self.counts_of::<NT>(tile.first, tile.first + Self::tiles_of::<NT, VT>(tile.len), memory),
                sum_before(self.own_counts::<NT, VT>(tile, pivot), memory.scan).0,
            )
        };
        // SAFETY: the lanes of each warp make this call.
        let of_warps = unsafe { shuffle_idx(FULL_MASK, own, 0) };
        let (mut less, mut greater) = (less + (of_warps & 0xffff), greater + (of_warps >> 16));
        let (from, to) = (self.rest(tile), self.sides[1].slice(tile.start as usize, tile.len as usize));
        let decode = if self.to_scratch { Coding::NONE } else { self.coding };
        let (lanes_before, mut row) = ((1 << warp::lane_id()) - 1, 0);
        while row < rows::<VT>() {
            let at = Self::index::<NT, VT>(tile, row);
            let is_here = at < tile.len;
            let (key, value) = if is_here { from.get(at) } else { (pivot, V::from_register(0)) };
            // SAFETY: the rows are the same for all threads, so that the lanes of each warp make both calls.
            let [is_less, is_greater] = unsafe { [ballot(FULL_MASK, key < pivot), ballot(FULL_MASK, key > pivot)] };
            let less_before = less + (is_less & lanes_before).count_ones();
            let greater_before = greater + (is_greater & lanes_before).count_ones();
            if key < pivot {
                to.set(less_before, (key, value));
            } else if key > pivot {
                to.set(tile.len - all_greater + greater_before, (key, value));
            } else if is_here {
                to.set(all_less + at - less_before - greater_before, (decode.decode(key), value));
            }
            (less, greater) = (less + is_less.count_ones(), greater + is_greater.count_ones());
            row += 1;
        }
    }

    /// Third phase: keys equal to the pivot go to the first of both `arrays`. Two of the rest's tiles sort its sides, or
    /// add them to the next round.
    ///
    /// # Safety
    /// The conditions of [`count`](Self::count) hold.
    #[inline(always)]
    unsafe fn finish<const NT: usize, const VT: usize>(
        &self,
        tile: Tile,
        arrays: [Arrays<B, V>; 2],
        memory: Memory<B>,
    ) {
        let tiles = Self::tiles_of::<NT, VT>(tile.len);
        // SAFETY: no branch surrounds the call, so that all threads of the block make it, after a barrier.
        let [less, greater] = unsafe { self.counts_of::<NT>(tile.first, tile.first + tiles, memory) };
        if self.to_scratch {
            let [to, from] = arrays.map(|array| array.slice(tile.start as usize, tile.len as usize));
            let mut row = 0;
            while row < rows::<VT>() {
                let at = Self::index::<NT, VT>(tile, row);
                if less <= at && at < tile.len - greater {
                    let (key, value) = from.get(at);
                    to.set(at, (self.coding.decode(key), value));
                }
                row += 1;
            }
        }
        let mut side = 0;
        // A number that the compiler does not know: the code of a side is long.
        while side < recomputed(2) {
            let is_less = side == 0;
            let number = if is_less { tile.first } else { tile.first + tiles - 1 };
            let (start, len) = if is_less { (tile.start, less) } else { (tile.start + tile.len - greater, greater) };
            side += 1;
            if number != tile.number || len == 0 {
                continue;
            }
            if len > const { (NT * VT) as u32 } && self.number + 1 < MOST_ROUNDS {
                if thread::thread_idx_x() == 0 {
                    self.workspace.add_rest_to(self.number + 1, (start, len), Self::tiles_of::<NT, VT>(len));
                }
            } else {
                // SAFETY: `number` and `len` are the same for all threads, so that all of them make the call. A barrier
                // of `counts_of` or of the call before comes first. Only this tile of the rest sorts this side, and the
                // others have moved their keys.
                unsafe { sort_part::<B, V, NT, VT>(arrays, (start, len), self.to_scratch, self.coding) };
            }
        }
    }
}
