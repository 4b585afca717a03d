//! Basic merge: cut the output into pieces of one size, find where each comes from, merge it straight from memory
//! (figure 12.9).
//!
//! ```text
//!   A ├────────┼─────┼───────────┤     B ├───┼──────┼────┤
//!              co-ranks                      co-ranks
//!   out ├───────────┼───────────┼───────────┤
//!         a thread    a thread    a thread
//! ```

use super::{for_each_piece_of_keys, run::Keys, split::parts};
use crate::Key;
use kernels_gpu::sequential::merge_sequential;

/// Keys in a piece: so many that finding them costs little beside merging them.
const PIECE: usize = 1 << 14;

/// Merges `a` and `b` into `out`, which has room for just these.
pub(super) fn merge<K: Key>(a: &[K], b: &[K], out: &mut [K], threads: usize) {
    for_each_piece_of_keys(out, PIECE, threads, |begin, out| {
        let (a, b) = parts(a, b, begin, begin + out.len());
        merge_sequential(Keys(a), Keys(b), |k, key| out[k] = K::from_ordered(key));
    });
}
