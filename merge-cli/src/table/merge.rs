//! The merge of sorted runs of rows, in memory, in temporary files or in tables that are read.
//!
//! A merge holds the next rows of each run, its window. In each round it takes the rows that no later row can precede:
//!
//! ```text
//!   run 0   1 3 3 │ 4 9        all rows up to the least of the last keys, 4: the rows of the run that ends with it,
//!   run 1   2 │ 5 6 7          and of the runs before it, those equal to it, too
//!   run 2   1 2 │ 4 8
//! ```
//!
//! The rows of some rounds are sorted together, like any rows in memory. That takes less time than a tree of
//! comparisons, because the keys are in the cache, and equal prefixes are compared once.

use super::{Chunk, Limits, Rows};
use crate::run::engine::cpu;
use crate::say::error::Result;
use merge_host::{Timing, parallel};
use std::collections::VecDeque;

/// The most rows that are sorted together: about a row group.
const MOST_ROWS: u64 = 1 << 20;

/// A round has few rows if it has less than this part of those in the windows.
const FEW: usize = 8;

/// A sorted run of rows.
pub trait Run: Send {
    /// The size of the run, in a unit that all runs share: the windows have this proportion, so that all of them reach
    /// about as far in the order.
    fn size(&self) -> u64;

    /// The next rows in order: at least one, and up to `rows` if their number can be chosen. None at the end.
    fn next(&mut self, rows: usize) -> Result<Option<Rows>>;
}

/// How runs are merged.
#[derive(Clone, Copy, Debug)]
pub struct Merging {
    pub limits: Limits,
    /// Bytes of memory for the windows, and for the rows of some rounds and their sort.
    pub memory: u64,
    /// Bytes of memory of a row.
    pub row: u64,
    /// Whether several threads may read runs at the same time.
    pub in_parallel: bool,
}

/// Rows in order: those of `order` in the chunk.
pub type Emit<'a> = &'a mut dyn FnMut(&Chunk, &[u32]) -> Result<()>;

/// Merges runs, and passes their rows on. Rows with equal keys are in the order of the runs.
pub fn merge(runs: Vec<Box<dyn Run + '_>>, merging: Merging, emit: Emit) -> Result<Timing> {
    let Merging { limits, memory, row, in_parallel } = merging;
    let most = (memory / (row + Chunk::ROW)).clamp(1, MOST_ROWS) as usize;
    let total = runs.iter().map(|run| run.size()).sum::<u64>().max(1);
    let windows = runs.into_iter().map(|run| Window::new(run, most as u128, total)).collect();
    let mut windows = Windows { windows, most, in_parallel };
    let (engine, mut total) = (cpu(), Timing::default());
    let (mut before, mut left) = (None::<Vec<u8>>, limits.most);
    while left > 0 {
        let mut chunk = Chunk::default();
        while chunk.rows() < most && windows.take(&mut chunk)? {}
        if chunk.rows() == 0 {
            break;
        }
        let (order, timing) = chunk.sorted(&engine, Limits { most: left, ..limits }, before.as_deref())?;
        total.compute += timing.compute;
        left -= order.len() as u64;
        if let Some(&last) = order.last() {
            before = limits.unique.then(|| chunk.key(last).to_vec());
            emit(&chunk, &order)?;
        }
    }
    Ok(total)
}

/// The windows of all runs that have rows.
struct Windows<'a> {
    windows: Vec<Window<'a>>,
    /// The number of rows in all windows at the beginning.
    most: usize,
    in_parallel: bool,
}

/// The next rows of a run.
struct Window<'a> {
    run: Box<dyn Run + 'a>,
    rows: VecDeque<Rows>,
    /// The number of rows.
    len: usize,
    /// The least number of rows before a round.
    least: usize,
    /// Whether these are the last rows of the run.
    is_complete: bool,
}

impl Windows<'_> {
    /// Takes the rows of a round to `chunk`. Returns whether there were any.
    fn take(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let mut short = self.windows.iter_mut().filter(|window| !window.is_complete && window.len < window.least);
        match self.in_parallel {
            true => parallel::try_for_each(short, Window::fill)?,
            false => short.try_for_each(Window::fill)?,
        }
        self.windows.retain(|window| window.len > 0);
        let incomplete = self.windows.iter().enumerate().filter(|(_, window)| !window.is_complete);
        let bound = incomplete.min_by_key(|(_, window)| window.last());
        let bound: Option<(usize, Box<[u8]>)> = bound.map(|(i, window)| (i, window.last().into()));
        let before = chunk.rows();
        for (i, window) in self.windows.iter_mut().enumerate() {
            match &bound {
                None => window.take(|_| true, chunk),
                Some((least, bound)) if i <= *least => window.take(|key| key <= &**bound, chunk),
                Some((_, bound)) => window.take(|key| key < &**bound, chunk),
            }
        }
        // Where one run has the next rows alone, its window grows. The windows together may take twice their memory.
        let sum = self.windows.iter().map(|window| window.least).sum::<usize>();
        if let Some((i, _)) = bound
            && chunk.rows() - before < self.most / FEW
            && sum + self.windows[i].least <= 2 * self.most
        {
            self.windows[i].least *= 2;
        }
        Ok(!self.windows.is_empty())
    }
}

