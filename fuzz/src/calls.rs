//! Calls of the library with any keys, offsets and lengths, against the standard library. A wrong argument is an error,
//! and the keys stay as they are.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use merge_host::{Bound, Engine, Key, SetOperation, SortOrder};
use std::fmt::Debug;
use std::ops::Range;

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Call {
    Sort,
    Segments,
    MergeRagged,
    MergeManyRagged,
    Set(u8),
    TopK(u8),
    RunLengths,
    Bounds,
    TopKSegments(u8),
    SortByBits(u8, u8),
}

#[derive(Arbitrary, Debug)]
struct Input {
    call: Call,
    is_wide: bool,
    /// How many times the keys are repeated: vectors and threads have least numbers of keys.
    times: u8,
    keys: Vec<u16>,
    offsets: Vec<u16>,
    others: Vec<u16>,
}

fuzz_target!(|input: Input| {
    if input.is_wide { check(&input, i64::MIN, |key| i64::from(key as i16) << 40) } else { check(&input, 0, u32::from) }
});

/// A call's engine and arguments.
struct Check<K> {
    /// The least key of the type.
    least: K,
    engine: Engine,
    order: SortOrder,
    keys: Vec<K>,
    offsets: Vec<usize>,
    others: Vec<usize>,
}

fn check<K: Key + Ord + Debug + Into<i128>>(input: &Input, least: K, key_of: impl Fn(u16) -> K) {
    let numbers = |numbers: &[u16]| numbers.iter().map(|&i| usize::from(i)).collect();
    let keys: Vec<K> = input.keys.iter().map(|&key| key_of(key)).collect();
    let check = Check {
        least,
        engine: Engine::cpu_with_threads(1 + usize::from(input.times % 2)).unwrap(),
        order: if input.times.is_multiple_of(2) { SortOrder::Descending } else { SortOrder::Ascending },
        keys: keys.repeat(input.times.into()),
        offsets: numbers(&input.offsets),
        others: numbers(&input.others),
    };
    match input.call {
        Call::Sort => check.sort(),
        Call::Segments => check.segments(),
        Call::MergeRagged => check.merge_ragged(),
        Call::MergeManyRagged => check.merge_many_ragged(),
        Call::Set(operation) => check.set(
            [
                SetOperation::Union,
                SetOperation::Intersection,
                SetOperation::Difference,
                SetOperation::SymmetricDifference,
            ][usize::from(operation % 4)],
        ),
        Call::TopK(k) => check.top_k(k.into()),
        Call::RunLengths => check.run_lengths(),
        Call::Bounds => check.bounds(),
        Call::TopKSegments(k) => check.top_k_segments(k.into()),
        Call::SortByBits(begin, end) => check.sort_by_bits(begin.into()..end.into()),
    }
}

fn sorted<K: Key + Ord>(keys: &[K]) -> Vec<K> {
    let mut keys = keys.to_vec();
    keys.sort();
    keys
}

impl<K: Key + Ord + Debug + Into<i128>> Check<K> {
    fn in_order(&self, keys: &[K]) -> Vec<K> {
        let mut keys = sorted(keys);
        if self.order == SortOrder::Descending {
            keys.reverse();
        }
        keys
    }

    fn sort(&self) {
        let values: Vec<u32> = (0..self.keys.len() as u32).collect();
        let (mut found, mut moved) = (self.keys.clone(), values.clone());
        self.engine.sort_with(self.order, (&mut found, &mut moved)).unwrap();
        let mut expected: Vec<(K, u32)> = self.keys.iter().copied().zip(values).collect();
        let descends = self.order == SortOrder::Descending;
        expected.sort_by(|a, b| if descends { b.0.cmp(&a.0) } else { a.0.cmp(&b.0) });
        assert!(found.into_iter().zip(moved).eq(expected));
    }

    fn segments(&self) {
        let Self { keys, offsets, .. } = self;
        let mut found = keys.clone();
        let result = self.engine.sort_segments(self.order, &mut found, offsets);
        if !are_offsets(offsets, keys.len()) {
            assert!(result.is_err() || keys.is_empty());
            assert_eq!(&found, keys);
            return;
        }
        result.unwrap();
        let mut expected = keys.clone();
        for ends in offsets.windows(2) {
            expected[ends[0]..ends[1]].copy_from_slice(&self.in_order(&keys[ends[0]..ends[1]]));
        }
        assert_eq!(found, expected);
    }

    fn merge_ragged(&self) {
        let Self { keys, offsets, others, .. } = self;
        let (mut a, mut b) = (keys.clone(), keys[keys.len() / 2..].to_vec());
        let is_right = are_offsets(offsets, a.len()) && are_offsets(others, b.len()) && offsets.len() == others.len();
        let mut out = [a.clone(), b.clone()].concat();
        if is_right {
            offsets.windows(2).for_each(|ends| a[ends[0]..ends[1]].sort());
            others.windows(2).for_each(|ends| b[ends[0]..ends[1]].sort());
        }
        let result = self.engine.merge_ragged((&a, offsets), (&b, others), &mut out);
        if !is_right {
            assert!(result.is_err() || a.is_empty() && b.is_empty());
            return;
        }
        result.unwrap();
        let pairs = offsets.windows(2).zip(others.windows(2));
        let expected = pairs.flat_map(|(x, y)| sorted(&[&a[x[0]..x[1]], &b[y[0]..y[1]]].concat()));
        assert!(expected.eq(out));
    }

