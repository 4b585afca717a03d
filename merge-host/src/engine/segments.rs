//! Sorts of the segments of an array.

use super::check::check_offsets;
use super::{Engine, On, Work};
use crate::cpu::{RunMut, sort_segments};
use crate::key_order::KeyOrder;
use crate::{ElementsMut, Error, Key, SortOptions, Timing};

impl Engine {
    /// Sorts each segment of `elements`, keys alone or with values, separately, as `options` say: a
    /// [`SortOrder`](crate::SortOrder) or [`SortOptions`]. Stable: values of equal keys of a segment keep their order,
    /// also in a descending sort.
    ///
    /// N segments are given by N + 1 offsets: segment `s` is the elements with the indices `offsets[s]..offsets[s +
    /// 1]`. The first offset must be 0, offsets must not decrease, and the last must be the number of elements. A
    /// segment may be empty, and its length is limited only by memory.
    ///
    /// Of several GPUs, each sorts a range of whole segments.
    ///
    /// # Complexity
    /// O(n + N) time on one thread. Threads share the work evenly, whether there is one long segment or millions of
    /// short ones. The scratch memory of each thread has the length of the longest segment that the thread sorts.
    ///
    /// # Errors
    /// [`Error::NoOffsets`], [`Error::FirstOffset`], [`Error::DescendingOffsets`] or [`Error::LastOffset`] if the
    /// offsets are not as described above, and the errors of [`sort_with`](Self::sort_with).
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let mut keys = [9, 3, 5, /**/ /**/ 2, 1, /**/ 7];
    /// Engine::auto().sort_segments(SortOrder::Ascending, &mut keys, &[0, 3, 3, 5, 6])?;
    /// assert_eq!(keys, [3, 5, 9, /**/ /**/ 1, 2, /**/ 7]);
    ///
    /// let (mut keys, mut values) = ([2, 7, 2, /**/ 5, 6], ["first 2", "7", "second 2", /**/ "5", "6"]);
    /// Engine::auto().sort_segments(SortOrder::Descending, (&mut keys, &mut values), &[0, 3, 5])?;
    /// assert_eq!(keys, [7, 2, 2, /**/ 6, 5]);
    /// assert_eq!(values, ["7", "first 2", "second 2", /**/ "6", "5"]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn sort_segments<K: Key, V: Copy + Send + Sync>(
        &self,
        options: impl Into<SortOptions>,
        mut elements: impl ElementsMut<K, V>,
        offsets: &[usize],
    ) -> Result<Timing, Error> {
        self.sort_segments_of_run(options.into().order, elements.run_mut("the input")?, offsets)
    }

    /// [`sort_segments`](Self::sort_segments), compiled once for all forms of its arguments.
    fn sort_segments_of_run<K: Key, V: Copy + Send + Sync>(
        &self,
        order: KeyOrder,
        run: RunMut<K, V>,
        offsets: &[usize],
    ) -> Result<Timing, Error> {
        check_offsets("the input", offsets, run.keys.len())?;
        let work = Work::sort_segments::<K>(run.keys.len(), offsets.len() - 1).with_values(size_of::<V>());
        let place = self.place_for::<K>(&work)?;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => gpus.sort_segments_host(order.coding::<K>().into(), run.on_gpu(), offsets),
            On::Cpu(workers) => {
                workers.sort(sort_segments::cost(offsets), |threads| sort_segments::sort(order, run, offsets, threads))
            }
        }?;
        Ok(place.timing(steps))
    }
}
