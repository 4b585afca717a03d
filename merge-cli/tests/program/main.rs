//! Tests of the program from outside: input files, output files, messages and exit codes.
//!
//! Random keys come from a seed that every failing test prints. `GMERGE_TEST_SEED=n` repeats a run.

mod arrays;
mod bad_input;
mod batch;
mod check;
mod common;
mod complex;
mod devices;
mod documents;
mod durable;
mod engine;
mod external;
mod flag_pairs;
mod formats;
mod fortran;
mod generate;
mod in_place;
mod info;
mod limits;
mod merge;
mod merge_many;
mod merge_through;
mod nan;
mod oracle;
mod output;
mod permissions;
mod progress;
mod record_operations;
mod records;
mod reference;
mod search;
mod segments;
mod set_operations;
mod signals;
mod sort;
mod sort_names;
mod sort_values;
mod stats;
mod streams;
mod top;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod traced;
mod usage;
mod value_formats;
mod value_size;
mod values;
