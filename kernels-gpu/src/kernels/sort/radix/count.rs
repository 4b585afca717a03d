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

/// Keys of a thread that are on their way at once.
const BATCH: usize = 8;

/// The counters, as a thread uses them.
pub(in crate::kernels::sort) struct Counters {
    counters: Shared<u32>,
    /// The copy that the thread adds to.
    copy: u32,
}

impl Counters {
    /// Those in this memory.
    #[inline(always)]
    pub fn new(CountMemory { counters }: CountMemory) -> Self {
        Self { counters, copy: lane_id() % COPIES }
    }

    /// Sets all to 0, between two barriers.
    #[inline(always)]
    #[track_caller]
    pub fn clear<const NT: usize>(&self) {
        crate::kernels::sort::clear::<NT>(self.counters, COUNTERS);
    }

    /// Counts the digits of `keys`, as `coding` encodes them. All `NT` threads of the block make this call.
    #[inline(always)]
    #[track_caller]
    pub fn count<B: Bits, const NT: usize>(&self, keys: GlobalMut<B>, coding: Coding<B>) {
        let add = |key: B| {
            let bits = coding.encode(key).to_register() as u32;
            for sweep in 0..SWEEPS {
                let digit = bits >> (sweep * DIGIT_BITS) & (DIGITS - 1);
                self.counters.fetch_add((sweep * DIGITS + digit) * COPIES + self.copy, 1);
            }
        };
        let mut i = thread::thread_idx_x() as usize;
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

    /// How many keys have been counted of digit `digit % DIGITS` of sweep `digit / DIGITS`, after a barrier.
    #[inline(always)]
    #[track_caller]
    pub fn of(&self, digit: u32) -> u32 {
        let mut sum = 0;
        for copy in 0..COPIES {
            sum += self.counters.get(digit * COPIES + copy);
        }
        sum
    }
}

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
    let (thread, counters) = (thread::thread_idx_x(), Counters::new(memory));
    counters.clear::<NT>();
    workspace.published.clear(share as usize * NT + thread as usize, job.shares as usize * NT);
    thread::sync_threads();
    let len = keys.len().div_ceil(job.shares.max(1) as usize);
    let first = (share as usize * len).min(keys.len());
    counters.count::<B, NT>(keys.slice(first, len.min(keys.len() - first)), coding);
    thread::sync_threads();
    let mut digit = thread;
    while digit < SWEEPS * DIGITS {
        let sum = counters.of(digit);
        if sum > 0 {
            workspace.counts().fetch_add(digit as usize, sum);
        }
        digit += NT as u32;
    }
}
