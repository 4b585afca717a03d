//! Sorted runs in temporary files, and their merge.
//!
//! A run is an Arrow stream of batches with the keys of their rows. A merge holds one batch of each run. In each round
//! it takes the rows that no later batch can precede, and sorts them like any rows in memory:
//!
//! ```text
//!   run 0   1 3 3 │ 4 9        all rows up to the least of the last keys, 4: the rows of the run that ends with it,
//!   run 1   2 │ 5 6 7          and of the runs before it, those equal to it, too
//!   run 2   1 2 │ 4 8
//! ```

use super::write::gathered;
use super::{Chunk, Dictionaries, Limits, bytes_of, failure};
use crate::run::engine::cpu;
use crate::say::error::{Failure, Result};
use arrow_array::cast::AsArray;
use arrow_array::{Array, BinaryArray, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use merge_host::{Timing, parallel};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

/// The part of the memory that a batch of a run takes.
const BATCHES: u64 = 64;
/// The most bytes of a batch of a run.
const MOST_BYTES: u64 = 16 << 20;
/// Bytes of a file that are read or written at once.
const BUFFER: usize = 256 << 10;

/// Sorted runs in temporary files, in the order of the input.
#[derive(Debug)]
pub struct Spill {
    folders: Vec<PathBuf>,
    files: Vec<TemporaryFile>,
    /// The columns of a table, and the keys.
    schema: SchemaRef,
    runs: Vec<Run>,
    /// The number of runs so far.
    written: usize,
    /// Bytes of memory of a merge.
    memory: u64,
    /// The most runs to merge at once.
    fan_in: usize,
}

/// An unnamed file, which each run extends.
#[derive(Debug)]
struct TemporaryFile {
    folder: PathBuf,
    file: Arc<File>,
    length: u64,
}

/// The part of a file that has a run.
#[derive(Debug)]
struct Run {
    file: usize,
    begin: u64,
    end: u64,
}

/// Rows in order: those of `order` in the chunk.
pub type Emit<'a> = &'a mut dyn FnMut(&Chunk, &[u32]) -> Result<()>;

impl Spill {
    /// No runs yet. There is at least one folder.
    pub fn new(folders: Vec<PathBuf>, dictionaries: &Dictionaries, memory: u64, fan_in: Option<usize>) -> Self {
        let fields = dictionaries.plain_schema().fields().iter().cloned();
        let key = Arc::new(Field::new("key", DataType::Binary, false));
        let schema = Arc::new(Schema::new(fields.chain([key]).collect::<Vec<_>>()));
        let most = usize::try_from(memory / batch_bytes(memory) * 3 / 8).unwrap_or(usize::MAX);
        let fan_in = fan_in.unwrap_or(usize::MAX).min(most).max(2);
        Self { folders, files: Vec::new(), schema, runs: Vec::new(), written: 0, memory, fan_in }
    }

    /// Writes the rows of `chunk` in the order of `order` as the last run.
    pub fn write(&mut self, chunk: &Chunk, order: &[u32]) -> Result<()> {
        let mut writer = RunWriter::begin(self)?;
        writer.write(chunk, order)?;
        let run = writer.finish()?;
        self.runs.push(run);
        Ok(())
    }

    /// Merges all runs, and passes their rows on, round by round.
    pub fn merge(mut self, limits: Limits, emit: Emit) -> Result<Timing> {
        let mut timing = Timing::default();
        while self.runs.len() > self.fan_in {
            // Neighbours are merged, so that equal keys keep their order.
            let runs = std::mem::take(&mut self.runs);
            for group in runs.chunks(self.fan_in) {
                let readers = self.readers(group)?;
                let mut writer = RunWriter::begin(&mut self)?;
                timing.compute += merge(readers, limits, &mut |chunk, order| writer.write(chunk, order))?.compute;
                let run = writer.finish()?;
                self.runs.push(run);
            }
        }
        let readers = self.readers(&self.runs)?;
        timing.compute += merge(readers, limits, emit)?.compute;
        Ok(timing)
    }

    fn readers(&self, runs: &[Run]) -> Result<Vec<RunReader>> {
        runs.iter().map(|run| RunReader::open(&self.files[run.file], run)).collect()
    }

    /// The file of the next run: one in each folder in turn.
    fn next_file(&mut self) -> Result<usize> {
        let index = self.written % self.folders.len();
        self.written += 1;
        if index == self.files.len() {
            let folder = self.folders[index].clone();
            let file = tempfile::tempfile_in(&folder).map_err(|error| Failure::io(&folder, &error))?;
            self.files.push(TemporaryFile { folder, file: Arc::new(file), length: 0 });
        }
        Ok(index)
    }
}

/// Bytes of a batch of a run.
fn batch_bytes(memory: u64) -> u64 {
    (memory / BATCHES).clamp(1, MOST_BYTES)
}

/// A run that is being written.
struct RunWriter<'a> {
    spill: &'a mut Spill,
    file: usize,
    begin: u64,
    writer: StreamWriter<BufWriter<At>>,
}

impl<'a> RunWriter<'a> {
    fn begin(spill: &'a mut Spill) -> Result<Self> {
        let index = spill.next_file()?;
        let TemporaryFile { folder, file, length } = &spill.files[index];
        let begin = *length;
        let at = At { file: file.clone(), position: begin, end: u64::MAX };
        let writer = StreamWriter::try_new(BufWriter::with_capacity(BUFFER, at), &spill.schema);
        let writer = writer.map_err(|error| failure(folder, &error))?;
        Ok(Self { file: index, begin, writer, spill })
    }

