//! A file as room that all threads fill at once.
//!
//! Writes to one file wait for each other in the system. Where the file is nothing but memory, as in /dev/shm, it is mapped
//! instead. Then most of the time goes into getting the pages, one by one, and the system's threads wait for each other
//! there too. So a few threads of ours ask for them, from the first page on, while keys are still being read and sorted:
//!
//! ```text
//!   file      │ pages │ pages │ pages │       │       │
//!   asked for ────────────────────────►
//!   written   ──────────►                    waits for pages that are not there yet
//! ```
//!
//! They are asked for by a call that fails where there is no room. To write to a page that the system cannot give would
//! kill the program.

use crate::error::{Failure, Result};
use crate::progress;
use memmap2::{Advice, MmapRaw, UncheckedAdvice};
use rustix::fs::FsWord;
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Bytes whose pages a thread asks for at once.
const PIECE: usize = 16 << 20;
/// Threads that ask for pages: with more of them each waits longer, and all together as long.
const THREADS: usize = 4;
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
        let pages = if in_memory && bytes > 0 { Pages::of(file)? } else { None };
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
    mapped: MmapRaw,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Which pieces are there.
    there: Vec<bool>,
    /// The first piece that nobody has asked for yet.
    next: usize,
    error: Option<Errno>,
}

impl Pages {
    /// Maps `file` and starts to ask for its pages. `None` where the system does not know how.
    fn of(file: &File) -> io::Result<Option<Self>> {
        let mapped = MmapRaw::map_raw(file)?;
        if let Err(error) = mapped.advise_range(Advice::PopulateWrite, 0, 1) {
            return if error.kind() == ErrorKind::InvalidInput { Ok(None) } else { Err(no_space(error)) };
        }
        let there = vec![false; mapped.len().div_ceil(PIECE)];
        let threads = THREADS.min(there.len());
        let state = Mutex::new(State { there, next: 0, error: None });
        let shared = Arc::new(Shared { mapped, state, changed: Condvar::new() });
        let mut pages = Self { shared, threads: Vec::new() };
        for i in 0..threads {
            let shared = pages.shared.clone();
            let thread = Builder::new().name(format!("pages-{i}")).spawn(move || shared.populate());
            match thread {
                Ok(thread) => pages.threads.push(thread),
                Err(error) if i == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(Some(pages))
    }

    fn write(&self, begin: usize, bytes: &[u8]) -> io::Result<()> {
        let Shared { mapped, .. } = &*self.shared;
        self.shared.wait_for(begin, bytes.len())?;
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
        let mut state = self.shared.lock();
        state.next = state.there.len();
        drop(state);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for pages until there are no more to ask for.
    fn populate(&self) {
        loop {
            let piece = {
                let mut state = self.lock();
                if state.next >= state.there.len() || state.error.is_some() {
                    return;
                }
                state.next += 1;
                state.next - 1
            };
            let (begin, end) = (piece * PIECE, self.mapped.len().min((piece + 1) * PIECE));
            let populated = self.mapped.advise_range(Advice::PopulateWrite, begin, end - begin);
            let mut state = self.lock();
            match populated {
                Ok(()) => state.there[piece] = true,
                Err(error) => {
                    let error = no_space(error);
                    state.error = Some(Errno::from_io_error(&error).unwrap_or(Errno::IO));
                }
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Waits until `length` bytes from `begin` on are there.
    fn wait_for(&self, begin: usize, length: usize) -> io::Result<()> {
        let pieces = begin / PIECE..(begin + length).div_ceil(PIECE);
        let mut state = self.lock();
        while !state.there[pieces.clone()].iter().all(|&there| there) {
            if let Some(error) = state.error {
                return Err(error.into());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }
}

/// The error where the system does not give pages: a bad address is what it calls the end of its file system's memory.
fn no_space(error: io::Error) -> io::Error {
    if Errno::from_io_error(&error) == Some(Errno::FAULT) { Errno::NOSPC.into() } else { error }
}
