//! The sort of tables, in memory or in chunks, and the check of their order.

use super::engine::cpu;
use super::finish;
use crate::file::Writer;
use crate::job::{CheckTable, Resources, SortTables};
use crate::os::{disk, memory, threads};
use crate::plan::Destination;
use crate::say::error::{Failure, Result};
use crate::say::report;
use crate::say::stats::{Phase, Stats};
use crate::table::{Chunk, Dictionaries, Limits, Spill, TableKey, TableOutput, failure};
use arrow_array::{Array, BinaryArray, RecordBatch};
use arrow_schema::ArrowError;
use merge_host::parallel;
use std::path::Path;

/// The parts of the memory: batches that are read at once take one, row groups that are written another, and rows that
/// are sorted at once four. The rest is for what the libraries hold.
const PARTS: u64 = 8;
/// The most bytes to read at once for a check.
const MOST_CHECKED: u64 = 256 << 20;
/// With `--top`, this many rows are read before they are sorted for the first time.
const FIRST_ROWS: u64 = 1 << 18;

/// Sorts tables.
pub fn sort(job: SortTables) -> Result<()> {
    let SortTables { readers, length, key, dictionaries, limits, output, resources, mut stats } = job;
    threads::start(resources.threads, threads::useful(length))?;
    output.output.check_space(0)?;
    let destination = Destination::of_keys(output.output.folder(), 0).or_up_to(None);
    let memory = memory::budget(resources.memory, destination.in_memory())?;
    // Batches of many sizes are freed while others are read.
    memory::return_freed(memory);
    if !resources.folders.is_empty() {
        disk::temporary_folders(&resources.folders)?;
    }
    let mut sorting = Sorting { key, dictionaries, limits, memory, resources, chunk: Chunk::default(), spill: None };
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
    resources: Resources,
    /// The rows in memory, which come after all runs.
    chunk: Chunk,
    /// The runs, if not all rows fit in memory.
    spill: Option<Spill>,
}

impl Sorting {
    /// Adds the next batches of the table at `path`.
    fn add(&mut self, path: &Path, batches: Vec<(RecordBatch, u64)>, stats: &mut Stats) -> Result<()> {
        let (batches, bytes): (Vec<_>, Vec<_>) = batches.into_iter().unzip();
        let keyed = stats.time(Phase::Compute, || self.keyed(path, batches))?;
        for ((batch, keys), bytes) in keyed.into_iter().zip(bytes) {
            let rows = batch.num_rows();
            let is_full = self.chunk.memory() > self.memory / 2;
            if self.chunk.rows() > 0 && (is_full || self.chunk.rows() + rows > Chunk::MOST) {
                self.make_room(stats)?;
            }
            self.chunk.push(batch, &keys, bytes);
            stats.keys += rows as u64;
        }
        let most = self.limits.most.saturating_mul(2).saturating_add(FIRST_ROWS);
        if self.chunk.rows() as u64 > most { self.make_room(stats) } else { Ok(()) }
    }

    /// The batches without dictionaries, with the keys of their rows.
    fn keyed(&mut self, path: &Path, batches: Vec<RecordBatch>) -> Result<Vec<(RecordBatch, BinaryArray)>> {
        let plain: Vec<_> = batches.iter().map(|batch| self.dictionaries.plain(batch)).collect();
        let keyed =
            parallel::map(batches.into_iter().zip(plain), |(batch, plain)| Ok((plain?, self.key.of_batch(&batch)?)));
        keyed.into_iter().collect::<std::result::Result<_, _>>().map_err(|error: ArrowError| failure(path, &error))
    }

    /// Sorts the rows in memory. Those that are kept stay there if they take far less memory, and are a run otherwise.
    fn make_room(&mut self, stats: &mut Stats) -> Result<()> {
        let (order, timing) = self.chunk.sorted(&cpu(), self.limits, None)?;
        stats.add(timing);
        let chunk = std::mem::take(&mut self.chunk);
        stats.bytes = Some(stats.bytes.unwrap_or(0) + chunk.bytes());
        stats.time(Phase::Write, || {
            if order.len() <= chunk.rows() / 2 {
                self.chunk = chunk.compacted(&order).map_err(|error| Failure::new(error.to_string()))?;
                return Ok(());
            }
            if self.spill.is_none() {
                report::verbose(format_args!("plan: in chunks, with {} bytes of memory", self.memory));
                let folders = disk::temporary_folders(&self.resources.folders)?;
                let folders = folders.into_iter().map(|folder| folder.path).collect();
                self.spill = Some(Spill::new(folders, &self.dictionaries, self.memory, self.resources.fan_in));
            }
            self.spill.as_mut().map_or(Ok(()), |spill| spill.write(&chunk, &order))
        })
    }

    /// Writes all rows in order.
    fn write(mut self, output: TableOutput, stats: &mut Stats) -> Result<Writer> {
        stats.bytes = Some(stats.bytes.unwrap_or(0) + self.chunk.bytes());
        let (order, timing) = self.chunk.sorted(&cpu(), self.limits, None)?;
        stats.add(timing);
        let schema = self.dictionaries.schema();
        let row = stats.bytes.unwrap_or(0) / stats.keys.max(1);
        stats.time(Phase::Write, || {
            let has_repeats = || self.chunk.has_repeats(&order);
            let mut writer = output.begin(schema, has_repeats, self.memory / PARTS, row)?;
            match self.spill.take() {
                None => writer.write(&self.chunk, &order, &self.dictionaries)?,
                Some(mut spill) => {
                    spill.write(&std::mem::take(&mut self.chunk), &order)?;
                    drop(order);
                    let emit = &mut |chunk: &Chunk, order: &[u32]| writer.write(chunk, order, &self.dictionaries);
                    spill.merge(self.limits, emit).map(drop)?;
                }
            }
            writer.finish()
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
