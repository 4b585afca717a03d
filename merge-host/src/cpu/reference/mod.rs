//! Merges that correspond to the textbook kernels, step by step: what
//! [`MergeKernel::Basic`](crate::MergeKernel::Basic), [`Tiled`](crate::MergeKernel::Tiled) and
//! [`Circular`](crate::MergeKernel::Circular) choose on a CPU engine.
//!
//! They serve for comparison. A CPU's caches do by themselves what a GPU gains by tiles in shared memory, so
//! [`merge_path`](super::merge_path) is faster.

pub(crate) mod basic;
pub(crate) mod circular;
pub(crate) mod tiled;

/// Keys of the output that a thread merges at once: enough that finding their co-ranks costs little in comparison.
const BLOCK: usize = 1 << 14;
/// Keys of a tile. Two tiles of 8-byte keys take half of a first-level cache.
const TILE: usize = 1 << 10;
