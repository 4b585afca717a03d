//! The first k keys, against the standard library's stable sort.

use crate::common::*;
use cuda_std::Word;
use kernels_gpu::kernels::top_k::take_sample::{SAMPLE, position};
use kernels_gpu::kernels::top_k::{CHUNK_UNIT as TILE, GATHERED};
use merge_host::SortOrder;
use merge_host::launches::Arrays;
use merge_host::launches::KeyOrder;
use merge_host::launches::emulated::Device;
use merge_host::launches::top_k::TopK;
use std::collections::HashSet;

/// Selects the first `k` keys in both orders. Returns for each order whether candidates were gathered in one reading.
fn check<K: TestKey, V: Word>(keys: &[K], k: usize, with: With, seed: u64) -> (Device, [bool; 2]) {
    let device = Device::new(seed);
    let gathered = [SortOrder::Ascending, SortOrder::Descending].map(|direction| {
        let order = KeyOrder { direction, ..order_of(seed) };
        let (from, out) = (Pairs::<K, V>::of(&device, keys, 0).arrays(), Pairs::<K, V>::uninit(&device, k));
        let (from, out) = match with {
            With::Indices => (Arrays { values: 0, ..from }, out.of_indices()),
            With::Nothing | With::Values => (from, out),
        };
        let workspace = device.run(&TopK { coding: order.coding::<K>().into(), from, out: out.arrays() });
        // The numbers of `Progress`, counted from 0. Number 4 is the number of candidates, and number 6 the digit after
        // which they were collected.
        let progress = if k > 0 { device.words(workspace, 14) } else { vec![0; 14] };
        let expected = &sorted_segments(keys, order, &[0, keys.len()])[..k];
        out.check(&device, keys, expected, &|| format!("{k} of {} keys, {order:?}", keys.len()));
        progress[8] > 0 && progress[12] == GATHERED
    });
    (device, gathered)
}

fn check_all<K: TestKey>() {
    let seed = fresh_seed();
    let kinds = [Keys::Any, Keys::Few, Keys::Equal, Keys::Nested, Keys::Descending];
    for (n, ks) in [(1, vec![0, 1]), (2, vec![1, 2]), (100, vec![1, 7, 99, 100]), (1000, vec![500])] {
        for (i, keys) in kinds.into_iter().enumerate() {
            let of_kind: Vec<K> = keys.random(n, seed);
            for &k in &ks {
                match (i + k) % 3 {
                    0 => check::<K, ()>(&of_kind, k, With::Nothing, seed),
                    1 => check::<K, u64>(&of_kind, k, With::Values, seed),
                    _ => check::<K, u32>(&of_kind, k, With::Indices, seed),
                };
            }
        }
    }
}

#[test]
fn tiles_one_after_the_other() {
    let seed = fresh_seed();
    for (n, k) in [(TILE - 1, 5), (TILE, TILE), (TILE + 1, TILE), (3 * TILE + 77, TILE + 3)] {
        check::<u32, u32>(&Keys::Any.random::<u32>(n, seed), k, With::Values, seed);
        check::<f32, u64>(&Keys::Equal.random::<f32>(n, seed), k, With::Indices, seed);
        check::<i64, ()>(&Keys::Few.random::<i64>(n, seed), k, With::Nothing, seed);
    }
}

#[test]
fn the_first_keys_of_every_type_and_kind() {
    check_all::<f32>();
    check_all::<i64>();
    fn check_some<K: TestKey>() {
        let seed = fresh_seed();
        check::<K, u32>(&Keys::Any.random::<K>(100, seed), 7, With::Values, seed);
    }
    for_all_types!(check_some());
}

#[test]
fn candidates_are_collected_where_they_are_few() {
    let seed = fresh_seed();
    let keys: Vec<u32> = Keys::Any.random(4 * TILE, seed);
    let (device, _) = check::<u32, u64>(&keys, 100, With::Indices, seed);
    assert!(["count_digit", "choose_digit", "collect"].iter().all(|kernel| device.kernels().contains(kernel)));
}

#[test]
fn keys_that_begin_alike_but_for_some_that_no_sample_has() {
    let seed = fresh_seed();
    let narrow = Keys::Any.random::<u32>(4 * TILE, seed).into_iter().map(|bits| 0x5555_0000 | bits >> 20);
    let narrow: Vec<u32> = narrow.collect();
    let with_others = |others: [u32; 3]| {
        let mut keys = narrow.clone();
        let sample = sample(keys.len());
        let mut not_in_sample = (0..keys.len()).filter(|i| !sample.contains(i)).step_by(TILE / 2);
        for other in others.into_iter().chain(others) {
            keys[not_in_sample.next().expect("it is one key in four")] = other;
        }
        keys
    };
    let (below, above, around) = ([3, 1, 2], [u32::MAX, 0x7777_7777, 0x5656_0000], [0, u32::MAX, 0x5554_ffff]);
    for keys in [narrow.clone(), with_others(below), with_others(above), with_others(around)] {
        // Other keys only, some of both kinds, and all keys.
        for k in tried([1, 5, 6, 7, 900, keys.len() - 3, keys.len()]) {
            check::<u32, u32>(&keys, k, With::Indices, seed);
        }
    }
    let wide: Vec<i64> = with_others(around).iter().map(|&key| (key as i64) << 20).collect();
    let equal: Vec<f64> = vec![-7.5; TILE + 1];
    for k in [1, 5, 40, TILE] {
        check::<i64, u64>(&wide, k, With::Values, seed);
        check::<f64, u32>(&equal, k, With::Indices, seed);
    }
}

