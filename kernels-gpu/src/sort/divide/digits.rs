//! Digits: the numbers by which keys are divided.
//!
//! Any function of a key that never descends will do. This one is linear between two bounds:
//!
//! ```text
//!   key      … least - 1 │ least ………………………… greatest │ greatest + 1 …
//!   digit            0   │ 0   1   2   …       count - 1 …
//! ```
//!
//! The bounds come from a sample, so there may be keys beyond: those below have the first digit, too, and those above the last one.

use crate::key::Bits;
use cuda_std::recomputed;

/// A linear map of the numbers from 0 to a greatest one to fewer numbers. It never descends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// How far a number is shifted up, so that its leading bits count.
    pub shift: u32,
    /// What the 32 leading bits are multiplied by.
    pub factor: u32,
}

impl Scale {
    /// For numbers up to `greatest`, which is not 0: fewer than `count`, which is below 4096, of equal shares.
    #[inline(always)]
    pub fn even<B: Bits>(greatest: B, count: u32) -> Self {
        let shift = greatest.leading_zeros();
        // The greatest number has the top bit set, so that neither quotient nor product overflows.
        Self { shift, factor: (count << 20) / ((greatest.upper_half_shifted(shift) >> 12) + 1) }
    }

    /// Numbers of `bits` bits, from 1 to 31, stay as they are.
    #[inline(always)]
    pub fn exact<B: Bits>(bits: u32) -> Self {
        Self { shift: 8 * size_of::<B>() as u32 - bits, factor: 1 << bits }
    }

    /// What `number` becomes, and `bits` more bits of it.
    #[inline(always)]
    fn finer<B: Bits>(self, number: B, bits: u32) -> u32 {
        number.upper_product(self.shift, (self.factor as u64) << bits)
    }

    /// What `number` becomes.
    #[inline(always)]
    pub fn of<B: Bits>(self, number: B) -> u32 {
        self.finer(number, 0)
    }
}

/// How keys become digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits<B> {
    /// The greatest key up to which all have digit 0.
    pub least: B,
    /// The least key that certainly has the last digit.
    pub greatest: B,
    /// How a key's distance from `least` becomes its digit.
    pub scale: Scale,
    /// Which of the digits it is whose keys these digits divide further, or else [`WHOLE`].
    pub within: u32,
}

/// That digits are of all keys.
pub const WHOLE: u32 = u32::MAX;

/// How many finer digits there are of each, if they are counted at once, and the bits of these.
pub const FINER: u32 = 1 << FINER_BITS;
const FINER_BITS: u32 = 8;

impl<B: Bits> Digits<B> {
    /// About `count` digits of equal width, from 1 to [`MOST_DIGITS`](super::MOST_DIGITS), for keys from `least` to `greatest`,
    /// which are different; there may be one more, as [`count`](Self::count) tells.
    #[inline(always)]
    pub fn even(least: B, greatest: B, count: u32) -> Self {
        let Scale { shift, factor } = Scale::even(greatest - least, count);
        // Rounded up, so that there are not fewer.
        Self { least, greatest, scale: Scale { shift, factor: factor + 1 }, within: WHOLE }
    }

    /// A digit for each key from `least` to `greatest`, one for those below and one for those above.
    ///
    /// There are fewer than [`MOST_DIGITS`](super::MOST_DIGITS) such keys.
    #[inline(always)]
    pub fn exact(least: B, greatest: B) -> Self {
        let least = if least > B::MIN { least - B::ONE } else { least };
        let greatest = if greatest < B::MAX { greatest + B::ONE } else { greatest };
        let distance = (greatest - least).to_register() as u32;
        Self { least, greatest, scale: Scale::exact::<B>((32 - distance.leading_zeros()).max(1)), within: WHOLE }
    }

    /// Whether keys of digit `digit` are all equal, if this was made by [`exact`](Self::exact).
    #[inline(always)]
    pub fn is_one_key(self, digit: u32) -> bool {
        (digit > 0 || self.least == B::MIN) && (digit + 1 < self.count() || self.greatest == B::MAX)
    }

