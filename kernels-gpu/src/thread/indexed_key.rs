//! Keys that carry their indices, so that no two are equal: a network does not keep equal keys in their order.
//!
//! A key of 32 bits with an index of 20 behind it is a number below 2^52, here in the bits of a tiny `f64`. Floats of that kind
//! compare exactly as the numbers do, in one instruction of units that are idle otherwise.

use crate::thread::network::Wire;

/// How many indices there are.
pub const INDICES: usize = 1 << INDEX_BITS;

const INDEX_BITS: u32 = 20;

/// A key and its index.
#[inline(always)]
pub fn indexed(key: u32, index: u32) -> f64 {
    f64::from_bits((key as u64) << INDEX_BITS | index as u64)
}

/// The key and its index.
#[inline(always)]
pub fn key_and_index(indexed: f64) -> (u32, u32) {
    let bits = indexed.to_bits();
    ((bits >> INDEX_BITS) as u32, bits as u32 & (INDICES as u32 - 1))
}

/// Numbers from 0 to 2^52.
impl Wire for f64 {
    #[inline(always)]
    fn in_order(self, other: Self) -> (Self, Self) {
        if self < other { (self, other) } else { (other, self) }
    }
}
