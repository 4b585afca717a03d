//! Set operations, against the definition of their results: how often each key occurs.

use super::super::sets;
use super::keys::*;
use super::*;
use crate::{Descending, GpuKey, NanOrder, SetOperation};
use kernels_gpu::kernels::set_operation::combine_sets::tile_keys;
use kernels_gpu::tuning::ROW;
use std::cmp::Ordering;

/// `len` ascending keys from a pool of different keys, which both arrays of a test share.
fn multiset<K: TestKey>(pool: &[K], len: usize, random: &mut StdRng) -> Vec<K> {
    let mut keys: Vec<K> = (0..len).map(|_| pool[random.random_range(0..pool.len())]).collect();
    keys.sort_by(K::compare);
    keys
}

/// The keys of the result: the array of each key, and its index there.
pub(super) fn expected<T: Copy>(
    operation: SetOperation,
    a: &[T],
    b: &[T],
    order: fn(&T, &T) -> Ordering,
) -> Vec<(bool, usize)> {
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
        kept.extend(from_a.map(|copy| (true, i + copy)));
        kept.extend(from_b.map(|copy| (false, j + copy)));
        (i, j) = (i + of_a, j + of_b);
    }
    kept
}

fn values<V: Word>(first: usize, len: usize) -> Vec<V> {
    (first..first + len).map(|i| V::from_register(3 * i as u64)).collect()
}

/// Checks all operations on `a` and `b`, which are ascending by `order`, the order of `G`.
fn check_as<K: TestKey, V: Word, G: GpuKey>(a: &[K], b: &[K], order: fn(&K, &K) -> Ordering, what: &str, seed: u64) {
    for operation in SetOperation::ALL {
        let device = Device::new(seed);
        let value_bytes = size_of::<V>();
        let with = |keys: &[K], first| values::<V>(first, if value_bytes > 0 { keys.len() } else { 0 });
        let arrays = |keys: &[K], first| Arrays {
            keys: address(device.array(keys)),
            values: address(device.array(&with(keys, first))),
            len: keys.len(),
            value_bytes,
        };
        let most = operation.most_keys(a.len(), b.len());
        let (keys, moved) = (device.uninit::<K>(most), device.uninit::<V>(if value_bytes > 0 { most } else { 0 }));
        let out = Arrays { keys: address(keys), values: address(moved), len: most, value_bytes };
        let count = device.array(&[u64::MAX]);
        let workspace = device.workspace(sets::workspace_bytes::<G>(a.len() + b.len()));
        let (queue, of_a, of_b) = (device.queue(), arrays(a, 0), arrays(b, a.len()));
        // SAFETY: the arrays are as long as they are said to be, and the emulator checks accesses.
        unsafe { sets::set_operation::<G>(&queue, operation, of_a, of_b, out, address(count), workspace) }
            .expect("all is launched");
        let expected = expected(operation, a, b, order);
        let at = || {
            format!(
                "{operation} of {} and {} {} keys, {what}, values of {value_bytes} bytes, seed {seed}",
                a.len(),
                b.len(),
                <K as crate::Key>::NAME
            )
        };
        assert_eq!(device.read(count), [expected.len() as u64], "{}", at());
        let found: Vec<u64> = device.elements(keys, expected.len());
        let from: Vec<K> = expected.iter().map(|&(of_a, i)| if of_a { a[i] } else { b[i] }).collect();
        assert!(found == raw_bits(&from), "keys: {}", at());
        if value_bytes > 0 {
            let indices = expected.iter().map(|&(of_a, i)| if of_a { i } else { a.len() + i });
            let from: Vec<V> = indices.map(|i| V::from_register(3 * i as u64)).collect();
            assert!(device.elements(moved, expected.len()) == raw_bits(&from), "values: {}", at());
        }
    }
}

fn check<K: TestKey, V: Word>((m, n): (usize, usize), different: usize) {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    let pool: Vec<K> = if different == 1 { Keys::Equal } else { Keys::Any }.random(different, seed);
    let (a, b) = (multiset(&pool, m, &mut random), multiset(&pool, n, &mut random));
    check_as::<K, V, K>(&a, &b, K::compare, &format!("{different} different"), seed);
}

#[test]
fn sets_are_combined_with_sizes_around_tiles() {
    fn all<K: TestKey>() {
        let tile = ROW.sets.of(size_of::<K>(), 0);
        let tile = tile_keys(tile.threads, tile.items_per_thread);
        let totals = [1, 2, 33, tile - 1, tile, tile + 1, 3 * tile - 1, 3 * tile, 3 * tile + 1, 4 * tile + 77];
        check::<K, ()>((0, 0), 1);
        check::<K, u64>((0, 0), 1);
        for total in totals {
            for m in [0, total / 3, total / 2, total] {
                for different in [1, 3, total / 8 + 1, 4 * total] {
                    check::<K, ()>((m, total - m), different);
                }
            }
        }
    }
    all::<f32>();
    all::<u64>();
}

