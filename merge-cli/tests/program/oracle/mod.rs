//! An oracle for command lines. [`samples`] makes command lines from clap's declaration, and [`input`] their files.
//! [`model`] computes the expected results, and [`judge`] runs the program and compares.

pub mod input;
pub mod judge;
pub mod model;
pub mod samples;
