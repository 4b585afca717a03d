//! Thread pools: the number of threads that have a processor, the start of a pool, and how a thread waits for pools.

use crate::cpu::memory;
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::slice::from_ref;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time that the number of processors of a control group is cached. Reading it takes some 40 µs.
const REFRESH: Duration = Duration::from_millis(500);

/// The number of processors that the calling thread may use now. More threads would only wait for each other.
pub(crate) fn processors() -> usize {
    static KNOWN: Mutex<Option<(usize, Instant, usize)>> = Mutex::new(None);
    let allowed = allowed();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match *known {
        Some((of_allowed, at, processors)) if of_allowed == allowed && at.elapsed() < REFRESH => processors,
        _ => {
            let processors = thread::available_parallelism().map_or(1, usize::from);
            *known = Some((allowed, Instant::now(), processors));
            processors
        }
    }
}

/// The number of processors that the scheduler may run the calling thread on, or 0 if it is unknown. To find out takes
/// a fraction of a microsecond.
fn allowed() -> usize {
    #[cfg(target_os = "linux")]
    return rustix::thread::sched_getaffinity(None).map_or(0, |processors| processors.count() as usize);
    #[cfg(not(target_os = "linux"))]
    0
}

/// A function that starts a thread of a pool. Tests replace [`spawn`] by a function that refuses some threads.
pub(crate) trait Spawn: Fn(ThreadBuilder) -> io::Result<JoinHandle<()>> {}

impl<F: Fn(ThreadBuilder) -> io::Result<JoinHandle<()>>> Spawn for F {}

/// The reason why a pool could not be started.
pub(crate) struct Refused {
    /// The number of threads that were started before one was refused. They have ended.
    started: usize,
    pub reason: String,
}

/// A pool, and its threads.
type Started = (ThreadPool, Vec<JoinHandle<()>>);

/// Starts a pool of `threads` threads, or no thread at all.
pub(crate) fn start(name: &'static str, threads: usize, spawn: &impl Spawn) -> Result<Started, Refused> {
    let mut handles = Vec::new();
    let builder = ThreadPoolBuilder::new().num_threads(threads).thread_name(move |i| format!("{name}-{i}"));
    let pool = builder.spawn_handler(|thread| {
        handles.push(spawn(thread)?);
        Ok(())
    });
    match pool.build() {
        Ok(pool) => Ok((pool, handles)),
        Err(error) => {
            let started = handles.len();
            // The failure ends the started threads. The system can start others only after these have ended.
            handles.into_iter().for_each(|handle| drop(handle.join()));
            Err(Refused { started, reason: error.to_string() })
        }
    }
}

/// Starts a pool of `threads` threads, or of the threads that the system starts, but of at least `least`.
pub(crate) fn start_most(
    name: &'static str,
    mut threads: usize,
    least: usize,
    spawn: &impl Spawn,
) -> Result<Started, Refused> {
    loop {
        let refused = match start(name, threads, spawn) {
            Ok(started) => return Ok(started),
            Err(refused) => refused,
        };
        // Fewer than before in any case, because a thread that has ended may count a little longer.
        threads = refused.started.min(threads - threads.div_ceil(4));
        if threads < least {
            return Err(refused);
        }
    }
}

/// Starts a thread of a pool.
pub(crate) fn spawn(thread: ThreadBuilder) -> io::Result<JoinHandle<()>> {
    let builder = match thread.name() {
        Some(name) => thread::Builder::new().name(name.to_owned()),
        None => thread::Builder::new(),
    };
    memory::start_thread(|starting| {
        builder.spawn(|| {
            drop(starting);
            thread.run();
        })
    })
}

/// A pool that waits for the end of its threads when it is dropped. A thread of the pool must not drop it.
pub(crate) struct OwnPool {
    pool: Option<ThreadPool>,
    threads: Vec<JoinHandle<()>>,
}

