//! Arrays of keys in global memory, as a coding orders them: what a merge reads, and what it writes.
//!
//! ```text
//!   memory     -1.0     +0.0     2.5         bits as the host left them
//!              ↓ encode          ↑ decode
//!   kernel     407f…    8000…    c020…       unsigned numbers, which compare as the keys do
//! ```
//!
//! A kernel that reads and writes through these sees one order, `<` on `u32` or `u64`, whatever type the keys are of and
//! in whichever direction they are merged: [`Coding`] comes with the launch.

use crate::key::{Bits, Coding};
use crate::sequence::Sequence;
use cuda_std::{Global, GlobalMut};

/// Keys to read.
#[derive(Clone, Copy)]
pub struct Keys<B> {
    bits: Global<B>,
    coding: Coding<B>,
}

impl<B: Bits> Keys<B> {
    /// The `len` keys from `first` on.
    ///
    /// # Safety
    /// As for [`Global::new`].
    #[inline(always)]
    pub unsafe fn new(first: *const B, len: usize, coding: Coding<B>) -> Self {
        // SAFETY: the caller's promise is that of `Global::new`.
        Self::at(unsafe { Global::new(first, len) }, coding)
    }

    /// Those at `bits`.
    #[inline(always)]
    pub fn at(bits: Global<B>, coding: Coding<B>) -> Self {
        Self { bits, coding }
    }

    /// Length in keys.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.bits.len()
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The `len` keys from key `first` on.
    #[inline(always)]
    #[track_caller]
    pub fn slice(self, first: usize, len: usize) -> Self {
        Self { bits: self.bits.slice(first, len), ..self }
    }

    /// Key `i`, as ordered bits.
    #[inline(always)]
    #[track_caller]
    pub fn get(self, i: usize) -> B {
        self.coding.encode(self.bits.get(i))
    }

    /// The keys as they are in memory, for those who load many and [encode them together](Coding::encode_all).
    #[inline(always)]
    pub fn bits(self) -> Global<B> {
        self.bits
    }

    /// How they are encoded.
    #[inline(always)]
    pub fn coding(self) -> Coding<B> {
        self.coding
    }
}

impl<B: Bits> Sequence for Keys<B> {
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

/// Keys to write.
#[derive(Clone, Copy)]
pub struct KeysMut<B> {
    bits: GlobalMut<B>,
    coding: Coding<B>,
}

impl<B: Bits> KeysMut<B> {
    /// Room for `len` keys from `first` on.
    ///
    /// # Safety
    /// As for [`GlobalMut::new`].
    #[inline(always)]
    pub unsafe fn new(first: *mut B, len: usize, coding: Coding<B>) -> Self {
        // SAFETY: the caller's promise is that of `GlobalMut::new`.
        Self::at(unsafe { GlobalMut::new(first, len) }, coding)
    }

    /// Those at `bits`.
    #[inline(always)]
    pub fn at(bits: GlobalMut<B>, coding: Coding<B>) -> Self {
        Self { bits, coding }
    }

    /// Length in keys.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.bits.len()
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The `len` keys from key `first` on.
    #[inline(always)]
    #[track_caller]
    pub fn slice(self, first: usize, len: usize) -> Self {
        Self { bits: self.bits.slice(first, len), ..self }
    }

    /// Writes key `i`, of which `ordered` are the ordered bits.
    #[inline(always)]
    #[track_caller]
    pub fn set(self, i: usize, ordered: B) {
        self.bits.set(i, self.coding.decode(ordered));
    }

    /// Where the keys are in memory, for those who decode many together.
    #[inline(always)]
    pub fn bits(self) -> GlobalMut<B> {
        self.bits
    }

    /// How they are decoded.
    #[inline(always)]
    pub fn coding(self) -> Coding<B> {
        self.coding
    }
}
