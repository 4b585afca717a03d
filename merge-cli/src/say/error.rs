//! Why a run ends early: one line for the user and an exit code.

use std::fmt;
use std::io;
use std::path::Path;

/// Exit code of `check` on a file that is out of order.
const DISORDER: u8 = 1;
/// Exit code of any error, as in sort(1).
const ERROR: u8 = 2;
/// Exit code where the reader of a pipe went away: what a shell reports for a program that SIGPIPE ended.
const CLOSED_PIPE: u8 = 128 + 13;

/// The result of everything that can fail for a reason the user should read.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a run stops.
#[derive(Debug)]
pub struct Failure {
    message: Option<String>,
    code: u8,
}

impl Failure {
    /// An error of no single file or argument.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), code: ERROR }
    }

    /// An error about the file at `path`.
    pub fn file(path: &Path, message: impl fmt::Display) -> Self {
        Self::new(format!("{}: {message}", name(path)))
    }

    /// What the operating system said about the file at `path`.
    pub fn io(path: &Path, error: &io::Error) -> Self {
        Self::file(path, os_message(error))
    }

    /// `check` found the file at `path` out of order.
    pub fn disorder(path: &Path, message: impl fmt::Display) -> Self {
        Self { code: DISORDER, ..Self::file(path, message) }
    }

    /// The same without a message, if it is that a file is out of order.
    pub fn silent_if_disorder(self) -> Self {
        if self.code == DISORDER { Self { message: None, ..self } } else { self }
    }

    /// The reader of the output has closed its end, which it may do at any time: no message.
    pub fn closed_pipe() -> Self {
        Self { message: None, code: CLOSED_PIPE }
    }

    /// A mistake in this program, which was reported when it was noticed.
    pub fn reported() -> Self {
        Self { message: None, code: ERROR }
    }

    /// The line for standard error, if there is one.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        self.code
    }
}

impl From<merge_host::Error> for Failure {
    fn from(error: merge_host::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// The path as messages show it: one line, whatever is in it.
pub fn name(path: &Path) -> String {
    let text = path.display().to_string();
    if text.is_empty() || text.chars().any(char::is_control) { format!("{text:?}") } else { text }
}

/// The text with control characters escaped: those of names, flags, variables and headers must not reach a terminal.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_control() {
            true => escaped.extend(character.escape_debug()),
            false => escaped.push(character),
        }
    }
    escaped
}

/// The error in the words of other programs, without the number that Rust appends.
pub fn os_message(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
