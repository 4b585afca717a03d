//! A pass over runs of any lengths, given as an array and offsets. A user gives them, or
//! [`detect_runs`](crate::kernels::sort::detect_runs::detect_runs) has found them.
//!
//! ```text
//!   offsets  0            5       8                 14
//!   from     │ run 0      │ run 1 │ run 2           │ …      up to 32 runs are a group
//!   to       │ tile 0 │ tile 1 │ tile 2 │ tile 3 │  …       a block merges a tile
//! ```
//!
//! Splits and tiles are made as in [`split_runs`](super::split_runs) and [`merge_runs`](super::merge_runs). The first
//! pass reads keys as the user has them, and encodes them when it loads them: nothing is copied before. A block that
//! has merged its tile prefetches the keys of a later tile into the L2 cache. The next block in its place finds them
//! there.
//!
//! For detected runs, the kernels are launched before it is known whether there are any, and do nothing if there are
//! none. Where a [block takes several tiles](takes_several), only a few blocks start.

use super::merge_runs::merge_tile;
use super::split_runs::find_splits;
use super::{MIN_BLOCKS_PER_SM, takes_several, tile_keys};
use crate::block::LINE;
use crate::elements::Elements;
use crate::kernels::sort::detect_runs::Detection;
use crate::kernels::sort::payload::Payload;
use crate::kernels::sort::payload::beside::Beside;
use crate::kernels::sort::payload::nothing::Nothing;
use crate::kernels::sort::payload::packed::Packed;
use crate::kernels::sort::runs::{Division, MAX_RUNS, OffsetRuns, TileOfRuns};
use crate::key::{Bits, Coding};
use crate::keys::Keys;
use crate::tuning::{ROW, Tile};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, shuffle_idx};

pub use crate::kernels::sort::payload::merge_runs_bytes as shared_bytes;

/// The shape of the tiles of [`merge_many_runs`], for keys of `key_bytes` bytes with values of `value_bytes` bytes, or
/// 0.
pub const fn tile_shape(key_bytes: usize, value_bytes: usize) -> Tile {
    ROW.merge_runs.of(key_bytes, value_bytes)
}

/// Number of keys by which a tile may begin earlier or later than its rank. Tiles of keys with values begin at whole
/// lines of memory.
///
/// The tolerance is that of a sort of few keys. There is usually one group, so that a tile more or less does not
/// matter, but the searches do.
pub const fn rank_tolerance(value_bytes: usize) -> u32 {
    if value_bytes == 0 { ROW.small_rank_tolerance } else { 0 }
}

/// Keys of a tile if `k` runs are merged.
pub const fn keys_of_tile(key_bytes: usize, value_bytes: usize, k: u32) -> u32 {
    let shape = tile_shape(key_bytes, value_bytes);
    tile_keys(shape.keys(), shape.items_per_thread, k, rank_tolerance(value_bytes))
}

const _: () = {
    let (narrow, wide) = (keys_of_tile(4, 0, MAX_RUNS), keys_of_tile(8, 0, MAX_RUNS));
    assert!(
        narrow > 2 * rank_tolerance(0) && wide > 2 * rank_tolerance(0),
        "a tile has more than the tolerance at both ends"
    );
};

/// Words for each tile in the array of splits: one for each run of a group, and the number of the tile's group. The
/// groups are behind all splits.
pub const fn words_of_tile(k: u32) -> usize {
    k as usize + 1
}

