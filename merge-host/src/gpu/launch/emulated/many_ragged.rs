//! Merges of groups of the runs of an array into another one, against the standard library's stable sort of each group.

use super::super::many_ragged::{self, RunGroups};
use super::keys::*;
use super::many_runs::{any_lengths, offsets_of};
use super::*;
use crate::key_order::KeyOrder;
use kernels_gpu::kernels::sort::merge_pass::many_runs::keys_of_tile;

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
        let lengths = if count == 0 { vec![] } else { any_lengths(count, n) };
        Self::new(&lengths, groups)
    }

    /// Where each group begins and ends, in keys.
    fn ends_of_groups(&self) -> Vec<usize> {
        let offsets = offsets_of(&self.lengths);
        offsets_of(&self.groups).into_iter().map(|run| offsets[run]).collect()
    }

    fn most_runs(&self) -> usize {
        self.groups.iter().copied().max().unwrap_or(0)
    }

    fn longest(&self) -> usize {
        self.ends_of_groups().windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0)
    }
}

/// Runs and groups on a device, which is told the most runs and the most keys of a group.
fn upload(device: &Device, shape: &Shape, (most_runs, longest): (usize, usize)) -> RunGroups {
    let [offsets, groups] = [&shape.lengths, &shape.groups].map(|lengths| device.array(&offsets_of(lengths)));
    let (offsets, groups) = (address(offsets), address(groups));
    RunGroups { offsets, runs: shape.lengths.len(), groups, count: shape.groups.len(), most_runs, longest }
}

/// Keys and values on a device. Values are three times the indices.
fn upload_pairs<K: TestKey, V: Word>(device: &Device, input: &[K]) -> (Buffer<K>, Buffer<V>) {
    let values_of = if size_of::<V>() > 0 { input.len() } else { 0 };
    let values: Vec<V> = (0..values_of as u64).map(|i| V::from_register(3 * i)).collect();
    (device.array(input), device.array(&values))
}

fn arrays<K: TestKey, V: Word>((keys, values): (Buffer<K>, Buffer<V>), len: usize) -> Arrays {
    Arrays { keys: address(keys), values: address(values), len, value_bytes: size_of::<V>() }
}

/// Queues the merge of groups.
fn launch<K: TestKey>(device: &Device, order: KeyOrder, from: Arrays, groups: RunGroups, out: Arrays) {
    let workspace = device.workspace(many_ragged::workspace_bytes::<K>(from.len, groups, from.value_bytes));
    // SAFETY: the arrays are as long as they are said to be, and the emulator checks accesses.
    unsafe { many_ragged::merge_many_ragged::<K>(&device.queue(), order, from, groups, out, workspace) }
        .expect("the emulator launches all");
}

/// Merges groups of runs of `input` on a new device that is told `known`. Returns the device, and the keys and values
/// that the merge has written. Checks that the input is unchanged. Groups that can be merged in place are merged so as
/// well.
fn merge<K: TestKey, V: Word>(
    input: &[K],
    shape: &Shape,
    known: (usize, usize),
    order: KeyOrder,
    seed: u64,
) -> (Device, Vec<K>, Vec<V>) {
    let (device, n) = (Device::new(seed), input.len());
    let (from, groups) = (upload_pairs::<K, V>(&device, input), upload(&device, shape, known));
    let to = (device.uninit::<K>(n), device.uninit::<V>(if size_of::<V>() > 0 { n } else { 0 }));
    launch::<K>(&device, order, arrays(from, n), groups, arrays(to, n));
    let (merged, values) = (device.read(to.0), device.read(to.1));
    for (at, lengths) in [(groups.offsets, &shape.lengths), (groups.groups, &shape.groups)] {
        let words = offsets_of(lengths).into_iter().flat_map(|offset| [offset as u32, 0]);
        assert!(device.words(at, 2 * (lengths.len() + 1)).into_iter().eq(words), "the offsets were written");
    }
    let unwritten = upload_pairs::<K, V>(&device, input);
    assert!(raw_bits(&device.read(from.0)) == raw_bits(input), "the keys were written");
    assert!(raw_bits(&device.read(from.1)) == raw_bits(&device.read(unwritten.1)), "the values were written");
    if groups.can_be_in_place::<K>(n, size_of::<V>()) {
        let other = Device::new(seed);
        let (at, groups) = (upload_pairs::<K, V>(&other, input), upload(&other, shape, known));
        launch::<K>(&other, order, arrays(at, n), groups, arrays(at, n));
        assert!(raw_bits(&other.read(at.0)) == raw_bits(&merged), "keys in place, seed {seed}");
        assert!(raw_bits(&other.read(at.1)) == raw_bits(&values), "values in place, seed {seed}");
    }
    (device, merged, values)
}

