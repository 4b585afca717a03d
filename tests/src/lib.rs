//! Tests that need more than one crate of the workspace, in the folder `tests/`. The tests of the program are in
//! `merge-cli`. This library is shared by the tests, the test program for GPUs and the benchmarks.

pub mod bank_conflicts;
pub mod cases;
pub mod course_sort;
pub mod distribution;
pub mod parts;
