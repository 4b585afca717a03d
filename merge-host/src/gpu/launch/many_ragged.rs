//! The merges of groups of the runs of an array in the GPU's memory into another one: each group becomes one run.
//!
//! ```text
//!   groups   │ 0           │ 1   │ 2                 │
//!   runs     │   │   │     │     │ │    │      │     │
//!   keys → out → scratch → out                            few groups: as few passes as the largest one needs
//!   keys → out, sorted there                              many groups of few keys: copied, and each group sorted as a segment
//! ```
//!
//! A pass is one of `many_runs`, over runs in slots such that none of its merges takes runs of two groups. Each merge
//! has a tile of its own, which costs as much whether it has few keys or many. Where tiles would have few keys, a
//! stable sort of each group is faster; it makes the same of sorted runs as their stable merge.
//!
//! The launches depend on the numbers of keys, runs and groups, and on how many runs and keys a group may have, but not
//! on the offsets.

use super::many_runs::{self, Layout, MOST, MergeMany, merge_passes, runs_of_pass};
use super::segments::{self, Bounds};
use super::{Address, Arrays, Queue, bits};
use crate::gpu::kernels::Shape;
use crate::gpu::operation::Operation;
use crate::{Error, SortOrder};
use kernels_gpu::kernels::sort::merge_pass::many_runs::tile_shape;
use kernels_gpu::kernels::sort::merge_pass::pad_runs::{PAD_THREADS, PadRuns, PaddedRuns};
use kernels_gpu::kernels::sort::runs::{OffsetRuns, Passes};
use kernels_gpu::kernels::sort::segments::middle::MAX_BINNED;
use kernels_gpu::key::Key;

/// A pass of merges of up to `k` runs is worth it if they have more keys than that on average. Segments of keys of 4
/// bytes take less time to sort; and where merges of many runs have no more keys alone, most groups are segments that
/// [bins](kernels_gpu::kernels::sort::segments::sort_middle_by_bins) sort, as there are up to twice as many merges as
/// groups.
const fn few_keys(key_bytes: usize, value_bytes: usize, k: u32) -> usize {
    let tile = tile_shape(key_bytes, value_bytes).keys();
    match (key_bytes, value_bytes) {
        (4, 0) if k > 4 => MAX_BINNED / 2,
        (4, _) => tile / 10,
        _ => tile / 16,
    }
}

/// Merges that a GPU does at the same time: so many are worth their pass, however few keys they have, because a sort
/// has more launches.
const FEW_MERGES: usize = 256;

/// Groups of the runs of an array. The offsets are in the GPU's memory.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct RunGroups {
    /// Where each run begins, and the last one ends: `runs + 1` numbers of 8 bytes.
    pub(in crate::gpu) offsets: Address,
    pub(in crate::gpu) runs: usize,
    /// Which run each group begins with, and the number of runs: `count + 1` numbers of 8 bytes.
    pub(in crate::gpu) groups: Address,
    pub(in crate::gpu) count: usize,
    /// Groups of more runs are not merged to one.
    pub(in crate::gpu) most_runs: usize,
    /// No group has more keys.
    pub(in crate::gpu) longest: usize,
}

/// How groups are merged.
enum Way {
    /// No group has two runs.
    Copy,
    /// The only group, by a merge of all runs.
    One,
    /// Each group by passes of merges.
    Merge(Vec<PaddedRuns>),
    /// Each group by a sort.
    Sort,
}

impl RunGroups {
    /// How `n` keys of type `K` are merged, with values of `value_bytes` bytes, or 0.
    fn way<K: Key>(self, n: usize, value_bytes: usize) -> Way {
        let most_runs = self.most_runs.min(self.runs);
        if most_runs <= 1 {
            return Way::Copy;
        }
        if n.max(self.runs) > MOST {
            return Way::Sort;
        }
        if self.count == 1 {
            return Way::One;
        }
        let passes = self.passes(most_runs);
        // The first pass has the most merges.
        let few_keys = few_keys(size_of::<K>(), value_bytes, 1 << passes[0].log_k);
        if passes[0].merges() <= FEW_MERGES.max(n / few_keys) { Way::Merge(passes) } else { Way::Sort }
    }

    /// Whether `out` may be the same arrays as `from`: no pass writes what it reads then.
    pub(in crate::gpu) fn can_be_in_place<K: Key>(self, n: usize, value_bytes: usize) -> bool {
        match self.way::<K>(n, value_bytes) {
            Way::Copy | Way::Sort => true,
            Way::One => MergeMany::can_be_in_place(self.runs),
            Way::Merge(passes) => passes.len().is_multiple_of(2),
        }
    }

    /// The passes that make one run of up to `most_runs`.
    fn passes(self, most_runs: usize) -> Vec<PaddedRuns> {
        let mut log_merged = 0;
        let pass = |k: u32| {
            let log_k = k.trailing_zeros();
            let padded = PaddedRuns { log_merged, log_k, ..self.whole() };
            log_merged += log_k;
            padded
        };
        Passes::of(most_runs).map(pass).collect()
    }

