//! The first keys of the order, of a slice, of parts and of segments, against a stable sort of all keys.

use crate::common::*;
use merge_host::{Engine, Error, SortOrder, TopK};
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

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
        engine.top_k(order, keys, (&mut out, &mut indices)).unwrap();
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
            let mut all = [1, 20_000, n / 2, n];
            all.shuffle(&mut rng);
            for &k in if n < 100_000 { &all[..] } else { &all[..1] } {
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
    pairs.add(&engine, (&[1.0f32, 3.0], &[10u64, 20])).unwrap();
    let expected = Error::ValuesMismatch { what: "the part", keys: 1, values: 2 };
    assert_eq!(pairs.add(&engine, (&[5.0], &[30, 40])), Err(expected));
    let (keys, values, _) = pairs.into_sorted(&engine).unwrap();
    assert_eq!((keys, values), (vec![3.0, 1.0], vec![20, 10]));
    assert_eq!(TopK::<u128>::new(SortOrder::Ascending, 0).into_sorted(&engine).unwrap().0, []);
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let engine = Engine::cpu();
    let (mut out, mut indices) = ([0u32; 3], [0u64; 2]);
    let too_few = Error::TooFewKeys { k: 3, found: 2 };
    assert_eq!(engine.top_k(SortOrder::Ascending, &[1, 2], &mut out), Err(too_few.clone()));
    let of_out = (&mut out, &mut [0u64; 3]);
    assert_eq!(engine.top_k(SortOrder::Ascending, &[1, 2], of_out), Err(too_few));
    let too_few = Error::ValuesMismatch { what: "out", keys: 3, values: 2 };
    assert_eq!(engine.top_k(SortOrder::Ascending, &[1, 2, 3], (&mut out, &mut indices)), Err(too_few));
}

/// Checks the first `k` keys of each segment, alone and with values. Slots behind short segments keep wrong keys.
fn check_segments<K: TestKey, V: TestValue>(
    engine: &Engine,
    order: SortOrder,
    lengths: &[usize],
    k: usize,
    keys: &[K],
    what: &str,
) {
    let (offsets, given) = (offsets(lengths), values::<V>(0, keys.len()));
    let mut out = poisoned_pairs(&(vec![K::number(1); lengths.len() * k], vec![V::number(0); lengths.len() * k]));
    let (mut want, mut found) = (out.clone(), out.0.clone());
    for (segment, ends) in offsets.windows(2).enumerate() {
        let first = sorted_indices(order, &keys[ends[0]..ends[1]]).into_iter().take(k);
        for (slot, index) in (segment * k..).zip(first) {
            (want.0[slot], want.1[slot]) = (keys[ends[0] + index], given[ends[0] + index]);
        }
    }
    let what = || format!("{k} of each of {} segments, {what}, {order:?}, {engine:?}", lengths.len());
    engine.top_k_segments(order, keys, &offsets, k, &mut found).unwrap();
    assert_same(&found, &want.0, what);
    engine.top_k_segments(order, (keys, &given), &offsets, k, (&mut out.0, &mut out.1)).unwrap();
    assert_same_pairs(&out, &want, what);
}

/// Segments that are empty, shorter than k, of k keys, and longer.
fn check_lengths<K: TestKey, V: TestValue>(seed: u64) {
    let mut rng = rng(seed);
    for kind in KINDS {
        for k in [0, 1, 2, 33, 100] {
            let near = [0, 1, k / 2, k, k + 1, 2 * k, 2 * k + 1, 2 * k + 2, 300];
            let lengths: Vec<usize> = (0..20).map(|_| near[rng.random_range(0..near.len())]).collect();
            let keys = keys::<K>(kind, lengths.iter().sum(), &mut rng);
            let order = ORDERS[rng.random_range(0..2)];
            check_segments::<K, V>(&Engine::cpu(), order, &lengths, k, &keys, &format!("{kind}, seed {seed}"));
        }
    }
}

#[test]
fn the_first_keys_of_segments_are_those_of_a_stable_sort() {
    let seed = seed();
    for_all_pairs!(check_lengths(seed));
}

/// Segments that are worth several threads, some of them each by itself.
#[test]
fn the_first_keys_of_segments_on_several_threads() {
    let seed = seed();
    let mut rng = rng(seed);
    let long = (1 << 18) + 1;
    let short: Vec<usize> = (0..10_000).map(|_| rng.random_range(0..40)).collect();
    let shapes = [
        (vec![], 3),
        (vec![0; 100_000], 1),
        (vec![600_000], 5000),
        (vec![2048; 200], 64),
        (short.clone(), 7),
        ([&short[..], &[long, 0, 2 * long], &short].concat(), 5),
        (vec![long, 3, long], 200_000),
    ];
    let one = |lengths: &[usize], k, kind, rng: &mut StdRng, engine: &Engine| {
        let keys = keys::<f32>(kind, lengths.iter().sum(), rng);
        let order = ORDERS[rng.random_range(0..2)];
        check_segments::<f32, u64>(engine, order, lengths, k, &keys, &format!("{kind}, seed {seed}"));
    };
    for engine in engines() {
        for (lengths, k) in &shapes {
            one(lengths, *k, KINDS[rng.random_range(0..KINDS.len())], &mut rng, &engine);
        }
    }
}

#[test]
fn arguments_that_do_not_fit_segments_are_refused() {
    let refused = |offsets: &[usize], k: usize, len: usize, message: &str| {
        let (mut out, mut of_keys) = (vec![9u32; len], vec![7u8; len]);
        let error = Engine::cpu().top_k_segments(SortOrder::Ascending, &[3, 1, 2, 0], offsets, k, &mut out);
        assert_eq!(error.unwrap_err().to_string(), message);
        let from = (&[3, 1, 2, 0], &[3u8, 1, 2, 0]);
        let error = Engine::cpu().top_k_segments(SortOrder::Ascending, from, offsets, k, (&mut out, &mut of_keys));
        assert_eq!(error.unwrap_err().to_string(), message);
        assert!(out.iter().all(|key| *key == 9) && of_keys.iter().all(|value| *value == 7), "{message}");
    };
    refused(&[], 1, 0, "there are no offsets, expected one more than there are runs");
    refused(&[1, 4], 1, 1, "the first offset of the input is 1, expected 0");
    refused(&[0, 3, 2, 4], 1, 3, "offset 2 of the input is 2, less than the one before it (3)");
    refused(&[0, 2, 3], 1, 2, "the last offset of the input is 3, expected 4 (its number of keys)");
    for (k, len) in [(2, 3), (2, 5), (0, 1), (1, 0), (usize::MAX, 4)] {
        let expected = 2usize.saturating_mul(k);
        refused(
            &[0, 2, 4],
            k,
            len,
            &Error::LengthMismatch { what: "out", expected, found: len, rule: "segments * k" }.to_string(),
        );
    }
    let out = (&mut [9u32; 2], &mut [7u8; 1]);
    let error = Engine::cpu().top_k_segments(SortOrder::Ascending, (&[2, 1], &[0u8, 1]), &[0, 2], 2, out).unwrap_err();
    assert_eq!(error, Error::ValuesMismatch { what: "out", keys: 2, values: 1 });
}
