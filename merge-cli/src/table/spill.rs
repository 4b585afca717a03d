//! Sorted runs in memory, and in temporary files if memory does not hold them all.
//!
//! ```text
//!   batches ──sort──► runs of some 2^16 rows in memory ───────────────────┐
//!                         │ beyond the memory: the last ones, as they are,├──merge──► rows in order
//!                         ▼ or if these become too many, all, merged      │
//!                     runs in temporary files ────────────────────────────┘
//! ```
//!
//! A run in a file is a sequence of blocks: Arrow streams of one batch of rows with their keys.

use super::chunk::compacted;
use super::merge::{Emit, Merging, Run, merge};
use super::{Dictionaries, Limits, Rows, failure};
use crate::os::disk;
use crate::say::error::{Failure, Result};
use crate::say::report;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamEncoder;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use merge_host::{Timing, parallel};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a block, as a part of the memory.
const BLOCKS: u64 = 1 << 14;
/// The least and the most bytes of a block.
const BLOCK: (u64, u64) = (4 << 10, 256 << 10);
/// The least bytes of a block for each column, whose name and place take some hundred.
const COLUMN: u64 = 1 << 10;
/// A share of the memory is 1 / `SHARES` of it, up to `MOST_SHARE` bytes.
const SHARES: u64 = 16;
const MOST_SHARE: u64 = 128 << 20;
/// The shares that a merge and its output take beside runs in memory.
const MERGED: u64 = 7;
/// The most shares, of any size, of runs in memory. Batches that are read and sorted have the rest.
const RESIDENT: u64 = 10;
/// Bytes of a value without a fixed size, before rows tell the average.
const ROW: usize = 32;
/// Rows that a thread gathers and writes at once.
const GATHERED: usize = 1 << 14;
/// The part of the memory that one block of each run may take at most.
const WINDOWS: u64 = 16;

/// Sorted runs, in the order of the input.
#[derive(Debug)]
pub struct Runs {
    runs: Vec<Stored>,
    files: Vec<TemporaryFile>,
    /// The number of runs that have been written.
    written: usize,
    /// The folders that the user named.
    folders: Vec<PathBuf>,
    /// The columns of a table, and the keys.
    schema: SchemaRef,
    limits: Limits,
    /// Bytes of memory.
    memory: u64,
    /// The most runs in files to merge at once, if the user named it.
    fan_in: Option<usize>,
    /// Bytes and number of all rows so far.
    total: (u64, u64),
}

#[derive(Debug)]
enum Stored {
    Resident(Rows),
    Spilled(Blocks),
}

/// A run in a temporary file.
#[derive(Debug)]
struct Blocks {
    file: usize,
    /// The offset and the length of each block.
    places: Vec<(u64, usize)>,
    /// The number of rows.
    rows: u64,
}

/// An unnamed file, which each run extends.
#[derive(Debug)]
struct TemporaryFile {
    folder: PathBuf,
    file: Arc<File>,
    length: AtomicU64,
}

/// A share of the memory: for the rows that are sorted together in a merge, or for a row group that is written.
pub fn share(memory: u64) -> u64 {
    (memory / SHARES).min(MOST_SHARE)
}

impl Runs {
    /// No runs yet. Those in files will be in `folders`, or in the default one.
    pub fn new(
        folders: Vec<PathBuf>,
        dictionaries: &Dictionaries,
        limits: Limits,
        memory: u64,
        fan_in: Option<usize>,
    ) -> Self {
        let fields = dictionaries.plain_schema().fields().iter().cloned();
        let key = Arc::new(Field::new("key", DataType::Binary, false));
        let schema = Arc::new(Schema::new(fields.chain([key]).collect::<Vec<_>>()));
        let (runs, files) = (Vec::new(), Vec::new());
        // An estimate until there are rows.
        let row = schema.fields().iter().map(|field| field.data_type().primitive_width().unwrap_or(ROW) as u64).sum();
        Self { runs, files, written: 0, folders, schema, limits, memory, fan_in, total: (row, 1) }
    }

    /// Adds sorted runs behind all others, and makes room for more.
    pub fn extend(&mut self, runs: Vec<Rows>) -> Result<()> {
        for rows in runs.into_iter().filter(|rows| rows.len() > 0) {
            self.total = (self.total.0 + rows.memory(), self.total.1 + rows.len() as u64);
            self.runs.push(Stored::Resident(rows));
        }
        if self.resident(|rows| rows.len() as u64) / 2 > self.limits.most {
            return self.compact();
        }
        if self.resident(Rows::memory) <= self.most_resident() {
            return Ok(());
        }
        if !self.limits.unique && self.spilled() < self.fan_in() / 4 * 3 {
            self.spill_last()
        } else {
            self.spill_merged()
        }
    }

    /// The sum of `of`, such as the bytes, over the runs in memory.
    fn resident(&self, of: impl Fn(&Rows) -> u64) -> u64 {
        self.runs.iter().map(|run| if let Stored::Resident(rows) = run { of(rows) } else { 0 }).sum()
    }

