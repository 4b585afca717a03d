//! A region of a file that all threads fill at once.
//!
//! Writes to one file wait for each other in the system. If the file is memory, as in /dev/shm, it is mapped instead.
//! Then allocating its pages would take most of the time: there are many pages of 4 KiB, and threads wait for the one
//! index of all pages. So all threads request large pages, while keys are still being read and sorted.
//!
//! ```text
//!   pages        ├──────────────┤
//!   keys         ├─ read ─┼─ sorted ─┼─ written ─┤
//! ```
//!
//! If the system has no large pages, one thread requests small pages, which is faster than several threads. It is
//! fastest while no thread writes. Writes wait until all pages are allocated.
//!
//! Pages are requested by a call that fails if there is no memory. A write to a page that the system cannot allocate
//! would end the program.

use super::mapping::Mapping;
use crate::os::memory::LARGE_PAGE;
use crate::say::error::{Failure, Result};
use crate::say::progress;
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

/// Bytes of a region that justify requesting its pages.
const WORTH_PAGES: u64 = 16 << 20;
/// Bytes of a block, whose pages a thread requests at once.
const BLOCK: usize = 16 << 20;
/// The type of the file system of /dev/shm, TMPFS_MAGIC in Linux's magic.h.
const MEMORY: FsWord = 0x0102_1994;

/// A region of a file.
#[derive(Debug)]
pub struct Region<'a> {
    path: &'a Path,
    file: &'a File,
    pages: Option<Pages>,
    /// The offset of the region in the file, and its length, in bytes.
    begin: u64,
    bytes: u64,
}

impl<'a> Region<'a> {
    /// The region of `bytes` bytes behind the end of `file`, which is `begin` bytes long. Messages name the file
    /// `path`.
    ///
    /// A file on a disk grows as it is written. If its length were set first, a failure of the system could leave zeros
    /// in place of keys.
    pub fn new(path: &'a Path, file: &'a File, begin: u64, bytes: u64) -> io::Result<Self> {
        if is_in_memory(file) {
            file.set_len(begin + bytes)?;
        }
        Self::within(path, file, begin, bytes)
    }

    /// The region of `bytes` bytes of `file` from offset `begin` on. A file in memory already has this length. Messages
    /// name the file `path`.
    pub fn within(path: &'a Path, file: &'a File, begin: u64, bytes: u64) -> io::Result<Self> {
        let pages = if is_in_memory(file) && bytes >= WORTH_PAGES {
            let range = begin as usize..(begin + bytes) as usize;
            Some(Pages::of(file.try_clone()?, Mapping::of(file)?, range, true)?)
        } else {
            None
        };
        Ok(Self { path, file, pages, begin, bytes })
    }

    /// Writes `bytes` from byte `begin` of the region on. No two threads write the same bytes.
    pub fn write(&self, begin: u64, bytes: &[u8]) -> Result<()> {
        assert!(bytes.len() as u64 <= self.bytes.saturating_sub(begin), "the write stays inside the region");
        let begin = self.begin + begin;
        let written = match &self.pages {
            None => self.file.write_all_at(bytes, begin),
            Some(pages) => pages.write(begin as usize, bytes),
        };
        progress::add(bytes.len());
        written.map_err(|error| Failure::io(self.path, &error))
    }
}

/// Whether a file is in memory. Such a file is mapped, so that its length has to be set first.
pub fn is_in_memory(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type == MEMORY)
}

/// The pages of a file in memory.
#[derive(Debug)]
struct Pages {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    file: File,
    mapping: Mapping,
    /// The offset of the first block that no thread has requested.
    next: AtomicUsize,
    /// The offset behind the last block.
    end: usize,
    /// Whether the system has allocated large pages so far.
    large: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Threads that are requesting pages.
    requesting: usize,
    failed: Option<Errno>,
}

