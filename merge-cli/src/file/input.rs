//! Reading keys, or the bytes of values, from a file with all threads, or from a pipe. Keys are encoded as they are
//! read.
//!
//! A file is read with pread(2) and not mapped: a mapped file that shrinks kills its reader. The length of the file
//! when it is opened is the length that is read. A file that shrinks later is an error. Bytes that are appended later
//! are not read.

use super::fortran::FortranOrder;
use super::identity::Identity;
use crate::coding::{Coding, Word};
use crate::format::npy::{self, Dtype, Purpose};
use crate::format::{self, Axis, Content, Format, Part, ReadAt, arrow};
use crate::os::{memory, standard};
use crate::say::error::{Failure, Result, name, os_message};
use crate::say::{progress, report};
use crate::spec::{Endian, KeyType};
use merge_host::parallel;
use std::fs::{File, Metadata};
use std::io::{self, Chain, Cursor, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Bytes that a thread reads at once: few calls, and keys that are still in its cache when they are encoded.
const BLOCK: usize = 1 << 20;
/// Keys to allocate first where the length is unknown.
const FIRST_CAPACITY: usize = 1 << 16;
/// Bytes to read at once where the length is unknown.
const PART: usize = 16 << 20;

/// A file of keys or of bytes of values, read in order.
#[derive(Debug)]
pub struct Input {
    path: PathBuf,
    file: Handle,
    /// Whether this is a regular file. A pipe or a device is read once, from its beginning to its end.
    is_regular: bool,
    /// Where the keys of a regular file lie.
    parts: Vec<Part>,
    /// Bytes of all keys, if a header or the length of the file gives them.
    length: Option<u64>,
    /// Bytes of the keys before the next key to read.
    position: u64,
    /// Bytes of a pipe that were read ahead.
    ahead: Cursor<Vec<u8>>,
    coding: Coding,
    /// Bytes of a value, if this is a file of values and the command line gives them.
    value_size: Option<usize>,
    header: Header,
    /// The order of the items, if it is not that in which they are read.
    order: Option<FortranOrder>,
    /// The keys of an Arrow stream that is read from a pipe, from the first read on.
    stream: Option<arrow::Stream<Chain<Cursor<Vec<u8>>, File>>>,
}

/// What a file says of its contents.
#[derive(Debug)]
enum Header {
    None,
    Npy(npy::Header),
    /// One column of numbers in Arrow's format.
    Arrow(Format, arrow::Column),
    /// A table in this format, and why it is no column of numbers.
    Table(Format, Failure),
}

impl Input {
    /// Opens the file at `path`, or standard input for `-`, to read its bytes unchanged.
    /// [`read_header`](Self::read_header) skips the header, if the file has one.
    pub fn open(path: &Path) -> Result<Self> {
        let failure = |error: &io::Error| Failure::io(path, error);
        let file = standard::open(path).map_err(|e| failure(&e))?;
        let metadata = file.metadata().map_err(|e| failure(&e))?;
        if metadata.is_dir() {
            return Err(Failure::file(path, "is a directory, expected a file to read"));
        }
        // Files such as those in /proc claim to be empty, and are not. Standard input may begin anywhere in a file.
        let is_empty = || file.read_at(&mut [0], 0).is_ok_and(|count| count == 0);
        let is_regular = metadata.is_file() && path != Path::new("-") && (metadata.len() > 0 || is_empty());
        progress::expect(is_regular.then_some(metadata.len()));
        match is_regular {
            true => report::verbose(format_args!("{}: {} bytes, read by all threads", name(path), metadata.len())),
            false => report::verbose(format_args!("{}: a stream, read to its end by one thread", name(path))),
        }
        Ok(Self::new(path, file, &metadata, is_regular))
    }

    /// An input that reads the bytes of `file` unchanged. The file was written as the output for `path`.
    pub fn of_output(path: &Path, file: File) -> Result<Self> {
        let metadata = file.metadata().map_err(|error| Failure::io(path, &error))?;
        Ok(Self::new(path, file, &metadata, true))
    }

    fn new(path: &Path, file: File, metadata: &Metadata, is_regular: bool) -> Self {
        let length = is_regular.then_some(metadata.len());
        Self {
            path: path.to_owned(),
            file: Handle::new(file, metadata),
            is_regular,
            parts: length.map(|length| Part { begin: 0, length }).into_iter().collect(),
            length,
            position: 0,
            ahead: Cursor::default(),
            coding: Coding::BYTES,
            value_size: None,
            header: Header::None,
            order: None,
            stream: None,
        }
    }

    /// The open file, opened again if it was [closed](Self::close).
    fn open_file(&self) -> Result<&File> {
        self.file.get(&self.path)
    }

    /// Closes a regular file until it is read again, so that more files can be inputs than can be open.
    pub fn close(&mut self) {
        if self.is_regular {
            self.file.close();
        }
    }

    /// Whether the file is open.
    pub fn is_open(&self) -> bool {
        self.file.is_open()
    }

    /// Detects the format by the first bytes, unless `format` gives it, and goes to the first key, value or offset.
    pub fn read_header(&mut self, format: Option<Format>, content: Content) -> Result<()> {
        // It may take long until the first bytes of a pipe arrive.
        progress::phase("read");
        let first = self.peek(format::PREFIX)?;
        let found = format::detect(&self.path, &first, format, content)?;
        let purpose = match content {
            Content::Values => Purpose::Values,
            Content::Keys { axis: Axis::Last, .. } => Purpose::Rows,
            Content::Keys { axis: Axis::First, .. } => Purpose::Columns,
            Content::Keys { axis: Axis::Only, .. } | Content::Offsets => Purpose::Keys,
        };
        match if found == Format::Parquet { self.parquet_or_raw(content)? } else { found } {
            Format::Npy => self.read_npy(purpose),
            _ if matches!(purpose, Purpose::Rows | Purpose::Columns) => {
                Err(Failure::file(&self.path, "is no .npy file, expected an array with rows for --rows and --axis"))
            }
            Format::Raw => Ok(()),
            found @ (Format::Arrow | Format::Arrows) => match self.read_arrow(found) {
                Err(failure) if matches!(content, Content::Keys { .. }) => {
                    self.header = Header::Table(found, failure);
                    Ok(())
                }
                read => read,
            },
            Format::Parquet => {
                let message = "is a Parquet file, which only `gmerge sort`, `merge` and `check` read, as a table";
                self.header = Header::Table(Format::Parquet, Failure::file(&self.path, message));
                if matches!(content, Content::Keys { .. }) { Ok(()) } else { self.check_is_no_table() }
            }
        }
    }

    /// The format of a file that begins like a Parquet file. Its end tells, because raw keys may begin like that, too.
    /// In a pipe, a type on the command line tells.
    fn parquet_or_raw(&self, content: Content) -> Result<Format> {
        let is_raw = match self.length {
            _ if Format::of_extension(&self.path) == Some(Format::Parquet) => false,
            Some(length) => {
                let mut end = [0; format::PARQUET.len()];
                self.read_at(length - end.len() as u64, &mut end)?;
                end != *format::PARQUET
            }
            None => matches!(content, Content::Keys { is_typed: true, .. }),
        };
        Ok(if is_raw { Format::Raw } else { Format::Parquet })
    }

    /// The format of a file of columns: a table, or one column of numbers in Arrow's format.
    pub fn table_format(&self) -> Option<Format> {
        match &self.header {
            Header::Arrow(format, _) | Header::Table(format, _) => Some(*format),
            Header::Npy(_) | Header::None => None,
        }
    }

    /// An error if the file is a table, and no column of numbers: the reason.
    pub fn check_is_no_table(&self) -> Result<()> {
        if let Header::Table(_, failure) = &self.header { Err(failure.clone()) } else { Ok(()) }
    }

    /// The same file with all of its bytes. Nothing has been read behind the header, which is read again.
    pub fn into_bytes(mut self) -> Result<Self> {
        if self.is_regular {
            let metadata = self.file.metadata(&self.path).map_err(|error| Failure::io(&self.path, &error))?;
            self.length = Some(metadata.len());
            self.parts = vec![Part { begin: 0, length: metadata.len() }];
        }
        Ok(Self { header: Header::None, coding: Coding::BYTES, position: 0, ..self })
    }

    /// Reads the first `count` bytes of a raw file. The keys begin after them.
    pub fn skip(&mut self, count: u64) -> Result<Vec<u8>> {
        if !matches!(self.header, Header::None) {
            let message = "has a header of its own by its format, expected a raw file with --skip";
            return Err(Failure::file(&self.path, message));
        }
        let path = self.path.clone();
        let too_short = |found: u64| {
            Failure::file(&path, format!("has {found} bytes, expected at least {count}, the header by --skip"))
        };
        let rest = self.length.map(|length| length.checked_sub(count).ok_or_else(|| too_short(length))).transpose()?;
        let mut bytes = memory::zeroed::<u8>(count, "the header by --skip")?;
        // A read of several blocks would start threads, and their number is not known yet.
        let mut read = 0;
        for block in bytes.chunks_mut(BLOCK) {
            read += self.read(block)? as u64;
        }
        if read < count {
            return Err(too_short(read));
        }
        if let Some(length) = rest {
            (self.parts, self.length) = (vec![Part { begin: count, length }], rest);
        }
        self.position = 0;
        Ok(bytes)
    }

    /// Encodes all keys from now on by `coding`.
    pub fn set_coding(&mut self, coding: Coding) {
        self.coding = coding;
    }

    /// How keys are encoded.
    pub fn coding(&self) -> Coding {
        self.coding
    }

    /// Sets the number of bytes of a value. An error if a value is no whole number of the items in the header.
    pub fn set_value_size(&mut self, bytes: usize) -> Result<()> {
        let item = self.rows().map_or(1, |rows| rows.bytes()).max(1);
        if !(bytes as u64).is_multiple_of(item) {
            let message =
                format!("has items of {item} bytes by its header, expected a multiple in --value-size {bytes}");
            return Err(Failure::file(&self.path, message));
        }
        self.value_size = Some(bytes);
        Ok(())
    }

    /// Bytes of a value, if the command line gives them.
    pub fn value_size(&self) -> Option<usize> {
        self.value_size
    }

    /// The first `count` bytes, or all if there are fewer. They will be read again.
    fn peek(&mut self, count: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        let mut file = self.open_file()?;
        let read = if self.is_regular {
            fill(&mut bytes, |part, done| file.read_at(part, done as u64))
        } else {
            fill(&mut bytes, |part, _| file.read(part))
        };
        bytes.truncate(read.map_err(|e| Failure::io(&self.path, &e))?);
        if !self.is_regular {
            self.ahead = Cursor::new(bytes.clone());
        }
        Ok(bytes)
    }

    /// Reads the header of an .npy file.
    pub fn read_npy(&mut self, purpose: Purpose) -> Result<()> {
        let magic = npy::MAGIC.len() as u64;
        let header = if self.is_regular {
            npy::Header::read(&self.path, ReadAt { file: self.open_file()?, position: magic }, purpose)?
        } else {
            self.ahead.set_position(magic);
            npy::Header::read(&self.path, (&mut self.ahead).chain(self.file.get(&self.path)?), purpose)?
        };
        if let Some(length) = self.length
            && length != header.end
        {
            return Err(self.wrong_length(&header, Some(length)));
        }
        self.order = FortranOrder::of(&header);
        if self.order.is_some() && !self.is_regular {
            let (order, why) = if header.is_transposed { ("C", " for --axis 0") } else { ("Fortran", "") };
            let message = format!("a stream of an array in {order} order, expected the name of a regular file{why}");
            return Err(Failure::file(&self.path, message));
        }
        let length = header.end - header.begin;
        self.length = Some(length);
        self.parts = vec![Part { begin: header.begin, length }];
        self.header = Header::Npy(header);
        Ok(())
    }

    /// Reads the description of the keys in an Arrow file or stream.
    fn read_arrow(&mut self, format: Format) -> Result<()> {
        let Some(length) = self.length else {
            let ahead = std::mem::take(&mut self.ahead).into_inner();
            let mut recorder = Recorder { bytes: ahead, position: 0, rest: self.file.get(&self.path)? };
            let column = arrow::Stream::begin(&self.path, &mut recorder, format).and_then(|mut stream| {
                stream.has_keys()?;
                Ok(stream.column().clone())
            });
            self.ahead = Cursor::new(recorder.bytes);
            self.header = Header::Arrow(format, column?);
            return Ok(());
        };
        let arrow::Layout { column, parts } = arrow::Layout::read(&self.path, self.open_file()?, length, format)?;
        self.length = Some(parts.iter().map(|part| part.length).sum());
        self.parts = parts;
        self.header = Header::Arrow(format, column);
        Ok(())
    }

    /// The path as the user gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which file this is.
    pub fn identity(&self) -> Identity {
        self.file.identity
    }

    /// The type and the byte order of the keys, if a header gives them.
    pub fn header_type(&self) -> Option<(KeyType, Endian)> {
        match &self.header {
            Header::Npy(npy::Header { dtype: Dtype::Number(number, endian), .. }) => Some((number.key_type, *endian)),
            Header::Arrow(_, column) => Some((column.key_type(), Endian::Little)),
            Header::Npy(_) | Header::Table(..) | Header::None => None,
        }
    }

    /// The dtype of the keys, if a header gives it.
    pub fn number(&self) -> Option<npy::Number> {
        match &self.header {
            Header::Npy(npy::Header { dtype: Dtype::Number(number, _), .. }) => Some(number.clone()),
            Header::Arrow(_, column) => npy::Number::plain(column.key_type()),
            Header::Npy(_) | Header::Table(..) | Header::None => None,
        }
    }

    /// The structured dtype of the records in an .npy file.
    pub fn header_record(&self) -> Option<&npy::Record> {
        match &self.header {
            Header::Npy(npy::Header { dtype: Dtype::Record(record), .. }) => Some(record),
            _ => None,
        }
    }

    /// Turns each row of an array into a record, which is ordered by its items.
    pub fn rows_to_records(&mut self) -> Result<()> {
        let has_rows = match &mut self.header {
            Header::Npy(header) => header.rows_to_records(),
            Header::Arrow(..) | Header::Table(..) | Header::None => false,
        };
        let expected = "has no rows for --rows, expected an array of numbers or strings with rows of 1 byte to 16 MiB";
        if has_rows { Ok(()) } else { Err(Failure::file(&self.path, expected)) }
    }

    /// The rows of the file as an array, if a header gives their dtype.
    pub fn rows(&self) -> Option<npy::Rows> {
        match &self.header {
            Header::Npy(header) => Some(header.rows()),
            Header::Arrow(_, column) => column.rows(),
            Header::Table(..) | Header::None => None,
        }
    }

    /// The column of an Arrow file or stream.
    pub fn column(&self) -> Option<&arrow::Column> {
        match &self.header {
            Header::Arrow(_, column) => Some(column),
            _ => None,
        }
    }

    /// Whether this is a regular file, which can be read at any offset.
    pub fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// Bytes of all keys or values, if known before reading.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// The number of keys of type `W`, if known before reading. An error if the length is not a whole number of keys.
    pub fn count<W: Word>(&self) -> Result<Option<u64>> {
        let Some(length) = self.length else { return Ok(None) };
        if !length.is_multiple_of(W::SIZE as u64) {
            return Err(self.not_whole_keys::<W>(length));
        }
        Ok(Some(length / W::SIZE as u64))
    }

    /// The offset of the key at `index`, in bytes from where reading began.
    pub fn offset_of<W: Word>(&self, index: u64) -> u64 {
        let mut before = index * W::SIZE as u64;
        if let Some(order) = &self.order {
            before = order.offset_of(before);
        }
        for part in &self.parts {
            if before < part.length {
                return part.begin + before;
            }
            before -= part.length;
        }
        // A stream without a header has no parts.
        before
    }

    /// The offset of the first item of a file that is written over. An error unless the items lie there in the order
    /// in which they are read, up to the end of the file.
    pub fn begin_in_place(&self) -> Result<u64> {
        let what = match &self.parts[..] {
            _ if self.table_format().is_some() => "is an Arrow or Parquet file",
            _ if self.order.is_some() => "holds an array in Fortran order",
            [part] if self.is_regular => return Ok(part.begin),
            _ => "is no regular file",
        };
        Err(Failure::file(&self.path, format!("{what}, expected a raw or .npy file for --in-place")))
    }

    /// The same file again, from its first key on, if it can be read twice.
    pub fn again(&self) -> Result<Option<Self>> {
        if !self.is_regular {
            return Ok(None);
        }
        Ok(Some(Self {
            path: self.path.clone(),
            file: self.file.try_clone(&self.path)?,
            parts: self.parts.clone(),
            ahead: Cursor::default(),
            header: Header::None,
            order: self.order.clone(),
            stream: None,
            position: 0,
            ..*self
        }))
    }

    /// A copy of all that is left of a pipe in an unnamed temporary file, which can be read twice. The file is in the
    /// first of `folders`, or where temporary files are by default.
    pub fn copied(&mut self, folders: &[PathBuf]) -> Result<Self> {
        let folder = folders.first().cloned().unwrap_or_else(std::env::temp_dir);
        let failure = |error: &io::Error| Failure::io(&folder, error);
        let mut file = tempfile::tempfile_in(&folder).map_err(|error| failure(&error))?;
        let mut part = memory::zeroed::<u8>(BLOCK as u64, "a part of the input")?;
        loop {
            let read = self.read(&mut part)?;
            file.write_all(&part[..read]).map_err(|error| failure(&error))?;
            if read < part.len() {
                return Self::of_output(&self.path, file);
            }
        }
    }

    /// Goes to the key at `index` of a regular file.
    pub fn seek<W: Word>(&mut self, index: u64) {
        self.position = index * W::SIZE as u64;
    }

    /// All keys from here to the end.
    pub fn read_all<W: Word>(&mut self) -> Result<Vec<W>> {
        let what = name(&self.path);
        if let Some(count) = self.count::<W>()? {
            let mut keys = memory::zeroed::<W>(count - self.position / W::SIZE as u64, &what)?;
            self.read(&mut keys)?;
            return Ok(keys);
        }
        let mut keys: Vec<W> = Vec::new();
        loop {
            let filled = keys.len();
            if filled == keys.capacity() {
                // Twice the capacity each time, so that every key is copied about once, if it is copied at all.
                memory::reserve(&mut keys, filled.max(FIRST_CAPACITY), &what)?;
            }
            // The system allocates a page at the first write to it, so that memory is used only for keys that were
            // read.
            let part = (keys.capacity() - filled).min(PART / W::SIZE);
            keys.resize(filled + part, W::ZERO);
            let read = self.read(&mut keys[filled..])?;
            keys.truncate(filled + read);
            if read < part {
                return Ok(keys);
            }
        }
    }

    /// Fills `keys` with the next keys and returns their number, which is less than `keys.len()` only at the end.
    pub fn read<W: Word>(&mut self, keys: &mut [W]) -> Result<usize> {
        let left = self.length.map_or(u64::MAX, |length| (length - self.position) / W::SIZE as u64);
        let count = keys.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let keys = &mut keys[..count];
        if self.is_regular {
            let begin = self.position;
            self.position += size_of_val(keys) as u64;
            parallel::try_for_each(self.blocks(begin, keys), |(offset, block)| self.read_block(offset, block))?;
            return Ok(count);
        }
        let read = self.read_stream(bytemuck::cast_slice_mut(keys))?;
        // A short read is the end of the file, and only there can an incomplete key remain.
        if !read.is_multiple_of(W::SIZE) {
            return Err(self.not_whole_keys::<W>(self.position));
        }
        let read = read / W::SIZE;
        parallel::for_each(keys[..read].chunks_mut(BLOCK / W::SIZE), |keys| self.coding.encode(keys));
        Ok(read)
    }

    /// Fills `keys` from a regular file, beginning with the key at `index`, on this thread. The position of
    /// [`read`](Self::read) does not change.
    pub fn read_at<W: Word>(&self, index: u64, keys: &mut [W]) -> Result<()> {
        let mut blocks = self.blocks(index * W::SIZE as u64, keys).into_iter();
        blocks.try_for_each(|(offset, block)| self.read_block(offset, block))
    }

    /// Fills `block` with the keys from byte `offset` of the file on, and encodes them.
    fn read_block<W: Word>(&self, offset: u64, block: &mut [W]) -> Result<()> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(block);
        let file = self.open_file()?;
        if let Some(order) = &self.order {
            let begin = self.parts[0].begin;
            let read = |part: &mut [u8], offset| match file.read_exact_at(part, begin + offset) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(self.shrank(begin + offset)),
                read => read.map_err(|error| self.unreadable(begin + offset, &error)),
            };
            order.read(offset - begin, bytes, read)?;
            progress::add(bytes.len());
        } else {
            let read = fill(bytes, |part, done| file.read_at(part, offset + done as u64));
            let read = read.map_err(|e| self.unreadable(offset, &e))?;
            if read < bytes.len() {
                return Err(self.shrank(offset + read as u64));
            }
        }
        // The keys are still in the processor's cache.
        self.coding.encode(block);
        Ok(())
    }

    /// Bytes to read at once on a thread.
    pub fn block(&self) -> usize {
        self.order.as_ref().map_or(BLOCK, |order| order.block().max(BLOCK))
    }

    /// Divides `keys` into blocks for the threads, each with its offset in the file. The first of `keys` begins at byte
    /// `position` of all keys.
    fn blocks<'a, W: Word>(&self, mut position: u64, mut keys: &'a mut [W]) -> Vec<(u64, &'a mut [W])> {
        let mut blocks = Vec::new();
        let block = self.block() / W::SIZE;
        for part in &self.parts {
            if position >= part.length {
                position -= part.length;
                continue;
            }
            let here = usize::try_from((part.length - position) / W::SIZE as u64).unwrap_or(usize::MAX).min(keys.len());
            let (filled, rest) = keys.split_at_mut(here);
            let offsets = (part.begin + position..).step_by(block * W::SIZE);
            blocks.extend(offsets.zip(filled.chunks_mut(block)));
            (position, keys) = (0, rest);
        }
        blocks
    }

    /// Reads until `bytes` is full or the input ends, and returns the number of bytes read.
    fn read_stream(&mut self, bytes: &mut [u8]) -> Result<usize> {
        if let Header::Arrow(format, _) = self.header
            && self.stream.is_none()
        {
            let file = self.open_file()?.try_clone().map_err(|error| Failure::io(&self.path, &error))?;
            let bytes = std::mem::take(&mut self.ahead).chain(file);
            self.stream = Some(arrow::Stream::begin(&self.path, bytes, format)?);
        }
        if let Some(stream) = &mut self.stream {
            let count = stream.read(bytes)?;
            progress::add(count);
            self.position += count as u64;
            return Ok(count);
        }
        let again = self.ahead.read(bytes).map_err(|e| Failure::io(&self.path, &e))?;
        if again < bytes.len() {
            self.ahead = Cursor::default();
        }
        let mut file = self.file.get(&self.path)?;
        let mut read = |bytes: &mut [u8]| fill(bytes, |part, _| file.read(part));
        let count = again + read(&mut bytes[again..]).map_err(|e| self.unreadable(self.position, &e))?;
        self.position += count as u64;
        if let Header::Npy(header) = &self.header {
            let end = header.begin + self.position;
            if count < bytes.len() {
                return Err(self.wrong_length(header, Some(end)));
            }
            let is_ahead = self.ahead.position() < self.ahead.get_ref().len() as u64;
            if end == header.end && (is_ahead || read(&mut [0]).map_err(|e| Failure::io(&self.path, &e))? > 0) {
                return Err(self.wrong_length(header, None));
            }
        }
        Ok(count)
    }

    fn not_whole_keys<W: Word>(&self, length: u64) -> Failure {
        let (size, name) = (W::SIZE, self.coding.key_type);
        let rest = length % size as u64;
        let offset = length - rest;
        Failure::file(
            &self.path,
            format!(
                "length is {length} bytes, expected a multiple of {size}, the size of a {name}: {rest} are left over \
                 at byte {offset}; is it complete, and is --type right?"
            ),
        )
    }

    /// The error of a file that the system cannot read from byte `offset` on.
    fn unreadable(&self, offset: u64, error: &io::Error) -> Failure {
        Failure::file(&self.path, format!("cannot read from byte {offset} on: {}", os_message(error)))
    }

    /// The error of a file whose length differs from its header: `found` bytes, or too many bytes if `found` is `None`.
    fn wrong_length(&self, header: &npy::Header, found: Option<u64>) -> Failure {
        let npy::Header { dtype, count, row, begin, end, .. } = header;
        let items = match dtype {
            Dtype::Number(number, _) if row.is_empty() => format!("{} keys", number.key_type),
            Dtype::Record(_) if row.is_empty() => "records".to_owned(),
            _ => format!("rows of {}", header.rows()),
        };
        let parts = format!("{begin} of the header and {count} {items}");
        let found = found.map_or_else(|| "has more bytes".to_owned(), |found| format!("length is {found} bytes"));
        Failure::file(&self.path, format!("{found}, expected {end} by its .npy header: {parts}"))
    }

    /// The error of a file that has shrunk and now ends at byte `end`.
    fn shrank(&self, end: u64) -> Failure {
        let expected = self.parts.iter().map(|part| part.begin + part.length).max().unwrap_or(0);
        // If the file has grown again meanwhile, the message names the offset at which the read ended.
        let found = match self.file.metadata(&self.path) {
            Ok(metadata) if metadata.len() < expected => metadata.len(),
            Ok(_) => end,
            Err(error) => return Failure::file(&self.path, format!("shrank while being read: {}", os_message(&error))),
        };
        Failure::file(
            &self.path,
            format!(
                "shrank while being read: expected {expected} bytes, found {found}; run again when no program \
                 writes to it"
            ),
        )
    }
}

