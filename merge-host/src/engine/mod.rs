//! The engine: checks its arguments once and passes them to the GPU or to the CPU cores.
//!
//! | file | contents |
//! | --- | --- |
//! | `sort` | sorts of one array |
//! | `sort_unique` | sorts that keep the first of equal keys |
//! | `elements` | sorts and merges of elements of any type |
//! | `segments` | sorts of the segments of an array |
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
pub(crate) use check::check_length;
#[cfg(feature = "gpu")]
pub(crate) use check::{
    check_batch, check_capacity, check_k, check_last_group, check_offset_counts, check_offsets, check_values,
};
pub use costs::{COSTS, CostModel, Work};
pub use top_k::{TopK, TopKPairs};

use crate::cpu::Workers;
use crate::{EngineKind, Error, Key, SortKernel, Timing};
#[cfg(feature = "gpu")]
use crate::{Gpu, GpuGroup};
#[cfg(feature = "gpu")]
use auto::Choice;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What merges and sorts: one GPU or several, the cores of the CPU, or for each call whichever of these takes less
/// time.
///
/// | engine | of |
/// | --- | --- |
/// | [`cpu`](Self::cpu), [`cpu_with_threads`](Self::cpu_with_threads) | the CPU |
/// | [`gpu`](Self::gpu) | one GPU |
/// | [`gpus`](Self::gpus), [`all_gpus`](Self::all_gpus) | several GPUs, each of which does a part of every call's work |
/// | [`auto`](Self::auto), [`auto_with`](Self::auto_with) | the CPU or the first GPU |
/// | [`auto_of`](Self::auto_of) | the CPU or some GPUs |
///
/// All engines of a process share one pool of threads, except those of [`cpu_with_threads`](Self::cpu_with_threads),
/// which have their own, and those of [`on_current_pool`](Self::on_current_pool). So an engine takes no time to make,
/// and a program may make one for each call, unless it uses a GPU: an engine owns the contexts of its GPUs, and shares
/// them only with its clones. A program may hold several engines, for instance one for each GPU where the calls are
/// independent of each other, and several threads may use one engine at the same time.
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
///
/// No more threads work than there are processors that the calling thread may use at that time
/// ([`available_parallelism`](std::thread::available_parallelism)), whatever number of threads an engine was made for,
/// and however many the current pool has. The threads of a pool run on the processors that the thread which started
/// them could use.
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
    /// The threads of the CPU. With a GPU, they handle the work for which it has no kernels.
    workers: Arc<Workers>,
    /// How the GPU sorts.
    #[cfg(feature = "gpu")]
    sort_kernel: SortKernel,
    last: Arc<Mutex<Last>>,
}

/// Which GPUs of a machine an engine uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gpus {
    /// All GPUs that the driver shows to this process.
    All,
    /// The GPUs with these ordinals, counted from 0: at least one, and none twice.
    Of(Vec<usize>),
}

impl Gpus {
    /// An engine of these GPUs alone: [`Engine::all_gpus`] or [`Engine::gpus`].
    ///
    /// # Errors
    /// Those of [`Engine::gpus`].
    pub fn engine(&self) -> Result<Engine, Error> {
        match self {
            Self::All => Engine::all_gpus(),
            Self::Of(ordinals) => Engine::gpus(ordinals),
        }
    }
}

#[cfg(feature = "gpu")]
impl Gpus {
    /// Starts these GPUs.
    pub(crate) fn start(&self) -> Result<GpuGroup, Error> {
        match self {
            Self::All => GpuGroup::all(),
            Self::Of(ordinals) => GpuGroup::new(ordinals),
        }
    }
}

/// When a GPU is used.
#[cfg(feature = "gpu")]
#[derive(Clone)]
enum Use {
    Never,
    /// Keys for which it has no kernels are an error.
    Always(GpuGroup),
    /// Where it takes less time.
    Choice(Arc<Choice>),
}

