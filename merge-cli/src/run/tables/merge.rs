//! The merge of sorted tables, which are read batch by batch.

use super::check::first_disorder;
use super::verify::Sum;
use super::{PARTS, Working};
use crate::file::Writer;
use crate::os::limits::open_files;
use crate::say::error::{Failure, Result};
use crate::say::stats::{Phase, Stats};
use crate::table::{self, Dictionaries, Merging, Reader, Rows, Run, TableKey, TableWriter, failure};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes of memory that a column of an open table takes at least, for its pages.
const COLUMN: u64 = 512 << 10;

/// The flags of a merge.
pub struct Options {
    pub assume_sorted: bool,
    /// The most tables to merge at once, if the user named it.
    pub fan_in: Option<usize>,
}

/// Merges sorted tables, and writes their rows.
pub fn merge(
    mut readers: Vec<Reader>,
    tables: Working,
    options: Options,
    mut writer: TableWriter,
    stats: &mut Stats,
) -> Result<Writer> {
    let Working { key, dictionaries, memory, sum, mut runs, .. } = tables;
    let (columns, in_parallel) = (dictionaries.schema().fields().len() as u64, dictionaries.is_empty());
    let most = usize::try_from(memory / 2 / (columns * COLUMN)).unwrap_or(usize::MAX);
    let fan_in = options.fan_in.unwrap_or(usize::MAX).min(most).min(open_files(readers.len())).max(2);
    let at_once = readers.len().min(fan_in) as u64;
    let has_lengths = readers.iter().all(|reader| reader.length().is_some());
    let shared = Shared {
        key,
        dictionaries: Mutex::new(dictionaries),
        sum,
        check_order: !options.assume_sorted,
        memory: memory / PARTS * 3 / at_once.max(1),
        rows: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    };
    let open = |reader: Reader| {
        let size = reader.length().filter(|_| has_lengths).unwrap_or(1);
        Box::new(TableRun { shared: &shared, reader, size, ready: VecDeque::new(), last: None, read: 0 })
            as Box<dyn Run>
    };
    let written = stats.time(Phase::Write, || {
        let emit = &mut |chunk: &table::Chunk, order: &[u32]| {
            sum.add_written(chunk, order);
            writer.write(chunk, order, &shared.dictionaries())
        };
        if readers.len() <= fan_in {
            let merging = Merging { in_parallel, ..runs.merging() };
            table::merge(readers.into_iter().map(open).collect(), merging, emit)?;
        } else {
            while !readers.is_empty() {
                let group = readers.drain(..readers.len().min(fan_in)).map(open).collect();
                runs.push_merged(group, in_parallel)?;
            }
            runs.merge(emit)?;
        }
        writer.finish(shared.dictionaries().schema())
    });
    stats.keys = shared.rows.load(Ordering::Relaxed);
    stats.bytes = Some(shared.bytes.load(Ordering::Relaxed));
    written
}

/// What the runs of all tables share.
struct Shared<'a> {
    key: &'a TableKey,
    dictionaries: Mutex<Dictionaries>,
    sum: &'a Sum,
    check_order: bool,
    /// Bytes of memory of the rows of a table.
    memory: u64,
    /// The rows that have been read, and their bytes.
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl Shared<'_> {
    fn dictionaries(&self) -> std::sync::MutexGuard<'_, Dictionaries> {
        self.dictionaries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sorted table.
struct TableRun<'a> {
    shared: &'a Shared<'a>,
    reader: Reader,
    size: u64,
    /// Rows that have been read.
    ready: VecDeque<Rows>,
    /// The key of the last of these rows, and the number of all rows so far.
    last: Option<Vec<u8>>,
    read: u64,
}

impl Run for TableRun<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn next(&mut self, _rows: usize) -> Result<Option<Rows>> {
        if self.ready.is_empty() {
            self.read()?;
        }
        Ok(self.ready.pop_front())
    }
}

impl TableRun<'_> {
    /// Reads the next rows, if there are any.
    fn read(&mut self) -> Result<()> {
        let (batches, shared) = (self.reader.next(self.shared.memory)?, self.shared);
        let path = self.reader.path();
        let keys = shared.key.of_batches(&batches, path)?;
        if shared.check_order
            && !keys.is_empty()
            && let Some(row) = first_disorder(&keys, &mut self.last, |before, after| before > after)
        {
            let index = self.read + row as u64;
            let message = "its key comes before the key of the row before it; sort it first, with gmerge sort --key";
            return Err(Failure::file(path, format!("not sorted at index {index}: {message}")));
        }
        for ((batch, bytes), keys) in batches.into_iter().zip(keys) {
            let plain = shared.dictionaries().plain(&batch).map_err(|error| failure(path, &error))?;
            let rows = Rows::with_bytes(plain, keys, bytes);
            shared.sum.add_read(&rows);
            shared.rows.fetch_add(rows.len() as u64, Ordering::Relaxed);
            shared.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.read += rows.len() as u64;
            self.ready.push_back(rows);
        }
        Ok(())
    }
}
