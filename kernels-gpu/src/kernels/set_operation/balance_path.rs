//! The first launch: divides the balanced path into tiles.

use super::pack;
use crate::kernels::merge_path::{TwoRuns, find_splits};
use crate::key::{Bits, Coding};
use crate::keys::Keys;
use crate::thread::balanced_path::balance;
use cuda_std::prelude::*;

/// Kernel: writes the start of tile `t` on the balanced path of A and B, in the order of `coding`, to `splits[t]`.
/// Behind the starts of all tiles follow the numbers of keys of A and of both runs. There are up to `tiles` tiles of
/// `tile_keys` keys, and one thread per tile.
///
/// # Safety
/// The runs are ascending arrays without offsets, and `splits` has capacity for `tiles + 2` numbers, in global memory.
/// `tiles` is `ceil(runs.len / tile_keys)`. The launch has the shape of
/// [`path_big`](crate::kernels::merge_path::path_big).
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn balance_path<B: Bits>(
    runs: TwoRuns<B, ()>,
    splits: *mut usize,
    tiles: usize,
    tile_keys: usize,
    coding: Coding<B>,
) {
    // SAFETY: `runs` are as described, and `splits` has `tiles + 2` elements, as this kernel requires. Only thread
    // `tile < tiles` writes `splits[tile]`, and only the first thread writes the two numbers behind them.
    let ((a, b), splits) = unsafe { (runs.keys(), GlobalMut::new(splits, tiles + 2)) };
    if thread::index_1d() == 0 {
        splits.set(tiles, a.len());
        splits.set(tiles + 1, a.len() + b.len());
    }
    let [a, b] = [a, b].map(|run| Keys::at(run, coding));
    let write = |tile, k, split| {
        let point = balance(k, split, a, b);
        splits.set(tile, pack(point.a, point.is_short));
    };
    // SAFETY: the launch has the shape of `path_big`, and no branch surrounds this call: all threads of the block make
    // it.
    unsafe { find_splits(a, b, tile_keys, write) }
}
