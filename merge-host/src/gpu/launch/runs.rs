//! The merge of many runs, and of those that the sort has detected.

use super::merge::{merge, merge_pairs};
use super::sort::{SortPlan, splits_shape};
use super::{Address, Arrays, Entry, PERSISTENT_BLOCKS, Queue, align, bits, elements, with_numbers, with_values};
use crate::gpu::kernels::Shape;
use crate::{Error, MergeKernel};
use kernels_gpu::kernels::sort::detect_runs::{self, COPY_RUNS, CopyRuns};
use kernels_gpu::kernels::sort::merge_pass::long_runs::{
    MERGE_LONG_RUNS, MergeLongRuns, SPLIT_LONG_RUNS, SplitLongRuns,
};
use kernels_gpu::kernels::sort::merge_pass::{MIN_BLOCKS_PER_SM, split_runs};
use kernels_gpu::kernels::sort::runs::MAX_RUNS;
use kernels_gpu::key::{Coding, Key};

/// Bytes of the words that describe detected runs.
const WORDS_BYTES: usize = align(detect_runs::DETECTION_WORDS * size_of::<u32>());

/// Bytes of the indices at which long runs begin, and of the array's end.
const STARTS_BYTES: usize = align((MAX_RUNS as usize + 1) * size_of::<usize>());

/// Bytes of what describes detected runs: the words, and where the runs begin, as detected and in order.
pub(super) const RUNS_BYTES: usize = WORDS_BYTES + 2 * STARTS_BYTES;

/// Addresses in a workspace for runs that have been detected.
#[derive(Clone, Copy)]
pub(super) struct DetectedRuns {
    /// The runs' description, of [`RUNS_BYTES`].
    pub(super) at: Address,
    /// Arrays for the keys and the values once more.
    pub(super) scratch: (Address, Address),
    /// The splits of the runs.
    pub(super) splits: Address,
}

/// Where the indices are at which the runs begin that are described at `words`, in any order.
pub(super) fn runs_begin_at(words: Address) -> Address {
    words + WORDS_BYTES as u64
}

impl DetectedRuns {
    /// Where runs begin, in any order.
    fn begins(self) -> Address {
        runs_begin_at(self.at)
    }

    /// Where runs begin, in order, and the array's end.
    fn starts(self) -> Address {
        self.begins() + STARTS_BYTES as u64
    }
}

/// The entry points of merges of many runs at once, alone or with values of `value_bytes` bytes.
pub(in crate::gpu) fn entries<K: Key>(value_bytes: usize) -> Vec<Entry> {
    let (plan, keys) = (SortPlan::of_long_runs::<K>(value_bytes), bits(size_of::<K>()));
    let mut entries =
        vec![(COPY_RUNS.name, keys.clone()), (SPLIT_LONG_RUNS.name, keys), (MERGE_LONG_RUNS.name, plan.suffix::<K>())];
    if value_bytes > 0 {
        entries.push((COPY_RUNS.name, bits(value_bytes)));
    }
    entries
}

