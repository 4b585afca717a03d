//! Sorts of keys with skewed first digits, against the standard library's stable sort.
//!
//! The value of a key is its index in the input, so values distinguish equal keys.

use crate::common::*;
use merge_host::{Engine, SortOrder, f16};
use rand::Rng;
use rand::rngs::StdRng;

/// Skewed distributions of keys.
const SKEWS: [&str; 8] = [
    "all equal",
    "two values",
    "the last bit differs",
    "zipf",
    "one digit has most",
    "one digit has all but one",
    "the outliers come last",
    "nearly ascending",
];

/// The key with the last bits of `bits`.
fn key<K: TestKey>(bits: u128) -> K {
    K::from_random(bits << (128 - 8 * size_of::<K>()))
}

fn skewed<K: TestKey>(skew: &str, length: usize, rng: &mut StdRng) -> Vec<K> {
    let (one, other): (K, K) = (K::from_random(rng.random()), K::from_random(rng.random()));
    let base = rng.random::<u128>();
    let special = rng.random_range(0..length.max(1));
    // Random bits in all but the first 16 bits, or in all but the first 2 bits of a short key.
    let in_one_digit = |bits: u128| K::from_random(bits >> if size_of::<K>() > 2 { 16 } else { 2 });
    (0..length)
        .map(|i| match skew {
            "all equal" => one,
            "two values" => [one, other][rng.random_range(0..2)],
            "the last bit differs" => key(base ^ rng.random_range(0..2)),
            "zipf" => key((length as f64).powf(rng.random()) as u128),
            "one digit has most" if rng.random_bool(0.9) => in_one_digit(rng.random()),
            "one digit has most" => K::from_random(rng.random()),
            "one digit has all but one" if i == special => K::from_random(u128::MAX),
            "one digit has all but one" => in_one_digit(rng.random()),
            "the outliers come last" if i + 3 >= length => K::from_random(rng.random()),
            "the outliers come last" => key(rng.random_range(0..100)),
            "nearly ascending" if i == special => one,
            "nearly ascending" => key(i as u128),
            _ => panic!("no skew is called {skew}"),
        })
        .collect()
}

/// Checks every sort of these keys in both orders with each of the engines.
fn check<K: TestKey>(engines: &[Engine], keys: &[K], what: impl Fn() -> String) {
    let indices = values::<u32>(0, keys.len());
    for order in [SortOrder::Ascending, SortOrder::Descending] {
        let want = sorted_pairs(order, keys, &indices);
        for engine in engines {
            let what = || format!("{} keys, {order:?}, {engine:?}, {}", keys.len(), what());
            let mut alone = keys.to_vec();
            engine.sort_with(order, &mut alone).unwrap();
            assert_same(&alone, &want.0, what);
            let mut pairs = (keys.to_vec(), indices.clone());
            engine.sort_with(order, (&mut pairs.0, &mut pairs.1)).unwrap();
            assert_same_pairs(&pairs, &want, what);
            let mut permutation = vec![u32::MAX; keys.len()];
            engine.argsort(order, keys, &mut permutation).unwrap();
            assert!(permutation == want.1, "argsort of {} {}", K::NAME, what());
        }
    }
}

fn engines(threads: &[usize]) -> Vec<Engine> {
    threads.iter().map(|&threads| Engine::cpu_with_threads(threads).unwrap()).collect()
}

fn every_skew<K: TestKey>(seed: u64) {
    let (engines, mut rng) = (engines(&[1, 2, 3]), rng(seed));
    for skew in SKEWS {
        // Enough keys for three threads: more than a key of 2 bytes has values.
        let length = (3 << 16) + rng.random_range(0..100);
        let engine = rng.random_range(0..engines.len());
        check(&engines[engine..=engine], &skewed::<K>(skew, length, &mut rng), || format!("{skew}, seed {seed}"));
    }
}

#[test]
fn sorts_every_skew() {
    let seed = seed();
    for_keys_of_all_kinds!(every_skew(seed));
}

#[test]
fn sorts_every_skew_on_sixteen_threads() {
    let seed = seed();
    let (engines, mut rng) = (engines(&[16]), rng(seed));
    let length = (16 << 16) + 5;
    for skew in SKEWS {
        let keys = skewed::<u32>(skew, length, &mut rng);
        let indices = values::<u32>(0, length);
        let want = sorted_pairs(SortOrder::Ascending, &keys, &indices);
        let mut found = (keys, indices);
        engines[0].sort_with(SortOrder::Ascending, (&mut found.0, &mut found.1)).unwrap();
        assert_same_pairs(&found, &want, || format!("{skew}, seed {seed}"));
    }
    check(&engines, &skewed::<u128>("one digit has most", length, &mut rng), || format!("seed {seed}"));
}

#[test]
fn sorts_lengths_around_each_change_of_method() {
    let seed = seed();
    let (engines, mut rng) = (engines(&[1, 2]), rng(seed));
    // Up to 48 keys for each pass are sorted by comparisons. From 2^12 and from 2^20 keys on there is one more pass.
    // From 2^18 pairs of 8 bytes on, the most significant digit divides the keys. From 2^17 keys on, two threads sort.
    for middle in [48, 96, 144, 1024, 4096, 1 << 17, 1 << 18] {
        for length in middle - 1..=middle + 1 {
            let what = || format!("seed {seed}");
            check(&engines, &keys::<f32>("any bits", length, &mut rng), what);
            check(&engines, &skewed::<u64>("zipf", length, &mut rng), what);
            check(&engines, &keys::<i64>("any bits", length, &mut rng), what);
        }
    }
}

#[test]
fn sorts_buckets_around_the_size_of_one_thread() {
    let seed = seed();
    let (engines, mut rng) = (engines(&[2, 3, 16]), rng(seed));
    for of_digit in [(1 << 16) - 1, 1 << 16, (1 << 16) + 1] {
        let mut keys: Vec<u32> = (0..3 << 16).map(|_| rng.random()).collect();
        for (i, key) in keys.iter_mut().enumerate() {
            // The first digit of the keys before index `of_digit` is 0, and the first digit of the other keys is not.
            *key = if i < of_digit { *key >> 8 } else { *key | 1 << 31 };
        }
        check(&engines, &keys, || format!("{of_digit} keys of a digit, seed {seed}"));
    }
}

#[test]
fn sorts_digits_that_the_sample_misses() {
    let seed = seed();
    let mut rng = rng(seed);
    // One key in 200,000 differs in the first bits, at both ends and at a random index.
    let length = 200_000;
    for index in [0, 1, length / 2 + 1, length - 1, rng.random_range(0..length)] {
        let mut keys: Vec<i64> = (0..length).map(|_| rng.random_range(0..1000)).collect();
        keys[index] = rng.random::<i64>() | i64::MIN;
        check(&engines(&[2, 3]), &keys, || format!("index {index}, seed {seed}"));
    }
}

#[test]
fn sorts_special_floats_on_all_threads() {
    fn check_floats<K: TestKey>(seed: u64) {
        let keys = keys::<K>("special", 140_000, &mut rng(seed));
        check(&engines(&[2]), &keys, || format!("special, seed {seed}"));
    }
    let seed = seed();
    check_floats::<f16>(seed);
    check_floats::<f32>(seed);
    check_floats::<f64>(seed);
}
