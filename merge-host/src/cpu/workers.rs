//! The threads of an engine.

use super::limit;
use crate::pool::{self, Spawn, processors, run_in, spawn, start, start_most};
use crate::timing::{Steps, timed};
use crate::{Error, parallel};
use rayon::ThreadPool;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The greatest number of threads of an engine: far more than any machine's cores, and few enough that systems start
/// them.
const MAX_THREADS: usize = 4096;

/// The number of keys to merge that is worth waking a thread: about 0.1 ms of work.
const MERGE_KEYS_PER_THREAD: usize = 1 << 17;

/// The number of keys to sort that is worth waking a second thread, and the number that is worth each thread of more
/// keys.
const SORT_KEYS_OF_THREADS: usize = 1 << 19;
const SORT_KEYS_PER_THREAD: usize = 1 << 16;

/// The number of elements to sort by comparisons that is worth waking a thread.
const COMPARED_PER_THREAD: usize = 1 << 14;

/// Calls with fewer keys do not look at the clock.
pub(crate) const UNTIMED_KEYS: usize = 1 << 10;

/// Threads that merge and sort.
pub(crate) struct Workers {
    /// The greatest number of threads. At most one thread for each processor works.
    threads: usize,
    /// Whether it is an error if the system starts fewer threads.
    exactly: bool,
    pool: Mutex<Pool>,
    /// Whether the calling thread's pool takes the place of a pool of the engine.
    on_current_pool: bool,
}

/// A pool that starts with the first call that is worth more than one thread. It starts again if the number of
/// processors has grown.
#[derive(Default)]
struct Pool {
    pool: Option<Arc<ThreadPool>>,
    /// The requested number of threads. The system may have started fewer.
    threads: usize,
}

impl Workers {
    /// `threads` threads. If the system refuses to start one, each call that needs them is an error.
    pub fn exactly(threads: usize) -> Result<Self, Error> {
        match threads {
            0 => Err(Error::Threads { threads, reason: "at least 1 is needed".to_owned() }),
            1..=MAX_THREADS => Ok(Workers::new(threads, true)),
            _ => Err(Error::Threads { threads, reason: format!("at most {MAX_THREADS} are allowed") }),
        }
    }

    /// The threads of all engines that have none of their own: one for each processor, or the number that the system
    /// starts. If it starts none, the calling thread does the work.
    pub fn shared() -> Arc<Self> {
        static SHARED: LazyLock<Arc<Workers>> = LazyLock::new(|| Arc::new(Workers::new(MAX_THREADS, false)));
        SHARED.clone()
    }

    /// The threads of the calling thread's pool, or of rayon's global pool if the thread belongs to none.
    pub fn of_current_pool() -> Self {
        Workers { on_current_pool: true, ..Workers::new(1, false) }
    }

    fn new(threads: usize, exactly: bool) -> Self {
        Workers { threads, exactly, pool: Mutex::default(), on_current_pool: false }
    }

    /// The number of threads that work: at most the number of processors.
    pub fn threads(&self) -> usize {
        if self.on_current_pool { parallel::threads() } else { self.threads.min(processors()) }
    }

    /// Whether the calling thread's pool does the work.
    pub fn are_of_current_pool(&self) -> bool {
        self.on_current_pool
    }

    /// The number of threads that sorting `keys` keys is worth.
    pub fn threads_to_sort(&self, keys: usize) -> usize {
        if keys < SORT_KEYS_OF_THREADS { 1 } else { self.threads_for(keys / SORT_KEYS_PER_THREAD) }
    }

    /// The number of threads that sorting `elements` elements by comparisons is worth.
    pub fn threads_to_compare(&self, elements: usize) -> usize {
        self.threads_for(elements / COMPARED_PER_THREAD)
    }

    /// The number of threads for work that is worth `worth` threads.
    fn threads_for(&self, worth: usize) -> usize {
        // To find out the number of processors takes longer than to sort a few keys.
        if worth <= 1 { 1 } else { self.threads().min(worth) }
    }

    /// Times `merge`, which merges `keys` keys and is given the number of threads to use.
    pub fn merge(&self, keys: usize, merge: impl FnOnce(usize) + Send) -> Result<Steps, Error> {
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
    ) -> Result<Steps, Error> {
        self.run(keys, self.threads_for(keys / MERGE_KEYS_PER_THREAD), merge)
    }

    /// Times `sort`, which sorts `keys` keys and is given the number of threads to use.
    pub fn sort(&self, keys: usize, sort: impl FnOnce(usize) -> Result<(), Error> + Send) -> Result<Steps, Error> {
        self.run(keys, self.threads_to_sort(keys), sort)
    }

    /// Times `sort`, which sorts `elements` elements by comparisons and is given the number of threads to use.
    pub fn sort_by_comparisons(
        &self,
        elements: usize,
        sort: impl FnOnce(usize) -> Result<(), Error> + Send,
    ) -> Result<Steps, Error> {
        self.run(elements, self.threads_to_compare(elements), sort)
    }

    /// Calls `work`, which is work on `keys` keys, with `threads`, or with the number of threads that the system
    /// started if that is less. With more than 1 thread, `work` runs in the pool. The time of few keys is not measured.
    fn run(
        &self,
        keys: usize,
        threads: usize,
        work: impl FnOnce(usize) -> Result<(), Error> + Send,
    ) -> Result<Steps, Error> {
        if keys < UNTIMED_KEYS {
            limit::check()?;
            return work(1).map(|()| Steps::default());
        }
        let mut work = Some(work);
        self.run_dyn(threads, &mut |threads| work.take().map_or(Ok(()), |work| work(threads)))
    }