/// Queues the merge of the long runs that are described at `detected.at`, if there are any.
///
/// # Safety
/// The arrays are in the GPU's memory and so are those of `detected`, which are long enough; the description there is
/// as `detect_runs` writes it; and nothing else uses them until the merge has ended.
pub(super) unsafe fn merge_long_runs<K: Key>(
    queue: &impl Queue,
    plan: SortPlan,
    coding: Coding<K::Bits>,
    Arrays { keys, values, len: n, value_bytes }: Arrays,
    detected: DetectedRuns,
) -> Result<(), Error> {
    let DetectedRuns { at: words, scratch: (scratch, scratch_values), splits } = detected;
    let (found, splits) = (words as *mut u32, splits as *mut u32);
    let (begins, starts) = (detected.begins() as *const usize, detected.starts() as *mut usize);
    let width = bits(size_of::<K>());
    let copy_shape = queue.persistent(PERSISTENT_BLOCKS, detect_runs::DETECTION_THREADS, 0);
    let (from, to) = (keys as *const K::Bits, scratch as *mut K::Bits);
    // SAFETY: the caller's promise for the arrays, here and below; shapes are those that the kernels ask for.
    unsafe { queue.launch(&width, copy_shape, &CopyRuns { from, to, n, coding, found, begins, starts })? };
    if value_bytes > 0 {
        with_numbers!(value_bytes, V => {
            // As they are; where runs begin is put in order once more.
            let (from, to, coding) = (values as *const V, scratch_values as *mut V, Coding::NONE);
            // SAFETY: as above.
            unsafe { queue.launch(&bits(value_bytes), copy_shape, &CopyRuns { from, to, n, coding, found, begins, starts })? }
        });
    }
    let tile_keys = plan.long_run_tile_keys();
    let tiles = n.div_ceil(tile_keys as usize);
    let per_warp = split_runs::boundaries_per_warp(tiles);
    let split = SplitLongRuns { from: to as *const K::Bits, n, tile_keys, splits, starts, per_warp, order: found };
    // SAFETY: as above.
    unsafe { queue.launch(&width, splits_shape(tiles), &split)? };
    let Shape { threads, shared_bytes, .. } = plan.runs_shape::<K>(tiles);
    let shape = queue.persistent(MIN_BLOCKS_PER_SM, threads, shared_bytes);
    let suffix = SortPlan::of_long_runs::<K>(value_bytes).suffix::<K>();
    with_values!(value_bytes, V => {
        let (from, to) = (elements::<K, V>((scratch, scratch_values)), elements::<K, V>((keys, values)));
        let merge = MergeLongRuns { from, to, n, splits, starts, decode: coding, order: found };
        // SAFETY: as above.
        unsafe { queue.launch(&suffix, shape, &merge) }
    })
}

/// Passes that make one run of many: each merges groups of neighbouring runs, up to [`MAX_RUNS`] of them, in place.
pub(in crate::gpu) struct ManyRuns {
    /// Where each group begins, and its number of keys, in the order in which they are merged.
    groups: Vec<(usize, usize)>,
    /// For each group, its runs as the sort's kernels describe those that they detect: [`RUNS_BYTES`].
    pub(in crate::gpu) described: Vec<u8>,
}

impl ManyRuns {
    /// For runs of these lengths, none of them 0, one after the other.
    pub(in crate::gpu) fn new(mut lengths: Vec<usize>) -> Self {
        let mut passes = Self { groups: Vec::new(), described: Vec::new() };
        while lengths.len() > 1 {
            let mut begin = 0;
            let merge_group = |runs: &[usize]| {
                let length = runs.iter().sum();
                if runs.len() > 1 {
                    passes.groups.push((begin, length));
                    passes.describe(runs);
                }
                begin += length;
                length
            };
            lengths = lengths.chunks(MAX_RUNS as usize).map(merge_group).collect();
        }
        passes
    }

    /// Describes runs as `detect_runs` does: how many begin after the first, that they are not many, that there is an
    /// ascent, that keys are not divided, and where they begin.
    fn describe(&mut self, runs: &[usize]) {
        let end = self.described.len() + RUNS_BYTES;
        let words: [u32; detect_runs::DETECTION_WORDS] = [runs.len() as u32 - 1, 0, 1, 0];
        self.described.extend_from_slice(bytemuck::cast_slice(&words));
        self.described.resize(end - 2 * STARTS_BYTES, 0);
        let mut begin = 0usize;
        for length in &runs[..runs.len() - 1] {
            begin += length;
            self.described.extend_from_slice(&begin.to_ne_bytes());
        }
        self.described.resize(end, 0);
    }

    /// Keys of the largest group.
    fn most(&self) -> usize {
        self.groups.iter().map(|&(_, length)| length).max().unwrap_or(0)
    }

    /// Bytes of workspace for keys of type `K` with values of `value_bytes` bytes, or 0: a group's keys and values once
    /// more, and its splits.
    pub(in crate::gpu) fn workspace_bytes<K: Key>(&self, value_bytes: usize) -> usize {
        let (most, plan) = (self.most(), SortPlan::of_long_runs::<K>(value_bytes));
        align(most * size_of::<K>()) + align(most * value_bytes) + plan.long_run_split_bytes(most)
    }
}

