//! Sort of one run on one thread, by digits of 8 bits.
//!
//! A pass counts how often each digit occurs, which says where the keys of each digit go, and then moves each key there,
//! with its value.
//!
//! ```text
//!   from  ├ 2 0 1 2 0 1 1 ┤   count: 2 3 2
//!   to    ├ 0 0│1 1 1│2 2 ┤   keys of one digit stay in order: a pass is stable
//! ```
//!
//! Passes from the last digit to the first sort keys of up to 4 bytes, a pass for each byte. Keys of 8 bytes would take
//! eight, and those of 16 twice as many, so these start with the first digit that differs, and once there are few keys
//! of one digit, a comparison sort does the rest.

use super::leaf::Leaf;
use super::run::{Run, RunMut};
use crate::Key;
use crate::key::sealed::Bits;
use crate::sorted::first_unsorted_in_block;
use bytemuck::Zeroable;

/// Bits of a digit.
const DIGIT_BITS: u32 = 8;
/// How many values a digit has.
const DIGITS: usize = 1 << DIGIT_BITS;
/// The longest keys, in digits, that are sorted from the last digit on.
const FEW_DIGITS: usize = 4;

/// How often each digit occurs.
type Counts = [usize; DIGITS];

/// Sorts `run`. It ends in `scratch` if `to_scratch`, which is as long, and else where it is; what the other holds then
/// is unspecified.
pub(super) fn sort<K: Key, V: Copy>(run: RunMut<K, V>, mut scratch: RunMut<K, V>, to_scratch: bool) {
    if first_unsorted_in_block(run.keys).is_none() {
        if to_scratch {
            scratch.copy_from(run.as_run());
        }
    } else if size_of::<K>() <= FEW_DIGITS {
        last_digit_first(run, scratch, to_scratch);
    } else {
        first_digit_first(run, scratch, to_scratch, &mut Leaf::new());
    }
}

fn last_digit_first<K: Key, V: Copy>(run: RunMut<K, V>, scratch: RunMut<K, V>, to_scratch: bool) {
    // One look at the keys counts for all passes: they change the order, not the digits.
    let mut counts = [[0; DIGITS]; FEW_DIGITS];
    let counts = &mut counts[..size_of::<K>()];
    for key in run.keys.iter() {
        for (d, counts) in counts.iter_mut().enumerate() {
            counts[digit(*key, DIGIT_BITS * d as u32)] += 1;
        }
    }
    let (mut from, mut to) = (run, scratch);
    let mut in_scratch = false;
    for (d, counts) in counts.iter().enumerate() {
        // Where all keys have the same digit, there is nothing to move.
        if counts.contains(&from.keys.len()) {
            continue;
        }
        distribute(from.as_run(), &mut to, counts, DIGIT_BITS * d as u32);
        (from, to) = (to, from);
        in_scratch = !in_scratch;
    }
    if in_scratch != to_scratch {
        to.copy_from(from.as_run());
    }
}

fn first_digit_first<K: Key, V: Copy>(
    run: RunMut<K, V>,
    mut scratch: RunMut<K, V>,
    to_scratch: bool,
    leaf: &mut Leaf<K>,
) {
    let differing = match &*run.keys {
        [] => K::Bits::zeroed(),
        [first, rest @ ..] => {
            let first = first.to_ordered();
            rest.iter().fold(K::Bits::zeroed(), |all, key| all | (key.to_ordered() ^ first))
        }
    };
    if differing == K::Bits::zeroed() {
        if to_scratch {
            scratch.copy_from(run.as_run());
        }
        return;
    }
    if Leaf::<K>::can_sort::<V>(run.keys.len(), differing) {
        return leaf.sort(run, scratch, to_scratch);
    }
    // The first bit that differs is the first of the digit, so each level of the recursion does away with 8 bits.
    let shift = (K::Bits::COUNT - differing.leading_zeros()).saturating_sub(DIGIT_BITS);
    let mut counts = [0; DIGITS];
    for key in run.keys.iter() {
        counts[digit(*key, shift)] += 1;
    }
    distribute(run.as_run(), &mut scratch, &counts, shift);
    let (mut run, mut scratch) = (run, scratch);
    for count in counts {
        let (run_of_digit, scratch_of_digit);
        (run_of_digit, run) = run.split_at(count);
        (scratch_of_digit, scratch) = scratch.split_at(count);
        first_digit_first(scratch_of_digit, run_of_digit, !to_scratch, leaf);
    }
}

/// Moves each key to the place that its digit and the keys before it give it.
fn distribute<K: Key, V: Copy>(from: Run<K, V>, to: &mut RunMut<K, V>, counts: &Counts, shift: u32) {
    let mut next = [0; DIGITS];
    let mut sum = 0;
    for (next, count) in next.iter_mut().zip(counts) {
        *next = sum;
        sum += count;
    }
    for (key, value) in from.keys.iter().zip(from.values) {
        let place = &mut next[digit(*key, shift)];
        to.keys[*place] = *key;
        to.values[*place] = *value;
        *place += 1;
    }
}

/// The digit of a key that begins at bit `shift`.
#[inline(always)]
fn digit<K: Key>(key: K, shift: u32) -> usize {
    (key.to_ordered() >> shift).low() % DIGITS
}
