//! Sort of records of a fixed size by fields.
//!
//! A record is moved once. The sort orders words with indices: a word is a number made of the first bytes of a record's
//! key.
//!
//! ```text
//!   records      ...7...A...   ...3...B...   ...7...C...
//!   words        7             3             7                 the first bytes of each key, as a number
//!   indices      0             1             2
//!                              │ an engine sorts words with indices
//!   indices      1             0             2
//!                              │ where words are equal, the rest of the keys decides
//!   output       ...3...B...   ...7...A...   ...7...C...
//! ```
//!
//! ```
//! use merge_host::records::{self, Field, RecordKey};
//! use merge_host::{Engine, SortOrder};
//!
//! // Records of a u32 and four letters.
//! let mut bytes = *b"\x02\0\0\0pear\x01\0\0\0figs\x02\0\0\0nuts";
//! let key = RecordKey::new(&[Field::unsigned(0, 4).order(SortOrder::Descending), Field::bytes(4, 4)]);
//! records::sort(&Engine::auto(), &key, 8, &mut bytes)?;
//! assert_eq!(&bytes, b"\x02\0\0\0nuts\x02\0\0\0pear\x01\0\0\0figs");
//! # Ok::<(), merge_host::Error>(())
//! ```

mod field;
mod gather;
mod key;
mod sorter;

pub use field::{Endian, Field};
pub use gather::gather;
pub use key::RecordKey;
pub use sorter::Sorter;

use crate::cpu::memory;
use crate::engine::check_length;
use crate::external::RunError;
use crate::index::check_index_range;
use crate::index::sealed::Sealed;
use crate::permutation::fill_identity;
use crate::{Engine, Error, Index, Reason, SortKernel, Timing, Word, external, parallel};
use std::convert::Infallible;

/// The least number of records of a task that extracts their words.
const BLOCK: usize = 1 << 12;

/// Sorts records of `size` bytes each by their keys. Stable.
///
/// `engine` sorts words and indices. All other work runs on the threads of [`parallel`] loops.
///
/// # Complexity
/// O(n) time on one thread, plus O(n log t) on t threads, for n records. Records with equal first 8 bytes of the key
/// are sorted again by the next 8 bytes, and so on. The scratch memory holds the records, 2 n words and 2 n indices.
///
/// # Errors
/// - [`Error::NotWholeRecords`] if `records` is not a multiple of `size` bytes, or if `size` is 0.
/// - The errors of [`RecordKey::check`].
/// - [`Error::OutOfHostMemory`] if there is not enough memory, and the errors of [`Engine::sort_with`].
///
/// The records are unchanged after an error.
pub fn sort(engine: &Engine, key: &RecordKey, size: usize, records: &mut [u8]) -> Result<Timing, Error> {
    let count = count_of(key, size, records)?;
    if count as u128 <= u32::COUNT {
        sort_by_indices::<u32>(engine, key, size, records, count)
    } else {
        sort_by_indices::<u64>(engine, key, size, records, count)
    }
}

/// [`sort`] with indices of a type that has enough values.
fn sort_by_indices<I: Index>(
    engine: &Engine,
    key: &RecordKey,
    size: usize,
    records: &mut [u8],
    count: usize,
) -> Result<Timing, Error> {
    let (mut indices, mut sorted) = (memory::zeroed::<I>(count)?, memory::zeroed::<u8>(records.len())?);
    let timing = argsort(engine, key, size, records, &mut indices)?;
    let threads = parallel::threads_for(count, BLOCK);
    let share = parallel::share_length_for(threads, count, BLOCK).saturating_mul(size);
    parallel::for_each_on(threads, sorted.chunks_mut(share).enumerate(), |(i, out)| {
        gather(records, size, &indices, (i * share) as u64, out);
    });
    let copies = records.chunks_mut(share).zip(sorted.chunks(share));
    parallel::for_each_on(threads, copies, |(to, from)| to.copy_from_slice(from));
    Ok(timing)
}

/// Writes to `indices` the permutation that sorts records of `size` bytes each by their keys. Stable.
///
/// `indices[0]` is the index of the first record in order, and so on. `indices` has one element for each record.
///
/// # Complexity
/// The complexity of [`sort`], without the memory for records.
///
/// # Errors
/// [`Error::LengthMismatch`] if the number of indices differs from the number of records, [`Error::TooManyKeys`] if
/// there are more than 2^32 records and the indices are `u32`, and the errors of [`sort`].
///
/// ```
/// use merge_host::Engine;
/// use merge_host::records::{self, Field, RecordKey};
///
/// let mut indices = [0u32; 3];
/// records::argsort(&Engine::auto(), &RecordKey::new(&[Field::bytes(1, 2)]), 3, b"acbbaacab", &mut indices)?;
/// assert_eq!(indices, [1, 2, 0]);
/// # Ok::<(), merge_host::Error>(())
/// ```
pub fn argsort<I: Index>(
    engine: &Engine,
    key: &RecordKey,
    size: usize,
    records: &[u8],
    indices: &mut [I],
) -> Result<Timing, Error> {
    let count = count_of(key, size, records)?;
    check_length("indices", count, indices.len(), "the number of records")?;
    check_index_range::<I>(count)?;
    if key.size() <= size_of::<u32>() {
        argsort_by_words::<u32, I>(engine, key, size, records, indices)
    } else {
        argsort_by_words::<u64, I>(engine, key, size, records, indices)
    }
}

