//! `Engine::set_operation` against a count of every key.

use crate::common::*;
use merge_host::{Engine, SetOperation};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::Rng;

/// The number of times that a key occurs in the result if it occurs `m` times in A and `n` times in B.
fn times(operation: SetOperation, m: usize, n: usize) -> usize {
    match operation {
        SetOperation::Union => m.max(n),
        SetOperation::Intersection => m.min(n),
        SetOperation::Difference => m.saturating_sub(n),
        SetOperation::SymmetricDifference => m.abs_diff(n),
    }
}

/// Every key, with its numbers of occurrences in two ascending arrays, by the standard library's order.
fn counted<K: TestKey>(a: &[K], b: &[K]) -> Vec<(K, usize, usize)> {
    let mut all = sorted([a, b].concat());
    all.dedup_by(|x, y| x.order(y).is_eq());
    let count = |keys: &[K], key: &K| {
        keys.partition_point(|other| other.order(key).is_le()) - keys.partition_point(|other| other.order(key).is_lt())
    };
    all.into_iter().map(|key| (key, count(a, &key), count(b, &key))).collect()
}

/// The result by counting.
fn by_counting<K: TestKey>(operation: SetOperation, counted: &[(K, usize, usize)]) -> Vec<K> {
    counted.iter().flat_map(|&(key, m, n)| std::iter::repeat_n(key, times(operation, m, n))).collect()
}

fn check<K: TestKey>(engine: &Engine, a: &[K], b: &[K], what: impl Fn() -> String) {
    // The old contents do not matter, and the capacity may be too small or sufficient.
    let mut out = vec![K::number(77); a.len()];
    let counted = counted(a, b);
    for operation in SetOperation::ALL {
        engine.set_operation(operation, a, b, &mut out).unwrap();
        let want = by_counting(operation, &counted);
        assert_same(&out, &want, || format!("{operation}, {engine:?}, |a| {}, |b| {}, {}", a.len(), b.len(), what()));
        assert!(want.len() <= operation.most_keys(a.len(), b.len()));
    }
}

fn all_short_lengths<K: TestKey>(seed: u64) {
    let engine = Engine::cpu();
    let mut rng = rng(seed);
    for m in 0..12 {
        for n in 0..12 {
            for kind in KINDS {
                let mut a = keys::<K>(kind, m, &mut rng);
                let mut b = keys::<K>(kind, n, &mut rng);
                // Without this, arrays of random bits have no key in common.
                b.extend(a.iter().filter(|_| rng.random()).copied().collect::<Vec<_>>());
                a.extend(b.iter().filter(|_| rng.random()).copied().collect::<Vec<_>>());
                check(&engine, &sorted(a), &sorted(b), || format!("{kind}, seed {seed}"));
            }
        }
    }
}

#[test]
fn all_short_lengths_of_all_types() {
    let seed = seed();
    for_keys_of_all_kinds!(all_short_lengths(seed));
}

/// Inputs with enough keys for `threads` threads.
fn on_several_threads<K: TestKey>(threads: usize, seed: u64) {
    let mut rng = rng(seed);
    let engine = Engine::cpu_with_threads(threads).unwrap();
    let total = threads << 17;
    for kind in ["any bits", "16 values", "all equal", "special"] {
        for m in [total / 2 + 1, 3, total - 17] {
            let (mut a, b) = (keys::<K>(kind, m, &mut rng), keys::<K>(kind, total - m, &mut rng));
            for i in 0..m.min(total - m) / 2 {
                a[2 * i] = b[i];
            }
            check(&engine, &sorted(a), &sorted(b), || format!("{kind}, seed {seed}"));
        }
    }
}

#[test]
fn many_keys_on_several_threads() {
    let seed = seed();
    on_several_threads::<u16>(2, seed);
    on_several_threads::<f64>(3, seed);
}

