//! The sort of a user's keys by their ordered bits: the library's sort of numbers, between two kernels of the user's
//! crate.

use super::super::sort::{SortPlan, sort as sort_numbers};
use super::super::{Address, Arrays, Queue, align};
use super::{a_block_each, elements, slice};
use crate::{Error, SortKernel};
use bytemuck::Pod;
use kernels_gpu::key::Coding;
use kernels_gpu::own::by_bits::{CodeItems, GatherItems};
use kernels_gpu::own::tile::tile_items;
use kernels_gpu::own::{Compare, Kernels};

/// The fewest items that are sorted by their bits. On an H100, for items of 20 bytes, merges take 1.3 times as long at
/// this number, and the same time at half of it.
pub const FEWEST_ITEMS: usize = 1 << 15;

/// The most items that are sorted by their bits: indices have 4 bytes.
pub(in crate::gpu) const MOST_ITEMS: usize = 1 << 32;

/// Whether `n` items are sorted by their bits, and not by merges.
pub const fn is_chosen<C: Compare>(n: usize) -> bool {
    C::ORDERED_BYTES > 0 && FEWEST_ITEMS <= n && n <= MOST_ITEMS
}

/// Offsets of the parts of the workspace, in bytes. The copy of the items is at its start.
struct Layout {
    values: usize,
    bits: usize,
    indices: usize,
    /// The workspace of the sort of bits with indices.
    sort: usize,
    end: usize,
}

impl Layout {
    fn of<C: Compare, V>(n: usize) -> Self {
        let values = align(n * size_of::<C::Item>());
        let bits = values + align(n * size_of::<V>());
        let indices = bits + align(n * C::ORDERED_BYTES);
        let sort = indices + align(n * size_of::<u32>());
        let sort_bytes = if C::ORDERED_BYTES == 4 {
            SortPlan::of::<u32>(n, size_of::<u32>(), true).workspace_bytes::<u32>(n)
        } else {
            SortPlan::of::<u64>(n, size_of::<u32>(), true).workspace_bytes::<u64>(n)
        };
        Self { values, bits, indices, sort, end: sort + sort_bytes }
    }
}

/// Bytes of workspace for `n` items, at most `MOST_ITEMS`, with values of type `V`: a copy of both, and an argsort of
/// bits.
pub fn workspace_bytes<C: Compare, V>(n: usize) -> usize {
    Layout::of::<C, V>(n).end
}

/// Queues a stable sort by the ordered bits of the items.
///
/// # Safety
/// The conditions of `Sort::launch` hold, with a workspace of [`workspace_bytes`] and at most
/// `MOST_ITEMS`.
pub unsafe fn sort<C: Kernels<V>, V: Pod + Send + Sync>(
    queue: &dyn Queue,
    array: Arrays,
    workspace: Address,
) -> Result<(), Error> {
    let (n, layout) = (array.len, Layout::of::<C, V>(array.len));
    let [values, bits, indices, sort] =
        [layout.values, layout.bits, layout.indices, layout.sort].map(|at| workspace + at as Address);
    let copy = Arrays { keys: workspace, values, ..array };
    let code = CodeItems::<C, V> { from: slice::<C, V>(array), copy: elements::<C, V>(copy), bits: bits as *mut u64 };
    let to = elements::<C, V>(array);
    let gather = GatherItems::<C, V> { from: slice::<C, V>(copy), order: indices as *const u32, to };
    let shape = a_block_each::<C::Item, V>(n.div_ceil(tile_items::<C::Item, V>()));
    let numbers = Arrays { keys: bits, values: indices, len: n, value_bytes: size_of::<u32>(), count: 0 };
    // SAFETY: the parts of the workspace do not overlap (`Layout::of`), and there is a block for each tile, with its
    // shared bytes. The sort of numbers has a workspace of its own. It makes `indices` a permutation of the indices
    // below `n`.
    unsafe {
        queue.launch(C::SUFFIX, shape, &code)?;
        if const { C::ORDERED_BYTES == 4 } {
            sort_numbers::<u32>(queue, (SortKernel::Auto, Coding::NONE), numbers, true, sort)?;
        } else {
            sort_numbers::<u64>(queue, (SortKernel::Auto, Coding::NONE), numbers, true, sort)?;
        }
        queue.launch(C::SUFFIX, shape, &gather)
    }
}
