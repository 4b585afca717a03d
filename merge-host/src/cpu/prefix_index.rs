//! Sort of one run on one thread by numbers that are shorter than the key-value pairs.
//!
//! A number has a prefix of a key, which distinguishes it from most others, and the key's index. The passes of the sort
//! move only numbers. Then each key is moved once, with its value, to its final slot:
//!
//! ```text
//!   run             27a 15b 11c 26d 12e 38f
//!   prefix | index  2|0 1|1 1|2 2|3 1|4 3|5   ─ sort ─►   1|1 1|2 1|4 2|0 2|3 3|5
//!   sorted          15b 11c 12e 27a 26d 38f
//! ```
//!
//! The numbers and their scratch memory stay in the cache. The first read of the run is sequential and brings it to the
//! cache, where the gather reads it again. The result is written sequentially, once. So both may be in memory at first.

use super::run::{Run, RunMut};
use super::scratch::Scratch;
use super::{digit, leaf, lsd, vector};
use crate::key::sealed::Bits;
use crate::{Key, SortOrder};
use std::ops::RangeInclusive;

/// The number of values of a digit. A pass over numbers writes one list per value, and a pass over pairs writes two, so
/// numbers may have digits of more values.
const RADIX: usize = 1 << 10;
/// The number of digits of a prefix. They distinguish the keys of the longest run.
const DIGITS: usize = 2;
/// Lengths of runs that are worth this radix, with numbers that fit the cache: at most 1 MiB with their scratch memory.
const KEYS: RangeInclusive<usize> = 1 << 10..=1 << 16;
/// Lengths of runs that vectors sort by numbers.
pub(super) const VECTOR_KEYS: RangeInclusive<usize> = 1 << 11..=1 << 18;
/// The number of keys of a block. The values of a block are prefetched.
const PREFETCH_KEYS: usize = 8;

/// The prefix of a key, followed by the key's index.
type PrefixIndex = u64;
pub(super) type Digit = digit::Digit<RADIX>;

/// Scratch memory, reused from run to run.
#[derive(Default)]
pub(super) struct Workspace {
    numbers: Option<Scratch<PrefixIndex>>,
    /// Scratch memory for passes, with the length of the numbers.
    scratch: Option<Scratch<PrefixIndex>>,
}

impl Workspace {
    /// Whether there is memory for the numbers of `count` keys, and for the scratch memory of passes if `has_passes`.
    pub fn has_memory(&mut self, count: usize, has_passes: bool) -> bool {
        has_memory(&mut self.numbers, count) && (!has_passes || has_memory(&mut self.scratch, count))
    }
}

/// Whether `memory` has `count` numbers. It grows if it has fewer.
fn has_memory(memory: &mut Option<Scratch<PrefixIndex>>, count: usize) -> bool {
    if memory.as_ref().is_none_or(|memory| memory.len() < count) {
        // The old memory is freed before the new memory is allocated.
        *memory = None;
        *memory = Scratch::zeroed(count).ok();
    }
    memory.is_some()
}

/// The first `count` numbers of `memory`. It has at least `count`.
fn numbers_in(memory: &mut Option<Scratch<PrefixIndex>>, count: usize) -> &mut [PrefixIndex] {
    let memory = memory.as_mut().expect("the caller has asked whether there is memory");
    &mut memory[..count]
}

/// Whether this is the fastest way to sort `keys` keys with values of type `V`.
pub(super) fn can_sort<K, V>(keys: usize) -> bool {
    KEYS.contains(&keys) && size_of::<K>() + size_of::<V>() >= size_of::<PrefixIndex>()
}

/// Whether [`sort_by_vectors`] supports keys of type `K` with values of type `V`, for lengths in [`VECTOR_KEYS`].
pub(super) fn has_vectors<K, V>() -> bool {
    size_of::<V>() > 0
        && size_of::<K>() <= size_of::<PrefixIndex>()
        && vector::can_sort::<PrefixIndex>(
            *VECTOR_KEYS.end(),
            vector::Digits { differing: || PrefixIndex::MAX, are_even: || true },
        )
}

/// [`sort`], with vectors in place of passes. [`has_vectors`] is true for the types. `workspace` has memory for the
/// numbers.
pub(super) fn sort_by_vectors<K: Key, V: Copy>(
    run: Run<K, V>,
    mut sorted: RunMut<K, V>,
    differing: K::Bits,
    workspace: &mut Workspace,
) -> Digit {
    let index_bits = leaf::index_bits(run.keys.len());
    let rest = (digit::significant(differing) + index_bits).saturating_sub(PrefixIndex::BITS);
    let last = Digit::after(rest);
    let numbers = numbers_in(&mut workspace.numbers, run.keys.len());
    for (i, (number, key)) in numbers.iter_mut().zip(run.keys).enumerate() {
        // The shift may drop leading bits, which are the same in all keys.
        *number = (last.prefix(*key).low() << index_bits | i) as PrefixIndex;
    }
    vector::sort(SortOrder::Ascending, numbers);
    let index = |number: PrefixIndex| number.low() & ((1 << index_bits) - 1);
    if rest > 0 {
        sorted.gather(run, numbers.iter().map(|number| index(*number)));
    } else {
        // The numbers contain all bits that differ between keys.
        let differing = differing.low();
        let same = run.keys[0].to_ordered().low() & !differing;
        let values = &run.values[..run.keys.len()];
        for (i, number) in numbers.iter().enumerate() {
            let bits = number.low() >> index_bits & differing | same;
            sorted.keys[i] = K::from_ordered(K::Bits::from_low(bits));
            sorted.values[i] = values[index(*number)];
        }
    }
    last
}

/// Sorts `run` into `sorted`, up to the end of the digit that it returns. [`can_sort`] is true for the length of `run`.
/// Keys differ only in the bits `differing`. `workspace` has memory for the numbers and for passes.
pub(super) fn sort<K: Key, V: Copy>(
    run: Run<K, V>,
    mut sorted: RunMut<K, V>,
    differing: K::Bits,
    workspace: &mut Workspace,
) -> Digit {
    let last = Digit::last_of(DIGITS, differing);
    let index_bits = leaf::index_bits(run.keys.len());
    let numbers = numbers_in(&mut workspace.numbers, run.keys.len());
    let scratch = numbers_in(&mut workspace.scratch, run.keys.len());
    for (i, numbers) in numbers.chunks_mut(PREFETCH_KEYS).enumerate() {
        let first = i * PREFETCH_KEYS;
        prefetch(&run.values[first..]);
        let keys = &run.keys[first..first + numbers.len()];
        for (lane, number) in numbers.iter_mut().enumerate() {
            *number = ((last.prefix(keys[lane]).low() << index_bits) | (first + lane)) as PrefixIndex;
        }
    }
    let by_prefix = Digit::after(index_bits);
    lsd::sort::<_, _, RADIX, DIGITS>(RunMut::of_keys(numbers), RunMut::of_keys(scratch), false, by_prefix);
    sorted.gather(run, numbers.iter().map(|number| *number as usize & ((1 << index_bits) - 1)));
    last
}

/// Prefetches the cache line of the first of `values`.
fn prefetch<V>(values: &[V]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch does not fault at any address and does not change the program's state. Every x86-64 processor
    // has SSE.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().cast())
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}
