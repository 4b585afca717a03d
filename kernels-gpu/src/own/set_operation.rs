//! Set operations on two sorted multisets of items, in two phases: `BalanceSets` divides, `CombineSets` computes the
//! result.
//!
//! ```text
//!   BalanceSets    A  1 1 2│2 2 2 5│6      the balanced path, divided into tiles between pairs of equal items
//!                  B  1 2  │2 2 3  │8 9
//!   CombineSets       1 1 2│2 2 3 5│…      each tile in shared memory: a thread walks its part and counts kept items
//!                     └ 3 ┘└── 7 ──        numbers of kept items, which a look-back adds up over earlier tiles
//!                  C  1 1 2 2 2 3 5 …      the kept items, without gaps
//! ```
//!
//! Items are equal if neither is before the other. The k-th copy of an item in A and the k-th copy in B are a pair, and
//! A's item is kept. For m equal items in A and n in B, a union has A's items and the last n − m of B. An intersection
//! has the first min(m, n) of A, and a difference the last m − n of A. These are the rules of C++'s `std::set_union`,
//! `std::set_intersection` and `std::set_difference`.

use super::instances::Entry;
use super::items::{InOrder, Items, Source, Target};
use super::order::Compare;
use super::tile::{self, Pairs, Registers, for_items_per_thread, tile_items};
use crate::block::compaction::CompactionMemory;
use crate::elements::{Output, Slice};
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

/// Items per tile, with values of type `V`: one fewer than slots, since a tile that begins inside a pair takes both
/// items.
pub const fn set_tile_items<T, V>() -> usize {
    tile_items::<T, V>() - 1
}

/// Bytes of dynamic shared memory of [`CombineSets`].
pub const fn shared_bytes<T, V>() -> u32 {
    CompactionMemory::end(tile::shared_bytes::<T, V>())
}

/// Kernel: divides the balanced path into tiles of [`set_tile_items`]. `splits[2 t]` becomes the number of A's items
/// before tile `t`, and `splits[2 t + 1]` the number of B's items. One thread per tile.
///
/// # Safety
/// `a` and `b` are items in global memory, aligned to 4 bytes. Their values are not read. `splits` has capacity for two
/// numbers for each tile, and the grid has at least one thread per tile.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BalanceSets<C: Compare, V> {
    /// The first multiset.
    pub a: Slice<C::Item, V>,
    /// The second multiset.
    pub b: Slice<C::Item, V>,
    /// The result.
    pub splits: *mut usize,
}

impl<C: Compare, V: Pod> Entry for BalanceSets<C, V> {
    #[inline(always)]
    unsafe fn run(self) {
        let (a, b, tile) = (self.a, self.b, const { set_tile_items::<C::Item, V>() });
        let (t, tiles) = (thread::index_1d() as usize, (a.len + b.len).div_ceil(tile));
        if t >= tiles {
            return;
        }
        // SAFETY: the caller passes the items of `a` and `b`, and room for `2 * tiles` numbers at `splits`. This thread
        // alone writes numbers `2 * t` and `2 * t + 1`, `t < tiles`.
        let (a, b, splits) = unsafe {
            (Items::new(a.at.keys, a.len), Items::new(b.at.keys, b.len), GlobalMut::new(self.splits, 2 * tiles))
        };
        let (a, b) = (InOrder::<C, _>::new(a), InOrder::<C, _>::new(b));
        let k = t * tile;
        let point = balance(k, diagonal_search(k, a, b), a, b);
        splits.set(2 * t, point.a);
        splits.set(2 * t + 1, point.rank(k) - point.a);
    }
}

/// Kernel: writes the elements of `a` and `b` that `kept` keeps to `to`, sorted, and their number to `to.count`. One
/// block per tile.
///
/// # Safety
/// The arrays meet the requirements of [`BalanceSets`], and `splits` is its result. There is one value per item, and
/// there is at least one item. `to` has capacity for `to.capacity` elements, and `to.count` for one number. `tiles`
/// points to the [`words`](crate::warp::look_back::words) of all tiles, which are 0. The output arrays do not overlap
/// the input arrays. There is one block per tile, of [`THREADS`](super::tile::THREADS) threads, with [`shared_bytes`]
/// of dynamic shared memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CombineSets<C: Compare, V> {
    /// The first multiset.
    pub a: Slice<C::Item, V>,
    /// The second multiset.
    pub b: Slice<C::Item, V>,
    /// The result.
    pub to: Output<C::Item, V>,
    /// The words of the look-back.
    pub tiles: *mut u64,
    /// The result of [`BalanceSets`].
    pub splits: *const usize,
    /// The bits of [`Kept`].
    pub kept: u32,
}

