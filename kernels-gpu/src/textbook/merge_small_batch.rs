//! Batch merge: many small pairs in one launch (the course's `mergeSmallBatch_k`).
//!
//! Pair `g` merges `a_len` keys of A with `d - a_len` keys of B into `d` keys of C. A block of `blockDim` threads takes
//! `blockDim / d` pairs, one thread a key:
//!
//! ```text
//!   thread   0 … d-1 │ d … 2d-1 │ 2d … 3d-1 │ …
//!   qt       0       │ 1        │ 2         │      which pair of the block's
//!   tidx     0 … d-1 │ 0 … d-1  │ 0 … d-1   │      which key of the pair, so which diagonal
//!   gbx      = qt + blockIdx * (blockDim / d)      which pair of all
//! ```
//!
//! A block's pairs lie one behind the other in A, in B and in C, so the block loads and stores whole stretches for any
//! `d`; the searches run in shared memory.
//!
//! `blockDim / d` is rounded down: the `blockDim % d` threads behind the last whole pair of a block stay idle. That is why
//! blocks are of a multiple of `d` threads, so that there are none, and `pairs * d` threads in all merge all pairs.

use crate::key::{Bits, Coding};
use crate::keys::{Keys, KeysMut};
use crate::textbook::merge_small::key_on_diagonal;
use core::hint::assert_unchecked;
use cuda_std::prelude::*;

/// The greatest length of a merged pair.
pub const MAX_D: u32 = 1024;

/// Bytes of dynamic shared memory for a block of `threads` threads.
pub const fn shared_bytes<B>(threads: u32) -> u32 {
    threads * size_of::<B>() as u32
}

/// Kernel: merges `pairs` pairs, as `coding` orders their keys. `a` has `pairs * a_len` keys, `b` has `pairs * (d - a_len)`, `c` has capacity for `pairs * d`.
///
/// # Safety
/// Each run in `a` and `b` is ascending; the arrays have the lengths above, in global memory; `1 <= d <= MAX_D` and
/// `a_len <= d`; `c` overlaps neither `a` nor `b`. Blocks are of a multiple of `d` threads, and there are at least `pairs * d`
/// threads in all. Of blocks with a remainder of threads, that many would not be enough: they merge `blockDim / d` pairs, rounded
/// down, and leave the last pairs of C unwritten. The launch has [`shared_bytes`] of dynamic shared memory for the threads of a
/// block.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn merge_small_batch<B: Bits>(
    a: *const B,
    b: *const B,
    c: *mut B,
    pairs: usize,
    d: u32,
    a_len: u32,
    coding: Coding<B>,
) {
    // SAFETY: the caller promises `1 <= d`. Without this the divisions by `d` would bring in the code of a panic.
    unsafe { assert_unchecked(d != 0) };
    let b_len = d - a_len;
    // SAFETY: the lengths are those that the caller promises. The block's pairs are
    // `first_pair .. first_pair + block_pairs`, which ends by `pairs`. Thread `t < a_keys = block_pairs * a_len` reads
    // `a[first_pair * a_len + t]`, below `pairs * a_len`; so for `b`. A thread of pair `qt < block_pairs` has
    // `thread < block_pairs * d`, and alone writes `c[first_pair * d + thread]`, below `pairs * d`.
    let (a, b, c) = unsafe {
        (
            Keys::new(a, pairs * a_len as usize, coding),
            Keys::new(b, pairs * b_len as usize, coding),
            KeysMut::new(c, pairs * d as usize, coding),
        )
    };
    let (thread, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let pairs_per_block = threads / d;
    let first_pair = thread::block_idx_x() as usize * pairs_per_block as usize;
    let block_pairs = pairs.saturating_sub(first_pair).min(pairs_per_block as usize) as u32;

    // Global to shared: the block's runs of A, then its runs of B.
    // SAFETY: `threads` keys are the `shared_bytes` of the launch. `a_keys + b_keys` is `block_pairs * d`, and with
    // `block_pairs <= threads / d` at most `threads`; thread `t` writes slot `t` only. The barrier comes before all
    // reads, which are of runs `qt < block_pairs`, in slots below `a_keys + b_keys`.
    let keys = unsafe { Shared::<B>::dynamic(0, threads) };
    let (a_keys, b_keys) = (block_pairs * a_len, block_pairs * b_len);
    if thread < a_keys {
        keys.set(thread, a.get(first_pair * a_len as usize + thread as usize));
    } else if thread < a_keys + b_keys {
        keys.set(thread, b.get(first_pair * b_len as usize + (thread - a_keys) as usize));
    }
    thread::sync_threads();

    // Every thread writes the key of its diagonal.
    let tidx = thread % d;
    let qt = (thread - tidx) / d;
    if qt < block_pairs {
        let key = key_on_diagonal(tidx, keys.slice(qt * a_len, a_len), keys.slice(a_keys + qt * b_len, b_len));
        c.set(first_pair * d as usize + thread as usize, key);
    }
}
