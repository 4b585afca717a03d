//! Merges of two or more runs into one.

use super::Engine;
#[cfg(feature = "gpu")]
use super::Work;
use super::check::{check_all_runs, check_two_runs, check_values, check_values_of_merge};
use crate::cpu::{Run, RunMut, merge_many, merge_path, reference};
use crate::{Error, Key, MergeKernel, Timing};

impl Engine {
    /// Merges `a` and `b`, both ascending, into `out` with the fastest kernel. Stable: of equal keys, those of `a` come
    /// first.
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

    /// Merges `a` and `b`, both ascending, into `out` with the given kernel. Stable: of equal keys, those of `a` come
    /// first.
    ///
    /// `out` has `a.len() + b.len()` keys.
    ///
    /// Whether `a` and `b` are ascending is not checked ([`first_unsorted`](crate::first_unsorted) does). If they are
    /// not, the call still returns and touches no other memory, but which keys `out` then holds, and in which order, is
    /// unspecified.
    ///
    /// # Complexity
    /// O(|a| + |b|) time on one thread, plus O(log min(|a|, |b|)) for each block of the output. There is no scratch
    /// memory.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if `out` has another length.
    /// - [`Error::Threads`] if the system refuses to start the engine's threads.
    /// - [`Error::OutOfDeviceMemory`] if the GPU has not enough memory, and [`Error::Device`] if it fails.
    /// - [`Error::NoKernels`] if the engine is restricted to a GPU that has no kernels for keys of this type.
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
        check_two_runs(a.len(), b.len(), out.len())?;
        #[cfg(feature = "gpu")]
        if let Some(gpu) = self.gpu_for::<K>(&Work::merge::<K>(out.len()))? {
            return gpu.merge_host(
                kernel,
                Run::of_keys(a).on_gpu(),
                Run::of_keys(b).on_gpu(),
                RunMut::of_keys(out).on_gpu(),
            );
        }
        self.workers.merge(out.len(), |threads| match kernel {
            MergeKernel::Basic => reference::basic::merge(a, b, out, threads),
            MergeKernel::Tiled => reference::tiled::merge(a, b, out, threads),
            MergeKernel::Circular => reference::circular::merge(a, b, out, threads),
            MergeKernel::Auto | MergeKernel::MergePath => {
                merge_path::merge(Run::of_keys(a), Run::of_keys(b), RunMut::of_keys(out), threads);
            }
        })
    }

    /// Merges the key-value pairs of `a` and `b`, both ascending by key, into `out`. Stable: of equal keys, the pairs
    /// of `a` come first, and the pairs of each input keep their order.
    ///
    /// Each of `a`, `b` and `out` is a slice of keys and a slice of values; the value of key `i` has index `i`. `out`
    /// has `a.0.len() + b.0.len()` of both. A value may be anything that implements `Copy`: an index, a record, an
    /// array of bytes, a borrowed string.
    ///
    /// A CPU engine moves values of any size together with their keys. A GPU engine does so with numbers of 4 and 8
    /// bytes; for other values it merges indices, and the values are gathered on the host.
    ///
    /// If `a` or `b` is not ascending, `out` holds unspecified pairs of both.
    ///
    /// # Complexity
    /// That of [`merge_with`](Self::merge_with).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has different numbers of keys and values, and the errors of
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
    pub fn merge_pairs<K: Key, V: Copy + Send + Sync>(
        &self,
        a: (&[K], &[V]),
        b: (&[K], &[V]),
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        check_values_of_merge((a.0.len(), a.1.len()), (b.0.len(), b.1.len()), (out.0.len(), out.1.len()))?;
        check_two_runs(a.0.len(), b.0.len(), out.0.len())?;
        let (a, b, out) = (Run::new(a), Run::new(b), RunMut::new(out));
        #[cfg(feature = "gpu")]
        if let Some(gpu) = self.gpu_for::<K>(&Work::merge::<K>(out.keys.len()).with_values(size_of::<V>()))? {
            return gpu.merge_host(MergeKernel::Auto, a.on_gpu(), b.on_gpu(), out.on_gpu());
        }
        self.workers.merge(out.keys.len(), |threads| merge_path::merge(a, b, out, threads))
    }

    /// Merges any number of runs, each ascending, into `out`. Stable: of equal keys, those of an earlier run come
    /// first.
    ///
    /// The length of `out` is the sum of the lengths of `runs`. A run may be empty, and `runs` may be empty.
    ///
    /// Whether the runs are ascending is not checked ([`first_unsorted`](crate::first_unsorted) does). If they are not,
    /// the call still returns and touches no other memory, but which keys `out` then holds, and in which order, is
    /// unspecified.
    ///
    /// # Complexity
    /// O(n log k) time for n keys in k runs on one thread, less if the runs differ in length. Up to 32 runs are merged
    /// in one pass over memory, up to 32² in two, and so on. A CPU engine needs 256 KiB of scratch memory for each
    /// thread, and for n keys if there is more than one pass. A GPU engine always needs the latter; it merges more than
    /// 2^32 keys two runs at a time.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `out` has another length, [`Error::OutOfHostMemory`] if there is not enough scratch
    /// memory, and the errors of [`merge_with`](Self::merge_with).
    ///
    /// ```
    /// let mut out = [0; 7];
    /// merge_host::Engine::auto().merge_many(&[&[1, 4, 6], &[2, 4], &[], &[0, 9]], &mut out)?;
    /// assert_eq!(out, [0, 1, 2, 4, 4, 6, 9]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_many<K: Key>(&self, runs: &[&[K]], out: &mut [K]) -> Result<Timing, Error> {
        check_all_runs(runs.iter().map(|run| run.len()), out.len())?;
        #[cfg(feature = "gpu")]
        if let Some(gpu) = self.gpu_for::<K>(&Work::merge::<K>(out.len()))? {
            let runs: Vec<_> = runs.iter().map(|run| Run::of_keys(run).on_gpu()).collect();
            return gpu.merge_many_host(&runs, RunMut::of_keys(out).on_gpu());
        }
        let (runs, out) = (runs.iter().map(|run| Run::of_keys(run)), RunMut::of_keys(out));
        self.workers.try_merge(out.keys.len(), |threads| merge_many::merge(runs, out, threads))
    }

    /// Merges the key-value pairs of any number of runs, each ascending by key, into `out`. Stable: of equal keys, the
    /// pairs of an earlier run come first, and the pairs of each run keep their order.
    ///
    /// Each of `runs`, and `out`, is a slice of keys and a slice of values; the value of key `i` has index `i`. Lengths
    /// are as in [`merge_many`](Self::merge_many), and values as in [`merge_pairs`](Self::merge_pairs), except that a
    /// CPU engine moves a value of more than 16 bytes only once in each pass.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has different numbers of keys and values, and the errors of
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
    pub fn merge_many_pairs<K: Key, V: Copy + Send + Sync>(
        &self,
        runs: &[(&[K], &[V])],
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        runs.iter().try_for_each(|(keys, values)| check_values("a run", keys.len(), values.len()))?;
        check_values("out", out.0.len(), out.1.len())?;
        check_all_runs(runs.iter().map(|run| run.0.len()), out.0.len())?;
        #[cfg(feature = "gpu")]
        if let Some(gpu) = self.gpu_for::<K>(&Work::merge::<K>(out.0.len()).with_values(size_of::<V>()))? {
            let runs: Vec<_> = runs.iter().map(|run| Run::new(*run).on_gpu()).collect();
            return gpu.merge_many_host(&runs, RunMut::new(out).on_gpu());
        }
        let (runs, out) = (runs.iter().map(|run| Run::new(*run)), RunMut::new(out));
        self.workers.try_merge(out.keys.len(), |threads| merge_many::merge(runs, out, threads))
    }
}
