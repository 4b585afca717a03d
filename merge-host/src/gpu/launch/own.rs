//! Sorts, merges and set operations in a user's own order.

pub mod by_bits;

use super::sets::{kept_steps, look_back_bytes};
use super::{Address, Arrays, Queue, align, bits, with_numbers};
use crate::gpu::kernels::Shape;
use crate::gpu::operation::Operation;
use crate::{Error, SetOperation};
use bytemuck::Pod;
use kernels_gpu::elements::{Elements, Output, Slice};
use kernels_gpu::kernels::sort::indices::SetIndices;
use kernels_gpu::own::merge_groups::{Groups, MergeGroups, SplitGroups};
use kernels_gpu::own::merge_ragged::{MergeRagged, PairsOfRuns, SplitRagged};
use kernels_gpu::own::set_operation::{self, BalanceSets, CombineSets, set_tile_items};
use kernels_gpu::own::sort_tiles::SortTiles;
use kernels_gpu::own::tile::{THREADS, shared_bytes, tile_items};
use kernels_gpu::own::{Compare, Kernels};

/// Threads of a block that searches splits or sets indices.
const SMALL_BLOCK: u32 = 128;

/// Bytes of workspace for a sort of `n` items by `C`, with values of type `V`.
pub(in crate::gpu) fn sort_workspace_bytes<C: Compare, V>(n: usize) -> usize {
    if by_bits::is_chosen::<C>(n) {
        by_bits::workspace_bytes::<C, V>(n)
    } else {
        by_merges_workspace_bytes::<C::Item, V>(n)
    }
}

/// Bytes of workspace for a sort by merges of `n` items of type `T` with values of type `V`: a copy of both, and
/// splits.
const fn by_merges_workspace_bytes<T, V>(n: usize) -> usize {
    let copies = align(n.saturating_mul(size_of::<T>())).saturating_add(align(n.saturating_mul(size_of::<V>())));
    copies.saturating_add(split_bytes::<T, V>(Groups::of_two(n, 0)))
}

/// Bytes of workspace for merges to groups: a split for each tile.
pub(in crate::gpu) const fn split_bytes<T, V>(groups: Groups) -> usize {
    // A group may have a short tile, and half of all runs are the first run of a group.
    groups.tiles(tile_items::<T, V>()) * size_of::<usize>()
}

/// Bytes of workspace for merges of any lengths into `total` items: two numbers for each tile.
pub(in crate::gpu) const fn ragged_workspace_bytes<T, V>(total: usize) -> usize {
    total.div_ceil(tile_items::<T, V>()).saturating_mul(2 * size_of::<usize>())
}

/// Bytes of workspace for a set operation on `total` items of both arrays: two splits and a word of the look-back for
/// each tile.
pub(in crate::gpu) const fn set_operation_workspace_bytes<T, V>(total: usize) -> usize {
    let tiles = total.div_ceil(set_tile_items::<T, V>());
    look_back_bytes(tiles).saturating_add(tiles.saturating_mul(2 * size_of::<usize>()))
}

/// The stable sort of `at` by an order `C`, with values of type `V`. If it `indexes`, the values are first set to the
/// indices of their items.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct Sort {
    pub(in crate::gpu) at: Arrays,
    pub(in crate::gpu) indexes: bool,
}

impl<C: Kernels<V>, V: Pod + Send + Sync> Operation<(C, V)> for Sort {
    fn workspace_bytes(&self) -> usize {
        sort_workspace_bytes::<C, V>(self.at.len)
    }

    unsafe fn launch(&self, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        // SAFETY: `Operation::launch` requires valid arrays and `workspace_bytes` of workspace, and these bytes follow
        // from the same choice. If it `indexes`, the values are indices of 4 or 8 bytes.
        unsafe {
            if self.indexes {
                set_indices(queue, self.at)?;
            }
            if by_bits::is_chosen::<C>(self.at.len) {
                by_bits::sort::<C, V>(queue, self.at, workspace)
            } else {
                sort_by_merges::<C, V>(queue, self.at, workspace)
            }
        }
    }
}

