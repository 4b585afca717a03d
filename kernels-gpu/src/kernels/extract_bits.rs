//! Some bits of the ordered bits of keys.

use crate::key::{Bits, Coding};
use cuda_std::prelude::*;

/// Threads of a block. Each thread has one key.
pub const THREADS: u32 = 256;

/// Kernel: sets each of the `n` numbers `to` to the ordered bits of the key in `keys`, shifted down by `shift`, and
/// with the bits of `mask` alone.
///
/// # Safety
/// `keys` has `n` keys, which nothing writes, and `to` has `n` numbers, which nothing else uses, in global memory.
/// `shift` is below the number of bits of a key. There are at least `n` threads.
#[kernel(u32v4 = <u32, u32>, u64v4 = <u64, u32>, u64v8 = <u64, u64>)]
pub unsafe fn extract_bits<B: Bits, W: Word>(
    keys: *const B,
    n: usize,
    shift: u32,
    mask: u64,
    to: *mut W,
    coding: Coding<B>,
) {
    // SAFETY: both arrays have `n` elements, and thread `i < n` alone writes element `i`.
    let (keys, to) = unsafe { (Global::new(keys, n), GlobalMut::new(to, n)) };
    let i = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if i < n {
        let code = coding.encode(keys.get(i)).shifted_down(shift);
        to.set(i, W::from_register(code.to_register() & mask));
    }
}
