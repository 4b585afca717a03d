//! Many pairs of runs, each merged into one, in two phases: `split_groups` divides, `merge_groups` merges.
//!
//! ```text
//!   a, b     │ run 0 │ run 1 │ run 2 │ run 3 │ run 4 │      a pass of a sort: runs of one array, two by two
//!   to       │ group 0       │ group 1       │ group 2 │
//!
//!   a        │ A             │      b  │ B      │          two arrays: one group
//!   to       │ group 0                │
//!
//!   a        │ A₀ │ A₁ │ A₂ │       b  │ B₀  │ B₁  │ B₂  │      a batch: a group each
//!   to       │ group 0  │ group 1  │ group 2  │
//! ```

use super::items::{InOrder, Items, ItemsMut};
use super::order::Compare;
use super::tile::{Pairs, THREADS, for_items_per_thread, tile_items};
use crate::textbook::co_rank::clamp_split;
use crate::thread::diagonal::diagonal_search;
use bytemuck::Pod;
use cuda_std::prelude::*;

/// Where the runs of each group are. Lengths are in items.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    /// The merged items of all groups.
    pub total: usize,
    /// Those of a group, at least 1, but for the last group, which may have fewer.
    pub group: usize,
    /// The items of a group's first run; those that are left, if the last group has fewer.
    pub first: usize,
    /// How far apart first runs begin.
    pub a_stride: usize,
    /// How far apart second runs begin.
    pub b_stride: usize,
}

/// A tile of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TileOfGroup {
    /// The number of the group.
    number: usize,
    /// The items of its first run, and of its second one.
    lengths: [usize; 2],
    /// Items of the group before the tile.
    rank: usize,
    /// Items of the tile.
    count: usize,
}

impl Groups {
    /// Two arrays of `m` and `n` items.
    pub const fn of_two(m: usize, n: usize) -> Self {
        let total = m + n;
        Self { total, group: if total == 0 { 1 } else { total }, first: m, a_stride: m, b_stride: n }
    }

    /// The pairs of neighbouring runs of `run` items in an array of `n`. The second runs are those from item `run` on.
    pub const fn of_runs(n: usize, run: usize) -> Self {
        Self { total: n, group: 2 * run, first: run, a_stride: 2 * run, b_stride: 2 * run }
    }

    /// `count` pairs of runs of `m` and of `n` items, which lie one after the other in two arrays.
    pub const fn of_batch(count: usize, m: usize, n: usize) -> Self {
        let group = if m + n == 0 { 1 } else { m + n };
        Self { total: count * (m + n), group, first: m, a_stride: m, b_stride: n }
    }

    /// How many tiles of `tile` items there are: a group has tiles of its own.
    pub const fn tiles(self, tile: usize) -> usize {
        let (group, tile) = if self.group == 0 || tile == 0 { (1, 1) } else { (self.group, tile) };
        self.total / group * group.div_ceil(tile) + (self.total % group).div_ceil(tile)
    }

    #[inline(always)]
    fn tile(self, t: usize, tile: usize) -> TileOfGroup {
        // Both are at least 1 anyway, but a division by 0 would bring in the code of a panic.
        let tiles_of_group = self.group.div_ceil(tile.max(1)).max(1);
        let (number, rank) = (t / tiles_of_group, t % tiles_of_group * tile);
        let length = (self.total - number * self.group).min(self.group);
        let first = self.first.min(length);
        TileOfGroup { number, lengths: [first, length - first], rank, count: (length - rank).min(tile) }
    }
}

/// Kernel: writes to `splits[t]` how many items of the first run of its group the merge takes before tile `t` of `tile` items, for all
/// [tiles](Groups::tiles). One thread a tile.
///
/// # Safety
/// `a` and `b` are arrays of `m` and `n` items, in global memory, aligned to 4 bytes, in which `groups` finds its runs. `splits` has capacity for
/// all tiles, and there are at least as many threads.
#[inline(always)]
pub unsafe fn split_groups<C: Compare>(
    a: *const C::Item,
    m: usize,
    b: *const C::Item,
    n: usize,
    splits: *mut usize,
    groups: Groups,
    tile: usize,
) {
    let (t, tiles) = (thread::index_1d() as usize, groups.tiles(tile));
    if t >= tiles {
        return;
    }
    // SAFETY: the arrays have `m`, `n` and `tiles` elements; this thread alone writes `splits[t]`.
    let (a, b, splits) = unsafe { (Items::new(a, m), Items::new(b, n), GlobalMut::new(splits, tiles)) };
    let TileOfGroup { number, lengths, rank, .. } = groups.tile(t, tile);
    let a = InOrder::<C, _>::new(a.slice(number * groups.a_stride, lengths[0]));
    let b = InOrder::<C, _>::new(b.slice((number * groups.b_stride).min(n), lengths[1]));
    splits.set(t, diagonal_search(rank, a, b));
}

