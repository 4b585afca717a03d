//! `Engine::merge_many`, with values and without, against the standard library's stable sort.

use crate::common::*;
use merge_host::{Engine, Error, SortOrder};
use proptest::prelude::*;
use rand::Rng;
use rand::rngs::StdRng;

/// Sorted runs of the given lengths.
fn runs<K: TestKey>(lengths: &[usize], kind: &str, rng: &mut StdRng) -> Vec<Vec<K>> {
    lengths.iter().map(|&length| sorted(keys(kind, length, rng))).collect()
}

/// Checks the merge of keys without values.
fn check_keys<K: TestKey>(engine: &Engine, runs: &[Vec<K>], what: impl Fn() -> String) {
    let want = sorted(runs.concat());
    let mut out = poisoned(&want);
    let keys: Vec<&[K]> = runs.iter().map(|run| &run[..]).collect();
    engine.merge_many(&keys, &mut out).unwrap();
    assert_same(&out, &want, || format!("keys of {} runs, {engine:?}, {}", runs.len(), what()));
}

/// Checks the merge of keys without values, and of keys with values.
fn check<K: TestKey, V: TestValue>(engine: &Engine, runs: &[Vec<K>], what: impl Fn() -> String) {
    check_keys(engine, runs, &what);
    let all = runs.concat();
    let numbers = values::<V>(0, all.len());
    // The sort keeps the order of the runs, which are adjacent.
    let want = sorted_pairs(SortOrder::Ascending, &all, &numbers);

    let mut rest = &numbers[..];
    let mut pairs = Vec::new();
    for run in runs {
        let values;
        (values, rest) = rest.split_at(run.len());
        pairs.push((&run[..], values));
    }
    let mut out = poisoned_pairs(&want);
    engine.merge_many(&pairs, (&mut out.0, &mut out.1)).unwrap();
    let name = std::any::type_name::<V>();
    assert_same_pairs(&out, &want, || format!("{} runs with {name}, {engine:?}, {}", runs.len(), what()));
}

/// Calls `check` with runs of all kinds, with numbers of runs around the edges between methods.
fn every_number_of_runs<K: TestKey>(seed: u64, check: impl Fn(&[Vec<K>], String)) {
    let mut rng = rng(seed);
    for count in (0..10).chain([16, 31, 32, 33, 63, 64, 65, 200]) {
        for kind in KINDS {
            let most = [1, 10, 100][rng.random_range(0..3)];
            let lengths: Vec<usize> = (0..count).map(|_| rng.random_range(0..=most)).collect();
            check(&runs(&lengths, kind, &mut rng), format!("{kind}, seed {seed}"));
        }
    }
}

fn any_number_of_runs<K: TestKey>(seed: u64) {
    every_number_of_runs::<K>(seed, |runs, what| check_keys(&Engine::cpu(), runs, || what.clone()));
}

fn any_number_of_runs_with_values<K: TestKey, V: TestValue>(seed: u64) {
    every_number_of_runs::<K>(seed, |runs, what| check::<K, V>(&Engine::cpu(), runs, || what.clone()));
}

#[test]
fn merges_any_number_of_runs() {
    let seed = seed();
    for_keys_of_all_kinds!(any_number_of_runs(seed));
    for_all_pairs!(any_number_of_runs_with_values(seed));
}

/// Merges that are worth several threads, and several blocks for each thread.
fn shapes<K: TestKey, V: TestValue>(engines: &[Engine], seed: u64) {
    let mut rng = rng(seed);
    let mut long_and_short = vec![0, 3, 300_000, 1, 1, 0, 7, 100_000];
    long_and_short.extend([5; 40]);
    let shapes = [
        ("one run", vec![400_000]),
        ("one run among empty ones", vec![0, 0, 400_000, 0]),
        ("two runs", vec![300_000, 200_000]),
        ("three runs", vec![150_000, 1, 300_001]),
        ("16 runs", vec![30_011; 16]),
        ("runs of very different lengths", long_and_short),
        ("67 runs, of which groups are shared by threads", vec![7_001; 67]),
        ("the greatest number of runs of two passes, of few keys", vec![300; 1024]),
        ("more runs than two passes merge", vec![90; 4096]),
        ("more runs than keys", [vec![0; 5000], vec![1; 200], vec![0; 5000]].concat()),
    ];
    for engine in engines {
        for (name, lengths) in &shapes {
            let kind = KINDS[rng.random_range(0..KINDS.len())];
            check::<K, V>(engine, &runs(lengths, kind, &mut rng), || format!("{name}, {kind}, seed {seed}"));
        }
    }
}

#[test]
fn merges_runs_of_all_shapes_on_several_threads() {
    let seed = seed();
    let engines = cpu_engines();
    shapes::<u32, u32>(&engines, seed);
    shapes::<f64, (u64, u64, u64)>(&engines[2..3], seed);
    shapes::<u8, [u8; 3]>(&engines[1..2], seed);
    shapes::<u128, u64>(&engines[3..], seed);
}

