//! The pool of threads for all work on the CPU.
//!
//! The amount of work and the system limit the number of threads. The threads are started first, and then given to the
//! pool. A pool that starts its own threads fails as a whole if one thread cannot start, and it cannot be started
//! twice.

use crate::say::error::{Failure, Result, os_message};
use crate::say::report;
use rayon::{ThreadBuilder, ThreadPoolBuilder};
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, Builder, JoinHandle};

/// Bytes of keys and payloads that justify one more thread.
const BYTES_PER_THREAD: u64 = 1 << 20;
/// The most threads for each core, even if `--parallel` asks for more. More threads only wait for each other: on two
/// cores, 4096 threads take ten seconds and more to start.
const MOST_PER_CORE: usize = 32;
/// Threads outside the pool that a run starts later: the engine's, one for progress, a reader and a writer. If the
/// system limits threads, this number is left for them.
const OTHER_THREADS: usize = 4;

/// The number of threads that have work if keys and payloads are `bytes` bytes, where known.
pub fn useful(bytes: Option<u64>) -> usize {
    let blocks = bytes.map_or(u64::MAX, |bytes| bytes / BYTES_PER_THREAD);
    usize::try_from(blocks).unwrap_or(usize::MAX).max(1)
}

/// Starts the global pool: `parallel` threads or one for each core, but at most `useful`. If the system provides fewer
/// threads, the pool has only these threads, and a warning says so. A pool of one thread is the calling thread.
///
/// # Errors
/// If the system provides no thread at all.
pub fn start(parallel: Option<usize>, useful: usize) -> Result<()> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let wanted = wanted(parallel, useful, cores);
    let (workers, error) = if wanted > 1 { workers(wanted) } else { (vec![], None) };
    if let Some(error) = error {
        if workers.is_empty() {
            return Err(cannot_start(&error));
        }
        report::warning(format_args!("threads: {} instead of {wanted}: {}", workers.len(), os_message(&error)));
    }
    let why = match parallel {
        Some(parallel) if parallel <= wanted => "--parallel asks for that",
        None if cores <= wanted => "one for each core",
        _ => "as many as have work",
    };
    report::verbose(format_args!("threads to read, sort and write: {}, {why}", workers.len().max(1)));
    build_pool(workers)
}

/// The error of a thread that the system refuses.
pub fn cannot_start(error: &io::Error) -> Failure {
    Failure::new(format!("cannot start a thread: {}; do ulimit -u and ulimit -v allow it?", os_message(error)))
}

/// The number of threads to start on a machine with `cores` cores.
fn wanted(parallel: Option<usize>, useful: usize, cores: usize) -> usize {
    parallel.unwrap_or(cores).min(useful).min(MOST_PER_CORE * cores).max(1)
}

/// A thread that waits for its role in a pool.
struct Worker {
    part: Sender<ThreadBuilder>,
    thread: JoinHandle<()>,
}

impl Worker {
    fn start(index: usize) -> io::Result<Self> {
        let (part, parts) = channel::<ThreadBuilder>();
        let run = move || {
            if let Ok(part) = parts.recv() {
                part.run();
            }
        };
        let thread = Builder::new().name(format!("worker-{index}")).spawn(run)?;
        Ok(Self { part, thread })
    }

    /// Ends the thread, so that the system can provide another one.
    fn end(self) {
        drop(self.part);
        let _ = self.thread.join();
    }
}

/// Starts `wanted` workers. If the system provides fewer, [`OTHER_THREADS`] are ended again, but the first worker
/// stays. Then the second result is the error of the refused thread.
fn workers(wanted: usize) -> (Vec<Worker>, Option<io::Error>) {
    let mut workers = Vec::new();
    while workers.len() < wanted {
        match Worker::start(workers.len()) {
            Ok(worker) => workers.push(worker),
            Err(error) => {
                let kept = workers.len().saturating_sub(OTHER_THREADS).max(1).min(workers.len());
                workers.drain(kept..).for_each(Worker::end);
                return (workers, Some(error));
            }
        }
    }
    (workers, None)
}

/// Makes `workers` the global pool, or the calling thread if there are none.
fn build_pool(workers: Vec<Worker>) -> Result<()> {
    let mut builder = ThreadPoolBuilder::new().num_threads(workers.len().max(1));
    if workers.is_empty() {
        builder = builder.use_current_thread();
    }
    let mut workers = workers.into_iter();
    let pool = builder.spawn_handler(move |part| {
        let worker = workers.next().ok_or(io::ErrorKind::NotFound)?;
        worker.part.send(part).map_err(|_| io::ErrorKind::BrokenPipe.into())
    });
    pool.build_global().map_err(|error| Failure::new(format!("cannot start threads: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_threads_as_have_work() {
        assert_eq!(useful(Some(0)), 1);
        assert_eq!(useful(Some((3 << 20) - 1)), 2);
        assert_eq!(useful(Some(3 << 20)), 3);
        assert_eq!(useful(None), usize::MAX);
        assert_eq!(wanted(None, usize::MAX, 16), 16);
        assert_eq!(wanted(None, 3, 16), 3);
        assert_eq!(wanted(Some(4), usize::MAX, 2), 4);
        assert_eq!(wanted(Some(4), 1, 2), 1);
        assert_eq!(wanted(Some(4096), usize::MAX, 2), 64);
        assert_eq!(wanted(Some(4096), 1000, 16), 512);
    }

    #[test]
    fn workers_become_a_pool_or_end() {
        let (workers, error) = workers(3);
        assert!(error.is_none());
        assert_eq!(workers.len(), 3);
        workers.into_iter().for_each(Worker::end);
    }
}