    /// The number of runs in files.
    fn spilled(&self) -> usize {
        self.runs.iter().filter(|run| matches!(run, Stored::Spilled(_))).count()
    }

    /// Bytes of memory of an average row.
    fn row(&self) -> u64 {
        self.total.0 / self.total.1.max(1) + 1
    }

    /// The number of rows of a block.
    fn block_rows(&self) -> usize {
        let columns = self.schema.fields().len() as u64;
        let bytes = (self.memory / BLOCKS).clamp(BLOCK.0, BLOCK.1).max(columns * COLUMN);
        (bytes / self.row()).max(1) as usize
    }

    /// The most runs in files to merge at once.
    fn fan_in(&self) -> usize {
        let block = self.block_rows() as u64 * self.row();
        let most = usize::try_from(self.memory / WINDOWS / block).unwrap_or(usize::MAX);
        self.fan_in.unwrap_or(usize::MAX).min(most).max(2)
    }

    /// The most bytes of runs in memory.
    fn most_resident(&self) -> u64 {
        (self.memory / SHARES * RESIDENT).min(self.memory - MERGED * share(self.memory))
    }

    /// How runs are merged.
    pub fn merging(&self) -> Merging {
        Merging { limits: self.limits, memory: share(self.memory), row: self.row(), in_parallel: true }
    }

    /// Merges the runs in memory to fewer rows, by the limits.
    fn compact(&mut self) -> Result<()> {
        let (index, runs) = self.take_resident();
        let (merging, mut merged) = (self.merging(), Vec::new());
        merge(self.readers(runs), merging, &mut |chunk, order| {
            let rows = chunk.gather(order, GATHERED, |rows| rows);
            merged.extend(rows.map_err(|error| Failure::new(error.to_string()))?);
            Ok(())
        })?;
        self.runs.splice(index..index, merged.into_iter().map(Stored::Resident));
        Ok(())
    }

    /// The first runs in memory that are next to each other, and the index of the first.
    fn take_resident(&mut self) -> (usize, Vec<Stored>) {
        let is_resident = |run: &Stored| matches!(run, Stored::Resident(_));
        let begin = self.runs.iter().position(is_resident).unwrap_or(self.runs.len());
        let count = self.runs[begin..].iter().take_while(|run| is_resident(run)).count();
        (begin, self.runs.drain(begin..begin + count).collect())
    }

    /// Writes the last runs, as far as memory does not hold them.
    fn spill_last(&mut self) -> Result<()> {
        let (mut spilled, mut resident) = (Vec::new(), self.resident(Rows::memory));
        while resident > self.most_resident()
            && let Some(Stored::Resident(rows)) = self.runs.pop_if(|run| matches!(run, Stored::Resident(_)))
        {
            resident -= rows.memory();
            spilled.push((self.next_file()?, rows));
        }
        let (this, most) = (&*self, self.block_rows());
        let written = parallel::map(spilled.into_iter().rev(), |(file, rows)| {
            let places = this.write(file, &rows, most)?;
            Ok(Stored::Spilled(Blocks { file, places, rows: rows.len() as u64 }))
        });
        let written = written.into_iter().collect::<Result<Vec<_>>>()?;
        self.runs.extend(written);
        Ok(())
    }

    /// Merges `runs` to a run behind all others.
    pub fn push_merged(&mut self, runs: Vec<Box<dyn Run + '_>>, in_parallel: bool) -> Result<()> {
        let run = self.merge_to_file(runs, in_parallel)?;
        self.runs.push(run);
        Ok(())
    }

    /// Merges the runs in memory to a run in a file.
    fn spill_merged(&mut self) -> Result<()> {
        let (index, runs) = self.take_resident();
        let run = self.merge_to_file(self.readers(runs), true)?;
        self.runs.insert(index, run);
        Ok(())
    }

    /// Merges runs to a run in a file.
    fn merge_to_file(&mut self, runs: Vec<Box<dyn Run + '_>>, in_parallel: bool) -> Result<Stored> {
        let (file, most, mut places, mut rows) = (self.next_file()?, self.block_rows(), Vec::new(), 0);
        let this = &*self;
        merge(runs, Merging { in_parallel, ..self.merging() }, &mut |chunk, order| {
            let written = chunk.gather(order, GATHERED, |rows| this.write(file, &rows, most));
            for blocks in written.map_err(|error| this.failure(file, &error))? {
                places.extend(blocks?);
            }
            rows += order.len() as u64;
            Ok(())
        })?;
        Ok(Stored::Spilled(Blocks { file, places, rows }))
    }

