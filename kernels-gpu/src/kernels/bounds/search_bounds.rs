//! Bounds by one binary search per needle, for few needles: most keys are not read.

use crate::kernels::merge_path::TwoRuns;
use crate::key::{Bits, Coding};
use crate::keys::Keys;
use core::hint::select_unpredictable;
use cuda_std::prelude::*;

/// Threads of a block.
pub const SEARCH_THREADS: u32 = 128;

/// Kernel: writes a bound for each needle, in the order of `coding`. If `lower` is not 0, it is the number of keys less
/// than the needle, otherwise the number of keys not greater. The needles are A if `lower` is not 0, and otherwise B,
/// as for [`merge_bounds`](super::merge_bounds::merge_bounds). One thread per needle.
///
/// # Safety
/// The runs are two ascending arrays. `bounds` has capacity for a number per needle, of a type that can hold the number
/// of keys, and does not overlap the input arrays. There are `ceil(m / SEARCH_THREADS)` blocks of [`SEARCH_THREADS`]
/// threads, for at most m needles.
#[kernel(u32v4 = <u32, u32>, u32v8 = <u32, u64>, u64v4 = <u64, u32>, u64v8 = <u64, u64>)]
pub unsafe fn search_bounds<B: Bits, I: Bits>(runs: TwoRuns<B, ()>, bounds: *mut I, lower: u32, coding: Coding<B>) {
    let i = thread::block_idx_x() as usize * SEARCH_THREADS as usize + thread::thread_idx_x() as usize;
    // SAFETY: the runs are as described, and nothing writes them during the launch.
    let (a, b) = unsafe { runs.keys() };
    let (needles, keys) = if lower != 0 { (a, b) } else { (b, a) };
    if i >= needles.len() {
        return;
    }
    // SAFETY: the caller passes room for a bound of each needle, and thread `i` alone writes `bounds[i]`. The search
    // reads keys at `low + half < low + range <= keys.len()`.
    let bounds = unsafe { GlobalMut::new(bounds, needles.len()) };
    let (needle, keys) = (coding.encode(needles.get(i)), Keys::at(keys, coding));
    let (mut low, mut range) = (0, keys.len());
    while range > 0 {
        let half = range / 2;
        let key = keys.get(low + half);
        let precedes = (key < needle) | ((key == needle) & (lower == 0));
        low = select_unpredictable(precedes, low + half + 1, low);
        range = select_unpredictable(precedes, range - half - 1, half);
    }
    bounds.set(i, I::from_register(low as u64));
}
