//! Batch merge: many merge problems of one length, each solved by one thread.

use super::blocks::for_each_block;
use super::merge_path::merge_block;
use super::merge_ragged::Problems;
use super::run::{Run, RunMut};
use super::vector;
use crate::Key;

/// The least number of output keys of a task.
const MIN_BLOCK: usize = 1 << 14;

/// Merges run `p` of `a`, which has `a_len` keys, with run `p` of `b`, which has `d - a_len`, into run `p` of `out`,
/// for every `p`.
pub(crate) fn merge<K: Key, V: Copy + Send + Sync>(
    a: Run<K, V>,
    b: Run<K, V>,
    out: RunMut<K, V>,
    d: usize,
    a_len: usize,
    threads: usize,
) {
    let b_len = d - a_len;
    let is_short = size_of::<V>() == 0 && d <= vector::most_merged::<K>();
    for_each_block(out, MIN_BLOCK.next_multiple_of(d), threads, |begin, mut out| {
        if is_short {
            let numbers = begin / d..(begin + out.keys.len()) / d;
            vector::merge_short(a.keys, b.keys, out.keys, numbers, Problems::OfLengths([a_len, b_len]));
            return;
        }
        for run in (0..out.keys.len()).step_by(d) {
            let p = (begin + run) / d;
            let (a, b) = (a.part(p * a_len..(p + 1) * a_len), b.part(p * b_len..(p + 1) * b_len));
            merge_block(a, b, out.part(run..run + d));
        }
    });
}
