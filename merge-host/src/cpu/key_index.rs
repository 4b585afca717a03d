//! Sort of the indices of keys, by numbers that contain a key's bits and its index.
//!
//! ```text
//!   keys     30 10 20 10
//!   numbers  30|0 10|1 20|2 10|3   ─ sort ─►   10|1 10|3 20|2 30|0   ─►   indices  1 3 2 0
//! ```
//!
//! No two numbers are equal, so any sort of the numbers is stable. Vectors sort numbers without values several times as
//! fast as another sort moves keys with values. A number has 8 bytes. If the differing bits of a key and the bits of an
//! index take more, the last bits of keys are left out at first. They decide the order of keys that are equal in all
//! other bits.
//!
//! Keys of 16 bytes are sorted like this, too, and are moved once.

use super::blocks::for_each_block_of_keys;
use super::equal_keys::for_each_group;
use super::memory;
use super::run::RunMut;
use super::scratch::Scratch;
use super::{digit, sort, sort_pairs, vector};
use crate::key::sealed::Bits;
use crate::key_order::KeyOrder;
use crate::{Error, Index, Key, parallel};
use bytemuck::Zeroable;

/// The number of keys or numbers of a block.
const BLOCK: usize = 1 << 14;
/// The greatest number of bits of an index. The bits of a key that are left out fit into a number together with an
/// index.
const MAX_INDEX_BITS: u32 = u64::BITS / 2;

/// The greatest number of keys of 16 bytes that are sorted.
const MAX_WIDE_KEYS: usize = 1 << 12;

/// Whether this is the fastest way to find the permutation that sorts `keys`.
pub(super) fn can_argsort<K: Key>(keys: usize, threads: usize) -> bool {
    matches!(size_of::<K>(), 4 | 8)
        && index_bits(keys) <= MAX_INDEX_BITS
        && vector::can_sort_on::<u64>(threads, keys, vector::Digits { are_narrow: |_| false, are_even: || true })
}

/// Writes to `indices`, which has the length of `keys`, the permutation that sorts the keys. [`can_argsort`] is true
/// for them.
pub(super) fn argsort<K: Key, I: Index>(
    order: KeyOrder,
    keys: &[K],
    indices: &mut [I],
    threads: usize,
) -> Result<(), Error> {
    let numbers = Numbers::sorted(order, keys, threads)?;
    for_each_block_of_keys(indices, BLOCK, threads, |begin, indices| {
        indices.iter_mut().zip(numbers.indices(begin)).for_each(|(to, index)| *to = I::from_usize(index));
    });
    Ok(())
}

/// Whether this is the fastest way to sort `keys` keys of type `K` without values.
pub(super) fn can_sort<K: Key>(keys: usize) -> bool {
    size_of::<K>() > size_of::<u64>() && keys <= MAX_WIDE_KEYS && vector::has_vectors::<u64>()
}

/// Sorts keys of a type that [`can_sort`] accepts.
pub(super) fn sort<K: Key>(order: KeyOrder, keys: &mut [K], threads: usize) -> Result<(), Error> {
    let numbers = Numbers::sorted(order, keys, threads)?;
    let mut sorted = Scratch::init(keys.len())?;
    sorted.iter_mut().zip(numbers.indices(0)).for_each(|(to, index)| *to = keys[index]);
    keys.copy_from_slice(&sorted);
    Ok(())
}

/// One number for each key.
struct Numbers {
    numbers: Scratch<u64>,
    index_bits: u32,
}

impl Numbers {
    /// The numbers of `keys`, in the order of a stable sort.
    fn sorted<K: Key>(order: KeyOrder, keys: &[K], threads: usize) -> Result<Self, Error> {
        let index_bits = index_bits(keys.len());
        // The number of key bits that do not fit. Keys of 4 bytes always fit.
        let differing = if size_of::<K>() > 4 { differing(order, keys, threads)? } else { K::Bits::zeroed() };
        let rest = (digit::significant(differing) + index_bits).saturating_sub(u64::BITS);
        let mut numbers = Scratch::init(keys.len())?;
        for_each_block_of_keys(&mut numbers, BLOCK, threads, |begin, numbers| {
            vector::wide(|| {
                for ((i, number), key) in numbers.iter_mut().enumerate().zip(&keys[begin..]) {
                    // The shift may drop leading bits, which are the same in all keys.
                    *number = ((order.encode(*key) >> rest).low() as u64) << index_bits | (begin + i) as u64;
                }
            });
        });
        sort::sort(KeyOrder::ASCENDING, RunMut::of_keys(&mut numbers), threads)?;
        let sorted = Self { numbers, index_bits };
        let index = |number: u64| (number & !(u64::MAX << index_bits)) as usize;
        if differing >> rest << rest == differing {
            // No differing bit is left out.
            Ok(sorted)
        } else if rest + index_bits <= u64::BITS {
            let rest_of = |index: usize| order.encode(keys[index]).low() as u64 & !(u64::MAX << rest);
            sorted.sorted_in_groups(threads, |group| {
                group
                    .iter_mut()
                    .for_each(|number| *number = rest_of(index(*number)) << index_bits | index(*number) as u64);
                sort::sort(KeyOrder::ASCENDING, RunMut::of_keys(group), 1)
            })
        } else {
            sorted.sorted_in_groups(threads, |group| {
                let keys = memory::collected(group.iter().map(|number| keys[index(*number)]))?;
                let mut indices = memory::zeroed::<u64>(group.len())?;
                sort_pairs::argsort(order, &keys, &mut indices, 1)?;
                let numbers = memory::collected(indices.iter().map(|i| group[*i as usize]))?;
                group.copy_from_slice(&numbers);
                Ok(())
            })
        }
    }