    /// A key's distance from `least`, as far as digits tell.
    #[inline(always)]
    fn distance(self, key: B) -> B {
        key.max(self.least).min(self.greatest) - self.least
    }

    /// A key's digit, which is less than [`count`](Self::count).
    #[inline(always)]
    pub fn of(self, key: B) -> u32 {
        // The same for all keys.
        let (bits, first) = if self.within == WHOLE { (0, 0) } else { (FINER_BITS, self.within << FINER_BITS) };
        self.scale.finer(self.distance(key), bits).wrapping_sub(first)
    }

    /// A key's digit and its finer digit within that, in one number: its digit times [`FINER`] and its finer digit.
    #[inline(always)]
    pub fn finer_of(self, key: B) -> u32 {
        self.scale.finer(self.distance(key), FINER_BITS)
    }

    /// The finer digits within digit `digit`.
    #[inline(always)]
    pub fn finer_within(self, digit: u32) -> Self {
        Self { within: digit, ..self }
    }

    /// The same digits, by which the compiler computes each key's once more instead of keeping all in registers.
    #[inline(always)]
    pub fn again(self) -> Self {
        Self { least: recomputed(self.least), greatest: recomputed(self.greatest), ..self }
    }

    /// The number of digits.
    #[inline(always)]
    pub fn count(self) -> u32 {
        if self.within == WHOLE { self.scale.of(self.greatest - self.least) + 1 } else { FINER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_never_descend_and_are_below_their_count() {
        for (least, greatest) in [(0, 1), (0, u32::MAX), (7, 1_000_000_007), (u32::MAX - 5, u32::MAX), (5, 6)] {
            for count in [1, 2, 7, 8, 255, 1000, 1024] {
                let digits = Digits::even(least, greatest, count);
                assert!(digits.count() <= count + 1, "{digits:?}");
                let wide = Digits::even((least as u64) << 31, (greatest as u64) << 31, count);
                assert!(wide.count() <= count + 1, "{wide:?}");
                let mut last = (0, 0);
                for i in 0..=4096u64 {
                    let key = (i * u32::MAX as u64 / 4096) as u32;
                    let of_key = (digits.of(key), wide.of((key as u64) << 31));
                    assert!(last.0 <= of_key.0 && last.1 <= of_key.1, "{key}");
                    assert!(of_key.0 < digits.count() && of_key.1 < wide.count(), "{key}");
                    last = of_key;
                }
            }
        }
    }

    #[test]
    fn even_digits_have_equal_shares_of_even_keys() {
        let digits = Digits::even(1000, 4_000_000_999u32, 64);
        let mut shares = [0u32; 66];
        (0..1_000_000u32).for_each(|i| shares[digits.of(1000 + 4000 * i) as usize] += 1);
        assert!(shares.iter().all(|&share| share <= 15_626), "{shares:?}");
        assert!((64..=65).contains(&shares.iter().filter(|&&share| share > 0).count()));
    }

    #[test]
    fn exact_digits_are_one_key_each_but_the_outer_ones() {
        let ranges = [(0, 0), (0, 5), (100, 100), (100, 1000), (u32::MAX - 3, u32::MAX), (u32::MAX, u32::MAX)];
        for (least, greatest) in ranges {
            let digits = Digits::exact(least, greatest);
            let (below, above) = (u32::from(least > 0), u32::from(greatest < u32::MAX));
            assert_eq!(digits.count(), greatest - least + below + 1 + above, "{digits:?}");
            for key in least..=greatest {
                assert_eq!(digits.of(key), key - least + below);
                assert!(digits.is_one_key(digits.of(key)));
            }
            // All keys but one are less, or greater.
            assert_eq!(digits.of(0), 0);
            assert_eq!(digits.is_one_key(0), least <= 1);
            assert_eq!(digits.of(u32::MAX), digits.count() - 1);
            assert_eq!(digits.is_one_key(digits.count() - 1), greatest >= u32::MAX - 1);
        }
    }
}
