//! `Engine::merge_many_ragged` against the standard library's stable sort of each group.

use crate::common::*;
use merge_host::{Engine, Error, SortOrder, descending, descending_mut};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::Rng;
use rand::rngs::StdRng;

/// Adjacent sorted runs, and groups of runs.
struct Groups<K> {
    keys: Vec<K>,
    offsets: Vec<usize>,
    groups: Vec<usize>,
}

/// The offsets of adjacent arrays of the given lengths.
fn offsets(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut offsets = vec![0];
    for length in lengths {
        offsets.push(offsets[offsets.len() - 1] + length);
    }
    offsets
}

impl<K: TestKey> Groups<K> {
    /// Groups of runs of the given lengths.
    fn new(order: SortOrder, groups: &[Vec<usize>], kind: &str, rng: &mut StdRng) -> Self {
        let offsets_of_runs = offsets(groups.iter().flatten().copied());
        let all = keys::<K>(kind, offsets_of_runs[offsets_of_runs.len() - 1], rng);
        let runs = offsets_of_runs.windows(2).map(|ends| {
            let run = &all[ends[0]..ends[1]];
            gathered(run, &sorted_indices(order, run))
        });
        let keys = runs.collect::<Vec<_>>().concat();
        Self { keys, offsets: offsets_of_runs, groups: offsets(groups.iter().map(Vec::len)) }
    }

    /// The expected result: a stable sort of each group keeps the order of its runs.
    fn wanted<V: TestValue>(&self, order: SortOrder, values: &[V]) -> (Vec<K>, Vec<V>) {
        let ends: Vec<usize> = self.groups.iter().map(|&run| self.offsets[run]).collect();
        let groups = ends.windows(2).map(|e| sorted_pairs(order, &self.keys[e[0]..e[1]], &values[e[0]..e[1]]));
        let (keys, values): (Vec<_>, Vec<_>) = groups.unzip();
        (keys.concat(), values.concat())
    }
}

/// Checks the merge of keys without values, and of keys with values.
fn check<K: TestKey, V: TestValue>(engine: &Engine, groups: &Groups<K>, what: impl Fn() -> String) {
    let Groups { keys, offsets, groups: ends } = groups;
    let numbers = values::<V>(0, keys.len());
    let want = groups.wanted(SortOrder::Ascending, &numbers);
    let what = || format!("{} groups of {} runs, {engine:?}, {}", ends.len() - 1, offsets.len() - 1, what());
    let mut out = poisoned(&want.0);
    engine.merge_many_ragged(keys, (offsets, ends), &mut out).unwrap();
    assert_same(&out, &want.0, what);
    let mut out = poisoned_pairs(&want);
    engine.merge_many_ragged((keys, &numbers), (offsets, ends), (&mut out.0, &mut out.1)).unwrap();
    assert_same_pairs(&out, &want, || format!("with {}, {}", std::any::type_name::<V>(), what()));
}

/// The length of a run: mostly short, sometimes 0.
fn length(rng: &mut StdRng) -> usize {
    match rng.random_range(0..10) {
        0..3 => 0,
        3..5 => 1,
        5..9 => rng.random_range(2..40),
        _ => rng.random_range(40..300),
    }
}

/// The runs of a group: none, one or a few, and sometimes more than one pass merges.
fn any_groups(count: usize, rng: &mut StdRng) -> Vec<Vec<usize>> {
    let mut group = || {
        let runs = match rng.random_range(0..12) {
            0..3 => 0,
            3..5 => 1,
            5..11 => rng.random_range(2..9),
            _ => rng.random_range(30..80),
        };
        (0..runs).map(|_| length(rng)).collect()
    };
    (0..count).map(|_| group()).collect()
}

fn random_groups<K: TestKey, V: TestValue>(seed: u64) {
    let engine = Engine::cpu_with_threads(1).unwrap();
    let mut rng = rng(seed);
    for kind in KINDS {
        for count in [0, 1, 2, 40] {
            let groups = any_groups(count, &mut rng);
            let groups = Groups::<K>::new(SortOrder::Ascending, &groups, kind, &mut rng);
            check::<K, V>(&engine, &groups, || format!("{kind}, seed {seed}"));
        }
    }
}

#[test]
fn merges_groups_of_random_lengths() {
    let seed = seed();
    for_all_pairs!(random_groups(seed));
}

