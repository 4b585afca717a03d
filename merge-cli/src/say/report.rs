//! Lines on standard error, and text on standard output that was asked for.

use super::error::{Failure, Result, escaped, os_message};
use super::progress;
use crate::os::{allocator, standard};
use crate::spec::When;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::OnceLock;

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    warnings: bool,
    decisions: bool,
}

static LEVEL: OnceLock<Level> = OnceLock::new();
/// What lines begin with, unless it is `gmerge`.
static NAME: OnceLock<String> = OnceLock::new();

/// Has lines begin with `name` from now on, instead of `gmerge`.
pub fn set_name(name: String) {
    // The first name stays.
    let _ = NAME.set(name);
}

/// Says from now on what `--quiet` and `--verbose` ask for, and shows progress as `--progress` does.
pub fn start(quiet: bool, verbose: bool, progress: When) {
    if LEVEL.set(Level { warnings: !quiet, decisions: verbose && !quiet }).is_ok() {
        progress::start(progress, quiet);
    }
}

/// Prints `gmerge: message` on standard error, unless that is closed: one line, whatever is in the message.
pub fn error(message: &str) {
    let line = escaped(&format!("{}: {message}", program()));
    progress::suspend(|| drop(writeln!(io::stderr(), "{line}")));
}

/// What lines begin with.
pub fn program() -> &'static str {
    NAME.get().map_or("gmerge", String::as_str)
}

/// One line about something that the user should know, and that is no error.
pub fn warning(message: fmt::Arguments) {
    if level().warnings {
        error(&format!("warning: {message}"));
    }
}

/// One line about what was decided and why, with `--verbose`.
pub fn verbose(message: fmt::Arguments) {
    if level().decisions {
        error(&message.to_string());
    }
}

/// Prints text to standard output. A reader that closes its end early is no error.
pub fn print(text: &[u8]) -> Result<()> {
    let mut stdout = standard::output().map_err(|error| Failure::new(os_message(&error)))?;
    match stdout.write_all(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::io(Path::new("standard output"), &error)),
        _ => Ok(()),
    }
}

fn level() -> Level {
    LEVEL.get().copied().unwrap_or_default()
}

/// Runs `work`, and turns a panic, which would be a mistake in this program, into an error like any other.
pub fn catch_bugs(work: impl FnOnce() -> Result<()>) -> Result<()> {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("panic");
        // The standard library panics where a thread that has started gets no memory for this.
        if message.starts_with("failed to allocate an alternative stack") {
            allocator::exhausted(format_args!("stack for a thread"));
        }
        let location = info.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
        error(&format!("internal error{location}: {message}"));
        allocator::has_said_error();
    }));
    // Nothing that the work leaves half-done is used again.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(Err(Failure::reported()))
}
