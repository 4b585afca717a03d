//! The input of searches and merges: an ascending sequence in any memory.

use crate::key::{Bits, Key, Position};
use cuda_std::{Global, GlobalMut, Shared};

/// A sequence of keys, read one at a time as ordered bits.
///
/// The same search runs over global memory, a tile in shared memory, a circular buffer and, on the host, a slice.
pub trait Sequence: Copy {
    /// The type of indices.
    type Index: Position;
    /// The type of keys, as ordered bits.
    type Item: Ord + Copy;
    /// Length in keys.
    fn length(self) -> Self::Index;
    /// Key `i`, which is below the length.
    fn at(self, i: Self::Index) -> Self::Item;
}

impl<B: Bits> Sequence for Global<B> {
    type Index = usize;
    type Item = B;
    #[inline(always)]
    fn length(self) -> usize {
        self.len()
    }
    #[inline(always)]
    #[track_caller]
    fn at(self, i: usize) -> B {
        self.get(i)
    }
}

impl<B: Bits> Sequence for GlobalMut<B> {
    type Index = usize;
    type Item = B;
    #[inline(always)]
    fn length(self) -> usize {
        self.len()
    }
    #[inline(always)]
    #[track_caller]
    fn at(self, i: usize) -> B {
        self.get(i)
    }
}

impl<B: Bits> Sequence for Shared<B> {
    type Index = u32;
    type Item = B;
    #[inline(always)]
    fn length(self) -> u32 {
        self.len()
    }
    #[inline(always)]
    #[track_caller]
    fn at(self, i: u32) -> B {
        self.get(i)
    }
}

impl<K: Key> Sequence for &[K] {
    type Index = usize;
    type Item = K::Bits;
    #[inline(always)]
    fn length(self) -> usize {
        self.len()
    }
    #[inline(always)]
    #[track_caller]
    fn at(self, i: usize) -> K::Bits {
        self[i].to_ordered()
    }
}
