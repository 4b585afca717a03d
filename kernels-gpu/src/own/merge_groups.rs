//! Merges many pairs of runs, in two phases: `SplitGroups` divides, `MergeGroups` merges.
//!
//! ```text
//!   a, b     │ run 0 │ run 1 │ run 2 │ run 3 │ run 4 │      a merge pass of a sort: pairs of runs of one array
//!   to       │ group 0       │ group 1       │ group 2 │
//!
//!   a        │ A             │      b  │ B      │          two arrays: one group
//!   to       │ group 0                │
//!
//!   a        │ A₀ │ A₁ │ A₂ │       b  │ B₀  │ B₁  │ B₂  │      a batch: one group per pair
//!   to       │ group 0  │ group 1  │ group 2  │
//! ```

use super::instances::Entry;
use super::items::{InOrder, Items, Source, Target};
use super::order::Compare;
use super::tile::{Pairs, for_items_per_thread, tile_items};
use crate::elements::{Elements, Slice};
use crate::textbook::co_rank::clamp_split;
use crate::thread::diagonal::diagonal_search;
use bytemuck::Pod;
use cuda_std::prelude::*;

/// The positions of the runs of each group. Lengths are in items.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    /// Number of merged items of all groups.
    pub total: usize,
    /// Number of items of a group, at least 1. The last group may have fewer.
    pub group: usize,
    /// Number of items of a group's first run. The first run of a short last group may have fewer.
    pub first: usize,
    /// Distance between the starts of first runs.
    pub a_stride: usize,
    /// Distance between the starts of second runs.
    pub b_stride: usize,
}

/// A tile of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileOfGroup {
    /// The number of the group.
    pub number: usize,
    /// The lengths of the group's first and second run.
    pub lengths: [usize; 2],
    /// Items of the group before the tile.
    pub rank: usize,
    /// Items of the tile.
    pub count: usize,
}

impl Groups {
    /// Two arrays of `m` and `n` items.
    pub const fn of_two(m: usize, n: usize) -> Self {
        let total = m + n;
        Self { total, group: if total == 0 { 1 } else { total }, first: m, a_stride: m, b_stride: n }
    }

    /// The pairs of neighbouring runs of `run` items in an array of `n`. The second runs are in the array from item
    /// `run`.
    pub const fn of_runs(n: usize, run: usize) -> Self {
        Self { total: n, group: 2 * run, first: run, a_stride: 2 * run, b_stride: 2 * run }
    }

    /// `count` pairs of runs of `m` and of `n` items, contiguous in two arrays.
    pub const fn of_batch(count: usize, m: usize, n: usize) -> Self {
        let group = if m + n == 0 { 1 } else { m + n };
        Self { total: count * (m + n), group, first: m, a_stride: m, b_stride: n }
    }

    /// Number of tiles of `tile` items. Each group begins with a new tile.
    pub const fn tiles(self, tile: usize) -> usize {
        let (group, tile) = if self.group == 0 || tile == 0 { (1, 1) } else { (self.group, tile) };
        self.total / group * group.div_ceil(tile) + (self.total % group).div_ceil(tile)
    }

    /// The tile with number `t`, where each tile but the last one of a group has `tile` items.
    #[inline(always)]
    pub fn tile(self, t: usize, tile: usize) -> TileOfGroup {
        // Both are at least 1, but without `max` the divisions would compile to code that can panic.
        let tiles_of_group = self.group.div_ceil(tile.max(1)).max(1);
        let (number, rank) = (t / tiles_of_group, t % tiles_of_group * tile);
        let length = (self.total - number * self.group).min(self.group);
        let first = self.first.min(length);
        TileOfGroup { number, lengths: [first, length - first], rank, count: (length - rank).min(tile) }
    }
}

/// Kernel: divides all groups into [tiles](Groups::tiles) of [`tile_items`]. `splits[t]` becomes the number of items
/// that the merge takes from the group's first run before tile `t`. One thread per tile.
///
/// # Safety
/// `a` and `b` are items in global memory, aligned to 4 bytes, and contain the runs of `groups`. Their values are not
/// read. `splits` has capacity for all tiles, and the grid has at least one thread per tile.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SplitGroups<C: Compare, V> {
    /// The array of the first runs.
    pub a: Slice<C::Item, V>,
    /// The array of the second runs.
    pub b: Slice<C::Item, V>,
    /// The result.
    pub splits: *mut usize,
    /// Where the runs are.
    pub groups: Groups,
}

