//! How many keys have each digit, of all sweeps at once.

use super::{DIGIT_BITS, DIGITS, Job, SWEEPS};
use crate::block::shared_memory::shared_memory;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::warp::lane_id;

/// Counters of each digit, which lanes use in turn: those that add to the same word wait for each other.
const COPIES: u32 = 2;

const COUNTERS: u32 = SWEEPS * DIGITS * COPIES;

shared_memory! {
    /// Shared memory of a block that counts. A counter is `(sweep * DIGITS + digit) * COPIES + copy`.
    pub(in crate::kernels::sort) struct CountMemory() {
        counters: [u32; COUNTERS],
    }
}

impl CountMemory {
    /// Sets all counters to 0. Before and after a barrier.
    #[inline(always)]
    #[track_caller]
    pub fn clear<const NT: usize>(self) {
        crate::kernels::sort::clear::<NT>(self.counters, COUNTERS);
    }

    /// Counts the digits of `keys`, as `coding` encodes them, in this thread's [copy](own_copy) of the counters. All `NT` threads of the block make this
    /// call.
    #[inline(always)]
    #[track_caller]
    pub fn count<B: Bits, const NT: usize>(self, keys: GlobalMut<B>, coding: Coding<B>, copy: u32) {
        let thread = thread::thread_idx_x();
        let add = |key: B| {
            let bits = coding.encode(key).to_register() as u32;
            for sweep in 0..SWEEPS {
                let digit = bits >> (sweep * DIGIT_BITS) & (DIGITS - 1);
                self.counters.fetch_add((sweep * DIGITS + digit) * COPIES + copy, 1);
            }
        };
        let mut i = thread as usize;
        while i + (BATCH - 1) * NT < keys.len() {
            let mut own = [B::MIN; BATCH];
            for at in 0..BATCH {
                own[at] = keys.get(i + at * NT);
            }
            for at in 0..BATCH {
                add(own[at]);
            }
            i += BATCH * NT;
        }
        while i < keys.len() {
            add(keys.get(i));
            i += NT;
        }
    }

    /// Adds what has been counted to `counts`, which are those of each digit, sweep by sweep. All `NT` threads of the block make this call, after
    /// a barrier.
    #[inline(always)]
    #[track_caller]
    pub fn add_to<const NT: usize>(self, counts: GlobalMut<u32>) {
        let mut digit = thread::thread_idx_x();
        while digit < SWEEPS * DIGITS {
            let mut sum = 0;
            for copy in 0..COPIES {
                sum += self.counters.get(digit * COPIES + copy);
            }
            if sum > 0 {
                counts.fetch_add(digit as usize, sum);
            }
            digit += NT as u32;
        }
    }
}

/// The copy of the counters that this thread adds to.
#[inline(always)]
pub(in crate::kernels::sort) fn own_copy() -> u32 {
    lane_id() % COPIES
}

/// Keys of a thread that are on their way at once.
const BATCH: usize = 8;

/// Counts the digits of a share of `keys`, as `coding` encodes them, and sets a share of what tiles publish to 0.
///
/// # Safety
/// What [`Job`] says holds; `keys` are the job's. All `NT` threads of the block make this call, after a barrier, and nothing else uses the memory.
#[inline(always)]
pub(super) unsafe fn count_share<B: Bits, const NT: usize>(
    job: &Job,
    keys: *mut B,
    coding: Coding<B>,
    share: u32,
    memory: CountMemory,
) {
    // SAFETY: `job` and its `n` keys are as `Job` says, which are only read.
    let (workspace, keys) = unsafe { (job.open(), GlobalMut::new(keys, job.n as usize)) };
    let copy = own_copy();
    memory.clear::<NT>();
    workspace.published.clear(share as usize * NT + thread::thread_idx_x() as usize, job.shares as usize * NT);
    thread::sync_threads();
    let len = keys.len().div_ceil(job.shares.max(1) as usize);
    let first = (share as usize * len).min(keys.len());
    memory.count::<B, NT>(keys.slice(first, len.min(keys.len() - first)), coding, copy);
    thread::sync_threads();
    memory.add_to::<NT>(workspace.counts());
}
