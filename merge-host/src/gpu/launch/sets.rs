//! Set operations on two sorted arrays.

use super::merge::{Runs, path_shape};
use super::{Address, Arrays, Queue, align, slice, suffix, with_values};
use crate::Error;
use crate::gpu::kernels::Shape;
use crate::gpu::operation::{KeyCoding, OnNumbers};
use crate::key::sealed::GpuBits;
use crate::set_operation::{Kept, SetOperation};
use kernels_gpu::elements::Output;
use kernels_gpu::kernels::set_operation as kernel;
use kernels_gpu::kernels::set_operation::balance_path::BalancePath;
use kernels_gpu::kernels::set_operation::combine_sets::{self, CombineSets};
use kernels_gpu::key::{Bits, Coding};
use kernels_gpu::tuning::ROW;
use kernels_gpu::warp::look_back;

/// Tiles of `total` keys with values of `value_bytes` bytes, or 0.
const fn tiles<B>(total: usize, value_bytes: usize) -> usize {
    let tile = ROW.sets.of(size_of::<B>(), value_bytes);
    total.div_ceil(combine_sets::tile_keys(tile.threads, tile.items_per_thread))
}

/// Bytes of the words of the look-back over `tiles` tiles. The words are 0 before a launch.
pub(super) const fn look_back_bytes(tiles: usize) -> usize {
    align(look_back::words(tiles).saturating_mul(size_of::<u64>()))
}

/// Bytes of workspace for `total` keys of both arrays: a split and a word of the look-back for each tile, and two
/// numbers of keys.
pub(in crate::gpu) const fn workspace_bytes<B: Bits>(total: usize) -> usize {
    // The most tiles, with or without values: tiles of the smallest shape.
    let tiles = total.div_ceil(combine_sets::tile_keys(ROW.sets.fewest_keys(size_of::<B>()), 1));
    look_back_bytes(tiles) + (tiles + 2) * size_of::<usize>()
}

/// The elements that `operation` keeps, as the kernels encode them.
pub(super) const fn kept_steps(operation: SetOperation) -> u32 {
    let Kept { a_alone, partners, b_alone } = operation.kept();
    kernel::Kept::new(a_alone, partners, b_alone).0
}

/// A set operation on `a` and `b`. `out` has room for the most keys of the result. Their number goes to `count`.
#[derive(Clone, Copy)]
pub struct Sets {
    pub coding: KeyCoding,
    pub operation: SetOperation,
    pub a: Arrays,
    pub b: Arrays,
    pub out: Arrays,
    pub count: Address,
}

impl OnNumbers for Sets {
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        workspace_bytes::<B>(self.a.len.saturating_add(self.b.len))
    }

    unsafe fn queue<B: GpuBits>(&self, coding: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let Self { operation, a, b, out, count, .. } = *self;
        let tile = ROW.sets.of(size_of::<B>(), out.value_bytes);
        let (runs, tiles) = (Runs::Apart([a, b]), tiles::<B>(a.len + b.len, out.value_bytes));
        if tiles == 0 {
            // SAFETY: `count` has 8 bytes, which are two words.
            return unsafe { queue.clear(count, 2) };
        }
        let (kept, suffix_of_values) =
            (kept_steps(operation), format!("{}{}", suffix::<B>(out.value_bytes), runs.counted()));
        let splits = (workspace + look_back_bytes(tiles) as Address) as *mut usize;
        let tile_keys = combine_sets::tile_keys(tile.threads, tile.items_per_thread);
        let shape = Shape {
            blocks: tiles,
            threads: tile.threads as u32,
            shared_bytes: combine_sets::shared_bytes(
                tile.threads,
                tile.items_per_thread,
                size_of::<B>(),
                out.value_bytes > 0,
            ),
        };
        // SAFETY: `Operation::launch` requires valid arrays, with written ones apart. The words of the look-back are
        // cleared first, and a split for each tile is behind them in the workspace. `path_shape` has a thread for each
        // tile, and `shape` a block with its shared bytes. `out.len` is the capacity.
        unsafe {
            queue.clear(workspace, look_back_bytes(tiles) / size_of::<u32>())?;
            let path = BalancePath { runs: runs.of::<B, ()>(), splits, tiles, tile_keys, coding };
            queue.launch(&suffix::<B>(0), path_shape(tiles), &path)?;
            with_values!(out.value_bytes, V => {
                let (runs, tiles) = (runs.of::<B, V>(), workspace as *mut u64);
                let out = Output { at: slice::<B, V>(out).at, capacity: out.len, count: count as *mut u64 };
                queue.launch(&suffix_of_values, shape, &CombineSets { runs, out, tiles, splits, kept, coding })
            })
        }
    }
}
