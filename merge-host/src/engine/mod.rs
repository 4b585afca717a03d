//! The engine: checks its arguments once and passes them to the GPU or to the CPU cores.
//!
//! | file | contents |
//! | --- | --- |
//! | `sort` | sorts of one array |
//! | `sort_unique` | sorts that keep the first of equal keys |
//! | `bits` | sorts by some bits of the keys |
//! | `elements` | sorts and merges of elements of any type |
//! | `segments` | sorts of the segments of an array, and the first keys of each |
//! | `merge` | merges of two or more runs into one |
//! | `batch` | many merges of two runs each |
//! | `many_ragged` | merges of groups of runs, each group by itself |
//! | `sets` | set operations |
//! | `top_k` | the first keys of the order |
//! | `groups` | unique keys, run lengths and reductions by key |
//! | `bounds` | lower and upper bounds |
//! | `auto`, `costs` | the choice between the CPU and one or several GPUs, and the model that it is made by |
//! | `check` | lengths and offsets |

#[cfg(feature = "gpu")]
mod auto;
mod batch;
mod bits;
mod bounds;
mod check;
mod costs;
mod elements;
mod groups;
mod many_ragged;
mod merge;
mod segments;
mod sets;
mod sort;
mod sort_unique;
mod top_k;

pub use check::MAX_BATCH_LENGTH;
#[cfg(feature = "gpu")]
pub(crate) use check::{
    check_batch, check_bits, check_capacity, check_k, check_kernel, check_last_group, check_offset_counts,
    check_offsets,
};
pub(crate) use check::{check_length, check_values};
#[cfg(feature = "external")]
pub(crate) use costs::sort_bytes_on_gpu;
pub use costs::{COSTS, CostModel, Work};
pub use top_k::TopK;

use crate::cpu::{UNTIMED_KEYS, Workers};
use crate::timing::Steps;
use crate::{EngineKind, Error, Key, Reason, Timing};
#[cfg(feature = "gpu")]
use crate::{Gpu, GpuGroup};
#[cfg(feature = "gpu")]
use auto::Choice;
use std::fmt;
use std::sync::Arc;

