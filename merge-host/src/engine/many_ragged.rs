//! Merges of groups of runs, each group by itself.

use super::Engine;
#[cfg(feature = "gpu")]
use super::Work;
use super::check::{check_groups, check_values};
use crate::cpu::{Run, RunMut, merge_many_ragged};
use crate::{Error, Key, Timing};

impl Engine {
    /// Merges the runs of each of many groups: all runs of group `g`, each ascending, into one run, at the same indices
    /// of `out`. Stable: of equal keys of a group, those of an earlier run come first.
    ///
    /// `runs` is a slice of keys and a slice of offsets: run `i` is `runs.0[runs.1[i]..runs.1[i + 1]]`. Group `g` is
    /// the runs `groups[g]..groups[g + 1]`. The first offset, and the first of `groups`, must be 0; neither must
    /// decrease; the last offset must be the number of keys, and the last of `groups` the number of runs. Runs and
    /// groups may be empty, and a group may have any number of runs. `out` has as many keys as `runs`.
    ///
    /// If a run is not ascending, only the group that it belongs to is unspecified in `out`.
    ///
    /// # Complexity
    /// O(n log k + R + N) time on one thread for n keys in R runs and N groups of up to k runs. Threads share the work
    /// evenly, whether there is one group of many keys or millions of groups of few. A CPU engine needs 256 KiB of
    /// scratch memory for each thread, and for each group of so many runs that [`merge_many`](Self::merge_many) needs
    /// it, as much as the group has keys.
    ///
    /// # Errors
    /// - [`Error::NoOffsets`], [`Error::FirstOffset`], [`Error::DescendingOffsets`], [`Error::LastOffset`] or [`Error::LastGroup`] if the offsets or groups
    ///   are not as described above.
    /// - [`Error::LengthMismatch`] if `out` has another length.
    /// - [`Error::OutOfHostMemory`] if there is not enough scratch memory.
    /// - The errors of the device and the threads, as in [`merge_with`](Self::merge_with).
    ///
    /// ```
    /// let keys = [1, 4, 6, /**/ 2, 4, /**/ /**/ 0, 9, /**/ 5];
    /// let offsets = [0, 3, 5, 5, 7, 8];
    /// // The first two runs, and the other three.
    /// let groups = [0, 2, 5];
    /// let mut out = [0; 8];
    /// merge_host::Engine::auto().merge_many_ragged((&keys, &offsets), &groups, &mut out)?;
    /// assert_eq!(out, [1, 2, 4, 4, 6, /**/ 0, 5, 9]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_many_ragged<K: Key>(
        &self,
        runs: (&[K], &[usize]),
        groups: &[usize],
        out: &mut [K],
    ) -> Result<Timing, Error> {
        let (keys, offsets) = runs;
        check_groups(keys.len(), offsets, groups, out.len())?;
        #[cfg(feature = "gpu")]
        if let Some(gpu) = self.gpu_for::<K>(&Work::merge::<K>(keys.len()))? {
            let runs = (Run::of_keys(keys).on_gpu(), offsets);
            return gpu.merge_many_ragged_host(runs, groups, RunMut::of_keys(out).on_gpu());
        }
        let groups = merge_many_ragged::Groups { offsets, groups };
        let (from, out) = (Run::of_keys(keys), RunMut::of_keys(out));
        self.workers.try_merge(groups.cost(), |threads| merge_many_ragged::merge(from, groups, out, threads))
    }

    /// Merges the key-value pairs of the runs of each of many groups.
    ///
    /// `runs` is a slice of keys, a slice of values and a slice of offsets, and `out` is a slice of keys and a slice of
    /// values; the value of key `i` has index `i`. Lengths and offsets are as in
    /// [`merge_many_ragged`](Self::merge_many_ragged); stability and values are as in
    /// [`merge_many_pairs`](Self::merge_many_pairs).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has different numbers of keys and values, and the errors of
    /// [`merge_many_ragged`](Self::merge_many_ragged).
    ///
    /// ```
    /// let runs = (&[2, 5, /**/ 5, /**/ 1, 5][..], &["a2", "a5", /**/ "b5", /**/ "c1", "c5"][..], &[0, 2, 3, 5][..]);
    /// let (mut keys, mut values) = ([0; 5], [""; 5]);
    /// merge_host::Engine::auto().merge_many_ragged_pairs(runs, &[0, 2, 3], (&mut keys, &mut values))?;
    /// assert_eq!(keys, [2, 5, 5, /**/ 1, 5]);
    /// assert_eq!(values, ["a2", "a5", "b5", /**/ "c1", "c5"]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_many_ragged_pairs<K: Key, V: Copy + Send + Sync>(
        &self,
        runs: (&[K], &[V], &[usize]),
        groups: &[usize],
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        let (keys, values, offsets) = runs;
        check_values("the runs", keys.len(), values.len())?;
        check_values("out", out.0.len(), out.1.len())?;
        check_groups(keys.len(), offsets, groups, out.0.len())?;
        #[cfg(feature = "gpu")]
        if let Some(gpu) = self.gpu_for::<K>(&Work::merge::<K>(keys.len()).with_values(size_of::<V>()))? {
            let runs = (Run::new((keys, values)).on_gpu(), offsets);
            return gpu.merge_many_ragged_host(runs, groups, RunMut::new(out).on_gpu());
        }
        let groups = merge_many_ragged::Groups { offsets, groups };
        let (from, out) = (Run::new((keys, values)), RunMut::new(out));
        self.workers.try_merge(groups.cost(), |threads| merge_many_ragged::merge(from, groups, out, threads))
    }
}
