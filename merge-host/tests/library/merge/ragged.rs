//! `Engine::merge_ragged`, with values and without, against the standard library's stable sort of each merge problem.

use crate::common::*;
use merge_host::Engine;
use rand::Rng;
use rand::rngs::StdRng;
use std::cmp::Ordering;

/// Adjacent runs.
#[derive(Clone)]
struct Ragged<K> {
    keys: Vec<K>,
    offsets: Vec<usize>,
}

impl<K: TestKey> Ragged<K> {
    /// Sorted runs of the given lengths.
    fn new(lengths: &[usize], kind: &str, rng: &mut StdRng) -> Self {
        let mut offsets = vec![0];
        offsets.extend(lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        }));
        let all = keys::<K>(kind, offsets[lengths.len()], rng);
        let runs = offsets.windows(2).map(|run| sorted(all[run[0]..run[1]].to_vec()));
        Ragged { keys: runs.collect::<Vec<_>>().concat(), offsets }
    }
}

/// The expected result: a stable sort of each merge problem keeps A's pairs before B's.
fn wanted<K: TestKey, V: TestValue>(a: &Ragged<K>, a_values: &[V], b: &Ragged<K>, b_values: &[V]) -> (Vec<K>, Vec<V>) {
    let runs = a.offsets.windows(2).zip(b.offsets.windows(2)).map(|(i, j)| {
        let (i, j) = (i[0]..i[1], j[0]..j[1]);
        merged_pairs((&a.keys[i.clone()], &a_values[i]), (&b.keys[j.clone()], &b_values[j]))
    });
    let (keys, values): (Vec<_>, Vec<_>) = runs.unzip();
    (keys.concat(), values.concat())
}

/// Checks the merge of keys without values, and of keys with values.
fn check<K: TestKey, V: TestValue>(engine: &Engine, a: &Ragged<K>, b: &Ragged<K>, what: impl Fn() -> String) {
    let (a_values, b_values) = (values::<V>(0, a.keys.len()), values::<V>(a.keys.len(), b.keys.len()));
    let want = wanted(a, &a_values, b, &b_values);
    let mut out = poisoned(&want.0);
    engine.merge_ragged((&a.keys, &a.offsets), (&b.keys, &b.offsets), &mut out).unwrap();
    assert_same(&out, &want.0, || format!("keys, {engine:?}, {}", what()));

    let mut out = poisoned_pairs(&want);
    let (a, b) = (((&a.keys, &a_values), &a.offsets[..]), ((&b.keys, &b_values), &b.offsets[..]));
    engine.merge_ragged(a, b, (&mut out.0, &mut out.1)).unwrap();
    assert_same_pairs(&out, &want, || format!("with {}, {engine:?}, {}", std::any::type_name::<V>(), what()));
}

/// The length of a run: mostly short, sometimes 0, and sometimes around the greatest length of a run of `merge_batch`.
fn length(rng: &mut StdRng) -> usize {
    match rng.random_range(0..12) {
        0..3 => 0,
        3..5 => 1,
        5..9 => rng.random_range(2..40),
        9 => rng.random_range(40..300),
        10 => rng.random_range(1023..1026),
        _ => rng.random_range(60..70),
    }
}

fn random_lengths<K: TestKey, V: TestValue>(seed: u64) {
    let engine = Engine::cpu_with_threads(1).unwrap();
    let mut rng = rng(seed);
    for round in 0..12 {
        let kind = KINDS[round % KINDS.len()];
        let pairs = rng.random_range(0..60);
        let mut lengths = || (0..pairs).map(|_| length(&mut rng)).collect::<Vec<_>>();
        let (of_a, of_b) = (lengths(), lengths());
        let (a, b) = (Ragged::<K>::new(&of_a, kind, &mut rng), Ragged::new(&of_b, kind, &mut rng));
        check::<K, V>(&engine, &a, &b, || format!("lengths {of_a:?} and {of_b:?}, {kind}, seed {seed}"));
    }
}

#[test]
fn merges_runs_of_random_lengths() {
    let seed = seed();
    for_all_pairs!(random_lengths(seed));
}

#[test]
fn merges_runs_of_every_pair_of_these_lengths() {
    let seed = seed();
    let mut rng = rng(seed);
    let lengths = [0, 1, 2, 3, 63, 64, 65, 1023, 1024, 1025, 2000];
    let of_a: Vec<usize> = lengths.iter().flat_map(|&length| [length; 11]).collect();
    let of_b: Vec<usize> = lengths.iter().copied().cycle().take(121).collect();
    for engine in cpu_engines() {
        for kind in KINDS {
            let (a, b) = (Ragged::<i32>::new(&of_a, kind, &mut rng), Ragged::new(&of_b, kind, &mut rng));
            check::<_, u64>(&engine, &a, &b, || format!("{kind}, seed {seed}"));
        }
    }
}

