//! The merges of groups of the runs of an array in the GPU's memory into another one: each group becomes one run.
//!
//! ```text
//!   groups   │ 0           │ 1   │ 2                 │
//!   runs     │   │   │     │     │ │    │      │     │
//!   keys → out → scratch → out                            few groups: as few passes as the largest one needs
//!   keys → out, sorted there                              many groups of few keys: a copy, then a sort of segments
//! ```
//!
//! A pass is a pass of `many_runs`, over runs in slots such that no merge takes runs of two groups. Each merge has a
//! tile of its own, which costs the same with few keys as with many. Where tiles would have few keys, a stable sort of
//! each group is faster. For sorted runs its result is their stable merge.
//!
//! The launches depend on the numbers of keys, runs and groups, and on how many runs and keys a group may have, but not
//! on the offsets.

use super::many_runs::{self, Layout, MOST, MergeMany, copy, merge_passes, runs_of_pass};
use super::segments::{self, Bounds};
use super::{Address, Arrays, Queue, bits};
use crate::Error;
use crate::gpu::kernels::Shape;
use crate::gpu::operation::{KeyCoding, OnNumbers};
use crate::key::sealed::GpuBits;
use kernels_gpu::kernels::sort::merge_pass::many_runs::tile_shape;
use kernels_gpu::kernels::sort::merge_pass::pad_runs::{PAD_THREADS, PadRuns, PaddedRuns};
use kernels_gpu::kernels::sort::runs::{OffsetRuns, Passes};
use kernels_gpu::kernels::sort::segments::middle::MAX_BINNED;
use kernels_gpu::key::{Bits, Coding};

/// A pass of merges of up to `k` runs is worth it if the merges have more than this many keys on average. Segments of
/// 4-byte keys take less time to sort than others.
///
/// There are up to two merges for each group. So if merges of more than 4 runs have at most `MAX_BINNED / 2` keys
/// alone, the [bin sort](kernels_gpu::kernels::sort::segments::sort_middle_by_bins) takes most groups as segments.
const fn few_keys(key_bytes: usize, value_bytes: usize, k: u32) -> usize {
    let tile = tile_shape(key_bytes, value_bytes).keys();
    match (key_bytes, value_bytes) {
        (4, 0) if k > 4 => MAX_BINNED / 2,
        (4, _) => tile / 10,
        _ => tile / 16,
    }
}

/// Merges that a GPU does at the same time. Up to this number they are worth their pass, however few keys they have,
/// because a sort has more launches.
const FEW_MERGES: usize = 256;

/// Groups of the runs of an array. The offsets are in the GPU's memory.
#[derive(Clone, Copy)]
pub struct RunGroups {
    /// Where each run begins, and the end of the last one: `runs + 1` numbers of 8 bytes.
    pub offsets: Address,
    pub runs: usize,
    /// The first run of each group, and the number of runs: `count + 1` numbers of 8 bytes.
    pub groups: Address,
    pub count: usize,
    /// Most runs of a group. Groups of more runs are not merged to one.
    pub most_runs: usize,
    /// Most keys of a group.
    pub longest: usize,
}

/// How groups are merged.
enum Way {
    /// A copy, because no group has two runs.
    Copy,
    /// There is only one group: a merge of all runs.
    One,
    /// Passes of merges of each group.
    Merge(Vec<PaddedRuns>),
    /// A sort of each group.
    Sort,
}

impl RunGroups {
    /// How `n` keys with bits `B` are merged, with values of `value_bytes` bytes, or 0.
    fn way<B: Bits>(self, n: usize, value_bytes: usize) -> Way {
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
        let few_keys = few_keys(size_of::<B>(), value_bytes, 1 << passes[0].log_k);
        if passes[0].merges() <= FEW_MERGES.max(n / few_keys) { Way::Merge(passes) } else { Way::Sort }
    }

