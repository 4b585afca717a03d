//! Sorts the tiles of an array, one block each: the start of a merge sort.

use super::instances::Entry;
use super::items::Target;
use super::order::Compare;
use super::tile::{Pairs, THREADS, for_items_per_thread, tile_items, tile_of_block};
use crate::elements::{Elements, Slice};
use bytemuck::Pod;
use cuda_std::prelude::*;

/// Kernel: sorts each [tile](tile_items) of `from` to the same indices of `to`, which may be the same arrays.
///
/// # Safety
/// The arrays have `from.len` elements, in global memory, aligned to 4 bytes. The arrays of `to` are the arrays of
/// `from` or do not overlap them. There is one block per tile, of [`THREADS`] threads, with
/// [`shared_bytes`](super::tile::shared_bytes) of dynamic shared memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SortTiles<C: Compare, V> {
    /// The elements to sort.
    pub from: Slice<C::Item, V>,
    /// Where they go.
    pub to: Elements<C::Item, V>,
}

impl<C: Compare, V: Pod> Entry for SortTiles<C, V> {
    #[inline(always)]
    unsafe fn run(self) {
        let n = self.from.len;
        let (start, count) = tile_of_block::<C::Item, V>(n);
        // SAFETY: all arrays have `n` elements, and there is one block per tile, so that `start < n`. A block accesses
        // `start .. start + count` only, and the ranges of two blocks are disjoint; barriers separate reads from
        // writes. The launch has the bytes of a tile.
        let (from, to, shared) = unsafe {
            (
                Target::new(self.from.at, n).slice(start, count),
                Target::new(self.to, n).slice(start, count),
                Pairs::<C, V>::dynamic(const { tile_items::<C::Item, V>() }),
            )
        };
        shared.items.fill_mut(from.items, THREADS as u32);
        shared.values.fill_mut(from.values, THREADS as u32);
        thread::sync_threads();
        for_items_per_thread!(C::Item, V, VT => {
            // Each thread accesses its own slots until the first barrier of the sort.
            let registers = shared.load::<VT>(thread::thread_idx_x() * VT as u32, count as u32);
            shared.sort(registers, count as u32);
        });
        shared.copy_to(to);
    }
}
