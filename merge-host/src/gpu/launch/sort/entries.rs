//! The entry points that a sort may launch, so that they can be loaded before.

use super::super::{Entry, Thresholds, bits, runs};
use super::SortPlan;
use crate::SortKernel;
use kernels_gpu::kernels::sort::block_sort::BLOCK_SORT;
use kernels_gpu::kernels::sort::detect_runs::{DETECT_RUNS, REVERSE};
use kernels_gpu::kernels::sort::indices::SET_INDICES;
use kernels_gpu::kernels::sort::merge_pass::merge_runs::MERGE_RUNS;
use kernels_gpu::kernels::sort::merge_pass::split_runs::SPLIT_RUNS;
use kernels_gpu::kernels::sort::runs::MAX_RUNS;
use kernels_gpu::key::Key;
use kernels_gpu::tuning;

impl SortPlan {
    /// The entry points that a sort of `n` keys of type `K` may launch.
    pub(in crate::gpu) fn entries<K: Key>(self, n: usize) -> Vec<Entry> {
        let keys = bits(size_of::<K>());
        let mut entries = vec![];
        if let Some(radix) = self.radix {
            entries.push(radix.entry::<K>());
        } else {
            entries.push((MERGE_RUNS.name, self.suffix::<K>()));
            if self.once().is_none() {
                entries.push((BLOCK_SORT.name, self.block_suffix::<K>()));
            }
            if !self.small {
                entries.push((SPLIT_RUNS.name, keys.clone()));
            }
        }
        if let Some(divide) = self.divide {
            entries.extend(divide.entries::<K>());
        }
        if self.sets_indices(n) {
            entries.push((SET_INDICES.name, bits(self.value_bytes)));
        }
        if self.detects(n) {
            entries.extend([(DETECT_RUNS.name, keys.clone()), (REVERSE.name, keys)]);
            if self.value_bytes > 0 {
                entries.push((REVERSE.name, bits(self.value_bytes)));
            }
            entries.extend(runs::entries::<K>(self.value_bytes));
        }
        entries
    }
}

/// Keys that one division is not enough for.
const SEVERAL_DIVISIONS: usize = 1 << 24;

/// The entry points that sorts of any number of keys may launch, alone or with values of `value_bytes` bytes.
pub(in crate::gpu::launch) fn entries_of_any_size<K: Key>(value_bytes: usize) -> Vec<Entry> {
    let thresholds = &Thresholds::DEFAULT;
    let sizes = [
        1,
        // More than one larger block sorts, and more than one pass merges the tiles of smaller blocks of.
        tuning::ROW.block_sort_tiny.of(4, 0).keys() + 1,
        tuning::ROW.block_sort_small.of(4, 0).keys() + 1,
        tuning::ROW.block_sort_tiny.of(4, 0).keys() * MAX_RUNS as usize + 1,
        thresholds.merged(value_bytes) + 1,
        thresholds.few_radix[0] + 1,
        thresholds.few_radix[1] + 1,
        thresholds.few_radix_v4 + 1,
        thresholds.undivided(size_of::<K>(), value_bytes) + 1,
        thresholds.small_sort + 1,
        SEVERAL_DIVISIONS,
        thresholds.detection_keys,
        thresholds.many_4,
    ];
    let entries = |n, indexes| {
        let plan = SortPlan::of::<K>(n, value_bytes, indexes);
        SortKernel::ALL.into_iter().flat_map(move |kernel| plan.with_kernel(kernel).entries::<K>(n))
    };
    let indexes = [false, true].into_iter().filter(|&indexes| !indexes || value_bytes > 0);
    indexes.flat_map(|indexes| sizes.into_iter().flat_map(move |n| entries(n, indexes))).collect()
}
