//! The first launch: where tiles begin on the balanced path.

use super::pack;
use crate::elements::Slice;
use crate::kernels::merge_path::find_splits;
use crate::key::{Bits, Coding};
use crate::keys::Keys;
use crate::thread::balanced_path::balance;
use cuda_std::prelude::*;

/// Kernel: writes to `splits[t]` where tile `t` of `tile_keys` keys begins on the balanced path of A and B, for `tiles`
/// tiles, in the order of `coding`. One thread a tile.
///
/// # Safety
/// As for [`path_big`](crate::kernels::merge_path::path_big), in the same shape.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn balance_path<B: Bits>(
    a: Slice<B, ()>,
    b: Slice<B, ()>,
    splits: *mut usize,
    tiles: usize,
    tile_keys: usize,
    coding: Coding<B>,
) {
    // SAFETY: `a` and `b` have `len` keys and `splits` has `tiles` elements, as the caller promises; thread `tile <
    // tiles` alone writes `splits[tile]`.
    let (a, b, splits) = unsafe {
        (Keys::at(a.source().keys, coding), Keys::at(b.source().keys, coding), GlobalMut::new(splits, tiles))
    };
    let write = |tile, k, split| {
        let point = balance(k, split, a, b);
        splits.set(tile, pack(point.a, point.is_short));
    };
    // SAFETY: the shape is that of `path_big`.
    unsafe { find_splits(a, b, tiles, tile_keys, write) }
}
