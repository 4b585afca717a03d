//! The pool of threads of an engine.

use crate::timing::timed;
use crate::{Error, Timing};
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

    fn new(threads: usize, exactly: bool) -> Self {
        Workers { threads, exactly, pool: OnceLock::new(), starting: Mutex::new(()) }
    }

    /// The number of threads that the engine was made for.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The number of threads that sorting `keys` keys is worth.
    pub fn threads_to_sort(&self, keys: usize) -> usize {
        self.threads.min(keys / SORT_KEYS_PER_THREAD).max(1)
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
        self.run(self.threads.min(keys / MERGE_KEYS_PER_THREAD).max(1), merge)
    }

    /// Times `sort`, which sorts `keys` keys and is given the number of threads to use.
    pub fn sort(&self, keys: usize, sort: impl FnOnce(usize) -> Result<(), Error> + Send) -> Result<Timing, Error> {
        self.run(self.threads_to_sort(keys), sort)
    }

    /// Calls `work` with `threads`, or with the number of threads that the system started if that is less. If it is more
    /// than 1, `work` runs in the pool.
    fn run(&self, threads: usize, work: impl FnOnce(usize) -> Result<(), Error> + Send) -> Result<Timing, Error> {
        let pool = if threads > 1 { self.pool()? } else { None };
        let (done, compute) = match pool {
            Some(pool) => timed(|| pool.install(|| work(threads.min(pool.current_num_threads())))),
            None => timed(|| work(1)),
        };
        done?;
        Ok(Timing { compute, ..Timing::default() })
    }

    /// The pool, which is started if there is none yet, or `None` if the calling thread is to work alone.
    fn pool(&self) -> Result<Option<&ThreadPool>, Error> {
        if let Some(pool) = self.pool.get() {
            return Ok(Some(pool));
        }
        let _starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.pool.get().is_none() {
            let Some(pool) = self.start(&spawn)? else { return Ok(None) };
            let _ = self.pool.set(pool);
        }
        Ok(self.pool.get())
    }

    /// Starts the pool with as many threads as `spawn` starts, or `None` if it does not start two.
    fn start(&self, spawn: &impl Fn(ThreadBuilder) -> io::Result<JoinHandle<()>>) -> Result<Option<ThreadPool>, Error> {
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

/// Why a pool could not be started.
struct Refused {
    /// Threads that were started before one was refused. They have ended.
    started: usize,
    reason: String,
}

/// Starts a pool of `threads` threads, or none of them.
fn start(threads: usize, spawn: &impl Fn(ThreadBuilder) -> io::Result<JoinHandle<()>>) -> Result<ThreadPool, Refused> {
    let mut handles = Vec::new();
    let builder = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("merge-{i}"));
    let pool = builder.spawn_handler(|thread| {
        handles.push(spawn(thread)?);
        Ok(())
    });
    pool.build().map_err(|error| {
        let started = handles.len();
        // A failed start tells the threads to end. They must have ended before the system can start others in their stead.
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

    /// Starts the threads of `workers` on a system that refuses to run more than `limit` at a time, and gives the number of
    /// threads of the pool.
    fn started(workers: &Workers, limit: usize) -> Result<Option<usize>, Error> {
        // A pool that fails to start ends its threads, so a thread's index is the number of those that run.
        let spawn_limited = |thread: ThreadBuilder| {
            if thread.index() < limit { spawn(thread) } else { Err(io::Error::other("the limit")) }
        };
        Ok(workers.start(&spawn_limited)?.map(|pool| pool.current_num_threads()))
    }

    #[test]
    fn all_cores_go_on_with_the_threads_that_start() {
        let workers = Workers::new(16, false);
        assert_eq!(started(&workers, 16), Ok(Some(16)));
        assert_eq!(started(&workers, 15), Ok(Some(12)));
        assert_eq!(started(&workers, 5), Ok(Some(5)));
        assert_eq!(started(&workers, 2), Ok(Some(2)));
        assert_eq!(started(&workers, 1), Ok(None));
        assert_eq!(started(&workers, 0), Ok(None));
    }

    #[test]
    fn a_given_number_of_threads_is_started_or_refused() {
        let workers = Workers::exactly(8).unwrap();
        assert_eq!(started(&workers, 8), Ok(Some(8)));
        let error = started(&workers, 7).unwrap_err();
        assert!(matches!(error, Error::Threads { threads: 8, .. }), "{error}");
    }
}