    /// Each group as one run.
    fn whole(self) -> PaddedRuns {
        PaddedRuns::whole_groups(self.offsets as *const usize, self.runs, self.groups as *const usize, self.count)
    }
}

/// The runs of the passes that `padded` describes, for `n` keys of type `K` with values of `value_bytes` bytes, whose
/// offsets are at `list`.
fn runs_of_passes<K: Key>(n: usize, value_bytes: usize, padded: &[PaddedRuns], list: Address) -> Vec<OffsetRuns> {
    let runs = |pass: &PaddedRuns| {
        let offsets = (list as *const usize, pass.slots());
        runs_of_pass::<K>(n, value_bytes, offsets, 1, 1 << pass.log_k)
    };
    padded.iter().map(runs).collect()
}

/// Bytes of the offsets of these slots.
fn list_bytes(padded: PaddedRuns) -> usize {
    (padded.slots() + 1).saturating_mul(size_of::<usize>())
}

/// Bytes of workspace for these merges of `n` keys of type `K`, with values of `value_bytes` bytes, or 0. `usize::MAX`
/// for more keys than any GPU has memory for.
pub(in crate::gpu) fn workspace_bytes<K: Key>(n: usize, groups: RunGroups, value_bytes: usize) -> usize {
    if n == 0 {
        return 0;
    }
    match groups.way::<K>(n, value_bytes) {
        Way::Copy => 0,
        Way::One => many_runs::workspace_bytes::<K>(n, groups.runs, value_bytes),
        Way::Merge(padded) => {
            let runs = runs_of_passes::<K>(n, value_bytes, &padded, 0);
            let list = padded.into_iter().map(list_bytes).max();
            Layout::of::<K>(n, value_bytes, &runs).end + list.unwrap_or(0)
        }
        Way::Sort => segments::workspace_bytes::<K>(n, value_bytes).saturating_add(list_bytes(groups.whole())),
    }
}

/// Queues the merge of the runs of each group of `from` to the same keys of `out`, stable: of equal keys of a group,
/// those of an earlier run go first.
///
/// # Safety
/// The arrays are in the GPU's memory, and have as many elements each. So is a workspace of [`workspace_bytes`], at a
/// multiple of 16, and the offsets of `groups`: those of runs begin with 0, never decrease and end with the number of
/// keys, those of groups begin with 0, never decrease and end with the number of runs. No group has more than `longest`
/// keys. `out` and the workspace overlap nothing, but for an `out` that is `from` where that [can
/// be](RunGroups::can_be_in_place). Nothing else uses these two, and nothing writes the others, until the merge has
/// ended.
pub(in crate::gpu) unsafe fn merge_many_ragged<K: Key>(
    queue: &impl Queue,
    order: SortOrder,
    from: Arrays,
    groups: RunGroups,
    out: Arrays,
    workspace: Address,
) -> Result<(), Error> {
    let Arrays { len: n, value_bytes, .. } = from;
    if n == 0 {
        return Ok(());
    }
    let pad = |padded: PaddedRuns, list: Address| {
        let blocks = (padded.slots() + 1).div_ceil(PAD_THREADS as usize);
        let shape = Shape { blocks, threads: PAD_THREADS, shared_bytes: 0 };
        // SAFETY: the caller's promise for the offsets; the list is in the workspace, and has an offset for each slot
        // and one more.
        unsafe { queue.launch(&bits(size_of::<K>()), shape, &PadRuns { padded, to: list as *mut usize }) }
    };
    match groups.way::<K>(n, value_bytes) {
        // SAFETY: the caller's promise, here and below.
        Way::Copy => unsafe { copy::<K>(queue, from, out) },
        // SAFETY: all keys are of the only group.
        Way::One => unsafe {
            many_runs::merge_many_runs::<K>(queue, order, from, (groups.offsets, groups.runs), out, workspace)
        },
        Way::Merge(padded) => {
            let end = Layout::of::<K>(n, value_bytes, &runs_of_passes::<K>(n, value_bytes, &padded, 0)).end;
            let list = workspace + end as Address;
            let runs = runs_of_passes::<K>(n, value_bytes, &padded, list);
            // SAFETY: as above. The offsets of a pass are written before it: they go from 0 to `n`, since there is a
            // group, and never decrease.
            unsafe { merge_passes::<K>(queue, order, from, &runs, out, workspace, |pass| pad(padded[pass], list)) }
        }
        Way::Sort => {
            let list = workspace + segments::workspace_bytes::<K>(n, value_bytes) as Address;
            let bounds = Bounds::of_offsets(list, groups.count, groups.longest.min(n));
            pad(groups.whole(), list)?;
            // SAFETY: as above. The offsets of groups are written before, and are those of segments of all keys.
            unsafe {
                copy::<K>(queue, from, out)?;
                segments::sort_segments::<K>(queue, order, out, bounds, false, workspace)
            }
        }
    }
}

