//! A pass of merges over the long segments.
//!
//! ```text
//!   segment    │ run 0 │ run 1 │ run 2 │ … │ run 40 │      up to 32 runs become one, as in a sort of that array alone
//!   units      │ 0  │ 1  │ 2  │ 3  │ 4  │ …              each merges a tile, if the pass has so many
//! ```
//!
//! A segment has only the passes that it needs, and is in the array after its last pass. Its first pass reads the
//! output of `sort_segments`: in the array if the number of passes is even, and otherwise in the scratch array.

use super::{SegmentLists, Units, passes};
use crate::elements::Elements;
use crate::kernels::sort::merge_pass::merge_runs::merge_tile;
use crate::kernels::sort::merge_pass::{MIN_BLOCKS_PER_SM, tile_keys};
use crate::kernels::sort::payload::Payload;
use crate::kernels::sort::payload::beside::Beside;
use crate::kernels::sort::payload::nothing::Nothing;
use crate::kernels::sort::payload::packed::Packed;
use crate::kernels::sort::runs::{Division, Runs};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use core::hint::assert_unchecked;
use cuda_std::prelude::*;

pub use crate::kernels::sort::payload::merge_runs_bytes as shared_bytes;

/// Kernel: makes pass `pass` of each long segment that has such a pass. Before the first pass, runs had `first_run`
/// keys. Persistent blocks take one unit after another.
///
/// # Safety
/// `keys` and `scratch` have `n` elements, in global memory, and do not overlap. `find_segments` has written
/// the units of `lists`. `sort_segments` has sorted the runs of `first_run` keys of each unit's segment, and all
/// earlier passes have been made. `first_run` is not 0, and segments have at most 2^35 keys. Blocks have `NT` threads
/// with [`shared_bytes`] of dynamic shared memory for `NT * VT` slots.
#[kernel(
    u32 = <u32, (), Nothing, { ROW.merge_runs.of(4, 0).threads }, { ROW.merge_runs.of(4, 0).items_per_thread }>
        within (ROW.merge_runs.of(4, 0).threads, MIN_BLOCKS_PER_SM),
    u64 = <u64, (), Nothing, { ROW.merge_runs.of(8, 0).threads }, { ROW.merge_runs.of(8, 0).items_per_thread }>
        within (ROW.merge_runs.of(8, 0).threads, MIN_BLOCKS_PER_SM),
    u32v4 = <u32, u32, Beside, { ROW.merge_runs.of(4, 4).threads }, { ROW.merge_runs.of(4, 4).items_per_thread }>
        within (ROW.merge_runs.of(4, 4).threads, MIN_BLOCKS_PER_SM),
    u32v8 = <u32, u64, Packed, { ROW.merge_runs.of(4, 8).threads }, { ROW.merge_runs.of(4, 8).items_per_thread }>
        within (ROW.merge_runs.of(4, 8).threads, MIN_BLOCKS_PER_SM),
    // With a third block it would spill registers on GPUs of compute capability 8.0.
    u64v4 = <u64, u32, Packed, { ROW.merge_runs.of(8, 4).threads }, { ROW.merge_runs.of(8, 4).items_per_thread }>
        within (ROW.merge_runs.of(8, 4).threads, MIN_BLOCKS_PER_SM - 1),
    u64v8 = <u64, u64, Packed, { ROW.merge_runs.of(8, 8).threads }, { ROW.merge_runs.of(8, 8).items_per_thread }>
        within (ROW.merge_runs.of(8, 8).threads, MIN_BLOCKS_PER_SM),
)]
pub unsafe fn merge_segments<B: Bits, V: Word, P: Payload<B, V, NT, VT>, const NT: usize, const VT: usize>(
    keys: Elements<B, V>,
    scratch: Elements<B, V>,
    lists: SegmentLists,
    pass: u32,
    first_run: usize,
    coding: Coding<B>,
) {
    let tolerance = if P::KEEPS_ORDER { 0 } else { ROW.small_rank_tolerance };
    // SAFETY: `unit_count` is the number that `find_segments` has written, and `units` has that number of units. This
    // launch only reads both.
    let (count, units) = unsafe {
        let count = GlobalMut::new(lists.unit_count, 1);
        (count, Units::new(lists.units, count.load(0) as usize))
    };
    let mut i = thread::block_idx_x() as usize;
    // Read again for each unit: to keep it takes a register.
    while i < count.load(0) as usize {
        let unit = units.get(i);
        let n = unit.segment_keys();
        // SAFETY: `first_run` is not 0, as this kernel requires. The assumption removes the code of a panic for a
        // division by 0.
        unsafe { assert_unchecked(first_run != 0) };
        let (mut passes, mut run) = (passes(n, first_run), first_run);
        for _ in 0..pass {
            run *= passes.next().unwrap_or(1) as usize;
        }
        let left = passes.left();
        if let Some(k) = passes.next() {
            // SAFETY: `run` is not 0. It is below 2^32: a segment of up to 2^35 keys with passes left has at least two
            // runs, and 32 runs if `run` is above 2^31. `k` is a power of two from 2 to 32. For all of these, tiles
            // have more than twice the tolerance, as `has_slots` has checked.
            let runs = unsafe { Runs::new_unchecked(n, run, k, tile_keys(NT * VT, VT, k, tolerance), tolerance) };
            if unit.number < runs.tiles() {
                let (from, to) = if left.is_multiple_of(2) { (keys, scratch) } else { (scratch, keys) };
                let decode = if left == 1 { coding } else { Coding::NONE };
                // SAFETY: the segment is the `n` elements from `unit.start` on of both arrays. This pass reads one
                // array and writes the other, and each tile is written by the block of its unit. `no_splits` is empty.
                // `unit` is the same for all threads, so that all threads of the block make the call, with
                // `shared_bytes`. A barrier comes before the next tile.
                unsafe {
                    let (from, to) = (from.from(unit.start).source(n), to.from(unit.start).arrays(n));
                    let no_splits = Global::new(core::ptr::null(), 0);
                    merge_tile::<B, V, P, NT, VT>(runs, unit.number, from, to, no_splits, Coding::NONE, decode);
                }
                thread::sync_threads();
            }
        }
        i += thread::grid_dim_x() as usize;
    }
}
