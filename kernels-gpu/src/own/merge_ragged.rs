//! Merges pairs of runs of any lengths, in two phases: `split_ragged` divides, `merge_ragged` merges.
//!
//! Tiles are independent of the boundaries of pairs, as in the library's own
//! [`merge_ragged`](crate::kernels::merge_ragged). All tiles have the same number of items, in a part of A and a part
//! of B. A tile may contain any number of pairs. A thread finds the pair of its first item, and goes on to the next
//! pair at the end of each.

use super::items::{InOrder, Items, ItemsMut};
use super::order::Compare;
use super::tile::{Pairs, Registers, THREADS, for_items_per_thread, tile_items};
use crate::kernels::merge_ragged::{Ends, Offsets, Tile};
use crate::sequence::Sequence;
use crate::thread::diagonal::diagonal_search;
use bytemuck::{Pod, Zeroable};
use cuda_std::prelude::*;

/// Kernel: divides the merged pairs into tiles. `splits[2 t]` becomes the pair at the start of tile `t`, and
/// `splits[2 t + 1]` the number of A's items before it. One thread per tile.
///
/// # Safety
/// `a_offsets` and `b_offsets` have `pairs + 1` ascending offsets, the first 0, and `pairs` is at least 1. The last
/// offsets are the lengths of `a` and `b`, in global memory, aligned to 4 bytes. `tiles` is the total number of items
/// divided by `tile`, rounded up. `splits` has capacity for `2 * tiles` numbers, and the grid has at least `tiles`
/// threads.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn split_ragged<C: Compare>(
    a: *const C::Item,
    a_offsets: *const usize,
    b: *const C::Item,
    b_offsets: *const usize,
    pairs: usize,
    splits: *mut usize,
    tiles: usize,
    tile: usize,
) {
    let t = thread::index_1d() as usize;
    if t >= tiles {
        return;
    }
    // SAFETY: the caller passes `pairs + 1` offsets per array and room for `2 * tiles` numbers at `splits`. This thread
    // alone writes numbers `2 * t` and `2 * t + 1`, `t < tiles`.
    let (offsets, splits) = unsafe { (Offsets::new(a_offsets, b_offsets, pairs), GlobalMut::new(splits, 2 * tiles)) };
    let run = |from: *const C::Item| {
        move |start: usize, end: usize| {
            // SAFETY: a run is `start .. end` of an array that has the last offset as its length. Offsets ascend, so
            // that `start <= end` and `end` is at most the last offset.
            InOrder::<C, _>::new(unsafe { Items::new(from.wrapping_add(start), end - start) })
        }
    };
    let (pair, taken) = offsets.split(t * tile, pairs, run(a), run(b));
    splits.set(2 * t, pair);
    splits.set(2 * t + 1, offsets.a.get(pair) + taken);
}