/// Sorts each run of `input`, merges groups of runs on a new device, and compares.
fn check_keys<K: TestKey, V: Word>(mut input: Vec<K>, shape: &Shape, known: (usize, usize), seed: u64) -> Device {
    let order = order_of(seed);
    let compare = |a: &K, b: &K| a.compare_in(b, order);
    for ends in offsets_of(&shape.lengths).windows(2) {
        input[ends[0]..ends[1]].sort_by(compare);
    }
    let (device, merged, values) = merge::<K, V>(&input, shape, known, order, seed);
    let mut expected: Vec<usize> = (0..input.len()).collect();
    for ends in shape.ends_of_groups().windows(2) {
        expected[ends[0]..ends[1]].sort_by(|&i, &j| compare(&input[i], &input[j]));
    }
    let what = || {
        let (name, runs, groups) = (<K as crate::Key>::NAME, shape.lengths.len(), shape.groups.len());
        format!(
            "{} {name}, {runs} runs, {groups} groups, {order:?}, {} bytes, seed {seed}",
            input.len(),
            size_of::<V>()
        )
    };
    let sorted: Vec<K> = expected.iter().map(|&i| input[i]).collect();
    assert!(raw_bits(&merged) == raw_bits(&sorted), "keys: {}", what());
    if size_of::<V>() > 0 {
        let expected = expected.into_iter().map(|i| 3 * i as u64);
        assert!(values.iter().map(|value| value.to_register()).eq(expected), "values: {}", what());
    }
    device
}

/// Merges random keys in the groups of `shape`, alone and with values of both widths, with the largest group known or
/// not. `launches` is a kernel that is then launched.
fn check<K: TestKey>(keys: Keys, shape: &Shape, launches: &str) {
    fn one<K: TestKey, V: Word>(keys: Keys, shape: &Shape, launches: &str) {
        let seed = fresh_seed();
        let known =
            if seed.is_multiple_of(3) { (usize::MAX, usize::MAX) } else { (shape.most_runs(), shape.longest()) };
        let device = check_keys::<K, V>(keys.random(shape.lengths.iter().sum(), seed), shape, known, seed);
        assert!(device.kernels().contains(launches), "{:?}, seed {seed}", device.kernels());
    }
    one::<K, ()>(keys, shape, launches);
    one::<K, u32>(keys, shape, launches);
    one::<K, u64>(keys, shape, launches);
}

/// Numbers of runs of `count` groups: none, one, a few, and at times many.
fn any_groups(count: usize, most: usize) -> Vec<usize> {
    let mut random = StdRng::seed_from_u64(fresh_seed());
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
        for &most in most {
            let groups = [vec![2], any_groups(20, most)].concat();
            check::<K>(Keys::Any, &Shape::any(&groups, 4 * tile), MERGE);
            check::<K>(Keys::Few, &Shape::any(&groups, tile), MERGE);
        }
    }
    for_all_types!(of(&[5]));
    of::<u32>(&[2, 3, 4, 16, 31, 32, 33, 40, 300]);
    of::<f64>(&[3, 33, 300]);
}

#[test]
fn many_groups_of_few_keys_are_sorted() {
    fn of<K: TestKey>(most: usize) {
        for n in [500 * most, 20_000] {
            let groups = [vec![2], any_groups(700, most)].concat();
            check::<K>(Keys::Any, &Shape::any(&groups, n), SORT);
            check::<K>(Keys::Few, &Shape::any(&groups, n), SORT);
            check::<K>(Keys::Ends, &Shape::any(&groups, n), SORT);
            // One of the groups is long.
            let mut shape = Shape::any(&groups, n);
            shape.lengths[1] = 10_000;
            check::<K>(Keys::Few, &shape, SORT);
        }
    }
    of::<f32>(6);
    of::<i64>(6);
    of::<u32>(50);
}

#[test]
fn one_group_is_a_merge_of_all_runs() {
    for (runs, kernel) in [(2, "merge_two_runs"), (3, MERGE), (50, MERGE)] {
        let shape = Shape::any(&[runs], 20_000);
        let seed = fresh_seed();
        let device = check_keys::<u32, u32>(Keys::Few.random(shape.longest(), seed), &shape, (runs, usize::MAX), seed);
        assert!(device.kernels().contains(kernel) && !device.kernels().contains("pad_runs"), "{:?}", device.kernels());
        // Groups without runs before it and behind it.
        check::<u64>(Keys::Any, &Shape { groups: vec![0, 0, runs, 0], ..shape }, MERGE);
    }
}

