//! Segments of one length, up to 32 keys: a thread sorts each in its registers.
//!
//! ```text
//!   global      │a a a b b b c c c d d d│     key i of the tile by thread i modulo the number of threads
//!   shared      │a a a b b b c c░c d d d│     a padding slot after 32, so that threads use different banks
//!   registers    a a a → thread 0, b b b → thread 1, …     a network of the next power of two from 4 on
//! ```

use crate::key::{Bits, Coding};
use crate::thread::network::sort_registers;
use cuda_std::prelude::*;

/// Upper limit on the keys of a segment.
pub const MAX_ROW: usize = 32;

/// Threads of a block.
pub const ROW_THREADS: usize = 128;

/// Segments of a thread: more if they are short, so that each thread loads enough keys at once.
const fn rows_per_thread(length: usize) -> usize {
    match length {
        0..=4 => MAX_ROW / 4,
        5..=8 => MAX_ROW / 8,
        9..=16 => MAX_ROW / 16,
        _ => 1,
    }
}

/// Segments of a block, of `length` keys each.
pub const fn rows_per_block(length: usize) -> usize {
    ROW_THREADS * rows_per_thread(length)
}

/// The slot of key `i` of a tile.
#[inline(always)]
const fn slot(i: u32) -> u32 {
    i + i / 32
}

/// Bytes of dynamic shared memory for segments of `length` keys of `key_bytes` bytes.
pub const fn shared_bytes(key_bytes: usize, length: usize) -> u32 {
    slot((rows_per_block(length) * length) as u32) * key_bytes as u32
}

/// Kernel: sorts each segment of `length` keys, as `coding` orders them. The last segment may be shorter.
///
/// # Safety
/// `keys` has `n` keys, in global memory. `length` is 1 to [`MAX_ROW`]. Blocks have [`ROW_THREADS`] threads with
/// [`shared_bytes`] of dynamic shared memory, and there is one for each [`rows_per_block`] segments or fewer.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn sort_rows<B: Bits>(keys: *mut B, n: usize, length: u32, coding: Coding<B>) {
    let tile = rows_per_block(length as usize) * length as usize;
    let start = thread::block_idx_x() as usize * tile;
    // SAFETY: the array has `n` keys, and `start` is below `n`, as there is a block only for existing segments. Blocks
    // use disjoint keys. The slots are the `shared_bytes` of the launch. Barriers come between accesses of different
    // threads to one slot.
    let (keys, rows) =
        unsafe { (GlobalMut::new(keys, n).slice(start, tile.min(n - start)), Shared::dynamic(0, slot(tile as u32))) };
    match length {
        0..=4 => sort_rows_of::<B, 4>(keys, rows, length, coding),
        5..=8 => sort_rows_of::<B, 8>(keys, rows, length, coding),
        9..=16 => sort_rows_of::<B, 16>(keys, rows, length, coding),
        _ => sort_rows_of::<B, 32>(keys, rows, length, coding),
    }
}

/// The sort of rows of up to `N` keys.
#[inline(always)]
#[track_caller]
fn sort_rows_of<B: Bits, const N: usize>(keys: GlobalMut<B>, rows: Shared<B>, length: u32, coding: Coding<B>) {
    let (thread, keys_of_thread) = (thread::thread_idx_x(), (MAX_ROW / N) as u32 * length);
    // Sums of a part that differs between threads and a part that the compiler knows.
    let strided = |i: usize| thread as usize + i * ROW_THREADS;
    let strided_slot = |i: usize| slot(thread) + i as u32 * slot(ROW_THREADS as u32);
    let is_there = |i: usize| (i as u32) < keys_of_thread;
    // The greatest key where there is none.
    let mut held = [coding.decode(B::MAX); MAX_ROW];
    for i in 0..MAX_ROW {
        if is_there(i) && strided(i) < keys.len() {
            held[i] = keys.get(strided(i));
        }
    }
    coding.encode_all(&mut held);
    for i in 0..MAX_ROW {
        if is_there(i) {
            rows.set(strided_slot(i), held[i]);
        }
    }
    thread::sync_threads();
    // Not unrolled: the block size is a variable.
    let (block, mut r) = (thread::block_dim_x(), thread);
    while r < block * (MAX_ROW / N) as u32 {
        let first = r * length;
        let mut row = [B::MAX; N];
        for i in 0..N as u32 {
            if i < length {
                row[i as usize] = rows.get(slot(first + i));
            }
        }
        sort_registers(&mut row);
        for i in 0..N as u32 {
            if i < length {
                rows.set(slot(first + i), row[i as usize]);
            }
        }
        r += block;
    }
    thread::sync_threads();
    for i in 0..MAX_ROW {
        if is_there(i) && strided(i) < keys.len() {
            keys.set(strided(i), coding.decode(rows.get(strided_slot(i))));
        }
    }
}
