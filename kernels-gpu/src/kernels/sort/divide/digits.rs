//! Digits: the numbers by which keys are divided.
//!
//! Any nondecreasing function of the key can serve as a digit. These digits are linear between two bounds, either in
//! the key or in another nondecreasing function of it: a [`Curve`].
//!
//! ```text
//!   key      … least - 1 │ least ………………………… greatest │ greatest + 1 …
//!   digit            0   │ 0   1   2   …       count - 1 …
//! ```
//!
//! The bounds come from a sample, so that some keys may lie outside. Keys below the bounds have the first digit, and
//! keys above them the last.

use crate::key::{Bits, Coding};
use cuda_std::recomputed;

/// A nondecreasing linear map from numbers up to a greatest one to a smaller range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Shift to the left that brings a number's leading bits to the top.
    pub shift: u32,
    /// Factor of the 32 leading bits.
    pub factor: u32,
}

/// Bound on the number of equal shares of a [`Scale`]: it is below this.
pub const MOST_EVEN: u32 = 4096;

impl Scale {
    /// Maps the numbers up to `greatest` to fewer than `count` numbers, in equal shares. `greatest` is not 0, and
    /// `count` is below [`MOST_EVEN`].
    #[inline(always)]
    pub fn even<B: Bits>(greatest: B, count: u32) -> Self {
        let shift = greatest.leading_zeros();
        // The greatest number has the top bit set, so that the quotient and the product do not overflow.
        Self { shift, factor: (count << 20) / ((greatest.upper_half_shifted(shift) >> 12) + 1) }
    }

    /// Leaves numbers of `bits` bits, from 1 to 31, as they are.
    #[inline(always)]
    pub fn exact<B: Bits>(bits: u32) -> Self {
        Self { shift: 8 * size_of::<B>() as u32 - bits, factor: 1 << bits }
    }

    /// Image of `number`, with `bits` more bits of precision below.
    #[inline(always)]
    pub(super) fn finer<B: Bits>(self, number: B, bits: u32) -> u32 {
        number.upper_product(self.shift, (self.factor as u64) << bits)
    }

    /// Image of `number`.
    #[inline(always)]
    pub fn of<B: Bits>(self, number: B) -> u32 {
        self.finer(number, 0)
    }
}

/// Function of the key in which the digits are linear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Curve {
    /// A key's distance from the least one.
    Distance,
    /// About the logarithm of that distance: the bits of the distance as a float. It spreads keys of which many are
    /// small, for example a Zipf distribution.
    Logarithm,
    /// About the logarithm of a key's distance from the greatest one, negated. It spreads keys of which many are large.
    Mirrored,
    /// The float whose bits the key is. It spreads floats from 0 to 1, whose bits are skewed.
    Value,
}

/// Bits of a float that is less than 1, and so less than every distance except 0.
const BELOW_ONE: u32 = 0.5f32.to_bits();

/// About the logarithm of a distance; 0 for 0.
#[inline(always)]
fn logarithm<B: Bits>(distance: B) -> u32 {
    distance.rounded().to_bits().max(BELOW_ONE) - BELOW_ONE
}

/// How keys become digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits<B> {
    /// Keys up to this one have digit 0.
    pub least: B,
    /// Keys from this one on have the last digit.
    pub greatest: B,
    /// Function of the key in which the digits are linear.
    pub curve: Curve,
    /// Maps a key's distance from `least`, or the logarithm of a distance, to its digit. For [`Curve::Value`], the
    /// factor holds the bits of a float.
    pub scale: Scale,
    /// Number of digits.
    pub count: u32,
    /// The digit of the level before whose keys these digits divide further, or [`WHOLE`].
    pub within: u32,
}

/// Known curve, at compile time: [`Curve::Distance`], the usual case. A curve that is not known is looked up for each
/// key.
pub const LINEAR: u32 = 0;
/// Known curve: [`Curve::Mirrored`].
pub const MIRRORED: u32 = 1;
/// Known curve: neither [`Curve::Distance`] nor [`Curve::Mirrored`].
pub const OTHER: u32 = 2;
/// The curve is not known.
pub const ANY: u32 = 3;

/// Value of [`Digits::within`] for digits that divide all keys.
pub const WHOLE: u32 = u32::MAX;

/// Number of finer digits of each digit, if the digits of two levels are counted at once, and the bits of a finer
/// digit.
pub const FINER: u32 = 1 << FINER_BITS;
const FINER_BITS: u32 = 8;

impl<B: Bits> Digits<B> {
    /// Digits along the distance, of all keys.
    #[inline(always)]
    fn linear(least: B, greatest: B, scale: Scale) -> Self {
        let count = scale.of(greatest - least) + 1;
        Self { least, greatest, curve: Curve::Distance, scale, count, within: WHOLE }
    }

    /// About `count` digits of equal width for keys from `least` to `greatest`, which differ. `count` is from 1 to
    /// [`MOST_DIGITS`](super::MOST_DIGITS). There may be one digit more: see [`count`](Self::count).
    #[inline(always)]
    pub fn even(least: B, greatest: B, count: u32) -> Self {
        let Scale { shift, factor } = Scale::even(greatest - least, count);
        // Rounded up, so that there are at least `count` digits.
        Self::linear(least, greatest, Scale { shift, factor: factor + 1 })
    }

