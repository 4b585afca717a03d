//! Batch merge: many pairs of short runs, each merged by one thread.

use super::for_each_piece;
use super::merge_path::merge_piece;
use super::run::{Run, RunMut};
use crate::Key;

/// Keys of output that a thread takes at a time, at least.
const PIECE: usize = 1 << 14;

/// Merges run `p` of `a`, which has `a_len` keys, with run `p` of `b`, which has `d - a_len`, into run `p` of `out`.
pub(super) fn merge<K: Key, V: Copy + Send + Sync>(
    a: Run<K, V>,
    b: Run<K, V>,
    out: RunMut<K, V>,
    d: usize,
    a_len: usize,
    threads: usize,
) {
    let b_len = d - a_len;
    for_each_piece(out, PIECE.next_multiple_of(d), threads, |begin, mut out| {
        for run in (0..out.keys.len()).step_by(d) {
            let p = (begin + run) / d;
            let (a, b) = (a.part(p * a_len..(p + 1) * a_len), b.part(p * b_len..(p + 1) * b_len));
            merge_piece(a, b, out.part(run..run + d));
        }
    });
}
