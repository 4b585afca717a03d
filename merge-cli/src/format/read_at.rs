//! Reading a file from an offset on, without moving the file's own position.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// A reader of a regular file from `position` on, in bytes.
#[derive(Debug)]
pub struct ReadAt<'a> {
    pub file: &'a File,
    pub position: u64,
}

impl Read for ReadAt<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(bytes, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}
