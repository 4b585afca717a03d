//! Sorts that keep the first of equal keys.

use super::Engine;
#[cfg(feature = "gpu")]
use super::Work;
use super::check::check_values;
#[cfg(feature = "gpu")]
use crate::cpu::RunMut;
use crate::cpu::{sort, sort_pairs};
use crate::unique::unique_on;
use crate::{Error, Key, SortOrder, Timing};
use bytemuck::{Pod, cast_slice_mut};

impl Engine {
    /// Sorts `keys` in the given order and moves the first of equal keys to the front, sorted. Returns how many these
    /// are, and what is behind them is unspecified. Two keys are equal if their bits are: −0.0 differs from 0.0.
    ///
    /// A GPU downloads the keys that are kept, and no others. Several GPUs sort the keys, and the CPU leaves the equal
    /// ones out.
    ///
    /// # Complexity
    /// That of [`sort_with`](Self::sort_with).
    ///
    /// # Errors
    /// Those of [`sort_with`](Self::sort_with).
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let mut keys = [4, 1, 6, 1, 6, 6];
    /// let (count, _) = Engine::auto().sort_unique(SortOrder::Descending, &mut keys)?;
    /// assert_eq!(keys[..count], [6, 4, 1]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn sort_unique<K: Key>(&self, order: SortOrder, keys: &mut [K]) -> Result<(usize, Timing), Error> {
        #[cfg(feature = "gpu")]
        if let Some(gpus) = self.gpu_for::<K>(&Work::sort::<K>(keys.len()))? {
            if let Some(gpu) = gpus.only() {
                return gpu.sort_unique_host(self.options(order), RunMut::of_keys(keys).on_gpu());
            }
            let sorted = gpus.sort_host(self.options(order), RunMut::of_keys(keys).on_gpu())?;
            return self.unique_after(sorted, keys, &mut [], 0);
        }
        let mut count = 0;
        let timing = self.workers.sort(keys.len(), |threads| {
            sort::sort_keys(order, keys, threads)?;
            count = unique_on(threads, keys, &mut [], 0, None);
            Ok(())
        })?;
        Ok((count, timing))
    }

    /// As [`sort_unique`](Self::sort_unique), with a value for each key: of equal keys, the value of the first one is
    /// kept. The value of `keys[i]` is `values[i]`, before and after.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if `keys` and `values` have different lengths, and those of
    /// [`sort_with`](Self::sort_with).
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let (mut keys, mut values) = ([4, 1, 6, 1], [0u32, 1, 2, 3]);
    /// let (count, _) = Engine::auto().sort_unique_pairs(SortOrder::Ascending, &mut keys, &mut values)?;
    /// assert_eq!((&keys[..count], &values[..count]), (&[1, 4, 6][..], &[1, 0, 2][..]));
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn sort_unique_pairs<K: Key, V: Pod + Send + Sync>(
        &self,
        order: SortOrder,
        keys: &mut [K],
        values: &mut [V],
    ) -> Result<(usize, Timing), Error> {
        check_values("the input", keys.len(), values.len())?;
        #[cfg(feature = "gpu")]
        if let Some(gpus) = self.gpu_for::<K>(&Work::sort::<K>(keys.len()).with_values(size_of::<V>()))? {
            if let Some(gpu) = gpus.only() {
                return gpu.sort_unique_host(self.options(order), RunMut::new((&mut *keys, &mut *values)).on_gpu());
            }
            let sorted = gpus.sort_host(self.options(order), RunMut::new((&mut *keys, &mut *values)).on_gpu())?;
            return self.unique_after(sorted, keys, cast_slice_mut(values), size_of::<V>());
        }
        let mut count = 0;
        let timing = self.workers.sort(keys.len(), |threads| {
            sort_pairs::sort_pairs(order, keys, values, threads)?;
            count = unique_on(threads, keys, cast_slice_mut(values), size_of::<V>(), None);
            Ok(())
        })?;
        Ok((count, timing))
    }

    /// Leaves out equal keys after a sort on several GPUs, which took that time.
    #[cfg(feature = "gpu")]
    fn unique_after<K: Key>(
        &self,
        sorted: Timing,
        keys: &mut [K],
        payload: &mut [u8],
        width: usize,
    ) -> Result<(usize, Timing), Error> {
        let mut count = 0;
        let timing =
            self.workers.merge(keys.len(), |threads| count = unique_on(threads, keys, payload, width, None))?;
        Ok((count, Timing { compute: sorted.compute + timing.compute, ..sorted }))
    }
}
