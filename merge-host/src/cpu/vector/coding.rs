//! Encoding of keys as words that an instruction set compares, and decoding.
//!
//! ```text
//!   f32     1.0, -2.0         bits 3f80_0000, c000_0000
//!   flips   8000_0000, or ffff_ffff if the most significant bit is set
//!   words   bf80_0000, 3fff_ffff
//! ```

use super::lanes::{Lanes, Word};

/// Bits to flip: first in words with a clear most significant bit, then in words with a set one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Coding<W> {
    pub encode: [W; 2],
    pub decode: [W; 2],
}

impl<W: Word> Coding<W> {
    /// Words are encoded as they are.
    pub const NONE: Self = Self { encode: [W::ZERO; 2], decode: [W::ZERO; 2] };
}

/// Flips the bits `flips` of each of the `len` words from `words` on.
///
/// # Safety
/// The processor has the instruction set; `words` points to `len` words that may be read and written.
#[inline(always)]
pub(super) unsafe fn code_all<L: Lanes>(words: *mut L::Word, len: usize, flips: [L::Word; 2]) {
    // SAFETY: the processor has the instruction set. A whole row ends at `at + LANES <= len`. The last row is loaded
    // and stored with `count = len - at` words, so that it ends at `len`.
    unsafe {
        if flips == [L::Word::ZERO; 2] {
            return;
        }
        let flips = splat::<L>(flips);
        let mut at = 0;
        while at + L::LANES <= len {
            L::load(words.add(at)).coded(flips).store(words.add(at));
            at += L::LANES;
        }
        let (rest, count) = (words.add(at), (len - at) as isize);
        L::load_first(rest, count, flips[0]).coded(flips).store_first(rest, count);
    }
}

/// Both flips, each in all lanes.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
pub(super) unsafe fn splat<L: Lanes>([clear, set]: [L::Word; 2]) -> [L; 2] {
    // SAFETY: the processor has the instruction set, the only condition of `Lanes::splat`.
    unsafe { [L::splat(clear), L::splat(set)] }
}
