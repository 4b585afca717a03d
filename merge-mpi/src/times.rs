//! Times of the phases of a rank.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A phase of a rank: work or waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reading the slice and sorting it to a run.
    Sort,
    /// Searching for splits.
    Split,
    /// Reading keys to send from a spilled run.
    Reread,
    /// Exchanging keys and their payload.
    Exchange,
    /// Waiting until a piece is merged and written, before the next can be received.
    Wait,
    /// Merging, on another thread.
    Merge,
    /// Writing, on another thread, and the final wait for this thread.
    Write,
}

impl Phase {
    /// All phases, and their names.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Sort, "read and sort"),
        (Self::Split, "split"),
        (Self::Reread, "reread"),
        (Self::Exchange, "exchange"),
        (Self::Wait, "wait"),
        (Self::Merge, "merge"),
        (Self::Write, "write"),
    ];
}

/// Nanoseconds of each phase.
#[derive(Debug, Default)]
pub struct Times {
    on_main: [AtomicU64; Phase::ALL.len()],
    beside: [AtomicU64; Phase::ALL.len()],
}

impl Times {
    /// Runs `work`, which is a part of `phase` on the thread that exchanges.
    pub fn of<T>(&self, phase: Phase, work: impl FnOnce() -> T) -> T {
        timed(&self.on_main[phase as usize], work)
    }

    /// Runs `work`, which is a part of `phase` on the thread that merges and writes.
    pub fn beside<T>(&self, phase: Phase, work: impl FnOnce() -> T) -> T {
        timed(&self.beside[phase as usize], work)
    }

    /// The nanoseconds of all phases, on both threads.
    pub fn all(&self) -> [u64; 2 * Phase::ALL.len()] {
        let mut all = [0; 2 * Phase::ALL.len()];
        let counters = self.on_main.iter().chain(&self.beside);
        all.iter_mut().zip(counters).for_each(|(all, counter)| *all = counter.load(Ordering::Relaxed));
        all
    }
}

fn timed<T>(counter: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = work();
    let nanoseconds = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    counter.fetch_add(nanoseconds, Ordering::Relaxed);
    result
}

/// Lines for `--verbose` with the longest times of any rank, in the order of [`Times::all`].
pub fn lines(most: &[u64]) -> Vec<String> {
    let seconds = |name: &str, time: u64, note: &str| format!("time: {name} {:.3} s{note}", time as f64 / 1e9);
    let threads = most.chunks(Phase::ALL.len()).zip(["", ", beside the exchange"]);
    let phases =
        threads.flat_map(|(times, note)| Phase::ALL.iter().zip(times).map(move |(phase, time)| (phase.1, *time, note)));
    phases.filter(|(_, time, _)| *time > 0).map(|(name, time, note)| seconds(name, time, note)).collect()
}
