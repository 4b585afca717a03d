//! Many merges of two runs each.

use super::check::{check_batch, check_ragged};
use super::{Engine, On, Work};
use crate::cpu::{Run, RunMut, merge_batch, merge_ragged};
use crate::{Elements, ElementsMut, Error, Key, Timing};

impl Engine {
    /// Solves a batch of merge problems of one length: merges run `p` of `a` with run `p` of `b` into run `p` of `out`,
    /// for every `p`. Stable: equal keys of `a` precede equal keys of `b`.
    ///
    /// Elements are keys alone or with values. For N problems, `a` consists of N runs of `a_len` elements each, `b` of
    /// N runs of `d - a_len`, and `out` of N runs of `d`. `d` is 1 to [`MAX_BATCH_LENGTH`](crate::MAX_BATCH_LENGTH),
    /// `a_len` is at most `d`, and N is `out.len() / d`.
    ///
    /// Each run of `a` and `b` must be ascending; if one is not, only the run of `out` with its number is unspecified.
    ///
    /// # Complexity
    /// O(N d) time on one thread. There is no scratch memory.
    ///
    /// # Errors
    /// - [`Error::ValuesMismatch`] if an argument has different numbers of keys and values.
    /// - [`Error::BadBatchLength`] if `d` is 0 or greater than [`MAX_BATCH_LENGTH`](crate::MAX_BATCH_LENGTH).
    /// - [`Error::BadSplit`] if `a_len` is greater than `d`.
    /// - [`Error::NotWholeRuns`] if the length of `out` is not a multiple of `d`.
    /// - [`Error::LengthMismatch`] if `a` or `b` does not consist of N runs.
    /// - The errors of the device and the threads, as in [`merge_with`](Self::merge_with).
    ///
    /// ```
    /// let (engine, a, b) = (merge_host::Engine::auto(), [3, 9, /**/ 5, 7], [1, /**/ 7]);
    /// let (mut keys, mut values) = ([0; 6], [""; 6]);
    /// engine.merge_batch(&a, &b, &mut keys, 3, 2)?;
    /// assert_eq!(keys, [1, 3, 9, /**/ 5, 7, 7]);
    ///
    /// let (a, b) = ((&a, &["a3", "a9", /**/ "a5", "a7"]), (&b, &["b1", /**/ "b7"]));
    /// engine.merge_batch(a, b, (&mut keys, &mut values), 3, 2)?;
    /// assert_eq!(values, ["b1", "a3", "a9", /**/ "a5", "a7", "b7"]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_batch<K: Key, V: Copy + Send + Sync>(
        &self,
        a: impl Elements<K, V>,
        b: impl Elements<K, V>,
        mut out: impl ElementsMut<K, V>,
        d: usize,
        a_len: usize,
    ) -> Result<Timing, Error> {
        self.merge_batch_runs(a.run("a")?, b.run("b")?, out.run_mut("out")?, (d, a_len))
    }

    /// [`merge_batch`](Self::merge_batch), compiled once for all forms of its arguments.
    fn merge_batch_runs<K: Key, V: Copy + Send + Sync>(
        &self,
        a: Run<K, V>,
        b: Run<K, V>,
        out: RunMut<K, V>,
        (d, a_len): (usize, usize),
    ) -> Result<Timing, Error> {
        check_batch(a.keys.len(), b.keys.len(), out.keys.len(), d, a_len)?;
        let place = self.place_for::<K>(&Work::merge::<K>(out.keys.len()).with_values(size_of::<V>()))?;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => {
                gpus.merge_batch_host(K::gpu_coding().into(), a.on_gpu(), b.on_gpu(), out.on_gpu(), (d, a_len))
            }
            On::Cpu(workers) => {
                workers.merge(out.keys.len(), |threads| merge_batch::merge(a, b, out, d, a_len, threads))
            }
        }?;
        Ok(place.timing(steps))
    }

    /// Solves a batch of merge problems of any lengths: merges run `p` of `a` with run `p` of `b` into run `p` of
    /// `out`, for every `p`. Stable: equal keys of `a` precede equal keys of `b`.
    ///
    /// Each of `a` and `b` is elements, keys alone or with values, and their offsets. N problems are given by N + 1
    /// offsets: run `p` of `a` is the elements with the indices `a.1[p]..a.1[p + 1]`. The first offset must be 0,
    /// offsets must not decrease, and the last must be the number of elements. A run may be empty, and its length is
    /// limited only by memory. The length of `out` is the sum of the lengths of `a` and `b`, and its run `p` begins at
    /// index `a.1[p] + b.1[p]`.
    ///
    /// Each run of `a` and `b` must be ascending; if one is not, only the run of `out` with its number is unspecified.
    ///
    /// # Complexity
    /// O(N + |a| + |b|) time on one thread. Threads share the work evenly, whether there is one long problem or
    /// millions of short ones. There is no scratch memory.
    ///
    /// # Errors
    /// - [`Error::ValuesMismatch`] if an argument has different numbers of keys and values.
    /// - [`Error::OffsetsMismatch`] if `a` and `b` have different numbers of offsets.
    /// - [`Error::NoOffsets`], [`Error::FirstOffset`], [`Error::DescendingOffsets`] or [`Error::LastOffset`] if the
    ///   offsets are not as described above.
    /// - [`Error::LengthMismatch`] if `out` has another length.
    /// - The errors of the device and the threads, as in [`merge_with`](Self::merge_with).
    ///
    /// ```
    /// let (engine, a, b) = (merge_host::Engine::auto(), [3, 5, 9, /**/ /**/ 1], [5, /**/ 7, 8, /**/ 0]);
    /// let (mut keys, mut values) = ([0; 8], [' '; 8]);
    /// engine.merge_ragged((&a, &[0, 3, 3, 4]), (&b, &[0, 1, 3, 4]), &mut keys)?;
    /// assert_eq!(keys, [3, 5, 5, 9, /**/ 7, 8, /**/ 0, 1]);
    ///
    /// let (a, b) = ((&a, &['s', 't', 'u', /**/ /**/ 'v']), (&b, &['A', /**/ 'B', 'C', /**/ 'D']));
    /// engine.merge_ragged((a, &[0, 3, 3, 4]), (b, &[0, 1, 3, 4]), (&mut keys, &mut values))?;
    /// assert_eq!(values, ['s', 't', 'A', 'u', /**/ 'B', 'C', /**/ 'D', 'v']);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_ragged<K: Key, V: Copy + Send + Sync>(
        &self,
        a: (impl Elements<K, V>, &[usize]),
        b: (impl Elements<K, V>, &[usize]),
        mut out: impl ElementsMut<K, V>,
    ) -> Result<Timing, Error> {
        self.merge_ragged_runs((a.0.run("a")?, a.1), (b.0.run("b")?, b.1), out.run_mut("out")?)
    }

    /// [`merge_ragged`](Self::merge_ragged), compiled once for all forms of its arguments.
    fn merge_ragged_runs<K: Key, V: Copy + Send + Sync>(
        &self,
        (a, of_a): (Run<K, V>, &[usize]),
        (b, of_b): (Run<K, V>, &[usize]),
        out: RunMut<K, V>,
    ) -> Result<Timing, Error> {
        check_ragged((a.keys.len(), of_a), (b.keys.len(), of_b), out.keys.len())?;
        let place = self.place_for::<K>(&Work::merge::<K>(out.keys.len()).with_values(size_of::<V>()))?;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => {
                gpus.merge_ragged_host(K::gpu_coding().into(), (a.on_gpu(), of_a), (b.on_gpu(), of_b), out.on_gpu())
            }
            On::Cpu(workers) => {
                let problems = merge_ragged::Offsets { a: of_a, b: of_b };
                workers.try_merge(problems.cost(), |threads| merge_ragged::merge(a, b, problems, out, threads))
            }
        }?;
        Ok(place.timing(steps))
    }
}