#[test]
fn keys_that_occur_several_times() {
    // The result has max(m, n) copies of a key and so on, not one copy.
    let (a, b) = ([1, 2, 3, 4, 5, 5, 5], [3, 4, 5, 6, 7]);
    let of = |operation| {
        let mut out = Vec::new();
        Engine::cpu().set_operation(operation, &a, &b, &mut out).unwrap();
        out
    };
    assert_eq!(of(SetOperation::Union), [1, 2, 3, 4, 5, 5, 5, 6, 7]);
    assert_eq!(of(SetOperation::Intersection), [3, 4, 5]);
    assert_eq!(of(SetOperation::Difference), [1, 2, 5, 5]);
    assert_eq!(of(SetOperation::SymmetricDifference), [1, 2, 5, 5, 6, 7]);
}

#[test]
fn zeros_and_nans_are_distinguished_by_their_bits() {
    let (one, other) = (f32::from_bits(0x7fc0_0001), f32::from_bits(0x7fc0_0002));
    check(&Engine::cpu(), &[-0.0, 1.0, one, one], &[0.0, 1.0, one, other], || "special".to_owned());
    let mut out = Vec::new();
    Engine::cpu().set_operation(SetOperation::Intersection, &[-0.0, one], &[0.0, other], &mut out).unwrap();
    assert!(out.is_empty());
}

#[test]
fn the_allocation_is_reused() {
    let mut out = Vec::with_capacity(100);
    let address = out.as_ptr();
    Engine::cpu().set_operation(SetOperation::Union, &[1u64; 60], &[2; 40], &mut out).unwrap();
    assert_eq!((out.len(), out.as_ptr()), (100, address));
}

#[test]
fn unsorted_input_gives_keys_of_the_input() {
    let seed = seed();
    let mut rng = rng(seed);
    for engine in cpu_engines() {
        for (m, n) in [(1, 1), (3, 50), (1000, 1000), (20_000, 21_000), (300_000, 400_000)] {
            let (a, b) = (keys::<u32>("any bits", m, &mut rng), keys::<u32>("any bits", n, &mut rng));
            let allowed = sorted([a.clone(), b.clone()].concat());
            for operation in SetOperation::ALL {
                let mut out = Vec::new();
                engine.set_operation(operation, &a, &b, &mut out).unwrap();
                let foreign = out.iter().find(|key| allowed.binary_search(key).is_err());
                assert_eq!(foreign, None, "{operation}, {engine:?}, |a| {m}, |b| {n}, seed {seed}");
            }
        }
    }
}

proptest! {
    #[test]
    fn counts_are_those_of_the_model(a in vec(-6i32..6, 0..700), b in vec(-6i32..6, 0..700)) {
        let (a, b) = (sorted(a), sorted(b));
        let counted = counted(&a, &b);
        for operation in SetOperation::ALL {
            let mut out = Vec::new();
            Engine::cpu_with_threads(1).unwrap().set_operation(operation, &a, &b, &mut out).unwrap();
            prop_assert_eq!(out, by_counting(operation, &counted), "{}", operation);
        }
    }

    #[test]
    fn operations_are_consistent(a in vec(0u8..9, 0..99), b in vec(0u8..9, 0..99)) {
        let (a, b) = (sorted(a), sorted(b));
        let of = |operation, a: &[u8], b: &[u8]| {
            let mut out = Vec::new();
            Engine::cpu().set_operation(operation, a, b, &mut out).unwrap();
            out
        };
        let (a_only, b_only) = (of(SetOperation::Difference, &a, &b), of(SetOperation::Difference, &b, &a));
        let both = of(SetOperation::Intersection, &a, &b);
        prop_assert_eq!(sorted([a_only.clone(), both.clone()].concat()), a.clone());
        prop_assert_eq!(sorted([a_only.clone(), b.clone()].concat()), of(SetOperation::Union, &a, &b));
        prop_assert_eq!(sorted([a_only, b_only].concat()), of(SetOperation::SymmetricDifference, &a, &b));
    }
}
