//! The temporary files for runs, with checksums: one in each folder, and each run in the next of them.
//!
//! A file is unnamed (`O_TMPFILE`), so nothing of it is left however the program ends. Several extents are written at
//! the same time, each from its beginning to its end. Each block is appended to the file, with a checksum. So an extent
//! may have any length, which need not be known before:
//!
//! ```text
//!   file   │ keys of run 0 │ payload of run 0    │ keys of run 1 │ payload │ keys │ payload │ …
//!   blocks ├──────┼──────┼─┼──────┼──────┼──────┼┼──────┼──────┼─┼────────┼┼─────┼─────────┤
//! ```
//!
//! A block is read in parts of any length, and checked when its last byte has been read.

use super::error::ScratchError;
use super::positioned::{read_exact_at, write_all_at};
use crate::cpu::memory;
use crate::parallel;
use crc32fast::Hasher;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The greatest number of bytes of a block. One thread writes a block, which has one checksum.
const BLOCK: usize = 1 << 20;

/// Temporary files, at least one.
#[derive(Debug)]
pub(super) struct Spills {
    files: Vec<Arc<Spill>>,
    /// The number of runs so far.
    runs: AtomicUsize,
}

impl Spills {
    /// Creates a file in each of `folders`, or in the system's folder for temporary files if there are none.
    pub(super) fn create(folders: &[PathBuf]) -> Result<Self, ScratchError> {
        let files = match folders {
            [] => vec![Spill::create(&std::env::temp_dir())?],
            _ => folders.iter().map(|folder| Spill::create(folder)).collect::<Result<_, _>>()?,
        };
        Ok(Self { files: files.into_iter().map(Arc::new).collect(), runs: AtomicUsize::new(0) })
    }

    /// The file for the next run.
    pub(super) fn next(&self) -> Arc<Spill> {
        self.files[self.runs.fetch_add(1, Ordering::Relaxed) % self.files.len()].clone()
    }
}

/// An unnamed temporary file.
#[derive(Debug)]
pub(super) struct Spill {
    folder: PathBuf,
    file: File,
    /// The offset of the next block.
    end: AtomicU64,
}

/// A sequence of blocks of the file, written from its beginning to its end.
#[derive(Debug, Default)]
pub(super) struct Extent {
    blocks: Vec<Block>,
}

/// A contiguous part of an extent.
#[derive(Clone, Copy, Debug)]
struct Block {
    begin: u64,
    /// At least 1 and at most [`BLOCK`].
    length: usize,
    checksum: u32,
}

impl Spill {
    /// Creates the file in `folder`.
    fn create(folder: &Path) -> Result<Self, ScratchError> {
        let file =
            tempfile::tempfile_in(folder).map_err(|error| ScratchError::Create { folder: folder.to_owned(), error })?;
        Ok(Self { folder: folder.to_owned(), file, end: AtomicU64::new(0) })
    }

    /// Appends `bytes` to an extent, on all threads.
    pub(super) fn append(&self, extent: &mut Extent, bytes: &[u8]) -> Result<(), ScratchError> {
        let begin = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let write = |(i, bytes): (usize, &[u8])| {
            let begin = begin + (i * BLOCK) as u64;
            write_all_at(&self.file, bytes, begin)?;
            Ok(Block { begin, length: bytes.len(), checksum: crc32fast::hash(bytes) })
        };
        for block in parallel::try_map_on(threads_for(bytes), bytes.chunks(BLOCK).enumerate(), write)? {
            memory::push(&mut extent.blocks, block.map_err(|error| self.io_error(error))?)?;
        }
        Ok(())
    }

    /// Frees the space of an extent that is not read again, if the file system supports that. Systems other than Linux
    /// keep the space until the file is closed.
    pub(super) fn release(&self, extent: &Extent) {
        #[cfg(target_os = "linux")]
        for block in &extent.blocks {
            use rustix::fs::FallocateFlags;
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // An error leaves the space in use until the file is closed.
            let _ = rustix::fs::fallocate(&self.file, flags, block.begin, block.length as u64);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = extent;
    }

    /// Reads `bytes` at an offset of a block.
    fn read(&self, block: &Block, offset: usize, bytes: &mut [u8]) -> Result<(), ScratchError> {
        let read = read_exact_at(&self.file, bytes, block.begin + offset as u64);
        read.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => ScratchError::Truncated {
                folder: self.folder.clone(),
                expected: block.begin + block.length as u64,
                found: self.file.metadata().map_or(0, |metadata| metadata.len()),
            },
            _ => self.io_error(error),
        })
    }

    /// Checks a block against the checksum of the bytes read.
    fn check(&self, block: &Block, found: u32) -> Result<(), ScratchError> {
        if found == block.checksum {
            return Ok(());
        }
        Err(ScratchError::Damaged {
            folder: self.folder.clone(),
            begin: block.begin,
            end: block.begin + block.length as u64,
            expected: block.checksum,
            found,
        })
    }

    fn io_error(&self, error: Error) -> ScratchError {
        ScratchError::Io { folder: self.folder.clone(), error }
    }
}

