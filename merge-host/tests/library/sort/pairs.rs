//! `Engine::sort_with` with values, and `Engine::argsort`, against the standard library's stable sort.
//!
//! The value of a key is its index in the input, so values distinguish equal keys.

use crate::common::*;
use merge_host::{Engine, Index, SortOrder, f16};
use rand::Rng;

const ORDERS: [SortOrder; 2] = [SortOrder::Ascending, SortOrder::Descending];

fn check_pairs<K: TestKey, V: TestValue>(engine: &Engine, order: SortOrder, keys: &[K], what: impl Fn() -> String) {
    let values = values::<V>(0, keys.len());
    let want = sorted_pairs(order, keys, &values);
    let mut found = (keys.to_vec(), values);
    engine.sort_with(order, (&mut found.0, &mut found.1)).unwrap();
    let value = std::any::type_name::<V>();
    assert_same_pairs(&found, &want, || format!("{} keys with {value}, {order:?}, {engine:?}, {}", keys.len(), what()));
}

fn check_argsort<I: Index + TestValue>(engine: &Engine, order: SortOrder, keys: &[impl TestKey], want: &[usize]) {
    let mut found = vec![I::number(7); keys.len()];
    engine.argsort(order, keys, &mut found).unwrap();
    let name = std::any::type_name::<I>();
    // Indices are zero-extended, unlike the values that tests make of numbers.
    let wrong = (0..keys.len()).find(|&i| bytemuck::bytes_of(&found[i])[..] != want[i].to_le_bytes()[..size_of::<I>()]);
    if let Some(i) = wrong {
        panic!("{} keys, {name}, {order:?}, {engine:?}: index {i} is {:?}, expected {}", keys.len(), found[i], want[i]);
    }
}

/// Checks all sorts of these keys, except sorts of key-value pairs and sorts to indices of 8 bytes.
fn check_keys<K: TestKey>(engine: &Engine, keys: &[K], what: impl Fn() -> String) {
    for order in ORDERS {
        let indices = sorted_indices(order, keys);
        let mut found = keys.to_vec();
        engine.sort_with(order, &mut found).unwrap();
        assert_same(&found, &gathered(keys, &indices), || {
            format!("{} keys, {order:?}, {engine:?}, {}", keys.len(), what())
        });
        check_argsort::<u32>(engine, order, keys, &indices);
    }
}

fn every_length_and_kind<K: TestKey>(seed: u64) {
    let engine = Engine::cpu();
    let mut rng = rng(seed);
    let around = |length: usize| [length - 1, length, length + 1];
    for length in (0..40).chain([256, 1024, 4096].into_iter().flat_map(around)) {
        for kind in KINDS {
            let keys = keys::<K>(kind, length, &mut rng);
            check_keys(&engine, &keys, || format!("{kind}, seed {seed}"));
            for order in ORDERS {
                check_pairs::<K, u32>(&engine, order, &keys, || format!("{kind}, seed {seed}"));
            }
        }
    }
}

#[test]
fn sorts_every_length_and_kind() {
    let seed = seed();
    for_keys_of_all_kinds!(every_length_and_kind(seed));
    every_length_and_kind::<i16>(seed);
    every_length_and_kind::<merge_host::NanFirst<f64>>(seed);
}

/// Sorts to indices of 8 bytes: for keys of each width, and for many keys on several threads. One encoding for each
/// width suffices, because the width of the indices does not depend on it.
fn indices_of_8_bytes<K: TestKey>(seed: u64) {
    let mut rng = rng(seed);
    let around = |length: usize| [length - 1, length, length + 1];
    for length in (0..40).chain([256, 1024, 4096].into_iter().flat_map(around)).chain([(2 << 16) + 1]) {
        for kind in KINDS {
            let keys = keys::<K>(kind, length, &mut rng);
            let engine = Engine::cpu_with_threads(rng.random_range(1..=4)).unwrap();
            for order in ORDERS {
                check_argsort::<u64>(&engine, order, &keys, &sorted_indices(order, &keys));
            }
        }
    }
}