impl OwnPool {
    /// A pool of `threads` threads, or of the threads that the system starts, but of at least one.
    pub fn start(name: &'static str, threads: usize) -> Result<Self, Refused> {
        let (pool, threads) = start_most(name, threads.max(1), 1, &spawn)?;
        Ok(Self { pool: Some(pool), threads })
    }

    /// The pool.
    pub fn pool(&self) -> &ThreadPool {
        self.pool.as_ref().expect("it is there until this is dropped")
    }
}

impl Drop for OwnPool {
    fn drop(&mut self) {
        self.pool = None;
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Calls `work` on a thread of `pool`. A calling thread of another pool takes up no other work of that pool meanwhile,
/// unlike in [`ThreadPool::install`]. It may hold a lock that the other work takes, and other work that waits, too,
/// would pile up on its stack.
pub(crate) fn run_in<T: Send>(pool: &ThreadPool, work: impl FnOnce() -> T + Send) -> T {
    if pool.current_thread_index().is_some() || rayon::current_thread_index().is_none() {
        return pool.install(work);
    }
    let (work, result) = (Mutex::new(Some(work)), Mutex::new(None));
    let take = || work.lock().unwrap_or_else(PoisonError::into_inner).take();
    run_in_each(from_ref(&pool), false, &|| {
        let value = take().map(|work| work());
        *result.lock().unwrap_or_else(PoisonError::into_inner) = value;
    });
    result.into_inner().unwrap_or_else(PoisonError::into_inner).expect("the work has been done")
}

/// Calls `work` on one thread of each of `pools`, and on the calling thread if `here`. The calling thread takes up no
/// other work meanwhile.
///
/// # Panics
/// Panics if `work` does, after all calls have ended.
pub(crate) fn run_in_each(pools: &[&ThreadPool], here: bool, work: &(dyn Fn() + Sync)) {
    let (ended, ends) = mpsc::channel();
    // SAFETY: a job uses `work` before it drops its sender. This function does not return or unwind before all senders
    // are dropped: the loop over `ends` waits for them, and nothing before it panics.
    let shared: &'static (dyn Fn() + Sync) = unsafe { std::mem::transmute(work) };
    for pool in pools {
        let ended = ended.clone();
        pool.spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(shared));
            // The receiver outlives the job, so sending succeeds.
            let _ = ended.send(result);
        });
    }
    drop(ended);
    let mut result = if here { catch_unwind(AssertUnwindSafe(work)) } else { Ok(()) };
    for of_pool in ends {
        result = result.and(of_pool);
    }
    result.unwrap_or_else(|panic| resume_unwind(panic));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[test]
    fn a_thread_that_waits_takes_up_no_other_work() {
        let [outer, inner] = [1, 2].map(|threads| OwnPool::start("test", threads).ok().unwrap());
        let other = AtomicUsize::new(0);
        outer.pool().scope(|scope| {
            scope.spawn(|_| _ = other.fetch_add(1, Relaxed));
            let found = run_in(inner.pool(), || (rayon::current_num_threads(), other.load(Relaxed)));
            assert_eq!(found, (2, 0));
        });
        assert_eq!(other.into_inner(), 1);
    }

    #[test]
    fn all_calls_end_before_a_panic_goes_on() {
        let pools = [1, 1, 1].map(|threads| OwnPool::start("test", threads).ok().unwrap());
        let pools = pools.each_ref().map(OwnPool::pool);
        let calls = AtomicUsize::new(0);
        let call = || assert!(calls.fetch_add(1, Relaxed) != 1, "the second call");
        let result = catch_unwind(AssertUnwindSafe(|| run_in_each(&pools, true, &call)));
        assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "the second call");
        assert_eq!(calls.into_inner(), 4);
        run_in_each(&[], false, &|| panic!("it is called nowhere"));
    }

    #[test]
    fn processors_are_those_of_the_system() {
        let available = thread::available_parallelism().unwrap().get();
        assert_eq!((processors(), processors()), (available, available));
    }
}
