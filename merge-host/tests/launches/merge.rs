//! Merges of two runs, of batches and of many runs, against the standard library's stable sort.

use crate::common::*;
use cuda_std::Word;
use kernels_gpu::textbook::merge_small;
use kernels_gpu::tuning;
use merge_host::launches::KeyOrder;
use merge_host::launches::batch::{Batch, Lengths, Ragged};
use merge_host::launches::emulated::{Device, address};
use merge_host::launches::merge::{Merge, MergeTree};
use merge_host::{BatchKernel, MergeKernel};
use rand::Rng;
use std::collections::HashSet;

/// Merges `m` keys with the other keys of `total`.
fn check_merge<K: TestKey, V: Word>(kernel: MergeKernel, keys: Keys, m: usize, total: usize) -> Device {
    let seed = fresh_seed();
    let device = Device::new(seed);
    let input = keys.in_runs::<K>(&[m, total - m], KeyOrder::ASCENDING, seed);
    let [a, b] = [(&input[..m], 0), (&input[m..], m)].map(|(run, first)| Pairs::<K, V>::of(&device, run, first));
    let out = Pairs::<K, V>::uninit(&device, total);
    device.run(&Merge {
        kernel,
        coding: KeyOrder::ASCENDING.coding::<K>().into(),
        a: a.arrays(),
        b: b.arrays(),
        out: out.arrays(),
    });
    let expected = sorted_segments(&input, KeyOrder::ASCENDING, &[0, total]);
    out.check(&device, &input, &expected, &|| format!("{keys:?}, {m} of {total} keys by {kernel:?}"));
    device
}

#[test]
fn two_runs_are_merged_by_every_kernel() {
    fn check<K: TestKey>() {
        let (small, mut case) = (merge_small::MAX_KEYS, 0..);
        for kernel in MergeKernel::ALL {
            let tile = match kernel {
                MergeKernel::Auto => tuning::fused(size_of::<K>()).keys(),
                MergeKernel::MergePath => tuning::merge(size_of::<K>(), 0).keys(),
                _ => 2048,
            };
            let around = [small, tile, 3 * tile].into_iter().flat_map(|total| [total - 1, total, total + 1]);
            for total in [0, 1, 2].into_iter().chain(around) {
                for (keys, m) in [(Keys::Any, total / 3), (Keys::Few, total / 2), (Keys::Any, total), (Keys::Any, 0)] {
                    if !case.next().is_some_and(takes_turn::<K>) {
                        continue;
                    }
                    let device = check_merge::<K, ()>(kernel, keys, m, total);
                    let expected: &[&str] = match kernel {
                        _ if total == 0 => &[],
                        MergeKernel::Auto if total <= small => &["merge_small"],
                        MergeKernel::Auto => &["merge_fused"],
                        MergeKernel::MergePath => &["path_big", "merge_big"],
                        MergeKernel::Basic => &["merge_basic"],
                        MergeKernel::Tiled => &["merge_tiled"],
                        MergeKernel::Circular => &["merge_circular"],
                        _ => panic!("{kernel:?} has no kernels here"),
                    };
                    assert_eq!(device.kernels(), HashSet::from_iter(expected.iter().copied()));
                }
            }
        }
    }
    for_all_types!(check());
}

#[test]
fn two_runs_with_values_are_merged() {
    fn check<K: TestKey>() {
        let (tile, mut case) = (tuning::indexed(size_of::<K>()).keys(), 0..);
        for total in [0, 1, 2, tile - 1, tile, tile + 1, 3 * tile + 1] {
            for (keys, m) in [(Keys::Any, total / 3), (Keys::Few, total / 2), (Keys::Equal, total - total / 3)] {
                for checked in [check_merge::<K, u32>, check_merge::<K, u64>] {
                    if case.next().is_some_and(takes_turn::<K>) {
                        checked(MergeKernel::Auto, keys, m, total);
                    }
                }
            }
        }
    }
    for_all_types!(check());
}

/// The runs of a batch, with the offsets of each side: all keys of A, then all keys of B.
struct Problems<K> {
    input: Vec<K>,
    offsets: [Vec<usize>; 2],
}

impl<K: TestKey> Problems<K> {
    fn new(keys: Keys, lengths: &[(usize, usize)], seed: u64) -> Self {
        let (a, b): (Vec<usize>, Vec<usize>) = lengths.iter().copied().unzip();
        let input = keys.in_runs(&[&a[..], &b].concat(), KeyOrder::ASCENDING, seed);
        Self { input, offsets: [offsets_of(&a), offsets_of(&b)] }
    }

    /// The arrays of both sides, and of the output.
    fn arrays<V: Word>(&self, device: &Device) -> [Pairs<K, V>; 3] {
        let of_a = self.offsets[0][self.offsets[0].len() - 1];
        let (a, b) = self.input.split_at(of_a);
        [Pairs::of(device, a, 0), Pairs::of(device, b, of_a), Pairs::uninit(device, self.input.len())]
    }

    /// The indices of the merged keys.
    fn merged(&self) -> Vec<usize> {
        let [a, b] = &self.offsets;
        let of_a = a[a.len() - 1];
        let problems = a.windows(2).zip(b.windows(2));
        let indices = problems.clone().flat_map(|(a, b)| (a[0]..a[1]).chain(of_a + b[0]..of_a + b[1])).collect();
        let lengths: Vec<usize> = problems.map(|(a, b)| a[1] - a[0] + b[1] - b[0]).collect();
        sorted_indices(&self.input, KeyOrder::ASCENDING, indices, &offsets_of(&lengths))
    }
}

