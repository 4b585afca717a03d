//! The exact cut of many runs: how many keys of each come before a place in the merge of all.
//!
//! The key at that place is found bit by bit, from the first that differs. Before each bit, a window of every run is left
//! in which the cut can be, and the count of keys below the bit makes it smaller from one side or the other:
//!
//! ```text
//!   run 0   ├────┊──░░░░░┊──────┤     ░ window: keys that begin with the bits found so far
//!   run 1   ├────────┊░░░░░░░┊──┤
//!   run 2   ├──┊░┊──────────────┤
//! ```
//!
//! Keys that are equal to it in the end are taken in the order of the runs, which makes the merge stable.

use super::run::Run;
use crate::Key;
use crate::key::sealed::Bits;
use bytemuck::Zeroable;

/// Where runs are cut, and room to find that out.
#[derive(Clone)]
pub(super) struct Cut {
    /// How many keys of each run come before the cut.
    pub taken: Vec<usize>,
    /// Where each window ends.
    high: Vec<usize>,
    /// Where each run is cut by the key that is tried.
    tried: Vec<usize>,
}

impl Cut {
    /// Before all keys of `runs` runs.
    pub fn at_begin(runs: usize) -> Self {
        Cut { taken: vec![0; runs], high: vec![0; runs], tried: vec![0; runs] }
    }

    /// Moves on to where `rank` keys of the merge of `runs` come before the cut. That is not less than now, and at most
    /// all there are.
    ///
    /// Takes O(k (b + log n)) for k runs, b bits of a key and n keys to move on by. The numbers of keys always add up to
    /// `rank`, even if runs are not ascending, in which case there is nothing else to say about them.
    pub fn move_to<K: Key, V>(&mut self, runs: &[Run<K, V>], rank: usize) {
        // No run gives more keys than there are to take.
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

    /// Makes the windows those of the keys that are equal to the one at `rank`, unless it finds the cut before. Gives the
    /// number of keys before the windows, which is at most `rank`.
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

    /// The least and the greatest key in all windows, as ordered bits.
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

    /// Cuts at each rank in turn, as neighbouring pieces do, and checks them by `check`.
    fn cut_everywhere<K: Key>(runs: &[Vec<K>], step: usize, mut check: impl FnMut(usize, &[usize])) {
        let parts: Vec<_> = runs.iter().map(|run| Run::of_keys(run)).collect();
        let total = runs.iter().map(Vec::len).sum();
        let mut cut = Cut::at_begin(runs.len());
        for rank in (0..total).step_by(step).chain([total]) {
            cut.move_to(&parts, rank);
            assert_eq!(cut.taken.iter().sum::<usize>(), rank);
            check(rank, &cut.taken);
            let mut anew = Cut::at_begin(runs.len());
            anew.move_to(&parts, rank);
            check(rank, &anew.taken);
        }
    }

    proptest! {
        #[test]
        fn a_cut_takes_what_a_stable_sort_puts_first(
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
            cut_everywhere(&runs, step, |rank, taken| {
                let want: Vec<usize> =
                    (0..runs.len()).map(|r| all[..rank].iter().filter(|&&(_, run)| run == r).count()).collect();
                assert_eq!(taken, want, "rank {rank}");
            });
        }

        #[test]
        fn cuts_hold_together_for_any_input(
            runs in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..20), 1..12),
            step in 1usize..30,
        ) {
            let mut last = vec![0; runs.len()];
            let parts: Vec<_> = runs.iter().map(|run| Run::of_keys(run)).collect();
            let total = runs.iter().map(Vec::len).sum();
            let mut cut = Cut::at_begin(runs.len());
            for rank in (0..total).step_by(step).chain([total]) {
                cut.move_to(&parts, rank);
                prop_assert_eq!(cut.taken.iter().sum::<usize>(), rank);
                prop_assert!(cut.taken.iter().zip(&last).all(|(now, before)| now >= before));
                prop_assert!(cut.taken.iter().zip(&runs).all(|(now, run)| *now <= run.len()));
                last = cut.taken.clone();
            }
        }
    }
}
