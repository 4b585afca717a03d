//! Writing files and streams.

use super::flatbuffer::{Fields, Value, encode};
use super::{CONTINUATION, Column, FILE_HEAD, MAGIC, MESSAGE_HEAD};
use crate::format::Format;
use std::io::{self, Write};

/// Bodies begin at a multiple of this many bytes in a file, as Arrow recommends.
const ALIGNMENT: usize = 64;
/// The most bytes of keys in a record batch.
const BATCH: usize = 16 << 20;
/// `MetadataVersion` V5.
const VERSION: (usize, Value) = (0, Value::I16(4));
/// The end of a stream: a message without metadata.
const END: [u8; MESSAGE_HEAD] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Bytes after the keys of a record batch, up to the next one.
fn batch_padding(length: usize) -> usize {
    length.next_multiple_of(ALIGNMENT) - length
}

/// The metadata of a message: its kind in the union `MessageHeader`, its table, and the length of its body in bytes.
fn message(kind: u8, header: Fields, body: i64) -> Vec<u8> {
    encode(&vec![VERSION, (1, Value::U8(kind)), (2, Value::Table(header)), (3, Value::I64(body))])
}

/// Appends a message without its body, and aligns the body.
fn push_message(bytes: &mut Vec<u8>, metadata: &[u8]) {
    let end = (bytes.len() + MESSAGE_HEAD + metadata.len()).next_multiple_of(ALIGNMENT);
    let length = end - bytes.len() - MESSAGE_HEAD;
    bytes.extend(CONTINUATION);
    bytes.extend((length as i32).to_le_bytes());
    bytes.extend(metadata);
    bytes.resize(end, 0);
}

/// Writes keys as record batches, in order, to a file or a stream.
#[derive(Debug)]
pub struct Writer<W> {
    writer: W,
    format: Format,
    column: Column,
    /// Bytes written so far.
    offset: u64,
    /// The offset of each record batch and the bytes of its keys. Only a file needs them.
    batches: Vec<(u64, usize)>,
}

impl<W: Write> Writer<W> {
    /// Starts to write a file, [`Format::Arrow`], or a stream, [`Format::Arrows`]. The bytes before the first record
    /// batch are a multiple of 64.
    pub fn begin(writer: W, format: Format, column: &Column) -> io::Result<Self> {
        let mut head = Vec::new();
        if format == Format::Arrow {
            head.extend(MAGIC);
            head.resize(FILE_HEAD, 0);
        }
        push_message(&mut head, &message(1, column.schema(), 0));
        let mut this = Self { writer, format, column: column.clone(), offset: 0, batches: Vec::new() };
        this.write_all(&head)?;
        Ok(this)
    }

    /// Writes the bytes of whole keys, little endian.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        bytes.chunks(BATCH).try_for_each(|bytes| self.write_batch(bytes))
    }

    fn write_batch(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.format == Format::Arrow {
            self.batches.push((self.offset, bytes.len()));
        }
        self.write_all(&self.batch_head(bytes.len()))?;
        self.write_all(bytes)?;
        self.write_all(&[0; ALIGNMENT][..batch_padding(bytes.len())])
    }

    /// The message of a record batch, whose body of `length` bytes of keys follows. Every batch has a message of the
    /// same size, a multiple of 64 bytes.
    fn batch_head(&self, length: usize) -> Vec<u8> {
        let count = (length / self.column.key_type().size()) as i64;
        let structs = |numbers: &[i64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let batch = vec![
            (0, Value::I64(count)),
            // The number of keys and the number of nulls.
            (1, Value::Structs(structs(&[count, 0]), 1)),
            // Offsets in the body and lengths of two buffers: an empty bitmap of nulls, and the numbers.
            (2, Value::Structs(structs(&[0, 0, 0, length as i64]), 2)),
        ];
        let mut head = Vec::new();
        push_message(&mut head, &message(3, batch, (length + batch_padding(length)) as i64));
        head
    }

    /// Writes the bytes after the last keys.
    pub fn finish(&mut self) -> io::Result<()> {
        let footer = if self.format == Format::Arrow { self.footer()? } else { Vec::new() };
        self.write_all(&END)?;
        self.write_all(&footer)?;
        self.writer.flush()
    }

    /// The bytes of a file after the end of its stream.
    fn footer(&self) -> io::Result<Vec<u8>> {
        let head = self.batch_head(0).len() as i64;
        let block = |&(offset, length): &(u64, usize)| [offset as i64, head, (length + batch_padding(length)) as i64];
        let blocks: Vec<u8> = self.batches.iter().flat_map(block).flat_map(i64::to_le_bytes).collect();
        let footer = encode(&vec![
            VERSION,
            (1, Value::Table(self.column.schema())),
            (2, Value::Structs(Vec::new(), 0)),
            (3, Value::Structs(blocks, self.batches.len())),
        ]);
        let length = i32::try_from(footer.len());
        let length = length.map_err(|_| io::Error::other("too many record batches for an Arrow file"))?;
        Ok([&footer[..], &length.to_le_bytes(), MAGIC].concat())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.offset += bytes.len() as u64;
        self.writer.write_all(bytes)
    }
}
