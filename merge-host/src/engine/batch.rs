//! Many merges of two runs each.

use super::Engine;
#[cfg(feature = "gpu")]
use super::Work;
use super::check::{check_batch, check_ragged, check_values_of_merge};
use crate::cpu::{Run, RunMut, merge_batch, merge_ragged};
use crate::{Error, Key, Timing};

impl Engine {
    /// Solves a batch of merge problems of one length: merges run `p` of `a` with run `p` of `b` into run `p` of `out`,
    /// for every `p`. Stable: of equal keys, those of `a` come first.
    ///
    /// For N problems, `a` consists of N runs of `a_len` keys each, `b` of N runs of `d - a_len`, and `out` of N runs
    /// of `d`. `d` is 1 to [`MAX_BATCH_LENGTH`](crate::MAX_BATCH_LENGTH), `a_len` is at most `d`, and N is `out.len() /
    /// d`.
    ///
    /// Each run of `a` and `b` must be ascending; if one is not, only the run of `out` with its number is unspecified.
    ///
    /// # Complexity
    /// O(N d) time on one thread. There is no scratch memory.
    ///
    /// # Errors
    /// - [`Error::BadBatchLength`] if `d` is 0 or greater than [`MAX_BATCH_LENGTH`](crate::MAX_BATCH_LENGTH).
    /// - [`Error::BadSplit`] if `a_len` is greater than `d`.
    /// - [`Error::NotWholeRuns`] if the length of `out` is not a multiple of `d`.
    /// - [`Error::LengthMismatch`] if `a` or `b` does not consist of N runs.
    /// - The errors of the device and the threads, as in [`merge_with`](Self::merge_with).
    ///
    /// ```
    /// let a = [3, 9, /**/ 5, 6];
    /// let b = [1, /**/ 7];
    /// let mut out = [0; 6];
    /// merge_host::Engine::auto().merge_batch(&a, &b, &mut out, 3, 2)?;
    /// assert_eq!(out, [1, 3, 9, /**/ 5, 6, 7]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_batch<K: Key>(
        &self,
        a: &[K],
        b: &[K],
        out: &mut [K],
        d: usize,
        a_len: usize,
    ) -> Result<Timing, Error> {
        check_batch(a.len(), b.len(), out.len(), d, a_len)?;
        let (a, b, out) = (Run::of_keys(a), Run::of_keys(b), RunMut::of_keys(out));
        #[cfg(feature = "gpu")]
        if let Some(gpu) = self.gpu_for::<K>(&Work::merge::<K>(out.keys.len()))? {
            return gpu.merge_batch_host(a.on_gpu(), b.on_gpu(), out.on_gpu(), (d, a_len));
        }
        self.workers.merge(out.keys.len(), |threads| merge_batch::merge(a, b, out, d, a_len, threads))
    }

    /// Solves a batch of merge problems of one length on key-value pairs.
    ///
    /// Each of `a`, `b` and `out` is a slice of keys and a slice of values; the value of key `i` has index `i`. Lengths
    /// are as in [`merge_batch`](Self::merge_batch); stability and values are as in [`merge_pairs`](Self::merge_pairs).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has different numbers of keys and values, and the errors of
    /// [`merge_batch`](Self::merge_batch).
    ///
    /// ```
    /// let a = ([3, 9, /**/ 5, 7], [0, 1, /**/ 2, 3]);
    /// let b = ([1, /**/ 7], [100, /**/ 101]);
    /// let (mut keys, mut values) = ([0; 6], [0; 6]);
    /// merge_host::Engine::auto().merge_batch_pairs((&a.0, &a.1), (&b.0, &b.1), (&mut keys, &mut values), 3, 2)?;
    /// assert_eq!(keys, [1, 3, 9, /**/ 5, 7, 7]);
    /// assert_eq!(values, [100, 0, 1, /**/ 2, 3, 101]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_batch_pairs<K: Key, V: Copy + Send + Sync>(
        &self,
        a: (&[K], &[V]),
        b: (&[K], &[V]),
        out: (&mut [K], &mut [V]),
        d: usize,
        a_len: usize,
    ) -> Result<Timing, Error> {
        check_values_of_merge((a.0.len(), a.1.len()), (b.0.len(), b.1.len()), (out.0.len(), out.1.len()))?;
        check_batch(a.0.len(), b.0.len(), out.0.len(), d, a_len)?;
        let (a, b, out) = (Run::new(a), Run::new(b), RunMut::new(out));
        #[cfg(feature = "gpu")]
        if let Some(gpu) = self.gpu_for::<K>(&Work::merge::<K>(out.keys.len()).with_values(size_of::<V>()))? {
            return gpu.merge_batch_host(a.on_gpu(), b.on_gpu(), out.on_gpu(), (d, a_len));
        }
        self.workers.merge(out.keys.len(), |threads| merge_batch::merge(a, b, out, d, a_len, threads))
    }

    /// Solves a batch of merge problems of any lengths: merges run `p` of `a` with run `p` of `b` into run `p` of
    /// `out`, for every `p`. Stable: of equal keys, those of `a` come first.
    ///
    /// Each of `a` and `b` is a slice of keys and a slice of offsets. N problems are given by N + 1 offsets: run `p` of
    /// `a` is `a.0[a.1[p]..a.1[p + 1]]`. The first offset must be 0, offsets must not decrease, and the last must be
    /// the number of keys. A run may be empty, and its length is limited only by memory. `out` has `a.0.len() +
    /// b.0.len()` keys, and its run `p` begins at index `a.1[p] + b.1[p]`.
    ///
    /// Each run of `a` and `b` must be ascending; if one is not, only the run of `out` with its number is unspecified.
    ///
    /// # Complexity
    /// O(N + |a| + |b|) time on one thread. Threads share the work evenly, whether there is one long problem or
    /// millions of short ones. There is no scratch memory.
    ///
    /// # Errors
    /// - [`Error::OffsetsMismatch`] if `a` and `b` have different numbers of offsets.
    /// - [`Error::NoOffsets`], [`Error::FirstOffset`], [`Error::DescendingOffsets`] or [`Error::LastOffset`] if the
    ///   offsets are not as described above.
    /// - [`Error::LengthMismatch`] if `out` has another length.
    /// - The errors of the device and the threads, as in [`merge_with`](Self::merge_with).
    ///
    /// ```
    /// let a = [3, 5, 9, /**/ /**/ 1];
    /// let b = [4, /**/ 7, 8, /**/ 0];
    /// let mut out = [0; 8];
    /// merge_host::Engine::auto().merge_ragged((&a, &[0, 3, 3, 4]), (&b, &[0, 1, 3, 4]), &mut out)?;
    /// assert_eq!(out, [3, 4, 5, 9, /**/ 7, 8, /**/ 0, 1]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_ragged<K: Key>(
        &self,
        a: (&[K], &[usize]),
        b: (&[K], &[usize]),
        out: &mut [K],
    ) -> Result<Timing, Error> {
        check_ragged((a.0.len(), a.1), (b.0.len(), b.1), out.len())?;
        #[cfg(feature = "gpu")]
        if let Some(gpu) = self.gpu_for::<K>(&Work::merge::<K>(out.len()))? {
            let (a, b) = ((Run::of_keys(a.0).on_gpu(), a.1), (Run::of_keys(b.0).on_gpu(), b.1));
            return gpu.merge_ragged_host(a, b, RunMut::of_keys(out).on_gpu());
        }
        let problems = merge_ragged::Offsets { a: a.1, b: b.1 };
        let (a, b, out) = (Run::of_keys(a.0), Run::of_keys(b.0), RunMut::of_keys(out));
        self.workers.try_merge(problems.cost(), |threads| merge_ragged::merge(a, b, problems, out, threads))
    }

    /// Solves a batch of merge problems of any lengths on key-value pairs.
    ///
    /// Each of `a` and `b` is a slice of keys, a slice of values and a slice of offsets, and `out` is a slice of keys
    /// and a slice of values; the value of key `i` has index `i`. Lengths and offsets are as in
    /// [`merge_ragged`](Self::merge_ragged); stability and values are as in [`merge_pairs`](Self::merge_pairs).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has different numbers of keys and values, and the errors of
    /// [`merge_ragged`](Self::merge_ragged).
    ///
    /// ```
    /// let (a, b) = ([3, 5, 9, /**/ 1], [5, /**/ 0]);
    /// let (mut keys, mut values) = ([0; 6], [""; 6]);
    /// let a = (&a[..], &["a3", "a5", "a9", /**/ "a1"][..], &[0, 3, 4][..]);
    /// let b = (&b[..], &["b5", /**/ "b0"][..], &[0, 1, 2][..]);
    /// merge_host::Engine::auto().merge_ragged_pairs(a, b, (&mut keys, &mut values))?;
    /// assert_eq!(keys, [3, 5, 5, 9, /**/ 0, 1]);
    /// assert_eq!(values, ["a3", "a5", "b5", "a9", /**/ "b0", "a1"]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_ragged_pairs<K: Key, V: Copy + Send + Sync>(
        &self,
        a: (&[K], &[V], &[usize]),
        b: (&[K], &[V], &[usize]),
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        check_values_of_merge((a.0.len(), a.1.len()), (b.0.len(), b.1.len()), (out.0.len(), out.1.len()))?;
        check_ragged((a.0.len(), a.2), (b.0.len(), b.2), out.0.len())?;
        #[cfg(feature = "gpu")]
        if let Some(gpu) = self.gpu_for::<K>(&Work::merge::<K>(out.0.len()).with_values(size_of::<V>()))? {
            let (a, b) = ((Run::new((a.0, a.1)).on_gpu(), a.2), (Run::new((b.0, b.1)).on_gpu(), b.2));
            return gpu.merge_ragged_host(a, b, RunMut::new(out).on_gpu());
        }
        let problems = merge_ragged::Offsets { a: a.2, b: b.2 };
        let (a, b, out) = (Run::new((a.0, a.1)), Run::new((b.0, b.1)), RunMut::new(out));
        self.workers.try_merge(problems.cost(), |threads| merge_ragged::merge(a, b, problems, out, threads))
    }
}
