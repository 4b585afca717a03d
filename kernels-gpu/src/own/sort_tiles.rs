//! Sorts the tiles of an array, one block each: the start of a merge sort.

use super::items::ItemsMut;
use super::order::Compare;
use super::tile::{Pairs, THREADS, for_items_per_thread, tile_items};
use bytemuck::Pod;
use cuda_std::prelude::*;

/// Kernel: sorts each [tile](tile_items) of `from`, with its values, to the same indices of `to`, which may be the same
/// arrays.
///
/// # Safety
/// All arrays have `n` elements, in global memory, aligned to 4 bytes. The arrays of `to` are the arrays of `from` or
/// do not overlap them. There is one block per tile, of [`THREADS`] threads, with
/// [`shared_bytes`](super::tile::shared_bytes) of dynamic shared memory.
#[inline(always)]
pub unsafe fn sort_tiles<C: Compare, V: Pod>(
    from: *mut C::Item,
    from_values: *mut V,
    to: *mut C::Item,
    to_values: *mut V,
    n: usize,
) {
    let tile = const { tile_items::<C::Item, V>() };
    let start = thread::block_idx_x() as usize * tile;
    let count = (n - start).min(tile);
    // SAFETY: all arrays have `n` elements, and there is one block per tile, so that `start < n`. A block accesses
    // `start .. start + count` only, and the ranges of two blocks are disjoint; barriers separate reads from writes.
    // The launch has the bytes of a tile.
    let (from, from_values, to, to_values, shared) = unsafe {
        (
            ItemsMut::<C::Item>::new(from, n).slice(start, count),
            ItemsMut::<V>::new(from_values, n).slice(start, count),
            ItemsMut::<C::Item>::new(to, n).slice(start, count),
            ItemsMut::<V>::new(to_values, n).slice(start, count),
            Pairs::<C, V>::dynamic(tile),
        )
    };
    shared.items.fill_mut(from, THREADS as u32);
    shared.values.fill_mut(from_values, THREADS as u32);
    thread::sync_threads();
    for_items_per_thread!(C::Item, V, VT => {
        // Each thread accesses its own slots until the first barrier of the sort.
        let registers = shared.load::<VT>(thread::thread_idx_x() * VT as u32, count as u32);
        shared.sort(registers, count as u32);
    });
    shared.items.copy_to(to, THREADS as u32);
    shared.values.copy_to(to_values, THREADS as u32);
}
