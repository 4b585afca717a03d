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
use super::lines;
use super::memory;
use super::radix::{self, Workspace};
use super::run::RunMut;
use crate::sorted::first_unsorted_in_block;
use crate::{Error, Index, Key, SortOrder};
use bytemuck::Zeroable;
use rayon::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most keys of a digit that one thread sorts, if there are many more in all.
const FEW: usize = 1 << 16;
/// What a thread sorts at once is at most its share of all keys divided by this, so that no thread is left with much to
/// do when the others are done.
const PARTS_A_THREAD: usize = 4;
/// The most values of a digit. With values of keys there are half as many: a line for each, of keys and of values, has to
/// stay in a core's cache.
const VALUES: usize = 1 << 12;
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
type Lines<'a, T> = lines::Lines<'a, T, VALUES>;

/// Sorts `run`, ascending and stable. `scratch` is as long. This thread belongs to the pool of `threads` to use.
pub(super) fn sort<K: Key, V: Copy + Send + Sync>(run: RunMut<K, V>, scratch: RunMut<K, V>, threads: usize) {
    // Ends early unless the keys are sorted, or nearly.
    if is_sorted(run.keys) {
        return;
    }
    let shares = Shares::of(run.keys.len(), threads);
    sort_by_digits(run, scratch, false, None, &shares);
}

/// Whether the places of so many keys are worth [`argsort`].
pub(super) fn can_argsort(keys: usize, threads: usize) -> bool {
    threads > 1 && keys > FEW
}

/// Writes to `indices` the places of `keys` in sorted order, of as many keys as [`can_argsort`] is for. There are as many
/// indices. This thread belongs to the pool of `threads` to use.
///
/// Keys go straight to their digits' rooms, and those of a digit to memory that the next one uses again, so that this takes
/// no more memory than keys and indices do.
pub(super) fn argsort<K: Key, I: Index>(
    order: SortOrder,
    keys: &[K],
    indices: &mut [I],
    threads: usize,
) -> Result<(), Error> {
    let shares = Shares::of(keys.len(), threads);
    let chunk = shares.chunk(keys.len());
    let first_digit = if order == SortOrder::Ascending && is_sorted(keys) {
        None
    } else {
        count_first_digit(keys, chunk, values::<K, I>(keys.len()))
    };
    let Some((digit, mut counts)) = first_digit else {
        indices.par_iter_mut().enumerate().for_each(|(place, index)| *index = I::new(place));
        return Ok(());
    };
    if order == SortOrder::Descending {
        // Of mirrored keys, every bit of the digit is the other one.
        counts.iter_mut().for_each(|counts| counts[..digit.values()].reverse());
    }
    let mut scratch = (memory::zeroed(keys.len())?, memory::zeroed(keys.len())?);
    let mut scratch = RunMut::new((&mut *scratch.0, &mut *scratch.1));
    let rooms = rooms(scratch.part(0..keys.len()), digit.values(), &counts);
    keys.par_chunks(chunk).zip(rooms).enumerate().for_each(|(i, (keys, room))| {
        let keys = keys.iter().map(|key| order.applied_to(*key));
        distribute(keys.zip((i * chunk..).map(I::new)), room, digit);
    });
    let digits = divided(scratch, RunMut::of_keys(indices), digit, &counts);
    digits.into_par_iter().with_max_len(1).try_for_each(|(run, RunMut { keys: indices, .. })| {
        let mut keys = memory::zeroed(indices.len())?;
        sort_by_digits(run, RunMut::new((&mut keys, indices)), true, Some(digit.bits_after()), &shares);
        Ok(())
    })
}

/// How the keys are shared among the threads, and what each thread uses for one share after another.
struct Shares<K: Key> {
    threads: usize,
    /// The most keys that one thread sorts.
    few: usize,
    workspaces: Vec<Mutex<Workspace<K>>>,
}

impl<K: Key> Shares<K> {
    fn of(keys: usize, threads: usize) -> Self {
        Shares {
            threads,
            few: FEW.max(keys / (threads * PARTS_A_THREAD)),
            workspaces: (0..threads).map(|_| Mutex::new(Workspace::new())).collect(),
        }
    }

