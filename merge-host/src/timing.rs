//! How long the steps of a call took.

use std::time::{Duration, Instant};

/// How long the steps of a call took. A CPU engine only computes, except in
/// [`Engine::sort_streamed`](crate::Engine::sort_streamed).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Copying the input to the GPU, or reading it.
    pub upload: Duration,
    /// The merge or the sort itself.
    pub compute: Duration,
    /// Exchanging keys between several GPUs, which merge them meanwhile; 0 with one.
    pub exchange: Duration,
    /// Copying the output from the GPU, or writing it.
    pub download: Duration,
}

impl Timing {
    /// For each step the longer time of the two.
    #[cfg(feature = "gpu")]
    pub(crate) fn longest(self, other: Self) -> Self {
        Self {
            upload: self.upload.max(other.upload),
            compute: self.compute.max(other.compute),
            exchange: self.exchange.max(other.exchange),
            download: self.download.max(other.download),
        }
    }
}

/// The value of `work`, and how long it took.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}
