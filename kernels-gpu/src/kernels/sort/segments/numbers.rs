//! 4-byte numbers by which 4-byte keys are sorted together with their indices.
//!
//! ```text
//!   Upper          │ upper bits of key - least │ index │     all different, so that any sort of them is stable
//!   Lower          │ the key's other bits      │ index │     if too many keys differ only in these bits
//!   UpperOfLower   │ upper bits of key - least │ rank  │     in the order of the lower bits
//! ```
//!
//! The upper bits are the bits from the topmost one in which keys differ, while they fit beside an index. After the
//! sort by these, keys that differ only in their lower bits are put in order by insertion. If groups of such keys are
//! too long, or too many, the same sort runs twice more.

use crate::key::Bits;

/// The bits of a key that its number holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// The upper bits, and the index of each.
    Upper,
    /// The lower bits, and the index of each.
    Lower,
    /// The upper bits, and the rank of each in the order of the lower ones.
    UpperOfLower,
}

impl Pass {
    /// The next pass, or `None` if this one leaves all keys in order: the last pass always does, and others if
    /// `are_in_order`.
    #[inline(always)]
    pub(super) fn next(self, are_in_order: bool) -> Option<Self> {
        match self {
            _ if are_in_order => None,
            Self::Upper => Some(Self::Lower),
            Self::Lower => Some(Self::UpperOfLower),
            Self::UpperOfLower => None,
        }
    }
}

/// How a key and its index become a number.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    least: u32,
    /// Upper bits that all differences from the least key lack.
    unused: u32,
    /// Bits of an index, at most half of a number's bits.
    index_bits: u32,
}

impl Numbers {
    /// Numbers for keys from `least` to `greatest` with indices below `len`, which is from 1 to 2^16.
    #[inline(always)]
    pub(super) fn new(least: u32, greatest: u32, len: u32) -> Self {
        // At most 31: if keys are equal, the shifted difference is 0.
        let unused = (greatest - least).leading_zeros().min(u32::BITS - 1);
        Self { least, unused, index_bits: u32::BITS - (len - 1).leading_zeros() }
    }

    /// Number of words that hold this struct.
    pub(super) const WORDS: u32 = 3;

    /// The struct as words.
    #[inline(always)]
    pub(super) fn words(self) -> [u32; Self::WORDS as usize] {
        [self.least, self.unused, self.index_bits]
    }

    /// The struct from its [`words`](Self::words).
    #[inline(always)]
    pub(super) fn of_words([least, unused, index_bits]: [u32; Self::WORDS as usize]) -> Self {
        Self { least, unused, index_bits }
    }

    /// Number of the keys' lower bits that the upper bits leave out.
    #[inline(always)]
    fn left_out(self) -> u32 {
        self.index_bits.saturating_sub(self.unused)
    }

    /// Whether no bit is left out, so that keys are in order when their numbers are.
    #[inline(always)]
    pub(super) fn have_all_bits(self) -> bool {
        self.index_bits <= self.unused
    }

    /// The number of a key with index or rank `index`.
    #[inline(always)]
    pub(super) fn of<B: Bits>(self, pass: Pass, key: B, index: u32) -> u32 {
        let (shift, mask) = if pass == Pass::Lower {
            (self.index_bits, ((1 << self.left_out()) - 1) << self.index_bits)
        } else {
            (self.unused, u32::MAX << self.index_bits)
        };
        ((key.to_register() as u32 - self.least) << shift & mask) + index
    }

    /// The index or the rank.
    #[inline(always)]
    pub(super) fn index(self, number: u32) -> u32 {
        number & ((1 << self.index_bits) - 1)
    }

    /// Whether two numbers differ only in their indices.
    #[inline(always)]
    pub(super) fn are_alike(self, number: u32, other: u32) -> bool {
        (number ^ other) >> self.index_bits == 0
    }
}

/// Upper limit on the keys of a group that is put in order by insertion.
pub(super) const MOST_ALIKE: u32 = 16;