    fn merge_many_ragged(&self) {
        let Self { keys, offsets, others, .. } = self;
        let mut runs = keys.clone();
        let is_right = are_offsets(offsets, keys.len()) && are_offsets(others, offsets.len() - 1);
        if is_right {
            offsets.windows(2).for_each(|ends| runs[ends[0]..ends[1]].sort());
        }
        let mut out = keys.clone();
        let result = self.engine.merge_many_ragged(&runs, (offsets, others), &mut out);
        if !is_right {
            assert!(result.is_err() || keys.is_empty());
            return;
        }
        result.unwrap();
        let groups = others.windows(2).map(|ends| offsets[ends[0]]..offsets[ends[1]]);
        assert!(groups.flat_map(|group| sorted(&runs[group])).eq(out));
    }

    fn set(&self, operation: SetOperation) {
        let (a, b) = self.keys.split_at(self.offsets.first().map_or(0, |&at| at).min(self.keys.len()));
        let (a, b) = (sorted(a), sorted(b));
        let mut out = Vec::new();
        self.engine.set_operation(operation, &a, &b, &mut out).unwrap();
        let mut all = sorted(&self.keys);
        all.dedup();
        let expected = all.into_iter().flat_map(|key| {
            let [of_a, of_b] = [&a, &b].map(|keys| keys.iter().filter(|&other| *other == key).count());
            let count = match operation {
                SetOperation::Union => of_a.max(of_b),
                SetOperation::Intersection => of_a.min(of_b),
                SetOperation::Difference => of_a.saturating_sub(of_b),
                _ => of_a.abs_diff(of_b),
            };
            std::iter::repeat_n(key, count)
        });
        assert!(expected.eq(out));
    }

    fn top_k(&self, k: usize) {
        // More keys than the array has are an error.
        let Some(first) = self.keys.first() else { return };
        let mut out = vec![*first; k];
        let result = self.engine.top_k(self.order, &self.keys, &mut out);
        if k > self.keys.len() {
            assert!(result.is_err());
            return;
        }
        result.unwrap();
        assert_eq!(out, self.in_order(&self.keys)[..k]);
    }

    fn run_lengths(&self) {
        let keys = sorted(&self.keys);
        let (mut found, mut lengths) = (Vec::new(), Vec::new());
        self.engine.run_lengths(&keys, (&mut found, &mut lengths)).unwrap();
        let runs = keys.chunk_by(|a, b| a == b);
        assert!(runs.map(|run| (run[0], run.len() as u64)).eq(found.into_iter().zip(lengths)));
    }

    /// The first half of the keys are needles among the second half.
    fn bounds(&self) {
        let (needles, keys) = self.keys.split_at(self.keys.len() / 2);
        let (needles, keys) = (sorted(needles), sorted(keys));
        let find = |bound| {
            let mut found = vec![u32::MAX; needles.len()];
            self.engine.bounds(bound, &needles, &keys, &mut found).unwrap();
            found
        };
        let expected = |needle, is_before: fn(&K, &K) -> bool| keys.iter().filter(|key| is_before(key, needle)).count();
        assert!(needles.iter().map(|needle| expected(needle, K::lt) as u32).eq(find(Bound::Lower)));
        assert!(needles.iter().map(|needle| expected(needle, K::le) as u32).eq(find(Bound::Upper)));
    }

    fn top_k_segments(&self, k: usize) {
        let Self { keys, offsets, least, .. } = self;
        let mut found = vec![*least; k * offsets.len().saturating_sub(1)];
        let result = self.engine.top_k_segments(self.order, keys, offsets, k, &mut found);
        if !are_offsets(offsets, keys.len()) {
            assert!(result.is_err() || keys.is_empty());
            return;
        }
        result.unwrap();
        let expected = offsets.windows(2).flat_map(|ends| {
            let segment = self.in_order(&keys[ends[0]..ends[1]]);
            segment.into_iter().chain(std::iter::repeat(*least)).take(k)
        });
        assert!(expected.eq(found));
    }

    fn sort_by_bits(&self, bits: Range<u32>) {
        let mut found = self.keys.clone();
        let result = self.engine.sort_by_bits(self.order, bits.clone(), &mut found);
        if bits.start > bits.end || bits.end > 8 * size_of::<K>() as u32 {
            assert!(result.is_err());
            assert_eq!(found, self.keys);
            return;
        }
        result.unwrap();
        let digit = |key: &K| ((*key).into() - self.least.into()) >> bits.start & ((1 << bits.len()) - 1);
        let mut expected = self.keys.clone();
        expected.sort_by_key(|key| if self.order == SortOrder::Descending { -digit(key) } else { digit(key) });
        assert_eq!(found, expected);
    }
}

/// Whether these offsets begin with 0, never fall, and end with `length`.
fn are_offsets(offsets: &[usize], length: usize) -> bool {
    offsets.first() == Some(&0) && offsets.last() == Some(&length) && offsets.is_sorted()
}