#[test]
fn indices_of_8_bytes_are_those_of_4() {
    let seed = seed();
    indices_of_8_bytes::<u8>(seed);
    indices_of_8_bytes::<f16>(seed);
    indices_of_8_bytes::<i32>(seed);
    indices_of_8_bytes::<f32>(seed);
    indices_of_8_bytes::<i64>(seed);
    indices_of_8_bytes::<u128>(seed);
}

fn values_of_any_size<K: TestKey, V: TestValue>(seed: u64) {
    let mut rng = rng(seed);
    for length in [0, 1, 2, 3, 100, 255, 256, 257, 5000] {
        for kind in KINDS {
            let keys = keys::<K>(kind, length, &mut rng);
            let order = ORDERS[rng.random_range(0..2)];
            check_pairs::<K, V>(&Engine::cpu(), order, &keys, || format!("{kind}, seed {seed}"));
        }
    }
    // Enough keys for all threads of each engine, and a shorter last run.
    for engine in cpu_engines() {
        let kind = KINDS[rng.random_range(0..KINDS.len())];
        let length = (4 << 16) + rng.random_range(0..100);
        let keys = keys::<K>(kind, length, &mut rng);
        let order = ORDERS[rng.random_range(0..2)];
        check_pairs::<K, V>(&engine, order, &keys, || format!("{kind}, seed {seed}"));
    }
}

#[test]
fn moves_values_of_any_size() {
    // One key type for each size suffices, because types of one size have the same digits. A value of each size moves
    // with keys of 4 or 8 bytes.
    let seed = seed();
    for_all_pairs!(values_of_any_size(seed));
    values_of_any_size::<f32, u8>(seed);
    values_of_any_size::<f32, [u8; 3]>(seed);
    values_of_any_size::<i64, [u16; 3]>(seed);
}

#[test]
fn sorts_lengths_around_those_that_threads_share() {
    let seed = seed();
    let mut rng = rng(seed);
    for threads in 2..=4 {
        let engine = Engine::cpu_with_threads(threads).unwrap();
        for length in [(threads << 16) - 1, threads << 16, (threads << 16) + 1] {
            for kind in ["any bits", "16 values", "ascending"] {
                let what = || format!("{kind}, seed {seed}");
                check_keys(&engine, &keys::<f32>(kind, length, &mut rng), what);
                check_keys(&engine, &keys::<i64>(kind, length, &mut rng), what);
                for order in ORDERS {
                    check_pairs::<f32, u64>(&engine, order, &keys(kind, length, &mut rng), what);
                    check_pairs::<i64, [u16; 3]>(&engine, order, &keys(kind, length, &mut rng), what);
                }
            }
        }
    }
}

fn counted<K: TestKey>(engines: &[Engine], seed: u64) {
    let mut rng = rng(seed);
    let values = 1 << (8 * size_of::<K>());
    // Counting sort takes at least as many keys as their type has values, and uses several threads for at least four
    // times this number.
    for length in [values - 1, values, values + 1, 8 * values - 1, 8 * values + 1, (4 << 16) + 3, 9 * values + 7] {
        for engine in engines {
            let kind = KINDS[rng.random_range(0..KINDS.len())];
            check_keys(engine, &keys::<K>(kind, length, &mut rng), || format!("{kind}, seed {seed}"));
        }
    }
}

#[test]
fn sorts_more_keys_than_their_type_has_values() {
    let seed = seed();
    let all = cpu_engines();
    counted::<u8>(&all, seed);
    counted::<i8>(&all, seed);
    counted::<u16>(&all, seed);
    // These keys differ from the keys before only in their encoding, so some of the engines suffice.
    counted::<i16>(&all[..2], seed);
    counted::<f16>(&all[2..], seed);
}

#[test]
fn sorts_every_value_of_2_bytes() {
    // Multiplication by an odd number permutes the values.
    let bits = (0..=u16::MAX).map(|bits| bits.wrapping_mul(0x9e37));
    check_keys(&Engine::cpu(), &bits.clone().collect::<Vec<u16>>(), || "every u16".to_owned());
    check_keys(&Engine::cpu(), &bits.clone().map(|bits| bits as i16).collect::<Vec<_>>(), || "every i16".to_owned());
    check_keys(&Engine::cpu(), &bits.map(f16::from_bits).collect::<Vec<_>>(), || "every f16".to_owned());
}

