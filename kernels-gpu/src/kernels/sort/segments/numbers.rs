//! Numbers of 4 bytes by which keys of 4 bytes are sorted with the index of each.
//!
//! ```text
//!   Upper          │ upper bits of key - least │ index │     all different, so that any sort of them is stable
//!   Lower          │ the key's other bits      │ index │     if there are any, and if too many keys differ in nothing else
//!   UpperOfLower   │ upper bits of key - least │ rank  │     in the order of the lower bits
//! ```
//!
//! Upper bits are as many as an index leaves, from the topmost one on in which keys differ. Once all are sorted by
//! these, keys that differ in their lower bits alone are put in order by insertion. If groups of such keys are too
//! long, or too many, the same sort runs twice more.

use crate::key::Bits;

/// What the numbers have of the keys.
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
    /// The next pass, or `None` if all keys are in order behind this one: always behind the last one, or if they
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
    /// Bits of an index, at most half of those of a number.
    index_bits: u32,
}

impl Numbers {
    /// For keys from `least` to `greatest` with indices below `len`, which is not 0 and at most 2^16.
    #[inline(always)]
    pub(super) fn new(least: u32, greatest: u32, len: u32) -> Self {
        // At most 31: what is shifted is 0 if keys are equal.
        let unused = (greatest - least).leading_zeros().min(u32::BITS - 1);
        Self { least, unused, index_bits: u32::BITS - (len - 1).leading_zeros() }
    }

    /// How many words tell all of this.
    pub(super) const WORDS: u32 = 3;

    /// These words.
    #[inline(always)]
    pub(super) fn words(self) -> [u32; Self::WORDS as usize] {
        [self.least, self.unused, self.index_bits]
    }

    /// What the [`words`](Self::words) tell.
    #[inline(always)]
    pub(super) fn of_words([least, unused, index_bits]: [u32; Self::WORDS as usize]) -> Self {
        Self { least, unused, index_bits }
    }

    /// How many lower bits of the keys the upper ones leave out.
    #[inline(always)]
    fn left_out(self) -> u32 {
        self.index_bits.saturating_sub(self.unused)
    }

    /// Whether there are none, so that keys are in order when their numbers are.
    #[inline(always)]
    pub(super) fn have_all_bits(self) -> bool {
        self.index_bits <= self.unused
    }

    /// The number of a key, of which `index` is the index, or the rank.
    #[inline(always)]
    pub(super) fn of<B: Bits>(self, pass: Pass, key: B, index: u32) -> u32 {
        let (shift, mask) = if pass == Pass::Lower {
            (self.index_bits, ((1 << self.left_out()) - 1) << self.index_bits)
        } else {
            (self.unused, u32::MAX << self.index_bits)
        };
        ((key.to_register() as u32 - self.least) << shift & mask) + index
    }

    /// The index, or the rank.
    #[inline(always)]
    pub(super) fn index(self, number: u32) -> u32 {
        number & ((1 << self.index_bits) - 1)
    }

    /// Whether two numbers differ in nothing but indices.
    #[inline(always)]
    pub(super) fn are_alike(self, number: u32, other: u32) -> bool {
        (number ^ other) >> self.index_bits == 0
    }
}

/// The most keys of a group that are put in order by insertion.
pub(super) const MOST_ALIKE: u32 = 16;
