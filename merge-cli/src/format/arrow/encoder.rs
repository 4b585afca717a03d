//! Writing files and streams. The numbers are written as they are, without a copy.

use super::{CONTINUATION, Column, FILE_HEAD, MAGIC, MESSAGE_HEAD};
use crate::format::Format;
use arrow_ipc::{
    Block, Buffer, FieldNode, Footer, FooterArgs, Message, MessageArgs, MessageHeader, MetadataVersion, RecordBatch,
    RecordBatchArgs,
};
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};
use std::io::{self, Write};

/// Bodies begin at a multiple of this many bytes in a file, as Arrow recommends.
const ALIGNMENT: usize = 64;
/// The most bytes of keys in a record batch.
const BATCH: usize = 16 << 20;
const VERSION: MetadataVersion = MetadataVersion::V5;
/// The end of a stream: a message without metadata.
const END: [u8; MESSAGE_HEAD] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Bytes after the keys of a record batch, up to the next one.
fn batch_padding(length: usize) -> usize {
    length.next_multiple_of(ALIGNMENT) - length
}

/// Appends a message to `bytes`, without its body of `body` bytes, which it aligns. `build` adds the header to the
/// metadata.
fn push_message(
    bytes: &mut Vec<u8>,
    kind: MessageHeader,
    body: usize,
    build: impl FnOnce(&mut FlatBufferBuilder) -> WIPOffset<UnionWIPOffset>,
) {
    let mut buffer = FlatBufferBuilder::new();
    let header = Some(build(&mut buffer));
    let message =
        MessageArgs { version: VERSION, header_type: kind, header, bodyLength: body as i64, custom_metadata: None };
    let message = Message::create(&mut buffer, &message);
    buffer.finish(message, None);
    let metadata = buffer.finished_data();
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
    /// The location of each record batch. Only a file needs them.
    batches: Vec<Block>,
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
        push_message(&mut head, MessageHeader::Schema, 0, |buffer| column.schema(buffer).as_union_value());
        let mut this = Self { writer, format, column: column.clone(), offset: 0, batches: Vec::new() };
        this.write_all(&head)?;
        Ok(this)
    }

    /// Writes the bytes of whole keys, little endian.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        bytes.chunks(BATCH).try_for_each(|bytes| self.write_batch(bytes))
    }

    fn write_batch(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (padding, mut head) = (batch_padding(bytes.len()), Vec::new());
        let (length, count) = (bytes.len() as i64, (bytes.len() / self.column.key_type().size()) as i64);
        push_message(&mut head, MessageHeader::RecordBatch, bytes.len() + padding, |buffer| {
            let nodes = Some(buffer.create_vector(&[FieldNode::new(count, 0)]));
            // An empty bitmap of nulls, and the numbers.
            let buffers = Some(buffer.create_vector(&[Buffer::new(0, 0), Buffer::new(0, length)]));
            let batch = RecordBatchArgs { length: count, nodes, buffers, ..RecordBatchArgs::default() };
            RecordBatch::create(buffer, &batch).as_union_value()
        });
        if self.format == Format::Arrow {
            self.batches.push(Block::new(self.offset as i64, head.len() as i32, length + padding as i64));
        }
        self.write_all(&head)?;
        self.write_all(bytes)?;
        self.write_all(&[0; ALIGNMENT][..padding])
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
        let mut buffer = FlatBufferBuilder::new();
        let schema = Some(self.column.schema(&mut buffer));
        let dictionaries = Some(buffer.create_vector::<Block>(&[]));
        let batches = Some(buffer.create_vector(&self.batches));
        let footer =
            FooterArgs { version: VERSION, schema, dictionaries, recordBatches: batches, custom_metadata: None };
        let footer = Footer::create(&mut buffer, &footer);
        buffer.finish(footer, None);
        let footer = buffer.finished_data();
        let length = i32::try_from(footer.len());
        let length = length.map_err(|_| io::Error::other("too many record batches for an Arrow file"))?;
        Ok([footer, &length.to_le_bytes(), MAGIC].concat())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.offset += bytes.len() as u64;
        self.writer.write_all(bytes)
    }
}
