//! Conversions between keys of 1 and 2 bytes and ordered bits of 4 bytes.

use super::Narrow;
use crate::elements::counted;
use crate::key::Coding;
use cuda_std::prelude::*;

/// Threads of a block.
pub const THREADS: u32 = 256;

/// Keys of a thread.
const EACH: usize = 8;

/// Keys of a block.
pub const TILE: usize = THREADS as usize * EACH;

/// Kernel: sets each of the `n` numbers `to` to the ordered bits of the key in `from`.
///
/// # Safety
/// `from` has `n` keys, which nothing writes, and `to` has `n` numbers, which nothing else uses, in global memory. The
/// blocks have [`THREADS`] threads, and [`TILE`] keys each.
#[kernel(u8 = <u8>, u16 = <u16>)]
pub unsafe fn widen_keys<N: Narrow>(from: *const N, n: usize, to: *mut u32, coding: Coding<N>) {
    // SAFETY: both arrays have `n` elements, and one thread writes each element of `to`.
    let (from, to) = unsafe { (Global::new(from, n), GlobalMut::new(to, n)) };
    for_each(n, |i| from.get(i), |i, key| to.set(i, coding.encode(key).value()));
}

/// Kernel: sets keys of `to` to the keys with the ordered bits in `from`: the first `count` keys, or all `n` keys if
/// `count` is null.
///
/// # Safety
/// All arrays are in global memory. `from` has `n` numbers, which nothing writes. The first `count`, or all, are
/// ordered bits of keys. `to` has `n` keys, which nothing else uses. `count` is null or a number of at most `n`, which
/// nothing writes. The blocks have [`THREADS`] threads, and [`TILE`] keys each.
#[kernel(u8 = <u8>, u16 = <u16>)]
pub unsafe fn narrow_keys<N: Narrow>(from: *const u32, n: usize, count: *const u64, to: *mut N, coding: Coding<N>) {
    // SAFETY: `count` is null or a number that nothing writes.
    let n = unsafe { counted(count, n) };
    // SAFETY: both arrays have at least `n` elements, and one thread writes each element of `to`.
    let (from, to) = unsafe { (Global::new(from, n), GlobalMut::new(to, n)) };
    for_each(n, |i| from.get(i), |i, bits| to.set(i, coding.decode(N::of_value(bits))));
}

/// Loads the elements of the thread, striped, and then stores them.
#[inline(always)]
#[track_caller]
fn for_each<T: Word>(n: usize, load: impl Fn(usize) -> T, store: impl Fn(usize, T)) {
    let begin = thread::block_idx_x() as usize * TILE + thread::thread_idx_x() as usize;
    let mut own = [T::from_register(0); EACH];
    for i in 0..EACH {
        let at = begin + i * THREADS as usize;
        if at < n {
            own[i] = load(at);
        }
    }
    for i in 0..EACH {
        let at = begin + i * THREADS as usize;
        if at < n {
            store(at, own[i]);
        }
    }
}
