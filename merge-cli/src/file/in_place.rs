//! Sorts in place: sorted items are written over the file from which they were read.
//!
//! ```text
//!   this process   open, lock ─► read, sort ─► unchanged? ─► fork ─► wait for the other, report its error
//!   the other                                                  └───► write ─► sync
//! ```
//!
//! The other process goes on when this one is killed. So the file has the old items or soon the new ones, and loses an
//! item only if the system fails. The other process holds the lock, too, so that a second run waits for it.

use super::identity::Identity;
use crate::os::process::{self, Process};
use crate::os::signals;
use crate::say::error::{Failure, Result, name, os_message};
use crate::say::{progress, report};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, getrlimit};
use std::fs::{self, File, Metadata};
use std::io::{self, PipeWriter};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes that are written at once: a whole number of keys of any type.
const BLOCK: usize = 1 << 20;

/// A file that will be written over.
#[derive(Debug)]
pub struct InPlace {
    pub path: PathBuf,
    pub(super) file: File,
    /// The offset of the first item.
    pub begin: u64,
    /// The file before it was read.
    state: State,
    /// Whether to wait until all items are on the medium.
    sync: bool,
}

/// What differs if another file has taken the path, or another program has written the file: the length, and the time
/// of the last change.
#[derive(Debug, PartialEq, Eq)]
struct State(Identity, u64, [i64; 2]);

impl State {
    fn of(metadata: &Metadata) -> Self {
        Self(Identity::of(metadata), metadata.len(), [metadata.mtime(), metadata.mtime_nsec()])
    }
}

impl InPlace {
    /// Opens and locks the regular file at `path` before it is read.
    pub fn open(path: &Path, sync: bool) -> Result<Self> {
        let failure = |error: io::Error| Failure::io(path, &error);
        // Opening a pipe might wait for its reader.
        if path == Path::new("-") || !fs::metadata(path).map_err(failure)?.is_file() {
            return Err(Failure::file(path, "expected the name of a regular file for --in-place"));
        }
        let file = File::options().write(true).open(path).map_err(failure)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            report::warning(format_args!("{}: waiting for another program, which has locked it", name(path)));
            // If it fails, the file system has no locks.
            let _ = retry_on_intr(|| flock(&file, FlockOperation::LockExclusive));
        }
        let state = State::of(&file.metadata().map_err(failure)?);
        if let Some(most) = getrlimit(Resource::Fsize).current.filter(|most| *most < state.1) {
            let message = format!("{} bytes, of which the limit of `ulimit -f` allows to write {most}", state.1);
            return Err(Failure::file(path, message));
        }
        Ok(Self { path: path.to_owned(), file, begin: 0, state, sync })
    }

    /// Writes all items, `length` bytes. Each call of `make` fills one block of them, which begins at this offset, by
    /// computing and copying alone.
    pub fn write(&self, length: u64, make: impl Fn(u64, &mut [u8])) -> Result<()> {
        let failure = |error: io::Error| Failure::io(&self.path, &error);
        if length == 0 {
            return Ok(());
        }
        if State::of(&fs::metadata(&self.path).map_err(failure)?) != self.state || self.begin + length != self.state.1 {
            return Err(Failure::file(&self.path, "was changed while it was sorted, and is left as it is: run again"));
        }
        // Blocks of a sparse file need space on the disk.
        let allocated = fallocate(&self.file, FallocateFlags::empty(), self.begin, length);
        if let Err(error @ (Errno::NOSPC | Errno::DQUOT)) = allocated {
            return Err(failure(error.into()));
        }
        // The system may count the memory of both processes.
        merge_host::release_memory();
        let mut aligned = vec![0u128; BLOCK / size_of::<u128>()];
        let work = |pipe: &mut PipeWriter| {
            for begin in (0..length).step_by(BLOCK) {
                let end = BLOCK.min((length - begin) as usize);
                let block = &mut bytemuck::cast_slice_mut(&mut aligned)[..end];
                make(begin, block);
                self.file.write_all_at(block, self.begin + begin)?;
                process::report(pipe, block.len());
            }
            if self.sync { self.file.sync_all() } else { Ok(()) }
        };
        // A signal ends this process when the file is complete.
        let _delay = signals::delay();
        // SAFETY: `make` only computes and copies. `write_all_at` and `sync_all` repeat one system call, and their
        // errors are numbers or constants. The block was allocated before, and is freed by this process alone.
        let other = unsafe { Process::start(work) }.map_err(|error| {
            let error = os_message(&error);
            Failure::file(&self.path, format!("cannot start a process to write it, and is unchanged: {error}"))
        })?;
        other.wait(progress::add).map_err(|error| {
            let error = os_message(&error);
            Failure::file(&self.path, format!("{error}: it was being written in place, and may have lost keys"))
        })
    }
}
