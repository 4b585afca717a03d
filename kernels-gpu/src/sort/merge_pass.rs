//! A pass of the sort: every group of K neighbouring runs is merged into one.
//!
//! ```text
//!   from     │ run 0   │ run 1   │ run 2   │ run 3   │        split_runs divides each run among the tiles
//!               ░░         ░░░       ░          ░░           the pieces of one tile
//!   shared   │░░→ ←░░░│░→ ←░░│                               side by side: pairs, each with its ends together
//!            │░░░░░→      ←░░░│                              a round merges every pair, log2 K rounds merge all
//!            │░░░░░░░░│
//!   to       │ … tile … │
//! ```
//!
//! So K runs become one for the price of one pass over memory; the rounds are in shared memory. A pair takes a whole number
//! of threads there, VT keys each: where its two pieces do not fill them, the greatest key does, which merges to the end.

use crate::key::{Bits, Coding};
use crate::sort::runs::{MAX_RUNS, Runs};
use crate::sort::select::{Range, select};
use crate::tile;
use crate::tuning::ROW;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// How many boundaries a warp of [`split_runs`] finds, one after the other: each is close to the one before, but where
/// there are few it is faster to find all at once.
pub const fn boundaries_per_warp(tiles: usize) -> u32 {
    if tiles > 8192 { 4 } else { 1 }
}

/// Kernel: writes to `splits[t * k + i]` how many keys of run `i` of its group the merge takes before tile `t`.
///
/// # Safety
/// `from` has `n` keys in ascending runs of `run` keys; `run`, `k` and `tile_keys` are as [`Runs`] says; `splits` has room for
/// `k` numbers for each of its tiles. Blocks are of whole warps, a warp for `per_warp` tiles.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn split_runs<B: Bits>(
    from: *const B,
    n: usize,
    run: usize,
    k: u32,
    tile_keys: u32,
    splits: *mut u32,
    per_warp: u32,
) {
    let runs = Runs { n, run, k, tile_keys };
    let tiles = runs.tiles();
    // SAFETY: the caller's promise.
    let (from, splits) = unsafe { (Global::new(from, n), GlobalMut::new(splits, tiles * k as usize)) };
    let lane = warp::lane_id();
    let warp = thread::block_idx_x() * (thread::block_dim_x() / WARP_SIZE) + thread::thread_idx_x() / WARP_SIZE;
    let first = warp as usize * per_warp as usize;
    let mut known: Option<u32> = None;
    for t in first..(first + per_warp as usize).min(tiles) {
        let tile = runs.tile(t);
        let own = runs.run_of(tile, lane, from);
        let length = own.len() as u32;
        let split = if tile.rank == 0 {
            0
        } else {
            // A tile takes from no run more than its own length.
            let (low, high) = match known {
                None => (0, length),
                Some(low) => (low, (low + tile_keys).min(length)),
            };
            // SAFETY: the lanes of a warp have the same tile, and so the same path through here.
            unsafe { select(Range { run: own, low, high }, tile.rank as u64) }
        };
        known = Some(split);
        if lane < k {
            splits.set(t * k as usize + lane as usize, split);
        }
    }
}

/// Keys that a tile of `slots` places in shared memory takes: `pairs` of pieces may each leave up to `values - 1` places
/// empty. A multiple of 32, so that tiles begin at whole lines of memory.
pub const fn tile_keys(slots: usize, values: usize, k: u32) -> u32 {
    ((slots - k as usize / 2 * (values - 1)) / 32 * 32) as u32
}

/// Bytes of dynamic shared memory for tiles of `slots` places.
pub const fn shared_bytes<B>(slots: usize) -> u32 {
    (slots * size_of::<B>()) as u32 + PLAN_WORDS * size_of::<u32>() as u32
}

/// Words of shared memory besides the tile: for each piece where it begins in its run, its length and its place; for each
/// pair where it begins, and one for where the last one ends.
const PLAN_WORDS: u32 = 3 * MAX_RUNS + MAX_RUNS / 2 + 1;

