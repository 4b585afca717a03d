//! The time of the steps of a call.

use std::time::{Duration, Instant};

/// The time of each step of a call. A CPU engine only computes, except in
/// [`Engine::sort_streamed`](crate::Engine::sort_streamed).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Copying the input to the GPU, or reading it.
    pub upload: Duration,
    /// The merge or sort.
    pub compute: Duration,
    /// Exchanging keys between several GPUs, which merge meanwhile. 0 for one GPU.
    pub exchange: Duration,
    /// Copying the output from the GPU, or writing it.
    pub download: Duration,
}

impl Timing {
    /// For each step the longer of both times.
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

/// The result of `work`, and the time that it took.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}
