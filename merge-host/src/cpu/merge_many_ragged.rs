//! Merges of groups of runs, each group by itself.
//!
//! All threads together merge a group of many keys. Others are merged by one thread each, several adjacent ones at a
//! time, as segments are sorted.

use super::memory;
use super::merge_many::{Run, RunMut, SmallMerges, merge_runs};
use super::run;
use super::sort_segments::for_each_share;
use crate::{Error, Key};

/// The cost of a run in addition to its keys, in keys.
const RUN_COST: usize = 8;

/// Where runs and groups of them begin, and the last ones end.
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
    /// The sum does not overflow: the keys and the offsets lie in memory, of which a process addresses less than 2^57
    /// bytes.
    pub fn cost(self) -> usize {
        let [runs, groups] = [self.offsets, self.groups].map(|offsets| offsets.len() - 1);
        self.offsets[runs] + (runs + groups) * RUN_COST
    }
}

/// Merges the runs of each group of `from` into the same slots of `out`. Of equal keys of a group, those of an earlier
/// run come first.
pub(crate) fn merge<K: Key, V: Copy + Send + Sync>(
    from: run::Run<K, V>,
    Groups { offsets, groups }: Groups,
    out: run::RunMut<K, V>,
    threads: usize,
) -> Result<(), Error> {
    let from = Run { keys: from.keys, values: memory::as_uninit(from.values) };
    // SAFETY: merges write nothing but copies of values of `from`, which are initialised.
    let out = RunMut { keys: out.keys, values: unsafe { memory::as_uninit_mut(out.values) } };
    let ends = memory::collected(groups.iter().map(|&run| offsets[run]))?;
    for_each_share(out, &ends, threads, |share, threads| {
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
