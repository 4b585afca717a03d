//! The operations on a vector of keys, which each instruction set implements.
//!
//! All operations are `unsafe` for one reason: the processor must have the instruction set, which [`super::level`]
//! detects. They are inlined into a function that is compiled for the instruction set.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// The words of a vector: integers of 1, 2, 4 or 8 bytes.
pub(super) trait Word: bytemuck::Pod + Ord + Send + Sync {
    const ZERO: Self;
    /// The greatest word.
    const MAX: Self;
    /// The next greater word. `self` is not [`MAX`](Self::MAX).
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
word!(u8 u16 u32 u64 i64);

/// Prefetches the memory of `N` vectors from `at` on. `at` may be any address.
#[inline(always)]
pub(super) fn prefetch_rows<L: Lanes, const N: usize>(at: *const L::Word) {
    const LINE: usize = 64;
    let line = const { LINE / size_of::<L::Word>() };
    for i in 0..const { (N * L::LANES * size_of::<L::Word>()).div_ceil(LINE) } {
        // SAFETY: every x86-64 processor has SSE, and a prefetch of an address that cannot be read does not fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(i * line).cast()) };
    }
}

/// Loads `N` vectors.
///
/// A loop, not a closure: a closure that is not inlined is compiled without the instruction set, and then each
/// instruction is a call.
///
/// # Safety
/// The processor has the instruction set; `from` points to `N * LANES` words.
#[inline(always)]
pub(super) unsafe fn load_rows<L: Lanes, const N: usize>(from: *const L::Word) -> [L; N] {
    // SAFETY: the processor has the instruction set. Row `i < N` ends at word `(i + 1) * LANES <= N * LANES`, which
    // `from` has.
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

    /// Loads `LANES` words.
    ///
    /// # Safety
    /// The processor has the instruction set; `from` points to `LANES` words.
    unsafe fn load(from: *const Self::Word) -> Self;

    /// Loads the first `count` lanes, or all if `count` is greater, or none if it is not positive. The other lanes come
    /// from `others`.
    ///
    /// # Safety
    /// The processor has the instruction set; `from` points to `count.min(LANES)` words.
    unsafe fn load_first(from: *const Self::Word, count: isize, others: Self) -> Self;

    /// Stores `LANES` words.
    ///
    /// # Safety
    /// The processor has the instruction set; `LANES` words may be written at `to`.
    unsafe fn store(self, to: *mut Self::Word);

    /// Stores the first `count` lanes, or all if `count` is greater, or none if it is not positive.
    ///
    /// # Safety
    /// The processor has the instruction set; `count.min(LANES)` words may be written at `to`.
    unsafe fn store_first(self, to: *mut Self::Word, count: isize);

    /// [`store_first`](Self::store_first) without a delay of loads behind the last word that is stored. It takes longer
    /// to issue.
    ///
    /// # Safety
    /// The conditions of [`store_first`](Self::store_first).
    #[inline(always)]
    unsafe fn store_only_first(self, to: *mut Self::Word, count: isize) {
        // SAFETY: both functions have the same conditions.
        unsafe { self.store_first(to, count) }
    }

    /// `word` in all lanes.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn splat(word: Self::Word) -> Self;

    /// For each lane the lesser word of both vectors, and the greater word.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn exchange(self, other: Self) -> (Self, Self);

    /// The greater word of both vectors in lanes with `bit` in their number, and the lesser word in other lanes. `bit`
    /// is a constant and a power of two.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn ordered(self, other: Self, bit: usize) -> Self;

    /// Moves lane `i ^ bits` to lane `i`. `bits` is a constant below `LANES`.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn flipped(self, bits: usize) -> Self;

    /// Lanes with `bit` in their number from `other`, and other lanes from `self`. `bit` is a constant and a power of
    /// two.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn blended(self, other: Self, bit: usize) -> Self;

    /// Each word with bits flipped: the bits of the first vector of `flips` if the word's most significant bit is
    /// clear, and the bits of the second if it is set.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn coded(self, flips: [Self; 2]) -> Self;
}

/// A vector whose words are divided by a pivot.
pub(super) trait Divide: Lanes {
    /// Writes the words less than `pivot` from `below` on, and the other words so that they end before `above`. Returns
    /// the number of words less than `pivot`. May overwrite `LANES` words on each side.
    ///
    /// # Safety
    /// The processor has the instruction set; `LANES` words may be written from `below` on, and before `above`.
    unsafe fn divide(self, pivot: Self, below: *mut Self::Word, above: *mut Self::Word) -> usize;

    /// [`divide`](Self::divide) for the first `count` words, at most `LANES`. May overwrite `count` words on each side.
    ///
    /// # Safety
    /// The processor has the instruction set; `count` words may be written from `below` on, and before `above`.
    unsafe fn divide_first(self, count: usize, pivot: Self, below: *mut Self::Word, above: *mut Self::Word) -> usize;
}
