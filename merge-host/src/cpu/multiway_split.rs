//! Exact splits of many runs at the bounds of the blocks of a merge's output. Each split is found from the one before.

use super::memory;
use super::run::Run;
use crate::splits::{InMemory, SortedRuns, Splits};
use crate::{Error, Key};

/// A split of several runs, with scratch memory for the search of the next split.
pub(super) struct MultiwaySplit<K: Key>(Splits<K::Bits>);

impl<K: Key> MultiwaySplit<K> {
    /// The split before all keys of `runs` runs.
    pub fn at_begin(runs: usize) -> Result<Self, Error> {
        Ok(Self(Splits::reserved(runs)?))
    }

    /// The number of keys of each run before the split.
    pub fn taken(&self) -> &[usize] {
        &self.0.low
    }

    /// Advances to the split with `rank` keys of the merge of `runs` before it. `rank` is at least the rank of the
    /// current split, and at most the number of all keys.
    ///
    /// Takes O(k (b + log n)) time for k runs, keys of b bits and n keys to advance by. The elements of `taken` always
    /// add up to `rank`. If a run is not ascending, they are otherwise unspecified.
    pub fn move_to(&mut self, runs: &mut InMemory<K>, rank: usize) {
        // No run contributes more keys than the split advances by.
        let most = rank - self.taken().iter().sum::<usize>();
        let left: usize = runs.lengths().zip(self.taken()).map(|(length, taken)| length - taken).sum();
        if most == left {
            // At the end of the last block nothing is left to search for.
            self.0.low.iter_mut().zip(runs.lengths()).for_each(|(taken, length)| *taken = length);
            return;
        }
        if most == 0 {
            return;
        }
        for ((high, &low), length) in self.0.high.iter_mut().zip(&self.0.low).zip(runs.lengths()) {
            *high = length.min(low.saturating_add(most));
        }
        self.0.narrow_all(runs, &[rank as u64], 1).unwrap_or_else(|never| match never {});
    }
}

impl<'a, K: Key> InMemory<'a, K> {
    /// The keys of `runs`.
    pub(super) fn of_runs<V>(runs: &[Run<'a, K, V>]) -> Result<Self, Error> {
        Ok(Self::from(memory::collected(runs.iter().map(|run| run.keys))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Calls `check` with the split at every `step`-th rank, found from the split before and found from the beginning.
    fn split_everywhere<K: Key>(runs: &[Vec<K>], step: usize, mut check: impl FnMut(usize, &[usize])) {
        let mut parts: InMemory<K> = runs.iter().map(|run| &run[..]).collect();
        let total = runs.iter().map(Vec::len).sum();
        let mut split = MultiwaySplit::at_begin(runs.len()).unwrap();
        for rank in (0..total).step_by(step).chain([total]) {
            split.move_to(&mut parts, rank);
            assert_eq!(split.taken().iter().sum::<usize>(), rank);
            check(rank, split.taken());
            let mut from_the_start = MultiwaySplit::at_begin(runs.len()).unwrap();
            from_the_start.move_to(&mut parts, rank);
            check(rank, from_the_start.taken());
        }
    }

    proptest! {
        #[test]
        fn a_split_takes_the_first_keys_of_a_stable_sort(
            mut runs in prop::collection::vec(prop::collection::vec(-9i64..9, 0..20), 1..12),
            step in 1usize..30,
            far in any::<bool>(),
        ) {
            for run in &mut runs {
                run.iter_mut().for_each(|key| *key = if far { key.wrapping_mul(0x1234_5678_9abc_def1) } else { *key });
                run.sort();
            }
            let mut all: Vec<(i64, usize)> =
                runs.iter().enumerate().flat_map(|(r, run)| run.iter().map(move |&key| (key, r))).collect();
            all.sort();
            split_everywhere(&runs, step, |rank, taken| {
                let want: Vec<usize> =
                    (0..runs.len()).map(|r| all[..rank].iter().filter(|&&(_, run)| run == r).count()).collect();
                assert_eq!(taken, want, "rank {rank}");
            });
        }

        #[test]
        fn splits_are_consistent_for_any_input(
            runs in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..20), 1..12),
            step in 1usize..30,
        ) {
            let mut last = vec![0; runs.len()];
            let mut parts: InMemory<u32> = runs.iter().map(|run| &run[..]).collect();
            let total = runs.iter().map(Vec::len).sum();
            let mut split = MultiwaySplit::at_begin(runs.len()).unwrap();
            for rank in (0..total).step_by(step).chain([total]) {
                split.move_to(&mut parts, rank);
                prop_assert_eq!(split.taken().iter().sum::<usize>(), rank);
                prop_assert!(split.taken().iter().zip(&last).all(|(now, before)| now >= before));
                prop_assert!(split.taken().iter().zip(&runs).all(|(now, run)| *now <= run.len()));
                last = split.taken().to_vec();
            }
        }
    }
}
