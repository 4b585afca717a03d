//! Sort of elements of any type by strings of bytes.
//!
//! A sort by comparisons reads both strings at each comparison, mostly from memory outside the cache. This sort reads a
//! string once: a number has the 7 bytes after the prefix that all strings share, and the number of bytes that are
//! left, up to 8. The numbers are sorted, and the elements are moved to the order of their numbers. Elements that have
//! equal numbers, and bytes after those, are sorted by the next bytes in the same way.
//!
//! ```text
//!   strings            after the prefix "w"   sorted               the rest sorted
//!   "winterberry"      "interbe" 8            "ave" 3              "wave"
//!   "wintergreen"      "intergr" 8            "interbe" 8          "winterberries"
//!   "wave"             "ave"     3            "interbe" 8          "winterberry"
//!   "winterberries"    "interbe" 8            "intergr" 8          "wintergreen"
//! ```
//!
//! Zeros take the place of missing bytes. The number of bytes then decides, because a string comes before longer ones
//! that continue it.

use super::blocks::for_each_block;
use super::equal_keys::for_each_group;
use super::run::RunMut;
use super::scratch::Scratch;
use super::sort_by::{sort_by, sort_run_at_sight};
use super::workers::timed_whole;
use super::{Workers, memory, moved, sort};
use crate::index::sealed::Sealed;
use crate::key_order::KeyOrder;
use crate::permutation::{fill_identity, fill_identity_on};
use crate::timing::Steps;
use crate::{Error, Index};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of bytes of a string in a number.
const PREFIX: usize = size_of::<u64>() - 1;
/// The last byte of a number if the string has more bytes.
const CONTINUES: u8 = PREFIX as u8 + 1;
/// The greatest number of elements that comparisons sort fastest.
const MAX_COMPARED: usize = 64;
/// The greatest number of numbers for a string. Comparisons sort the elements that these leave equal, so that long
/// strings with long common prefixes take O(n log n) comparisons.
const MOST_WORDS: u32 = 8;
/// The number of strings whose shared prefix is expected to be that of all strings.
const SAMPLE: usize = 32;
/// The number of elements of a block: a thread reads their strings.
const BLOCK: usize = 1 << 12;

/// Sorts `items` by the strings that `bytes` returns for them, on the threads of `workers`. The calling thread sorts
/// one run, ascending or descending, before it wakes others. Stable.
pub(crate) fn sort_by_bytes_on<T: Send>(
    workers: &Workers,
    items: &mut [T],
    bytes: &(impl Fn(&T) -> &[u8] + Sync),
) -> Result<Steps, Error> {
    let len = items.len();
    if workers.threads_to_compare(len) == 1 {
        return workers.sort_by_comparisons(len, |threads| sort_from(items, bytes, 0, MOST_WORDS, threads));
    }
    timed_whole(|| match sort_run_at_sight(items, &|a: &T, b: &T| bytes(a).cmp(bytes(b))) {
        true => Ok(Steps::default()),
        false => workers.sort_by_comparisons(len, |threads| sort_by_numbers(items, bytes, 0, MOST_WORDS, threads)),
    })
}

/// The index of a string that lives for `'a`.
#[repr(transparent)]
struct StringIndex<'a, I>(I, PhantomData<&'a [u8]>);

