//! Tiled merge: a block stages its inputs in shared memory, a tile of each at a time (figures 12.10 to 12.13).
//!
//! ```text
//!   global    A ├───────▒▒▒▒▒▒▒▒────────┤     B ├─────▒▒▒▒▒▒▒▒──────────┤
//!                       │ up to tile_size             │ up to tile_size
//!   shared    A_S ├▒▒▒▒▒▒▒▒┤                  B_S ├▒▒▒▒▒▒▒▒┤
//!                        └────────────┬──────────────┘
//!   global    C ├──────────────────▒▒▒▒▒▒▒▒───────────┤     tile_size keys a round
//! ```
//!
//! The tile of A and the tile of B together always hold the next `tile_size` keys of C, whichever of the two they come
//! from. So a round uses half of what it loaded, and the next round loads the other half again: the circular buffer of
//! `merge_circular` saves that.

use crate::key::{Bits, Coding};
use crate::keys::{Keys, KeysMut};
use crate::textbook::block_segment::{SPLITS_BYTES, block_segment};
use crate::textbook::co_rank::{clamp_split, co_rank};
use crate::textbook::sequential::merge_sequential;
use cuda_std::prelude::*;

/// Bytes of dynamic shared memory for tiles of `tile_size` keys.
pub const fn shared_bytes<B>(tile_size: u32) -> u32 {
    SPLITS_BYTES + 2 * tile_size * size_of::<B>() as u32
}

/// Kernel: merges `a` and `b`, as `coding` orders their keys, into `c`, in tiles of `tile_size` keys. Any grid and block size will do.
///
/// # Safety
/// `a` and `b` are ascending arrays of `m` and `n` keys and `c` has capacity for `m + n` keys, in global memory; `c` overlaps
/// neither of them.
/// `tile_size` is not 0, and the launch has [`shared_bytes`] of dynamic shared memory.
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
    // SAFETY: `a`, `b` and `c` have `m`, `n` and `m + n` elements, as the caller promises. `co_rank` reads indices
    // below `m` and `n`; everything else is in this block's segments, and those of C of two blocks do not overlap.
    let (a, b, c) = unsafe { (Keys::new(a, m, coding), Keys::new(b, n, coding), KeysMut::new(c, m + n, coding)) };
    // SAFETY: the first `SPLITS_BYTES` of dynamic shared memory are a part of the `shared_bytes` of the launch; all
    // threads of the block are here.
    let segment = unsafe { block_segment(a, b, c) };
    // SAFETY: `a_s` is bytes `SPLITS_BYTES ..` and `b_s` the `tile_bytes` after it, together
    // `SPLITS_BYTES + 2 * tile_bytes`, which is what `shared_bytes` says; neither overlaps the splits, and both are
    // aligned, as `SPLITS_BYTES` is 16. `load_tile` writes slots `i < length <= tile_size`, one thread each. One
    // barrier of a round comes between these writes and the reads, the other between the reads and the next round's
    // writes.
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

        // This round writes a tile of C, or what is left of it. Where a thread's share begins beyond that, it has none.
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

/// Global to shared, all threads together: the keys of `from` that follow the first `consumed`, as many as fit.
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
