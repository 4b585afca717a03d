//! The last step of a division: the scatter. Keys without values move in any order (`in_any_order`), and keys
//! with values in order (`in_order`).

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

/// Kernel: moves the elements of each segment of `level` from `from` to the places in `to` that `place_buckets` has
/// found. At the first level, values become the indices of their keys if `indexes` is not 0.
///
/// # Safety
/// The requirements of [`place_buckets`](super::place_buckets::place_buckets) hold, and that kernel has run before.
/// `to` has capacity for all elements and does not overlap `from`. Tiles have `NT * VT` keys, and blocks `NT` threads
/// with [`shared_bytes`]. Keys with values are divided in order, and keys without values in any order.
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
    // SAFETY: all arrays have `plan.n` elements, and `from` and `to` do not overlap. The lists have `job.at.words`
    // words, as `Job` says. This launch reads one side and writes the other, each element to its own index. A tile
    // without values reserves its indices by `fetch_add`; for a tile with values, the keys of each digit before it have
    // been counted.
    let (workspace, [from, to]) = unsafe { job.open([from, to]) };
    let mut tiles = Tiles::<B, V>::of(job.plan, workspace, level);
    while let Some(tile) = tiles.next() {
        // SAFETY: `tiles.next()` returns the same tile to all `NT` threads of the block, so that all of them make the
        // call. The launch has `shared_bytes` for tiles of `NT * VT` keys, and `sync_threads` follows before the next
        // tile.
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