    /// About `count` digits along `curve`, for keys as `coding` encodes them.
    #[inline(always)]
    pub fn along(curve: Curve, least: B, greatest: B, count: u32, coding: Coding<B>) -> Self {
        // The least key gets a different logarithm from the keys below it, and the greatest key from the keys above it.
        let least = if curve == Curve::Logarithm && least > B::MIN { least - B::ONE } else { least };
        let greatest = if curve == Curve::Mirrored && greatest < B::MAX { greatest + B::ONE } else { greatest };
        let range = greatest - least;
        let scale = match curve {
            Curve::Distance => return Self::even(least, greatest, count),
            Curve::Logarithm | Curve::Mirrored => Scale::even(logarithm(range), count),
            Curve::Value => {
                let range = coding.decode(greatest).minus_as_floats(coding.decode(least));
                // A range that is infinite, NaN or too small gives one digit for all keys.
                let factor = count as f32 / range;
                Scale { shift: 0, factor: if factor.is_finite() { factor } else { 0.0 }.to_bits() }
            }
        };
        let digits = Self { least, greatest, curve, scale, count: 1, within: WHOLE };
        let last = match curve {
            Curve::Value => digits.of_value(greatest, coding),
            _ => scale.of(logarithm(range)),
        };
        Self { count: last + 1, ..digits }
    }

    /// One digit for each key from `least` to `greatest`, one for the keys below and one for the keys above.
    ///
    /// The range holds fewer than [`MOST_DIGITS`](super::MOST_DIGITS) keys.
    #[inline(always)]
    pub fn exact(least: B, greatest: B) -> Self {
        let least = if least > B::MIN { least - B::ONE } else { least };
        let greatest = if greatest < B::MAX { greatest + B::ONE } else { greatest };
        let distance = (greatest - least).to_register() as u32;
        Self::linear(least, greatest, Scale::exact::<B>((32 - distance.leading_zeros()).max(1)))
    }

    /// Whether all keys of digit `digit` are certainly equal. That may hold for a digit made by [`exact`](Self::exact),
    /// if `exact`, and otherwise for the digit of the least logarithm.
    #[inline(always)]
    pub fn is_one_key(self, digit: u32, exact: bool) -> bool {
        if exact {
            return (digit > 0 || self.least == B::MIN) && (digit + 1 < self.count || self.greatest == B::MAX);
        }
        // Keys below `least` share the digit of `least`, unless there are none. Mirrored, keys above `greatest` share
        // the digit of `greatest`.
        let (is_all, digit) = match self.curve {
            Curve::Logarithm => (self.least == B::MIN, digit),
            Curve::Mirrored => (self.greatest == B::MAX, self.count - 1 - digit),
            _ => return false,
        };
        let first = if is_all { 0 } else { 1 };
        let of = |distance: u32| self.scale.of(logarithm(B::from_register(distance as u64)));
        digit == of(first)
            && digit < of(first + 1)
            && (first == 0 || digit > of(first - 1))
            && self.greatest - self.least > B::from_register(first as u64)
    }

    /// The key, limited to the bounds.
    #[inline(always)]
    fn clamped(self, key: B) -> B {
        key.max(self.least).min(self.greatest)
    }

    /// Digit, less than `count`, of a key that `coding` has encoded. `ALONG` says what is known of the curve:
    /// [`LINEAR`], [`MIRRORED`], [`OTHER`] or [`ANY`].
    #[inline(always)]
    pub fn of<const ALONG: u32>(self, key: B, coding: Coding<B>) -> u32 {
        if ALONG == LINEAR || ALONG == ANY && self.curve == Curve::Distance {
            // The same for all keys.
            let (bits, first) = if self.within == WHOLE { (0, 0) } else { (FINER_BITS, self.within << FINER_BITS) };
            return self.scale.finer(self.clamped(key) - self.least, bits).wrapping_sub(first);
        }
        if ALONG != MIRRORED && self.curve == Curve::Value {
            return self.of_value(key, coding);
        }
        self.of_logarithm(key, ALONG == MIRRORED || ALONG == ANY && self.curve == Curve::Mirrored)
    }

    /// Digit of a key along the logarithm of its distance from `least`, or from `greatest` if it `is_mirrored`.
    #[inline(always)]
    pub fn of_logarithm(self, key: B, is_mirrored: bool) -> u32 {
        let key = self.clamped(key);
        let digit = self.scale.of(logarithm(if is_mirrored { self.greatest - key } else { key - self.least }));
        if is_mirrored { self.count - 1 - digit } else { digit }
    }

    /// Digit of a key that `coding` has encoded, along its value as a float.
    #[inline(always)]
    pub fn of_value(self, key: B, coding: Coding<B>) -> u32 {
        let [value, least] = [self.clamped(key), self.least].map(|key| coding.decode(key));
        (value.minus_as_floats(least) * f32::from_bits(self.scale.factor)) as u32
    }

    /// A key's digit and its finer digit in one number: the digit times [`FINER`], plus the finer digit.
    #[inline(always)]
    pub fn finer_of(self, key: B) -> u32 {
        self.scale.finer(self.clamped(key) - self.least, FINER_BITS)
    }

    /// The finer digits within digit `digit`.
    #[inline(always)]
    pub fn finer_within(self, digit: u32) -> Self {
        Self { within: digit, count: FINER, ..self }
    }

    /// The same digits, recomputed: the compiler computes each key's digit again instead of keeping all digits in
    /// registers.
    #[inline(always)]
    pub fn again(self) -> Self {
        let scale = Scale { factor: recomputed(self.scale.factor), ..self.scale };
        Self { least: recomputed(self.least), greatest: recomputed(self.greatest), scale, ..self }
    }
}
