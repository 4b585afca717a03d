//! Sorts of the segments of an array.

use super::Engine;
#[cfg(feature = "gpu")]
use super::Work;
use super::check::{check_offsets, check_values};
use crate::cpu::{RunMut, sort_segments};
use crate::{Error, Key, SortOrder, Timing};

impl Engine {
    /// Sorts each segment of `keys` separately, in the given order. Stable.
    ///
    /// N segments are given by N + 1 offsets: segment `s` is `keys[offsets[s]..offsets[s + 1]]`. The first offset must
    /// be 0, offsets must not decrease, and the last must be `keys.len()`. A segment may be empty, and its length is
    /// limited only by memory.
    ///
    /// Keys for which a GPU has no kernels are sorted by the CPU, also by an engine of GPUs. Of several GPUs, each
    /// sorts a range of whole segments.
    ///
    /// # Complexity
    /// O(n + N) time on one thread. Threads share the work evenly, whether there is one long segment or millions of
    /// short ones. The scratch memory holds, for each thread, as many keys as the longest segment that it sorts.
    ///
    /// # Errors
    /// - [`Error::NoOffsets`], [`Error::FirstOffset`], [`Error::DescendingOffsets`] or [`Error::LastOffset`] if the
    ///   offsets are not as described above.
    /// - [`Error::OutOfHostMemory`] if there is not enough memory.
    /// - [`Error::Threads`] if the system refuses to start the engine's threads.
    /// - [`Error::OutOfDeviceMemory`] if a GPU has not enough memory, and [`Error::Device`] if it fails.
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
        #[cfg(feature = "gpu")]
        if let Some(gpus) = self.gpus_for::<K>(&Work::sort_segments::<K>(keys.len(), offsets.len() - 1))? {
            return gpus.sort_segments_host(order, RunMut::of_keys(keys).on_gpu(), offsets);
        }
        self.workers
            .sort(sort_segments::cost(offsets), |threads| sort_segments::sort_keys(order, keys, offsets, threads))
    }

    /// Sorts the key-value pairs of each segment separately, in the given order. Stable: values of equal keys of a
    /// segment keep their order, also in a descending sort.
    ///
    /// The value of `keys[i]` is `values[i]`, before and after. Offsets are as in
    /// [`sort_segments`](Self::sort_segments), and values as in [`sort_pairs`](Self::sort_pairs).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if `keys` and `values` have different lengths, and the errors of
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
    pub fn sort_segments_pairs<K: Key, V: Copy + Send + Sync>(
        &self,
        order: SortOrder,
        keys: &mut [K],
        values: &mut [V],
        offsets: &[usize],
    ) -> Result<Timing, Error> {
        check_values("the input", keys.len(), values.len())?;
        check_offsets("the input", offsets, keys.len())?;
        #[cfg(feature = "gpu")]
        let work = Work::sort_segments::<K>(keys.len(), offsets.len() - 1).with_values(size_of::<V>());
        #[cfg(feature = "gpu")]
        if let Some(gpus) = self.gpus_for::<K>(&work)? {
            return gpus.sort_segments_host(order, RunMut::new((keys, values)).on_gpu(), offsets);
        }
        let run = RunMut::new((keys, values));
        self.workers
            .sort(sort_segments::cost(offsets), |threads| sort_segments::sort_pairs(order, run, offsets, threads))
    }
}