/// [`argsort`] by words of type `W`.
fn argsort_by_words<W: Word, I: Index>(
    mut engine: &Engine,
    key: &RecordKey,
    size: usize,
    records: &[u8],
    indices: &mut [I],
) -> Result<Timing, Error> {
    let mut words = memory::zeroed::<W>(indices.len())?;
    let threads = parallel::threads_for(words.len(), BLOCK);
    let share = parallel::share_length_for(threads, words.len(), BLOCK);
    let shares = words.chunks_mut(share).zip(records.chunks(share.saturating_mul(size)));
    parallel::for_each_on(threads, shares, |(words, records)| {
        Sorter::first_words(key, size, records, words);
    });
    fill_identity(indices);
    let mut total = Total::default();
    let sorter = Sorter { records, size, key, kernel: SortKernel::Auto };
    match sorter.sort::<W, I, Infallible>(&mut engine, &mut words, indices, &mut total) {
        Ok(()) => Ok(total.0),
        Err(RunError::Engine(error)) => Err(error),
    }
}

/// The number of records.
fn count_of(key: &RecordKey, size: usize, records: &[u8]) -> Result<usize, Error> {
    if size == 0 || !records.len().is_multiple_of(size) {
        return Err(Error::NotWholeRecords { found: records.len(), size });
    }
    key.check(size)?;
    Ok(records.len() / size)
}

/// The sum of the times that engines measure and of the work in between.
#[derive(Default)]
struct Total(Timing);

impl external::Observer for Total {
    fn time<T>(&mut self, _phase: external::Phase, work: impl FnOnce() -> T) -> T {
        let (value, time) = crate::timing::timed(work);
        self.0.compute += time;
        value
    }

    fn add(&mut self, timing: Timing) {
        self.0.upload += timing.upload;
        self.0.compute += timing.compute;
        self.0.exchange += timing.exchange;
        self.0.download += timing.download;
        // The first part is the whole.
        if self.0.reason == Reason::Nothing {
            (self.0.engine, self.0.reason) = (timing.engine, timing.reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SortOrder;
    use crate::cpu::fresh_seed;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn records_are_sorted_by_all_fields() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let fields = [
            Field::signed(4, 2).endian(Endian::Big),
            Field::float(6, 4).order(SortOrder::Descending),
            Field::bytes(0, 4),
        ];
        let key = RecordKey::new(&fields);
        let order = |record: &[u8; 13]| {
            let number = i16::from_be_bytes([record[4], record[5]]);
            let float = f32::from_le_bytes([record[6], record[7], record[8], record[9]]);
            (number, float, [record[0], record[1], record[2], record[3]])
        };
        for count in [0, 1, 2, 17, 1000, 70_000] {
            // Each byte has few values, so that many fields are equal.
            let mut byte = || if random.random() { 0 } else { random.random::<u8>() & 0xc1 };
            let records: Vec<[u8; 13]> = (0..count).map(|_| std::array::from_fn(|_| byte())).collect();
            let mut expected = records.clone();
            expected.sort_by(|a, b| {
                let (a, b) = (order(a), order(b));
                a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2))
            });
            for engine in [1, 2].map(|threads| Engine::cpu_with_threads(threads).unwrap()) {
                let mut found = records.clone();
                sort(&engine, &key, 13, found.as_flattened_mut()).unwrap();
                assert!(found == expected, "{count} records, {engine:?}, seed {seed}");
                assert_eq!(key.first_disorder(13, found.as_flattened(), false), None);
            }
        }
    }

    #[test]
    fn records_that_do_not_fit_are_refused() {
        let (engine, key) = (Engine::cpu(), RecordKey::new(&[Field::unsigned(2, 4)]));
        assert_eq!(sort(&engine, &key, 7, &mut [0; 15]), Err(Error::NotWholeRecords { found: 15, size: 7 }));
        assert_eq!(sort(&engine, &key, 0, &mut [0; 15]), Err(Error::NotWholeRecords { found: 15, size: 0 }));
        assert_eq!(sort(&engine, &key, 5, &mut [0; 15]), Err(Error::FieldOutOfRecord { end: 6, size: 5 }));
        let error = argsort(&engine, &key, 6, &[0; 12], &mut [0u32; 3]).unwrap_err();
        assert!(matches!(error, Error::LengthMismatch { what: "indices", expected: 2, found: 3, .. }));
    }
}
