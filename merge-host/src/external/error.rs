//! Errors of external sorting.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why an external sort or merge failed. `E` is the error of its sources and targets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error<E> {
    /// An engine failed, or the host has no memory left.
    #[error(transparent)]
    Engine(#[from] crate::Error),
    /// A source or a target failed.
    #[error("{0}")]
    Other(E),
    /// The memory is less than an external sort needs ([`Shape::least_memory`](super::Shape::least_memory)).
    #[error(transparent)]
    TooLittleMemory(#[from] TooLittleMemory),
    /// The temporary file failed.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// The system did not start a thread to read or write.
    #[error("cannot start a thread: {}", os_message(.0))]
    Thread(io::Error),
}

/// The memory, or the memory of a GPU, is less than an external sort needs
/// ([`Shape::least_memory`](super::Shape::least_memory)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{memory} bytes of memory are too few for keys of {key} bytes with payloads of {width}, expected at least {needed}"
)]
pub struct TooLittleMemory {
    /// Available bytes.
    pub memory: u64,
    /// Sufficient bytes.
    pub needed: u64,
    /// Bytes of a key.
    pub key: usize,
    /// Bytes of a key's payload.
    pub width: usize,
}

/// The temporary file for sorted runs failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScratchError {
    /// The file cannot be created.
    #[error("{}: cannot create a temporary file: {}", shown(.folder), os_message(.error))]
    Create {
        /// The folder for the file.
        folder: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The file cannot be read or written.
    #[error("{}: temporary file for sorted runs: {}", shown(.folder), os_message(.error))]
    Io {
        /// The folder of the file.
        folder: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The file has become shorter.
    #[error("{}: temporary file for sorted runs: is {found} bytes long, expected at least {expected}", shown(.folder))]
    Truncated {
        /// The folder of the file.
        folder: PathBuf,
        /// The least expected number of bytes.
        expected: u64,
        /// The actual number of bytes.
        found: u64,
    },
    /// There is no memory for the list of the file's blocks.
    #[error(transparent)]
    Memory(#[from] crate::Error),
    /// The file's contents differ from the bytes written.
    #[error(
        "{}: temporary file for sorted runs: damaged between offsets {begin} and {end}: checksum is {found:08x}, \
         expected {expected:08x}",
        shown(.folder)
    )]
    Damaged {
        /// The folder of the file.
        folder: PathBuf,
        /// The offset of the first byte of the damaged block.
        begin: u64,
        /// The offset behind the last byte of the block.
        end: u64,
        /// The checksum of the bytes written.
        expected: u32,
        /// The checksum of the bytes read.
        found: u32,
    },
}

/// The reason why [`Engines::run`](super::Engines::run) failed. `E` is the error of the functions that the work calls.
#[derive(Debug, thiserror::Error)]
pub enum RunError<E> {
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] crate::Error),
    /// A function that the work calls failed, such as a second read of a source.
    #[error("{0}")]
    Other(E),
}

impl<E> From<RunError<E>> for Error<E> {
    fn from(error: RunError<E>) -> Self {
        match error {
            RunError::Engine(error) => Self::Engine(error),
            RunError::Other(error) => Self::Other(error),
        }
    }
}

/// The path as part of one line.
fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    if text.is_empty() || text.chars().any(char::is_control) { format!("{text:?}") } else { text }
}

/// The error without the number that the standard library appends.
fn os_message(error: &io::Error) -> String {
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
    fn messages_are_one_line_that_names_the_folder() {
        let error = || io::Error::from_raw_os_error(28);
        let text = |folder: &str| ScratchError::Io { folder: folder.into(), error: error() }.to_string();
        assert_eq!(text("/scratch"), "/scratch: temporary file for sorted runs: No space left on device");
        assert_eq!(text("a\nb"), "\"a\\nb\": temporary file for sorted runs: No space left on device");
        let create = ScratchError::Create { folder: "".into(), error: error() };
        assert_eq!(create.to_string(), "\"\": cannot create a temporary file: No space left on device");
        let little = TooLittleMemory { memory: 10, needed: 640, key: 8, width: 3 };
        let expected = "10 bytes of memory are too few for keys of 8 bytes with payloads of 3, expected at least 640";
        assert_eq!(Error::<io::Error>::from(little).to_string(), expected);
        assert_eq!(Error::Other("no tape").to_string(), "no tape");
        assert_eq!(Error::<&str>::from(RunError::Other("no tape")).to_string(), "no tape");
    }
}
