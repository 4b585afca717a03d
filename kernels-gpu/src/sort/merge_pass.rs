//! A pass of the sort: every pair of neighbouring runs is merged into one.
//!
//! ```text
//!   from   │ run 0      │ run 1      │ run 2      │ run │        `run` keys each, the last one fewer
//!   to     │ pair 0                  │ pair 1           │
//!   tiles  │    │    │    │    │    │    │    │    │   │        a run is a whole number of tiles, so a tile is in one pair
//! ```
//!
//! Within its pair a tile is merged as `merge_big` does it.

use crate::diagonal::diagonal_search;
use crate::key::Key;
use crate::merge_path::merge_tile;
use crate::tuning::ROW;
use core::hint::assert_unchecked;
use cuda_std::prelude::*;

/// The pair of runs that a place belongs to.
struct Pair<K> {
    /// Where the pair begins.
    start: usize,
    a: Global<K>,
    b: Global<K>,
}

impl<K: Key> Pair<K> {
    /// The pair that place `k` of `keys` is in, for runs of `run` keys.
    ///
    /// # Safety
    /// `run` is not 0.
    #[inline(always)]
    unsafe fn at(k: usize, keys: Global<K>, run: usize) -> Self {
        // SAFETY: the caller's promise. Without it the division would bring in the code of a panic.
        unsafe { assert_unchecked(run != 0) };
        let start = k / (2 * run) * (2 * run);
        let rest = keys.len() - start;
        let a_len = rest.min(run);
        let b_len = (rest - a_len).min(run);
        Self { start, a: keys.slice(start, a_len), b: keys.slice(start + a_len, b_len) }
    }
}

/// Kernel: writes to `splits[t]` how many keys of its pair's first run the merge takes before tile `t`. One thread a tile.
///
/// # Safety
/// `from` has `n` keys in ascending runs of `run` keys, the last one maybe shorter; `splits` has room for `tiles`
/// positions; `run` is a positive multiple of `tile_keys` and `tiles` is `ceil(n / tile_keys)`.
#[kernel(u32 = <u32>, i32 = <i32>, f32 = <f32>, u64 = <u64>, i64 = <i64>, f64 = <f64>)]
pub unsafe fn path_runs<K: Key>(
    from: *const K,
    n: usize,
    run: usize,
    splits: *mut usize,
    tiles: usize,
    tile_keys: usize,
) {
    // SAFETY: the caller's promise.
    let (from, splits) = unsafe { (Global::new(from, n), GlobalMut::new(splits, tiles)) };
    let t = thread::block_idx_x() as usize * thread::block_dim_x() as usize + thread::thread_idx_x() as usize;
    if t < tiles {
        // SAFETY: the caller's promise.
        let pair = unsafe { Pair::at(t * tile_keys, from, run) };
        splits.set(t, diagonal_search(t * tile_keys - pair.start, pair.a, pair.b));
    }
}

/// Kernel: merges each pair of runs of `from` into the same places of `to`, one block a tile, at the splits that
/// [`path_runs`] found.
///
/// # Safety
/// `from` has `n` keys in ascending runs of `run` keys, the last one maybe shorter; `to` has room for `n` and does not
/// overlap `from`; `splits` are those of `path_runs` for tiles of `NT * VT` keys, and `run` is a positive multiple of that. Blocks
/// are of `NT` threads, one for each tile, with [`crate::tile::shared_bytes`] of dynamic shared memory.
#[kernel(
    u32 = <u32, { ROW.sort_4.threads }, { ROW.sort_4.values }>,
    i32 = <i32, { ROW.sort_4.threads }, { ROW.sort_4.values }>,
    f32 = <f32, { ROW.sort_4.threads }, { ROW.sort_4.values }>,
    u64 = <u64, { ROW.sort_8.threads }, { ROW.sort_8.values }>,
    i64 = <i64, { ROW.sort_8.threads }, { ROW.sort_8.values }>,
    f64 = <f64, { ROW.sort_8.threads }, { ROW.sort_8.values }>,
)]
pub unsafe fn merge_runs<K: Key, const NT: usize, const VT: usize>(
    from: *const K,
    n: usize,
    run: usize,
    to: *mut K,
    splits: *const usize,
) {
    let tiles = n.div_ceil(NT * VT);
    // SAFETY: the caller's promise.
    let (from, to, splits) = unsafe { (Global::new(from, n), GlobalMut::new(to, n), Global::new(splits, tiles)) };
    let t = thread::block_idx_x() as usize;
    // SAFETY: the caller's promise.
    let pair = unsafe { Pair::at(t * NT * VT, from, run) };
    let k = t * NT * VT - pair.start;
    let length = pair.a.len() + pair.b.len();
    // The next tile's split, if it is in the same pair.
    let a_next = if k + NT * VT < length { splits.get(t + 1) } else { pair.a.len() };
    let to = to.slice(pair.start, length);
    // SAFETY: the caller's promise.
    unsafe { merge_tile::<K, NT, VT>(pair.a, pair.b, to, k, splits.get(t), a_next) }
}
