//! A list of the units of long segments, in the order of the array.

use super::{LongSegments, UNIT_KEYS, UNITS, Unit};
use crate::block::scan::{BLOCK_WORDS, sum_before};
use crate::block::shared_memory::shared_memory;
use crate::kernels::sort::segments::{Segments, Tiles};
use crate::tuning::ROW;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Threads of a block.
pub const FIND_THREADS: u32 = 128;

shared_memory! {
    /// Shared memory of a block.
    struct Memory() {
        scan: [u32; BLOCK_WORDS],
        /// The number of the block, in the order in which blocks began.
        number: [u32; 1],
        /// How many units are before those of this block.
        before: [u32; 1],
    }
}

/// Bytes of dynamic shared memory.
pub const fn shared_bytes() -> u32 {
    Memory::bytes()
}

/// Kernel: lists the units of long segments in their order, and sets what the sweeps of these begin with.
///
/// A unit is listed by the thread of the tile that it begins in, of blocks that hold `SLOTS` keys: units are longer than tiles, so that of one segment
/// no more than one does.
///
/// # Safety
/// What [`LongSegments`] says holds, for [`Tiles::of`] of `SLOTS`; `segments` are those of as many keys, and `firsts` is what `find_segments` has
/// written. Blocks are of [`FIND_THREADS`] threads, with a thread for each tile, and have [`shared_bytes`] of dynamic shared memory.
#[kernel(u32 = <{ ROW.sort_segments.of(4, 0).keys() }>)]
pub unsafe fn find_long_segments<const SLOTS: usize>(segments: Segments, firsts: *const usize, long: LongSegments) {
    let Tiles { keys: tile_keys, .. } = const { Tiles::of(SLOTS) };
    const {
        assert!(
            Tiles::of(SLOTS).keys <= UNIT_KEYS,
            "at most one unit of a segment begins in a tile, but for its first one"
        )
    };
    let (n, tiles) = (long.n as usize, long.tiles as usize);
    // SAFETY: the caller promises the offsets, `firsts` for each tile and for the end, and the workspace; the launch has `shared_bytes`, and a
    // barrier comes between what writes a part of the memory and what reads it.
    let (bounds, firsts, workspace, Memory { scan, number, before }) =
        unsafe { (segments.of(n), Global::new(firsts, tiles + 1), long.open(), Memory::at_start()) };
    let (thread, blocks) = (thread::thread_idx_x(), workspace.scan());
    if thread == 0 {
        number.set(0, blocks.take());
    }
    thread::sync_threads();
    let block = number.get(0);
    let t = (block * FIND_THREADS + thread) as usize;
    let (mut continued, mut begun) = (None, None);
    if t < tiles {
        let (begin, end) = (t * tile_keys, (t + 1) * tile_keys);
        let (first, next) = (firsts.get(t), firsts.get(t + 1));
        let unit = |start: usize, end: usize, number: usize| {
            Some(Unit { start: start as u32, end: end as u32, number: number as u32 })
        };
        if first > 0 {
            let (start, stop) = (bounds.start(first - 1), bounds.start(first));
            let number = (begin - start).div_ceil(UNIT_KEYS);
            if stop - start > UNIT_KEYS && start + number * UNIT_KEYS < stop.min(end) {
                continued = unit(start, stop, number);
            }
        }
        if next > first {
            let (start, stop) = (bounds.start(next - 1), bounds.start(next));
            if stop - start > UNIT_KEYS {
                begun = unit(start, stop, 0);
            }
        }
    }
    let own = u32::from(continued.is_some()) + u32::from(begun.is_some());
    // SAFETY: all threads of the block are here, which are whole warps, and nothing else uses `scan`.
    let (of_threads, units) = unsafe { sum_before(own, scan) };
    if thread == 0 {
        blocks.publish(block, units);
    }
    if thread < WARP_SIZE {
        // SAFETY: the whole first warp is here, after its lane 0 has published the sum.
        let units_before = unsafe { blocks.sum_before(block, units) } as u32;
        if thread == 0 {
            before.set(0, units_before);
            if block as usize + 1 == tiles.div_ceil(FIND_THREADS as usize) {
                workspace.counters().set(UNITS, units_before + units);
            }
        }
    }
    thread::sync_threads();
    let first_unit = before.get(0);
    let slot = first_unit + of_threads;
    if let Some(unit) = continued {
        workspace.set_unit(slot, unit);
    }
    if let Some(unit) = begun {
        workspace.set_unit(slot + u32::from(continued.is_some()), unit);
    }
    thread::sync_threads();
    // A warp for each unit.
    let (lane, mut i) = (thread % WARP_SIZE, thread / WARP_SIZE);
    while i < units {
        workspace.begin_unit(first_unit + i, lane, WARP_SIZE);
        i += const { FIND_THREADS / WARP_SIZE };
    }
}
