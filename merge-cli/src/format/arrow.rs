//! Apache Arrow's IPC files with one column of numbers: where the numbers lie, and a writer.
//!
//! A file is record batches, and a footer that tells the column and where the batches are. The numbers of a batch lie in
//! one piece, as in a raw file, so that only what describes them is read here.

use super::Part;
use crate::error::{Failure, Result};
use crate::key_type::KeyType;
use arrow_array::{RecordBatch, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_ipc::reader::read_footer_length;
use arrow_ipc::writer::FileWriter;
use arrow_ipc::{Block, Endianness, convert, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use clap::ValueEnum;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Bytes of the end of a file: the footer's length and the magic bytes.
const TRAILER: u64 = 10;
/// Bytes of keys in a record batch that this program writes.
const BATCH: usize = 16 << 20;

/// A file's column, and what else its schema holds.
pub type Schema = SchemaRef;

/// Where a file's keys are.
#[derive(Debug)]
pub struct Layout {
    pub key_type: KeyType,
    pub parts: Vec<Part>,
    pub schema: Schema,
}

impl Layout {
    /// Reads the footer of the file at `path`, of `length` bytes, and the heads of its record batches.
    pub fn read(path: &Path, file: &File, length: u64) -> Result<Self> {
        let source = Source { path, file, length };
        let trailer_begin = length.saturating_sub(TRAILER);
        let trailer = source.bytes(trailer_begin, TRAILER)?;
        let trailer = trailer.try_into().map_err(|_| source.failure(trailer_begin, "has no footer"))?;
        let footer_length = read_footer_length(trailer).map_err(|error| source.failure(trailer_begin, &error))?;
        let Some(begin) = trailer_begin.checked_sub(footer_length as u64) else {
            return Err(source.failure(trailer_begin, &format!("tells a footer of {footer_length} bytes")));
        };
        let footer = source.bytes(begin, footer_length as u64)?;
        let footer = root_as_footer(&footer).map_err(|error| source.failure(begin, &error))?;

        let schema = footer.schema().ok_or_else(|| source.failure(begin, "has no schema"))?;
        if schema.endianness() != Endianness::Little {
            return Err(source.failure(begin, "is big endian, expected little endian"));
        }
        let schema = Arc::new(convert::try_fb_to_schema(schema).map_err(|error| source.failure(begin, &error))?);
        let [field] = &schema.fields()[..] else {
            let columns = schema.fields().len();
            return Err(source.failure(begin, &format!("has {columns} columns, expected one: save it by itself")));
        };
        let found = field.data_type();
        let key_type = KeyType::value_variants().iter().find(|key_type| data_type(**key_type).as_ref() == Some(found));
        let Some(&key_type) = key_type else {
            return Err(
                source.failure(begin, &format!("column {:?} is of type {found}, expected numbers", field.name()))
            );
        };
        let blocks = footer.recordBatches().into_iter().flatten();
        let parts = blocks.map(|block| source.part(block, key_type.size() as u64)).collect::<Result<_>>()?;
        Ok(Self { key_type, parts, schema })
    }
}

/// The file that a layout is read from.
struct Source<'a> {
    path: &'a Path,
    file: &'a File,
    length: u64,
}

impl Source<'_> {
    /// Bytes of the file, which must have them.
    fn bytes(&self, begin: u64, count: u64) -> Result<Vec<u8>> {
        if begin.checked_add(count).is_none_or(|end| end > self.length) {
            let length = self.length;
            return Err(self.failure(begin, &format!("expected {count} bytes more, and the file has {length}")));
        }
        let mut bytes = vec![0; count as usize];
        self.file.read_exact_at(&mut bytes, begin).map_err(|error| Failure::io(self.path, &error))?;
        Ok(bytes)
    }

    /// Where the numbers of a record batch lie, of `size` bytes each.
    fn part(&self, block: &Block, size: u64) -> Result<Part> {
        let (Ok(begin), Ok(length)) = (u64::try_from(block.offset()), u64::try_from(block.metaDataLength())) else {
            return Err(self.failure(0, "a record batch is nowhere in the file"));
        };
        let fail = |what: &str| self.failure(begin, &format!("the record batch {what}"));
        let head = self.bytes(begin, length)?;
        // The length of the message comes first, and before that a mark in newer files.
        let message = match &*head {
            [0xff, 0xff, 0xff, 0xff, _, _, _, _, message @ ..] | [_, _, _, _, message @ ..] => message,
            _ => return Err(fail("has no head")),
        };
        let message = root_as_message(message).map_err(|error| self.failure(begin, &error))?;
        let batch = message.header_as_record_batch().ok_or_else(|| fail("is none"))?;
        if batch.compression().is_some() {
            return Err(fail("is compressed, expected numbers as they are"));
        }
        let node = batch.nodes().and_then(|nodes| nodes.iter().next()).ok_or_else(|| fail("has no column"))?;
        if node.null_count() != 0 {
            return Err(fail(&format!("has {} nulls, expected none: drop or fill them", node.null_count())));
        }
        // The first buffer tells which numbers are null.
        let numbers =
            batch.buffers().and_then(|buffers| buffers.iter().nth(1)).ok_or_else(|| fail("has no numbers"))?;
        let count = u64::try_from(node.length()).ok();
        let part = count.and_then(|count| {
            let part = Part {
                begin: (begin + length).checked_add(u64::try_from(numbers.offset()).ok()?)?,
                length: count.checked_mul(size)?,
            };
            let fits = part.length <= u64::try_from(numbers.length()).ok()?;
            (fits && part.begin.checked_add(part.length)? <= self.length).then_some(part)
        });
        part.ok_or_else(|| fail(&format!("ends before its {} keys", node.length())))
    }

    fn failure(&self, offset: u64, what: &(impl fmt::Display + ?Sized)) -> Failure {
        // Some messages of the library have several lines.
        let what = what.to_string().replace('\n', " ");
        Failure::file(self.path, format!("Arrow file, at byte {offset}: {what}"))
    }
}

