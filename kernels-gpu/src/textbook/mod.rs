//! The kernels of the textbook and of the course, one figure or algorithm each.
//!
//! | file | idea |
//! | --- | --- |
//! | [`sequential`] | one thread, two cursors |
//! | [`co_rank`] | where the first k keys of a merge come from |
//! | [`merge_basic`] | every thread merges its own segment of the output |
//! | [`block_segment`] | every block finds its own segment |
//! | [`merge_tiled`] | … and stages it in shared memory, a tile at a time |
//! | [`merge_circular`] | … through buffers that load each key once |
//! | [`merge_small`] | one block, one thread per key: the Merge Path search |
//! | [`merge_small_batch`] | many pairs of short runs |

pub mod block_segment;
pub mod co_rank;
pub mod merge_basic;
pub mod merge_circular;
pub mod merge_small;
pub mod merge_small_batch;
pub mod merge_tiled;
pub mod sequential;
