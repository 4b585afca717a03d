//! The last step of a division: keys go to the places of their digits, alone [in any order](super::in_any_order), and
//! with values [in order](super::in_order).

use super::tiles::Tiles;
use super::workspace::Job;
use super::{in_any_order, in_order};
use crate::block::shared_memory;
use crate::elements::{Elements, has_values};
use crate::kernels::sort::{is_whole_warps, tile_in_order};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Bytes of dynamic shared memory for tiles of `threads * items_per_thread` keys of `key_bytes` bytes with values of
/// `value_bytes` bytes, or 0.
pub const fn shared_bytes(threads: usize, items_per_thread: usize, key_bytes: usize, value_bytes: usize) -> u32 {
    match (key_bytes, value_bytes) {
        (4, 0) => in_any_order::TileMemory::<u32>::bytes(threads * items_per_thread),
        (8, 0) => in_any_order::TileMemory::<u64>::bytes(threads * items_per_thread),
        _ => tile_in_order::shared_bytes(threads, items_per_thread, key_bytes, value_bytes),
    }
}

/// Kernel: moves the elements of each segment of `level` from `from` to `to`, to where `place_buckets` says. At the
/// first level, values become the indices of their keys if `indexes` is not 0.
///
/// # Safety
/// As for [`place_buckets`](super::place_buckets::place_buckets), which has been called before; `to` has capacity for
/// all elements and does not overlap `from`; tiles are of `NT * VT` keys, blocks of `NT` threads with [`shared_bytes`].
/// Keys are to stay in order if they have values, and need not otherwise.
#[kernel(
    u32 = <u32, (), { ROW.divide.of(4, 0).threads }, { ROW.divide.of(4, 0).items_per_thread }>
        within (ROW.divide.of(4, 0).threads, ROW.divide.of(4, 0).blocks),
    u32many = <u32, (), { ROW.divide_many.of(4, 0).threads }, { ROW.divide_many.of(4, 0).items_per_thread }>
        within (ROW.divide_many.of(4, 0).threads, ROW.divide_many.of(4, 0).blocks),
    u64 = <u64, (), { ROW.divide.of(8, 0).threads }, { ROW.divide.of(8, 0).items_per_thread }>
        within (ROW.divide.of(8, 0).threads, ROW.divide.of(8, 0).blocks),
    u32v4 = <u32, u32, { ROW.divide.of(4, 4).threads }, { ROW.divide.of(4, 4).items_per_thread }>
        within (ROW.divide.of(4, 4).threads, ROW.divide.of(4, 4).blocks),
    u32v8 = <u32, u64, { ROW.divide.of(4, 8).threads }, { ROW.divide.of(4, 8).items_per_thread }>
        within (ROW.divide.of(4, 8).threads, ROW.divide.of(4, 8).blocks),
    u64v4 = <u64, u32, { ROW.divide.of(8, 4).threads }, { ROW.divide.of(8, 4).items_per_thread }>
        within (ROW.divide.of(8, 4).threads, ROW.divide.of(8, 4).blocks),
    u64v8 = <u64, u64, { ROW.divide.of(8, 8).threads }, { ROW.divide.of(8, 8).items_per_thread }>
        within (ROW.divide.of(8, 8).threads, ROW.divide.of(8, 8).blocks),
)]
pub unsafe fn divide<B: Bits, V: Word, const NT: usize, const VT: usize>(
    job: Job,
    from: Elements<B, V>,
    to: Elements<B, V>,
    level: u32,
    coding: Coding<B>,
    indexes: u32,
) {
    const { assert!(is_whole_warps(NT), "a block has up to 32 whole warps") };
    const { shared_memory::check(shared_bytes(NT, VT, size_of::<B>(), size_of::<V>())) };
    // SAFETY: all arrays have `plan.n` elements, and those of `from` and `to` do not overlap; the lists have
    // `job.at.words` words, as `Job` says. Elements are read from one side and written to the other, each to an index
    // of its own: tiles reserve those of their keys by `fetch_add`, or all have been counted.
    let (workspace, [from, to]) = unsafe { job.open([from, to]) };
    let mut tiles = Tiles::<B, V>::of(job.plan, workspace, level);
    while let Some(tile) = tiles.next() {
        // SAFETY: all threads of the block are here, with `shared_bytes` for tiles of `NT * VT` keys, and a barrier
        // comes before the next tile.
        unsafe {
            if const { has_values::<V>() } {
                let makes_indices = level == 0 && indexes != 0;
                in_order::divide_tile::<B, V, NT, VT>(tile, from, makes_indices, coding, to);
            } else {
                in_any_order::divide_tile::<B, NT, VT>(tile, from.keys, coding, to.keys);
            }
        }
        thread::sync_threads();
        tiles.pass();
    }
}
