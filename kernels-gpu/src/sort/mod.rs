//! Merge sort: sorted tiles, then merges of up to 32 neighbouring runs at a time until one is left.
//!
//! ```text
//!   block_sort         │ tile │ tile │ tile │ tile │ tile │     each tile sorted on its own
//!   merge_runs         │    run                    │ run  │     passes: K runs become one
//!                      │    run                           │     (split_runs finds the splits of all tiles)
//! ```
//!
//! A pass reads one buffer and writes the other. Keys are ordered bits in between: the first kernel encodes them and the
//! last one decodes them, so that kernels are compiled for two widths, and not for types and directions.

pub mod block_sort;
pub mod detect_runs;
pub mod divide;
pub mod indexed_key;
pub mod merge_pass;
pub mod multiway_co_rank;
pub mod network;
pub mod packed;
pub mod packing;
pub mod pairs;
pub mod runs;
