//! The engine: checks what it is given, once, and hands it to the GPU or to the CPU cores.

use crate::cpu::CpuEngine;
#[cfg(feature = "gpu")]
use crate::gpu::{Gpu, on_gpu};
use crate::index::check_places;
use crate::{Error, Index, Key, MergeKernel, SetOperation, SortOrder};
#[cfg(feature = "gpu")]
use bytemuck::{cast_slice, cast_slice_mut};
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
    #[cfg(feature = "gpu")]
    gpu: Option<Gpu>,
    /// All there is without a GPU. With one, it does what the GPU has no kernels for.
    cpu: CpuEngine,
    /// Whether the GPU was insisted on, so that keys that it has no kernels for are an error.
    #[cfg(feature = "gpu")]
    gpu_only: bool,
    why: String,
}

enum Backend<'a> {
    Cpu(&'a CpuEngine),
    #[cfg(feature = "gpu")]
    Gpu(&'a Gpu),
}

impl Engine {
    /// The first GPU if it can be used, or else all CPU cores. [`why`](Self::why) says which and for what reason.
    ///
    /// With a GPU, all CPU cores handle the keys that it has no kernels for ([`Key::ON_GPU`]).
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
            Err(error) => {
                let cpu = CpuEngine::all_cores();
                let why = format!("{} because the GPU cannot be used: {error}", threads(cpu.threads()));
                Engine::of_cpu(cpu, why)
            }
        }
    }

    /// The GPU of that ordinal, counted from 0, and nothing else: keys that it has no kernels for ([`Key::ON_GPU`]) are an
    /// error, [`Error::NoKernels`].
    ///
    /// # Errors
    /// [`Error::NoDevice`] where there is no driver or no GPU, [`Error::DeviceOrdinal`] where there are not that many,
    /// [`Error::Device`] where the driver fails, and [`Error::NoGpuSupport`] in a build without the feature `gpu`.
    pub fn gpu(ordinal: usize) -> Result<Self, Error> {
        #[cfg(feature = "gpu")]
        return Ok(Engine {
            gpu: Some(Gpu::new(ordinal)?),
            cpu: CpuEngine::all_cores(),
            gpu_only: true,
            why: format!("GPU {ordinal} was asked for"),
        });
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
        Engine::of_cpu(cpu, why)
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
        Ok(Engine::of_cpu(cpu, why))
    }

    fn of_cpu(cpu: CpuEngine, why: String) -> Self {
        Engine {
            #[cfg(feature = "gpu")]
            gpu: None,
            cpu,
            #[cfg(feature = "gpu")]
            gpu_only: false,
            why,
        }
    }

    /// What handles keys of type `K`.
    fn backend<K: Key>(&self) -> Backend<'_> {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = self.gpu.as_ref().filter(|_| K::ON_GPU || self.gpu_only) {
            return Backend::Gpu(gpu);
        }
        Backend::Cpu(&self.cpu)
    }

    /// Which kind of processor this engine works on.
    pub fn kind(&self) -> EngineKind {
        #[cfg(feature = "gpu")]
        if self.gpu.is_some() {
            return EngineKind::Gpu;
        }
        EngineKind::Cpu
    }

    /// What was taken and why, for people to read: "2 CPU threads because the GPU cannot be used: no GPU: …".
    pub fn why(&self) -> &str {
        &self.why
    }

    /// The GPU that this engine works on, for data that is in its memory already; none for a CPU engine.
    #[cfg(feature = "gpu")]
    pub fn as_gpu(&self) -> Option<&Gpu> {
        self.gpu.as_ref()
    }

    /// Sorts `keys`, ascending in total order. Stable.
    ///
    /// Uses scratch memory for as many keys again.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`] or [`Error::OutOfDeviceMemory`] where there is not enough memory, [`Error::Threads`]
    /// where the system gives no threads, [`Error::Device`] where the GPU fails, [`Error::NoKernels`] where it is the only
    /// one to handle keys that it has no kernels for.
    ///
    /// ```
    /// let mut keys = [0.0f32, f32::NAN, -1.0, -0.0];
    /// merge_host::Engine::auto().sort(&mut keys)?;
    /// assert_eq!(keys[..3], [-1.0, -0.0, 0.0]);
    /// assert!(keys[1].is_sign_negative() && keys[3].is_nan());
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn sort<K: Key>(&self, keys: &mut [K]) -> Result<Timing, Error> {
        self.sort_with(SortOrder::Ascending, keys)
    }

    /// Sorts `keys` in the order named. Stable.
    ///
    /// Descending is the opposite of total order: +NaN, +infinity, …, -infinity, -NaN. Work is O(n) for n keys on one
    /// thread, plus O(n log t) on t of them. Uses scratch memory for as many keys again.
    ///
    /// # Errors
    /// Those of [`sort`](Self::sort).
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let mut keys = [-0.0f32, 2.5, f32::INFINITY, 0.0];
    /// Engine::auto().sort_with(SortOrder::Descending, &mut keys)?;
    /// assert_eq!(keys, [f32::INFINITY, 2.5, 0.0, -0.0]);
    /// assert!(keys[3].is_sign_negative());
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn sort_with<K: Key>(&self, order: SortOrder, keys: &mut [K]) -> Result<Timing, Error> {
        match self.backend::<K>() {
            Backend::Cpu(cpu) => cpu.sort(order, keys),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => on_gpu!(K as G => gpu.sort_host::<G>(order, cast_slice_mut(keys))),
        }
    }

    /// Sorts `len` keys that `read` gives, and hands them to `write`, in the order named. Stable.
    ///
    /// For keys that come from a file and go to one: with a GPU they need no memory of the host but some buffers, and reading,
    /// writing and the copies to and from the GPU go on at the same time.
    ///
    /// Both functions are called by several threads at once, with the index of a key and a slice: `read` fills it with the
    /// keys from there on, `write` takes it as the sorted keys from there on. Every key is read once and written once. All
    /// is read before anything is written. In the [`Timing`], uploading and downloading hold what `read` and `write` take.
    ///
    /// # Errors
    /// What `read` and `write` give, after which neither is called for another slice, and those of [`sort`](Self::sort).
    ///
    /// ```
    /// use merge_host::{Engine, Error, SortOrder};
    /// use std::sync::Mutex;
    ///
    /// let sorted = Mutex::new([0; 1000]);
    /// let read = |begin: usize, keys: &mut [u32]| {
    ///     keys.iter_mut().zip(begin..).for_each(|(key, i)| *key = i as u32 * 7 % 1000);
    ///     Ok::<_, Error>(())
    /// };
    /// let write = |begin: usize, keys: &[u32]| {
    ///     sorted.lock().expect("nobody panics")[begin..][..keys.len()].copy_from_slice(keys);
    ///     Ok(())
    /// };
    /// Engine::auto().sort_through(SortOrder::Descending, 1000, read, write)?;
    /// assert!(sorted.into_inner().unwrap().into_iter().eq((0..1000).rev()));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn sort_through<K: Key, E: From<Error> + Send>(
        &self,
        order: SortOrder,
        len: usize,
        read: impl Fn(usize, &mut [K]) -> Result<(), E> + Sync,
        write: impl Fn(usize, &[K]) -> Result<(), E> + Sync,
    ) -> Result<Timing, E> {
        match self.backend::<K>() {
            Backend::Cpu(cpu) => cpu.sort_through(order, len, read, write),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => on_gpu!(K as G => {
                let read = |begin, keys: &mut [G]| read(begin, cast_slice_mut(keys));
                gpu.sort_through::<G, E>(order, len, read, |begin, keys| write(begin, cast_slice(keys)))
            }),
        }
    }

    /// Sorts `keys` in the order named, each with its value. Stable: equal keys keep the order of the input, in a
    /// descending sort too, and their values tell.
    ///
    /// The value of key `i` is `values[i]`, before and after. A value is anything that can be copied, and nobody looks
    /// at it: an index, a record, an array of bytes.
    ///
    /// Work is as in [`sort_with`](Self::sort_with). Uses scratch memory for as many keys and values again. On the CPU,
    /// values of more than 16 bytes are moved once, in the end, by 4 more bytes of scratch memory for each key (8 if
    /// there are more than 2^32).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many values as keys, and those of [`sort`](Self::sort).
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let (mut keys, mut values) = ([2, 7, 2, 5], ["first 2", "7", "second 2", "5"]);
    /// Engine::cpu().sort_pairs(SortOrder::Descending, &mut keys, &mut values)?;
    /// assert_eq!(keys, [7, 5, 2, 2]);
    /// assert_eq!(values, ["7", "5", "first 2", "second 2"]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn sort_pairs<K: Key, V: Copy + Send + Sync + 'static>(
        &self,
        order: SortOrder,
        keys: &mut [K],
        values: &mut [V],
    ) -> Result<Timing, Error> {
        check_values("the input", keys.len(), values.len())?;
        match self.backend::<K>() {
            Backend::Cpu(cpu) => cpu.sort_pairs(order, keys, values),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => on_gpu!(K as G => gpu.sort_pairs_host::<G, V>(order, cast_slice_mut(keys), values)),
        }
    }

    /// Writes to `indices` where the keys are in the order named: `keys[indices[0]]` is the first, and so on. Stable: of
    /// equal keys, the one with the least index goes first, in a descending sort too.
    ///
    /// The keys stay as they are. An index is a `u32` or a `u64`, and there are as many as keys.
    ///
    /// Work is as in [`sort_with`](Self::sort_with). Uses scratch memory for as many keys and indices again;
    /// on a GPU, and on one thread of the CPU, for twice the keys.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `indices` has another length, [`Error::TooManyKeys`] if there are more than 2^32
    /// keys and the indices are `u32`, and those of [`sort`](Self::sort).
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let mut indices = [0u32; 4];
    /// Engine::cpu().argsort(SortOrder::Ascending, &[0.5, -1.0, 2.0, -1.0], &mut indices)?;
    /// assert_eq!(indices, [1, 3, 0, 2]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn argsort<K: Key, I: Index>(&self, order: SortOrder, keys: &[K], indices: &mut [I]) -> Result<Timing, Error> {
        check_length("indices", keys.len(), indices.len(), "|keys|")?;
        check_places::<I>(keys.len())?;
        match self.backend::<K>() {
            Backend::Cpu(cpu) => cpu.argsort(order, keys, indices),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => on_gpu!(K as G => gpu.argsort_host::<G, I>(order, cast_slice(keys), indices)),
        }
    }

    /// Sorts segments of `keys`, each on its own, in the order named. Stable.
    ///
    /// For N segments there are N + 1 offsets, and segment `s` is the keys from `offsets[s]` up to `offsets[s + 1]`: the
    /// first offset is 0, none is below the one before it, and the last is the number of keys. A segment may be empty, and
    /// it may be as long as memory allows.
    ///
    /// Work is as in [`sort_with`](Self::sort_with) for each segment. Every thread gets as much of it, whether there is one
    /// long segment or millions of short ones. Uses scratch memory for as many keys as the longest segment has, for each
    /// thread if it is one of many. An engine of a GPU sorts segments on all CPU cores, with keys of any type.
    ///
    /// # Errors
    /// [`Error::NoOffsets`], [`Error::FirstOffset`], [`Error::DescendingOffsets`] or [`Error::LastOffset`] if the offsets are
    /// not as said above, [`Error::OutOfHostMemory`] where there is not enough memory, [`Error::Threads`] where the system
    /// gives no threads.
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let mut keys = [9, 3, 5, /**/ /**/ 2, 1, /**/ 7];
    /// Engine::auto().sort_segments(SortOrder::Ascending, &mut keys, &[0, 3, 3, 5, 6])?;
    /// assert_eq!(keys, [3, 5, 9, /**/ /**/ 1, 2, /**/ 7]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn sort_segments<K: Key>(&self, order: SortOrder, keys: &mut [K], offsets: &[usize]) -> Result<Timing, Error> {
        check_offsets("the input", offsets, keys.len())?;
        self.cpu.sort_segments(order, keys, offsets)
    }

    /// [`sort_segments`](Self::sort_segments) of keys with values: the value of key `i` is `values[i]`, before and after.
    ///
    /// Stable: of equal keys, those of a segment keep their order, in a descending sort too, and their values tell. Values
    /// are as in [`sort_pairs`](Self::sort_pairs).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many values as keys, and those of
    /// [`sort_segments`](Self::sort_segments).
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let (mut keys, mut values) = ([2, 7, 2, /**/ 5, 6], ["first 2", "7", "second 2", /**/ "5", "6"]);
    /// Engine::auto().sort_segments_pairs(SortOrder::Descending, &mut keys, &mut values, &[0, 3, 5])?;
    /// assert_eq!(keys, [7, 2, 2, /**/ 6, 5]);
    /// assert_eq!(values, ["7", "first 2", "second 2", /**/ "6", "5"]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn sort_segments_pairs<K: Key, V: Copy + Send + Sync + 'static>(
        &self,
        order: SortOrder,
        keys: &mut [K],
        values: &mut [V],
        offsets: &[usize],
    ) -> Result<Timing, Error> {
        check_values("the input", keys.len(), values.len())?;
        check_offsets("the input", offsets, keys.len())?;
        self.cpu.sort_segments_pairs(order, keys, values, offsets)
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
    /// [`Error::OutOfDeviceMemory`] or [`Error::Device`] where the GPU is too small or fails, [`Error::NoKernels`] where it
    /// is the only one to handle keys that it has no kernels for.
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
        match self.backend::<K>() {
            Backend::Cpu(cpu) => cpu.merge_with(kernel, a, b, out),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => {
                on_gpu!(K as G => gpu.merge_host::<G>(kernel, cast_slice(a), cast_slice(b), cast_slice_mut(out)))
            }
        }
    }

    /// Replaces what is in `out` by the keys of `a` and `b`, both ascending, that `operation` keeps, in ascending order.
    ///
    /// Both are multisets: for a key that is m times in `a` and n times in `b`, [`SetOperation`] says how many times it is
    /// in `out`. Keys are the same if their bits are: -0.0 is not 0.0, and a NaN is the same as one with the same payload.
    ///
    /// The CPU does it, whatever this engine works on. Work is O(|a| + |b|), on each of t threads a t-th of it, however
    /// many keys are equal. `out` keeps its memory if there is enough for the result, and gets just enough otherwise;
    /// there is no other scratch memory.
    ///
    /// Whether `a` and `b` are ascending is not checked ([`first_unsorted`](crate::first_unsorted) tells). If they are
    /// not, the call still ends, but which keys of theirs `out` then holds and in which order is unspecified.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`] where there is no memory for the result, [`Error::Threads`] where the system gives no
    /// threads.
    ///
    /// ```
    /// use merge_host::{Engine, SetOperation};
    ///
    /// let (a, b) = ([1, 4, 4, 6], [2, 4]);
    /// let (engine, mut out) = (Engine::auto(), Vec::new());
    /// engine.set_operation(SetOperation::Union, &a, &b, &mut out)?;
    /// assert_eq!(out, [1, 2, 4, 4, 6]);
    /// engine.set_operation(SetOperation::Intersection, &a, &b, &mut out)?;
    /// assert_eq!(out, [4]);
    /// engine.set_operation(SetOperation::Difference, &a, &b, &mut out)?;
    /// assert_eq!(out, [1, 4, 6]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn set_operation<K: Key>(
        &self,
        operation: SetOperation,
        a: &[K],
        b: &[K],
        out: &mut Vec<K>,
    ) -> Result<Timing, Error> {
        self.cpu.set_operation(operation, a, b, out)
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
        match self.backend::<K>() {
            Backend::Cpu(cpu) => cpu.merge_batch(a, b, out, d, a_len),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => {
                on_gpu!(K as G => gpu.merge_batch_host::<G>(cast_slice(a), cast_slice(b), cast_slice_mut(out), d, a_len))
            }
        }
    }

    /// Merges `a` and `b`, both ascending, into `out`, each key with its value. Stable: of equal keys, `a`'s pairs go
    /// first, and the pairs of each keep their order.
    ///
    /// Each of `a`, `b` and `out` is keys and values, the value of key `i` at index `i`. `out` has
    /// `a.0.len() + b.0.len()` of both. A value is anything that can be copied, and nobody looks at it: an index, a
    /// record, an array of bytes.
    ///
    /// On the CPU, values of any size are moved along with their keys. On a GPU, numbers of 4 and 8 bytes are; of other
    /// values it moves the indices, and the values are gathered on the host.
    ///
    /// Otherwise as [`merge`](Self::merge). If `a` or `b` is not ascending, `out` holds unspecified pairs of both.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many values as keys, and those of
    /// [`merge_with`](Self::merge_with).
    ///
    /// ```
    /// let (a, b) = ([1, 4, 4], [2, 4]);
    /// let (mut keys, mut values) = ([0; 5], [' '; 5]);
    /// merge_host::Engine::auto().merge_pairs((&a, &['a', 'b', 'c']), (&b, &['x', 'y']), (&mut keys, &mut values))?;
    /// assert_eq!(keys, [1, 2, 4, 4, 4]);
    /// assert_eq!(values, ['a', 'x', 'b', 'c', 'y']);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_pairs<K: Key, V: Copy + Send + Sync + 'static>(
        &self,
        a: (&[K], &[V]),
        b: (&[K], &[V]),
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        check_values("a", a.0.len(), a.1.len())?;
        check_values("b", b.0.len(), b.1.len())?;
        check_values("out", out.0.len(), out.1.len())?;
        check_length("out", a.0.len() + b.0.len(), out.0.len(), "|a| + |b|")?;
        match self.backend::<K>() {
            Backend::Cpu(cpu) => cpu.merge_pairs(a, b, out),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => {
                on_gpu!(K as G => gpu.merge_pairs_host::<G, V>((cast_slice(a.0), a.1), (cast_slice(b.0), b.1), (cast_slice_mut(out.0), out.1)))
            }
        }
    }

    /// [`merge_batch`](Self::merge_batch) of keys with values: each of `a`, `b` and `out` is keys and values, the value
    /// of key `i` at index `i`.
    ///
    /// Stable, and values are as in [`merge_pairs`](Self::merge_pairs).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many values as keys, and those of
    /// [`merge_batch`](Self::merge_batch).
    ///
    /// ```
    /// let a = ([3, 9, /**/ 5, 7], [0, 1, /**/ 2, 3]);
    /// let b = ([1, /**/ 7], [100, /**/ 101]);
    /// let (mut keys, mut values) = ([0; 6], [0; 6]);
    /// merge_host::Engine::auto().merge_batch_pairs((&a.0, &a.1), (&b.0, &b.1), (&mut keys, &mut values), 3, 2)?;
    /// assert_eq!(keys, [1, 3, 9, /**/ 5, 7, 7]);
    /// assert_eq!(values, [100, 0, 1, /**/ 2, 3, 101]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_batch_pairs<K: Key, V: Copy + Send + Sync + 'static>(
        &self,
        a: (&[K], &[V]),
        b: (&[K], &[V]),
        out: (&mut [K], &mut [V]),
        d: usize,
        a_len: usize,
    ) -> Result<Timing, Error> {
        check_values("a", a.0.len(), a.1.len())?;
        check_values("b", b.0.len(), b.1.len())?;
        check_values("out", out.0.len(), out.1.len())?;
        check_batch(a.0.len(), b.0.len(), out.0.len(), d, a_len)?;
        match self.backend::<K>() {
            Backend::Cpu(cpu) => cpu.merge_batch_pairs(a, b, out, d, a_len),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => {
                on_gpu!(K as G => gpu.merge_batch_pairs_host::<G, V>((cast_slice(a.0), a.1), (cast_slice(b.0), b.1), (cast_slice_mut(out.0), out.1), d, a_len))
            }
        }
    }

    /// Merges many pairs of runs of any lengths: run `p` of `a` with run `p` of `b` into run `p` of `out`.
    ///
    /// Each of `a` and `b` is keys and offsets. For N pairs there are N + 1 offsets, and run `p` of `a` is the keys from
    /// `a.1[p]` up to `a.1[p + 1]`: the first offset is 0, none is below the one before it, and the last is the number of
    /// keys. A run may be empty, and it may be as long as memory allows. `out` has `a.0.len() + b.0.len()` keys, and its
    /// run `p` begins at `a.1[p] + b.1[p]`.
    ///
    /// Each run of `a` and `b` is ascending; where one is not, only that run of `out` is unspecified. Stable: of equal
    /// keys, `a`'s go first.
    ///
    /// Work is O(N + |a| + |b|) on a CPU, and every thread gets as much of it, whether there is one long pair or millions of
    /// short ones.
    ///
    /// # Errors
    /// [`Error::OffsetsMismatch`] if `a` and `b` do not have as many offsets, [`Error::NoOffsets`],
    /// [`Error::FirstOffset`], [`Error::DescendingOffsets`] or [`Error::LastOffset`] if they are not as said above,
    /// [`Error::LengthMismatch`] if `out` has another length, and the device's errors as in
    /// [`merge_with`](Self::merge_with).
    ///
    /// ```
    /// let a = [3, 5, 9, /**/ /**/ 1];
    /// let b = [4, /**/ 7, 8, /**/ 0];
    /// let mut out = [0; 8];
    /// merge_host::Engine::auto().merge_ragged((&a, &[0, 3, 3, 4]), (&b, &[0, 1, 3, 4]), &mut out)?;
    /// assert_eq!(out, [3, 4, 5, 9, /**/ 7, 8, /**/ 0, 1]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_ragged<K: Key>(
        &self,
        a: (&[K], &[usize]),
        b: (&[K], &[usize]),
        out: &mut [K],
    ) -> Result<Timing, Error> {
        check_ragged((a.0.len(), a.1), (b.0.len(), b.1), out.len())?;
        match self.backend::<K>() {
            Backend::Cpu(cpu) => cpu.merge_ragged(a, b, out),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => {
                on_gpu!(K as G => gpu.merge_ragged_host::<G>((cast_slice(a.0), a.1), (cast_slice(b.0), b.1), cast_slice_mut(out)))
            }
        }
    }

    /// [`merge_ragged`](Self::merge_ragged) of keys with values: each of `a` and `b` is keys, values and offsets, and `out`
    /// is keys and values, the value of key `i` at index `i`.
    ///
    /// Stable, and values are as in [`merge_pairs`](Self::merge_pairs).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many values as keys, and those of
    /// [`merge_ragged`](Self::merge_ragged).
    ///
    /// ```
    /// let (a, b) = ([3, 5, 9, /**/ 1], [5, /**/ 0]);
    /// let (mut keys, mut values) = ([0; 6], [""; 6]);
    /// let a = (&a[..], &["a3", "a5", "a9", /**/ "a1"][..], &[0, 3, 4][..]);
    /// let b = (&b[..], &["b5", /**/ "b0"][..], &[0, 1, 2][..]);
    /// merge_host::Engine::auto().merge_ragged_pairs(a, b, (&mut keys, &mut values))?;
    /// assert_eq!(keys, [3, 5, 5, 9, /**/ 0, 1]);
    /// assert_eq!(values, ["a3", "a5", "b5", "a9", /**/ "b0", "a1"]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_ragged_pairs<K: Key, V: Copy + Send + Sync + 'static>(
        &self,
        a: (&[K], &[V], &[usize]),
        b: (&[K], &[V], &[usize]),
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        check_values("a", a.0.len(), a.1.len())?;
        check_values("b", b.0.len(), b.1.len())?;
        check_values("out", out.0.len(), out.1.len())?;
        check_ragged((a.0.len(), a.2), (b.0.len(), b.2), out.0.len())?;
        match self.backend::<K>() {
            Backend::Cpu(cpu) => cpu.merge_ragged_pairs(a, b, out),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => {
                on_gpu!(K as G => gpu.merge_ragged_pairs_host::<G, V>((cast_slice(a.0), a.1, a.2), (cast_slice(b.0), b.1, b.2), (cast_slice_mut(out.0), out.1)))
            }
        }
    }

    /// Merges any number of runs, each ascending, into `out`. Stable: of equal keys, those of an earlier run go first.
    ///
    /// `out` has as many keys as all of `runs` together. A run may be empty, and there may be none at all.
    ///
    /// On a CPU, work is O(n log k) for n keys in k runs, less where the runs' lengths differ. Up to 32 runs are merged in
    /// one pass over memory, with scratch memory of 256 KiB for each thread; up to 32² in two, and so on, which take scratch
    /// memory for as many keys again. On a GPU, where every pass takes that, 32 runs are merged in one pass too; more than 2^32
    /// keys are merged two runs at a time.
    ///
    /// Whether the runs are ascending is not checked ([`first_unsorted`](crate::first_unsorted) tells). If they are not,
    /// the call still ends and touches no other memory, but which keys `out` then holds and in which order is unspecified.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `out` has another length, [`Error::OutOfHostMemory`] where there is no memory for a
    /// pass, and the device's errors as in [`merge_with`](Self::merge_with).
    ///
    /// ```
    /// let mut out = [0; 7];
    /// merge_host::Engine::auto().merge_many(&[&[1, 4, 6], &[2, 4], &[], &[0, 9]], &mut out)?;
    /// assert_eq!(out, [0, 1, 2, 4, 4, 6, 9]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_many<K: Key>(&self, runs: &[&[K]], out: &mut [K]) -> Result<Timing, Error> {
        check_sum(runs.iter().map(|run| run.len()), out.len())?;
        match self.backend::<K>() {
            Backend::Cpu(cpu) => cpu.merge_many(runs, out),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => on_gpu!(K as G => {
                let runs: Vec<&[G]> = runs.iter().map(|run| cast_slice(run)).collect();
                gpu.merge_many_host::<G>(&runs, cast_slice_mut(out))
            }),
        }
    }

    /// [`merge_many`](Self::merge_many) of keys with values: each of `runs`, and `out`, is keys and values, the value of
    /// key `i` at index `i`.
    ///
    /// Stable: of equal keys, the pairs of an earlier run go first, and those of each run keep their order. Values are as
    /// in [`merge_pairs`](Self::merge_pairs), but for those of more than 16 bytes on the CPU, which are copied once in each
    /// pass.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many values as keys, and those of
    /// [`merge_many`](Self::merge_many).
    ///
    /// ```
    /// let runs: [(&[u32], &[&str]); 3] = [(&[2, 5], &["a2", "a5"]), (&[5], &["b5"]), (&[1, 5], &["c1", "c5"])];
    /// let (mut keys, mut values) = ([0; 5], [""; 5]);
    /// merge_host::Engine::auto().merge_many_pairs(&runs, (&mut keys, &mut values))?;
    /// assert_eq!(keys, [1, 2, 5, 5, 5]);
    /// assert_eq!(values, ["c1", "a2", "a5", "b5", "c5"]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_many_pairs<K: Key, V: Copy + Send + Sync + 'static>(
        &self,
        runs: &[(&[K], &[V])],
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        runs.iter().try_for_each(|(keys, values)| check_values("a run", keys.len(), values.len()))?;
        check_values("out", out.0.len(), out.1.len())?;
        check_sum(runs.iter().map(|run| run.0.len()), out.0.len())?;
        match self.backend::<K>() {
            Backend::Cpu(cpu) => cpu.merge_many_pairs(runs, out),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => on_gpu!(K as G => {
                let runs: Vec<(&[G], &[V])> = runs.iter().map(|run| (cast_slice(run.0), run.1)).collect();
                gpu.merge_many_pairs_host::<G, V>(&runs, (cast_slice_mut(out.0), out.1))
            }),
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

/// Checks that `out` is as long as all runs together.
fn check_sum(runs: impl Iterator<Item = usize>, out: usize) -> Result<(), Error> {
    // The same run may be there many times, so that the sum is of no memory that there is.
    check_length("out", runs.fold(0, usize::saturating_add), out, "the runs' keys in all")
}

/// Checks that there is a value for each key.
pub(crate) fn check_values(what: &'static str, keys: usize, values: usize) -> Result<(), Error> {
    if values == keys { Ok(()) } else { Err(Error::ValuesMismatch { what, keys, values }) }
}

/// Checks the numbers of offsets of a ragged batch against each other and returns the number of pairs.
pub(crate) fn check_offset_counts(a: usize, b: usize) -> Result<usize, Error> {
    if a != b {
        return Err(Error::OffsetsMismatch { a, b });
    }
    a.checked_sub(1).ok_or(Error::NoOffsets)
}

/// Checks the offsets of `keys` keys: from 0, never down, to the end. There is at least one.
pub(crate) fn check_offsets(what: &'static str, offsets: &[usize], keys: usize) -> Result<(), Error> {
    let (&first, &last) = offsets.first().zip(offsets.last()).ok_or(Error::NoOffsets)?;
    if first != 0 {
        return Err(Error::FirstOffset { what, found: first });
    }
    if let Some(i) = offsets.windows(2).position(|pair| pair[1] < pair[0]) {
        return Err(Error::DescendingOffsets { what, index: i + 1, found: offsets[i + 1], before: offsets[i] });
    }
    if last == keys { Ok(()) } else { Err(Error::LastOffset { what, found: last, expected: keys }) }
}

/// Checks the lengths and offsets of a ragged batch and returns the number of pairs. `a` and `b` are a number of keys
/// and offsets.
pub(crate) fn check_ragged(a: (usize, &[usize]), b: (usize, &[usize]), out: usize) -> Result<usize, Error> {
    let pairs = check_offset_counts(a.1.len(), b.1.len())?;
    check_offsets("a", a.1, a.0)?;
    check_offsets("b", b.1, b.0)?;
    check_length("out", a.0 + b.0, out, "|a| + |b|")?;
    Ok(pairs)
}

fn threads(count: usize) -> String {
    if count == 1 { "1 CPU thread".to_owned() } else { format!("{count} CPU threads") }
}
