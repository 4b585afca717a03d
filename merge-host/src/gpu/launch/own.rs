//! Sorts, merges and set operations in a user's own order.

pub(in crate::gpu) mod by_bits;

use super::sets::{kept_steps, look_back_bytes};
use super::{Address, Queue, align, bits};
use crate::gpu::kernels::Shape;
use crate::{Error, Index, SetOperation};
use bytemuck::Pod;
use kernels_gpu::kernels::sort::indices::SetIndices;
use kernels_gpu::own::instances::{
    BalanceSets, CombineSets, MergeGroups, MergeRagged, SortTiles, SplitGroups, SplitRagged,
};
use kernels_gpu::own::merge_groups::Groups;
use kernels_gpu::own::set_operation::{self, set_tile_items};
use kernels_gpu::own::tile::{THREADS, shared_bytes, tile_items};
use kernels_gpu::own::{Compare, Kernels};

/// Threads of a block that searches splits or sets indices.
const SMALL_BLOCK: u32 = 128;

/// Items in the GPU's memory, with as many values.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct Items {
    pub items: Address,
    pub values: Address,
    pub len: usize,
}

impl Items {
    /// Those from index `begin` on, if there are so many.
    fn from<T, V>(self, begin: usize) -> Self {
        let begin = begin.min(self.len);
        Self {
            items: self.items + (begin * size_of::<T>()) as u64,
            values: self.values + (begin * size_of::<V>()) as u64,
            len: self.len - begin,
        }
    }
}

/// Bytes of workspace for a sort of `n` items by `C`, with values of type `V`.
pub(in crate::gpu) fn sort_workspace_bytes<C: Compare, V>(n: usize) -> usize {
    if by_bits::is_chosen::<C>(n) {
        by_bits::workspace_bytes::<C, V>(n)
    } else {
        by_merges_workspace_bytes::<C::Item, V>(n)
    }
}

/// Bytes of workspace for a sort by merges of `n` items of type `T` with values of type `V`: both once more, and
/// splits.
const fn by_merges_workspace_bytes<T, V>(n: usize) -> usize {
    let copies = align(n.saturating_mul(size_of::<T>())).saturating_add(align(n.saturating_mul(size_of::<V>())));
    copies.saturating_add(split_bytes::<T, V>(Groups::of_two(n, 0)))
}

/// Bytes of workspace for merges to groups: a split for each tile.
pub(in crate::gpu) const fn split_bytes<T, V>(groups: Groups) -> usize {
    // A group may have a short tile, and half of all runs are first runs of a group.
    groups.tiles(tile_items::<T, V>()) * size_of::<usize>()
}

/// Queues a stable sort.
///
/// # Safety
/// The arrays are in the GPU's memory, aligned to 4 bytes; `workspace` is of [`sort_workspace_bytes`]; nothing else
/// uses them until the sort has ended.
pub(in crate::gpu) unsafe fn sort<C: Kernels<V>, V: Pod + Send + Sync>(
    queue: &impl Queue,
    array: Items,
    workspace: Address,
) -> Result<(), Error> {
    // SAFETY: the caller's promise; the workspace is enough for either.
    unsafe {
        if by_bits::is_chosen::<C>(array.len) {
            by_bits::sort::<C, V>(queue, array, workspace)
        } else {
            sort_by_merges::<C, V>(queue, array, workspace)
        }
    }
}

/// Queues a stable sort: one of tiles, and passes of merges.
///
/// # Safety
/// As for [`sort`], with a workspace of [`by_merges_workspace_bytes`].
unsafe fn sort_by_merges<C: Kernels<V>, V: Pod + Send + Sync>(
    queue: &impl Queue,
    array: Items,
    workspace: Address,
) -> Result<(), Error> {
    let n = array.len;
    let tile = tile_items::<C::Item, V>();
    let values = workspace + align(n * size_of::<C::Item>()) as u64;
    let splits = values + align(n * size_of::<V>()) as u64;
    let spare = Items { items: workspace, values, len: n };
    let passes = n.div_ceil(tile).max(1).next_power_of_two().trailing_zeros();
    // The arrays take turns such that the last pass writes to the one that is sorted.
    let (mut from, mut to) = if passes.is_multiple_of(2) { (spare, array) } else { (array, spare) };
    let tiles = SortTiles::<C, V> {
        from: array.items as *mut C::Item,
        from_values: array.values as *mut V,
        to: to.items as *mut C::Item,
        to_values: to.values as *mut V,
        n,
        values: Default::default(),
    };
    // SAFETY: the caller's promise for the arrays; there is a block for each tile, with its memory.
    unsafe { queue.launch(C::SUFFIX, a_block_each::<C::Item, V>(n.div_ceil(tile)), &tiles)? };
    for pass in 0..passes {
        (from, to) = (to, from);
        let run = tile << pass;
        let groups = Groups::of_runs(n, run);
        // SAFETY: as above. The runs of `from` are sorted; second runs begin at item `run`.
        unsafe { merge::<C, V>(queue, [from, from.from::<C::Item, V>(run)], to, groups, splits)? };
    }
    Ok(())
}