/// Batches that are worth several threads, in shapes that are hard to divide evenly.
#[test]
fn merges_batches_of_all_shapes_on_several_threads() {
    let seed = seed();
    let mut rng = rng(seed);
    let short: Vec<usize> = (0..20_000).map(|_| length(&mut rng) % 50).collect();
    let tiny: Vec<usize> = (0..300_000).map(|_| rng.random_range(0..3)).collect();
    let empty = vec![0; 500_000];
    let mut one_in_the_middle = vec![0; 100_001];
    one_in_the_middle[50_000] = 300_000;
    let mut long_ones = vec![100_000, 0, 100_001, 1, 99_999, 0, 1023];
    let shapes = [
        ("one pair", vec![300_000], vec![290_001]),
        ("one side empty", vec![500_000], vec![0]),
        ("no pairs", vec![], vec![]),
        ("a long pair first", [vec![400_000], short.clone()].concat(), [vec![7], short.clone()].concat()),
        ("a long pair last", [short.clone(), vec![3]].concat(), [short.clone(), vec![400_000]].concat()),
        ("a long pair between empty ones", one_in_the_middle.clone(), one_in_the_middle),
        ("empty pairs only", empty.clone(), empty.clone()),
        ("empty pairs and a key at the end", [empty.clone(), vec![1]].concat(), [empty, vec![1]].concat()),
        ("tiny pairs", tiny.clone(), tiny.into_iter().rev().collect()),
        ("long pairs", long_ones.clone(), {
            long_ones.rotate_left(1);
            long_ones
        }),
    ];
    for (i, engine) in cpu_engines().into_iter().enumerate() {
        for (j, (name, of_a, of_b)) in shapes.iter().enumerate() {
            // One or two of the engines merge every shape with each kind of keys.
            let kind = ["any bits", "16 values", "all equal"][(i + j) % 3];
            let (a, b) = (Ragged::<u32>::new(of_a, kind, &mut rng), Ragged::new(of_b, kind, &mut rng));
            check::<_, u32>(&engine, &a, &b, || format!("{name}, {kind}, seed {seed}"));
        }
        let (_, of_a, of_b) = &shapes[3];
        let (a, b) = (Ragged::<f64>::new(of_a, "special", &mut rng), Ragged::new(of_b, "special", &mut rng));
        check::<_, (u64, u64, u64)>(&engine, &a, &b, || format!("special, seed {seed}"));
    }
}

#[test]
fn a_run_that_is_not_ascending_leaves_the_others_alone() {
    let seed = seed();
    let mut rng = rng(seed);
    for engine in cpu_engines() {
        // The unsorted problem in the middle is long enough for several threads.
        let lengths = [50, 0, 500_000, 70, 3];
        let bad = |ragged: &mut Ragged<u32>| {
            let (from, to) = (ragged.offsets[2], ragged.offsets[3]);
            ragged.keys[from..to].reverse();
        };
        let (mut a, mut b) =
            (Ragged::<u32>::new(&lengths, "any bits", &mut rng), Ragged::new(&lengths, "any bits", &mut rng));
        let good_values = (values::<u32>(0, a.keys.len()), values::<u32>(a.keys.len(), b.keys.len()));
        let want = wanted(&a, &good_values.0, &b, &good_values.1);
        bad(&mut a);
        bad(&mut b);
        let mut out = poisoned_pairs(&want);
        let (a_values, b_values) = good_values;
        let (a_in, b_in) = (((&a.keys, &a_values), &a.offsets[..]), ((&b.keys, &b_values), &b.offsets[..]));
        engine.merge_ragged(a_in, b_in, (&mut out.0, &mut out.1)).unwrap();

        let (from, to) = (a.offsets[2] + b.offsets[2], a.offsets[3] + b.offsets[3]);
        for good in [0..from, to..out.0.len()] {
            assert_eq!(out.0[good.clone()], want.0[good.clone()], "{engine:?}, seed {seed}");
            assert_eq!(out.1[good.clone()], want.1[good], "{engine:?}, seed {seed}");
        }
        // In the unsorted problem, each element is a pair of the input.
        let input = [a.keys.clone(), b.keys.clone()].concat();
        let torn =
            (from..to).find(|&i| input.get(out.1[i] as usize).map(|key| key.cmp(&out.0[i])) != Some(Ordering::Equal));
        assert_eq!(torn, None, "{engine:?}, seed {seed}");
    }
}

#[test]
fn runs_of_one_length_are_a_batch() {
    let seed = seed();
    let mut rng = rng(seed);
    let (pairs, d, a_len) = (5000, 100, 37);
    let a = Ragged::<i64>::new(&vec![a_len; pairs], "16 values", &mut rng);
    let b = Ragged::<i64>::new(&vec![d - a_len; pairs], "16 values", &mut rng);
    for engine in cpu_engines() {
        let (mut ragged, mut batch) = (vec![0; pairs * d], vec![1; pairs * d]);
        engine.merge_ragged((&a.keys, &a.offsets), (&b.keys, &b.offsets), &mut ragged).unwrap();
        engine.merge_batch(&a.keys, &b.keys, &mut batch, d, a_len).unwrap();
        assert_same(&ragged, &batch, || format!("{engine:?}, seed {seed}"));
    }
}