/// Kernel: writes to `splits[t * k + i]` the number of keys of run `i` of its group that the merge takes before tile
/// `t`. Behind all splits, it writes the group of each tile. Keys are in the order of `encode`. If `found` is not null,
/// it is the result of a detection, and the kernel does nothing unless there are a few long runs.
///
/// # Safety
/// `from` has `runs.n` keys, and the fields of `runs` meet their descriptions. `splits` has capacity for
/// [`words_of_tile`] words for each tile. Blocks are whole warps, with a warp for `per_warp` tiles. `found` is null, or
/// `detect_runs` has written it.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn split_many_runs<B: Bits>(
    from: *const B,
    runs: OffsetRuns,
    encode: Coding<B>,
    splits: *mut u32,
    per_warp: u32,
    found: *mut u32,
) {
    // SAFETY: `found` is null, or has the `DETECTION_WORDS` words of `detect_runs`, which this launch only reads.
    if unsafe { Detection::new(found) }.is_not_of_long_runs() {
        return;
    }
    let (tiles, k) = (runs.tile_count(), runs.k as usize);
    // SAFETY: `from` has `n` keys, and `splits` has `k + 1` words for each tile. Only the warp of tile `t` writes its
    // words: lane `i < k` writes `splits[t * k + i]`, and lane 0 writes word `tiles * k + t`. `groups_of_tiles` is
    // empty.
    let (from, splits, runs) = unsafe {
        let groups_of_tiles = Global::new(core::ptr::null(), 0);
        (
            Keys::new(from, runs.n, encode),
            GlobalMut::new(splits, tiles * words_of_tile(runs.k)),
            runs.division(groups_of_tiles),
        )
    };
    let groups = splits.slice(tiles * k, tiles);
    // SAFETY: blocks are whole warps, and `found` is the same for all lanes, so that whole warps make the call.
    unsafe {
        find_splits(runs, from, splits, per_warp as usize, |t, tile| {
            if warp::lane_id() == 0 {
                groups.set(t, runs.group_of(tile));
            }
        });
    }
}

/// Kernel: merges each group of `runs` of `from`, with the keys' payload, to the same indices of `to`. A block merges a
/// tile. If `SEVERAL`, there may be fewer blocks, and a block merges one tile after another. Keys are in the order of
/// `encode`, and stored as `decode` decodes them. `found` is as for [`split_many_runs`].
///
/// # Safety
/// All arrays have `runs.n` elements, in global memory, and `to` overlaps no other. The fields of `runs` meet their
/// descriptions, for tiles of `NT * VT` slots. [`split_many_runs`] has written `splits`, and `found` meets its
/// requirements. Blocks have `NT` threads, with [`shared_bytes`] of dynamic shared memory for `NT * VT` slots. There is
/// a block for each tile, unless `SEVERAL`.
#[kernel(
    u32 = <u32, (), Nothing, { tile_shape(4, 0).threads }, { tile_shape(4, 0).items_per_thread },
        { takes_several(4, 0) }>
        within (tile_shape(4, 0).threads, MIN_BLOCKS_PER_SM),
    u64 = <u64, (), Nothing, { tile_shape(8, 0).threads }, { tile_shape(8, 0).items_per_thread },
        { takes_several(8, 0) }>
        within (tile_shape(8, 0).threads, MIN_BLOCKS_PER_SM),
    u32v4 = <u32, u32, Beside, { tile_shape(4, 4).threads }, { tile_shape(4, 4).items_per_thread },
        { takes_several(4, 4) }>
        within (tile_shape(4, 4).threads, MIN_BLOCKS_PER_SM),
    u32v8 = <u32, u64, Packed, { tile_shape(4, 8).threads }, { tile_shape(4, 8).items_per_thread },
        { takes_several(4, 8) }>
        within (tile_shape(4, 8).threads, MIN_BLOCKS_PER_SM),
    u64v4 = <u64, u32, Packed, { tile_shape(8, 4).threads }, { tile_shape(8, 4).items_per_thread },
        { takes_several(8, 4) }>
        within (tile_shape(8, 4).threads, MIN_BLOCKS_PER_SM),
    u64v8 = <u64, u64, Packed, { tile_shape(8, 8).threads }, { tile_shape(8, 8).items_per_thread },
        { takes_several(8, 8) }>
        within (tile_shape(8, 8).threads, MIN_BLOCKS_PER_SM),
)]
pub unsafe fn merge_many_runs<
    B: Bits,
    V: Word,
    P: Payload<B, V, NT, VT>,
    const NT: usize,
    const VT: usize,
    const SEVERAL: bool,