/// Queues a stable sort of tiles, and then passes of merges.
///
/// # Safety
/// The conditions of [`Sort::launch`] hold, with a workspace of [`by_merges_workspace_bytes`].
unsafe fn sort_by_merges<C: Kernels<V>, V: Pod + Send + Sync>(
    queue: &dyn Queue,
    array: Arrays,
    workspace: Address,
) -> Result<(), Error> {
    let n = array.len;
    let tile = tile_items::<C::Item, V>();
    let values = workspace + align(n * size_of::<C::Item>()) as u64;
    let splits = values + align(n * size_of::<V>()) as u64;
    let spare = Arrays { keys: workspace, values, len: n, value_bytes: size_of::<V>(), count: 0 };
    let passes = n.div_ceil(tile).max(1).next_power_of_two().trailing_zeros();
    // The arrays take turns such that the last pass writes to `array`.
    let (mut from, mut to) = if passes.is_multiple_of(2) { (spare, array) } else { (array, spare) };
    let tiles = SortTiles::<C, V> { from: slice::<C, V>(array), to: elements::<C, V>(to) };
    // SAFETY: there is a block for each of the `n.div_ceil(tile)` tiles, with its shared bytes. `array` and `to`, which
    // is `array` or `spare`, have `n` items with values of type `V`.
    unsafe { queue.launch(C::SUFFIX, a_block_each::<C::Item, V>(n.div_ceil(tile)), &tiles)? };
    for pass in 0..passes {
        (from, to) = (to, from);
        let run = (tile << pass).min(n);
        let runs = [from, from.part::<C::Item>(run, n - run)];
        let merge = Merge { runs, out: to, groups: Groups::of_runs(n, tile << pass) };
        // SAFETY: the runs of `from` are sorted, and `from` and `to` do not overlap. Second runs begin at item `run`,
        // which is inside `from`. There is a split for each tile.
        unsafe { Operation::<(C, V)>::launch(&merge, queue, splits)? };
    }
    Ok(())
}

/// Stable merges of the runs of `groups`, of A and of B.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct Merge {
    pub(in crate::gpu) runs: [Arrays; 2],
    pub(in crate::gpu) out: Arrays,
    pub(in crate::gpu) groups: Groups,
}

impl<C: Kernels<V>, V: Pod + Send + Sync> Operation<(C, V)> for Merge {
    fn workspace_bytes(&self) -> usize {
        split_bytes::<C::Item, V>(self.groups)
    }

    unsafe fn launch(&self, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let ([a, b], groups) = (self.runs.map(slice::<C, V>), self.groups);
        let tiles = groups.tiles(tile_items::<C::Item, V>());
        let split = SplitGroups::<C, V> { a, b, splits: workspace as *mut usize, groups };
        let to = elements::<C, V>(self.out);
        let merge = MergeGroups::<C, V> { a, b, to, splits: workspace as *const usize, groups };
        // SAFETY: `Operation::launch` requires valid arrays, with written ones apart. There is a thread, and then a
        // block with its shared bytes, for each tile. `workspace` has a split for each tile, which the first launch
        // writes and the second one reads.
        unsafe {
            queue.launch(C::SUFFIX, Shape::a_thread_each(tiles, SMALL_BLOCK), &split)?;
            queue.launch(C::SUFFIX, a_block_each::<C::Item, V>(tiles), &merge)
        }
    }
}

/// Queues setting the values, of 4 or 8 bytes, to the indices of their items.
///
/// # Safety
/// The conditions of [`Sort::launch`] hold.
unsafe fn set_indices(queue: &dyn Queue, array: Arrays) -> Result<(), Error> {
    let blocks = array.len.div_ceil(SMALL_BLOCK as usize).min(queue.blocks(16));
    let shape = Shape { blocks, threads: SMALL_BLOCK, shared_bytes: 0 };
    let (n, first, order, merges) = (array.len, 0, std::ptr::null_mut(), 1);
    with_numbers!(array.value_bytes, I => {
        let set = SetIndices { to: array.values as *mut I, n, first, order, merges };
        // SAFETY: `array` has `n` values of the width of `I`, and the kernel writes only values with an index below
        // `n`.
        unsafe { queue.launch(&bits(array.value_bytes), shape, &set) }
    })
}

