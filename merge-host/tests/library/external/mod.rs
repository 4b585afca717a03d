//! External sort and merge: the same results as in memory, and an error wherever something fails.

#[path = "../../../../examples/sort_file.rs"]
#[allow(dead_code)]
mod example;
mod failing;
mod memory;
mod merging;
pub mod slices;
mod sorting;
mod threads;