impl<C: Compare, V: Pod> Entry for SplitGroups<C, V> {
    #[inline(always)]
    unsafe fn run(self) {
        let (groups, tile) = (self.groups, const { tile_items::<C::Item, V>() });
        let (t, tiles) = (thread::index_1d() as usize, groups.tiles(tile));
        if t >= tiles {
            return;
        }
        // SAFETY: the caller passes the items of `a` and `b`, and room for `tiles` splits. This thread alone writes
        // `splits[t]`, `t < tiles`.
        let (a, b, splits) = unsafe {
            (
                Items::<C::Item>::new(self.a.at.keys, self.a.len),
                Items::<C::Item>::new(self.b.at.keys, self.b.len),
                GlobalMut::new(self.splits, tiles),
            )
        };
        let TileOfGroup { number, lengths, rank, .. } = groups.tile(t, tile);
        let a = InOrder::<C, _>::new(a.slice(number * groups.a_stride, lengths[0]));
        let b = InOrder::<C, _>::new(b.slice((number * groups.b_stride).min(b.len()), lengths[1]));
        splits.set(t, diagonal_search(rank, a, b));
    }
}

/// Kernel: merges the runs of each group into `to`. One block per [tile](tile_items).
///
/// # Safety
/// The arrays meet the requirements of [`SplitGroups`], and `splits` is its result. There is one value per item. `to`
/// has capacity for all merged elements and does not overlap any other array. There is one block per tile, of
/// [`THREADS`](super::tile::THREADS) threads, with [`shared_bytes`](super::tile::shared_bytes) of dynamic shared
/// memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MergeGroups<C: Compare, V> {
    /// The array of the first runs.
    pub a: Slice<C::Item, V>,
    /// The array of the second runs.
    pub b: Slice<C::Item, V>,
    /// The merged runs.
    pub to: Elements<C::Item, V>,
    /// The result of [`SplitGroups`].
    pub splits: *const usize,
    /// Where the runs are.
    pub groups: Groups,
}

impl<C: Compare, V: Pod> Entry for MergeGroups<C, V> {
    #[inline(always)]
    unsafe fn run(self) {
        let groups = self.groups;
        let (t, tile) = (thread::block_idx_x() as usize, const { tile_items::<C::Item, V>() });
        let TileOfGroup { number, lengths, rank, count } = groups.tile(t, tile);
        // SAFETY: the arrays have their elements, `to` has `groups.total`, and there is a split per tile. A block
        // writes the items of its own tile. The launch has the bytes of a tile; barriers separate a slot's writes from
        // reads by other threads.
        let (a, b, to, splits, shared) = unsafe {
            (
                Source::new(self.a),
                Source::new(self.b),
                Target::new(self.to, groups.total),
                Global::new(self.splits, groups.tiles(tile)),
                Pairs::<C, V>::dynamic(tile),
            )
        };
        let begin = splits.get(t);
        let is_last = rank + count == lengths[0] + lengths[1];
        let end = if is_last { lengths[0] } else { splits.get(t + 1) };
        // For unsorted runs, splits may be out of order.
        let of_a = clamp_split(begin, end, count) - begin;
        // Without its second run, the last group may have the start of that run beyond the end.
        let b_first = (number * groups.b_stride + rank - begin).min(self.b.len);
        shared.fill_both(a.slice(number * groups.a_stride + begin, of_a), b.slice(b_first, count - of_a));
        thread::sync_threads();
        for_items_per_thread!(C::Item, V, VT => {
            let slot = thread::thread_idx_x() * VT as u32;
            let merged = shared.merge::<VT>(of_a as u32, slot, count as u32);
            thread::sync_threads();
            shared.store(merged, slot, count as u32);
        });
        thread::sync_threads();
        shared.copy_to(to.slice(number * groups.group + rank, count));
    }
}