#[test]
fn keys_that_differ_in_eight_adjacent_bits_keep_their_values() {
    let seed = seed();
    let mut rng = rng(seed);
    for shift in 0..57 {
        let keys: Vec<u64> = keys::<u64>("any bits", 3000, &mut rng).iter().map(|key| (key >> 56) << shift).collect();
        check_pairs::<u64, u32>(&Engine::cpu(), SortOrder::Ascending, &keys, || format!("bits {shift}, seed {seed}"));
        // A number of keys that comparisons sort if an index fits before their bits.
        check_pairs::<u64, u32>(&Engine::cpu(), SortOrder::Ascending, &keys[..200], || format!("bits {shift} of 200"));
    }
    for shift in 0..121 {
        let keys: Vec<u128> =
            keys::<u128>("any bits", 3000, &mut rng).iter().map(|key| (key >> 120) << shift).collect();
        check_pairs::<u128, u32>(&Engine::cpu(), SortOrder::Ascending, &keys, || format!("bits {shift}, seed {seed}"));
        check_pairs::<u128, u32>(&Engine::cpu(), SortOrder::Ascending, &keys[..200], || format!("bits {shift} of 200"));
    }
}

#[test]
fn equal_keys_keep_their_order_in_either_order() {
    for engine in cpu_engines() {
        for length in [2, 300, 5000, 300_000] {
            for order in ORDERS {
                let (mut keys, mut values) = (vec![-0.0f64; length], (0..length).collect::<Vec<_>>());
                keys[length / 2..].fill(0.0);
                engine.sort_with(order, (&mut keys, &mut values)).unwrap();
                let split = if order == SortOrder::Ascending { 0 } else { length / 2 };
                let want = (split..length).chain(0..split);
                assert!(values.iter().copied().eq(want), "{length} keys, {order:?}, {engine:?}");
            }
        }
    }
}

#[test]
fn nan_and_zero_of_2_bytes_keep_their_bits() {
    let sorted = [0xfe01u16, 0xfc01, 0xfc00, 0xfbff, 0x8001, 0x8000, 0, 1, 0x3c00, 0x7bff, 0x7c00, 0x7c01, 0x7e01];
    let mut keys = [5, 11, 0, 7, 2, 9, 12, 4, 1, 10, 3, 8, 6].map(|i: usize| f16::from_bits(sorted[i]));
    Engine::cpu().sort(&mut keys).unwrap();
    assert_eq!(keys.map(f16::to_bits), sorted);
    Engine::cpu().sort_with(SortOrder::Descending, &mut keys).unwrap();
    assert!(keys.iter().rev().map(|key| key.to_bits()).eq(sorted));
}

#[test]
fn descending_nan_and_zero_keep_their_bits() {
    let bits = [0x7fc0_0001, 0xffc0_0002, 0x8000_0000, 0, 0x7f80_0001, 0xff80_0001, 0x7f80_0000, 0xff80_0000u32];
    let mut keys = bits.map(f32::from_bits);
    Engine::cpu().sort_with(SortOrder::Descending, &mut keys).unwrap();
    let want = [0x7fc0_0001, 0x7f80_0001, 0x7f80_0000, 0, 0x8000_0000, 0xff80_0000, 0xff80_0001, 0xffc0_0002u32];
    assert_eq!(keys.map(f32::to_bits), want);
}

#[test]
fn values_may_be_anything_that_can_be_copied() {
    let mut words = ["pear", "fig", "apple", "kiwi"];
    let mut lengths = words.map(|word| word.len() as u32);
    Engine::cpu().sort_with(SortOrder::Descending, (&mut lengths, &mut words)).unwrap();
    assert_eq!(words, ["apple", "pear", "kiwi", "fig"]);
    let mut options = vec![None, Some('x'), Some('y')];
    Engine::cpu().sort_with(SortOrder::Ascending, (&mut [3u32, 2, 1], &mut options)).unwrap();
    assert_eq!(options, [Some('y'), Some('x'), None]);
}
