//! Every operation on descending keys, against the standard library's stable sort in the opposite order.

use crate::common::*;
use merge_host::{
    Engine, MergeKernel, NanLast, SetOperation, SortOrder, descending, descending_mut, first_unsorted, unique,
    unique_indices,
};
use rand::Rng;
use rand::rngs::StdRng;

const DESCENDING: SortOrder = SortOrder::Descending;

/// Keys and their values, in the order of a stable descending sort.
type Pairs<K> = (Vec<K>, Vec<u32>);

fn run<K: TestKey>(kind: &str, length: usize, first_value: u32, rng: &mut StdRng) -> Pairs<K> {
    let keys = keys::<K>(kind, length, rng);
    let order = sorted_indices(DESCENDING, &keys);
    (gathered(&keys, &order), order.iter().map(|&index| first_value + index as u32).collect())
}

/// The merge of the runs, by a stable descending sort.
fn merged_runs<K: TestKey>(runs: &[&Pairs<K>]) -> Pairs<K> {
    let keys: Vec<K> = runs.iter().flat_map(|run| run.0.iter().copied()).collect();
    let values: Vec<u32> = runs.iter().flat_map(|run| run.1.iter().copied()).collect();
    sorted_pairs(DESCENDING, &keys, &values)
}

fn every_operation<K: TestKey>(seed: u64) {
    let mut rng = rng(seed);
    for kind in KINDS {
        for (m, n) in [(0, 0), (0, 3), (1, 1), (40, 7), (1000, 1500), (150_000, 151_000)] {
            let engine = Engine::cpu_with_threads(rng.random_range(1..4)).unwrap();
            let (a, b) = (run::<K>(kind, m, 0, &mut rng), run::<K>(kind, n, 1 << 20, &mut rng));
            let what = || format!("{kind}, {m} and {n}, {engine:?}, seed {seed}");
            let (want, want_values) = merged_runs(&[&a, &b]);
            let (a_keys, b_keys) = (descending(&a.0), descending(&b.0));
            assert_eq!(first_unsorted(a_keys), None, "{}", what());

            for kernel in MergeKernel::ALL {
                let mut out = poisoned(&want);
                engine.merge_with(kernel, a_keys, b_keys, descending_mut(&mut out)).unwrap();
                assert_same(&out, &want, || format!("{kernel}, {}", what()));
            }
            let mut out = poisoned(&want);
            engine.merge_many(&[a_keys, &[], b_keys], descending_mut(&mut out)).unwrap();
            assert_same(&out, &want, what);
            let mut out = poisoned(&want);
            engine.merge_ragged((a_keys, &[0, m]), (b_keys, &[0, n]), descending_mut(&mut out)).unwrap();
            assert_same(&out, &want, what);

            let check_pairs = |merge: &dyn Fn(&mut [K], &mut [u32])| {
                let (mut keys, mut values) = (poisoned(&want), vec![u32::MAX; want.len()]);
                merge(&mut keys, &mut values);
                assert_same(&keys, &want, what);
                assert!(values == want_values, "values, {}", what());
            };
            let (a_pairs, b_pairs) = ((a_keys, &a.1[..]), (b_keys, &b.1[..]));
            check_pairs(&|keys, values| {
                engine.merge(a_pairs, b_pairs, (descending_mut(keys), values)).unwrap();
            });
            check_pairs(&|keys, values| {
                engine.merge_many(&[a_pairs, b_pairs], (descending_mut(keys), values)).unwrap();
            });
            check_pairs(&|keys, values| {
                let (a, b) = ((a_pairs, &[0, m][..]), (b_pairs, &[0, n][..]));
                engine.merge_ragged(a, b, (descending_mut(keys), values)).unwrap();
            });
            if (1..=1024).contains(&(m + n)) {
                let mut out = poisoned(&want);
                engine.merge_batch(a_keys, b_keys, descending_mut(&mut out), m + n, m).unwrap();
                assert_same(&out, &want, what);
                check_pairs(&|keys, values| {
                    engine.merge_batch(a_pairs, b_pairs, (descending_mut(keys), values), m + n, m).unwrap();
                });
            }

            // The result of a set operation on the ascending arrays, reversed, is the result on the descending arrays.
            let ascending = |keys: &[K]| keys.iter().rev().copied().collect::<Vec<K>>();
            let (mut found, mut reversed) = (vec![], vec![]);
            for operation in SetOperation::ALL {
                engine.set_operation(operation, a_keys, b_keys, &mut found).unwrap();
                engine.set_operation(operation, &ascending(&a.0), &ascending(&b.0), &mut reversed).unwrap();
                let found: Vec<K> = found.iter().map(|key| key.0).collect();
                assert_same(&found, &ascending(&reversed), || format!("{operation}, {}", what()));
            }

            let mut distinct = want.clone();
            distinct.dedup_by(|x, y| x.order(y).is_eq());
            let mut kept = want.clone();
            let count = unique(descending_mut(&mut kept), &mut [], 0, None);
            assert_same(&kept[..count], &distinct, what);
            let mut indices: Vec<u32> = (0..want.len() as u32).collect();
            let count = unique_indices(descending(&want), &mut indices);
            let firsts: Vec<usize> = indices[..count].iter().map(|&index| index as usize).collect();
            assert_same(&gathered(&want, &firsts), &distinct, what);
        }
    }
}

#[test]
fn every_operation_takes_descending_keys() {
    let seed = seed();
    every_operation::<i64>(seed);
    every_operation::<NanLast<f32>>(seed);
}

#[test]
fn sorts_of_descending_keys() {
    let seed = seed();
    let mut rng = rng(seed);
    for kind in KINDS {
        let keys = keys::<f64>(kind, 5000, &mut rng);
        let want = sorted_indices(DESCENDING, &keys);
        let (mut found, mut indices) = (keys.clone(), vec![0u32; keys.len()]);
        Engine::cpu().argsort(SortOrder::Ascending, descending(&keys), &mut indices).unwrap();
        assert!(indices.iter().map(|&index| index as usize).eq(want.iter().copied()), "{kind}, seed {seed}");
        Engine::cpu().sort(descending_mut(&mut found)).unwrap();
        assert_same(&found, &gathered(&keys, &want), || format!("{kind}, seed {seed}"));
        // A descending sort of descending keys gives ascending keys.
        Engine::cpu().sort_segments(DESCENDING, descending_mut(&mut found), &[0, 0, 5000]).unwrap();
        assert_eq!(first_unsorted(&found), None, "{kind}, seed {seed}");
    }
}
