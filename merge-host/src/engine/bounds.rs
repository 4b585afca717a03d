//! Lower and upper bounds of sorted needles in sorted keys.

use super::check::check_length;
use super::{Engine, On, Work};
use crate::cpu;
use crate::index::check_index_range;
use crate::{Bound, Error, Index, Key, Timing};
#[cfg(feature = "gpu")]
use bytemuck::cast_slice;

impl Engine {
    /// Sets `bounds` to the lower or upper bound of each of the `needles` among the `keys`, as `u32`, `u64` or `usize`.
    /// Both are ascending.
    ///
    /// A lower bound is the number of keys less than the needle. An upper bound is the number of keys less than or
    /// equal to the needle: see [`Bound`]. [`partition_point`](slice::partition_point) finds the same.
    ///
    /// Whether `needles` and `keys` are ascending is not checked. If they are not, the call still returns, but the
    /// bounds are unspecified. Of several GPUs the first one does the work.
    ///
    /// # Complexity
    /// O(m log(n / m)) time on one thread for m needles, if these are at even distances among n keys, and never more
    /// than O(m log n). There is no scratch memory.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if the numbers of bounds and needles differ.
    /// - [`Error::TooManyKeys`] if there are 2^32 keys or more, and the bounds are `u32`.
    /// - [`Error::Threads`] if the system refuses to start the engine's threads.
    /// - [`Error::OutOfDeviceMemory`] if the GPU has not enough memory, and [`Error::Device`] if it fails.
    /// - [`Error::NoKernels`] if the engine is restricted to a GPU that has no kernels for keys of this type.
    ///
    /// ```
    /// use merge_host::{Bound, Engine};
    ///
    /// let (engine, mut bounds) = (Engine::auto(), [0u32; 3]);
    /// engine.bounds(Bound::Lower, &[0, 4, 9], &[1, 4, 4, 6], &mut bounds)?;
    /// assert_eq!(bounds, [0, 1, 4]);
    /// engine.bounds(Bound::Upper, &[0, 4, 9], &[1, 4, 4, 6], &mut bounds)?;
    /// assert_eq!(bounds, [0, 3, 4]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn bounds<K: Key, I: Index>(
        &self,
        bound: Bound,
        needles: &[K],
        keys: &[K],
        bounds: &mut [I],
    ) -> Result<Timing, Error> {
        check_length("bounds", needles.len(), bounds.len(), "|needles|")?;
        // A bound is at most the number of keys, which has to be a value of the type.
        check_index_range::<I>(keys.len().saturating_add(1))?;
        let place = self.place_for::<K>(&Work::merge::<K>(needles.len() + keys.len()).on_one_gpu())?;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => gpus.gpu(0).bounds_host::<K::OnGpu, I>(
                (bound, K::gpu_coding().into()),
                cast_slice(needles),
                cast_slice(keys),
                bounds,
            ),
            // The number of threads depends on the number of needles only.
            On::Cpu(workers) => workers.merge(needles.len(), |threads| {
                cpu::bounds::bounds(bound == Bound::Lower, needles, keys, bounds, threads);
            }),
        }?;
        Ok(place.timing(steps))
    }
}
