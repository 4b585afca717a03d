//! A pass that merges the runs that [`detect_runs`](crate::kernels::sort::detect_runs::detect_runs) has found, if there
//! are few.
//!
//! ```text
//!   from     │ run 0      │ run 1 │ run 2           │ run 3 │     up to 32 runs of any lengths: one group
//!   to       │ tile 0 │ tile 1 │ tile 2 │ …                │     persistent blocks take tile after tile
//! ```
//!
//! Splits and tiles are made as in [`split_runs`](super::split_runs) and [`merge_runs`](super::merge_runs). The kernels
//! are launched before it is known whether there are long runs, and do nothing if there are none.

use super::merge_runs::merge_tile;
use super::split_runs::find_splits;
use super::{MIN_BLOCKS_PER_SM, tile_keys};
use crate::elements::Elements;
use crate::kernels::sort::detect_runs::Detection;
use crate::kernels::sort::payload::Payload;
use crate::kernels::sort::payload::beside::Beside;
use crate::kernels::sort::payload::nothing::Nothing;
use crate::kernels::sort::payload::packed::Packed;
use crate::kernels::sort::runs::{Division, LongRuns, MAX_RUNS};
use crate::key::{Bits, Coding};
use crate::keys::Keys;
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Kernel: [`split_runs`](super::split_runs::split_runs) for the runs that
/// [`detect_runs`](crate::kernels::sort::detect_runs::detect_runs) has found, if there are few. Each tile has
/// [`MAX_RUNS`] splits.
///
/// # Safety
/// `from` has `n` keys, and `splits` has capacity for [`MAX_RUNS`] words for each tile. Blocks are whole warps, with a
/// warp for `per_warp` tiles. `copy_runs` has written `starts`, and `detect_runs` has written `order`.
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
    // SAFETY: `starts` has `MAX_RUNS + 1` indices, as `copy_runs` has written, and is read at `i` and `i + 1` for a
    // lane `i < MAX_RUNS`.
    let runs = LongRuns { starts: unsafe { Global::new(starts, MAX_RUNS as usize + 1) }, n, tile_keys };
    // SAFETY: `from` has `n` keys, and `splits` has capacity for `MAX_RUNS` words for each tile. Only one lane of the
    // warp of tile `t` writes `splits[t * MAX_RUNS + lane]`, and warps have different tiles.
    let (from, splits) = unsafe { (Global::new(from, n), GlobalMut::new(splits, runs.tiles() * MAX_RUNS as usize)) };
    // SAFETY: `order` has the `DETECTION_WORDS` words of `detect_runs`, which this launch only reads.
    if unsafe { Detection::new(order) }.is_of_long_runs() {
        // SAFETY: blocks are whole warps, and `order` is the same for all lanes, so that whole warps make the call.
        unsafe { find_splits(runs, Keys::at(from, Coding::NONE), splits, per_warp as usize, |_, _| ()) };
    }
}

/// Kernel: [`merge_runs`](super::merge_runs::merge_runs) for runs whose splits [`split_long_runs`] has found. Blocks
/// are persistent, and take one tile after another. So only a few blocks start if there is nothing to do.
///
/// # Safety
/// The requirements of `merge_runs` hold for `n` keys, with any number of blocks. `starts` and `order` meet the
/// requirements of [`split_long_runs`].
#[kernel(
    u32 = <u32, (), Nothing, { ROW.merge_runs.of(4, 0).threads }, { ROW.merge_runs.of(4, 0).items_per_thread }>
        within (ROW.merge_runs.of(4, 0).threads, MIN_BLOCKS_PER_SM),
    u64 = <u64, (), Nothing, { ROW.merge_runs.of(8, 0).threads }, { ROW.merge_runs.of(8, 0).items_per_thread }>
        within (ROW.merge_runs.of(8, 0).threads, MIN_BLOCKS_PER_SM),
    u32v4 = <u32, u32, Beside, { ROW.merge_runs.of(4, 4).threads }, { ROW.merge_runs.of(4, 4).items_per_thread }>
        within (ROW.merge_runs.of(4, 4).threads, MIN_BLOCKS_PER_SM),
    u32v8 = <u32, u64, Packed, { ROW.merge_runs.of(4, 8).threads }, { ROW.merge_runs.of(4, 8).items_per_thread }>
        within (ROW.merge_runs.of(4, 8).threads, MIN_BLOCKS_PER_SM),
    u64v4 = <u64, u32, Packed, { ROW.merge_runs.of(8, 4).threads }, { ROW.merge_runs.of(8, 4).items_per_thread }>
        within (ROW.merge_runs.of(8, 4).threads, MIN_BLOCKS_PER_SM),
    u64v8 = <u64, u64, Packed, { ROW.merge_runs.of(8, 8).threads }, { ROW.merge_runs.of(8, 8).items_per_thread }>
        within (ROW.merge_runs.of(8, 8).threads, MIN_BLOCKS_PER_SM),
)]
pub unsafe fn merge_long_runs<B: Bits, V: Word, P: Payload<B, V, NT, VT>, const NT: usize, const VT: usize>(
    from: Elements<B, V>,
    to: Elements<B, V>,
    n: usize,
    splits: *const u32,
    starts: *const usize,
    decode: Coding<B>,
    order: *mut u32,
) {
    // SAFETY: `order` has the `DETECTION_WORDS` words of `detect_runs`, which this launch only reads.
    if !unsafe { Detection::new(order) }.is_of_long_runs() {
        return;
    }
    // SAFETY: `starts` has `MAX_RUNS + 1` indices, as `copy_runs` has written, and is read at `i` and `i + 1` for a
    // lane `i < MAX_RUNS`.
    let starts = unsafe { Global::new(starts, MAX_RUNS as usize + 1) };
    let runs = LongRuns { starts, n, tile_keys: tile_keys(NT * VT, VT, MAX_RUNS, 0) };
    // SAFETY: `splits` has `MAX_RUNS` words for each tile, as `split_long_runs` has written. All arrays have `n`
    // elements, and `to` overlaps no other. A block writes only its own tiles, and tiles do not overlap.
    let (splits, from, to) =
        unsafe { (Global::new(splits, runs.tiles() * MAX_RUNS as usize), from.source(n), to.arrays(n)) };
    let mut t = thread::block_idx_x();
    while t < runs.tiles() as u32 {
        // SAFETY: `t` is the same for all threads, so that all threads of the block make the call. `t` is below the
        // number of tiles, and the launch has `shared_bytes` for `NT * VT` slots. A barrier comes before the next tile.
        unsafe { merge_tile::<B, V, P, NT, VT>(runs, t as usize, from, to, splits, Coding::NONE, decode) };
        thread::sync_threads();
        t += thread::grid_dim_x();
    }
}
