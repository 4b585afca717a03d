//! The CPU engine: a twin of each kernel, under the same name, on a pool of threads.

use crate::{Error, Key, MergeKernel, Timing};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::OnceLock;
use std::time::Instant;

mod merge_basic;

/// The most threads an engine may have: far above any machine's cores, and below what systems refuse.
const MAX_THREADS: usize = 4096;

/// Merges and sorts on its own pool of threads.
pub(crate) struct CpuEngine {
    threads: usize,
    /// Started by the first call that is worth more than one thread.
    pool: OnceLock<Result<ThreadPool, String>>,
}

impl CpuEngine {
    pub(crate) fn new(threads: usize) -> Result<Self, Error> {
        match threads {
            0 => Err(Error::Threads { threads, reason: "at least 1 is needed".to_owned() }),
            1..=MAX_THREADS => Ok(CpuEngine { threads, pool: OnceLock::new() }),
            _ => Err(Error::Threads { threads, reason: format!("at most {MAX_THREADS} are allowed") }),
        }
    }

    pub(crate) fn all_cores() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(MAX_THREADS);
        CpuEngine { threads, pool: OnceLock::new() }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    pub(crate) fn sort<K: Key>(&self, keys: &mut [K]) -> Result<Timing, Error> {
        let start = Instant::now();
        keys.sort_unstable_by_key(|key| key.to_ordered());
        Ok(Timing { compute: start.elapsed(), ..Timing::default() })
    }

    pub(crate) fn merge_with<K: Key>(
        &self,
        _kernel: MergeKernel,
        a: &[K],
        b: &[K],
        out: &mut [K],
    ) -> Result<Timing, Error> {
        let start = Instant::now();
        merge_basic::merge(a, b, out);
        Ok(Timing { compute: start.elapsed(), ..Timing::default() })
    }

    pub(crate) fn merge_batch<K: Key>(
        &self,
        a: &[K],
        b: &[K],
        out: &mut [K],
        d: usize,
        a_len: usize,
    ) -> Result<Timing, Error> {
        let start = Instant::now();
        let b_len = d - a_len;
        for (p, run) in out.chunks_exact_mut(d).enumerate() {
            merge_basic::merge(&a[p * a_len..][..a_len], &b[p * b_len..][..b_len], run);
        }
        Ok(Timing { compute: start.elapsed(), ..Timing::default() })
    }
}
