//! The merge of two arrays.

use super::{Address, Arrays, COUNTED, Queue, bits, counted, slice, suffix, with_values};
use crate::gpu::kernels::Shape;
use crate::gpu::operation::{KeyCoding, OnNumbers};
use crate::key::sealed::GpuBits;
use crate::{Error, MergeKernel};
use kernels_gpu::kernels::merge_fused::{self, MergeFused};
use kernels_gpu::kernels::merge_path::{self, MergeBig, PathBig, TwoRuns};
use kernels_gpu::key::{Bits, Coding};
use kernels_gpu::textbook::merge_basic::MergeBasic;
use kernels_gpu::textbook::merge_circular::{self, MergeCircular};
use kernels_gpu::textbook::merge_small::{self, MergeSmall};
use kernels_gpu::textbook::merge_tiled::{self, MergeTiled};
use kernels_gpu::tuning;

/// Threads of a block of textbook kernels.
const TEXTBOOK_THREADS: u32 = 256;

/// Keys of a tile of the textbook's tiled and circular merges.
const TEXTBOOK_TILE: u32 = 2048;

/// Up to this many bytes of keys the fused merge is faster.
const FUSED_BYTES: usize = 64 << 20;

/// The merge that [`MergeKernel::Auto`] chooses.
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
    /// The fused merge saves a launch and the partition. At larger sizes it is slower, because a tile's search keeps
    /// the block waiting. `docs/journal/merge.md` has the figures.
    const fn of<B: Bits>(total: usize) -> Self {
        if total <= merge_small::MAX_KEYS {
            Self::Small
        } else if total <= FUSED_BYTES / size_of::<B>() {
            Self::Fused
        } else {
            Self::TwoPhase
        }
    }
}

/// Bytes of workspace for a merge into `total` keys: a split for each tile, if the merge has two phases.
pub(in crate::gpu) const fn workspace_bytes<B: Bits>(kernel: MergeKernel, total: usize) -> usize {
    let two_phase = match kernel {
        MergeKernel::Basic | MergeKernel::Tiled | MergeKernel::Circular => false,
        MergeKernel::MergePath => true,
        MergeKernel::Auto => matches!(AutoMerge::of::<B>(total), AutoMerge::TwoPhase),
    };
    if two_phase { split_bytes(total, tuning::merge(size_of::<B>(), 0).keys()) } else { 0 }
}

/// Bytes of workspace for a merge into `total` keys with values. Tiles have one shape for all widths of values.
pub(in crate::gpu) const fn pairs_workspace_bytes<B: Bits>(total: usize) -> usize {
    split_bytes(total, tuning::merge(size_of::<B>(), size_of::<u32>()).keys())
}

/// Bytes of the splits of `path_big`, or of `balance_path`, for `total` keys in tiles of `tile_keys`: one for each
/// tile, and two numbers more.
pub(super) const fn split_bytes(total: usize, tile_keys: usize) -> usize {
    if total == 0 { 0 } else { (total.div_ceil(tile_keys) + 2) * size_of::<usize>() }
}

/// The launch of `path_big`, or of `balance_path`, for `tiles` tiles.
pub(super) fn path_shape(tiles: usize) -> Shape {
    Shape {
        blocks: tiles.div_ceil(merge_path::PATH_THREADS as usize),
        threads: merge_path::PATH_THREADS,
        shared_bytes: merge_path::PATH_SHARED_BYTES,
    }
}

/// The two runs of a merge.
#[derive(Clone, Copy)]
pub(super) enum Runs {
    /// Two arrays.
    Apart([Arrays; 2]),
    /// An array with the three offsets at this address. The last one is at most the number of keys.
    Divided { all: Arrays, offsets: Address },
}

impl Runs {
    /// The end of the suffix of kernels that merge these runs.
    pub(super) fn counted(self) -> &'static str {
        match self {
            Self::Apart(runs) => counted(&runs),
            Self::Divided { .. } => COUNTED,
        }
    }

    /// The runs as kernels take them, with values of type `V`.
    pub(super) fn of<B: Bits, V>(self) -> TwoRuns<B, V> {
        let (a, b, len, offsets) = match self {
            Self::Apart([a, b]) => (a, b, a.len + b.len, 0),
            Self::Divided { all, offsets } => (all, all, all.len, offsets),
        };
        let [at_a, at_b] = [a, b].map(|run| slice::<B, V>(run).at);
        let [a_count, b_count] = [a, b].map(|run| run.count as *const u64);
        TwoRuns { a: at_a, b: at_b, len, a_len: a.len, offsets: offsets as *const usize, a_count, b_count }
    }
}

