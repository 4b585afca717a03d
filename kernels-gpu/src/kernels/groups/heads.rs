//! Loads a tile of keys and finds the heads: the keys that begin a group.

use crate::block::compaction::prefetch_lines;
use crate::key::Bits;
use cuda_std::prelude::*;

/// Slots of a tile of `threads * items_per_thread` keys: the key before the tile, and its keys.
pub(super) const fn slots(threads: usize, items_per_thread: usize) -> usize {
    threads * items_per_thread + 1
}

/// Prefetches the elements of the tile that this block will probably take into the L2 cache. Blocks start in
/// approximately the order of their numbers.
#[inline(always)]
#[track_caller]
pub(super) fn prefetch<T: Word, const NT: usize, const VT: usize>(elements: Global<T>) {
    let first = thread::block_idx_x() as usize * (NT * VT);
    prefetch_lines(elements, first, first + NT * VT);
}

/// Global to shared memory, striped: loads the keys of tile `first .. first + count` to the slots from 1. Slot 0 gets
/// the key before the tile, if any. The caller calls [`wait_for_copies`] and then synchronizes the block.
#[inline(always)]
#[track_caller]
pub(super) fn load<B: Bits, const NT: usize, const VT: usize>(
    keys: Global<B>,
    first: usize,
    count: usize,
    slots: Shared<B>,
) {
    let thread = thread::thread_idx_x() as usize;
    if thread == 0 && first > 0 {
        slots.copy_async(0, keys, first - 1);
    }
    load_striped::<B, NT, VT>(keys.slice(first, count), slots.slice(1, (NT * VT) as u32), B::MIN);
}

/// Global to shared memory, striped: loads all of `from` and fills the tile with `rest`. The caller calls
/// [`wait_for_copies`] and then synchronizes the block.
#[inline(always)]
#[track_caller]
pub(super) fn load_striped<T: Bits, const NT: usize, const VT: usize>(from: Global<T>, to: Shared<T>, rest: T) {
    let thread = thread::thread_idx_x() as usize;
    if from.len() == NT * VT {
        for i in 0..VT {
            to.copy_async((thread + i * NT) as u32, from, thread + i * NT);
        }
    } else {
        for i in 0..VT {
            let at = thread + i * NT;
            if at < from.len() {
                to.copy_async(at as u32, from, at);
            } else {
                to.set(at as u32, rest);
            }
        }
    }
}

/// The keys of a thread in a tile, and the heads among them.
pub(super) struct Heads<B, const VT: usize> {
    /// The keys, blocked.
    pub keys: [B; VT],
    /// Bit i: whether key i is a head, which differs from the key before it. The first key of the array is a head.
    pub bits: u32,
}

/// Finds the heads among this thread's keys. Beyond the `count` keys of a tile there are no heads.
#[inline(always)]
#[track_caller]
pub(super) fn find<B: Bits, const VT: usize>(slots: Shared<B>, is_first_tile: bool, count: usize) -> Heads<B, VT> {
    let first = thread::thread_idx_x() * VT as u32;
    let is_first = is_first_tile && first == 0;
    let mut before = if is_first { slots.get(1) } else { slots.get(first) };
    let mut heads = Heads { keys: [B::MIN; VT], bits: is_first as u32 };
    for i in 0..VT {
        let key = slots.get(first + i as u32 + 1);
        heads.keys[i] = key;
        heads.bits |= ((key != before) as u32) << i;
        before = key;
    }
    let left = (count as u32).saturating_sub(first);
    if left < VT as u32 {
        heads.bits &= (1 << left) - 1;
    }
    heads
}
