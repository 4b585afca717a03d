//! Writing tables.

#[cfg(feature = "parquet")]
mod parquet;

use super::{Chunk, Dictionaries, carried, failure};
use crate::file::{Output, Writer};
use crate::format::Format;
use crate::say::error::{Failure, Result};
use crate::spec::Compression;
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use merge_host::parallel;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most rows of a batch that is written, as in Feather files.
pub const ROWS: usize = 1 << 16;
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
            (Format::Parquet, _) => check_parquet(path, schema, self.compression),
            (_, compression) => ipc_options(path, compression).map(drop),
        }
    }

    /// Starts to write. Up to `memory` bytes may be held until they are written, and a row has some `row` bytes.
    /// `has_repeats` tells for each column whether values [repeat](Chunk::has_repeats). Only Parquet asks for it.
    pub fn begin(
        self,
        schema: &SchemaRef,
        has_repeats: impl FnOnce() -> std::result::Result<Vec<bool>, ArrowError>,
        memory: u64,
        row: u64,
    ) -> Result<TableWriter> {
        let Self { output, format, compression } = self;
        let path = output.path().to_owned();
        let sink = BufWriter::with_capacity(BUFFER, Sink(output.begin()?));
        let failure = |error: ArrowError| failure(&path, &error);
        let kind = match format {
            Format::Parquet => {
                let has_repeats = has_repeats().map_err(failure)?;
                begin_parquet(&path, sink, schema, compression, &has_repeats, memory / row.max(1))?
            }
            Format::Arrow => {
                let options = ipc_options(&path, compression)?;
                Kind::File(FileWriter::try_new_with_options(sink, schema, options).map_err(failure)?)
            }
            _ => {
                let options = ipc_options(&path, compression)?;
                Kind::Stream(StreamWriter::try_new_with_options(sink, schema, options).map_err(failure)?)
            }
        };
        Ok(TableWriter { path, kind, rows: (memory / row.max(1)).clamp(1, ROWS as u64) as usize })
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
    IpcWriteOptions::default().try_with_compression(codec).map_err(|error| failure(path, &error))
}

#[cfg(feature = "parquet")]
fn check_parquet(path: &Path, schema: &Schema, compression: Option<Compression>) -> Result<()> {
    // The library panics at a union.
    if let Some(column) = schema.fields().iter().find(|column| has_union(column.data_type())) {
        let name = crate::say::error::shortened(column.name());
        return Err(Failure::file(
            path,
            format!("column {name:?} has a union, and Parquet has none: write an Arrow file"),
        ));
    }
    parquet::check(schema, compression).map_err(|error| failure(path, &error))
}

/// Whether a type is a union or has one inside.
#[cfg(feature = "parquet")]
fn has_union(data_type: &DataType) -> bool {
    match data_type {
        DataType::Union(..) => true,
        DataType::Struct(fields) => fields.iter().any(|field| has_union(field.data_type())),
        DataType::Dictionary(_, values) => has_union(values),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::RunEndEncoded(_, field)
        | DataType::Map(field, _) => has_union(field.data_type()),
        _ => false,
    }
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
    Ok(Kind::Parquet(Box::new(writer.map_err(|error| failure(path, &error))?)))
}

#[cfg(not(feature = "parquet"))]
fn check_parquet(path: &Path, _schema: &Schema, _compression: Option<Compression>) -> Result<()> {
    Err(Failure::file(path, "this build of gmerge does not write Parquet files"))
}

#[cfg(not(feature = "parquet"))]
fn begin_parquet(
    path: &Path,
    _sink: BufWriter<Sink>,
    schema: &SchemaRef,
    compression: Option<Compression>,
    _has_repeats: &[bool],
    _rows: u64,
) -> Result<Kind> {
    check_parquet(path, schema, compression)?;
    Err(Failure::reported())
}

/// A table that is being written.
pub struct TableWriter {
    path: PathBuf,
    kind: Kind,
    /// The most rows of a batch.
    rows: usize,
}

enum Kind {
    File(FileWriter<BufWriter<Sink>>),
    Stream(StreamWriter<BufWriter<Sink>>),
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet::GroupWriter>),
}

/// An error of a library that writes tables.
type Error = Box<dyn std::error::Error + Send + Sync>;

impl TableWriter {
    /// Writes the rows of `chunk` in the order of `order`.
    pub fn write(&mut self, chunk: &Chunk, order: &[u32], dictionaries: &Dictionaries) -> Result<()> {
        self.write_rows(chunk, order, dictionaries).map_err(|error| failure(&self.path, &*error))
    }

    fn write_rows(
        &mut self,
        chunk: &Chunk,
        order: &[u32],
        dictionaries: &Dictionaries,
    ) -> std::result::Result<(), Error> {
        #[cfg(feature = "parquet")]
        if let Kind::Parquet(writer) = &mut self.kind {
            return writer.write(chunk, order, dictionaries);
        }
        for part in order.chunks(self.rows * rayon::current_num_threads()) {
            let batches = gathered(chunk, part, self.rows, |column, array| dictionaries.restored(column, array))?;
            for (columns, rows) in batches.into_iter().zip(part.chunks(self.rows).map(<[u32]>::len)) {
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                let batch = RecordBatch::try_new_with_options(dictionaries.schema().clone(), columns, &options)?;
                match &mut self.kind {
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
    pub fn finish(self) -> Result<Writer> {
        let finish = || -> std::result::Result<Writer, Error> {
            let buffer = match self.kind {
                Kind::File(mut writer) => {
                    writer.finish()?;
                    writer.into_inner()?
                }
                Kind::Stream(mut writer) => {
                    writer.finish()?;
                    writer.into_inner()?
                }
                #[cfg(feature = "parquet")]
                Kind::Parquet(writer) => writer.finish()?,
            };
            let Sink(writer) = buffer.into_inner().map_err(io::IntoInnerError::into_error)?;
            Ok(writer)
        };
        finish().map_err(|error| failure(&self.path, &*error))
    }
}

/// The columns of the rows of `order` in batches of up to `rows` rows, gathered by all threads. `with` maps each
/// column, which it gets with its index.
pub fn gathered(
    chunk: &Chunk,
    order: &[u32],
    rows: usize,
    with: impl Fn(usize, ArrayRef) -> std::result::Result<ArrayRef, ArrowError> + Sync,
) -> std::result::Result<Vec<Vec<ArrayRef>>, ArrowError> {
    let (places, columns) = (chunk.places(order), chunk.columns());
    let tasks = places.chunks(rows).flat_map(|places| (0..columns).map(move |column| (column, places)));
    let arrays = parallel::map(tasks.collect::<Vec<_>>(), |(column, places)| {
        with(column, compacted(chunk.gather(column, places)?))
    });
    let mut arrays = arrays.into_iter();
    places.chunks(rows).map(|_| arrays.by_ref().take(columns).collect()).collect()
}

/// The array without the bytes of strings that no view of it refers to.
fn compacted(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array,
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
