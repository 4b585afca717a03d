//! Sort of keys that callbacks read and write.
//!
//! A block of keys is divided into buckets as soon as it is read. When all blocks are divided, one thread collects the
//! keys of a bucket, sorts them in a core's cache, and writes them:
//!
//! ```text
//!   read           ├─ block 0 ─┼─ block 1 ─┼─ block 2 ─┤
//!   divided        ├0│ 1 │2│ 3 ┼0 │1│ 2 │ 3┼0│1 │ 2 │3 ┤   each block by itself, from a buffer of the thread
//!                     └─┐     ┌────┘   ┌──────┘
//!   bucket 1          ├─┴─────┴────────┤ ─ sort ─► write
//! ```
//!
//! Each key moves through memory twice between the callbacks, for any number of keys, and waiting for a file overlaps
//! with computation. Buckets are intervals of keys, with about the same number of keys of a sample in each. All threads
//! together sort a bucket with too many keys for one thread, which exists if many keys are equal.

use super::blocks::try_for_each_callback;
use super::buckets;
use super::digit::word;
use super::run::RunMut;
use super::{Workers, memory, sort};
use crate::key_order::KeyOrder;
use crate::parallel::{Threads, try_for_each_on};
use crate::timing::{Steps, timed};
use crate::{Error, Key};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The least number of threads, and of bytes of keys, that is worth dividing keys while they are read. With fewer
/// threads the memory is fast enough to divide keys in place, by vectors.
const MIN_THREADS: usize = 5;
const MIN_BYTES: usize = 1 << 29;
/// Bytes of a block, which fits a core's cache.
const BLOCK_BYTES: usize = 1 << 20;
/// Bytes of a bucket that a core sorts fast, and the greatest number of buckets that a block is divided into fast.
const BUCKET_BYTES: usize = 1 << 20;
const MAX_BUCKETS: usize = 1 << 11;
/// The number of blocks to sample, and the number of keys to sample at the beginning of each. The sample has few keys
/// of many blocks, because neighbours are often similar.
const SAMPLED_BLOCKS: usize = 1 << 10;
const SAMPLED_KEYS: usize = 1 << 8;
/// Buckets of keys. A bucket is a range of the 2^14 intervals.
type Buckets = buckets::Buckets<{ 1 << 14 }>;
/// Parts of a thread's share of all keys. A bucket that one thread sorts has at most one part.
const PARTS_PER_THREAD: usize = 4;

/// Whether [`sort`] is the fastest way to sort `len` keys on `threads` threads.
pub(crate) fn can_sort<K: Key>(len: usize, threads: usize) -> bool {
    is_possible::<K>() && threads >= MIN_THREADS && len.saturating_mul(size_of::<K>()) >= MIN_BYTES
}

/// Whether [`sort`] supports keys of this type: their bits fit a `usize`. Counting sort takes keys of up to 2 bytes.
const fn is_possible<K>() -> bool {
    size_of::<K>() > 2 && size_of::<K>() <= size_of::<usize>()
}

/// Sorts `len` keys of a type that [`can_sort`] accepts with some length. `read` and `write` are called on `threads`,
/// the threads of `workers`, as [`Engine::sort_streamed`](crate::Engine::sort_streamed) specifies.
pub(crate) fn sort<K: Key, E: From<Error> + Send>(
    workers: &Workers,
    threads: Threads,
    order: KeyOrder,
    len: usize,
    read: impl Fn(usize, &mut [K]) -> Result<(), E> + Sync,
    write: impl Fn(usize, &[K]) -> Result<(), E> + Sync,
) -> Result<Steps, E> {
    assert!(is_possible::<K>());
    let mut keys = memory::zeroed::<K>(len)?;
    let (divided, upload) = timed(|| Divided::read(threads, order, &mut keys, read));
    let divided = divided?;
    let writing = AtomicU64::new(0);
    let write = |begin: usize, keys: &[K]| {
        let start = Instant::now();
        let written = write(begin, keys);
        writing.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        written
    };
    let (sorted, compute) = timed(|| divided.sort(workers, threads, order, write));
    sorted?;
    // All threads write at about the same time, so the time is divided by their number.
    let download = Duration::from_nanos(writing.into_inner() / workers.threads_to_sort(len) as u64).min(compute);
    Ok(Steps { upload, compute: compute - download, download, ..Steps::default() })
}

