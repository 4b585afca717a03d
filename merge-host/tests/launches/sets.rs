//! Set operations, against the definition of their results: how often each key occurs.

use crate::common::*;
use cuda_std::Word;
use kernels_gpu::kernels::set_operation::combine_sets::tile_keys;
use kernels_gpu::tuning::ROW;
use merge_host::launches::emulated::{Device, address};
use merge_host::launches::sets::Sets;
use merge_host::launches::{Arrays, KeyOrder};
use merge_host::{Descending, GpuKey, SetOperation};
use rand::Rng;
use rand::rngs::StdRng;
use std::cmp::Ordering;

/// `len` ascending keys from a pool of different keys, which both arrays of a test share.
fn multiset<K: TestKey>(pool: &[K], len: usize, random: &mut StdRng) -> Vec<K> {
    let mut keys: Vec<K> = (0..len).map(|_| pool[random.random_range(0..pool.len())]).collect();
    keys.sort_by(K::compare);
    keys
}

/// The keys of the result: their indices in both arrays, one after the other.
pub fn expected<T: Copy>(operation: SetOperation, a: &[T], b: &[T], order: fn(&T, &T) -> Ordering) -> Vec<usize> {
    let (mut kept, mut i, mut j) = (Vec::new(), 0, 0);
    while i < a.len() || j < b.len() {
        let next = match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) if order(x, y).is_le() => *x,
            (Some(x), None) => *x,
            (_, y) => *y.unwrap(),
        };
        let copies = |keys: &[T], from: usize| keys[from..].iter().take_while(|key| order(key, &next).is_eq()).count();
        let (of_a, of_b) = (copies(a, i), copies(b, j));
        let pairs = of_a.min(of_b);
        let (from_a, from_b) = match operation {
            SetOperation::Union => (0..of_a, pairs..of_b),
            SetOperation::Intersection => (0..pairs, 0..0),
            SetOperation::Difference => (pairs..of_a, 0..0),
            SetOperation::SymmetricDifference => (pairs..of_a, pairs..of_b),
        };
        kept.extend(from_a.map(|copy| i + copy));
        kept.extend(from_b.map(|copy| a.len() + j + copy));
        (i, j) = (i + of_a, j + of_b);
    }
    kept
}

/// The device, the result of the operation on `a` and `b` in the order of `G`, and the number of its keys. By the seed,
/// the arrays have more elements, and only the device knows how many count.
fn combined<K: TestKey, V: Word, G: GpuKey>(
    operation: SetOperation,
    a: &[K],
    b: &[K],
    seed: u64,
) -> (Device, Pairs<K, V>, usize) {
    let device = Device::new(seed);
    let behind = [0, 0, 1, 9000][(seed % 4) as usize];
    let [of_a, of_b] = [(a, 0), (b, a.len())].map(|(keys, first)| {
        let all = [keys, &Keys::Any.random::<K>(behind, seed)].concat();
        let number = if !seed.is_multiple_of(4) { address(device.array(&[keys.len() as u64])) } else { 0 };
        Arrays { count: number, ..Pairs::<K, V>::of(&device, &all, first).arrays() }
    });
    let (out, count) = (Pairs::uninit(&device, operation.most_keys(of_a.len, of_b.len)), device.array(&[u64::MAX]));
    device.run(&Sets {
        coding: KeyOrder::ASCENDING.coding::<G>().into(),
        operation,
        a: of_a,
        b: of_b,
        out: out.arrays(),
        count: address(count),
    });
    let count = device.read(count)[0] as usize;
    (device, out, count)
}

/// Checks all operations on `a` and `b`, which are ascending by `order`, the order of `G`.
fn check_as<K: TestKey, V: Word, G: GpuKey>(a: &[K], b: &[K], order: fn(&K, &K) -> Ordering, what: &str, seed: u64) {
    for operation in SetOperation::ALL {
        let (device, out, count) = combined::<K, V, G>(operation, a, b, seed);
        let expected = expected(operation, a, b, order);
        let what = || format!("{operation} of {} and {} keys, {what}", a.len(), b.len());
        assert_eq!(count, expected.len(), "{}, seed {seed}", what());
        out.check(&device, &[a, b].concat(), &expected, &what);
    }
}

fn check<K: TestKey, V: Word>((m, n): (usize, usize), different: usize) {
    let (seed, mut random) = (fresh_seed(), fresh_random());
    let pool: Vec<K> = if different == 1 { Keys::Equal } else { Keys::Any }.random(different, seed);
    let (a, b) = (multiset(&pool, m, &mut random), multiset(&pool, n, &mut random));
    check_as::<K, V, K>(&a, &b, K::compare, &format!("{different} different"), seed);
}

