//! A sort by ordered bits, in three phases: `code_items` computes the bits, the library sorts them with their indices,
//! and `gather_items` gathers the items.
//!
//! ```text
//!   items      │ d │ a │ c │ b │
//!   copy       │ d │ a │ c │ b │      code_items: the items are copied, since the sorted items replace them
//!   bits       │ 9 │ 2 │ 7 │ 2 │
//!   order      │ 1 │ 3 │ 2 │ 0 │      the indices of the sorted bits
//!   items      │ a │ b │ c │ d │      gather_items: item `order[i]` of the copy
//! ```
//!
//! For an order without ordered bits, these kernels are empty and not launched.

use super::items::{Items, ItemsMut};
use super::order::Compare;
use super::tile::{Pairs, THREADS, tile_items};
use bytemuck::Pod;
use cuda_std::prelude::*;

/// Kernel: copies the items of `from`, with their values, to `copy`, and writes the [ordered
/// bits](Compare::ordered_bits) of each item to `bits`. One block per [tile](tile_items).
///
/// # Safety
/// All arrays have `n` elements, in global memory, aligned to 4 bytes. `bits` has `n` numbers of
/// [`Compare::ORDERED_BYTES`] bytes, aligned to their size. The output arrays do not overlap any other array. There is
/// one block per tile, of [`THREADS`] threads, with [`shared_bytes`](super::tile::shared_bytes) of dynamic shared
/// memory.
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
    // SAFETY: all arrays have `n` elements, and there is one block per tile, so that `start < n`. A block writes
    // `start .. start + count`, and the ranges of two blocks are disjoint. The launch has the bytes of a tile; a
    // barrier comes between the writes and the reads of its slots.
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
        // SAFETY: the caller passes `n` numbers of `ORDERED_BYTES` bytes at `bits`, and this thread alone writes number
        // `i < n`.
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

/// Kernel: sets item `i` of `to`, with its value, to item `order[i]` of `from`. One block per [tile](tile_items).
///
/// # Safety
/// All arrays have `n` elements, in global memory, aligned to 4 bytes, and the numbers in `order` are below `n`. The
/// output arrays do not overlap any other array. There is one block per tile, of [`THREADS`] threads.
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
    // SAFETY: all arrays have `n` elements, and there is one block per tile, so that `start < n`. A block writes
    // `start .. start + count`, and the ranges of two blocks are disjoint.
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
