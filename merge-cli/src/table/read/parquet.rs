//! Parquet files.

use super::{AHEAD, Error, ROWS, bytes_at};
use crate::file::Input;
use crate::format::Format;
use arrow_array::RecordBatch;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use merge_host::parallel;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ProjectionMask};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{ChunkReader, Length};
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::sync::Arc;

/// The least number of rows of a batch where memory is little.
const LEAST_ROWS: u64 = 256;

/// Bytes of a column that are in memory while a group is read in parts: a page and a dictionary, as most writers limit
/// them.
const PAGES: u64 = 2 << 20;

/// The row groups of a file.
pub struct Groups {
    file: ParquetFile,
    /// The groups that have not been read.
    left: Range<usize>,
    /// A group that is read in parts.
    part: Option<ParquetRecordBatchReader>,
}

/// A file with its metadata.
struct ParquetFile {
    source: Source,
    metadata: ArrowReaderMetadata,
}

impl std::fmt::Debug for Groups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Groups").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Groups {
    /// Reads the metadata.
    pub fn open(input: Input) -> Result<(SchemaRef, Self), Error> {
        if !input.is_regular() {
            return Err("is in a pipe, expected a regular file, because its footer comes last".into());
        }
        let source = Source { input: Arc::new(input), window: None };
        let metadata = source.decoding(|| Ok(ArrowReaderMetadata::load(&source, ArrowReaderOptions::new())?))?;
        let with_zones = schema_with_zones(&metadata).and_then(|schema| {
            let options = ArrowReaderOptions::new().with_schema(schema);
            ArrowReaderMetadata::try_new(metadata.metadata().clone(), options).ok()
        });
        let metadata = with_zones.unwrap_or(metadata);
        let left = 0..metadata.metadata().num_row_groups();
        Ok((metadata.schema().clone(), Self { file: ParquetFile { source, metadata }, left, part: None }))
    }

    /// Closes the file until it is read.
    pub fn close(&mut self) {
        if let Some(input) = Arc::get_mut(&mut self.file.source.input) {
            input.close();
        }
    }

    /// [`Reader::largest_part`](super::Reader::largest_part).
    pub fn largest_part(&self, part: u64) -> u64 {
        let groups = self.left.clone().map(|group| self.file.group(group)).filter(|group| bytes_of(group) > part);
        let pages = |group: &RowGroupMetaData| {
            let columns = group.columns().iter().map(|column| u64::try_from(column.uncompressed_size()).unwrap_or(0));
            columns.map(|bytes| bytes.min(PAGES)).sum()
        };
        groups.map(pages).max().unwrap_or(0)
    }

    /// The next batches: several row groups, or a part of a large one. All threads read the columns of several groups.
    pub fn next(&mut self, memory: u64) -> Result<Vec<RecordBatch>, Error> {
        loop {
            if let Some(part) = &mut self.part {
                match self.file.source.decoding(|| Ok(part.next().transpose()?))? {
                    Some(batch) => return Ok(vec![batch]),
                    None => self.part = None,
                }
            }
            let groups = self.groups_within(memory);
            if groups.is_empty() {
                let Some(group) = self.left.next() else { return Ok(Vec::new()) };
                let found = self.file.group(group);
                let row = bytes_of(found) / u64::try_from(found.num_rows()).unwrap_or(0).max(1) + 1;
                let rows = (memory / row).clamp(LEAST_ROWS, ROWS as u64) as usize;
                let source = &self.file.source;
                let part = source.decoding(|| Ok(self.file.builder(source.clone(), group, rows).build()?))?;
                self.part = Some(part);
                continue;
            }
            let (file, columns) = (&self.file, self.file.metadata.schema().fields().len());
            let chunks = groups.flat_map(|group| (0..columns).map(move |column| (group, column)));
            let mut read = parallel::map(chunks, |(group, column)| file.read(group, column)).into_iter();
            let mut batches = Vec::new();
            while read.len() > 0 {
                let group = read.by_ref().take(columns).collect::<Result<Vec<_>, _>>()?;
                batches.extend(file.joined(group)?);
            }
            if !batches.is_empty() {
                return Ok(batches);
            }
        }
    }

    /// The next groups that together take at most `memory` bytes, a few for each thread.
    fn groups_within(&mut self, memory: u64) -> Range<usize> {
        let (begin, mut expected) = (self.left.start, 0u64);
        let most = self.left.len().min(AHEAD * rayon::current_num_threads());
        let fits = |group: &usize| {
            expected = expected.saturating_add(bytes_of(self.file.group(*group)));
            expected <= memory
        };
        let count = (begin..begin + most).take_while(fits).count();
        self.left.start += count;
        begin..begin + count
    }
}

impl ParquetFile {
    fn group(&self, group: usize) -> &RowGroupMetaData {
        self.metadata.metadata().row_group(group)
    }

