//! Keys: six number types, ordered as unsigned bits.
//!
//! A kernel encodes each key, when it loads it, as an unsigned integer that compares the same way, and decodes it when
//! it stores it. In between, every type has the same order, `<` on `u32` or `u64`:
//!
//! ```text
//!   u32, u64   the bits as they are
//!   i32, i64   the sign bit flipped            negative … positive  →  0… … 1…
//!   f32, f64   negative: all bits flipped      -NaN -inf … -0.0     →  0…
//!              others: the sign bit flipped    +0.0 … +inf +NaN     →  1…
//! ```
//!
//! For floating point this is IEEE 754's total order, the one of [`f32::total_cmp`]. A [`Coding`] can also rotate the
//! numbers of floats such that all NaNs come last or first.

use crate::thread::network::Wire;
use core::ops::{Add, BitAnd, BitXor, Sub};
use cuda_std::Word;
use cuda_std::warp::{FULL_MASK, reduce_max};

/// A number that the kernels can merge and sort by.
pub trait Key: Copy + Send + Sync + 'static {
    /// Unsigned bits of the same width, in the same order as the keys.
    type Bits: Bits;
    /// The type's name. The name of [`Bits`](Self::Bits) is the suffix of its kernels' names.
    const NAME: &'static str;
    /// The transformation of [`to_ordered`](Self::to_ordered), as numbers.
    fn coding() -> Coding<Self::Bits>;
    /// The key as ordered bits: `a` comes before `b` exactly if `a.to_ordered() < b.to_ordered()`.
    fn to_ordered(self) -> Self::Bits;
    /// The inverse of `to_ordered`.
    fn from_ordered(bits: Self::Bits) -> Self;
}

/// The bits of a key: an unsigned integer of 1, 2, 4, 8 or 16 bytes. A [`Coding`] needs no more of them.
pub trait Width: Copy + Ord + Send + Sync + 'static + BitXor<Output = Self> + BitAnd<Output = Self> {
    /// The least value.
    const MIN: Self;
    /// The greatest value.
    const MAX: Self;
    /// The top bit alone.
    const TOP: Self;
    /// All bits below the top bit.
    const BELOW_TOP: Self;
    /// Number of NaNs of one sign, of floats with this many bits; 0 if there are no such floats.
    const NANS: Self;
    /// The sum, modulo 2 to the number of bits.
    fn plus(self, other: Self) -> Self;
    /// The difference, modulo 2 to the number of bits.
    fn minus(self, other: Self) -> Self;
    /// All ones if the top bit is set, otherwise 0.
    fn spread_top(self) -> Self;
}

macro_rules! width {
    ($($t:ident as $signed:ident: $mantissa_bits:expr;)*) => {$(
        impl Width for $t {
            const MIN: Self = $t::MIN;
            const MAX: Self = $t::MAX;
            const TOP: Self = 1 << ($t::BITS - 1);
            const BELOW_TOP: Self = $t::MAX >> 1;
            const NANS: Self = (1 << $mantissa_bits) - 1;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn spread_top(self) -> Self {
                (self as $signed >> ($t::BITS - 1)) as $t
            }
        }
    )*};
}
width! {
    u8 as i8: 0;
    u16 as i16: 10;
    u32 as i32: 23;
    u64 as i64: 52;
    u128 as i128: 0;
}

/// Ordered bits: `u32` or `u64`, which are keys themselves, ordered as they are.
pub trait Bits: Key<Bits = Self> + Width + Word + Wire + Add<Output = Self> + Sub<Output = Self> {
    /// 1
    const ONE: Self;
    /// Number of zero bits above the highest bit that is 1.
    fn leading_zeros(self) -> u32;
    /// The upper 32 bits of the number shifted up by `shift`, which is below its number of bits.
    fn upper_half_shifted(self, shift: u32) -> u32;
    /// The product of [`upper_half_shifted`](Self::upper_half_shifted) and `factor`, shifted down by 32, modulo 2^32.
    /// The bits that `shift` moves out of the number are 0.
    fn upper_product(self, shift: u32, factor: u64) -> u32;
    /// The number shifted down by `shift`.
    fn shifted_down(self, shift: u32) -> Self;
    /// The nearest float.
    fn rounded(self) -> f32;
    /// The difference of two floats: of the float with these bits and the float with the bits of `other`.
    fn minus_as_floats(self, other: Self) -> f32;
    /// The greatest value that a lane of the warp passed.
    ///
    /// # Safety
    /// The lanes of one whole warp make this call.
    unsafe fn greatest_of_warp(self) -> Self;
}

