//! A digit of a key: 8 neighbouring bits of its ordered bits, or fewer.

use crate::Key;
use crate::key::sealed::Bits;
use bytemuck::Zeroable;

/// The most bits of a digit.
const BITS: u32 = 8;
/// The most values of a digit.
pub(super) const VALUES: usize = 1 << BITS;
/// Keys for each value of a digit that are worth it.
const KEYS_A_VALUE: usize = 1 << 10;
/// Bits that make most keys differ, beside those that it takes to number the keys.
const SPARE_BITS: u32 = 4;

/// How often each value of a digit occurs.
pub(super) type Counts = [usize; VALUES];

#[derive(Clone, Copy, PartialEq)]
pub(super) struct Digit {
    shift: u32,
    mask: u8,
}

impl Digit {
    /// The digit that begins with the first of the bits that differ. The fewer keys there are, the fewer values it has, so
    /// that each has keys enough for passes of their own.
    pub fn first<B: Bits>(differing: B, keys: usize) -> Self {
        let worth = (keys / KEYS_A_VALUE).max(2).ilog2();
        let bits = BITS.min(worth);
        Digit { shift: significant(differing).saturating_sub(bits), mask: ((1 << bits) - 1) as u8 }
    }

    /// The last of so many digits of 8 bits, of which the first begins with the first of the bits that differ.
    pub fn last_of<B: Bits>(digits: usize, differing: B) -> Self {
        Digit { shift: significant(differing).saturating_sub(BITS * digits as u32), mask: u8::MAX }
    }

    /// The digit of 8 bits that is so many before it.
    pub fn before(self, digits: usize) -> Self {
        Digit { shift: self.shift + BITS * digits as u32, mask: u8::MAX }
    }

    /// Whether no bits come after it.
    pub fn ends_key(self) -> bool {
        self.shift == 0
    }

    /// Whether two keys are the same up to the end of this digit.
    #[inline(always)]
    pub fn is_same_up_to_here<K: Key>(self, a: K, b: K) -> bool {
        (a.to_ordered() ^ b.to_ordered()) >> self.shift == K::Bits::zeroed()
    }

    /// That of a key.
    #[inline(always)]
    pub fn of<K: Key>(self, key: K) -> usize {
        (key.to_ordered() >> self.shift).low() & usize::from(self.mask)
    }

    /// How many values it has.
    pub fn values(self) -> usize {
        usize::from(self.mask) + 1
    }

    /// Adds to `counts` how often each value occurs.
    pub fn count<K: Key>(self, keys: &[K], counts: &mut Counts) {
        keys.iter().for_each(|key| counts[self.of(*key)] += 1);
    }

    /// The same of this digit and those before it.
    pub fn count_with_those_before<K: Key, const DIGITS: usize>(self, keys: &[K], counts: &mut [Counts; DIGITS]) {
        for key in keys {
            let bits = key.to_ordered() >> self.shift;
            // How far the others are shifted is constant.
            for (d, counts) in counts.iter_mut().enumerate() {
                counts[(bits >> (BITS * d as u32)).low() & (VALUES - 1)] += 1;
            }
        }
    }
}

/// The bits in which some key is not the same as `first`, which is one of them or any other.
pub(super) fn differing<'a, K: Key>(first: K, keys: impl IntoIterator<Item = &'a K>) -> K::Bits {
    let first = first.to_ordered();
    keys.into_iter().fold(K::Bits::zeroed(), |all, key| all | (key.to_ordered() ^ first))
}

/// How many digits of 8 bits there are from the first of the bits that differ on.
pub(super) fn digits<B: Bits>(differing: B) -> usize {
    significant(differing).div_ceil(BITS) as usize
}

/// How many digits of 8 bits tell most of so many keys apart, if all values are as frequent.
pub(super) fn telling(keys: usize) -> usize {
    (keys.max(1).ilog2() + SPARE_BITS).div_ceil(BITS) as usize
}

fn significant<B: Bits>(differing: B) -> u32 {
    B::COUNT - differing.leading_zeros()
}
