//! A file as room that all threads fill at once.
//!
//! Writes to one file wait for each other in the system. Where the file is nothing but memory, as in /dev/shm, it is mapped
//! instead, and its pages are given out to all threads at once. They are so before anything is written, by a call that
//! fails where there is no room: to write to a page that the system cannot give would kill the program.

use crate::error::{Failure, Result};
use crate::progress;
use memmap2::{Advice, MmapRaw, UncheckedAdvice};
use rayon::prelude::*;
use rustix::fs::FsWord;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes whose pages a thread asks for at once.
const PIECE: usize = 16 << 20;
/// What the file system of /dev/shm calls itself, TMPFS_MAGIC in Linux's magic.h.
const MEMORY: FsWord = 0x0102_1994;

/// Room for the bytes of a file.
#[derive(Debug)]
pub struct Room<'a> {
    path: &'a Path,
    file: &'a File,
    mapped: Option<MmapRaw>,
    /// Where in the file the room begins, and how long it is.
    begin: u64,
    bytes: u64,
}

impl<'a> Room<'a> {
    /// Makes `file`, which is `begin` bytes long, `bytes` bytes longer. `path` is what messages call it.
    pub fn new(path: &'a Path, file: &'a File, begin: u64, bytes: u64) -> io::Result<Self> {
        file.set_len(begin + bytes)?;
        let in_memory = rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type == MEMORY);
        let mapped = if in_memory && bytes > 0 { map(file)? } else { None };
        Ok(Self { path, file, mapped, begin, bytes })
    }

    /// Writes `bytes` from byte `begin` of the room on. No two threads write to the same place.
    pub fn write(&self, begin: u64, bytes: &[u8]) -> Result<()> {
        assert!(bytes.len() as u64 <= self.bytes.saturating_sub(begin), "the write stays inside the room");
        let begin = self.begin + begin;
        match &self.mapped {
            None => {
                let written = self.file.write_all_at(bytes, begin);
                progress::add(bytes.len());
                written.map_err(|error| Failure::io(self.path, &error))
            }
            Some(mapped) => {
                let begin = begin as usize;
                // SAFETY: the place lies inside the mapping, whose pages are there, and only this thread writes to it.
                unsafe { mapped.as_mut_ptr().add(begin).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
                // SAFETY: the bytes stay in the file. Only their pages' places in this program are given up, which takes
                // a while, and by one thread if it is left to the end.
                let _ = unsafe { mapped.unchecked_advise_range(UncheckedAdvice::DontNeed, begin, bytes.len()) };
                progress::add(bytes.len());
                Ok(())
            }
        }
    }
}

/// Maps `file` and has the system give its pages. `None` where the system does not know how.
fn map(file: &File) -> io::Result<Option<MmapRaw>> {
    let mapped = MmapRaw::map_raw(file)?;
    let pieces = (0..mapped.len()).into_par_iter().step_by(PIECE);
    let populated = pieces.try_for_each(|begin| {
        let bytes = PIECE.min(mapped.len() - begin);
        mapped.advise_range(Advice::PopulateWrite, begin, bytes)
    });
    match populated {
        Ok(()) => Ok(Some(mapped)),
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(None),
        // What the system says where the file system is full.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::FAULT.raw_os_error()) => {
            Err(rustix::io::Errno::NOSPC.into())
        }
        Err(error) => Err(error),
    }
}
