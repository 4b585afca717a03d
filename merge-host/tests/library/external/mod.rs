//! External sorts and merges: they give the results of a sort in memory, and an error if any part fails.

#[path = "../../../../examples/sort_file.rs"]
#[allow(dead_code)]
mod example;
mod failing;
mod memory;
mod merging;
pub mod slices;
mod sorting;
mod threads;
mod ties;
