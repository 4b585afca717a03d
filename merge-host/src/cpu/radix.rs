//! Sort of one run on one thread, digit by digit.
//!
//! A pass counts how often each digit occurs, which says where the keys of each digit go, and then moves each key there,
//! with its value.
//!
//! ```text
//!   from  ├ 2 0 1 2 0 1 1 ┤   count: 2 3 2
//!   to    ├ 0 0│1 1 1│2 2 ┤   keys of one digit stay in order: a pass is stable
//! ```
//!
//! Keys that differ in few digits are sorted by passes from the last digit to the first. Each goes over all keys, so they
//! are to fit the cache. Others are divided by the first digit that differs, and the keys of each digit are sorted on
//! their own. Once these are few, a comparison sort does the rest.

use super::digit::{self, Counts, Digit};
use super::leaf::Leaf;
use super::run::{Run, RunMut};
use crate::Key;
use crate::sorted::first_unsorted_in_block;

/// The most digits that are sorted by from the last one on.
const FEW_DIGITS: usize = 4;
/// Keys that make it worth going through all values of a few digits.
const WORTH_DIGITS: usize = 384;
/// Bytes of keys and values that fit a core's caches along with the memory that they are moved to.
const CACHED: usize = 1 << 21;

/// Sorts `run`. It ends in `scratch` if `to_scratch`, which is as long, and else where it is; what the other holds then
/// is unspecified.
pub(super) fn sort<K: Key, V: Copy>(run: RunMut<K, V>, mut scratch: RunMut<K, V>, to_scratch: bool) {
    if first_unsorted_in_block(run.keys).is_none() {
        if to_scratch {
            scratch.copy_from(run.as_run());
        }
    } else {
        sort_by_digits(run, scratch, to_scratch, &mut Leaf::new());
    }
}

fn sort_by_digits<K: Key, V: Copy>(run: RunMut<K, V>, mut scratch: RunMut<K, V>, to_scratch: bool, leaf: &mut Leaf<K>) {
    let Some(first) = run.keys.first() else { return };
    let differing = digit::differing(*first, &*run.keys);
    let (keys, digits) = (run.keys.len(), digit::digits(differing));
    if digits == 0 {
        if to_scratch {
            scratch.copy_from(run.as_run());
        }
    } else if digits <= FEW_DIGITS && keys >= WORTH_DIGITS && keys * (size_of::<K>() + size_of::<V>()) <= CACHED {
        last_digit_first(run, scratch, to_scratch, digits);
    } else if Leaf::<K>::can_sort::<V>(keys, differing) {
        leaf.sort(run, scratch, to_scratch);
    } else {
        first_digit_first(run, scratch, to_scratch, Digit::first(differing, keys), leaf);
    }
}

/// Sorts by the last `digits` digits.
fn last_digit_first<K: Key, V: Copy>(run: RunMut<K, V>, scratch: RunMut<K, V>, to_scratch: bool, digits: usize) {
    // One look at the keys counts for all passes: they change the order, not the digits.
    let mut counts = [[0; digit::VALUES]; FEW_DIGITS];
    for key in run.keys.iter() {
        // A loop of a known length, which the compiler unrolls.
        for (d, counts) in counts.iter_mut().enumerate() {
            if d < digits {
                counts[Digit::from_last(d).of(*key)] += 1;
            }
        }
    }
    let (mut from, mut to) = (run, scratch);
    let mut in_scratch = false;
    for (d, counts) in counts[..digits].iter().enumerate() {
        // Where all keys have the same digit, there is nothing to move.
        if counts.contains(&from.keys.len()) {
            continue;
        }
        distribute(from.as_run(), &mut to, Digit::from_last(d), counts);
        (from, to) = (to, from);
        in_scratch = !in_scratch;
    }
    if in_scratch != to_scratch {
        to.copy_from(from.as_run());
    }
}

/// Divides the keys by `digit`, and sorts those of each.
fn first_digit_first<K: Key, V: Copy>(
    mut run: RunMut<K, V>,
    mut scratch: RunMut<K, V>,
    to_scratch: bool,
    digit: Digit,
    leaf: &mut Leaf<K>,
) {
    let mut counts = [0; digit::VALUES];
    digit.count(run.keys, &mut counts);
    distribute(run.as_run(), &mut scratch, digit, &counts);
    for count in &counts[..digit.values()] {
        let (run_of_digit, scratch_of_digit);
        (run_of_digit, run) = run.split_at(*count);
        (scratch_of_digit, scratch) = scratch.split_at(*count);
        sort_by_digits(scratch_of_digit, run_of_digit, !to_scratch, leaf);
    }
}

/// Moves each key to the place that its digit and the keys before it give it.
fn distribute<K: Key, V: Copy>(from: Run<K, V>, to: &mut RunMut<K, V>, digit: Digit, counts: &Counts) {
    let mut next = [0; digit::VALUES];
    let mut sum = 0;
    for (next, count) in next.iter_mut().zip(&counts[..digit.values()]) {
        *next = sum;
        sum += count;
    }
    for (key, value) in from.keys.iter().zip(from.values) {
        let place = &mut next[digit.of(*key)];
        to.keys[*place] = *key;
        to.values[*place] = *value;
        *place += 1;
    }
}