macro_rules! bits {
    ($($t:ident as $float:ident, $greatest_of_warp:ident, $upper_product:ident;)*) => {$(
        impl Bits for $t {
            const ONE: Self = 1;
            #[inline(always)]
            fn leading_zeros(self) -> u32 {
                self.leading_zeros()
            }
            #[inline(always)]
            fn upper_half_shifted(self, shift: u32) -> u32 {
                ((self << shift) >> ($t::BITS - 32)) as u32
            }
            #[inline(always)]
            fn upper_product(self, shift: u32, factor: u64) -> u32 {
                $upper_product(self, shift, factor)
            }
            #[inline(always)]
            fn shifted_down(self, shift: u32) -> Self {
                self >> shift
            }
            #[inline(always)]
            fn rounded(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn minus_as_floats(self, other: Self) -> f32 {
                ($float::from_bits(self) - $float::from_bits(other)) as f32
            }
            #[inline(always)]
            unsafe fn greatest_of_warp(self) -> Self {
                // SAFETY: the trait's method requires that the 32 lanes of one whole warp make this call. They also
                // make the next one.
                unsafe { $greatest_of_warp(self) }
            }
        }
    )*};
}
bits!(u32 as f32, greatest_narrow, upper_product_narrow; u64 as f64, greatest_wide, upper_product_wide;);

/// Shifts the factor instead of the number: this is loop-invariant.
#[inline(always)]
fn upper_product_narrow(number: u32, shift: u32, factor: u64) -> u32 {
    let factor = factor << shift;
    let (lower, upper) = (factor as u32, (factor >> 32) as u32);
    ((number as u64 * lower as u64) >> 32) as u32 + number * upper
}

#[inline(always)]
fn upper_product_wide(number: u64, shift: u32, factor: u64) -> u32 {
    upper_product_narrow(number.upper_half_shifted(shift), 0, factor)
}

#[inline(always)]
unsafe fn greatest_narrow(value: u32) -> u32 {
    // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which all make this call.
    unsafe { reduce_max(FULL_MASK, value) }
}

/// The greatest upper half, and the greatest lower half of the numbers with that upper half.
#[inline(always)]
unsafe fn greatest_wide(value: u64) -> u64 {
    let upper = (value >> 32) as u32;
    // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which all make this call; neither reduction is in a branch.
    unsafe {
        let greatest = reduce_max(FULL_MASK, upper);
        let lower = reduce_max(FULL_MASK, if upper == greatest { value as u32 } else { 0 });
        (greatest as u64) << 32 | lower as u64
    }
}

/// The transformation of keys to ordered bits, as three numbers instead of a type. Kernels that take them as arguments
/// serve all key types of one width, both directions, and all orders of NaNs.
///
/// ```text
///                         always   when_negative (top bit set)   rotation
///   u32, u64              0…0      0…0                           0
///   i32, i64              10…0     0…0                           0
///   f32, f64              10…0     01…1                          0
///   the same, NaN last    the same the same                      -c
///   the same, NaN first   the same the same                      c
///   descending            inverted the same                      negated
/// ```
///
/// In total order the c NaNs of one sign have the least numbers, and the c NaNs of the other sign the greatest
/// ([`Width::NANS`]). A rotation by c therefore moves the NaNs of one end to the other end:
///
/// ```text
///   total order   -NaN … │ -inf … -0.0  +0.0 … +inf │ … +NaN
///   NaN last             │ -inf … -0.0  +0.0 … +inf │ … +NaN │ -NaN …      number - c
///   NaN first     … +NaN │ -NaN … │ -inf … -0.0  +0.0 … +inf │             number + c
/// ```
///
/// ```
/// # use kernels_gpu::key::{Coding, Key};
/// let descending = Coding::of::<f32>(true);
/// assert!(descending.encode((2.0f32).to_bits()) < descending.encode((-1.0f32).to_bits()));
/// assert_eq!(descending.decode(descending.encode(7)), 7);
///
/// let last = descending.with_nans_last();
/// assert!(last.encode((-1.0f32).to_bits()) < last.encode(f32::NAN.to_bits()));
/// assert_eq!(last.decode(last.encode(7)), 7);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coding<B> {
    /// Bits to invert in every key.
    pub always: B,
    /// Bits to invert, in addition, in a key with the top bit set. The top bit is not one.
    pub when_negative: B,
    /// Number to add, modulo 2 to the number of bits, after bits have been inverted.
    pub rotation: B,
}

impl<B: Bits> Coding<B> {
    /// The coding of keys of type `K`, in ascending or in descending order.
    pub fn of<K: Key<Bits = B>>(descending: bool) -> Self {
        let ascending = K::coding();
        if descending { ascending.reversed() } else { ascending }
    }
}

impl<B: Width> Coding<B> {
    /// The identity: bits that are in order already.
    pub const NONE: Self = Self { always: B::MIN, when_negative: B::MIN, rotation: B::MIN };
    /// The coding of signed integers.
    pub const SIGNED: Self = Self { always: B::TOP, ..Self::NONE };
    /// The coding of floats, in total order.
    pub const FLOAT: Self = Self { when_negative: B::BELOW_TOP, ..Self::SIGNED };

    /// The same keys in the opposite order.
    #[must_use]
    pub fn reversed(self) -> Self {
        // !(bits + rotation) = !bits - rotation.
        Self { always: self.always ^ B::MAX, rotation: B::MIN.minus(self.rotation), ..self }
    }

