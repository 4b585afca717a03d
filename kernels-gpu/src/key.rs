//! Keys: six number types, ordered as unsigned bits.
//!
//! A kernel turns each key into an unsigned integer that compares the same way when it loads it, and turns it back when
//! it stores it. Between the two there is one order, `<` on `u32` or `u64`, for every type:
//!
//! ```text
//!   u32, u64   the bits as they are
//!   i32, i64   the sign bit flipped            negative … positive  →  0… … 1…
//!   f32, f64   negative: all bits flipped      -NaN -inf … -0.0     →  0…
//!              others: the sign bit flipped    +0.0 … +inf +NaN     →  1…
//! ```
//!
//! For floating point this is IEEE 754's total order, the one of [`f32::total_cmp`].

use core::ops::{Add, Sub};
use cuda_std::Word;

/// A number that the kernels can merge and sort by.
pub trait Key: Word {
    /// Unsigned bits of the same width, in the same order as the keys.
    type Bits: Bits;
    /// The type's name, which is the suffix of its kernels' names.
    const NAME: &'static str;
    /// The key as ordered bits: `a` comes before `b` exactly if `a.to_ordered() < b.to_ordered()`.
    fn to_ordered(self) -> Self::Bits;
    /// The key that `to_ordered` made `bits` of.
    fn from_ordered(bits: Self::Bits) -> Self;
}

/// Ordered bits: `u32` or `u64`.
pub trait Bits: Word + Ord {
    /// The least value.
    const MIN: Self;
    /// The greatest value.
    const MAX: Self;
}

impl Bits for u32 {
    const MIN: Self = u32::MIN;
    const MAX: Self = u32::MAX;
}

impl Bits for u64 {
    const MIN: Self = u64::MIN;
    const MAX: Self = u64::MAX;
}

macro_rules! unsigned_key {
    ($($t:ident)*) => {$(
        impl Key for $t {
            type Bits = $t;
            const NAME: &'static str = stringify!($t);
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

/// A position in a sequence, or a length: `u32` inside a tile, `usize` (64 bits) where it counts a whole array.
pub trait Position: Copy + Ord + Add<Output = Self> + Sub<Output = Self> {
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// Half, rounded down.
    fn half(self) -> Self;
    /// The difference, or 0 where it would be negative.
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
