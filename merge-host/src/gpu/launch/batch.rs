//! Merges of many pairs of runs, of one length or of any lengths.

use super::{Address, Arrays, Queue, bits, slice, suffix, with_values};
use crate::gpu::kernels::Shape;
use crate::gpu::operation::{KeyCoding, OnNumbers};
use crate::key::sealed::GpuBits;
use crate::{BatchKernel, Error, MAX_BATCH_LENGTH};
use kernels_gpu::block::indexed_merge;
use kernels_gpu::kernels::merge_batch::{self, MergeBatch};
use kernels_gpu::kernels::merge_ragged::{self, MergeRagged, PathRagged, RaggedRuns};
use kernels_gpu::key::{Bits, Coding};
use kernels_gpu::textbook::merge_small_batch::{self, MergeSmallBatch};
use kernels_gpu::tuning;

/// Threads of a block for kernels that leave the choice.
const THREADS: u32 = 256;

/// The lengths of a batch of pairs of runs of one length.
#[derive(Clone, Copy)]
pub struct Lengths {
    /// Pairs of runs.
    pub problems: usize,
    /// Keys of a merged pair: 1 to [`MAX_BATCH_LENGTH`].
    pub d: usize,
    /// Keys of A in a merged pair.
    pub a_len: usize,
}

impl Lengths {
    /// The launch of the tiled batch merge, with values or without.
    fn shape<B: Bits>(self) -> Shape {
        const { assert!(MAX_BATCH_LENGTH <= tuning::indexed(size_of::<B>()).keys(), "a block holds a pair") };
        let shape = tuning::indexed(size_of::<B>());
        Shape {
            blocks: self.problems.div_ceil(merge_batch::pairs_per_block(shape.keys(), self.d)),
            threads: shape.threads as u32,
            shared_bytes: indexed_merge::shared_bytes::<B>(shape.keys(), shape.items_per_thread),
        }
    }

    /// The launch of the batch merge with a thread for each key.
    ///
    /// A block has a multiple of d threads. The kernel gives a block `threads / d` pairs, rounded down, and leaves
    /// further threads idle. A pair of runs that began in one block and ended in the next would belong to neither
    /// block.
    fn small_shape<B: Bits>(self) -> Shape {
        let d = self.d as u32;
        // About `THREADS` threads, or one pair if it is longer.
        let threads = (THREADS / d).max(1) * d;
        let blocks = self.problems.div_ceil((threads / d) as usize);
        Shape { blocks, threads, shared_bytes: merge_small_batch::shared_bytes::<B>(threads) }
    }
}

/// Bytes of workspace for a ragged batch into `total` keys: two numbers for each tile.
pub(in crate::gpu) const fn ragged_workspace_bytes<B: Bits>(total: usize) -> usize {
    total.div_ceil(tuning::ragged(size_of::<B>()).keys()) * 2 * size_of::<usize>()
}

/// The merges of pairs of runs of one length. The arrays are A, B and the output.
#[derive(Clone, Copy)]
pub struct Batch {
    pub kernel: BatchKernel,
    pub coding: KeyCoding,
    pub arrays: [Arrays; 3],
    pub lengths: Lengths,
}

impl OnNumbers for Batch {
    unsafe fn queue<B: GpuBits>(&self, coding: Coding<B>, queue: &dyn Queue, _: Address) -> Result<(), Error> {
        let Self { kernel, arrays, lengths, .. } = *self;
        let Lengths { problems: pairs, d, a_len } = lengths;
        let value_bytes = arrays[2].value_bytes;
        if kernel == BatchKernel::Small && value_bytes == 0 {
            let [a, b, c] = arrays.map(|array| array.keys as *mut B);
            let (a, b, shape, d, a_len) =
                (a.cast_const(), b.cast_const(), lengths.small_shape::<B>(), d as u32, a_len as u32);
            let merge = MergeSmallBatch { a, b, c, pairs, d, a_len, coding };
            // SAFETY: `Operation::launch` requires arrays with runs of `lengths`, and an output apart from the others.
            // `small_shape` gives each block a multiple of d threads, and each pair a block.
            return unsafe { queue.launch(&suffix::<B>(0), shape, &merge) };
        }
        with_values!(value_bytes, V => {
            let [a, b, c] = arrays.map(|array| slice::<B, V>(array).at);
            let merge = MergeBatch { a, b, c, pairs, d, a_len, coding };
            // SAFETY: `Operation::launch` requires arrays with runs of `lengths`, and an output apart from the others.
            // `Lengths::shape` has a block for each `pairs_per_block` pairs, with the kernel's threads and shared
            // bytes.
            unsafe { queue.launch(&suffix::<B>(value_bytes), lengths.shape::<B>(), &merge) }
        })
    }
}