    /// All batches of a column of a group, whose bytes are read at once.
    fn read(&self, group: usize, column: usize) -> Result<Vec<RecordBatch>, Error> {
        self.source.decoding(|| {
            let schema = self.metadata.parquet_schema();
            let leaves = self.group(group).columns().iter().enumerate();
            let leaves = leaves.filter(|(leaf, _)| schema.get_column_root_idx(*leaf) == column);
            // Panics where an offset or a length is negative.
            let (begin, end) =
                leaves.map(|(_, leaf)| leaf.byte_range()).fold((u64::MAX, 0), |(begin, end), (offset, length)| {
                    (begin.min(offset), end.max(offset.saturating_add(length)))
                });
            let window = (begin < end).then(|| bytes_at(&self.source.input, begin, end - begin)).transpose()?;
            let window = window.map(|bytes| (begin, Bytes::from(bytes)));
            let builder = self.builder(Source { window, ..self.source.clone() }, group, ROWS);
            let reader = builder.with_projection(ProjectionMask::roots(schema, [column])).build()?;
            Ok(reader.collect::<Result<_, _>>()?)
        })
    }

    /// The batches of a group, from those of each of its columns.
    fn joined(&self, columns: Vec<Vec<RecordBatch>>) -> Result<Vec<RecordBatch>, Error> {
        let count = columns.first().map_or(0, Vec::len);
        if columns.iter().any(|batches| batches.len() != count) {
            return Err("has columns of different lengths in a row group".into());
        }
        let batch = |i: usize| {
            let arrays = columns.iter().map(|batches| batches[i].column(0).clone()).collect();
            Ok(RecordBatch::try_new(self.metadata.schema().clone(), arrays)?)
        };
        (0..count).map(batch).collect()
    }

    /// The reader of all columns of a group, in batches of `rows` rows.
    fn builder(&self, source: Source, group: usize, rows: usize) -> ParquetRecordBatchReaderBuilder<Source> {
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(source, self.metadata.clone());
        builder.with_row_groups(vec![group]).with_batch_size(rows)
    }
}

/// The schema of a file with the time zones of timestamps in seconds. Parquet stores these in milliseconds, and the
/// library ignores the time zone that a writer names for another unit. `None` if no zone is missing.
fn schema_with_zones(metadata: &ArrowReaderMetadata) -> Option<SchemaRef> {
    let entries = metadata.metadata().file_metadata().key_value_metadata()?;
    let entry = entries.iter().find(|entry| entry.key == ARROW_SCHEMA_META_KEY)?;
    let bytes = BASE64_STANDARD.decode(entry.value.as_ref()?).ok()?;
    // A marker and a length precede the message.
    let message = arrow_ipc::root_as_message(bytes.get(8..)?).ok()?;
    let written = try_fb_to_schema(message.header_as_schema()?).ok()?;
    let mut is_changed = false;
    let fields = metadata.schema().fields().iter().map(|field| {
        let written = written.field_with_name(field.name()).map(Field::data_type);
        match (field.data_type(), written) {
            (DataType::Timestamp(unit, Some(_)), Ok(DataType::Timestamp(TimeUnit::Second, zone @ Some(_)))) => {
                is_changed = true;
                Field::clone(field).with_data_type(DataType::Timestamp(*unit, zone.clone()))
            }
            _ => Field::clone(field),
        }
    });
    let fields: Vec<_> = fields.collect();
    is_changed.then(|| Arc::new(Schema::new_with_metadata(fields, metadata.schema().metadata().clone())))
}

/// Bytes of the values of a group. Dictionaries and runs may make them more in memory.
fn bytes_of(group: &RowGroupMetaData) -> u64 {
    let by_rows = group.num_rows().saturating_mul(8 * group.num_columns() as i64);
    u64::try_from(group.total_byte_size().max(by_rows)).unwrap_or(0)
}

/// The bytes of a file, of which a window may be in memory.
#[derive(Clone, Debug)]
struct Source {
    input: Arc<Input>,
    window: Option<(u64, Bytes)>,
}

impl Source {
    fn decoding<T>(&self, decode: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        super::decoding(self.input.path(), Format::Parquet, decode)
    }

    /// `length` bytes from `begin` on.
    fn get(&self, begin: u64, length: usize) -> io::Result<Bytes> {
        if let Some((offset, bytes)) = &self.window
            && let Some(from) = begin.checked_sub(*offset)
            && from + length as u64 <= bytes.len() as u64
        {
            return Ok(bytes.slice(from as usize..from as usize + length));
        }
        bytes_at(&self.input, begin, length as u64).map(Bytes::from)
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.input.length().unwrap_or(0)
    }
}

impl ChunkReader for Source {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::new(From { source: self.clone(), position: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        Ok(self.get(start, length)?)
    }
}

/// The bytes of a file from a position on.
#[derive(Debug)]
struct From {
    source: Source,
    position: u64,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.source.len().saturating_sub(self.position);
        let count = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        buffer[..count].copy_from_slice(&self.source.get(self.position, count)?);
        self.position += count as u64;
        Ok(count)
    }
}
