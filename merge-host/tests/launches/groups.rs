//! Unique keys, run lengths and reductions by key, against loops over the keys.

use crate::common::*;
use cuda_std::Word;
use kernels_gpu::tuning::{ROW, Tile};
use merge_host::launches::Operation;
use merge_host::launches::emulated::{Device, address};
use merge_host::launches::groups::{ReduceByKey, RunLengths, Unique};
use merge_host::launches::{Address, Arrays, KeyCoding, KeyOrder};
use merge_host::{Key, Reduction, Summand};
use rand::Rng;
use std::collections::HashSet;
use std::ops::Range;

/// `n` keys in groups of up to `most` equal keys, in no order. The first key of a group differs from the key before it.
fn in_groups<K: TestKey>(n: usize, most: usize, seed: u64) -> Vec<K> {
    let mut random = fresh_random();
    let mut keys = Vec::with_capacity(n);
    for key in Keys::Any.random::<K>(n + 1, seed) {
        let len = random.random_range(1..=most).min(n - keys.len());
        if keys.last().is_none_or(|last: &K| raw_bits(&[*last]) != raw_bits(&[key])) {
            keys.extend(std::iter::repeat_n(key, len));
        }
    }
    keys
}

/// The indices of each group's keys.
fn groups<K: TestKey>(keys: &[K]) -> Vec<Range<usize>> {
    let bits = raw_bits(keys);
    let is_begin = |&i: &usize| i == 0 || i == bits.len() || bits[i] != bits[i - 1];
    let begins: Vec<usize> = (0..=bits.len()).filter(is_begin).collect();
    begins.windows(2).map(|ends| ends[0]..ends[1]).collect()
}

/// The keys and values that an operation writes: `make` gets the coding of its keys, its input, its output and the
/// address of their number. By the seed, the input has more elements, and only the device knows how many count.
fn output<O: Operation, K: TestKey, V: Word, W: Word>(
    (keys, values): (&[K], &[V]),
    seed: u64,
    make: impl FnOnce(KeyCoding, Arrays, Arrays, Address) -> O,
) -> (Vec<u64>, Vec<u64>) {
    let device = Device::new(seed);
    let behind = [0, 0, 1, 50_000][(seed % 4) as usize];
    let (mut all, mut all_values) = (keys.to_vec(), values.to_vec());
    // They would be in the last group.
    all.extend(std::iter::repeat_n(*keys.last().unwrap_or(&K::of_ordered(5)), behind));
    all_values.extend(std::iter::repeat_n(V::from_register(1), if size_of::<V>() > 0 { behind } else { 0 }));
    let (from, values) = (Pairs::<K, ()>::of(&device, &all, 0).arrays(), device.array(&all_values));
    let number = if !seed.is_multiple_of(4) { address(device.array(&[keys.len() as u64])) } else { 0 };
    let at = Arrays { values: address(values), value_bytes: size_of::<V>(), count: number, ..from };
    let (out, count) = (Pairs::<K, W>::uninit(&device, all.len()), device.array(&[u64::MAX]));
    let coding = KeyOrder::ASCENDING.coding::<K>().into();
    device.run(&make(coding, at, out.arrays(), address(count)));
    let count = device.read(count)[0] as usize;
    assert!(count <= keys.len(), "{count} keys are kept of {}, seed {seed}", keys.len());
    let values = if size_of::<W>() > 0 { device.elements(out.values, count) } else { vec![] };
    (device.elements(out.keys, count), values)
}

/// Numbers of keys around the ends of tiles, and longest groups: much shorter and longer than a tile.
fn shapes(tile: Tile) -> impl Iterator<Item = (usize, usize)> {
    let tile = tile.keys();
    let numbers = [0, 1, 2, 33, tile - 1, tile, tile + 1, 3 * tile - 1, 3 * tile + 1];
    numbers.into_iter().flat_map(move |n| [1, 50, tile, 10 * tile].map(|most| (n, most)))
}

/// More tiles than a warp has lanes, in one group and in several.
fn many_tiles(tile: Tile) -> [(usize, usize); 2] {
    let tile = tile.keys();
    [(75 * tile, 100 * tile), (70 * tile + 5, 30 * tile)]
}

/// The first keys of groups, and what belongs to each group.
fn expected<K: TestKey>(keys: &[K], of_group: impl Fn(Range<usize>) -> Option<u64>) -> (Vec<u64>, Vec<u64>) {
    let groups = groups(keys);
    let first: Vec<K> = groups.iter().map(|group| keys[group.start]).collect();
    (raw_bits(&first), groups.into_iter().filter_map(of_group).collect())
}

#[test]
fn the_first_of_equal_keys_is_kept_with_its_value() {
    fn check<K: TestKey, V: Word>(first: usize) {
        for (case, (n, most)) in (first..).zip(shapes(ROW.unique.of(size_of::<K>(), size_of::<V>().min(4)))) {
            if !takes_turn::<K>(case) {
                continue;
            }
            let seed = fresh_seed();
            let keys = in_groups::<K>(n, most, seed);
            let of = |i: usize| V::from_register(3 * i as u64);
            let values: Vec<V> = (0..if size_of::<V>() > 0 { n } else { 0 }).map(of).collect();
            let found = output::<_, K, V, V>((&keys, &values), seed, |coding, at, out, count| Unique {
                coding,
                at,
                out,
                count,
            });
            let of_first = |group: Range<usize>| (size_of::<V>() > 0).then(|| of(group.start).to_register());
            let what = (n, <K as Key>::NAME, most, size_of::<V>(), seed);
            assert!(found == expected(&keys, of_first), "(keys, of type, in groups of, value bytes, seed): {what:?}");
        }
    }
    fn all<K: TestKey>() {
        check::<K, ()>(0);
        check::<K, u32>(1);
        check::<K, u64>(2);
    }
    for_all_types!(all());
}

