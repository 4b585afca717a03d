//! The program as its users meet it: files in, files out, messages and exit codes.
//!
//! Random keys come from a seed that every failing test prints; `GMERGE_TEST_SEED=n` repeats a run.

mod bad_input;
mod batch;
mod check;
mod common;
mod external;
mod generate;
mod info;
mod merge;
mod merge_many;
mod output;
mod permissions;
mod segments;
mod signals;
mod sort;
mod sort_values;
mod stats;
mod streams;
mod values;
