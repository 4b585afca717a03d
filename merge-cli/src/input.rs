//! Reading keys or values from a file, with all threads, or from a pipe.
//!
//! A file is read with pread(2) and not mapped: a mapped file that shrinks kills its reader. The length that a file has
//! when it is opened is the length that is read. If less is there later, that is an error; what is appended later is
//! left for another run.

use crate::error::{Failure, Result, os_message};
use crate::key_type::Element;
use crate::memory;
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
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
    /// The bytes of a regular file. `None` for a pipe or a device, which is read until it ends.
    length: Option<u64>,
    /// Bytes read so far.
    position: u64,
}

impl Input {
    /// Opens the file at `path`, or standard input for `-`.
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
        let sized = metadata.is_file() && metadata.len() > 0 && path != Path::new("-");
        Ok(Self { path: path.to_owned(), file, length: sized.then_some(metadata.len()), position: 0 })
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of keys (or bytes, for `u8`), where it is known before reading. An error if the length is not a whole number of keys.
    pub fn count<K: Element>(&self) -> Result<Option<u64>> {
        let Some(length) = self.length else { return Ok(None) };
        if !length.is_multiple_of(K::SIZE as u64) {
            return Err(self.not_whole_keys::<K>(length));
        }
        Ok(Some(length / K::SIZE as u64))
    }

    /// Fills `keys`, which were all that there are, with what they were. False where they cannot be read twice.
    pub fn read_again<K: Element>(&mut self, keys: &mut [K]) -> Result<bool> {
        if self.length.is_none() {
            return Ok(false);
        }
        self.position = 0;
        self.read(keys)?;
        Ok(true)
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
        match self.length {
            Some(length) => self.read_file(keys, length),
            None => self.read_stream(keys),
        }
    }

    fn read_file<K: Element>(&mut self, keys: &mut [K], length: u64) -> Result<usize> {
        let left = usize::try_from((length - self.position) / K::SIZE as u64).unwrap_or(usize::MAX);
        let count = keys.len().min(left);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut keys[..count]);
        let begin = self.position;
        self.position += bytes.len() as u64;
        let file = &self.file;
        let pieces = bytes.par_chunks_mut(PIECE).enumerate();
        pieces.try_for_each(|(i, piece)| {
            let offset = begin + (i * PIECE) as u64;
            let read = fill(piece, |part, done| file.read_at(part, offset + done as u64));
            let read = read.map_err(|e| Failure::io(&self.path, &e))?;
            if read == piece.len() { Ok(()) } else { Err(self.shrank(length, offset + read as u64)) }
        })?;
        Ok(count)
    }

    fn read_stream<K: Element>(&mut self, keys: &mut [K]) -> Result<usize> {
        let mut file = &self.file;
        let read = fill(bytemuck::cast_slice_mut(keys), |part, _| file.read(part));
        let read = read.map_err(|e| Failure::io(&self.path, &e))?;
        self.position += read as u64;
        // Less than asked for is the end, and only there can a part of a key be left over.
        if !read.is_multiple_of(K::SIZE) {
            return Err(self.not_whole_keys::<K>(self.position));
        }
        Ok(read / K::SIZE)
    }

    fn not_whole_keys<K: Element>(&self, length: u64) -> Failure {
        let (size, name) = (K::SIZE, K::TYPE);
        Failure::file(
            &self.path,
            format!("length is {length} bytes, expected a multiple of {size}, the size of a {name}"),
        )
    }

    fn shrank(&self, expected: u64, end: u64) -> Failure {
        // Where the file has grown again meanwhile, the place where it ended before is all there is to say.
        let found = match self.file.metadata() {
            Ok(metadata) if metadata.len() < expected => metadata.len(),
            Ok(_) => end,
            Err(error) => return Failure::file(&self.path, format!("shrank while being read: {}", os_message(&error))),
        };
        Failure::file(&self.path, format!("shrank while being read: expected {expected} bytes, found {found}"))
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
            Ok(count) => done += count,
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
    fn a_file_that_shrinks_is_an_error_with_both_lengths() {
        for kept in [0, 4, 4093, 399_999] {
            let (_folder, path) = file_of(100_000);
            let mut input = Input::open(&path).unwrap();
            File::options().write(true).open(&path).unwrap().set_len(kept).unwrap();
            let failure = input.read_all::<u32>().unwrap_err();
            let expected = format!("{}: shrank while being read: expected 400000 bytes, found {kept}", path.display());
            assert_eq!(failure.message(), Some(&*expected));
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
