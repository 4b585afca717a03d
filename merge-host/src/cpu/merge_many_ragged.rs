//! Merges of the runs of many groups, each group by itself.
//!
//! All threads together merge a long group. One thread merges several adjacent short groups at a time. Segments are
//! sorted in the same way.

use super::memory;
use super::merge_many::{Run, RunMut, SmallMerges, merge_runs};
use super::run;
use super::sort_segments::{Share, for_each_share};
use crate::{Error, Key};

/// The cost of a run or a group in addition to its keys, in keys.
const RUN_COST: usize = 8;

/// The offsets of runs and of groups of runs, including the ends of the last ones.
#[derive(Clone, Copy)]
pub(crate) struct Groups<'a> {
    /// Offsets of runs, in keys.
    pub offsets: &'a [usize],
    /// Offsets of groups, in runs.
    pub groups: &'a [usize],
}

impl Groups<'_> {
    /// The cost of merging all groups, in keys.
    ///
    /// The sum does not overflow: keys and offsets are in memory, and a process addresses less than 2^57 bytes.
    pub fn cost(self) -> usize {
        let [runs, groups] = [self.offsets, self.groups].map(|offsets| offsets.len() - 1);
        self.offsets[runs] + (runs + groups) * RUN_COST
    }
}

/// Merges the runs of each group of `from` into the same slots of `out`. Equal keys of a group keep the order of their
/// runs.
pub(crate) fn merge<K: Key, V: Copy + Send + Sync>(
    from: run::Run<K, V>,
    Groups { offsets, groups }: Groups,
    out: run::RunMut<K, V>,
    threads: usize,
) -> Result<(), Error> {
    let from = Run { keys: from.keys, values: memory::as_uninit(from.values) };
    // SAFETY: merges write only copies of values to `out`. They read values of `from`, which are initialised, or values
    // that an earlier pass of the same merge has written.
    let out = RunMut { keys: out.keys, values: unsafe { memory::as_uninit_mut(out.values) } };
    let ends = memory::collected(groups.iter().map(|&run| offsets[run]))?;
    for_each_share(Share::all(out, &ends), threads, |share, threads| {
        let (mut group, mut small, mut runs) = (share.first, SmallMerges::new(), Vec::new());
        share.for_each_segment(|out| {
            let ends = &offsets[groups[group]..=groups[group + 1]];
            group += 1;
            runs.clear();
            let of_group = ends.windows(2).filter(|ends| ends[0] < ends[1]).map(|ends| from.part(ends[0]..ends[1]));
            of_group.into_iter().try_for_each(|run| memory::push(&mut runs, run))?;
            match SmallMerges::<K, V>::can_merge(out.keys.len()) {
                true => small.merge(&runs, out),
                false => merge_runs(&runs, out, threads),
            }
        })
    })
}
