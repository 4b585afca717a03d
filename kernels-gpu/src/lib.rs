//! Merge and sort kernels in Rust: one source for the GPU and for the emulator.
//!
//! Read the files in this order:
//!
//! | file | idea |
//! | --- | --- |
//! | [`key`] | six number types as ordered bits |
//! | [`sequence`] | what a merge reads from |
//! | [`keys`] | arrays of keys in global memory, read and written as ordered bits |
//! | [`co_rank`] | where the first k keys of a merge come from |
//! | [`sequential`] | one thread, two cursors |
//! | [`merge_basic`] | every thread merges its own segment of the output |
//! | [`block_segment`] | every block finds its own segment |
//! | [`merge_tiled`] | … and stages it in shared memory, a tile at a time |
//! | [`merge_circular`] | … through buffers that load each key once |
//! | [`merge_small`] | one block, one thread a key: the Merge Path search |
//! | [`merge_small_batch`] | many pairs of short runs |
//! | [`diagonal`] | the Merge Path search with one comparison a step |
//! | [`tile`] | moving and merging the keys of a tile |
//! | [`merge_path`] | partition, then merge: arrays of any size |
//! | [`warp_search`] | the search by a whole warp |
//! | [`merge_fused`] | arrays of any size in one launch |
//! | [`shared_memory`] | shared memory of a kernel, declared once for the kernel and the host |
//! | [`block_scan`] | sums over the threads of a block |
//! | [`sort`] | sorted tiles, then passes of merges; or divisions, then sorted buckets; or sweeps by all bits |
//! | [`indexed_merge`] | a merge of a tile that returns source indices |
//! | [`merge_pairs`] | keys with values |
//! | [`merge_batch`] | many pairs of runs of one length, several to a tile |
//! | [`merge_ragged`] | many pairs of runs of any lengths |
//! | [`tuning`] | the shapes of tiles |
//! | [`modules`] | which compiled module holds which kernel |
//!
//! On the host the functions here are plain generic functions. On the GPU those marked `#[kernel]` are entry points, one
//! for each width of keys, named by function and width: `merge_basic_u32` merges keys of 4 bytes. Of which type they are, and in
//! which order, comes with each launch, as a [`Coding`](key::Coding).
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch))]
// Loops over register arrays count with an index, as the hardware sees them: strides and indices are the point.
#![allow(clippy::needless_range_loop)]

pub mod block_scan;
pub mod block_segment;
pub mod co_rank;
pub mod diagonal;
pub mod indexed_merge;
pub mod key;
pub mod keys;
pub mod merge_basic;
pub mod merge_batch;
pub mod merge_circular;
pub mod merge_fused;
pub mod merge_pairs;
pub mod merge_path;
pub mod merge_ragged;
pub mod merge_small;
pub mod merge_small_batch;
pub mod merge_tiled;
#[cfg(not(target_arch = "nvptx64"))]
pub mod modules;
pub mod sequence;
pub mod sequential;
pub mod shared_memory;
pub mod sort;
pub mod tile;
pub mod tuning;
pub mod warp_search;
