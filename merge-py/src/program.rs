//! The program `gmerge`.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the program and returns its exit status. The first argument is the program's name. The program handles signals
/// and changes limits of the process, so the process does nothing else.
#[pyfunction]
pub fn run(py: Python, arguments: Vec<OsString>) -> u8 {
    merge_cli::end_at_panic();
    py.detach(|| merge_cli::run(arguments))
}

/// The bytes that the program has read and written, and those that it expects to read and write.
#[pyfunction]
pub fn progress() -> (u64, u64) {
    merge_cli::shared::progress()
}
