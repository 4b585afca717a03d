//! `first_unsorted` against a loop.

use crate::common::*;
use merge_host::first_unsorted;
use rand::Rng;
use std::cmp::Ordering;

fn by_a_loop<K: TestKey>(keys: &[K]) -> Option<usize> {
    (1..keys.len()).find(|&i| keys[i - 1].order(&keys[i]) == Ordering::Greater)
}

fn short<K: TestKey>(seed: u64) {
    let mut rng = rng(seed);
    for length in 0..200 {
        for kind in KINDS {
            let unsorted = keys::<K>(kind, length, &mut rng);
            assert_eq!(first_unsorted(&unsorted), by_a_loop(&unsorted), "{length} keys, {kind}, seed {seed}");
            let mut keys = sorted(unsorted);
            assert_eq!(first_unsorted(&keys), None, "{length} sorted keys, {kind}, seed {seed}");
            if length > 1 {
                let (i, j) = (rng.random_range(0..length), rng.random_range(0..length));
                keys.swap(i, j);
                assert_eq!(first_unsorted(&keys), by_a_loop(&keys), "{length} keys, {i} and {j} swapped, seed {seed}");
            }
        }
    }
}

#[test]
fn finds_the_first_unsorted_key_of_short_arrays() {
    let seed = seed();
    for_keys_of_all_kinds!(short(seed));
}

#[test]
fn finds_an_unsorted_key_at_every_index_of_a_block() {
    let mut keys: Vec<u32> = (10..70_010).collect();
    for i in (1..300).chain(65_400..65_700).chain(69_900..70_000) {
        let key = std::mem::replace(&mut keys[i], 0);
        assert_eq!(first_unsorted(&keys), Some(i));
        keys[i] = key;
    }
}

#[test]
fn finds_the_first_of_many_unsorted_keys_of_a_long_array() {
    let seed = seed();
    let mut rng = rng(seed);
    let length = 3_000_000;
    let ascending: Vec<u64> = (10..10 + length as u64).collect();
    assert_eq!(first_unsorted(&ascending), None);
    for _ in 0..20 {
        let mut keys = ascending.clone();
        let mut unsorted: Vec<usize> = (0..rng.random_range(1..50)).map(|_| rng.random_range(1..length)).collect();
        unsorted.push(length - 1);
        for &index in &unsorted {
            keys[index] = 0;
        }
        assert_eq!(first_unsorted(&keys), unsorted.iter().min().copied(), "seed {seed}");
    }
}
