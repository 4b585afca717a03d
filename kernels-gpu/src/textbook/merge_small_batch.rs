//! Batch merge: many small pairs of runs in one launch (the course's `mergeSmallBatch_k`).
//!
//! Pair `g` merges `a_len` keys of A with `d - a_len` keys of B into `d` keys of C. A block of `blockDim` threads
//! merges `blockDim / d` pairs, with one thread per key:
//!
//! ```text
//!   thread   0 … d-1 │ d … 2d-1 │ 2d … 3d-1 │ …
//!   qt       0       │ 1        │ 2         │      index of the pair in the block
//!   tidx     0 … d-1 │ 0 … d-1  │ 0 … d-1   │      index of the key in the pair, and of its diagonal
//!   gbx      = qt + blockIdx * (blockDim / d)      index of the pair in the batch
//! ```
//!
//! The pairs of a block are contiguous in A, in B and in C, so that loads and stores are coalesced for any `d`. The
//! searches run in shared memory.
//!
//! `blockDim / d` is rounded down: the last `blockDim % d` threads of a block are idle. With `blockDim` a multiple of
//! `d` no thread is idle, and `pairs * d` threads merge all pairs.

use crate::key::{Bits, Coding};
use crate::keys::{Keys, KeysMut};
use crate::textbook::merge_small::key_on_diagonal;
use core::hint::assert_unchecked;
use cuda_std::prelude::*;

/// Maximum length of a merged pair.
pub const MAX_D: u32 = 1024;

/// Bytes of dynamic shared memory for a block of `threads` threads.
pub const fn shared_bytes<B>(threads: u32) -> u32 {
    threads * size_of::<B>() as u32
}

/// Kernel: merges `pairs` pairs in the order of `coding`. `a` has `pairs * a_len` keys, `b` has `pairs * (d - a_len)`
/// keys, and `c` has capacity for `pairs * d`.
///
/// # Safety
/// Each run in `a` and `b` is ascending; the arrays have the lengths above, in global memory; `1 <= d <= MAX_D` and
/// `a_len <= d`; `c` does not overlap `a` or `b`. `blockDim` is a multiple of `d`, and the grid has at least
/// `pairs * d` threads. Blocks with a remainder of threads merge `blockDim / d` pairs, rounded down, and would leave
/// the last pairs of C unwritten. The launch has [`shared_bytes`] of dynamic shared memory for the threads of a block.
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
    // SAFETY: the caller passes `d >= 1`. Without this hint, the divisions by `d` would compile to code that can panic.
    unsafe { assert_unchecked(d != 0) };
    let b_len = d - a_len;
    // SAFETY: the caller passes arrays of the lengths given here. The block's pairs are
    // `first_pair .. first_pair + block_pairs`, with `first_pair + block_pairs <= pairs`. Thread
    // `t < a_keys = block_pairs * a_len` reads `a[first_pair * a_len + t]`, below `pairs * a_len`; the index into `b`
    // is bounded likewise. A thread of pair `qt < block_pairs` has `thread < block_pairs * d`, and alone writes
    // `c[first_pair * d + thread]`, below `pairs * d`.
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

    // Global to shared memory: the block's runs of A, then its runs of B.
    // SAFETY: the `shared_bytes` of the launch hold `threads` keys. `a_keys + b_keys` is `block_pairs * d`, which is at
    // most `threads`, since `block_pairs <= threads / d`. Thread `t` writes slot `t` only. The barrier comes before the
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
