//! Reading keys or values from a file, with all threads, or from a pipe.
//!
//! A file is read with pread(2) and not mapped: a mapped file that shrinks kills its reader. The length that a file has
//! when it is opened is the length that is read. If less is there later, that is an error; what is appended later is
//! left for another run.

mod pieces;

use crate::error::{Failure, Result, name, os_message};
use crate::format::{self, Endian, Format, Part, arrow, npy, swap, swap_all};
use crate::key_type::{Element, KeyType};
use crate::memory;
use crate::progress;
use crate::report;
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes that a thread reads at once.
const PIECE: usize = 4 << 20;
/// Keys to make room for in the beginning where the length is not known.
const FIRST_ROOM: usize = 1 << 16;
/// Files that a run may have open besides its inputs.
const OTHER_FILES: usize = 64;

/// A file that keys or the bytes of values are read from, in order.
#[derive(Debug)]
pub struct Input {
    path: PathBuf,
    file: File,
    /// Whether this is a regular file. A pipe or a device is read from front to end, and once.
    is_regular: bool,
    /// Where the keys of a regular file lie.
    parts: Vec<Part>,
    /// Bytes of all keys, if a header or the length of the file tells.
    length: Option<u64>,
    /// Bytes of the keys before the one to read next.
    position: u64,
    /// Bytes of a pipe that were looked at, and are to be read again.
    ahead: Cursor<Vec<u8>>,
    /// The byte order of the keys.
    endian: Endian,
    header: Header,
}

/// What a file says of its keys.
#[derive(Debug)]
enum Header {
    None,
    Npy(npy::Header),
    Arrow(KeyType, arrow::Schema),
}

