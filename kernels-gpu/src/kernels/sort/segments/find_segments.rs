//! The first segment of each tile, and the lists of middle segments, of segments to be divided, and of the units of
//! other long segments.

use super::middle::MiddleSegments;
use super::middle_runs::MAX_MIDDLE;
use super::{SegmentLists, Segments, Tiles, UNIT_WORDS, Unit, most_units};
use crate::block::scan::sum_up_to;
use crate::block::segmented::shuffle_bits;
use crate::kernels::sort::divide::workspace::Job;
use crate::tuning::ROW;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, shuffle_idx};

/// Threads of a block.
pub const FIND_THREADS: u32 = 128;

/// Tiles of a warp. One lane finds only the start of the next tile.
const WARP_TILES: usize = WARP_SIZE as usize - 1;

/// Blocks for `tiles` tiles and the end.
pub const fn blocks(tiles: usize) -> usize {
    (tiles + 1).div_ceil(FIND_THREADS as usize / WARP_SIZE as usize * WARP_TILES)
}

/// Kernel: writes to `firsts[t]` the first segment that begins in tile `t` or behind it, for each tile and for the end.
/// Middle segments are appended to `middle`, if it takes them. Segments of more than [`MAX_MIDDLE`] keys are listed in
/// `division`, if there is one. For each tile of another long segment, a unit is appended to `list` and counted in
/// `units`. Tiles are [`Tiles::of`] `SLOTS`.
///
/// O(log `segments.count`) for each tile, however many segments there are.
///
/// # Safety
/// `segments` are the segments of `n` keys. `lists` has the capacities of [`SegmentLists`], and no units
/// before the launch. `density` is the approximate number of segments for each key; a better guess is faster. `middle`
/// meets the requirements of [`MiddleSegments`]. `division` is [`Job::NONE`], or a job for `n` keys in listed segments
/// that meets the requirements of [`Job`], with buckets of fewer keys than [`MAX_MIDDLE`]. There are [`blocks`] of `t`
/// blocks of [`FIND_THREADS`] threads.
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
    lists: SegmentLists,
    middle: MiddleSegments,
    division: Job,
) {
    let Tiles { keys: tile_keys, overhang } = const { Tiles::of(SLOTS) };
    let tiles = n.div_ceil(tile_keys);
    // SAFETY: `segments` and `middle` meet the requirements of `of` and `open`, which are this kernel's own, and so are
    // the capacities. Only thread `t <= tiles` writes `firsts[t]`. Each unit gets its own index from the counter.
    let (bounds, middle, firsts, units) = unsafe {
        let units = GlobalMut::new(lists.units, UNIT_WORDS * most_units(tiles));
        let units = Units { words: units, count: GlobalMut::new(lists.unit_count, 1) };
        (segments.of(n), middle.open(), GlobalMut::new(lists.firsts, tiles + 1), units)
    };
    let divides = |keys: usize| division.is_some() && keys > MAX_MIDDLE;
    let lane = warp::lane_id();
    let warp = (thread::block_idx_x() * (FIND_THREADS / WARP_SIZE) + thread::thread_idx_x() / WARP_SIZE) as usize;
    let t = warp * WARP_TILES + lane as usize;
    let (begin, end) = (t * tile_keys, (t + 1) * tile_keys);
    let first = bounds.first_near(begin.min(n), density);
    // SAFETY: no thread has returned, so that the 32 lanes of the warp make the call. The source `(lane + 1) % 32` is a
    // lane.
    let next = unsafe { shuffle_bits(first as u64, (lane + 1) % WARP_SIZE) } as usize;
    let (mut continued, mut begun) = (None, None);
    if t <= tiles && lane < WARP_TILES as u32 {
        firsts.set(t, first);
        if t < tiles {
            if first > 0 {
                let (start, stop) = (bounds.start(first - 1), bounds.start(first));
                let number = t - start / tile_keys;
                let is_long = stop > (start / tile_keys + 1) * tile_keys + overhang;
                let has_units = !middle.takes(stop - start) && !divides(stop - start);
                if is_long && has_units && start + number * tile_keys < stop {
                    continued = Some(Unit { start, end: stop, number });
                }
            }
            if next > first && bounds.start(next) > end + overhang {
                let (start, end) = (bounds.start(next - 1), bounds.start(next));
                if middle.takes(end - start) {
                    middle.append(start, end - start);
                } else if divides(end - start) {
                    // SAFETY: `division` is a job for listed segments, as `divides` and the requirements say. The
                    // segment has more keys than a bucket, and this thread alone lists it.
                    unsafe { division.list(start, end - start) };
                } else {
                    begun = Some(Unit { start, end, number: 0 });
                }
            }
        }
    }
    // SAFETY: no thread has returned, so that the 32 lanes of the warp make the call.
    unsafe { units.append(continued, begun) };
}

/// The list of units.
#[derive(Clone, Copy)]
struct Units {
    words: GlobalMut<usize>,
    count: GlobalMut<u32>,
}

impl Units {
    /// Appends up to two units of each lane, by one atomic addition for a warp.
    ///
    /// # Safety
    /// The 32 lanes of a warp make this call.
    #[inline(always)]
    #[track_caller]
    unsafe fn append(self, continued: Option<Unit>, begun: Option<Unit>) {
        let lane = warp::lane_id();
        let own = u32::from(continued.is_some()) + u32::from(begun.is_some());
        // SAFETY: the 32 lanes of the warp, which `FULL_MASK` names, make both calls.
        let slot = unsafe {
            let up_to = sum_up_to(own);
            let last = WARP_SIZE - 1;
            let first = if lane == last && up_to > 0 { self.count.fetch_add(0, up_to) } else { 0 };
            shuffle_idx(FULL_MASK, first, last) + up_to - own
        };
        self.set(slot, continued);
        self.set(slot + u32::from(continued.is_some()), begun);
    }

    /// Sets unit `slot` of the list, if there is one.
    #[inline(always)]
    #[track_caller]
    fn set(self, slot: u32, unit: Option<Unit>) {
        if let Some(Unit { start, end, number }) = unit {
            let at = UNIT_WORDS * slot as usize;
            self.words.set(at, start);
            self.words.set(at + 1, end);
            self.words.set(at + 2, number);
        }
    }
}