    /// [`run`](Self::run), compiled once for all types of `work`. It calls `work` once.
    fn run_dyn(
        &self,
        threads: usize,
        work: &mut (dyn FnMut(usize) -> Result<(), Error> + Send),
    ) -> Result<Steps, Error> {
        limit::check()?;
        let (done, compute) = if threads == 1 {
            timed(|| work(1))
        } else if self.on_current_pool {
            timed(|| rayon::scope(|_| work(threads)))
        } else {
            match self.pool(self.threads(), &spawn)? {
                Some(pool) => timed(|| run_in(&pool, || work(threads.min(pool.current_num_threads())))),
                None => timed(|| work(1)),
            }
        };
        done?;
        Ok(Steps { compute, ..Steps::default() })
    }

    /// A pool of at most `threads` threads, started if there is none yet; or `None` if the calling thread is to work
    /// alone.
    fn pool(&self, threads: usize, spawn: &impl Spawn) -> Result<Option<Arc<ThreadPool>>, Error> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.threads < threads {
            match self.start(threads, spawn) {
                Ok(started) => *pool = Pool { pool: Some(Arc::new(started)), threads },
                Err(refused) if self.exactly && pool.pool.is_none() => {
                    return Err(Error::Threads { threads: self.threads, reason: refused.reason });
                }
                // The next call tries again.
                Err(_) => {}
            }
        }
        Ok(pool.pool.clone())
    }

    /// Starts a pool of two threads or more.
    fn start(&self, threads: usize, spawn: &impl Spawn) -> Result<ThreadPool, pool::Refused> {
        const NAME: &str = "merge";
        let started = if self.exactly { start(NAME, threads, spawn) } else { start_most(NAME, threads, 2, spawn) };
        started.map(|(pool, _)| pool)
    }
}

/// Times `sort`, which begins on the calling thread.
pub(super) fn timed_whole(sort: impl FnOnce() -> Result<Steps, Error>) -> Result<Steps, Error> {
    limit::check()?;
    let (done, compute) = timed(sort);
    done.map(|steps| Steps { compute, ..steps })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::ThreadBuilder;
    use std::io;

    /// Starts threads like a system that runs at most `limit` threads.
    fn limited(limit: usize) -> impl Spawn {
        // A pool that fails to start ends its threads, so a thread's index is the number of running threads.
        move |thread: ThreadBuilder| {
            if thread.index() < limit { spawn(thread) } else { Err(io::Error::other("too many threads")) }
        }
    }

    /// The number of threads of a call's pool on a machine with `processors` processors and a system that starts up to
    /// `limit` threads.
    fn threads(workers: &Workers, processors: usize, limit: usize) -> Result<Option<usize>, Error> {
        let pool = workers.pool(workers.threads.min(processors), &limited(limit))?;
        Ok(pool.map(|pool| pool.current_num_threads()))
    }

    #[test]
    fn all_cores_continue_with_the_threads_that_start() {
        for (limit, expected) in [(16, Some(16)), (15, Some(12)), (5, Some(5)), (2, Some(2)), (1, None), (0, None)] {
            assert_eq!(threads(&Workers::new(16, false), 16, limit), Ok(expected), "at most {limit} threads");
        }
        assert_eq!(threads(&Workers::new(3, false), 16, 2), Ok(Some(2)));
    }

    #[test]
    fn a_given_number_of_threads_is_started_or_refused() {
        assert_eq!(threads(&Workers::exactly(8).unwrap(), 16, 8), Ok(Some(8)));
        let error = threads(&Workers::exactly(8).unwrap(), 16, 7).unwrap_err();
        assert_eq!(error, Error::Threads { threads: 8, reason: "too many threads".to_owned() });
    }

    #[test]
    fn the_call_after_a_failed_start_tries_again() {
        let workers = Workers::exactly(4).unwrap();
        assert!(threads(&workers, 16, 3).is_err());
        assert_eq!(threads(&workers, 16, 4), Ok(Some(4)));
        let workers = Workers::new(4, false);
        assert_eq!(threads(&workers, 16, 0), Ok(None));
        assert_eq!(threads(&workers, 16, 4), Ok(Some(4)));
        // A started pool is kept.
        assert_eq!(threads(&workers, 16, 0), Ok(Some(4)));
    }

    #[test]
    fn there_are_no_more_threads_than_processors() {
        for workers in [Workers::exactly(4096).unwrap(), Workers::new(4096, false)] {
            assert_eq!(threads(&workers, 2, 100), Ok(Some(2)));
            // A process may get more processors later. It keeps its threads if the system refuses more.
            assert_eq!(threads(&workers, 5, 3), Ok(Some(if workers.exactly { 2 } else { 3 })));
            assert_eq!(threads(&workers, 6, 100), Ok(Some(6)));
            assert_eq!(threads(&workers, 3, 100), Ok(Some(6)));
            assert_eq!(workers.threads_to_sort(usize::MAX), processors());
            assert_eq!(workers.threads_to_sort(SORT_KEYS_OF_THREADS - 1), 1);
        }
    }

    #[test]
    fn work_is_told_how_many_threads_run_it() {
        let workers = Workers::new(4, false);
        let told = |keys| {
            let mut told = 0;
            let sort = |threads| {
                told = threads;
                Ok(())
            };
            workers.sort(keys, sort).unwrap();
            told
        };
        assert_eq!(told(SORT_KEYS_OF_THREADS), processors().min(4));
        assert_eq!(told(0), 1);
    }

    #[test]
    fn engines_of_all_cores_share_their_threads() {
        assert!(Arc::ptr_eq(&Workers::shared(), &Workers::shared()));
    }
}