#[test]
fn lengths_of_groups_are_counted_over_tiles() {
    fn check_keys<K: TestKey>(keys: &[K], most: usize, seed: u64) {
        let found =
            output::<_, K, (), u64>((keys, &[]), seed, |coding, at, out, count| RunLengths { coding, at, out, count });
        let expected = expected(keys, |group| Some(group.len() as u64));
        let (n, name) = (keys.len(), <K as Key>::NAME);
        assert!(found == expected, "{n} {name} keys in groups of up to {most}, seed {seed}");
    }
    fn check<K: TestKey>(n: usize, most: usize) {
        let seed = fresh_seed();
        check_keys(&in_groups::<K>(n, most, seed), most, seed);
    }
    fn all<K: TestKey>() {
        let shapes = (0..).zip(shapes(ROW.run_lengths.of(size_of::<K>(), 0)));
        shapes.filter(|(case, _)| takes_turn::<K>(*case)).for_each(|(_, (n, most))| check::<K>(n, most));
    }
    for_all_types!(all());
    many_tiles(ROW.run_lengths.of(8, 0)).into_iter().for_each(|(n, most)| check::<f64>(n, most));
    // The last tile has one group's begin, in its middle.
    let tile = ROW.run_lengths.of(4, 0).keys();
    let keys: Vec<u32> = (0..2 * tile).map(|i| u32::from(i >= tile + tile / 2)).collect();
    check_keys(&keys, 2 * tile, fresh_seed());
}

fn reduce<K: TestKey, V: TestKey + Summand>(
    reduction: Reduction,
    keys: &[K],
    values: &[V],
    seed: u64,
) -> (Vec<u64>, Vec<u64>) {
    let summands = KeyOrder::ASCENDING.coding::<V>().into();
    let make = |coding, at, out, count| ReduceByKey { reduction, coding, summands, at, out, count };
    output::<_, K, V, V>((keys, values), seed, make)
}

/// Sums of integers below a thousand, so that sums of floats are exact, and extremes of any values.
#[test]
fn values_of_equal_keys_are_reduced() {
    fn check<K: TestKey, V: TestKey + Summand>((n, most): (usize, usize), reduction: Reduction, small: fn(i32) -> V) {
        let seed = fresh_seed();
        let mut random = fresh_random();
        let keys = in_groups::<K>(n, most, seed);
        let values: Vec<V> = match reduction {
            Reduction::Sum => (0..n).map(|_| small(random.random_range(-1000..1000))).collect(),
            _ => Keys::Any.random(n, !seed),
        };
        let reduced = |group: Range<usize>| match reduction {
            Reduction::Sum => values[group].iter().copied().reduce(V::plus),
            Reduction::Min => values[group].iter().copied().min_by(V::compare),
            _ => values[group].iter().copied().max_by(V::compare),
        };
        let expected = expected(&keys, |group| reduced(group).map(Word::to_register));
        let what = (reduction, n, <V as Key>::NAME, <K as Key>::NAME, most, seed);
        assert!(reduce(reduction, &keys, &values, seed) == expected, "(…, values, keys, in groups of, seed): {what:?}");
    }
    for reduction in Reduction::ALL {
        shapes(ROW.reduce.of(4, 4)).for_each(|shape| check::<u32, u32>(shape, reduction, |small| small as u32));
        shapes(ROW.reduce.of(4, 8)).for_each(|shape| check::<f32, i64>(shape, reduction, i64::from));
        shapes(ROW.reduce.of(8, 4)).for_each(|shape| check::<i64, f32>(shape, reduction, |small| small as f32));
        let wide = shapes(ROW.reduce.of(8, 8)).chain(many_tiles(ROW.reduce.of(8, 8)));
        wide.for_each(|shape| check::<f64, f64>(shape, reduction, f64::from));
        check::<u32, i32>((1000, 9), reduction, |small| small);
        check::<u64, u64>((1000, 9), reduction, |small| small as u64);
    }
}

#[test]
fn zeros_of_both_signs_and_nans_are_groups_of_their_own() {
    let keys = [-0.0f32, -0.0, 0.0, f32::NAN, f32::NAN, -f32::NAN];
    let found =
        output::<_, f32, (), u64>((&keys, &[]), 1, |coding, at, out, count| RunLengths { coding, at, out, count });
    assert_eq!(found, (raw_bits(&[-0.0, 0.0, f32::NAN, -f32::NAN]), vec![2, 1, 2, 1]));
}

#[test]
fn the_sum_of_floats_is_the_same_each_time() {
    let n = 40 * ROW.reduce.of(4, 4).keys();
    let values = Keys::Any.random::<f32>(n, 5).into_iter().map(f32::fract);
    let values: Vec<f32> = values.map(|v| if v.is_nan() { 0.1 } else { v }).collect();
    let sums: HashSet<Vec<u64>> = (0..4).map(|seed| reduce(Reduction::Sum, &vec![7u32; n], &values, seed).1).collect();
    assert_eq!(sums.len(), 1);
}
