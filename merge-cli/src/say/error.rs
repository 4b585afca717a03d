//! Why a run ends early: one line for the user and an exit code.

use std::fmt;
use std::io;
use std::path::Path;

/// Exit code of `check` on a file that is out of order.
const DISORDER: u8 = 1;
/// Exit code of `search` if a key is not in the file, as in grep(1) and look(1).
const NOT_FOUND: u8 = 1;
/// Exit code of any error, as in sort(1).
const ERROR: u8 = 2;
/// Exit code if the reader of a pipe has closed it. A shell reports this code for a program that SIGPIPE ended.
const CLOSED_PIPE: u8 = 128 + 13;

/// Characters of the beginning and of the end of a long text that a message shows.
const SHOWN: usize = 200;

/// The result of an operation with errors that the user should read.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a run stops.
#[derive(Clone, Debug)]
pub struct Failure {
    message: Option<String>,
    code: u8,
}

impl Failure {
    /// An error that does not concern a single file or argument.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), code: ERROR }
    }

    /// An error about the file at `path`.
    pub fn file(path: &Path, message: impl fmt::Display) -> Self {
        Self::new(format!("{}: {message}", name(path)))
    }

    /// An error of the operating system about the file at `path`.
    pub fn io(path: &Path, error: &io::Error) -> Self {
        Self::file(path, os_message(error))
    }

    /// The result of a `check` that found the file at `path` out of order.
    pub fn disorder(path: &Path, message: impl fmt::Display) -> Self {
        Self { code: DISORDER, ..Self::file(path, message) }
    }

    /// The result of a `search` that did not find a key. What it printed says so.
    pub fn not_found() -> Self {
        Self { message: None, code: NOT_FOUND }
    }

    /// This failure, without its message if it reports a file out of order.
    pub fn silent_if_disorder(self) -> Self {
        if self.code == DISORDER { Self { message: None, ..self } } else { self }
    }

    /// The reader of the output has closed its end of the pipe. It may do so at any time, so there is no message.
    pub fn closed_pipe() -> Self {
        Self { message: None, code: CLOSED_PIPE }
    }

    /// A mistake in this program that has already been reported.
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

/// The error for memory for `what` that the system refuses. Displaying it allocates nothing.
pub fn out_of_memory(what: fmt::Arguments<'_>) -> impl fmt::Display {
    fmt::from_fn(move |f| write!(f, "out of memory: the system gives no {what}; does ulimit -v allow it?"))
}

/// The path as messages show it: on one line, with control characters escaped, and shortened if it is long.
pub fn name(path: &Path) -> String {
    shown(&path.display().to_string())
}

/// A foreign text as messages show it: [shortened], and always on one line.
pub fn shown(text: &str) -> String {
    let text = shortened(text);
    if text.is_empty() || text.chars().any(char::is_control) { format!("{text:?}") } else { text }
}

/// The text with control characters escaped. Control characters in names, flags, variables and headers must not reach a
/// terminal.
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

/// A text, without its middle if it is long.
pub fn shortened(text: &str) -> String {
    let count = text.chars().count();
    if count <= 2 * SHOWN {
        return text.to_owned();
    }
    text.chars().take(SHOWN).chain("...".chars()).chain(text.chars().skip(count - SHOWN)).collect()
}

/// The error's text as other programs print it, without the number that Rust appends.
pub fn os_message(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// The text of a library's error without the kinds of error that precede it.
pub fn without_kinds(text: &str) -> &str {
    const KINDS: [&str; 10] = [
        "Arrow",
        "Cast error",
        "Compute error",
        "EOF",
        "External",
        "Invalid argument error",
        "NYI",
        "Parquet argument error",
        "Parquet error",
        "Parser error",
    ];
    match text.split_once(": ") {
        Some((kind, rest)) if KINDS.contains(&kind) => without_kinds(rest),
        _ => text,
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
