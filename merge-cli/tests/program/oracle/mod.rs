//! An oracle for command lines: [`samples`] makes them from clap's declaration, [`input`] makes files for them,
//! [`model`] says what they must give, and [`judge`] runs them and compares.

pub mod input;
pub mod judge;
pub mod model;
pub mod samples;