    /// Merges all runs, and passes their rows on.
    pub fn merge(mut self, emit: Emit) -> Result<Timing> {
        let fan_in = self.fan_in();
        if self.spilled() > fan_in && self.spilled() < self.runs.len() {
            self.spill_merged()?;
        }
        while self.spilled() > fan_in {
            // Neighbours are merged, so that equal keys keep their order.
            let mut left = std::mem::take(&mut self.runs).into_iter();
            while left.len() > 0 {
                let runs = self.readers(left.by_ref().take(fan_in));
                let run = self.merge_to_file(runs, true)?;
                self.runs.push(run);
            }
        }
        let runs = std::mem::take(&mut self.runs);
        merge(self.readers(runs), self.merging(), emit)
    }

    fn readers(&self, runs: impl IntoIterator<Item = Stored>) -> Vec<Box<dyn Run>> {
        runs.into_iter().map(|run| self.reader(run)).collect()
    }

    /// The rows of a run.
    fn reader(&self, run: Stored) -> Box<dyn Run> {
        match run {
            Stored::Resident(rows) => Box::new(ResidentRun(Some(rows))),
            Stored::Spilled(Blocks { file, places, rows }) => {
                let TemporaryFile { folder, file, .. } = &self.files[file];
                Box::new(SpilledRun { folder: folder.clone(), file: file.clone(), places: places.into_iter(), rows })
            }
        }
    }

    /// The file of the next run: one in each folder in turn.
    fn next_file(&mut self) -> Result<usize> {
        if self.files.is_empty() {
            report::verbose(format_args!("plan: in chunks, with {} bytes of memory", self.memory));
            for disk::TemporaryFolder { path: folder, .. } in disk::temporary_folders(&self.folders)? {
                let file = tempfile::tempfile_in(&folder).map_err(|error| Failure::io(&folder, &error))?;
                self.files.push(TemporaryFile { folder, file: Arc::new(file), length: AtomicU64::new(0) });
            }
        }
        self.written += 1;
        Ok(self.written % self.files.len())
    }

    /// Writes rows behind all others of a file, in blocks of up to `most` rows. Returns the places of the blocks.
    fn write(&self, file: usize, rows: &Rows, most: usize) -> Result<Vec<(u64, usize)>> {
        let TemporaryFile { file: to, length, .. } = &self.files[file];
        let write = |begin| {
            let block = rows.slice(begin, most.min(rows.len() - begin));
            let bytes = encoded(&self.schema, block).map_err(|error| self.failure(file, &error))?;
            let offset = length.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            to.write_all_at(&bytes, offset).map_err(|error| self.failure(file, &error))?;
            Ok((offset, bytes.len()))
        };
        (0..rows.len()).step_by(most).map(write).collect()
    }

    fn failure(&self, file: usize, error: &(dyn std::error::Error + 'static)) -> Failure {
        failure(&self.files[file].folder, error)
    }
}

/// A block with these rows.
fn encoded(schema: &SchemaRef, Rows { batch, keys, .. }: Rows) -> std::result::Result<Vec<u8>, ArrowError> {
    let mut columns: Vec<_> = batch.columns().iter().cloned().map(compacted).collect();
    columns.push(Arc::new(keys));
    let batch = RecordBatch::try_new(schema.clone(), columns)?;
    let buffers = StreamEncoder::try_new(schema)?.encode(&batch)?;
    Ok(buffers.iter().map(Buffer::as_slice).collect::<Vec<_>>().concat())
}

/// The rows of a block.
fn decoded(bytes: Vec<u8>) -> std::result::Result<Rows, ArrowError> {
    let batch = StreamDecoder::new().decode(&mut Buffer::from_vec(bytes))?;
    let mut batch = batch.ok_or_else(|| ArrowError::IpcError("a temporary file has changed".to_owned()))?;
    let keys = batch.remove_column(batch.num_columns() - 1).as_binary().clone();
    Ok(Rows::new(batch, keys))
}

/// A run in memory, whose parts are taken without a copy.
struct ResidentRun(Option<Rows>);

impl Run for ResidentRun {
    fn size(&self) -> u64 {
        self.0.as_ref().map_or(0, |rows| rows.len() as u64)
    }

    fn next(&mut self, rows: usize) -> Result<Option<Rows>> {
        let Some(left) = self.0.take() else { return Ok(None) };
        if left.len() <= rows {
            return Ok(Some(left));
        }
        self.0 = Some(left.slice(rows, left.len() - rows));
        Ok(Some(left.slice(0, rows)))
    }
}

/// A run in a temporary file, of which a block is read at once.
struct SpilledRun {
    folder: PathBuf,
    file: Arc<File>,
    places: std::vec::IntoIter<(u64, usize)>,
    /// The number of rows.
    rows: u64,
}

impl Run for SpilledRun {
    fn size(&self) -> u64 {
        self.rows
    }

    fn next(&mut self, _rows: usize) -> Result<Option<Rows>> {
        let Some((begin, length)) = self.places.next() else { return Ok(None) };
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, begin).map_err(|error| failure(&self.folder, &error))?;
        decoded(bytes).map(Some).map_err(|error| failure(&self.folder, &error))
    }
}
