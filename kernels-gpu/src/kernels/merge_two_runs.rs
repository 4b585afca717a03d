//! The merge of the two runs of an array, of which only the device knows where the second begins.
//!
//! ```text
//!   offsets   0              m           n
//!   keys      │ A            │ B         │     an offset is read; all else is as in a merge of two arrays
//! ```
//!
//! Two runs are merged faster so than by a [pass over many](crate::kernels::sort::merge_pass::many_runs).

use crate::elements::{Elements, Slice};
use crate::kernels::merge_path;
use crate::key::{Bits, Coding};
use crate::keys::Keys;
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Blocks on a multiprocessor for keys alone, as many as registers allow. A sixth one of keys of 4 bytes would spill
/// some.
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

/// Kernel: merges the two runs of `at`, as `coding` orders their keys, into `c`, with their values, one block a tile,
/// at the splits that [`path_two_runs`] found. Stable: of equal keys those of the first run go first.
///
/// # Safety
/// As for [`merge_big`](merge_path::merge_big), with the `n` elements of `at` for both of its runs and `offsets` as for
/// [`path_two_runs`].
#[kernel(
    u32 = <u32, (), { ROW.merge.of(4, 0).threads }, { ROW.merge.of(4, 0).items_per_thread }>
        within (ROW.merge.of(4, 0).threads, MIN_BLOCKS_PER_SM),
    u64 = <u64, (), { ROW.merge.of(8, 0).threads }, { ROW.merge.of(8, 0).items_per_thread }>
        within (ROW.merge.of(8, 0).threads, MIN_BLOCKS_PER_SM),
    u32v4 = <u32, u32, { ROW.merge.of(4, 4).threads }, { ROW.merge.of(4, 4).items_per_thread }>,
    u32v8 = <u32, u64, { ROW.merge.of(4, 8).threads }, { ROW.merge.of(4, 8).items_per_thread }>,
    u64v4 = <u64, u32, { ROW.merge.of(8, 4).threads }, { ROW.merge.of(8, 4).items_per_thread }>,
    u64v8 = <u64, u64, { ROW.merge.of(8, 8).threads }, { ROW.merge.of(8, 8).items_per_thread }>,
)]
pub unsafe fn merge_two_runs<B: Bits, V: Word, const NT: usize, const VT: usize>(
    at: Slice<B, V>,
    offsets: *const usize,
    c: Elements<B, V>,
    splits: *const usize,
    coding: Coding<B>,
) {
    let n = at.len;
    // SAFETY: `at` and `c` have `n` elements, as the caller promises. A block writes its tile, and tiles do not
    // overlap. The launch is as `merge_block` demands.
    unsafe {
        let (from, m) = (at.source(), second_run(offsets));
        merge_path::merge_block::<B, V, NT, VT>(from.slice(0, m), from.slice(m, n - m), c.arrays(n), splits, coding);
    }
}
