//! The time of the steps of a call, and the processor that did the work.

use crate::{EngineKind, Reason};
use std::time::{Duration, Instant};

/// What a call of an [`Engine`](crate::Engine) reports: how long its steps took, where it was done, and why there.
///
/// A CPU only computes, except in [`Engine::sort_streamed`](crate::Engine::sort_streamed). It does not measure calls
/// with fewer than 1024 keys, which take less time than two looks at the clock: all times are 0 then.
///
/// ```
/// use merge_host::{Engine, EngineKind};
///
/// let timing = Engine::cpu().sort(&mut [3, 1, 2])?;
/// assert_eq!(timing.engine, EngineKind::Cpu);
/// assert_eq!(timing.reason.to_string(), "the CPU was asked for");
/// assert!(timing.upload.is_zero() && timing.total() == timing.compute);
/// # Ok::<(), merge_host::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// Copying the input to the GPU, or reading it.
    pub upload: Duration,
    /// The merge or sort.
    pub compute: Duration,
    /// Exchanging keys between several GPUs, which merge meanwhile. 0 for one GPU.
    pub exchange: Duration,
    /// Copying the output from the GPU, or writing it.
    pub download: Duration,
    /// The kind of processor that did the work.
    pub engine: EngineKind,
    /// Why that processor did the work.
    pub reason: Reason,
}

impl Timing {
    /// All steps together.
    pub fn total(&self) -> Duration {
        self.upload + self.compute + self.exchange + self.download
    }

    /// A call on the CPU that did not look at the clock.
    #[inline(always)]
    pub(crate) fn untimed(reason: Reason) -> Self {
        let none = Duration::ZERO;
        Self { upload: none, compute: none, exchange: none, download: none, engine: EngineKind::Cpu, reason }
    }

    /// The same with some more time of computing.
    pub(crate) fn and_compute(self, more: Duration) -> Self {
        Self { compute: self.compute + more, ..self }
    }
}

/// The time of the steps of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    pub upload: Duration,
    pub compute: Duration,
    pub exchange: Duration,
    pub download: Duration,
}

impl Steps {
    /// For each step the longer of both times.
    #[cfg(feature = "gpu")]
    pub fn longest(self, other: Self) -> Self {
        Self {
            upload: self.upload.max(other.upload),
            compute: self.compute.max(other.compute),
            exchange: self.exchange.max(other.exchange),
            download: self.download.max(other.download),
        }
    }

    /// The same on a processor of that kind, for that reason.
    #[inline]
    pub fn on(self, engine: EngineKind, reason: Reason) -> Timing {
        let Self { upload, compute, exchange, download } = self;
        Timing { upload, compute, exchange, download, engine, reason }
    }
}

/// The result of `work`, and the time that it took.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}
