//! The pool of threads of an engine.

use crate::timing::timed;
use crate::{Error, Timing, parallel};
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

/// The greatest number of threads of an engine: far more than any machine's cores, and fewer than systems refuse.
const MAX_THREADS: usize = 4096;

/// Keys to merge that are worth waking a thread for: about 0.1 ms of work.
const MERGE_KEYS_PER_THREAD: usize = 1 << 17;

/// Keys to sort that are worth waking a thread for.
const SORT_KEYS_PER_THREAD: usize = 1 << 16;

/// Threads that merge and sort.
pub(crate) struct Workers {
    threads: usize,
    /// Whether it is an error if the system starts fewer threads.
    exactly: bool,
    /// Started by the first call that is worth more than one thread.
    pool: OnceLock<ThreadPool>,
    /// Held while the pool is being started.
    starting: Mutex<()>,
    /// Whether the pool that the calling thread belongs to takes the place of one of the engine's own.
    on_current_pool: bool,
}

impl Workers {
    /// `threads` threads, and an error from each call that needs them if the system refuses to start one.
    pub fn exactly(threads: usize) -> Result<Self, Error> {
        match threads {
            0 => Err(Error::Threads { threads, reason: "at least 1 is needed".to_owned() }),
            1..=MAX_THREADS => Ok(Workers::new(threads, true)),
            _ => Err(Error::Threads { threads, reason: format!("at most {MAX_THREADS} are allowed") }),
        }
    }

    /// A thread for each core that this process may use, or as many as the system starts. The calling thread does the work
    /// if it starts none.
    pub fn all_cores() -> Self {
        let threads = thread::available_parallelism().map_or(1, |n| n.get()).min(MAX_THREADS);
        Workers::new(threads, false)
    }

    /// The threads of the pool that the calling thread belongs to, or else of rayon's global one.
    pub fn of_current_pool() -> Self {
        Workers { on_current_pool: true, ..Workers::new(1, false) }
    }

    fn new(threads: usize, exactly: bool) -> Self {
        Workers { threads, exactly, pool: OnceLock::new(), starting: Mutex::new(()), on_current_pool: false }
    }

    /// The number of threads that the engine was made for, or of the current pool.
    pub fn threads(&self) -> usize {
        if self.on_current_pool { parallel::threads() } else { self.threads }
    }

    /// Whether the threads are those of the current pool.
    pub fn are_of_current_pool(&self) -> bool {
        self.on_current_pool
    }

    /// The number of threads that sorting `keys` keys is worth.
    pub fn threads_to_sort(&self, keys: usize) -> usize {
        self.threads().min(keys / SORT_KEYS_PER_THREAD).max(1)
    }

    /// Times `merge`, which merges `keys` keys and is given the number of threads to use.
    pub fn merge(&self, keys: usize, merge: impl FnOnce(usize) + Send) -> Result<Timing, Error> {
        self.try_merge(keys, |threads| {
            merge(threads);
            Ok(())
        })
    }

    /// [`merge`](Self::merge), for a merge that may fail.
    pub fn try_merge(
        &self,
        keys: usize,
        merge: impl FnOnce(usize) -> Result<(), Error> + Send,
    ) -> Result<Timing, Error> {
        self.run(self.threads().min(keys / MERGE_KEYS_PER_THREAD).max(1), merge)
    }

    /// Times `sort`, which sorts `keys` keys and is given the number of threads to use.
    pub fn sort(&self, keys: usize, sort: impl FnOnce(usize) -> Result<(), Error> + Send) -> Result<Timing, Error> {
        self.run(self.threads_to_sort(keys), sort)
    }

    /// Calls `work` with `threads`, or with the number of threads that the system started if that is less. If it is more
    /// than 1, `work` runs in the pool.
    fn run(&self, threads: usize, work: impl FnOnce(usize) -> Result<(), Error> + Send) -> Result<Timing, Error> {
        let mut work = Some(work);
        self.run_dyn(threads, &mut |threads| work.take().map_or(Ok(()), |work| work(threads)))
    }

    /// [`run`](Self::run), compiled once. It calls `work` once.
    fn run_dyn(
        &self,
        threads: usize,
        work: &mut (dyn FnMut(usize) -> Result<(), Error> + Send),
    ) -> Result<Timing, Error> {
        let (done, compute) = if threads == 1 {
            timed(|| work(1))
        } else if self.on_current_pool {
            timed(|| rayon::scope(|_| work(threads)))
        } else {
            match self.pool(&spawn)? {
                Some(pool) => timed(|| pool.install(|| work(threads.min(pool.current_num_threads())))),
                None => timed(|| work(1)),
            }
        };
        done?;
        Ok(Timing { compute, ..Timing::default() })
    }

