//! The sort of tables, in memory or in chunks.

use super::{PARTS, Working};
use crate::say::error::{Failure, Result};
use crate::say::stats::{Phase, Stats};
use crate::table::{Chunk, Reader, Rows, failure};
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use merge_host::{Engine, parallel};
use std::mem;
use std::path::Path;

/// Rows of a sorted run: few enough to be sorted in the cache of a thread, and enough for long parts in a merge.
const ROWS: usize = 1 << 16;
/// Runs for each thread that are sorted at once.
const RUNS: usize = 2;
/// The most bytes of a sorted run, as a part of the memory.
const RUN: u64 = 32;

/// Sorts the rows of all tables to runs.
pub fn sort(readers: Vec<Reader>, tables: &mut Working, stats: &mut Stats) -> Result<()> {
    let (memory, engine) = (tables.memory, Engine::cpu_with_threads(1)?);
    let mut sorting = Sorting { tables, engine, unsorted: Vec::new(), bytes: 0 };
    for mut reader in readers {
        loop {
            let batches = stats.time(Phase::Read, || reader.next(memory / PARTS))?;
            if batches.is_empty() {
                break;
            }
            sorting.add(reader.path(), batches, stats)?;
        }
    }
    sorting.sort(stats)
}

/// A sort of the rows of tables.
struct Sorting<'a, 'b> {
    tables: &'a mut Working<'b>,
    /// The engine of each thread.
    engine: Engine,
    /// Rows that come after all runs, and their bytes.
    unsorted: Vec<Rows>,
    bytes: u64,
}

impl Sorting<'_, '_> {
    /// Adds the next batches of the table at `path`.
    fn add(&mut self, path: &Path, batches: Vec<(RecordBatch, u64)>, stats: &mut Stats) -> Result<()> {
        let plain: Vec<_> = batches.iter().map(|(batch, _)| self.tables.dictionaries.plain(batch)).collect();
        let tables = &*self.tables;
        let keyed = |((batch, bytes), plain): ((RecordBatch, u64), std::result::Result<RecordBatch, ArrowError>)| {
            let rows = Rows::with_bytes(plain?, tables.key.of_batch(&batch)?, bytes);
            tables.sum.add_read(&rows);
            Ok(rows)
        };
        let rows = stats.time(Phase::Compute, || parallel::map(batches.into_iter().zip(plain), keyed));
        let rows = rows.into_iter().collect::<std::result::Result<Vec<_>, ArrowError>>();
        for rows in rows.map_err(|error| failure(path, &error))? {
            stats.keys += rows.len() as u64;
            stats.bytes = Some(stats.bytes.unwrap_or(0) + rows.bytes());
            self.bytes += rows.memory();
            self.unsorted.push(rows);
        }
        let rows = self.unsorted.iter().map(Rows::len).sum::<usize>();
        let is_enough = rows >= ROWS * RUNS * rayon::current_num_threads() || self.bytes >= self.tables.memory / PARTS;
        if is_enough { self.sort(stats) } else { Ok(()) }
    }

    /// Sorts all rows that are not sorted to runs.
    fn sort(&mut self, stats: &mut Stats) -> Result<()> {
        let most = self.tables.memory / RUN;
        let (mut groups, mut group, mut sizes) = (Vec::new(), Vec::new(), (0, 0));
        for rows in mem::take(&mut self.unsorted) {
            sizes = (sizes.0 + rows.len(), sizes.1 + rows.memory());
            group.push(rows);
            if sizes.0 >= ROWS || sizes.1 >= most {
                groups.push(mem::take(&mut group));
                sizes = (0, 0);
            }
        }
        groups.push(group);
        self.bytes = 0;
        // A large batch has many groups: its sorted copy would not fit beside it.
        let mut groups = groups.into_iter();
        while groups.len() > 0 {
            let some: Vec<_> = groups.by_ref().take(RUNS * rayon::current_num_threads()).collect();
            let sorted = stats.time(Phase::Compute, || parallel::map(some, |group| self.sorted(group)));
            let sorted = sorted.into_iter().collect::<Result<Vec<_>>>()?;
            stats.time(Phase::Write, || self.tables.runs.extend(sorted.into_iter().flatten().collect()))?;
        }
        Ok(())
    }

    /// The rows in order, if there are any.
    fn sorted(&self, rows: Vec<Rows>) -> Result<Option<Rows>> {
        let mut chunk = Chunk::default();
        let count = rows.len();
        rows.iter().for_each(|rows| chunk.push(rows.clone()));
        let (order, _) = chunk.sorted(&self.engine, self.tables.limits, None)?;
        if order.is_empty() {
            return Ok(None);
        }
        if count == 1 && order.iter().copied().eq(0..chunk.rows() as u32) {
            return Ok(rows.into_iter().next());
        }
        let sorted = chunk.gather(&order, order.len(), |rows| rows).map_err(|error| Failure::new(error.to_string()))?;
        Ok(sorted.into_iter().next())
    }
}
