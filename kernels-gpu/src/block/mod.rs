//! Algorithms of the threads of a block, in shared memory.
//!
//! | file | idea |
//! | --- | --- |
//! | [`shared_memory`] | shared memory of a kernel, declared once for the kernel and the host |
//! | [`tile`] | moving and merging the keys of a tile |
//! | [`swizzled`] | keys in shared memory that lanes read by rows or by columns without bank conflicts |
//! | [`indexed_merge`] | a merge of a tile that returns source indices |
//! | [`compaction`] | writing the kept elements of a tile behind the kept elements of earlier tiles |
//! | [`counters`] | the digits of the keys of a tile, counted |
//! | [`scan`] | sums over the threads of a block |
//! | [`segmented`] | segmented reductions over the threads of a block |
//! | `sort_tile` | a tile sorted in registers and then in shared memory |

pub mod compaction;
pub mod counters;
pub mod indexed_merge;
pub mod scan;
pub mod segmented;
pub mod shared_memory;
pub(crate) mod sort_tile;
pub mod swizzled;
pub mod tile;

use cuda_std::prelude::*;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 128;

/// Sets the first `count` of `words` to 0.
#[inline(always)]
#[track_caller]
pub(crate) fn clear<const NT: usize>(words: Shared<u32>, count: u32) {
    let mut word = thread::thread_idx_x();
    while word < count {
        words.set(word, 0);
        word += NT as u32;
    }
}
