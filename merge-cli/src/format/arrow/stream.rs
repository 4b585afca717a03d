//! A stream or a file, read in order: its keys, without the messages around them.

use super::message::{Batch, parse_batch, parse_schema};
use super::{CONTINUATION, Column, FILE_HEAD, MAGIC, MAX_FOOTER, MAX_METADATA, MESSAGE_HEAD};
use crate::format::Format;
use crate::say::error::{Failure, Result};
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The most bytes of a file before its first message, which some writers align.
const MAX_FILE_HEAD: u64 = 64;

/// Bytes at the end of a file: the length of the footer, and [`MAGIC`].
pub(super) const TRAILER: usize = 10;

/// The messages of a stream.
#[derive(Debug)]
pub(super) struct Messages<R> {
    path: PathBuf,
    pub reader: R,
    /// Bytes read so far.
    pub offset: u64,
}

impl<R: Read> Messages<R> {
    /// Starts to read the stream at `path`, with its schema.
    pub fn begin(path: &Path, reader: R, format: Format) -> Result<(Self, Column)> {
        let mut messages = Self { path: path.to_owned(), reader, offset: 0 };
        let head = if format == Format::Arrow { messages.head_in_file()? } else { messages.up_to(MESSAGE_HEAD)? };
        let offset = messages.offset - head.len() as u64;
        let metadata = messages.metadata(&head)?.ok_or_else(|| messages.failure(offset, "expected a schema"))?;
        let column = parse_schema(&metadata).map_err(|error| messages.failure(offset, error))?;
        Ok((messages, column))
    }

    /// Reads the next record batch up to its body. `None` at the end of the stream. The end of the file also ends the
    /// stream.
    pub fn batch(&mut self, column: &Column) -> Result<Option<Batch>> {
        let offset = self.offset;
        let head = self.up_to(MESSAGE_HEAD)?;
        let Some(metadata) = self.metadata(&head)? else { return Ok(None) };
        let batch = parse_batch(&metadata, column.key_type().size());
        batch.map(Some).map_err(|error| self.failure(offset, error))
    }

    /// Reads a file up to the metadata of its first message. Returns the head of this message. Zeros before it are
    /// skipped.
    fn head_in_file(&mut self) -> Result<Vec<u8>> {
        self.bytes(FILE_HEAD)?;
        loop {
            let head = self.up_to(MESSAGE_HEAD)?;
            if head != [0; MESSAGE_HEAD] || self.offset > MAX_FILE_HEAD {
                return Ok(head);
            }
        }
    }

    /// Reads the metadata of a message after its first bytes. `None` at the end of the stream.
    fn metadata(&mut self, head: &[u8]) -> Result<Option<Vec<u8>>> {
        let offset = self.offset - head.len() as u64;
        let (continuation, length) = match *head {
            [] => return Ok(None),
            [a, b, c, d, e, f, g, h] => ([a, b, c, d], i32::from_le_bytes([e, f, g, h])),
            _ => return Err(self.ends_early()),
        };
        if continuation != CONTINUATION {
            let found = head.escape_ascii();
            return Err(self.failure(offset, format!("expected a message, found \"{found}\"")));
        }
        match usize::try_from(length) {
            Ok(0) => Ok(None),
            Ok(length) if length <= MAX_METADATA => self.bytes(length).map(Some),
            _ => {
                let message = format!("a message with {length} bytes of metadata, expected at most {MAX_METADATA}");
                Err(self.failure(offset, message))
            }
        }
    }

    /// The next `count` bytes. An error if the file ends before.
    fn bytes(&mut self, count: usize) -> Result<Vec<u8>> {
        let bytes = self.up_to(count)?;
        if bytes.len() == count { Ok(bytes) } else { Err(self.ends_early()) }
    }

