//! The sort of short segments, and of the runs of long segments.

use super::segment_tile::{Heads, Tagged, Wide, shared_bytes, sort_segments_of_tile};
use super::{Bounds, SegmentLists, Segments, Tiles, Unit, Units, passes};
use crate::block::shared_memory;
use crate::elements::Elements;
use crate::kernels::sort::is_whole_warps;
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Kernel: sorts each short segment in place. A block takes the segments of one tile. If `longer` is not null, only the
/// tiles in that list are sorted.
///
/// If `firsts` is null, the kernel sorts the runs of long segments instead: `NT * VT` keys for each unit. A run goes to
/// `keys` or to `scratch`, so that the passes that follow end in `keys`.
///
/// Keys are encoded by `coding` when they are loaded, and decoded if no passes follow. A block takes one tile or unit
/// after another.
///
/// # Safety
/// `segments` are the segments of the `n` elements of `keys`. `scratch` has capacity for `n` elements and does not
/// overlap `keys`. `find_segments` has written `lists`, for [`Tiles::of`] of `NT * VT`. `longer` is null, or
/// `sort_short_segments` has written it for the same tiles. Blocks have `NT` threads, a power of two from
/// 32 to 1024, with [`shared_bytes`] of dynamic shared memory.
#[kernel(
    u32 = <u32, (), f64, { ROW.sort_segments.of(4, 0).threads }, { ROW.sort_segments.of(4, 0).items_per_thread }>
        within (ROW.sort_segments.of(4, 0).threads, 2),
    u64 = <u64, (), Wide, { ROW.sort_segments.of(8, 0).threads }, { ROW.sort_segments.of(8, 0).items_per_thread }>
        within (ROW.sort_segments.of(8, 0).threads, 2),
    u32v4 = <u32, u32, f64, { ROW.sort_segments.of(4, 4).threads }, { ROW.sort_segments.of(4, 4).items_per_thread }>
        within (ROW.sort_segments.of(4, 4).threads, 2),
    u32v8 = <u32, u64, f64, { ROW.sort_segments.of(4, 8).threads }, { ROW.sort_segments.of(4, 8).items_per_thread }>
        within (ROW.sort_segments.of(4, 8).threads, 2),
    u64v4 = <u64, u32, Wide, { ROW.sort_segments.of(8, 4).threads }, { ROW.sort_segments.of(8, 4).items_per_thread }>
        within (ROW.sort_segments.of(8, 4).threads, 2),
    u64v8 = <u64, u64, Wide, { ROW.sort_segments.of(8, 8).threads }, { ROW.sort_segments.of(8, 8).items_per_thread }>
        within (ROW.sort_segments.of(8, 8).threads, 2),
)]
pub unsafe fn sort_segments<B: Bits, V: Word, T: Tagged<B>, const NT: usize, const VT: usize>(
    segments: Segments,
    keys: Elements<B, V>,
    scratch: Elements<B, V>,
    n: usize,
    lists: SegmentLists,
    coding: Coding<B>,
) {
    const { assert!(NT.is_power_of_two() && is_whole_warps(NT), "threads are a power of two, in whole warps") };
    const { shared_memory::check(shared_bytes(size_of::<B>(), size_of::<V>(), NT, NT * VT)) };
    let tiles = const { Tiles::of(NT * VT) };
    // SAFETY: `segments` meets the requirements of `of`, and both sides have `n` elements. No two blocks use the same
    // segments of a tile, or the same run of a unit.
    let (bounds, keys, scratch) = unsafe { (segments.of(n), keys.arrays(n), scratch.arrays(n)) };
    let SegmentLists { firsts, longer, units, unit_count } = lists;
    // SAFETY: `unit_count` is the number that `find_segments` has written, and `units` has that number of units.
    let (count, units) = unsafe {
        let count = Global::new(unit_count, 1).get(0) as usize;
        (count, Units::new(units, count))
    };
    let firsts_len = if firsts.is_null() { 0 } else { tiles.count(n) + 1 };
    // SAFETY: `firsts` is null, or has a number for each tile and for the end.
    let firsts = unsafe { Global::new(firsts, firsts_len) };
    // SAFETY: `longer` is null, or its first number counts the numbers that follow.
    let longer = unsafe {
        let listed = if longer.is_null() { 0 } else { Global::new(longer, 1).get(0) as usize + 1 };
        Global::new(longer, listed)
    };
    let items = match (firsts.is_empty(), longer.is_empty()) {
        (true, _) => count,
        (false, true) => tiles.count(n),
        (false, false) => longer.len() - 1,
    };

    let mut item = thread::block_idx_x() as usize;
    while item < items {
        let is_run = firsts.is_empty();
        let Part { first, last, base, len, passes } = if is_run {
            run_of_unit(units.get(item), NT * VT)
        } else {
            let t = if longer.is_empty() { item } else { longer.get(1 + item) as usize };
            short_segments(bounds, t, tiles, firsts.get(t), firsts.get(t + 1))
        };
        if len > 0 {
            let (from, in_place) = (keys.slice(base, len), passes.is_multiple_of(2));
            let to = if in_place { from } else { scratch.slice(base, len) };
            let decode = if passes == 0 { coding } else { Coding::NONE };
            let heads = Heads { bounds, first, last };
            // SAFETY: the part is the same for all threads, so that all `NT` threads of the block make the call. The
            // launch has `shared_bytes`. The arrays have 1 to `NT * VT` elements: short segments of a tile end within
            // the overhang, and a run is cut to `NT * VT`. The call ends by reading the shared memory that the same
            // thread writes first for the next item.
            unsafe { sort_segments_of_tile::<B, V, T, NT, VT>(heads, base, [from, to], [coding, decode]) };
        }
        item += thread::grid_dim_x() as usize;
    }
}

/// Work of a block: `len` keys from `base` on, which are segments `first .. last`. If `first == last`, the keys are
/// part of one segment.
#[derive(Clone, Copy)]
struct Part {
    first: usize,
    last: usize,
    base: usize,
    len: usize,
    /// Number of passes that follow.
    passes: u32,
}

/// The short segments of tile `t`, in which segments `first .. next` begin.
#[inline(always)]
#[track_caller]
fn short_segments(bounds: Bounds, t: usize, tiles: Tiles, first: usize, next: usize) -> Part {
    let last = tiles.end_of_short(bounds, t, first, next);
    let base = bounds.start(first);
    Part { first, last, base, len: bounds.start(last) - base, passes: 0 }
}

/// The run of a unit. It is empty if the segment has no run of that number.
#[inline(always)]
fn run_of_unit(unit: Unit, run: usize) -> Part {
    let base = (unit.start + unit.number * run).min(unit.end);
    let passes = passes(unit.segment_keys(), run).left();
    Part { first: 0, last: 0, base, len: run.min(unit.end - base), passes }
}
