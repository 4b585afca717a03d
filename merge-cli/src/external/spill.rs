//! The temporary file that runs are spilled to, with checksums.
//!
//! The file has no name: nothing is left of it however the program ends. It holds the extents of all runs, one after the
//! other. An extent is written and read from its beginning to its end, in parts of any length, and has a checksum for
//! every piece of it:
//!
//! ```text
//!   file    │ keys of run 0     │ values of run 0         │ keys of run 1     │ …
//!   pieces  ├──────┼──────┼─────┤──────┼──────┼──────┼────┤──────┼──────┼─────┤
//! ```

use crate::error::{Failure, Result, name, os_message};
use crate::signals;
use crate::space::free_in;
use crc32fast::Hasher;
use rayon::prelude::*;
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::num::NonZero;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that have one checksum, and that a thread reads or writes at once.
const PIECE: usize = 1 << 20;
/// Extents begin at multiples of a page.
const PAGE: u64 = 4096;

/// A temporary file without a name.
#[derive(Debug)]
pub struct Spill {
    folder: PathBuf,
    file: File,
    /// Where the next extent begins.
    end: AtomicU64,
}

/// A part of the file, all written.
#[derive(Debug)]
pub struct Extent {
    begin: u64,
    length: u64,
    /// The checksum of each piece.
    sums: Vec<u32>,
}

impl Spill {
    /// Creates the file in `folder`.
    pub fn create(folder: &Path) -> Result<Self> {
        // Where the system knows no files without a name, it has one for a moment, in which no signal must arrive.
        let _lock = signals::temporaries();
        let file = tempfile::tempfile_in(folder).map_err(|error| cannot_create(folder, &error))?;
        Ok(Self { folder: folder.to_owned(), file, end: AtomicU64::new(0) })
    }

    /// Starts to write an extent of at most `bytes` bytes.
    pub fn begin(&self, bytes: u64) -> ExtentWriter<'_> {
        let begin = self.end.fetch_add(bytes.next_multiple_of(PAGE), Ordering::Relaxed);
        ExtentWriter { spill: self, extent: Extent { begin, length: 0, sums: Vec::new() }, hasher: Hasher::new() }
    }

    /// Gives the space of an extent back that is not read any more, if the file system can do that.
    pub fn release(&self, extent: &Extent) {
        // An empty one has no space of its own.
        if let Some(length) = NonZero::new(extent.length.next_multiple_of(PAGE)) {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = rustix::fs::fallocate(&self.file, flags, extent.begin, length.get());
        }
    }

    fn failure(&self, message: &str) -> Failure {
        Failure::file(&self.folder, format!("temporary file for sorted runs: {message}"))
    }
}

/// An error if `bytes` bytes can certainly not be spilled to `folder`, where `output` is to take so many bytes in the
/// folder named.
pub fn check_space(folder: &Path, bytes: u128, output: Option<(&Path, u128)>, input: &Path) -> Result<()> {
    let metadata = folder.metadata().map_err(|error| cannot_create(folder, &error))?;
    let shared = output.filter(|(folder, _)| folder.metadata().is_ok_and(|other| other.dev() == metadata.dev()));
    let output = shared.map_or(0, |(_, bytes)| bytes);
    if let Some(free) = free_in(folder)
        && bytes + output > free
    {
        let (folder, also) =
            (name(folder), if output > 0 { format!(" and {output} for the output") } else { String::new() });
        return Err(Failure::file(
            input,
            format!(
                "does not fit in memory, and its runs take {bytes} bytes in folder {folder}{also}, where {free} are free: \
                 name another with --tmp-dir, or allow more --memory"
            ),
        ));
    }
    Ok(())
}

fn cannot_create(folder: &Path, error: &io::Error) -> Failure {
    let folder = name(folder);
    Failure::new(format!("--tmp-dir {folder}: cannot create a temporary file: {}", os_message(error)))
}

/// An extent on its way to the file.
#[derive(Debug)]
pub struct ExtentWriter<'a> {
    spill: &'a Spill,
    extent: Extent,
    /// Of the piece that is not complete.
    hasher: Hasher,
}

