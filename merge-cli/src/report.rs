//! What the program says beyond errors: warnings, what it decided and why, and text that was asked for.

use crate::args::ReportArgs;
use crate::error::{self, Failure, Result};
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

/// Says from now on what the flags ask for, and shows progress if they do.
pub fn start(args: &ReportArgs) {
    let level = Level { warnings: !args.quiet, decisions: args.verbose && !args.quiet };
    if LEVEL.set(level).is_ok() {
        crate::progress::start(args.progress, args.quiet);
    }
}

/// One line about something that the user should know, and that is no error.
pub fn warning(message: fmt::Arguments) {
    if level().warnings {
        error::report(&format!("warning: {message}"));
    }
}

/// One line about what was decided and why, with `--verbose`.
pub fn verbose(message: fmt::Arguments) {
    if level().decisions {
        error::report(&message.to_string());
    }
}

/// Prints text to standard output. Nobody minds if the reader has seen enough.
pub fn print(text: &[u8]) -> Result<()> {
    let mut stdout = io::stdout();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::io(Path::new("standard output"), &error)),
        _ => Ok(()),
    }
}

fn level() -> Level {
    LEVEL.get().copied().unwrap_or_default()
}