/// Where the pieces of a tile go, in shared memory.
#[derive(Clone, Copy)]
struct Plan {
    starts: Shared<u32>,
    lengths: Shared<u32>,
    /// The place of a piece's first key; the pieces of a pair lie upwards from its beginning and downwards from its end.
    places: Shared<u32>,
    /// Where pairs begin.
    pairs: Shared<u32>,
}

impl Plan {
    /// # Safety
    /// The launch has [`shared_bytes`] of dynamic shared memory for `slots` places.
    #[inline(always)]
    unsafe fn after<B>(slots: usize) -> Self {
        let at = (slots * size_of::<B>()) as u32;
        // SAFETY: the caller's promise; a barrier divides writing the plan from reading it.
        let array = |i: u32, length| unsafe { Shared::dynamic(at + i * MAX_RUNS * 4, length) };
        Self {
            starts: array(0, MAX_RUNS),
            lengths: array(1, MAX_RUNS),
            places: array(2, MAX_RUNS),
            pairs: array(3, MAX_RUNS / 2 + 1),
        }
    }

    /// Lays out pieces, the lane's own from `start` on and `length` long, in pairs of whole multiples of `values`.
    ///
    /// # Safety
    /// The lanes of one whole warp make this call.
    #[inline(always)]
    unsafe fn lay_out(self, start: u32, length: u32, values: u32) {
        let lane = warp::lane_id();
        // SAFETY: the caller's promise, here and below.
        let both = length + unsafe { warp::shuffle_xor(FULL_MASK, length, 1) };
        let slots = both.div_ceil(values) * values;
        // The sum over the lanes up to this one, each pair counted at its first lane.
        let mut end = if lane % 2 == 0 { slots } else { 0 };
        let mut distance = 1;
        while distance < WARP_SIZE {
            // SAFETY: the caller's promise; lane 0 is there.
            let before = unsafe { warp::shuffle_idx(FULL_MASK, end, lane.saturating_sub(distance)) };
            if lane >= distance {
                end += before;
            }
            distance *= 2;
        }
        let begin = end - slots;
        self.starts.set(lane, start);
        self.lengths.set(lane, length);
        self.places.set(lane, if lane % 2 == 0 { begin } else { end.wrapping_sub(1) });
        if lane % 2 == 0 {
            self.pairs.set(lane / 2, begin);
        }
        if lane == WARP_SIZE - 1 {
            self.pairs.set(MAX_RUNS / 2, end);
        }
    }

    /// Where the last pair ends.
    #[inline(always)]
    fn end(self) -> u32 {
        self.pairs.get(MAX_RUNS / 2)
    }

    /// The pair that place `slot` is in, if it is before the end.
    #[inline(always)]
    fn pair_of(self, slot: u32) -> u32 {
        let (mut pair, mut half) = (0, MAX_RUNS / 4);
        // The last pair that begins at or before the place: empty ones before it begin where it does.
        while half > 0 {
            if self.pairs.get(pair + half) <= slot {
                pair += half;
            }
            half /= 2;
        }
        pair
    }
}

