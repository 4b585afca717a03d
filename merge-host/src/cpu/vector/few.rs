//! Sort of a few words: by one network, or by two networks and a bitonic merge (Batcher, 1968).
//!
//! ```text
//!   words     5 1 8 3 │ 9 4      the words that one network takes, and the rest
//!   sorted    1 3 5 8 │ 4 9 ∞ ∞
//!   mirrored  1 3 5 4 │ 8 9 …    the lesser word of each pair at equal distances from the middle, then the greater
//!   merged    1 3 4 5 │ 8 9      each half by itself
//! ```
//!
//! Dividing up to [`Networks::MOST`] words by a pivot instead would leave many parts that fill only half of a network's
//! rows.

use super::coding::{Coding, code_all, splat};
use super::lanes::{Lanes, Word, load_rows};
use super::network::{merge_rows, sort_rows};

/// The greatest number of rows that may be an array of their own. Another array may follow, which is loaded soon.
const FEW_ROWS: usize = 8;

/// [`sort`], compiled once for each instruction set: its networks are long.
pub(super) trait Networks: Lanes {
    /// The greatest number of rows of a network.
    const ROWS: usize;
    /// The greatest number of words that a network sorts.
    const HALF: usize = Self::ROWS * Self::LANES;
    /// The greatest number of words that are sorted.
    const MOST: usize = 2 * Self::HALF;

    /// Sorts up to [`MOST`](Self::MOST) words from `from` to `to`, which may be the same array.
    ///
    /// # Safety
    /// The processor has the instruction set; `from` and `to` point to `len` words each, and `len` is at most
    /// [`MOST`](Self::MOST).
    unsafe fn sort_few(from: *const Self::Word, to: *mut Self::Word, len: usize);

    /// Sorts up to [`MOST`](Self::MOST) words in the order of their encoding by `coding`.
    ///
    /// # Safety
    /// The processor has the instruction set; `words` points to `len` words, and `len` is at most [`MOST`](Self::MOST).
    unsafe fn sort_coded(words: *mut Self::Word, len: usize, coding: &Coding<Self::Word>);
}

/// Sorts up to `2 * MOST` rows of words from `from` to `to`, which may be the same array. A network has the rows that
/// the words need, up to `MOST`, which is 8 or 16.
///
/// If `CODED`, one network sorts all words, in the order of their encoding by `coding`. Its `decode` reverses `encode`.
/// Words are encoded and decoded in registers, because a vector loads slowly just after a part of it was stored.
///
/// # Safety
/// The processor has the instruction set; `from` and `to` point to `len` words each, and `len` is at most `2 * MOST`
/// rows, or `MOST` rows if `CODED`.
#[inline(always)]
pub(super) unsafe fn sort<L: Lanes, const MOST: usize, const CODED: bool>(
    from: *const L::Word,
    to: *mut L::Word,
    len: usize,
    coding: Coding<L::Word>,
) {
    let half = const { MOST * L::LANES };
    debug_assert!(len <= if CODED { half } else { 2 * half });
    // SAFETY: the processor has the instruction set. Each half is `at..at + half.min(len - at)`, within `len`. It fits
    // the rows of its branch, because `half` is `MOST` rows. Before the second half there are `MOST` rows, and its
    // branch has no more. If `len > half`, the first `MOST` rows are `half` words.
    unsafe {
        // A loop, so that the networks are compiled once.
        for at in (0..len).step_by(half) {
            let (from, to, len) = (from.add(at), to.add(at), half.min(len - at));
            let is_rest = at > 0;
            match len.div_ceil(L::LANES) {
                0..=1 => sort_half::<L, 1, CODED>(from, to, len, is_rest, coding),
                2 => sort_half::<L, 2, CODED>(from, to, len, is_rest, coding),
                3..=4 => sort_half::<L, 4, CODED>(from, to, len, is_rest, coding),
                5..=8 => sort_half::<L, 8, CODED>(from, to, len, is_rest, coding),
                _ => sort_half::<L, MOST, CODED>(from, to, len, is_rest, coding),
            }
        }
        if len > half {
            let mut rows = load_rows::<L, MOST>(to);
            merge_rows(&mut rows);
            for (i, row) in rows.into_iter().enumerate() {
                row.store(to.add(i * L::LANES));
            }
        }
    }
}

