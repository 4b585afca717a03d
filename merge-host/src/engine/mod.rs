//! The engine: checks its arguments once and passes them to the GPU or to the CPU cores.
//!
//! | file | contents |
//! | --- | --- |
//! | `sort` | sorts of one array |
//! | `segments` | sorts of the segments of an array |
//! | `merge` | merges of two or more runs into one |
//! | `batch` | many merges of two runs each |
//! | `sets` | set operations |
//! | `check` | lengths and offsets |

mod batch;
mod check;
mod merge;
mod segments;
mod sets;
mod sort;

pub use check::MAX_BATCH_LENGTH;
#[cfg(feature = "gpu")]
pub(crate) use check::{check_batch, check_length, check_offset_counts, check_values};

use crate::cpu::Workers;
use crate::{EngineKind, Error, SortKernel};
#[cfg(feature = "gpu")]
use crate::{Gpu, Key};
use std::fmt;

/// A processor that merges and sorts: one GPU, or the cores of the CPU.
///
/// An engine owns its device context or its pool of threads and shares nothing with other engines. A program may hold
/// several engines, for instance one for each GPU, and several threads may use one engine at the same time.
///
/// # Order and stability
///
/// Keys are compared in total order (see the [crate documentation](crate#order)). Every sort and every merge is stable.
///
/// # Arguments
///
/// All arguments are slices in host memory. Lengths and offsets are checked before anything is written. An input of a
/// merge must be ascending, which is not checked: if it is not, the call still returns, and it touches no other memory,
/// but which of the input's keys the output then holds, and in which order, is unspecified.
///
/// # Complexity
///
/// Complexity is stated for the CPU engine. n is the number of keys and t the number of threads.
///
/// # Threads
///
/// The threads of the CPU are started by the first call whose input is large enough to benefit from a second thread.
/// If the system refuses to start them, that call fails with [`Error::Threads`], or, for an engine of
/// all cores, continues with fewer threads; a later call tries again.
pub struct Engine {
    #[cfg(feature = "gpu")]
    gpu: Option<Gpu>,
    /// The threads of the CPU. With a GPU, they handle the work for which it has no kernels.
    workers: Workers,
    /// Whether the caller insists on the GPU, so that keys for which it has no kernels are an error.
    #[cfg(feature = "gpu")]
    gpu_only: bool,
    /// How the GPU sorts.
    #[cfg(feature = "gpu")]
    sort_kernel: SortKernel,
    why: String,
}

impl Engine {
    /// The first GPU if it is usable, and otherwise all CPU cores. [`why`](Self::why) gives the reason.
    ///
    /// With a GPU, all CPU cores handle the keys for which it has no kernels ([`Key::ON_GPU`](crate::Key::ON_GPU)).
    ///
    /// ```
    /// let engine = merge_host::Engine::auto();
    /// println!("{}: {}", engine.kind(), engine.why());
    /// ```
    pub fn auto() -> Self {
        match Self::gpu(0) {
            #[cfg(feature = "gpu")]
            Ok(engine) => Engine { why: "the first GPU works".to_owned(), gpu_only: false, ..engine },
            #[cfg(not(feature = "gpu"))]
            Ok(engine) => engine,
            Err(error) => Engine::of_cpu(Workers::all_cores(), &format!("the GPU cannot be used: {error}")),
        }
    }

    /// The GPU with the given ordinal, counted from 0, and nothing else: keys for which it has no kernels
    /// ([`Key::ON_GPU`](crate::Key::ON_GPU)) are an error, [`Error::NoKernels`].
    ///
    /// # Errors
    /// [`Error::NoDevice`] if there is no driver or no GPU, [`Error::DeviceOrdinal`] if no GPU has that ordinal,
    /// [`Error::Device`] if the driver fails, and [`Error::NoGpuSupport`] in a build without the feature `gpu`.
    pub fn gpu(ordinal: usize) -> Result<Self, Error> {
        #[cfg(feature = "gpu")]
        return Ok(Engine {
            gpu: Some(Gpu::new(ordinal)?),
            workers: Workers::all_cores(),
            gpu_only: true,
            sort_kernel: SortKernel::Auto,
            why: format!("GPU {ordinal} was asked for"),
        });
        #[cfg(not(feature = "gpu"))]
        {
            let _ = ordinal;
            Err(Error::NoGpuSupport)
        }
    }