>(
    from: Elements<B, V>,
    to: Elements<B, V>,
    runs: OffsetRuns,
    splits: *const u32,
    encode: Coding<B>,
    decode: Coding<B>,
    found: *mut u32,
) {
    // SAFETY: `found` is null, or has the `DETECTION_WORDS` words of `detect_runs`, which this launch only reads.
    if unsafe { Detection::new(found) }.is_not_of_long_runs() {
        return;
    }
    let (n, tiles, k) = (runs.n, runs.tile_count(), runs.k as usize);
    // SAFETY: `split_many_runs` has written `k` splits for each tile, and the groups of tiles behind them. All arrays
    // have `n` elements, and `to` overlaps no other. A block writes only its own tiles, and tiles do not overlap.
    let (splits, from, to, runs) = unsafe {
        let words = Global::new(splits, tiles * words_of_tile(runs.k));
        (words.slice(0, tiles * k), from.source(n), to.arrays(n), runs.division(words.slice(tiles * k, tiles)))
    };
    let mut t = thread::block_idx_x() as usize;
    while t < tiles {
        let tile = runs.tile(t);
        if tile.rank < tile.length {
            // SAFETY: `t` is the same for all threads, so that all threads of the block make the call. `t` is below the
            // number of tiles, and the launch has `shared_bytes` for `NT * VT` slots. A barrier comes before the next
            // tile.
            unsafe { merge_tile::<B, V, P, NT, VT>(runs, t, from, to, splits, encode, decode) };
            if size_of::<B>() == 4 && size_of::<V>() == 0 {
                // SAFETY: `tile` depends on `t` only, so that all threads of the block make the call. `NT` is a power
                // of two from 64 on, which is whole warps.
                unsafe { prefetch_ahead(runs, t, tile, from.keys, splits) };
            }
        }
        if !SEVERAL {
            break;
        }
        t += thread::grid_dim_x() as usize;
        if t < tiles {
            thread::sync_threads();
        }
    }
}

/// Prefetch distance, in tiles: a few more than the GPU has blocks at once. The block that takes this block's place
/// merges about that tile. Keys that come much earlier are evicted before they are read.
const AHEAD: usize = 400;

/// Upper limit on the runs of a group whose keys are prefetched: with more runs, the rounds take longer than memory.
const MOST_AHEAD: u32 = 8;

/// Prefetches the keys of the tile [`AHEAD`] tiles later into the L2 cache, if it is a whole tile of the same group.
///
/// # Safety
/// All threads of the block, whole warps, make this call.
#[inline(always)]
unsafe fn prefetch_ahead<B: Bits>(
    runs: impl Division,
    t: usize,
    tile: TileOfRuns,
    keys: Global<B>,
    splits: Global<u32>,
) {
    let (lane, k) = (warp::lane_id(), runs.k());
    if k > MOST_AHEAD || tile.rank + (AHEAD + 1) * runs.tile_keys() as usize >= tile.length {
        return;
    }
    // The lane's run has keys `first .. end` in that tile.
    let (mut first, mut end) = (0, 0);
    if lane < k {
        let at = (t + AHEAD) * k as usize + lane as usize;
        let start = runs.extent_of(tile, lane).0 as u32;
        (first, end) = (start + splits.get(at), start + splits.get(at + k as usize));
    }
    let mut run = thread::thread_idx_x() / WARP_SIZE;
    while run < k {
        // SAFETY: blocks are whole warps, and `run` is the same for the lanes of a warp, so that the 32 lanes make both
        // calls. `run` is below `k`, at most 8, a lane.
        let (first, end) = unsafe { (shuffle_idx(FULL_MASK, first, run), shuffle_idx(FULL_MASK, end, run)) };
        let mut i = first as usize + lane as usize * const { LINE / size_of::<B>() };
        while i < end as usize {
            keys.prefetch(i);
            i += WARP_SIZE as usize * const { LINE / size_of::<B>() };
        }
        run += thread::block_dim_x() / WARP_SIZE;
    }
}
