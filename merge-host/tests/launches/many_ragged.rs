//! Merges of groups of the runs of an array into another one, against the standard library's stable sort of each group.

use crate::common::*;
use crate::many_runs::any_lengths;
use cuda_std::Word;
use kernels_gpu::kernels::sort::merge_pass::many_runs::keys_of_tile;
use merge_host::launches::KeyOrder;
use merge_host::launches::emulated::{Device, address};
use merge_host::launches::many_ragged::{MergeManyRagged, RunGroups};
use rand::Rng;

/// The lengths of an array's runs, and the number of runs of each group.
#[derive(Clone, Debug)]
struct Shape {
    lengths: Vec<usize>,
    groups: Vec<usize>,
}

impl Shape {
    /// Runs of the given lengths, in groups of the given numbers of runs.
    fn new(lengths: &[usize], groups: &[usize]) -> Self {
        assert_eq!(lengths.len(), groups.iter().sum());
        Self { lengths: lengths.to_vec(), groups: groups.to_vec() }
    }

    /// Runs of any lengths, with about `n` keys in all.
    fn any(groups: &[usize], n: usize) -> Self {
        let count = groups.iter().sum();
        Self::new(&if count == 0 { vec![] } else { any_lengths(count, n) }, groups)
    }

    /// The number of keys.
    fn keys(&self) -> usize {
        self.lengths.iter().sum()
    }

    /// Where each group begins and ends, in keys.
    fn ends_of_groups(&self) -> Vec<usize> {
        let offsets = offsets_of(&self.lengths);
        offsets_of(&self.groups).into_iter().map(|run| offsets[run]).collect()
    }

    /// The most runs and the most keys of a group.
    fn largest(&self) -> (usize, usize) {
        let longest = self.ends_of_groups().windows(2).map(|ends| ends[1] - ends[0]).max();
        (self.groups.iter().copied().max().unwrap_or(0), longest.unwrap_or(0))
    }

    /// Runs and groups on a device, which is told the most runs and the most keys of a group.
    fn upload(&self, device: &Device, (most_runs, longest): (usize, usize)) -> RunGroups {
        let [offsets, groups] =
            [&self.lengths, &self.groups].map(|lengths| address(device.array(&offsets_of(lengths))));
        RunGroups { offsets, runs: self.lengths.len(), groups, count: self.groups.len(), most_runs, longest }
    }
}

/// Merges groups of runs of `input` on a new device that is told `known`. Checks that the input is unchanged. Groups
/// that can be merged in place are merged so as well.
fn merge<K: TestKey, V: Word>(
    input: &[K],
    shape: &Shape,
    known: (usize, usize),
    order: KeyOrder,
    seed: u64,
) -> (Device, Pairs<K, V>) {
    let device = Device::new(seed);
    let (from, groups) = (Pairs::<K, V>::of(&device, input, 0), shape.upload(&device, known));
    let out = Pairs::<K, V>::uninit(&device, input.len());
    device.run(&MergeManyRagged { coding: order.coding::<K>().into(), from: from.arrays(), groups, out: out.arrays() });
    for (at, lengths) in [(groups.offsets, &shape.lengths), (groups.groups, &shape.groups)] {
        let words = offsets_of(lengths).into_iter().flat_map(|offset| [offset as u32, 0]);
        assert!(device.words(at, 2 * (lengths.len() + 1)).into_iter().eq(words), "the offsets were written");
    }
    from.check(&device, input, &(0..input.len()).collect::<Vec<_>>(), &|| "input of a merge".to_owned());
    if groups.can_be_in_place::<K::OnGpu>(input.len(), size_of::<V>()) {
        let other = Device::new(seed);
        let (at, groups) = (Pairs::<K, V>::of(&other, input, 0), shape.upload(&other, known));
        other.run(&MergeManyRagged { coding: order.coding::<K>().into(), from: at.arrays(), groups, out: at.arrays() });
        assert!(raw_bits(&other.read(at.keys)) == raw_bits(&device.read(out.keys)), "keys in place, seed {seed}");
        assert!(raw_bits(&other.read(at.values)) == raw_bits(&device.read(out.values)), "values in place, seed {seed}");
    }
    (device, out)
}

/// Sorts each run of `input`, merges groups of runs on a new device, and compares.
fn check_keys<K: TestKey, V: Word>(input: &[K], shape: &Shape, known: (usize, usize), seed: u64) -> Device {
    let order = order_of(seed);
    let in_runs = sorted_segments(input, order, &offsets_of(&shape.lengths));
    let input: Vec<K> = in_runs.into_iter().map(|i| input[i]).collect();
    let (device, out) = merge::<K, V>(&input, shape, known, order, seed);
    let (runs, groups) = (shape.lengths.len(), shape.groups.len());
    let what = || format!("{} keys, {runs} runs, {groups} groups, {order:?}", input.len());
    out.check(&device, &input, &sorted_segments(&input, order, &shape.ends_of_groups()), &what);
    device
}