#[test]
fn candidates_are_collected_after_the_second_digit_if_too_many_have_the_first_one() {
    let seed = fresh_seed();
    // Half of the keys are far from the other half. So nothing is guessed, and all keys of a half are candidates.
    let keys = Keys::Any.random::<u32>(3 * TILE, seed).into_iter().enumerate();
    let keys: Vec<u32> = keys.map(|(i, bits)| if i % 2 == 0 { bits >> 11 } else { !(bits >> 11) }).collect();
    for k in [1, 100, TILE, 2 * TILE] {
        check::<u32, u32>(&keys, k, With::Indices, seed);
    }
}

#[test]
fn floats_that_are_no_numbers_and_both_zeros() {
    let special = [f32::NAN, -f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, 1.0];
    let keys: Vec<f32> = (0..3000).map(|i| special[i * i % 7]).collect();
    for k in [1, 500, 2999] {
        check::<f32, u32>(&keys, k, With::Values, fresh_seed());
    }
}

/// The indices of the keys of the sample, for `n` keys.
fn sample(n: usize) -> HashSet<usize> {
    (0..SAMPLE).map(|i| position(i, n)).collect()
}

/// Enough keys for candidates to be gathered in one reading, with the emulator's multiprocessors.
const MANY: usize = 9 * TILE + 1234;

#[test]
fn candidates_are_gathered_in_one_reading() {
    let seed = fresh_seed();
    for (i, k) in [1, 31, 500, 1500].into_iter().enumerate() {
        let check = [
            |keys: &[u32], k, seed| check::<u32, ()>(keys, k, With::Nothing, seed),
            |keys: &[u32], k, seed| check::<u32, u64>(keys, k, With::Values, seed),
            |keys: &[u32], k, seed| check::<u32, u64>(keys, k, With::Indices, seed),
        ][i % 3];
        for (keys, is_gathered) in [
            (Keys::Any.random::<u32>(MANY, seed), true),
            // One warp or two find all candidates.
            (Keys::Ascending.random::<u32>(MANY, seed), true),
            (Keys::Descending.random::<u32>(MANY, seed), true),
            (Keys::Equal.random::<u32>(MANY, seed), false),
            (Keys::Few.random::<u32>(MANY, seed), false),
        ] {
            assert_eq!(check(&keys, k, seed).1, [is_gathered; 2], "first {k}, seed {seed}");
        }
    }
    let kinds: Vec<i64> = Keys::Any.random::<u32>(MANY, seed).iter().map(|bits| (*bits % 1000) as i64 - 500).collect();
    assert_eq!(check::<i64, u32>(&kinds, 100, With::Indices, seed).1, [true; 2], "seed {seed}");
    assert_eq!(check::<f64, u64>(&Keys::Any.random(MANY, seed), 7, With::Values, seed).1, [true; 2], "seed {seed}");
    assert_eq!(
        check::<f32, u32>(&Keys::Any.random(MANY, seed), MANY / 2, With::Values, seed).1,
        [false; 2],
        "seed {seed}"
    );
}

#[test]
fn a_sample_that_tells_nothing_of_the_other_keys() {
    let seed = fresh_seed();
    let sample = sample(MANY);
    let keys = |of_sample: fn(u32) -> u32, others: fn(u32) -> u32| {
        let bits: Vec<u32> = Keys::Any.random(MANY, seed);
        let key = |(i, bits)| if sample.contains(&i) { of_sample(bits) } else { others(bits) };
        bits.into_iter().enumerate().map(key).collect::<Vec<u32>>()
    };
    let middle = |bits: u32| 0x4000_0000 | bits >> 2;
    // Keys of the sample are less than all others, or greater. Too many of the first k keys exceed the bound, or no
    // other key does.
    let (low, high) = (|bits: u32| bits >> 12, |bits: u32| !(bits >> 12));
    let ends = |bits: u32| if bits.is_multiple_of(2) { bits >> 12 } else { !(bits >> 12) };
    for (keys, k, is_gathered) in [
        (keys(low, middle), 100, [false, false]),
        (keys(high, middle), 100, [false, false]),
        (keys(ends, middle), 1500, [false, false]),
        (keys(low, middle), 1, [true, false]),
        (keys(high, middle), 1, [false, true]),
    ] {
        assert_eq!(check::<u32, u32>(&keys, k, With::Indices, seed).1, is_gathered, "first {k}, seed {seed}");
    }
}