    /// The same order, except that all NaNs follow all numbers. Codings of integers stay unchanged.
    #[must_use]
    pub fn with_nans_last(self) -> Self {
        Self { rotation: if self.is_of_floats() { B::MIN.minus(B::NANS) } else { self.rotation }, ..self }
    }

    /// The same order, except that all NaNs precede all numbers. Codings of integers stay unchanged.
    #[must_use]
    pub fn with_nans_first(self) -> Self {
        Self { rotation: if self.is_of_floats() { B::NANS } else { self.rotation }, ..self }
    }

    /// Whether the keys are floats. Only the codings of floats treat negative keys differently.
    #[inline(always)]
    pub fn is_of_floats(self) -> bool {
        self.when_negative != B::MIN
    }

    /// Whether the ordered bits are the bits of the keys. Only the codings of floats, which invert bits, rotate.
    #[inline(always)]
    pub fn is_identity(self) -> bool {
        self.always == B::MIN && self.when_negative == B::MIN
    }

    /// A key's bits to ordered bits.
    #[inline(always)]
    pub fn encode(self, bits: B) -> B {
        (bits ^ (bits.spread_top() & self.when_negative) ^ self.always).plus(self.rotation)
    }

    /// Encodes all `keys`. The check for bits in order is uniform over the block.
    #[inline(always)]
    pub fn encode_all<const N: usize>(self, keys: &mut [B; N]) {
        if !self.is_identity() {
            for key in keys {
                *key = self.encode(*key);
            }
        }
    }

    /// Decodes all `keys`. The check for bits in order is uniform over the block.
    #[inline(always)]
    pub fn decode_all<const N: usize>(self, keys: &mut [B; N]) {
        if !self.is_identity() {
            for key in keys {
                *key = self.decode(*key);
            }
        }
    }

    /// Ordered bits to a key's bits.
    #[inline(always)]
    pub fn decode(self, ordered: B) -> B {
        // The top bit is now the key's own, and decides about `when_negative` again.
        let bits = ordered.minus(self.rotation) ^ self.always;
        bits ^ (bits.spread_top() & self.when_negative)
    }
}

macro_rules! unsigned_key {
    ($($t:ident)*) => {$(
        impl Key for $t {
            type Bits = $t;
            const NAME: &'static str = stringify!($t);
            fn coding() -> Coding<$t> {
                Coding::NONE
            }
            #[inline(always)]
            fn to_ordered(self) -> $t {
                self
            }
            #[inline(always)]
            fn from_ordered(bits: $t) -> Self {
                bits
            }
        }
    )*};
}
unsigned_key!(u32 u64);

macro_rules! signed_key {
    ($($t:ident as $bits:ident;)*) => {$(
        impl Key for $t {
            type Bits = $bits;
            const NAME: &'static str = stringify!($t);
            fn coding() -> Coding<$bits> {
                Coding::SIGNED
            }
            #[inline(always)]
            fn to_ordered(self) -> $bits {
                (self ^ $t::MIN) as $bits
            }
            #[inline(always)]
            fn from_ordered(bits: $bits) -> Self {
                bits as $t ^ $t::MIN
            }
        }
    )*};
}
signed_key!(i32 as u32; i64 as u64;);

macro_rules! float_key {
    ($($t:ident as $bits:ident, $signed:ident;)*) => {$(
        impl Key for $t {
            type Bits = $bits;
            const NAME: &'static str = stringify!($t);
            fn coding() -> Coding<$bits> {
                Coding::FLOAT
            }
            #[inline(always)]
            fn to_ordered(self) -> $bits {
                let bits = self.to_bits();
                // All ones for a negative number, the sign bit alone for others.
                let flip = (bits as $signed >> ($bits::BITS - 1)) as $bits | $signed::MIN as $bits;
                bits ^ flip
            }
            #[inline(always)]
            fn from_ordered(bits: $bits) -> Self {
                let flip = (!bits as $signed >> ($bits::BITS - 1)) as $bits | $signed::MIN as $bits;
                $t::from_bits(bits ^ flip)
            }
        }
    )*};
}
float_key!(f32 as u32, i32; f64 as u64, i64;);

/// An index into a sequence, or a length: `u32` inside a tile, `usize` (64 bits) for a whole array.
pub trait Position: Copy + Ord + Add<Output = Self> + Sub<Output = Self> {
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// Half, rounded down.
    fn half(self) -> Self;
    /// The difference, or 0 if it would be negative.
    fn minus_or_zero(self, other: Self) -> Self;
}

macro_rules! position {
    ($($t:ident)*) => {$(
        impl Position for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            #[inline(always)]
            fn half(self) -> Self {
                self >> 1
            }
            #[inline(always)]
            fn minus_or_zero(self, other: Self) -> Self {
                self.saturating_sub(other)
            }
        }
    )*};
}
position!(u32 usize);
