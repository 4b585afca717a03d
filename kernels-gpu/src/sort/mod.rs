//! Merge sort on Merge Path: sorted tiles, then merges of neighbouring runs until one is left.
//!
//! ```text
//!   block_sort         │ tile │ tile │ tile │ tile │ tile │     each tile sorted on its own
//!   merge_runs         │    run      │    run      │ run  │     passes: run length doubles each time
//!                      │           run             │ run  │     (path_runs finds the splits of all pairs)
//!                      │               run                │
//! ```
//!
//! A pass reads one buffer and writes the other.

pub mod block_sort;
pub mod merge_pass;
pub mod network;
