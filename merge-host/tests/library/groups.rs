//! `Engine::unique`, `run_lengths`, `reduce_by_key` and the bounds, against loops.

use crate::common::*;
use merge_host::{Bound, Descending, Engine, Error, Reduction, Summand, descending};
use rand::Rng;

/// Engines of one thread and of several threads. The inputs below are long enough for several.
fn engines() -> [Engine; 2] {
    [Engine::cpu_with_threads(1).unwrap(), Engine::cpu_with_threads(3).unwrap()]
}

/// Keys in groups of up to `most` keys, and the beginnings of the groups.
fn in_groups<K: TestKey>(n: usize, most: usize, rng: &mut impl Rng) -> (Vec<K>, Vec<usize>) {
    let (mut keys, mut begins) = (Vec::new(), Vec::new());
    while keys.len() < n {
        begins.push(keys.len());
        let (key, len) = (K::number(5 + begins.len() as i64 % 2), rng.random_range(1..=most).min(n - keys.len()));
        keys.extend(std::iter::repeat_n(key, len));
    }
    begins.push(n);
    if n == 0 {
        begins.clear();
        begins.push(0);
    }
    (keys, begins)
}

fn check_groups<K: TestKey, V: Summand + PartialEq>(n: usize, most: usize, value: fn(i32) -> V) {
    let seed = rand::random();
    let mut rng = rng(seed);
    let (keys, begins) = in_groups::<K>(n, most, &mut rng);
    let values: Vec<V> = (0..n).map(|_| value(rng.random_range(-100..100))).collect();
    let first: Vec<K> = begins[..begins.len() - 1].iter().map(|&i| keys[i]).collect();
    let what = || format!("{n} keys in groups of up to {most}, seed {seed}");
    for engine in engines() {
        let (mut out, mut lengths, mut totals) = (vec![K::number(1); 7], vec![7; 3], vec![value(1); 2]);
        engine.unique(&keys, &mut out).unwrap();
        assert_same(&out, &first, what);
        engine.run_lengths(&keys, (&mut out, &mut lengths)).unwrap();
        assert_same(&out, &first, what);
        assert!(lengths.iter().copied().eq(begins.windows(2).map(|ends| (ends[1] - ends[0]) as u64)), "{}", what());
        for reduction in Reduction::ALL {
            engine.reduce_by_key(reduction, (&keys, &values), (&mut out, &mut totals)).unwrap();
            assert_same(&out, &first, what);
            let expected = begins.windows(2).map(|ends| {
                let values = values[ends[0]..ends[1]].iter().copied();
                let ordered = |x: &V, y: &V| merge_host::Key::to_ordered(*x).cmp(&merge_host::Key::to_ordered(*y));
                match reduction {
                    Reduction::Sum => values.reduce(V::plus),
                    Reduction::Min => values.min_by(ordered),
                    Reduction::Max => values.max_by(ordered),
                    _ => panic!("{reduction} is not tested"),
                }
                .unwrap()
            });
            assert!(totals.iter().copied().eq(expected), "{reduction} of {}", what());
        }
    }
}

#[test]
fn groups_are_found_within_blocks_and_over_several() {
    for n in [0, 1, 2, 1000, 65_536, 65_537, 400_000] {
        for most in [1, 5, 70_000, 1_000_000] {
            check_groups::<u32, i64>(n, most, i64::from);
            check_groups::<u8, f32>(n, most, |number| number as f32);
            check_groups::<f64, u32>(n, most, |number| number as u32);
        }
    }
}

#[test]
fn values_are_as_many_as_keys() {
    let error = Engine::cpu().reduce_by_key(Reduction::Sum, (&[1, 2], &[1]), (&mut Vec::new(), &mut Vec::new()));
    assert_eq!(error.unwrap_err(), Error::ValuesMismatch { what: "keys", keys: 2, values: 1 });
}

#[test]
fn sums_of_floats_do_not_depend_on_the_number_of_threads() {
    let mut rng = rng(7);
    let values: Vec<f32> = (0..500_000).map(|_| rng.random()).collect();
    let sums = engines().map(|engine| {
        let mut totals = Vec::new();
        engine
            .reduce_by_key(Reduction::Sum, (&vec![1u16; values.len()], &values), (&mut Vec::new(), &mut totals))
            .unwrap();
        totals
    });
    assert_eq!(sums[0], sums[1]);
}

fn check_bounds<K: TestKey>(needles: usize, keys: usize) {
    let seed = rand::random();
    let mut rng = rng(seed);
    for kind in KINDS {
        let needles = sorted(crate::common::keys::<K>(kind, needles, &mut rng));
        let mut keys = crate::common::keys::<K>(kind, keys, &mut rng);
        keys.extend(needles.iter().filter(|_| rng.random()).copied().collect::<Vec<_>>());
        let keys = sorted(keys);
        for engine in engines() {
            let (mut lower, mut upper) = (vec![7u32; needles.len()], vec![7u64; needles.len()]);
            engine.bounds(Bound::Lower, &needles, &keys, &mut lower).unwrap();
            engine.bounds(Bound::Upper, &needles, &keys, &mut upper).unwrap();
            for (i, needle) in needles.iter().enumerate() {
                let bounds = (
                    keys.partition_point(|key| key.order(needle).is_lt()) as u32,
                    keys.partition_point(|key| key.order(needle).is_le()) as u64,
                );
                assert_eq!((lower[i], upper[i]), bounds, "{kind}, needle {i}, seed {seed}");
            }
        }
    }
}

#[test]
fn bounds_are_those_of_the_standard_library() {
    for (needles, keys) in [(0, 0), (0, 5), (5, 0), (1, 1), (1000, 10), (10, 1000), (100_000, 30_000)] {
        check_bounds::<u32>(needles, keys);
        check_bounds::<f32>(needles, keys);
        check_bounds::<u8>(needles, keys);
        check_bounds::<u128>(needles, keys);
    }
    let mut bounds = [0u32; 2];
    Engine::cpu().bounds(Bound::Lower, descending(&[5, 1]), descending(&[6, 5, 4]), &mut bounds).unwrap();
    assert_eq!(bounds, [1, 3]);
    let none: &[Descending<f32>] = &[];
    assert!(Engine::cpu().bounds(Bound::Upper, none, none, &mut bounds).is_err());
}