    /// The next `count` bytes, or fewer at the end of the file. Memory is allocated as bytes arrive.
    fn up_to(&mut self, count: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let result = self.reader.by_ref().take(count as u64).read_to_end(&mut bytes);
        result.map_err(|error| Failure::io(&self.path, &error))?;
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    /// Skips `count` bytes. An error if the file ends before.
    fn skip(&mut self, count: u64) -> Result<()> {
        if self.drain(count)? == count { Ok(()) } else { Err(self.ends_early()) }
    }

    /// Skips up to `count` bytes, and returns their number.
    fn drain(&mut self, count: u64) -> Result<u64> {
        let result = io::copy(&mut self.reader.by_ref().take(count), &mut io::sink());
        let drained = result.map_err(|error| Failure::io(&self.path, &error))?;
        self.offset += drained;
        Ok(drained)
    }

    fn ends_early(&self) -> Failure {
        self.failure(self.offset, "ends within a message: is it complete?")
    }

    /// The error of a file that continues after the end of the stream.
    pub fn goes_on(&self, offset: u64) -> Failure {
        self.failure(offset, "bytes follow the end of the stream, expected one stream")
    }

    pub fn failure(&self, offset: u64, message: impl fmt::Display) -> Failure {
        failure(&self.path, Format::Arrows, offset, message)
    }
}

/// An error about the file or the stream at `path`.
pub(super) fn failure(path: &Path, format: Format, offset: u64, message: impl fmt::Display) -> Failure {
    let kind = if format == Format::Arrow { "file" } else { "stream" };
    Failure::file(path, format!("Arrow {kind}, at byte {offset}: {message}"))
}

/// Length of the footer of a file with this trailer, at most `most` bytes.
pub(super) fn footer_length(trailer: &[u8], most: u64) -> std::result::Result<usize, String> {
    let Some((length, MAGIC)) = trailer.split_first_chunk() else {
        let end = &trailer[trailer.len().saturating_sub(MAGIC.len())..];
        return Err(format!("ends with \"{}\", expected a footer: is it complete?", end.escape_ascii()));
    };
    let length = i32::from_le_bytes(*length);
    let footer = usize::try_from(length).ok().filter(|&length| length <= MAX_FOOTER && length as u64 <= most);
    footer.ok_or_else(|| format!("tells a footer of {length} bytes"))
}

/// The keys of a stream that cannot be read twice, such as a pipe.
///
/// It needs memory for the metadata of one message only. A file, in [`Format::Arrow`], is read as the stream in it. Its
/// footer only shows that the file is complete.
#[derive(Debug)]
pub struct Stream<R> {
    messages: Messages<R>,
    column: Column,
    format: Format,
    /// Unread bytes of keys in the batch.
    left: u64,
    /// Bytes of the batch's body after its keys.
    padding: u64,
    has_ended: bool,
}

impl<R: Read> Stream<R> {
    /// Reads the schema of the stream at `path`. `reader` gives all bytes of the stream.
    pub fn begin(path: &Path, reader: R, format: Format) -> Result<Self> {
        let (messages, column) = Messages::begin(path, reader, format)?;
        Ok(Self { messages, column, format, left: 0, padding: 0, has_ended: false })
    }

    /// The column.
    pub fn column(&self) -> &Column {
        &self.column
    }

    /// Fills `bytes` with the bytes of the next keys. Returns their number, which is less than `bytes.len()` only at
    /// the end.
    pub fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() && self.has_keys()? {
            let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len() - filled);
            let result = self.messages.reader.read_exact(&mut bytes[filled..][..count]);
            result.map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => self.messages.ends_early(),
                _ => Failure::io(&self.messages.path, &error),
            })?;
            self.messages.offset += count as u64;
            self.left -= count as u64;
            filled += count;
        }
        Ok(filled)
    }

    /// If the batch has no more keys, goes to the next batch with keys. Returns whether there is a batch with keys.
    pub fn has_keys(&mut self) -> Result<bool> {
        while self.left == 0 && !self.has_ended {
            self.messages.skip(self.padding)?;
            match self.messages.batch(&self.column)? {
                Some(Batch { numbers, body }) => {
                    self.messages.skip(numbers.begin)?;
                    self.left = numbers.length;
                    self.padding = body - numbers.begin - numbers.length;
                }
                None => self.end()?,
            }
        }
        Ok(self.left > 0)
    }

    /// Reads the bytes behind the last batch. A file must have its footer there, and a stream must end.
    fn end(&mut self) -> Result<()> {
        (self.has_ended, self.padding) = (true, 0);
        let end = self.messages.offset;
        if self.format == Format::Arrows {
            return if self.messages.drain(u64::MAX)? > 0 { Err(self.messages.goes_on(end)) } else { Ok(()) };
        }
        let rest = self.messages.up_to(MAX_FOOTER + TRAILER)?;
        let footer = rest.len().saturating_sub(TRAILER);
        let found = match self.messages.drain(u64::MAX)? {
            0 => footer_length(&rest[footer..], footer as u64),
            more => Err(format!("{} bytes follow, expected a footer", rest.len() as u64 + more)),
        };
        let failure = |message| failure(&self.messages.path, Format::Arrow, end + footer as u64, message);
        found.map(drop).map_err(failure)
    }
}