/// Keys of a tile for keys of type `K` with values of `value_bytes` bytes.
fn tile_of<K>(value_bytes: usize) -> usize {
    let tile = ROW.sets.of(size_of::<K>(), value_bytes);
    tile_keys(tile.threads, tile.items_per_thread)
}

#[test]
fn sets_are_combined_with_sizes_around_tiles() {
    fn all<K: TestKey>() {
        let tile = tile_of::<K>(0);
        let totals = [1, 2, 33, tile - 1, tile, tile + 1, 3 * tile - 1, 3 * tile, 3 * tile + 1, 4 * tile + 77];
        check::<K, ()>((0, 0), 1);
        check::<K, u64>((0, 0), 1);
        // Each of both widths takes half of the cases.
        let mut case = if size_of::<K>() == 4 { 0.. } else { 1.. };
        for total in totals {
            for m in [0, total / 3, total / 2, total] {
                for different in [1, 3, total / 8 + 1, 4 * total] {
                    if case.next().is_some_and(|case| case % 2 == 0) {
                        check::<K, ()>((m, total - m), different);
                    }
                }
                case.next();
            }
        }
    }
    all::<f32>();
    all::<u64>();
}

#[test]
fn values_come_from_the_array_of_their_key() {
    fn all<K: TestKey>() {
        let (tile, mut case) = (tile_of::<K>(4), 0..);
        for total in [1, tile - 1, tile + 1, 3 * tile + 1] {
            for (m, different) in [(0, 5), (total / 3, 1), (total / 2, 4), (total / 2, total), (total, total)] {
                for checked in [check::<K, u32>, check::<K, u64>] {
                    if case.next().is_some_and(takes_turn::<K>) {
                        checked((m, total - m), different);
                    }
                }
            }
        }
    }
    for_all_types!(all());
}

/// The groups of both arrays begin and end at all distances from the ends of tiles and of threads' parts.
#[test]
fn groups_that_span_tiles_are_paired() {
    for round in 0..40 {
        let (seed, mut random) = (fresh_seed(), fresh_random());
        let mut groups = |most: usize| -> Vec<u32> {
            (0..6).flat_map(|key| std::iter::repeat_n(key, random.random_range(0..=most))).collect()
        };
        let (a, b) = (groups(2000 + 100 * round), groups(if round % 2 == 0 { 4000 } else { 50 }));
        check_as::<u32, u32, u32>(&a, &b, u32::compare, "six long groups", seed);
    }
}

#[test]
fn floats_are_combined_in_total_order() {
    let (seed, mut random) = (fresh_seed(), fresh_random());
    let pool =
        [-f32::NAN, f32::NEG_INFINITY, -1.5, -0.0, 0.0, 1.0, f32::INFINITY, f32::NAN, f32::from_bits(0x7fc0_0001)];
    let (a, b) = (multiset(&pool, 5000, &mut random), multiset(&pool, 4000, &mut random));
    check_as::<f32, u64, f32>(&a, &b, f32::total_cmp, "special", seed);
}

/// The greatest key is the sentinel behind the runs of a tile.
#[test]
fn greatest_keys_are_paired_with_each_other_alone() {
    let (seed, mut random) = (fresh_seed(), fresh_random());
    for (m, n) in [(2000, 30), (30, 2000), (2000, 0), (1500, 1500)] {
        let (a, b) = (multiset(&[7, u32::MAX], m, &mut random), multiset(&[7, u32::MAX], n, &mut random));
        check_as::<u32, u32, u32>(&a, &b, u32::compare, "the greatest and another", seed);
    }
}

#[test]
fn descending_arrays_are_combined() {
    let (seed, mut random) = (fresh_seed(), fresh_random());
    let pool: Vec<i64> = Keys::Any.random(3000, seed);
    let [mut a, mut b] = [6000, 5000].map(|len| multiset(&pool, len, &mut random));
    a.reverse();
    b.reverse();
    check_as::<i64, u32, Descending<i64>>(&a, &b, |x, y| y.cmp(x), "descending", seed);
}

/// The emulator reports accesses outside of the arrays.
#[test]
fn arrays_that_are_not_ascending_are_no_reason_to_leave_arrays() {
    fn all<V: Word>(greatest: u32) {
        let seed = fresh_seed();
        // The greatest key of the type, in the middle of a tile, is the sentinel behind its runs.
        let keys = |len: usize, seed: u64| -> Vec<u32> {
            let few = Keys::Few.random::<u32>(len, seed);
            few.into_iter().map(|key| if key % 3 == greatest { u32::MAX } else { key }).collect()
        };
        for operation in SetOperation::ALL {
            combined::<u32, V, u32>(operation, &keys(18_000, seed), &keys(16_000, seed ^ 1), seed);
        }
    }
    for greatest in [0, 1, 2, 3] {
        with_all_values!(all(greatest));
    }
}
