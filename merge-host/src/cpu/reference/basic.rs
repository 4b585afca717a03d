//! Basic merge: divides the output into blocks of one length, finds the co-ranks of each block, and merges it directly
//! from memory with two cursors (figure 12.9).
//!
//! ```text
//!   A ├────────┼─────┼───────────┤     B ├───┼──────┼────┤
//!              co-ranks                      co-ranks
//!   out ├───────────┼───────────┼───────────┤
//!         a thread    a thread    a thread
//! ```

use super::BLOCK;
use crate::Key;
use crate::cpu::blocks::for_each_block_of_keys;
use crate::cpu::run::Keys;
use crate::cpu::split::parts;
use kernels_gpu::textbook::sequential::merge_sequential;

/// Merges `a` and `b` into `out`, which has the sum of their lengths.
pub(crate) fn merge<K: Key>(a: &[K], b: &[K], out: &mut [K], threads: usize) {
    for_each_block_of_keys(out, BLOCK, threads, |begin, out| {
        let (a, b) = parts(a, b, begin, begin + out.len());
        merge_sequential(Keys(a), Keys(b), |k, key| out[k] = K::from_ordered(key));
    });
}
