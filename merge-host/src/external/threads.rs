//! Threads to read and write on.
//!
//! A thread that sorts or merges waits for one that reads and one that writes. These need others to help them, and code
//! of sources and targets may use rayon, too. All threads of a pool may wait so at once. Therefore those that help are
//! others:
//!
//! ```text
//!   calling thread   │ wait │ sort │ wait │ …        of any pool, or of none
//!   read             │ read ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄      helped by threads that wait for nothing but files
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

/// The name of threads that help.
const NAME: &str = "merge-io";
/// The least number of threads that help a call by a thread of a pool, of which all threads may make such calls at
/// once: one can read while another one writes.
const LEAST_HELPERS: usize = 2;

/// The threads that help to read and to write.
pub(super) enum Helpers {
    /// Those of rayon's global pool, for a call by a thread that belongs to no pool with an engine that works on that
    /// pool.
    OfCurrentPool,
    /// Those that help all other calls by threads that belong to no pool.
    Shared(Arc<ThreadPool>),
    /// Threads of the call's own, which end with it. The call may have been made by a thread that helps another one.
    Own(OwnPool),
}

impl Helpers {
    /// Those of a call with that engine.
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

    /// Calls `work` such that these threads take part in its loops.
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
    let check = memory::check_for_thread();
    check.and_then(|()| Builder::new().name(name.to_owned()).spawn_scoped(scope, work)).map_err(Error::Thread)
}

/// The result of a thread. A panic goes on here.
pub(super) fn join<T>(thread: ScopedJoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
