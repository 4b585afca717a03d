//! Radix sort of one run on all threads. The most significant digit divides the keys into buckets, and the buckets are
//! sorted separately.
//!
//! ```text
//!   run      ├─ chunk 0 ─┼─ chunk 1 ─┼─ chunk 2 ─┤   a thread builds the histogram of a chunk, then scatters it
//!   scratch  ├ 0 │ 1 │ 2 ┼ 0 │ 1 │ 2 ┼ 0 │ 1 │ 2 ┤   each bucket has one slice for each of the chunks 0, 1, 2
//!            └─ bucket 0 ┴─ bucket 1 ┴─ bucket 2 ┘
//!   run      ├─ sorted ──┼─ sorted ──┼─ sorted ──┤   one thread sorts each bucket, from scratch
//! ```
//!
//! Keys with the same digit keep their order, so the sort is stable. If a bucket has too many keys for one thread, all
//! threads divide it again, by the most significant digit that differs between its keys. Each key is moved through
//! memory twice, for any number of threads: the buckets that one thread sorts mostly fit its cache.
//!
//! The division needs a little memory for histograms and lists, in addition to the scratch memory. If there is none,
//! one thread sorts.

use super::digit;
use super::memory;
use super::radix::{self, Workspace};
use super::run::RunMut;
use super::scratch::Scratch;
use super::write_combiner;
use crate::key_order::KeyOrder;
use crate::parallel::{self, Threads};
use crate::{Error, Index, Key, SortOrder, permutation};
use bytemuck::Zeroable;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The greatest number of keys that one thread sorts, unless a [`PARTS_PER_THREAD`]-th of its share of all keys is
/// greater.
const SERIAL_KEYS: usize = 1 << 16;
/// Parts of a thread's share of all keys. A bucket that one thread sorts has at most one part, so that no thread still
/// has much to do when the others have finished.
const PARTS_PER_THREAD: usize = 4;
/// The greatest number of values of a digit. For key-value pairs it is half of this, because a core's cache must hold a
/// line of keys and a line of values for each value of the digit.
const RADIX: usize = 1 << 12;
/// A number of values of a digit that takes hardly longer than fewer values.
const MIN_RADIX: usize = 1 << 8;
/// The number of keys that is worth another value of the digit.
const KEYS_PER_VALUE: usize = 1 << 10;
/// Bytes of a bucket's keys and values that fit a core's cache together with the scratch memory. Larger buckets take
/// longer to sort.
const BUCKET_BYTES: usize = 3 << 15;
/// The least number of keys of a chunk, which has a slice of its own in each bucket.
const MIN_CHUNK: usize = 1 << 13;
/// The number of keys to sample for a guess of the most significant digit that differs.
const SAMPLE: usize = 1 << 10;
/// The number of keys of a block, which is scanned twice while it is in the cache.
const SCAN_BLOCK: usize = 1 << 12;

type Digit = digit::Digit<RADIX>;
type WriteCombiner<'a, T> = write_combiner::WriteCombiner<'a, T, RADIX>;

/// Sorts `run` in ascending order. Stable. `scratch` has the same length. The calling thread belongs to the pool of
/// `threads` threads.
pub(super) fn sort<K: Key, V: Copy + Send + Sync>(run: RunMut<K, V>, scratch: RunMut<K, V>, threads: usize) {
    match Shares::of(run.keys.len(), threads) {
        Ok(shares) => sort_by_digits(run, scratch, false, None, &shares),
        Err(_) => radix::sort(run, scratch, false, None, &mut Workspace::new()),
    }
}

/// Whether [`argsort`] is the fastest way to find the permutation that sorts `keys` keys.
pub(super) fn can_argsort(keys: usize, threads: usize) -> bool {
    threads > 1 && keys > SERIAL_KEYS
}

/// Writes to `indices` the permutation that sorts `keys`. Both have the same length, and [`can_argsort`] is true for
/// it. The calling thread belongs to the pool of `threads` threads. `order` [keeps NaNs](KeyOrder::keeps_nans) where
/// the order of `K` has them.
///
/// Keys move directly to their buckets. Each bucket is sorted into memory that the next bucket uses again, so the
/// scratch memory holds only the keys and the indices.
pub(super) fn argsort<K: Key, I: Index>(
    order: KeyOrder,
    keys: &[K],
    indices: &mut [I],
    threads: usize,
) -> Result<(), Error> {
    // Ordered bits move, so that the sort is compiled for each width and not for each type.
    let shares = Shares::of(keys.len(), threads)?;
    let chunk = shares.chunk(keys.len());
    let Some((digit, mut counts)) = count_first_digit(keys, chunk, radix_of::<K, I>(keys.len()), threads)? else {
        permutation::fill_identity_on(threads, indices);
        return Ok(());
    };
    if order.direction == SortOrder::Descending {
        // Descending keys are encoded by inverting their bits, which reverses the order of the digit's values.
        counts.chunks_mut(RADIX).for_each(|counts| counts[..digit.values()].reverse());
    }
    let mut scratch = (Scratch::init(keys.len())?, Scratch::<I>::uninit(keys.len())?);
    let mut scratch = RunMut::new((&mut *scratch.0, &mut *scratch.1));
    let slices = bucket_slices(scratch.part(0..keys.len()), digit.values(), &counts)?;
    let of_pool = Threads::OfPool(threads);
    parallel::try_for_each_on(of_pool, keys.chunks(chunk).zip(slices).enumerate(), |(i, (keys, buckets))| {
        let keys = keys.iter().map(|key| order.encode(*key));
        scatter(keys.zip((i * chunk..).map(|i| MaybeUninit::new(I::from_usize(i)))), buckets, digit)
    })?;
    // SAFETY: `scatter` has filled every bucket with initialised indices. A sort writes to its part of `indices` only
    // copies of the bucket's indices.
    let indices = unsafe { memory::as_uninit_mut(indices) };
    let buckets = buckets(scratch, RunMut::of_keys(indices), digit, &counts)?;
    parallel::try_for_each_on(of_pool, buckets, |(run, RunMut { keys: indices, .. })| {
        let mut keys = Scratch::to_scatter(indices.len())?;
        sort_by_digits(run, RunMut::new((&mut keys, indices)), true, Some(digit.bits_after()), &shares);
        Ok(())
    })
}

