//! Set operations on two sorted multisets of items, in two phases: `balance_sets` divides, `combine_sets` keeps.
//!
//! ```text
//!   balance_sets   A  1 1 2│2 2 2 5│6      the balanced path, divided into tiles: no pair of equal items is divided
//!                  B  1 2  │2 2 3  │8 9
//!   combine_sets      1 1 2│2 2 3 5│…      each tile in shared memory: a thread walks its part of the path, and counts what it keeps
//!                     └ 3 ┘└── 7 ──        how many items the tiles before it keep: a look-back over these
//!                  C  1 1 2 2 2 3 5 …      what is kept, side by side
//! ```
//!
//! Items are equal if neither is before the other. The k-th of equal items of A and the k-th of B are a pair, of which the one of A is kept;
//! so of m equal items of A and n of B a union has those of A and the last n − m of B, an intersection the first min(m, n) of A, and a
//! difference the last m − n of A, as C++'s `std::set_union` and its siblings have.

use super::items::{InOrder, Items, ItemsMut};
use super::order::Compare;
use super::tile::{self, Pairs, Registers, THREADS, for_items_per_thread, tile_items};
use crate::block::compaction::CompactionMemory;
use crate::kernels::set_operation::Kept;
use crate::sequence::Sequence;
use crate::textbook::co_rank::clamp_split;
use crate::thread::balanced_path::balance;
use crate::thread::diagonal::diagonal_search;
use crate::tuning::ROW;
use crate::warp::look_back::Tiles;
use bytemuck::{Pod, Zeroable};
use core::cmp::Ordering;
use cuda_std::prelude::*;

/// Items of a tile, with values of type `V`: one fewer than it has slots, since a tile that begins in the middle of a pair has the whole pair.
pub const fn set_tile_items<T, V>() -> usize {
    tile_items::<T, V>() - 1
}

/// Bytes of dynamic shared memory of [`combine_sets`].
pub const fn shared_bytes<T, V>() -> u32 {
    CompactionMemory::end(tile::shared_bytes::<T, V>())
}

/// Kernel: writes to `splits[2 t]` and `splits[2 t + 1]` how many items of A and of B the balanced path takes before tile `t` of `tile` items, for
/// `tiles` tiles. One thread a tile.
///
/// # Safety
/// `a` and `b` are arrays of `m` and `n` items, in global memory, aligned to 4 bytes; every tile begins at an item of these, `(tiles - 1) * tile < m + n`.
/// `splits` has capacity for `2 tiles` numbers, and there are at least as many threads as tiles.
#[inline(always)]
pub unsafe fn balance_sets<C: Compare>(
    a: *const C::Item,
    m: usize,
    b: *const C::Item,
    n: usize,
    splits: *mut usize,
    tiles: usize,
    tile: usize,
) {
    let t = thread::index_1d() as usize;
    if t >= tiles {
        return;
    }
    // SAFETY: the arrays have `m`, `n` and `2 * tiles` elements; this thread alone writes `splits[2 * t]` and the next one.
    let (a, b, splits) = unsafe { (Items::new(a, m), Items::new(b, n), GlobalMut::new(splits, 2 * tiles)) };
    let (a, b) = (InOrder::<C, _>::new(a), InOrder::<C, _>::new(b));
    let k = t * tile;
    let point = balance(k, diagonal_search(k, a, b), a, b);
    splits.set(2 * t, point.a);
    splits.set(2 * t + 1, point.rank(k) - point.a);
}