/// Kernel: merges each group of `k` runs of `from` into the same places of `to`, one block a tile, at the splits that
/// [`split_runs`] found. Keys are stored as `always` and `when_negative` decode them ([`Coding`]).
///
/// # Safety
/// `from` has `n` keys in ascending runs of `run` keys, as [`Runs`] says, for tiles of [`tile_keys`]; `to` has room for `n`
/// and does not overlap `from`; `splits` are those of `split_runs`. Blocks are of `NT` threads, whole warps, one for each
/// tile, with [`shared_bytes`] of dynamic shared memory for `NT * VT` places.
#[kernel(
    u32 = <u32, { ROW.sort_4.threads }, { ROW.sort_4.values }>,
    u64 = <u64, { ROW.sort_8.threads }, { ROW.sort_8.values }>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_runs<B: Bits, const NT: usize, const VT: usize>(
    from: *const B,
    n: usize,
    run: usize,
    k: u32,
    to: *mut B,
    splits: *const u32,
    always: B,
    when_negative: B,
) {
    let runs = Runs { n, run, k, tile_keys: tile_keys(NT * VT, VT, k) };
    let t = thread::block_idx_x() as usize;
    let tile = runs.tile(t);
    let count = (tile.length - tile.rank).min(runs.tile_keys as usize);
    let thread = thread::thread_idx_x();
    // SAFETY: the caller's promise; barriers divide writing the tile and the plan from reading them.
    let (from, to, keys, plan) = unsafe {
        let keys = Shared::<B>::dynamic(0, (NT * VT) as u32);
        (Global::new(from, n), GlobalMut::new(to, n), keys, Plan::after::<B>(NT * VT))
    };

    if thread < WARP_SIZE {
        // SAFETY: the caller's promise.
        let splits = unsafe { Global::new(splits, (t + 2) * k as usize) };
        let (mut start, mut end) = (0, runs.run_of(tile, thread, from).len() as u32);
        if thread < k {
            start = splits.get(t * k as usize + thread as usize);
            if tile.rank + count < tile.length {
                end = splits.get((t + 1) * k as usize + thread as usize);
            }
        }
        // SAFETY: this is the first warp.
        unsafe { plan.lay_out(start, end - start, VT as u32) };
    }
    thread::sync_threads();

    // Global to shared: a warp a piece.
    let (lane, mut piece) = (thread % WARP_SIZE, thread / WARP_SIZE);
    while piece < k {
        let source = runs.run_of(tile, piece, from);
        let (start, length, place) = (plan.starts.get(piece), plan.lengths.get(piece), plan.places.get(piece));
        let mut i = lane;
        while i < length {
            let slot = if piece % 2 == 0 { place + i } else { place - i };
            keys.copy_async(slot, source, (start + i) as usize);
            i += WARP_SIZE;
        }
        // The places between a pair's two pieces.
        let end = plan.pairs.get(piece / 2 + 1);
        if piece % 2 == 0 {
            let mut slot = place + length + lane;
            while slot < end - plan.lengths.get(piece + 1) {
                keys.set(slot, B::MAX);
                slot += WARP_SIZE;
            }
        }
        piece += (NT as u32) / WARP_SIZE;
    }
    shared::wait_for_copies();
    // A thread beyond the last pair merges a list of its own, so that all threads do the same.
    let slot = thread * VT as u32;
    let idle = slot >= plan.end();
    let pair = plan.pair_of(slot);
    if idle {
        tile::registers_upwards([B::MAX; VT], slot, keys);
    }
    thread::sync_threads();

    // Rounds: a list of `1 << level` pairs of pieces is merged from its two halves.
    let levels = k.trailing_zeros();
    let mut level = 0;
    while level < levels {
        let list = pair >> level;
        let (mut begin, mut half, mut end) = (slot, slot, slot + VT as u32);
        if !idle {
            begin = plan.pairs.get(list << level);
            end = plan.pairs.get((list + 1) << level);
            half = if level == 0 {
                end - plan.lengths.get(2 * pair + 1)
            } else {
                plan.pairs.get((list << level) + (1 << (level - 1)))
            };
        }
        let merged: [B; VT] = tile::merge_to_registers(keys.slice(begin, end - begin), half - begin, slot - begin);
        thread::sync_threads();
        // The second half of the next list lies downwards from its end.
        if idle || list % 2 == 0 {
            tile::registers_upwards(merged, slot, keys);
        } else {
            tile::registers_downwards(merged, end - 1 - (slot - begin), keys);
        }
        level += 1;
        thread::sync_threads();
    }

    // Shared to global.
    tile::decode_to_global::<_, NT>(keys, to.slice(tile.group + tile.rank, count), Coding { always, when_negative });
}
