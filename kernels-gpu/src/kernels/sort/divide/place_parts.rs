//! Places of the keys of each part of a segment, for each digit: after the keys of the parts before, so that the
//! division is stable.

use super::workspace::{Job, Workspace};
use crate::block::scan::sum_up_to;
use crate::key::Bits;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, shuffle_idx};

/// Threads of a block.
pub const PARTS_THREADS: u32 = 256;

/// Counts that a lane loads at once.
const BATCH: usize = 4;

/// Kernel: turns the counts of each digit in the parts of each segment of `level` into exclusive prefix sums over the
/// parts, and stores the total. A warp takes a digit. The kernel is the same for all keys, and there is a copy in the
/// module of each key type.
///
/// # Safety
/// The requirements of [`count_digits`](super::count_digits::count_digits) hold, and that kernel has run before. The
/// division is in order. Blocks have [`PARTS_THREADS`] threads.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn place_parts<B: Bits>(job: Job, level: u32) {
    // SAFETY: the lists have `job.at.words` words, as `Job` says, and only these kernels write them.
    let workspace = unsafe { Workspace::new(&job) };
    let (segments, blocks, warps) =
        (workspace.segments(level), thread::grid_dim_x(), const { PARTS_THREADS / WARP_SIZE });
    // All segments get an equal number of blocks, or one block takes several segments.
    let of_each = (blocks / segments.max(1)).max(1);
    let (block, warp) = (thread::block_idx_x() % of_each, thread::thread_idx_x() / WARP_SIZE);
    let mut i = thread::block_idx_x() / of_each;
    while i < segments {
        let offsets = workspace.offsets(job.plan, i);
        let mut digit = block * warps + warp;
        while digit < offsets.digits() {
            // SAFETY: `digit` is the same for all lanes of a warp, so that whole warps make the call. Each digit
            // belongs to one warp, so that no other warp uses its counts.
            let all = unsafe { sum_of_those_before(offsets.of_parts(digit)) };
            if warp::lane_id() == 0 {
                offsets.begins().set(digit as usize, all);
            }
            digit += of_each * warps;
        }
        i += blocks / of_each;
    }
}

/// Turns `counts` into exclusive prefix sums, and returns the total.
///
/// # Safety
/// The lanes of one whole warp make this call.
#[inline(always)]
unsafe fn sum_of_those_before(counts: GlobalMut<u32>) -> u32 {
    let (mut first, mut sum) = (0, 0);
    while first < counts.len() {
        let at = |i: usize| first + i * WARP_SIZE as usize + warp::lane_id() as usize;
        let mut own = [0; BATCH];
        for i in 0..BATCH {
            if at(i) < counts.len() {
                own[i] = counts.get(at(i));
            }
        }
        for i in 0..BATCH {
            // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make this call. `counts` and so the number of
            // rounds are the same for all of them.
            let (up_to, all) = unsafe {
                let up_to = sum_up_to(own[i]);
                (up_to, shuffle_idx(FULL_MASK, up_to, WARP_SIZE - 1))
            };
            if at(i) < counts.len() {
                counts.set(at(i), sum + up_to - own[i]);
            }
            sum += all;
        }
        first += BATCH * WARP_SIZE as usize;
    }
    sum
}
