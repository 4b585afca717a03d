//! Sort of one run on all threads: its first digit divides the keys, and those of each digit are sorted on their own.
//!
//! ```text
//!   run      ├─ chunk 0 ─┼─ chunk 1 ─┼─ chunk 2 ─┤   a thread counts the digits of a chunk, then moves its keys
//!   scratch  ├ 0 │ 1 │ 2 ┼ 0 │ 1 │ 2 ┼ 0 │ 1 │ 2 ┤   room for each digit of 0, 1, 2 … in each chunk of 0, 1, 2
//!            └─ digit 0 ─┴─ digit 1 ─┴─ digit 2 ─┘
//!   run      ├─ sorted ──┼─ sorted ──┼─ sorted ──┤   by one thread each, from scratch
//! ```
//!
//! Keys of one digit stay in order, so that this is stable. Where a digit has too many keys for one thread, all threads
//! divide them once more, by the first digit that differs in these. Every key is moved through memory twice, however many
//! threads there are: what a thread sorts in the end mostly fits its cache.

use super::digit;
use super::lines::Lines;
use super::radix;
use super::run::{Run, RunMut};
use crate::Key;
use crate::sorted::first_unsorted_in_block;
use bytemuck::Zeroable;
use rayon::prelude::*;

/// The most keys of a digit that one thread sorts, if there are many more in all.
const FEW: usize = 1 << 16;
/// What a thread sorts at once is at most its share of all keys divided by this, so that no thread is left with much to
/// do when the others are done.
const PARTS_A_THREAD: usize = 4;
/// The most values of a digit. With values of keys there are half as many: a line for each, of keys and of values, has to
/// stay in a core's cache.
const VALUES: usize = 1 << 11;
/// Values of a digit that are hardly more work than fewer.
const CHEAP_VALUES: usize = 1 << 8;
/// Keys that are worth a value of a digit.
const KEYS_A_VALUE: usize = 1 << 10;
/// Bytes of keys and values that a core sorts fast, as its cache holds them along with the memory that they are moved to: no
/// digit should have more.
const CACHED: usize = 1 << 17;
/// Keys that are worth room of their own for each digit.
const LEAST_CHUNK: usize = 1 << 13;
/// Keys that are looked at to guess the first digit that differs.
const SAMPLE: usize = 1 << 10;
/// Keys that are looked at twice while they are in the cache.
const PIECE: usize = 1 << 12;

type Digit = digit::Digit<VALUES>;
type Counts = digit::Counts<VALUES>;

/// Sorts `run`, ascending and stable. `scratch` is as long. This thread belongs to the pool of `threads` to use.
pub(super) fn sort<K: Key, V: Copy + Send + Sync>(run: RunMut<K, V>, scratch: RunMut<K, V>, threads: usize) {
    // Ends early unless the keys are sorted, or nearly.
    if is_sorted(run.keys) {
        return;
    }
    let few = FEW.max(run.keys.len() / (threads * PARTS_A_THREAD));
    sort_by_digits(run, scratch, false, Shares { threads, few });
}

/// How the keys are shared among the threads.
#[derive(Clone, Copy)]
struct Shares {
    threads: usize,
    /// The most keys that one thread sorts.
    few: usize,
}

/// Sorts `run`. It ends in `scratch` if `to_scratch`, and else where it is.
fn sort_by_digits<K: Key, V: Copy + Send + Sync>(
    mut run: RunMut<K, V>,
    mut scratch: RunMut<K, V>,
    to_scratch: bool,
    shares: Shares,
) {
    if run.keys.len() <= shares.few {
        return radix::sort(run, scratch, to_scratch);
    }
    let chunk = run.keys.len().div_ceil(shares.threads).max(LEAST_CHUNK);
    let bytes = run.keys.len() * (size_of::<K>() + size_of::<V>());
    let most = if size_of::<V>() == 0 { VALUES } else { VALUES / 2 };
    let values = (bytes / CACHED).clamp(CHEAP_VALUES, most).min(run.keys.len() / KEYS_A_VALUE);
    let Some((digit, counts)) = count_first_digit(run.keys, chunk, values) else {
        // All keys are the same.
        if to_scratch {
            let chunks = run.par_chunks(chunk).zip(scratch.par_chunks(chunk));
            chunks.for_each(|(run, mut scratch)| scratch.copy_from(run.as_run()));
        }
        return;
    };
    let rooms = rooms(scratch.part(0..run.keys.len()), digit.values(), &counts);
    run.par_chunks(chunk).zip(rooms).for_each(|(chunk, room)| distribute(chunk.as_run(), room, digit));

    let mut digits = Vec::with_capacity(digit.values());
    for value in 0..digit.values() {
        let count = counts.iter().map(|counts| counts[value]).sum();
        let (run_of_digit, scratch_of_digit);
        (run_of_digit, run) = run.split_at(count);
        (scratch_of_digit, scratch) = scratch.split_at(count);
        digits.push((scratch_of_digit, run_of_digit));
    }
    let digits = digits.into_par_iter().with_max_len(1);
    digits.for_each(|(run, scratch)| sort_by_digits(run, scratch, !to_scratch, shares));
}

