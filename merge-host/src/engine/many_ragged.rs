//! Merges of groups of runs, each group by itself.

use super::check::check_groups;
use super::{Engine, On, Work};
use crate::cpu::{Run, RunMut, merge_many_ragged};
use crate::{Elements, ElementsMut, Error, Key, Timing};

impl Engine {
    /// Merges the runs of each of many groups: all runs of group `g`, each ascending, into one run, at the same indices
    /// of `out`. Stable: equal keys of a group come in the order of their runs.
    ///
    /// Run `i` is the elements of `from`, keys alone or with values, with the indices `offsets[i]..offsets[i + 1]`.
    /// Group `g` is the runs `groups[g]..groups[g + 1]`. Both begin with 0 and never decrease. The last offset must be
    /// the number of elements, and the last of `groups` the number of runs. Runs and groups may be empty, and a group
    /// may have any number of runs. `out` has the length of `from`.
    ///
    /// If a run is not ascending, only the group that it belongs to is unspecified in `out`.
    ///
    /// # Complexity
    /// O(n log k + R + N) time on one thread for n keys in R runs and N groups of up to k runs. Threads share the work
    /// evenly, whether there is one group of many keys or millions of groups of few. A CPU engine needs 256 KiB of
    /// scratch memory for each thread. A group of more than 32 runs needs scratch memory for its elements, too.
    ///
    /// # Errors
    /// - [`Error::ValuesMismatch`] if `from` or `out` has different numbers of keys and values.
    /// - [`Error::NoOffsets`], [`Error::FirstOffset`], [`Error::DescendingOffsets`], [`Error::LastOffset`] or
    ///   [`Error::LastGroup`] if the offsets or groups are not as described above.
    /// - [`Error::LengthMismatch`] if `out` has another length.
    /// - [`Error::OutOfHostMemory`] if there is not enough scratch memory.
    /// - The errors of the device and the threads, as in [`merge_with`](Self::merge_with).
    ///
    /// ```
    /// let (engine, keys) = (merge_host::Engine::auto(), [1, 4, 6, /**/ 2, 4, /**/ /**/ 0, 9, /**/ 5]);
    /// let offsets = [0, 3, 5, 5, 7, 8];
    /// // The first two runs, and the other three.
    /// let groups = [0, 2, 5];
    /// let (mut out, mut values) = ([0; 8], [' '; 8]);
    /// engine.merge_many_ragged(&keys, (&offsets, &groups), &mut out)?;
    /// assert_eq!(out, [1, 2, 4, 4, 6, /**/ 0, 5, 9]);
    ///
    /// let names = ['a', 'b', 'c', /**/ 'd', 'e', /**/ /**/ 'f', 'g', /**/ 'h'];
    /// engine.merge_many_ragged((&keys, &names), (&offsets, &groups), (&mut out, &mut values))?;
    /// assert_eq!(values, ['a', 'd', 'b', 'e', 'c', /**/ 'f', 'h', 'g']);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_many_ragged<K: Key, V: Copy + Send + Sync>(
        &self,
        from: impl Elements<K, V>,
        (offsets, groups): (&[usize], &[usize]),
        mut out: impl ElementsMut<K, V>,
    ) -> Result<Timing, Error> {
        self.merge_run_groups(from.run("the runs")?, (offsets, groups), out.run_mut("out")?)
    }

    /// [`merge_many_ragged`](Self::merge_many_ragged), compiled once for all forms of its arguments.
    fn merge_run_groups<K: Key, V: Copy + Send + Sync>(
        &self,
        from: Run<K, V>,
        (offsets, groups): (&[usize], &[usize]),
        out: RunMut<K, V>,
    ) -> Result<Timing, Error> {
        check_groups(from.keys.len(), offsets, groups, out.keys.len())?;
        let place = self.place_for::<K>(&Work::merge::<K>(out.keys.len()).with_values(size_of::<V>()))?;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => {
                gpus.merge_many_ragged_host(K::gpu_coding().into(), (from.on_gpu(), offsets), groups, out.on_gpu())
            }
            On::Cpu(workers) => {
                let groups = merge_many_ragged::Groups { offsets, groups };
                workers.try_merge(groups.cost(), |threads| merge_many_ragged::merge(from, groups, out, threads))
            }
        }?;
        Ok(place.timing(steps))
    }
}
