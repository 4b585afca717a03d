//! The merge of the two runs of an array, of which only the device knows where the second begins.
//!
//! ```text
//!   offsets   0              m           n
//!   keys      │ A            │ B         │     an offset is read; all else is as in a merge of two arrays
//! ```
//!
//! Two runs are merged faster so than by a [pass over many](crate::kernels::sort::merge_pass::many_runs).

use crate::block::{indexed_merge, tile};
use crate::kernels::{merge_pairs, merge_path};
use crate::key::{Bits, Coding};
use crate::keys::{Keys, KeysMut};
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Blocks of [`merge_two_runs`] on a multiprocessor, as many as its registers allow. A sixth one of keys of 4 bytes
/// would spill some.
const MIN_BLOCKS_PER_SM: usize = 5;

/// Where the second run begins.
///
/// # Safety
/// `offsets` has two offsets or more, which nothing writes during the launch.
#[inline(always)]
unsafe fn second_run(offsets: *const usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { Global::new(offsets, 2) }.get(1)
}

/// Kernel: as [`path_big`](merge_path::path_big), for the runs that `offsets[1]` divides `keys` into, `n` keys
/// together.
///
/// # Safety
/// As for `path_big`, with `keys` for both of its arrays. `offsets` has two offsets or more, of which the second is at
/// most `n`.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn path_two_runs<B: Bits>(
    keys: *const B,
    n: usize,
    offsets: *const usize,
    splits: *mut usize,
    tiles: usize,
    tile_keys: usize,
    coding: Coding<B>,
) {
    // SAFETY: `keys` has `n` keys, as the caller promises, and `splits` capacity for `tiles` splits; thread `tile <
    // tiles` alone writes `splits[tile]`.
    let (keys, m, splits) = unsafe { (Keys::new(keys, n, coding), second_run(offsets), GlobalMut::new(splits, tiles)) };
    let (a, b) = (keys.slice(0, m), keys.slice(m, n - m));
    // SAFETY: the launch is as the next function demands.
    unsafe { merge_path::find_splits(a, b, tiles, tile_keys, |tile, _, split| splits.set(tile, split)) }
}

/// Kernel: merges the two runs of `keys`, as `coding` orders their keys, into `c`, one block a tile, at the splits that
/// [`path_two_runs`] found.
///
/// # Safety
/// As for [`merge_big`](merge_path::merge_big), with `keys` for both of its arrays and `offsets` as for
/// [`path_two_runs`].
#[kernel(
    u32 = <u32, { ROW.merge.of(4, 0).threads }, { ROW.merge.of(4, 0).items_per_thread }>
        within (ROW.merge.of(4, 0).threads, MIN_BLOCKS_PER_SM),
    u64 = <u64, { ROW.merge.of(8, 0).threads }, { ROW.merge.of(8, 0).items_per_thread }>
        within (ROW.merge.of(8, 0).threads, MIN_BLOCKS_PER_SM),
)]
pub unsafe fn merge_two_runs<B: Bits, const NT: usize, const VT: usize>(
    keys: *const B,
    n: usize,
    offsets: *const usize,
    c: *mut B,
    splits: *const usize,
    coding: Coding<B>,
) {
    // SAFETY: `keys` and `c` have `n` keys, as the caller promises. A block writes its tile, and tiles do not overlap.
    let (keys, m, c) = unsafe { (Keys::new(keys, n, coding), second_run(offsets), KeysMut::new(c, n, coding)) };
    // SAFETY: the caller's promise.
    unsafe { merge_path::merge_block::<B, NT, VT>(keys.slice(0, m), keys.slice(m, n - m), c, splits) }
}

/// Kernel: as [`merge_two_runs`], with the values of the keys. Stable: of equal keys those of the first run go first.
///
/// # Safety
/// As for [`merge_pairs`](merge_pairs::merge_pairs), with `keys` and `values` for both of its inputs and `offsets` as
/// for [`path_two_runs`].
#[kernel(
    u32v4 = <u32, u32, { ROW.indexed.of(4, 0).threads }, { ROW.indexed.of(4, 0).items_per_thread }>,
    u64v4 = <u64, u32, { ROW.indexed.of(8, 0).threads }, { ROW.indexed.of(8, 0).items_per_thread }>,
    u32v8 = <u32, u64, { ROW.indexed.of(4, 0).threads }, { ROW.indexed.of(4, 0).items_per_thread }>,
    u64v8 = <u64, u64, { ROW.indexed.of(8, 0).threads }, { ROW.indexed.of(8, 0).items_per_thread }>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_two_runs_pairs<B: Bits, V: Word, const NT: usize, const VT: usize>(
    keys: *const B,
    values: *const V,
    n: usize,
    offsets: *const usize,
    c_keys: *mut B,
    c_values: *mut V,
    splits: *const usize,
    coding: Coding<B>,
) {
    // SAFETY: all arrays have `n` elements, as the caller promises. A block writes its tile, and tiles do not overlap.
    // The rest is the caller's promise.
    unsafe {
        let (keys, values, m) = (Keys::new(keys, n, coding), Global::new(values, n), second_run(offsets));
        let (a, b) = ((keys.slice(0, m), values.slice(0, m)), (keys.slice(m, n - m), values.slice(m, n - m)));
        let c = (KeysMut::new(c_keys, n, coding), GlobalMut::new(c_values, n));
        merge_pairs::merge_block::<B, V, NT, VT>(a, b, c, splits);
    }
}

/// Bytes of dynamic shared memory of [`merge_two_runs`], or of [`merge_two_runs_pairs`] if there are values, for tiles
/// of `keys` keys, `items_per_thread` for each thread.
pub const fn shared_bytes<B>(keys: usize, items_per_thread: usize, has_values: bool) -> u32 {
    if has_values { indexed_merge::shared_bytes::<B>(keys, items_per_thread) } else { tile::shared_bytes::<B>(keys) }
}
