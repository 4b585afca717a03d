//! The workspace of a sort: its parts, their offsets, and its length.

use super::super::divide::DividePlan;
use super::super::merge::bytes_of_workspace;
use super::super::radix::{self, RadixPlan};
use super::super::runs::{self, RUNS_BYTES};
use super::super::{Address, align};
use super::SortPlan;
use crate::MergeKernel;
use kernels_gpu::key::Bits;

/// The most keys of a sort. Runs of the last pass then have fewer than 2^32 keys, as the kernels require. More keys and
/// their copy exceed the memory of any GPU.
pub(super) const MAX_KEYS: usize = 1 << 35;

/// Offsets of the parts of a sort's workspace, in bytes, and its end. The keys' scratch array is at its start.
pub struct Layout {
    values: usize,
    /// The description of detected runs, and the words on the order of the keys.
    pub runs: usize,
    radix: usize,
    /// The lists of the divisions.
    pub lists: usize,
    splits: usize,
    end: usize,
}

/// Addresses of the parts of a sort's workspace.
#[derive(Clone, Copy)]
pub(super) struct Workspace {
    /// Room for a copy of the keys and of the values.
    pub(super) scratch: (Address, Address),
    /// The results of `detect_runs`, or 0 if it is not called and keys are not divided.
    pub(super) detected: Address,
    /// The words of a sort by all bits.
    pub(super) radix: radix::Words,
    /// The lists of the divisions.
    pub(super) lists: Address,
    /// The splits of runs, or 0 if kernels find them by themselves.
    pub(super) splits: Address,
}

impl Layout {
    /// The parts of the workspace at `begin`. With `knows_order`, something is known of the keys before they are
    /// sorted. With `has_splits`, a kernel of its own finds splits.
    pub(super) const fn at(&self, begin: Address, knows_order: bool, has_splits: bool) -> Workspace {
        let detected = if knows_order { begin + self.runs as Address } else { 0 };
        let splits = begin + self.splits as Address;
        let radix = radix::Words { cleared: begin + self.radix as Address, published: splits, order: detected };
        Workspace {
            scratch: (begin, begin + self.values as Address),
            detected,
            radix,
            lists: begin + self.lists as Address,
            splits: if has_splits { splits } else { 0 },
        }
    }

    /// The number of words of a sort by all bits that are 0 before it. They are between the description of the runs and
    /// the lists.
    pub(super) const fn radix_words(&self) -> u32 {
        ((self.lists - self.radix) / size_of::<u32>()) as u32
    }
}

impl SortPlan {
    /// Bytes of the splits of any pass, of merges of parts, and of long runs if they may be detected. The kernels for
    /// few keys find splits by themselves.
    fn split_bytes<B: Bits>(self, n: usize) -> usize {
        let of_parts =
            if self.in_parts { bytes_of_workspace::<B>(MergeKernel::MergePath, n, self.value_bytes) } else { 0 };
        if self.small {
            return of_parts;
        }
        let mut run = self.first_run();
        let of_passes = self.passes(n).map(|k| {
            let tiles = self.runs_of_pass(n, run, k).tile_count();
            run *= k as usize;
            tiles * k as usize * size_of::<u32>()
        });
        let of_long_runs = if self.detects(n) { runs::split_bytes::<B>(n, self.value_bytes) } else { 0 };
        of_passes.max().unwrap_or(0).max(of_long_runs).max(of_parts)
    }

    /// The workspace for `n` keys with bits `B`, at most [`MAX_KEYS`].
    pub fn layout<B: Bits>(self, n: usize) -> Layout {
        let values = align(n * size_of::<B>());
        let runs = values + align(n * self.value_bytes);
        let radix = runs + align(RUNS_BYTES);
        let cleared = self.radix.map_or(0, |_| RadixPlan::CLEARED_WORDS * size_of::<u32>());
        let published = self.radix.map_or(0, RadixPlan::published_bytes);
        let lists = radix + align(cleared);
        // Only one of three is needed: the splits, the lists, or the words that tiles of a sort by all bits publish.
        // The heads of the lists are apart, because they say that there is nothing to divide if one of the others is in
        // use.
        let (heads, list_bytes) = self.divide.map_or((0, 0), |divide| (DividePlan::HEAD_BYTES, divide.list_bytes()));
        let splits = lists + align(heads);
        let end = (splits + self.split_bytes::<B>(n)).max(lists + list_bytes).max(splits + published);
        Layout { values, runs, radix, lists, splits, end }
    }