/// Kernel: merges pairs of any lengths into `to`, with their values. One block per [tile](tile_items).
///
/// # Safety
/// The arrays meet the requirements of [`split_ragged`], and `splits` is its result for tiles of [`tile_items`]. There
/// is one value per item. `to` has capacity for `total` items, the number of all items, and does not overlap any other
/// array. There is one block per tile, of [`THREADS`] threads, with [`shared_bytes`](super::tile::shared_bytes) of
/// dynamic shared memory.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_ragged<C: Compare, V: Pod>(
    a: *const C::Item,
    a_values: *const V,
    a_offsets: *const usize,
    b: *const C::Item,
    b_values: *const V,
    b_offsets: *const usize,
    pairs: usize,
    to: *mut C::Item,
    to_values: *mut V,
    total: usize,
    splits: *const usize,
) {
    let slots = const { tile_items::<C::Item, V>() };
    // SAFETY: the caller passes `pairs + 1` offsets per array, `pairs >= 1`, and a split per tile. The launch has the
    // bytes of a tile; barriers separate a slot's writes from reads by other threads.
    let (tile, shared) = unsafe {
        let offsets = Offsets::new(a_offsets, b_offsets, pairs);
        (Tile::new(offsets, pairs, splits, total, slots), Pairs::<C, V>::dynamic(slots))
    };
    let (of_a, of_b) = (tile.a_next - tile.a_curr, tile.b_next - tile.b_curr);
    let (start, count) = (tile.a_curr + tile.b_curr, of_a + of_b);
    // SAFETY: `Tile` keeps the ends of a tile in order and inside the arrays: `a_curr + of_a` and `b_curr + of_b` are
    // at most the last offsets. A block writes `start .. start + count` of `to`, and the ranges of two blocks are
    // disjoint.
    let (of_a_global, of_b_global, to, to_values) = unsafe {
        (
            (Items::new(a.wrapping_add(tile.a_curr), of_a), Items::new(a_values.wrapping_add(tile.a_curr), of_a)),
            (Items::new(b.wrapping_add(tile.b_curr), of_b), Items::new(b_values.wrapping_add(tile.b_curr), of_b)),
            ItemsMut::<C::Item>::new(to, total).slice(start, count),
            ItemsMut::<V>::new(to_values, total).slice(start, count),
        )
    };
    shared.fill(of_a_global, of_b_global);
    thread::sync_threads();
    for_items_per_thread!(C::Item, V, VT => {
        let slot = thread::thread_idx_x() * VT as u32;
        let merged = merge_share::<C, V, VT>(tile, shared, of_a as u32, slot, count as u32);
        thread::sync_threads();
        shared.store(merged, slot, count as u32);
    });
    thread::sync_threads();
    shared.items.copy_to(to, THREADS as u32);
    shared.values.copy_to(to_values, THREADS as u32);
}

/// Shared memory to registers: items `slot .. slot + VT` of the merged tile, clipped to its `count` items. The first
/// `of_a` items of the tile are from A.
#[inline(always)]
#[track_caller]
fn merge_share<C: Compare, V: Pod, const VT: usize>(
    tile: Tile,
    shared: Pairs<C, V>,
    of_a: u32,
    slot: u32,
    count: u32,
) -> Registers<C, V, VT> {
    let mut registers = Registers { items: [C::Item::zeroed(); VT], values: [V::zeroed(); VT] };
    if slot >= count {
        return registers;
    }
    let (mut pair, mut end) = pair_of(tile, slot, 0);
    let begin = if pair > 0 { tile.end(pair - 1) } else { Ends { a: 0, b: 0 } };
    let run = |first: u32, end: u32| InOrder::<C, _>::new(shared.items.slice(first, end - first));
    // For unsorted runs, the last pair may end before the tile.
    let rank = slot.min(end.key()) - begin.key();
    let taken = diagonal_search(rank, run(begin.a, end.a), run(of_a + begin.b, of_a + end.b));
    let (mut i, mut j) = (begin.a + taken, of_a + begin.b + rank - taken);
    let (whole, last) = (run(0, count), count - 1);
    let (mut x, mut y) = (whole.at(i.min(last)), whole.at(j.min(last)));
    let mut s = 0;
    while s < VT {
        let at = slot + s as u32;
        if at < count {
            if at == end.key() {
                // Empty pairs may follow, perhaps thousands: hence a binary search.
                (pair, end) = pair_of(tile, at, pair);
            }
            let take_a = i < end.a && (j >= of_a + end.b || x <= y);
            registers.items[s] = if take_a { x.0 } else { y.0 };
            registers.values[s] = shared.values.get(if take_a { i } else { j.min(last) });
            if take_a {
                i += 1;
                x = whole.at(i.min(last));
            } else {
                j += 1;
                y = whole.at(j.min(last));
            }
        }
        s += 1;
    }
    registers
}

/// The pair of item `k` of the merged tile, and the pair's end: the first pair, from pair `low`, that ends behind item
/// `k`.
#[inline(always)]
#[track_caller]
fn pair_of(tile: Tile, k: u32, low: usize) -> (usize, Ends) {
    let (mut low, mut high) = (low, tile.pairs() - 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if tile.end(middle).key() > k {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    (low, tile.end(low))
}
