//! Exact splits of sorted runs in any memory.
//!
//! A split at rank `r` is the number of keys of each run among the first `r` keys of the merge of all runs. For two
//! runs this is the co-rank. Here it is a co-rank over any number of runs, in one memory, on several GPUs or on several
//! machines. Parts of the output between two splits can be merged independently of each other.
//!
//! The search finds the key with this rank a few bits at a time, beginning with the first bit that differs between
//! keys. It needs only the bounds of a run, and the number of its keys below some probes. These numbers narrow a window
//! of every run that contains the split:
//!
//! ```text
//!   run 0   ├────┊──░░░░░┊──────┤     ░ window: keys that begin with the bits found so far
//!   run 1   ├────────┊░░░░░░░┊──┤
//!   run 2   ├──┊░┊──────────────┤
//! ```
//!
//! Keys equal to the found key are taken in the order of the runs, which makes the merge stable: ties are ordered by
//! (member, run, index).
//!
//! [`SortedRuns`] is the interface of a search to the runs. A *member* has some of the runs. In one memory there is one
//! member, and a rank of a cluster is a member, too. All members search for the same splits at the same time, and each
//! gets the splits of its own runs.

use crate::cpu::memory;
use crate::{Error, Key, Word};
use std::convert::Infallible;
use std::ops::Range;

/// A search in one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search<W> {
    /// The index of the run among the runs of this member.
    pub run: usize,
    /// The indices that bound the answer: keys before the window are less than `key`, and keys behind it are not.
    pub window: Range<usize>,
    /// The key to search for.
    pub key: W,
}

/// Ascending runs. This member has some or all of the runs.
///
/// The methods may fail if runs are on other members. If a method fails on one member, other members may wait for it.
/// The implementation decides how they end.
pub trait SortedRuns {
    /// The keys, as ordered bits.
    type Word: Word;
    /// The reason why a search fails; [`Infallible`] for runs in memory.
    type Error;

    /// The number of keys of each run that this member holds.
    fn lengths(&self) -> impl ExactSizeIterator<Item = usize>;

    /// Answers searches: replaces the start of each window by the number of keys of the run that are less than the key.
    /// The searches for one key in all runs are adjacent, in the order of the runs. If a run is not ascending, an
    /// answer may be outside its window. The caller corrects it.
    ///
    /// # Errors
    /// The errors of the implementation.
    fn search(&mut self, searches: &mut [Search<Self::Word>]) -> Result<(), Self::Error>;

    /// The least and the greatest key of all members in the given windows, or `None` if there is none. There is one
    /// window for each run of every split. Two other keys, such as 0 and the greatest word, are allowed if all keys are
    /// between them. All members get the same result.
    ///
    /// # Errors
    /// The errors of the implementation.
    #[allow(clippy::type_complexity, reason = "an alias would hide what the method returns")]
    fn bounds(&mut self, windows: &[Range<usize>]) -> Result<Option<(Self::Word, Self::Word)>, Self::Error>;

    /// Replaces each number by its sum over all members. Does nothing if this is the only member.
    ///
    /// # Errors
    /// The errors of the implementation.
    fn sum(&mut self, _numbers: &mut [u64]) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Replaces each number by its sum over earlier members: 0 if this is the only member.
    ///
    /// # Errors
    /// The errors of the implementation.
    fn sum_of_earlier(&mut self, numbers: &mut [u64]) -> Result<(), Self::Error> {
        numbers.fill(0);
        Ok(())
    }
}

