//! Threads to read and write on.

use super::error::Error;
use std::thread::{Builder, Scope, ScopedJoinHandle};

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
