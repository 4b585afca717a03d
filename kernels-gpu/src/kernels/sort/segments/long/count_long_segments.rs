//! How many keys of each long segment have each digit.

use super::{LongSegments, Unit};
use crate::block::shared_memory::{self, shared_memory};
use crate::elements::has_values;
use crate::kernels::sort::tile_in_order::{DIGITS, ToDigit};
use crate::kernels::sort::{clear, for_each_key, is_whole_warps};
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::warp::lane_id;

/// Counters of each digit, which lanes use in turn.
const COPIES: u32 = 8;

shared_memory! {
    /// Shared memory of a block. A counter is `digit * COPIES + copy`.
    struct Memory() {
        counters: [u32; DIGITS * COPIES],
    }
}

/// Bytes of dynamic shared memory.
pub const fn shared_bytes() -> u32 {
    Memory::bytes()
}

/// Threads of a block.
pub const COUNT_THREADS: usize = 512;

/// Kernel: counts the digits of the keys of each long segment of `level`, as `coding` encodes them. A block has a share of the units, one after the
/// other, so that it adds to the counts of a segment once. With values it counts each unit by itself.
///
/// # Safety
/// What [`LongSegments`] says holds, after the launches that list the units of the level; `keys` are as many. Blocks are of `NT` threads, with
/// [`shared_bytes`] of dynamic shared memory.
#[kernel(
    u32 = <u32, (), COUNT_THREADS>,
    u64 = <u64, (), COUNT_THREADS>,
    u32v4 = <u32, u32, COUNT_THREADS>,
    u32v8 = <u32, u64, COUNT_THREADS>,
)]
pub unsafe fn count_long_segments<B: Bits, V: Word, const NT: usize>(
    keys: *mut B,
    long: LongSegments,
    level: u32,
    coding: Coding<B>,
) {
    const { assert!(is_whole_warps(NT), "a block has up to 32 whole warps") };
    const { shared_memory::check(shared_bytes()) };
    // SAFETY: the caller promises the keys, which this launch only reads, the workspace and the memory. Barriers come between counting, adding and clearing.
    let (keys, workspace, Memory { counters }) =
        unsafe { (GlobalMut::new(keys, long.n as usize), long.open::<B, V>(), Memory::at_start()) };
    let units = workspace.counters().get(level as usize) as usize;
    let share = |block: u32| (block as usize * units / thread::grid_dim_x() as usize) as u32;
    let (mut i, last) = (share(thread::block_idx_x()), share(thread::block_idx_x() + 1));
    let thread = thread::thread_idx_x();
    let copy = lane_id() % COPIES;
    let is_counted_with = |unit: Unit, first: Unit| unit.start == first.start && (!has_values::<V>() || unit == first);
    while i < last {
        let first = workspace.unit(level, i);
        clear::<NT>(counters, counters.len());
        thread::sync_threads();
        // The units of the share that are of this segment.
        let mut unit = first;
        while is_counted_with(unit, first) {
            let (begin, len) = unit.span::<B, V>();
            for_each_key::<B, NT>(keys.slice(begin as usize, len as usize), |key| {
                counters.fetch_add(first.digit.of(coding.encode(key)) * COPIES + copy, 1);
            });
            i += 1;
            if i == last {
                break;
            }
            unit = workspace.unit(level, i);
        }
        thread::sync_threads();
        let mut digit = thread;
        while digit < DIGITS {
            let mut sum = 0;
            for copy in 0..COPIES {
                sum += counters.get(digit * COPIES + (copy + digit) % COPIES);
            }
            if has_values::<V>() {
                workspace.unit_counts(first.start, first.number).set(digit as usize, sum);
            }
            if sum > 0 {
                workspace.counts(level, first.start, first.part::<V>()).fetch_add(digit as usize, sum);
            }
            digit += NT as u32;
        }
        thread::sync_threads();
    }
}
