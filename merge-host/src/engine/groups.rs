//! Groups of equal keys that are next to each other, such as those of a sorted array.

use super::Engine;
#[cfg(feature = "gpu")]
use super::Work;
use super::check::check_values;
use crate::cpu;
use crate::{Error, Key, Reduction, Summand, Timing};
#[cfg(feature = "gpu")]
use bytemuck::{allocation::cast_vec, cast_slice};

impl Engine {
    /// Replaces the contents of `out` by the first key of each group of equal keys that are next to each other: of
    /// sorted keys, each key once. Two keys are equal if their bits are: −0.0 differs from 0.0.
    ///
    /// [`unique`](crate::unique()) does so in place and on the CPU, with a payload.
    ///
    /// Keys for which a GPU has no kernels are handled by the CPU, also by an engine of GPUs. Of several GPUs the first
    /// one does the work.
    ///
    /// # Complexity
    /// O(n) time on one thread. Threads share the work evenly, even if many keys are equal. `out` is reallocated if its
    /// capacity is less than the number of groups. There is no other scratch memory.
    ///
    /// # Errors
    /// - [`Error::OutOfHostMemory`] if there is not enough memory for the result.
    /// - [`Error::Threads`] if the system refuses to start the engine's threads.
    /// - [`Error::OutOfDeviceMemory`] if the GPU has not enough memory, and [`Error::Device`] if it fails.
    ///
    /// ```
    /// let mut out = Vec::new();
    /// merge_host::Engine::auto().unique(&[1, 1, 4, 6, 6, 6], &mut out)?;
    /// assert_eq!(out, [1, 4, 6]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn unique<K: Key>(&self, keys: &[K], out: &mut Vec<K>) -> Result<Timing, Error> {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = self.one_gpu_for::<K>(&Work::set_operation::<K>(keys.len()))? {
            let (groups, timing) = gpu.unique_host::<K::OnGpu>(cast_slice(keys))?;
            *out = cast_vec(groups);
            return Ok(timing);
        }
        self.workers.try_merge(keys.len(), |threads| {
            cpu::groups::reduce(keys, |_| (), |(), ()| (), out, &mut Vec::new(), threads)
        })
    }

    /// Replaces the contents of `out` by the first key of each group of equal keys that are next to each other, and
    /// those of `lengths` by the numbers of the groups' keys: a run-length encoding. Otherwise as
    /// [`unique`](Self::unique).
    ///
    /// # Errors
    /// Those of [`unique`](Self::unique).
    ///
    /// ```
    /// let (mut out, mut lengths) = (Vec::new(), Vec::new());
    /// merge_host::Engine::auto().run_lengths(&[1, 1, 4, 6, 6, 6], &mut out, &mut lengths)?;
    /// assert_eq!((out, lengths), (vec![1, 4, 6], vec![2, 1, 3]));
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn run_lengths<K: Key>(&self, keys: &[K], out: &mut Vec<K>, lengths: &mut Vec<u64>) -> Result<Timing, Error> {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = self.one_gpu_for::<K>(&Work::set_operation::<K>(keys.len()))? {
            let (groups, found, timing) = gpu.run_lengths_host::<K::OnGpu>(cast_slice(keys))?;
            *lengths = found;
            *out = cast_vec(groups);
            return Ok(timing);
        }
        self.workers.try_merge(keys.len(), |threads| {
            cpu::groups::reduce(keys, |_| 1, |length, more| length + more, out, lengths, threads)
        })
    }

    /// Replaces the contents of `out` by the first key of each group of equal keys that are next to each other, and
    /// those of `totals` by the `reduction` of the groups' values. The value of a key is the element of `values` with
    /// the same index. Otherwise as [`unique`](Self::unique).
    ///
    /// The sum of floats is rounded at each addition. In which order they are added depends on the kind of processor
    /// and on where groups begin, but not on the number of threads nor on anything else that may differ from one call
    /// to the next. If the sum is a NaN, its bits are unspecified.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many values as keys, and those of [`unique`](Self::unique).
    ///
    /// ```
    /// use merge_host::{Engine, Reduction};
    ///
    /// let (keys, values) = ([1, 1, 4, 6, 6, 6], [0.5, 2.0, 3.0, 1.0, -1.0, 9.0]);
    /// let (engine, mut out, mut totals) = (Engine::auto(), Vec::new(), Vec::new());
    /// engine.reduce_by_key(Reduction::Sum, &keys, &values, &mut out, &mut totals)?;
    /// assert_eq!((out.as_slice(), totals.as_slice()), (&[1, 4, 6][..], &[2.5, 3.0, 9.0][..]));
    /// engine.reduce_by_key(Reduction::Min, &keys, &values, &mut out, &mut totals)?;
    /// assert_eq!(totals, [0.5, 3.0, -1.0]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn reduce_by_key<K: Key, V: Summand>(
        &self,
        reduction: Reduction,
        keys: &[K],
        values: &[V],
        out: &mut Vec<K>,
        totals: &mut Vec<V>,
    ) -> Result<Timing, Error> {
        check_values("keys", keys.len(), values.len())?;
        #[cfg(feature = "gpu")]
        if let Some(gpu) = self.one_gpu_for::<K>(&Work::set_operation::<K>(keys.len()).with_values(size_of::<V>()))? {
            let (groups, found, timing) = gpu.reduce_by_key_host::<K::OnGpu, V>(reduction, cast_slice(keys), values)?;
            *totals = found;
            *out = cast_vec(groups);
            return Ok(timing);
        }
        let combine = |first, second| reduction.combine(first, second);
        self.workers
            .try_merge(keys.len(), |threads| cpu::groups::reduce(keys, |i| values[i], combine, out, totals, threads))
    }
}