/// What was chosen last, and why.
struct Last {
    kind: EngineKind,
    why: String,
}

impl Engine {
    /// For each call the first GPU or all CPU cores, whichever takes less time by the constants of a [`CostModel`]:
    /// those that the environment variable [`COSTS`] gives, or the default ones. What cannot be read there counts as
    /// not given: a program refuses it by [`CostModel::of_environment`].
    ///
    /// The GPU is started by the first call that it is worth starting for, and not before: that takes some tenths of a
    /// second, as long as the CPU takes to sort a hundred million keys. A GPU that cannot be started, has no kernels
    /// for the keys ([`Key::ON_GPU`](crate::Key::ON_GPU)) or too little memory is not used. [`kind`](Self::kind) and
    /// [`why`](Self::why) tell what was chosen last.
    ///
    /// ```
    /// let engine = merge_host::Engine::auto();
    /// engine.sort(&mut [3, 1, 2])?;
    /// println!("{}, because {}", engine.kind(), engine.why());
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn auto() -> Self {
        Self::auto_with(CostModel::of_environment().unwrap_or_default())
    }

    /// As [`auto`](Self::auto), by the constants given.
    pub fn auto_with(costs: CostModel) -> Self {
        Self::auto_of(costs, Gpus::Of(vec![0]))
    }

    /// As [`auto_with`](Self::auto_with), with `gpus` in place of the first GPU: for each call, either the CPU or all
    /// of `gpus` together, whichever takes less time. Until they are started, [`Gpus::All`] counts as one GPU, because
    /// to count them takes as long as to start one.
    ///
    /// If one of `gpus` cannot be started, is named twice or does not exist, or if there is none, the CPU does the
    /// work, and [`why`](Self::why) gives the reason.
    ///
    /// ```
    /// use merge_host::{CostModel, Engine, Gpus};
    ///
    /// let engine = Engine::auto_of(CostModel::default(), Gpus::All);
    /// let mut keys = [3, 1, 2];
    /// engine.sort(&mut keys)?;
    /// assert_eq!(keys, [1, 2, 3]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn auto_of(costs: CostModel, gpus: Gpus) -> Self {
        #[cfg(feature = "gpu")]
        {
            let gpu = Use::Choice(Arc::new(Choice::new(costs, gpus)));
            let last = Last { kind: EngineKind::Cpu, why: "nothing has been done yet".to_owned() };
            Self { gpu, ..Self::of_workers(Workers::shared(), last) }
        }
        #[cfg(not(feature = "gpu"))]
        {
            let _ = (costs, gpus);
            Engine::of_cpu(Workers::shared(), &format!("the GPU cannot be used: {}", Error::NoGpuSupport))
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
        {
            Ok(Self::of_gpus(GpuGroup::new(&[ordinal])?))
        }
        #[cfg(not(feature = "gpu"))]
        {
            let _ = ordinal;
            Err(Error::NoGpuSupport)
        }
    }

