//! A sort by ordered bits, in three phases: `CodeItems` computes the bits, the library sorts them with their indices,
//! and `GatherItems` gathers the items.
//!
//! ```text
//!   items      │ d │ a │ c │ b │
//!   copy       │ d │ a │ c │ b │      CodeItems: the items are copied, since the sorted items replace them
//!   bits       │ 9 │ 2 │ 7 │ 2 │
//!   order      │ 1 │ 3 │ 2 │ 0 │      the indices of the sorted bits
//!   items      │ a │ b │ c │ d │      GatherItems: item `order[i]` of the copy
//! ```
//!
//! For an order without ordered bits, these kernels are empty and not launched.

use super::instances::Entry;
use super::items::{Source, Target};
use super::order::Compare;
use super::tile::{Pairs, THREADS, tile_items, tile_of_block};
use crate::elements::{Elements, Slice};
use bytemuck::Pod;
use cuda_std::prelude::*;

/// Kernel: copies the elements of `from` to `copy`, and writes the [ordered bits](Compare::ordered_bits) of each item
/// to `bits`. One block per [tile](tile_items).
///
/// # Safety
/// All arrays have `from.len` elements, in global memory, aligned to 4 bytes. `bits` has a number of
/// [`Compare::ORDERED_BYTES`] bytes for each, aligned to its size. The output arrays do not overlap any other array.
/// There is one block per tile, of [`THREADS`] threads, with [`shared_bytes`](super::tile::shared_bytes) of dynamic
/// shared memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CodeItems<C: Compare, V> {
    /// The elements.
    pub from: Slice<C::Item, V>,
    /// Their copy.
    pub copy: Elements<C::Item, V>,
    /// The bits of the items.
    pub bits: *mut u64,
}

impl<C: Compare, V: Pod> Entry for CodeItems<C, V> {
    #[inline(always)]
    unsafe fn run(self) {
        if const { C::ORDERED_BYTES == 0 } {
            return;
        }
        let n = self.from.len;
        let (start, count) = tile_of_block::<C::Item, V>(n);
        // SAFETY: all arrays have `n` elements, and there is one block per tile, so that `start < n`. A block writes
        // `start .. start + count`, and the ranges of two blocks are disjoint. The launch has the bytes of a tile; a
        // barrier comes between the writes and the reads of its slots.
        let (from, copy, shared) = unsafe {
            (
                Source::new(self.from).slice(start, count),
                Target::new(self.copy, n).slice(start, count),
                Pairs::<C, V>::dynamic(const { tile_items::<C::Item, V>() }),
            )
        };
        shared.fill(from);
        thread::sync_threads();
        shared.copy_to(copy);
        let mut slot = thread::thread_idx_x();
        while slot < count as u32 {
            let (i, ordered) = (start + slot as usize, C::ordered_bits(&shared.items.get(slot)));
            // SAFETY: the caller passes `n` numbers of `ORDERED_BYTES` bytes at `bits`, and this thread alone writes
            // number `i < n`.
            unsafe {
                if const { C::ORDERED_BYTES == 4 } {
                    GlobalMut::<u32>::new(self.bits.cast(), n).set(i, ordered as u32);
                } else {
                    GlobalMut::<u64>::new(self.bits, n).set(i, ordered);
                }
            }
            slot += THREADS as u32;
        }
    }
}

/// Kernel: sets element `i` of `to` to element `order[i]` of `from`. One block per [tile](tile_items).
///
/// # Safety
/// All arrays have `from.len` elements, in global memory, aligned to 4 bytes, and the numbers in `order` are below
/// `from.len`. The output arrays do not overlap any other array. There is one block per tile, of [`THREADS`] threads.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GatherItems<C: Compare, V> {
    /// The elements.
    pub from: Slice<C::Item, V>,
    /// The index of each element of the result in `from`.
    pub order: *const u32,
    /// The result.
    pub to: Elements<C::Item, V>,
}

impl<C: Compare, V: Pod> Entry for GatherItems<C, V> {
    #[inline(always)]
    unsafe fn run(self) {
        if const { C::ORDERED_BYTES == 0 } {
            return;
        }
        let n = self.from.len;
        let (start, count) = tile_of_block::<C::Item, V>(n);
        // SAFETY: all arrays have `n` elements, and there is one block per tile, so that `start < n`. A block writes
        // `start .. start + count`, and the ranges of two blocks are disjoint.
        let (from, order, to) = unsafe {
            (
                Source::new(self.from),
                Global::new(self.order, n).slice(start, count),
                Target::new(self.to, n).slice(start, count),
            )
        };
        to.items.gather(from.items, |i| order.get(i) as usize, THREADS as u32);
        to.values.gather(from.values, |i| order.get(i) as usize, THREADS as u32);
    }
}
