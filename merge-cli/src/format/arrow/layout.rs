//! The location of keys in a regular file.

use super::message::{Batch, DAMAGED, parse_batch, verifier};
use super::stream::{Messages, TRAILER, failure, footer_length};
use super::{Column, FILE_HEAD, MAX_FOOTER, MAX_METADATA};
use crate::format::{Format, Part, ReadAt};
use crate::say::error::{Failure, Result};
use arrow_ipc::{Block, root_as_footer_with_opts};
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The column of a file, and the location of its keys.
#[derive(Debug)]
pub struct Layout {
    pub column: Column,
    /// The keys of each record batch, in order.
    pub parts: Vec<Part>,
}

impl Layout {
    /// Reads the metadata of the regular file at `path`, of `length` bytes, which is an Arrow file or stream.
    ///
    /// # Errors
    ///
    /// One line that names the file and an offset in it, if the file is not one column of numbers, uncompressed and
    /// without nulls.
    pub fn read(path: &Path, file: &File, length: u64, format: Format) -> Result<Self> {
        match format {
            Format::Arrow => Footer { path, file, length }.layout(),
            _ => Self::of_stream(path, file, length),
        }
    }

    /// Reads a stream, message by message.
    fn of_stream(path: &Path, file: &File, length: u64) -> Result<Self> {
        let reader = ReadAt { file, position: 0 };
        let (mut messages, column) = Messages::begin(path, reader, Format::Arrows)?;
        let mut parts = Vec::new();
        loop {
            let offset = messages.offset;
            let Some(Batch { numbers, body }) = messages.batch(&column)? else { break };
            let begin = messages.offset;
            let Some(end) = begin.checked_add(body).filter(|&end| end <= length) else {
                let message = format!("the record batch has {body} bytes, and the stream ends at byte {length}");
                return Err(messages.failure(offset, message));
            };
            parts.push(Part { begin: begin + numbers.begin, length: numbers.length });
            (messages.offset, messages.reader.position) = (end, end);
        }
        if messages.offset < length {
            return Err(messages.goes_on(messages.offset));
        }
        Ok(Self { column, parts })
    }
}

/// An Arrow file, which is read from its end.
struct Footer<'a> {
    path: &'a Path,
    file: &'a File,
    length: u64,
}

impl Footer<'_> {
    fn layout(&self) -> Result<Layout> {
        let trailer_begin = self.length.saturating_sub(TRAILER as u64);
        let trailer = self.bytes(trailer_begin, TRAILER)?;
        let most = trailer_begin.saturating_sub(FILE_HEAD as u64);
        let footer_length = footer_length(&trailer, most).map_err(|message| self.failure(trailer_begin, message))?;
        let begin = trailer_begin - footer_length as u64;
        let footer = self.bytes(begin, footer_length)?;
        let footer = root_as_footer_with_opts(&verifier(MAX_FOOTER), &footer);
        let footer = footer.map_err(|_| self.failure(begin, DAMAGED))?;
        let schema = footer.schema().ok_or_else(|| self.failure(begin, "the footer has no schema"))?;
        let column = Column::parse(schema).map_err(|error| self.failure(begin, error))?;
        let blocks = footer.recordBatches().unwrap_or_default();
        let parts = blocks.iter().map(|block| self.part(block, begin, &column)).collect::<Result<_>>()?;
        Ok(Layout { column, parts })
    }

    /// The location of the keys of a block, which must end before `end`.
    fn part(&self, block: &Block, end: u64, column: &Column) -> Result<Part> {
        let (begin, length) = (u64::try_from(block.offset()), usize::try_from(block.metaDataLength()));
        let (Ok(begin), Ok(length)) = (begin, length) else {
            return Err(self.failure(end, "the footer has a record batch that is not in the file"));
        };
        if length > MAX_METADATA {
            return Err(self.failure(begin, format!("{length} bytes of metadata, expected at most {MAX_METADATA}")));
        }
        let metadata = self.bytes(begin, length)?;
        // The metadata follow their length. Since Arrow 0.15, a continuation precedes the length.
        let metadata = match &metadata[..] {
            [0xff, 0xff, 0xff, 0xff, _, _, _, _, metadata @ ..] | [_, _, _, _, metadata @ ..] => metadata,
            _ => return Err(self.failure(begin, "the record batch has no metadata")),
        };
        let batch = parse_batch(metadata, column.key_type().size());
        let Batch { numbers, body } = batch.map_err(|error| self.failure(begin, error))?;
        let body_begin = begin + length as u64;
        if body_begin.checked_add(body).is_none_or(|body_end| body_end > end) {
            return Err(
                self.failure(begin, format!("the record batch has {body} bytes, and the footer is at byte {end}"))
            );
        }
        Ok(Part { begin: body_begin + numbers.begin, length: numbers.length })
    }

    /// `count` bytes of the file. An error if the file is shorter.
    fn bytes(&self, begin: u64, count: usize) -> Result<Vec<u8>> {
        if begin.checked_add(count as u64).is_none_or(|end| end > self.length) {
            let length = self.length;
            return Err(self.failure(begin, format!("expected {count} bytes more, and the file has {length}")));
        }
        let mut bytes = vec![0; count];
        self.file.read_exact_at(&mut bytes, begin).map_err(|error| Failure::io(self.path, &error))?;
        Ok(bytes)
    }

    fn failure(&self, offset: u64, message: impl fmt::Display) -> Failure {
        failure(self.path, Format::Arrow, offset, message)
    }
}