/// Arrow's type of keys. It has none for 16 bytes.
fn data_type(key_type: KeyType) -> Option<DataType> {
    Some(match key_type {
        KeyType::U8 => DataType::UInt8,
        KeyType::I8 => DataType::Int8,
        KeyType::U16 => DataType::UInt16,
        KeyType::I16 => DataType::Int16,
        KeyType::F16 => DataType::Float16,
        KeyType::U32 => DataType::UInt32,
        KeyType::I32 => DataType::Int32,
        KeyType::F32 => DataType::Float32,
        KeyType::U64 => DataType::UInt64,
        KeyType::I64 => DataType::Int64,
        KeyType::F64 => DataType::Float64,
        KeyType::U128 => return None,
    })
}

/// The schema of an output to `path`: that of the input, if it has one, or a column named "keys".
pub fn schema(path: &Path, input: Option<&Schema>, key_type: KeyType) -> Result<Schema> {
    let Some(data_type) = data_type(key_type) else {
        return Err(Failure::file(
            path,
            format!("Arrow has no type for {key_type} keys: write them with --format raw"),
        ));
    };
    match input {
        // Places of keys are of another type than the keys.
        Some(schema) if schema.field(0).data_type() == &data_type => Ok(schema.clone()),
        _ => Ok(Arc::new(arrow_schema::Schema::new(vec![Field::new("keys", data_type, false)]))),
    }
}

/// Writes keys as record batches.
pub struct Writer {
    writer: FileWriter<File>,
    schema: Schema,
    key_size: usize,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Writer {
    /// Starts to write to `file`, which is empty.
    pub fn begin(file: File, schema: Schema, key_type: KeyType) -> io::Result<Self> {
        let writer = FileWriter::try_new(file, &schema).map_err(io_error)?;
        Ok(Self { writer, schema, key_size: key_type.size() })
    }

    /// Writes the bytes of keys.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        bytes.chunks(BATCH).try_for_each(|bytes| self.write_batch(bytes)).map_err(io_error)
    }

    fn write_batch(&mut self, bytes: &[u8]) -> std::result::Result<(), ArrowError> {
        let column = ArrayData::builder(self.schema.field(0).data_type().clone());
        let column = column.len(bytes.len() / self.key_size).add_buffer(Buffer::from(bytes)).build()?;
        self.writer.write(&RecordBatch::try_new(self.schema.clone(), vec![make_array(column)])?)
    }

    /// Writes the footer.
    pub fn finish(&mut self) -> io::Result<()> {
        self.writer.finish().map_err(io_error)
    }
}

fn io_error(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => io::Error::other(error),
    }
}
