//! An interval of candidates, which are ordered by their key and then by their index, divided by a digit.
//!
//! ```text
//!   candidate   │ key             │ index      │     as one number
//!   digit         ├─────────┤                        of the key, while keys differ
//!   digit                    ├───────┤               of the last bits of the key and the first bits of the index
//! ```
//!
//! The number is relative to the first candidate of the interval, so that a digit has all bits in which candidates
//! differ, if these are few.

use crate::key::Bits;

/// All candidates with keys from `key` to `key + keys` and with indices from `index` to `index + indices`.
///
/// Either there is one key, or the interval has all indices.
#[derive(Clone, Copy)]
pub(super) struct Interval<B> {
    key: B,
    keys: B,
    index: u32,
    indices: u32,
    /// Number of bits of a candidate's number in the interval.
    width: u32,
    /// Number of bits of an index.
    index_bits: u32,
}

/// A digit of the numbers of an interval.
#[derive(Clone, Copy)]
pub(super) struct Digit<B> {
    interval: Interval<B>,
    /// Number of bits below the digit.
    shift: u32,
    /// How far the key and the index are shifted to form the digit.
    key_down: u32,
    key_up: u32,
    index_down: u32,
}

impl<B: Bits> Interval<B> {
    /// All candidates with keys from `least` to `greatest`, and with indices of `index_bits` bits, at most 31.
    #[inline(always)]
    pub(super) fn new(least: B, greatest: B, index_bits: u32) -> Self {
        let keys = greatest.minus(least);
        let width = const { 8 * size_of::<B>() as u32 } - keys.leading_zeros() + index_bits;
        Self { key: least, keys, index: 0, indices: u32::MAX, width, index_bits }
    }

    #[inline(always)]
    pub(super) fn contains(self, key: B, index: u32) -> bool {
        key.minus(self.key) <= self.keys && index.wrapping_sub(self.index) <= self.indices
    }

    /// The first `bits` bits of the numbers, or all if there are fewer.
    #[inline(always)]
    pub(super) fn digit(self, bits: u32) -> Digit<B> {
        let shift = self.width.saturating_sub(bits);
        if shift >= self.index_bits {
            // An index has at most 31 bits, none of which are left after this shift.
            return Digit { interval: self, shift, key_down: shift - self.index_bits, key_up: 0, index_down: 31 };
        }
        Digit { interval: self, shift, key_down: 0, key_up: self.index_bits - shift, index_down: shift }
    }

    /// The greatest key and index of the interval.
    #[inline(always)]
    pub(super) fn last(self) -> (B, u32) {
        (self.key.plus(self.keys), self.index.saturating_add(self.indices))
    }
}

impl<B: Bits> Digit<B> {
    /// The digit of a candidate in the interval.
    #[inline(always)]
    pub(super) fn of(self, key: B, index: u32) -> u32 {
        let of_key = key.minus(self.interval.key).shifted_down(self.key_down).to_register() as u32;
        (of_key << self.key_up) + ((index - self.interval.index) >> self.index_down)
    }

    /// The part of the interval with this value of the digit.
    #[inline(always)]
    pub(super) fn part(self, value: u32) -> Interval<B> {
        let Self { interval, shift, .. } = self;
        let bits = |number: u64| B::from_register(number);
        if shift >= interval.index_bits {
            let first = bits((value as u64) << self.key_down);
            let (all, left) = (bits((1 << self.key_down) - 1), interval.keys.minus(first));
            let keys = if all < left { all } else { left };
            return Interval { key: interval.key.plus(first), keys, width: shift, ..interval };
        }
        let of_index = value & ((1 << self.key_up) - 1);
        Interval {
            key: interval.key.plus(bits((value >> self.key_up) as u64)),
            keys: B::MIN,
            index: interval.index + (of_index << shift),
            indices: (1 << shift) - 1,
            width: shift,
            ..interval
        }
    }
}
