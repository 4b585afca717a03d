//! Keys that carry their places, so that no two are equal: a network does not keep equal keys in their order.
//!
//! A key of 32 bits with a place of 20 behind it is a number below 2^52, here in the bits of a tiny `f64`. Floats of that kind
//! compare exactly as the numbers do, in one instruction of units that are idle otherwise.

use crate::sort::network::Wire;

/// How many places there are.
pub const PLACES: usize = 1 << PLACE_BITS;

const PLACE_BITS: u32 = 20;

/// A key and its place.
#[inline(always)]
pub fn placed(key: u32, place: u32) -> f64 {
    f64::from_bits((key as u64) << PLACE_BITS | place as u64)
}

/// The key and its place.
#[inline(always)]
pub fn key_and_place(placed: f64) -> (u32, u32) {
    let bits = placed.to_bits();
    ((bits >> PLACE_BITS) as u32, bits as u32 & (PLACES as u32 - 1))
}

/// Numbers from 0 to 2^52.
impl Wire for f64 {
    #[inline(always)]
    fn in_order(self, other: Self) -> (Self, Self) {
        if self < other { (self, other) } else { (other, self) }
    }
}
