//! Where the time of a sort goes.

use crate::Timing;

/// What the thread that sorts is doing, or waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Waiting for keys to be read.
    Read,
    /// Sorting or merging.
    Compute,
    /// Waiting for keys to be written.
    Write,
}

/// Observes where the time goes. `()` observes nothing.
pub trait Observer {
    /// Runs `work`, which is a part of `phase`, once.
    fn time<T>(&mut self, phase: Phase, work: impl FnOnce() -> T) -> T;

    /// Adds what an engine has measured, which is in no phase.
    fn add(&mut self, timing: Timing);
}

impl Observer for () {
    fn time<T>(&mut self, _phase: Phase, work: impl FnOnce() -> T) -> T {
        work()
    }

    fn add(&mut self, _timing: Timing) {}
}
