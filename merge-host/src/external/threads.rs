//! Threads to read and write on.

use super::error::Error;
use std::error::Error as _;
use std::sync::OnceLock;
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Starts the threads of rayon's global pool if the program has not, so that its first use cannot panic.
pub(super) fn start_pool() -> Result<(), crate::Error> {
    // Rayon tries once, and remembers no reason.
    static FAILURE: OnceLock<Option<String>> = OnceLock::new();
    let failure = FAILURE.get_or_init(|| {
        // An error without a source says that the pool has been started before.
        let error = rayon::ThreadPoolBuilder::new().build_global().err()?;
        error.source().map(ToString::to_string)
    });
    match failure {
        None => Ok(()),
        Some(reason) => {
            let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
            Err(crate::Error::Threads { threads, reason: reason.clone() })
        }
    }
}

/// Starts a thread that reads or writes.
pub(super) fn spawn<'scope, 'env, T: Send + 'scope, E>(
    scope: &'scope Scope<'scope, 'env>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Error<E>> {
    Builder::new().name(name.to_owned()).spawn_scoped(scope, work).map_err(Error::Thread)
}

/// The result of a thread. A panic goes on here.
pub(super) fn join<T>(thread: ScopedJoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