/// Stable merges of pairs of runs of any lengths. Each side is its items, and the address of their `problems + 1`
/// ascending offsets of 8 bytes, from 0 to the number of items.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct Ragged {
    pub(in crate::gpu) runs: [(Arrays, Address); 2],
    pub(in crate::gpu) problems: usize,
    pub(in crate::gpu) out: Arrays,
}

impl<C: Kernels<V>, V: Pod + Send + Sync> Operation<(C, V)> for Ragged {
    fn workspace_bytes(&self) -> usize {
        ragged_workspace_bytes::<C::Item, V>(self.out.len)
    }

    unsafe fn launch(&self, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let tiles = self.out.len.div_ceil(tile_items::<C::Item, V>());
        let [(a, a_offsets), (b, b_offsets)] =
            self.runs.map(|(run, offsets)| (slice::<C, V>(run), offsets as *const usize));
        let pairs = PairsOfRuns::<C, V> { a, a_offsets, b, b_offsets, count: self.problems };
        let split = SplitRagged { pairs, splits: workspace as *mut usize };
        let merge = MergeRagged { pairs, to: elements::<C, V>(self.out), splits: workspace as *const usize };
        // SAFETY: `Operation::launch` requires valid arrays and offsets, with written arrays apart. If there is a tile,
        // there are items and so a problem. There is a thread, and then a block with its shared bytes, for each tile.
        // `workspace` has two numbers for each tile.
        unsafe {
            queue.launch(C::SUFFIX, Shape::a_thread_each(tiles, SMALL_BLOCK), &split)?;
            queue.launch(C::SUFFIX, a_block_each::<C::Item, V>(tiles), &merge)
        }
    }
}

/// A set operation on two sorted arrays. The number of items of the result goes to `count`.
#[derive(Clone, Copy)]
pub struct Sets {
    pub operation: SetOperation,
    pub of: [Arrays; 2],
    pub out: Arrays,
    pub count: Address,
}

impl<C: Kernels<V>, V: Pod + Send + Sync> Operation<(C, V)> for Sets {
    fn workspace_bytes(&self) -> usize {
        let [a, b] = self.of;
        set_operation_workspace_bytes::<C::Item, V>(a.len.saturating_add(b.len))
    }

    unsafe fn launch(&self, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let [a, b] = self.of.map(slice::<C, V>);
        let tiles = (a.len + b.len).div_ceil(set_tile_items::<C::Item, V>());
        if tiles == 0 {
            // SAFETY: `count` has 8 bytes, which are two words.
            return unsafe { queue.clear(self.count, 2) };
        }
        let splits = (workspace + look_back_bytes(tiles) as Address) as *mut usize;
        let balance = BalanceSets::<C, V> { a, b, splits };
        let to = Output { at: elements::<C, V>(self.out), capacity: self.out.len, count: self.count as *mut u64 };
        let kept = kept_steps(self.operation);
        let combine = CombineSets::<C, V> { a, b, to, tiles: workspace as *mut u64, splits, kept };
        let shared_bytes = set_operation::shared_bytes::<C::Item, V>();
        let of_tiles = Shape { blocks: tiles, threads: THREADS as u32, shared_bytes };
        // SAFETY: `Operation::launch` requires valid arrays, with written ones apart. The words of the look-back are
        // cleared first, and two splits for each tile are behind them in the workspace. There is a thread, and then a
        // block with its shared bytes, for each tile.
        unsafe {
            queue.clear(workspace, look_back_bytes(tiles) / size_of::<u32>())?;
            queue.launch(C::SUFFIX, Shape::a_thread_each(tiles, SMALL_BLOCK), &balance)?;
            queue.launch(C::SUFFIX, of_tiles, &combine)
        }
    }
}

/// The addresses of items and their values.
const fn elements<C: Compare, V>(arrays: Arrays) -> Elements<C::Item, V> {
    Elements { keys: arrays.keys as *mut C::Item, values: arrays.values as *mut V }
}

/// Items and their values, and their number.
const fn slice<C: Compare, V>(arrays: Arrays) -> Slice<C::Item, V> {
    Slice { at: elements::<C, V>(arrays), len: arrays.len }
}

/// The shape of a launch with a block for each tile.
const fn a_block_each<T, V>(tiles: usize) -> Shape {
    Shape { blocks: tiles, threads: THREADS as u32, shared_bytes: shared_bytes::<T, V>() }
}
