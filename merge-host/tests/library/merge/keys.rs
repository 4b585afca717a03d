//! `Engine::merge` and `Engine::merge_with` against the standard library's stable sort.

use crate::common::*;
use merge_host::{Engine, MergeKernel};
use rand::Rng;

fn check<K: TestKey>(engine: &Engine, a: &[K], b: &[K], what: impl Fn() -> String) {
    let want = merged(a, b);
    for kernel in MergeKernel::ALL {
        let mut out = poisoned(&want);
        engine.merge_with(kernel, a, b, &mut out).unwrap();
        assert_same(&out, &want, || format!("{kernel}, {engine:?}, |a| {}, |b| {}, {}", a.len(), b.len(), what()));
    }
}

fn all_short_lengths<K: TestKey>(seed: u64) {
    let engine = Engine::cpu();
    let mut rng = rng(seed);
    for m in 0..20 {
        for n in 0..20 {
            for kind in KINDS {
                let (a, b) = (sorted(keys::<K>(kind, m, &mut rng)), sorted(keys(kind, n, &mut rng)));
                check(&engine, &a, &b, || format!("{kind}, seed {seed}"));
            }
        }
    }
}

#[test]
fn merges_all_short_lengths() {
    let seed = seed();
    for_keys_of_all_kinds!(all_short_lengths(seed));
}

fn lengths_around_edges<K: TestKey>(seed: u64) {
    let engine = Engine::cpu();
    let mut rng = rng(seed);
    let around = |length: usize| [length - 1, length, length + 1];
    let edges = [64, 128, 1024, 2048, 16384].into_iter().flat_map(around);
    for total in edges {
        for m in [0, 1, total / 3, total / 2, total - 1, total] {
            let kind = KINDS[rng.random_range(0..KINDS.len())];
            let (a, b) = (sorted(keys::<K>(kind, m, &mut rng)), sorted(keys(kind, total - m, &mut rng)));
            check(&engine, &a, &b, || format!("{kind}, seed {seed}"));
        }
    }
}

#[test]
fn merges_lengths_around_tile_and_block_edges() {
    let seed = seed();
    for_keys_of_all_kinds!(lengths_around_edges(seed));
}

fn one_side_before_the_other<K: TestKey>() {
    let engine = Engine::cpu();
    for (m, n) in [(1, 1), (1, 5000), (5000, 1), (3000, 3000), (20_000, 40_000)] {
        let low: Vec<K> = (0..m).map(K::number).collect();
        let high: Vec<K> = (m..m + n).map(K::number).collect();
        check(&engine, &low, &high, || "all of A before B".to_owned());
        check(&engine, &high, &low, || "all of B before A".to_owned());
        let equal_to_the_last = vec![K::number(m - 1); n as usize];
        check(&engine, &low, &equal_to_the_last, || "B equal to the last of A".to_owned());
        check(&engine, &equal_to_the_last, &low, || "A equal to the last of B".to_owned());
    }
}

#[test]
fn merges_runs_of_which_one_precedes_the_other() {
    for_keys_of_all_kinds!(one_side_before_the_other());
}

fn on_several_threads<K: TestKey>(seed: u64) {
    let mut rng = rng(seed);
    for engine in &cpu_engines()[1..] {
        for kind in ["any bits", "16 values", "special"] {
            for (m, n) in [(200_001, 200_002), (3, 400_000), (399_999, 17)] {
                let (a, b) = (sorted(keys::<K>(kind, m, &mut rng)), sorted(keys(kind, n, &mut rng)));
                check(engine, &a, &b, || format!("{kind}, seed {seed}"));
            }
        }
    }
}

#[test]
fn merges_many_keys_on_several_threads_32_bits() {
    on_several_threads::<u32>(seed());
    on_several_threads::<f32>(seed());
}

#[test]
fn merges_many_keys_on_several_threads_64_bits() {
    on_several_threads::<i64>(seed());
    on_several_threads::<f64>(seed());
}

fn not_ascending<K: TestKey>(seed: u64) {
    let mut rng = rng(seed);
    for engine in cpu_engines() {
        for (m, n) in [(1, 1), (3, 50), (1000, 1000), (2000, 9), (20_000, 21_000), (300_000, 100_000)] {
            let (a, b) = (keys::<K>("any bits", m, &mut rng), keys::<K>("any bits", n, &mut rng));
            let allowed = merged(&a, &b);
            for kernel in MergeKernel::ALL {
                let mut out = vec![K::number(0); m + n];
                engine.merge_with(kernel, &a, &b, &mut out).unwrap();
                // The output is unspecified. But a read or write out of bounds would show as a key that is not in the
                // input.
                let foreign = out.iter().position(|key| allowed.binary_search_by(|other| other.order(key)).is_err());
                assert_eq!(foreign, None, "{kernel}, {engine:?}, |a| {m}, |b| {n}, seed {seed}");
            }
        }
    }
}

#[test]
fn unsorted_input_gives_keys_of_the_input() {
    let seed = seed();
    not_ascending::<u32>(seed);
    not_ascending::<f64>(seed);
}

#[test]
fn merge_is_merge_with_auto() {
    let (a, b) = ([1, 3, 5], [2, 3, 4]);
    let mut out = [0; 6];
    Engine::cpu().merge(&a, &b, &mut out).unwrap();
    assert_eq!(out, [1, 2, 3, 3, 4, 5]);
}