/// The processors that merge and sort: one GPU or several, the cores of the CPU, or the faster choice for each call.
///
/// | engine | of |
/// | --- | --- |
/// | [`cpu`](Self::cpu), [`cpu_with_threads`](Self::cpu_with_threads) | the CPU |
/// | [`gpu`](Self::gpu) | one GPU, or several, each of which does part of every call's work |
/// | [`auto`](Self::auto) | the CPU or the first GPU |
/// | [`auto_with`](Self::auto_with) | the CPU or some GPUs, by the constants given |
///
/// All engines of a process share one pool of threads. Exceptions are [`cpu_with_threads`](Self::cpu_with_threads),
/// with a pool for each engine, and [`on_current_pool`](Self::on_current_pool). So an engine takes no time to make, and
/// a program may make one for each call, unless it uses a GPU. An engine owns the contexts of its GPUs, and shares them
/// only with its clones. A program may hold several engines, for instance one for each GPU where the calls are
/// independent of each other, and several threads may use one engine at the same time.
///
/// # Order and stability
///
/// Keys are compared in total order (see the [crate documentation](crate#order)). Every sort and every merge is stable.
///
/// # Arguments
///
/// All arguments are in host memory. Keys have values where an argument is [`Elements`](crate::Elements) or
/// [`ElementsMut`](crate::ElementsMut): `&keys` is keys alone, and `(&keys, &values)` is keys with values. In one call
/// either all such arguments have values or none has. Options come first, then inputs, with the offsets and `k` of
/// their segments, outputs, and lengths.
///
/// Lengths and offsets are checked before anything is written. An input of a merge must be ascending, which is not
/// checked ([`first_unsorted`](crate::first_unsorted) does). If an input is not ascending, the call still returns and
/// touches no other memory. The output then holds unspecified elements of the inputs, in unspecified order.
///
/// # Values
///
/// A CPU moves a value of up to 16 bytes together with its key. A larger one is moved once, at the end of a sort or of
/// a pass of [`merge_many`](Self::merge_many). A GPU moves values that are numbers of 4 or 8 bytes. For values of other
/// types a GPU moves indices, and the values are gathered on the host.
///
/// # Results
///
/// [`Timing`] says how long a call took, which kind of processor did the work, and why.
///
/// An engine of GPUs fails with [`Error::NoKernels`] for keys of a type that they have no kernels for. An engine that
/// chooses takes the CPU then. The methods for elements of any type, such as [`sort_by_key`](Self::sort_by_key), work
/// on the CPU with every engine.
///
/// # Complexity
///
/// Complexity is stated for the CPU engine. n is the number of keys and t the number of threads.
///
/// # Threads
///
/// The first call with an input large enough for a second thread starts the CPU's threads. If the system refuses to
/// start them, that call fails with [`Error::Threads`], or, for an engine of all cores, continues with fewer threads; a
/// later call tries again.
///
/// The number of working threads is at most the number of processors that the calling thread may use at that time
/// ([`available_parallelism`](std::thread::available_parallelism)). That holds for any number of threads of an engine
/// or of the current pool. The threads of a pool run on the processors that the thread which started them could use.
///
/// A thread that calls an engine waits until the work is done. If it belongs to a pool of rayon, it takes up no other
/// work of that pool meanwhile: it may hold a lock. An engine of [`on_current_pool`](Self::on_current_pool) is
/// different, because the thread takes part in the work.
///
/// # Memory
///
/// A call that gets no scratch memory fails with [`Error::OutOfHostMemory`]. What it was to sort is still there then,
/// in any order.
#[derive(Clone)]
pub struct Engine {
    #[cfg(feature = "gpu")]
    gpu: Use,
    /// The threads of the CPU. With a GPU, they do the CPU's part of the work.
    workers: Arc<Workers>,
    /// Why the work is done where it is, unless the engine chooses.
    reason: Reason,
}

/// Which GPUs of a machine an engine or a group uses. An ordinal converts to one GPU; an array, a slice or a vector of
/// ordinals converts to several.
///
/// ```
/// use merge_host::Gpus;
///
/// assert_eq!(Gpus::from(1), Gpus::Of(vec![1]));
/// assert_eq!(Gpus::from([0, 2]), Gpus::Of(vec![0, 2]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gpus {
    /// All GPUs that the driver shows to this process.
    All,
    /// The GPUs with these ordinals, counted from 0: at least one, and none twice.
    Of(Vec<usize>),
}

impl From<usize> for Gpus {
    fn from(ordinal: usize) -> Self {
        Self::Of(vec![ordinal])
    }
}

impl From<Vec<usize>> for Gpus {
    fn from(ordinals: Vec<usize>) -> Self {
        Self::Of(ordinals)
    }
}

impl From<&[usize]> for Gpus {
    fn from(ordinals: &[usize]) -> Self {
        Self::Of(ordinals.to_vec())
    }
}

impl<const N: usize> From<[usize; N]> for Gpus {
    fn from(ordinals: [usize; N]) -> Self {
        Self::Of(ordinals.into())
    }
}

/// When a GPU is used.
#[cfg(feature = "gpu")]
#[derive(Clone)]
enum Use {
    Never,
    /// Keys without kernels are an error.
    Always(GpuGroup),
    /// Where it takes less time.
    Choice(Arc<Choice>),
}

/// Where the work of a call is done, and why there.
struct Place<'a> {
    on: On<'a>,
    reason: Reason,
}

/// What does the work of a call.
#[derive(Clone, Copy)]
enum On<'a> {
    Cpu(&'a Workers),
    #[cfg(feature = "gpu")]
    Gpus(&'a GpuGroup),
}

impl Place<'_> {
    #[inline]
    fn kind(&self) -> EngineKind {
        match self.on {
            On::Cpu(_) => EngineKind::Cpu,
            #[cfg(feature = "gpu")]
            On::Gpus(_) => EngineKind::Gpu,
        }
    }

    /// What a call reports that took these steps here.
    #[inline]
    fn timing(self, steps: Steps) -> Timing {
        steps.on(self.kind(), self.reason)
    }
}