/// Kernel: merges the runs of each group to `to`, with their values, one block a [tile](tile_items).
///
/// # Safety
/// As for [`split_groups`], whose splits for such tiles `splits` are; `to` has room for all merged items and overlaps no other array, and values are as
/// many as items. Blocks are of [`THREADS`] threads, one for each tile, with [`shared_bytes`](super::tile::shared_bytes) of dynamic shared memory.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_groups<C: Compare, V: Pod>(
    a: *const C::Item,
    a_values: *const V,
    m: usize,
    b: *const C::Item,
    b_values: *const V,
    n: usize,
    to: *mut C::Item,
    to_values: *mut V,
    splits: *const usize,
    groups: Groups,
) {
    let (t, tile) = (thread::block_idx_x() as usize, const { tile_items::<C::Item, V>() });
    let TileOfGroup { number, lengths, rank, count } = groups.tile(t, tile);
    // SAFETY: the arrays have `m`, `n` and `groups.total` elements, and there is a split for each tile. A block writes its tile's items, which no
    // other block does. The launch has the bytes of a tile; barriers are between writes and reads of other threads' slots.
    let (a, a_values, b, b_values, to, to_values, splits, shared) = unsafe {
        (
            Items::<C::Item>::new(a, m),
            Items::<V>::new(a_values, m),
            Items::<C::Item>::new(b, n),
            Items::<V>::new(b_values, n),
            ItemsMut::<C::Item>::new(to, groups.total),
            ItemsMut::<V>::new(to_values, groups.total),
            Global::new(splits, groups.tiles(tile)),
            Pairs::<C, V>::dynamic(tile),
        )
    };
    let begin = splits.get(t);
    let is_last = rank + count == lengths[0] + lengths[1];
    let end = if is_last { lengths[0] } else { splits.get(t + 1) };
    // Where runs are not sorted, splits may be out of order.
    let of_a = clamp_split(begin, end, count) - begin;
    let of_b = count - of_a;
    // A last group without a second run would have that behind the end.
    let (a_first, b_first) = (number * groups.a_stride + begin, (number * groups.b_stride + rank - begin).min(n));
    shared.fill(
        (a.slice(a_first, of_a), a_values.slice(a_first, of_a)),
        (b.slice(b_first, of_b), b_values.slice(b_first, of_b)),
    );
    thread::sync_threads();
    for_items_per_thread!(C::Item, V, VT => {
        let slot = thread::thread_idx_x() * VT as u32;
        let merged = shared.merge::<VT>(of_a as u32, slot, count as u32);
        thread::sync_threads();
        shared.store(merged, slot, count as u32);
    });
    thread::sync_threads();
    let start = number * groups.group + rank;
    shared.items.copy_to(to.slice(start, count), THREADS as u32);
    shared.values.copy_to(to_values.slice(start, count), THREADS as u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_tiles_of_their_own() {
        let runs = Groups::of_runs(23, 5);
        assert_eq!(runs.tiles(4), 3 + 3 + 1);
        assert_eq!(runs.tile(5, 4), TileOfGroup { number: 1, lengths: [5, 5], rank: 8, count: 2 });
        assert_eq!(runs.tile(6, 4), TileOfGroup { number: 2, lengths: [3, 0], rank: 0, count: 3 });
        let two = Groups::of_two(3, 6);
        assert_eq!((two.tiles(4), two.tile(2, 4)), (3, TileOfGroup { number: 0, lengths: [3, 6], rank: 8, count: 1 }));
        assert_eq!((Groups::of_two(0, 0).tiles(4), Groups::of_batch(3, 0, 0).tiles(4)), (0, 0));
        assert_eq!(Groups::of_batch(3, 1, 2).tile(2, 4), TileOfGroup { number: 2, lengths: [1, 2], rank: 0, count: 3 });
    }
}
