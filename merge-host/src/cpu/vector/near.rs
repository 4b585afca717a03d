//! Quicksort between two arrays, for words that fit a core's own caches. It is faster than a quicksort in place, where
//! each step waits to know which side has room.
//!
//! ```text
//!   one array     │ 3 7 1 9 8 2 5 6 │   pivot 5
//!   one array     │ 3 7 1 9 8 2 5 6 │   pivot 5
//!   … the same    │ 3 1 2 │                 lesser words stay, moved to the front
//!   … the other           │ 6 5 8 9 7 │     other words, from the end on: in their final range
//! ```
//!
//! Each step reads and writes each word once, and no words have to make room for others. Networks sort short parts
//! directly to the array of the result.

use super::few::Networks;
use super::lanes::{Divide, Word, load_rows, prefetch_rows};
use super::parts::{Part, Parts, Sides};
use super::quicksort::{Sampled, are_all, sample};

/// Rows per batch of a division.
const BATCH: usize = 4;

/// Prefetch distance, in rows before the next row to be written.
const AHEAD: usize = 12;

/// Sorts the `len` words of `run`, with `scratch` of the same length. A part that remains after `steps` divisions is
/// sorted by the standard library.
///
/// # Safety
/// The processor has the instruction set; `run` and `scratch` point to `len` words each and do not overlap. `scratch`
/// need not have words if `len` is at most [`Networks::MOST`].
#[inline(always)]
pub(super) unsafe fn sort<L: Networks + Divide>(
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
        // SAFETY: the processor has the instruction set. Both arrays have `begin..end`: parts are subranges of
        // `0..len`, and `begin <= middle, rest <= end`. If `len` is at most `L::MOST`, the only part is in `run`, and
        // `scratch` is not accessed.
        unsafe {
            if len <= L::MOST {
                L::sort_few(from.add(begin), to.add(begin), len);
            } else if steps == 0 {
                // Pivots have divided badly too often.
                std::ptr::copy(from.add(begin), to.add(begin), len);
                std::slice::from_raw_parts_mut(to.add(begin), len).sort_unstable();
            } else {
                let Sampled { median: pivot, is_same } = sample::<L>(from.add(begin), len, random, [L::Word::ZERO; 2]);
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
                    // The pivot is the least word, so all words are in the other array now. Words equal to the pivot
                    // are in order.
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

/// Moves the words of `from[begin..end]` that are less than `pivot` to the front of the range, and the others to the
/// end of `other[begin..end]`. Returns the index that separates them.
///
/// # Safety
/// The processor has the instruction set; both arrays have words in `begin..end` and do not overlap.
#[inline(always)]
unsafe fn divide<L: Divide>(
    from: *mut L::Word,
    other: *mut L::Word,
    begin: usize,
    end: usize,
    pivot: L::Word,
) -> usize {
    let mut at = begin;
    // SAFETY: the processor has the instruction set. Reads end at `end`. A row is added after it has been read, so if
    // `k` words were added before, `begin + k + LANES <= end`. `less` words were less than the pivot. `sides.below =
    // begin + less`, so the row's store there ends at most at `begin + k + LANES`, which has been read. `sides.above =
    // end - (k - less)`, so the row's store there begins at `end - k - LANES >= begin` or later. `add_first` stores
    // `end - at` words, which are all that are left.
    unsafe {
        let mut sides = Sides::<L>::new([from, other], (begin, end), pivot);
        while end - at >= BATCH * L::LANES {
            // The hardware prefetcher does not follow descending writes in time.
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
