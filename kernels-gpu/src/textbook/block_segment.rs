//! A block's segment of a merge: which part of C it writes, and which parts of A and B that takes (figure 12.11).

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
    /// Where they go; as long as the two together.
    pub c: KeysMut<B>,
}

/// Divides C evenly over the blocks of the grid and finds this block's segment.
///
/// Two threads search, one for each end, and tell the others through shared memory. All threads of the block have to
/// call this.
///
/// # Safety
/// The launch has at least [`SPLITS_BYTES`] of dynamic shared memory.
#[inline(always)]
pub unsafe fn block_segment<B: Bits>(a: Keys<B>, b: Keys<B>, c: KeysMut<B>) -> Segment<B> {
    let total = a.len() + b.len();
    let keys_per_block = total.div_ceil(thread::grid_dim_x() as usize);
    let c_curr = (thread::block_idx_x() as usize * keys_per_block).min(total);
    let c_next = (c_curr + keys_per_block).min(total);

    // SAFETY: 2 words of 8 bytes are the `SPLITS_BYTES` of the launch. Words 0 and 1 are each written by one thread,
    // before the barrier, and read only after it; the region is not used for anything else.
    let splits = unsafe { Shared::<usize>::dynamic(0, 2) };
    if thread::thread_idx_x() == 0 {
        splits.set(0, co_rank(c_curr, a, b));
    }
    // The last thread, which in a block of one thread is the first again.
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