/// The splits of this member's runs at the given ranks, found by `bits` bits in each round (1 to 16). The result has
/// one split after the other, each with a number for each run. A rank is at most the number of keys of all runs of all
/// members.
///
/// # Complexity
/// For keys of b bits, s ranks and k runs of n keys on this member, there are at most b / `bits` rounds. In a round the
/// member makes s·k·(2^`bits` − 1) searches of O(log n), and takes part in one sum of s·(2^`bits` − 1) numbers.
///
/// # Errors
/// The first error of `runs`.
///
/// # Panics
/// Panics if `bits` is not 1 to 16.
///
/// ```
/// use merge_host::splits::{exact_splits, InMemory};
///
/// let runs: [&[u32]; 2] = [&[1, 3, 3, 5], &[2, 3, 8]];
/// let splits = exact_splits(&mut InMemory::new(&runs), &[0, 3, 5, 7], 1).unwrap_or_else(|never| match never {});
/// // The first three keys are 1, 2 and the first 3 of run 0.
/// assert_eq!(splits, [0, 0, /**/ 2, 1, /**/ 3, 2, /**/ 4, 3]);
/// ```
pub fn exact_splits<R: SortedRuns>(runs: &mut R, ranks: &[u64], bits: u32) -> Result<Vec<usize>, R::Error> {
    let mut splits = Splits::at_begin(runs.lengths().len(), ranks.len());
    for (i, length) in (0..ranks.len()).flat_map(|_| runs.lengths()).enumerate() {
        splits.high[i] = length;
    }
    splits.narrow_all(runs, ranks, bits)?;
    Ok(splits.low)
}

/// [`exact_splits`] of runs that only this member has, at ranks that never decrease. The splits of a run never decrease
/// either, for any contents of the runs. If a run is not ascending, the splits may differ from the splits of a merge,
/// but the keys before each split still add up to its rank.
///
/// # Errors
/// The first error of `runs`.
#[cfg(any(test, feature = "gpu"))]
pub(crate) fn ordered_splits<R: SortedRuns>(runs: &mut R, ranks: &[u64], bits: u32) -> Result<Vec<usize>, R::Error> {
    let mut splits = exact_splits(runs, ranks, bits)?;
    let lengths: Vec<usize> = runs.lengths().collect();
    let count = lengths.len();
    if (count..splits.len()).any(|i| splits[i] < splits[i - count]) {
        // The fallback takes one run after the other.
        for (split, &rank) in splits.chunks_mut(count).zip(ranks) {
            let mut left = rank as usize;
            for (taken, &length) in split.iter_mut().zip(&lengths) {
                *taken = left.min(length);
                left -= *taken;
            }
        }
    }
    Ok(splits)
}

/// Splits of some runs, with scratch memory for the search.
#[derive(Debug)]
pub(crate) struct Splits<W> {
    /// For each split and each run, a lower bound on the number of keys before the split: the start of the window.
    pub low: Vec<usize>,
    /// For each split and each run, the end of the window that contains the split.
    pub high: Vec<usize>,
    runs: usize,
    windows: Vec<Range<usize>>,
    searches: Vec<Search<W>>,
    /// Sums over runs and members.
    counts: Vec<u64>,
    /// For each split, the bits of its key that are known, and the number of keys that are less than these bits.
    found: Vec<(W, u64)>,
}

impl<W: Word> Splits<W> {
    /// Splits before all keys of `runs` runs, with empty windows.
    pub fn at_begin(runs: usize, splits: usize) -> Self {
        let zeros = vec![0; runs * splits];
        Self { low: zeros.clone(), high: zeros, runs, windows: vec![], searches: vec![], counts: vec![], found: vec![] }
    }

    /// One split, with memory for a search bit by bit.
    pub fn reserved(runs: usize) -> Result<Self, Error> {
        Ok(Self {
            low: memory::filled(0, runs)?,
            high: memory::filled(0, runs)?,
            runs,
            windows: memory::reserved(runs)?,
            searches: memory::reserved(runs)?,
            counts: memory::reserved(1)?,
            found: memory::reserved(1)?,
        })
    }

    /// Moves the starts of all windows to the splits at `ranks`. The windows contain these splits.
    pub fn narrow_all<R: SortedRuns<Word = W>>(
        &mut self,
        runs: &mut R,
        ranks: &[u64],
        bits: u32,
    ) -> Result<(), R::Error> {
        assert!((1..=16).contains(&bits), "1 to 16 bits are found in a round");
        self.counts.clear();
        self.counts.resize(ranks.len(), 0);
        for (count, low) in self.counts.iter_mut().zip(self.low.chunks(self.runs.max(1))) {
            *count = low.iter().map(|&before| before as u64).sum();
        }
        runs.sum(&mut self.counts)?;
        self.windows.clear();
        self.windows.extend(self.low.iter().zip(&self.high).map(|(&low, &high)| low..high));
        let Some((least, greatest)) = runs.bounds(&self.windows)? else { return Ok(()) };
        let mut left = W::COUNT - (least ^ greatest).leading_zeros();
        let common = if left == W::COUNT { W::from_low(0) } else { least >> left << left };
        self.found.clear();
        self.found.extend(self.counts.iter().map(|&before| (common, before)));
        while left > 0 && self.found.iter().zip(ranks).any(|((_, before), rank)| before < rank) {
            let bits = bits.min(left);
            left -= bits;
            self.round(runs, ranks, left, (1 << bits) - 1)?;
        }
        self.take_equal(runs, ranks)
    }

