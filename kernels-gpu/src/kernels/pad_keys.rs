//! Keys behind a number of keys that only the GPU knows: they become the last keys of an order, so that a sort of all
//! keys leaves them behind.
//!
//! ```text
//!   keys    3 1 2 │ 9 7 4 9      count: 3
//!   padded  3 1 2 │ ∞ ∞ ∞ ∞
//! ```
//!
//! Keys that are equal to the padding stay before it in a stable sort, and without values they are the same bits.

use crate::elements::counted;
use cuda_std::prelude::*;

/// Threads of a block.
pub const THREADS: u32 = 256;

/// Kernel: sets all of the `n` keys behind the first ones, whose number is at `count`, to the last key of an order. A
/// key has `words` words: 1, or 2 in keys of 16 bytes. The first word becomes `low`, and the second one `high`.
///
/// # Safety
/// `keys` has `n * words` words, which nothing else uses, and `count` points to a number, which nothing writes, in
/// global memory.
#[kernel(u8 = <u8>, u16 = <u16>, u32 = <u32>, u64 = <u64>)]
pub unsafe fn pad_keys<T: Word>(keys: *mut T, n: usize, words: usize, count: *const u64, low: T, high: T) {
    // SAFETY: `keys` has `n * words` words. Thread `t` writes the words `first + i` with `i` mod `threads` = `t`, so
    // that no two threads write the same one. Nothing writes `count`.
    let (keys, first) = unsafe { (GlobalMut::new(keys, n * words), counted(count, n) * words) };
    let threads = (thread::grid_dim_x() * thread::block_dim_x()) as usize;
    let mut i = first + thread::index_1d() as usize;
    while i < n * words {
        keys.set(i, if i & (words - 1) == 0 { low } else { high });
        i += threads;
    }
}
