//! Arrow files and streams.

use super::{AHEAD, Error, InOrder, bytes_at, decoding};
use crate::file::Input;
use crate::format::{Format, arrow::MAGIC};
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::{FileDecoder, StreamReader, read_footer_length};
use arrow_ipc::{Block, root_as_footer};
use arrow_schema::SchemaRef;
use merge_host::parallel;
use std::collections::VecDeque;
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes at the end of a file: the length of the footer, and [`MAGIC`].
const TRAILER: u64 = 10;
/// The most bytes of a file before its first message.
const MAX_HEAD: usize = 64;
/// Bytes of a stream that are read at once.
const BUFFER: usize = 1 << 20;
/// The bytes of a compressed batch are multiplied by this for an estimate of its values.
const EXPANSION: u64 = 3;

/// The batches of a regular file, each at its own offset.
#[derive(Debug)]
pub struct FileBatches {
    input: Input,
    decoder: FileDecoder,
    blocks: VecDeque<Block>,
}

impl FileBatches {
    /// Reads the footer and the dictionaries.
    pub fn open(input: Input) -> Result<(SchemaRef, Self), Error> {
        let (schema, decoder, blocks) = decoding(input.path(), Format::Arrow, || Self::read_footer(&input))?;
        Ok((schema, Self { input, decoder, blocks }))
    }

    fn read_footer(input: &Input) -> Result<(SchemaRef, FileDecoder, VecDeque<Block>), Error> {
        let length = input.length().unwrap_or(0);
        let trailer = bytes_at(input, length.saturating_sub(TRAILER), TRAILER)?;
        let footer_length = read_footer_length(trailer.as_slice().try_into()?)? as u64;
        let begin = length.checked_sub(TRAILER + footer_length).ok_or("tells a footer longer than the file")?;
        let footer = bytes_at(input, begin, footer_length)?;
        let footer = root_as_footer(&footer).map_err(|error| format!("footer: {error}"))?;
        let schema = footer.schema().ok_or("the footer has no schema")?;
        if !schema.endianness().equals_to_target_endianness() {
            return Err("is big endian, expected little endian".into());
        }
        let schema = Arc::new(arrow_ipc::convert::try_fb_to_schema(schema)?);
        let mut decoder = FileDecoder::new(schema.clone(), footer.version());
        for block in footer.dictionaries().iter().flatten() {
            decoder.read_dictionary(block, &bytes_of(input, block)?)?;
        }
        let blocks = footer.recordBatches().iter().flatten().copied().collect();
        Ok((schema, decoder, blocks))
    }

    /// Closes the file until it is read.
    pub fn close(&mut self) {
        self.input.close();
    }

    /// [`Reader::largest_part`](super::Reader::largest_part).
    pub fn largest_part(&self, part: u64) -> u64 {
        let bodies = self.blocks.iter().map(|block| u64::try_from(block.bodyLength()).unwrap_or(0));
        bodies.filter(|body| *body > part).max().unwrap_or(0)
    }

    /// The next batches, read and decoded by all threads. Batches without rows are skipped.
    pub fn next(&mut self, memory: u64) -> Result<Vec<RecordBatch>, Error> {
        loop {
            let blocks = self.blocks_within(memory);
            if blocks.is_empty() {
                return Ok(Vec::new());
            }
            let (input, decoder) = (&self.input, &self.decoder);
            let decoded = parallel::map(blocks, |block| {
                let bytes = bytes_of(input, &block)?;
                let batch = decoding(input.path(), Format::Arrow, || Ok(decoder.read_record_batch(&block, &bytes)?))?;
                Ok::<_, Error>(batch.ok_or("the footer lists a record batch that is none")?)
            });
            let batches = decoded.into_iter().collect::<Result<Vec<_>, _>>()?;
            if batches.iter().any(|batch| batch.num_rows() > 0) {
                return Ok(batches);
            }
        }
    }

    /// The next blocks whose values are estimated at `memory` bytes at most, a few for each thread. At least one, until
    /// the end.
    fn blocks_within(&mut self, memory: u64) -> Vec<Block> {
        let (mut blocks, mut expected) = (Vec::new(), 0u64);
        while let Some(block) = self.blocks.front() {
            let body = u64::try_from(block.bodyLength()).unwrap_or(0);
            expected = expected.saturating_add(EXPANSION.saturating_mul(body));
            if !blocks.is_empty() && (expected > memory || blocks.len() >= AHEAD * rayon::current_num_threads()) {
                break;
            }
            blocks.extend(self.blocks.pop_front());
        }
        blocks
    }
}

/// The bytes of a message of a file.
fn bytes_of(input: &Input, block: &Block) -> Result<Buffer, Error> {
    let unsigned = |number: i64| u64::try_from(number).map_err(|_| "the footer has a record batch outside the file");
    let (begin, metadata) = (unsigned(block.offset())?, unsigned(block.metaDataLength().into())?);
    let length = metadata.checked_add(unsigned(block.bodyLength())?).ok_or("the footer has a batch of 2^64 bytes")?;
    Ok(Buffer::from_vec(bytes_at(input, begin, length)?))
}

/// The batches of a stream, or of a file that is read as the stream in it.
#[derive(Debug)]
pub struct StreamBatches {
    path: PathBuf,
    reader: StreamReader<BufReader<Box<dyn Read + Send>>>,
    format: Format,
}

impl StreamBatches {
    /// Reads the schema.
    pub fn open(input: Input, format: Format) -> Result<(SchemaRef, Self), Error> {
        let path = input.path().to_owned();
        let mut bytes = InOrder(input);
        let head = if format == Format::Arrow { head(&mut bytes)? } else { Vec::new() };
        let bytes: Box<dyn Read + Send> = Box::new(std::io::Cursor::new(head).chain(bytes));
        let bytes = BufReader::with_capacity(BUFFER, bytes);
        let reader = decoding(&path, format, || Ok(StreamReader::try_new(bytes, None)?))?;
        Ok((reader.schema(), Self { path, reader, format }))
    }

    /// The next batch with rows.
    pub fn next(&mut self) -> Result<Vec<RecordBatch>, Error> {
        while let Some(batch) = decoding(&self.path, self.format, || Ok(self.reader.next().transpose()?))? {
            if batch.num_rows() > 0 {
                return Ok(vec![batch]);
            }
        }
        self.end()?;
        Ok(Vec::new())
    }

    /// Reads the bytes behind the last batch. A file must have its footer there, and a stream must end.
    fn end(&mut self) -> Result<(), Error> {
        let (mut rest, mut last) = (0, Vec::new());
        let mut buffer = [0; 1 << 12];
        loop {
            let count = self.reader.get_mut().read(&mut buffer)?;
            if count == 0 {
                break;
            }
            rest += count;
            last.extend_from_slice(&buffer[..count]);
            last.drain(..last.len().saturating_sub(MAGIC.len()));
        }
        match self.format {
            Format::Arrow if last != MAGIC => Err("ends without a footer: is it complete?".into()),
            Format::Arrows if rest > 0 => Err("bytes follow the end of the stream, expected one stream".into()),
            _ => Ok(()),
        }
    }
}

/// Skips the head of a file: [`MAGIC`] and zeros. Returns the bytes that were read behind it.
fn head(bytes: &mut InOrder) -> Result<Vec<u8>, Error> {
    for _ in 0..MAX_HEAD / 8 + 1 {
        let mut part = [0; 8];
        bytes.read_exact(&mut part)?;
        if part != [0; 8] && !part.starts_with(MAGIC) {
            return Ok(part.to_vec());
        }
    }
    Err("expected a message after its head".into())
}