/// Writes to `indices` the permutation that sorts the strings that `bytes` returns for their indices. Stable.
pub(crate) fn argsort_by_bytes_on<'a, I: Index>(
    workers: &Workers,
    indices: &mut [I],
    bytes: &(impl Fn(usize) -> &'a [u8] + Sync),
) -> Result<Steps, Error> {
    fill_identity(indices);
    let indices: *mut [I] = indices;
    // SAFETY: `StringIndex` is transparent, so that both slices have one layout, and any `I` is a valid `StringIndex`.
    // The new slice is the only use of the exclusive borrow of `indices`.
    let indices = unsafe { &mut *(indices as *mut [StringIndex<'a, I>]) };
    sort_by_bytes_on(workers, indices, &|index: &StringIndex<'a, I>| bytes(index.0.to_usize()))
}

/// Sorts `items`, whose strings have the same first `begin` bytes. At most `words` numbers decide the order of a
/// string. Stable.
fn sort_from<T: Send>(
    items: &mut [T],
    bytes: &(impl Fn(&T) -> &[u8] + Sync),
    begin: usize,
    words: u32,
    threads: usize,
) -> Result<(), Error> {
    if items.len() > MAX_COMPARED && sort_run_at_sight(items, &|a: &T, b: &T| bytes(a).cmp(bytes(b))) {
        return Ok(());
    }
    sort_by_numbers(items, bytes, begin, words, threads)
}

/// [`sort_from`], without a look whether the elements are one run.
fn sort_by_numbers<T: Send>(
    items: &mut [T],
    bytes: &(impl Fn(&T) -> &[u8] + Sync),
    begin: usize,
    words: u32,
    threads: usize,
) -> Result<(), Error> {
    let compare = |a: &T, b: &T| bytes(a).cmp(bytes(b));
    if items.len() <= MAX_COMPARED || const { size_of::<T>() == 0 } || words == 0 {
        return sort_by(items, &compare, threads);
    }
    let mut prefixes = Scratch::init(items.len())?;
    let begin = read_prefixes(items, bytes, begin, &mut prefixes, threads)?;
    // `u32` indices take less time.
    if items.len() as u128 <= u32::COUNT {
        sort_by_prefixes::<u32, T>(items, &mut prefixes, threads)?;
    } else {
        sort_by_prefixes::<u64, T>(items, &mut prefixes, threads)?;
    }
    let are_undecided = |a: &u64, b: &u64| a == b && *a as u8 == CONTINUES;
    for_each_group(RunMut::new((&mut prefixes, items)), BLOCK, threads, are_undecided, |group, threads| {
        sort_from(group.values, bytes, begin + PREFIX, words - 1, threads)
    })
}

/// Writes to `prefixes` the first bytes of each string after the prefix that all strings share, which has at least
/// `begin` bytes. Returns the length of the shared prefix.
fn read_prefixes<T: Send>(
    items: &mut [T],
    bytes: &(impl Fn(&T) -> &[u8] + Sync),
    begin: usize,
    prefixes: &mut [u64],
    threads: usize,
) -> Result<usize, Error> {
    let first = memory::collected(bytes(&items[0]).iter().copied())?;
    let step = items.len().div_ceil(SAMPLE);
    let sample = items.iter().step_by(step);
    let mut length = sample.fold(first.len(), |length, item| shared(&first[..length], bytes(item)));
    loop {
        let expected = &first[begin.min(length)..length];
        let least = AtomicUsize::new(expected.len());
        // The elements are borrowed exclusively, each by one thread, so that they need not be `Sync`.
        for_each_block(RunMut { keys: prefixes, values: items }, BLOCK, threads, |_, block| {
            let mut same = expected.len();
            for (prefix, item) in block.keys.iter_mut().zip(block.values) {
                let string = bytes(item);
                same = same.min(shared(expected, string.get(begin..).unwrap_or_default()));
                *prefix = prefix_of(string.get(length..).unwrap_or_default());
            }
            least.fetch_min(same, Ordering::Relaxed);
        });
        match least.into_inner() {
            least if least == expected.len() => return Ok(length),
            least => length = begin + least,
        }
    }
}

/// The length of the prefix that both strings share.
fn shared(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// A number in the order of the first bytes of `string`.
fn prefix_of(string: &[u8]) -> u64 {
    if let Some(bytes) = string.first_chunk() {
        return u64::from_be_bytes(*bytes) & !0xff | u64::from(CONTINUES);
    }
    let mut bytes = [0; PREFIX + 1];
    bytes[..string.len()].copy_from_slice(string);
    bytes[PREFIX] = string.len() as u8;
    u64::from_be_bytes(bytes)
}

/// Sorts `prefixes`, and moves `items` to the same order.
fn sort_by_prefixes<I: Index, T: Send>(items: &mut [T], prefixes: &mut [u64], threads: usize) -> Result<(), Error> {
    let mut indices = Scratch::<I>::init(items.len())?;
    fill_identity_on(threads, &mut indices);
    sort::sort(KeyOrder::ASCENDING, RunMut::new((prefixes, &mut indices)), threads)?;
    // SAFETY: the sort has moved the numbers from 0 to `items.len() - 1`, each of which is there once.
    unsafe { moved::permute(items, &indices, threads) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::fresh_seed;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::Ordering::Relaxed;

    /// An element that is not `Copy`, `Clone` or `Sync`.
    struct Element {
        string: Vec<u8>,
        index: usize,
        reads: Cell<u32>,
    }

    fn string(element: &Element) -> &[u8] {
        element.reads.set(element.reads.get() + 1);
        &element.string
    }

    /// `bytes`, whose result the compiler otherwise gives a lifetime of its own.
    fn with_lifetime<F: Fn(&Element) -> &[u8] + Sync>(bytes: F) -> F {
        bytes
    }

    /// Strings that share prefixes of all lengths, end at any byte, and have zeros in any place.
    fn strings(kind: &str, len: usize, random: &mut StdRng) -> Vec<Element> {
        let mut bytes = |count: usize, alphabet: &[u8]| -> Vec<u8> {
            (0..count).map(|_| alphabet[random.random_range(0..alphabet.len())]).collect()
        };
        let lengths: Vec<u8> = bytes(len, &(0..=25).collect::<Vec<_>>());
        let common = bytes(100, b"xyz");
        let make = |(index, length): (usize, &u8)| {
            let string = match kind {
                "any" => bytes(usize::from(*length), &(0..=255).collect::<Vec<_>>()),
                "zeros" => bytes(usize::from(*length), &[0, 1]),
                "zeros only" => bytes(usize::from(*length), &[0]),
                "common" => [common.clone(), bytes(usize::from(*length), b"ab")].concat(),
                "prefixes of one" => common[..usize::from(*length) * 4].to_vec(),
                "groups" => [bytes(1, b"pq"), common.clone(), bytes(usize::from(*length) % 10, b"ab\xff")].concat(),
                "few" => [&common[..10], &[length % 3]].concat(),
                "descending" => (len - index).to_be_bytes().to_vec(),
                // The sample does not have it.
                "but one" => [&[b'x' + u8::from(index == 1)], &*bytes(3, b"ab")].concat(),
                _ => common.clone(),
            };
            Element { string, index, reads: Cell::new(0) }
        };
        lengths.iter().enumerate().map(make).collect()
    }

    const KINDS: [&str; 10] =
        ["any", "zeros", "zeros only", "common", "prefixes of one", "groups", "few", "descending", "but one", "equal"];

    #[test]
    fn strings_have_the_order_of_the_standard_librarys_stable_sort() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        for threads in [1, 2, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for len in [0, 1, 2, 3, MAX_COMPARED, MAX_COMPARED + 1, 500, BLOCK, 3 * BLOCK + 1, 30_000] {
                for kind in KINDS {
                    let what = format!("{len} strings, {kind}, {threads} threads, seed {seed}");
                    let mut found = strings(kind, len, &mut random);
                    let mut expected: Vec<_> = found.iter().map(|item| (item.string.clone(), item.index)).collect();
                    expected.sort();
                    pool.install(|| sort_from(&mut found, &string, 0, MOST_WORDS, threads)).unwrap();
                    assert!(found.into_iter().map(|item| (item.string, item.index)).eq(expected), "{what}");
                }
            }
        }
    }

    #[test]
    fn the_permutation_of_strings_is_that_of_the_standard_librarys_stable_sort() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let engine = crate::Engine::cpu_with_threads(2).unwrap();
        // The last number is worth two threads.
        for len in [0, 1, MAX_COMPARED + 1, 40_000] {
            for kind in KINDS {
                let strings: Vec<_> = strings(kind, len, &mut random).into_iter().map(|item| item.string).collect();
                let mut expected: Vec<usize> = (0..len).collect();
                expected.sort_by_key(|&i| &strings[i]);
                let (mut short, mut long) = (vec![1u32; len], vec![1u64; len]);
                engine.argsort_by_bytes(&mut short, |i| &strings[i]).unwrap();
                engine.argsort_by_bytes(&mut long, |i| &strings[i]).unwrap();
                assert!(short.iter().map(|&i| i as usize).eq(expected.iter().copied()), "{len} {kind}, seed {seed}");
                assert!(long.iter().map(|&i| i as usize).eq(expected), "{len} {kind}, seed {seed}");
            }
        }
    }

    #[test]
    fn a_panic_loses_and_duplicates_no_element() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        for (kind, len) in [("common", 3000), ("groups", 20_000)] {
            let calls = AtomicUsize::new(0);
            let mut run = |most: usize| {
                let mut items = strings(kind, len, &mut random);
                calls.store(0, Relaxed);
                let counted = with_lifetime(|element| {
                    assert!(calls.fetch_add(1, Relaxed) < most, "enough");
                    string(element)
                });
                let result = catch_unwind(AssertUnwindSafe(|| {
                    pool.install(|| sort_from(&mut items, &counted, 0, MOST_WORDS, 2))
                }));
                assert_eq!(result.is_err(), calls.load(Relaxed) > most, "{kind}, {most} calls, seed {seed}");
                let mut indices: Vec<usize> = items.iter().map(|item| item.index).collect();
                indices.sort();
                assert!(indices.into_iter().eq(0..len), "{kind}, {most} calls, seed {seed}");
                calls.load(Relaxed)
            };
            let all = run(usize::MAX);
            (0..20).for_each(|i| _ = run(all * i / 20));
        }
    }
}
