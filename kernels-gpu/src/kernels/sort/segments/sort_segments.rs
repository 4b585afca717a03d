//! The sort of short segments, and of the runs of long ones.

use super::segment_tile::{Heads, Tagged, Wide, shared_bytes, sort_segments_of_tile};
use super::{Bounds, Segments, Tiles, Unit, Units, passes};
use crate::block::shared_memory;
use crate::elements::Elements;
use crate::kernels::sort::is_whole_warps;
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Kernel: sorts each short segment to where it is, one block the segments of one tile; or, if `firsts` is null, the
/// runs of `NT * VT` keys of long segments, which are units of `list`, to `keys` or to `scratch`, from which an even
/// number of passes is left.
///
/// If `longer` is not null, of tiles only those are sorted that it lists.
///
/// Keys are encoded by `coding` where they are loaded, and decoded where no passes follow. Blocks take one tile or unit
/// after the other.
///
/// # Safety
/// `segments` are those of the `n` elements of `keys`; `scratch` has capacity for as many and does not overlap them.
/// `firsts`, `list` and `units` are what `find_segments` wrote for [`Tiles::of`] of `NT * VT`; `longer` is null, or
/// what `sort_short_segments` wrote for these. Blocks are of `NT` threads, a power of two from 32 to 1024, with
/// [`shared_bytes`] of dynamic shared memory.
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
#[allow(clippy::too_many_arguments)]
pub unsafe fn sort_segments<B: Bits, V: Word, T: Tagged<B>, const NT: usize, const VT: usize>(
    segments: Segments,
    keys: Elements<B, V>,
    scratch: Elements<B, V>,
    n: usize,
    firsts: *const usize,
    longer: *const u32,
    list: *const usize,
    units: *const u32,
    coding: Coding<B>,
) {
    const { assert!(NT.is_power_of_two() && is_whole_warps(NT), "a block has a power of two threads, and whole warps") };
    const { shared_memory::check(shared_bytes(size_of::<B>(), size_of::<V>(), NT, NT * VT)) };
    let tiles = const { Tiles::of(NT * VT) };
    // SAFETY: the caller promises the offsets and `n` elements of both. A block uses a tile's segments or a unit's run,
    // which no other one does.
    let (bounds, keys, scratch) = unsafe { (segments.of(n), keys.arrays(n), scratch.arrays(n)) };
    // SAFETY: `find_segments` has written one number, which is of so many units.
    let (count, list) = unsafe {
        let count = Global::new(units, 1).get(0) as usize;
        (count, Units::new(list, count))
    };
    let firsts_len = if firsts.is_null() { 0 } else { tiles.count(n) + 1 };
    // SAFETY: `firsts` is null, or has a number for each tile and for the end.
    let firsts = unsafe { Global::new(firsts, firsts_len) };
    // SAFETY: `longer` is null, or its first number is of those that follow.
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
            run_of_unit(list.get(item), NT * VT)
        } else {
            let t = if longer.is_empty() { item } else { longer.get(1 + item) as usize };
            short_segments(bounds, t, tiles, firsts.get(t), firsts.get(t + 1))
        };
        if len > 0 {
            let (from, in_place) = (keys.slice(base, len), passes.is_multiple_of(2));
            let to = if in_place { from } else { scratch.slice(base, len) };
            let decode = if passes == 0 { coding } else { Coding::NONE };
            let heads = Heads { bounds, first, last };
            // SAFETY: all threads of the block are here with the same part, and the launch has `shared_bytes`. The
            // arrays are of 1 to `NT * VT` elements: short segments of a tile end within the overhang, and a run is cut
            // to that. A barrier comes before the next one.
            unsafe { sort_segments_of_tile::<B, V, T, NT, VT>(heads, base, (from, to), (coding, decode)) };
            thread::sync_threads();
        }
        item += thread::grid_dim_x() as usize;
    }
}

/// What a block sorts at once: `len` keys from `base` on, which are segments `first .. last`, or of one segment if
/// these are none.
#[derive(Clone, Copy)]
struct Part {
    first: usize,
    last: usize,
    base: usize,
    len: usize,
    /// Passes that follow.
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

/// The run of a unit, which is empty if its segment has not so many.
#[inline(always)]
fn run_of_unit(unit: Unit, run: usize) -> Part {
    let base = (unit.start + unit.number * run).min(unit.end);
    let passes = passes(unit.segment_keys(), run).left();
    Part { first: 0, last: 0, base, len: run.min(unit.end - base), passes }
}
