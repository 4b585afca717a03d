//! Merges of two or more runs into one.

use super::check::{check_all_runs, check_kernel, check_two_runs};
use super::{Engine, On, Work};
use crate::cpu::{Run, RunMut, memory, merge_many, merge_path, reference};
use crate::{Elements, ElementsMut, Error, Key, MergeKernel, Timing};

impl Engine {
    /// Merges `a` and `b`, both ascending by key, into `out` with the fastest kernel. Stable: equal keys of `a` precede
    /// equal keys of `b`.
    ///
    /// This is [`merge_with`](Self::merge_with) with [`MergeKernel::Auto`].
    ///
    /// # Errors
    /// The errors of [`merge_with`](Self::merge_with), except [`Error::KeysAlone`].
    ///
    /// ```
    /// let mut out = [0; 5];
    /// merge_host::Engine::auto().merge(&[1, 4, 6], &[2, 4], &mut out)?;
    /// assert_eq!(out, [1, 2, 4, 4, 6]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge<K: Key, V: Copy + Send + Sync>(
        &self,
        a: impl Elements<K, V>,
        b: impl Elements<K, V>,
        out: impl ElementsMut<K, V>,
    ) -> Result<Timing, Error> {
        self.merge_with(MergeKernel::Auto, a, b, out)
    }

    /// Merges `a` and `b`, both ascending by key, into `out` with the given kernel. Stable: equal keys of `a` precede
    /// equal keys of `b`, and the elements of each input keep their order.
    ///
    /// The length of `out` is the sum of the lengths of `a` and `b`. The textbook's kernels, [`MergeKernel::Basic`],
    /// [`MergeKernel::Tiled`] and [`MergeKernel::Circular`], merge keys alone.
    ///
    /// # Complexity
    /// O(|a| + |b|) time on one thread, plus O(log min(|a|, |b|)) for each block of the output. There is no scratch
    /// memory.
    ///
    /// # Errors
    /// - [`Error::ValuesMismatch`] if an argument has different numbers of keys and values.
    /// - [`Error::LengthMismatch`] if `out` has another length.
    /// - [`Error::KeysAlone`] if there are values, and the kernel is one of the textbook's.
    /// - [`Error::Threads`] if the system refuses to start the engine's threads.
    /// - [`Error::OutOfDeviceMemory`] if the GPU has not enough memory, and [`Error::Device`] if it fails.
    /// - [`Error::NoKernels`] if the engine is restricted to a GPU that has no kernels for keys of this type.
    ///
    /// ```
    /// use merge_host::{Engine, MergeKernel};
    ///
    /// let engine = Engine::auto();
    /// for kernel in MergeKernel::ALL {
    ///     let mut out = [0; 5];
    ///     engine.merge_with(kernel, &[1, 4, 6], &[2, 4], &mut out)?;
    ///     assert_eq!(out, [1, 2, 4, 4, 6], "{kernel}");
    /// }
    ///
    /// let (a, b) = (([1, 4, 4], ['w', 'x', 'y']), ([2, 4], ['p', 'q']));
    /// let (mut keys, mut values) = ([0; 5], [' '; 5]);
    /// engine.merge_with(MergeKernel::MergePath, (&a.0, &a.1), (&b.0, &b.1), (&mut keys, &mut values))?;
    /// assert_eq!(keys, [1, 2, 4, 4, 4]);
    /// assert_eq!(values, ['w', 'p', 'x', 'y', 'q']);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_with<K: Key, V: Copy + Send + Sync>(
        &self,
        kernel: MergeKernel,
        a: impl Elements<K, V>,
        b: impl Elements<K, V>,
        mut out: impl ElementsMut<K, V>,
    ) -> Result<Timing, Error> {
        self.merge_runs(kernel, a.run("a")?, b.run("b")?, out.run_mut("out")?)
    }

    /// [`merge_with`](Self::merge_with), compiled once for all forms of its arguments.
    fn merge_runs<K: Key, V: Copy + Send + Sync>(
        &self,
        kernel: MergeKernel,
        a: Run<K, V>,
        b: Run<K, V>,
        out: RunMut<K, V>,
    ) -> Result<Timing, Error> {
        check_two_runs(a.keys.len(), b.keys.len(), out.keys.len())?;
        let takes_values = matches!(kernel, MergeKernel::Auto | MergeKernel::MergePath);
        check_kernel(takes_values || size_of::<V>() == 0, kernel.name())?;
        let place = self.place_for::<K>(&Work::merge::<K>(out.keys.len()).with_values(size_of::<V>()))?;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => gpus.merge_host(kernel, a, b, out),
            On::Cpu(workers) => workers.merge(out.keys.len(), |threads| match kernel {
                MergeKernel::Basic => reference::basic::merge(a.keys, b.keys, out.keys, threads),
                MergeKernel::Tiled => reference::tiled::merge(a.keys, b.keys, out.keys, threads),
                MergeKernel::Circular => reference::circular::merge(a.keys, b.keys, out.keys, threads),
                MergeKernel::Auto | MergeKernel::MergePath => merge_path::merge(a, b, out, threads),
            }),
        }?;
        Ok(place.timing(steps))
    }

    /// Merges any number of runs, each ascending by key, into `out`. Stable: equal keys come in the order of their
    /// runs, and the elements of each run keep their order.
    ///
    /// The length of `out` is the sum of the lengths of all runs. A run may be empty, and `runs` may be empty.
    ///
    /// # Complexity
    /// O(n log k) time for n keys in k runs on one thread, less if the runs differ in length. Up to 32 runs are merged
    /// in one pass over memory, up to 32² in two, and so on. A CPU engine needs 256 KiB of scratch memory for each
    /// thread, and for n elements if there is more than one pass. A GPU engine always needs the latter; it merges more
    /// than 2^32 keys two runs at a time.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`] if there is not enough scratch memory, and the errors of
    /// [`merge_with`](Self::merge_with), except [`Error::KeysAlone`].
    ///
    /// ```
    /// let (engine, mut keys) = (merge_host::Engine::auto(), [0; 7]);
    /// engine.merge_many(&[&[1, 4, 6][..], &[2, 4], &[], &[0, 9]], &mut keys)?;
    /// assert_eq!(keys, [0, 1, 2, 4, 4, 6, 9]);
    ///
    /// let runs = [vec![3, 8], vec![2]];
    /// engine.merge_many(&runs, &mut keys[..3])?;
    /// assert_eq!(keys[..3], [2, 3, 8]);
    ///
    /// let (mut keys, mut values) = ([0; 4], [""; 4]);
    /// let runs = [(&[2, 5], &["a2", "a5"]), (&[1, 5], &["b1", "b5"])];
    /// engine.merge_many(&runs, (&mut keys, &mut values))?;
    /// assert_eq!(keys, [1, 2, 5, 5]);
    /// assert_eq!(values, ["b1", "a2", "a5", "b5"]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_many<K: Key, V: Copy + Send + Sync>(
        &self,
        runs: &[impl Elements<K, V> + Sync],
        mut out: impl ElementsMut<K, V>,
    ) -> Result<Timing, Error> {
        let mut all = memory::reserved(runs.len())?;
        runs.iter().try_for_each(|run| memory::push(&mut all, run.run("a run")?))?;
        self.merge_all_runs(&all, out.run_mut("out")?)
    }

    /// [`merge_many`](Self::merge_many), compiled once for all forms of its arguments.
    fn merge_all_runs<K: Key, V: Copy + Send + Sync>(
        &self,
        runs: &[Run<K, V>],
        out: RunMut<K, V>,
    ) -> Result<Timing, Error> {
        check_all_runs(runs.iter().map(|run| run.keys.len()), out.keys.len())?;
        let place = self.place_for::<K>(&Work::merge::<K>(out.keys.len()).with_values(size_of::<V>()))?;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => gpus.merge_many_host(runs, out),
            On::Cpu(workers) => {
                workers.try_merge(out.keys.len(), |threads| merge_many::merge(runs.iter().copied(), out, threads))
            }
        }?;
        Ok(place.timing(steps))
    }
}
