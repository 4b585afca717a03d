//! The items of a block, with their values, in registers and in shared memory.
//!
//! A thread has `VT` neighbouring items of the tile. The last tile of an array may be short: only the first `count`
//! slots hold items.

use super::items::{InOrder, Source, Target, Tile, words};
use super::order::{Compare, Ordered};
use crate::sequence::Sequence;
use crate::thread::diagonal::diagonal_search;
use bytemuck::{Pod, Zeroable};
use cuda_std::prelude::*;

/// Threads of a block.
pub const THREADS: usize = 128;

/// Items per thread, where an item and its value have `bytes` bytes together. An odd number reduces bank conflicts in
/// shared memory. A tile takes at most 32 KiB.
pub const fn items_per_thread(bytes: usize) -> usize {
    match bytes {
        0..=16 => 7,
        17..=32 => 5,
        33..=64 => 3,
        _ => 1,
    }
}

/// Runs code with a constant `$name`, the [items per thread](items_per_thread) for these types.
macro_rules! for_items_per_thread {
    ($item:ty, $value:ty, $name:ident => $work:expr) => {
        match const { $crate::own::tile::items_per_thread(size_of::<$item>() + size_of::<$value>()) } {
            7 => for_items_per_thread!(@ $name, 7, $work),
            5 => for_items_per_thread!(@ $name, 5, $work),
            3 => for_items_per_thread!(@ $name, 3, $work),
            _ => for_items_per_thread!(@ $name, 1, $work),
        }
    };
    (@ $name:ident, $items:literal, $work:expr) => {{
        const $name: usize = $items;
        $work
    }};
}
pub(super) use for_items_per_thread;

/// Items per tile, with values of type `V`.
pub const fn tile_items<T, V>() -> usize {
    THREADS * items_per_thread(size_of::<T>() + size_of::<V>())
}

/// The first item of this block's tile, and its number of items, in an array of `n` items with a block per tile.
#[inline(always)]
pub(super) fn tile_of_block<T, V>(n: usize) -> (usize, usize) {
    let tile = const { tile_items::<T, V>() };
    let start = thread::block_idx_x() as usize * tile;
    (start, (n - start).min(tile))
}

/// Bytes of dynamic shared memory per tile.
pub const fn shared_bytes<T, V>() -> u32 {
    (tile_items::<T, V>() * (size_of::<T>() + size_of::<V>())) as u32
}

/// Items and their values in shared memory.
pub(super) struct Pairs<C: Compare, V> {
    pub items: Tile<C::Item>,
    pub values: Tile<V>,
}

impl<C: Compare, V: Pod> Clone for Pairs<C, V> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Compare, V: Pod> Copy for Pairs<C, V> {}

impl<C: Compare, V: Pod> Pairs<C, V> {
    /// The memory of a tile of `slots` slots.
    ///
    /// # Safety
    /// The launch has [`shared_bytes`], for a tile of `slots` items. Barriers order the accesses of threads to one
    /// slot.
    #[inline(always)]
    pub unsafe fn dynamic(slots: usize) -> Self {
        let values_at = (slots * words::<C::Item>() * 4) as u32;
        // SAFETY: `slots` items from byte 0 and `slots` values after them end at `shared_bytes`. Both have a multiple
        // of 4 bytes, so that both arrays are aligned.
        unsafe { Self { items: Tile::dynamic(0, slots as u32), values: Tile::dynamic(values_at, slots as u32) } }
    }

    #[inline(always)]
    fn slice(self, start: u32, len: u32) -> Self {
        Self { items: self.items.slice(start, len), values: self.values.slice(start, len) }
    }

    /// Global to shared memory, with all threads of the block: loads the elements of `from` to the first slots.
    #[inline(always)]
    #[track_caller]
    pub fn fill(self, from: Source<C::Item, V>) {
        self.items.fill(from.items, THREADS as u32);
        self.values.fill(from.values, THREADS as u32);
    }

    /// Global to shared memory, with all threads of the block: loads the elements of `a` and then of `b`.
    #[inline(always)]
    #[track_caller]
    pub fn fill_both(self, a: Source<C::Item, V>, b: Source<C::Item, V>) {
        self.fill(a);
        self.slice(a.items.len() as u32, b.items.len() as u32).fill(b);
    }

    /// Shared to global memory, with all threads of the block: stores the first slots to all elements of `to`.
    #[inline(always)]
    #[track_caller]
    pub fn copy_to(self, to: Target<C::Item, V>) {
        self.items.copy_to(to.items, THREADS as u32);
        self.values.copy_to(to.values, THREADS as u32);
    }