/// Queues the copy of keys and values, unless they are where they belong.
///
/// # Safety
/// As for [`merge_many_ragged`].
unsafe fn copy<K: Key>(queue: &impl Queue, from: Arrays, out: Arrays) -> Result<(), Error> {
    if from.keys == out.keys {
        return Ok(());
    }
    // SAFETY: the caller's promise; both have `len` keys, and as many values or none.
    unsafe {
        queue.copy(from.keys, out.keys, from.len * size_of::<K>())?;
        queue.copy(from.values, out.values, from.len * from.value_bytes)
    }
}

/// The merge of the runs of each group of `from` to the same keys of `out`.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct MergeManyRagged {
    pub(in crate::gpu) order: SortOrder,
    pub(in crate::gpu) from: Arrays,
    pub(in crate::gpu) groups: RunGroups,
    pub(in crate::gpu) out: Arrays,
}

impl<K: Key> Operation<K> for MergeManyRagged {
    fn workspace_bytes(&self) -> usize {
        workspace_bytes::<K>(self.from.len, self.groups, self.from.value_bytes)
    }

    unsafe fn launch(&self, queue: &impl Queue, workspace: Address) -> Result<(), Error> {
        let Self { order, from, groups, out } = *self;
        // SAFETY: the caller's arrays and workspace.
        unsafe { merge_many_ragged::<K>(queue, order, from, groups, out, workspace) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(runs: usize, count: usize, most_runs: usize) -> RunGroups {
        RunGroups { offsets: 0, runs, groups: 0, count, most_runs, longest: usize::MAX }
    }

    fn way(n: usize, runs: usize, count: usize, most_runs: usize) -> &'static str {
        match groups(runs, count, most_runs).way::<u32>(n, 0) {
            Way::Copy => "copy",
            Way::One => "one",
            Way::Merge(_) => "merge",
            Way::Sort => "sort",
        }
    }

    #[test]
    fn the_way_depends_on_the_keys_of_a_merge() {
        let n = 1 << 28;
        assert_eq!(way(n, 100, 100, 1), "copy");
        assert_eq!(way(n, 1, 1, usize::MAX), "copy");
        assert_eq!(way(n, 100, 1, usize::MAX), "one");
        assert_eq!(way(n, 4000, 1000, 4), "merge");
        // 2^17 merges of 2048 keys, and more of fewer keys.
        assert_eq!(way(n, 1 << 17, 1 << 16, 2), "merge");
        assert_eq!(way(n, 1 << 18, 1 << 17, 2), "sort");
        assert_eq!(way(n, 1 << 30, 1000, 1 << 20), "sort");
        // Groups of 4096 keys, which have two merges each, in few runs and in many; and of 8192.
        assert_eq!(way(n, 1 << 18, 1 << 16, 4), "merge");
        assert_eq!(way(n, 1 << 20, 1 << 16, 16), "sort");
        assert_eq!(way(n, 1 << 19, 1 << 15, 16), "merge");
        // So few merges are done at once.
        assert_eq!(way(100, 200, 200, 4), "merge");
        assert_eq!(way(100, 300, 250, 4), "sort");
        assert_eq!(way(MOST + 1, 4000, 1000, 4), "sort");
        assert_eq!(way(MOST + 1, 100, 1, 100), "sort");
    }

    #[test]
    fn passes_are_those_of_the_largest_group() {
        let of = |most_runs| {
            let passes = groups(1 << 20, 1000, most_runs).passes(most_runs);
            passes.iter().map(|pass| (pass.log_merged, pass.log_k)).collect::<Vec<_>>()
        };
        assert_eq!(of(2), [(0, 1)]);
        assert_eq!(of(32), [(0, 5)]);
        assert_eq!(of(33), [(0, 3), (3, 3)]);
        assert_eq!(of(1025), [(0, 4), (4, 4), (8, 3)]);
    }

    #[test]
    fn the_workspace_has_what_the_way_needs() {
        let n = 1 << 28;
        let bytes = |n, runs, count, most_runs| workspace_bytes::<u32>(n, groups(runs, count, most_runs), 4);
        assert_eq!(bytes(0, 100, 100, 2), 0);
        assert_eq!(bytes(n, 100, 100, 1), 0);
        assert!(bytes(n, 4000, 1000, 4) < n / 50, "{}", bytes(n, 4000, 1000, 4));
        let several_passes = bytes(n, 100_000, 1000, 100);
        assert!(several_passes >= 8 * n && several_passes < 8 * n + n / 10, "{several_passes}");
        assert!(bytes(n, n / 2, n / 4, 2) >= 8 * n + n / 4 * 8);
        assert_eq!(bytes(1 << 40, 100, 50, 2), usize::MAX);
    }
}
