//! Runs and segments whose lengths only the device knows: their offsets, and operations on runs that end before the
//! keys of their array.

use crate::common::*;
use crate::many_runs::any_lengths;
use cuda_std::Word;
use kernels_gpu::kernels::sort::merge_pass::many_runs::keys_of_tile;
use merge_host::launches::emulated::{Device, address};
use merge_host::launches::many_ragged::{MergeManyRagged, RunGroups};
use merge_host::launches::many_runs::MergeMany;
use merge_host::launches::offsets::SetOffsets;
use merge_host::launches::segments::{Bounds, SortSegments};
use merge_host::launches::top_k_segments::TopKSegments;
use merge_host::launches::{Address, Arrays, KeyOrder};
use rand::Rng;

/// The offsets of runs of these lengths, at most `most`. Only the first `count` runs are not empty.
fn expected(lengths: &[u64], count: Option<u64>, most: usize) -> Vec<usize> {
    let mut ends = vec![0];
    let mut end = 0u128;
    for (i, &length) in lengths.iter().enumerate() {
        end += if count.is_none_or(|count| (i as u64) < count) { u128::from(length) } else { 0 };
        ends.push(end.min(most as u128) as usize);
    }
    ends
}

#[test]
fn lengths_are_added_to_offsets() {
    let mut random = fresh_random();
    for runs in [0, 1, 2, 1000, 4095, 4096, 4097, 10_000] {
        let counts = [0, 1, runs as u64 / 2, runs as u64, runs as u64 + 1, u64::MAX];
        for count in counts.map(Some).into_iter().chain([None]) {
            let greatest = [0, 5, 1 << 40, u64::MAX][random.random_range(0..4)];
            let lengths: Vec<u64> = (0..runs).map(|_| random.random_range(0..=greatest)).collect();
            let most = [0, 3 * runs, 1 << 48][random.random_range(0..3)];
            let (device, seed) = (Device::new(fresh_seed()), fresh_seed());
            let found = device.array(&vec![seed as usize; runs + 1]);
            let number = count.map_or(0, |count| address(device.array(&[count])));
            let lengths_at = Arrays { count: number, ..Arrays::keys(address(device.array(&lengths)), runs) };
            device.run(&SetOffsets { lengths: lengths_at, most, offsets: address(found) });
            let what = || format!("{count:?} of {runs} lengths up to {greatest}, at most {most}, {}", device.seed());
            assert!(device.read(found) == expected(&lengths, count, most), "{}", what());
        }
    }
}

/// Runs of these lengths before other keys, on a device.
struct Early<K, V> {
    device: Device,
    order: KeyOrder,
    /// All keys. The runs are sorted if this is asked for.
    input: Vec<K>,
    pairs: Pairs<K, V>,
    offsets: Vec<usize>,
    at: Address,
}

impl<K: TestKey, V: Word> Early<K, V> {
    fn new(lengths: &[usize], behind: usize, is_sorted: bool) -> Self {
        let seed = fresh_seed();
        let (device, order, offsets) = (Device::new(seed), order_of(seed), offsets_of(lengths));
        let end = *offsets.last().unwrap();
        let mut input = [Keys::Any, Keys::Few][(seed % 2) as usize].random::<K>(end + behind, seed);
        if is_sorted {
            let sorted: Vec<K> = sorted_segments(&input[..end], order, &offsets).iter().map(|&i| input[i]).collect();
            input[..end].copy_from_slice(&sorted);
        }
        let (pairs, at) = (Pairs::of(&device, &input, 0), address(device.array(&offsets)));
        Self { device, order, input, pairs, offsets, at }
    }

    fn end(&self) -> usize {
        *self.offsets.last().unwrap()
    }

    /// Compares the first keys of `found` with those of each segment between `offsets`, sorted.
    fn check(&self, found: Pairs<K, V>, offsets: &[usize], what: &str) {
        let expected = sorted_segments(&self.input[..self.end()], self.order, offsets);
        let few = &self.offsets[..self.offsets.len().min(9)];
        let what = || format!("{what}, {} runs {few:?} of {} keys", self.offsets.len() - 1, self.input.len());
        found.check(&self.device, &self.input, &expected, &what);
    }

    fn coding(&self) -> merge_host::launches::KeyCoding {
        self.order.coding::<K>().into()
    }

    fn sort_segments(lengths: &[usize], behind: usize) {
        let early = Self::new(lengths, behind, false);
        let bounds = Bounds::of_offsets(early.at, lengths.len(), early.input.len());
        let at = early.pairs.arrays();
        early.device.run(&SortSegments { coding: early.coding(), at, bounds, indexes: false });
        early.check(early.pairs, &early.offsets, "segments");
    }