    /// All CPU cores that this process may use, or fewer if the system refuses to start a thread for each of them.
    ///
    /// Keys are sorted by the vector instructions that the processor has, or by those of them that the environment variable of
    /// [`VECTORS`](crate::VECTORS) says.
    pub fn cpu() -> Self {
        Engine::of_cpu(Workers::all_cores(), "the CPU was asked for")
    }

    /// The given number of threads of the CPU. Small inputs use fewer.
    ///
    /// # Errors
    /// [`Error::Threads`] if `threads` is 0 or greater than 4096. No thread is started yet: if the system refuses to start
    /// one, the call that needs it fails.
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
        Ok(Engine::of_cpu(Workers::exactly(threads)?, "that was asked for"))
    }

    /// The same engine with the CPU's work on the pool of threads that the calling thread belongs to: the pool of rayon in
    /// which it is installed, or else rayon's global pool. The engine starts no threads of its own then.
    ///
    /// The callbacks of [`sort_streamed`](Self::sort_streamed) also run on that pool. They must not hold a lock while they
    /// call an engine: the thread may take up another callback meanwhile.
    ///
    /// ```
    /// let engine = merge_host::Engine::cpu().on_current_pool();
    /// let mut keys = [3, 1, 2];
    /// engine.sort(&mut keys)?;
    /// assert_eq!(keys, [1, 2, 3]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    #[must_use]
    pub fn on_current_pool(self) -> Self {
        Engine { workers: Workers::of_current_pool(), ..self }
    }

    /// The same engine with the given kernel for all that it sorts on a GPU: keys alone, key-value pairs and permutations, and the
    /// chunks of an [`external`](crate::external) sort. The CPU has one way to sort, for every kernel.
    ///
    /// ```
    /// use merge_host::{Engine, SortKernel};
    ///
    /// for kernel in SortKernel::ALL {
    ///     let mut keys = [3, 1, 2];
    ///     Engine::auto().with_sort_kernel(kernel).sort(&mut keys)?;
    ///     assert_eq!(keys, [1, 2, 3], "{kernel}");
    /// }
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    #[must_use]
    pub fn with_sort_kernel(self, kernel: SortKernel) -> Self {
        #[cfg(feature = "gpu")]
        return Engine { sort_kernel: kernel, ..self };
        #[cfg(not(feature = "gpu"))]
        {
            let _ = kernel;
            self
        }
    }

    fn of_cpu(workers: Workers, reason: &str) -> Self {
        let why = match workers.threads() {
            1 => format!("1 CPU thread because {reason}"),
            threads => format!("{threads} CPU threads because {reason}"),
        };
        Engine {
            #[cfg(feature = "gpu")]
            gpu: None,
            workers,
            #[cfg(feature = "gpu")]
            gpu_only: false,
            #[cfg(feature = "gpu")]
            sort_kernel: SortKernel::Auto,
            why,
        }
    }

    /// The GPU, if it handles keys of type `K`; otherwise the CPU does, or nothing may.
    #[cfg(feature = "gpu")]
    fn gpu_for<K: Key>(&self) -> Result<Option<&Gpu>, Error> {
        if !K::ON_GPU && self.gpu_only {
            return Err(Error::NoKernels { key: K::NAME });
        }
        Ok(self.gpu.as_ref().filter(|_| K::ON_GPU))
    }

    /// The kind of processor that this engine uses.
    pub fn kind(&self) -> EngineKind {
        #[cfg(feature = "gpu")]
        if self.gpu.is_some() {
            return EngineKind::Gpu;
        }
        EngineKind::Cpu
    }

    /// Which processor was chosen and why, as text: "2 CPU threads because the GPU cannot be used: no GPU: …".
    pub fn why(&self) -> &str {
        &self.why
    }

    /// The GPU of this engine, for data that is already in its memory; `None` for a CPU engine.
    #[cfg(feature = "gpu")]
    pub fn as_gpu(&self) -> Option<&Gpu> {
        self.gpu.as_ref()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("kind", &self.kind()).field("why", &self.why).finish()
    }
}
