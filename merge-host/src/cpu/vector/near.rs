//! Quicksort of words that fit a core's own caches, between two arrays: there it is faster than in place, where each
//! step has to wait to know on which side there is room.
//!
//! ```text
//!   one array     │ 3 7 1 9 8 2 5 6 │   pivot 5
//!   … the same    │ 3 1 2 │                 what is less stays, moved to the front
//!   … the other           │ 6 5 8 9 7 │     all else, from the end on: where it belongs
//! ```
//!
//! So each step reads once and writes once, and no keys have to make room for others. Few keys are sorted by networks,
//! to the array where they are to be in the end.

use super::few;
use super::lanes::{Lanes, Word, load_rows, prefetch_rows};
use super::parts::{Part, Parts, Sides};
use super::quicksort::{Sampled, are_all, sample};

/// Rows that are divided at a time.
const BATCH: usize = 4;

/// Rows between those that are written and those that are asked for.
const AHEAD: usize = 12;

/// Sorts the `len` words of `run`, with `scratch` of the same length. Words are divided up to `steps` times, and what
/// is left then is sorted in another way. Networks sort up to `ROWS` rows.
///
/// # Safety
/// The processor has the instruction set; `run` and `scratch` point to `len` words each, which do not overlap.
#[inline(always)]
pub(super) unsafe fn sort<L: Lanes, const ROWS: usize>(
    run: *mut L::Word,
    scratch: *mut L::Word,
    len: usize,
    steps: u32,
    random: &mut u64,
) {
    let (arrays, to) = ([run, scratch], run);
    let mut parts = Parts::of(Part { begin: 0, end: len, in_scratch: false, steps });
    while let Some(Part { begin, end, in_scratch, steps }) = parts.next() {
        let len = end - begin;
        let (from, other) = (arrays[usize::from(in_scratch)], arrays[usize::from(!in_scratch)]);
        // SAFETY: these are parts of both arrays.
        unsafe {
            if len <= few::most::<L, ROWS>() {
                few::sort::<L, ROWS>(from.add(begin), to.add(begin), len);
            } else if steps == 0 {
                // Pivots have been bad again and again.
                std::ptr::copy(from.add(begin), to.add(begin), len);
                std::slice::from_raw_parts_mut(to.add(begin), len).sort_unstable();
            } else {
                let Sampled { median: pivot, is_same } =
                    sample::<L, ROWS>(from.add(begin), len, random, [L::Word::ZERO; 2]);
                if is_same && are_all(from.add(begin), len, pivot) {
                    std::slice::from_raw_parts_mut(to.add(begin), len).fill(pivot);
                    continue;
                }
                let middle = divide::<L>(from, other, begin, end, pivot);
                let steps = steps - 1;
                if middle > begin {
                    let less = Part { begin, end: middle, in_scratch, steps };
                    parts.add(less, Part { begin: middle, end, in_scratch: !in_scratch, steps });
                } else {
                    // The pivot is the least word: those equal to it are in order. All are in the other array now.
                    let rest =
                        if pivot == L::Word::MAX { end } else { divide::<L>(other, from, begin, end, pivot.next()) };
                    std::slice::from_raw_parts_mut(to.add(begin), rest - begin).fill(pivot);
                    let none = Part { begin: rest, end: rest, in_scratch, steps };
                    parts.add(none, Part { end, ..none });
                }
            }
        }
    }
}

/// Moves the words of `from` in `begin..end` that are less than `pivot` to the front of these, and the others to the
/// end of the same part of `other`. Gives where the latter begin.
///
/// # Safety
/// The processor has the instruction set; both arrays have words in `begin..end`, and do not overlap.
#[inline(always)]
unsafe fn divide<L: Lanes>(from: *mut L::Word, other: *mut L::Word, begin: usize, end: usize, pivot: L::Word) -> usize {
    let mut at = begin;
    // SAFETY: the caller's promise. Words are read before others are written there: as many are written below as have
    // been read, and before `above` there is room for all that are left.
    unsafe {
        let mut sides = Sides::<L>::new([from, other], (begin, end), pivot);
        while end - at >= BATCH * L::LANES {
            // What is written downwards is not asked for by the processor in time.
            prefetch_rows::<L, BATCH>(other.wrapping_add(sides.above).wrapping_sub(AHEAD * L::LANES));
            for row in load_rows::<L, BATCH>(from.add(at)) {
                sides.add_row(row);
            }
            at += BATCH * L::LANES;
        }
        while end - at >= L::LANES {
            sides.add_row(L::load(from.add(at)));
            at += L::LANES;
        }
        let rest = L::load_first(from.add(at), (end - at) as isize, L::splat(pivot));
        sides.add_first(rest, end - at);
        sides.below
    }
}
