//! The second step of the first two divisions at once, for evenly spread keys without values: the number of keys of
//! each digit, and of each finer digit within a digit.
//!
//! ```text
//!   digits         │     0     │     1     │     2     │ …
//!   finer digits   │ 0 1 … 255 │ 0 1 … 255 │ 0 1 … 255 │ …     a counter of 16 bits each, in shared memory
//! ```
//!
//! If a counter overflows, which the sum of all counters reveals, the counts are discarded, and `count_digits` counts
//! again.

use super::digits::{Digits, FINER};
use super::workspace::{COUNTED_TWICE, Job, MOST_TWICE, Workspace};
use crate::block::clear;
use crate::block::scan::{BLOCK_WORDS, sum_before};
use crate::block::shared_memory::{self, shared_memory};
use crate::kernels::sort::{for_each_batch, is_whole_warps};
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, reduce_add};

/// Threads of a block, which uses all shared memory of a multiprocessor.
pub const TWICE_THREADS: usize = 1024;

/// Words of counters: each holds one counter of the lower half of the finer digits and one of the upper half.
const COUNTERS: u32 = MOST_TWICE * FINER / 2;

shared_memory! {
    /// Shared memory of a block.
    struct Memory() {
        counters: [u32; COUNTERS],
        scan: [u32; BLOCK_WORDS],
    }
}

/// Bytes of dynamic shared memory.
pub const TWICE_SHARED_BYTES: u32 = Memory::bytes();

const _: () = shared_memory::check(TWICE_SHARED_BYTES);

/// Kernel: counts the digits of the first two levels, if they are to be counted at once.
///
/// # Safety
/// The requirements of [`count_digits`](super::count_digits::count_digits) hold for the first level. Blocks have
/// [`TWICE_SHARED_BYTES`].
#[kernel(
    u32 = <u32, TWICE_THREADS> within (TWICE_THREADS, 1),
    u64 = <u64, TWICE_THREADS> within (TWICE_THREADS, 1),
)]
pub unsafe fn count_twice<B: Bits, const NT: usize>(job: Job, keys: *mut B, coding: Coding<B>) {
    const { assert!(is_whole_warps(NT), "a block has up to 32 whole warps") };
    // SAFETY: the lists have `job.at.words` words, as `Job` says, and `keys` has `job.plan.n` keys, which this launch
    // only reads.
    let (workspace, keys) = unsafe { (Workspace::new(&job), GlobalMut::new(keys, job.plan.n as usize)) };
    if !workspace.is_twice() {
        return;
    }
    // SAFETY: the launch has `TWICE_SHARED_BYTES`. One barrier comes between clearing and adding, another between
    // adding and reading. `scan` is used once.
    let Memory { counters, scan } = unsafe { Memory::at_start() };
    let thread = thread::thread_idx_x();
    let digits: Digits<B> = workspace.segment(COUNTED_TWICE).digits;
    clear::<NT>(counters, COUNTERS);
    thread::sync_threads();
    // All blocks have equal shares of the keys, except the last.
    let share = (job.plan.n as usize).div_ceil(thread::grid_dim_x() as usize);
    let first = (thread::block_idx_x() as usize * share).min(keys.len());
    let keys = keys.slice(first, share.min(keys.len() - first));
    let add = |key: B| {
        let finer = digits.finer_of(coding.encode(key));
        counters.fetch_add(finer % COUNTERS, 1 << (finer / COUNTERS * 16));
    };
    let at = for_each_batch::<B, NT, 8>(keys, thread, add);
    for_each_batch::<B, NT, 1>(keys, at, add);
    thread::sync_threads();
    // A warp sums the counters of a digit in the lower half of the finer digits, and of a digit in the upper half.
    let (lane, warps) = (warp::lane_id(), const { NT as u32 / WARP_SIZE });
    let (mut digit, mut counted) = (thread / WARP_SIZE, 0);
    while digit < MOST_TWICE / 2 {
        let own = counters.slice(digit * FINER, FINER);
        // SAFETY: `digit` is `thread / WARP_SIZE` plus a multiple of `warps`, the same for all lanes of a warp. So the
        // 32 lanes of the warp make both calls.
        unsafe {
            counted += add_up(workspace, digit, |finer| own.get(finer) & 0xffff);
            counted += add_up(workspace, digit + MOST_TWICE / 2, |finer| own.get(finer) >> 16);
        }
        digit += warps;
    }
    let counted = if lane == 0 { counted } else { 0 };
    // SAFETY: no branch surrounds the call, so that all threads of the block make it. `NT` is a multiple of 32, and
    // nothing else uses `scan`.
    let (_, counted) = unsafe { sum_before(counted, scan) };
    if thread == 0 && counted as usize != keys.len() {
        workspace.count_once_more();
    }
}

/// Adds the block's counts of the finer digits of `digit`, and their sum, to the counters of all blocks. Returns the
/// sum.
///
/// # Safety
/// The lanes of one whole warp make this call.
#[inline(always)]
unsafe fn add_up(workspace: Workspace, digit: u32, counted: impl Fn(u32) -> u32) -> u32 {
    let of_all = workspace.counters(workspace.finer_counters(digit), FINER);
    let (mut finer, mut sum) = (warp::lane_id(), 0);
    while finer < FINER {
        if counted(finer) > 0 {
            of_all.fetch_add(finer as usize, counted(finer));
        }
        sum += counted(finer);
        finer += WARP_SIZE;
    }
    // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make this call.
    let sum = unsafe { reduce_add(FULL_MASK, sum) };
    if warp::lane_id() == 0 && sum > 0 {
        workspace.first_counters(MOST_TWICE).fetch_add(digit as usize, sum);
    }
    sum
}
