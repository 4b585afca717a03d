//! Circular-buffer merge: a tiled merge where a round replaces only the keys that the last round consumed (figures
//! 12.15 to 12.20).
//!
//! ```text
//!   A_S before   │ a4 a5 a6 a7 a0 a1 a2 a3 │      start = 4: the sequence is a0 … a7, wrapped around the end
//!                              ↑ start
//!   a round consumes a0 a1 a2; three new keys take their slots
//!   A_S after    │ a4 a5 a6 a7 a8 a9 aA a3 │
//!                                       ↑ start
//! ```
//!
//! Every key is loaded once. In return, each access must wrap its index at the end of the buffer.

use crate::key::{Bits, Coding};
use crate::keys::{Keys, KeysMut};
use crate::sequence::Sequence;
use crate::textbook::block_segment::{SPLITS_BYTES, block_segment};
use crate::textbook::co_rank::{clamp_split, co_rank};
use crate::textbook::merge_tiled;
use crate::textbook::sequential::merge_sequential;
use cuda_std::prelude::*;

/// Bytes of dynamic shared memory for two buffers of `tile_size` keys each, equal to [`merge_tiled::shared_bytes`].
pub const fn shared_bytes<B>(tile_size: u32) -> u32 {
    merge_tiled::shared_bytes::<B>(tile_size)
}

/// Kernel: merges `a` and `b` into `c` in the order of `coding`, through circular buffers of `tile_size` keys. The grid
/// and the blocks may have any size.
///
/// # Safety
/// `a` and `b` are ascending arrays of `m` and `n` keys and `c` has capacity for `m + n` keys, in global memory; `c`
/// does not overlap `a` or `b`. `tile_size` is at least 1, and the launch has [`shared_bytes`] of dynamic shared
/// memory.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn merge_circular<B: Bits>(
    a: *const B,
    m: usize,
    b: *const B,
    n: usize,
    c: *mut B,
    tile_size: u32,
    coding: Coding<B>,
) {
    // SAFETY: the caller passes `m` keys at `a`, `n` at `b` and room for `m + n` at `c`. `co_rank` reads indices below
    // `m` and `n`; all other accesses are inside this block's segments, and the segments of C of two blocks are
    // disjoint.
    let (a, b, c) = unsafe { (Keys::new(a, m, coding), Keys::new(b, n, coding), KeysMut::new(c, m + n, coding)) };
    // SAFETY: `shared_bytes` is `SPLITS_BYTES + 2 * tile_bytes`, so that the launch has `SPLITS_BYTES` at offset 0. No
    // branch precedes the call, so every thread of the block reaches its barrier.
    let segment = unsafe { block_segment(a, b, c) };
    // SAFETY: `a_s` is bytes `SPLITS_BYTES .. SPLITS_BYTES + tile_bytes`, and `b_s` the next `tile_bytes`: both end
    // within `shared_bytes`, do not overlap the splits, and are aligned, since `SPLITS_BYTES` is 16. `wrap` maps an
    // index up to `tile_size` to a slot below `tile_size`, since `start < tile_size`. `refill` writes slots behind the
    // window only, each by one thread. In a round, the first barrier separates these writes from the reads, and the
    // second separates the reads from the next round's writes.
    let (a_s, b_s) = unsafe {
        let tile_bytes = tile_size * size_of::<B>() as u32;
        (Shared::<B>::dynamic(SPLITS_BYTES, tile_size), Shared::<B>::dynamic(SPLITS_BYTES + tile_bytes, tile_size))
    };
    let mut a_side =
        Side { from: segment.a, buffer: a_s, loaded: 0, window: Circular { buffer: a_s, start: 0, length: 0 } };
    let mut b_side =
        Side { from: segment.b, buffer: b_s, loaded: 0, window: Circular { buffer: b_s, start: 0, length: 0 } };
    let keys_per_thread = tile_size.div_ceil(thread::block_dim_x());

    let mut c_completed = 0;
    while c_completed < segment.c.len() {
        a_side.refill();
        b_side.refill();
        thread::sync_threads();

        let (a_s, b_s) = (a_side.window, b_side.window);
        let c_length = (segment.c.len() - c_completed).min(tile_size as usize) as u32;
        let c_curr = (thread::thread_idx_x() * keys_per_thread).min(c_length);
        let c_next = (c_curr + keys_per_thread).min(c_length);
        let a_curr = co_rank(c_curr, a_s, b_s);
        let a_next = clamp_split(a_curr, co_rank(c_next, a_s, b_s), c_next - c_curr);
        let (b_curr, b_next) = (c_curr - a_curr, c_next - a_next);
        merge_sequential(a_s.slice(a_curr, a_next - a_curr), b_s.slice(b_curr, b_next - b_curr), |k, key| {
            segment.c.set(c_completed + (c_curr + k) as usize, key)
        });

        let a_s_consumed = co_rank(c_length, a_s, b_s);
        a_side.consume(a_s_consumed);
        b_side.consume(c_length - a_s_consumed);
        c_completed += c_length as usize;
        thread::sync_threads();
    }
}

/// A sequence in a buffer that wraps around: key `i` is at `(start + i) mod buffer length` (figures 12.17, 12.19).
#[derive(Clone, Copy)]
struct Circular<B> {
    buffer: Shared<B>,
    /// Below the buffer's length.
    start: u32,
    /// At most the buffer's length.
    length: u32,
}

impl<B: Bits> Circular<B> {
    /// The slot of index `i`, which is at most the buffer's length: one subtraction wraps it, without a division.
    #[inline(always)]
    fn wrap(self, i: u32) -> u32 {
        let i = self.start + i;
        if i >= self.buffer.len() { i - self.buffer.len() } else { i }
    }

    /// The `length` keys from index `first`.
    #[inline(always)]
    fn slice(self, first: u32, length: u32) -> Self {
        Self { start: self.wrap(first), length, ..self }
    }
}

impl<B: Bits> Sequence for Circular<B> {
    type Index = u32;
    type Item = B;
    #[inline(always)]
    fn length(self) -> u32 {
        self.length
    }
    #[inline(always)]
    #[track_caller]
    fn at(self, i: u32) -> B {
        self.buffer.get(self.wrap(i))
    }
}

/// One input of the merge: its keys in global memory, and the window in shared memory.
struct Side<B: Bits> {
    from: Keys<B>,
    buffer: Shared<B>,
    /// Keys of `from` that have been loaded.
    loaded: usize,
    /// The loaded keys that have not been consumed.
    window: Circular<B>,
}

impl<B: Bits> Side<B> {
    /// Global to shared memory, by all threads of the block: loads keys behind the window until the buffer is full or
    /// the input ends.
    #[inline(always)]
    fn refill(&mut self) {
        let window = self.window;
        let capacity = self.buffer.len() - window.length;
        let count = (self.from.len() - self.loaded).min(capacity as usize) as u32;
        let mut i = thread::thread_idx_x();
        while i < count {
            self.buffer.set(window.wrap(window.length + i), self.from.get(self.loaded + i as usize));
            i += thread::block_dim_x();
        }
        self.loaded += count as usize;
        self.window.length += count;
    }

    /// Drops the first `count` keys of the window.
    #[inline(always)]
    fn consume(&mut self, count: u32) {
        self.window = self.window.slice(count, self.window.length - count);
    }
}
