//! The exact split of many runs: how many keys of each run belong to the first `rank` keys of the merge of all.
//!
//! The key with that rank is found bit by bit, beginning with the first bit in which keys differ. Before each bit there is
//! a window of every run that contains the split, and the number of keys below the bit narrows it from one end or the
//! other:
//!
//! ```text
//!   run 0   ├────┊──░░░░░┊──────┤     ░ window: keys that begin with the bits found so far
//!   run 1   ├────────┊░░░░░░░┊──┤
//!   run 2   ├──┊░┊──────────────┤
//! ```
//!
//! Keys that are equal to it are taken in the order of the runs, which makes the merge stable.

use super::run::Run;
use crate::Key;
use crate::key::sealed::Bits;
use bytemuck::Zeroable;

/// A split of some runs, with the scratch memory to find it.
#[derive(Clone)]
pub(super) struct MultiwaySplit {
    /// The number of keys of each run before the split.
    pub taken: Vec<usize>,
    /// The end of each run's window.
    high: Vec<usize>,
    /// The number of keys of each run that are less than the key under test.
    tried: Vec<usize>,
}

impl MultiwaySplit {
    /// The split before all keys of `runs` runs.
    pub fn at_begin(runs: usize) -> Self {
        MultiwaySplit { taken: vec![0; runs], high: vec![0; runs], tried: vec![0; runs] }
    }

    /// Advances to the split with `rank` keys of the merge of `runs` before it. `rank` is not less than now, and at most the
    /// number of all keys.
    ///
    /// Takes O(k (b + log n)) time for k runs, keys of b bits and n keys to advance by. The elements of `taken` always add
    /// up to `rank`; if a run is not ascending, they are otherwise unspecified.
    pub fn move_to<K: Key, V>(&mut self, runs: &[Run<K, V>], rank: usize) {
        // No run contributes more keys than the split advances by.
        let most = rank - self.taken.iter().sum::<usize>();
        for ((high, low), run) in self.high.iter_mut().zip(&self.taken).zip(runs) {
            *high = run.keys.len().min(low.saturating_add(most));
        }
        if most == 0 || self.narrow(runs, rank) == rank {
            return;
        }
        let mut missing = rank - self.taken.iter().sum::<usize>();
        for (taken, high) in self.taken.iter_mut().zip(&self.high) {
            let equal = missing.min(high - *taken);
            *taken += equal;
            missing -= equal;
        }
    }

    /// Narrows the windows to the keys that are equal to the one with rank `rank`, unless it finds the split earlier.
    /// Returns the number of keys before the windows, which is at most `rank`.
    fn narrow<K: Key, V>(&mut self, runs: &[Run<K, V>], rank: usize) -> usize {
        let mut before = self.taken.iter().sum();
        let Some((least, greatest)) = self.bounds(runs) else { return before };
        let differing = K::Bits::COUNT - (least ^ greatest).leading_zeros();
        let mut found = if differing == K::Bits::COUNT { K::Bits::zeroed() } else { least >> differing << differing };
        for bit in (0..differing).rev() {
            let key = found | K::Bits::from_low(1) << bit;
            let mut sum = 0;
            for (i, run) in runs.iter().enumerate() {
                let window = &run.keys[self.taken[i]..self.high[i]];
                self.tried[i] = self.taken[i] + window.partition_point(|other| other.to_ordered() < key);
                sum += self.tried[i];
            }
            if sum > rank {
                std::mem::swap(&mut self.high, &mut self.tried);
                continue;
            }
            std::mem::swap(&mut self.taken, &mut self.tried);
            (found, before) = (key, sum);
            if sum == rank {
                break;
            }
        }
        before
    }

    /// The least and the greatest key of all windows, as ordered bits.
    fn bounds<K: Key, V>(&self, runs: &[Run<K, V>]) -> Option<(K::Bits, K::Bits)> {
        let windows =
            runs.iter().zip(self.taken.iter().zip(&self.high)).map(|(run, (&low, &high))| &run.keys[low..high]);
        let ends = windows.filter_map(|keys| Some((keys.first()?.to_ordered(), keys.last()?.to_ordered())));
        ends.reduce(|all, here| (all.0.min(here.0), all.1.max(here.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Splits at every `step`-th rank in turn, as adjacent blocks do, and from the beginning, and calls `check` with each.
    fn split_everywhere<K: Key>(runs: &[Vec<K>], step: usize, mut check: impl FnMut(usize, &[usize])) {
        let parts: Vec<_> = runs.iter().map(|run| Run::of_keys(run)).collect();
        let total = runs.iter().map(Vec::len).sum();
        let mut split = MultiwaySplit::at_begin(runs.len());
        for rank in (0..total).step_by(step).chain([total]) {
            split.move_to(&parts, rank);
            assert_eq!(split.taken.iter().sum::<usize>(), rank);
            check(rank, &split.taken);
            let mut from_the_start = MultiwaySplit::at_begin(runs.len());
            from_the_start.move_to(&parts, rank);
            check(rank, &from_the_start.taken);
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
            let parts: Vec<_> = runs.iter().map(|run| Run::of_keys(run)).collect();
            let total = runs.iter().map(Vec::len).sum();
            let mut split = MultiwaySplit::at_begin(runs.len());
            for rank in (0..total).step_by(step).chain([total]) {
                split.move_to(&parts, rank);
                prop_assert_eq!(split.taken.iter().sum::<usize>(), rank);
                prop_assert!(split.taken.iter().zip(&last).all(|(now, before)| now >= before));
                prop_assert!(split.taken.iter().zip(&runs).all(|(now, run)| *now <= run.len()));
                last = split.taken.clone();
            }
        }
    }
}