/// Merges random keys in the groups of `shape`, alone and with values of both widths, with the largest group known or
/// not. `launches` is a kernel that is then launched.
fn check<K: TestKey>(keys: Keys, shape: &Shape, launches: &str) {
    with_all_values!(check_one::<K>(keys, shape, launches));
}

fn check_one<K: TestKey, V: Word>(keys: Keys, shape: &Shape, launches: &str) {
    let seed = fresh_seed();
    let known = if seed.is_multiple_of(3) { (usize::MAX, usize::MAX) } else { shape.largest() };
    let device = check_keys::<K, V>(&keys.random(shape.keys(), seed), shape, known, seed);
    assert!(device.kernels().contains(launches), "{:?}, seed {seed}", device.kernels());
}

/// Numbers of runs of `count` groups: none, one, a few, and at times many.
fn any_groups(count: usize, most: usize) -> Vec<usize> {
    let mut random = fresh_random();
    let group = |i| match i % 5 {
        0 => 0,
        1 => 1,
        2 | 3 => random.random_range(0..=5.min(most)),
        _ => random.random_range(0..=most),
    };
    (0..count).map(group).collect()
}

const MERGE: &str = "merge_many_runs";
const SORT: &str = "find_segments";

#[test]
fn any_groups_of_runs_of_any_lengths() {
    fn of<K: TestKey>(most: &[usize]) {
        let tile = keys_of_tile(size_of::<K>(), 0, 2) as usize;
        for (case, &most) in most.iter().enumerate() {
            let groups = [vec![2], any_groups(20, most)].concat();
            with_values_in_turn!(case, check_one::<K>(Keys::Any, &Shape::any(&groups, 4 * tile), MERGE));
            with_values_in_turn!(case + 1, check_one::<K>(Keys::Few, &Shape::any(&groups, tile), MERGE));
        }
    }
    for_all_types!(of(&[5]));
    of::<u32>(&[2, 3, 4, 16, 31, 32, 33, 40, 300]);
    of::<f64>(&[3, 33, 300]);
}

#[test]
fn many_groups_of_few_keys_are_sorted() {
    fn of<K: TestKey>(most: usize) {
        for (case, n) in [500 * most, 20_000].into_iter().enumerate() {
            let groups = [vec![2], any_groups(700, most)].concat();
            with_values_in_turn!(case, check_one::<K>(Keys::Any, &Shape::any(&groups, n), SORT));
            with_values_in_turn!(case + 1, check_one::<K>(Keys::Few, &Shape::any(&groups, n), SORT));
            // One of the groups is long.
            let mut shape = Shape::any(&groups, n);
            shape.lengths[1] = 10_000;
            with_values_in_turn!(case + 2, check_one::<K>(Keys::Few, &shape, SORT));
        }
    }
    of::<f32>(6);
    of::<i64>(6);
    of::<u32>(50);
}

#[test]
fn one_group_is_a_merge_of_all_runs() {
    for (runs, kernel) in [(2, "merge_big"), (3, MERGE), (50, MERGE)] {
        let (shape, seed) = (Shape::any(&[runs], 20_000), fresh_seed());
        let input = Keys::Few.random(shape.keys(), seed);
        let kernels = check_keys::<u32, u32>(&input, &shape, (runs, usize::MAX), seed).kernels();
        assert!(kernels.contains(kernel) && !kernels.contains("pad_runs"), "{kernels:?}");
        // Groups without runs before it and behind it.
        check::<u64>(Keys::Any, &Shape { groups: vec![0, 0, runs, 0], ..shape }, MERGE);
    }
}

#[test]
fn groups_of_one_run_are_copied() {
    for groups in [vec![1; 300], vec![1], vec![0, 1, 0, 0, 1], any_groups(40, 1)] {
        let (shape, seed) = (Shape::any(&groups, 5000), fresh_seed());
        let input = Keys::Any.random::<f32>(shape.keys(), seed);
        let device = check_keys::<f32, u64>(&input, &shape, (1, usize::MAX), seed);
        assert!(device.kernels().is_empty(), "{:?}", device.kernels());
        // The result is also right if the small sizes are not known.
        check_keys::<f32, u64>(&input, &shape, (usize::MAX, usize::MAX), seed);
    }
}

#[test]
fn nothing_is_merged_to_nothing() {
    for (lengths, groups) in [(0, vec![]), (0, vec![0; 5]), (7, vec![7]), (7, vec![3, 0, 4])] {
        for known in [(0, 0), (usize::MAX, usize::MAX)] {
            let shape = Shape::new(&vec![0; lengths], &groups);
            let device = check_keys::<u32, u32>(&[], &shape, known, fresh_seed());
            assert!(device.kernels().is_empty(), "{:?}", device.kernels());
        }
    }
}

