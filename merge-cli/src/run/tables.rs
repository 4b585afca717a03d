//! The sort of tables, in memory or in chunks, and the check of their order.

use super::finish;
use crate::file::Writer;
use crate::job::{CheckTable, SortTables};
use crate::os::{disk, memory, threads};
use crate::plan::Destination;
use crate::say::error::{Failure, Result};
use crate::say::stats::{Phase, Stats};
use crate::table::{Chunk, Dictionaries, Limits, Rows, Runs, TableKey, TableOutput, failure};
use arrow_array::{Array, BinaryArray, RecordBatch};
use arrow_schema::ArrowError;
use merge_host::{Engine, parallel};
use std::mem;
use std::path::Path;

/// The parts of the memory: batches that are read at once take one, and row groups that are written another. The
/// [`Runs`] divide the rest.
const PARTS: u64 = 8;
/// The most bytes to read at once for a check.
const MOST_CHECKED: u64 = 256 << 20;
/// Rows of a sorted run: few enough to be sorted in the cache of a thread, and enough for long parts in a merge.
const ROWS: usize = 1 << 16;
/// Runs for each thread that are sorted at once.
const RUNS: usize = 2;
/// The most bytes of a sorted run, as a part of the memory.
const RUN: u64 = 32;

/// Sorts tables.
pub fn sort(job: SortTables) -> Result<()> {
    let SortTables { readers, length, key, dictionaries, limits, output, resources, mut stats } = job;
    threads::start(resources.threads, threads::useful(length))?;
    output.output.check_space(0)?;
    let destination = Destination::of_keys(output.output.folder(), 0).or_up_to(None);
    let memory = memory::budget(resources.memory, destination.in_memory())?;
    // Batches of many sizes are freed while others are read.
    if std::env::var_os("RF").is_some() {
        memory::return_freed(memory);
    }
    if !resources.folders.is_empty() {
        disk::temporary_folders(&resources.folders)?;
    }
    let runs = Runs::new(resources.folders, &dictionaries, limits, memory, resources.fan_in);
    let engine = Engine::cpu_with_threads(1)?;
    let mut sorting = Sorting { key, dictionaries, limits, memory, engine, unsorted: Vec::new(), bytes: 0, runs };
    for mut reader in readers {
        loop {
            let batches = stats.time(Phase::Read, || reader.next(memory / PARTS))?;
            if batches.is_empty() {
                break;
            }
            sorting.add(reader.path(), batches, &mut stats)?;
        }
    }
    let writer = sorting.write(output, &mut stats)?;
    finish([writer], stats)
}

/// A sort of the rows of tables.
struct Sorting {
    key: TableKey,
    dictionaries: Dictionaries,
    limits: Limits,
    /// Bytes of memory.
    memory: u64,
    /// The engine of each thread.
    engine: Engine,
    /// Rows that come after all runs, and their bytes.
    unsorted: Vec<Rows>,
    bytes: u64,
    runs: Runs,
}