/// The threads' shares of the keys, and the scratch memory that each thread reuses.
struct Shares {
    threads: usize,
    /// The greatest number of keys that one thread sorts.
    serial_keys: usize,
    workspaces: Vec<Mutex<Workspace>>,
}

impl Shares {
    fn of(keys: usize, threads: usize) -> Result<Self, Error> {
        let workspaces = memory::collected((0..threads).map(|_| Mutex::new(Workspace::new())))?;
        let serial_keys = SERIAL_KEYS.max(keys / (threads * PARTS_PER_THREAD));
        Ok(Shares { threads, serial_keys, workspaces })
    }

    /// The number of keys of a chunk if `keys` keys are divided.
    fn chunk(&self, keys: usize) -> usize {
        keys.div_ceil(self.threads).max(MIN_CHUNK)
    }

    /// A workspace that no other thread uses. The search begins at the calling thread's own workspace. There is one
    /// workspace for each thread of this sort; the pool may have more threads.
    fn workspace(&self) -> MutexGuard<'_, Workspace> {
        let thread = rayon::current_thread_index().unwrap_or(0) % self.threads;
        let (after, first) = (&self.workspaces[thread..], &self.workspaces[..thread]);
        let free = after.iter().chain(first).find_map(|workspace| workspace.try_lock().ok());
        free.unwrap_or_else(|| self.workspaces[thread].lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The best number of values of a digit that divides `keys` keys with values of type `V`.
fn radix_of<K, V>(keys: usize) -> usize {
    let bytes = keys * (size_of::<K>() + size_of::<V>());
    let most = if size_of::<V>() == 0 { RADIX } else { RADIX / 2 };
    (bytes / BUCKET_BYTES).clamp(MIN_RADIX, most).min(keys / KEYS_PER_VALUE)
}

/// Sorts `run`. The result is in `scratch` if `to_scratch`, and otherwise in `run`. If `may_differ` is given, keys
/// differ only in these bits.
fn sort_by_digits<K: Key, V: Copy + Send + Sync>(
    mut run: RunMut<K, V>,
    mut scratch: RunMut<K, V>,
    to_scratch: bool,
    may_differ: Option<K::Bits>,
    shares: &Shares,
) {
    let len = run.keys.len();
    if len > shares.serial_keys && divide_and_sort(run.part(0..len), scratch.part(0..len), to_scratch, shares).is_ok() {
        return;
    }
    radix::sort(run, scratch, to_scratch, may_differ, &mut shares.workspace());
}

/// Divides `run` by a digit, and sorts each bucket. The result is in `scratch` if `to_scratch`, and otherwise in `run`.
///
/// # Errors
/// [`Error::OutOfHostMemory`] if there is no memory for histograms and lists. `run` is unchanged then.
fn divide_and_sort<K: Key, V: Copy + Send + Sync>(
    mut run: RunMut<K, V>,
    mut scratch: RunMut<K, V>,
    to_scratch: bool,
    shares: &Shares,
) -> Result<(), Error> {
    let (len, threads) = (run.keys.len(), shares.threads);
    let chunk = shares.chunk(len);
    let Some((digit, counts)) = count_first_digit(run.keys, chunk, radix_of::<K, V>(len), threads)? else {
        // All keys are equal.
        if to_scratch {
            let chunks = run.chunks(chunk).zip(scratch.chunks(chunk));
            parallel::for_each_on(threads, chunks, |(run, mut scratch)| scratch.copy_from(run.as_run()));
        }
        return Ok(());
    };
    let slices = bucket_slices(scratch.part(0..len), digit.values(), &counts)?;
    parallel::try_for_each_on(Threads::OfPool(threads), run.chunks(chunk).zip(slices), |(chunk, buckets)| {
        scatter(chunk.keys.iter().copied().zip(chunk.values.iter().copied()), buckets, digit)
    })?;

    let buckets = buckets(scratch, run, digit, &counts)?;
    let rest = Some(digit.bits_after());
    parallel::for_each_on(threads, buckets, |(run, scratch)| sort_by_digits(run, scratch, !to_scratch, rest, shares));
    Ok(())
}

/// The histogram of a digit for each chunk: `RADIX` numbers, one chunk after the other.
type AllCounts = Box<[usize]>;

/// The number of keys of all chunks that have a value of a digit.
fn total(counts: &AllCounts, value: usize) -> usize {
    counts.iter().skip(value).step_by(RADIX).sum()
}

/// The parts of two runs that belong to one value of a digit.
type Bucket<'a, 'b, A, B, C, D> = (RunMut<'a, A, B>, RunMut<'b, C, D>);

/// The parts of two runs that belong to each value of `digit`.
fn buckets<'a, 'b, A, B, C, D>(
    mut a: RunMut<'a, A, B>,
    mut b: RunMut<'b, C, D>,
    digit: Digit,
    counts: &AllCounts,
) -> Result<Vec<Bucket<'a, 'b, A, B, C, D>>, Error> {
    let mut buckets = memory::reserved(digit.values())?;
    for value in 0..digit.values() {
        let count = total(counts, value);
        let (of_a, of_b);
        (of_a, a) = a.split_at(count);
        (of_b, b) = b.split_at(count);
        buckets.push((of_a, of_b));
    }
    Ok(buckets)
}

/// The most significant digit that differs between keys, of at most `values` values, and its histogram for each chunk
/// of `chunk` keys; or `None` if all keys are equal. Works on up to `threads` threads.
fn count_first_digit<K: Key>(
    keys: &[K],
    chunk: usize,
    values: usize,
    threads: usize,
) -> Result<Option<(Digit, AllCounts)>, Error> {
    let Some(&first) = keys.first() else { return Ok(None) };
    let guess = digit::differing(first, keys.iter().step_by(keys.len().div_ceil(SAMPLE)));
    let guess = Digit::first(guess, values);
    let mut all_counts: AllCounts = memory::zeroed(keys.len().div_ceil(chunk) * RADIX)?;
    // A correct guess, which is usual, saves a scan of all keys in memory.
    let chunks = keys.chunks(chunk).zip(all_counts.as_chunks_mut::<RADIX>().0);
    let differing = parallel::try_map_on(threads, chunks, |(chunk, counts)| {
        let mut differing = K::Bits::zeroed();
        for block in chunk.chunks(SCAN_BLOCK) {
            differing = differing | digit::differing(first, block);
            guess.count(block, counts);
        }
        differing
    })?;
    let differing = differing.into_iter().fold(K::Bits::zeroed(), |all, differing| all | differing);
    if digit::significant(differing) == 0 {
        return Ok(None);
    }
    let digit = Digit::first(differing, values);
    if digit != guess {
        let chunks = keys.chunks(chunk).zip(all_counts.as_chunks_mut::<RADIX>().0);
        parallel::for_each_on(threads, chunks, |(chunk, counts)| {
            counts.fill(0);
            digit.count(chunk, counts);
        });
    }
    Ok(Some((digit, all_counts)))
}

/// For each chunk its slice of each bucket.
fn bucket_slices<'a, K, V>(
    mut all: RunMut<'a, K, V>,
    values: usize,
    counts: &AllCounts,
) -> Result<Vec<Vec<RunMut<'a, K, V>>>, Error> {
    let mut slices = memory::reserved(counts.len() / RADIX)?;
    for _ in 0..counts.len() / RADIX {
        slices.push(memory::reserved(values)?);
    }
    for value in 0..values {
        for (slices, counts) in slices.iter_mut().zip(counts.chunks(RADIX)) {
            let slice;
            (slice, all) = all.split_at(counts[value]);
            slices.push(slice);
        }
    }
    Ok(slices)
}

