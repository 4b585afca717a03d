//! Threads for reading and writing.
//!
//! A thread that sorts or merges waits for a thread that reads and a thread that writes. Both need other threads to
//! help, and sources and targets may use rayon, too. All threads of a pool may wait like this at once. Therefore the
//! helping threads belong to no such pool:
//!
//! ```text
//!   calling thread   │ wait │ sort │ wait │ …        of any pool, or of none
//!   read             │ read ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄      with helping threads, which wait only for files
//!   write                          │ write ┄┄┄┄┄
//! ```

use super::error::Error;
use crate::Engine;
use crate::cpu::memory;
use crate::pool::{OwnPool, Refused, processors, run_in, spawn as spawn_in_pool, start_most};
use rayon::ThreadPool;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// The name of helping threads.
const NAME: &str = "merge-io";
/// The least number of helping threads for a call by a thread of a pool. All threads of the pool may make such calls at
/// once. With two helping threads, one can read while the other writes.
const LEAST_HELPERS: usize = 2;

/// The threads that help to read and to write.
pub(super) enum Helpers {
    /// The threads of rayon's global pool: for a call by a thread of no pool, with an engine that works on the current
    /// pool.
    OfCurrentPool,
    /// The threads that all other calls by threads of no pool share.
    Shared(Arc<ThreadPool>),
    /// The call's own threads, which end with it: for a call by a thread of a pool, which may itself be a helping
    /// thread.
    Own(OwnPool),
}

impl Helpers {
    /// The helping threads of a call with this engine.
    pub(super) fn of<E>(engine: &Engine) -> Result<Self, Error<E>> {
        if rayon::current_thread_index().is_some() {
            let threads = processors().div_ceil(rayon::current_num_threads()).max(LEAST_HELPERS);
            return Ok(Self::Own(OwnPool::start(NAME, threads).map_err(refused)?));
        }
        if engine.works_on_current_pool() {
            return Ok(Self::OfCurrentPool);
        }
        static SHARED: Mutex<Option<Arc<ThreadPool>>> = Mutex::new(None);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = match &*shared {
            Some(pool) => pool,
            None => {
                let (pool, _) = start_most(NAME, processors(), 1, &spawn_in_pool).map_err(refused)?;
                shared.insert(Arc::new(pool))
            }
        };
        Ok(Self::Shared(pool.clone()))
    }

    /// Calls `work` such that the helping threads take part in its loops.
    pub(super) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match self {
            Self::OfCurrentPool => work(),
            Self::Shared(pool) => run_in(pool, work),
            Self::Own(pool) => run_in(pool.pool(), work),
        }
    }
}

fn refused<E>(refused: Refused) -> Error<E> {
    Error::Thread(io::Error::other(refused.reason))
}

/// Starts a thread that reads or writes.
pub(super) fn spawn<'scope, 'env, T: Send + 'scope, E>(
    scope: &'scope Scope<'scope, 'env>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Error<E>> {
    let builder = Builder::new().name(name.to_owned());
    let spawn = |starting| {
        builder.spawn_scoped(scope, || {
            drop(starting);
            work()
        })
    };
    memory::start_thread(spawn).map_err(Error::Thread)
}

/// The result of a thread. Continues the thread's panic.
pub(super) fn join<T>(thread: ScopedJoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
