//! Lower and upper bounds of sorted needles in sorted keys.

use super::merge::{Runs, path_shape, split_bytes};
use super::{Address, Arrays, Queue, suffix, with_numbers};
use crate::Error;
use crate::gpu::kernels::Shape;
use crate::gpu::operation::{KeyCoding, OnNumbers};
use crate::key::sealed::GpuBits;
use kernels_gpu::block::indexed_merge;
use kernels_gpu::kernels::bounds::merge_bounds::MergeBounds;
use kernels_gpu::kernels::bounds::search_bounds::{SEARCH_THREADS, SearchBounds};
use kernels_gpu::kernels::merge_path::PathBig;
use kernels_gpu::key::{Bits, Coding};
use kernels_gpu::tuning;
use std::ptr::null_mut;

/// From this many keys for each needle on, needles are searched one by one. A search in 2^28 keys reads some 28 keys,
/// and searches of neighbouring needles read mostly the same ones.
const KEYS_PER_NEEDLE: usize = 32;

/// Bytes of workspace for `total` needles and keys: a split for each tile.
pub(in crate::gpu) const fn workspace_bytes<B: Bits>(total: usize) -> usize {
    split_bytes(total, tuning::indexed(size_of::<B>()).keys())
}

/// Lower or upper bounds of `needles` in `keys`. The bound of a needle is the number of keys that are less (`lower`),
/// or otherwise not greater. `bounds` is the address of the result, and the bytes of one bound, 4 or 8. Needles and
/// keys may have counts; only the bounds of the first needles are written then.
#[derive(Clone, Copy)]
pub struct Bounds {
    pub coding: KeyCoding,
    pub lower: bool,
    pub needles: Arrays,
    pub keys: Arrays,
    pub bounds: (Address, usize),
}

impl OnNumbers for Bounds {
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        workspace_bytes::<B>(self.needles.len.saturating_add(self.keys.len))
    }

    unsafe fn queue<B: GpuBits>(&self, coding: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let Self { lower, needles, keys, bounds: (bounds, index_bytes), .. } = *self;
        if needles.len == 0 {
            return Ok(());
        }
        // Of equal keys, keys of A go first. So A is the needles if keys equal to a needle do not count.
        let runs = Runs::Apart(if lower { [needles, keys] } else { [keys, needles] }).of::<B, ()>();
        let (suffix_of_bounds, lower) = (suffix::<B>(index_bytes), u32::from(lower));
        if keys.len / needles.len >= KEYS_PER_NEEDLE {
            let shape = Shape::a_thread_each(needles.len, SEARCH_THREADS);
            return with_numbers!(index_bytes, I => {
                let search = SearchBounds { runs, bounds: bounds as *mut I, lower, coding };
                // SAFETY: `Operation::launch` requires valid arrays. The shape has a thread for each needle, which
                // writes the needle's bound.
                unsafe { queue.launch(&suffix_of_bounds, shape, &search) }
            });
        }
        let (tile, splits) = (tuning::indexed(size_of::<B>()), workspace as *mut usize);
        let (tile_keys, tiles) = (tile.keys(), runs.len.div_ceil(tile.keys()));
        let shared_bytes = indexed_merge::shared_bytes::<B>(tile_keys, tile.items_per_thread);
        let shape = Shape { blocks: tiles, threads: tile.threads as u32, shared_bytes };
        // SAFETY: `Operation::launch` requires valid arrays. `workspace` has the splits of `tiles` tiles.
        // `path_shape` has a thread and `shape` a block for each tile, with the kernel's shared bytes. `bounds` has a
        // number for each needle.
        unsafe {
            let path = PathBig { runs, splits, tiles, tile_keys, count: null_mut(), coding };
            queue.launch(&suffix::<B>(0), path_shape(tiles), &path)?;
            with_numbers!(index_bytes, I => {
                let merge = MergeBounds { runs, bounds: bounds as *mut I, splits, lower, coding };
                queue.launch(&suffix_of_bounds, shape, &merge)
            })
        }
    }
}
