//! Merge-path merge: as many pieces as the threads need, all of one size, each merged from both ends at once.
//!
//! A merge with two cursors spends its time waiting: which key comes next decides where the next one is read. So a
//! piece of keys is cut once more, in the middle, and both halves are merged from both ends, without branches. That
//! makes four chains of steps which do not wait for each other:
//!
//! ```text
//!   out ├──1──►      ◄──2──┼──3──►      ◄──4──┤
//! ```
//!
//! Keys with values are merged from both ends without the cut, in two chains: with the values' addresses, four chains
//! are more than a processor has registers for. Values of any size go along with their keys. To merge indices instead
//! and gather the values in the end took longer at every size that was tried, from 1 to 256 bytes, because a gather
//! reads and writes once more what the merge has just had in hand.

use super::both_ends::{BothEnds, LEAST_STEPS};
use super::for_each_piece;
use super::run::{Keys, Run, RunMut};
use super::split::part_ranges;
#[cfg(target_arch = "x86_64")]
use super::wide;
use crate::Key;
use kernels_gpu::co_rank::co_rank;

/// Pieces for each thread: more than one, so that a thread that is held up leaves some to the others.
const PIECES_A_THREAD: usize = 4;
/// Keys that make it worth finding the middle.
const LEAST_TO_CUT: usize = 128;

/// Merges `a` and `b` into `out`, which has room for just these.
pub(super) fn merge<K: Key, V: Copy + Send + Sync>(a: Run<K, V>, b: Run<K, V>, out: RunMut<K, V>, threads: usize) {
    if threads == 1 {
        return merge_piece(a, b, out);
    }
    let piece = out.keys.len().div_ceil(threads * PIECES_A_THREAD);
    for_each_piece(out, piece, threads, |begin, out| {
        let (a_part, b_part) = part_ranges(a.keys, b.keys, begin, begin + out.keys.len());
        merge_piece(a.part(a_part), b.part(b_part), out);
    });
}

/// Merges `a` and `b` into `out` on one thread.
pub(super) fn merge_piece<K: Key, V: Copy>(a: Run<K, V>, b: Run<K, V>, out: RunMut<K, V>) {
    #[cfg(target_arch = "x86_64")]
    if size_of::<V>() == 0 && wide::can_merge::<K>(out.keys.len()) {
        return wide::merge(a.keys, b.keys, out.keys);
    }
    if size_of::<V>() > 0 || out.keys.len() < LEAST_TO_CUT {
        return BothEnds::new(a, b, out).finish();
    }
    let middle = out.keys.len() / 2;
    let i = co_rank(middle, Keys(a.keys), Keys(b.keys));
    let (m, n) = (a.keys.len(), b.keys.len());
    let (out_left, out_right) = out.split_at(middle);
    let mut left = BothEnds::new(a.part(0..i), b.part(0..middle - i), out_left);
    let mut right = BothEnds::new(a.part(i..m), b.part(middle - i..n), out_right);
    loop {
        let steps = left.steps_without_bounds().min(right.steps_without_bounds());
        if steps < LEAST_STEPS {
            break;
        }
        for _ in 0..steps {
            // SAFETY: both have that many steps.
            unsafe {
                left.step();
                right.step();
            }
        }
    }
    left.finish();
    right.finish();
}