/// The number of threads for reading or writing `bytes`: the calling thread, or all.
fn threads_for(bytes: &[u8]) -> usize {
    if bytes.len() <= BLOCK { 1 } else { usize::MAX }
}

/// Reads an extent from its beginning to its end.
#[derive(Debug)]
pub(super) struct ExtentReader<'a> {
    spill: &'a Spill,
    blocks: &'a [Block],
    /// The number of bytes of the first of `blocks` that were read.
    offset: usize,
    /// The state of the checksum of the first `offset` bytes.
    hasher: Hasher,
}

/// A part of a block, and the memory to read it to.
struct Part<'a> {
    block: &'a Block,
    offset: usize,
    /// The state of the checksum of the bytes before `offset`.
    hasher: Hasher,
    bytes: &'a mut [u8],
}

impl<'a> ExtentReader<'a> {
    /// A reader at the beginning of the extent.
    pub(super) fn new(spill: &'a Spill, extent: &'a Extent) -> Self {
        Self { spill, blocks: &extent.blocks, offset: 0, hasher: Hasher::new() }
    }

    /// Fills `bytes` with the next bytes, on all threads. The extent has at least `bytes.len()` bytes left.
    pub(super) fn read(&mut self, bytes: &mut [u8]) -> Result<(), ScratchError> {
        let spill = self.spill;
        let threads = threads_for(bytes);
        let parts = self.advance(bytes)?;
        let hashers = parallel::try_map_on(threads, parts, |part| {
            let Part { block, offset, mut hasher, bytes } = part;
            spill.read(block, offset, bytes)?;
            hasher.update(bytes);
            if offset + bytes.len() == block.length {
                spill.check(block, hasher.finalize())?;
                return Ok(Hasher::new());
            }
            Ok::<_, ScratchError>(hasher)
        })?;
        for hasher in hashers {
            self.hasher = hasher?;
        }
        Ok(())
    }

