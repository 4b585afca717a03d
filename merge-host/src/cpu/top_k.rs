//! The first keys of the order, without sorting the others.
//!
//! A threshold, the last of k items that were seen, keeps most items out. Those that pass are candidates, and when
//! there are many the k first of them are selected, which lowers the threshold:
//!
//! ```text
//!   items ──► those before the threshold ──► candidates (2 k or more) ──select──► k candidates, a lower threshold
//! ```

use super::memory::{collected, out_of_memory};
use crate::parallel::try_map_on;
use crate::{Error, allocation};
use std::ops::Range;

/// Items that a thread compares with the threshold at once.
const BLOCK: usize = 1 << 16;
/// Blocks of each thread for which one threshold is used.
const BLOCKS_PER_THREAD: usize = 4;
/// Candidates to collect at least before selecting among them.
const FEWEST_CANDIDATES: usize = 1 << 14;

/// The `k` least of the items that have been added, and some others.
#[derive(Clone, Debug)]
pub(crate) struct Selection<T> {
    k: usize,
    candidates: Vec<T>,
    /// The last of `k` candidates, once there are more. Only items before it can be among the first.
    threshold: Option<T>,
}

impl<T: Ord + Copy + Send + Sync> Selection<T> {
    pub fn new(k: usize) -> Self {
        Self { k, candidates: Vec::new(), threshold: None }
    }

    /// Bytes that the candidates take at most: their vector doubles when it grows.
    pub fn max_bytes(k: usize) -> usize {
        k.saturating_mul(2).max(FEWEST_CANDIDATES).saturating_add(BLOCK).saturating_mul(2 * size_of::<T>())
    }

    /// The number of items that are selected.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Adds `n` items, those at the indices of any range as `items` gives them.
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
                    Some(last) => collected(items.filter(|item| *item < last))?,
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
                if candidates >= k.saturating_mul(2).max(FEWEST_CANDIDATES) {
                    self.threshold = select(&mut self.candidates, k).or(self.threshold);
                }
            }
        }
        Ok(())
    }

    /// The `k` least items, or all if they are fewer, in any order.
    pub fn into_items(mut self) -> Vec<T> {
        select(&mut self.candidates, self.k);
        self.candidates
    }
}

/// Leaves the `k` least of `items`, in any order. Gives the greatest of these if there are more, and any.
fn select<T: Ord + Copy>(items: &mut Vec<T>, k: usize) -> Option<T> {
    if items.len() <= k {
        return None;
    }
    let last = k.checked_sub(1).map(|last| *items.select_nth_unstable(last).1);
    items.truncate(k);
    last
}