    /// The GPUs with the given ordinals, counted from 0, and nothing else: each does a part of every sort and merge.
    ///
    /// A sort uploads an equal part of the keys to each GPU, over its own bus. Each GPU sorts its part, the GPUs
    /// exchange keys, and each downloads an equal part of the result. Merges and batches are divided before anything is
    /// uploaded. The result does not depend on the GPUs, nor on their order.
    #[cfg_attr(
        feature = "gpu",
        doc = "",
        doc = "[`GpuGroup`] does the same with arrays that are already in the memory of the GPUs."
    )]
    ///
    /// # Errors
    /// Those of [`gpu`](Self::gpu), and, before the driver is asked, [`Error::NoMembers`] if there are no ordinals and
    /// [`Error::RepeatedDevice`] if one is there twice.
    ///
    /// ```
    /// use merge_host::{Engine, Error};
    ///
    /// match Engine::gpus(&[0, 1]) {
    ///     Ok(engine) => {
    ///         let mut keys = [3, 1, 2];
    ///         engine.sort(&mut keys)?;
    ///         assert_eq!(keys, [1, 2, 3]);
    ///     }
    ///     Err(error) => println!("{error}"),
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    pub fn gpus(ordinals: &[usize]) -> Result<Self, Error> {
        #[cfg(feature = "gpu")]
        return Ok(Self::of_gpus(GpuGroup::new(ordinals)?));
        #[cfg(not(feature = "gpu"))]
        {
            let _ = ordinals;
            Err(Error::NoGpuSupport)
        }
    }

    /// All GPUs that the driver shows to this process, and nothing else. Otherwise as [`gpus`](Self::gpus).
    ///
    /// # Errors
    /// Those of [`gpu`](Self::gpu). [`Error::NoDevice`] also if the driver shows no GPU.
    pub fn all_gpus() -> Result<Self, Error> {
        #[cfg(feature = "gpu")]
        return Ok(Self::of_gpus(GpuGroup::all()?));
        #[cfg(not(feature = "gpu"))]
        Err(Error::NoGpuSupport)
    }

    #[cfg(feature = "gpu")]
    fn of_gpus(group: GpuGroup) -> Self {
        let ordinals: Vec<String> = group.gpus().map(|gpu| gpu.ordinal().to_string()).collect();
        let why = match &ordinals[..] {
            [ordinal] => format!("GPU {ordinal} was asked for"),
            several => format!("GPUs {} were asked for", several.join(", ")),
        };
        let last = Last { kind: EngineKind::Gpu, why };
        Self { gpu: Use::Always(group), ..Self::of_workers(Workers::shared(), last) }
    }

    /// All CPU cores that this process may use, or fewer if the system refuses to start a thread for each of them. All
    /// such engines share their threads, and making one starts none.
    ///
    /// Keys are sorted by the vector instructions that the processor has, or by those of them that the environment
    /// variable of [`VECTORS`](crate::VECTORS) says.
    pub fn cpu() -> Self {
        Engine::of_cpu(Workers::shared(), "the CPU was asked for")
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
        Ok(Engine::of_cpu(Arc::new(Workers::exactly(threads)?), "that was asked for"))
    }

    /// The same engine with the CPU's work on the pool of threads that the calling thread belongs to: the pool of rayon
    /// in which it is installed, or else rayon's global pool. The engine starts no threads of its own then.
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

    /// The same engine with the given kernel for all that it sorts on a GPU: keys alone, key-value pairs and
    /// permutations, and the chunks of an [`external`](crate::external) sort. The CPU has one way to sort, for every
    /// kernel.
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

    fn of_cpu(workers: Arc<Workers>, reason: &str) -> Self {
        let why = match workers.asked_for() {
            1 => format!("1 CPU thread because {reason}"),
            threads => format!("{threads} CPU threads because {reason}"),
        };
        Self::of_workers(workers, Last { kind: EngineKind::Cpu, why })
    }

    fn of_workers(workers: Arc<Workers>, last: Last) -> Self {
        Engine {
            #[cfg(feature = "gpu")]
            gpu: Use::Never,
            workers,
            #[cfg(feature = "gpu")]
            sort_kernel: SortKernel::Auto,
            last: Arc::new(Mutex::new(last)),
        }
    }

    /// Chooses for `work` with keys of type `K`, as the call that does it would, and starts the GPU if that is chosen.
    /// A program calls this while it does something else, such as opening files, so that the call itself need not wait.
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
        #[cfg(feature = "gpu")]
        self.choose_for::<K>(work, false)?;
        let _ = work;
        Ok(self.kind())
    }

    /// The GPUs, if they are to do this work with keys of type `K` now; otherwise the CPU does, or nothing may.
    #[cfg(feature = "gpu")]
    fn gpu_for<K: Key>(&self, work: &Work) -> Result<Option<&GpuGroup>, Error> {
        self.choose_for::<K>(work, true)
    }

    /// As [`gpu_for`](Self::gpu_for), for operations that one GPU does, and the CPU where there are no kernels.
    #[cfg(feature = "gpu")]
    fn one_gpu_for<K: Key>(&self, work: &Work) -> Result<Option<&Gpu>, Error> {
        Ok(self.gpus_for::<K>(&work.on_one_gpu())?.and_then(|group| group.gpus().next()))
    }

    /// As [`gpu_for`](Self::gpu_for), for operations that the CPU does where there are no kernels.
    #[cfg(feature = "gpu")]
    fn gpus_for<K: Key>(&self, work: &Work) -> Result<Option<&GpuGroup>, Error> {
        if !K::ON_GPU && matches!(self.gpu, Use::Always(_)) {
            return Ok(None);
        }
        self.gpu_for::<K>(work)
    }

    /// [`gpu_for`](Self::gpu_for), for a call that does the work, or for one that prepares it.
    #[cfg(feature = "gpu")]
    fn choose_for<K: Key>(&self, work: &Work, is_call: bool) -> Result<Option<&GpuGroup>, Error> {
        match &self.gpu {
            Use::Never => Ok(None),
            Use::Always(gpu) if K::ON_GPU => Ok(Some(gpu)),
            Use::Always(_) => Err(Error::NoKernels { key: K::NAME }),
            Use::Choice(_) if !K::ON_GPU => {
                self.note(EngineKind::Cpu, format!("GPUs have no kernels for {} keys", K::NAME));
                Ok(None)
            }
            Use::Choice(choice) => {
                let chosen = choice.choose(work, self.workers.threads_to_sort(work.keys()), is_call);
                let kind = if chosen.gpu.is_some() { EngineKind::Gpu } else { EngineKind::Cpu };
                self.note(kind, chosen.why);
                Ok(chosen.gpu)
            }
        }
    }

    /// The GPUs that select the first `k` of `keys` keys, if GPUs are to do it now.
    #[cfg(feature = "gpu")]
    fn gpus_to_select<K: Key>(&self, keys: usize, k: usize) -> Result<Option<&GpuGroup>, Error> {
        if k == 0 || keys == 0 { Ok(None) } else { self.gpus_for::<K>(&Work::top_k::<K>(keys)) }
    }

    #[cfg(feature = "gpu")]
    fn note(&self, kind: EngineKind, why: String) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Last { kind, why };
    }

    /// The kind of processor that this engine uses; of an engine that chooses, the one of the last call, and before
    /// that the CPU.
    pub fn kind(&self) -> EngineKind {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).kind
    }

    /// Whether the CPU's work is done on the pool that the calling thread belongs to.
    pub(crate) fn works_on_current_pool(&self) -> bool {
        self.workers.are_of_current_pool()
    }

    /// Does work of the CPU that is worth as many threads as a merge of `keys` keys.
    pub(crate) fn compute(&self, keys: usize, work: impl FnOnce(usize) + Send) -> Result<Timing, Error> {
        self.workers.merge(keys, work)
    }

    /// Why this processor was chosen, as text: "2 CPU threads because the CPU was asked for", "12.1 ms on the CPU and
    /// 331.2 ms on the GPU are estimated".
    pub fn why(&self) -> String {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).why.clone()
    }

    /// The first GPU of this engine, for data that is already in its memory; `None` for a CPU engine, and for one that
    /// chooses until it has started a GPU.
    #[cfg(feature = "gpu")]
    pub fn as_gpu(&self) -> Option<&Gpu> {
        self.as_gpu_group()?.gpus().next()
    }

    /// All GPUs of this engine, for arrays that are distributed over their memory; `None` as for
    /// [`as_gpu`](Self::as_gpu). An engine of one GPU has a group of one.
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
        f.debug_struct("Engine").field("kind", &self.kind()).field("why", &self.why()).finish()
    }
}