fn is_sorted<K: Key>(keys: &[K]) -> bool {
    // A key more than a piece, to compare its last key with the next piece's first.
    let piece = |begin| &keys[begin..keys.len().min(begin + PIECE + 1)];
    (0..keys.len()).into_par_iter().step_by(PIECE).all(|begin| first_unsorted_in_block(piece(begin)).is_none())
}

/// The first digit that differs, of so many values at most, and how often it occurs in each chunk of so many keys, or `None`
/// if all keys are the same.
fn count_first_digit<K: Key>(keys: &[K], chunk: usize, values: usize) -> Option<(Digit, Vec<Counts>)> {
    let first = *keys.first()?;
    let guess = digit::differing(first, keys.iter().step_by(keys.len().div_ceil(SAMPLE)));
    let guess = Digit::first(guess, values);
    // A right guess, as most are, saves a way through memory.
    let looks = keys.par_chunks(chunk).map(|chunk| {
        let (mut differing, mut counts) = (K::Bits::zeroed(), [0; VALUES]);
        for piece in chunk.chunks(PIECE) {
            differing = differing | digit::differing(first, piece);
            guess.count(piece, &mut counts);
        }
        (differing, counts)
    });
    let (differing, counts): (Vec<K::Bits>, Vec<Counts>) = looks.unzip();
    let differing = differing.into_iter().fold(K::Bits::zeroed(), |all, differing| all | differing);
    if digit::significant(differing) == 0 {
        return None;
    }
    let digit = Digit::first(differing, values);
    if digit == guess {
        return Some((digit, counts));
    }
    let counts = keys.par_chunks(chunk).map(|chunk| {
        let mut counts = [0; VALUES];
        digit.count(chunk, &mut counts);
        counts
    });
    Some((digit, counts.collect()))
}

/// For each chunk the room for its keys of each digit. `counts` are those of each chunk.
fn rooms<'a, K, V>(mut all: RunMut<'a, K, V>, values: usize, counts: &[Counts]) -> Vec<Vec<RunMut<'a, K, V>>> {
    let mut rooms: Vec<Vec<_>> = counts.iter().map(|_| Vec::with_capacity(values)).collect();
    for value in 0..values {
        for (rooms, counts) in rooms.iter_mut().zip(counts) {
            let room;
            (room, all) = all.split_at(counts[value]);
            rooms.push(room);
        }
    }
    rooms
}

/// Moves each key to the next place in the room for its digit. There is room for just these.
fn distribute<K: Key, V: Copy>(from: Run<K, V>, rooms: Vec<RunMut<K, V>>, digit: Digit) {
    let (Some(key), Some(value)) = (from.keys.first(), from.values.first()) else { return };
    let (mut keys, mut values) = (Lines::<_, VALUES>::buffer(*key), Lines::<_, VALUES>::buffer(*value));
    let (rooms_of_keys, rooms_of_values) = rooms.into_iter().map(|room| (room.keys, room.values)).unzip();
    let (mut keys, mut values) =
        (Lines::<_, VALUES>::new(&mut keys, rooms_of_keys), Lines::<_, VALUES>::new(&mut values, rooms_of_values));
    for (key, value) in from.keys.iter().zip(from.values) {
        let digit = digit.of(*key);
        keys.push(digit, *key);
        values.push(digit, *value);
    }
    keys.finish();
    values.finish();
}
