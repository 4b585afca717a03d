//! A file as room that all threads fill at once.
//!
//! Writes to one file wait for each other in the system. Where the file is nothing but memory, as in /dev/shm, it is mapped
//! instead. Then most of the time would go into getting its pages: of 4 KiB there are many, all listed in one index, where
//! threads wait for each other. So large pages are asked for, by all threads, while keys are still being read and sorted.
//!
//! ```text
//!   asked for    ├──────────────┤
//!   keys         ├─ read ─┼─ sorted ─┼─ written ─┤
//! ```
//!
//! Where the system has no large pages, one thread asks for small ones: it is the fastest alone, and while nobody writes.
//! Nobody writes before all pages are there.
//!
//! They are asked for by a call that fails where there is no room. To write to a page that the system cannot give would
//! kill the program.

mod mapping;

use crate::error::{Failure, Result};
use crate::memory::LARGE_PAGE;
use crate::progress;
use mapping::Mapping;
use rustix::fs::{FallocateFlags, FsWord};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Bytes that make it worth asking for pages.
const WORTH_PAGES: u64 = 16 << 20;
/// Bytes whose pages are asked for at once.
const PIECE: usize = 16 << 20;
/// What the file system of /dev/shm calls itself, TMPFS_MAGIC in Linux's magic.h.
const MEMORY: FsWord = 0x0102_1994;

/// Room for the bytes of a file.
#[derive(Debug)]
pub struct Room<'a> {
    path: &'a Path,
    file: &'a File,
    pages: Option<Pages>,
    /// Where in the file the room begins, and how long it is.
    begin: u64,
    bytes: u64,
}

impl<'a> Room<'a> {
    /// Makes `file`, which is `begin` bytes long, `bytes` bytes longer. `path` is what messages call it.
    pub fn new(path: &'a Path, file: &'a File, begin: u64, bytes: u64) -> io::Result<Self> {
        file.set_len(begin + bytes)?;
        let in_memory = rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type == MEMORY);
        let pages = if in_memory && bytes >= WORTH_PAGES {
            Some(Pages::of(file.try_clone()?, Mapping::of(file)?, begin as usize, true)?)
        } else {
            None
        };
        Ok(Self { path, file, pages, begin, bytes })
    }

    /// Writes `bytes` from byte `begin` of the room on. No two threads write to the same place.
    pub fn write(&self, begin: u64, bytes: &[u8]) -> Result<()> {
        assert!(bytes.len() as u64 <= self.bytes.saturating_sub(begin), "the write stays inside the room");
        let begin = self.begin + begin;
        let written = match &self.pages {
            None => self.file.write_all_at(bytes, begin),
            Some(pages) => pages.write(begin as usize, bytes),
        };
        progress::add(bytes.len());
        written.map_err(|error| Failure::io(self.path, &error))
    }
}

/// The pages of a file that is memory.
#[derive(Debug)]
struct Pages {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    file: File,
    mapping: Mapping,
    /// Where the next piece begins that nobody has asked for.
    next: AtomicUsize,
    /// Whether the system has given large pages so far.
    large: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Threads that are asking.
    asking: usize,
    failed: Option<Errno>,
}

