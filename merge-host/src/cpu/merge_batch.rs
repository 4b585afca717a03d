//! Batch merge: many pairs of short runs, each merged by one thread.

use super::{for_each_piece, merge_path::merge_piece};
use crate::Key;

/// Keys of output that a thread takes at a time, at least.
const PIECE: usize = 1 << 14;

/// Merges run `p` of `a`, which has `a_len` keys, with run `p` of `b`, which has `d - a_len`, into run `p` of `out`.
pub(super) fn merge<K: Key>(a: &[K], b: &[K], out: &mut [K], d: usize, a_len: usize, threads: usize) {
    let b_len = d - a_len;
    for_each_piece(out, PIECE.next_multiple_of(d), threads, |begin, out| {
        let first = begin / d;
        for (p, out) in (first..).zip(out.chunks_exact_mut(d)) {
            merge_piece(&a[p * a_len..][..a_len], &b[p * b_len..][..b_len], out);
        }
    });
}
