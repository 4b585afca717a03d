//! Merge of keys with values.

use crate::Key;

/// Merges the pairs of `a` and `b` into `out`, which has room for just these.
pub(super) fn merge<K: Key, V: Copy>(a: (&[K], &[V]), b: (&[K], &[V]), out: (&mut [K], &mut [V]), _threads: usize) {
    merge_piece(a, b, out);
}

/// Merges pair `p` of runs for each `p`.
pub(super) fn batch<K: Key, V: Copy>(
    a: (&[K], &[V]),
    b: (&[K], &[V]),
    out: (&mut [K], &mut [V]),
    d: usize,
    a_len: usize,
    _threads: usize,
) {
    let b_len = d - a_len;
    for (p, out) in out.0.chunks_exact_mut(d).zip(out.1.chunks_exact_mut(d)).enumerate() {
        let (a_run, b_run) = (p * a_len..(p + 1) * a_len, p * b_len..(p + 1) * b_len);
        merge_piece((&a.0[a_run.clone()], &a.1[a_run]), (&b.0[b_run.clone()], &b.1[b_run]), out);
    }
}

/// Merges the pairs of `a` and `b` into `out` on one thread.
pub(super) fn merge_piece<K: Key, V: Copy>(a: (&[K], &[V]), b: (&[K], &[V]), out: (&mut [K], &mut [V])) {
    let (mut i, mut j) = (0, 0);
    for k in 0..out.0.len() {
        if i < a.0.len() && (j == b.0.len() || a.0[i].to_ordered() <= b.0[j].to_ordered()) {
            (out.0[k], out.1[k]) = (a.0[i], a.1[i]);
            i += 1;
        } else {
            (out.0[k], out.1[k]) = (b.0[j], b.1[j]);
            j += 1;
        }
    }
}
