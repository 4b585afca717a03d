//! Lower and upper bounds of sorted needles in sorted keys.

use super::Engine;
#[cfg(feature = "gpu")]
use super::Work;
use super::check::check_length;
#[cfg(feature = "gpu")]
use crate::Bound;
use crate::cpu;
use crate::index::check_index_range;
use crate::{Error, Index, Key, Timing};
#[cfg(feature = "gpu")]
use bytemuck::cast_slice;

impl Engine {
    /// Sets `bounds` to how many of the `keys` are less than each of the `needles`, as `u32` or `u64`. Both are
    /// ascending.
    ///
    /// The bound is the index of the first key that is not less than the needle, as C++'s `std::lower_bound` and
    /// [`partition_point`](slice::partition_point) find it.
    ///
    /// Whether `needles` and `keys` are ascending is not checked. If they are not, the call still returns, but the
    /// bounds are unspecified.
    ///
    /// Keys for which a GPU has no kernels are handled by the CPU, also by an engine of GPUs. Of several GPUs the first
    /// one does the work.
    ///
    /// # Complexity
    /// O(m log(n / m)) time on one thread for m needles, if these are at even distances among n keys, and never more
    /// than O(m log n). There is no scratch memory.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if there are not as many bounds as needles.
    /// - [`Error::TooManyKeys`] if there are 2^32 keys or more, and the bounds are `u32`.
    /// - [`Error::Threads`] if the system refuses to start the engine's threads.
    /// - [`Error::OutOfDeviceMemory`] if the GPU has not enough memory, and [`Error::Device`] if it fails.
    ///
    /// ```
    /// let (engine, mut bounds) = (merge_host::Engine::auto(), [0u32; 3]);
    /// engine.lower_bounds(&[0, 4, 9], &[1, 4, 4, 6], &mut bounds)?;
    /// assert_eq!(bounds, [0, 1, 4]);
    /// engine.upper_bounds(&[0, 4, 9], &[1, 4, 4, 6], &mut bounds)?;
    /// assert_eq!(bounds, [0, 3, 4]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn lower_bounds<K: Key, I: Index>(&self, needles: &[K], keys: &[K], bounds: &mut [I]) -> Result<Timing, Error> {
        self.bounds(true, needles, keys, bounds)
    }

    /// Sets `bounds` to how many of the `keys` are less than or equal to each of the `needles`. Otherwise as
    /// [`lower_bounds`](Self::lower_bounds).
    ///
    /// # Errors
    /// Those of [`lower_bounds`](Self::lower_bounds).
    pub fn upper_bounds<K: Key, I: Index>(&self, needles: &[K], keys: &[K], bounds: &mut [I]) -> Result<Timing, Error> {
        self.bounds(false, needles, keys, bounds)
    }

    fn bounds<K: Key, I: Index>(
        &self,
        lower: bool,
        needles: &[K],
        keys: &[K],
        bounds: &mut [I],
    ) -> Result<Timing, Error> {
        check_length("bounds", needles.len(), bounds.len(), "|needles|")?;
        // A bound is at most the number of keys, which has to be a value of the type.
        check_index_range::<I>(keys.len().saturating_add(1))?;
        #[cfg(feature = "gpu")]
        if let Some(gpu) = self.one_gpu_for::<K>(&Work::merge::<K>(needles.len() + keys.len()))? {
            let bound = if lower { Bound::Lower } else { Bound::Upper };
            return gpu.bounds_host::<K::OnGpu, I>(bound, cast_slice(needles), cast_slice(keys), bounds);
        }
        // As many threads as needles are worth, whatever the number of keys.
        self.workers.merge(needles.len(), |threads| cpu::bounds::bounds(lower, needles, keys, bounds, threads))
    }
}
