//! The splits of a pass: the number of keys of each run before every tile.
//!
//! ```text
//!   group      │ run 0      │ run 1      │ run 2      │      three of K runs, each ascending
//!   tile 0      ░░░          ░            ░░               splits 0, 0, 0
//!   tile 1         ░          ░░░░          ░              splits 3, 1, 2: as many keys before it as a tile has
//! ```
//!
//! A warp finds the splits of a tile, with a lane for each run, by a [multiway co-rank](crate::warp::multiway_co_rank).

use crate::kernels::sort::detect_runs::Detection;
use crate::kernels::sort::runs::{Division, Runs, TileOfRuns};
use crate::key::{Bits, Coding};
use crate::keys::Keys;
use crate::tuning::ROW;
use crate::warp::multiway_co_rank::{Range, multiway_co_rank};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Number of boundaries that a warp of [`split_runs`] finds, one after another, on a GPU with this number of
/// multiprocessors. Each is close to the one before. It is still faster to use all warps that the GPU holds at once.
pub const fn boundaries_per_warp(tiles: usize, multiprocessors: usize) -> u32 {
    tiles.div_ceil(ROW.split_warps * multiprocessors) as u32
}

/// Threads of a block of [`split_runs`] as the host launches it.
pub const SPLIT_THREADS: u32 = 4 * WARP_SIZE;

/// Blocks of [`SPLIT_THREADS`] threads that [`split_runs`] needs for `tiles` tiles, with `per_warp` for each warp.
pub const fn split_blocks(tiles: usize, per_warp: u32) -> usize {
    tiles.div_ceil((per_warp * SPLIT_THREADS / WARP_SIZE) as usize)
}

/// Kernel: writes to `splits[t * k + i]` the number of keys of run `i` of its group that the merge takes before tile
/// `t`. `k` runs form a group.
///
/// # Safety
/// `from` has `runs.keys()` keys in ascending runs. `splits` has capacity for `k` numbers for each tile. Blocks are
/// whole warps, with a warp for `per_warp` tiles. `order` is the argument of `block_sort`.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn split_runs<B: Bits>(from: *const B, runs: Runs, splits: *mut u32, per_warp: u32, order: *mut u32) {
    // SAFETY: `from` has `runs.keys()` keys, and `splits` has capacity for `k` words for each tile. Only lane `lane <
    // k` of the warp of tile `t` writes `splits[t * k + lane]`, and warps have different tiles.
    let (from, splits) =
        unsafe { (Global::new(from, runs.keys()), GlobalMut::new(splits, runs.tiles() * runs.k() as usize)) };
    // SAFETY: `order` is null, or `DETECTION_WORDS` words that this launch only reads.
    if !unsafe { Detection::new(order) }.is_done() {
        // SAFETY: blocks are whole warps, and `order` is the same for all lanes, so that whole warps make the call.
        unsafe { find_splits(runs, Keys::at(from, Coding::NONE), splits, per_warp as usize, |_, _| ()) };
    }
}

/// Finds the splits of `per_warp` tiles with one warp. Calls `found` with each tile and its number.
///
/// # Safety
/// Whole warps make this call.
#[inline(always)]
pub(super) unsafe fn find_splits<B: Bits>(
    runs: impl Division,
    from: Keys<B>,
    splits: GlobalMut<u32>,
    per_warp: usize,
    found: impl Fn(usize, TileOfRuns),
) {
    let (lane, k) = (warp::lane_id(), runs.k());
    let warp = thread::block_idx_x() * (thread::block_dim_x() / WARP_SIZE) + thread::thread_idx_x() / WARP_SIZE;
    let first = warp as usize * per_warp;
    let mut known: Option<u32> = None;
    for t in first..(first + per_warp).min(runs.tiles()) {
        let tile = runs.tile(t);
        let (start, length) = runs.extent_of(tile, lane);
        let own = from.slice(start, length as usize);
        let split = if tile.rank == 0 {
            0
        } else {
            // A tile takes from a run at most its own length: with more keys it would exceed the length of a tile.
            let too_many = runs.tile_keys() + 2 * runs.rank_tolerance() + 1;
            let (low, high) = match known {
                None => (0, length),
                Some(low) => (low, low.saturating_add(too_many).min(length)),
            };
            // SAFETY: the tiles of a warp are the same for all its lanes, so that the 32 lanes make the call.
            unsafe { multiway_co_rank(Range { run: own, low, high }, tile.rank as u64, runs.rank_tolerance()) }
        };
        known = Some(split);
        if lane < k {
            splits.set(t * k as usize + lane as usize, split);
        }
        found(t, tile);
    }
}
