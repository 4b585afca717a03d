//! A second process that completes a piece of work even if this process is killed.
//!
//! The new process has a session of its own, and every signal that can be blocked is. Its memory is a copy of that of
//! this process, which the system makes page by page where one of both writes.

use super::signals::block_all;
use rustix::process::{Pid, WaitOptions, setsid, waitpid};
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};

/// A process that does a piece of work.
#[derive(Debug)]
pub struct Process {
    id: Option<Pid>,
    /// The numbers that the process sends: positive ones by [`report`], and in the end 0 or an error below 0.
    reports: PipeReader,
}

/// Sends the number of bytes that are done, which is not 0, to the process that waits, if it still exists.
pub fn report(pipe: &mut PipeWriter, done: usize) {
    let _ = pipe.write_all(&(done as i64).to_ne_bytes());
}

impl Process {
    /// Starts a process that does `work`, and then ends.
    ///
    /// # Safety
    /// The new process has no other thread, and a lock that another thread holds here is never released there. So
    /// `work` takes no lock, allocates and frees nothing, and makes only system calls.
    pub unsafe fn start(work: impl FnOnce(&mut PipeWriter) -> io::Result<()>) -> io::Result<Self> {
        let (reports, mut pipe) = io::pipe()?;
        // They are restored here, and stay blocked in the new process.
        let _blocked = block_all();
        // SAFETY: In the new process, what follows only makes system calls, as `work` does by the contract of this
        // function, until `end` ends the process, even if `work` panics.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let end = End;
                // Without this, the pipe would stay open when the process that waits is killed.
                drop(reports);
                let _ = setsid();
                let error = work(&mut pipe).err().map(|error| error.raw_os_error().unwrap_or(libc::EIO));
                let _ = pipe.write_all(&i64::from(-error.unwrap_or(0)).to_ne_bytes());
                drop(end);
                unreachable!("the process has ended")
            }
            id => Ok(Self { id: Pid::from_raw(id), reports }),
        }
    }

    /// Waits until the work is done. Calls `each` with the numbers that the process [reports](report).
    pub fn wait(mut self, each: impl Fn(usize)) -> io::Result<()> {
        let mut number = [0; size_of::<i64>()];
        let result = loop {
            break match self.reports.read_exact(&mut number).map(|()| i64::from_ne_bytes(number)) {
                Ok(0) => Ok(()),
                Ok(done @ 1..) => {
                    each(done as usize);
                    continue;
                }
                Ok(error) => Err(io::Error::from_raw_os_error(-error as i32)),
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    Err(io::Error::other("the process that writes it was killed"))
                }
                Err(error) => Err(error),
            };
        };
        let _ = waitpid(self.id, WaitOptions::empty());
        result
    }
}

/// Ends the process when it is dropped.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        // SAFETY: `_exit` ends the process with all its threads, and runs no handlers.
        unsafe { libc::_exit(0) }
    }
}