/// Queues stable merges of the runs of `groups`.
///
/// # Safety
/// The arrays are in the GPU's memory, aligned to 4 bytes, as long as `groups` demands; `out` overlaps no other;
/// `workspace` is of [`split_bytes`]; nothing writes the arrays, or uses `out` and `workspace`, until the merges have
/// ended.
pub(in crate::gpu) unsafe fn merge<C: Kernels<V>, V: Pod + Send + Sync>(
    queue: &impl Queue,
    [a, b]: [Items; 2],
    out: Items,
    groups: Groups,
    workspace: Address,
) -> Result<(), Error> {
    let tile = tile_items::<C::Item, V>();
    let tiles = groups.tiles(tile);
    let split = SplitGroups::<C, V> {
        a: a.items as *const C::Item,
        m: a.len,
        b: b.items as *const C::Item,
        n: b.len,
        splits: workspace as *mut usize,
        groups,
        tile,
        values: Default::default(),
    };
    let merge = MergeGroups::<C, V> {
        a: a.items as *const C::Item,
        a_values: a.values as *const V,
        m: a.len,
        b: b.items as *const C::Item,
        b_values: b.values as *const V,
        n: b.len,
        to: out.items as *mut C::Item,
        to_values: out.values as *mut V,
        splits: workspace as *const usize,
        groups,
        values: Default::default(),
    };
    // SAFETY: the caller's promise for the arrays; there is a thread, and then a block with its memory, for each tile.
    unsafe {
        queue.launch(C::SUFFIX, a_thread_each(tiles), &split)?;
        queue.launch(C::SUFFIX, a_block_each::<C::Item, V>(tiles), &merge)
    }
}

/// Queues a sort with the indices that items had before, in place of values.
///
/// # Safety
/// As for [`sort`].
pub(in crate::gpu) unsafe fn argsort<C: Kernels<I>, I: Index>(
    queue: &impl Queue,
    array: Items,
    workspace: Address,
) -> Result<(), Error> {
    let blocks = array.len.div_ceil(SMALL_BLOCK as usize).min(16 * queue.multiprocessors());
    let shape = Shape { blocks, threads: SMALL_BLOCK, shared_bytes: 0 };
    let (at, n, suffix) = (array.values, array.len, bits(size_of::<I>()));
    let (first, order, merges) = (0, std::ptr::null_mut(), 1);
    // SAFETY: the caller's promise for the arrays. There are as many indices as items.
    unsafe {
        if size_of::<I>() == 4 {
            queue.launch(&suffix, shape, &SetIndices { to: at as *mut u32, n, first, order, merges })?;
        } else {
            queue.launch(&suffix, shape, &SetIndices { to: at as *mut u64, n, first, order, merges })?;
        }
        sort::<C, I>(queue, array, workspace)
    }
}

/// Bytes of workspace for merges of any lengths into `total` items: two numbers for each tile.
pub(in crate::gpu) const fn ragged_workspace_bytes<T, V>(total: usize) -> usize {
    total.div_ceil(tile_items::<T, V>()).saturating_mul(2 * size_of::<usize>())
}

