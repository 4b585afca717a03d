//! A digit of a key: some neighbouring bits of its ordered bits.

use crate::Key;
use crate::key::sealed::Bits;
use bytemuck::Zeroable;

/// Bits that make most keys differ, beside those that it takes to number the keys.
const SPARE_BITS: u32 = 4;

/// How often each value of a digit occurs.
pub(super) type Counts<const VALUES: usize> = [usize; VALUES];

/// A digit of so many values at most, a power of two.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Digit<const VALUES: usize> {
    shift: u32,
    bits: u32,
}

impl<const VALUES: usize> Digit<VALUES> {
    const MOST_BITS: u32 = VALUES.ilog2();

    /// The digit that begins with the first of the bits that differ, of so many values or fewer, but of 2 at least.
    pub fn first<B: Bits>(differing: B, values: usize) -> Self {
        let bits = values.clamp(2, VALUES).ilog2();
        Digit { shift: significant(differing).saturating_sub(bits), bits }
    }

    /// The last of so many digits of `VALUES` values, of which the first begins with the first of the bits that differ.
    pub fn last_of<B: Bits>(digits: usize, differing: B) -> Self {
        let bits = Self::MOST_BITS;
        Digit { shift: significant(differing).saturating_sub(bits * digits as u32), bits }
    }

    /// The digit of `VALUES` values before so many bits.
    pub fn after(bits: u32) -> Self {
        Digit { shift: bits, bits: Self::MOST_BITS }
    }

    /// The digit of as many bits that is so many before it.
    pub fn before(self, digits: usize) -> Self {
        Digit { shift: self.shift + self.bits * digits as u32, ..self }
    }

    /// How many digits of `VALUES` values so many bits make.
    pub fn in_bits(bits: u32) -> usize {
        bits.div_ceil(Self::MOST_BITS) as usize
    }

    /// Whether no bits come after it.
    pub fn ends_key(self) -> bool {
        self.shift == 0
    }

    /// The bits after it.
    pub fn bits_after<B: Bits + Zeroable>(self) -> B {
        !(!B::zeroed() << self.shift)
    }

    /// Whether two keys are the same up to the end of this digit.
    #[inline(always)]
    pub fn is_same_up_to_here<K: Key>(self, a: K, b: K) -> bool {
        self.up_to_here(a) ^ self.up_to_here(b) == K::Bits::zeroed()
    }

    /// The bits of a key up to the end of this digit.
    #[inline(always)]
    pub fn up_to_here<K: Key>(self, key: K) -> K::Bits {
        key.to_ordered() >> self.shift
    }

    /// That of a key.
    #[inline(always)]
    pub fn of<K: Key>(self, key: K) -> usize {
        // The compiler knows then that there is a count for it.
        self.up_to_here(key).low() & (self.values() - 1) & (VALUES - 1)
    }

    /// How many values it has.
    #[inline(always)]
    pub fn values(self) -> usize {
        1 << self.bits
    }

    /// Adds to `counts` how often each value occurs.
    pub fn count<K: Key>(self, keys: &[K], counts: &mut Counts<VALUES>) {
        keys.iter().for_each(|key| counts[self.of(*key)] += 1);
    }

    /// The same of this digit and those before it, each of `VALUES` values.
    pub fn count_with_those_before<K: Key, const DIGITS: usize>(
        self,
        keys: &[K],
        counts: &mut [Counts<VALUES>; DIGITS],
    ) {
        for key in keys {
            let bits = self.up_to_here(*key);
            // How far the others are shifted is constant.
            for (d, counts) in counts.iter_mut().enumerate() {
                counts[(bits >> (Self::MOST_BITS * d as u32)).low() & (VALUES - 1)] += 1;
            }
        }
    }
}

/// The bits in which some key is not the same as `first`, which is one of them or any other.
pub(super) fn differing<'a, K: Key>(first: K, keys: impl IntoIterator<Item = &'a K>) -> K::Bits {
    let first = first.to_ordered();
    keys.into_iter().fold(K::Bits::zeroed(), |all, key| all | (key.to_ordered() ^ first))
}

/// How many bits there are from the first of the bits that differ on.
pub(super) fn significant<B: Bits>(differing: B) -> u32 {
    B::COUNT - differing.leading_zeros()
}

/// How many bits tell most of so many keys apart, if all values are as frequent.
pub(super) fn telling(keys: usize) -> u32 {
    keys.max(1).ilog2() + SPARE_BITS
}
