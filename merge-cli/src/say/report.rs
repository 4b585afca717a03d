//! Lines on standard error.

use super::error::escaped;
use super::progress;
use crate::spec::When;
use std::fmt;
use std::io::{self, Write};
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

fn level() -> Level {
    LEVEL.get().copied().unwrap_or_default()
}
