//! Standard input and output, and whether they were open when the program started.
//!
//! Before `main` runs, Rust's runtime opens /dev/null in place of a standard stream that is closed. A sort with a
//! closed input or output would then seem to succeed. This module therefore records which streams are closed before the
//! runtime starts.

use crate::say::error::{Failure, Result, os_message};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

/// Paths that stand for standard input.
const INPUT: [&str; 4] = ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
/// Paths that stand for standard output.
const OUTPUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Bit `n` is set if file descriptor `n` was closed when the program started.
static CLOSED: AtomicU8 = AtomicU8::new(0);

// SAFETY: The C runtime calls the functions in this section once, on one thread, before `main`. `record_closed` has the
// expected calling convention, and a C function may ignore its arguments. It needs nothing that Rust's runtime sets up.
#[unsafe(link_section = ".init_array")]
#[used]
static RECORD_CLOSED: extern "C" fn() = record_closed;

extern "C" fn record_closed() {
    for fd in 0..=1 {
        // SAFETY: F_GETFD only reads the descriptor's flags. Its only error is that `fd` is not open.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << fd, Ordering::Relaxed);
        }
    }
}

/// Whether `fd`, 0 or 1, was closed when the program started.
fn was_closed(fd: u8) -> bool {
    CLOSED.load(Ordering::Relaxed) >> fd & 1 == 1
}

/// Opens the file at `path` for reading, or standard input for `-`. An error if standard input is closed.
pub fn open(path: &Path) -> io::Result<File> {
    if INPUT.iter().any(|name| path == Path::new(name)) && was_closed(0) {
        return Err(io::Error::other("standard input is closed"));
    }
    if path == Path::new("-") { Ok(io::stdin().as_fd().try_clone_to_owned()?.into()) } else { File::open(path) }
}

/// Whether `path` stands for standard output.
pub fn is_output(path: &Path) -> bool {
    OUTPUT.iter().any(|name| path == Path::new(name))
}

/// Standard output, without a buffer. An error if it is closed.
pub fn output() -> io::Result<File> {
    if was_closed(1) {
        return Err(io::Error::other("standard output is closed"));
    }
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// Prints text to standard output. A reader that closes its end early is no error.
pub fn print(text: &[u8]) -> Result<()> {
    let mut stdout = output().map_err(|error| Failure::new(os_message(&error)))?;
    match stdout.write_all(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::io(Path::new("standard output"), &error)),
        _ => Ok(()),
    }
}
