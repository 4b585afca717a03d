//! Lower and upper bounds of sorted needles in sorted keys.

use super::merge::path_shape;
use super::{Address, Arrays, Queue, slice, suffix, with_numbers};
use crate::Error;
use crate::gpu::kernels::Shape;
use crate::gpu::operation::Operation;
use kernels_gpu::block::indexed_merge;
use kernels_gpu::kernels::bounds::merge_bounds::MergeBounds;
use kernels_gpu::kernels::bounds::search_bounds::{SEARCH_THREADS, SearchBounds};
use kernels_gpu::kernels::merge_path::PathBig;
use kernels_gpu::key::{Coding, Key};
use kernels_gpu::tuning;

/// Keys for each needle from which on needles are searched one by one: a search of 2^28 keys reads some 28 of them, of
/// which neighbours have most in common.
const KEYS_PER_NEEDLE: usize = 32;

/// Bytes of workspace for `total` needles and keys: a split for each tile.
pub(in crate::gpu) const fn workspace_bytes<K: Key>(total: usize) -> usize {
    total.div_ceil(tuning::indexed(size_of::<K>()).keys()) * size_of::<usize>()
}

/// Queues writing for each of the `needles` how many of the `keys` are less, if `lower`, or otherwise not greater, to
/// `bounds`, as numbers of `index_bytes` bytes, 4 or 8.
///
/// # Safety
/// The arrays are in the GPU's memory, `bounds` of a number for each needle, in which the number of keys fits,
/// `workspace` of [`workspace_bytes`]; those that are written overlap none; and nothing writes them, or uses those that
/// are written, until the work has ended.
pub(in crate::gpu) unsafe fn bounds<K: Key>(
    queue: &impl Queue,
    lower: bool,
    needles: Arrays,
    keys: Arrays,
    (bounds, index_bytes): (Address, usize),
    workspace: Address,
) -> Result<(), Error> {
    let (coding, suffix_of_bounds, is_lower) = (Coding::of::<K>(false), suffix::<K>(index_bytes), u32::from(lower));
    let at = |keys: Arrays| (keys.keys as *const K::Bits, keys.len);
    if needles.len == 0 {
        return Ok(());
    }
    if keys.len / needles.len >= KEYS_PER_NEEDLE {
        let ((needles, m), (keys, n)) = (at(needles), at(keys));
        let shape = Shape { blocks: m.div_ceil(SEARCH_THREADS as usize), threads: SEARCH_THREADS, shared_bytes: 0 };
        return with_numbers!(index_bytes, I => {
            let search = SearchBounds { needles, m, keys, n, bounds: bounds as *mut I, lower: is_lower, coding };
            // SAFETY: the caller's promise for the arrays; the shape is the one that the kernel asks for.
            unsafe { queue.launch(&suffix_of_bounds, shape, &search) }
        });
    }
    // Of equal keys those of A go first: needles, if keys equal to them do not count.
    let (a, b) = if lower { (needles, keys) } else { (keys, needles) };
    let (a, b) = (slice::<K, ()>(a), slice::<K, ()>(b));
    let (tile, splits) = (tuning::indexed(size_of::<K>()), workspace as *mut usize);
    let (tile_keys, tiles) = (tile.keys(), (a.len + b.len).div_ceil(tile.keys()));
    let shared_bytes = indexed_merge::shared_bytes::<K>(tile_keys, tile.items_per_thread);
    let shape = Shape { blocks: tiles, threads: tile.threads as u32, shared_bytes };
    // SAFETY: as above.
    unsafe {
        let path = PathBig { a, b, splits, tiles, tile_keys, coding };
        queue.launch(&suffix::<K>(0), path_shape(tiles), &path)?;
        with_numbers!(index_bytes, I => {
            let merge = MergeBounds { a, b, bounds: bounds as *mut I, splits, lower: is_lower, coding };
            queue.launch(&suffix_of_bounds, shape, &merge)
        })
    }
}

/// Lower bounds of `needles` in `keys`, or upper ones, to an address of numbers of so many bytes, 4 or 8.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct Bounds {
    pub(in crate::gpu) lower: bool,
    pub(in crate::gpu) needles: Arrays,
    pub(in crate::gpu) keys: Arrays,
    pub(in crate::gpu) bounds: (Address, usize),
}

impl<K: Key> Operation<K> for Bounds {
    fn workspace_bytes(&self) -> usize {
        workspace_bytes::<K>(self.needles.len.saturating_add(self.keys.len))
    }

    unsafe fn launch(&self, queue: &impl Queue, workspace: Address) -> Result<(), Error> {
        let Self { lower, needles, keys, bounds: to } = *self;
        // SAFETY: the caller's arrays and workspace.
        unsafe { bounds::<K>(queue, lower, needles, keys, to, workspace) }
    }
}
