//! Sort of one run on one thread, by digits of 8 bits.
//!
//! A pass counts how often each digit occurs, which says where the keys of each digit go, and then moves each key there.
//!
//! ```text
//!   from  ├ 2 0 1 2 0 1 1 ┤   count: 2 3 2
//!   to    ├ 0 0│1 1 1│2 2 ┤   keys of one digit stay in order: a pass is stable
//! ```
//!
//! Four passes from the last digit to the first sort keys of 4 bytes. Keys of 8 bytes would take eight, so these start
//! with the first digit that differs, and once there are few keys of one digit, a comparison sort does the rest.

use crate::Key;
use crate::sorted::first_unsorted_in_block;
use kernels_gpu::key::Bits;

/// How many values a digit has.
const DIGITS: usize = 256;
/// Keys that are faster to sort by comparisons than to distribute once more.
const LEAF: usize = 1 << 12;

/// How often each digit occurs.
type Counts = [usize; DIGITS];

/// Sorts `keys`. They end in `scratch` if `to_scratch`, which is as long, and else in `keys`; what the other holds then
/// is unspecified.
pub(super) fn sort<K: Key>(keys: &mut [K], scratch: &mut [K], to_scratch: bool) {
    if first_unsorted_in_block(keys).is_none() {
        if to_scratch {
            scratch.copy_from_slice(keys);
        }
    } else if size_of::<K>() == 4 {
        last_digit_first(keys, scratch, to_scratch);
    } else {
        first_digit_first(keys, scratch, to_scratch, &mut [K::Bits::MIN; LEAF]);
    }
}

/// Sorts keys by comparisons. `buffer` is room for as many, at least.
///
/// The ordered bits are made once, and not again at each comparison.
pub(super) fn sort_leaf<K: Key>(keys: &mut [K], buffer: &mut [K::Bits]) {
    let buffer = &mut buffer[..keys.len()];
    buffer.iter_mut().zip(&*keys).for_each(|(bits, key)| *bits = key.to_ordered());
    buffer.sort_unstable();
    keys.iter_mut().zip(&*buffer).for_each(|(key, bits)| *key = K::from_ordered(*bits));
}

fn last_digit_first<K: Key>(keys: &mut [K], scratch: &mut [K], to_scratch: bool) {
    // One look at the keys counts for all passes: they change the order, not the digits.
    let mut counts = [[0; DIGITS]; 4];
    for key in keys.iter() {
        let bits = bits(*key);
        for (d, counts) in counts.iter_mut().enumerate() {
            counts[digit(bits, 8 * d as u32)] += 1;
        }
    }
    let (mut from, mut to) = (keys, scratch);
    let mut in_scratch = false;
    for (d, counts) in counts.iter().enumerate() {
        // Where all keys have the same digit, there is nothing to move.
        if counts.contains(&from.len()) {
            continue;
        }
        distribute(from, to, counts, 8 * d as u32);
        (from, to) = (to, from);
        in_scratch = !in_scratch;
    }
    if in_scratch != to_scratch {
        to.copy_from_slice(from);
    }
}

fn first_digit_first<K: Key>(keys: &mut [K], scratch: &mut [K], to_scratch: bool, buffer: &mut [K::Bits; LEAF]) {
    let differing = match keys {
        [] => 0,
        [first, rest @ ..] => rest.iter().fold(0, |all, key| all | (bits(*key) ^ bits(*first))),
    };
    if keys.len() <= LEAF || differing == 0 {
        let sorted = if to_scratch {
            scratch.copy_from_slice(keys);
            scratch
        } else {
            keys
        };
        if differing != 0 {
            sort_leaf(sorted, buffer);
        }
        return;
    }
    // The first bit that differs is the first of the digit, so each level of the recursion does away with 8 bits.
    let shift = differing.ilog2().saturating_sub(7);
    let mut counts = [0; DIGITS];
    for key in keys.iter() {
        counts[digit(bits(*key), shift)] += 1;
    }
    distribute(keys, scratch, &counts, shift);
    let (mut keys, mut scratch) = (keys, scratch);
    for count in counts {
        let (keys_of_digit, scratch_of_digit);
        (keys_of_digit, keys) = keys.split_at_mut(count);
        (scratch_of_digit, scratch) = scratch.split_at_mut(count);
        first_digit_first(scratch_of_digit, keys_of_digit, !to_scratch, buffer);
    }
}

/// Moves each key to the place that its digit and the keys before it give it.
fn distribute<K: Key>(from: &[K], to: &mut [K], counts: &Counts, shift: u32) {
    let mut next = [0; DIGITS];
    let mut sum = 0;
    for (next, count) in next.iter_mut().zip(counts) {
        *next = sum;
        sum += count;
    }
    for key in from {
        let place = &mut next[digit(bits(*key), shift)];
        to[*place] = *key;
        *place += 1;
    }
}

#[inline(always)]
fn bits<K: Key>(key: K) -> u64 {
    key.to_ordered().into()
}

#[inline(always)]
fn digit(bits: u64, shift: u32) -> usize {
    (bits >> shift) as usize % DIGITS
}
