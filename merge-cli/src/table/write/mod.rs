//! Writing tables.

#[cfg(feature = "parquet")]
mod parquet;

use super::chunk::compacted;
use super::{Chunk, Dictionaries, carried, failure};
use crate::file::{Output, Writer};
use crate::format::Format;
use crate::say::error::{Failure, Result};
use crate::spec::Compression;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, Schema, SchemaRef};
#[cfg(feature = "parquet")]
use parquet::check as check_parquet;
use std::io::{self, BufWriter, Write};
use std::mem;
use std::path::{Path, PathBuf};

/// The most rows of a batch that is written, as in Feather files.
const ROWS: usize = 1 << 16;
/// Bytes that are written at once.
const BUFFER: usize = 4 << 20;

/// The output of a table, which has not been opened.
#[derive(Debug)]
pub struct TableOutput {
    pub output: Output,
    pub format: Format,
    /// None for the default of the format.
    pub compression: Option<Compression>,
}

impl TableOutput {
    /// An error if a table with this schema cannot be written in the format, or not with the compression.
    pub fn check(&self, schema: &Schema) -> Result<()> {
        let path = self.output.path();
        match (self.format, self.compression) {
            (Format::Parquet, _) => check_parquet(path, schema),
            (_, compression) => ipc_options(path, compression).map(drop),
        }
    }

    /// The writer of the table, which may hold up to `memory` bytes of rows. It opens the output for its first rows.
    pub fn writer(self, memory: u64) -> TableWriter {
        let path = self.output.path().to_owned();
        TableWriter { path, memory, state: State::Waiting(Box::new(self)), rows: ROWS }
    }

    /// Starts to write. A row group has up to `rows` rows. `has_repeats` tells for each column whether values
    /// [repeat](Chunk::has_repeats). Only Parquet asks for it.
    fn begin(
        self,
        schema: &SchemaRef,
        has_repeats: impl FnOnce() -> std::result::Result<Vec<bool>, ArrowError>,
        rows: u64,
    ) -> Result<Kind> {
        let Self { output, format, compression } = self;
        let path = output.path().to_owned();
        let sink = BufWriter::with_capacity(BUFFER, Sink(output.begin()?));
        let failure = |error: ArrowError| failure(&path, &error);
        Ok(match format {
            Format::Parquet => {
                let has_repeats = has_repeats().map_err(failure)?;
                begin_parquet(&path, sink, schema, compression, &has_repeats, rows)?
            }
            Format::Arrow => {
                let options = ipc_options(&path, compression)?;
                Kind::File(FileWriter::try_new_with_options(sink, schema, options).map_err(failure)?)
            }
            _ => {
                let options = ipc_options(&path, compression)?;
                Kind::Stream(StreamWriter::try_new_with_options(sink, schema, options).map_err(failure)?)
            }
        })
    }
}

/// The options of Arrow's formats.
fn ipc_options(path: &Path, compression: Option<Compression>) -> Result<IpcWriteOptions> {
    let codec = match compression {
        None | Some(Compression::None) => None,
        Some(Compression::Lz4) => Some(CompressionType::LZ4_FRAME),
        Some(Compression::Zstd) => Some(CompressionType::ZSTD),
        Some(Compression::Snappy | Compression::Gzip) => {
            return Err(Failure::file(path, "Arrow files are compressed with --compression lz4, zstd or none"));
        }
    };
    // In a merge, dictionaries grow while the table is written.
    let options = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
    options.try_with_compression(codec).map_err(|error| failure(path, &error))
}

#[cfg(feature = "parquet")]
fn begin_parquet(
    path: &Path,
    sink: BufWriter<Sink>,
    schema: &SchemaRef,
    compression: Option<Compression>,
    has_repeats: &[bool],
    rows: u64,
) -> Result<Kind> {
    let writer = parquet::GroupWriter::begin(sink, schema, compression, has_repeats, rows);
    Ok(Kind::Parquet(writer.map_err(|error| failure(path, &error))?))
}

#[cfg(not(feature = "parquet"))]
fn check_parquet(path: &Path, _schema: &Schema) -> Result<()> {
    Err(Failure::file(path, "this build of gmerge does not write Parquet files"))
}