    /// Bytes of workspace for `n` keys with bits `B`: a copy of keys and values, and splits or counters. 0 if one block
    /// sorts all keys, and `usize::MAX` for more keys than a GPU sorts.
    pub fn workspace_bytes<B: Bits>(self, n: usize) -> usize {
        match n {
            _ if n <= self.block.keys() && !self.in_parts => 0,
            _ if n > MAX_KEYS => usize::MAX,
            _ => self.layout::<B>(n).end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SortKernel;
    use kernels_gpu::tuning;

    #[test]
    fn a_workspace_for_more_keys_than_a_gpu_sorts_is_larger_than_any() {
        for n in [MAX_KEYS + 1, usize::MAX / 8, usize::MAX / 4 + 1, usize::MAX] {
            assert_eq!(SortPlan::of::<u32>(n, 0, false).workspace_bytes::<u32>(n), usize::MAX);
            assert_eq!(SortPlan::of::<u64>(n, 8, false).workspace_bytes::<u64>(n), usize::MAX);
        }
    }

    #[test]
    fn a_workspace_takes_a_hundredth_more_than_the_arrays_or_24_kib() {
        fn check<B: Bits>() {
            let sizes = (12..32).flat_map(|log| [(1usize << log) - 1, 1 << log, (1 << log) + 1, 3 << (log - 1)]);
            for (n, value_bytes) in sizes.flat_map(|n| [0, 4, 8].map(|bytes| (n, bytes))) {
                for indexes in [false, value_bytes > 0] {
                    let bytes = SortPlan::of::<B>(n, value_bytes, indexes).workspace_bytes::<B>(n);
                    let arrays = n * (size_of::<B>() + value_bytes);
                    let more = (arrays / 100).max(24 << 10);
                    assert!(bytes <= arrays + more, "{} bytes more than {arrays} for {n} keys", bytes - arrays);
                }
            }
        }
        check::<u32>();
        check::<u64>();
    }

    #[test]
    fn the_workspace_is_enough_for_every_kernel() {
        fn check<B: Bits>() {
            for (n, value_bytes) in (0..=33).map(|log| 1 << log).flat_map(|n| [0, 4, 8].map(|bytes| (n, bytes))) {
                let plan = SortPlan::of::<B>(n, value_bytes, false);
                for kernel in SortKernel::ALL {
                    let needed = plan.with_kernel(kernel).workspace_bytes::<B>(n);
                    assert!(needed <= plan.workspace_bytes::<B>(n), "{n} keys by {kernel}");
                }
            }
        }
        check::<u32>();
        check::<u64>();
    }

    #[test]
    fn runs_of_the_last_pass_have_fewer_than_2_to_the_32_keys() {
        fn check<B: Bits>() {
            for value_bytes in [0, 4, 8] {
                // `Runs::new` panics for longer runs.
                let bytes = SortPlan::of::<B>(MAX_KEYS, value_bytes, false).workspace_bytes::<B>(MAX_KEYS);
                let arrays = MAX_KEYS * (size_of::<B>() + value_bytes);
                assert!((arrays..arrays + arrays / 50).contains(&bytes), "{bytes}");
            }
        }
        check::<u32>();
        check::<u64>();
    }

    #[test]
    fn keys_that_one_block_sorts_need_no_workspace() {
        assert_eq!(SortPlan::of::<u32>(0, 0, false).workspace_bytes::<u32>(0), 0);
        let block = tuning::ROW.block_sort_small.of(4, 0).keys();
        for n in
            [1, tuning::ROW.block_sort_tiny.of(4, 0).keys(), tuning::ROW.block_sort_tiny.of(4, 0).keys() + 1, block]
        {
            assert_eq!(SortPlan::of::<u32>(n, 0, false).workspace_bytes::<u32>(n), 0, "{n}");
        }
        assert!(SortPlan::of::<u32>(block + 1, 0, false).workspace_bytes::<u32>(block + 1) > 4 * block);
    }
}