/// Queues the merge of two runs to `out` in two phases.
///
/// # Safety
/// The arrays are in the GPU's memory. `out` has at least the length of both runs together, and values if they have,
/// and overlaps no other array. `workspace` has [`split_bytes`] of that length. Nothing writes the counts of the runs.
pub(super) unsafe fn two_phase<B: Bits>(
    queue: &dyn Queue,
    coding: Coding<B>,
    runs: Runs,
    out: Arrays,
    workspace: Address,
) -> Result<(), Error> {
    let (tile, path_runs) = (tuning::merge(size_of::<B>(), out.value_bytes), runs.of::<B, ()>());
    let (tile_keys, tiles, splits) = (tile.keys(), path_runs.len.div_ceil(tile.keys()), workspace as *mut usize);
    if tiles == 0 && out.count != 0 {
        // SAFETY: a count has 8 bytes, which are two words.
        return unsafe { queue.clear(out.count, 2) };
    }
    let shared_bytes = merge_path::shared_bytes::<B>(tile_keys, tile.items_per_thread, out.value_bytes > 0);
    let shape = Shape { blocks: tiles, threads: tile.threads as u32, shared_bytes };
    let path = PathBig { runs: path_runs, splits, tiles, tile_keys, count: out.count as *mut u64, coding };
    // SAFETY: `path_shape` has a thread and `shape` a block for each tile, with the kernel's shared bytes. The first
    // launch writes a split for each tile, and the second one reads them. The arrays have values of type `V`.
    unsafe {
        queue.launch(&bits(size_of::<B>()), path_shape(tiles), &path)?;
        with_values!(out.value_bytes, V => {
            let merge = MergeBig { runs: runs.of::<B, V>(), c: slice::<B, V>(out).at, splits, coding };
            queue.launch(&format!("{}{}", suffix::<B>(out.value_bytes), runs.counted()), shape, &merge)
        })
    }
}

/// The launch of the textbook's tiled and circular merges into `total` keys.
fn textbook_shape(queue: &dyn Queue, total: usize, shared_bytes: u32) -> Shape {
    let blocks = total.div_ceil(TEXTBOOK_TILE as usize).min(queue.blocks(8));
    Shape { blocks, threads: TEXTBOOK_THREADS, shared_bytes }
}

/// The merge of `a` and `b`, with or without values, to `out`, which has the length of both together, or at least that
/// if it has a count. Textbook kernels merge keys alone.
#[derive(Clone, Copy)]
pub struct Merge {
    pub kernel: MergeKernel,
    pub coding: KeyCoding,
    pub a: Arrays,
    pub b: Arrays,
    pub out: Arrays,
}

impl Merge {
    /// The kernel. Lengths that only the GPU knows take the merge in two phases.
    fn kernel(&self) -> MergeKernel {
        let is_counted = !counted(&[self.a, self.b, self.out]).is_empty();
        if is_counted { MergeKernel::MergePath } else { self.kernel }
    }
}