#[cfg(not(feature = "parquet"))]
fn begin_parquet(
    path: &Path,
    _sink: BufWriter<Sink>,
    schema: &SchemaRef,
    _compression: Option<Compression>,
    _has_repeats: &[bool],
    _rows: u64,
) -> Result<Kind> {
    check_parquet(path, schema)?;
    Err(Failure::reported())
}

/// A table that is being written.
pub struct TableWriter {
    path: PathBuf,
    /// Bytes of rows that may be held until they are written.
    memory: u64,
    state: State,
    /// The most rows of a batch.
    rows: usize,
}

enum State {
    /// No rows yet.
    Waiting(Box<TableOutput>),
    Begun(Box<Kind>),
    /// An error has ended the run.
    Failed,
}

enum Kind {
    File(FileWriter<BufWriter<Sink>>),
    Stream(StreamWriter<BufWriter<Sink>>),
    #[cfg(feature = "parquet")]
    Parquet(parquet::GroupWriter),
}

/// An error of a library that writes tables.
type Error = Box<dyn std::error::Error + Send + Sync>;

impl TableWriter {
    /// Writes the rows of `chunk` in the order of `order`.
    pub fn write(&mut self, chunk: &Chunk, order: &[u32], dictionaries: &Dictionaries) -> Result<()> {
        let rows = self.memory / (chunk.bytes() / chunk.rows().max(1) as u64).max(1);
        self.begin(dictionaries.schema(), || chunk.has_repeats(order), rows)?;
        self.write_rows(chunk, order, dictionaries).map_err(|error| failure(&self.path, &*error))
    }

    /// Opens the output, if it is not yet open.
    fn begin(
        &mut self,
        schema: &SchemaRef,
        has_repeats: impl FnOnce() -> std::result::Result<Vec<bool>, ArrowError>,
        rows: u64,
    ) -> Result<()> {
        self.state = match mem::replace(&mut self.state, State::Failed) {
            State::Waiting(output) => {
                self.rows = rows.clamp(1, ROWS as u64) as usize;
                State::Begun(Box::new(output.begin(schema, has_repeats, rows)?))
            }
            state => state,
        };
        Ok(())
    }

    fn write_rows(
        &mut self,
        chunk: &Chunk,
        order: &[u32],
        dictionaries: &Dictionaries,
    ) -> std::result::Result<(), Error> {
        let State::Begun(kind) = &mut self.state else { return Ok(()) };
        #[cfg(feature = "parquet")]
        if let Kind::Parquet(writer) = &mut **kind {
            return writer.write(chunk, order, dictionaries);
        }
        let columns = chunk.columns();
        for part in order.chunks(self.rows * rayon::current_num_threads()) {
            let batches = chunk.map(part, self.rows, |order, places| {
                let columns = columns.iter().enumerate();
                let columns = columns.map(|(i, column)| dictionaries.restored(i, compacted(column.gather(places)?)));
                let columns = columns.collect::<std::result::Result<_, ArrowError>>()?;
                let options = RecordBatchOptions::new().with_row_count(Some(order.len()));
                RecordBatch::try_new_with_options(dictionaries.schema().clone(), columns, &options)
            });
            for batch in batches? {
                match &mut **kind {
                    Kind::File(writer) => writer.write(&batch)?,
                    Kind::Stream(writer) => writer.write(&batch)?,
                    #[cfg(feature = "parquet")]
                    Kind::Parquet(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Writes all that remains. The output can be made permanent then.
    pub fn finish(mut self, schema: &SchemaRef) -> Result<Writer> {
        self.begin(schema, || Ok(Vec::new()), 0)?;
        let Self { path, state: State::Begun(kind), .. } = self else { return Err(Failure::reported()) };
        kind.finish().map_err(|error| failure(&path, &*error))
    }
}

impl Kind {
    fn finish(self) -> std::result::Result<Writer, Error> {
        let buffer = match self {
            Self::File(mut writer) => {
                writer.finish()?;
                writer.into_inner()?
            }
            Self::Stream(mut writer) => {
                writer.finish()?;
                writer.into_inner()?
            }
            #[cfg(feature = "parquet")]
            Self::Parquet(writer) => writer.finish()?,
        };
        let Sink(writer) = buffer.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(writer)
    }
}

/// An output as a writer of the standard library.
#[derive(Debug)]
struct Sink(Writer);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(carried)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
