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
//! Keys that fit the cache are sorted by passes over all of them, from the last digit to the first. These are the first
//! digits that differ, as many as tell most keys apart, and not those after:
//!
//! ```text
//!   keys    27 15 11 26 12 38   ─ first digit ─►   15 11 12│27 26│38
//!                               ─ where the order is wrong, those with the same first digit ─►   11 12 15│26 27│38
//! ```
//!
//! More keys are divided by the first digit that differs, and the keys of each digit are sorted on their own. Very few are
//! compared, as going through all values of a digit would take longer.
//!
//! Where keys are to be moved elsewhere, that is done only once if they are large: see [`by_items`].

use super::by_items::{self, Items};
use super::digit::{self, Counts};
use super::leaf::Leaf;
use super::run::{Run, RunMut};
use crate::Key;
use crate::sorted::first_unsorted_in_block;

/// Values of a digit.
const VALUES: usize = 1 << 8;
/// The most passes, which tell as many keys apart as fit the cache.
const MOST_PASSES: usize = 3;
/// Keys that make it worth going through all values of a digit, for each pass.
const WORTH_A_PASS: usize = 48;
/// Keys that are inserted one after another.
const FEW_KEYS: usize = 8;
/// Keys that are worth a value of the first digit, so that they are enough for passes of their own.
const KEYS_A_VALUE: usize = 1 << 10;
/// Bytes of keys and values that fit a core's caches along with the memory that they are moved to.
const CACHED: usize = 1 << 21;

type Digit = digit::Digit<VALUES>;

/// Memory that is used for one run after another.
pub(super) struct Workspace<K: Key> {
    leaf: Leaf<K>,
    items: Items,
}

impl<K: Key> Workspace<K> {
    pub fn new() -> Self {
        Workspace { leaf: Leaf::new(), items: Items::default() }
    }
}

/// Sorts `run`. It ends in `scratch` if `to_scratch`, which is as long, and else where it is; what the other holds then
/// is unspecified. `may_differ` are the bits that may not be the same in all keys, if something is known of them.
pub(super) fn sort<K: Key, V: Copy>(
    run: RunMut<K, V>,
    mut scratch: RunMut<K, V>,
    to_scratch: bool,
    may_differ: Option<K::Bits>,
    workspace: &mut Workspace<K>,
) {
    if first_unsorted_in_block(run.keys).is_none() {
        if to_scratch {
            scratch.copy_from(run.as_run());
        }
    } else {
        sort_by_digits(run, scratch, to_scratch, may_differ, workspace);
    }
}

fn sort_by_digits<K: Key, V: Copy>(
    run: RunMut<K, V>,
    mut scratch: RunMut<K, V>,
    to_scratch: bool,
    may_differ: Option<K::Bits>,
    workspace: &mut Workspace<K>,
) {
    let Some(first) = run.keys.first() else { return };
    let keys = run.keys.len();
    let is_cached = keys * (size_of::<K>() + size_of::<V>()) <= CACHED;
    // A look at all keys costs a fifth of a pass. Not to look can cost passes that move nothing, each of which is a look too.
    let differing = may_differ.filter(|_| is_cached).unwrap_or_else(|| digit::differing(*first, &*run.keys));
    let passes = Digit::in_bits(digit::significant(differing).min(digit::telling(keys))).min(MOST_PASSES);
    if passes == 0 {
        if to_scratch {
            scratch.copy_from(run.as_run());
        }
    } else if keys < WORTH_A_PASS * passes && Leaf::<K>::can_sort::<V>(keys, differing) {
        workspace.leaf.sort(run, scratch, to_scratch);
    } else if is_cached && to_scratch && by_items::can_sort::<K, V>(keys) {
        let last = by_items::sort(run.as_run(), scratch.part(0..keys), differing, &mut workspace.items);
        sort_after(last, scratch, run, workspace);
    } else if is_cached {
        last_digit_first(run, scratch, to_scratch, Digit::last_of(passes, differing), passes, workspace);
    } else {
        first_digit_first(run, scratch, to_scratch, Digit::first(differing, keys / KEYS_A_VALUE), workspace);
    }
}

