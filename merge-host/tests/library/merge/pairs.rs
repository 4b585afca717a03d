//! `Engine::merge` and `Engine::merge_batch` with values against the standard library's stable sort.
//!
//! The values of a test are distinct, so they distinguish equal keys.

use crate::common::*;
use merge_host::Engine;
use rand::Rng;

fn check<K: TestKey, V: TestValue>(engine: &Engine, a: &[K], b: &[K], what: impl Fn() -> String) {
    let (a_values, b_values) = (values::<V>(0, a.len()), values::<V>(a.len(), b.len()));
    let (a, b) = ((a, &a_values[..]), (b, &b_values[..]));
    let want = merged_pairs(a, b);
    let mut out = poisoned_pairs(&want);
    engine.merge(a, b, (&mut out.0, &mut out.1)).unwrap();
    let value = std::any::type_name::<V>();
    assert_same_pairs(&out, &want, || {
        format!("with {value}, {engine:?}, |a| {}, |b| {}, {}", a.0.len(), b.0.len(), what())
    });
}

fn all_short_lengths<K: TestKey, V: TestValue>(seed: u64) {
    let engine = Engine::cpu();
    let mut rng = rng(seed);
    for m in 0..12 {
        for n in 0..12 {
            for kind in KINDS {
                let (a, b) = (sorted(keys::<K>(kind, m, &mut rng)), sorted(keys(kind, n, &mut rng)));
                check::<K, V>(&engine, &a, &b, || format!("{kind}, seed {seed}"));
            }
        }
    }
}

#[test]
fn merges_all_short_lengths() {
    let seed = seed();
    for_all_pairs!(all_short_lengths(seed));
}

fn lengths_around_edges<K: TestKey, V: TestValue>(seed: u64) {
    let engine = Engine::cpu();
    let mut rng = rng(seed);
    let edges = [64, 128, 1024, 4096].into_iter().flat_map(|length: usize| [length - 1, length, length + 1]);
    for total in edges {
        for m in [0, 1, total / 3, total / 2, total - 1, total] {
            let kind = KINDS[rng.random_range(0..KINDS.len())];
            let (a, b) = (sorted(keys::<K>(kind, m, &mut rng)), sorted(keys(kind, total - m, &mut rng)));
            check::<K, V>(&engine, &a, &b, || format!("{kind}, seed {seed}"));
        }
    }
}

#[test]
fn merges_lengths_around_edges() {
    let seed = seed();
    for_all_pairs!(lengths_around_edges(seed));
}

#[test]
fn of_equal_keys_the_pairs_of_a_come_first() {
    for engine in cpu_engines() {
        for (m, n) in [(1, 1), (1, 3000), (3000, 1), (2000, 2001), (300_000, 300_001)] {
            let (a, b) = (vec![5u32; m], vec![5u32; n]);
            let (a_values, b_values) = (values::<u32>(0, m), values::<u32>(m, n));
            let (mut keys, mut out) = (vec![0; m + n], vec![0; m + n]);
            engine.merge((&a, &a_values), (&b, &b_values), (&mut keys, &mut out)).unwrap();
            assert_eq!(keys, vec![5; m + n]);
            let misplaced = (0..m + n).find(|&i| out[i] != i as u32);
            assert_eq!(misplaced, None, "{engine:?}, {m} and {n} equal keys");
        }
    }
}

#[test]
fn merges_arrays_of_which_one_comes_first() {
    let engine = Engine::cpu();
    for (m, n) in [(1i64, 5000), (5000, 1), (3000, 3000), (20_000, 40_000)] {
        let low: Vec<i64> = (0..m).collect();
        let high: Vec<i64> = (m..m + n).collect();
        check::<_, u32>(&engine, &low, &high, || "all of A before B".to_owned());
        check::<_, u32>(&engine, &high, &low, || "all of B before A".to_owned());
        let equal_to_the_last = vec![m - 1; n as usize];
        check::<_, u32>(&engine, &low, &equal_to_the_last, || "B equal to the last of A".to_owned());
        check::<_, u32>(&engine, &equal_to_the_last, &low, || "A equal to the last of B".to_owned());
    }
}

fn on_several_threads<K: TestKey, V: TestValue>(seed: u64) {
    let mut rng = rng(seed);
    for engine in &cpu_engines()[1..] {
        for kind in ["any bits", "16 values", "special"] {
            for (m, n) in [(200_001, 200_002), (3, 400_000), (399_999, 17)] {
                let (a, b) = (sorted(keys::<K>(kind, m, &mut rng)), sorted(keys(kind, n, &mut rng)));
                check::<K, V>(engine, &a, &b, || format!("{kind}, seed {seed}"));
            }
        }
    }
}

#[test]
fn merges_many_pairs_on_several_threads_32_bits() {
    on_several_threads::<u32, u32>(seed());
    on_several_threads::<f32, [u8; 3]>(seed());
    on_several_threads::<u32, ()>(seed());
}

#[test]
fn merges_many_pairs_on_several_threads_64_bits() {
    on_several_threads::<i64, (u64, u64, u64)>(seed());
    on_several_threads::<f64, f64>(seed());
}

