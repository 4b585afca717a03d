//! The first keys of the order, without sorting the others.
//!
//! A threshold keeps most items out: the last of the first k items that were seen. Items that pass are candidates. Once
//! there are many, the first k candidates are selected, which lowers the threshold:
//!
//! ```text
//!   items ──► items before the threshold ──► candidates (2 k or more) ──select──► k candidates, a lower threshold
//! ```

use super::memory::{collected, out_of_memory, push};
use crate::parallel::try_map_on;
use crate::{Error, allocation};
use std::ops::Range;

/// The number of items of a block that a thread compares with the threshold.
const BLOCK: usize = 1 << 16;
/// The number of blocks of each thread in a round, which has one threshold.
const BLOCKS_PER_THREAD: usize = 4;

/// The `k` least of the items that were added, and some others.
#[derive(Clone, Debug)]
pub(crate) struct Selection<T> {
    k: usize,
    candidates: Vec<T>,
    /// The last of the `k` selected candidates, after the first selection. Only lesser items can be among the first
    /// `k`.
    threshold: Option<T>,
}

impl<T: Ord + Copy + Send + Sync> Selection<T> {
    pub fn new(k: usize) -> Self {
        Self { k, candidates: Vec::new(), threshold: None }
    }

    /// The greatest number of bytes of the candidates. Their vector doubles its capacity when it grows.
    pub fn max_bytes(k: usize) -> usize {
        k.saturating_mul(2).saturating_add(BLOCK).saturating_mul(2 * size_of::<T>())
    }

    /// The number of items to select.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Adds `n` items. `items` returns the items with the indices of a range.
    pub fn add<I: Iterator<Item = T>>(
        &mut self,
        n: usize,
        items: impl Fn(Range<usize>) -> I + Sync,
        threads: usize,
    ) -> Result<(), Error> {
        if self.k == 0 {
            return Ok(());
        }
        let round = threads * BLOCKS_PER_THREAD * BLOCK;
        for begin in (0..n).step_by(round) {
            let end = n.min(begin + round);
            let (k, threshold) = (self.k, self.threshold);
            let blocks = try_map_on(threads, (begin..end).step_by(BLOCK), |begin| {
                let items = items(begin..end.min(begin + BLOCK));
                let mut passed = match threshold {
                    None => collected(items)?,
                    Some(last) => less_than(last, items)?,
                };
                select(&mut passed, k);
                Ok(passed)
            })?;
            for passed in blocks {
                let passed: Vec<T> = passed?;
                let candidates = self.candidates.len() + passed.len();
                let memory = allocation::handled(|| self.candidates.try_reserve(passed.len()));
                memory.map_err(|_| out_of_memory::<T>(candidates))?;
                self.candidates.extend(passed);
                if candidates >= k.saturating_mul(2) {
                    self.threshold = select(&mut self.candidates, k).or(self.threshold);
                }
            }
        }
        Ok(())
    }

    /// The `k` least items, in any order, or all items if there are fewer.
    pub fn into_items(mut self) -> Vec<T> {
        select(&mut self.candidates, self.k);
        self.candidates
    }
}

/// The items that are less than `last`.
fn less_than<T: Ord>(last: T, items: impl Iterator<Item = T>) -> Result<Vec<T>, Error> {
    let (mut passed, mut result) = (Vec::new(), Ok(()));
    // `for_each`, because the loop of `filter` calls closures by reference, which are not inlined without optimisation
    // across codegen units.
    items.for_each(|item| {
        if item < last && result.is_ok() {
            result = push(&mut passed, item);
        }
    });
    result.map(|()| passed)
}

/// Keeps the `k` least of `items`, in any order. Returns the greatest item kept if items were removed and any is left.
fn select<T: Ord + Copy>(items: &mut Vec<T>, k: usize) -> Option<T> {
    if items.len() <= k {
        return None;
    }
    let last = k.checked_sub(1).map(|last| *items.select_nth_unstable(last).1);
    items.truncate(k);
    last
}
