//! The merge of two arrays.

use super::{Address, Arrays, Entry, Queue, arguments, suffix};
use crate::gpu::kernels::Shape;
use crate::{Error, MergeKernel};
use kernels_gpu::key::{Coding, Key};
use kernels_gpu::{indexed_merge, merge_circular, merge_fused, merge_path, merge_small, merge_tiled, tile, tuning};

/// Threads of a block of the textbook's kernels.
const TEXTBOOK_THREADS: u32 = 256;

/// Keys of a tile of the textbook's tiled and circular merges.
const TEXTBOOK_TILE: u32 = 2048;

/// Up to this size the fused merge is ahead.
const FUSED_BYTES: usize = 64 << 20;

/// What [`MergeKernel::Auto`] takes for a merge of this many keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AutoMerge {
    /// One block.
    Small,
    /// One launch of persistent blocks.
    Fused,
    /// Partition, then merge.
    TwoPhase,
}

impl AutoMerge {
    /// The fused merge saves a launch and the partition; at larger sizes it is behind, because a tile's search keeps the
    /// block waiting. `docs/tuning.md` has the figures.
    const fn of<K: Key>(total: usize) -> Self {
        if total <= merge_small::MAX_KEYS {
            Self::Small
        } else if total <= FUSED_BYTES / size_of::<K>() {
            Self::Fused
        } else {
            Self::TwoPhase
        }
    }
}

/// The textbook's kernels.
const TEXTBOOK: &[&str] = &["merge_basic", "merge_tiled", "merge_circular"];

/// The kernels of merges that are chosen by size.
const MERGES: &[&str] = &["merge_small", "merge_fused", "path_big", "merge_big"];

/// The entry points of the merge of keys alone by `kernel`.
pub(in crate::gpu) fn entries_of_kernel<K: Key>(kernel: MergeKernel) -> Vec<Entry> {
    let kernels = match kernel {
        MergeKernel::Auto | MergeKernel::MergePath => MERGES,
        MergeKernel::Basic | MergeKernel::Tiled | MergeKernel::Circular => TEXTBOOK,
    };
    kernels.iter().map(|kernel| (*kernel, suffix::<K>(0))).collect()
}

/// The entry points of all merges of arrays, alone or with values of `value_bytes` bytes.
pub(in crate::gpu) fn entries<K: Key>(value_bytes: usize) -> Vec<Entry> {
    match value_bytes {
        0 => [MergeKernel::Basic, MergeKernel::Auto].into_iter().flat_map(entries_of_kernel::<K>).collect(),
        _ => vec![("path_big", suffix::<K>(0)), ("merge_pairs", suffix::<K>(value_bytes))],
    }
}

/// Bytes of workspace for a merge into `total` keys: a split for each tile, if the merge has two phases.
pub(in crate::gpu) const fn workspace_bytes<K: Key>(kernel: MergeKernel, total: usize) -> usize {
    let two_phase = match kernel {
        MergeKernel::Basic | MergeKernel::Tiled | MergeKernel::Circular => false,
        MergeKernel::MergePath => true,
        MergeKernel::Auto => matches!(AutoMerge::of::<K>(total), AutoMerge::TwoPhase),
    };
    if two_phase { split_bytes(tuning::merge(size_of::<K>()), total) } else { 0 }
}

/// Bytes of workspace for a merge into `total` keys with values.
pub(in crate::gpu) const fn pairs_workspace_bytes<K: Key>(total: usize) -> usize {
    split_bytes(tuning::indexed(size_of::<K>()), total)
}

/// Bytes of a split for each tile.
const fn split_bytes(shape: tuning::Tile, total: usize) -> usize {
    total.div_ceil(shape.keys()) * size_of::<usize>()
}

/// The launch of `path_big` for `tiles` tiles.
fn path_shape(tiles: usize) -> Shape {
    Shape {
        blocks: tiles.div_ceil(merge_path::PATH_THREADS as usize),
        threads: merge_path::PATH_THREADS,
        shared_bytes: merge_path::PATH_SHARED_BYTES,
    }
}

