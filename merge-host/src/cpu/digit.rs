//! A digit of a key: some adjacent bits of its ordered bits.

use crate::Key;
use crate::key::sealed::Bits;
use crate::key_order::KeyOrder;
use bytemuck::Zeroable;
use std::ops::RangeInclusive;

/// Bits of a prefix beyond log2 of the number of keys: with them, prefixes of most random keys are distinct.
const SPARE_BITS: u32 = 4;

/// The number of keys of a block that [`differing_or_more`] scans before it decides whether to continue.
const SCAN_BLOCK: usize = 1 << 10;

/// A histogram: the number of occurrences of each value of a digit.
pub(super) type Counts<const RADIX: usize> = [usize; RADIX];

/// A digit of at most `RADIX` values. `RADIX` is a power of two.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Digit<const RADIX: usize> {
    /// The number of bits of a key after the digit.
    shift: u32,
    /// The number of bits of the digit.
    bits: u32,
}

impl<const RADIX: usize> Digit<RADIX> {
    const MAX_BITS: u32 = RADIX.ilog2();

    /// The digit that begins with the most significant bit of `differing`. It has at most `values` values, but at least
    /// 2.
    pub fn first<B: Bits>(differing: B, values: usize) -> Self {
        let bits = values.clamp(2, RADIX).ilog2();
        Digit { shift: significant(differing).saturating_sub(bits), bits }
    }

    /// The last of `digits` digits of `RADIX` values. The first digit begins with the most significant bit of
    /// `differing`.
    pub fn last_of<B: Bits>(digits: usize, differing: B) -> Self {
        let bits = Self::MAX_BITS;
        Digit { shift: significant(differing).saturating_sub(bits * digits as u32), bits }
    }

    /// The digit of `RADIX` values that precedes the last `bits` bits.
    pub fn after(bits: u32) -> Self {
        Digit { shift: bits, bits: Self::MAX_BITS }
    }

    /// The digit that is `digits` digits of the same width before this digit.
    pub fn before(self, digits: usize) -> Self {
        Digit { shift: self.shift + self.bits * digits as u32, ..self }
    }

    /// The number of digits of `RADIX` values that cover `bits` bits.
    pub fn in_bits(bits: u32) -> usize {
        bits.div_ceil(Self::MAX_BITS) as usize
    }

    /// Whether no bits follow this digit.
    pub fn ends_key(self) -> bool {
        self.shift == 0
    }

    /// A mask of the bits after this digit.
    pub fn bits_after<B: Bits + Zeroable>(self) -> B {
        !(!B::zeroed() << self.shift)
    }

    /// The bits of `key` up to the end of this digit.
    #[inline(always)]
    pub fn prefix<K: Key>(self, key: K) -> K::Bits {
        key.to_ordered() >> self.shift
    }

    /// The value of this digit in `key`.
    #[inline(always)]
    pub fn of<K: Key>(self, key: K) -> usize {
        // The second mask changes nothing. It shows the compiler that the value is a valid index of `Counts`.
        self.prefix(key).low() & (self.values() - 1) & (RADIX - 1)
    }

    /// The number of values of this digit.
    #[inline(always)]
    pub fn values(self) -> usize {
        1 << self.bits
    }

    /// Adds the histogram of this digit in `keys` to `counts`.
    pub fn count<K: Key>(self, keys: &[K], counts: &mut Counts<RADIX>) {
        keys.iter().for_each(|key| counts[self.of(*key)] += 1);
    }

    /// [`count`](Self::count) for this digit and the `DIGITS - 1` digits before it, each of `RADIX` values.
    pub fn count_with_those_before<K: Key, const DIGITS: usize>(
        self,
        keys: &[K],
        counts: &mut [Counts<RADIX>; DIGITS],
    ) {
        for key in keys {
            let bits = self.prefix(*key);
            // The distances between the digits are constants.
            for (d, counts) in counts.iter_mut().enumerate() {
                counts[(bits >> (Self::MAX_BITS * d as u32)).low() & (RADIX - 1)] += 1;
            }
        }
    }
}

