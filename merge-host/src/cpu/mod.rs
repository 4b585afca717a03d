//! The CPU engine: a twin of each kernel, under the same name, on a pool of threads.

use crate::{Error, Index, Key, MergeKernel, SetOperation, SortOrder, Timing};
use merge_ragged::Offsets;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use run::{Run, RunMut};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

mod both_ends;
mod by_items;
mod counting;
mod digit;
mod leaf;
mod lines;
mod memory;
mod merge_basic;
mod merge_batch;
mod merge_circular;
mod merge_many;
mod merge_path;
mod merge_ragged;
mod merge_tiled;
mod parallel_radix;
mod radix;
mod run;
mod select;
mod set_operation;
mod sort;
mod sort_pairs;
mod sort_segments;
mod split;
#[cfg(target_arch = "x86_64")]
mod wide;

/// The most threads an engine may have: far above any machine's cores, and below what systems refuse.
const MAX_THREADS: usize = 4096;

/// Keys to merge that make a thread worth waking: about 0.1 ms of work.
const MERGE_KEYS_A_THREAD: usize = 1 << 17;

/// Keys to sort that make a thread worth waking.
const SORT_KEYS_A_THREAD: usize = 1 << 16;

/// Keys that are read or written at once.
const PIECE: usize = 1 << 18;

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

    pub(crate) fn sort<K: Key>(&self, order: SortOrder, keys: &mut [K]) -> Result<Timing, Error> {
        self.timed_sort(keys.len(), |threads| sort::sort_keys(order, keys, threads))
    }

    pub(crate) fn sort_through<K: Key, E: From<Error> + Send>(
        &self,
        order: SortOrder,
        len: usize,
        read: impl Fn(usize, &mut [K]) -> Result<(), E> + Sync,
        write: impl Fn(usize, &[K]) -> Result<(), E> + Sync,
    ) -> Result<Timing, E> {
        let mut keys = memory::zeroed::<K>(len)?;
        let (read, upload) = timed(|| {
            self.run(len / SORT_KEYS_A_THREAD, |threads| {
                try_for_each_piece(&mut keys, threads, |i, keys| read(i, keys))
            })
        });
        read??;
        let timing = self.sort(order, &mut keys)?;
        let (written, download) = timed(|| {
            self.run(len / SORT_KEYS_A_THREAD, |threads| {
                try_for_each_piece(&mut keys, threads, |i, keys| write(i, keys))
            })
        });
        written??;
        Ok(Timing { upload, download, ..timing })
    }

    pub(crate) fn sort_pairs<K: Key, V: Copy + Send + Sync>(
        &self,
        order: SortOrder,
        keys: &mut [K],
        values: &mut [V],
    ) -> Result<Timing, Error> {
        self.timed_sort(keys.len(), |threads| sort_pairs::sort_pairs(order, keys, values, threads))
    }

    pub(crate) fn argsort<K: Key, I: Index>(
        &self,
        order: SortOrder,
        keys: &[K],
        indices: &mut [I],
    ) -> Result<Timing, Error> {
        self.timed_sort(keys.len(), |threads| sort_pairs::argsort(order, keys, indices, threads))
    }

    pub(crate) fn merge_with<K: Key>(
        &self,
        kernel: MergeKernel,
        a: &[K],
        b: &[K],
        out: &mut [K],
    ) -> Result<Timing, Error> {
        self.timed(out.len(), |threads| match kernel {
            MergeKernel::Basic => merge_basic::merge(a, b, out, threads),
            MergeKernel::Tiled => merge_tiled::merge(a, b, out, threads),
            MergeKernel::Circular => merge_circular::merge(a, b, out, threads),
            MergeKernel::Auto | MergeKernel::MergePath => {
                merge_path::merge(Run::of_keys(a), Run::of_keys(b), RunMut::of_keys(out), threads)
            }
        })
    }

    pub(crate) fn merge_pairs<K: Key, V: Copy + Send + Sync>(
        &self,
        a: (&[K], &[V]),
        b: (&[K], &[V]),
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        let (a, b, out) = (Run::new(a), Run::new(b), RunMut::new(out));
        self.timed(out.keys.len(), |threads| merge_path::merge(a, b, out, threads))
    }

    pub(crate) fn merge_batch<K: Key>(
        &self,
        a: &[K],
        b: &[K],
        out: &mut [K],
        d: usize,
        a_len: usize,
    ) -> Result<Timing, Error> {
        let (a, b, out) = (Run::of_keys(a), Run::of_keys(b), RunMut::of_keys(out));
        self.timed(out.keys.len(), |threads| merge_batch::merge(a, b, out, d, a_len, threads))
    }

    pub(crate) fn merge_batch_pairs<K: Key, V: Copy + Send + Sync>(
        &self,
        a: (&[K], &[V]),
        b: (&[K], &[V]),
        out: (&mut [K], &mut [V]),
        d: usize,
        a_len: usize,
    ) -> Result<Timing, Error> {
        let (a, b, out) = (Run::new(a), Run::new(b), RunMut::new(out));
        self.timed(out.keys.len(), |threads| merge_batch::merge(a, b, out, d, a_len, threads))
    }

    pub(crate) fn merge_ragged<K: Key>(
        &self,
        a: (&[K], &[usize]),
        b: (&[K], &[usize]),
        out: &mut [K],
    ) -> Result<Timing, Error> {
        let offsets = Offsets { a: a.1, b: b.1 };
        let (a, b, out) = (Run::of_keys(a.0), Run::of_keys(b.0), RunMut::of_keys(out));
        self.timed(offsets.cost(), |threads| merge_ragged::merge(a, b, offsets, out, threads))
    }

    pub(crate) fn merge_ragged_pairs<K: Key, V: Copy + Send + Sync>(
        &self,
        a: (&[K], &[V], &[usize]),
        b: (&[K], &[V], &[usize]),
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        let offsets = Offsets { a: a.2, b: b.2 };
        let (a, b, out) = (Run::new((a.0, a.1)), Run::new((b.0, b.1)), RunMut::new(out));
        self.timed(offsets.cost(), |threads| merge_ragged::merge(a, b, offsets, out, threads))
    }

    pub(crate) fn merge_many<K: Key>(&self, runs: &[&[K]], out: &mut [K]) -> Result<Timing, Error> {
        let (runs, out) = (runs.iter().map(|run| Run::of_keys(run)), RunMut::of_keys(out));
        self.try_timed(out.keys.len() / MERGE_KEYS_A_THREAD, |threads| merge_many::merge(runs, out, threads))
    }

    pub(crate) fn merge_many_pairs<K: Key, V: Copy + Send + Sync>(
        &self,
        runs: &[(&[K], &[V])],
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        let (runs, out) = (runs.iter().map(|run| Run::new(*run)), RunMut::new(out));
        self.try_timed(out.keys.len() / MERGE_KEYS_A_THREAD, |threads| merge_many::merge(runs, out, threads))
    }

    pub(crate) fn sort_segments<K: Key>(
        &self,
        order: SortOrder,
        keys: &mut [K],
        offsets: &[usize],
    ) -> Result<Timing, Error> {
        self.timed_sort(sort_segments::cost(offsets), |threads| sort_segments::sort_keys(order, keys, offsets, threads))
    }

    pub(crate) fn sort_segments_pairs<K: Key, V: Copy + Send + Sync>(
        &self,
        order: SortOrder,
        keys: &mut [K],
        values: &mut [V],
        offsets: &[usize],
    ) -> Result<Timing, Error> {
        let run = RunMut::new((keys, values));
        self.timed_sort(sort_segments::cost(offsets), |threads| sort_segments::sort_pairs(order, run, offsets, threads))
    }

    pub(crate) fn set_operation<K: Key>(
        &self,
        operation: SetOperation,
        a: &[K],
        b: &[K],
        out: &mut Vec<K>,
    ) -> Result<Timing, Error> {
        let worth = (a.len() + b.len()) / MERGE_KEYS_A_THREAD;
        self.try_timed(worth, |threads| set_operation::set_operation(operation, a, b, out, threads))
    }

    /// Calls `merge` with the number of threads that merging so many keys is worth.
    fn timed(&self, keys: usize, merge: impl FnOnce(usize) + Send) -> Result<Timing, Error> {
        self.try_timed(keys / MERGE_KEYS_A_THREAD, |threads| {
            merge(threads);
            Ok(())
        })
    }

    /// Calls `sort` with the number of threads that sorting so many keys is worth.
    fn timed_sort(&self, keys: usize, sort: impl FnOnce(usize) -> Result<(), Error> + Send) -> Result<Timing, Error> {
        self.try_timed(keys / SORT_KEYS_A_THREAD, sort)
    }

    /// [`run`](Self::run) with the time it takes.
    fn try_timed(&self, worth: usize, work: impl FnOnce(usize) -> Result<(), Error> + Send) -> Result<Timing, Error> {
        let start = Instant::now();
        self.run(worth, work)??;
        Ok(Timing { compute: start.elapsed(), ..Timing::default() })
    }

    /// Calls `work` with the number of threads to use: `worth`, or fewer where the engine has fewer. If that is more
    /// than one, `work` runs in the engine's pool, and what it does in parallel is done there.
    fn run<R: Send>(&self, worth: usize, work: impl FnOnce(usize) -> R + Send) -> Result<R, Error> {
        let threads = self.threads.min(worth).max(1);
        if threads == 1 { Ok(work(1)) } else { Ok(self.pool()?.install(|| work(threads))) }
    }

    fn pool(&self) -> Result<&ThreadPool, Error> {
        let start = || {
            let builder = ThreadPoolBuilder::new().num_threads(self.threads);
            builder.thread_name(|i| format!("merge-{i}")).build().map_err(|error| error.to_string())
        };
        let pool = self.pool.get_or_init(start);
        pool.as_ref().map_err(|reason| Error::Threads { threads: self.threads, reason: reason.clone() })
    }
}

