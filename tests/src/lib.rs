//! Tests that need more than one crate of the workspace; they are in `tests/`. Those of the program are in `merge-cli`.
//! Here is what tests, the test program for GPUs and the benchmarks share.

pub mod bank_conflicts;
pub mod course_sort;
pub mod distribution;
pub mod parts;
