//! Parquet files: the columns of a row group are gathered and encoded by all threads.

use super::{Error, Sink};
use crate::spec::Compression;
use crate::table::{Chunk, Dictionaries};
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
use std::sync::Arc;

/// The most rows of a row group, as by other writers.
const MOST_ROWS: u64 = 1 << 20;
/// The least rows of a row group.
const LEAST_ROWS: u64 = 1 << 10;
/// Rows that a thread gathers and encodes at once: few enough to stay in its cache.
const BLOCK: usize = 1 << 14;

/// An error if a table with this schema cannot be written.
pub fn check(schema: &Schema, compression: Option<Compression>) -> Result<(), ParquetError> {
    codec(compression);
    ArrowSchemaConverter::new().convert(schema).map(drop)
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
    /// The number of row groups before it.
    groups: usize,
    /// The rows of a full group.
    rows: usize,
}

/// A row group that is being filled: the writers of the leaves of each column.
struct Group {
    columns: Vec<Vec<ArrowColumnWriter>>,
    rows: usize,
}

impl GroupWriter {
    /// Starts to write a file whose row groups have at most `rows` rows.
    pub fn begin(
        sink: BufWriter<Sink>,
        schema: &SchemaRef,
        compression: Option<Compression>,
        rows: u64,
    ) -> Result<Self, ParquetError> {
        let metadata = schema.metadata().iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
        let properties = WriterProperties::builder()
            .set_compression(codec(compression))
            .set_created_by(concat!("gmerge version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(metadata))
            .build();
        let options = ArrowWriterOptions::new().with_properties(properties);
        let writer = ArrowWriter::try_new_with_options(sink, schema.clone(), options)?;
        let (writer, factory) = writer.into_serialized_writer()?;
        let rows = rows.clamp(LEAST_ROWS, MOST_ROWS) as usize;
        Ok(Self { writer, factory, schema: schema.clone(), group: None, groups: 0, rows })
    }

    /// Writes the rows of `chunk` in the order of `order`.
    pub fn write(&mut self, chunk: &Chunk, mut order: &[u32], dictionaries: &Dictionaries) -> Result<(), Error> {
        while !order.is_empty() {
            // As many groups at once as keep all threads busy.
            let at_once = rayon::current_num_threads().div_ceil(self.schema.fields().len().max(1));
            let mut groups = Vec::new();
            while groups.len() < at_once && !order.is_empty() {
                let group = match self.group.take() {
                    Some(group) => group,
                    None => self.new_group(groups.len())?,
                };
                let (part, rest) = order.split_at(order.len().min(self.rows - group.rows));
                groups.push((group, chunk.places(part)));
                order = rest;
            }
            let filled = fill(groups, chunk, dictionaries)?;
            for group in filled {
                if group.rows < self.rows {
                    self.group = Some(group);
                } else {
                    self.end_group(group)?;
                }
            }
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

    /// Writes a group to the file.
    fn end_group(&mut self, group: Group) -> Result<(), ParquetError> {
        let writers: Vec<ArrowColumnWriter> = group.columns.into_iter().flatten().collect();
        let chunks: Vec<Result<ArrowColumnChunk, _>> = parallel::map(writers, ArrowColumnWriter::close);
        let mut writer = self.writer.next_row_group()?;
        chunks.into_iter().try_for_each(|chunk| chunk?.append_to_row_group(&mut writer))?;
        writer.close()?;
        self.groups += 1;
        Ok(())
    }

    /// Writes the last group and the footer.
    pub fn finish(mut self) -> Result<BufWriter<Sink>, Error> {
        if let Some(group) = self.group.take() {
            self.end_group(group)?;
        }
        Ok(self.writer.into_inner()?)
    }
}

/// Adds the rows at some places in `chunk` to each group. All columns of all groups are encoded at the same time.
fn fill(
    groups: Vec<(Group, Vec<(usize, usize)>)>,
    chunk: &Chunk,
    dictionaries: &Dictionaries,
) -> Result<Vec<Group>, Error> {
    let (mut tasks, mut shapes) = (Vec::new(), Vec::new());
    for (Group { columns, rows }, places) in groups {
        shapes.push((columns.len(), rows + places.len()));
        let places = Arc::new(places);
        tasks.extend(columns.into_iter().enumerate().map(|(column, writers)| (column, writers, places.clone())));
    }
    let encoded = parallel::map(tasks, |(column, mut writers, places)| {
        let field = dictionaries.schema().field(column);
        for places in places.chunks(BLOCK) {
            let array = dictionaries.restored(column, chunk.gather(column, places)?)?;
            let leaves = compute_leaves(field, &array)?;
            writers.iter_mut().zip(&leaves).try_for_each(|(writer, leaf)| writer.write(leaf))?;
        }
        Ok::<_, Error>(writers)
    });
    let mut encoded = encoded.into_iter();
    let group = |(count, rows): (usize, usize)| {
        Ok(Group { columns: encoded.by_ref().take(count).collect::<Result<_, Error>>()?, rows })
    };
    shapes.into_iter().map(group).collect()
}