impl Pages {
    /// Starts to request the pages of `file` at `range`, at first large pages if `large`.
    fn of(file: File, mapping: Mapping, range: Range<usize>, large: bool) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            file,
            mapping,
            next: AtomicUsize::new(range.start / LARGE_PAGE * LARGE_PAGE),
            end: range.end,
            large: AtomicBool::new(large),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let mut pages = Self { shared, threads: Vec::new() };
        pages.start(Shared::request_all)?;
        for _ in 1..rayon::current_num_threads() {
            pages.start(Shared::request_large)?;
        }
        Ok(pages)
    }

    /// Starts a thread that requests pages.
    fn start(&mut self, how: impl Fn(&Shared) -> rustix::io::Result<()> + Send + 'static) -> io::Result<()> {
        let shared = self.shared.clone();
        shared.lock().requesting += 1;
        let request = move || {
            let outcome = how(&shared);
            if outcome.is_err() {
                shared.stop();
            }
            let mut state = shared.lock();
            state.requesting -= 1;
            state.failed = state.failed.or(outcome.err());
            shared.changed.notify_all();
        };
        self.threads.push(Builder::new().name("pages".to_owned()).spawn(request)?);
        Ok(())
    }

    fn write(&self, begin: usize, bytes: &[u8]) -> io::Result<()> {
        let Shared { mapping, .. } = &*self.shared;
        self.shared.wait()?;
        // SAFETY: `wait` has returned without an error, so that all pages of the region are allocated. No two threads
        // write the same bytes, because callers of `Region::write` write disjoint ranges.
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

    /// The next block to request.
    fn next(&self) -> Option<Range<usize>> {
        let (begin, end) = (self.next.fetch_add(BLOCK, Ordering::Relaxed), self.end);
        (begin < end).then(|| begin..end.min(begin + BLOCK))
    }

    /// Stops the requests for further blocks.
    fn stop(&self) {
        self.next.store(self.end, Ordering::Relaxed);
    }

    /// Requests pages, block after block, until all are allocated or the region is dropped.
    fn request_all(&self) -> rustix::io::Result<()> {
        self.request_large()?;
        while let Some(block) = self.next() {
            self.request_small(block)?;
        }
        Ok(())
    }

    /// Requests large pages, until all are allocated or the system has no more large pages.
    fn request_large(&self) -> rustix::io::Result<()> {
        while self.large.load(Ordering::Relaxed)
            && let Some(Range { start, end }) = self.next()
        {
            // The end of the file may be less than a large page.
            let large = start..end / LARGE_PAGE * LARGE_PAGE;
            // The system can only replace an allocated small page by a large page.
            for begin in large.clone().step_by(LARGE_PAGE) {
                self.request_small(begin..begin + 1)?;
            }
            if self.mapping.make_large(large.clone()).is_err() {
                self.large.store(false, Ordering::Relaxed);
                self.request_small(start..end)?;
            } else {
                self.request_small(large.end..end)?;
            }
            self.mapping.leave(large);
        }
        Ok(())
    }

    /// Requests pages of 4 KiB for the bytes at `range` that have no pages yet.
    fn request_small(&self, range: Range<usize>) -> rustix::io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let (begin, bytes) = (range.start as u64, range.len() as u64);
        retry_on_intr(|| rustix::fs::fallocate(&self.file, FallocateFlags::empty(), begin, bytes))
    }

    /// Waits until all pages are allocated.
    fn wait(&self) -> io::Result<()> {
        let requesting = |state: &mut State| state.requesting > 0;
        let state = self.changed.wait_while(self.lock(), requesting).unwrap_or_else(PoisonError::into_inner);
        state.failed.map_or(Ok(()), |error| Err(error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use merge_host::parallel;
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;

    /// Fills a file with all threads, from its end on, and reads it back.
    fn check(begin: usize, bytes: usize, pages_of: impl Fn(&File) -> Option<Pages>) {
        let mut file = tempfile::tempfile_in("/dev/shm").unwrap();
        let expected: Vec<u8> = (0..begin + bytes).map(|i| (i % 251) as u8 + 1).collect();
        file.write_all_at(&expected[..begin], 0).unwrap();
        file.set_len((begin + bytes) as u64).unwrap();
        let path = Path::new("FILE");
        let region = Region { path, file: &file, pages: pages_of(&file), begin: begin as u64, bytes: bytes as u64 };
        let block = 300_000;
        let blocks = expected[begin..].chunks(block).enumerate().rev();
        parallel::for_each(blocks, |(i, keys)| region.write((i * block) as u64, keys).unwrap());
        drop(region);
        let mut found = Vec::new();
        file.read_to_end(&mut found).unwrap();
        assert!(found == expected, "{bytes} bytes after {begin}");
    }

    fn pages(file: &File, begin: usize, large: bool) -> Pages {
        let range = begin..file.metadata().unwrap().len() as usize;
        Pages::of(file.try_clone().unwrap(), Mapping::of(file).unwrap(), range, large).unwrap()
    }

    #[test]
    fn files_of_all_lengths_are_filled_whatever_pages_there_are() {
        let lengths = [1, 4095, LARGE_PAGE - 128, LARGE_PAGE, LARGE_PAGE + 1, BLOCK, 2 * BLOCK + LARGE_PAGE + 4097];
        for bytes in lengths {
            for begin in [0, 128, LARGE_PAGE + 5000] {
                check(begin, bytes, |_| None);
                check(begin, bytes, |file| Some(pages(file, begin, true)));
                check(begin, bytes, |file| Some(pages(file, begin, false)));
            }
        }
    }

    #[test]
    fn pages_of_a_dropped_region_are_requested_no_longer() {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        // More bytes than the machine has memory.
        file.set_len(1 << 40).unwrap();
        for large in [true, false] {
            drop(pages(&file, 0, large));
        }
        let blocks = file.metadata().unwrap().blocks();
        assert!(blocks < 1 << 24, "{blocks} blocks of 512 bytes");
    }

    #[test]
    fn pages_that_cannot_be_allocated_are_an_error() {
        for large in [true, false] {
            let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
            file.as_file().set_len(3 * BLOCK as u64).unwrap();
            // The system allocates no pages through a file that is open only for reading.
            let reader = File::open(file.path()).unwrap();
            let pages = Pages::of(reader, Mapping::of(file.as_file()).unwrap(), 0..3 * BLOCK, large).unwrap();
            let error = pages.write(0, &[1]).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(Errno::BADF.raw_os_error()));
        }
    }
}
