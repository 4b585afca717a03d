//! The verbs of a vector of keys, which each instruction set has in its own words.
//!
//! All of them are `unsafe` for the same reason: the processor has to have the instruction set, which [`super::level`]
//! has found out. They are inlined into a function that is compiled for it.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Numbers that a vector holds: integers of 4 or 8 bytes.
pub(super) trait Word: bytemuck::Pod + Ord + Send + Sync {
    const ZERO: Self;
    /// The greatest one.
    const MAX: Self;
    /// The next greater one, of one that is not the greatest.
    fn next(self) -> Self;
}

macro_rules! word {
    ($($t:ident)*) => {$(
        impl Word for $t {
            const ZERO: Self = 0;
            const MAX: Self = $t::MAX;
            fn next(self) -> Self {
                self + 1
            }
        }
    )*};
}
word!(u32 u64 i64);

/// Asks for the memory of `N` vectors from `at` on, which may be any address.
#[inline(always)]
pub(super) fn prefetch_rows<L: Lanes, const N: usize>(at: *const L::Word) {
    const LINE: usize = 64;
    let line = const { LINE / size_of::<L::Word>() };
    for i in 0..const { (N * L::LANES * size_of::<L::Word>()).div_ceil(LINE) } {
        // SAFETY: an address that cannot be read is no fault here.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(i * line).cast()) };
    }
}

/// Memory to `N` vectors.
///
/// A loop: a closure is not compiled for the instruction set where it is not inlined, and then each instruction is a
/// call.
///
/// # Safety
/// The processor has the instruction set; `from` points to `N * LANES` words.
#[inline(always)]
pub(super) unsafe fn load_rows<L: Lanes, const N: usize>(from: *const L::Word) -> [L; N] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut rows = [L::splat(L::Word::MAX); N];
        for (i, row) in rows.iter_mut().enumerate() {
            *row = L::load(from.add(i * L::LANES));
        }
        rows
    }
}

/// A vector of `LANES` words, a power of two.
pub(super) trait Lanes: Copy {
    type Word: Word;
    const LANES: usize;

    /// Memory to lanes.
    ///
    /// # Safety
    /// The processor has the instruction set; `from` points to `LANES` words.
    unsafe fn load(from: *const Self::Word) -> Self;

    /// Memory to lanes: `count` words, if there are so many lanes, and other lanes are those of `others`.
    ///
    /// # Safety
    /// The processor has the instruction set; `from` points to `count` words, or to `LANES`.
    unsafe fn load_first(from: *const Self::Word, count: isize, others: Self) -> Self;

    /// Lanes to memory.
    ///
    /// # Safety
    /// The processor has the instruction set; `LANES` words may be written at `to`.
    unsafe fn store(self, to: *mut Self::Word);

    /// The first `count` lanes to memory, if there are so many: none, if there are none.
    ///
    /// # Safety
    /// The processor has the instruction set; `count` words, or `LANES`, may be written at `to`.
    unsafe fn store_first(self, to: *mut Self::Word, count: isize);

    /// The same word in all lanes.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn splat(word: Self::Word) -> Self;

    /// The lesser word of each lane, and the greater one.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn exchange(self, other: Self) -> (Self, Self);

    /// In lanes whose number has `bit` the greater word of both, and in others the lesser one. `bit` is a constant, and
    /// a power of two.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn ordered(self, other: Self, bit: usize) -> Self;

    /// Lane `i` gets lane `i ^ bits`. `bits` is a constant below `LANES`.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn flipped(self, bits: usize) -> Self;

    /// Lanes whose number has `bit` from `other`, and all others from `self`. `bit` is a constant, and a power of two.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn blended(self, other: Self, bit: usize) -> Self;

    /// Each word with those bits flipped that the first one of `flips` has, or if its own most significant bit is set,
    /// the second one.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn coded(self, flips: [Self; 2]) -> Self;

    /// Writes the words less than `pivot` from `below` on, and the others so that they end before `above`. Gives how
    /// many are less. Up to `LANES` words may be overwritten on both sides.
    ///
    /// # Safety
    /// The processor has the instruction set; `LANES` words may be written from `below` on, and before `above`.
    unsafe fn divide(self, pivot: Self, below: *mut Self::Word, above: *mut Self::Word) -> usize;

    /// The same with the first `count` words, `LANES` at most, and without overwriting others.
    ///
    /// # Safety
    /// The processor has the instruction set; `count` words may be written from `below` on, and before `above`.
    unsafe fn divide_first(self, count: usize, pivot: Self, below: *mut Self::Word, above: *mut Self::Word) -> usize;
}
