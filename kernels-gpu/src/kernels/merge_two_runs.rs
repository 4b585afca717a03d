//! The merge of the two runs of an array. Only the device knows the start of the second run.
//!
//! ```text
//!   offsets   0              m           n
//!   keys      │ A            │ B         │     an offset is read; all else is as in a merge of two arrays
//! ```
//!
//! Two runs are merged faster this way than by a [pass over many](crate::kernels::sort::merge_pass::many_runs).

use crate::elements::{Elements, Slice};
use crate::kernels::merge_path;
use crate::key::{Bits, Coding};
use crate::keys::Keys;
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Blocks on a multiprocessor for keys without values, limited by registers. With a sixth block, keys of 4 bytes would
/// spill registers.
const MIN_BLOCKS_PER_SM: usize = 5;

/// Start of the second run.
///
/// # Safety
/// `offsets` has at least two offsets, which nothing writes during the launch.
#[inline(always)]
unsafe fn second_run(offsets: *const usize) -> usize {
    // SAFETY: the caller ensures that `offsets` has at least two offsets, and only `offsets[1]` is read.
    unsafe { Global::new(offsets, 2) }.get(1)
}

/// Kernel: [`path_big`](merge_path::path_big) for the two runs into which `offsets[1]` divides the `n` keys of `keys`.
///
/// # Safety
/// The requirements of `path_big` hold, with the two runs for its arrays. `keys` has `n` keys. `offsets` has at least
/// two offsets, and the second is at most `n`.
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
    // SAFETY: `keys` has `n` keys, and `splits` has capacity for `tiles` splits, as this kernel requires. Only thread
    // `tile < tiles` writes `splits[tile]`.
    let (keys, m, splits) = unsafe { (Keys::new(keys, n, coding), second_run(offsets), GlobalMut::new(splits, tiles)) };
    let (a, b) = (keys.slice(0, m), keys.slice(m, n - m));
    // SAFETY: the launch meets the requirements of `path_big`. No branch surrounds the call, so that all threads of the
    // block make it.
    unsafe { merge_path::find_splits(a, b, tiles, tile_keys, |tile, _, split| splits.set(tile, split)) }
}

/// Kernel: merges the two runs of `at` with their values into `c`, as `coding` orders their keys, at the splits of
/// [`path_two_runs`]. One block for each tile. Stable: of equal keys, the keys of the first run go first.
///
/// # Safety
/// The requirements of [`merge_big`](merge_path::merge_big) hold, with the two runs of `at` for its arrays. `offsets`
/// meets the requirements of [`path_two_runs`].
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
    // SAFETY: `at` and `c` have `n` elements. A block writes only its own tile, and tiles do not overlap. There is one
    // block of `NT` threads for each tile, with `shared_bytes`, and all threads of the block make the call.
    unsafe {
        let (from, m) = (at.source(), second_run(offsets));
        merge_path::merge_block::<B, V, NT, VT>(from.slice(0, m), from.slice(m, n - m), c.arrays(n), splits, coding);
    }
}