/// The index of the first value that belongs to another key, if there is one. Value `i` belongs to key `i` of `input`.
fn first_torn_pair(keys: &[u32], values: &[u32], input: &[u32]) -> Option<usize> {
    (0..keys.len()).find(|&i| input.get(values[i] as usize) != Some(&keys[i]))
}

#[test]
fn unsorted_input_gives_pairs_of_the_input() {
    let seed = seed();
    let mut rng = rng(seed);
    for engine in cpu_engines() {
        for (m, n) in [(1, 1), (3, 50), (1000, 1000), (2000, 9), (20_000, 21_000), (300_000, 100_000)] {
            let input = keys::<u32>("any bits", m + n, &mut rng);
            let (a, b) = input.split_at(m);
            let (a_values, b_values) = (values::<u32>(0, m), values::<u32>(m, n));
            let (mut out, mut out_values) = (vec![0; m + n], vec![u32::MAX; m + n]);
            engine.merge((a, &a_values), (b, &b_values), (&mut out, &mut out_values)).unwrap();
            // The only guarantee is that each element is a pair of the input.
            let torn = first_torn_pair(&out, &out_values, &input);
            assert_eq!(torn, None, "{engine:?}, |a| {m}, |b| {n}, seed {seed}");
        }
    }
}

fn check_batch<K: TestKey, V: TestValue>(engine: &Engine, pairs: usize, d: usize, a_len: usize, kind: &str, seed: u64) {
    let mut rng = rng(seed);
    let mut runs =
        |length: usize| -> Vec<K> { (0..pairs).flat_map(|_| sorted(keys::<K>(kind, length, &mut rng))).collect() };
    let b_len = d - a_len;
    let (a, b) = (runs(a_len), runs(b_len));
    let (a_values, b_values) = (values::<V>(0, a.len()), values::<V>(a.len(), b.len()));
    let mut want = (Vec::new(), Vec::new());
    for p in 0..pairs {
        let (of_a, of_b) = (p * a_len..(p + 1) * a_len, p * b_len..(p + 1) * b_len);
        let run = merged_pairs((&a[of_a.clone()], &a_values[of_a]), (&b[of_b.clone()], &b_values[of_b]));
        want.0.extend(run.0);
        want.1.extend(run.1);
    }
    let mut out = poisoned_pairs(&want);
    engine.merge_batch((&a, &a_values), (&b, &b_values), (&mut out.0, &mut out.1), d, a_len).unwrap();
    let value = std::any::type_name::<V>();
    let what = || format!("with {value}, {engine:?}, {pairs} pairs, d {d}, a_len {a_len}, {kind}, seed {seed}");
    assert_same_pairs(&out, &want, what);
}

fn all_shapes<K: TestKey, V: TestValue>(seed: u64) {
    let engine = Engine::cpu();
    for d in (1..=20).chain([63, 64, 65, 127, 128, 129, 1023, 1024]) {
        for a_len in [0, 1, d / 2, d] {
            for (pairs, kind) in [(1, "any bits"), (7, "special"), (20, "16 values")] {
                check_batch::<K, V>(&engine, pairs, d, a_len, kind, seed);
            }
        }
    }
}

#[test]
fn merges_batches_of_all_shapes() {
    let seed = seed();
    for_all_pairs!(all_shapes(seed));
}

#[test]
fn merges_big_batches_on_several_threads() {
    let seed = seed();
    for engine in cpu_engines() {
        for (d, a_len) in [(3, 1), (100, 33), (1000, 999), (1024, 512)] {
            check_batch::<u32, u32>(&engine, 400_000 / d, d, a_len, "16 values", seed);
            check_batch::<f64, [u8; 3]>(&engine, 400_000 / d, d, a_len, "special", seed);
        }
    }
}

/// Vectors merge short runs of keys alone. A value of one byte is not nothing.
#[test]
fn merges_short_runs_with_values_of_one_byte() {
    let (a, b) = ([1u32, 3].repeat(64), [2u32, 4].repeat(64));
    let values: Vec<u8> = (0..=255).collect();
    let (a_values, b_values) = values.split_at(128);
    let want: Vec<u8> = (0..128).step_by(2).flat_map(|i| [i, i + 128, i + 1, i + 129]).collect();
    let offsets: Vec<usize> = (0..=128).step_by(2).collect();
    let (mut out, mut of_batch, mut of_ragged) = (vec![0; 256], vec![0; 256], vec![0; 256]);
    let engine = Engine::cpu();
    engine.merge_batch((&a, a_values), (&b, b_values), (&mut out, &mut of_batch), 4, 2).unwrap();
    let (of_a, of_b) = (((&a, a_values), &offsets[..]), ((&b, b_values), &offsets[..]));
    engine.merge_ragged(of_a, of_b, (&mut out, &mut of_ragged)).unwrap();
    assert_eq!((&out, &of_batch, &of_ragged), (&[1, 2, 3, 4].repeat(64), &want, &want));
}

#[test]
fn merges_nothing_at_all() {
    let engine = Engine::cpu();
    let none: (&[u32], &[u8]) = (&[], &[]);
    engine.merge(none, none, (&mut [], &mut [])).unwrap();
    engine.merge_batch(none, none, (&mut [], &mut []), 5, 2).unwrap();
}