/// Queues stable merges of `problems` pairs of runs of any lengths: items with their offsets.
///
/// # Safety
/// As for [`merge`], with a workspace of [`ragged_workspace_bytes`]; the offset arrays are of `problems + 1` ascending
/// offsets of 8 bytes, the first 0 and the last the length of `a` or of `b`.
pub(in crate::gpu) unsafe fn merge_ragged<C: Kernels<V>, V: Pod + Send + Sync>(
    queue: &impl Queue,
    [(a, a_offsets), (b, b_offsets)]: [(Items, Address); 2],
    problems: usize,
    out: Items,
    workspace: Address,
) -> Result<(), Error> {
    let tile = tile_items::<C::Item, V>();
    let tiles = out.len.div_ceil(tile);
    let (a_offsets, b_offsets) = (a_offsets as *const usize, b_offsets as *const usize);
    let split = SplitRagged::<C, V> {
        a: a.items as *const C::Item,
        a_offsets,
        b: b.items as *const C::Item,
        b_offsets,
        pairs: problems,
        splits: workspace as *mut usize,
        tiles,
        tile,
        values: Default::default(),
    };
    let merge = MergeRagged::<C, V> {
        a: a.items as *const C::Item,
        a_values: a.values as *const V,
        a_offsets,
        b: b.items as *const C::Item,
        b_values: b.values as *const V,
        b_offsets,
        pairs: problems,
        to: out.items as *mut C::Item,
        to_values: out.values as *mut V,
        total: out.len,
        splits: workspace as *const usize,
        values: Default::default(),
    };
    // SAFETY: the caller's promise for the arrays, of which there is a problem if there is a tile; there is a thread,
    // and then a block with its memory, for each tile.
    unsafe {
        queue.launch(C::SUFFIX, a_thread_each(tiles), &split)?;
        queue.launch(C::SUFFIX, a_block_each::<C::Item, V>(tiles), &merge)
    }
}

/// Bytes of workspace for a set operation on `total` items of both arrays: two splits and a word of the look-back for
/// each tile.
pub(in crate::gpu) const fn set_operation_workspace_bytes<T, V>(total: usize) -> usize {
    let tiles = total.div_ceil(set_tile_items::<T, V>());
    look_back_bytes(tiles).saturating_add(tiles.saturating_mul(2 * size_of::<usize>()))
}

/// Queues the operation on the items of `a` and `b`, with their values, to `out`; the number of items kept goes to
/// `count`.
///
/// # Safety
/// The arrays are in the GPU's memory, aligned to 4 bytes, `out` of at least the items that the operation can keep,
/// `count` of one number of 8 bytes, `workspace` of [`set_operation_workspace_bytes`]; those that are written overlap
/// none; and nothing writes the arrays, or uses those that are written, until the operation has ended.
pub(in crate::gpu) unsafe fn set_operation<C: Kernels<V>, V: Pod + Send + Sync>(
    queue: &impl Queue,
    operation: SetOperation,
    [a, b]: [Items; 2],
    out: Items,
    count: Address,
    workspace: Address,
) -> Result<(), Error> {
    let tile = set_tile_items::<C::Item, V>();
    let tiles = (a.len + b.len).div_ceil(tile);
    if tiles == 0 {
        // SAFETY: `count` has 8 bytes.
        return unsafe { queue.clear(count, 2) };
    }
    let splits = (workspace + look_back_bytes(tiles) as Address) as *mut usize;
    let balance = BalanceSets::<C, V> {
        a: a.items as *const C::Item,
        m: a.len,
        b: b.items as *const C::Item,
        n: b.len,
        splits,
        tiles,
        tile,
        values: Default::default(),
    };
    let combine = CombineSets::<C, V> {
        a: a.items as *const C::Item,
        a_values: a.values as *const V,
        m: a.len,
        b: b.items as *const C::Item,
        b_values: b.values as *const V,
        n: b.len,
        to: out.items as *mut C::Item,
        to_values: out.values as *mut V,
        capacity: out.len,
        count: count as *mut u64,
        tiles: workspace as *mut u64,
        splits,
        kept: kept_steps(operation),
        values: Default::default(),
    };
    let shared_bytes = set_operation::shared_bytes::<C::Item, V>();
    let of_tiles = Shape { blocks: tiles, threads: THREADS as u32, shared_bytes };
    // SAFETY: the caller's promise for the arrays; there is a thread, and then a block with its memory, for each tile;
    // the words of the look-back are cleared before.
    unsafe {
        queue.clear(workspace, look_back_bytes(tiles) / size_of::<u32>())?;
        queue.launch(C::SUFFIX, a_thread_each(tiles), &balance)?;
        queue.launch(C::SUFFIX, of_tiles, &combine)
    }
}

/// The shape of a launch with a thread for each of so many tiles.
const fn a_thread_each(tiles: usize) -> Shape {
    Shape { blocks: tiles.div_ceil(SMALL_BLOCK as usize), threads: SMALL_BLOCK, shared_bytes: 0 }
}

/// The shape of a launch with a block for each of so many tiles.
const fn a_block_each<T, V>(tiles: usize) -> Shape {
    Shape { blocks: tiles, threads: THREADS as u32, shared_bytes: shared_bytes::<T, V>() }
}