#[test]
fn thousands_of_groups_of_nothing() {
    for runs in [0, 2] {
        // Two groups have all keys.
        let mut groups = vec![runs; 3000];
        (groups[17], groups[2900]) = (5, 3);
        let mut lengths = vec![0; groups.iter().sum()];
        let (first, last) = (17 * runs, 2899 * runs + 5);
        (lengths[first], lengths[first + 3], lengths[first + 4]) = (2000, 1, 700);
        (lengths[last], lengths[last + 2]) = (30, 2000);
        check::<i64>(Keys::Few, &Shape::new(&lengths, &groups), SORT);
    }
    // Few enough for merges.
    let mut groups = vec![0; 200];
    (groups[0], groups[100], groups[199]) = (2, 40, 3);
    check::<i32>(Keys::Few, &Shape::any(&groups, 30_000), MERGE);
}

#[test]
fn groups_that_fill_their_merges() {
    // Groups with a first run at a multiple of a pass's fan-in, right before it, and right behind it.
    for groups in [vec![4; 9], vec![3, 4, 5, 4, 4], vec![4, 0, 4, 1, 3], vec![33; 3], vec![64, 64], vec![1, 63, 65]] {
        check_one::<u32, u64>(Keys::Few, &Shape::any(&groups, 9000), MERGE);
        // All keys in one run, which is not the first of its group.
        let count = groups.iter().sum();
        for (case, at) in [1, count / 2, count - 1].into_iter().enumerate() {
            let mut lengths = vec![0; count];
            lengths[at] = 5000;
            with_values_in_turn!(case, check_one::<f32>(Keys::Any, &Shape::new(&lengths, &groups), MERGE));
        }
    }
}

#[test]
fn equal_keys_stay_in_the_order_of_their_runs() {
    fn all<K: TestKey>() {
        check::<K>(Keys::Equal, &Shape::any(&[3, 1, 0, 7, 2], 20_000), MERGE);
        check::<K>(Keys::Equal, &Shape::any(&[3; 300], 10_000), SORT);
    }
    all::<f32>();
    all::<i64>();
}

#[test]
fn odd_floats_stay_exact() {
    fn all<V: Word>() {
        for groups in [vec![2, 5, 0, 40], vec![3; 300]] {
            let shape = Shape::any(&groups, 15_000);
            let input = odd_floats(shape.keys(), &mut fresh_random());
            check_keys::<f32, V>(&input, &shape, shape.largest(), fresh_seed());
        }
    }
    with_all_values!(all());
}

/// The content of `out` is then unspecified, but all accesses are inside the arrays, and each key of `out` is written.
#[test]
fn runs_that_are_not_sorted_do_no_harm() {
    fn all<K: TestKey, V: Word>() {
        for groups in [vec![5, 0, 1, 70, 2], vec![3; 300]] {
            let (shape, seed) = (Shape::any(&groups, 20_000), fresh_seed());
            let input = Keys::Any.random::<K>(shape.keys(), seed);
            let (device, out) = merge::<K, V>(&input, &shape, shape.largest(), KeyOrder::ASCENDING, seed);
            // Uninitialised elements would be reported.
            assert_eq!(device.read(out.keys).len(), input.len());
            device.read(out.values);
        }
    }
    all::<u32, ()>();
    all::<f64, ()>();
    all::<u32, u32>();
    all::<u64, u64>();
}

/// The keys of a group are then in an unspecified order, but no key leaves its group.
#[test]
fn groups_of_more_runs_than_was_said_keep_their_keys() {
    fn all<K: TestKey, V: Word>() {
        for most_runs in [0, 1, 2, 9, 69] {
            let (shape, seed) = (Shape::any(&[5, 0, 1, 70, 2, 300], 20_000), fresh_seed());
            let input = Keys::Any.in_runs::<K>(&shape.lengths, KeyOrder::ASCENDING, seed);
            let known = (most_runs, shape.largest().1);
            let (device, out) = merge::<K, V>(&input, &shape, known, KeyOrder::ASCENDING, seed);
            let (merged, input) = (raw_bits(&device.read(out.keys)), raw_bits(&input));
            for ends in shape.ends_of_groups().windows(2) {
                let [merged, input] = [&merged, &input].map(|bits| {
                    let mut bits = bits[ends[0]..ends[1]].to_vec();
                    bits.sort_unstable();
                    bits
                });
                assert!(merged == input, "up to {most_runs} runs, seed {seed}");
            }
        }
    }
    all::<u32, ()>();
    all::<f64, u32>();
}

/// The launches of a merge of all runs, and one more for each pass.
#[test]
fn groups_of_up_to_32_runs_are_merged_without_a_copy() {
    for (most_runs, launches) in [(2, 3), (32, 3), (33, 6), (1024, 6)] {
        let (shape, seed) = (Shape::any(&[2, most_runs, 1], 5000), fresh_seed());
        let n = shape.keys();
        let device = check_keys::<u32, ()>(&Keys::Any.random(n, seed), &shape, (most_runs, n), seed);
        assert_eq!(device.launched().len(), launches, "{most_runs} runs");
    }
}