/// Groups that are worth several threads, in shapes that are hard to divide evenly.
#[test]
fn merges_groups_of_all_shapes_on_several_threads() {
    let seed = seed();
    let mut rng = rng(seed);
    let short = any_groups(3000, &mut rng);
    let shapes: [(&str, Vec<Vec<usize>>); 10] = [
        ("one group", vec![vec![200_000, 0, 190_001, 7, 100_000]]),
        ("one group of two runs", vec![vec![300_000, 200_000]]),
        ("one group of many runs", vec![vec![400; 1025]]),
        ("one run", vec![vec![500_000]]),
        ("one run in each group", vec![vec![3]; 100_000]),
        ("pairs of runs", vec![vec![2, 3]; 60_000]),
        ("a long group first", [vec![vec![100_000; 4]], short.clone()].concat()),
        (
            "a long group among empty ones",
            [vec![vec![]; 50_000], vec![vec![100_000; 4]], vec![vec![0; 3]; 50_000]].concat(),
        ),
        ("a group of two blocks among short ones", [short.clone(), vec![vec![9000; 12]], short].concat()),
        ("nothing in many groups", vec![vec![0; 5]; 100_000]),
    ];
    for engine in cpu_engines() {
        for (name, groups) in &shapes {
            let kind = KINDS[rng.random_range(0..KINDS.len())];
            let all = Groups::<u32>::new(SortOrder::Ascending, groups, kind, &mut rng);
            check::<_, u32>(&engine, &all, || format!("{name}, {kind}, seed {seed}"));
            let all = Groups::<f64>::new(SortOrder::Ascending, groups, "16 values", &mut rng);
            check::<_, (u64, u64, u64)>(&engine, &all, || format!("{name}, 16 values, seed {seed}"));
        }
    }
}

#[test]
fn merges_descending_runs() {
    let seed = seed();
    let mut rng = rng(seed);
    for engine in cpu_engines() {
        for kind in KINDS {
            let all = Groups::<f32>::new(SortOrder::Descending, &any_groups(50, &mut rng), kind, &mut rng);
            let Groups { keys, offsets, groups } = &all;
            let numbers = values::<u32>(0, keys.len());
            let want = all.wanted(SortOrder::Descending, &numbers);
            let mut out = poisoned_pairs(&want);
            let (from, to) = ((descending(keys), &numbers), (descending_mut(&mut out.0), &mut out.1));
            engine.merge_many_ragged(from, (offsets, groups), to).unwrap();
            assert_same_pairs(&out, &want, || format!("{kind}, {engine:?}, seed {seed}"));
        }
    }
}

#[test]
fn a_run_that_is_not_ascending_leaves_other_groups_alone() {
    let seed = seed();
    let mut rng = rng(seed);
    for engine in cpu_engines() {
        let groups = [vec![50, 7], vec![100_000, 100_000, 90_000], vec![70, 0, 3, 60], vec![9]];
        let mut all = Groups::<u32>::new(SortOrder::Ascending, &groups, "any bits", &mut rng);
        let numbers: Vec<u64> = (0..all.keys.len() as u64).collect();
        let want = all.wanted(SortOrder::Ascending, &numbers);
        let (begin, end) = (all.offsets[all.groups[1]], all.offsets[all.groups[2]]);
        // The group in the middle has an unsorted run.
        all.keys[begin..begin + 100_000].reverse();
        let mut out = poisoned_pairs(&want);
        let groups = (&all.offsets[..], &all.groups[..]);
        engine.merge_many_ragged((&all.keys, &numbers), groups, (&mut out.0, &mut out.1)).unwrap();
        for range in [0..begin, end..all.keys.len()] {
            let part =
                |pairs: &(Vec<u32>, Vec<u64>)| (pairs.0[range.clone()].to_vec(), pairs.1[range.clone()].to_vec());
            assert_same_pairs(&part(&out), &part(&want), || format!("{engine:?}, seed {seed}"));
        }
        // The output of this group still consists of pairs of the input.
        assert!((begin..end).all(|i| all.keys.get(out.1[i] as usize) == Some(&out.0[i])), "{engine:?}, seed {seed}");
    }
}

proptest! {
    #[test]
    fn merging_is_a_stable_sort_by_group_key_and_index(
        lengths in vec(vec(prop_oneof![Just(0usize), 0usize..4, 0usize..100], 0..40), 0..12),
        distinct in 1i64..50,
        threads in 1usize..4,
        seed in any::<u64>(),
    ) {
        let mut rng = rng(seed);
        let (mut keys, mut want) = (vec![], vec![]);
        for (g, group) in lengths.iter().enumerate() {
            for &length in group {
                let run = sorted((0..length).map(|_| rng.random_range(0..distinct)).collect());
                want.extend(run.iter().enumerate().map(|(i, &key)| (g, key, keys.len() + i)));
                keys.extend(run);
            }
        }
        want.sort_unstable();
        let (of_runs, of_groups) = (offsets(lengths.iter().flatten().copied()), offsets(lengths.iter().map(Vec::len)));
        let indices: Vec<usize> = (0..keys.len()).collect();
        let (mut out, mut values) = (vec![-1; keys.len()], vec![usize::MAX; keys.len()]);
        let engine = Engine::cpu_with_threads(threads).unwrap();
        engine.merge_many_ragged((&keys, &indices), (&of_runs, &of_groups), (&mut out, &mut values)).unwrap();
        let found: Vec<_> = out.into_iter().zip(values).collect();
        prop_assert_eq!(found, want.into_iter().map(|(_, key, i)| (key, i)).collect::<Vec<_>>());
    }
}