    /// The parts of blocks that `bytes` are read from. Moves the reader behind these parts.
    fn advance<'b>(&mut self, mut bytes: &'b mut [u8]) -> Result<Vec<Part<'b>>, ScratchError>
    where
        'a: 'b,
    {
        let mut parts = Vec::new();
        while !bytes.is_empty() {
            let block = &self.blocks[0];
            let (head, rest) = bytes.split_at_mut(bytes.len().min(block.length - self.offset));
            let offset = self.offset;
            self.offset += head.len();
            if self.offset == block.length {
                (self.blocks, self.offset) = (&self.blocks[1..], 0);
            }
            memory::push(&mut parts, Part { block, offset, hasher: std::mem::take(&mut self.hasher), bytes: head })?;
            bytes = rest;
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: usize = 2 * BLOCK + BLOCK / 2;

    fn extent(spill: &Spill, bytes: &[u8], part: usize) -> Extent {
        let mut extent = Extent::default();
        bytes.chunks(part).for_each(|bytes| spill.append(&mut extent, bytes).unwrap());
        extent
    }

    #[test]
    fn each_run_goes_to_the_next_folder() {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let paths = folders.each_ref().map(|folder| folder.path().to_owned());
        let spills = Spills::create(&paths).unwrap();
        for i in 0..7 {
            assert_eq!(spills.next().folder, paths[i % 3]);
        }
        assert_eq!(Spills::create(&[]).unwrap().next().folder, std::env::temp_dir());
        let missing = PathBuf::from("/not/there");
        let error = Spills::create(&[paths[0].clone(), missing]).unwrap_err();
        assert!(error.to_string().starts_with("/not/there: "), "{error}");
    }

    /// A file with an extent of `bytes` after another extent.
    fn spilled(bytes: &[u8], part: usize) -> (tempfile::TempDir, Spill, Extent) {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::create(folder.path()).unwrap();
        extent(&spill, &[99; 5000], 5000);
        let extent = extent(&spill, bytes, part);
        (folder, spill, extent)
    }

    fn read(spill: &Spill, extent: &Extent, part: usize) -> Result<Vec<u8>, ScratchError> {
        let mut bytes = vec![0; extent.blocks.iter().map(|block| block.length).sum()];
        let mut reader = ExtentReader::new(spill, extent);
        bytes.chunks_mut(part).try_for_each(|part| reader.read(part))?;
        Ok(bytes)
    }

    fn bytes(length: usize) -> Vec<u8> {
        (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
    }

    #[test]
    fn bytes_are_written_and_read_in_parts_of_any_length() {
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, LENGTH] {
            let bytes = bytes(length);
            for (written, part) in [(length.max(1), 1000), (4093, BLOCK), (BLOCK, 2 * BLOCK + 1), (BLOCK + 7, 4096)] {
                let (folder, spill, extent) = spilled(&bytes, written);
                assert!(read(&spill, &extent, part).unwrap() == bytes, "{length} {written} {part}");
                assert_eq!(folder.path().read_dir().unwrap().count(), 0);
            }
        }
    }

    #[test]
    fn extents_are_written_at_the_same_time() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::create(folder.path()).unwrap();
        let all = [bytes(LENGTH), bytes(LENGTH / 2), bytes(1000)];
        let mut extents = [Extent::default(), Extent::default(), Extent::default()];
        for part in 0..LENGTH.div_ceil(300_000) {
            for (bytes, extent) in all.iter().zip(&mut extents) {
                spill.append(extent, bytes.chunks(300_000).nth(part).unwrap_or_default()).unwrap();
            }
        }
        for (bytes, extent) in all.iter().zip(&extents) {
            assert!(read(&spill, extent, 70_000).unwrap() == *bytes);
        }
    }

    #[test]
    fn a_flipped_bit_is_found_wherever_it_is() {
        let bytes = bytes(LENGTH);
        let (folder, spill, extent) = spilled(&bytes, LENGTH);
        for index in [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK, LENGTH - 1] {
            let flip = |byte: u8| write_all_at(&spill.file, &[byte], (5000 + index) as u64).unwrap();
            flip(bytes[index] ^ 16);
            for part in [1000, BLOCK, LENGTH] {
                let error = read(&spill, &extent, part).unwrap_err().to_string();
                let begin = index / BLOCK * BLOCK + 5000;
                let end = (begin + BLOCK).min(5000 + LENGTH);
                let expected = format!(
                    "{}: temporary file for sorted runs: damaged between offsets {begin} and {end}: checksum is ",
                    folder.path().display()
                );
                assert!(error.starts_with(&expected), "{error}");
            }
            flip(bytes[index]);
        }
        assert!(read(&spill, &extent, 1000).unwrap() == bytes);
    }

    #[test]
    fn a_file_that_is_too_short_is_an_error_with_both_lengths() {
        let (folder, spill, extent) = spilled(&bytes(LENGTH), LENGTH);
        spill.file.set_len((5000 + LENGTH - 1) as u64).unwrap();
        let error = read(&spill, &extent, 1000).unwrap_err().to_string();
        let (found, expected) = (4999 + LENGTH, 5000 + LENGTH);
        let expected = format!(
            "{}: temporary file for sorted runs: is {found} bytes long, expected at least {expected}",
            folder.path().display()
        );
        assert_eq!(error, expected);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_released_extent_leaves_the_others() {
        let bytes = bytes(LENGTH);
        let (_folder, spill, first) = spilled(&bytes, LENGTH);
        let [second, third] = [10, 777].map(|length| extent(&spill, &bytes[..length], 7));
        spill.release(&second);
        spill.release(&Extent::default());
        assert!(read(&spill, &first, BLOCK).unwrap() == bytes);
        assert!(read(&spill, &second, 10).is_err());
        spill.release(&first);
        assert!(read(&spill, &first, BLOCK).is_err());
        assert!(read(&spill, &third, 100).unwrap() == bytes[..777]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let error = Spill::create(Path::new("/not/there")).unwrap_err();
        assert_eq!(error.to_string(), "/not/there: cannot create a temporary file: No such file or directory");
    }
}