#[test]
fn values_come_from_the_array_of_their_key() {
    fn all<K: TestKey>() {
        let tile = ROW.sets.of(size_of::<K>(), 4);
        let tile = tile_keys(tile.threads, tile.items_per_thread);
        for total in [1, tile - 1, tile + 1, 3 * tile + 1] {
            for (m, different) in [(0, 5), (total / 3, 1), (total / 2, 4), (total / 2, total), (total, total)] {
                check::<K, u32>((m, total - m), different);
                check::<K, u64>((m, total - m), different);
            }
        }
    }
    for_all_types!(all());
}

#[test]
fn groups_that_span_tiles_are_paired() {
    // The groups of both arrays begin and end at all distances from the ends of tiles and of threads' parts.
    for round in 0..40 {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let mut groups = |most: usize| {
            let mut keys = Vec::new();
            for key in 0..6u32 {
                keys.extend(std::iter::repeat_n(key, random.random_range(0..=most)));
            }
            keys
        };
        let (a, b) = (groups(2000 + 100 * round), groups(if round % 2 == 0 { 4000 } else { 50 }));
        check_as::<u32, u32, u32>(&a, &b, u32::compare, "six long groups", seed);
    }
}

#[test]
fn floats_are_combined_in_total_order() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    let pool =
        [-f32::NAN, f32::NEG_INFINITY, -1.5, -0.0, 0.0, 1.0, f32::INFINITY, f32::NAN, f32::from_bits(0x7fc0_0001)];
    let (a, b) = (multiset(&pool, 5000, &mut random), multiset(&pool, 4000, &mut random));
    check_as::<f32, u64, f32>(&a, &b, f32::total_cmp, "special", seed);
}

#[test]
fn arrays_with_orders_of_nans_are_combined() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    let pool: Vec<f64> = Keys::Ends.random(3000, seed);
    let [mut a, mut b] = [6000, 5000].map(|len| multiset(&pool, len, &mut random));
    let orders: [(NanOrder, fn(&f64, &f64) -> Ordering); 2] = [
        (NanOrder::Last, |a, b| a.compare_with(b, NanOrder::Last)),
        (NanOrder::First, |a, b| a.compare_with(b, NanOrder::First)),
    ];
    for (nans, compare) in orders {
        a.sort_by(compare);
        b.sort_by(compare);
        with_nans!(nans, Ordered => check_as::<f64, u32, Ordered<f64>>(&a, &b, compare, "NaNs at one end", seed));
    }
}

#[test]
fn descending_arrays_are_combined() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    let pool: Vec<i64> = Keys::Any.random(3000, seed);
    let [mut a, mut b] = [6000, 5000].map(|len| multiset(&pool, len, &mut random));
    a.reverse();
    b.reverse();
    check_as::<i64, u32, Descending<i64>>(&a, &b, |x, y| y.cmp(x), "descending", seed);
}

#[test]
fn arrays_that_are_not_ascending_are_no_reason_to_leave_arrays() {
    fn all<V: Word>(greatest: u32) {
        let seed = fresh_seed();
        // The greatest key of the type, in the middle of a tile, is the sentinel behind its runs.
        let keys = |len: usize, seed: u64| -> Vec<u32> {
            let few = Keys::Few.random::<u32>(len, seed);
            few.into_iter().map(|key| if key % 3 == greatest { u32::MAX } else { key }).collect()
        };
        let (a, b) = (keys(18_000, seed), keys(16_000, seed ^ 1));
        for operation in SetOperation::ALL {
            let device = Device::new(seed);
            let value_bytes = size_of::<V>();
            let with = |len: usize| values::<V>(0, if value_bytes > 0 { len } else { 0 });
            let arrays = |keys: &[u32]| Arrays {
                keys: address(device.array(keys)),
                values: address(device.array(&with(keys.len()))),
                len: keys.len(),
                value_bytes,
            };
            let most = operation.most_keys(a.len(), b.len());
            let (keys, moved) =
                (device.uninit::<u32>(most), device.uninit::<V>(if value_bytes > 0 { most } else { 0 }));
            let out = Arrays { keys: address(keys), values: address(moved), len: most, value_bytes };
            let (a, b) = (arrays(&a), arrays(&b));
            let (count, workspace) =
                (device.uninit::<u64>(1), device.workspace(sets::workspace_bytes::<u32>(a.len + b.len)));
            // SAFETY: the arrays are as long as they are said to be, and the emulator checks accesses.
            unsafe {
                sets::set_operation::<u32>(&device.queue(), operation, a, b, out, address(count), workspace)
                    .expect("all is launched");
            }
        }
    }
    for greatest in [0, 1, 2, 3] {
        all::<()>(greatest);
        all::<u32>(greatest);
        all::<u64>(greatest);
    }
}
