//! The last step of a division of keys with values by some of their bits.
//!
//! ```text
//!   level      bits of a key
//!     0        │        │        │        │ ██████ │
//!     1        │        │        │ ██████ │        │     each division keeps the order of the one before, so that
//!     2        │        │ ██████ │        │        │     after the last one keys are in order by all bits
//!     3        │ ██████ │        │        │        │
//! ```
//!
//! That takes the same time for any keys. It is what uneven ones take which have values: there are no buckets to sort in the end.

use super::digits::RADIX_LEVELS;
use super::divide_with_values::{TileMemory, move_tile};
use super::tiles::Tile;
use super::workspace::{Elements, Job, Workspace};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Kernel: as [`divide_with_values`](super::divide_with_values::divide_with_values), for keys that are divided by some of their bits. The last
/// level stores them as `decoding` decodes them.
///
/// # Safety
/// As for `divide_with_values`, with any number of blocks.
#[kernel(
    u32v4 = <u32, u32, { ROW.divide_4v4.threads }, { ROW.divide_4v4.items_per_thread }> within (ROW.divide_4v4.threads, ROW.divide_4v4.blocks),
    u32v8 = <u32, u64, { ROW.divide_4v8.threads }, { ROW.divide_4v8.items_per_thread }> within (ROW.divide_4v8.threads, ROW.divide_4v8.blocks),
)]
pub unsafe fn divide_by_radix<B: Bits, V: Word, const NT: usize, const VT: usize>(
    job: Job,
    from: Elements<B, V>,
    to: Elements<B, V>,
    level: u32,
    coding: Coding<B>,
    decoding: Coding<B>,
    indexes: u32,
) {
    // SAFETY: the caller's promise.
    let (workspace, from, to) = unsafe { (Workspace::new(&job), from.arrays(job.plan.n), to.arrays(job.plan.n)) };
    if !workspace.is_radix() {
        return;
    }
    // SAFETY: the caller's promise; barriers divide the accesses.
    let memory = unsafe { TileMemory::<B, V>::at_start::<NT, VT>() };
    let makes_indices = level == 0 && indexes != 0;
    let codings = [coding, if level + 1 == RADIX_LEVELS { decoding } else { Coding::NONE }];
    let mut number = thread::block_idx_x();
    while let Some(tile) = Tile::of_all::<B>(job.plan, workspace, number) {
        // SAFETY: all threads of the block are here.
        unsafe {
            if tile.len == (NT * VT) as u32 {
                move_tile::<B, V, NT, VT, true, true>(tile, from, makes_indices, codings, memory, to);
            } else {
                move_tile::<B, V, NT, VT, false, true>(tile, from, makes_indices, codings, memory, to);
            }
        }
        thread::sync_threads();
        number += thread::grid_dim_x();
    }
}
