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
//! A [task](crate::kernels::sort::tasks) is a tile of one phase of a round.

use super::sort_rest::sort_part;
use super::workspace::{MOST_ROUNDS, Workspace};
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
struct Tile<B> {
    /// Index of the first key of the rest.
    start: u32,
    /// Number of keys of the rest.
    len: u32,
    /// Number of the first tile of the rest, among all tiles of the round.
    first: u32,
    /// Number of tiles of the rest.
    tiles: u32,
    /// Its own number, among all tiles of the round.
    number: u32,
    /// The key by which the rest is divided.
    pivot: B,
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

/// Sorts the rests of `levels` levels to the same indices of the first side. `coding` decodes keys there.
///
/// # Safety
/// All `NT` threads of each block of the launch make this call, after a barrier. The launch has
/// [`shared_bytes`](super::sort_rest::shared_bytes) for `NT * VT` keys. The rests do not overlap, and nothing else uses
/// them, on either side. The divisions have ended.
#[inline(always)]
pub(super) unsafe fn sort_rests<B: Bits, V: Word, const NT: usize, const VT: usize>(
    workspace: Workspace,
    levels: u32,
    [at, scratch]: [Arrays<B, V>; 2],
    coding: Coding<B>,
) {
    // SAFETY: the launch has more bytes of shared memory than this takes. Barriers come between uses of each part.
    let memory = unsafe { Memory::<B>::at_start() };
    const { assert!(NT * VT < 1 << 16, "a count has 16 bits") };
    let (mut task, mut begin, mut number) = (take(workspace, memory), 0, 0);
    loop {
        // SAFETY: all threads of the block make the call, after a barrier.
        let (rests, tiles) = unsafe { count_rests::<B, NT, VT>(workspace, number, memory) };
        if tiles == 0 {
            return;
        }
        let to_scratch = (levels + number).is_multiple_of(2);
        let sides = if to_scratch { [at, scratch] } else { [scratch, at] };
        let round = Round { number, workspace, rests, tiles, sides, to_scratch, coding };
        // No tile. The next tile is in the same rest as a rule.
        let mut tile = Tile { start: 0, len: 0, first: 0, tiles: 0, number: 0, pivot: B::MIN };
        for phase in 0..3 {
            let end = begin + tiles;
            if task < end {
                wait_for(workspace, begin);
            }
            while task < end {
                // SAFETY: `task` and `begin` are the same for all threads, so that all threads of the block make these
                // calls. All tasks of earlier phases are finished.
                unsafe {
                    tile.number = task - begin;
                    if tile.number.wrapping_sub(tile.first) >= tile.tiles {
                        tile = round.find::<NT, VT>(tile.number, memory);
                        // The last phase overwrites the sample, and needs no pivot.
                        if phase < 2 {
                            tile.pivot = pivot(Round::rest(round.sides[0], tile).keys, memory);
                        }
                    }
                    match phase {
                        0 => round.count::<NT, VT>(tile, memory),
                        1 => round.move_tile::<NT, VT>(tile, memory),
                        _ => round.finish::<NT, VT>(tile, [at, scratch], memory),
                    }
                }
                thread::sync_threads();
                if thread::thread_idx_x() == 0 {
                    workspace.tasks().finish(0, 1);
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
        memory.task.set(0, workspace.tasks().take());
    }
    thread::sync_threads();
    memory.task.get(0)
}

/// Waits until `tasks` tasks are finished. Ends with a barrier, after which their writes are visible.
#[inline(always)]
#[track_caller]
fn wait_for(workspace: Workspace, tasks: u32) {
    if thread::thread_idx_x() == 0 {
        workspace.tasks().wait_for(0, tasks, PAUSE);
    }
    thread::sync_threads();
}

/// Whether one block sorts `len` keys, up to two tiles. It is faster than a round.
#[inline(always)]
pub(super) const fn is_short<const NT: usize, const VT: usize>(len: u32) -> bool {
    len <= const { 2 * (NT * VT) as u32 }
}

/// Tiles of a rest of `len` keys: none if one block sorts it.
#[inline(always)]
fn tiles_of<const NT: usize, const VT: usize>(len: u32) -> u32 {
    if is_short::<NT, VT>(len) { 0 } else { len.div_ceil(const { (NT * VT) as u32 }) }
}

/// The number of rests of round `number`, and of their tiles.
///
/// # Safety
/// All threads of the block make this call, after a barrier. Ends with a barrier.
#[inline(always)]
unsafe fn count_rests<B: Bits, const NT: usize, const VT: usize>(
    workspace: Workspace,
    number: u32,
    memory: Memory<B>,
) -> (u32, u32) {
    if number == MOST_ROUNDS {
        return (0, 0);
    }
    if number > 0 {
        let counts = workspace.round(number);
        return (counts.load(0), counts.load(1));
    }
    let (rests, mut i, mut own) = (workspace.rests(), thread::thread_idx_x(), 0);
    while i < rests {
        own += tiles_of::<NT, VT>(workspace.rest(number, i).1);
        i += const { NT as u32 };
    }
    // SAFETY: `number` is the same for all threads, so that all of them make the call. Barriers come before it and
    // behind it.
    let (_, tiles) = unsafe { sum_before(own, memory.scan) };
    thread::sync_threads();
    (rests, tiles)
}

/// The median of a sample of keys. Ends with a barrier.
#[inline(always)]
#[track_caller]
fn pivot<B: Bits>(keys: GlobalMut<B>, memory: Memory<B>) -> B {
    let (Memory { samples, pivot, .. }, thread) = (memory, thread::thread_idx_x());
    if thread < SAMPLE {
        let at = (keys.len() as u64 * (2 * thread as u64 + 1)) >> const { SAMPLE.trailing_zeros() + 1 };
        samples.set(thread, keys.get(at as usize));
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

/// The number of keys that are less than the pivot, and greater: in the lower and the upper half.
#[inline(always)]
fn counts<B: Bits, const VT: usize>(keys: [B; VT], pivot: B) -> u32 {
    let mut both = 0;
    for at in 0..VT {
        both += u32::from(keys[at] < pivot) | u32::from(keys[at] > pivot) << 16;
    }
    both
}

impl<B: Bits, V: Word> Round<B, V> {
    /// Tile `number` of the round, without a pivot. Ends with a barrier.
    ///
    /// # Safety
    /// All threads of the block make this call, after a barrier, with the same number.
    #[inline(always)]
    unsafe fn find<const NT: usize, const VT: usize>(&self, number: u32, memory: Memory<B>) -> Tile<B> {
        let &Self { workspace, rests, .. } = self;
        let (mut first_rest, mut before) = (0, 0);
        while first_rest < rests && before <= number {
            let i = first_rest + thread::thread_idx_x();
            let (start, len) = if i < rests { workspace.rest(self.number, i) } else { (0, 0) };
            let tiles = tiles_of::<NT, VT>(len);
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
        Tile { start, len, first, tiles: tiles_of::<NT, VT>(len), number, pivot: B::MIN }
    }

    /// The elements of the rest in one of both arrays.
    #[inline(always)]
    #[track_caller]
    fn rest(array: Arrays<B, V>, tile: Tile<B>) -> Arrays<B, V> {
        array.slice(tile.start as usize, tile.len as usize)
    }

    /// Index in the rest of this thread's key in row `row`. A warp has a row of neighbours, and then the next row.
    #[inline(always)]
    fn index<const NT: usize, const VT: usize>(tile: Tile<B>, row: u32) -> u32 {
        let warp = thread::thread_idx_x() / WARP_SIZE;
        let in_tile = (warp * const { VT as u32 } + row) * WARP_SIZE + warp::lane_id();
        (tile.number - tile.first) * const { (NT * VT) as u32 } + in_tile
    }

    /// This thread's keys, in all rows, with the pivot behind the end of the rest.
    #[inline(always)]
    #[track_caller]
    fn load<const NT: usize, const VT: usize>(&self, tile: Tile<B>) -> [B; VT] {
        let (from, mut own) = (Self::rest(self.sides[0], tile).keys, [tile.pivot; VT]);
        for row in 0..VT {
            let at = Self::index::<NT, VT>(tile, row as u32);
            if at < tile.len {
                own[row] = from.get(at as usize);
            }
        }
        own
    }

    /// First phase: counts the keys of the tile that are less than the pivot, and greater.
    ///
    /// # Safety
    /// All threads of the block make this call, after a barrier. Another one comes before the next use of the memory.
    #[inline(always)]
    unsafe fn count<const NT: usize, const VT: usize>(&self, tile: Tile<B>, memory: Memory<B>) {
        let own = counts(self.load::<NT, VT>(tile), tile.pivot);
        // SAFETY: no branch surrounds the call, so that all threads of the block make it, between barriers.
        let (_, all) = unsafe { sum_before(own, memory.scan) };
        if thread::thread_idx_x() == 0 {
            self.workspace.counts_of_tiles(self.tiles).set(tile.number as usize, all);
            if tile.number == 0 && self.number + 1 < MOST_ROUNDS {
                self.workspace.clear_round(self.number + 1);
            }
        }
    }

    /// The keys less than the pivot and the keys greater: of the tiles before this one, and of all tiles of the rest.
    ///
    /// # Safety
    /// All threads of the block make this call, after a barrier. Ends with a barrier.
    #[inline(always)]
    unsafe fn sides_of<const NT: usize>(&self, tile: Tile<B>, memory: Memory<B>) -> [[u32; 2]; 2] {
        let counts = self.workspace.counts_of_tiles(self.tiles).slice(tile.first as usize, tile.tiles as usize);
        let (mut i, mut before, mut all) = (thread::thread_idx_x(), [0; 2], [0; 2]);
        while i < tile.tiles {
            let both = counts.get(i as usize);
            let both = [both & 0xffff, both >> 16];
            all = [all[0] + both[0], all[1] + both[1]];
            if i < tile.number - tile.first {
                before = [before[0] + both[0], before[1] + both[1]];
            }
            i += const { NT as u32 };
        }
        [before, all].map(|own| {
            own.map(|own| {
                // SAFETY: all threads of the block make the call. A barrier comes before it and behind it.
                let (_, all) = unsafe { sum_before(own, memory.scan) };
                thread::sync_threads();
                all
            })
        })
    }

    /// Second phase: moves the keys of the tile to the other array. Keys equal to the pivot are final there.
    ///
    /// # Safety
    /// The conditions of [`count`](Self::count) hold.
    #[inline(always)]
    unsafe fn move_tile<const NT: usize, const VT: usize>(&self, tile: Tile<B>, memory: Memory<B>) {
        let (pivot, keys) = (tile.pivot, self.load::<NT, VT>(tile));
        // SAFETY: no branch surrounds the calls, so that all threads of the block make them. `sides_of` ends with a
        // barrier.
        let ([before, all], own) =
            unsafe { (self.sides_of::<NT>(tile, memory), sum_before(counts(keys, pivot), memory.scan).0) };
        // SAFETY: the lanes of each warp make this call.
        let of_warps = unsafe { shuffle_idx(FULL_MASK, own, 0) };
        let (mut less, mut greater) = (before[0] + (of_warps & 0xffff), before[1] + (of_warps >> 16));
        let [from, to] = self.sides.map(|array| Self::rest(array, tile));
        let decode = if self.to_scratch { Coding::NONE } else { self.coding };
        let lanes_before = (1 << warp::lane_id()) - 1;
        for row in 0..VT {
            let (key, at) = (keys[row], Self::index::<NT, VT>(tile, row as u32));
            // SAFETY: no branch surrounds the calls, so that the lanes of each warp make both.
            let [is_less, is_greater] = unsafe { [ballot(FULL_MASK, key < pivot), ballot(FULL_MASK, key > pivot)] };
            let less_before = less + (is_less & lanes_before).count_ones();
            let greater_before = greater + (is_greater & lanes_before).count_ones();
            if at < tile.len {
                let (place, key) = if key < pivot {
                    (less_before, key)
                } else if key > pivot {
                    (tile.len - all[1] + greater_before, key)
                } else {
                    (all[0] + at - less_before - greater_before, decode.decode(key))
                };
                to.set(place, (key, from.value(at)));
            }
            (less, greater) = (less + is_less.count_ones(), greater + is_greater.count_ones());
        }
    }

    /// Third phase: keys equal to the pivot go to the first of both `arrays`. Two of the rest's tiles sort its sides,
    /// or add them to the next round.
    ///
    /// # Safety
    /// The conditions of [`count`](Self::count) hold.
    #[inline(always)]
    unsafe fn finish<const NT: usize, const VT: usize>(
        &self,
        tile: Tile<B>,
        arrays: [Arrays<B, V>; 2],
        memory: Memory<B>,
    ) {
        // SAFETY: no branch surrounds the call, so that all threads of the block make it, after a barrier.
        let [_, [less, greater]] = unsafe { self.sides_of::<NT>(tile, memory) };
        if self.to_scratch {
            let [to, from] = arrays.map(|array| Self::rest(array, tile));
            for row in 0..VT {
                let at = Self::index::<NT, VT>(tile, row as u32);
                if less <= at && at < tile.len - greater {
                    let (key, value) = from.get(at);
                    to.set(at, (self.coding.decode(key), value));
                }
            }
        }
        let mut side = 0;
        // A number that the compiler does not know: the code of a side is long.
        while side < recomputed(2) {
            let is_less = side == 0;
            let number = if is_less { tile.first } else { tile.first + tile.tiles - 1 };
            let (start, len) = if is_less { (tile.start, less) } else { (tile.start + tile.len - greater, greater) };
            side += 1;
            if number != tile.number || len == 0 {
                continue;
            }
            if !is_short::<NT, VT>(len) && self.number + 1 < MOST_ROUNDS {
                if thread::thread_idx_x() == 0 {
                    self.workspace.add_rest_to(self.number + 1, (start, len), tiles_of::<NT, VT>(len));
                }
            } else {
                // SAFETY: `number` and `len` are the same for all threads, so that all of them make the call. A barrier
                // of `sides_of` or of the call before comes first. Only this tile of the rest sorts this side, and the
                // others have moved their keys.
                unsafe { sort_part::<B, V, NT, VT>(arrays, (start, len), self.to_scratch, self.coding) };
            }
        }
    }
}
