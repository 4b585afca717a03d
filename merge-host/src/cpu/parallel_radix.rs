//! Radix sort of one run on all threads: its most significant digit divides the keys, and the keys of each value of the
//! digit are sorted separately.
//!
//! ```text
//!   run      ├─ chunk 0 ─┼─ chunk 1 ─┼─ chunk 2 ─┤   a thread counts the digits of a chunk, then moves its keys
//!   scratch  ├ 0 │ 1 │ 2 ┼ 0 │ 1 │ 2 ┼ 0 │ 1 │ 2 ┤   each bucket has a slice for each of the chunks 0, 1, 2
//!            └─ bucket 0 ┴─ bucket 1 ┴─ bucket 2 ┘
//!   run      ├─ sorted ──┼─ sorted ──┼─ sorted ──┤   by one thread each, from scratch
//! ```
//!
//! Keys with the same digit keep their order, so the sort is stable. If a bucket has too many keys for one thread, all
//! threads divide it again, by the most significant digit in which its keys differ. Each key is moved through memory twice,
//! whatever the number of threads: the buckets that one thread sorts mostly fit its cache.

use super::digit;
use super::memory;
use super::radix::{self, Workspace};
use super::run::RunMut;
use super::write_combiner;
use crate::sorted::first_unsorted;
use crate::{Error, Index, Key, SortOrder, parallel, permutation};
use bytemuck::Zeroable;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The greatest number of keys that one thread sorts, unless its share of all keys is greater.
const SERIAL_KEYS: usize = 1 << 16;
/// A thread sorts at most its share of all keys divided by this at once, so that no thread is left with much to do when
/// the others have finished.
const PARTS_PER_THREAD: usize = 4;
/// The greatest number of values of a digit. For key-value pairs it is half as many, because a core's cache must hold a
/// line of keys and a line of values for each.
const RADIX: usize = 1 << 12;
/// Values of a digit that take hardly longer than fewer.
const MIN_RADIX: usize = 1 << 8;
/// Keys for each value of a digit that justify another value.
const KEYS_PER_VALUE: usize = 1 << 10;
/// Bytes of keys and values of a bucket that fit a core's cache together with the scratch memory. Larger buckets take
/// longer to sort.
const BUCKET_BYTES: usize = 1 << 17;
/// Keys that justify a slice of their own in each bucket.
const MIN_CHUNK: usize = 1 << 13;
/// Keys that are read to guess the most significant digit in which keys differ.
const SAMPLE: usize = 1 << 10;
/// Keys that are scanned twice while they are in the cache.
const SCAN_BLOCK: usize = 1 << 12;

type Digit = digit::Digit<RADIX>;
type Counts = digit::Counts<RADIX>;
type WriteCombiner<'a, T> = write_combiner::WriteCombiner<'a, T, RADIX>;

/// Sorts `run` in ascending order. Stable. `scratch` has the same length. The calling thread belongs to the pool of
/// `threads` threads.
pub(super) fn sort<K: Key, V: Copy + Send + Sync>(run: RunMut<K, V>, scratch: RunMut<K, V>, threads: usize) {
    // The scan ends early unless the keys are sorted or nearly so.
    if first_unsorted(run.keys).is_none() {
        return;
    }
    let shares = Shares::of(run.keys.len(), threads);
    sort_by_digits(run, scratch, false, None, &shares);
}

/// Whether [`argsort`] is the fastest way to find the permutation that sorts `keys` keys.
pub(super) fn can_argsort(keys: usize, threads: usize) -> bool {
    threads > 1 && keys > SERIAL_KEYS
}

