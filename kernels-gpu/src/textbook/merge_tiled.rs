//! Tiled merge: a block stages its inputs in shared memory, one tile of each at a time (figures 12.10 to 12.13).
//!
//! ```text
//!   global    A ├───────▒▒▒▒▒▒▒▒────────┤     B ├─────▒▒▒▒▒▒▒▒──────────┤
//!                       │ up to tile_size             │ up to tile_size
//!   shared    A_S ├▒▒▒▒▒▒▒▒┤                  B_S ├▒▒▒▒▒▒▒▒┤
//!                        └────────────┬──────────────┘
//!   global    C ├──────────────────▒▒▒▒▒▒▒▒───────────┤     tile_size keys per round
//! ```
//!
//! The next `tile_size` keys of C always come from the tile of A and the tile of B, in any proportion. A round
//! therefore consumes half of the keys that it loads, and the next round loads the other half again. `merge_circular`
//! avoids the second load.

use crate::key::{Bits, Coding};
use crate::keys::{Keys, KeysMut};
use crate::textbook::block_segment::{SPLITS_BYTES, block_segment};
use crate::textbook::co_rank::{clamp_split, co_rank};
use crate::textbook::sequential::merge_sequential;
use cuda_std::prelude::*;

/// Bytes of dynamic shared memory for two tiles of `tile_size` keys each.
pub const fn shared_bytes<B>(tile_size: u32) -> u32 {
    SPLITS_BYTES + 2 * tile_size * size_of::<B>() as u32
}

/// Kernel: merges `a` and `b` into `c` in the order of `coding`, in tiles of `tile_size` keys. The grid and the blocks
/// may have any size.
///
/// # Safety
/// `a` and `b` are ascending arrays of `m` and `n` keys and `c` has capacity for `m + n` keys, in global memory; `c`
/// does not overlap `a` or `b`. `tile_size` is at least 1, and the launch has [`shared_bytes`] of dynamic shared
/// memory.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn merge_tiled<B: Bits>(
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
    // within `shared_bytes`, do not overlap the splits, and are aligned, since `SPLITS_BYTES` is 16. `load_tile` writes
    // slots `i < length <= tile_size`, each by one thread. In a round, the first barrier separates these writes from
    // the reads, and the second separates the reads from the next round's writes.
    let (a_s, b_s) = unsafe {
        let tile_bytes = tile_size * size_of::<B>() as u32;
        (Shared::<B>::dynamic(SPLITS_BYTES, tile_size), Shared::<B>::dynamic(SPLITS_BYTES + tile_bytes, tile_size))
    };
    let keys_per_thread = tile_size.div_ceil(thread::block_dim_x());

    let (mut a_consumed, mut c_completed) = (0, 0);
    while c_completed < segment.c.len() {
        let b_consumed = c_completed - a_consumed;
        let a_tile = load_tile(segment.a, a_consumed, a_s);
        let b_tile = load_tile(segment.b, b_consumed, b_s);
        thread::sync_threads();

        // The round writes one tile of C, or the rest of it. The share of a thread beyond `c_length` is empty.
        let c_length = (segment.c.len() - c_completed).min(tile_size as usize) as u32;
        let c_curr = (thread::thread_idx_x() * keys_per_thread).min(c_length);
        let c_next = (c_curr + keys_per_thread).min(c_length);
        let a_curr = co_rank(c_curr, a_tile, b_tile);
        let a_next = clamp_split(a_curr, co_rank(c_next, a_tile, b_tile), c_next - c_curr);
        let (b_curr, b_next) = (c_curr - a_curr, c_next - a_next);
        merge_sequential(a_tile.slice(a_curr, a_next - a_curr), b_tile.slice(b_curr, b_next - b_curr), |k, key| {
            segment.c.set(c_completed + (c_curr + k) as usize, key)
        });

        a_consumed += co_rank(c_length, a_tile, b_tile) as usize;
        c_completed += c_length as usize;
        thread::sync_threads();
    }
}

/// Global to shared memory, by all threads of the block: skips `consumed` keys of `from` and fills `tile` with the next
/// ones.
#[inline(always)]
fn load_tile<B: Bits>(from: Keys<B>, consumed: usize, tile: Shared<B>) -> Shared<B> {
    let length = (from.len() - consumed).min(tile.len() as usize) as u32;
    let mut i = thread::thread_idx_x();
    while i < length {
        tile.set(i, from.get(consumed + i as usize));
        i += thread::block_dim_x();
    }
    tile.slice(0, length)
}
