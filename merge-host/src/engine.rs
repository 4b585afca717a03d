//! The engine: checks what it is given, once, and hands it to the GPU or to the CPU cores.

use crate::cpu::CpuEngine;
#[cfg(feature = "gpu")]
use crate::gpu::Gpu;
use crate::{Error, Key, MergeKernel};
use std::fmt;
use std::time::Duration;

/// The longest runs that [`Engine::merge_batch`] makes.
pub const MAX_BATCH_LENGTH: usize = 1024;

/// Which kind of processor an [`Engine`] works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// The cores of the CPU.
    Cpu,
    /// One NVIDIA GPU.
    Gpu,
}

impl EngineKind {
    /// "cpu" or "gpu".
    pub const fn name(self) -> &'static str {
        match self {
            EngineKind::Cpu => "cpu",
            EngineKind::Gpu => "gpu",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where the time of a call went. A CPU engine only computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Copying the input to the GPU.
    pub upload: Duration,
    /// The merge or the sort itself.
    pub compute: Duration,
    /// Copying the output from the GPU.
    pub download: Duration,
}

/// A processor to merge and sort on: one GPU, or the CPU's cores.
///
/// An engine owns what it works with (a device context, or a pool of threads) and shares nothing with other engines:
/// a program may hold several, one for each GPU, and use one from several threads.
pub struct Engine {
    backend: Backend,
    why: String,
}

enum Backend {
    Cpu(CpuEngine),
    #[cfg(feature = "gpu")]
    Gpu(Gpu),
}

impl Engine {
    /// The first GPU if it can be used, or else all CPU cores. [`why`](Self::why) says which and for what reason.
    ///
    /// ```
    /// let engine = merge_host::Engine::auto();
    /// println!("{}: {}", engine.kind(), engine.why());
    /// ```
    pub fn auto() -> Self {
        match Self::gpu(0) {
            Ok(engine) => Engine { why: "the first GPU works".to_owned(), ..engine },
            Err(error) => {
                let cpu = CpuEngine::all_cores();
                let why = format!("{} because the GPU cannot be used: {error}", threads(cpu.threads()));
                Engine { backend: Backend::Cpu(cpu), why }
            }
        }
    }

    /// The GPU of that ordinal, counted from 0.
    ///
    /// # Errors
    /// [`Error::NoDevice`] where there is no driver or no GPU, [`Error::DeviceOrdinal`] where there are not that many,
    /// [`Error::Device`] where the driver fails, and [`Error::NoGpuSupport`] in a build without the feature `gpu`.
    pub fn gpu(ordinal: usize) -> Result<Self, Error> {
        #[cfg(feature = "gpu")]
        return Ok(Engine { backend: Backend::Gpu(Gpu::new(ordinal)?), why: format!("GPU {ordinal} was asked for") });
        #[cfg(not(feature = "gpu"))]
        {
            let _ = ordinal;
            Err(Error::NoGpuSupport)
        }
    }

    /// All CPU cores that this process may use.
    pub fn cpu() -> Self {
        let cpu = CpuEngine::all_cores();
        let why = format!("{} because the CPU was asked for", threads(cpu.threads()));
        Engine { backend: Backend::Cpu(cpu), why }
    }

    /// At most that many threads of the CPU. Small inputs are done by fewer, where that is faster.
    ///
    /// The threads are started at the first call that uses them.
    ///
    /// # Errors
    /// [`Error::Threads`] if `threads` is 0 or above 4096.
    ///
    /// ```
    /// use merge_host::Engine;
    ///
    /// let engine = Engine::cpu_with_threads(2)?;
    /// let mut keys = [3, 1, 2];
    /// engine.sort(&mut keys)?;
    /// assert_eq!(keys, [1, 2, 3]);
    /// assert!(Engine::cpu_with_threads(0).is_err());
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn cpu_with_threads(threads: usize) -> Result<Self, Error> {
        let cpu = CpuEngine::new(threads)?;
        let why = format!("{} because that was asked for", self::threads(threads));
        Ok(Engine { backend: Backend::Cpu(cpu), why })
    }

    /// Which kind of processor this engine works on.
    pub fn kind(&self) -> EngineKind {
        match &self.backend {
            Backend::Cpu(_) => EngineKind::Cpu,
            #[cfg(feature = "gpu")]
            Backend::Gpu(_) => EngineKind::Gpu,
        }
    }

    /// What was taken and why, for people to read: "2 CPU threads because the GPU cannot be used: no GPU: …".
    pub fn why(&self) -> &str {
        &self.why
    }

    /// The GPU that this engine works on, for data that is in its memory already; none for a CPU engine.
    #[cfg(feature = "gpu")]
    pub fn as_gpu(&self) -> Option<&Gpu> {
        match &self.backend {
            Backend::Cpu(_) => None,
            Backend::Gpu(gpu) => Some(gpu),
        }
    }

    /// Sorts `keys`, ascending in total order. Stable.
    ///
    /// Uses scratch memory for as many keys again.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`] or [`Error::OutOfDeviceMemory`] where there is not enough memory, [`Error::Threads`]
    /// where the system gives no threads, [`Error::Device`] where the GPU fails.
    ///
    /// ```
    /// let mut keys = [0.0f32, f32::NAN, -1.0, -0.0];
    /// merge_host::Engine::auto().sort(&mut keys)?;
    /// assert_eq!(keys[..3], [-1.0, -0.0, 0.0]);
    /// assert!(keys[1].is_sign_negative() && keys[3].is_nan());
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn sort<K: Key>(&self, keys: &mut [K]) -> Result<Timing, Error> {
        match &self.backend {
            Backend::Cpu(cpu) => cpu.sort(keys),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => gpu.sort_host(keys),
        }
    }

