//! Parquet files: the columns of a row group are gathered and encoded by all threads, while the row group before it is
//! written.

use super::{Error, Sink};
use crate::say::error::{Failure, shortened};
use crate::spec::Compression;
use crate::table::parquet_types::stored_type;
use crate::table::{Chunk, Dictionaries, failure};
use arrow_schema::{Schema, SchemaRef};
use merge_host::parallel;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriter, ArrowWriterOptions, compute_leaves,
};
use parquet::basic::{Compression as Codec, GzipLevel, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use std::io::BufWriter;
use std::mem;
use std::path::Path;
use std::sync::Arc;

/// The most rows of a row group, as by other writers.
const MOST_ROWS: u64 = 1 << 20;
/// The least rows of a row group.
const LEAST_ROWS: u64 = 1 << 10;
/// Rows that a thread gathers and encodes at once: few enough to stay in its cache.
const BLOCK: usize = 1 << 14;

/// An error if a table with this schema cannot be written to `path`.
pub fn check(path: &Path, schema: &Schema) -> crate::say::error::Result<()> {
    // The library panics at a union.
    if let Some(column) = schema.fields().iter().find(|column| stored_type(column.data_type()).is_none()) {
        let name = shortened(column.name());
        return Err(Failure::file(
            path,
            format!("column {name:?} has a union, and Parquet has none: write an Arrow file"),
        ));
    }
    ArrowSchemaConverter::new().convert(schema).map(drop).map_err(|error| failure(path, &error))
}

/// The codec of a compression.
fn codec(compression: Option<Compression>) -> Codec {
    match compression {
        Some(Compression::None) => Codec::UNCOMPRESSED,
        None | Some(Compression::Snappy) => Codec::SNAPPY,
        Some(Compression::Lz4) => Codec::LZ4_RAW,
        Some(Compression::Zstd) => Codec::ZSTD(ZstdLevel::default()),
        Some(Compression::Gzip) => Codec::GZIP(GzipLevel::default()),
    }
}

/// A file that is written row group by row group.
pub struct GroupWriter {
    writer: SerializedFileWriter<BufWriter<Sink>>,
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    /// The row group that is not yet full.
    group: Option<Group>,
    /// Full row groups before it, which are not yet written.
    full: Vec<FullGroup>,
    /// The number of row groups before `group`.
    groups: usize,
    /// The rows of a full group.
    rows: usize,
}

/// A row group that is being filled: the writers of the leaves of each column.
struct Group {
    columns: Vec<Vec<ArrowColumnWriter>>,
    rows: usize,
}

/// The encoded leaves of all columns.
type FullGroup = Vec<ArrowColumnChunk>;

/// A column of a row group after rows were added to it.
enum Filled {
    Part(Vec<ArrowColumnWriter>),
    Full(Vec<ArrowColumnChunk>),
}

impl GroupWriter {
    /// Starts to write a file whose row groups have at most `rows` rows. `has_repeats` tells which columns may get a
    /// dictionary.
    pub fn begin(
        sink: BufWriter<Sink>,
        schema: &SchemaRef,
        compression: Option<Compression>,
        has_repeats: &[bool],
        rows: u64,
    ) -> Result<Self, ParquetError> {
        let metadata = schema.metadata().iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
        let mut properties = WriterProperties::builder()
            .set_compression(codec(compression))
            .set_created_by(concat!("gmerge version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(metadata));
        // The values of a dictionary that becomes too large would be encoded twice.
        let columns = ArrowSchemaConverter::new().convert(schema)?;
        for (leaf, column) in columns.columns().iter().enumerate() {
            let may_repeat = has_repeats.get(columns.get_column_root_idx(leaf)).is_none_or(|&repeats| repeats);
            properties = properties.set_column_dictionary_enabled(column.path().clone(), may_repeat);
        }
        let options = ArrowWriterOptions::new().with_properties(properties.build());
        let writer = ArrowWriter::try_new_with_options(sink, schema.clone(), options)?;
        let (writer, factory) = writer.into_serialized_writer()?;
        let rows = rows.clamp(LEAST_ROWS, MOST_ROWS) as usize;
        Ok(Self { writer, factory, schema: schema.clone(), group: None, full: Vec::new(), groups: 0, rows })
    }

    /// Writes the rows of `chunk` in the order of `order`.
    pub fn write(&mut self, chunk: &Chunk, mut order: &[u32], dictionaries: &Dictionaries) -> Result<(), Error> {
        while !order.is_empty() {
            // As many groups at once as keep all threads busy.
            let at_once = rayon::current_num_threads().div_ceil(self.schema.fields().len().max(1));
            let mut parts = Vec::new();
            while parts.len() < at_once && !order.is_empty() {
                let group = match self.group.take() {
                    Some(group) => group,
                    None => self.new_group(parts.len())?,
                };
                let (part, rest) = order.split_at(order.len().min(self.rows - group.rows));
                parts.push((group, part));
                order = rest;
            }
            let (full, most) = (mem::take(&mut self.full), self.rows);
            let fill = || fill(parts, chunk, dictionaries, most);
            let (written, filled) = parallel::join(|| write_groups(&mut self.writer, full), fill);
            written?;
            (self.full, self.group) = filled?;
            self.groups += self.full.len();
        }
        Ok(())
    }

    /// An empty group, after `open` groups that are still open.
    fn new_group(&self, open: usize) -> Result<Group, ParquetError> {
        let mut columns: Vec<_> = self.schema.fields().iter().map(|_| Vec::new()).collect();
        let leaves = self.factory.create_column_writers(self.groups + open)?;
        for (leaf, writer) in leaves.into_iter().enumerate() {
            columns[self.writer.schema_descr().get_column_root_idx(leaf)].push(writer);
        }
        Ok(Group { columns, rows: 0 })
    }

    /// Writes the last groups and the footer.
    pub fn finish(mut self) -> Result<BufWriter<Sink>, Error> {
        let writers = self.group.take().map(|group| group.columns.into_iter().flatten().collect::<Vec<_>>());
        let last = writers.map(|writers| parallel::map(writers, ArrowColumnWriter::close).into_iter().collect());
        self.full.extend(last.transpose()?);
        write_groups(&mut self.writer, self.full)?;
        Ok(self.writer.into_inner()?)
    }
}

/// Writes full groups to the file.
fn write_groups(
    writer: &mut SerializedFileWriter<BufWriter<Sink>>,
    groups: Vec<FullGroup>,
) -> Result<(), ParquetError> {
    for group in groups {
        let mut writer = writer.next_row_group()?;
        group.into_iter().try_for_each(|chunk| chunk.append_to_row_group(&mut writer))?;
        writer.close()?;
    }
    Ok(())
}

/// Adds rows of `chunk` to each group, which is full with `most` rows. All columns of all groups are encoded at the
/// same time. Returns the full groups, and the last one if it is not full.
fn fill(
    groups: Vec<(Group, &[u32])>,
    chunk: &Chunk,
    dictionaries: &Dictionaries,
    most: usize,
) -> Result<(Vec<FullGroup>, Option<Group>), Error> {
    let (mut tasks, mut shapes) = (Vec::new(), Vec::new());
    for (Group { columns, rows }, order) in groups {
        let (places, rows) = (Arc::new(chunk.places(order)), rows + order.len());
        shapes.push((columns.len(), rows));
        let with_places = |(column, writers)| (column, writers, places.clone(), rows == most);
        tasks.extend(columns.into_iter().enumerate().map(with_places));
    }
    let encoded = parallel::map(tasks, |(column, mut writers, places, is_full)| {
        let (field, values) = (dictionaries.schema().field(column), chunk.column(column));
        for places in places.chunks(BLOCK) {
            let array = dictionaries.restored(column, values.gather(places)?)?;
            let leaves = compute_leaves(field, &array)?;
            writers.iter_mut().zip(&leaves).try_for_each(|(writer, leaf)| writer.write(leaf))?;
        }
        if !is_full {
            return Ok::<_, Error>(Filled::Part(writers));
        }
        Ok(Filled::Full(writers.into_iter().map(ArrowColumnWriter::close).collect::<Result<_, _>>()?))
    });
    let mut encoded = encoded.into_iter();
    let (mut full, mut part) = (Vec::new(), None);
    for (count, rows) in shapes {
        let (mut chunks, mut columns) = (Vec::new(), Vec::new());
        for column in encoded.by_ref().take(count) {
            match column? {
                Filled::Full(leaves) => chunks.extend(leaves),
                Filled::Part(writers) => columns.push(writers),
            }
        }
        if rows == most { full.push(chunks) } else { part = Some(Group { columns, rows }) }
    }
    Ok((full, part))
}
