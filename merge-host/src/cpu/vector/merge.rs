//! Merges of many short problems, each in a few rows of lanes, by a bitonic network (Batcher, 1968).
//!
//! ```text
//!   a, b    1 4 7│2 3           5│0 6 8           …
//!   rows    1 4 7 ∞ ∞ ∞ 3 2     5 ∞ ∞ ∞ ∞ 8 6 0      a ascends and b descends, with the greatest word between them
//!           1 2 3 4 7 ∞ ∞ ∞     0 5 6 8 ∞ ∞ ∞ ∞
//!   out     1 2 3 4 7│0 5 6 8│ …                     what a row writes behind its problem, the next problem overwrites
//! ```
//!
//! Equal keys have equal bits, so a stable merge gives the same result.

use super::coding::{Coding, splat};
use super::lanes::{Lanes, Word};
use super::network::merge_rows;
use std::ops::Range;

/// The inputs of merge problems, and where these begin.
pub(super) struct Problems<'a, W, F> {
    pub a: &'a [W],
    pub b: &'a [W],
    /// Which problems are to be merged.
    pub numbers: Range<usize>,
    /// The offsets in `a` and in `b` of the problem with this number, which are the ends of the one before.
    pub offsets: F,
}

/// The most rows of a problem. Registers of AVX2 are not enough for so many, but they are still faster than two
/// cursors.
pub(super) const MOST_ROWS: usize = 16;

/// Merges those problems that have up to `MOST_ROWS * LANES` words, ordered as `coding` encodes them, to `out`, where
/// one problem follows the other. The words of longer problems there may be any afterwards. Gives whether there are no
/// longer ones. `S` are as many lanes or fewer, which take less time for what fits them.
///
/// # Safety
/// The processor has both instruction sets.
#[inline(always)]
pub(super) unsafe fn merge<L: Lanes, S: Lanes<Word = L::Word>>(
    problems: Problems<L::Word, impl Fn(usize) -> [usize; 2]>,
    out: &mut [L::Word],
    coding: Coding<L::Word>,
) -> bool {
    let Problems { a, b, numbers, offsets } = problems;
    let [mut a_at, mut b_at] = offsets(numbers.start);
    let (mut rest, mut are_all) = (out, true);
    // SAFETY: the caller's promise.
    let (of_few, coding) = unsafe {
        let of_few = [splat::<S>(coding.encode), splat::<S>(coding.decode)];
        (of_few, [splat::<L>(coding.encode), splat::<L>(coding.decode)])
    };
    for number in numbers {
        let [a_end, b_end] = offsets(number + 1);
        let (a, b) = (&a[a_at..a_end], &b[b_at..b_end]);
        (a_at, b_at) = (a_end, b_end);
        let len = a.len() + b.len();
        assert!(len <= rest.len());
        // SAFETY: as above. `len` words fit the rows of their branch, and `rest`, as the assertion says.
        unsafe {
            if len <= S::LANES {
                merge_in_rows::<S, 1>(a, b, rest, of_few);
            } else if len <= L::LANES {
                merge_in_rows::<L, 1>(a, b, rest, coding);
            } else if len <= 2 * L::LANES {
                merge_in_rows::<L, 2>(a, b, rest, coding);
            } else if len <= 4 * L::LANES {
                merge_in_rows::<L, 4>(a, b, rest, coding);
            } else if len <= 8 * L::LANES {
                merge_in_rows::<L, 8>(a, b, rest, coding);
            } else if len <= MOST_ROWS * L::LANES {
                merge_in_rows::<L, MOST_ROWS>(a, b, rest, coding);
            } else {
                are_all = false;
            }
        }
        rest = &mut rest[len..];
    }
    are_all
}

/// Merges up to `ROWS * LANES` words to the front of `out`, and overwrites less than `LANES` words behind them.
///
/// # Safety
/// The processor has the instruction set; `a` and `b` together have up to `ROWS * LANES` words, and up to `out.len()`.
#[inline(always)]
unsafe fn merge_in_rows<L: Lanes, const ROWS: usize>(
    a: &[L::Word],
    b: &[L::Word],
    out: &mut [L::Word],
    [encode, decode]: [[L; 2]; 2],
) {
    let len = a.len() + b.len();
    // SAFETY: the caller's promise. A row is loaded from a part of `a` or `b` that has `LANES` words, or from as many
    // words as are left there; it is stored at `at < len`, whole where `LANES` words of `out` are left.
    unsafe {
        // Loops rather than closures, as in `load_rows`.
        let mut rows = [L::splat(L::Word::MAX); ROWS];
        // Lanes between are to have the greatest word once they are encoded.
        let greatest = L::splat(L::Word::MAX).coded(decode);
        for (i, row) in rows.iter_mut().enumerate() {
            let (first, mirrored) = (i * L::LANES, (ROWS - 1 - i) * L::LANES);
            let (of_a, of_b) = (a.as_ptr().wrapping_add(first), b.as_ptr().wrapping_add(mirrored));
            // A single row is rarely full, so a branch would be for nothing.
            *row = if ROWS > 1 && first + L::LANES <= a.len() {
                L::load(of_a)
            } else {
                let others = L::load_first(of_b, b.len() as isize - mirrored as isize, greatest);
                let others = others.flipped(const { L::LANES - 1 });
                L::load_first(of_a, a.len() as isize - first as isize, others)
            };
            *row = row.coded(encode);
        }
        merge_rows(&mut rows);
        for (row, at) in rows.into_iter().zip((0..len).step_by(L::LANES)) {
            let (row, to) = (row.coded(decode), out.as_mut_ptr().add(at));
            if at + L::LANES <= out.len() {
                row.store(to);
            } else {
                row.store_first(to, (len - at) as isize);
            }
        }
    }
}
