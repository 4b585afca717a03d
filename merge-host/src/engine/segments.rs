//! Sorts of the segments of an array, and selections from them.

use super::check::{check_length, check_offsets};
use super::{Engine, On, Work};
use crate::cpu::{Run, RunMut, sort_segments, top_k_segments};
use crate::key_order::KeyOrder;
use crate::{Elements, ElementsMut, Error, Key, SortOptions, Timing};

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

    /// Sets the elements of `out` from element `s * k` on to the first `k` elements of segment `s` of `from` in the
    /// order of `options`, sorted. `options` is a [`SortOrder`](crate::SortOrder) or [`SortOptions`]. Stable: of equal
    /// keys the first ones are taken, and they stay in their order.
    ///
    /// Offsets are as for [`sort_segments`](Self::sort_segments); the rows of a matrix are segments of one length.
    /// `out` has `k` elements for each segment. A segment of fewer elements sets as many elements of its part of `out`
    /// as it has, and the others keep their contents.
    ///
    /// Of several GPUs, each selects from a range of whole segments.
    ///
    /// # Complexity
    /// O(n + N k log k) time on one thread for N segments with n elements. Threads share the work as in
    /// [`sort_segments`](Self::sort_segments). The scratch memory of each thread holds up to twice the elements of the
    /// longest segment that the thread selects from, with an index for each.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `out` has another number of elements, and the errors of
    /// [`sort_segments`](Self::sort_segments). Unless it is an error of memory, of threads or of a GPU, `out` is
    /// unchanged.
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let scores = [0.5, 0.1, 0.9, 0.7, /**/ 0.3, /**/ 0.2, 0.8, 0.4];
    /// let offsets = [0, 4, 5, 8];
    /// let mut best = [0.0; 6];
    /// Engine::auto().top_k_segments(SortOrder::Descending, &scores, &offsets, 2, &mut best)?;
    /// assert_eq!(best, [0.9, 0.7, /**/ 0.3, 0.0, /**/ 0.8, 0.4]);
    ///
    /// let names = ["a", "b", "c", "d", /**/ "e", /**/ "f", "g", "h"];
    /// let mut named = [""; 6];
    /// let out = (&mut best, &mut named);
    /// Engine::auto().top_k_segments(SortOrder::Descending, (&scores, &names), &offsets, 2, out)?;
    /// assert_eq!(named, ["c", "d", /**/ "e", "", /**/ "g", "h"]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn top_k_segments<K: Key, V: Copy + Send + Sync>(
        &self,
        options: impl Into<SortOptions>,
        from: impl Elements<K, V>,
        offsets: &[usize],
        k: usize,
        mut out: impl ElementsMut<K, V>,
    ) -> Result<Timing, Error> {
        let (from, out) = (from.run("the input")?, out.run_mut("out")?);
        self.top_k_segments_of_run(options.into().order, (from, offsets), k, out)
    }

    /// [`top_k_segments`](Self::top_k_segments), compiled once for all forms of its arguments.
    fn top_k_segments_of_run<K: Key, V: Copy + Send + Sync>(
        &self,
        order: KeyOrder,
        (from, offsets): (Run<K, V>, &[usize]),
        k: usize,
        out: RunMut<K, V>,
    ) -> Result<Timing, Error> {
        let n = from.keys.len();
        check_offsets("the input", offsets, n)?;
        let segments = offsets.len() - 1;
        check_length("out", segments.saturating_mul(k), out.keys.len(), "segments * k")?;
        // To select most elements costs what a sort costs.
        let work = match out.keys.len() {
            0 => Work::top_k::<K>(0),
            len if len > n / 2 => Work::sort_segments::<K>(n, segments),
            _ => Work::top_k::<K>(n),
        };
        let place = self.place_for::<K>(&work.with_values(size_of::<V>()))?;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => {
                let (from, out) = (from.on_gpu(), out.on_gpu());
                gpus.top_k_segments_host(order.coding::<K>().into(), (from, offsets), k, out)
            }
            On::Cpu(workers) => workers.sort(sort_segments::cost(offsets), |threads| {
                top_k_segments::select(order, (from, offsets), k, out, threads)
            }),
        }?;
        Ok(place.timing(steps))
    }
}
