//! What the threads of a block do together, in shared memory.
//!
//! | file | idea |
//! | --- | --- |
//! | [`shared_memory`] | shared memory of a kernel, declared once for the kernel and the host |
//! | [`tile`] | moving and merging the keys of a tile |
//! | [`indexed_merge`] | a merge of a tile that returns source indices |
//! | [`scan`] | sums over the threads of a block |
//! | `sort_tile` | a tile sorted in registers and then in shared memory |

pub mod indexed_merge;
pub mod scan;
pub mod shared_memory;
pub(crate) mod sort_tile;
pub mod tile;
