//! Exact splits of the runs of all ranks.

use crate::agree::agree;
use crate::exchange::{Exchange, Reduction};
use crate::run::Run;
use merge_cli::shared::{Failure, Result, Word};
use merge_host::splits::{Search, SortedRuns, exact_splits};
use std::convert::Infallible;
use std::ops::Range;

/// Bits of a key that a round of the search finds. More bits mean fewer rounds, with more and longer messages.
/// docs/cluster.md has a table.
const BITS: u32 = 3;

/// The run of this rank, as a part of the runs of all ranks.
struct Distributed<'a, W, X> {
    run: &'a mut Run<W>,
    exchange: &'a X,
    /// The first failure of a search. Other ranks wait in the next sum, so the failure is reported after the last sum.
    failure: Option<Failure>,
}

/// The number of keys of this rank's run before each of the global `ranks`. All ranks pass the same `ranks`.
///
/// # Errors
/// If a run cannot be read.
pub fn splits<W: Word, X: Exchange>(exchange: &X, run: &mut Run<W>, ranks: &[u64]) -> Result<Vec<usize>> {
    let mut runs = Distributed { run, exchange, failure: None };
    let found = exact_splits(&mut runs, ranks, BITS).unwrap_or_else(|never| match never {});
    let failure = runs.failure;
    agree(exchange, failure.map_or(Ok(found), Err))
}

impl<W: Word, X> Distributed<'_, W, X> {
    /// The value of `result`. A failure is noted and replaced by `otherwise`.
    fn noted<T>(&mut self, result: Result<T>, otherwise: T) -> T {
        result.unwrap_or_else(|failure| {
            self.failure.get_or_insert(failure);
            otherwise
        })
    }
}

impl<W: Word, X: Exchange> SortedRuns for Distributed<'_, W, X> {
    type Word = W;
    type Error = Infallible;

    fn lengths(&self) -> impl ExactSizeIterator<Item = usize> {
        std::iter::once(self.run.len())
    }

    fn search(&mut self, searches: &mut [Search<W>]) -> std::result::Result<(), Infallible> {
        for search in searches {
            let found = self.run.search(search.window.clone(), search.key);
            search.window.start = self.noted(found, search.window.start);
        }
        Ok(())
    }

    fn bounds(&mut self, windows: &[Range<usize>]) -> std::result::Result<Option<(W, W)>, Infallible> {
        let mut own: Option<(W, W)> = None;
        let mut last = None;
        for window in windows.iter().filter(|window| !window.is_empty()) {
            // Usually, all windows are the whole run.
            if last.replace(window) == Some(window) {
                continue;
            }
            let ends = self.run.key(window.start).and_then(|least| Ok((least, self.run.key(window.end - 1)?)));
            let (least, greatest) = self.noted(ends, (W::ZERO, !W::ZERO));
            own = Some(own.map_or((least, greatest), |(all, more)| (all.min(least), more.max(greatest))));
        }
        Ok(bounds_of_all(self.exchange, own))
    }

    fn sum(&mut self, numbers: &mut [u64]) -> std::result::Result<(), Infallible> {
        self.exchange.all_reduce(Reduction::Sum, numbers);
        Ok(())
    }

    fn sum_of_earlier(&mut self, numbers: &mut [u64]) -> std::result::Result<(), Infallible> {
        self.exchange.sum_of_earlier(numbers);
        Ok(())
    }
}

/// The least and the greatest bound of all ranks.
fn bounds_of_all<W: Word>(exchange: &impl Exchange, own: Option<(W, W)>) -> Option<(W, W)> {
    // The complement of the greatest number is the least complement.
    let (least, complement) = own.map_or((u128::MAX, u128::MAX), |(least, most)| (least.widen(), (!most).widen()));
    let halves = |number: u128| ((number >> 64) as u64, number as u64);
    let own_halves = [halves(least), halves(complement)];
    let mut high = [own_halves[0].0, own_halves[1].0, u64::from(own.is_none())];
    exchange.all_reduce(Reduction::Min, &mut high);
    // The lower halves count only where the upper halves are the least.
    let mut low = [0, 1].map(|i| if own_halves[i].0 == high[i] { own_halves[i].1 } else { u64::MAX });
    exchange.all_reduce(Reduction::Min, &mut low);
    let whole = |i: usize| W::truncate(u128::from(high[i]) << 64 | u128::from(low[i]));
    (high[2] == 0).then(|| (whole(0), !whole(1)))
}