    /// How many of so many keys a thread moves.
    fn chunk(&self, keys: usize) -> usize {
        keys.div_ceil(self.threads).max(LEAST_CHUNK)
    }

    /// That of this thread, which nobody else asks for.
    fn workspace(&self) -> MutexGuard<'_, Workspace<K>> {
        let thread = rayon::current_thread_index().unwrap_or(0) % self.threads;
        self.workspaces[thread].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many values of a digit are best for so many keys with values.
fn values<K, V>(keys: usize) -> usize {
    let bytes = keys * (size_of::<K>() + size_of::<V>());
    let most = if size_of::<V>() == 0 { VALUES } else { VALUES / 2 };
    (bytes / CACHED).clamp(CHEAP_VALUES, most).min(keys / KEYS_A_VALUE)
}

/// Sorts `run`. It ends in `scratch` if `to_scratch`, and else where it is. `may_differ` are the bits that may not be the same in
/// all keys, if something is known of them.
fn sort_by_digits<K: Key, V: Copy + Send + Sync>(
    mut run: RunMut<K, V>,
    mut scratch: RunMut<K, V>,
    to_scratch: bool,
    may_differ: Option<K::Bits>,
    shares: &Shares<K>,
) {
    if run.keys.len() <= shares.few {
        return radix::sort(run, scratch, to_scratch, may_differ, &mut shares.workspace());
    }
    let chunk = shares.chunk(run.keys.len());
    let Some((digit, counts)) = count_first_digit(run.keys, chunk, values::<K, V>(run.keys.len())) else {
        // All keys are the same.
        if to_scratch {
            let chunks = run.par_chunks(chunk).zip(scratch.par_chunks(chunk));
            chunks.for_each(|(run, mut scratch)| scratch.copy_from(run.as_run()));
        }
        return;
    };
    let rooms = rooms(scratch.part(0..run.keys.len()), digit.values(), &counts);
    run.par_chunks(chunk).zip(rooms).for_each(|(chunk, room)| {
        distribute(chunk.keys.iter().copied().zip(chunk.values.iter().copied()), room, digit);
    });

    let digits = divided(scratch, run, digit, &counts).into_par_iter().with_max_len(1);
    digits.for_each(|(run, scratch)| sort_by_digits(run, scratch, !to_scratch, Some(digit.bits_after()), shares));
}

/// The parts of two runs that belong to each value of `digit`. `counts` are those of each chunk.
fn divided<'a, 'b, A, B, C, D>(
    mut a: RunMut<'a, A, B>,
    mut b: RunMut<'b, C, D>,
    digit: Digit,
    counts: &[Counts],
) -> Vec<(RunMut<'a, A, B>, RunMut<'b, C, D>)> {
    let mut parts = Vec::with_capacity(digit.values());
    for value in 0..digit.values() {
        let count = counts.iter().map(|counts| counts[value]).sum();
        let (of_a, of_b);
        (of_a, a) = a.split_at(count);
        (of_b, b) = b.split_at(count);
        parts.push((of_a, of_b));
    }
    parts
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

/// Moves each of these keys with its value to the next place in the room for its digit. There is room for just these.
fn distribute<K: Key, V: Copy>(pairs: impl Iterator<Item = (K, V)> + Clone, rooms: Vec<RunMut<K, V>>, digit: Digit) {
    let Some((key, value)) = pairs.clone().next() else { return };
    let (mut keys, mut values) = (Lines::buffer(key, rooms.len()), Lines::buffer(value, rooms.len()));
    let (rooms_of_keys, rooms_of_values) = rooms.into_iter().map(|room| (room.keys, room.values)).unzip();
    let (mut keys, mut values) = (Lines::new(&mut keys, rooms_of_keys), Lines::new(&mut values, rooms_of_values));
    for (key, value) in pairs {
        let digit = digit.of(key);
        keys.push(digit, key);
        values.push(digit, value);
    }
    keys.finish();
    values.finish();
}