impl Input {
    /// Opens the file at `path`, or standard input for `-`, to read its bytes as they are. [`format::detect`] makes it one
    /// of keys, in whatever format it is.
    ///
    /// [`format::detect`]: crate::format::detect
    pub fn open(path: &Path) -> Result<Self> {
        let failure = |error: &io::Error| Failure::io(path, error);
        let file = if path == Path::new("-") {
            File::from(io::stdin().as_fd().try_clone_to_owned().map_err(|e| failure(&e))?)
        } else {
            File::open(path).map_err(|e| failure(&e))?
        };
        let metadata = file.metadata().map_err(|e| failure(&e))?;
        if metadata.is_dir() {
            return Err(Failure::file(path, "is a directory, expected a file to read"));
        }
        // Files such as those in /proc claim to be empty, and are not. Standard input may begin anywhere in a file.
        let is_regular = metadata.is_file() && metadata.len() > 0 && path != Path::new("-");
        progress::expect(is_regular.then_some(metadata.len()));
        match is_regular {
            true => report::verbose(format_args!("{}: {} bytes, read by all threads", name(path), metadata.len())),
            false => report::verbose(format_args!("{}: a stream, read to its end by one thread", name(path))),
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            is_regular,
            parts: if is_regular { vec![Part { begin: 0, length: metadata.len() }] } else { Vec::new() },
            length: is_regular.then_some(metadata.len()),
            position: 0,
            ahead: Cursor::default(),
            endian: Endian::Little,
            header: Header::None,
        })
    }

    /// Finds out the format, from what the file begins with, and goes to the first key. `endian` is `--endian`.
    pub fn detect(&mut self, endian: Option<Endian>) -> Result<()> {
        // A pipe may take its time until its first bytes come.
        progress::phase("read");
        self.endian = Endian::of_raw(&self.path, endian);
        let begin = self.peek(npy::MAGIC.len())?;
        if begin == npy::MAGIC {
            return self.read_npy();
        }
        if begin == format::ARROW_MAGIC {
            return self.read_arrow();
        }
        if let Some((magic, format)) = Format::of_extension(&self.path).magic() {
            let (found, expected) = (begin.escape_ascii(), magic.escape_ascii());
            let message = format!("begins with \"{found}\", expected \"{expected}\" of an {format} file");
            return Err(Failure::file(&self.path, format!("{message}: rename it if it is raw")));
        }
        Ok(())
    }

    /// The first `count` bytes, or all if there are fewer. They will be read again.
    fn peek(&mut self, count: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        let mut file = &self.file;
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

    /// Whether a pipe has no more than so many bytes. What is read for that will be read again.
    pub fn has_at_most(&mut self, bytes: u64) -> Result<bool> {
        let before = self.ahead.get_ref().len();
        // The system gives the memory when something is read to it.
        let mut ahead = memory::zeroed::<u8>(bytes.max(before as u64).saturating_add(1), &name(&self.path))?;
        ahead[..before].copy_from_slice(self.ahead.get_ref());
        let mut file = &self.file;
        let read = fill(&mut ahead[before..], |part, _| file.read(part));
        ahead.truncate(before + read.map_err(|e| Failure::io(&self.path, &e))?);
        let all = ahead.len() as u64 <= bytes;
        self.ahead = Cursor::new(ahead);
        Ok(all)
    }

    /// Bytes that were read ahead.
    pub fn bytes_ahead(&self) -> u64 {
        self.ahead.get_ref().len() as u64
    }

    /// Reads the header of an .npy file.
    fn read_npy(&mut self) -> Result<()> {
        self.ahead = Cursor::default();
        let header = if self.is_regular {
            let rest = ReadAt { file: &self.file, position: npy::MAGIC.len() as u64 };
            npy::Header::read(&self.path, rest)?
        } else {
            npy::Header::read(&self.path, &self.file)?
        };
        if let Some(length) = self.length
            && length != header.end
        {
            return Err(self.wrong_length(&header, &length.to_string()));
        }
        let length = header.end - header.begin;
        self.length = Some(length);
        self.parts = vec![Part { begin: header.begin, length }];
        self.endian = header.endian;
        self.header = Header::Npy(header);
        Ok(())
    }

    /// Reads what an Arrow file says of its keys.
    fn read_arrow(&mut self) -> Result<()> {
        let Some(length) = self.length else {
            let what = "is an Arrow file, which is read from its end: expected a regular file by its name";
            return Err(Failure::file(&self.path, what));
        };
        let arrow::Layout { key_type, parts, schema } = arrow::Layout::read(&self.path, &self.file, length)?;
        self.length = Some(parts.iter().map(|part| part.length).sum());
        self.parts = parts;
        self.endian = Endian::Little;
        self.header = Header::Arrow(key_type, schema);
        Ok(())
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The type of the keys, if the file tells.
    pub fn header_type(&self) -> Option<KeyType> {
        match &self.header {
            Header::None => None,
            Header::Npy(header) => Some(header.key_type),
            Header::Arrow(key_type, _) => Some(*key_type),
        }
    }

    /// The schema of an Arrow file.
    pub fn schema(&self) -> Option<&arrow::Schema> {
        match &self.header {
            Header::Arrow(_, schema) => Some(schema),
            _ => None,
        }
    }

    /// The byte order of the keys in the file. Those that are read are in the machine's.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Whether this is a regular file, of which any part can be read.
    pub fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// The number of all keys (or bytes, for `u8`), where it is known before reading. An error if the length is not a
    /// whole number of keys.
    pub fn count<K: Element>(&self) -> Result<Option<u64>> {
        let Some(length) = self.length else { return Ok(None) };
        if !length.is_multiple_of(K::SIZE as u64) {
            return Err(self.not_whole_keys::<K>(length));
        }
        Ok(Some(length / K::SIZE as u64))
    }

    /// Where the key at `index` begins, in bytes from where reading began.
    pub fn offset_of<K: Element>(&self, index: u64) -> u64 {
        let mut before = index * K::SIZE as u64;
        for part in &self.parts {
            if before < part.length {
                return part.begin + before;
            }
            before -= part.length;
        }
        // A stream without a header has no parts.
        before
    }

    /// Fills `keys`, which were all that there are, with what they were. False where they cannot be read twice.
    pub fn read_again<K: Element>(&mut self, keys: &mut [K]) -> Result<bool> {
        if !self.is_regular {
            return Ok(false);
        }
        self.position = 0;
        self.read(keys)?;
        Ok(true)
    }

    /// The same file once more, from its first key on, if it can be read twice.
    pub fn again(&self) -> Result<Option<Self>> {
        if !self.is_regular {
            return Ok(None);
        }
        Ok(Some(Self {
            path: self.path.clone(),
            file: self.file.try_clone().map_err(|error| Failure::io(&self.path, &error))?,
            parts: self.parts.clone(),
            ahead: Cursor::default(),
            header: Header::None,
            position: 0,
            ..*self
        }))
    }

    /// Goes to the key at `index` of a regular file.
    pub fn seek<K: Element>(&mut self, index: u64) {
        self.position = index * K::SIZE as u64;
    }

    /// All keys from here to the end.
    pub fn read_all<K: Element>(&mut self) -> Result<Vec<K>> {
        let what = crate::error::name(&self.path);
        if let Some(count) = self.count::<K>()? {
            let mut keys = memory::zeroed::<K>(count - self.position / K::SIZE as u64, &what)?;
            self.read(&mut keys)?;
            return Ok(keys);
        }
        let mut keys = memory::zeroed::<K>(FIRST_ROOM as u64, &what)?;
        let mut filled = 0;
        loop {
            filled += self.read(&mut keys[filled..])?;
            if filled < keys.len() {
                keys.truncate(filled);
                return Ok(keys);
            }
            // Twice the room each time, so that every key is copied about once.
            let mut larger = memory::zeroed::<K>(2 * keys.len() as u64, &what)?;
            larger[..filled].copy_from_slice(&keys);
            keys = larger;
        }
    }

    /// Fills `keys` with the next ones and gives their number, which is less than asked for only at the end.
    pub fn read<K: Element>(&mut self, keys: &mut [K]) -> Result<usize> {
        let left = self.length.map_or(u64::MAX, |length| (length - self.position) / K::SIZE as u64);
        let count = keys.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let swap_size = self.swap_size::<K>();
        let bytes = bytemuck::cast_slice_mut(&mut keys[..count]);
        if self.is_regular {
            self.read_file(bytes, swap_size)?;
            return Ok(count);
        }
        let read = self.read_stream(bytes)?;
        // Less than asked for is the end, and only there can a part of a key be left over.
        if !read.is_multiple_of(K::SIZE) {
            return Err(self.not_whole_keys::<K>(self.position));
        }
        swap_all(&mut bytes[..read], swap_size);
        Ok(read / K::SIZE)
    }

    /// Fills `bytes`, of which the file has as many, and turns round the numbers in them.
    fn read_file(&mut self, bytes: &mut [u8], swap_size: usize) -> Result<()> {
        let begin = self.position;
        self.position += bytes.len() as u64;
        let this = &*self;
        let pieces = this.pieces(begin, bytes).into_par_iter();
        pieces.try_for_each(|(offset, piece)| this.read_piece(offset, piece, swap_size))
    }

    /// Fills `keys` with those from key `first` of a regular file on, by this thread. They are counted from the first of
    /// all, whatever has been read before.
    pub fn read_at<K: Element>(&self, first: u64, keys: &mut [K]) -> Result<()> {
        let mut pieces = self.pieces(first * K::SIZE as u64, bytemuck::cast_slice_mut(keys)).into_iter();
        pieces.try_for_each(|(offset, piece)| self.read_piece(offset, piece, self.swap_size::<K>()))
    }

    /// Fills `piece` with what is in the file from `offset` on, and turns round the numbers in it.
    fn read_piece(&self, offset: u64, piece: &mut [u8], swap_size: usize) -> Result<()> {
        let read = fill(piece, |part, done| self.file.read_at(part, offset + done as u64));
        let read = read.map_err(|e| self.unreadable(offset, &e))?;
        if read < piece.len() {
            return Err(self.shrank(offset + read as u64));
        }
        // While they are in the processor's cache.
        swap(piece, swap_size);
        Ok(())
    }

    /// Bytes of a key if they have to be turned round, or else 1.
    fn swap_size<K: Element>(&self) -> usize {
        if self.endian == Endian::Big { K::SIZE } else { 1 }
    }

    /// Cuts `bytes`, which are for the keys from `position` on, into pieces for the threads, and gives the place of each
    /// in the file.
    fn pieces<'a>(&self, mut position: u64, mut bytes: &'a mut [u8]) -> Vec<(u64, &'a mut [u8])> {
        let mut pieces = Vec::new();
        for part in &self.parts {
            if position >= part.length {
                position -= part.length;
                continue;
            }
            let here = usize::try_from(part.length - position).unwrap_or(usize::MAX).min(bytes.len());
            let (filled, rest) = bytes.split_at_mut(here);
            let offsets = (part.begin + position..).step_by(PIECE);
            pieces.extend(offsets.zip(filled.chunks_mut(PIECE)));
            (position, bytes) = (0, rest);
        }
        pieces
    }

    /// Reads to `bytes` until they are full or nothing more comes, and gives the number of those read.
    fn read_stream(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let again = self.ahead.read(bytes).map_err(|e| Failure::io(&self.path, &e))?;
        if again < bytes.len() {
            self.ahead = Cursor::default();
        }
        let mut file = &self.file;
        let mut read = |bytes: &mut [u8]| fill(bytes, |part, _| file.read(part));
        let count = again + read(&mut bytes[again..]).map_err(|e| self.unreadable(self.position, &e))?;
        self.position += count as u64;
        if let Header::Npy(header) = &self.header {
            let end = header.begin + self.position;
            if count < bytes.len() {
                return Err(self.wrong_length(header, &end.to_string()));
            }
            if end == header.end && read(&mut [0]).map_err(|e| Failure::io(&self.path, &e))? > 0 {
                return Err(self.wrong_length(header, "more"));
            }
        }
        Ok(count)
    }

    fn not_whole_keys<K: Element>(&self, length: u64) -> Failure {
        let (size, name) = (K::SIZE, K::TYPE);
        let rest = length % size as u64;
        let place = length - rest;
        Failure::file(
            &self.path,
            format!(
                "length is {length} bytes, expected a multiple of {size}, the size of a {name}: {rest} are left over at \
                 byte {place}; is it complete, and is --type right?"
            ),
        )
    }

    /// What the system said where bytes from `offset` on were to be read.
    fn unreadable(&self, offset: u64, error: &io::Error) -> Failure {
        Failure::file(&self.path, format!("cannot read from byte {offset} on: {}", os_message(error)))
    }

    fn wrong_length(&self, header: &npy::Header, found: &str) -> Failure {
        let npy::Header { key_type, count, begin, end, .. } = header;
        let parts = format!("{begin} of the header and {count} {key_type} keys");
        Failure::file(&self.path, format!("length is {found} bytes, expected {end} by its .npy header: {parts}"))
    }

    /// The file ends at byte `end` now.
    fn shrank(&self, end: u64) -> Failure {
        let expected = self.parts.iter().map(|part| part.begin + part.length).max().unwrap_or(0);
        // Where the file has grown again meanwhile, the place where it ended before is all there is to say.
        let found = match self.file.metadata() {
            Ok(metadata) if metadata.len() < expected => metadata.len(),
            Ok(_) => end,
            Err(error) => return Failure::file(&self.path, format!("shrank while being read: {}", os_message(&error))),
        };
        Failure::file(
            &self.path,
            format!(
                "shrank while being read: expected {expected} bytes, found {found}; run again when nobody writes to it"
            ),
        )
    }
}

