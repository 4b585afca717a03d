//! Sorts of elements of any type, and of values that are moved, against the standard library's stable sort.

use crate::common::*;
use merge_host::{Engine, Error, Index, SortKey, SortOrder, permutation};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::Rng;
use std::cmp::{Ordering, Reverse};
use std::fmt::Debug;

/// Lengths around the edges between methods and numbers of threads, and others.
const LENGTHS: [usize; 12] = [0, 1, 2, 50, 99, 100, 101, 1025, 65_537, 131_071, 131_072, 300_001];

/// An element that is not `Copy` or `Clone`.
#[derive(Debug, PartialEq)]
struct Element<K> {
    key: K,
    index: usize,
    text: String,
}

fn elements<K: Copy>(keys: &[K]) -> Vec<Element<K>> {
    let element = |(index, key): (usize, &K)| Element { key: *key, index, text: index.to_string() };
    keys.iter().enumerate().map(element).collect()
}

/// Fails unless the elements have the indices `want` and their own texts.
#[track_caller]
fn assert_order<K>(found: &[Element<K>], want: &[usize], what: impl Fn() -> String) {
    assert!(found.iter().map(|element| element.index).eq(want.iter().copied()), "{}", what());
    assert!(found.iter().all(|element| element.text == element.index.to_string()), "{}", what());
}

fn every_sort<K: TestKey>(seed: u64) {
    let mut rng = rng(seed);
    let engines = [1, 2, 3].map(|threads| Engine::cpu_with_threads(threads).unwrap());
    for length in LENGTHS {
        // For great lengths two kinds suffice.
        for kind in if length > 2000 { &KINDS[..2] } else { &KINDS } {
            let keys = keys::<K>(kind, length, &mut rng);
            let ascending = sorted_indices(SortOrder::Ascending, &keys);
            let engine = &engines[rng.random_range(0..3)];
            let what = || format!("{length} {}, {kind}, {engine:?}, seed {seed}", K::NAME);
            let mut found = elements(&keys);
            engine.sort_by_key(&mut found, |element| element.key).unwrap();
            assert_order(&found, &ascending, what);
            let mut indices = vec![7u32; length];
            engine.argsort_by_key(&keys, &mut indices, |key| *key).unwrap();
            assert!(indices.iter().map(|index| index.to_usize()).eq(ascending.iter().copied()), "{}", what());
            let mut values: Vec<String> = (0..length).map(|i| i.to_string()).collect();
            let mut moved = keys.clone();
            engine.sort_owned(SortOrder::Ascending, (&mut moved, &mut values)).unwrap();
            assert_same(&moved, &gathered(&keys, &ascending), what);
            assert!(
                values.iter().map(|value| value.parse::<usize>().unwrap()).eq(ascending.iter().copied()),
                "{}",
                what()
            );
        }
    }
}

#[test]
fn by_keys_of_every_width() {
    let seed = seed();
    every_sort::<u8>(seed);
    every_sort::<i32>(seed);
    every_sort::<f64>(seed);
    every_sort::<i128>(seed);
}

#[test]
fn by_a_comparison() {
    let seed = seed();
    let mut rng = rng(seed);
    for length in LENGTHS {
        // For great lengths two kinds suffice.
        for kind in if length > 2000 { &KINDS[..2] } else { &KINDS } {
            let keys = keys::<f64>(kind, length, &mut rng);
            for order in [SortOrder::Ascending, SortOrder::Descending] {
                let want = sorted_indices(order, &keys);
                let compare = |a: &f64, b: &f64| match order {
                    SortOrder::Ascending => a.total_cmp(b),
                    SortOrder::Descending => b.total_cmp(a),
                };
                let engine = Engine::cpu_with_threads(rng.random_range(1..5)).unwrap();
                let what = || format!("{length} elements, {kind}, {order}, {engine:?}, seed {seed}");
                let mut found = elements(&keys);
                engine.sort_by(&mut found, |a, b| compare(&a.key, &b.key)).unwrap();
                assert_order(&found, &want, what);
                let mut indices = vec![7u64; length];
                permutation::fill_identity(&mut indices);
                engine.sort_by(&mut indices, |&a, &b| compare(&keys[a as usize], &keys[b as usize])).unwrap();
                assert!(indices.iter().map(|index| index.to_usize()).eq(want.iter().copied()), "{}", what());
                let mut found = elements(&keys);
                permutation::permute(&mut found, &indices).unwrap();
                assert_order(&found, &want, what);
            }
        }
    }
}

/// Sorts keys and their indices, by `Ord` and by ordered bits.
fn check_order<S: SortKey + Ord + Clone + Debug + Send + Sync>(mut keys: Vec<S>) -> Result<(), TestCaseError> {
    // More keys than are sorted by comparisons.
    let copies = 200usize.div_ceil(keys.len().max(1));
    keys = std::iter::repeat_n(keys, copies).flatten().collect();
    let mut found: Vec<(S, usize)> = keys.into_iter().zip(0..).collect();
    let (mut want, mut descending) = (found.clone(), found.clone());
    want.sort_by(|a, b| a.0.cmp(&b.0));
    Engine::cpu().sort_by_key(&mut found, |pair| pair.0.clone()).unwrap();
    prop_assert_eq!(found, &want[..]);
    want.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    Engine::cpu().sort_by_key(&mut descending, |pair| Reverse(pair.0.clone())).unwrap();
    prop_assert_eq!(descending, want);
    Ok(())
}

