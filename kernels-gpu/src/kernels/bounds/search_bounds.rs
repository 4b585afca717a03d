//! Bounds by one binary search per needle, for few needles: most keys are not read.

use crate::key::{Bits, Coding};
use crate::keys::Keys;
use core::hint::select_unpredictable;
use cuda_std::prelude::*;

/// Threads of a block.
pub const SEARCH_THREADS: u32 = 128;

/// Kernel: writes a bound for each needle, in the order of `coding`. If `lower` is not 0, it is the number of keys less
/// than the needle, otherwise the number of keys not greater. One thread per needle.
///
/// # Safety
/// `needles` and `keys` have `m` and `n` elements, and `keys` is ascending. `bounds` has capacity for `m` numbers, wide
/// enough for `n`, and does not overlap an input array. There are `ceil(m / SEARCH_THREADS)` blocks of
/// [`SEARCH_THREADS`] threads.
#[kernel(u32v4 = <u32, u32>, u32v8 = <u32, u64>, u64v4 = <u64, u32>, u64v8 = <u64, u64>)]
pub unsafe fn search_bounds<B: Bits, I: Bits>(
    needles: *const B,
    m: usize,
    keys: *const B,
    n: usize,
    bounds: *mut I,
    lower: u32,
    coding: Coding<B>,
) {
    let i = thread::block_idx_x() as usize * SEARCH_THREADS as usize + thread::thread_idx_x() as usize;
    if i >= m {
        return;
    }
    // SAFETY: the caller passes `m` needles, `n` keys and room for `m` bounds. `i < m`, and thread `i` alone writes
    // `bounds[i]`. The search reads keys at `low + half < low + range <= n`.
    let (needles, keys, bounds) =
        unsafe { (Keys::new(needles, m, coding), Keys::new(keys, n, coding), GlobalMut::new(bounds, m)) };
    let needle = needles.get(i);
    let (mut low, mut range) = (0, n);
    while range > 0 {
        let half = range / 2;
        let key = keys.get(low + half);
        let precedes = (key < needle) | ((key == needle) & (lower == 0));
        low = select_unpredictable(precedes, low + half + 1, low);
        range = select_unpredictable(precedes, range - half - 1, half);
    }
    bounds.set(i, I::from_register(low as u64));
}