    /// The pool, which is started if there is none yet, or `None` if the calling thread is to work alone.
    fn pool(&self, spawn: &impl Spawn) -> Result<Option<&ThreadPool>, Error> {
        if let Some(pool) = self.pool.get() {
            return Ok(Some(pool));
        }
        let _starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.pool.get().is_none() {
            let Some(pool) = self.start(spawn)? else { return Ok(None) };
            let _ = self.pool.set(pool);
        }
        Ok(self.pool.get())
    }

    /// Starts the pool with as many threads as `spawn` starts, or `None` if it does not start two.
    fn start(&self, spawn: &impl Spawn) -> Result<Option<ThreadPool>, Error> {
        let mut threads = self.threads;
        while threads > 1 {
            match start(threads, spawn) {
                Ok(pool) => return Ok(Some(pool)),
                Err(refused) if self.exactly => {
                    return Err(Error::Threads { threads, reason: refused.reason });
                }
                // Fewer than before in any case: a thread that has ended may count a little longer.
                Err(refused) => threads = refused.started.min(threads - threads.div_ceil(4)),
            }
        }
        Ok(None)
    }
}

/// What starts the threads of a pool. Tests replace [`spawn`] by one that refuses.
trait Spawn: Fn(ThreadBuilder) -> io::Result<JoinHandle<()>> {}

impl<F: Fn(ThreadBuilder) -> io::Result<JoinHandle<()>>> Spawn for F {}

/// Why a pool could not be started.
struct Refused {
    /// Threads that were started before one was refused. They have ended.
    started: usize,
    reason: String,
}

/// Starts a pool of `threads` threads, or none of them.
fn start(threads: usize, spawn: &impl Spawn) -> Result<ThreadPool, Refused> {
    let mut handles = Vec::new();
    let builder = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("merge-{i}"));
    let pool = builder.spawn_handler(|thread| {
        handles.push(spawn(thread)?);
        Ok(())
    });
    pool.build().map_err(|error| {
        let started = handles.len();
        // The failure makes the threads end. The system can replace them only after they have ended.
        handles.into_iter().for_each(|handle| drop(handle.join()));
        Refused { started, reason: error.to_string() }
    })
}

/// Starts a thread of a pool.
fn spawn(thread: ThreadBuilder) -> io::Result<JoinHandle<()>> {
    let builder = match thread.name() {
        Some(name) => thread::Builder::new().name(name.to_owned()),
        None => thread::Builder::new(),
    };
    builder.spawn(|| thread.run())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts threads like a system that refuses to run more than `limit` of them.
    fn limited(limit: usize) -> impl Spawn {
        // A pool that fails to start ends its threads, so a thread's index is the number of those that run.
        move |thread: ThreadBuilder| {
            if thread.index() < limit { spawn(thread) } else { Err(io::Error::other("too many threads")) }
        }
    }

    /// The number of threads of the pool that a call with this limit uses.
    fn threads(workers: &Workers, limit: usize) -> Result<Option<usize>, Error> {
        Ok(workers.pool(&limited(limit))?.map(ThreadPool::current_num_threads))
    }

    #[test]
    fn all_cores_continue_with_the_threads_that_start() {
        for (limit, expected) in [(16, Some(16)), (15, Some(12)), (5, Some(5)), (2, Some(2)), (1, None), (0, None)] {
            assert_eq!(threads(&Workers::new(16, false), limit), Ok(expected), "at most {limit} threads");
        }
        assert_eq!(threads(&Workers::new(3, false), 2), Ok(Some(2)));
    }

    #[test]
    fn a_given_number_of_threads_is_started_or_refused() {
        assert_eq!(threads(&Workers::exactly(8).unwrap(), 8), Ok(Some(8)));
        let error = threads(&Workers::exactly(8).unwrap(), 7).unwrap_err();
        assert_eq!(error, Error::Threads { threads: 8, reason: "too many threads".to_owned() });
    }

    #[test]
    fn the_call_after_a_failed_start_tries_again() {
        let workers = Workers::exactly(4).unwrap();
        assert!(threads(&workers, 3).is_err());
        assert_eq!(threads(&workers, 4), Ok(Some(4)));
        let workers = Workers::new(4, false);
        assert_eq!(threads(&workers, 0), Ok(None));
        assert_eq!(threads(&workers, 4), Ok(Some(4)));
        // Once started, it is kept.
        assert_eq!(threads(&workers, 0), Ok(Some(4)));
    }

    #[test]
    fn work_is_told_how_many_threads_run_it() {
        let workers = Workers::new(4, false);
        assert_eq!(threads(&workers, 3), Ok(Some(3)));
        let told = Mutex::new(0);
        let sort = |threads| {
            *told.lock().unwrap() = threads;
            Ok(())
        };
        workers.sort(4 * SORT_KEYS_PER_THREAD, sort).unwrap();
        assert_eq!(*told.lock().unwrap(), 3);
        workers.sort(2 * SORT_KEYS_PER_THREAD, sort).unwrap();
        assert_eq!(*told.lock().unwrap(), 2);
        workers.sort(0, sort).unwrap();
        assert_eq!(*told.lock().unwrap(), 1);
    }
}