/// The number of keys of a block.
const fn block<K>() -> usize {
    BLOCK_BYTES / size_of::<K>()
}

/// Keys in blocks. Each block is divided into buckets.
struct Divided<'a, K> {
    keys: &'a mut [K],
    buckets: usize,
    /// The ends of the buckets of each block.
    ends: Box<[u32]>,
}

impl<'a, K: Key> Divided<'a, K> {
    /// Reads and divides all `keys`.
    fn read<E: From<Error> + Send>(
        threads: Threads,
        order: KeyOrder,
        keys: &'a mut [K],
        read: impl Fn(usize, &mut [K]) -> Result<(), E> + Sync,
    ) -> Result<Self, E> {
        let block = const { block::<K>() };
        // Each key is read once: the sample is the first keys of some blocks, which are read before all others.
        let sampled_every = keys.len().div_ceil(block).div_ceil(SAMPLED_BLOCKS).max(1);
        let sampled = |i: usize, keys: usize| if i.is_multiple_of(sampled_every) { keys.min(SAMPLED_KEYS) } else { 0 };
        try_for_each_on(threads, keys.chunks_mut(block).enumerate().step_by(sampled_every), |(i, keys)| {
            let sampled = sampled(i, keys.len());
            read(i * block, &mut keys[..sampled])
        })?;
        let blocks = keys.chunks(block).enumerate();
        let sample = blocks.flat_map(|(i, keys)| &keys[..sampled(i, keys.len())]).map(|key| word(order, *key));
        let mut sample = memory::collected(sample)?;
        sort::sort(KeyOrder::ASCENDING, RunMut::of_keys(&mut sample), 1)?;
        let buckets = Buckets::new(&sample, (size_of_val(keys) / BUCKET_BYTES).clamp(1, MAX_BUCKETS))?;

        let mut ends = memory::zeroed(keys.len().div_ceil(block) * buckets.count())?;
        let buffers = Buffers::new(|| Ok((memory::zeroed::<K>(block)?, memory::zeroed(block)?)));
        let blocks = keys.chunks_mut(block).zip(ends.chunks_mut(buckets.count())).enumerate();
        try_for_each_on(threads, blocks, |(i, (to, ends))| {
            let mut buffer = buffers.take()?;
            let (from, of_keys) = (&mut buffer.0[..to.len()], &mut buffer.1[..to.len()]);
            let sampled = sampled(i, to.len());
            from[..sampled].copy_from_slice(&to[..sampled]);
            read(i * block + sampled, &mut from[sampled..])?;
            divide(&buckets, order, from, of_keys, to, ends);
            buffers.put(buffer)?;
            Ok::<_, E>(())
        })?;
        Ok(Self { keys, buckets: buckets.count(), ends })
    }

