//! The histogram of the digits of each long segment.

use super::{LongSegments, Unit};
use crate::block::counters::Counters;
use crate::block::shared_memory::{self, shared_memory};
use crate::elements::has_values;
use crate::kernels::sort::tile_in_order::{DIGITS, ToDigit};
use crate::kernels::sort::{for_each_key, is_whole_warps};
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;

/// Counters of each digit.
const COPIES: u32 = 8;

shared_memory! {
    /// Shared memory of a block.
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

/// Kernel: counts the digits of the keys of each long segment of `level`, as `coding` encodes them. A block has a share
/// of neighbouring units, so that it adds to the counts of a segment once. With values it counts each unit separately.
///
/// # Safety
/// The requirements of [`LongSegments`] hold, and the kernels that list the level's units have run before. `keys` has
/// `long.n` keys. Blocks have `NT` threads with [`shared_bytes`] of dynamic shared memory.
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
    // SAFETY: `keys` has `long.n` keys, which this launch only reads. The requirements of `LongSegments` are this
    // kernel's own, and the launch has `shared_bytes`. Barriers come between clearing, counting and adding.
    let (keys, workspace, Memory { counters }) =
        unsafe { (GlobalMut::new(keys, long.n as usize), long.open::<B, V>(), Memory::at_start()) };
    let units = workspace.counters().get(level as usize) as usize;
    let share = |block: u32| (block as usize * units / thread::grid_dim_x() as usize) as u32;
    let (mut i, last) = (share(thread::block_idx_x()), share(thread::block_idx_x() + 1));
    let thread = thread::thread_idx_x();
    let counters = Counters::<COPIES>(counters);
    let is_counted_with = |unit: Unit, first: Unit| unit.start == first.start && (!has_values::<V>() || unit == first);
    while i < last {
        let first = workspace.unit(level, i);
        counters.clear::<NT>(DIGITS);
        thread::sync_threads();
        // The units of this segment in the block's share.
        let mut unit = first;
        while is_counted_with(unit, first) {
            let (begin, len) = unit.span::<B, V>();
            for_each_key::<B, NT>(keys.slice(begin as usize, len as usize), |key| {
                counters.add(first.digit.of(coding.encode(key)));
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
            let sum = counters.of(digit);
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