impl ExtentWriter<'_> {
    /// Writes `bytes` after those written before, with all threads.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let (head, rest) = bytes.split_at(left_of_piece(self.extent.length).min(bytes.len()));
        let parts: Vec<&[u8]> = [head].into_iter().chain(rest.chunks(PIECE)).collect();
        let offset = self.extent.begin + self.extent.length;
        let hashers = parts.par_iter().enumerate().map(|(i, part)| {
            let mut hasher = if i == 0 { self.hasher.clone() } else { Hasher::new() };
            hasher.update(part);
            self.spill.file.write_all_at(part, offset + begin_of_part(i, head.len()))?;
            Ok(hasher)
        });
        let hashers: io::Result<Vec<Hasher>> = hashers.collect();
        for (part, hasher) in parts.iter().zip(hashers.map_err(|error| self.spill.failure(&os_message(&error)))?) {
            self.extent.length += part.len() as u64;
            self.hasher = hasher;
            if !part.is_empty() && self.extent.length.is_multiple_of(PIECE as u64) {
                self.end_piece();
            }
        }
        Ok(())
    }

    /// Ends the extent.
    pub fn finish(mut self) -> Extent {
        if !self.extent.length.is_multiple_of(PIECE as u64) {
            self.end_piece();
        }
        self.extent
    }

    fn end_piece(&mut self) {
        self.extent.sums.push(std::mem::take(&mut self.hasher).finalize());
    }
}

/// Reads an extent from its beginning to its end.
#[derive(Debug)]
pub struct ExtentReader<'a> {
    spill: &'a Spill,
    extent: &'a Extent,
    position: u64,
    hasher: Hasher,
}

impl<'a> ExtentReader<'a> {
    /// Starts at the beginning.
    pub fn new(spill: &'a Spill, extent: &'a Extent) -> Self {
        Self { spill, extent, position: 0, hasher: Hasher::new() }
    }

    /// Fills `bytes` with the next ones, with all threads. There must be as many.
    pub fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        let (head, rest) = bytes.split_at_mut(left_of_piece(self.position).min(bytes.len()));
        let first = head.len();
        let parts: Vec<&mut [u8]> = [head].into_iter().chain(rest.chunks_mut(PIECE)).collect();
        let (this, position) = (&*self, self.position);
        let hashers = parts.into_par_iter().enumerate().map(|(i, part)| {
            let mut hasher = if i == 0 { this.hasher.clone() } else { Hasher::new() };
            let begin = position + begin_of_part(i, first);
            this.read_part(part, begin)?;
            hasher.update(part);
            this.check(&hasher, begin + part.len() as u64, part.is_empty())?;
            Ok(hasher)
        });
        let last = hashers.collect::<Result<Vec<Hasher>>>()?.pop();
        self.position += bytes.len() as u64;
        let ended = self.position.is_multiple_of(PIECE as u64);
        self.hasher = last.filter(|_| !ended).unwrap_or_default();
        Ok(())
    }

    fn read_part(&self, part: &mut [u8], begin: u64) -> Result<()> {
        let offset = self.extent.begin + begin;
        self.spill.file.read_exact_at(part, offset).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                let expected = self.extent.begin + self.extent.length;
                let found = self.spill.file.metadata().map_or(0, |metadata| metadata.len());
                self.spill.failure(&format!("is {found} bytes long, expected at least {expected}"))
            }
            _ => self.spill.failure(&os_message(&error)),
        })
    }

    /// Checks the piece that ends at `end`, if one does.
    fn check(&self, hasher: &Hasher, end: u64, empty: bool) -> Result<()> {
        if empty || (!end.is_multiple_of(PIECE as u64) && end != self.extent.length) {
            return Ok(());
        }
        let piece = (end - 1) / PIECE as u64;
        let (found, expected) = (hasher.clone().finalize(), self.extent.sums[piece as usize]);
        if found == expected {
            return Ok(());
        }
        let (from, to) = (self.extent.begin + piece * PIECE as u64, self.extent.begin + end);
        Err(self.spill.failure(&format!(
            "damaged between offsets {from} and {to}: checksum is {found:08x}, expected {expected:08x}"
        )))
    }
}

/// Bytes from `position` to the end of its piece.
fn left_of_piece(position: u64) -> usize {
    PIECE - (position % PIECE as u64) as usize
}

