//! Sort of one run on one thread by numbers that are shorter than the key-value pairs.
//!
//! A number has a prefix of a key, which distinguishes it from most others, and the key's index. Vectors sort the
//! numbers. Then each key is moved once, with its value, to its final slot:
//!
//! ```text
//!   run             27a 15b 11c 26d 12e 38f
//!   prefix | index  2|0 1|1 1|2 2|3 1|4 3|5   ─ sort ─►   1|1 1|2 1|4 2|0 2|3 3|5
//!   sorted          15b 11c 12e 27a 26d 38f
//! ```
//!
//! The numbers stay in the cache. The first read of the run is sequential and brings it to the
//! cache, where the gather reads it again. The result is written sequentially, once. So both may be in memory at first.

use super::key_index::index_bits;
use super::run::{Run, RunMut};
use super::scratch::Scratch;
use super::{digit, vector};
use crate::key::sealed::Bits;
use crate::{Key, SortOrder};
use std::ops::RangeInclusive;

/// The number of values of the digit that ends a prefix.
const RADIX: usize = 1 << 10;
/// Lengths of runs that are sorted by numbers.
pub(super) const KEYS: RangeInclusive<usize> = 1 << 11..=1 << 18;

/// The prefix of a key, followed by the key's index.
type PrefixIndex = u64;
pub(super) type Digit = digit::Digit<RADIX>;

/// Scratch memory, reused from run to run.
#[derive(Default)]
pub(super) struct Workspace(Option<Scratch<PrefixIndex>>);

impl Workspace {
    /// Whether there is memory for the numbers of `count` keys.
    pub fn has_memory(&mut self, count: usize) -> bool {
        if self.0.as_ref().is_none_or(|numbers| numbers.len() < count) {
            // The old memory is freed before the new memory is allocated.
            self.0 = None;
            self.0 = Scratch::init(count).ok();
        }
        self.0.is_some()
    }

    /// The numbers of `count` keys.
    fn numbers(&mut self, count: usize) -> &mut [PrefixIndex] {
        let numbers = self.0.as_mut().expect("the caller has asked whether there is memory");
        &mut numbers[..count]
    }
}

/// Whether [`sort`] has a use for keys of type `K` with values of type `V`.
pub(super) const fn supports<K, V>() -> bool {
    size_of::<V>() > 0 && size_of::<K>() <= size_of::<PrefixIndex>()
}

/// Whether [`sort`] supports keys of type `K` with values of type `V`, for lengths in [`KEYS`].
pub(super) fn can_sort<K, V>() -> bool {
    supports::<K, V>()
        && vector::can_sort::<PrefixIndex>(*KEYS.end(), vector::Digits { are_narrow: |_| false, are_even: || true })
}

/// Sorts `run` into `sorted`, up to the end of the digit that it returns. [`can_sort`] is true for the types, and the
/// length is in [`KEYS`]. Keys differ only in the bits `differing`. `workspace` has memory for the numbers.
pub(super) fn sort<K: Key, V: Copy>(
    run: Run<K, V>,
    mut sorted: RunMut<K, V>,
    differing: K::Bits,
    workspace: &mut Workspace,
) -> Digit {
    let index_bits = index_bits(run.keys.len());
    let rest = (digit::significant(differing) + index_bits).saturating_sub(PrefixIndex::BITS);
    let last = Digit::after(rest);
    let numbers = workspace.numbers(run.keys.len());
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
