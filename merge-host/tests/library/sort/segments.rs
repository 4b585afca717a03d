//! `Engine::sort_segments`, with values and without, against the standard library's stable sort of each segment.

use crate::common::*;
use merge_host::{Engine, Error, SortOrder};
use rand::Rng;
use rand::rngs::StdRng;

const ORDERS: [SortOrder; 2] = [SortOrder::Ascending, SortOrder::Descending];

/// The expected result: each segment is sorted on its own.
fn wanted<K: TestKey, V: TestValue>(order: SortOrder, keys: &[K], values: &[V], offsets: &[usize]) -> (Vec<K>, Vec<V>) {
    let segments = offsets.windows(2).map(|ends| ends[0]..ends[1]);
    let sorted = segments.map(|segment| sorted_pairs(order, &keys[segment.clone()], &values[segment]));
    let (keys, values): (Vec<_>, Vec<_>) = sorted.unzip();
    (keys.concat(), values.concat())
}

/// Checks the sort of keys without values.
fn check_keys<K: TestKey>(engine: &Engine, lengths: &[usize], kind: &str, rng: &mut StdRng, what: &str) {
    let offsets = offsets(lengths);
    let mut keys = keys::<K>(kind, offsets[lengths.len()], rng);
    let order = ORDERS[rng.random_range(0..2)];
    let (want, _) = wanted(order, &keys, &vec![(); keys.len()], &offsets);
    engine.sort_segments(order, &mut keys, &offsets).unwrap();
    assert_same(&keys, &want, || format!("{} segments, {kind}, {order:?}, {engine:?}, {what}", lengths.len()));
}

/// Checks the sort of keys without values, and of keys with values.
fn check<K: TestKey, V: TestValue>(engine: &Engine, lengths: &[usize], kind: &str, rng: &mut StdRng, what: &str) {
    check_keys::<K>(engine, lengths, kind, rng, what);
    let offsets = offsets(lengths);
    let keys = keys::<K>(kind, offsets[lengths.len()], rng);
    let values = values::<V>(0, keys.len());
    let order = ORDERS[rng.random_range(0..2)];
    let want = wanted(order, &keys, &values, &offsets);
    let mut found = (keys, values);
    engine.sort_segments(order, (&mut found.0, &mut found.1), &offsets).unwrap();
    let what = || format!("{} segments with values, {kind}, {order:?}, {engine:?}, {what}", lengths.len());
    assert_same_pairs(&found, &want, what);
}

/// Calls `check` with segments of lengths around the edges between methods.
fn short_segments(seed: u64, mut check: impl FnMut(&[usize], &str, &mut StdRng, &str)) {
    let mut rng = rng(seed);
    let edges = [0, 0, 1, 2, 3, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025];
    for kind in KINDS {
        let lengths: Vec<usize> = (0..30).map(|_| edges[rng.random_range(0..edges.len())]).collect();
        check(&lengths, kind, &mut rng, &format!("seed {seed}"));
    }
}

fn short<K: TestKey>(seed: u64) {
    short_segments(seed, |lengths, kind, rng, what| check_keys::<K>(&Engine::cpu(), lengths, kind, rng, what));
}

fn short_with_values<K: TestKey, V: TestValue>(seed: u64) {
    short_segments(seed, |lengths, kind, rng, what| check::<K, V>(&Engine::cpu(), lengths, kind, rng, what));
}

#[test]
fn sorts_segments_of_any_length() {
    let seed = seed();
    for_all_key_types!(short(seed));
    for_all_pairs!(short_with_values(seed));
}

/// Segments that are worth several threads, in shapes that are hard to divide evenly.
#[test]
fn sorts_segments_of_all_shapes_on_several_threads() {
    let seed = seed();
    let mut rng = rng(seed);
    let short: Vec<usize> = (0..20_000).map(|_| rng.random_range(0..40)).collect();
    let long = (1 << 18) + 1;
    let shapes = [
        ("no segments", vec![]),
        ("one segment", vec![600_000]),
        ("empty ones only", vec![0; 100_000]),
        ("short ones", short.clone()),
        ("a long one first", [vec![long], short.clone()].concat()),
        ("a long one last", [short.clone(), vec![long]].concat()),
        ("a long one and a short one", vec![2 * long, 3]),
        ("long ones side by side", [&short[..3000], &[long, 0, long, 1], &short[..3000]].concat()),
        ("just not long", [&short[..6000], &[long - 1], &short[..6000]].concat()),
        ("a few of some length", vec![60_000; 9]),
    ];
    for (number, engine) in cpu_engines().into_iter().enumerate() {
        for (name, lengths) in &shapes {
            let kind = KINDS[rng.random_range(0..KINDS.len())];
            let what = format!("{name}, seed {seed}");
            check::<u32, u32>(&engine, lengths, kind, &mut rng, &what);
            if number == 2 {
                check::<f64, (u64, u64, u64)>(&engine, lengths, kind, &mut rng, &what);
                check::<u8, [u8; 3]>(&engine, lengths, kind, &mut rng, &what);
            }
        }
    }
}

#[test]
fn equal_keys_of_a_segment_keep_their_order() {
    for order in ORDERS {
        for length in [10, 300, 5000] {
            let mut keys = vec![7u8; 3 * length];
            let mut indices: Vec<usize> = (0..keys.len()).collect();
            let offsets = [0, length, length, 3 * length];
            Engine::cpu().sort_segments(order, (&mut keys, &mut indices), &offsets).unwrap();
            assert!(indices.iter().copied().eq(0..3 * length), "{order:?}, {length}");
        }
    }
}

#[test]
fn bad_offsets_are_refused() {
    let refused = |offsets: &[usize], message: &str| {
        let (mut keys, mut values) = ([3, 2, 1, 0], [7u8; 4]);
        let error = Engine::cpu().sort_segments(SortOrder::Ascending, &mut keys, offsets).unwrap_err();
        assert_eq!(error.to_string(), message);
        let sorted = Engine::cpu().sort_segments(SortOrder::Ascending, (&mut keys, &mut values), offsets);
        assert_eq!(sorted.unwrap_err(), error);
        assert_eq!(keys, [3, 2, 1, 0], "a refused sort wrote to its input");
    };
    refused(&[], "there are no offsets, expected one more than there are runs");
    refused(&[1, 4], "the first offset of the input is 1, expected 0");
    refused(&[0, 3, 2, 4], "offset 2 of the input is 2, less than the one before it (3)");
    refused(&[0, 2, 3], "the last offset of the input is 3, expected 4 (its number of keys)");
    refused(&[0, 5], "the last offset of the input is 5, expected 4 (its number of keys)");
    let error = Engine::cpu().sort_segments(SortOrder::Ascending, (&mut [2, 1], &mut [0u8]), &[0, 2]).unwrap_err();
    assert_eq!(error, Error::ValuesMismatch { what: "the input", keys: 2, values: 1 });
}
