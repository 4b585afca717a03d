//! Merge of two runs along the Merge Path: each thread merges a few blocks of one length, from both ends at once.
//!
//! A merge with two cursors spends its time waiting: the choice of one key decides where the next is read. Therefore a
//! block of keys without values is divided once more, in the middle. Both halves are merged from both ends, without
//! branches. This gives four independent chains of steps:
//!
//! ```text
//!   out ├──1──►      ◄──2──┼──3──►      ◄──4──┤
//! ```
//!
//! A block of key-value pairs is not divided, and is merged from both ends in two chains. With the addresses of the
//! values, four chains need more registers than a processor has. Values of any size move together with their keys.
//! Merging indices and gathering the values afterwards took longer for every size that was measured, from 1 to 256
//! bytes: a gather reads and writes again the values that the merge had in the cache.

use super::bidirectional::{BidirectionalMerge, MIN_STEPS};
use super::blocks::for_each_block;
#[cfg(target_arch = "x86_64")]
use super::merge_avx2;
use super::run::{Keys, Run, RunMut};
use super::split::part_ranges;
use crate::Key;
use kernels_gpu::textbook::co_rank::co_rank;

/// Blocks for each thread: more than one, so that other threads take over some from a thread that is delayed.
const BLOCKS_PER_THREAD: usize = 4;
/// The least number of keys that is worth a search for the middle.
const MIN_KEYS_TO_HALVE: usize = 128;

/// Merges `a` and `b` into `out`, which has the sum of their lengths.
pub(crate) fn merge<K: Key, V: Copy + Send + Sync>(a: Run<K, V>, b: Run<K, V>, out: RunMut<K, V>, threads: usize) {
    if threads == 1 {
        return merge_block(a, b, out);
    }
    let block = out.keys.len().div_ceil(threads * BLOCKS_PER_THREAD);
    for_each_block(out, block, threads, |begin, out| {
        let (a_part, b_part) = part_ranges(a.keys, b.keys, begin, begin + out.keys.len());
        merge_block(a.part(a_part), b.part(b_part), out);
    });
}

/// Merges `a` and `b` into `out`, which has the sum of their lengths, on one thread.
pub(super) fn merge_block<K: Key, V: Copy>(a: Run<K, V>, b: Run<K, V>, out: RunMut<K, V>) {
    #[cfg(target_arch = "x86_64")]
    if size_of::<V>() == 0 && merge_avx2::can_merge::<K>(out.keys.len()) {
        return merge_avx2::merge(a.keys, b.keys, out.keys);
    }
    if size_of::<V>() > 0 || out.keys.len() < MIN_KEYS_TO_HALVE {
        return BidirectionalMerge::new(a, b, out).finish();
    }
    let middle = out.keys.len() / 2;
    let i = co_rank(middle, Keys(a.keys), Keys(b.keys));
    let (m, n) = (a.keys.len(), b.keys.len());
    let (out_left, out_right) = out.split_at(middle);
    let mut left = BidirectionalMerge::new(a.part(0..i), b.part(0..middle - i), out_left);
    let mut right = BidirectionalMerge::new(a.part(i..m), b.part(middle - i..n), out_right);
    loop {
        let steps = left.steps_without_bounds().min(right.steps_without_bounds());
        if steps < MIN_STEPS {
            break;
        }
        for _ in 0..steps {
            // SAFETY: `steps` is at most `steps_without_bounds` of either half before the loop, so at least two keys of
            // each run of both halves remain at each step.
            unsafe {
                left.step();
                right.step();
            }
        }
    }
    left.finish();
    right.finish();
}