    /// Sorts the keys of each bucket and passes them to `write`.
    fn sort<E: From<Error> + Send>(
        &self,
        workers: &Workers,
        threads: Threads,
        order: KeyOrder,
        write: impl Fn(usize, &[K]) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let counts = self.counts()?;
        let begins = counts.iter().scan(0, |next, count| {
            *next += count;
            Some(*next - count)
        });
        let buckets = begins.zip(&counts).map(|(begin, count)| (begin, *count)).enumerate();
        let most = self.keys.len() / (PARTS_PER_THREAD * workers.threads_to_sort(self.keys.len()));
        let is_long = |count: usize| count > most;
        for (bucket, (begin, count)) in buckets.clone().filter(|(_, (_, count))| is_long(*count)) {
            let mut keys = memory::zeroed(count)?;
            let mut rest = &mut *keys;
            let copies = self.parts(bucket).map(|part| (rest.split_off_mut(..part.len()), part));
            try_for_each_on(threads, copies, |(to, part)| {
                to.into_iter().for_each(|to| to.copy_from_slice(part));
                Ok::<_, E>(())
            })?;
            workers.sort(keys.len(), |threads| sort::sort(order, RunMut::of_keys(&mut keys), threads))?;
            try_for_each_callback(threads, &mut keys, |i, keys| write(begin + i, keys))?;
        }
        let longest = counts.iter().copied().filter(|count| !is_long(*count)).max().unwrap_or(0);
        let buffers = Buffers::new(|| memory::zeroed::<K>(longest));
        let short = buckets.filter(|(_, (_, count))| !is_long(*count));
        try_for_each_on(threads, short, |(bucket, (begin, count))| {
            let mut buffer = buffers.take()?;
            let keys = &mut buffer[..count];
            let mut end = 0;
            for part in self.parts(bucket) {
                keys[end..end + part.len()].copy_from_slice(part);
                end += part.len();
            }
            sort::sort(order, RunMut::of_keys(keys), 1)?;
            write(begin, keys)?;
            Ok(buffers.put(buffer)?)
        })
    }

    /// The number of keys of each bucket.
    fn counts(&self) -> Result<Box<[usize]>, Error> {
        let mut counts: Box<[usize]> = memory::zeroed(self.buckets)?;
        for ends in self.ends.chunks(self.buckets) {
            let mut begin = 0;
            for (count, &end) in counts.iter_mut().zip(ends) {
                *count += (end - begin) as usize;
                begin = end;
            }
        }
        Ok(counts)
    }

    /// The parts of a bucket, one for each block.
    fn parts(&self, bucket: usize) -> impl Iterator<Item = &[K]> {
        let blocks = self.keys.chunks(const { block::<K>() }).zip(self.ends.chunks(self.buckets));
        blocks.map(move |(keys, ends)| {
            let begin = bucket.checked_sub(1).map_or(0, |before| ends[before]);
            &keys[begin as usize..ends[bucket] as usize]
        })
    }
}

/// Scatters the keys of `from` to `to`, bucket after bucket. `ends` is 0 at the call and becomes the ends of the
/// buckets. `of_keys` is scratch memory. `to` and `of_keys` have the length of `from`.
fn divide<K: Key>(buckets: &Buckets, order: KeyOrder, from: &[K], of_keys: &mut [u16], to: &mut [K], ends: &mut [u32]) {
    for (key, bucket) in from.iter().zip(&mut *of_keys) {
        *bucket = buckets.of(word(order, *key));
        ends[usize::from(*bucket)] += 1;
    }
    let mut sum = 0;
    for end in &mut *ends {
        sum += *end;
        *end = sum - *end;
    }
    for (key, bucket) in from.iter().zip(of_keys) {
        let next = &mut ends[usize::from(*bucket)];
        to[*next as usize] = *key;
        *next += 1;
    }
}

/// Buffers that threads use in turn. There is at most one buffer for each thread.
struct Buffers<T, F> {
    unused: Mutex<Vec<T>>,
    allocate: F,
}

impl<T, F: Fn() -> Result<T, Error>> Buffers<T, F> {
    fn new(allocate: F) -> Self {
        Self { unused: Mutex::new(Vec::new()), allocate }
    }

