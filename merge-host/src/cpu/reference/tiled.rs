//! Tiled merge: a block goes tile by tile through a small buffer (figures 12.11 to 12.13).
//!
//! ```text
//!   A ├▓▓▓▓▓▓▓▓▓▓▓▓┤·······   ─ load ─►  a_tile ├▓▓▓▓▓▓▓┼────┤   ▓ consumed, ─ loaded in vain
//!   B ├▓▓▓▓▓▓▓▓▓▓▓▓┤·······   ─ load ─►  b_tile ├▓▓▓▓┼───────┤
//!   out ├▓▓▓▓▓▓▓▓▓▓▓▓┤······  ◄─ merge ─  TILE keys
//! ```
//!
//! The keys of an output tile may all come from A, or all from B. So a tile of each run is loaded, and half of the
//! loaded keys are loaded again for the next tile.

use super::{BLOCK, TILE};
use crate::Key;
use crate::cpu::blocks::for_each_block_of_keys;
use crate::cpu::run::Keys;
use crate::cpu::split::parts;
use kernels_gpu::textbook::co_rank::co_rank;
use kernels_gpu::textbook::sequential::merge_sequential;

/// Merges `a` and `b` into `out`, which has the sum of their lengths.
pub(crate) fn merge<K: Key>(a: &[K], b: &[K], out: &mut [K], threads: usize) {
    for_each_block_of_keys(out, BLOCK, threads, |begin, out| {
        let (mut a, mut b) = parts(a, b, begin, begin + out.len());
        let (mut a_buffer, mut b_buffer) = ([K::zeroed(); TILE], [K::zeroed(); TILE]);
        for out in out.chunks_mut(TILE) {
            let a_tile = load(&mut a_buffer, a);
            let b_tile = load(&mut b_buffer, b);
            // The tiles hold the next `out.len()` keys: a tile that is shorter holds the rest of its run.
            let i = co_rank(out.len(), Keys(a_tile), Keys(b_tile));
            let j = out.len() - i;
            merge_sequential(Keys(&a_tile[..i]), Keys(&b_tile[..j]), |k, key| out[k] = K::from_ordered(key));
            (a, b) = (&a[i..], &b[j..]);
        }
    });
}

/// Copies the next tile of `keys`, or all that are left, to `buffer`.
fn load<'a, K: Key>(buffer: &'a mut [K; TILE], keys: &[K]) -> &'a [K] {
    let length = keys.len().min(TILE);
    buffer[..length].copy_from_slice(&keys[..length]);
    &buffer[..length]
}
