//! The list of the units of long segments.

use super::{Digit, LongSegments, Unit, unit_keys};
use crate::block::scan::{BLOCK_WORDS, sum_before};
use crate::block::shared_memory::shared_memory;
use crate::kernels::sort::segments::middle_runs::MAX_MIDDLE;
use crate::kernels::sort::segments::{Segments, Tiles};
use crate::key::Bits;
use crate::tuning::ROW;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Threads of a block.
pub const FIND_THREADS: u32 = 128;

shared_memory! {
    /// Shared memory of a block.
    struct Memory() {
        scan: [u32; BLOCK_WORDS],
        /// The block's first entry of the list.
        first: [u32; 1],
    }
}

/// Bytes of dynamic shared memory.
pub const fn shared_bytes() -> u32 {
    Memory::bytes()
}

/// Kernel: lists the units of long segments, and clears their counts.
///
/// A thread has a tile of `Tiles::of(SLOTS)` and lists the units that begin in it. A unit is at least as long as a
/// tile, so that at most one unit of a segment begins in a tile.
///
/// # Safety
/// The requirements of [`LongSegments`] hold, for [`Tiles::of`] of `SLOTS`. `segments` are the segments of `long.n`
/// keys, and `find_segments` has written `firsts`. Blocks have [`FIND_THREADS`] threads, one for each tile, with
/// [`shared_bytes`] of dynamic shared memory.
#[kernel(
    u32 = <u32, (), { ROW.sort_segments.of(4, 0).keys() }>,
    u64 = <u64, (), { ROW.sort_segments.of(8, 0).keys() }>,
    u32v4 = <u32, u32, { ROW.sort_segments.of(4, 4).keys() }>,
    u32v8 = <u32, u64, { ROW.sort_segments.of(4, 8).keys() }>,
)]
pub unsafe fn find_long_segments<B: Bits, V: Word, const SLOTS: usize>(
    segments: Segments,
    firsts: *const usize,
    long: LongSegments,
) {
    let tile_keys = const { Tiles::of(SLOTS).keys };
    let unit_keys = const { unit_keys(size_of::<B>(), size_of::<V>()) };
    const {
        let unit_keys = super::unit_keys(size_of::<B>(), size_of::<V>());
        assert!(Tiles::of(SLOTS).keys <= unit_keys, "a tile has no unit but its first")
    };
    let (n, tiles) = (long.n as usize, long.tiles as usize);
    // SAFETY: `segments` and the workspace meet the requirements of `of` and `open`, which are this kernel's own.
    // `firsts` has an index for each of `tiles` tiles and one for the end. The launch has `shared_bytes`. A barrier
    // comes between writing and reading each part of the memory.
    let (bounds, firsts, workspace, Memory { scan, first: first_of_block }) =
        unsafe { (segments.of(n), Global::new(firsts, tiles + 1), long.open::<B, V>(), Memory::at_start()) };
    let thread = thread::thread_idx_x();
    let t = (thread::block_idx_x() * FIND_THREADS + thread) as usize;
    let (mut continued, mut begun) = (None, None);
    if t < tiles {
        let (begin, end) = (t * tile_keys, (t + 1) * tile_keys);
        let (first, next) = (firsts.get(t), firsts.get(t + 1));
        let unit = |start: usize, end: usize, number: usize| {
            Some(Unit { start: start as u32, end: end as u32, number: number as u32, digit: Digit::first::<B>() })
        };
        if first > 0 {
            let (start, stop) = (bounds.start(first - 1), bounds.start(first));
            let number = (begin - start).div_ceil(unit_keys);
            if stop - start > MAX_MIDDLE && start + number * unit_keys < stop.min(end) {
                continued = unit(start, stop, number);
            }
        }
        if next > first {
            let (start, stop) = (bounds.start(next - 1), bounds.start(next));
            if stop - start > MAX_MIDDLE {
                begun = unit(start, stop, 0);
            }
        }
    }
    let own = u32::from(continued.is_some()) + u32::from(begun.is_some());
    // SAFETY: no branch surrounds the call, so that all threads of the block, `FIND_THREADS` = 4 warps, make it. `scan`
    // is used once.
    let (before, of_block) = unsafe { sum_before(own, scan) };
    if thread == 0 && of_block > 0 {
        first_of_block.set(0, workspace.counters().fetch_add(0, of_block));
    }
    thread::sync_threads();
    if of_block == 0 {
        return;
    }
    let first = first_of_block.get(0);
    if let Some(unit) = continued {
        workspace.set_unit(0, first + before, unit);
    }
    if let Some(unit) = begun {
        workspace.set_unit(0, first + before + u32::from(continued.is_some()), unit);
    }
    thread::sync_threads();
    // A warp clears the counts of each unit.
    let mut i = thread / WARP_SIZE;
    while i < of_block {
        let unit = workspace.unit(0, first + i);
        if unit.begins_part::<V>() {
            workspace.clear_counts(0, (unit.start, unit.part::<V>()), thread % WARP_SIZE, WARP_SIZE);
        }
        i += const { FIND_THREADS / WARP_SIZE };
    }
}