/// Moves each key, with its value, to the next slot of its digit's bucket. The pairs fill the buckets.
///
/// # Errors
/// [`Error::OutOfHostMemory`] if there is no memory for the write combiners. Nothing is written then.
fn scatter<K: Key, V: Copy>(
    pairs: impl Iterator<Item = (K, V)> + Clone,
    buckets: Vec<RunMut<K, V>>,
    digit: Digit,
) -> Result<(), Error> {
    let Some((key, value)) = pairs.clone().next() else { return Ok(()) };
    let mut key_lines = WriteCombiner::buffer(key, buckets.len())?;
    let mut value_lines = WriteCombiner::buffer(value, buckets.len())?;
    let (mut key_buckets, mut value_buckets) = (memory::reserved(buckets.len())?, memory::reserved(buckets.len())?);
    for bucket in buckets {
        key_buckets.push(bucket.keys);
        value_buckets.push(bucket.values);
    }
    let mut keys = WriteCombiner::new(&mut key_lines, key_buckets);
    let mut values = WriteCombiner::new(&mut value_lines, value_buckets);
    for (key, value) in pairs {
        let bucket = digit.of(key);
        keys.push(bucket, key);
        values.push(bucket, value);
    }
    keys.finish();
    values.finish();
    Ok(())
}
