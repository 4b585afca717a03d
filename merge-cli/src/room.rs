//! A file as room that all threads fill at once.
//!
//! Writes to one file wait for each other in the system. Where the file is nothing but memory, as in /dev/shm, it is mapped
//! instead. Then most of the time goes into getting its pages: threads that write to pages that are not there yet wait for
//! each other as well, and for a thread that asks for pages. One that asks while nobody writes is the fastest. So one does
//! while keys are still being read and sorted, and when all pages are there all threads write:
//!
//! ```text
//!   asked for    ├─────────────────────────┤
//!   keys         ├─ read ─┼─ sorted ─┤     ├─ written ─┤
//! ```
//!
//! They are asked for by a call that fails where there is no room. To write to a page that the system cannot give would
//! kill the program.

use crate::error::{Failure, Result};
use crate::progress;
use memmap2::{MmapRaw, UncheckedAdvice};
use rustix::fs::{FallocateFlags, FsWord};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

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
        let pages = if in_memory && bytes > 0 { Some(Pages::of(file)?) } else { None };
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
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    mapped: MmapRaw,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Asking,
    There,
    Failed(Errno),
    /// Nobody needs the pages any more.
    Left,
}

impl Pages {
    /// Maps `file` and starts to ask for its pages.
    fn of(file: &File) -> io::Result<Self> {
        let (mapped, file) = (MmapRaw::map_raw(file)?, file.try_clone()?);
        let shared = Arc::new(Shared { mapped, state: Mutex::new(State::Asking), changed: Condvar::new() });
        let asking = shared.clone();
        let thread = Builder::new().name("pages".to_owned()).spawn(move || asking.ask_for_pages(&file))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    fn write(&self, begin: usize, bytes: &[u8]) -> io::Result<()> {
        let Shared { mapped, .. } = &*self.shared;
        self.shared.wait()?;
        // SAFETY: the place lies inside the mapping, whose pages are there, and only this thread writes to it.
        unsafe { mapped.as_mut_ptr().add(begin).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        // SAFETY: the bytes stay in the file. Only their pages' places in this program are given up, which takes
        // a while, and by one thread if it is left to the end.
        let _ = unsafe { mapped.unchecked_advise_range(UncheckedAdvice::DontNeed, begin, bytes.len()) };
        Ok(())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        *self.shared.lock() = State::Left;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for all pages, piece after piece, until they are there or nobody needs them.
    fn ask_for_pages(&self, file: &File) {
        let length = self.mapped.len();
        let outcome = (0..length).step_by(PIECE).try_for_each(|begin| {
            if *self.lock() == State::Left {
                return Err(Errno::CANCELED);
            }
            let (begin, bytes) = (begin as u64, PIECE.min(length - begin) as u64);
            retry_on_intr(|| rustix::fs::fallocate(file, FallocateFlags::empty(), begin, bytes))
        });
        *self.lock() = outcome.map_or_else(State::Failed, |()| State::There);
        self.changed.notify_all();
    }

    /// Waits until all pages are there.
    fn wait(&self) -> io::Result<()> {
        let waiting = |state: &mut State| *state == State::Asking;
        let state = self.changed.wait_while(self.lock(), waiting).unwrap_or_else(PoisonError::into_inner);
        if let State::Failed(error) = *state { Err(error.into()) } else { Ok(()) }
    }
}
