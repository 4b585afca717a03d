//! Ragged batch merge: many pairs of runs of any lengths.

use super::{merge_pairs::merge_piece as merge_pairs_piece, merge_path::merge_piece};
use crate::Key;

/// Merges run `p` of `a` with run `p` of `b` into run `p` of `out`.
pub(super) fn merge<K: Key>(a: (&[K], &[usize]), b: (&[K], &[usize]), out: &mut [K], _threads: usize) {
    for (i, j) in a.1.windows(2).zip(b.1.windows(2)) {
        merge_piece(&a.0[i[0]..i[1]], &b.0[j[0]..j[1]], &mut out[i[0] + j[0]..i[1] + j[1]]);
    }
}

/// [`merge`] of keys with values.
pub(super) fn merge_pairs<K: Key, V: Copy>(
    a: (&[K], &[V], &[usize]),
    b: (&[K], &[V], &[usize]),
    out: (&mut [K], &mut [V]),
    _threads: usize,
) {
    for (i, j) in a.2.windows(2).zip(b.2.windows(2)) {
        let (a, b) = ((&a.0[i[0]..i[1]], &a.1[i[0]..i[1]]), (&b.0[j[0]..j[1]], &b.1[j[0]..j[1]]));
        let to = i[0] + j[0]..i[1] + j[1];
        merge_pairs_piece(a, b, (&mut out.0[to.clone()], &mut out.1[to]));
    }
}