/// Queues the merge of the runs at `at` that `runs` was made for, in place, with values or without. There are fewer
/// than 2^32 keys.
///
/// # Safety
/// The arrays are in the GPU's memory, and so are a copy of `runs.described` at `described_at`, aligned for its
/// numbers, and `workspace` of [`ManyRuns::workspace_bytes`]; nothing else uses them until the merge has ended.
pub(in crate::gpu) unsafe fn merge_many<K: Key>(
    queue: &impl Queue,
    runs: &ManyRuns,
    at: Arrays,
    described_at: Address,
    workspace: Address,
) -> Result<(), Error> {
    let (plan, coding) = (SortPlan::of_long_runs::<K>(at.value_bytes), Coding::of::<K>(false));
    let scratch_values = workspace + align(runs.most() * size_of::<K>()) as u64;
    let splits = scratch_values + align(runs.most() * at.value_bytes) as u64;
    for (group, &(begin, length)) in runs.groups.iter().enumerate() {
        let at_group = described_at + (group * RUNS_BYTES) as u64;
        let detected = DetectedRuns { at: at_group, scratch: (workspace, scratch_values), splits };
        // SAFETY: the caller's promise; a group lies inside the array, and its description inside that of all.
        unsafe { merge_long_runs::<K>(queue, plan, coding, at.part::<K>(begin, length), detected)? };
    }
    Ok(())
}

/// Queues the merge of the runs of `lengths` at `from`, one after the other, by merges of two: pass by pass into the
/// other array. Returns whether the result is in `to`.
///
/// # Safety
/// As for [`merge()`] or [`merge_pairs`] of all keys. Both arrays are as long as the runs together, and both are
/// written.
pub(in crate::gpu) unsafe fn merge_tree<K: Key>(
    queue: &impl Queue,
    mut lengths: Vec<usize>,
    mut from: Arrays,
    mut to: Arrays,
    workspace: Address,
) -> Result<bool, Error> {
    let mut in_to = false;
    while lengths.len() > 1 {
        let mut begin = 0;
        for siblings in lengths.chunks(2) {
            // A last one without a sibling is merged with nothing, which copies it.
            let (m, n) = (siblings[0], siblings.get(1).copied().unwrap_or(0));
            let (a, b, out) = (from.part::<K>(begin, m), from.part::<K>(begin + m, n), to.part::<K>(begin, m + n));
            // SAFETY: the caller's promise; the parts lie inside the arrays, and those of one are apart from the
            // other's.
            unsafe {
                if from.value_bytes == 0 {
                    merge::<K>(queue, MergeKernel::Auto, a, b, out.keys, workspace)?;
                } else {
                    merge_pairs::<K>(queue, a, b, out, workspace)?;
                }
            }
            begin += m + n;
        }
        lengths = lengths.chunks(2).map(|siblings| siblings.iter().sum()).collect();
        (from, to, in_to) = (to, from, !in_to);
    }
    Ok(in_to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_runs_are_merged_in_groups_until_one_is_left() {
        let lengths = |count: usize| (1..=count).collect::<Vec<_>>();
        let groups = |count| ManyRuns::new(lengths(count)).groups;
        assert_eq!(groups(0), []);
        assert_eq!(groups(1), []);
        assert_eq!(groups(2), [(0, 3)]);
        assert_eq!(groups(32), [(0, 528)]);
        // The last run is left alone in the first pass.
        assert_eq!(groups(33), [(0, 528), (0, 561)]);
        assert_eq!(groups(34), [(0, 528), (528, 67), (0, 595)]);
        assert_eq!(groups(1025).len(), 32 + 1 + 1);
        assert_eq!(groups(1025).last(), Some(&(0, 1025 * 1026 / 2)));
    }

    #[test]
    fn a_group_is_described_as_the_sort_describes_runs_that_it_detects() {
        let many = ManyRuns::new(vec![5; 34]);
        assert_eq!(many.described.len(), 3 * RUNS_BYTES);
        let group = &many.described[RUNS_BYTES..][..RUNS_BYTES];
        let words: Vec<u32> = bytemuck::pod_collect_to_vec(&group[..detect_runs::DETECTION_WORDS * size_of::<u32>()]);
        assert_eq!(words, [1, 0, 1, 0]);
        let begins: Vec<usize> = bytemuck::pod_collect_to_vec(&many.described[2 * RUNS_BYTES..][WORDS_BYTES..][..16]);
        assert_eq!(begins, [160, 0]);
        let first: Vec<usize> = bytemuck::pod_collect_to_vec(&many.described[WORDS_BYTES..][..32 * 8]);
        assert!(first[..31].iter().copied().eq((5..160).step_by(5)));
        assert_eq!(first[31], 0);
    }
}