impl<'a> Window<'a> {
    /// The share of `run` in `rows` rows, where all runs have the size `total`.
    fn new(run: Box<dyn Run + 'a>, rows: u128, total: u64) -> Self {
        let least = (rows * u128::from(run.size()) / u128::from(total)).max(1) as usize;
        Self { run, rows: VecDeque::new(), len: 0, least, is_complete: false }
    }

    /// Reads rows until there are enough, or no more.
    fn fill(&mut self) -> Result<()> {
        while self.len < self.least && !self.is_complete {
            match self.run.next(self.least)? {
                Some(rows) => {
                    self.len += rows.len();
                    self.rows.push_back(rows);
                }
                None => self.is_complete = true,
            }
        }
        Ok(())
    }

    /// The key of the last row.
    fn last(&self) -> &[u8] {
        self.rows.back().map_or(&[], Rows::last)
    }

    /// Takes the rows before the first one that fails `is_before`.
    fn take(&mut self, is_before: impl Fn(&[u8]) -> bool, chunk: &mut Chunk) {
        while let Some(rows) = self.rows.front_mut() {
            let (len, count) = (rows.len(), rows.partition_point(&is_before));
            self.len -= count;
            if count == len {
                self.rows.pop_front().into_iter().for_each(|rows| chunk.push(rows));
                continue;
            }
            if count > 0 {
                chunk.push(rows.slice(0, count));
                *rows = rows.slice(count, len - count);
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::UInt32Type;
    use arrow_array::{BinaryArray, PrimitiveArray, RecordBatch, cast::AsArray};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use std::sync::Arc;

    /// A run of rows that are read a few at a time.
    struct Parts(Rows, usize, StdRng);

    impl Run for Parts {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }

        fn next(&mut self, _rows: usize) -> Result<Option<Rows>> {
            let left = self.0.len() - self.1;
            let count = if left > 0 { self.2.random_range(1..=left.min(7)) } else { return Ok(None) };
            self.1 += count;
            Ok(Some(self.0.slice(self.1 - count, count)))
        }
    }

    /// Rows with these keys, which are numbered from `begin` on.
    fn rows(keys: &[Vec<u8>], begin: u32) -> Rows {
        let numbers: PrimitiveArray<UInt32Type> = (begin..begin + keys.len() as u32).collect::<Vec<_>>().into();
        let batch = RecordBatch::try_from_iter([("number", Arc::new(numbers) as _)]).unwrap();
        Rows::new(batch, BinaryArray::from_iter_values(keys))
    }

    /// The keys and the numbers of the rows of a merge of runs with these keys.
    fn merged(runs: &[Vec<Vec<u8>>], merging: Merging, random: &mut StdRng) -> Vec<(Vec<u8>, u32)> {
        let (mut begin, mut sources, mut found) = (0, Vec::new(), Vec::new());
        for keys in runs {
            let random = StdRng::seed_from_u64(random.random());
            sources.push(Box::new(Parts(rows(keys, begin), 0, random)) as Box<dyn Run>);
            begin += keys.len() as u32;
        }
        let emit = &mut |chunk: &Chunk, order: &[u32]| {
            let rows = chunk.gather(order, 5, |rows| rows).unwrap();
            for rows in rows {
                let numbers = rows.batch.column(0).as_primitive::<UInt32Type>();
                found.extend((0..rows.len()).map(|row| (rows.keys.value(row).to_vec(), numbers.value(row))));
            }
            Ok(())
        };
        merge(sources, merging, emit).unwrap();
        found
    }

    #[test]
    fn runs_of_any_sizes_are_merged_as_by_a_stable_sort() {
        let seed = rand::random();
        println!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        for case in 0..300 {
            let distinct = [1, 3, 1000][case % 3];
            let is_disjoint = case % 5 == 0;
            let count = random.random_range(0..12);
            let runs: Vec<Vec<Vec<u8>>> = (0..count)
                .map(|run| {
                    let length = [0, 1, 40, 700][random.random_range(0..4)];
                    let key =
                        |random: &mut StdRng| random.random_range(0..distinct) + u32::from(is_disjoint) * run * 1000;
                    let mut keys: Vec<Vec<u8>> =
                        (0..length).map(|_| key(&mut random).to_be_bytes()[1..].to_vec()).collect();
                    keys.sort();
                    keys
                })
                .collect();
            let unique = random.random_range(0..3) == 0;
            let most = if random.random_range(0..3) == 0 { random.random_range(0..500) } else { u64::MAX };
            let limits = Limits { unique, most };
            let memory = [0, 1000, 30_000, 1 << 30][random.random_range(0..4)];
            let merging = Merging { limits, memory, row: 9, in_parallel: case % 2 == 0 };
            let keys = runs.iter().flatten().cloned();
            let mut expected: Vec<(Vec<u8>, u32)> = keys.zip(0..).collect();
            expected.sort_by(|a, b| a.0.cmp(&b.0));
            if unique {
                expected.dedup_by(|a, b| a.0 == b.0);
            }
            expected.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            assert!(merged(&runs, merging, &mut random) == expected, "case {case}, {merging:?}");
        }
    }
}
