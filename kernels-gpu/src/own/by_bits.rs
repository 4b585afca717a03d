//! A sort by ordered bits, in three phases: `code_items` codes, the library's sort of numbers sorts the bits with indices, `gather_items` gathers.
//!
//! ```text
//!   items      │ d │ a │ c │ b │
//!   copy       │ d │ a │ c │ b │      code_items: where the items are, the sorted ones will be
//!   bits       │ 9 │ 2 │ 7 │ 2 │
//!   order      │ 1 │ 3 │ 2 │ 0 │      the indices of the bits, which are sorted with these
//!   items      │ a │ b │ c │ d │      gather_items: item `order[i]` of the copy
//! ```
//!
//! The kernels of an order without bits do nothing, and are not launched.

use super::items::{Items, ItemsMut};
use super::order::Compare;
use super::tile::{Pairs, THREADS, tile_items};
use bytemuck::Pod;
use cuda_std::prelude::*;

/// Kernel: copies the items of `from` to `copy`, with their values, and writes the [ordered bits](Compare::ordered_bits) of each to `bits`. One block a
/// [tile](tile_items).
///
/// # Safety
/// All arrays have `n` elements, in global memory, aligned to 4 bytes, and `bits` as many numbers of [`Compare::ORDERED_BYTES`], aligned to these;
/// what is written overlaps nothing else. Blocks are of [`THREADS`] threads, one for each tile, with [`shared_bytes`](super::tile::shared_bytes) of
/// dynamic shared memory.
#[inline(always)]
pub unsafe fn code_items<C: Compare, V: Pod>(
    from: *const C::Item,
    from_values: *const V,
    copy: *mut C::Item,
    copy_values: *mut V,
    bits: *mut u64,
    n: usize,
) {
    if const { C::ORDERED_BYTES == 0 } {
        return;
    }
    let tile = const { tile_items::<C::Item, V>() };
    let start = thread::block_idx_x() as usize * tile;
    let count = (n - start).min(tile);
    // SAFETY: all arrays have `n` elements, and there is one block for each tile, so that `start < n`. A block writes `start .. start + count`, which no
    // other block does. The launch has the bytes of a tile; a barrier comes between the writes and the reads of its slots.
    let (from, from_values, copy, copy_values, shared) = unsafe {
        (
            Items::<C::Item>::new(from, n).slice(start, count),
            Items::<V>::new(from_values, n).slice(start, count),
            ItemsMut::<C::Item>::new(copy, n).slice(start, count),
            ItemsMut::<V>::new(copy_values, n).slice(start, count),
            Pairs::<C, V>::dynamic(tile),
        )
    };
    shared.items.fill(from, THREADS as u32);
    shared.values.fill(from_values, THREADS as u32);
    thread::sync_threads();
    shared.items.copy_to(copy, THREADS as u32);
    shared.values.copy_to(copy_values, THREADS as u32);
    let mut slot = thread::thread_idx_x();
    while slot < count as u32 {
        let (i, ordered) = (start + slot as usize, C::ordered_bits(&shared.items.get(slot)));
        // SAFETY: there are `n` numbers of so many bytes, and this thread alone writes number `i`.
        unsafe {
            if const { C::ORDERED_BYTES == 4 } {
                GlobalMut::<u32>::new(bits.cast(), n).set(i, ordered as u32);
            } else {
                GlobalMut::<u64>::new(bits, n).set(i, ordered);
            }
        }
        slot += THREADS as u32;
    }
}

/// Kernel: makes item `i` of `to` be item `order[i]` of `from`, with their values. One block a [tile](tile_items).
///
/// # Safety
/// All arrays have `n` elements, in global memory, aligned to 4 bytes; those of `order` are below `n`; what is written overlaps nothing else. Blocks are
/// of [`THREADS`] threads, one for each tile.
#[inline(always)]
pub unsafe fn gather_items<C: Compare, V: Pod>(
    from: *const C::Item,
    from_values: *const V,
    order: *const u32,
    to: *mut C::Item,
    to_values: *mut V,
    n: usize,
) {
    if const { C::ORDERED_BYTES == 0 } {
        return;
    }
    let tile = const { tile_items::<C::Item, V>() };
    let start = thread::block_idx_x() as usize * tile;
    let count = (n - start).min(tile);
    // SAFETY: all arrays have `n` elements, and there is one block for each tile, so that `start < n`. A block writes `start .. start + count`, which no
    // other block does.
    let (from, from_values, order, to, to_values) = unsafe {
        (
            Items::<C::Item>::new(from, n),
            Items::<V>::new(from_values, n),
            Global::new(order, n).slice(start, count),
            ItemsMut::<C::Item>::new(to, n).slice(start, count),
            ItemsMut::<V>::new(to_values, n).slice(start, count),
        )
    };
    to.gather(from, |i| order.get(i) as usize, THREADS as u32);
    to_values.gather(from_values, |i| order.get(i) as usize, THREADS as u32);
}