    /// Shared memory to registers: loads items `slot .. slot + VT`, clipped to `count`.
    #[inline(always)]
    #[track_caller]
    pub fn load<const VT: usize>(self, slot: u32, count: u32) -> Registers<C, V, VT> {
        let mut registers = Registers { items: [C::Item::zeroed(); VT], values: [V::zeroed(); VT] };
        let mut i = 0;
        while i < VT {
            if slot + (i as u32) < count {
                registers.items[i] = self.items.get(slot + i as u32);
                registers.values[i] = self.values.get(slot + i as u32);
            }
            i += 1;
        }
        registers
    }

    /// Registers to shared memory: stores items `slot .. slot + VT`, clipped to `count`.
    #[inline(always)]
    #[track_caller]
    pub fn store<const VT: usize>(self, registers: Registers<C, V, VT>, slot: u32, count: u32) {
        let mut i = 0;
        while i < VT {
            if slot + (i as u32) < count {
                self.items.set(slot + i as u32, registers.items[i]);
                self.values.set(slot + i as u32, registers.values[i]);
            }
            i += 1;
        }
    }

    /// Shared memory to registers: merges two neighbouring runs, the first `m` items and the rest of `count` items.
    /// Returns items `slot .. slot + VT` of the merge, clipped to `count`. Stable: equal items of the first run come
    /// first.
    #[inline(always)]
    #[track_caller]
    pub fn merge<const VT: usize>(self, m: u32, slot: u32, count: u32) -> Registers<C, V, VT> {
        let (a, b) = (self.items.slice(0, m), self.items.slice(m, count - m));
        let taken = diagonal_search(slot.min(count), InOrder::<C, _>::new(a), InOrder::<C, _>::new(b));
        let (mut i, mut j) = (taken, m + slot.min(count) - taken);
        let mut registers = Registers { items: [C::Item::zeroed(); VT], values: [V::zeroed(); VT] };
        if slot >= count {
            return registers;
        }
        let last = count - 1;
        let whole = InOrder::<C, _>::new(self.items.slice(0, count));
        let (mut of_a, mut of_b): (Ordered<C>, Ordered<C>) = (whole.at(i.min(last)), whole.at(j.min(last)));
        let mut s = 0;
        while s < VT {
            if slot + (s as u32) < count {
                let take_a = i < m && (j == count || of_a <= of_b);
                registers.items[s] = if take_a { of_a.0 } else { of_b.0 };
                registers.values[s] = self.values.get(if take_a { i } else { j });
                if take_a {
                    i += 1;
                    of_a = whole.at(i.min(last));
                } else {
                    j += 1;
                    of_b = whole.at(j.min(last));
                }
            }
            s += 1;
        }
        registers
    }

    /// Sorts the `count` items of the tile. Each thread of the block has `VT` items in registers. Stable.
    ///
    /// ```text
    ///   registers   VT items per thread, sorted by odd-even transposition
    ///   shared      runs of VT → 2 VT → 4 VT → …         each round doubles the runs
    /// ```
    #[inline(always)]
    #[track_caller]
    pub fn sort<const VT: usize>(self, mut registers: Registers<C, V, VT>, count: u32) {
        let slot = thread::thread_idx_x() * VT as u32;
        registers.sort(count.saturating_sub(slot));
        let mut run = VT as u32;
        while run < const { (THREADS * VT) as u32 } {
            self.store(registers, slot, count);
            thread::sync_threads();
            let first = slot / (2 * run) * (2 * run);
            if first < count {
                let both = (count - first).min(2 * run);
                registers = self.slice(first, both).merge(run.min(both), slot - first, both);
            }
            thread::sync_threads();
            run *= 2;
        }
        self.store(registers, slot, count);
        thread::sync_threads();
    }
}

/// `VT` items of a thread, with their values.
pub(super) struct Registers<C: Compare, V, const VT: usize> {
    pub items: [C::Item; VT],
    pub values: [V; VT],
}

impl<C: Compare, V: Pod, const VT: usize> Clone for Registers<C, V, VT> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Compare, V: Pod, const VT: usize> Copy for Registers<C, V, VT> {}

impl<C: Compare, V: Pod, const VT: usize> Registers<C, V, VT> {
    /// Sorts the first `valid` items by odd-even transposition: rounds compare and exchange alternate pairs of
    /// neighbours. Stable.
    #[inline(always)]
    fn sort(&mut self, valid: u32) {
        let mut round = 0;
        while round < VT {
            let mut i = round % 2;
            while i + 1 < VT {
                let exchange = i as u32 + 1 < valid && C::is_before(&self.items[i + 1], &self.items[i]);
                [self.items[i], self.items[i + 1]] = exchanged(exchange, self.items[i], self.items[i + 1]);
                [self.values[i], self.values[i + 1]] = exchanged(exchange, self.values[i], self.values[i + 1]);
                i += 2;
            }
            round += 1;
        }
    }
}

/// `[b, a]` if `exchange`, otherwise `[a, b]`.
#[inline(always)]
fn exchanged<T>(exchange: bool, a: T, b: T) -> [T; 2] {
    if exchange { [b, a] } else { [a, b] }
}