/// The merges of pairs of runs of any lengths. The `problems + 1` offsets of A and of B begin with 0, never decrease
/// and end with the number of keys.
#[derive(Clone, Copy)]
pub struct Ragged {
    pub coding: KeyCoding,
    pub a: Arrays,
    pub b: Arrays,
    /// Addresses of numbers of 8 bytes.
    pub offsets: [Address; 2],
    pub problems: usize,
    pub out: Arrays,
}

impl OnNumbers for Ragged {
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        ragged_workspace_bytes::<B>(self.out.len)
    }

    unsafe fn queue<B: GpuBits>(&self, coding: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let Self { a, b, offsets: [of_a, of_b], problems: pairs, out, .. } = *self;
        let shape = tuning::ragged(size_of::<B>());
        let (total, tile_keys, splits) = (out.len, shape.keys(), workspace as *mut usize);
        let tiles = total.div_ceil(tile_keys);
        let path_shape = Shape::a_thread_each(tiles, THREADS);
        let shared_bytes = merge_ragged::shared_bytes::<B>(tile_keys, shape.items_per_thread, out.value_bytes > 0);
        let tile_shape = Shape { blocks: tiles, threads: shape.threads as u32, shared_bytes };
        let path = {
            let runs =
                |keys: Arrays, offsets| RaggedRuns { at: slice::<B, ()>(keys).at, offsets: offsets as *const usize };
            PathRagged { a: runs(a, of_a), b: runs(b, of_b), pairs, splits, tiles, tile_keys, coding }
        };
        // SAFETY: `Operation::launch` requires valid arrays, with written ones apart. `path_shape` has a thread for
        // each tile, and `workspace` two numbers for each tile. The offsets bound the runs.
        unsafe { queue.launch(&bits(size_of::<B>()), path_shape, &path)? };
        with_values!(out.value_bytes, V => {
            let runs =
                |from: Arrays, offsets| RaggedRuns { at: slice::<B, V>(from).at, offsets: offsets as *const usize };
            let (a, b, c) = (runs(a, of_a), runs(b, of_b), slice::<B, V>(out).at);
            // SAFETY: there is a block for each tile, with the kernel's threads and shared bytes. The launch before has
            // written `splits`, and `c` has `total` elements with values of type `V`.
            unsafe {
                queue.launch(
                    &suffix::<B>(out.value_bytes),
                    tile_shape,
                    &MergeRagged { a, b, pairs, c, total, splits, coding },
                )
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_divides_the_block_of_the_small_batch() {
        for d in 1..=MAX_BATCH_LENGTH {
            for problems in [0, 1, 2, 1000] {
                let Shape { blocks, threads, .. } = Lengths { problems, d, a_len: d / 2 }.small_shape::<u32>();
                let threads = threads as usize;
                assert!(threads.is_multiple_of(d) && (1..=1024).contains(&threads), "{threads} threads, d {d}");
                // There is a thread for each key, and no block without keys.
                assert!(blocks * threads >= problems * d, "{problems} pairs in {blocks} blocks, d {d}");
                assert!(
                    blocks.saturating_sub(1) * threads < (problems * d).max(1),
                    "{problems} pairs in {blocks} blocks, d {d}"
                );
            }
        }
    }
}
