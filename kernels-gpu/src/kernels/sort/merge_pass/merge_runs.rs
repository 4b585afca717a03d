//! The kernel of a pass: one block merges the segments of one tile.
//!
//! ```text
//!   from       │  ░░  │  ░░░  │  ░  │  ░░  │     the segments of a tile
//!      plan, load                                 to their slots of shared memory
//!      rounds                                     merged there
//!   to         │ … ░░░░░░░░ …             │     whole lines of memory
//! ```

use super::plan::Plan;
use super::{MIN_BLOCKS_PER_SM, takes_several, tile_keys};
use crate::block::shared_memory;
use crate::elements::{Arrays, Elements, Source};
use crate::kernels::sort::detect_runs::Detection;
use crate::kernels::sort::is_whole_warps;
use crate::kernels::sort::payload::beside::Beside;
use crate::kernels::sort::payload::nothing::Nothing;
use crate::kernels::sort::payload::packed::Packed;
use crate::kernels::sort::payload::{Payload, is_of_host};
use crate::kernels::sort::runs::{Division, MAX_RUNS, Runs, Shuffle};
use crate::key::{Bits, Coding};
use crate::keys::Keys;
use crate::tuning::ROW;
use cuda_std::prelude::*;

pub use crate::kernels::sort::payload::merge_runs_bytes as shared_bytes;

/// Kernel: merges each group of `runs` of `from`, with the keys' payload, to the same indices of `to`. A block merges a
/// tile. If `SEVERAL`, which takes more registers, there may be fewer blocks, and a block merges one tile after
/// another. [`split_runs`](super::split_runs::split_runs) has found the splits; if `splits` is null, blocks find them,
/// which takes longer but saves a launch. Keys are stored as `decode` decodes them. `order` is the argument of
/// `block_sort`. If the payload [keeps equal keys in their order](Payload::KEEPS_ORDER), runs are not shuffled,
/// whatever `runs` says.
///
/// # Safety
/// All arrays have `runs.keys()` elements, in global memory. `from` has ascending runs, and `to` overlaps no other
/// array. `runs` are for tiles of `NT * VT` slots, as [`runs_in_tiles`](super::runs_in_tiles) makes them. `splits` is
/// null, or `split_runs` has written it. Blocks have `NT` threads, a power of two from 64 to 1024, with
/// [`shared_bytes`] of dynamic shared memory for `NT * VT` slots. There is a block for each tile, unless `SEVERAL`.
#[kernel(
    u32 = <u32, (), Nothing, { ROW.merge_runs.of(4, 0).threads }, { ROW.merge_runs.of(4, 0).items_per_thread },
        { takes_several(4, 0) }>
        within (ROW.merge_runs.of(4, 0).threads, MIN_BLOCKS_PER_SM),
    u64 = <u64, (), Nothing, { ROW.merge_runs.of(8, 0).threads }, { ROW.merge_runs.of(8, 0).items_per_thread },
        { takes_several(8, 0) }>
        within (ROW.merge_runs.of(8, 0).threads, MIN_BLOCKS_PER_SM),
    u32small = <u32, (), Nothing,
        { ROW.merge_runs_small.of(4, 0).threads }, { ROW.merge_runs_small.of(4, 0).items_per_thread }, false>,
    u64small = <u64, (), Nothing,
        { ROW.merge_runs_small.of(8, 0).threads }, { ROW.merge_runs_small.of(8, 0).items_per_thread }, false>,
    u32v4 = <u32, u32, Beside, { ROW.merge_runs.of(4, 4).threads }, { ROW.merge_runs.of(4, 4).items_per_thread },
        { takes_several(4, 4) }>
        within (ROW.merge_runs.of(4, 4).threads, MIN_BLOCKS_PER_SM),
    u32v8 = <u32, u64, Packed, { ROW.merge_runs.of(4, 8).threads }, { ROW.merge_runs.of(4, 8).items_per_thread },
        { takes_several(4, 8) }>
        within (ROW.merge_runs.of(4, 8).threads, MIN_BLOCKS_PER_SM),
    u64v4 = <u64, u32, Packed, { ROW.merge_runs.of(8, 4).threads }, { ROW.merge_runs.of(8, 4).items_per_thread },
        { takes_several(8, 4) }>
        within (ROW.merge_runs.of(8, 4).threads, MIN_BLOCKS_PER_SM),
    u64v8 = <u64, u64, Packed, { ROW.merge_runs.of(8, 8).threads }, { ROW.merge_runs.of(8, 8).items_per_thread },
        { takes_several(8, 8) }>
        within (ROW.merge_runs.of(8, 8).threads, MIN_BLOCKS_PER_SM),
)]
pub unsafe fn merge_runs<
    B: Bits,
    V: Word,
    P: Payload<B, V, NT, VT>,
    const NT: usize,
    const VT: usize,
    const SEVERAL: bool,
