//! Tiled merge: a piece passes tile by tile through a small buffer (figures 12.11 to 12.13).
//!
//! ```text
//!   A ├▓▓▓▓▓▓▓▓▓▓▓▓┤·······   ─ load ─►  a_tile ├▓▓▓▓▓▓▓┼────┤   ▓ consumed, - loaded in vain
//!   B ├▓▓▓▓▓▓▓▓▓▓▓▓┤·······   ─ load ─►  b_tile ├▓▓▓▓┼───────┤
//!   out ├▓▓▓▓▓▓▓▓▓▓▓▓┤······  ◄─ merge ─  TILE keys
//! ```
//!
//! A tile of output can come from A alone or from B alone, so a tile of both is loaded, and half of what is loaded is
//! loaded again for the next one. What a GPU gains by this, loads of neighbouring addresses from slow memory, a CPU's
//! caches do anyway: this is the twin to compare with.

use super::{for_each_piece_of_keys, run::Keys, split::parts};
use crate::Key;
use kernels_gpu::co_rank::co_rank;
use kernels_gpu::sequential::merge_sequential;

/// Keys that a thread merges.
const PIECE: usize = 1 << 14;
/// Keys in a tile. Two tiles of 8-byte keys are half of a first-level cache.
const TILE: usize = 1 << 10;

/// Merges `a` and `b` into `out`, which has room for just these.
pub(super) fn merge<K: Key>(a: &[K], b: &[K], out: &mut [K], threads: usize) {
    for_each_piece_of_keys(out, PIECE, threads, |begin, out| {
        let (mut a, mut b) = parts(a, b, begin, begin + out.len());
        let (mut a_buffer, mut b_buffer) = ([K::zeroed(); TILE], [K::zeroed(); TILE]);
        for out in out.chunks_mut(TILE) {
            let a_tile = load(&mut a_buffer, a);
            let b_tile = load(&mut b_buffer, b);
            // The tiles hold the next out.len() keys: where a tile is shorter than that, it is all that is left.
            let i = co_rank(out.len(), Keys(a_tile), Keys(b_tile));
            let j = out.len() - i;
            merge_sequential(Keys(&a_tile[..i]), Keys(&b_tile[..j]), |k, key| out[k] = K::from_ordered(key));
            (a, b) = (&a[i..], &b[j..]);
        }
    });
}

/// Copies the next tile, or what is left, to the buffer.
fn load<'a, K: Key>(buffer: &'a mut [K; TILE], keys: &[K]) -> &'a [K] {
    let length = keys.len().min(TILE);
    buffer[..length].copy_from_slice(&keys[..length]);
    &buffer[..length]
}