    /// The first `k` keys of each segment, without their values.
    fn top_k_segments(lengths: &[usize], behind: usize, k: usize) {
        let early = Self::new(lengths, behind, false);
        let bounds = Bounds::of_offsets(early.at, lengths.len(), early.input.len());
        let slots = device_array(&early.device, k * lengths.len());
        let out = Arrays::keys(address(slots), k * lengths.len());
        let from = Arrays { values: 0, value_bytes: 0, ..early.pairs.arrays() };
        early.device.run(&TopKSegments { coding: early.coding(), from, bounds, k, out });
        let (sorted, found) = (
            sorted_segments(&early.input[..early.end()], early.order, &early.offsets),
            raw_bits::<K>(&early.device.read(slots)),
        );
        for (i, ends) in early.offsets.windows(2).enumerate() {
            let firsts = sorted[ends[0]..ends[1]].iter().take(k).map(|&i| early.input[i]).collect::<Vec<_>>();
            assert!(found[i * k..][..firsts.len()] == raw_bits(&firsts), "segment {i}, {}", early.device.seed());
        }
    }

    fn merge_many(lengths: &[usize], behind: usize) {
        let early = Self::new(lengths, behind, true);
        let out = Pairs::uninit(&early.device, early.input.len());
        let offsets = (early.at, lengths.len());
        let (from, coding) = (early.pairs.arrays(), early.coding());
        early.device.run(&MergeMany { coding, from, offsets, out: out.arrays() });
        early.check(out, &[0, early.end()], "merge");
    }

    /// Merges groups of `of_group` runs.
    fn merge_groups(lengths: &[usize], behind: usize, of_group: usize) {
        let early = Self::new(lengths, behind, true);
        let out = Pairs::uninit(&early.device, early.input.len());
        let mut groups: Vec<usize> = (0..lengths.len()).step_by(of_group).collect();
        groups.push(lengths.len());
        let ends: Vec<usize> = groups.iter().map(|&run| early.offsets[run]).collect();
        let groups = RunGroups {
            offsets: early.at,
            runs: lengths.len(),
            groups: address(early.device.array(&groups)),
            count: groups.len() - 1,
            most_runs: of_group,
            longest: early.input.len(),
        };
        let (from, coding) = (early.pairs.arrays(), early.coding());
        early.device.run(&MergeManyRagged { coding, from, groups, out: out.arrays() });
        early.check(out, &ends, "groups");
    }
}

/// An array of keys with some bits.
fn device_array<K: TestKey>(device: &Device, len: usize) -> cuda_std::emulator::Buffer<K> {
    device.array(&vec![K::of_ordered(5); len])
}

/// Lengths of few and of many runs, and numbers of keys behind them.
fn shapes() -> Vec<(Vec<usize>, usize)> {
    let mut random = fresh_random();
    let mut shapes = vec![(vec![0], 5), (vec![0, 0], 9000), (vec![0, 0, 0], 1), (vec![7], 0), (vec![1, 1], 100)];
    for runs in [1, 2, 3, 5, 40, 100] {
        for n in [50, 3000, 30_000] {
            let behind = [0, 1, 500, 20_000][random.random_range(0..4)];
            let mut lengths = any_lengths(runs, n);
            // Unused runs are empty.
            lengths[runs / 2 + 1..].iter_mut().for_each(|length| *length *= random.random_range(0..=1));
            shapes.push((lengths, behind));
        }
    }
    shapes
}

#[test]
fn segments_that_end_before_the_keys_are_sorted() {
    fn all<K: TestKey>() {
        for (case, (lengths, behind)) in shapes().into_iter().enumerate() {
            let k = [1, 20, 3000][case % 3];
            if takes_turn::<K>(case / 3) {
                with_values_in_turn!(case, sort_segments::<K>(&lengths, behind));
                Early::<K, ()>::top_k_segments(&lengths, behind, k);
            }
        }
    }
    fn sort_segments<K: TestKey, V: Word>(lengths: &[usize], behind: usize) {
        Early::<K, V>::sort_segments(lengths, behind);
    }
    for_all_types!(all());
}

#[test]
fn runs_that_end_before_the_keys_are_merged() {
    fn all<K: TestKey>() {
        let tile = keys_of_tile(size_of::<K>(), 0, 2) as usize;
        let of_tiles = vec![(vec![tile, tile], tile), (vec![tile / 2, 0, tile / 2], 3 * tile), (vec![0, 5], tile)];
        for (case, (lengths, behind)) in shapes().into_iter().chain(of_tiles).enumerate() {
            if takes_turn::<K>(case / 3) {
                with_values_in_turn!(case, merge::<K>(&lengths, behind));
            }
        }
    }
    fn merge<K: TestKey, V: Word>(lengths: &[usize], behind: usize) {
        Early::<K, V>::merge_many(lengths, behind);
        for of_group in [1, 2, 7] {
            Early::<K, V>::merge_groups(lengths, behind, of_group);
        }
    }
    for_all_types!(all());
}
