//! Reading tables: regular files by all threads, and streams in order.

mod arrow;
#[cfg(feature = "parquet")]
mod parquet;

use super::parquet_types::{stored_batch, stored_schema};
use super::{bytes_of, carried, failure_of};
use crate::file::Input;
use crate::format::Format;
use crate::say::error::{Failure, Result};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::cell::Cell;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most rows of a batch: enough to hide the overhead of a batch, and few enough to divide work among threads.
const ROWS: usize = 1 << 16;
/// Batches or row groups for each thread that are read at once, if memory allows.
const AHEAD: usize = 2;

/// A table that is read from its first row to its last.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    format: Format,
    schema: SchemaRef,
    /// Bytes of the file, if it is regular.
    length: Option<u64>,
    kind: Kind,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a run has few tables")]
enum Kind {
    File(arrow::FileBatches),
    Stream(arrow::StreamBatches),
    #[cfg(feature = "parquet")]
    Parquet(parquet::Groups),
}

impl Reader {
    /// Opens `input`, which is a table in this format from its first byte to its last.
    pub fn open(input: Input, format: Format) -> Result<Self> {
        let (path, length) = (input.path().to_owned(), input.length());
        let opened = match format {
            Format::Parquet => Kind::open_parquet(input),
            Format::Arrow if input.is_regular() => {
                arrow::FileBatches::open(input).map(|(schema, batches)| (schema, Kind::File(batches)))
            }
            _ => arrow::StreamBatches::open(input, format).map(|(schema, batches)| (schema, Kind::Stream(batches))),
        };
        let (schema, kind) = opened.map_err(|error| unreadable(&path, format, error))?;
        Ok(Self { path, format, schema, length, kind })
    }

    /// Closes a regular file until it is read, so that more files can be inputs than can be open.
    pub fn close(&mut self) {
        match &mut self.kind {
            Kind::File(batches) => batches.close(),
            Kind::Stream(_) => {}
            #[cfg(feature = "parquet")]
            Kind::Parquet(groups) => groups.close(),
        }
    }

    /// The path as the user gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file, if it is regular.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Bytes that are read at once where parts of `part` bytes are asked for, or 0 if the parts can be as small. These
    /// are the bytes of the largest record batch of an Arrow file, or of a page of each column of a Parquet file. The
    /// batches of a stream are not known before: 0.
    pub fn largest_part(&self, part: u64) -> u64 {
        match &self.kind {
            Kind::File(batches) => batches.largest_part(part),
            Kind::Stream(_) => 0,
            #[cfg(feature = "parquet")]
            Kind::Parquet(groups) => groups.largest_part(part),
        }
    }

    /// Reads columns with the types that they have in a Parquet file.
    pub fn convert_to_parquet_types(&mut self) {
        self.schema = Arc::new(stored_schema(&self.schema));
    }

    /// The columns and the metadata.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batches with the bytes of each, of at most some `memory` bytes if they can be read apart. Empty at the
    /// end of the table.
    pub fn next(&mut self, memory: u64) -> Result<Vec<(RecordBatch, u64)>> {
        let batches = match &mut self.kind {
            Kind::File(batches) => batches.next(memory),
            Kind::Stream(batches) => batches.next(),
            #[cfg(feature = "parquet")]
            Kind::Parquet(groups) => groups.next(memory),
        };
        let unreadable = |error| unreadable(&self.path, self.format, error);
        let mut batches = batches.map_err(unreadable)?;
        for batch in batches.iter_mut().filter(|batch| batch.schema_ref().fields() != self.schema.fields()) {
            *batch = stored_batch(batch, &self.schema).map_err(|error| unreadable(error.into()))?;
        }
        Ok(batches.iter().flat_map(sliced).collect())
    }
}

impl Kind {
    #[cfg(feature = "parquet")]
    fn open_parquet(input: Input) -> std::result::Result<(SchemaRef, Self), Error> {
        let (schema, groups) = parquet::Groups::open(input)?;
        Ok((schema, Self::Parquet(groups)))
    }

    #[cfg(not(feature = "parquet"))]
    fn open_parquet(_input: Input) -> std::result::Result<(SchemaRef, Self), Error> {
        Err("this build of gmerge has no Parquet".into())
    }
}

/// The failure to read the file at `path` in a format.
fn unreadable(path: &Path, format: Format, error: Error) -> Failure {
    failure_of(path, &format!("{}: ", format.name()), &*error)
}

/// An error of a library that reads tables.
type Error = Box<dyn std::error::Error + Send + Sync>;

thread_local! {
    static DAMAGE: Cell<Option<Failure>> = const { Cell::new(None) };
}

/// The failure that a panic of this thread is, if it decodes a part of a table.
pub fn damage() -> Option<Failure> {
    DAMAGE.take()
}

/// Runs `decode`, which calls a library with bytes of the file at `path`. The libraries check most of what a file says,
/// and panic at the rest.
fn decoding<T>(
    path: &Path,
    format: Format,
    decode: impl FnOnce() -> std::result::Result<T, Error>,
) -> std::result::Result<T, Error> {
    DAMAGE.set(Some(unreadable(path, format, "is damaged: its parts contradict each other".into())));
    let decoded = decode();
    DAMAGE.set(None);
    decoded
}

/// A batch in slices of up to [`ROWS`] rows, with the bytes of each.
fn sliced(batch: &RecordBatch) -> impl Iterator<Item = (RecordBatch, u64)> {
    let rows = batch.num_rows();
    let row = bytes_of(batch) / rows.max(1) as u64;
    (0..rows).step_by(ROWS).map(move |begin| {
        let count = ROWS.min(rows - begin);
        (batch.slice(begin, count), row * count as u64)
    })
}

/// A reader of the bytes of an input in order.
#[derive(Debug)]
struct InOrder(Input);

impl Read for InOrder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(carried)
    }
}

/// `length` bytes of a regular file from `begin` on.
fn bytes_at(input: &Input, begin: u64, length: u64) -> io::Result<Vec<u8>> {
    let file = input.length().unwrap_or(0);
    if begin.checked_add(length).is_none_or(|end| end > file) {
        let path = input.path();
        let message = format!("expected {length} bytes at byte {begin}, and the file has {file}: is it complete?");
        return Err(carried(Failure::file(path, message)));
    }
    let mut bytes = crate::os::memory::zeroed::<u8>(length, "a part of the table").map_err(carried)?;
    input.read_at(begin, &mut bytes).map_err(carried)?;
    Ok(bytes)
}