    fn take(&self) -> Result<T, Error> {
        let unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner).pop();
        unused.map_or_else(&self.allocate, Ok)
    }

    fn put(&self, buffer: T) -> Result<(), Error> {
        memory::push(&mut self.unused.lock().unwrap_or_else(PoisonError::into_inner), buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::fresh_seed;
    use crate::{NanOrder, SortOrder};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use std::fmt::Debug;

    /// Sorts keys on several threads, and compares the result with the standard library.
    fn check<K: Key + Debug>(name: &str, keys: &[K], seed: u64) {
        let nans_last = KeyOrder { direction: SortOrder::Ascending, nans: NanOrder::Last };
        for order in [KeyOrder::ASCENDING, SortOrder::Descending.into(), nans_last] {
            let mut expected: Vec<_> = keys.iter().map(|key| order.encode(*key)).collect();
            expected.sort_unstable();
            for threads in [1, 3] {
                let written = Mutex::new(vec![None; keys.len()]);
                let read_keys = AtomicU64::new(0);
                let read = |begin: usize, part: &mut [K]| {
                    part.copy_from_slice(&keys[begin..][..part.len()]);
                    read_keys.fetch_add(part.len() as u64, Ordering::Relaxed);
                    Ok::<_, Error>(())
                };
                let write = |begin: usize, part: &[K]| {
                    assert_eq!(read_keys.load(Ordering::Relaxed), keys.len() as u64, "{name}: all are read, once");
                    for (to, key) in written.lock().unwrap()[begin..].iter_mut().zip(part) {
                        assert!(to.replace(order.encode(*key)).is_none(), "{name}: written twice");
                    }
                    Ok(())
                };
                let workers = Workers::exactly(threads).unwrap();
                sort(&workers, Threads::New(threads), order, keys.len(), read, write).unwrap();
                let found = written.into_inner().unwrap().into_iter().map(|key| key.expect("all are written"));
                assert!(
                    found.eq(expected.iter().copied()),
                    "{name}, {} keys, {threads} threads, seed {seed}",
                    keys.len()
                );
            }
        }
    }

    #[test]
    fn keys_of_all_distributions_are_read_once_and_sorted() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let block = block::<u32>();
        for len in [0, 1, 5000, block - 1, block, block + 1, 4 * block + 12_345] {
            let mut keys =
                |of: &dyn Fn(u64, usize) -> u32| -> Vec<u32> { (0..len).map(|i| of(random.random(), i)).collect() };
            check("uniform", &keys(&|word, _| word as u32), seed);
            check("16 values", &keys(&|word, _| (word as u32) << 28), seed);
            check("all equal", &keys(&|_, _| 7), seed);
            check("greatest", &keys(&|_, _| u32::MAX), seed);
            check("ascending", &keys(&|_, i| i as u32), seed);
            // The sample has none of the keys that differ.
            check("few others", &keys(&|word, i| if i % 5003 == 5002 { word as u32 } else { 1 << 31 }), seed);
            check("small", &keys(&|word, _| (word >> (32 + word % 32)) as u32), seed);
            let floats: Vec<f32> = keys(&|word, _| word as u32).into_iter().map(f32::from_bits).collect();
            check("any floats", &floats, seed);
            check(
                "u64",
                &keys(&|word, _| word as u32)
                    .iter()
                    .map(|key| u64::from(*key).wrapping_mul(0x1_0000_3001))
                    .collect::<Vec<_>>(),
                seed,
            );
            check("f64", &floats.iter().map(|key| f64::from(*key)).collect::<Vec<_>>(), seed);
        }
    }

    #[test]
    fn an_error_of_a_callback_is_returned() {
        let workers = Workers::exactly(3).unwrap();
        let error = |keys| Error::OutOfHostMemory { needed: keys };
        // Fails at one of the first keys of a block, which are read first, at a key that is read later, and not at all.
        for failing in [0, 5000, usize::MAX] {
            let read = |begin: usize, part: &mut [u32]| match (begin..begin + part.len()).contains(&failing) {
                true => Err(error(1)),
                false => Ok(()),
            };
            let write = |_: usize, _: &[u32]| {
                assert_eq!(failing, usize::MAX, "nothing is written before all is read");
                Err(error(2))
            };
            let found = sort(&workers, Threads::New(3), KeyOrder::ASCENDING, 100_000, read, write);
            assert_eq!(found, Err(error(if failing == usize::MAX { 2 } else { 1 })));
        }
    }
}
