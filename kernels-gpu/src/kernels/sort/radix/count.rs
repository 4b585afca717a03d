//! Histograms of the digits of all passes, in one reading of the keys.

use super::{DIGIT_BITS, DIGITS, Job, SWEEPS};
use crate::block::counters::Counters;
use crate::block::shared_memory::shared_memory;
use crate::kernels::sort::for_each_key;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;

/// Counters of each digit.
const COPIES: u32 = 2;

const COUNTERS: u32 = SWEEPS * DIGITS * COPIES;

shared_memory! {
    /// Shared memory of a block that counts. The digits of a sweep follow those of the one before.
    pub(super) struct CountMemory() {
        counters: [u32; COUNTERS],
    }
}

/// Counts the digits of share `share` of the keys, encoded by `coding`, and clears a share of the words that tiles
/// publish.
///
/// # Safety
/// The requirements of [`Job`] are met, and `keys` points to the job's `n` keys. `share` is below the job's `shares`.
/// All `NT` threads of the block make this call after a barrier, and nothing else uses the memory.
#[inline(always)]
pub(super) unsafe fn count_share<B: Bits, const NT: usize>(
    job: &Job,
    keys: *mut B,
    coding: Coding<B>,
    share: u32,
    CountMemory { counters }: CountMemory,
) {
    // SAFETY: the caller passes the job's `n` keys at `keys`, which are only read, and a `Job` that meets its
    // requirements.
    let (workspace, keys) = unsafe { (job.open(), GlobalMut::new(keys, job.n as usize)) };
    let (thread, counters) = (thread::thread_idx_x(), Counters::<COPIES>(counters));
    counters.clear::<NT>(SWEEPS * DIGITS);
    workspace.published.clear(share as usize * NT + thread as usize, job.shares as usize * NT);
    thread::sync_threads();
    let add = |key: B| {
        let bits = coding.encode(key).to_register() as u32;
        for sweep in 0..SWEEPS {
            if sweep < job.sweeps {
                let digit = bits >> (sweep * DIGIT_BITS) & (DIGITS - 1);
                counters.add(sweep * DIGITS + digit);
            }
        }
    };
    let len = keys.len().div_ceil(job.shares.max(1) as usize);
    let first = (share as usize * len).min(keys.len());
    let keys = keys.slice(first, len.min(keys.len() - first));
    for_each_key::<B, NT>(keys, add);
    thread::sync_threads();
    counters.add_to::<NT>(workspace.counts());
}