#[test]
fn groups_of_one_run_are_copied() {
    for groups in [vec![1; 300], vec![1], vec![0, 1, 0, 0, 1], any_groups(40, 1)] {
        let (shape, seed) = (Shape::any(&groups, 5000), fresh_seed());
        let input = || Keys::Any.random::<f32>(shape.lengths.iter().sum(), seed);
        let device = check_keys::<f32, u64>(input(), &shape, (1, usize::MAX), seed);
        assert!(device.kernels().is_empty(), "{:?}", device.kernels());
        // The result is also right if the small sizes are not known.
        check_keys::<f32, u64>(input(), &shape, (usize::MAX, usize::MAX), seed);
    }
}

#[test]
fn nothing_is_merged_to_nothing() {
    for shape in
        [Shape::new(&[], &[]), Shape::new(&[], &[0; 5]), Shape::new(&[0; 7], &[7]), Shape::new(&[0; 7], &[3, 0, 4])]
    {
        for known in [(0, 0), (usize::MAX, usize::MAX)] {
            let device = check_keys::<u32, u32>(vec![], &shape, known, fresh_seed());
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
        let first = 17 * runs;
        let mut lengths = vec![0; groups.iter().sum()];
        (lengths[first], lengths[first + 3], lengths[first + 4]) = (2000, 1, 700);
        let last = 2899 * runs + 5;
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
        check::<u32>(Keys::Few, &Shape::any(&groups, 9000), MERGE);
        // All keys in one run, which is not the first of its group.
        let count = groups.iter().sum();
        for at in [1, count / 2, count - 1] {
            let mut lengths = vec![0; count];
            lengths[at] = 5000;
            check::<f32>(Keys::Any, &Shape::new(&lengths, &groups), MERGE);
        }
    }
}

#[test]
fn equal_keys_stay_in_the_order_of_their_runs() {
    fn all<K: TestKey>() {
        check::<K>(Keys::Equal, &Shape::any(&[3, 1, 0, 7, 2], 20_000), MERGE);
        check::<K>(Keys::Equal, &Shape::any(&[3; 300], 10_000), SORT);
    }
    for_all_types!(all());
}

/// Keys with an order that only their bits define: NaNs of both signs, zeros of both signs, and infinities.
#[test]
fn odd_floats_stay_exact() {
    fn all<V: Word>() {
        let odd = [f32::NAN, -f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, 1.5];
        for groups in [vec![2, 5, 0, 40], vec![3; 300]] {
            let (shape, seed) = (Shape::any(&groups, 15_000), fresh_seed());
            let mut random = StdRng::seed_from_u64(seed);
            let n = shape.lengths.iter().sum();
            let input = (0..n).map(|_| odd[random.random_range(0..odd.len())]).collect();
            check_keys::<f32, V>(input, &shape, (shape.most_runs(), shape.longest()), seed);
        }
    }
    all::<()>();
    all::<u32>();
    all::<u64>();
}

/// The content of `out` is then unspecified, but all accesses are inside the arrays, and each key of `out` is written.
#[test]
fn runs_that_are_not_sorted_do_no_harm() {
    fn all<K: TestKey, V: Word>() {
        for groups in [vec![5, 0, 1, 70, 2], vec![3; 300]] {
            let (shape, seed) = (Shape::any(&groups, 20_000), fresh_seed());
            let input = Keys::Any.random::<K>(shape.lengths.iter().sum(), seed);
            let known = (shape.most_runs(), shape.longest());
            let (_, merged, _) = merge::<K, V>(&input, &shape, known, KeyOrder::ASCENDING, seed);
            assert_eq!(merged.len(), input.len());
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
            let mut input = Keys::Any.random::<K>(shape.lengths.iter().sum(), seed);
            for ends in offsets_of(&shape.lengths).windows(2) {
                input[ends[0]..ends[1]].sort_by(K::compare);
            }
            let known = (most_runs, shape.longest());
            let (_, merged, _) = merge::<K, V>(&input, &shape, known, KeyOrder::ASCENDING, seed);
            for ends in shape.ends_of_groups().windows(2) {
                let sorted = |keys: &[K]| {
                    let mut bits = raw_bits(&keys[ends[0]..ends[1]]);
                    bits.sort_unstable();
                    bits
                };
                assert!(sorted(&merged) == sorted(&input), "up to {most_runs} runs, seed {seed}");
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
        let n = shape.lengths.iter().sum();
        let device = check_keys::<u32, ()>(Keys::Any.random(n, seed), &shape, (most_runs, n), seed);
        assert_eq!(device.launched.borrow().len(), launches, "{most_runs} runs");
    }
}
