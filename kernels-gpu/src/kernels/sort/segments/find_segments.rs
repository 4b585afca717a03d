//! Which segments begin in each tile, and lists of the middle segments and of the units of long ones.

use super::middle::MiddleSegments;
use super::{Segments, Tiles, UNIT_WORDS, Unit, most_units};
use crate::block::scan::sum_up_to;
use crate::block::segmented::shuffle_bits;
use crate::tuning::ROW;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, shuffle_idx};

/// Threads of a block.
pub const FIND_THREADS: u32 = 128;

/// Tiles of a warp: a lane finds where the next one begins.
const WARP_TILES: usize = WARP_SIZE as usize - 1;

/// Blocks for `tiles` tiles and the end.
pub const fn blocks(tiles: usize) -> usize {
    (tiles + 1).div_ceil(FIND_THREADS as usize / WARP_SIZE as usize * WARP_TILES)
}

/// Kernel: writes to `firsts[t]` the first segment that begins in tile `t` or behind it, for each tile and for the end,
/// and appends a unit to `list` for each tile of a long segment, which it counts in `units`, unless `middle` takes the
/// segment. Tiles are [those](Tiles::of) of blocks that hold `SLOTS` keys.
///
/// O(log `segments.count`) for each tile, however many segments there are.
///
/// # Safety
/// `segments` are those of `n` keys. With `t` tiles, `firsts` has capacity for `t + 1` numbers, and `list` for
/// [`most_units`] of `t` units. `density` is about the number of segments for each key: the nearer, the faster. `units`
/// is 0 before the launch, and `middle` is what [`MiddleSegments`] says. There are as many [`blocks`] of
/// [`FIND_THREADS`] threads.
#[kernel(
    u32 = <{ ROW.sort_segments.of(4, 0).keys() }>,
    u64 = <{ ROW.sort_segments.of(8, 0).keys() }>,
    u32v4 = <{ ROW.sort_segments.of(4, 4).keys() }>,
    u32v8 = <{ ROW.sort_segments.of(4, 8).keys() }>,
    u64v4 = <{ ROW.sort_segments.of(8, 4).keys() }>,
    u64v8 = <{ ROW.sort_segments.of(8, 8).keys() }>,
)]
pub unsafe fn find_segments<const SLOTS: usize>(
    segments: Segments,
    n: usize,
    density: f32,
    firsts: *mut usize,
    list: *mut usize,
    units: *mut u32,
    middle: MiddleSegments,
) {
    let Tiles { keys: tile_keys, overhang } = const { Tiles::of(SLOTS) };
    let tiles = n.div_ceil(tile_keys);
    // SAFETY: the caller promises the offsets and the capacities. Thread `t <= tiles` alone writes `firsts[t]`, and
    // units get indices of their own from the counter.
    let (bounds, middle, firsts, list, units) = unsafe {
        (
            segments.of(n),
            middle.open(),
            GlobalMut::new(firsts, tiles + 1),
            GlobalMut::new(list, UNIT_WORDS * most_units(tiles)),
            GlobalMut::new(units, 1),
        )
    };
    let lane = warp::lane_id();
    let warp = (thread::block_idx_x() * (FIND_THREADS / WARP_SIZE) + thread::thread_idx_x() / WARP_SIZE) as usize;
    let t = warp * WARP_TILES + lane as usize;
    let (begin, end) = (t * tile_keys, (t + 1) * tile_keys);
    let first = bounds.first_near(begin.min(n), density);
    // SAFETY: all lanes of the warp are here, here and below: no thread has returned. The next one is a lane.
    let next = unsafe { shuffle_bits(first as u64, (lane + 1) % WARP_SIZE) } as usize;
    let (mut continued, mut begun) = (None, None);
    if t <= tiles && lane < WARP_TILES as u32 {
        firsts.set(t, first);
        if t < tiles {
            if first > 0 {
                let (start, stop) = (bounds.start(first - 1), bounds.start(first));
                let number = t - start / tile_keys;
                let is_long = stop > (start / tile_keys + 1) * tile_keys + overhang;
                if is_long && !middle.takes(stop - start) && start + number * tile_keys < stop {
                    continued = Some(Unit { start, end: stop, number });
                }
            }
            if next > first && bounds.start(next) > end + overhang {
                let (start, end) = (bounds.start(next - 1), bounds.start(next));
                if middle.takes(end - start) {
                    middle.append(start, end - start, 0);
                } else {
                    begun = Some(Unit { start, end, number: 0 });
                }
            }
        }
    }
    let own = u32::from(continued.is_some()) + u32::from(begun.is_some());
    // One addition for a warp.
    // SAFETY: as above; `FULL_MASK` names the warp's 32 lanes.
    let slot = unsafe {
        let up_to = sum_up_to(own);
        let last = WARP_SIZE - 1;
        let first = if lane == last && up_to > 0 { units.fetch_add(0, up_to) } else { 0 };
        shuffle_idx(FULL_MASK, first, last) + up_to - own
    };
    let append = |slot: u32, unit: Option<Unit>| {
        if let Some(Unit { start, end, number }) = unit {
            let at = UNIT_WORDS * slot as usize;
            list.set(at, start);
            list.set(at + 1, end);
            list.set(at + 2, number);
        }
    };
    append(slot, continued);
    append(slot + u32::from(continued.is_some()), begun);
}
