//! Keys that carry their places, so that no two are equal: a network does not keep equal keys in their order.

use crate::key::Bits;
use crate::sort::network::Wire;

/// Ordered bits that can carry a place, below [`PLACES`].
pub trait Place: Bits {
    /// A key and its place.
    type Placed: Wire;
    /// The key at a place.
    fn at(self, place: u32) -> Self::Placed;
    /// The key and its place.
    fn of(placed: Self::Placed) -> (Self, u32);
}

/// How many places there are.
pub const PLACES: usize = 1 << PLACE_BITS;

const PLACE_BITS: u32 = 20;

/// A key of 32 bits with a place of 20 behind it: a number below 2^52, in the bits of a tiny `f64`.
///
/// Floats of that kind compare exactly as the numbers do, in one instruction of units that are idle otherwise.
impl Place for u32 {
    type Placed = f64;
    #[inline(always)]
    fn at(self, place: u32) -> f64 {
        f64::from_bits((self as u64) << PLACE_BITS | place as u64)
    }
    #[inline(always)]
    fn of(placed: f64) -> (u32, u32) {
        let bits = placed.to_bits();
        ((bits >> PLACE_BITS) as u32, bits as u32 & (PLACES as u32 - 1))
    }
}

/// Numbers from 0 to 2^52.
impl Wire for f64 {
    #[inline(always)]
    fn in_order(self, other: Self) -> (Self, Self) {
        if self < other { (self, other) } else { (other, self) }
    }
}

impl Place for u64 {
    type Placed = (u64, u32);
    #[inline(always)]
    fn at(self, place: u32) -> (u64, u32) {
        (self, place)
    }
    #[inline(always)]
    fn of(placed: (u64, u32)) -> (u64, u32) {
        placed
    }
}

impl Wire for (u64, u32) {
    #[inline(always)]
    fn in_order(self, other: Self) -> (Self, Self) {
        let keep = self.0 < other.0 || (self.0 == other.0 && self.1 < other.1);
        if keep { (self, other) } else { (other, self) }
    }
}