/// Lets this program have so many files open, besides some others, as far as the system allows it to decide that.
pub fn allow_files(count: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let needed = (count + OTHER_FILES) as u64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < needed) {
        let current = Some(maximum.map_or(needed, |maximum| maximum.min(needed)));
        // Where this fails, opening the files does, and that is what there is to say.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
    }
}

/// A file, read from a place on without moving the file's own.
struct ReadAt<'a> {
    file: &'a File,
    position: u64,
}

impl Read for ReadAt<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(bytes, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

/// An error if more than one of these arguments, by their names, is standard input.
pub fn check_standard_input<'a>(arguments: impl Iterator<Item = (&'a str, &'a Path)>) -> Result<()> {
    let mut names = arguments.filter(|(_, path)| *path == Path::new("-")).map(|(name, _)| name);
    if let (Some(first), Some(second)) = (names.next(), names.next()) {
        return Err(Failure::new(format!("{first} and {second} are both -, and there is only one standard input")));
    }
    Ok(())
}

/// Calls `read` with what is left of `bytes`, and the number of bytes done, until nothing is left or nothing more comes.
/// Gives the number of bytes done.
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

    /// A file of `count` keys 0, 1, 2, …, and the folder it is in.
    fn file_of(count: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.u32");
        let keys: Vec<u32> = (0..count).collect();
        std::fs::write(&path, bytemuck::cast_slice(&keys)).unwrap();
        (folder, path)
    }

    #[test]
    fn reads_files_of_several_pieces() {
        let count = (2 * PIECE / 4 + 1) as u32;
        let (_folder, path) = file_of(count);
        let mut input = Input::open(&path).unwrap();
        assert_eq!(input.count::<u32>().unwrap(), Some(count.into()));
        let mut keys = input.read_all::<u32>().unwrap();
        assert!(keys.iter().copied().eq(0..count));
        keys.fill(0);
        assert!(input.read_again(&mut keys).unwrap());
        assert!(keys.into_iter().eq(0..count));
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
    fn reads_keys_that_lie_in_several_places() {
        let count = (PIECE / 4 + 3000) as u32;
        let (_folder, path) = file_of(count);
        // Two keys, none, one in the middle of the file, and all of the rest but one.
        let places = [(4, 2), (50, 0), (9, 1), (100, count - 101)];
        let expected: Vec<u32> = places.into_iter().flat_map(|(begin, count)| begin..begin + count).collect();
        for step in [1000, 2, count as usize] {
            let mut input = Input::open(&path).unwrap();
            input.parts = places
                .map(|(begin, count)| Part { begin: 4 * u64::from(begin), length: 4 * u64::from(count) })
                .to_vec();
            input.length = Some(4 * expected.len() as u64);
            // From the middle of the first place on.
            let mut part = vec![0; step];
            assert_eq!(input.read::<u32>(&mut part[..1]).unwrap(), 1);
            let mut found = vec![part[0]];
            for _ in 0..10 {
                let read = input.read::<u32>(&mut part).unwrap();
                found.extend(&part[..read]);
            }
            assert!(found == expected[..found.len()], "{step}");
            assert_eq!(input.read_all::<u32>().unwrap(), expected[found.len()..]);
            let mut keys = vec![0; expected.len()];
            assert!(input.read_again(&mut keys).unwrap());
            assert!(keys == expected);
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
