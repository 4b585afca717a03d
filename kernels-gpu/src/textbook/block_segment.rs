//! A block's segment of a merge: the part of C that it writes, and the parts of A and B that it reads (figure 12.11).

use crate::key::Bits;
use crate::keys::{Keys, KeysMut};
use crate::textbook::co_rank::{clamp_split, co_rank};
use cuda_std::prelude::*;

/// Bytes of dynamic shared memory, at its start, that [`block_segment`] uses.
pub const SPLITS_BYTES: u32 = 2 * size_of::<usize>() as u32;

/// The parts of A, B and C that belong to a block.
#[derive(Clone, Copy)]
pub struct Segment<B> {
    /// The keys of A to merge.
    pub a: Keys<B>,
    /// The keys of B to merge.
    pub b: Keys<B>,
    /// The destination, of `a.len() + b.len()` keys.
    pub c: KeysMut<B>,
}

/// Divides C evenly over the blocks of the grid and finds this block's segment.
///
/// Threads 0 and `block_dim - 1` each search for one end of the segment and publish it in shared memory. Every thread
/// of the block must make this call, which contains a barrier.
///
/// # Safety
/// The launch has at least [`SPLITS_BYTES`] of dynamic shared memory.
#[inline(always)]
pub unsafe fn block_segment<B: Bits>(a: Keys<B>, b: Keys<B>, c: KeysMut<B>) -> Segment<B> {
    let total = a.len() + b.len();
    let keys_per_block = total.div_ceil(thread::grid_dim_x() as usize);
    let c_curr = (thread::block_idx_x() as usize * keys_per_block).min(total);
    let c_next = (c_curr + keys_per_block).min(total);

    // SAFETY: `SPLITS_BYTES` of the launch's dynamic shared memory are 2 words of 8 bytes. Word 0 is written by thread
    // 0 alone and word 1 by the last thread alone. The barrier separates these writes from the reads, and nothing else
    // uses the words.
    let splits = unsafe { Shared::<usize>::dynamic(0, 2) };
    if thread::thread_idx_x() == 0 {
        splits.set(0, co_rank(c_curr, a, b));
    }
    // In a block of one thread, the last thread is also the first.
    if thread::thread_idx_x() == thread::block_dim_x() - 1 {
        splits.set(1, co_rank(c_next, a, b));
    }
    thread::sync_threads();
    let a_curr = splits.get(0);
    let a_next = clamp_split(a_curr, splits.get(1), c_next - c_curr);
    let (b_curr, b_next) = (c_curr - a_curr, c_next - a_next);
    Segment {
        a: a.slice(a_curr, a_next - a_curr),
        b: b.slice(b_curr, b_next - b_curr),
        c: c.slice(c_curr, c_next - c_curr),
    }
}