    /// Finds the bits from `left` on of the key of every split. Their greatest value is `probes`.
    fn round<R: SortedRuns<Word = W>>(
        &mut self,
        runs: &mut R,
        ranks: &[u64],
        left: u32,
        probes: usize,
    ) -> Result<(), R::Error> {
        self.searches.clear();
        for ((&(key, _), low), high) in
            self.found.iter().zip(self.low.chunks(self.runs.max(1))).zip(self.high.chunks(self.runs.max(1)))
        {
            for probe in 1..=probes {
                let key = key | W::from_low(probe) << left;
                let windows = low.iter().zip(high).map(|(&low, &high)| low..high).enumerate();
                self.searches.extend(windows.map(|(run, window)| Search { run, window, key }));
            }
        }
        runs.search(&mut self.searches)?;
        self.counts.clear();
        self.counts.resize(self.found.len() * probes, 0);
        self.keep_in_windows(probes);
        for (count, found) in self.counts.iter_mut().zip(self.searches.chunks(self.runs.max(1))) {
            *count = found.iter().map(|search| search.window.start as u64).sum();
        }
        runs.sum(&mut self.counts)?;
        for (split, (key, before)) in self.found.iter_mut().enumerate() {
            // A probe is at or below the key with this rank if at most `rank` keys are less than the probe.
            let sums = &self.counts[split * probes..][..probes];
            let passed = sums.partition_point(|&sum| sum <= ranks[split]);
            if passed > 0 {
                *key = *key | W::from_low(passed) << left;
                *before = sums[passed - 1];
            }
            let found = |probe: usize| &self.searches[(split * probes + probe) * self.runs..][..self.runs];
            let range = split * self.runs..(split + 1) * self.runs;
            if passed < probes {
                let high = self.high[range.clone()].iter_mut().zip(found(passed));
                high.for_each(|(high, search)| *high = search.window.start);
            }
            if passed > 0 {
                let low = self.low[range].iter_mut().zip(found(passed - 1));
                low.for_each(|(low, search)| *low = search.window.start);
            }
        }
        Ok(())
    }

    /// Limits answers to their windows and to the order of the probes. This changes nothing if all runs are ascending.
    fn keep_in_windows(&mut self, probes: usize) {
        let runs = self.runs.max(1);
        let windows = self.low.chunks(runs).zip(self.high.chunks(runs));
        for (searches, (low, high)) in self.searches.chunks_mut(probes * runs).zip(windows) {
            for i in 0..searches.len() {
                let least = if i < runs { low[i] } else { searches[i - runs].window.start };
                let Search { run, window, .. } = &mut searches[i];
                window.start = window.start.clamp(least, high[*run]);
            }
        }
    }

    /// Takes the missing keys from the windows, in the order of members and runs. All keys in the windows of a split
    /// are equal.
    fn take_equal<R: SortedRuns<Word = W>>(&mut self, runs: &mut R, ranks: &[u64]) -> Result<(), R::Error> {
        // The number of this member's keys in the windows.
        self.counts.clear();
        for split in 0..ranks.len() {
            let here = split * self.runs..(split + 1) * self.runs;
            let equal = self.high[here.clone()].iter().zip(&self.low[here]).map(|(&high, &low)| (high - low) as u64);
            self.counts.push(equal.sum());
        }
        runs.sum_of_earlier(&mut self.counts)?;
        for (split, (_, before)) in self.found.iter().enumerate() {
            let mut missing = (ranks[split] - before).saturating_sub(self.counts[split]);
            let here = split * self.runs..(split + 1) * self.runs;
            for (low, &high) in self.low[here.clone()].iter_mut().zip(&self.high[here]) {
                let equal = missing.min((high - *low) as u64);
                *low += equal as usize;
                missing -= equal;
            }
        }
        Ok(())
    }
}