proptest! {
    #[test]
    fn composed_keys_have_the_order_of_ord(
        small in vec((any::<bool>(), any::<i8>(), any::<char>()), 0..300),
        wide in vec((any::<i64>(), any::<isize>()), 0..300),
        options in vec(any::<(Option<u16>, [i16; 3])>(), 0..300),
        few in vec((0u64..4, any::<u8>().prop_map(|key| Reverse(key % 3)), any::<bool>(), 0i32..2), 0..300),
        widest in vec(any::<i128>(), 0..300),
    ) {
        check_order(small)?;
        check_order(wide)?;
        check_order(options)?;
        check_order(few)?;
        check_order(widest)?;
    }

    #[test]
    fn strings_by_a_comparison_and_by_their_lengths(mut words in vec(".{0,6}", 0..300)) {
        let mut want = words.clone();
        want.sort();
        Engine::cpu().sort_by(&mut words, Ord::cmp).unwrap();
        prop_assert_eq!(&words, &want);
        want.sort_by_key(|word| word.len());
        Engine::cpu().sort_by_key(&mut words, String::len).unwrap();
        prop_assert_eq!(words, want);
    }
}

#[test]
fn borrowed_values_are_values() {
    let text = String::from("pear fig apple kiwi fig");
    let words: Vec<&str> = text.split(' ').collect();
    let mut lengths: Vec<usize> = words.iter().map(|word| word.len()).collect();
    let mut sorted = words.clone();
    let engine = Engine::auto();
    engine.sort_with(SortOrder::Ascending, (&mut lengths, &mut sorted)).unwrap();
    assert_eq!((&lengths[..], &sorted[..]), (&[3, 3, 4, 4, 5][..], &["fig", "fig", "pear", "kiwi", "apple"][..]));
    let (mut keys, mut merged) = ([0; 7], [""; 7]);
    let others = [String::from("x"), String::from("yyyy")];
    let others: Vec<&str> = others.iter().map(|word| &word[..]).collect();
    engine.merge((&lengths, &sorted), (&[1, 4], &others), (&mut keys, &mut merged)).unwrap();
    assert_eq!(merged, ["x", "fig", "fig", "pear", "kiwi", "yyyy", "apple"]);
    merged.fill("");
    engine.merge_many(&[(&lengths[..], &sorted), (&[1, 4], &others)], (&mut keys, &mut merged)).unwrap();
    assert_eq!((keys, merged), ([1, 3, 3, 4, 4, 4, 5], ["x", "fig", "fig", "pear", "kiwi", "yyyy", "apple"]));
    // Slices and references are elements, too.
    let mut slices: Vec<&[char]> = vec![&['a', 'b'], &[], &['c']];
    engine.sort_with(SortOrder::Descending, (&mut [1.5, -1.5, 0.0], &mut slices)).unwrap();
    assert_eq!(slices, [&['a', 'b'][..], &['c'], &[]]);
    let mut references: Vec<&String> = vec![&text; 3];
    engine.sort_segments(SortOrder::Ascending, (&mut [3, 1, 2], &mut references), &[0, 2, 3]).unwrap();
    assert!(references.iter().all(|reference| std::ptr::eq(*reference, &text)));
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let engine = Engine::cpu();
    let error = engine.argsort_by_key(&["a"], &mut [0u64; 0], |word| word.len()).unwrap_err();
    assert_eq!(error, Error::LengthMismatch { what: "indices", expected: 1, found: 0, rule: "|items|" });
    let error = engine.sort_owned(SortOrder::Ascending, (&mut [1], &mut Vec::<String>::new())).unwrap_err();
    assert_eq!(error, Error::ValuesMismatch { what: "the input", keys: 1, values: 0 });
}

#[test]
fn a_panic_passes_through_the_engine_and_leaves_all_elements() {
    for threads in [1, 2] {
        let engine = Engine::cpu_with_threads(threads).unwrap();
        let seed = seed();
        let keys = keys::<u32>("any bits", 200_000, &mut rng(seed));
        let mut items = elements(&keys);
        let worst = *keys.iter().max().unwrap();
        let check = |key: u32| assert!(key != worst, "the worst");
        for by_key in [true, false] {
            let sort = || match by_key {
                true => engine.sort_by_key(&mut items, |element| {
                    check(element.key);
                    element.key
                }),
                false => engine.sort_by(&mut items, |a, b| -> Ordering {
                    check(a.key);
                    a.key.cmp(&b.key)
                }),
            };
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(sort)).is_err(), "seed {seed}");
            let mut indices: Vec<usize> = items.iter().map(|element| element.index).collect();
            indices.sort();
            assert!(indices.into_iter().eq(0..keys.len()), "seed {seed}");
            assert!(items.iter().all(|element| element.text == element.index.to_string()));
        }
        engine.sort_by_key(&mut items, |element| element.key).unwrap();
        assert!(items.is_sorted_by_key(|element| element.key));
    }
}
