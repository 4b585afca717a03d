//! Sorts of many segments of few words, each in a few rows of lanes.
//!
//! ```text
//!   words   3 1 2│5 4│9 7 8 6│ …
//!   rows    3 1 2 ∞   5 4 ∞ ∞   9 7 8 6        several at a time: their networks do not wait for each other
//!           1 2 3 ∞   4 5 ∞ ∞   6 7 8 9
//!   words   1 2 3│4 5│6 7 8 9│ …               what a row writes behind its segment, the next row overwrites
//! ```

use super::coding::{Coding, splat};
use super::lanes::{Lanes, Word};
use super::network::{FIRST_LANES, sort_first_lanes, sort_rows};

/// The most rows of a segment.
pub(super) const MOST_ROWS: usize = 8;

/// Sorts each segment of `words`, as `coding` encodes them, from an offset to the next, that has up to `MOST_ROWS *
/// LANES` words. The first of `offsets` is where `words` begin. `S` are as many lanes or fewer, which take less time
/// for what fits them. Gives whether there are no other segments.
///
/// # Safety
/// The processor has both instruction sets; the offsets do not descend, and `words` points to as many words as are
/// between the first and the last.
#[inline(always)]
pub(super) unsafe fn sort<L: Lanes, S: Lanes<Word = L::Word>>(
    words: *mut L::Word,
    offsets: &[usize],
    coding: Coding<L::Word>,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let of_few = [splat::<S>(coding.encode), splat(coding.decode)];
        let coding = [splat::<L>(coding.encode), splat(coding.decode)];
        // The least length of segments that are left.
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

/// Sorts those segments that have more than `above` words, and not more than `ROWS` rows, `SEGMENTS` of them at a time.
/// Gives the least length of those with more.
///
/// # Safety
/// As for [`sort`].
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
        // Those of a batch are neighbours.
        if !is_short || count == SEGMENTS {
            // SAFETY: the caller's promise.
            unsafe { sort_batch::<L, ROWS, SEGMENTS>(words, &batch[..count], coding) };
            count = 0;
        }
    }
    // SAFETY: as above.
    unsafe { sort_batch::<L, ROWS, SEGMENTS>(words, &batch[..count], coding) };
    left
}

/// Sorts up to `SEGMENTS` neighbouring segments, each of which begins at a word, and has so many.
///
/// # Safety
/// As for [`sort`].
#[inline(always)]
unsafe fn sort_batch<L: Lanes, const ROWS: usize, const SEGMENTS: usize>(
    words: *mut L::Word,
    batch: &[(usize, usize)],
    [encode, decode]: [[L; 2]; 2],
) {
    let Some(&(last, last_len)) = batch.last() else { return };
    let end = last + last_len;
    // SAFETY: the caller's promise.
    unsafe {
        // Loops rather than closures, as in `load_rows`.
        let mut segments = [[L::splat(L::Word::MAX); ROWS]; SEGMENTS];
        // Other lanes are to have the greatest word once they are encoded, too.
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
