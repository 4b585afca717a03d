//! Passes of a radix sort from the least significant digit to the most significant (LSD), on one thread.
//!
//! A pass builds the histogram of a digit. Its prefix sum gives the offset of each digit's keys, and a scatter moves
//! each key there, with its value.
//!
//! ```text
//!   from  ├ 2 0 1 2 0 1 1 ┤   count: 2 3 2
//!   to    ├ 0 0│1 1 1│2 2 ┤   keys with the same digit keep their order: a pass is stable
//! ```

use super::digit::{Counts, Digit};
use super::run::{Run, RunMut};
use crate::Key;

/// Sorts by the digit `last` and the `PASSES - 1` digits before it, each of log2 `RADIX` bits. The result is in
/// `scratch` if `to_scratch`, and otherwise in `run`. `PASSES` is a constant so that the compiler unrolls the loop that
/// counts.
pub(super) fn sort<K: Key, V: Copy, const RADIX: usize, const PASSES: usize>(
    run: RunMut<K, V>,
    scratch: RunMut<K, V>,
    to_scratch: bool,
    last: Digit<RADIX>,
) {
    // One scan builds the histograms of all passes: a pass changes the order of the keys, not their digits.
    let mut counts = [[0; RADIX]; PASSES];
    last.count_with_those_before(run.keys, &mut counts);
    let keys = run.keys.len();
    let (mut from, mut to) = (run, scratch);
    let mut in_scratch = false;
    for (d, counts) in counts.iter_mut().enumerate() {
        let digit = last.before(d);
        // If all keys have the same digit, the pass would move nothing.
        if counts[digit.of(from.keys[0])] == keys {
            continue;
        }
        scatter(from.as_run(), &mut to, |key| digit.of(key), counts);
        (from, to) = (to, from);
        in_scratch = !in_scratch;
    }
    if in_scratch != to_scratch {
        to.copy_from(from.as_run());
    }
}

/// Moves each key of `from`, with its value, to the next slot of its bucket in `to`, which `bucket_of` returns.
/// `counts` is the histogram of the buckets, and becomes the ends of the buckets.
#[inline(always)]
pub(super) fn scatter<K: Key, V: Copy, const RADIX: usize>(
    from: Run<K, V>,
    to: &mut RunMut<K, V>,
    bucket_of: impl Fn(K) -> usize,
    counts: &mut Counts<RADIX>,
) {
    let mut sum = 0;
    for count in counts.iter_mut() {
        let begin = sum;
        sum += *count;
        *count = begin;
    }
    // The equal lengths let the compiler check the index of a key and of its value together.
    let from_values = &from.values[..from.keys.len()];
    let keys = &mut *to.keys;
    let values = &mut to.values[..keys.len()];
    for (i, key) in from.keys.iter().enumerate() {
        let next = &mut counts[bucket_of(*key)];
        let slot = *next;
        keys[slot] = *key;
        values[slot] = from_values[i];
        *next += 1;
    }
}
