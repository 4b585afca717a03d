//! The program `gmerge`.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the program with these arguments, the first of which is its name, and returns its exit status. It takes over
/// the process: it handles signals, and changes limits. So it is the only thing that its process does.
#[pyfunction]
pub fn run(py: Python, arguments: Vec<OsString>) -> u8 {
    py.detach(|| merge_cli::run(arguments))
}

/// The bytes that the program has read and written, and those that it expects to read and write.
#[pyfunction]
pub fn progress() -> (u64, u64) {
    merge_cli::shared::progress()
}