    /// Calls `sort` with each group of numbers that are equal in their key bits.
    fn sorted_in_groups(
        mut self,
        threads: usize,
        sort: impl Fn(&mut [u64]) -> Result<(), Error> + Sync,
    ) -> Result<Self, Error> {
        let Self { numbers, index_bits } = &mut self;
        let is_same = |a: &u64, b: &u64| (a ^ b) >> *index_bits == 0;
        for_each_group(RunMut::of_keys(numbers), BLOCK, threads, is_same, |group, _| sort(group.keys))?;
        Ok(self)
    }

    /// The indices of the numbers from `begin` on.
    fn indices(&self, begin: usize) -> impl Iterator<Item = usize> {
        let mask = !(u64::MAX << self.index_bits);
        self.numbers[begin..].iter().map(move |number| (number & mask) as usize)
    }
}

/// The number of bits of an index of `keys` keys.
pub(super) fn index_bits(keys: usize) -> u32 {
    keys.next_power_of_two().ilog2()
}

/// A mask of the bits of encoded keys that differ between keys. All bits, where the order moves NaNs: a carry may then
/// change the leading bits of keys that are alike.
fn differing<K: Key>(order: KeyOrder, keys: &[K], threads: usize) -> Result<K::Bits, Error> {
    if !order.keeps_nans::<K>() {
        return Ok(!K::Bits::zeroed());
    }
    let Some(first) = keys.first() else { return Ok(K::Bits::zeroed()) };
    let length = parallel::share_length_for(threads, keys.len(), BLOCK);
    let differing = parallel::try_map_on(threads, keys.chunks(length), |keys| digit::differing(*first, keys))?;
    Ok(differing.into_iter().fold(K::Bits::zeroed(), |all, bits| all | bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::fresh_seed;
    use crate::{NanOrder, SortOrder};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use std::fmt::Debug;

    /// Compares the sort with the standard library's stable sort.
    fn check<K: Key + Debug>(name: &str, keys: &[K], seed: u64) {
        let nans_last = KeyOrder { direction: SortOrder::Descending, nans: NanOrder::Last };
        let orders = [KeyOrder::ASCENDING, SortOrder::Descending.into(), nans_last];
        for (order, threads) in [(orders[0], 1), (orders[1], 1), (orders[2], 1), (orders[0], 2)] {
            let mut expected: Vec<usize> = (0..keys.len()).collect();
            expected.sort_by_key(|i| order.encode(keys[*i]));
            let what = format!("{name}, {} of {}, {order:?}, {threads} threads, seed {seed}", keys.len(), K::NAME);
            let mut indices = vec![u32::MAX; keys.len()];
            argsort(order, keys, &mut indices, threads).unwrap();
            assert!(indices.iter().map(|i| *i as usize).eq(expected.iter().copied()), "{what}");
        }
    }

    #[test]
    fn equal_keys_keep_their_order() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        for len in [0, 1, 2, 3, 255, 1000, 4096, 70_001, 300_000] {
            let words: Vec<u64> = (0..len).map(|_| random.random()).collect();
            let all = |name: &str, of: &dyn Fn(u64) -> u64| {
                let words: Vec<u64> = words.iter().map(|word| of(*word)).collect();
                let halves: Vec<u32> = words.iter().map(|word| (word >> 32) as u32 ^ *word as u32).collect();
                pool.install(|| {
                    check(name, &words, seed);
                    check(name, &halves, seed);
                    check(name, &words.iter().map(|word| *word as i64).collect::<Vec<_>>(), seed);
                    check(name, &words.iter().map(|word| f64::from_bits(*word)).collect::<Vec<_>>(), seed);
                    check(name, &halves.iter().map(|word| f32::from_bits(*word)).collect::<Vec<_>>(), seed);
                });
            };
            all("any bits", &|word| word);
            all("all equal", &|_| 5);
            all("16 values", &|word| word >> 60 << 57);
            // If indices take the last bits of a number, these keys differ only in bits that are left out.
            all("last bits", &|word| word & 7 | 1 << 60);
            all("last bits of few", &|word| word & 0xff_ffff | (word >> 62) << 62);
            // Of these keys' differing bits, the last one alone is left out.
            let first = (u64::BITS - index_bits(len)).min(u64::BITS - 1);
            all("first and last bit", &|word| word & 1 | word >> 63 << first);
        }
    }
}