/// Sorts by as many passes: by `last`, by the digits before it, and then by the bits after it.
fn last_digit_first<K: Key, V: Copy>(
    mut run: RunMut<K, V>,
    mut scratch: RunMut<K, V>,
    to_scratch: bool,
    last: Digit,
    passes: usize,
    workspace: &mut Workspace<K>,
) {
    let keys = run.keys.len();
    let (from, to) = (run.part(0..keys), scratch.part(0..keys));
    match passes {
        1 => pass_by_pass::<K, V, VALUES, 1>(from, to, to_scratch, last),
        2 => pass_by_pass::<K, V, VALUES, 2>(from, to, to_scratch, last),
        _ => pass_by_pass::<K, V, VALUES, MOST_PASSES>(from, to, to_scratch, last),
    }
    let (sorted, scratch) = if to_scratch { (scratch, run) } else { (run, scratch) };
    sort_after(last, sorted, scratch, workspace);
}

/// Sorts keys that are sorted up to `digit` by the bits after it.
fn sort_after<K: Key, V: Copy, const VALUES: usize>(
    digit: digit::Digit<VALUES>,
    mut run: RunMut<K, V>,
    mut scratch: RunMut<K, V>,
    workspace: &mut Workspace<K>,
) {
    if digit.ends_key() {
        return;
    }
    // Keys that are the same so far are neighbours.
    let mut end = 0;
    while let Some(unsorted) = first_unsorted_in_block(&run.keys[end..]) {
        let unsorted = end + unsorted;
        let is_same = |key: &&K| digit.is_same_up_to_here(**key, run.keys[unsorted]);
        let begin = unsorted - run.keys[..unsorted].iter().rev().take_while(is_same).count();
        end = unsorted + run.keys[unsorted..].iter().take_while(is_same).count();
        if end - begin > FEW_KEYS {
            sort_by_digits(run.part(begin..end), scratch.part(begin..end), false, None, workspace);
        } else {
            insert(run.part(begin..end));
        }
    }
}

/// Sorts a few keys, each of which goes back past those that come after it.
fn insert<K: Key, V: Copy>(run: RunMut<K, V>) {
    for i in 1..run.keys.len() {
        for i in (1..=i).rev() {
            if run.keys[i - 1].to_ordered() <= run.keys[i].to_ordered() {
                break;
            }
            run.keys.swap(i - 1, i);
            run.values.swap(i - 1, i);
        }
    }
}

/// Sorts by `last`, of as many bits as `VALUES` have, and the digits before it, `PASSES` in all: a constant, so that the
/// compiler unrolls what counts them.
pub(super) fn pass_by_pass<K: Key, V: Copy, const VALUES: usize, const PASSES: usize>(
    run: RunMut<K, V>,
    scratch: RunMut<K, V>,
    to_scratch: bool,
    last: digit::Digit<VALUES>,
) {
    // One look at the keys counts for all passes: they change the order, not the digits.
    let mut counts = [[0; VALUES]; PASSES];
    last.count_with_those_before(run.keys, &mut counts);
    let keys = run.keys.len();
    let (mut from, mut to) = (run, scratch);
    let mut in_scratch = false;
    for (d, counts) in counts.iter_mut().enumerate() {
        let digit = last.before(d);
        // Where all keys have the same digit, there is nothing to move.
        if counts[digit.of(from.keys[0])] == keys {
            continue;
        }
        distribute(from.as_run(), &mut to, digit, counts);
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
    workspace: &mut Workspace<K>,
) {
    let mut counts = [0; VALUES];
    digit.count(run.keys, &mut counts);
    distribute(run.as_run(), &mut scratch, digit, &mut counts);
    let mut begin = 0;
    for end in &counts[..digit.values()] {
        let count = *end - begin;
        begin = *end;
        let (run_of_digit, scratch_of_digit);
        (run_of_digit, run) = run.split_at(count);
        (scratch_of_digit, scratch) = scratch.split_at(count);
        sort_by_digits(scratch_of_digit, run_of_digit, !to_scratch, Some(digit.bits_after()), workspace);
    }
}

/// Moves each key to the place that its digit and the keys before it give it. `counts` become the ends of the digits.
fn distribute<K: Key, V: Copy, const VALUES: usize>(
    from: Run<K, V>,
    to: &mut RunMut<K, V>,
    digit: digit::Digit<VALUES>,
    counts: &mut Counts<VALUES>,
) {
    let mut sum = 0;
    for count in counts.iter_mut() {
        let next = sum;
        sum += *count;
        *count = next;
    }
    // The compiler knows then that a place of a key is one of a value.
    let keys = &mut *to.keys;
    let values = &mut to.values[..keys.len()];
    for (key, value) in from.keys.iter().zip(from.values) {
        let next = &mut counts[digit.of(*key)];
        let place = *next;
        keys[place] = *key;
        values[place] = *value;
        *next += 1;
    }
}