/// Where part `i` begins, of which the first has `first` bytes and the others are pieces.
fn begin_of_part(i: usize, first: usize) -> u64 {
    if i == 0 { 0 } else { (first + (i - 1) * PIECE) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: usize = 2 * PIECE + PIECE / 2;

    /// A file with an extent of `bytes` after another one.
    fn spilled(bytes: &[u8], parts: usize) -> (tempfile::TempDir, Spill, Extent) {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::create(folder.path()).unwrap();
        spill.begin(5000).write(&[99; 5000]).unwrap();
        let mut writer = spill.begin(bytes.len() as u64);
        bytes.chunks(parts).for_each(|part| writer.write(part).unwrap());
        let extent = writer.finish();
        assert_eq!((extent.begin, extent.length), (2 * PAGE, bytes.len() as u64));
        (folder, spill, extent)
    }

    fn read(spill: &Spill, extent: &Extent, parts: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; extent.length as usize];
        let mut reader = ExtentReader::new(spill, extent);
        bytes.chunks_mut(parts).try_for_each(|part| reader.read(part))?;
        Ok(bytes)
    }

    fn bytes(length: usize) -> Vec<u8> {
        (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
    }

    #[test]
    fn what_was_written_is_read_in_parts_of_any_length() {
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, LENGTH] {
            let bytes = bytes(length);
            for (written, parts) in [(length.max(1), 1000), (4093, PIECE), (PIECE, 2 * PIECE + 1), (PIECE + 7, 4096)] {
                let (folder, spill, extent) = spilled(&bytes, written);
                assert!(read(&spill, &extent, parts).unwrap() == bytes, "{length} {written} {parts}");
                assert_eq!(extent.sums.len(), length.div_ceil(PIECE));
                assert_eq!(folder.path().read_dir().unwrap().count(), 0);
            }
        }
    }

    #[test]
    fn a_flipped_bit_is_found_wherever_it_is() {
        let bytes = bytes(LENGTH);
        let (folder, spill, extent) = spilled(&bytes, LENGTH);
        for place in [0, 1, PIECE - 1, PIECE, 2 * PIECE, LENGTH - 1] {
            let flip = |byte: u8| spill.file.write_all_at(&[byte], extent.begin + place as u64).unwrap();
            flip(bytes[place] ^ 16);
            for parts in [1000, PIECE, LENGTH] {
                let failure = read(&spill, &extent, parts).unwrap_err();
                let begin = place / PIECE * PIECE + 8192;
                let end = (begin + PIECE).min(8192 + LENGTH);
                let expected = format!(
                    "{}: temporary file for sorted runs: damaged between offsets {begin} and {end}: checksum is ",
                    folder.path().display()
                );
                assert!(failure.message().unwrap().starts_with(&expected), "{:?}", failure.message());
            }
            flip(bytes[place]);
        }
        assert!(read(&spill, &extent, 1000).unwrap() == bytes);
    }

    #[test]
    fn a_file_that_is_too_short_is_an_error_with_both_lengths() {
        let (folder, spill, extent) = spilled(&bytes(LENGTH), LENGTH);
        spill.file.set_len(extent.begin + LENGTH as u64 - 1).unwrap();
        let failure = read(&spill, &extent, 1000).unwrap_err();
        let (found, expected) = (8191 + LENGTH, 8192 + LENGTH);
        let expected = format!(
            "{}: temporary file for sorted runs: is {found} bytes long, expected at least {expected}",
            folder.path().display()
        );
        assert_eq!(failure.message(), Some(&*expected));
    }

    #[test]
    fn a_released_extent_leaves_the_others() {
        let bytes = bytes(LENGTH);
        let (_folder, spill, extent) = spilled(&bytes, LENGTH);
        let empty = Extent { length: 0, sums: Vec::new(), ..extent };
        let mut writer = spill.begin(10);
        writer.write(&bytes[..10]).unwrap();
        let last = writer.finish();
        spill.release(&last);
        spill.release(&empty);
        assert!(read(&spill, &extent, PIECE).unwrap() == bytes);
        spill.release(&extent);
        assert!(read(&spill, &extent, PIECE).is_err());
    }
}