#[test]
fn batches_are_merged_by_every_kernel_and_with_values() {
    fn check<K: TestKey, V: Word>(kernel: BatchKernel, keys: Keys, lengths: Lengths) {
        let seed = fresh_seed();
        let Lengths { problems, d, a_len } = lengths;
        let (device, of) = (Device::new(seed), Problems::<K>::new(keys, &vec![(a_len, d - a_len); problems], seed));
        let arrays = of.arrays::<V>(&device);
        device.run(&Batch {
            kernel,
            coding: KeyOrder::ASCENDING.coding::<K>().into(),
            arrays: arrays.map(Pairs::arrays),
            lengths,
        });
        let what = || format!("{keys:?}, {problems} problems of {a_len} of {d} by {kernel:?}");
        arrays[2].check(&device, &of.input, &of.merged(), &what);
    }
    fn all<K: TestKey>() {
        let mut case = 0..;
        for (problems, d) in [(0, 10), (1, 1), (1, 1024), (7, 1000), (100, 2), (33, 255), (10, 257), (1000, 13)] {
            for a_len in [0, d / 2, d] {
                let lengths = Lengths { problems, d, a_len };
                if case.next().is_some_and(takes_turn::<K>) {
                    BatchKernel::ALL.into_iter().for_each(|kernel| check::<K, ()>(kernel, Keys::Any, lengths));
                    check::<K, u32>(BatchKernel::Auto, Keys::Few, lengths);
                    check::<K, u64>(BatchKernel::Auto, Keys::Any, lengths);
                }
            }
            // The types take different numbers of keys of A for each length.
            case.next();
        }
    }
    for_all_types!(all());
}

#[test]
fn pairs_of_runs_of_any_lengths_are_merged() {
    fn check<K: TestKey, V: Word>(keys: Keys, lengths: &[(usize, usize)], what: &str) {
        let seed = fresh_seed();
        let (device, of) = (Device::new(seed), Problems::<K>::new(keys, lengths, seed));
        let [a, b, out] = of.arrays::<V>(&device);
        let offsets = [0, 1].map(|side| address(device.array(&of.offsets[side])));
        let (a, b, problems) = (a.arrays(), b.arrays(), lengths.len());
        device.run(&Ragged {
            coding: KeyOrder::ASCENDING.coding::<K>().into(),
            a,
            b,
            offsets,
            problems,
            out: out.arrays(),
        });
        out.check(&device, &of.input, &of.merged(), &|| format!("{keys:?}, {what}"));
    }
    fn all<K: TestKey>() {
        let mut random = fresh_random();
        let tile = tuning::ragged(size_of::<K>()).keys();
        let any = (0..300).map(|_| (random.random_range(0..=40), random.random_range(0..=40))).collect();
        let batches = [
            ("none", vec![]),
            ("empty ones", vec![(0, 0); 10]),
            ("one tile less a key", vec![(tile / 2, tile - tile / 2 - 1)]),
            ("one tile", vec![(1, tile - 1)]),
            ("one tile and a key", vec![(tile, 1)]),
            ("a long one among short ones", vec![(3, 4), (2 * tile, tile), (0, 0), (5, 0)]),
            ("any lengths", any),
        ];
        for (case, (what, lengths)) in batches.into_iter().enumerate() {
            for (i, keys) in [Keys::Any, Keys::Few].into_iter().enumerate() {
                if takes_turn::<K>(case + i) {
                    with_all_values!(check::<K>(keys, &lengths, what));
                }
            }
        }
    }
    for_all_types!(all());
}

#[test]
fn runs_are_merged_two_by_two() {
    fn check<K: TestKey, V: Word>(keys: Keys, lengths: &[usize]) {
        let seed = fresh_seed();
        let input = keys.in_runs::<K>(lengths, KeyOrder::ASCENDING, seed);
        let device = Device::new(seed);
        let (from, to) = (Pairs::<K, V>::of(&device, &input, 0), Pairs::<K, V>::uninit(&device, input.len()));
        device.run(&MergeTree {
            coding: KeyOrder::ASCENDING.coding::<K>().into(),
            lengths,
            from: from.arrays(),
            to: to.arrays(),
        });
        let merged = if MergeTree::ends_in_to(lengths.len()) { to } else { from };
        let expected = sorted_segments(&input, KeyOrder::ASCENDING, &[0, input.len()]);
        merged.check(&device, &input, &expected, &|| format!("{keys:?}, {} runs", lengths.len()));
    }
    fn all<K: TestKey>() {
        let shapes = [vec![100], vec![1, 5000], vec![3000; 5], vec![700; 32], vec![400; 33], vec![9, 8000, 1, 1, 7000]];
        for (case, lengths) in shapes.into_iter().enumerate() {
            if takes_turn::<K>(case) {
                check::<K, ()>(Keys::Any, &lengths);
                check::<K, u32>(Keys::Few, &lengths);
                check::<K, u64>(Keys::Any, &lengths);
            }
        }
    }
    for_all_types!(all());
}
