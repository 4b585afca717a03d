//! Pairs of runs of any lengths, each merged into one, in two phases: `split_ragged` divides, `merge_ragged` merges.
//!
//! Tiles pay no heed to where pairs begin and end, as those of the library's own [`merge_ragged`](crate::kernels::merge_ragged): a tile is a part of A
//! and a part of B, of as many items as any other, whatever pairs are in it. A thread finds the pair of its first item, and goes on to the next pair
//! where one ends.

use super::items::{InOrder, Items, ItemsMut};
use super::order::Compare;
use super::tile::{Pairs, Registers, THREADS, for_items_per_thread, tile_items};
use crate::kernels::merge_ragged::{Ends, Offsets, Tile};
use crate::sequence::Sequence;
use crate::thread::diagonal::diagonal_search;
use bytemuck::{Pod, Zeroable};
use cuda_std::prelude::*;

/// Kernel: for each tile writes to `splits[2 t]` the pair that it begins in and to `splits[2 t + 1]` how many items of A come before it. One thread a
/// tile.
///
/// # Safety
/// `a_offsets` and `b_offsets` have `pairs + 1` ascending offsets, the first 0, `pairs` is not 0, and `a` and `b` have as many items as the last ones
/// say, in global memory, aligned to 4 bytes; `splits` has capacity for `2 tiles`, where `tiles` is the number of tiles of `tile` items that all of these
/// take, and there are at least as many threads.
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
    // SAFETY: the caller promises the offsets, and `2 * tiles` words at `splits`, of which this thread alone writes words `2 * t` and `2 * t + 1`.
    let (offsets, splits) = unsafe { (Offsets::new(a_offsets, b_offsets, pairs), GlobalMut::new(splits, 2 * tiles)) };
    let run = |from: *const C::Item| {
        move |start: usize, end: usize| {
            // SAFETY: a pair is `start .. end` of an array that has as many items as the last offset says; offsets ascend, so that `start <= end`, and
            // `end` is not above the last.
            InOrder::<C, _>::new(unsafe { Items::new(from.wrapping_add(start), end - start) })
        }
    };
    let (pair, taken) = offsets.split(t * tile, pairs, run(a), run(b));
    splits.set(2 * t, pair);
    splits.set(2 * t + 1, offsets.a.get(pair) + taken);
}

/// Kernel: merges pairs of any lengths to `to`, with their values, one block a [tile](tile_items).
///
/// # Safety
/// As for [`split_ragged`], whose splits for such tiles `splits` are; `to` has capacity for `total` items, which is how many there are, and overlaps no
/// other array; values are as many as items. Blocks are of [`THREADS`] threads, one for each tile, with
/// [`shared_bytes`](super::tile::shared_bytes) of dynamic shared memory.
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
    // SAFETY: the caller promises the offsets, `pairs != 0`, and the splits of these tiles. Ends of a tile are in order, and inside of the arrays, as
    // `Tile` says. A block writes its tile's items, which no other block does. The launch has the bytes of a tile; barriers are between writes and
    // reads of other threads' slots.
    let (tile, shared) = unsafe {
        let offsets = Offsets::new(a_offsets, b_offsets, pairs);
        (Tile::new(offsets, pairs, splits, total, slots), Pairs::<C, V>::dynamic(slots))
    };
    let (of_a, of_b) = (tile.a_next - tile.a_curr, tile.b_next - tile.b_curr);
    let (start, count) = (tile.a_curr + tile.b_curr, of_a + of_b);
    // SAFETY: as above.
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

/// Shared memory to registers: items `slot .. slot + VT` of the merges of a tile of `count` items, of which `of_a` are of A, as far as there are so many.
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
    // Where runs are not sorted the last pair may end before the tile.
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
                // Empty pairs may follow, and maybe thousands.
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

/// The first pair of the tile, from pair `low` on, that ends behind item `k` of the merged tile, and where it ends: the pair of that item.
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
