//! The first launch: divides the balanced path into tiles.

use super::pack;
use crate::elements::Slice;
use crate::kernels::merge_path::find_splits;
use crate::key::{Bits, Coding};
use crate::keys::Keys;
use crate::thread::balanced_path::balance;
use cuda_std::prelude::*;

/// Kernel: writes the start of tile `t` on the balanced path of A and B, in the order of `coding`, to `splits[t]`.
/// There are `tiles` tiles of `tile_keys` keys, and one thread per tile.
///
/// # Safety
/// `a` and `b` are ascending arrays of `m` and `n` keys and `splits` has capacity for `tiles` points, in global memory.
/// `tiles` is at most `ceil((m + n) / tile_keys)`. The launch has the shape of
/// [`path_big`](crate::kernels::merge_path::path_big).
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn balance_path<B: Bits>(
    a: Slice<B, ()>,
    b: Slice<B, ()>,
    splits: *mut usize,
    tiles: usize,
    tile_keys: usize,
    coding: Coding<B>,
) {
    // SAFETY: `a` and `b` have `len` keys, and `splits` has `tiles` elements, as this kernel requires. Only thread
    // `tile < tiles` writes `splits[tile]`.
    let (a, b, splits) = unsafe {
        (Keys::at(a.source().keys, coding), Keys::at(b.source().keys, coding), GlobalMut::new(splits, tiles))
    };
    let write = |tile, k, split| {
        let point = balance(k, split, a, b);
        splits.set(tile, pack(point.a, point.is_short));
    };
    // SAFETY: the launch has the shape of `path_big`, and no branch precedes this call: all threads of the block make
    // it.
    unsafe { find_splits(a, b, tiles, tile_keys, write) }
}