/// The value of `work`, and how long it took.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}

/// Calls `work` with pieces of `keys` and where they begin, until one of them fails, on the pool that this thread belongs
/// to. With one thread it is a plain loop, and there need not be a pool.
fn try_for_each_piece<K: Send, E: Send>(
    keys: &mut [K],
    threads: usize,
    work: impl Fn(usize, &mut [K]) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let work = |(p, keys)| work(p * PIECE, keys);
    if threads == 1 {
        keys.chunks_mut(PIECE).enumerate().try_for_each(work)
    } else {
        keys.par_chunks_mut(PIECE).enumerate().try_for_each(work)
    }
}

/// Cuts `out` into pieces of `piece` keys (the last may be shorter) and calls `fill` with each and where it begins, on
/// the pool that this thread belongs to. With one thread it is a plain loop, and there need not be a pool.
fn for_each_piece<K: Send, V: Send>(
    mut out: RunMut<K, V>,
    piece: usize,
    threads: usize,
    fill: impl Fn(usize, RunMut<K, V>) + Sync,
) {
    let fill = |(p, out)| fill(p * piece, out);
    if threads == 1 {
        out.chunks(piece).enumerate().for_each(fill);
    } else {
        out.par_chunks(piece).enumerate().for_each(fill);
    }
}

/// [`for_each_piece`] of keys alone.
fn for_each_piece_of_keys<K: Send>(out: &mut [K], piece: usize, threads: usize, fill: impl Fn(usize, &mut [K]) + Sync) {
    for_each_piece(RunMut::of_keys(out), piece, threads, |begin, out| fill(begin, out.keys));
}
