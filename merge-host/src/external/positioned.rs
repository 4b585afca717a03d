//! Reads and writes of a file at an offset, by several threads at the same time.

use std::fs::File;
use std::io;
#[cfg(unix)]
use std::os::unix::fs::FileExt;
#[cfg(windows)]
use std::os::windows::fs::FileExt;

/// Writes all of `bytes` at `offset`.
#[cfg(unix)]
pub(super) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

/// Reads all of `bytes` at `offset`. An end of the file before is [`io::ErrorKind::UnexpectedEof`].
#[cfg(unix)]
pub(super) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(bytes, offset)
}

/// Writes all of `bytes` at `offset`. Moves the file's cursor, which nothing else uses.
#[cfg(windows)]
pub(super) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, offset)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => (bytes, offset) = (&bytes[written..], offset + written as u64),
        }
    }
    Ok(())
}

/// Reads all of `bytes` at `offset`. An end of the file before is [`io::ErrorKind::UnexpectedEof`]. Moves the file's
/// cursor, which nothing else uses.
#[cfg(windows)]
pub(super) fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_read(bytes, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => (bytes, offset) = (&mut bytes[read..], offset + read as u64),
        }
    }
    Ok(())
}