/// All runs, in this process's memory.
#[derive(Clone, Debug)]
pub struct InMemory<'a, K> {
    runs: Vec<&'a [K]>,
}

impl<'a, K: Key> InMemory<'a, K> {
    /// Runs that are ascending.
    pub fn new(runs: &[&'a [K]]) -> Self {
        Self { runs: runs.to_vec() }
    }
}

impl<'a, K> From<Vec<&'a [K]>> for InMemory<'a, K> {
    fn from(runs: Vec<&'a [K]>) -> Self {
        Self { runs }
    }
}

impl<'a, K: Key> FromIterator<&'a [K]> for InMemory<'a, K> {
    fn from_iter<I: IntoIterator<Item = &'a [K]>>(runs: I) -> Self {
        Self { runs: runs.into_iter().collect() }
    }
}

impl<K: Key> SortedRuns for InMemory<'_, K> {
    type Word = K::Bits;
    type Error = Infallible;

    fn lengths(&self) -> impl ExactSizeIterator<Item = usize> {
        self.runs.iter().map(|run| run.len())
    }

    fn search(&mut self, searches: &mut [Search<K::Bits>]) -> Result<(), Infallible> {
        for Search { run, window, key } in searches {
            let keys = &self.runs[*run][window.clone()];
            window.start += keys.partition_point(|other| other.to_ordered() < *key);
        }
        Ok(())
    }

    fn bounds(&mut self, windows: &[Range<usize>]) -> Result<Option<(K::Bits, K::Bits)>, Infallible> {
        let windows = self.runs.iter().cycle().zip(windows).map(|(run, window)| &run[window.clone()]);
        let ends = windows.filter_map(|keys| Some((keys.first()?.to_ordered(), keys.last()?.to_ordered())));
        Ok(ends.reduce(|all, here| (all.0.min(here.0), all.1.max(here.1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::{Barrier, Mutex};

    /// The numbers of all members, and a barrier.
    struct Meeting {
        numbers: Vec<Mutex<Vec<u64>>>,
        barrier: Barrier,
    }

    /// One of several members. Each member is a thread.
    struct Member<'a> {
        runs: InMemory<'a, u32>,
        index: usize,
        meeting: &'a Meeting,
    }

    impl Member<'_> {
        /// Replaces each number by its sum over the first `count` members.
        fn sum_of(&self, count: usize, numbers: &mut [u64]) {
            *self.meeting.numbers[self.index].lock().unwrap() = numbers.to_vec();
            self.meeting.barrier.wait();
            numbers.fill(0);
            for other in &self.meeting.numbers[..count] {
                numbers.iter_mut().zip(&*other.lock().unwrap()).for_each(|(sum, number)| *sum += number);
            }
            self.meeting.barrier.wait();
        }
    }

    impl SortedRuns for Member<'_> {
        type Word = u32;
        type Error = Infallible;

        fn lengths(&self) -> impl ExactSizeIterator<Item = usize> {
            self.runs.lengths()
        }

        fn search(&mut self, searches: &mut [Search<u32>]) -> Result<(), Infallible> {
            self.runs.search(searches)
        }

        fn bounds(&mut self, _: &[Range<usize>]) -> Result<Option<(u32, u32)>, Infallible> {
            Ok(Some((0, u32::MAX)))
        }

        fn sum(&mut self, numbers: &mut [u64]) -> Result<(), Infallible> {
            self.sum_of(self.meeting.numbers.len(), numbers);
            Ok(())
        }

        fn sum_of_earlier(&mut self, numbers: &mut [u64]) -> Result<(), Infallible> {
            self.sum_of(self.index, numbers);
            Ok(())
        }
    }

    /// Runs of all members, with keys of few values that are spread over all bits.
    fn members() -> impl Strategy<Value = Vec<Vec<Vec<u32>>>> {
        let key =
            (0..40u32, any::<bool>()).prop_map(|(key, far)| if far { key.wrapping_mul(0x9e37_79b9) } else { key });
        let run = prop::collection::vec(key, 0..12).prop_map(|mut run| {
            run.sort();
            run
        });
        prop::collection::vec(prop::collection::vec(run, 0..4), 1..5)
    }

    /// The number of keys of each run of each member among the first `rank` keys of a stable sort.
    fn expected(members: &[Vec<Vec<u32>>], rank: usize) -> Vec<Vec<usize>> {
        let mut all: Vec<(u32, usize, usize)> = vec![];
        for (m, runs) in members.iter().enumerate() {
            runs.iter().enumerate().for_each(|(r, run)| all.extend(run.iter().map(|&key| (key, m, r))));
        }
        all.sort();
        let taken = |m, r| all[..rank].iter().filter(|&&(_, member, run)| (member, run) == (m, r)).count();
        members.iter().enumerate().map(|(m, runs)| (0..runs.len()).map(|r| taken(m, r)).collect()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn members_find_the_splits_of_a_stable_sort(members in members(), bits in 1..17u32) {
            let total: usize = members.iter().flatten().map(Vec::len).sum();
            let ranks: Vec<u64> = (0..=total as u64).rev().step_by(2).chain([0]).collect();
            let numbers = members.iter().map(|_| Mutex::default()).collect();
            let meeting = Meeting { numbers, barrier: Barrier::new(members.len()) };
            let found: Vec<Vec<usize>> = std::thread::scope(|scope| {
                let threads: Vec<_> = members.iter().enumerate().map(|(index, runs)| {
                    let (meeting, ranks) = (&meeting, &ranks);
                    scope.spawn(move || {
                        let runs = runs.iter().map(Vec::as_slice).collect();
                        exact_splits(&mut Member { runs, index, meeting }, ranks, bits).unwrap()
                    })
                }).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            for (i, &rank) in ranks.iter().enumerate() {
                for (want, found) in expected(&members, rank as usize).iter().zip(&found) {
                    prop_assert_eq!(want, &found[i * want.len()..][..want.len()], "rank {}", rank);
                }
            }
        }

        #[test]
        fn splits_of_any_arrays_add_up(
            runs in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..20), 1..6),
            bits in 1..17u32,
        ) {
            let total: usize = runs.iter().map(Vec::len).sum();
            let ranks: Vec<u64> = (0..=total as u64).collect();
            let mut parts: InMemory<u64> = runs.iter().map(Vec::as_slice).collect();
            let splits = exact_splits(&mut parts, &ranks, bits).unwrap();
            for (split, &rank) in splits.chunks(runs.len()).zip(&ranks) {
                prop_assert_eq!(split.iter().sum::<usize>() as u64, rank);
                prop_assert!(split.iter().zip(&runs).all(|(&taken, run)| taken <= run.len()));
            }
            let ordered = ordered_splits(&mut parts, &ranks, bits).unwrap();
            for (split, &rank) in ordered.chunks(runs.len()).zip(&ranks) {
                prop_assert_eq!(split.iter().sum::<usize>() as u64, rank);
                prop_assert!(split.iter().zip(&runs).all(|(&taken, run)| taken <= run.len()));
            }
            prop_assert!((runs.len()..ordered.len()).all(|i| ordered[i - runs.len()] <= ordered[i]));
        }
    }

    #[test]
    fn keys_of_any_width_are_found() {
        fn check<K: Key>(a: &[K], b: &[K], rank: u64, want: [usize; 2]) {
            for bits in [1, 3, 8, 16] {
                assert_eq!(exact_splits(&mut InMemory::new(&[a, b]), &[rank], bits), Ok(want.to_vec()), "{bits}");
            }
        }
        check(&[1u8, 255], &[0u8, 255, 255], 4, [2, 2]);
        check(&[-1.5f32, 0.0], &[-0.0f32, f32::NAN], 2, [1, 1]);
        check(&[u128::MAX; 3], &[0, u128::MAX], 5, [3, 2]);
        check(&[7u64; 3], &[7; 4], 4, [3, 1]);
        check::<i64>(&[], &[], 0, [0, 0]);
    }
}
