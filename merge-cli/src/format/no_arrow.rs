//! What stands for Arrow's files in a build without the feature `arrow`: one error.

use super::Part;
use crate::error::{Failure, Result};
use crate::key_type::KeyType;
use std::fs::File;
use std::io;
use std::path::Path;

/// There is none.
#[derive(Clone, Debug)]
pub enum Schema {}

/// There is none.
#[derive(Debug)]
pub struct Layout {
    pub key_type: KeyType,
    pub parts: Vec<Part>,
    pub schema: Schema,
}

impl Layout {
    pub fn read(path: &Path, _file: &File, _length: u64) -> Result<Self> {
        Err(failure(path))
    }
}

pub fn schema(path: &Path, _input: Option<&Schema>, _key_type: KeyType) -> Result<Schema> {
    Err(failure(path))
}

fn failure(path: &Path) -> Failure {
    let what = "is for Arrow's format, which this build of gmerge does not know";
    Failure::file(path, format!("{what}: build it with --features arrow"))
}

/// There is none.
#[derive(Debug)]
pub enum Writer {}

impl Writer {
    pub fn begin(_file: File, schema: Schema, _key_type: KeyType) -> io::Result<Self> {
        match schema {}
    }

    pub fn write(&mut self, _bytes: &[u8]) -> io::Result<()> {
        match *self {}
    }

    pub fn finish(&mut self) -> io::Result<()> {
        match *self {}
    }
}
