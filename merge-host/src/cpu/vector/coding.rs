//! How keys become words whose order an instruction set knows, and keys again.
//!
//! ```text
//!   f32     1.0, -2.0         bits 3f80_0000, c000_0000
//!   flips   8000_0000, or ffff_ffff if the most significant bit is set
//!   words   bf80_0000, 3fff_ffff
//! ```

use super::lanes::{Lanes, Word};

/// Bits to flip of words of each kind: those whose most significant bit is clear, and those in which it is set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Coding<W> {
    pub encode: [W; 2],
    pub decode: [W; 2],
}

/// Does what the flips say to each of `len` words, of which `from` points to the first.
///
/// # Safety
/// The processor has the instruction set; `words` points to `len` words.
#[inline(always)]
pub(super) unsafe fn code_all<L: Lanes>(words: *mut L::Word, len: usize, flips: [L::Word; 2]) {
    // SAFETY: the caller's promise.
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

/// Both flips in all lanes.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
pub(super) unsafe fn splat<L: Lanes>([clear, set]: [L::Word; 2]) -> [L; 2] {
    // SAFETY: the caller's promise.
    unsafe { [L::splat(clear), L::splat(set)] }
}
