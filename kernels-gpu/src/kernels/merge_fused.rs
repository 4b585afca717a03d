//! Merge Path in one launch: each persistent block merges the tiles of its own part of C.
//!
//! ```text
//!   C       ├───┬───┬───┬───┼───┬───┬───┬───┼───┬───┬───┬───┤      tiles, and the parts of three blocks
//!
//!   block   warps 0 …          load tile t ── merge ───────── store ── load tile t + 1 ── …
//!           the last warp                      search the end
//!                                              of tile t + 1
//! ```
//!
//! The end of a tile in A and B is searched only when it is needed, in the keys up to a tile's length behind the tile
//! before. These are few keys, and they are about to be loaded anyway. So there is no partition kernel, no workspace
//! and no second pass over scattered memory. Only a block's first tile is searched in the whole of A and B.

use crate::block::shared_memory::shared_memory;
use crate::block::tile;
use crate::key::{Bits, Coding};
use crate::keys::{Keys, KeysMut};
use crate::textbook::co_rank::clamp_split;
use crate::tuning::ROW;
use crate::warp::diagonal_search::warp_diagonal_search;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Threads of a block that merges with `threads` threads: one more warp searches.
pub const fn block_threads(threads: usize) -> u32 {
    threads as u32 + WARP_SIZE
}

/// Bytes of dynamic shared memory for tiles of `keys` keys: the tile and two splits.
pub const fn shared_bytes<B: Bits>(keys: usize) -> u32 {
    Memory::<B>::bytes(keys)
}

shared_memory! {
    /// A tile of `slots` keys.
    struct Memory<B: Bits>(slots: usize) {
        keys: [B; slots],
        /// Number of keys of A before the ends of two tiles.
        splits: [usize; 2],
    }
}

/// Kernel: merges `a` and `b` into `c`, as `coding` orders their keys. Any number of blocks is correct; the number that
/// the GPU holds at once is best.
///
/// # Safety
/// `a` and `b` are ascending arrays of `m` and `n` keys, and `c` has capacity for `m + n` keys, in global memory. `c`
/// overlaps neither. Blocks have [`block_threads`] threads for `NT`, a multiple of 32, with [`shared_bytes`] of dynamic
/// shared memory for `NT * VT` keys.
#[kernel(
    u32 = <u32, { ROW.fused.of(4, 0).threads }, { ROW.fused.of(4, 0).items_per_thread }>,
    u64 = <u64, { ROW.fused.of(8, 0).threads }, { ROW.fused.of(8, 0).items_per_thread }>,
)]
pub unsafe fn merge_fused<B: Bits, const NT: usize, const VT: usize>(
    a: *const B,
    m: usize,
    b: *const B,
    n: usize,
    c: *mut B,
    coding: Coding<B>,
) {
    // SAFETY: `a`, `b` and `c` have `m`, `n` and `m + n` elements. Tile `t` begins at `t * tile_keys` and ends at or
    // before `total = m + n`. The block whose part `first .. last` contains `t` writes it, and parts do not overlap.
    let (a, b, c) = unsafe { (Keys::new(a, m, coding), Keys::new(b, n, coding), KeysMut::new(c, m + n, coding)) };
    // SAFETY: `NT * VT` keys, and behind them two splits, are the `shared_bytes` of the launch. The `NT` merging
    // threads write slots `thread + i * NT` and `thread * VT + i`, `i < VT`: below `NT * VT`, each by one thread. A
    // barrier follows each of the first three steps of a tile. The last step reads the slots that the same thread
    // writes in the first step of the next tile. So no slot and no split is written while another thread reads it.
    let Memory { keys, splits } = unsafe { Memory::<B>::at_start(NT * VT) };
    let (total, tile_keys) = (m + n, NT * VT);
    // The block's part of C: tiles are distributed as evenly as possible.
    let (tiles, blocks, block) =
        (total.div_ceil(tile_keys), thread::grid_dim_x() as usize, thread::block_idx_x() as usize);
    let first = block * (tiles / blocks) + block.min(tiles % blocks);
    let last = first + tiles / blocks + usize::from(block < tiles % blocks);

    let thread = thread::thread_idx_x();
    let merges = thread < NT as u32;
    let slot = thread * VT as u32;

    // Two warps search the ends of the first tile.
    let mut k = first * tile_keys;
    let mut k_next = (k + tile_keys).min(total);
    if first < last && (thread < WARP_SIZE || !merges) {
        let k = if merges { k } else { k_next };
        // SAFETY: `NT` is a multiple of 32, so that `merges` is the same for all lanes of a warp. The first warp and
        // the last one make the call, each with one `k <= total`. The bounds are the bounds of diagonal `k`.
        let split = unsafe { warp_diagonal_search(k, a, b, k.saturating_sub(n), k.min(m)) };
        if thread.is_multiple_of(WARP_SIZE) {
            splits.set(u32::from(!merges), split);
        }
    }
    thread::sync_threads();
    if first == last {
        return;
    }
    let mut a_curr = splits.get(0);
    let mut a_next = clamp_split(a_curr, splits.get(1), k_next - k);
    for t in first..last {
        // Global to shared.
        let (a_tile, b_tile) =
            (a.slice(a_curr, a_next - a_curr), b.slice(k - a_curr, (k_next - a_next) - (k - a_curr)));
        if merges {
            let loaded = tile::ends_to_registers::<B, NT, VT>(a_tile, b_tile);
            tile::store_striped::<_, NT, VT>(loaded, keys);
        }
        thread::sync_threads();

        // Shared to registers; the last warp searches ahead.
        let mut merged = [B::MAX; VT];
        let k_after = (k_next + tile_keys).min(total);
        if merges {
            merged = tile::merge_to_registers(keys, (tile_keys - b_tile.len()) as u32, slot);
        } else if t + 1 < last {
            let (low, high) = (a_next.max(k_after.saturating_sub(n)), (a_next + (k_after - k_next)).min(m));
            // SAFETY: the 32 lanes of the last warp make the call. The next tile takes from 0 to `k_after - k_next`
            // keys from A. The split also lies between `k_after - n` and `m`, the bounds of the diagonal.
            let split = unsafe { warp_diagonal_search(k_after, a, b, low, high) };
            if thread == NT as u32 {
                splits.set(0, split);
            }
        }
        thread::sync_threads();
        if merges {
            tile::store_blocked(merged, slot, keys);
        }
        let split = if t + 1 < last { splits.get(0) } else { 0 };
        thread::sync_threads();

        // Shared to global.
        if merges {
            tile::shared_to_global::<B, NT, VT>(keys, c.slice(k, k_next - k));
        }
        (a_curr, a_next) = (a_next, split);
        (k, k_next) = (k_next, k_after);
    }
}