#[test]
fn runs_whose_keys_do_not_overlap() {
    let ascending: Vec<Vec<i32>> = (0..100).map(|run| (run * 3000..(run + 1) * 3000).collect()).collect();
    let mut descending = ascending.clone();
    descending.reverse();
    let interleaved: Vec<Vec<i32>> = (0..100).map(|run| (0..3000).map(|i| i * 100 + run).collect()).collect();
    for engine in cpu_engines() {
        for runs in [&ascending, &descending, &interleaved] {
            check::<_, u32>(&engine, runs, || format!("the first run begins with {}", runs[0][0]));
        }
    }
}

#[test]
fn a_run_may_occur_many_times() {
    let run = [1, 5, 5, 9];
    let mut out = [0; 4 * 70];
    Engine::cpu().merge_many(&[&run[..]; 70], &mut out).unwrap();
    assert!(out.iter().copied().eq([[1; 70], [5; 70], [5; 70], [9; 70]].into_iter().flatten()));
}

#[test]
fn runs_that_are_not_ascending_give_pairs_of_the_input() {
    let seed = seed();
    let mut rng = rng(seed);
    for engine in cpu_engines() {
        for (count, length) in [(3, 100_000), (16, 20_000), (100, 3000), (4096, 90)] {
            let input: Vec<u64> = keys("any bits", count * length, &mut rng);
            let indices: Vec<usize> = (0..input.len()).collect();
            let runs: Vec<_> = input.chunks(length).zip(indices.chunks(length)).collect();
            let (mut keys, mut values) = (vec![0; input.len()], vec![usize::MAX; input.len()]);
            engine.merge_many(&runs, (&mut keys, &mut values)).unwrap();
            let torn = (0..keys.len()).find(|&i| input.get(values[i]) != Some(&keys[i]));
            assert_eq!(torn, None, "{count} runs, {engine:?}, seed {seed}");
        }
    }
}

proptest! {
    #[test]
    fn merging_is_a_stable_sort_by_key_run_and_index(
        lengths in prop::collection::vec(prop_oneof![Just(0usize), 0usize..4, 0usize..300], 0..90),
        values in 1i64..50,
        seed in any::<u64>(),
    ) {
        let mut rng = rng(seed);
        let runs: Vec<Vec<i64>> =
            lengths.iter().map(|&n| sorted((0..n).map(|_| rng.random_range(0..values)).collect())).collect();
        let mut want: Vec<(i64, usize, usize)> = Vec::new();
        for (r, run) in runs.iter().enumerate() {
            want.extend(run.iter().enumerate().map(|(index, &key)| (key, r, index)));
        }
        let sources = want.iter().map(|&(_, run, index)| (run, index)).collect::<Vec<_>>();
        want.sort();
        let mut rest = &sources[..];
        let mut input = Vec::new();
        for run in &runs {
            let values;
            (values, rest) = rest.split_at(run.len());
            input.push((&run[..], values));
        }
        let (mut keys, mut out) = (vec![-1; want.len()], vec![(usize::MAX, 0); want.len()]);
        Engine::cpu_with_threads(1).unwrap().merge_many(&input, (&mut keys, &mut out)).unwrap();
        let found: Vec<_> = keys.into_iter().zip(out).map(|(key, (run, index))| (key, run, index)).collect();
        prop_assert_eq!(found, want);
    }
}

#[test]
fn bad_lengths_are_refused() {
    let rule = "the runs' keys in all";
    for length in [0, 4, 6] {
        let mut out = vec![7; length];
        let error = Engine::cpu().merge_many(&[&[1, 2][..], &[], &[1, 2, 3]], &mut out).unwrap_err();
        assert_eq!(error, Error::LengthMismatch { what: "out", expected: 5, found: length, rule });
        let pairs: [(&[i32], &[u8]); 2] = [(&[1, 2], &[1, 2]), (&[1, 2, 3], &[0; 3])];
        let mut values = vec![7; length];
        let error = Engine::cpu().merge_many(&pairs, (&mut out, &mut values)).unwrap_err();
        assert_eq!(error, Error::LengthMismatch { what: "out", expected: 5, found: length, rule });
        assert!(out.iter().all(|&key| key == 7) && values.iter().all(|&value| value == 7));
    }
    let (mut out, mut values) = ([7; 5], [7; 5]);
    let pairs: [(&[i32], &[u8]); 2] = [(&[1, 2], &[1, 2]), (&[1, 2, 3], &[0; 2])];
    let error = Engine::cpu().merge_many(&pairs, (&mut out, &mut values)).unwrap_err();
    assert_eq!(error, Error::ValuesMismatch { what: "a run", keys: 3, values: 2 });
    assert_eq!(error.to_string(), "a run has 3 keys and 2 values, expected a value for each key");
    let error = Engine::cpu().merge_many(&pairs[..1], (&mut out[..2], &mut values)).unwrap_err();
    assert_eq!(error, Error::ValuesMismatch { what: "out", keys: 2, values: 5 });
    assert!(out == [7; 5] && values == [7; 5]);
}

#[test]
fn no_runs_are_merged_to_nothing() {
    let none: [&[u32]; 0] = [];
    let no_pairs: [(&[u32], &[u8]); 0] = [];
    Engine::cpu().merge_many(&none, &mut []).unwrap();
    Engine::cpu().merge_many(&[&[0u32; 0], &[]], &mut []).unwrap();
    Engine::cpu().merge_many(&no_pairs, (&mut [], &mut [])).unwrap();
}
