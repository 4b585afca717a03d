//! Lines on standard error, and requested text on standard output.

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
/// The name at the beginning of lines, if it is not `gmerge`.
static NAME: OnceLock<String> = OnceLock::new();

/// Sets the name at the beginning of lines, instead of `gmerge`.
pub fn set_name(name: String) {
    // The first name stays.
    let _ = NAME.set(name);
}

/// Sets the verbosity by `--quiet` and `--verbose`, and shows progress as `--progress` asks.
pub fn start(quiet: bool, verbose: bool, progress: When) {
    if LEVEL.set(Level { warnings: !quiet, decisions: verbose && !quiet }).is_ok() {
        progress::start(progress, quiet);
    }
}

/// Prints `gmerge: message` on standard error, unless it is closed. Control characters are escaped, so that this is one
/// line.
pub fn error(message: &str) {
    let line = escaped(&format!("{}: {message}", program()));
    progress::suspend(|| drop(writeln!(io::stderr(), "{line}")));
}

/// The name at the beginning of lines.
pub fn program() -> &'static str {
    NAME.get().map_or("gmerge", String::as_str)
}

/// Prints one line that the user should read, but that is no error.
pub fn warning(message: fmt::Arguments) {
    if level().warnings {
        error(&format!("warning: {message}"));
    }
}

/// Prints one line about a decision and its reason, with `--verbose`.
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

/// Runs `work`. A panic, which is a mistake in this program, becomes an ordinary error.
pub fn catch_bugs(work: impl FnOnce() -> Result<()>) -> Result<()> {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("panic");
        // The standard library panics if a new thread gets no memory for its signal stack.
        if message.starts_with("failed to allocate an alternative stack") {
            allocator::exhausted(format_args!("stack for a thread"));
        }
        let location = info.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
        error(&format!("internal error{location}: {message}"));
        allocator::has_said_error();
    }));
    // No state that `work` leaves incomplete is used again.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(Err(Failure::reported()))
}
