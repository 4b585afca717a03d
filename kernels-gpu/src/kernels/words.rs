//! Keys of 16 bytes as two words of 8 bytes, and gathers by index.
//!
//! ```text
//!   keys          │ low 0  high 0 │ low 1  high 1 │ low 2  high 2 │
//!   split_words   │ low 0  low 1  low 2 │   │ high 0  high 1  high 2 │
//! ```

use cuda_std::prelude::*;

/// Threads of a block. Each thread has one element.
pub const THREADS: u32 = 256;

/// Kernel: sets `low` and `high` to the words of the `n` keys.
///
/// # Safety
/// `keys` has `2 * n` words, which nothing writes, and `low` and `high` have `n` words each, which nothing else uses,
/// in global memory. There are at least `n` threads.
#[kernel(u64 = <u64>)]
pub unsafe fn split_words<W: Word>(keys: *const W, n: usize, low: *mut W, high: *mut W) {
    let i = index();
    // SAFETY: the arrays have these lengths, and thread `i` alone writes element `i`.
    let (keys, low, high) = unsafe { (Global::new(keys, 2 * n), GlobalMut::new(low, n), GlobalMut::new(high, n)) };
    if i < n {
        let words = [keys.get(2 * i), keys.get(2 * i + 1)];
        low.set(i, words[0]);
        high.set(i, words[1]);
    }
}

/// Kernel: the inverse of [`split_words`].
///
/// # Safety
/// `low` and `high` have `n` words each, which nothing writes, and `keys` has `2 * n` words, which nothing else uses,
/// in global memory. There are at least `n` threads.
#[kernel(u64 = <u64>)]
pub unsafe fn join_words<W: Word>(low: *const W, high: *const W, n: usize, keys: *mut W) {
    let i = index();
    // SAFETY: the arrays have these lengths, and thread `i` alone writes the words of key `i`.
    let (low, high, keys) = unsafe { (Global::new(low, n), Global::new(high, n), GlobalMut::new(keys, 2 * n)) };
    if i < n {
        let words = [low.get(i), high.get(i)];
        keys.set(2 * i, words[0]);
        keys.set(2 * i + 1, words[1]);
    }
}

/// Kernel: sets each of the `n` words `to` to word `stride * i + first` of `from`, where `i` is its element of
/// `indices`, or its own index if `indices` is null.
///
/// # Safety
/// `indices` is null or has `n` indices below `n`, `from` has `stride * n` words, which nothing writes, and `to` has
/// `n` words, which nothing else uses, in global memory. `first` is below `stride`. There are at least `n` threads.
#[kernel(u32v4 = <u32, u32>, u32v8 = <u32, u64>, u64v4 = <u64, u32>, u64v8 = <u64, u64>)]
pub unsafe fn gather_words<W: Word, I: Word>(
    from: *const W,
    stride: usize,
    first: usize,
    indices: *const I,
    n: usize,
    to: *mut W,
) {
    let i = index();
    // SAFETY: the arrays have these lengths, and thread `i` alone writes word `i`.
    let (from, to) = unsafe { (Global::new(from, stride * n), GlobalMut::new(to, n)) };
    if i < n {
        // SAFETY: `indices` has `n` indices if it is not null.
        let at = if indices.is_null() { i } else { unsafe { Global::new(indices, n) }.get(i).to_register() as usize };
        to.set(i, from.get(stride * at + first));
    }
}

/// The index of the thread, which may not fit in 32 bits.
#[inline(always)]
fn index() -> usize {
    thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize
}