/// The ordered bits of a key, encoded for `order`. The key has at most the bytes of a `usize`.
#[inline(always)]
pub(super) fn word<K: Key>(order: KeyOrder, key: K) -> u64 {
    order.encode(key).low() as u64
}

/// A mask of the bits that differ between `first` and some key. `first` need not be one of the keys.
pub(super) fn differing<'a, K: Key>(first: K, keys: impl IntoIterator<Item = &'a K>) -> K::Bits {
    let first = first.to_ordered();
    keys.into_iter().fold(K::Bits::zeroed(), |all, key| all | (key.to_ordered() ^ first))
}

/// A mask of the bits that differ between keys. The scan ends early if more than the last `bits` bits differ.
pub(super) fn differing_or_more<K: Key>(keys: &[K], bits: u32) -> K::Bits {
    let (Some(first), mut all) = (keys.first(), K::Bits::zeroed()) else { return K::Bits::zeroed() };
    for block in keys.chunks(SCAN_BLOCK) {
        all = all | differing(*first, block);
        if significant(all) > bits {
            break;
        }
    }
    all
}

/// The number of values of a wide digit.
pub(super) const WIDE_RADIX: usize = 1 << 10;

/// Whether two wide digits distinguish most keys, judged by a sample. The digits of floats do not: floats begin with
/// exponents, and only a few exponents are frequent.
pub(super) fn is_even<K: Key>(keys: &[K]) -> bool {
    /// The number of keys to sample, and the least number of distinct digits in the sample. A sample of uniform keys
    /// has 227 distinct digits, and a sample of floats in [0, 1) has 150.
    const SAMPLE: usize = 1 << 8;
    const DIFFERENT: usize = 200;
    let Some(first) = keys.first() else { return false };
    let sample = keys.iter().step_by(keys.len().div_ceil(SAMPLE));
    let digit = Digit::<WIDE_RADIX>::last_of(1, differing(*first, sample.clone()));
    let mut occurs = [false; WIDE_RADIX];
    sample.for_each(|key| occurs[digit.of(*key)] = true);
    occurs.iter().filter(|occurs| **occurs).count() >= DIFFERENT
}

/// Whether the number of differing bits is in `range`, and most neighbours in a sample differ in the first half of
/// these bits. Otherwise a radix pass adds to the counter of one digit many times, and each addition waits for the one
/// before. `all` is a mask of the bits in which keys differ.
pub(super) fn are_narrow<K: Key>(keys: &[K], all: K::Bits, range: RangeInclusive<u32>) -> bool {
    const SAMPLE: usize = 1 << 6;
    let bits = significant(all);
    let mut pairs = keys.windows(2).step_by(keys.len().div_ceil(SAMPLE).max(1));
    let is_far = |pair: &[K]| significant(differing(pair[0], &pair[1..])) > bits / 2;
    range.contains(&bits) && pairs.len() < 2 * pairs.by_ref().filter(|pair| is_far(pair)).count()
}

/// The number of bits from the most significant bit of `differing` on.
pub(super) fn significant<B: Bits>(differing: B) -> u32 {
    B::COUNT - differing.leading_zeros()
}

/// The number of bits that distinguish most of `keys` random keys.
pub(super) fn distinguishing_bits(keys: usize) -> u32 {
    keys.max(1).ilog2() + SPARE_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_keys_are_in_no_order() {
        let is_narrow = |keys: &[u64], most| are_narrow(keys, differing(keys[0], keys), 7..=most);
        let ascending: Vec<u64> = (0..3000).collect();
        // The products of an odd number are all residues of a power of 2.
        let mixed: Vec<u64> = (0..4096).map(|i| i * 2477 % 4096).collect();
        assert!(is_narrow(&mixed, 12) && !is_narrow(&mixed, 11));
        assert!(!is_narrow(&ascending, 12) && !is_narrow(&[5], 12));
        let few: Vec<u64> = mixed.iter().map(|key| key % 32).collect();
        assert!(!is_narrow(&few, 12));
    }
}
