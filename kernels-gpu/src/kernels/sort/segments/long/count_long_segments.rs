//! How many keys of each long segment have each digit, of all sweeps at once.

use super::{LONG_TILE, LongSegments, UNIT_KEYS};
use crate::block::shared_memory;
use crate::kernels::sort::is_whole_warps;
use crate::kernels::sort::radix::SWEEPS;
use crate::kernels::sort::radix::count::{CountMemory, Counters};
use crate::kernels::sort::tile_in_order::DIGITS;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;

/// Bytes of dynamic shared memory.
pub const fn shared_bytes() -> u32 {
    CountMemory::bytes()
}

/// Threads of a block.
pub const COUNT_THREADS: usize = LONG_TILE.threads;

/// Kernel: counts the digits of the keys of each long segment, as `coding` encodes them. A block has a share of the units, one after the other, so that
/// it adds to the counts of a segment once.
///
/// # Safety
/// What [`LongSegments`] says holds, after `find_long_segments`; `keys` are as many. Blocks are of `NT` threads, with [`shared_bytes`] of dynamic shared
/// memory.
#[kernel(u32 = <u32, COUNT_THREADS>)]
pub unsafe fn count_long_segments<B: Bits, const NT: usize>(keys: *mut B, long: LongSegments, coding: Coding<B>) {
    const { assert!(is_whole_warps(NT), "a block has up to 32 whole warps") };
    const { shared_memory::check(shared_bytes()) };
    // SAFETY: the caller promises the keys, which this launch only reads, the workspace and the memory. Barriers come between counting, adding and clearing.
    let (keys, workspace, counters) =
        unsafe { (GlobalMut::new(keys, long.n as usize), long.open(), Counters::new(CountMemory::at_start())) };
    let units = workspace.units() as usize;
    let share = |block: u32| (block as usize * units / thread::grid_dim_x() as usize) as u32;
    let (mut i, last) = (share(thread::block_idx_x()), share(thread::block_idx_x() + 1));
    while i < last {
        let unit = workspace.unit(i);
        let first = i - unit.number;
        // The units of the share that are of this segment.
        let next = last.min(first + unit.units());
        let begin = unit.start as usize + unit.number as usize * UNIT_KEYS;
        let end = (begin + (next - i) as usize * UNIT_KEYS).min(unit.end as usize);
        counters.clear::<NT>();
        thread::sync_threads();
        counters.count::<B, NT>(keys.slice(begin, end - begin), coding);
        thread::sync_threads();
        let mut digit = thread::thread_idx_x();
        while digit < SWEEPS * DIGITS {
            let sum = counters.of(digit);
            if sum > 0 {
                workspace.counts(first).fetch_add(digit as usize, sum);
            }
            digit += NT as u32;
        }
        thread::sync_threads();
        i = next;
    }
}
