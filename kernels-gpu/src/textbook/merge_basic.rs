//! Basic merge: every thread merges its own segment of the output directly in global memory (figure 12.9).
//!
//! ```text
//!   C  ├────────┼────────┼────────┼─────┤     ceil((m+n) / threads) keys per thread
//!       thread 0 thread 1 thread 2 …
//! ```
//!
//! Each thread finds the ends of its segment in A and in B by co-rank and merges the two parts sequentially.
//! Neighbouring threads access distant addresses, so that hardly any access is coalesced.

use crate::key::{Bits, Coding};
use crate::keys::{Keys, KeysMut};
use crate::textbook::co_rank::{clamp_split, co_rank};
use crate::textbook::sequential::merge_sequential;
use cuda_std::prelude::*;

/// Kernel: merges `a` and `b` into `c` in the order of `coding`. The grid and the blocks may have any size. Uses no
/// shared memory.
///
/// # Safety
/// `a` and `b` are ascending arrays of `m` and `n` keys and `c` has capacity for `m + n` keys, in global memory; `c`
/// does not overlap `a` or `b`.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn merge_basic<B: Bits>(a: *const B, m: usize, b: *const B, n: usize, c: *mut B, coding: Coding<B>) {
    // SAFETY: the caller passes `m` keys at `a`, `n` at `b` and room for `m + n` at `c`. For any keys
    // `k - n <= co_rank(k) <= min(k, m)`. `clamp_split` keeps the ends in order: `i_curr <= i_next <= m` and
    // `j_curr <= j_next <= n`. A thread writes `k_curr .. k_next` with `k_next <= m + n`; the ranges of two threads are
    // disjoint.
    let (a, b, c) = unsafe { (Keys::new(a, m, coding), Keys::new(b, n, coding), KeysMut::new(c, m + n, coding)) };
    let threads = thread::block_dim_x() as usize * thread::grid_dim_x() as usize;
    let tid = thread::block_idx_x() as usize * thread::block_dim_x() as usize + thread::thread_idx_x() as usize;
    let keys_per_thread = (m + n).div_ceil(threads);
    // With more threads than keys, both ends of the last threads' segments are m + n: these are empty.
    let k_curr = (tid * keys_per_thread).min(m + n);
    let k_next = (k_curr + keys_per_thread).min(m + n);
    let i_curr = co_rank(k_curr, a, b);
    let i_next = clamp_split(i_curr, co_rank(k_next, a, b), k_next - k_curr);
    let (j_curr, j_next) = (k_curr - i_curr, k_next - i_next);
    merge_sequential(a.slice(i_curr, i_next - i_curr), b.slice(j_curr, j_next - j_curr), |k, key| {
        c.set(k_curr + k, key)
    });
}
