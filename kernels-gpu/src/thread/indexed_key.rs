//! Keys combined with their indices, which makes all keys distinct: a sorting network is not stable by itself.
//!
//! A key of 32 bits followed by an index of 20 is a number below 2^52, stored as the bits of a subnormal `f64`. Such
//! floats compare exactly like the numbers, in one instruction of an arithmetic unit that is otherwise idle.

use crate::thread::network::Wire;

/// Number of distinct indices.
pub const INDICES: usize = 1 << INDEX_BITS;

const INDEX_BITS: u32 = 20;

/// A key and its index.
#[inline(always)]
pub fn indexed(key: u32, index: u32) -> f64 {
    f64::from_bits((key as u64) << INDEX_BITS | index as u64)
}

/// The inverse of [`indexed`].
#[inline(always)]
pub fn key_and_index(indexed: f64) -> (u32, u32) {
    let bits = indexed.to_bits();
    ((bits >> INDEX_BITS) as u32, bits as u32 & (INDICES as u32 - 1))
}

/// Bits of numbers below 2^52.
impl Wire for f64 {
    #[inline(always)]
    fn in_order(self, other: Self) -> (Self, Self) {
        if self < other { (self, other) } else { (other, self) }
    }
}