/// Writes to `indices` the permutation that sorts `keys`, for whose length [`can_argsort`] is true. `indices` has the same
/// length. The calling thread belongs to the pool of `threads` threads.
///
/// Keys move directly to their buckets, and from each bucket to memory that the next bucket uses again, so the scratch
/// memory holds no more than the keys and the indices.
pub(super) fn argsort<K: Key, I: Index>(
    order: SortOrder,
    keys: &[K],
    indices: &mut [I],
    threads: usize,
) -> Result<(), Error> {
    let shares = Shares::of(keys.len(), threads);
    let chunk = shares.chunk(keys.len());
    let first_digit = if order == SortOrder::Ascending && first_unsorted(keys).is_none() {
        None
    } else {
        count_first_digit(keys, chunk, radix_of::<K, I>(keys.len()))
    };
    let Some((digit, mut counts)) = first_digit else {
        permutation::fill_identity(indices);
        return Ok(());
    };
    if order == SortOrder::Descending {
        // The keys are encoded by inverting their bits, which reverses the order of the digit's values.
        counts.iter_mut().for_each(|counts| counts[..digit.values()].reverse());
    }
    let mut scratch = (memory::zeroed(keys.len())?, memory::uninit(keys.len())?);
    let mut scratch = RunMut::new((&mut *scratch.0, &mut *scratch.1));
    let slices = bucket_slices(scratch.part(0..keys.len()), digit.values(), &counts);
    parallel::for_each(keys.chunks(chunk).zip(slices).enumerate(), |(i, (keys, buckets))| {
        let keys = keys.iter().map(|key| order.applied_to(*key));
        scatter(keys.zip((i * chunk..).map(|i| MaybeUninit::new(I::from_usize(i)))), buckets, digit);
    });
    // SAFETY: each bucket's sort ends with a permutation of the bucket's initialised indices in its part of `indices`.
    let indices = unsafe { memory::as_uninit_mut(indices) };
    let buckets = buckets(scratch, RunMut::of_keys(indices), digit, &counts);
    parallel::try_for_each(buckets, |(run, RunMut { keys: indices, .. })| {
        let mut keys = memory::zeroed(indices.len())?;
        sort_by_digits(run, RunMut::new((&mut keys, indices)), true, Some(digit.bits_after()), &shares);
        Ok(())
    })
}

/// How the threads share the keys, and the scratch memory that each thread reuses.
struct Shares<K: Key> {
    threads: usize,
    /// The greatest number of keys that one thread sorts.
    serial_keys: usize,
    workspaces: Vec<Mutex<Workspace<K>>>,
}

impl<K: Key> Shares<K> {
    fn of(keys: usize, threads: usize) -> Self {
        Shares {
            threads,
            serial_keys: SERIAL_KEYS.max(keys / (threads * PARTS_PER_THREAD)),
            workspaces: (0..threads).map(|_| Mutex::new(Workspace::new())).collect(),
        }
    }

    /// The number of keys of a chunk, if `keys` keys are divided.
    fn chunk(&self, keys: usize) -> usize {
        keys.div_ceil(self.threads).max(MIN_CHUNK)
    }

