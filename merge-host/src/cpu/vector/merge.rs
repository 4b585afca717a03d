//! Merges of many short problems, each in a few rows of lanes, by a bitonic network (Batcher, 1968).
//!
//! ```text
//!   a, b    1 4 7│2 3           5│0 6 8           …
//!   rows    1 4 7 ∞ ∞ ∞ 3 2     5 ∞ ∞ ∞ ∞ 8 6 0      a ascends and b descends, with the greatest word between them
//!           1 2 3 4 7 ∞ ∞ ∞     0 5 6 8 ∞ ∞ ∞ ∞
//!   out     1 2 3 4 7│0 5 6 8│ …                     the next problem overwrites the tail of a row
//! ```
//!
//! Equal keys have equal bits, so a stable merge gives the same result.

use super::coding::{Coding, splat};
use super::lanes::{Lanes, Word};
use super::network::merge_rows;
use crate::cpu::merge_ragged::{Offsets, Problems};
use std::ops::Range;

/// The inputs of merge problems.
pub(super) struct Inputs<'a, W> {
    pub a: &'a [W],
    pub b: &'a [W],
    /// The numbers of the problems to merge.
    pub numbers: Range<usize>,
    pub problems: Problems<'a>,
}

/// The greatest number of rows of a problem. AVX2 has too few registers for 16 rows, but the network is still faster
/// than two cursors.
pub(super) const MOST_ROWS: usize = 16;

/// Merges the problems that have up to `MOST_ROWS * LANES` words, in the order of their encoding by `coding`, to `out`,
/// where problems are adjacent. The words of longer problems in `out` are unspecified afterwards. Returns whether there
/// are no longer problems. `S` has no more lanes than `L`, and merges few words faster.
///
/// # Safety
/// The processor has the instruction sets of `L` and `S`.
#[inline(always)]
pub(super) unsafe fn merge<L: Lanes, S: Lanes<Word = L::Word>>(
    inputs: Inputs<L::Word>,
    out: &mut [L::Word],
    coding: Coding<L::Word>,
) -> bool {
    // Each kind of offsets has a loop of its own. A branch in the loop would slow down the shortest problems.
    // SAFETY: the processor has both instruction sets, the only condition of `merge_at`.
    unsafe {
        match inputs.problems {
            Problems::OfLengths([m, n]) => merge_at::<L, S>(inputs, |p| [p * m, p * n], out, coding),
            Problems::At(Offsets { a, b }) => merge_at::<L, S>(inputs, |p| [a[p], b[p]], out, coding),
        }
    }
}

/// [`merge`] with the offsets of each problem in A and in B. The next problem's offsets are its ends.
///
/// # Safety
/// The processor has the instruction sets of `L` and `S`.
#[inline(always)]
unsafe fn merge_at<L: Lanes, S: Lanes<Word = L::Word>>(
    Inputs { a, b, numbers, .. }: Inputs<L::Word>,
    offsets: impl Fn(usize) -> [usize; 2],
    out: &mut [L::Word],
    coding: Coding<L::Word>,
) -> bool {
    let [mut a_at, mut b_at] = offsets(numbers.start);
    let (mut rest, mut are_all) = (out, true);
    // SAFETY: the processor has both instruction sets, the only condition of `splat`.
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
        // SAFETY: the processor has both instruction sets. `a` and `b` have `len` words together: at most the rows of
        // the branch that is taken, and at most `rest.len()` by the assertion.
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

/// Merges up to `ROWS * LANES` words to the front of `out`, and overwrites fewer than `LANES` words behind them.
///
/// # Safety
/// The processor has the instruction set; `a.len() + b.len()` is at most `ROWS * LANES` and at most `out.len()`.
#[inline(always)]
unsafe fn merge_in_rows<L: Lanes, const ROWS: usize>(
    a: &[L::Word],
    b: &[L::Word],
    out: &mut [L::Word],
    [encode, decode]: [[L; 2]; 2],
) {
    let len = a.len() + b.len();
    // SAFETY: the processor has the instruction set. A whole row of `a` is loaded only if `first + LANES <= a.len()`.
    // Other rows are loaded with the `a.len() - first` and `b.len() - mirrored` words that are left. A row is stored
    // whole only if `at + LANES <= out.len()`. Otherwise it is stored up to `len <= out.len()`.
    unsafe {
        // Loops rather than closures: see `load_rows`.
        let mut rows = [L::splat(L::Word::MAX); ROWS];
        // The lanes between `a` and `b` are the greatest word after encoding.
        let greatest = L::splat(L::Word::MAX).coded(decode);
        for (i, row) in rows.iter_mut().enumerate() {
            let (first, mirrored) = (i * L::LANES, (ROWS - 1 - i) * L::LANES);
            let (of_a, of_b) = (a.as_ptr().wrapping_add(first), b.as_ptr().wrapping_add(mirrored));
            // A single row is rarely full, so a branch would rarely save anything.
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
