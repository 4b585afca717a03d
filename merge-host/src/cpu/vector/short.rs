//! Sorts of many segments of few words, each in a few rows of lanes.
//!
//! ```text
//!   words   3 1 2│5 4│9 7 8 6│ …
//!   rows    3 1 2 ∞   5 4 ∞ ∞   9 7 8 6        several at a time: their networks do not wait for each other
//!           1 2 3 ∞   4 5 ∞ ∞   6 7 8 9
//!   words   1 2 3│4 5│6 7 8 9│ …               the next row overwrites the tail of a row
//! ```

use super::coding::{Coding, splat};
use super::lanes::{Lanes, Word};
use super::network::{FIRST_LANES, sort_first_lanes, sort_rows};

/// The greatest number of rows of a segment.
pub(super) const MOST_ROWS: usize = 8;

/// Sorts each segment of `words`, from an offset to the next, that has up to `MOST_ROWS * LANES` words, in the order of
/// their encoding by `coding`. `offsets[0]` is the offset of the first word. `S` has no more lanes than `L`, and sorts
/// few words faster. Returns whether there are no longer segments.
///
/// # Safety
/// The processor has the instruction sets of `L` and `S`; the offsets do not descend, and `words` points to n words,
/// where n is the last offset less the first.
#[inline(always)]
pub(super) unsafe fn sort<L: Lanes, S: Lanes<Word = L::Word>>(
    words: *mut L::Word,
    offsets: &[usize],
    coding: Coding<L::Word>,
) -> bool {
    // SAFETY: the processor has both instruction sets, and `sort_in_rows` has the same conditions on offsets and words
    // as this function.
    unsafe {
        let of_few = [splat::<S>(coding.encode), splat(coding.decode)];
        let coding = [splat::<L>(coding.encode), splat(coding.decode)];
        // The least length of the segments that are still to be sorted.
        let mut left = sort_in_rows::<S, 1, 8>(words, offsets, 0, of_few);
        if S::LANES < left && left <= L::LANES {
            left = sort_in_rows::<L, 1, 4>(words, offsets, S::LANES, coding);
        }
        if left <= 2 * L::LANES {
            left = sort_in_rows::<L, 2, 4>(words, offsets, L::LANES, coding);
        }
        if left <= 4 * L::LANES {
            left = sort_in_rows::<L, 4, 4>(words, offsets, 2 * L::LANES, coding);
        }
        if left <= MOST_ROWS * L::LANES {
            left = sort_in_rows::<L, MOST_ROWS, 1>(words, offsets, MOST_ROWS / 2 * L::LANES, coding);
        }
        left == usize::MAX
    }
}

/// Sorts the segments that have more than `above` words and at most `ROWS` rows, `SEGMENTS` segments at a time. Returns
/// the least length of longer segments, or `usize::MAX`.
///
/// # Safety
/// The processor has the instruction set; the offsets do not descend, and `words` points to n words, where n is the
/// last offset less the first.
#[inline(always)]
unsafe fn sort_in_rows<L: Lanes, const ROWS: usize, const SEGMENTS: usize>(
    words: *mut L::Word,
    offsets: &[usize],
    above: usize,
    coding: [[L; 2]; 2],
) -> usize {
    let mut batch = [(0, 0); SEGMENTS];
    let (mut count, mut left) = (0, usize::MAX);
    for ends in offsets.windows(2) {
        let (begin, len) = (ends[0] - offsets[0], ends[1] - ends[0]);
        if len == 0 {
            continue;
        }
        let is_short = above < len && len <= ROWS * L::LANES;
        if is_short {
            batch[count] = (begin, len);
            count += 1;
        } else if len > above {
            left = left.min(len);
        }
        // A batch consists of adjacent segments, because a row may overwrite the words behind its segment.
        if !is_short || count == SEGMENTS {
            // SAFETY: the processor has the instruction set. Each segment of the batch ends at an offset less the
            // first, within `words`, and has at most `ROWS` rows. Another segment of at least one word ends the batch,
            // so its segments are adjacent.
            unsafe { sort_batch::<L, ROWS, SEGMENTS>(words, &batch[..count], coding) };
            count = 0;
        }
    }
    // SAFETY: the processor has the instruction set. The segments since the last call are adjacent, have at most `ROWS`
    // rows each, and end within `words`.
    unsafe { sort_batch::<L, ROWS, SEGMENTS>(words, &batch[..count], coding) };
    left
}

/// Sorts up to `SEGMENTS` adjacent segments, each given by the index of its first word and its length.
///
/// # Safety
/// The processor has the instruction set; the segments are adjacent, in ascending order, and have at most `ROWS` rows
/// each; `words` has all of their words.
#[inline(always)]
unsafe fn sort_batch<L: Lanes, const ROWS: usize, const SEGMENTS: usize>(
    words: *mut L::Word,
    batch: &[(usize, usize)],
    [encode, decode]: [[L; 2]; 2],
) {
    let Some(&(last, last_len)) = batch.last() else { return };
    let end = last + last_len;
    // SAFETY: the processor has the instruction set. A row is loaded with the `len - i * LANES` words that its segment
    // has left. A row is stored whole only if it ends at or before `end`, the end of the batch. Otherwise it is stored
    // up to the end of its segment. All segments are loaded before the first is stored, and segments are stored in
    // order, so that no row overwrites sorted words.
    unsafe {
        // Loops rather than closures: see `load_rows`.
        let mut segments = [[L::splat(L::Word::MAX); ROWS]; SEGMENTS];
        // The unused lanes are the greatest word after encoding.
        let greatest = L::splat(L::Word::MAX).coded(decode);
        let are_few = ROWS == 1 && batch.iter().all(|(_, len)| *len <= FIRST_LANES);
        for (rows, &(begin, len)) in segments.iter_mut().zip(batch) {
            for (i, row) in rows.iter_mut().enumerate() {
                let first = i * L::LANES;
                let count = len as isize - first as isize;
                *row = L::load_first(words.wrapping_add(begin + first), count, greatest).coded(encode);
            }
            match rows.first_chunk_mut() {
                Some(row) if are_few => sort_first_lanes(row),
                _ => sort_rows(rows),
            }
        }
        for (rows, &(begin, len)) in segments.iter().zip(batch) {
            for (row, at) in rows.iter().zip((begin..begin + len).step_by(L::LANES)) {
                let row = row.coded(decode);
                if at + L::LANES <= end {
                    row.store(words.add(at));
                } else {
                    row.store_first(words.add(at), (begin + len - at) as isize);
                }
            }
        }
    }
}
