//! The first keys of the order, of a slice and of parts, against a stable sort of all keys.

use crate::common::*;
use merge_host::{Engine, Error, SortOrder, TopK};
use rand::Rng;

const ORDERS: [SortOrder; 2] = [SortOrder::Ascending, SortOrder::Descending];

/// Engines of one thread and of several threads. The longer inputs are long enough for several.
fn engines() -> [Engine; 2] {
    [Engine::cpu_with_threads(1).unwrap(), Engine::cpu_with_threads(3).unwrap()]
}

/// Checks the first `k` of these keys, taken from one slice and from parts.
fn check<K: TestKey, V: TestValue>(keys: &[K], k: usize, rng: &mut impl Rng, what: &str) {
    let given = values::<V>(0, keys.len());
    for (order, engine) in ORDERS.into_iter().zip(engines()).chain(ORDERS.into_iter().rev().zip(engines())) {
        let mut first = sorted_indices(order, keys);
        first.truncate(k);
        let want_pairs = (gathered(keys, &first), gathered(&given, &first));
        let want = want_pairs.0.clone();
        let what = || format!("{k} of {} keys, {what}, {order:?}, {engine:?}", keys.len());

        let (mut out, mut indices) = (poisoned(&want), vec![7u32; first.len()]);
        engine.top_k_indices(order, keys, (&mut out, &mut indices)).unwrap();
        assert_same(&out, &want, what);
        assert!(indices.iter().map(|&i| i as usize).eq(first), "indices of {}", what());
        let mut out = poisoned(&want);
        engine.top_k(order, keys, &mut out).unwrap();
        assert_same(&out, &want, what);
        let mut out = poisoned_pairs(&want_pairs);
        engine.top_k(order, (keys, &given), (&mut out.0, &mut out.1)).unwrap();
        assert_same_pairs(&out, &want_pairs, what);

        let (mut top, mut pairs) = (TopK::<K>::new(order, k), TopK::<K, V>::new(order, k));
        let mut begin = 0;
        while begin < keys.len() {
            // Some parts are empty.
            let part = begin..(begin + rng.random_range(0..=keys.len() / 3 + 1)).min(keys.len());
            top.add(&engine, &keys[part.clone()]).unwrap();
            pairs.add(&engine, (&keys[part.clone()], &given[part.clone()])).unwrap();
            begin = part.end;
        }
        assert_same(&top.into_sorted(&engine).unwrap().0, &want, what);
        let (found, found_values, _) = pairs.into_sorted(&engine).unwrap();
        assert_same_pairs(&(found, found_values), &want_pairs, what);
    }
}

fn check_kinds<K: TestKey, V: TestValue>(seed: u64) {
    let mut rng = rng(seed);
    for kind in KINDS {
        for n in [0, 1, 2, 1000] {
            let keys = keys::<K>(kind, n, &mut rng);
            for k in [0, 1, n / 2, n] {
                check::<K, V>(&keys, k.min(n), &mut rng, &format!("{kind}, seed {seed}"));
            }
        }
    }
}

#[test]
fn the_first_keys_are_those_of_a_stable_sort() {
    let seed = seed();
    for_all_pairs!(check_kinds(seed));
}

/// Several blocks of 2^16 keys, several rounds of blocks, and more candidates than are kept.
#[test]
fn the_first_of_many_keys() {
    let seed = seed();
    let mut rng = rng(seed);
    for kind in ["any bits", "16 values", "all equal", "ascending"] {
        for n in [65_535, 65_537, 800_000] {
            let keys = keys::<f32>(kind, n, &mut rng);
            for k in [1, 20_000, n / 2, n] {
                check::<f32, u64>(&keys, k, &mut rng, &format!("{kind}, seed {seed}"));
            }
        }
    }
    // The keys of each part precede all keys added before.
    let descending: Vec<u64> = (0..400_000).rev().collect();
    check::<u64, ()>(&descending, 30_000, &mut rng, "descending");
}

#[test]
fn fewer_keys_than_are_wanted_are_all_of_them() {
    let engine = Engine::cpu();
    let (mut top, mut pairs) = (TopK::new(SortOrder::Descending, usize::MAX), TopK::new(SortOrder::Descending, 9));
    top.add(&engine, &[1u8, 3]).unwrap();
    top.add(&engine, &[2]).unwrap();
    assert_eq!(top.into_sorted(&engine).unwrap().0, [3, 2, 1]);
    pairs.add(&engine, (&[1.0, 3.0], &['a', 'b'])).unwrap();
    let expected = Error::ValuesMismatch { what: "the part", keys: 1, values: 2 };
    assert_eq!(pairs.add(&engine, (&[5.0], &['x', 'y'])), Err(expected));
    let (keys, values, _) = pairs.into_sorted(&engine).unwrap();
    assert_eq!((keys, values), (vec![3.0, 1.0], vec!['b', 'a']));
    assert_eq!(TopK::<u128>::new(SortOrder::Ascending, 0).into_sorted(&engine).unwrap().0, []);
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let engine = Engine::cpu();
    let (mut out, mut indices) = ([0u32; 3], [0u64; 2]);
    let too_few = Error::TooFewKeys { k: 3, found: 2 };
    assert_eq!(engine.top_k(SortOrder::Ascending, &[1, 2], &mut out), Err(too_few.clone()));
    let of_out = (&mut out, &mut [0u64; 3]);
    assert_eq!(engine.top_k_indices(SortOrder::Ascending, &[1, 2], of_out), Err(too_few));
    let too_few = Error::ValuesMismatch { what: "out", keys: 3, values: 2 };
    assert_eq!(engine.top_k_indices(SortOrder::Ascending, &[1, 2, 3], (&mut out, &mut indices)), Err(too_few));
}
