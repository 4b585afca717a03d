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

/// Characters of the beginning and of the end of a long text that a message shows.
const SHOWN: usize = 200;

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
        match error {
            merge_host::Error::OutOfHostMemory { needed } => {
                Self::new(out_of_memory(format_args!("{needed} bytes more")).to_string())
            }
            error => Self::new(error.to_string()),
        }
    }
}

/// The error that the system does not give memory for `what`, without an allocation.
pub fn out_of_memory(what: fmt::Arguments<'_>) -> impl fmt::Display {
    fmt::from_fn(move |f| write!(f, "out of memory: the system gives no {what}; does ulimit -v allow it?"))
}

/// The path as messages show it: on one line, with control characters escaped, and shortened if it is long.
pub fn name(path: &Path) -> String {
    shown(&path.display().to_string())
}

/// A text from outside as messages show it: [shortened], and on one line whatever is in it.
pub fn shown(text: &str) -> String {
    let text = shortened(text);
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

/// A text without its middle, if it is long.
pub fn shortened(text: &str) -> String {
    let count = text.chars().count();
    if count <= 2 * SHOWN {
        return text.to_owned();
    }
    text.chars().take(SHOWN).chain("...".chars()).chain(text.chars().skip(count - SHOWN)).collect()
}

/// The error in the words of other programs, without the number that Rust appends.
pub fn os_message(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_short_line() {
        for (text, line) in [("", "\"\""), ("a b", "a b"), ("a\nb", "\"a\\nb\""), ("\u{1b}[2J", "\"\\u{1b}[2J\"")] {
            assert_eq!(shown(text), line);
        }
        let longest = "ä".repeat(2 * SHOWN);
        assert_eq!(shown(&longest), longest);
        let long = format!("begin{}\nend", "\u{7}".repeat(100_000));
        let line = shown(&long);
        assert!(
            line.starts_with("\"begin\\u{7}") && line.ends_with("\\u{7}\\nend\"") && line.contains("}...\\u"),
            "{line}"
        );
        assert!(line.len() < 20 * SHOWN, "{}", line.len());
    }
}