/// A reader of bytes that were read before and of the rest of a file, which keeps all bytes that it has read.
#[derive(Debug)]
struct Recorder<R> {
    bytes: Vec<u8>,
    position: usize,
    rest: R,
}

impl<R: Read> Read for Recorder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.position == self.bytes.len() {
            let count = self.rest.read(buffer)?;
            self.bytes.extend_from_slice(&buffer[..count]);
            self.position += count;
            return Ok(count);
        }
        let count = (&self.bytes[self.position..]).read(buffer)?;
        self.position += count;
        Ok(count)
    }
}

/// A file that can be closed for a while.
#[derive(Debug)]
struct Handle {
    file: OnceLock<File>,
    /// Checked when the file is opened again.
    identity: Identity,
}

impl Handle {
    fn new(file: File, metadata: &Metadata) -> Self {
        Self { file: file.into(), identity: Identity::of(metadata) }
    }

    fn is_open(&self) -> bool {
        self.file.get().is_some()
    }

    fn close(&mut self) {
        self.file.take();
    }

    /// The open file. A closed file is opened again at `path`.
    fn get(&self, path: &Path) -> Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let failure = |error: &io::Error| Failure::io(path, error);
        let file = File::open(path).map_err(|error| failure(&error))?;
        let metadata = file.metadata().map_err(|error| failure(&error))?;
        if Identity::of(&metadata) != self.identity {
            return Err(Failure::file(path, "was replaced by another file while it was to be read: run again"));
        }
        // Another thread may have opened the same file first.
        Ok(self.file.get_or_init(|| file))
    }

    fn try_clone(&self, path: &Path) -> Result<Self> {
        let file = self.get(path)?.try_clone().map_err(|error| Failure::io(path, &error))?;
        Ok(Self { file: file.into(), identity: self.identity })
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.file.get().map_or_else(|| path.metadata(), File::metadata)
    }
}

