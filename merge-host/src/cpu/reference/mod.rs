//! Merges that follow the textbook kernels step by step. [`MergeKernel::Basic`](crate::MergeKernel::Basic),
//! [`Tiled`](crate::MergeKernel::Tiled) and [`Circular`](crate::MergeKernel::Circular) choose them on a CPU engine.
//!
//! They serve for comparison. A CPU's caches do by themselves the work of a GPU's tiles in shared memory, so
//! [`merge_path`](super::merge_path) is faster.

pub(crate) mod basic;
pub(crate) mod circular;
pub(crate) mod tiled;

/// The number of keys of an output block. It is large enough that the search for its co-ranks costs little in
/// comparison.
const BLOCK: usize = 1 << 14;
/// The number of keys of a tile. Two tiles of 8-byte keys take half of a first-level cache.
const TILE: usize = 1 << 10;
