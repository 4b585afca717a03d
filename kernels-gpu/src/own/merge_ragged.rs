//! Merges pairs of runs of any lengths, in two phases: `SplitRagged` divides, `MergeRagged` merges.
//!
//! Tiles are independent of the boundaries of pairs, as in the library's own
//! [`merge_ragged`](crate::kernels::merge_ragged). All tiles have the same number of items, in a part of A and a part
//! of B. A tile may contain any number of pairs. A thread finds the pair of its first item, and goes on to the next
//! pair at the end of each.

use super::instances::Entry;
use super::items::{InOrder, Items, Source, Target};
use super::order::Compare;
use super::tile::{Pairs, Registers, for_items_per_thread, tile_items};
use crate::elements::{Elements, Slice};
use crate::kernels::merge_ragged::{Ends, Offsets, Tile};
use crate::sequence::Sequence;
use crate::thread::diagonal::diagonal_search;
use bytemuck::{Pod, Zeroable};
use cuda_std::prelude::*;

/// Kernel: divides the merged pairs into tiles of [`tile_items`]. `splits[2 t]` becomes the pair at the start of tile
/// `t`, and `splits[2 t + 1]` the number of A's items before it. One thread per tile.
///
/// # Safety
/// `a_offsets` and `b_offsets` have `pairs + 1` ascending offsets, the first 0, and `pairs` is at least 1. The last
/// offsets are the lengths of `a` and `b`, in global memory, aligned to 4 bytes. Their values are not read. `splits`
/// has capacity for two numbers for each tile, and the grid has at least one thread per tile.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SplitRagged<C: Compare, V> {
    /// The runs to merge.
    pub pairs: PairsOfRuns<C, V>,
    /// The result.
    pub splits: *mut usize,
}

/// Pairs of runs, in two arrays.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PairsOfRuns<C: Compare, V> {
    /// The first runs.
    pub a: Slice<C::Item, V>,
    /// Where they begin, and the end of the last one.
    pub a_offsets: *const usize,
    /// The second runs.
    pub b: Slice<C::Item, V>,
    /// Where they begin, and the end of the last one.
    pub b_offsets: *const usize,
    /// Number of pairs.
    pub count: usize,
}

impl<C: Compare, V: Pod> PairsOfRuns<C, V> {
    /// Number of items of all runs.
    #[inline(always)]
    fn total(self) -> usize {
        self.a.len + self.b.len
    }
}

impl<C: Compare, V: Pod> Entry for SplitRagged<C, V> {
    #[inline(always)]
    unsafe fn run(self) {
        let (pairs, tile) = (self.pairs, const { tile_items::<C::Item, V>() });
        let (t, tiles) = (thread::index_1d() as usize, pairs.total().div_ceil(tile));
        if t >= tiles {
            return;
        }
        // SAFETY: the caller passes `pairs.count + 1` offsets per array and room for `2 * tiles` numbers at `splits`.
        // This thread alone writes numbers `2 * t` and `2 * t + 1`, `t < tiles`.
        let (offsets, splits) = unsafe {
            (Offsets::new(pairs.a_offsets, pairs.b_offsets, pairs.count), GlobalMut::new(self.splits, 2 * tiles))
        };
        let run = |from: *const C::Item| {
            move |start: usize, end: usize| {
                // SAFETY: a run is `start .. end` of an array that has the last offset as its length. Offsets ascend,
                // so that `start <= end` and `end` is at most the last offset.
                InOrder::<C, _>::new(unsafe { Items::new(from.wrapping_add(start), end - start) })
            }
        };
        let (pair, taken) = offsets.split(t * tile, pairs.count, run(pairs.a.at.keys), run(pairs.b.at.keys));
        splits.set(2 * t, pair);
        splits.set(2 * t + 1, offsets.a.get(pair) + taken);
    }
}

/// Kernel: merges pairs of any lengths into `to`. One block per [tile](tile_items).
///
/// # Safety
/// The arrays meet the requirements of [`SplitRagged`], and `splits` is its result. There is one value per item. `to`
/// has capacity for all elements and does not overlap any other array. There is one block per tile, of
/// [`THREADS`](super::tile::THREADS) threads, with [`shared_bytes`](super::tile::shared_bytes) of dynamic shared
/// memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MergeRagged<C: Compare, V> {
    /// The runs to merge.
    pub pairs: PairsOfRuns<C, V>,
    /// The merged runs.
    pub to: Elements<C::Item, V>,
    /// The result of [`SplitRagged`].
    pub splits: *const usize,
}

impl<C: Compare, V: Pod> Entry for MergeRagged<C, V> {
    #[inline(always)]
    unsafe fn run(self) {
        let (pairs, slots) = (self.pairs, const { tile_items::<C::Item, V>() });
        // SAFETY: the caller passes `pairs.count + 1` offsets per array, at least two, and a split per tile. The launch
        // has the bytes of a tile; barriers separate a slot's writes from reads by other threads.
        let (tile, shared) = unsafe {
            let offsets = Offsets::new(pairs.a_offsets, pairs.b_offsets, pairs.count);
            (Tile::new(offsets, pairs.count, self.splits, pairs.total(), slots), Pairs::<C, V>::dynamic(slots))
        };
        let (of_a, of_b) = (tile.a_next - tile.a_curr, tile.b_next - tile.b_curr);
        let (start, count) = (tile.a_curr + tile.b_curr, of_a + of_b);
        // SAFETY: the arrays have their elements, and `to` has the total. A block writes `start .. start + count` of
        // `to`, and the ranges of two blocks are disjoint.
        let (a, b, to) = unsafe { (Source::new(pairs.a), Source::new(pairs.b), Target::new(self.to, pairs.total())) };
        shared.fill_both(a.slice(tile.a_curr, of_a), b.slice(tile.b_curr, of_b));
        thread::sync_threads();
        for_items_per_thread!(C::Item, V, VT => {
            let slot = thread::thread_idx_x() * VT as u32;
            let merged = merge_slots::<C, V, VT>(tile, shared, of_a as u32, slot, count as u32);
            thread::sync_threads();
            shared.store(merged, slot, count as u32);
        });
        thread::sync_threads();
        shared.copy_to(to.slice(start, count));
    }
}

/// Shared memory to registers: items `slot .. slot + VT` of the merged tile, clipped to its `count` items. The first
/// `of_a` items of the tile are from A.
#[inline(always)]
#[track_caller]
fn merge_slots<C: Compare, V: Pod, const VT: usize>(
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