impl OnNumbers for Merge {
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        bytes_of_workspace::<B>(self.kernel(), self.out.len, self.out.value_bytes)
    }

    unsafe fn queue<B: GpuBits>(&self, coding: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let (Self { a, b, out, .. }, kernel, total) = (*self, self.kernel(), self.out.len);
        if total == 0 && out.count == 0 {
            return Ok(());
        }
        let (runs, suffix) = (Runs::Apart([a, b]), suffix::<B>(0));
        if out.value_bytes > 0 {
            // SAFETY: `Operation::launch` requires the arrays, and a split for each tile: tiles have one shape for all
            // widths of values.
            return unsafe { two_phase(queue, coding, runs, out, workspace) };
        }
        let (a, m, b, n, c) = (a.keys as *const B, a.len, b.keys as *const B, b.len, out.keys as *mut B);
        // SAFETY: `Operation::launch` requires `m` keys at `a`, `n` at `b` and `m + n` at `c`, apart from the others.
        // Each branch has the threads and shared bytes of its kernel. The branch of two phases is taken only if
        // `workspace_bytes` has a split for each tile.
        unsafe {
            match (kernel, AutoMerge::of::<B>(total)) {
                (MergeKernel::Basic, _) => {
                    // Enough threads to fill the GPU. With more keys, each thread merges more.
                    let blocks = total.div_ceil(16 * TEXTBOOK_THREADS as usize).min(queue.blocks(32));
                    let shape = Shape { blocks, threads: TEXTBOOK_THREADS, shared_bytes: 0 };
                    queue.launch(&suffix, shape, &MergeBasic { a, m, b, n, c, coding })
                }
                (MergeKernel::Tiled, _) => {
                    let shape = textbook_shape(queue, total, merge_tiled::shared_bytes::<B>(TEXTBOOK_TILE));
                    queue.launch(&suffix, shape, &MergeTiled { a, m, b, n, c, tile_size: TEXTBOOK_TILE, coding })
                }
                (MergeKernel::Circular, _) => {
                    let shape = textbook_shape(queue, total, merge_circular::shared_bytes::<B>(TEXTBOOK_TILE));
                    queue.launch(&suffix, shape, &MergeCircular { a, m, b, n, c, tile_size: TEXTBOOK_TILE, coding })
                }
                (MergeKernel::Auto, AutoMerge::Small) => {
                    let threads = (total as u32).next_multiple_of(32);
                    let shape =
                        Shape { blocks: 1, threads, shared_bytes: merge_small::shared_bytes::<B>(total as u32) };
                    queue.launch(&suffix, shape, &MergeSmall { a, m, b, n, c, coding })
                }
                (MergeKernel::Auto, AutoMerge::Fused) => {
                    let tile = tuning::fused(size_of::<B>());
                    let shape = Shape {
                        blocks: total.div_ceil(tile.keys()).min(queue.blocks(tuning::ROW.fused_blocks)),
                        threads: merge_fused::block_threads(tile.threads),
                        shared_bytes: merge_fused::shared_bytes::<B>(tile.keys()),
                    };
                    queue.launch(&suffix, shape, &MergeFused { a, m, b, n, c, coding })
                }
                (MergeKernel::Auto | MergeKernel::MergePath, _) => two_phase(queue, coding, runs, out, workspace),
            }
        }
    }
}

/// The merge of consecutive runs of the given lengths at `from`, two runs at a time, in passes from one array to the
/// other. It is for more keys than passes over many runs can count.
#[derive(Clone, Copy)]
pub struct MergeTree<'a> {
    pub coding: KeyCoding,
    pub lengths: &'a [usize],
    pub from: Arrays,
    pub to: Arrays,
}

impl MergeTree<'_> {
    /// Whether this number of runs ends in `to`, after an odd number of passes.
    pub const fn ends_in_to(runs: usize) -> bool {
        runs.next_power_of_two().trailing_zeros() % 2 == 1
    }
}

impl OnNumbers for MergeTree<'_> {
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        bytes_of_workspace::<B>(MergeKernel::Auto, self.from.len, self.from.value_bytes)
    }

    unsafe fn queue<B: GpuBits>(&self, coding: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        merge_in_pairs::<B>(self.lengths, [self.from, self.to], |[a, b], out| {
            let merge = Merge { kernel: MergeKernel::Auto, coding: self.coding, a, b, out };
            // SAFETY: the runs and `out` are parts of arrays that do not overlap. A merge of fewer keys needs no more
            // workspace than a merge of all keys.
            unsafe { merge.queue(coding, queue, workspace) }
        })
    }
}

/// Calls `merge` with two consecutive runs and the array for the result, until there is one run. Runs of these lengths
/// are at the start of the first side. Each pass goes from one side to the other, in the same places.
pub(super) fn merge_in_pairs<B>(
    lengths: &[usize],
    [mut from, mut to]: [Arrays; 2],
    mut merge: impl FnMut([Arrays; 2], Arrays) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut lengths = lengths.to_vec();
    while lengths.len() > 1 {
        let mut begin = 0;
        for siblings in lengths.chunks(2) {
            // A last run without a sibling is merged with an empty run, which copies it.
            let (m, n) = (siblings[0], siblings.get(1).copied().unwrap_or(0));
            let runs = [from.part::<B>(begin, m), from.part::<B>(begin + m, n)];
            merge(runs, to.part::<B>(begin, m + n))?;
            begin += m + n;
        }
        lengths = lengths.chunks(2).map(|siblings| siblings.iter().sum()).collect();
        (from, to) = (to, from);
    }
    Ok(())
}

/// Bytes of workspace for a merge into `total` keys with values of `value_bytes` bytes, or 0.
pub(in crate::gpu) const fn bytes_of_workspace<B: Bits>(
    kernel: MergeKernel,
    total: usize,
    value_bytes: usize,
) -> usize {
    if value_bytes == 0 { workspace_bytes::<B>(kernel, total) } else { pairs_workspace_bytes::<B>(total) }
}
