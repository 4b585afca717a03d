//! What is sorted in registers: a key, or a key of 4 bytes with its index.

use crate::key::Bits;

/// A key and, if there are values, its index among those that a warp sorts. No two with indices are equal, so that any sort of them is stable.
pub trait TaggedKey<B: Bits>: Bits {
    /// The two together.
    fn new(key: B, index: u32) -> Self;
    /// The key.
    fn key(self) -> B;
    /// The index, or 0 for a key alone.
    fn index(self) -> u32;
}

impl<B: Bits> TaggedKey<B> for B {
    #[inline(always)]
    fn new(key: B, _: u32) -> B {
        key
    }
    #[inline(always)]
    fn key(self) -> B {
        self
    }
    #[inline(always)]
    fn index(self) -> u32 {
        0
    }
}

/// The key in the upper half.
impl TaggedKey<u32> for u64 {
    #[inline(always)]
    fn new(key: u32, index: u32) -> u64 {
        (key as u64) << 32 | index as u64
    }
    #[inline(always)]
    fn key(self) -> u32 {
        (self >> 32) as u32
    }
    #[inline(always)]
    fn index(self) -> u32 {
        self as u32
    }
}