impl Pages {
    /// Starts to ask for the pages of `file` from byte `begin` on, `large` ones at first.
    fn of(file: File, mapping: Mapping, begin: usize, large: bool) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            file,
            mapping,
            next: AtomicUsize::new(begin / LARGE_PAGE * LARGE_PAGE),
            large: AtomicBool::new(large),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let mut pages = Self { shared, threads: Vec::new() };
        pages.ask(Shared::ask_for_all)?;
        for _ in 1..rayon::current_num_threads() {
            pages.ask(Shared::ask_for_large)?;
        }
        Ok(pages)
    }

    /// Starts a thread that asks.
    fn ask(&mut self, how: impl Fn(&Shared) -> rustix::io::Result<()> + Send + 'static) -> io::Result<()> {
        let shared = self.shared.clone();
        shared.lock().asking += 1;
        let ask = move || {
            let outcome = how(&shared);
            if outcome.is_err() {
                shared.stop();
            }
            let mut state = shared.lock();
            state.asking -= 1;
            state.failed = state.failed.or(outcome.err());
            shared.changed.notify_all();
        };
        self.threads.push(Builder::new().name("pages".to_owned()).spawn(ask)?);
        Ok(())
    }

    fn write(&self, begin: usize, bytes: &[u8]) -> io::Result<()> {
        let Shared { mapping, .. } = &*self.shared;
        self.shared.wait()?;
        // SAFETY: all pages are there, and only this thread writes to the place.
        unsafe { mapping.write(begin, bytes) };
        mapping.leave(begin..begin + bytes.len());
        Ok(())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next piece to ask for.
    fn next(&self) -> Option<Range<usize>> {
        let (begin, end) = (self.next.fetch_add(PIECE, Ordering::Relaxed), self.mapping.len());
        (begin < end).then(|| begin..end.min(begin + PIECE))
    }

    /// Has no more pieces asked for.
    fn stop(&self) {
        self.next.store(self.mapping.len(), Ordering::Relaxed);
    }

    /// Asks for pages, piece after piece, until all are there or nobody needs them.
    fn ask_for_all(&self) -> rustix::io::Result<()> {
        self.ask_for_large()?;
        while let Some(piece) = self.next() {
            self.ask_for_small(piece)?;
        }
        Ok(())
    }

    /// As [`ask_for_all`](Self::ask_for_all), until the system has no large pages.
    fn ask_for_large(&self) -> rustix::io::Result<()> {
        while self.large.load(Ordering::Relaxed)
            && let Some(Range { start, end }) = self.next()
        {
            // The end of the file may be less than a large page.
            let large = start..end / LARGE_PAGE * LARGE_PAGE;
            // Each large page takes the place of a small one.
            for begin in large.clone().step_by(LARGE_PAGE) {
                self.ask_for_small(begin..begin + 1)?;
            }
            if self.mapping.make_large(large.clone()).is_err() {
                self.large.store(false, Ordering::Relaxed);
                self.ask_for_small(start..end)?;
            } else {
                self.ask_for_small(large.end..end)?;
            }
            self.mapping.leave(large);
        }
        Ok(())
    }

    /// Asks for pages of 4 KiB for the bytes at `range`, where there are none yet.
    fn ask_for_small(&self, range: Range<usize>) -> rustix::io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let (begin, bytes) = (range.start as u64, range.len() as u64);
        retry_on_intr(|| rustix::fs::fallocate(&self.file, FallocateFlags::empty(), begin, bytes))
    }

    /// Waits until all pages are there.
    fn wait(&self) -> io::Result<()> {
        let asking = |state: &mut State| state.asking > 0;
        let state = self.changed.wait_while(self.lock(), asking).unwrap_or_else(PoisonError::into_inner);
        state.failed.map_or(Ok(()), |error| Err(error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;

    /// Fills a file by all threads, from its end on, and reads it back.
    fn check(begin: usize, bytes: usize, pages_of: impl Fn(&File) -> Option<Pages>) {
        let mut file = tempfile::tempfile_in("/dev/shm").unwrap();
        let expected: Vec<u8> = (0..begin + bytes).map(|i| (i % 251) as u8 + 1).collect();
        file.write_all_at(&expected[..begin], 0).unwrap();
        file.set_len((begin + bytes) as u64).unwrap();
        let path = Path::new("FILE");
        let room = Room { path, file: &file, pages: pages_of(&file), begin: begin as u64, bytes: bytes as u64 };
        let piece = 300_000;
        let pieces = expected[begin..].par_chunks(piece).enumerate().rev();
        pieces.for_each(|(i, keys)| room.write((i * piece) as u64, keys).unwrap());
        drop(room);
        let mut found = Vec::new();
        file.read_to_end(&mut found).unwrap();
        assert!(found == expected, "{bytes} bytes after {begin}");
    }

    fn pages(file: &File, begin: usize, large: bool) -> Pages {
        Pages::of(file.try_clone().unwrap(), Mapping::of(file).unwrap(), begin, large).unwrap()
    }

    #[test]
    fn files_of_all_lengths_are_filled_whatever_pages_there_are() {
        let lengths = [1, 4095, LARGE_PAGE - 128, LARGE_PAGE, LARGE_PAGE + 1, PIECE, 2 * PIECE + LARGE_PAGE + 4097];
        for bytes in lengths {
            for begin in [0, 128, LARGE_PAGE + 5000] {
                check(begin, bytes, |_| None);
                check(begin, bytes, |file| Some(pages(file, begin, true)));
                check(begin, bytes, |file| Some(pages(file, begin, false)));
            }
        }
    }

    #[test]
    fn pages_that_nobody_needs_any_more_are_asked_for_no_longer() {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        // More than there is memory.
        file.set_len(1 << 40).unwrap();
        for large in [true, false] {
            drop(pages(&file, 0, large));
        }
        let blocks = file.metadata().unwrap().blocks();
        assert!(blocks < 1 << 24, "{blocks} blocks of 512 bytes");
    }

    #[test]
    fn pages_that_do_not_come_are_an_error() {
        for large in [true, false] {
            let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
            file.as_file().set_len(3 * PIECE as u64).unwrap();
            // The system does not give pages to who may only read.
            let reader = File::open(file.path()).unwrap();
            let pages = Pages::of(reader, Mapping::of(file.as_file()).unwrap(), 0, large).unwrap();
            let error = pages.write(0, &[1]).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(Errno::BADF.raw_os_error()));
        }
    }
}