impl Sorting {
    /// Adds the next batches of the table at `path`.
    fn add(&mut self, path: &Path, batches: Vec<(RecordBatch, u64)>, stats: &mut Stats) -> Result<()> {
        let plain: Vec<_> = batches.iter().map(|(batch, _)| self.dictionaries.plain(batch)).collect();
        let keyed = |((batch, bytes), plain): ((RecordBatch, u64), _)| {
            let plain: std::result::Result<RecordBatch, ArrowError> = plain;
            Ok(Rows::with_bytes(plain?, self.key.of_batch(&batch)?, bytes))
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
        let is_enough = rows >= ROWS * RUNS * rayon::current_num_threads() || self.bytes >= self.memory / PARTS;
        if is_enough { self.sort(stats) } else { Ok(()) }
    }

    /// Sorts all rows that are not sorted to runs.
    fn sort(&mut self, stats: &mut Stats) -> Result<()> {
        let most = self.memory / RUN;
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
        let sorted = stats.time(Phase::Compute, || parallel::map(groups, |group| self.sorted(group)));
        let sorted = sorted.into_iter().collect::<Result<Vec<_>>>()?;
        stats.time(Phase::Write, || self.runs.extend(sorted.into_iter().flatten().collect()))
    }

    /// The rows in order, if there are any.
    fn sorted(&self, rows: Vec<Rows>) -> Result<Option<Rows>> {
        let mut chunk = Chunk::default();
        let count = rows.len();
        rows.iter().for_each(|rows| chunk.push(rows.clone()));
        let (order, _) = chunk.sorted(&self.engine, self.limits, None)?;
        if order.is_empty() {
            return Ok(None);
        }
        if count == 1 && order.iter().copied().eq(0..chunk.rows() as u32) {
            return Ok(rows.into_iter().next());
        }
        let sorted = chunk.gather(&order, order.len(), |rows| rows).map_err(|error| Failure::new(error.to_string()))?;
        Ok(sorted.into_iter().next())
    }

    /// Writes all rows in order.
    fn write(mut self, output: TableOutput, stats: &mut Stats) -> Result<Writer> {
        self.sort(stats)?;
        let Self { dictionaries, memory, runs, .. } = self;
        let mut writer = output.writer(memory / PARTS);
        stats.time(Phase::Write, || {
            runs.merge(&mut |chunk, order| writer.write(chunk, order, &dictionaries))?;
            writer.finish(dictionaries.schema())
        })
    }
}

/// Checks the order of a table.
pub fn check(job: CheckTable) -> Result<()> {
    let CheckTable { mut reader, length, key, unique, silent, resources, mut stats } = job;
    threads::start(resources.threads, threads::useful(length))?;
    let memory = memory::budget(resources.memory, 0)?;
    let mut last: Option<Vec<u8>> = None;
    let disorder = loop {
        let batches = stats.time(Phase::Read, || reader.next((memory / PARTS).min(MOST_CHECKED)))?;
        if batches.is_empty() {
            break Ok(());
        }
        let keys = parallel::map(&batches, |(batch, _)| key.of_batch(batch));
        let keys = keys.into_iter().collect::<std::result::Result<Vec<_>, _>>();
        let keys = keys.map_err(|error| failure(reader.path(), &error))?;
        let is_wrong = |before: &[u8], after: &[u8]| before > after || unique && before == after;
        let found = stats.time(Phase::Check, || first_disorder(&keys, &mut last, is_wrong));
        if let Some(row) = found {
            let index = stats.keys + row as u64;
            let message = format!("disorder at index {index}: its key comes before the key of the row before it");
            let message = if unique { format!("{message}, or equals it") } else { message };
            break Err(Failure::disorder(reader.path(), message));
        }
        stats.keys += batches.iter().map(|(batch, _)| batch.num_rows() as u64).sum::<u64>();
    };
    stats.print();
    disorder.map_err(|failure| if silent { failure.silent_if_disorder() } else { failure })
}

/// The index of the first key that is in the wrong order after the key before it. `last` is the key before the first,
/// and becomes the last key.
fn first_disorder(
    keys: &[BinaryArray],
    last: &mut Option<Vec<u8>>,
    is_wrong: impl Fn(&[u8], &[u8]) -> bool + Sync,
) -> Option<usize> {
    let ends = keys.iter().map(|keys| keys.value(keys.len() - 1));
    let before: Vec<Option<&[u8]>> = [last.as_deref()].into_iter().chain(ends.map(Some)).collect();
    let found = parallel::map(keys.iter().zip(&before), |(keys, before)| {
        let first = before.is_some_and(|before| is_wrong(before, keys.value(0))).then_some(0);
        first.or_else(|| (1..keys.len()).find(|&i| is_wrong(keys.value(i - 1), keys.value(i))))
    });
    let mut begin = 0;
    for (found, keys) in found.into_iter().zip(keys) {
        if let Some(index) = found {
            return Some(begin + index);
        }
        begin += keys.len();
    }
    *last = before.last().copied().flatten().map(<[u8]>::to_vec);
    None
}
