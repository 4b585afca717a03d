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
