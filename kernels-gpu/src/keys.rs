//! Arrays of keys in global memory with a coding: the inputs and outputs of merges.
//!
//! ```text
//!   memory     -1.0     +0.0     2.5         bits as the host left them
//!              ↓ encode          ↑ decode
//!   kernel     407f…    8000…    c020…       unsigned numbers that compare like the keys
//! ```
//!
//! A kernel that accesses keys through these types sees one order, `<` on `u32` or `u64`, for every key type and
//! direction. The [`Coding`] is an argument of the launch.

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
    /// The `len` keys from `first`.
    ///
    /// # Safety
    /// `first` points to `len` keys in global memory that meet the requirements of [`Global::new`].
    #[inline(always)]
    pub unsafe fn new(first: *const B, len: usize, coding: Coding<B>) -> Self {
        // SAFETY: the caller passes `len` keys at `first` that meet the requirements of `Global::new`, which are the
        // requirements of this function.
        Self::at(unsafe { Global::new(first, len) }, coding)
    }

    /// The keys at `bits`, in the order of `coding`.
    #[inline(always)]
    pub fn at(bits: Global<B>, coding: Coding<B>) -> Self {
        Self { bits, coding }
    }

    /// Length in keys.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.bits.len()
    }

    /// Whether the length is 0.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The `len` keys from key `first`.
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

    /// The keys as they are in memory, for callers that load many and [encode them together](Coding::encode_all).
    #[inline(always)]
    pub fn bits(self) -> Global<B> {
        self.bits
    }

    /// The coding of the keys.
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
    /// An array for `len` keys from `first`.
    ///
    /// # Safety
    /// `first` points to an array of `len` keys in global memory that meets the requirements of [`GlobalMut::new`].
    #[inline(always)]
    pub unsafe fn new(first: *mut B, len: usize, coding: Coding<B>) -> Self {
        // SAFETY: the caller passes an array of `len` keys at `first` that meets the requirements of `GlobalMut::new`,
        // which are the requirements of this function.
        Self::at(unsafe { GlobalMut::new(first, len) }, coding)
    }

    /// The keys at `bits`, in the order of `coding`.
    #[inline(always)]
    pub fn at(bits: GlobalMut<B>, coding: Coding<B>) -> Self {
        Self { bits, coding }
    }

    /// Length in keys.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.bits.len()
    }

    /// Whether the length is 0.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The `len` keys from key `first`.
    #[inline(always)]
    #[track_caller]
    pub fn slice(self, first: usize, len: usize) -> Self {
        Self { bits: self.bits.slice(first, len), ..self }
    }

    /// Writes key `i`; `ordered` is its ordered bits.
    #[inline(always)]
    #[track_caller]
    pub fn set(self, i: usize, ordered: B) {
        self.bits.set(i, self.coding.decode(ordered));
    }

    /// The keys as they are in memory, for callers that decode many together.
    #[inline(always)]
    pub fn bits(self) -> GlobalMut<B> {
        self.bits
    }

    /// The coding of the keys.
    #[inline(always)]
    pub fn coding(self) -> Coding<B> {
        self.coding
    }
}
