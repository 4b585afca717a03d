//! Measurement of the time of a sort.

use crate::Timing;

/// The present activity of the sorting thread.
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

/// Receives the time of the phases. `()` ignores it.
pub trait Observer {
    /// Runs `work` once. It is a part of `phase`.
    fn time<T>(&mut self, phase: Phase, work: impl FnOnce() -> T) -> T;

    /// Adds the time that an engine has measured. It belongs to no phase.
    fn add(&mut self, timing: Timing);
}

impl Observer for () {
    fn time<T>(&mut self, _phase: Phase, work: impl FnOnce() -> T) -> T {
        work()
    }

    fn add(&mut self, _timing: Timing) {}
}