/// An error if more than one of the arguments is standard input. An argument is its name and its path.
pub fn check_standard_input<'a>(arguments: impl IntoIterator<Item = (String, &'a Path)>) -> Result<()> {
    let arguments = arguments.into_iter().filter(|(_, path)| *path == Path::new("-"));
    let mut names = arguments.map(|(name, _)| name);
    if let (Some(first), Some(second)) = (names.next(), names.next()) {
        return Err(Failure::new(format!("{first} and {second} are both -, and there is only one standard input")));
    }
    Ok(())
}

/// Calls `read` with the rest of `bytes` and the number of bytes that are filled, until `bytes` is full or the input
/// ends. Returns the number of bytes that are filled.
fn fill(bytes: &mut [u8], mut read: impl FnMut(&mut [u8], usize) -> io::Result<usize>) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match read(&mut bytes[done..], done) {
            Ok(0) => break,
            Ok(count) => {
                progress::add(count);
                done += count;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of the `count` keys 0, 1, 2, …, and its folder.
    fn file_of(count: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.u32");
        let keys: Vec<u32> = (0..count).collect();
        std::fs::write(&path, bytemuck::cast_slice(&keys)).unwrap();
        (folder, path)
    }

    #[test]
    fn reads_files_of_several_blocks() {
        let count = (2 * BLOCK / 4 + 1) as u32;
        let (_folder, path) = file_of(count);
        let mut input = Input::open(&path).unwrap();
        assert_eq!(input.count::<u32>().unwrap(), Some(count.into()));
        assert!(input.read_all::<u32>().unwrap().into_iter().eq(0..count));
        assert!(input.again().unwrap().unwrap().read_all::<u32>().unwrap().into_iter().eq(0..count));
    }

    #[test]
    fn reads_part_by_part() {
        let (_folder, path) = file_of(2500);
        let mut input = Input::open(&path).unwrap();
        let mut part = vec![0; 1000];
        assert_eq!(input.read::<u32>(&mut part).unwrap(), 1000);
        assert_eq!(input.read::<u32>(&mut part).unwrap(), 1000);
        assert!(part.iter().copied().eq(1000..2000));
        assert_eq!(input.read::<u32>(&mut part).unwrap(), 500);
    }

    #[test]
    fn reads_keys_that_lie_in_several_parts() {
        let count = (BLOCK / 4 + 3000) as u32;
        let (_folder, path) = file_of(count);
        // Two keys, no keys, one key in the middle of the file, and all remaining keys except one.
        let parts = [(4, 2), (50, 0), (9, 1), (100, count - 101)];
        let expected: Vec<u32> = parts.into_iter().flat_map(|(begin, count)| begin..begin + count).collect();
        for step in [1000, 2, count as usize] {
            let mut input = Input::open(&path).unwrap();
            input.parts =
                parts.map(|(begin, count)| Part { begin: 4 * u64::from(begin), length: 4 * u64::from(count) }).to_vec();
            input.length = Some(4 * expected.len() as u64);
            // Reading begins in the middle of the first part.
            let mut part = vec![0; step];
            assert_eq!(input.read::<u32>(&mut part[..1]).unwrap(), 1);
            let mut found = vec![part[0]];
            for _ in 0..10 {
                let read = input.read::<u32>(&mut part).unwrap();
                found.extend(&part[..read]);
            }
            assert!(found == expected[..found.len()], "{step}");
            assert_eq!(input.read_all::<u32>().unwrap(), expected[found.len()..]);
            assert!(input.again().unwrap().unwrap().read_all::<u32>().unwrap() == expected);
        }
    }

    #[test]
    fn a_file_that_shrinks_is_an_error_with_both_lengths() {
        for kept in [0, 4, 4093, 399_999] {
            let (_folder, path) = file_of(100_000);
            let mut input = Input::open(&path).unwrap();
            File::options().write(true).open(&path).unwrap().set_len(kept).unwrap();
            let failure = input.read_all::<u32>().unwrap_err();
            let expected =
                format!("{}: shrank while being read: expected 400000 bytes, found {kept}; ", path.display());
            assert!(failure.message().unwrap().starts_with(&expected), "{failure:?}");
        }
    }

    #[test]
    fn what_is_appended_later_is_not_read() {
        let (_folder, path) = file_of(1000);
        let mut input = Input::open(&path).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(4003).unwrap();
        assert_eq!(input.read_all::<u32>().unwrap().len(), 1000);
    }
}
