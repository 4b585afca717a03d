//! `Engine::sort_unique`, with values and without, against the standard library's stable sort and a loop.

use crate::common::*;
use merge_host::{Engine, Error, SortOrder};

const ORDERS: [SortOrder; 2] = [SortOrder::Ascending, SortOrder::Descending];

fn check<K: TestKey, V: TestValue>(keys: &[K], what: &str) {
    let given = values::<V>(0, keys.len());
    for order in ORDERS {
        let mut first = sorted_indices(order, keys);
        first.dedup_by(|i, before| keys[*i].to_ordered() == keys[*before].to_ordered());
        let (want, want_values) = (gathered(keys, &first), gathered(&given, &first));
        for engine in [Engine::cpu_with_threads(1).unwrap(), Engine::cpu_with_threads(3).unwrap(), Engine::auto()] {
            let what = || format!("{} keys, {what}, {order:?}, {engine:?}", keys.len());
            let mut found = keys.to_vec();
            let (count, _) = engine.sort_unique(order, &mut found).unwrap();
            assert_same(&found[..count], &want, what);
            let mut found = (keys.to_vec(), given.clone());
            let (count, _) = engine.sort_unique(order, (&mut found.0, &mut found.1)).unwrap();
            found.0.truncate(count);
            found.1.truncate(count);
            assert_same_pairs(&found, &(want.clone(), want_values.clone()), what);
        }
    }
}

fn check_kinds<K: TestKey, V: TestValue>(seed: u64) {
    let mut rng = rng(seed);
    for kind in KINDS {
        for n in [0, 1, 2, 77, 1000] {
            check::<K, V>(&keys(kind, n, &mut rng), &format!("{kind}, seed {seed}"));
        }
    }
}

#[test]
fn the_first_of_equal_keys_are_kept_in_order() {
    let seed = seed();
    for_all_pairs!(check_kinds(seed));
    let mut rng = rng(seed);
    // Enough keys for blocks of several threads.
    for kind in ["16 values", "all equal", "any bits", "small numbers"] {
        check::<f32, u64>(&keys(kind, 300_001, &mut rng), &format!("{kind}, seed {seed}"));
    }
}

#[test]
fn as_many_values_as_keys_are_needed() {
    let mismatch = Error::ValuesMismatch { what: "the input", keys: 2, values: 1 };
    let found = Engine::cpu().sort_unique(SortOrder::Ascending, (&mut [2, 1], &mut [0u32]));
    assert_eq!(found.map(|(count, _)| count), Err(mismatch));
}