/// Kernel: writes the items that `kept` keeps of `a` and `b` to `to`, sorted, with their values, and how many these are to `count`. One block a
/// tile.
///
/// # Safety
/// As for [`balance_sets`], whose splits for tiles of [`set_tile_items`] `splits` are; values are as many as items, one of `m` and `n` is not 0.
/// `to` has capacity for `capacity` items and values, `count` for one number; `tiles` are the [`words`](crate::warp::look_back::words) of as many
/// tiles, which are 0. What is written overlaps nothing that is read. Blocks are of [`THREADS`] threads, one for each tile, with [`shared_bytes`] of
/// dynamic shared memory.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn combine_sets<C: Compare, V: Pod>(
    a: *const C::Item,
    a_values: *const V,
    m: usize,
    b: *const C::Item,
    b_values: *const V,
    n: usize,
    to: *mut C::Item,
    to_values: *mut V,
    capacity: usize,
    count: *mut u64,
    tiles: *mut u64,
    splits: *const usize,
    kept: u32,
) {
    let number = (m + n).div_ceil(const { set_tile_items::<C::Item, V>() });
    // SAFETY: the arrays have as many elements as the caller promises: two splits and a word of the look-back for each tile, which nothing else uses.
    // A block writes what it keeps behind what all blocks before it keep. The launch has the bytes of a tile and of the compaction; barriers are
    // between writes and reads of other threads' slots.
    let (a, a_values, b, b_values, to, to_values, splits, tiles, shared, compaction) = unsafe {
        (
            Items::<C::Item>::new(a, m),
            Items::<V>::new(a_values, m),
            Items::<C::Item>::new(b, n),
            Items::<V>::new(b_values, n),
            ItemsMut::<C::Item>::new(to, capacity),
            ItemsMut::<V>::new(to_values, capacity),
            Global::new(splits, 2 * number),
            Tiles::new(tiles, number),
            Pairs::<C, V>::dynamic(const { tile_items::<C::Item, V>() }),
            CompactionMemory::at(const { tile::shared_bytes::<C::Item, V>() }),
        )
    };
    let t = compaction.take(tiles);
    let split = |t: usize| if t < number { (splits.get(2 * t), splits.get(2 * t + 1)) } else { (m, n) };
    let (begin, end) = (split(t as usize), split(t as usize + 1));
    // A whole tile at most: more than its share only if it begins in the middle of a pair.
    let total = end.0 + end.1 - begin.0 - begin.1;
    // Where items are not sorted, splits may be out of order.
    let of_a = clamp_split(begin.0, end.0, total) - begin.0;
    let of_b = total - of_a;
    shared.fill(
        (a.slice(begin.0, of_a), a_values.slice(begin.0, of_a)),
        (b.slice(begin.1, of_b), b_values.slice(begin.1, of_b)),
    );
    thread::sync_threads();
    let of_tile = for_items_per_thread!(C::Item, V, VT => {
        let walked = walk::<C, V, VT>(shared, of_a as u32, total as u32, Kept(kept));
        // SAFETY: all threads of the block are here, whole warps. The items of the tile have been read by all: there is a barrier in this.
        let counted = unsafe { compaction.count(tiles, t, walked.kept.count_ones()) };
        walked.store(shared, counted.before_thread);
        counted.of_tile
    });
    // SAFETY: as above.
    unsafe { compaction.look_back(tiles, t, of_tile, ROW.sets_pairs_pause) };
    thread::sync_threads();
    let before = compaction.kept_before();
    if t as usize + 1 == number && thread::thread_idx_x() == 0 {
        // SAFETY: `count` is one number, which the block of the last tile alone writes.
        unsafe { GlobalMut::new(count, 1) }.set(0, before as u64 + of_tile as u64);
    }
    // Where items are not sorted there may be more than of sorted ones.
    let first = before.min(capacity);
    let len = (of_tile as usize).min(capacity - first);
    shared.items.copy_to(to.slice(first, len), THREADS as u32);
    shared.values.copy_to(to_values.slice(first, len), THREADS as u32);
}

/// What a thread finds on its part of the path: the item of each step, and its value where the item is kept.
struct Walked<C: Compare, V, const VT: usize> {
    registers: Registers<C, V, VT>,
    /// A bit for each step, of whether its item is kept.
    kept: u32,
}

/// Walks the part of this thread of the path of a tile of `count` items, of which `m` are of A: from the last point up to its diagonal to the last
/// point up to the next thread's. These are `VT` steps at most: `VT` items, and one more if it begins one item before the diagonal, with a pair.
#[inline(always)]
#[track_caller]
fn walk<C: Compare, V: Pod, const VT: usize>(shared: Pairs<C, V>, m: u32, count: u32, kept: Kept) -> Walked<C, V, VT> {
    let (n, whole) = (count - m, shared.items.slice(0, count));
    let (a, b) = (InOrder::<C, _>::new(whole.slice(0, m)), InOrder::<C, _>::new(whole.slice(m, n)));
    let diagonal = (thread::thread_idx_x() * VT as u32).min(count);
    let end = (diagonal + VT as u32).min(count);
    let point = balance(diagonal, diagonal_search(diagonal, a, b), a, b);
    let (mut i, mut j) = (point.a, point.rank(diagonal) - point.a);
    let registers = Registers { items: [C::Item::zeroed(); VT], values: [V::zeroed(); VT] };
    let mut walked = Walked { registers, kept: 0 };
    let whole = InOrder::<C, _>::new(whole);
    let mut step = 0;
    while step < VT {
        // Of a run that is used up any item will do.
        let (x, y) = (whole.at(i.min(count - 1)), whole.at((m + j).min(count - 1)));
        let order = if i == m {
            Ordering::Greater
        } else if j == n {
            Ordering::Less
        } else {
            x.cmp(&y)
        };
        let (of_a, of_b) = (order.is_le(), order.is_ge());
        // A pair that the next thread's diagonal divides is the next thread's.
        if i + j + of_a as u32 + of_b as u32 <= end {
            if kept.keeps(of_a, of_b) {
                walked.registers.items[step] = if of_a { x.0 } else { y.0 };
                walked.registers.values[step] = shared.values.get(if of_a { i } else { m + j });
                walked.kept |= 1 << step;
            }
            i += of_a as u32;
            j += of_b as u32;
        }
        step += 1;
    }
    walked
}

impl<C: Compare, V: Pod, const VT: usize> Walked<C, V, VT> {
    /// Registers to shared memory: what is kept, from slot `first` on.
    #[inline(always)]
    #[track_caller]
    fn store(self, shared: Pairs<C, V>, first: u32) {
        let (mut slot, mut step) = (first, 0);
        while step < VT {
            if self.kept >> step & 1 != 0 {
                shared.items.set(slot, self.registers.items[step]);
                shared.values.set(slot, self.registers.values[step]);
                slot += 1;
            }
            step += 1;
        }
    }
}