    /// The workspace of the calling thread. Threads share workspaces if the pool has more threads than this sort uses.
    fn workspace(&self) -> MutexGuard<'_, Workspace<K>> {
        let thread = rayon::current_thread_index().unwrap_or(0) % self.threads;
        self.workspaces[thread].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The best number of values of a digit that divides `keys` keys with values of type `V`.
fn radix_of<K, V>(keys: usize) -> usize {
    let bytes = keys * (size_of::<K>() + size_of::<V>());
    let most = if size_of::<V>() == 0 { RADIX } else { RADIX / 2 };
    (bytes / BUCKET_BYTES).clamp(MIN_RADIX, most).min(keys / KEYS_PER_VALUE)
}

/// Sorts `run`. The result is in `scratch` if `to_scratch`, and otherwise in `run`. All keys have the same bits except for
/// those in `may_differ`, if it is given.
fn sort_by_digits<K: Key, V: Copy + Send + Sync>(
    mut run: RunMut<K, V>,
    mut scratch: RunMut<K, V>,
    to_scratch: bool,
    may_differ: Option<K::Bits>,
    shares: &Shares<K>,
) {
    if run.keys.len() <= shares.serial_keys {
        return radix::sort(run, scratch, to_scratch, may_differ, &mut shares.workspace());
    }
    let chunk = shares.chunk(run.keys.len());
    let Some((digit, counts)) = count_first_digit(run.keys, chunk, radix_of::<K, V>(run.keys.len())) else {
        // All keys are equal.
        if to_scratch {
            let chunks = run.chunks(chunk).zip(scratch.chunks(chunk));
            parallel::for_each(chunks, |(run, mut scratch)| scratch.copy_from(run.as_run()));
        }
        return;
    };
    let slices = bucket_slices(scratch.part(0..run.keys.len()), digit.values(), &counts);
    parallel::for_each(run.chunks(chunk).zip(slices), |(chunk, buckets)| {
        scatter(chunk.keys.iter().copied().zip(chunk.values.iter().copied()), buckets, digit);
    });

    let buckets = buckets(scratch, run, digit, &counts);
    let rest = Some(digit.bits_after());
    parallel::for_each(buckets, |(run, scratch)| sort_by_digits(run, scratch, !to_scratch, rest, shares));
}

/// The parts of two runs that belong to each value of `digit`. `counts` are those of each chunk.
fn buckets<'a, 'b, A, B, C, D>(
    mut a: RunMut<'a, A, B>,
    mut b: RunMut<'b, C, D>,
    digit: Digit,
    counts: &[Counts],
) -> Vec<(RunMut<'a, A, B>, RunMut<'b, C, D>)> {
    let mut buckets = Vec::with_capacity(digit.values());
    for value in 0..digit.values() {
        let count = counts.iter().map(|counts| counts[value]).sum();
        let (of_a, of_b);
        (of_a, a) = a.split_at(count);
        (of_b, b) = b.split_at(count);
        buckets.push((of_a, of_b));
    }
    buckets
}

/// The most significant digit in which keys differ, of at most `values` values, and how often each value occurs in each
/// chunk of `chunk` keys; or `None` if all keys are equal.
fn count_first_digit<K: Key>(keys: &[K], chunk: usize, values: usize) -> Option<(Digit, Vec<Counts>)> {
    let first = *keys.first()?;
    let guess = digit::differing(first, keys.iter().step_by(keys.len().div_ceil(SAMPLE)));
    let guess = Digit::first(guess, values);
    // A correct guess, which is usual, saves a scan of all keys in memory.
    let scans = parallel::map(keys.chunks(chunk), |chunk| {
        let (mut differing, mut counts) = (K::Bits::zeroed(), [0; RADIX]);
        for block in chunk.chunks(SCAN_BLOCK) {
            differing = differing | digit::differing(first, block);
            guess.count(block, &mut counts);
        }
        (differing, counts)
    });
    let (differing, counts): (Vec<K::Bits>, Vec<Counts>) = scans.into_iter().unzip();
    let differing = differing.into_iter().fold(K::Bits::zeroed(), |all, differing| all | differing);
    if digit::significant(differing) == 0 {
        return None;
    }
    let digit = Digit::first(differing, values);
    if digit == guess {
        return Some((digit, counts));
    }
    let counts = parallel::map(keys.chunks(chunk), |chunk| {
        let mut counts = [0; RADIX];
        digit.count(chunk, &mut counts);
        counts
    });
    Some((digit, counts))
}

/// For each chunk, the slice of each bucket that its keys go to. `counts` are those of each chunk.
fn bucket_slices<'a, K, V>(mut all: RunMut<'a, K, V>, values: usize, counts: &[Counts]) -> Vec<Vec<RunMut<'a, K, V>>> {
    let mut slices: Vec<Vec<_>> = counts.iter().map(|_| Vec::with_capacity(values)).collect();
    for value in 0..values {
        for (slices, counts) in slices.iter_mut().zip(counts) {
            let slice;
            (slice, all) = all.split_at(counts[value]);
            slices.push(slice);
        }
    }
    slices
}

/// Moves each key with its value to the next slot of its digit's bucket. The pairs fill the buckets.
fn scatter<K: Key, V: Copy>(pairs: impl Iterator<Item = (K, V)> + Clone, buckets: Vec<RunMut<K, V>>, digit: Digit) {
    let Some((key, value)) = pairs.clone().next() else { return };
    let mut key_lines = WriteCombiner::buffer(key, buckets.len());
    let mut value_lines = WriteCombiner::buffer(value, buckets.len());
    let (key_buckets, value_buckets) = buckets.into_iter().map(|bucket| (bucket.keys, bucket.values)).unzip();
    let mut keys = WriteCombiner::new(&mut key_lines, key_buckets);
    let mut values = WriteCombiner::new(&mut value_lines, value_buckets);
    for (key, value) in pairs {
        let bucket = digit.of(key);
        keys.push(bucket, key);
        values.push(bucket, value);
    }
    keys.finish();
    values.finish();
}