    /// Appends rows that follow the rows written before.
    fn write(&mut self, chunk: &Chunk, order: &[u32]) -> Result<()> {
        let row = chunk.memory() / chunk.rows().max(1) as u64 + 1;
        let rows = (batch_bytes(self.spill.memory) / row).max(1) as usize;
        let at_once = rows.saturating_mul(rayon::current_num_threads());
        for part in order.chunks(at_once) {
            self.write_part(chunk, part, rows).map_err(|error| failure(&self.spill.files[self.file].folder, &error))?;
        }
        Ok(())
    }

    fn write_part(&mut self, chunk: &Chunk, order: &[u32], rows: usize) -> std::result::Result<(), ArrowError> {
        let parts = gathered(chunk, order, rows, |_, column| Ok(column))?;
        for (mut columns, order) in parts.into_iter().zip(order.chunks(rows)) {
            columns.push(Arc::new(BinaryArray::from_iter_values(order.iter().map(|&row| chunk.key(row)))));
            self.writer.write(&RecordBatch::try_new(self.spill.schema.clone(), columns)?)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Run> {
        let file = &mut self.spill.files[self.file];
        let finished = self.writer.finish().and_then(|()| Ok(self.writer.get_mut().flush()?));
        finished.map_err(|error| failure(&file.folder, &error))?;
        file.length = self.writer.get_ref().get_ref().position;
        Ok(Run { file: self.file, begin: self.begin, end: file.length })
    }
}

/// A run that is being read: the batch whose rows come next.
struct RunReader {
    folder: PathBuf,
    reader: StreamReader<BufReader<At>>,
    /// The rows of the batch that have not been taken, and their keys.
    rows: Option<(RecordBatch, BinaryArray)>,
    /// Bytes of a row of the batch.
    row: u64,
}

impl RunReader {
    fn open(TemporaryFile { folder, file, .. }: &TemporaryFile, run: &Run) -> Result<Self> {
        let at = At { file: file.clone(), position: run.begin, end: run.end };
        let reader = StreamReader::try_new(BufReader::with_capacity(BUFFER, at), None);
        let reader = reader.map_err(|error| failure(folder, &error))?;
        Ok(Self { folder: folder.clone(), reader, rows: None, row: 0 })
    }

    /// Reads the next batch, if all rows of the last were taken.
    fn load(&mut self) -> Result<()> {
        while self.rows.is_none() {
            let Some(batch) = self.reader.next() else { return Ok(()) };
            let mut batch = batch.map_err(|error| failure(&self.folder, &error))?;
            if batch.num_rows() > 0 {
                let keys = batch.remove_column(batch.num_columns() - 1).as_binary().clone();
                self.row = bytes_of(&batch) / batch.num_rows() as u64;
                self.rows = Some((batch, keys));
            }
        }
        Ok(())
    }

    /// The key of the last row of the batch.
    fn last(&self) -> &[u8] {
        self.rows.as_ref().map_or(&[], |(_, keys)| keys.value(keys.len() - 1))
    }

    /// Takes the rows with keys less than `bound`, or up to `bound` if `inclusive`, to `chunk`.
    fn take(&mut self, bound: &[u8], inclusive: bool, chunk: &mut Chunk) {
        let Some((batch, keys)) = self.rows.take() else { return };
        let (mut count, mut end) = (0, keys.len());
        while count < end {
            let middle = count.midpoint(end);
            let key = keys.value(middle);
            if key < bound || inclusive && key == bound { count = middle + 1 } else { end = middle }
        }
        chunk.push(batch.slice(0, count), &keys.slice(0, count), self.row * count as u64);
        let left = keys.len() - count;
        self.rows = (left > 0).then(|| (batch.slice(count, left), keys.slice(count, left)));
    }
}

/// Merges runs in the order of the input.
fn merge(mut runs: Vec<RunReader>, limits: Limits, emit: Emit) -> Result<Timing> {
    let (engine, mut total) = (cpu(), Timing::default());
    let (mut before, mut left) = (None::<Vec<u8>>, limits.most);
    while left > 0 {
        parallel::try_for_each(runs.iter_mut(), RunReader::load)?;
        runs.retain(|run| run.rows.is_some());
        let Some((least, run)) = runs.iter().enumerate().min_by_key(|(_, run)| run.last()) else { break };
        let (bound, mut chunk) = (run.last().to_vec(), Chunk::default());
        for (i, run) in runs.iter_mut().enumerate() {
            run.take(&bound, i <= least, &mut chunk);
        }
        let (order, timing) = chunk.sorted(&engine, Limits { most: left, ..limits }, before.as_deref())?;
        total.compute += timing.compute;
        left -= order.len() as u64;
        before = limits.unique.then_some(bound);
        emit(&chunk, &order)?;
    }
    Ok(total)
}

/// A file from a position on.
#[derive(Debug)]
struct At {
    file: Arc<File>,
    position: u64,
    end: u64,
}

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.end - self.position).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.file.read_at(&mut buffer[..most], self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Write for At {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write_at(bytes, self.position)?;
        self.position += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