impl<C: Compare, V: Pod> Entry for CombineSets<C, V> {
    #[inline(always)]
    unsafe fn run(self) {
        let ends = (self.a.len, self.b.len);
        let number = (ends.0 + ends.1).div_ceil(const { set_tile_items::<C::Item, V>() });
        // SAFETY: the caller passes both multisets, room for `capacity` elements, and `2 * number` splits. It passes
        // the look-back's words, which nothing else uses. A block writes its kept elements behind the kept elements of
        // earlier tiles. The launch has the bytes of a tile and of the compaction; barriers separate a slot's writes
        // from reads by other threads.
        let (a, b, to, splits, tiles, shared, compaction) = unsafe {
            (
                Source::new(self.a),
                Source::new(self.b),
                Target::new(self.to.at, self.to.capacity),
                Global::new(self.splits, 2 * number),
                Tiles::new(self.tiles, number),
                Pairs::<C, V>::dynamic(const { tile_items::<C::Item, V>() }),
                CompactionMemory::at(const { tile::shared_bytes::<C::Item, V>() }),
            )
        };
        let t = compaction.take(tiles);
        let split = |t: usize| if t < number { (splits.get(2 * t), splits.get(2 * t + 1)) } else { ends };
        let (begin, end) = (split(t as usize), split(t as usize + 1));
        // At most a whole tile: one item more than `set_tile_items` only if it begins between the two items of a pair.
        let total = end.0 + end.1 - begin.0 - begin.1;
        // For unsorted items, splits may be out of order.
        let of_a = clamp_split(begin.0, end.0, total) - begin.0;
        shared.fill_both(a.slice(begin.0, of_a), b.slice(begin.1, total - of_a));
        thread::sync_threads();
        let of_tile = for_items_per_thread!(C::Item, V, VT => {
            let walked = walk::<C, V, VT>(shared, of_a as u32, total as u32, Kept(self.kept));
            // SAFETY: all threads of the block, which are whole warps, make this call. It contains a barrier, so that
            // all threads have read the tile before `store` overwrites it.
            let counted = unsafe { compaction.count(tiles, t, walked.kept.count_ones()) };
            walked.store(shared, counted.before_thread);
            counted.of_tile
        });
        // SAFETY: all threads of the block, which are whole warps, make this call after `count`.
        unsafe { compaction.look_back(tiles, t, of_tile, ROW.sets_pairs_pause) };
        thread::sync_threads();
        let before = compaction.kept_before();
        if t as usize + 1 == number && thread::thread_idx_x() == 0 {
            // SAFETY: the caller passes one number at `count`, and the block of the last tile alone writes it.
            unsafe { GlobalMut::new(self.to.count, 1) }.set(0, before as u64 + of_tile as u64);
        }
        // For unsorted items, there may be more than `capacity`.
        let first = before.min(self.to.capacity);
        shared.copy_to(to.slice(first, (of_tile as usize).min(self.to.capacity - first)));
    }
}

/// The steps of a thread on its part of the path: the item of each step, and the value of each kept item.
struct Walked<C: Compare, V, const VT: usize> {
    registers: Registers<C, V, VT>,
    /// Bit i: whether the item of step i is kept.
    kept: u32,
}

/// Walks this thread's part of the path of a tile of `count` items, the first `m` from A. The part is from the last
/// point up to its diagonal to the last point up to the next thread's diagonal. It has at most `VT` steps: `VT` items,
/// or `VT + 1` if it begins one item before the diagonal, with a pair.
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
        // An exhausted run may give any item.
        let (x, y) = (whole.at(i.min(count - 1)), whole.at((m + j).min(count - 1)));
        let order = if i == m {
            Ordering::Greater
        } else if j == n {
            Ordering::Less
        } else {
            x.cmp(&y)
        };
        let (of_a, of_b) = (order.is_le(), order.is_ge());
        // A pair that the next thread's diagonal divides belongs to the next thread.
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
    /// Registers to shared memory: stores the kept items from slot `first`.
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