/// Sorts up to [`Networks::MOST`] words in the order of their encoding by `coding`, and decodes them.
///
/// # Safety
/// The processor has the instruction set; `words` points to `len` words, and `len` is at most [`Networks::MOST`].
#[inline(always)]
pub(super) unsafe fn sort_keys<L: Networks>(words: *mut L::Word, len: usize, coding: &Coding<L::Word>) {
    // SAFETY: both functions have the same conditions as this one.
    unsafe { if *coding == Coding::NONE { L::sort_few(words, words, len) } else { L::sort_coded(words, len, coding) } }
}

/// [`sort_keys`] of words that `coding` changes, with networks of up to `MOST` rows. `coding` is not copied, because a
/// copy would be loaded by vectors just after its parts were stored.
///
/// # Safety
/// The processor has the instruction set; `words` points to `len` words, and `len` is at most [`Networks::MOST`].
#[inline(always)]
pub(super) unsafe fn sort_coded<L: Networks, const MOST: usize>(
    words: *mut L::Word,
    len: usize,
    coding: &Coding<L::Word>,
) {
    let none = [L::Word::ZERO; 2];
    // SAFETY: the processor has the instruction set, and `words` points to `len` words, at most `L::MOST`, and at most
    // `L::HALF = MOST * LANES` for one network.
    unsafe {
        // Words that are only encoded or only decoded are coded in memory.
        if len <= L::HALF && coding.encode != none && coding.decode != none {
            return sort::<L, MOST, true>(words, words, len, *coding);
        }
        code_all::<L>(words, len, coding.encode);
        L::sort_few(words, words, len);
        code_all::<L>(words, len, coding.decode);
    }
}

/// Sorts up to `ROWS * LANES` words from `from` to `to`, which may be the same array, in the order of their encoding.
///
/// With `is_rest`, the words before `to` are sorted at the call. Afterwards they are bitonic, and none is greater than
/// a word of the rest.
///
/// # Safety
/// The processor has the instruction set; `from` and `to` point to `len` words each; with `is_rest`, `ROWS` rows may be
/// read and written before `to`.
#[inline(always)]
unsafe fn sort_half<L: Lanes, const ROWS: usize, const CODED: bool>(
    from: *const L::Word,
    to: *mut L::Word,
    len: usize,
    is_rest: bool,
    coding: Coding<L::Word>,
) {
    // SAFETY: the processor has the instruction set. Row `i` is loaded and stored with the `len - i * LANES` words that
    // are left, so accesses end at `len`. With `is_rest`, `mirrored` is row `i + 1 <= ROWS` before `to`.
    unsafe {
        // Loops rather than closures: see `load_rows`.
        let mut greatest = L::splat(L::Word::MAX);
        if CODED {
            greatest = greatest.coded(splat::<L>(coding.decode));
        }
        let mut rows = [greatest; ROWS];
        for (i, row) in rows.iter_mut().enumerate() {
            let first = i * L::LANES;
            *row = L::load_first(from.wrapping_add(first), len as isize - first as isize, greatest);
        }
        if CODED {
            let flips = splat::<L>(coding.encode);
            for row in &mut rows {
                *row = row.coded(flips);
            }
        }
        sort_rows(&mut rows);
        if is_rest {
            for (i, row) in rows.iter_mut().enumerate() {
                let mirrored = to.sub((i + 1) * L::LANES);
                let (lesser, greater) = L::load(mirrored).exchange(row.flipped(const { L::LANES - 1 }));
                lesser.store(mirrored);
                *row = greater;
            }
            rows.reverse();
            merge_rows(&mut rows);
        }
        if CODED {
            let flips = splat::<L>(coding.decode);
            for row in &mut rows {
                *row = row.coded(flips);
            }
        }
        for (i, row) in rows.into_iter().enumerate() {
            let first = i * L::LANES;
            let (to, count) = (to.wrapping_add(first), len as isize - first as isize);
            if ROWS <= FEW_ROWS {
                row.store_only_first(to, count);
            } else if count > 0 {
                // A store of no lanes, too, would delay loads behind it.
                row.store_first(to, count);
            }
        }
    }
}
