//! Set operations on sorted arrays.

use super::{Engine, On, Work};
use crate::cpu;
use crate::{Error, Key, SetOperation, Timing};
#[cfg(feature = "gpu")]
use bytemuck::{allocation::cast_vec, cast_slice};

impl Engine {
    /// Replaces the contents of `out` by the keys of `a` and `b` that `operation` keeps, in ascending order.
    ///
    /// `a` and `b` must be ascending. Both are multisets: for a key that occurs m times in `a` and n times in `b`,
    /// [`SetOperation`] defines how often it occurs in `out`. Two keys are equal if their bits are: −0.0 differs from
    /// 0.0, and NaNs with different payloads differ.
    ///
    /// Of several GPUs the first one does the work.
    ///
    /// Whether `a` and `b` are ascending is not checked ([`first_unsorted`](crate::first_unsorted) does). If they are
    /// not, the call still returns, and `out` holds unspecified keys of both.
    ///
    /// # Complexity
    /// O(|a| + |b|) time on one thread. Threads share the work evenly, even if many keys are equal. `out` is
    /// reallocated if its capacity is less than the result's length, to exactly that length. There is no other scratch
    /// memory.
    ///
    /// # Errors
    /// - [`Error::OutOfHostMemory`] if there is not enough memory for the result.
    /// - [`Error::Threads`] if the system refuses to start the engine's threads.
    /// - [`Error::OutOfDeviceMemory`] if the GPU has not enough memory, and [`Error::Device`] if it fails.
    /// - [`Error::NoKernels`] if the engine is restricted to a GPU that has no kernels for keys of this type.
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
        let place = self.place_for::<K>(&Work::set_operation::<K>(a.len() + b.len()).on_one_gpu())?;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => {
                let gpu = gpus.gpu(0);
                let (keys, steps) = gpu.set_operation_host::<K::OnGpu>(
                    (operation, K::gpu_coding().into()),
                    cast_slice(a),
                    cast_slice(b),
                )?;
                *out = cast_vec(keys);
                steps
            }
            On::Cpu(workers) => workers.try_merge(a.len() + b.len(), |threads| {
                cpu::set_operation::set_operation(operation, a, b, out, threads)
            })?,
        };
        Ok(place.timing(steps))
    }
}