/// Queues the merge of the keys of `a` and `b` to `out`.
///
/// # Safety
/// The arrays are in the GPU's memory, `out` of as many keys as the two together, `workspace` of [`workspace_bytes`]; `out`
/// overlaps none; and nothing writes them, or uses `out` and `workspace`, until the merge has ended.
pub(in crate::gpu) unsafe fn merge<K: Key>(
    queue: &impl Queue,
    kernel: MergeKernel,
    Arrays { keys: a, len: m, .. }: Arrays,
    Arrays { keys: b, len: n, .. }: Arrays,
    out: Address,
    workspace: Address,
) -> Result<(), Error> {
    let total = m + n;
    if total == 0 {
        return Ok(());
    }
    let (entry, coding) = (|kernel| (kernel, suffix::<K>(0)), Coding::of::<K>(false));
    let launch = |kernel, shape| {
        let arguments = arguments![a, m, b, n, out, coding];
        // SAFETY: the arguments are those of the kernels without others; the caller's promise for the arrays.
        unsafe { queue.launch(&entry(kernel), shape, &arguments) }
    };
    match (kernel, AutoMerge::of::<K>(total)) {
        (MergeKernel::Basic, _) => {
            // Enough threads to fill the GPU; with more keys, each of them merges more.
            let blocks = total.div_ceil(16 * TEXTBOOK_THREADS as usize).min(32 * queue.multiprocessors());
            launch("merge_basic", Shape { blocks, threads: TEXTBOOK_THREADS, shared_bytes: 0 })
        }
        (MergeKernel::Tiled | MergeKernel::Circular, _) => {
            let (name, shared_bytes) = match kernel {
                MergeKernel::Tiled => ("merge_tiled", merge_tiled::shared_bytes::<K>(TEXTBOOK_TILE)),
                _ => ("merge_circular", merge_circular::shared_bytes::<K>(TEXTBOOK_TILE)),
            };
            let blocks = total.div_ceil(TEXTBOOK_TILE as usize).min(8 * queue.multiprocessors());
            let tile_size = TEXTBOOK_TILE;
            let arguments = arguments![a, m, b, n, out, tile_size, coding];
            // SAFETY: the arguments are those of both kernels; the caller's promise for the arrays.
            unsafe { queue.launch(&entry(name), Shape { blocks, threads: TEXTBOOK_THREADS, shared_bytes }, &arguments) }
        }
        (MergeKernel::Auto, AutoMerge::Small) => {
            let threads = (total as u32).next_multiple_of(32);
            let shared_bytes = merge_small::shared_bytes::<K>(total as u32);
            launch("merge_small", Shape { blocks: 1, threads, shared_bytes })
        }
        (MergeKernel::Auto, AutoMerge::Fused) => {
            let tile = tuning::fused(size_of::<K>());
            let blocks = total.div_ceil(tile.keys()).min(tuning::ROW.fused_blocks * queue.multiprocessors());
            let threads = merge_fused::block_threads(tile.threads);
            launch("merge_fused", Shape { blocks, threads, shared_bytes: merge_fused::shared_bytes::<K>(tile.keys()) })
        }
        (MergeKernel::Auto | MergeKernel::MergePath, _) => {
            let shape = tuning::merge(size_of::<K>());
            let (tile_keys, tiles, splits) = (shape.keys(), total.div_ceil(shape.keys()), workspace);
            let threads = shape.threads as u32;
            let tile_shape = Shape { blocks: tiles, threads, shared_bytes: tile::shared_bytes::<K>(tile_keys) };
            let path = arguments![a, m, b, n, splits, tiles, tile_keys, coding];
            let merge = arguments![a, m, b, n, out, splits, coding];
            // SAFETY: the arguments are those of the kernels; the caller's promise for the arrays.
            unsafe {
                queue.launch(&entry("path_big"), path_shape(tiles), &path)?;
                queue.launch(&entry("merge_big"), tile_shape, &merge)
            }
        }
    }
}

/// Queues the merge of `a` and `b`, which have values, to `out`.
///
/// # Safety
/// As for [`merge()`], values included; `workspace` is of [`pairs_workspace_bytes`].
pub(in crate::gpu) unsafe fn merge_pairs<K: Key>(
    queue: &impl Queue,
    a: Arrays,
    b: Arrays,
    out: Arrays,
    workspace: Address,
) -> Result<(), Error> {
    let shape = tuning::indexed(size_of::<K>());
    let (tile_keys, tiles, splits) = (shape.keys(), out.len.div_ceil(shape.keys()), workspace);
    let shared_bytes = indexed_merge::shared_bytes::<K>(tile_keys, shape.items_per_thread);
    let tile_shape = Shape { blocks: tiles, threads: shape.threads as u32, shared_bytes };
    let coding = Coding::of::<K>(false);
    let path = arguments![a.keys, a.len, b.keys, b.len, splits, tiles, tile_keys, coding];
    let merge = arguments![a.keys, a.values, a.len, b.keys, b.values, b.len, out.keys, out.values, splits, coding];
    // SAFETY: the arguments are those of the kernels; the caller's promise for the arrays.
    unsafe {
        queue.launch(&("path_big", suffix::<K>(0)), path_shape(tiles), &path)?;
        queue.launch(&("merge_pairs", suffix::<K>(out.value_bytes)), tile_shape, &merge)
    }
}