/// The error of both merges of 6 keys. Both leave their output unchanged.
fn refused(offsets: &[usize], groups: &[usize], out: usize) -> Error {
    let (keys, values) = ([1u32; 6], [3u8; 6]);
    let (mut to, mut to_values) = (vec![7u32; out], vec![7u8; out]);
    let error = Engine::cpu().merge_many_ragged(&keys, (offsets, groups), &mut to).unwrap_err();
    let from = (&keys, &values);
    let of_pairs = Engine::cpu().merge_many_ragged(from, (offsets, groups), (&mut to, &mut to_values)).unwrap_err();
    assert_eq!(error, of_pairs);
    assert!(to.iter().all(|&key| key == 7) && to_values.iter().all(|&value| value == 7), "wrote to its output");
    error
}

#[test]
fn bad_offsets_and_lengths_are_refused() {
    let (offsets, groups) = ([0, 2, 2, 6], [0, 1, 3]);
    assert_eq!(refused(&[], &groups, 6), Error::NoOffsets);
    assert_eq!(refused(&offsets, &[], 6), Error::NoOffsets);
    assert_eq!(refused(&[1, 2, 2, 6], &groups, 6), Error::FirstOffset { what: "the runs", found: 1 });
    assert_eq!(refused(&offsets, &[1, 3], 6), Error::FirstOffset { what: "the groups", found: 1 });
    let error = refused(&[0, 3, 2, 6], &groups, 6);
    assert_eq!(error, Error::DescendingOffsets { what: "the runs", index: 2, found: 2, before: 3 });
    let error = refused(&offsets, &[0, usize::MAX, 3], 6);
    assert_eq!(error, Error::DescendingOffsets { what: "the groups", index: 2, found: 3, before: usize::MAX });
    assert_eq!(refused(&[0, 2, 5], &[0, 2], 6), Error::LastOffset { what: "the runs", found: 5, expected: 6 });
    assert_eq!(refused(&[0], &[0], 6), Error::LastOffset { what: "the runs", found: 0, expected: 6 });
    for found in [0, 2, 4, usize::MAX] {
        let groups = if found == 0 { vec![0] } else { vec![0, 1, found] };
        let error = refused(&offsets, &groups, 6);
        assert_eq!(error, Error::LastGroup { found, expected: 3 });
        assert_eq!(error.to_string(), format!("the groups end with run {found}, expected 3 (the number of runs)"));
    }
    for found in [0, 5, 7] {
        let error = refused(&offsets, &groups, found);
        assert_eq!(error, Error::LengthMismatch { what: "out", expected: 6, found, rule: "|keys|" });
    }
    let (keys, mut out, mut values) = ([1; 6], [7; 6], [7; 6]);
    let groups = (&offsets[..], &groups[..]);
    let error = Engine::cpu().merge_many_ragged((&keys, &[3; 5]), groups, (&mut out, &mut values)).unwrap_err();
    assert_eq!(error, Error::ValuesMismatch { what: "the runs", keys: 6, values: 5 });
    let error = Engine::cpu().merge_many_ragged((&keys, &[3; 6]), groups, (&mut out, &mut values[..5])).unwrap_err();
    assert_eq!(error, Error::ValuesMismatch { what: "out", keys: 6, values: 5 });
    assert!(out == [7; 6] && values == [7; 6]);
}

#[test]
fn nothing_is_merged_to_nothing() {
    for (offsets, groups) in [(vec![0], vec![0]), (vec![0], vec![0, 0, 0]), (vec![0, 0, 0], vec![0, 1, 2])] {
        let (groups, keys, values): (_, [u32; 0], [char; 0]) = ((&offsets[..], &groups[..]), [], []);
        Engine::cpu().merge_many_ragged(&keys, groups, &mut []).unwrap();
        Engine::cpu().merge_many_ragged((&keys, &values), groups, (&mut [], &mut [])).unwrap();
    }
}
