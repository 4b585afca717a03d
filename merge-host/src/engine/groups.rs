//! Groups of equal adjacent keys, such as in a sorted array.

use super::{Engine, On, Work};
use crate::cpu::{self, Run};
use crate::{Elements, Error, Key, Reduction, Summand, Timing};
#[cfg(feature = "gpu")]
use bytemuck::{allocation::cast_vec, cast_slice};

impl Engine {
    /// Replaces the contents of `out` by the first key of each group of equal keys that are next to each other: of
    /// sorted keys, each key once. Two keys are equal if their bits are: −0.0 differs from 0.0.
    ///
    /// [`unique`](crate::unique()) does so in place and on the CPU, with a payload.
    ///
    /// Of several GPUs the first one does the work.
    ///
    /// # Complexity
    /// O(n) time on one thread. Threads share the work evenly, even if many keys are equal. `out` is reallocated if its
    /// capacity is less than the number of groups. There is no other scratch memory.
    ///
    /// # Errors
    /// - [`Error::OutOfHostMemory`] if there is not enough memory for the result.
    /// - [`Error::Threads`] if the system refuses to start the engine's threads.
    /// - [`Error::OutOfDeviceMemory`] if the GPU has not enough memory, and [`Error::Device`] if it fails.
    /// - [`Error::NoKernels`] if the engine is restricted to a GPU that has no kernels for keys of this type.
    ///
    /// ```
    /// let mut out = Vec::new();
    /// merge_host::Engine::auto().unique(&[1, 1, 4, 6, 6, 6], &mut out)?;
    /// assert_eq!(out, [1, 4, 6]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn unique<K: Key>(&self, keys: &[K], out: &mut Vec<K>) -> Result<Timing, Error> {
        let place = self.place_for::<K>(&Work::set_operation::<K>(keys.len()).on_one_gpu())?;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => {
                let (groups, steps) = gpus.gpu(0).unique_host::<K::OnGpu>(K::gpu_coding().into(), cast_slice(keys))?;
                *out = cast_vec(groups);
                steps
            }
            On::Cpu(workers) => workers.try_merge(keys.len(), |threads| {
                cpu::groups::reduce(keys, |_| (), |(), ()| (), out, &mut Vec::new(), threads)
            })?,
        };
        Ok(place.timing(steps))
    }

    /// Replaces the first of `out` by the first key of each group of equal keys that are next to each other, and the
    /// second by the numbers of the groups' keys: a run-length encoding. Otherwise as [`unique`](Self::unique).
    ///
    /// # Errors
    /// The errors of [`unique`](Self::unique).
    ///
    /// ```
    /// let (mut out, mut lengths) = (Vec::new(), Vec::new());
    /// merge_host::Engine::auto().run_lengths(&[1, 1, 4, 6, 6, 6], (&mut out, &mut lengths))?;
    /// assert_eq!((out, lengths), (vec![1, 4, 6], vec![2, 1, 3]));
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn run_lengths<K: Key>(
        &self,
        keys: &[K],
        (out, lengths): (&mut Vec<K>, &mut Vec<u64>),
    ) -> Result<Timing, Error> {
        let place = self.place_for::<K>(&Work::set_operation::<K>(keys.len()).on_one_gpu())?;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => {
                let (groups, found, steps) =
                    gpus.gpu(0).run_lengths_host::<K::OnGpu>(K::gpu_coding().into(), cast_slice(keys))?;
                *lengths = found;
                *out = cast_vec(groups);
                steps
            }
            On::Cpu(workers) => workers.try_merge(keys.len(), |threads| {
                cpu::groups::reduce(keys, |_| 1, |length, more| length + more, out, lengths, threads)
            })?,
        };
        Ok(place.timing(steps))
    }

    /// Replaces the first of `out` by the first key of each group of equal keys that are next to each other, and the
    /// second by the `reduction` of the groups' values. `from` is keys with values. Otherwise as
    /// [`unique`](Self::unique).
    ///
    /// The sum of floats is rounded at each addition. The order of additions depends on the kind of processor and on
    /// the beginnings of groups. It is the same in every call and for every number of threads. The bits of a sum that
    /// is a NaN are unspecified.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if the numbers of keys and values differ, and the errors of [`unique`](Self::unique).
    ///
    /// ```
    /// use merge_host::{Engine, Reduction};
    ///
    /// let (keys, values) = ([1, 1, 4, 6, 6, 6], [0.5, 2.0, 3.0, 1.0, -1.0, 9.0]);
    /// let (engine, mut out, mut totals) = (Engine::auto(), Vec::new(), Vec::new());
    /// engine.reduce_by_key(Reduction::Sum, (&keys, &values), (&mut out, &mut totals))?;
    /// assert_eq!((out.as_slice(), totals.as_slice()), (&[1, 4, 6][..], &[2.5, 3.0, 9.0][..]));
    /// engine.reduce_by_key(Reduction::Min, (&keys, &values), (&mut out, &mut totals))?;
    /// assert_eq!(totals, [0.5, 3.0, -1.0]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn reduce_by_key<K: Key, V: Summand>(
        &self,
        reduction: Reduction,
        from: impl Elements<K, V>,
        (out, totals): (&mut Vec<K>, &mut Vec<V>),
    ) -> Result<Timing, Error> {
        self.reduce_run(reduction, from.run("keys")?, out, totals)
    }

    /// [`reduce_by_key`](Self::reduce_by_key), compiled once for all forms of its arguments.
    fn reduce_run<K: Key, V: Summand>(
        &self,
        reduction: Reduction,
        Run { keys, values }: Run<K, V>,
        out: &mut Vec<K>,
        totals: &mut Vec<V>,
    ) -> Result<Timing, Error> {
        let work = Work::set_operation::<K>(keys.len()).with_values(size_of::<V>()).on_one_gpu();
        let place = self.place_for::<K>(&work)?;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => {
                let gpu = gpus.gpu(0);
                let (groups, found, steps) =
                    gpu.reduce_by_key_host::<K::OnGpu, V>(reduction, K::gpu_coding().into(), cast_slice(keys), values)?;
                *totals = found;
                *out = cast_vec(groups);
                steps
            }
            On::Cpu(workers) => {
                let combine = |first, second| reduction.combine(first, second);
                workers.try_merge(keys.len(), |threads| {
                    cpu::groups::reduce(keys, |i| values[i], combine, out, totals, threads)
                })?
            }
        };
        Ok(place.timing(steps))
    }
}