>(
    from: Elements<B, V>,
    to: Elements<B, V>,
    runs: Runs,
    splits: *const u32,
    decode: Coding<B>,
    order: *mut u32,
) {
    // SAFETY: `order` is null, or `DETECTION_WORDS` words that this launch only reads.
    if unsafe { Detection::new(order) }.is_done() {
        return;
    }
    let runs = if P::KEEPS_ORDER { runs.shuffled(Shuffle::NONE) } else { runs };
    let (n, tiles) = (runs.keys(), runs.tiles());
    let split_words = if splits.is_null() { 0 } else { tiles * runs.k() as usize };
    // SAFETY: `splits` is null, or has `k` words for each of `tiles` tiles, as `split_runs` has written. All arrays
    // have `n` elements, and `to` overlaps no other. A block writes only its own tiles, and tiles do not overlap.
    let (splits, from, to) = unsafe { (Global::new(splits, split_words), from.source(n), to.arrays(n)) };
    let mut t = thread::block_idx_x() as usize;
    while t < tiles {
        // SAFETY: `t` is the same for all threads, so that all threads of the block make the call. `t` is below the
        // number of tiles, and the launch has `shared_bytes` for `NT * VT` slots. A barrier comes before the next tile.
        unsafe { merge_tile::<B, V, P, NT, VT>(runs, t, from, to, splits, Coding::NONE, decode) };
        if !SEVERAL {
            break;
        }
        t += thread::grid_dim_x() as usize;
        if t < tiles {
            thread::sync_threads();
        }
    }
}

/// Merges tile `t`. If `splits` is empty, the block finds the splits itself. Keys are loaded as `encode` encodes them
/// and stored as `decode` decodes them.
///
/// # Safety
/// The requirements of [`merge_runs`] hold. All threads of the block make this call, after a barrier if shared memory
/// has been used before.
#[inline(always)]
pub(in crate::kernels::sort) unsafe fn merge_tile<
    B: Bits,
    V: Word,
    P: Payload<B, V, NT, VT>,
    const NT: usize,
    const VT: usize,
>(
    runs: impl Division,
    t: usize,
    from: Source<B, V>,
    to: Arrays<B, V>,
    splits: Global<u32>,
    encode: Coding<B>,
    decode: Coding<B>,
) {
    const {
        assert!(
            NT.is_power_of_two() && NT >= 64 && is_whole_warps(NT),
            "two warps divide the runs, and a warp stores whole lines"
        )
    };
    const { assert!(tile_keys(NT * VT, VT, MAX_RUNS, 0) > 0, "a tile has slots for the most runs") };
    const { assert!(is_of_host::<B, V, P, NT, VT>(), "the host launches with memory for another payload") };
    const { shared_memory::check(Plan::end(P::TILE_BYTES)) };
    // SAFETY: the plan lies behind the `TILE_BYTES` of the tile and ends with the `shared_bytes` of the launch. A
    // barrier comes between writing and reading the plan, and another one before the next tile.
    let plan = unsafe { Plan::at(P::TILE_BYTES) };
    // SAFETY: all `NT >= 64` threads of the block make both calls. `splits` is empty, or has `k` words for each tile,
    // as `split_runs` has written. `divide` ends with a barrier, and the plan does not overlap the tile.
    unsafe {
        plan.divide(runs, t, runs.tile(t), Keys::at(from.keys, encode), splits, VT as u32);
        P::merge(plan, from, to, encode, decode);
    }
}