impl Engine {
    /// For each call the first GPU or all CPU cores, whichever takes less time by the constants of a [`CostModel`]. The
    /// environment variable [`COSTS`] sets the constants. Without it, they have their default values. Malformed values
    /// are ignored; [`CostModel::of_environment`] reports them.
    ///
    /// This is [`auto_with`](Self::auto_with) with these constants and GPU 0.
    ///
    /// ```
    /// let timing = merge_host::Engine::auto().sort(&mut [3, 1, 2])?;
    /// println!("{}, because {}", timing.engine, timing.reason);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn auto() -> Self {
        Self::auto_with(CostModel::of_environment().unwrap_or_default(), 0)
    }

    /// For each call either the CPU or all of `gpus` together, whichever takes less time by the constants given.
    ///
    /// The GPUs are started by the first call that they are worth starting for. That takes some tenths of a second, as
    /// long as the CPU takes to sort a hundred million keys. Until then [`Gpus::All`] counts as one GPU, because to
    /// count them takes as long as to start one.
    ///
    /// The CPU does the work if the GPUs have no kernels for the keys ([`Key::ON_GPU`](crate::Key::ON_GPU)) or too
    /// little memory. It does all work if there is no GPU, or if one of `gpus` does not exist, is named twice or cannot
    /// be started. [`Timing::reason`] tells for each call.
    ///
    /// ```
    /// use merge_host::{CostModel, Engine, Gpus};
    ///
    /// let engine = Engine::auto_with(CostModel::default(), Gpus::All);
    /// let mut keys = [3, 1, 2];
    /// engine.sort(&mut keys)?;
    /// assert_eq!(keys, [1, 2, 3]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn auto_with(costs: CostModel, gpus: impl Into<Gpus>) -> Self {
        #[cfg(feature = "gpu")]
        {
            let gpu = Use::Choice(Arc::new(Choice::new(costs, gpus.into())));
            Self { gpu, ..Self::of_workers(Workers::shared(), Reason::Nothing) }
        }
        #[cfg(not(feature = "gpu"))]
        {
            let _ = (costs, gpus);
            Self::of_workers(Workers::shared(), Reason::no_gpu(Error::NoGpuSupport))
        }
    }

    /// One GPU or several ([`Gpus`]), and nothing else. An ordinal, counted from 0, is one GPU. Keys without kernels
    /// ([`Key::ON_GPU`](crate::Key::ON_GPU)) are the error [`Error::NoKernels`] in every call.
    ///
    /// Each of several GPUs does a part of every sort and merge. A sort uploads an equal part of the keys to each GPU,
    /// over its own bus. Each GPU sorts its part, the GPUs exchange keys, and each downloads an equal part of the
    /// result. Merges and batches are divided before anything is uploaded. The result is the same for all GPUs and for
    /// every order of them. The first GPU alone sorts keys of 1, 2 and 16 bytes.
    #[cfg_attr(
        feature = "gpu",
        doc = "",
        doc = "[`GpuGroup`] does the same with arrays that are already in the memory of the GPUs."
    )]
    ///
    /// # Errors
    /// - [`Error::NoMembers`] if there are no ordinals, and [`Error::RepeatedDevice`] if one is there twice. The driver
    ///   is not asked before.
    /// - [`Error::NoDevice`] if there is no driver or no GPU.
    /// - [`Error::DeviceOrdinal`] if no GPU has an ordinal.
    /// - [`Error::Device`] if the driver fails.
    /// - [`Error::NoGpuSupport`] in a build without the feature `gpu`.
    ///
    /// ```
    /// use merge_host::{Engine, Error, Gpus};
    ///
    /// let mut keys = [3, 1, 2];
    /// for engine in [Engine::gpu(0), Engine::gpu([0, 1]), Engine::gpu(Gpus::All)] {
    ///     match engine {
    ///         Ok(engine) => println!("{}", engine.sort(&mut keys)?.reason),
    ///         Err(error) => println!("{error}"),
    ///     }
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    pub fn gpu(gpus: impl Into<Gpus>) -> Result<Self, Error> {
        #[cfg(feature = "gpu")]
        return Ok(Self::of_gpus(GpuGroup::new(gpus)?));
        #[cfg(not(feature = "gpu"))]
        {
            let _ = gpus;
            Err(Error::NoGpuSupport)
        }
    }

    #[cfg(feature = "gpu")]
    fn of_gpus(group: GpuGroup) -> Self {
        let reason = Reason::gpus(group.gpus().map(Gpu::ordinal).collect());
        Self { gpu: Use::Always(group), ..Self::of_workers(Workers::shared(), reason) }
    }

    /// All CPU cores that this process may use, or fewer if the system refuses to start a thread for each core. All
    /// such engines share their threads, and making one starts none.
    ///
    /// Sorts use the processor's vector instructions, unless the environment variable of [`VECTORS`](crate::VECTORS)
    /// limits them.
    pub fn cpu() -> Self {
        Self::of_workers(Workers::shared(), Reason::Cpu)
    }

    /// The given number of threads of the CPU, which belong to this engine and its clones, and end with them. Small
    /// inputs use fewer, and no more threads are started than there are processors.
    ///
    /// # Errors
    /// [`Error::Threads`] if `threads` is 0 or greater than 4096. No thread is started yet: if the system refuses to
    /// start one, the call that needs it fails.
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
        Ok(Self::of_workers(Arc::new(Workers::exactly(threads)?), Reason::Threads(threads)))
    }

    /// The same engine with the CPU's work on the calling thread's pool of rayon, or on rayon's global pool if the
    /// thread belongs to none. The engine then starts no threads of its own.
    ///
    /// A thread of the pool that waits for others may take up other work of the pool meanwhile, as in every loop of
    /// rayon. So a thread must not hold a lock that such work takes when it calls the engine. The callbacks of
    /// [`sort_streamed`](Self::sort_streamed) also run on that pool, and must not hold a lock while they call an
    /// engine.
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
        Engine { workers: Arc::new(Workers::of_current_pool()), ..self }
    }

    fn of_workers(workers: Arc<Workers>, reason: Reason) -> Self {
        Engine {
            #[cfg(feature = "gpu")]
            gpu: Use::Never,
            workers,
            reason,
        }
    }

    /// Chooses for `work` with keys of type `K`, as the call that does it would, and starts the GPU if that is chosen.
    /// Returns the kind of processor that is chosen. A program calls this while it does something else, such as opening
    /// files, so that the call itself need not wait.
    ///
    /// # Errors
    /// [`Error::NoKernels`] from an engine of [`gpu`](Self::gpu) if that has none for these keys.
    ///
    /// ```
    /// use merge_host::{Engine, Work};
    ///
    /// let engine = Engine::auto();
    /// let start = { let engine = engine.clone(); move || engine.start_for::<u32>(&Work::sort::<u32>(2)) };
    /// let started = std::thread::spawn(start);
    /// let mut keys = vec![2, 1];
    /// started.join().expect("no panic")?;
    /// engine.sort(&mut keys)?;
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn start_for<K: Key>(&self, work: &Work) -> Result<EngineKind, Error> {
        Ok(self.choose((K::NAME, K::ON_GPU || work.is_sort()), work, false)?.kind())
    }

    /// Whether the calling thread does `work` at once, without a look at the clock. If so, [`no_time`](Self::no_time)
    /// is what the call reports.
    #[inline]
    fn is_untimed(&self, work: &Work) -> bool {
        if work.keys() >= UNTIMED_KEYS {
            return false;
        }
        #[cfg(feature = "gpu")]
        match &self.gpu {
            Use::Never => {}
            Use::Always(_) => return false,
            Use::Choice(choice) => return work.bytes() <= choice.few_bytes(),
        }
        true
    }

    /// What a call reports that did not look at the clock.
    #[inline]
    fn no_time(&self) -> Timing {
        #[cfg(feature = "gpu")]
        if let Use::Choice(_) = self.gpu {
            return Timing::untimed(Reason::FewBytes);
        }
        Timing::untimed(self.reason)
    }

    /// Where a call does this work with keys of type `K`.
    ///
    /// # Errors
    /// [`Error::NoKernels`] from an engine of GPUs that have none for these keys.
    #[inline]
    fn place_for<K: Key>(&self, work: &Work) -> Result<Place<'_>, Error> {
        self.place((K::NAME, K::ON_GPU), work)
    }

    /// [`place_for`](Self::place_for) a sort of an array, which GPUs do for keys of every type.
    #[inline]
    fn place_to_sort<K: Key>(&self, work: &Work) -> Result<Place<'_>, Error> {
        self.place((K::NAME, true), work)
    }

    #[inline]
    fn place(&self, key: (&'static str, bool), work: &Work) -> Result<Place<'_>, Error> {
        // Few keys take less time than the choice between processors.
        #[cfg(feature = "gpu")]
        if !matches!(self.gpu, Use::Never) {
            return self.choose(key, work, true);
        }
        let _ = (key, work);
        Ok(self.on_cpu(self.reason))
    }

    /// [`place_for`](Self::place_for) a call that does the work, or for one that prepares it: for keys of a type of
    /// that name, and whether GPUs have kernels for them. Compiled once.
    fn choose(&self, (key, on_gpu): (&'static str, bool), work: &Work, is_call: bool) -> Result<Place<'_>, Error> {
        #[cfg(feature = "gpu")]
        match &self.gpu {
            Use::Never => {}
            Use::Always(gpus) if on_gpu => {
                return Ok(Place { on: On::Gpus(gpus), reason: self.reason });
            }
            Use::Always(_) => return Err(Error::NoKernels { key }),
            Use::Choice(_) if !on_gpu => return Ok(self.on_cpu(Reason::NoKernels { key })),
            Use::Choice(choice) => {
                let (gpus, reason) = choice.choose(work, self.workers.threads_to_sort(work.keys()), is_call);
                return Ok(match gpus {
                    Some(gpus) => Place { on: On::Gpus(gpus), reason },
                    None => self.on_cpu(reason),
                });
            }
        }
        let _ = (key, on_gpu, work, is_call);
        Ok(self.on_cpu(self.reason))
    }

    #[inline]
    fn on_cpu(&self, reason: Reason) -> Place<'_> {
        Place { on: On::Cpu(&self.workers), reason }
    }

    /// What an operation reports that took these steps on the CPU, where every engine does it.
    fn timing_on_cpu(&self, steps: Steps) -> Timing {
        #[cfg(feature = "gpu")]
        if !matches!(self.gpu, Use::Never) {
            return steps.on(EngineKind::Cpu, Reason::CpuOnly);
        }
        steps.on(EngineKind::Cpu, self.reason)
    }

    /// Whether the CPU's work is done on the pool that the calling thread belongs to.
    #[cfg(feature = "external")]
    pub(crate) fn works_on_current_pool(&self) -> bool {
        self.workers.are_of_current_pool()
    }

    /// Does work on the CPU, with the number of threads of a merge of `keys` keys.
    #[cfg(feature = "external")]
    pub(crate) fn compute(&self, keys: usize, work: impl FnOnce(usize) + Send) -> Result<std::time::Duration, Error> {
        Ok(self.workers.merge(keys, work)?.compute)
    }

    /// The GPUs of this engine, for data that is already in their memory: an engine of one GPU has a group of one.
    /// `None` for a CPU engine, and for one that chooses until it has started a GPU.
    #[cfg(feature = "gpu")]
    pub fn as_gpu_group(&self) -> Option<&GpuGroup> {
        match &self.gpu {
            Use::Never => None,
            Use::Always(group) => Some(group),
            Use::Choice(choice) => choice.running(),
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "gpu")]
        if let Use::Choice(choice) = &self.gpu {
            return f.debug_tuple("Engine").field(choice).finish();
        }
        f.debug_tuple("Engine").field(&self.reason).finish()
    }
}
