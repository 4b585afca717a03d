//! `Engine::merge_batch` against the standard library's stable sort.

use crate::common::*;
use merge_host::Engine;

fn check<K: TestKey>(engine: &Engine, pairs: usize, d: usize, a_len: usize, kind: &str, seed: u64) {
    let mut rng = rng(seed);
    let mut runs = |length: usize| {
        let runs: Vec<Vec<K>> = (0..pairs).map(|_| sorted(keys(kind, length, &mut rng))).collect();
        runs
    };
    let (a, b) = (runs(a_len), runs(d - a_len));
    let want = a.iter().zip(&b).map(|(a, b)| merged(a, b)).collect::<Vec<_>>().concat();
    let mut out = poisoned(&want);
    engine.merge_batch(a.concat(), b.concat(), &mut out, d, a_len).unwrap();
    assert_same(&out, &want, || format!("{engine:?}, {pairs} pairs, d {d}, a_len {a_len}, {kind}, seed {seed}"));
}

fn all_shapes<K: TestKey>(seed: u64) {
    let engine = Engine::cpu();
    let lengths = (1..=40).chain([63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1000, 1023, 1024]);
    for d in lengths {
        for a_len in [0, 1, d / 2, d] {
            for (pairs, kind) in [(1, "any bits"), (7, "special"), (37, "any bits"), (40, "16 values")] {
                check::<K>(&engine, pairs, d, a_len, kind, seed);
            }
        }
    }
}

#[test]
fn merges_batches_of_all_shapes() {
    let seed = seed();
    for_keys_of_all_kinds!(all_shapes(seed));
}

#[test]
fn merges_big_batches_on_several_threads() {
    let seed = seed();
    for engine in cpu_engines() {
        for (d, a_len) in [(3, 1), (100, 33), (1000, 999), (1024, 512)] {
            check::<u32>(&engine, 400_000 / d, d, a_len, "any bits", seed);
            check::<f64>(&engine, 400_000 / d, d, a_len, "special", seed);
        }
    }
}

#[test]
fn merges_no_pairs_at_all() {
    Engine::cpu().merge_batch(&[0i32; 0], &[], &mut [], 5, 2).unwrap();
}

#[test]
fn a_run_that_is_not_ascending_leaves_the_others_alone() {
    let a = [1, 3, /**/ 9, 2, /**/ 5, 7];
    let b = [2, 4, /**/ 8, 1, /**/ 6, 8];
    let mut out = [0; 12];
    Engine::cpu().merge_batch(&a, &b, &mut out, 4, 2).unwrap();
    assert_eq!(out[..4], [1, 2, 3, 4]);
    assert_eq!(out[8..], [5, 6, 7, 8]);
}
