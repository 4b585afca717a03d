//! The kernel of a pass: one block merges the segments of one tile.
//!
//! ```text
//!   from       │  ░░  │  ░░░  │  ░  │  ░░  │     the segments of a tile
//!      plan, load                                 to their slots of shared memory
//!      rounds                                     merged there
//!   to         │ … ░░░░░░░░ …             │     whole lines of memory
//! ```

use super::plan::{PLAN_BYTES, Plan};
use super::rounds::merge_segments;
use super::{MIN_BLOCKS_PER_SM, runs_of_pass};
use crate::key::{Bits, Coding};
use crate::sort::detect_runs::Detection;
use crate::sort::runs::{Division, Shuffle};
use crate::tile;
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Bytes of dynamic shared memory for tiles of that many slots.
pub const fn shared_bytes<B>(slots: usize) -> u32 {
    (slots * size_of::<B>()) as u32 + PLAN_BYTES
}

/// Kernel: merges each group of `k` runs of `from` to the same indices of `to`, one block a tile, or several one after the other if
/// there are fewer blocks and `SEVERAL` is true, which takes more registers. The splits are those that
/// [`split_runs`](super::split_runs::split_runs) found, or that it finds itself if `splits` is null: that takes longer, but no
/// launch. Keys are stored as `always` and `when_negative` decode them ([`Coding`]). `order` is that of `block_sort`; the last two
/// arguments are those of `split_runs`.
///
/// # Safety
/// `from` has `n` keys in ascending runs of `run` keys, as [`Runs`](crate::sort::runs::Runs) says, for tiles of [`tile_keys`](super::tile_keys); `to` has capacity for `n`
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
    // SAFETY: the caller promises `run`, `k` and `rank_tolerance` as `Runs` says for tiles of `tile_keys`: then
    // `Runs::new` does not panic.
    let runs = unsafe { runs_of_pass::<NT, VT>(n, run, k, rank_tolerance) };
    let runs = runs.shuffled(Shuffle { runs: shuffled_runs, random });
    // SAFETY: `from` and `to` have `n` keys and do not overlap. A block writes its tiles' parts of `to`, and tiles do
    // not overlap.
    let (from, to) = unsafe { (Global::new(from, n), GlobalMut::new(to, n)) };
    // SAFETY: `order` is null, or `DETECTION_WORDS` words that this launch only reads.
    if unsafe { Detection::new(order) }.is_done() {
        return;
    }
    let tiles = runs.tiles();
    // SAFETY: `splits` is null, or has `k` words for each of `tiles` tiles, as `split_runs` has written.
    let splits = unsafe { Global::new(splits, if splits.is_null() { 0 } else { tiles * k as usize }) };
    let mut t = thread::block_idx_x() as usize;
    while t < tiles {
        // SAFETY: all threads of the block are here with the same `t`, below the number of tiles, and the launch has
        // `shared_bytes` for `NT * VT` slots. A barrier comes before the next tile.
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

/// Merges tile `t`, at splits that the block finds itself if `splits` is empty.
///
/// # Safety
/// As for [`merge_runs`].
#[inline(always)]
pub(super) unsafe fn merge_tile<B: Bits, const NT: usize, const VT: usize>(
    runs: impl Division,
    t: usize,
    from: Global<B>,
    to: GlobalMut<B>,
    splits: Global<u32>,
    coding: Coding<B>,
) {
    let tile = runs.tile(t);
    // SAFETY: `NT * VT` keys, and behind them `PLAN_BYTES`, are the `shared_bytes` of the launch; the plan begins at a
    // multiple of 8, as `NT` is a power of two from 64 on. Barriers come after the plan, between loading and the
    // rounds, and between the reads and the writes of each.
    let (keys, plan) =
        unsafe { (Shared::<B>::dynamic(0, (NT * VT) as u32), Plan::at((NT * VT * size_of::<B>()) as u32)) };
    // SAFETY: all threads of the block are here, two warps or more; `splits` is empty or has `k` words for each tile,
    // those of `split_runs`.
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
