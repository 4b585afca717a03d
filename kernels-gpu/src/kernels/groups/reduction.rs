//! Reductions of the values of a group.

use crate::key::Bits;
use core::marker::PhantomData;

/// An associative operation on numbers, as bits.
pub trait Reduction: Copy {
    /// The bits of a number.
    type Value: Bits;
    /// The neutral element.
    const IDENTITY: Self::Value;
    /// Whether the operation is also commutative and exact, so that values may be combined in any order.
    const HAS_ANY_ORDER: bool;
    /// Combines `first` with `second`, which follows it.
    fn combine(first: Self::Value, second: Self::Value) -> Self::Value;
}

/// The sum of integers, modulo 2^32 or 2^64.
#[derive(Clone, Copy, Debug)]
pub struct Sum<V>(PhantomData<V>);

/// The sum of floats.
#[derive(Clone, Copy, Debug)]
pub struct FloatSum<V>(PhantomData<V>);

/// The greatest number by its ordered bits. With a descending coding, the least number.
#[derive(Clone, Copy, Debug)]
pub struct Greatest<V>(PhantomData<V>);

/// The number of keys of a group: the sum of the lengths of its parts.
#[derive(Clone, Copy, Debug)]
pub struct Length;

macro_rules! reductions {
    ($($bits:ident as $float:ident;)*) => {$(
        impl Reduction for Sum<$bits> {
            type Value = $bits;
            const IDENTITY: $bits = 0;
            const HAS_ANY_ORDER: bool = true;
            #[inline(always)]
            fn combine(first: $bits, second: $bits) -> $bits {
                first.wrapping_add(second)
            }
        }
        impl Reduction for FloatSum<$bits> {
            type Value = $bits;
            // -0.0: 0.0 would change the sign of another -0.0.
            const IDENTITY: $bits = 1 << ($bits::BITS - 1);
            const HAS_ANY_ORDER: bool = false;
            #[inline(always)]
            fn combine(first: $bits, second: $bits) -> $bits {
                ($float::from_bits(first) + $float::from_bits(second)).to_bits()
            }
        }
        impl Reduction for Greatest<$bits> {
            type Value = $bits;
            const IDENTITY: $bits = 0;
            const HAS_ANY_ORDER: bool = true;
            #[inline(always)]
            fn combine(first: $bits, second: $bits) -> $bits {
                first.max(second)
            }
        }
    )*};
}
reductions!(u32 as f32; u64 as f64;);

impl Reduction for Length {
    type Value = u64;
    const IDENTITY: u64 = 0;
    const HAS_ANY_ORDER: bool = true;
    #[inline(always)]
    fn combine(first: u64, second: u64) -> u64 {
        first + second
    }
}