    /// Merges `a` and `b`, both ascending, into `out`, with the fastest kernel. Stable: of equal keys, `a`'s go first.
    ///
    /// This is [`merge_with`](Self::merge_with) with [`MergeKernel::Auto`].
    ///
    /// # Errors
    /// Those of [`merge_with`](Self::merge_with).
    ///
    /// ```
    /// let mut out = [0; 5];
    /// merge_host::Engine::auto().merge(&[1, 4, 6], &[2, 4], &mut out)?;
    /// assert_eq!(out, [1, 2, 4, 4, 6]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge<K: Key>(&self, a: &[K], b: &[K], out: &mut [K]) -> Result<Timing, Error> {
        self.merge_with(MergeKernel::Auto, a, b, out)
    }

    /// Merges `a` and `b`, both ascending, into `out`, with the kernel named. Stable: of equal keys, `a`'s go first.
    ///
    /// `out` has `a.len() + b.len()` keys. Work is O(|a| + |b|), plus O(log min(|a|, |b|)) for each piece that the output
    /// is cut into.
    ///
    /// Whether `a` and `b` are ascending is not checked ([`first_unsorted`](crate::first_unsorted) tells). If they are
    /// not, the call still ends and touches no other memory, but which keys `out` then holds and in which order is
    /// unspecified.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `out` has another length, [`Error::Threads`] where the system gives no threads,
    /// [`Error::OutOfDeviceMemory`] or [`Error::Device`] where the GPU is too small or fails.
    ///
    /// ```
    /// use merge_host::{Engine, MergeKernel};
    ///
    /// for kernel in MergeKernel::ALL {
    ///     let mut out = [0; 5];
    ///     Engine::auto().merge_with(kernel, &[1, 4, 6], &[2, 4], &mut out)?;
    ///     assert_eq!(out, [1, 2, 4, 4, 6], "{kernel}");
    /// }
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_with<K: Key>(&self, kernel: MergeKernel, a: &[K], b: &[K], out: &mut [K]) -> Result<Timing, Error> {
        // Slices of keys are below isize::MAX bytes, so that the sum cannot overflow.
        check_length("out", a.len() + b.len(), out.len(), "|a| + |b|")?;
        match &self.backend {
            Backend::Cpu(cpu) => cpu.merge_with(kernel, a, b, out),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => gpu.merge_host(kernel, a, b, out),
        }
    }

    /// Merges many pairs of short runs: run `p` of `a` with run `p` of `b` into run `p` of `out`.
    ///
    /// For N pairs, `a` holds N runs of `a_len` keys one after the other, `b` N runs of `d - a_len`, and `out` N runs of
    /// `d`; `d` is 1 to [`MAX_BATCH_LENGTH`] and `a_len` at most `d`. N comes from `out`. Each run of `a` and `b` is
    /// ascending; where one is not, only that run of `out` is unspecified. Stable: of equal keys, `a`'s go
    /// first.
    ///
    /// Work is O(N d) on a CPU.
    ///
    /// # Errors
    /// [`Error::BadBatchLength`] if `d` is 0 or too long, [`Error::BadSplit`] if `a_len` is above `d`,
    /// [`Error::NotWholeRuns`] if the length of `out` is not a multiple of `d`, [`Error::LengthMismatch`] if `a` or `b`
    /// does not hold N runs, and the device's errors as in [`merge_with`](Self::merge_with).
    ///
    /// ```
    /// let a = [3, 9, /**/ 5, 6];
    /// let b = [1, /**/ 7];
    /// let mut out = [0; 6];
    /// merge_host::Engine::auto().merge_batch(&a, &b, &mut out, 3, 2)?;
    /// assert_eq!(out, [1, 3, 9, /**/ 5, 6, 7]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_batch<K: Key>(
        &self,
        a: &[K],
        b: &[K],
        out: &mut [K],
        d: usize,
        a_len: usize,
    ) -> Result<Timing, Error> {
        check_batch(a.len(), b.len(), out.len(), d, a_len)?;
        match &self.backend {
            Backend::Cpu(cpu) => cpu.merge_batch(a, b, out, d, a_len),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => gpu.merge_batch_host(a, b, out, d, a_len),
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("kind", &self.kind()).field("why", &self.why).finish()
    }
}

/// Checks the lengths of a batch against each other and returns the number of pairs.
pub(crate) fn check_batch(a: usize, b: usize, out: usize, d: usize, a_len: usize) -> Result<usize, Error> {
    if d == 0 || d > MAX_BATCH_LENGTH {
        return Err(Error::BadBatchLength { d });
    }
    if a_len > d {
        return Err(Error::BadSplit { a_len, d });
    }
    if !out.is_multiple_of(d) {
        return Err(Error::NotWholeRuns { what: "out", found: out, run: d });
    }
    // No product is above `out`.
    let pairs = out / d;
    check_length("a", pairs * a_len, a, "|out| / d * a_len")?;
    check_length("b", pairs * (d - a_len), b, "|out| / d * (d - a_len)")?;
    Ok(pairs)
}

pub(crate) fn check_length(what: &'static str, expected: usize, found: usize, rule: &'static str) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::LengthMismatch { what, expected, found, rule }) }
}

fn threads(count: usize) -> String {
    if count == 1 { "1 CPU thread".to_owned() } else { format!("{count} CPU threads") }
}