    /// Whether `out` may be the arrays of `from`: no pass then writes the array that it reads.
    pub fn can_be_in_place<B: Bits>(self, n: usize, value_bytes: usize) -> bool {
        match self.way::<B>(n, value_bytes) {
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

/// The runs of the passes that `padded` describes, for `n` keys with bits `B` and values of `value_bytes` bytes. Their
/// offsets are at `list`.
fn runs_of_passes<B: Bits>(n: usize, value_bytes: usize, padded: &[PaddedRuns], list: Address) -> Vec<OffsetRuns> {
    let runs = |pass: &PaddedRuns| {
        let offsets = (list as *const usize, pass.slots());
        runs_of_pass::<B>(n, value_bytes, offsets, 1, 1 << pass.log_k)
    };
    padded.iter().map(runs).collect()
}

/// Bytes of the offsets of the slots of a pass.
fn list_bytes(padded: PaddedRuns) -> usize {
    (padded.slots() + 1).saturating_mul(size_of::<usize>())
}

/// Bytes of workspace for the merges of the groups of `n` keys with bits `B` and values of `value_bytes` bytes, or 0.
/// `usize::MAX` for more keys than any GPU has memory for.
pub(in crate::gpu) fn workspace_bytes<B: Bits>(n: usize, groups: RunGroups, value_bytes: usize) -> usize {
    if n == 0 {
        return 0;
    }
    match groups.way::<B>(n, value_bytes) {
        Way::Copy => 0,
        Way::One => many_runs::workspace_bytes::<B>(n, groups.runs, value_bytes),
        Way::Merge(padded) => {
            let runs = runs_of_passes::<B>(n, value_bytes, &padded, 0);
            let list = padded.into_iter().map(list_bytes).max();
            Layout::of::<B>(n, value_bytes, &runs).end + list.unwrap_or(0)
        }
        Way::Sort => segments::workspace_bytes::<B>(n, value_bytes).saturating_add(list_bytes(groups.whole())),
    }
}

/// Queues the stable merge of the runs of each group of `from` to the same indices of `out`: of equal keys of a group,
/// keys of an earlier run go first.
///
/// # Safety
/// The arrays are in the GPU's memory and have the same number of elements. `workspace` begins at a multiple of 16 and
/// has [`workspace_bytes`]. The offsets of runs begin with 0, never decrease and end with at most the number of keys.
/// The offsets of groups begin with 0, never decrease and end with the number of runs. No group has more than `longest`
/// keys.
///
/// `out` and the workspace overlap nothing, except that `out` may be `from` where it [can
/// be](RunGroups::can_be_in_place). Until the merge has ended, nothing else uses these two, and nothing writes the
/// other arrays.
pub(in crate::gpu) unsafe fn merge_many_ragged<B: Bits>(
    queue: &dyn Queue,
    coding: Coding<B>,
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
        // SAFETY: the offsets of runs and groups are valid, by `# Safety`. The list is in the workspace and has
        // `slots() + 1` offsets, and `blocks * PAD_THREADS` is at least that number.
        unsafe { queue.launch(&bits(size_of::<B>()), shape, &PadRuns { padded, to: list as *mut usize }) }
    };
    match groups.way::<B>(n, value_bytes) {
        // SAFETY: `from` and `out` have one length, and are apart or the same arrays.
        Way::Copy => unsafe { copy::<B>(queue, from, out) },
        // SAFETY: the only group has all runs, so the runs, `out` and the workspace meet the conditions of
        // `merge_many_runs`.
        Way::One => unsafe {
            many_runs::merge_many_runs::<B>(queue, coding, from, (groups.offsets, groups.runs), out, workspace)
        },
        Way::Merge(padded) => {
            let end = Layout::of::<B>(n, value_bytes, &runs_of_passes::<B>(n, value_bytes, &padded, 0)).end;
            let list = workspace + end as Address;
            let runs = runs_of_passes::<B>(n, value_bytes, &padded, list);
            // SAFETY: `pad` writes the offsets of a pass before the pass. They go from 0 to at most `n`, and never
            // decrease. The list is behind `Layout::end`, so no pass overwrites it.
            unsafe { merge_passes::<B>(queue, coding, from, &runs, out, workspace, |pass| pad(padded[pass], list)) }
        }
        Way::Sort => {
            let list = workspace + segments::workspace_bytes::<B>(n, value_bytes) as Address;
            let bounds = Bounds::of_offsets(list, groups.count, groups.longest.min(n));
            pad(groups.whole(), list)?;
            // SAFETY: `pad` has queued the offsets of the groups. They go from 0 to at most `n`, never decrease, and no
            // two neighbours differ by more than `longest`. The list is behind the workspace of the sort, and `copy`
            // fills `out` before the sort.
            unsafe {
                copy::<B>(queue, from, out)?;
                segments::sort_segments::<B>(queue, coding, out, bounds, false, workspace)
            }
        }
    }
}

/// The merge of the runs of each group of `from` to the same indices of `out`.
#[derive(Clone, Copy)]
pub struct MergeManyRagged {
    pub coding: KeyCoding,
    pub from: Arrays,
    pub groups: RunGroups,
    pub out: Arrays,
}

impl OnNumbers for MergeManyRagged {
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        workspace_bytes::<B>(self.from.len, self.groups, self.from.value_bytes)
    }

    unsafe fn queue<B: GpuBits>(&self, coding: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let Self { from, groups, out, .. } = *self;
        // SAFETY: `Operation::launch` requires valid arrays, with written ones apart, and `workspace_bytes` of
        // workspace. The offsets are as `RunGroups` documents.
        unsafe { merge_many_ragged::<B>(queue, coding, from, groups, out, workspace) }
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
        // Groups of 4096 keys with two merges each, in few runs and in many, and groups of 8192 keys.
        assert_eq!(way(n, 1 << 18, 1 << 16, 4), "merge");
        assert_eq!(way(n, 1 << 20, 1 << 16, 16), "sort");
        assert_eq!(way(n, 1 << 19, 1 << 15, 16), "merge");
        // Up to 256 merges run at the same time.
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
