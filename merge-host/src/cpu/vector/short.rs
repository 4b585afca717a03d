//! Sorts of many segments of few words, each in a few rows of lanes.
//!
//! ```text
//!   words   3 1 2│5 4│9 7 8 6│ …
//!   rows    3 1 2 ∞   5 4 ∞ ∞   9 7 8 6        several at a time: their networks do not wait for each other
//!           1 2 3 ∞   4 5 ∞ ∞   6 7 8 9
//!   words   1 2 3│4 5│6 7 8 9│ …               what a row writes behind its segment, the next row overwrites
//! ```

use super::lanes::{Lanes, Word};
use super::network::sort_rows;

/// Segments at a time.
const SEGMENTS: usize = 4;

/// The most rows of a segment.
pub(super) const MOST_ROWS: usize = 4;

/// Sorts each segment of `words`, from an offset to the next, that has up to `MOST_ROWS * LANES` words. The first of `offsets` is where `words`
/// begin.
///
/// # Safety
/// The processor has the instruction set; the offsets do not descend, and `words` points to as many words as are between the first and the last.
#[inline(always)]
pub(super) unsafe fn sort<L: Lanes>(words: *mut L::Word, offsets: &[usize]) {
    // SAFETY: the caller's promise.
    unsafe {
        sort_in_rows::<L, 1>(words, offsets);
        sort_in_rows::<L, 2>(words, offsets);
        sort_in_rows::<L, MOST_ROWS>(words, offsets);
    }
}

/// Sorts those segments that need `ROWS` rows, a power of two, and not half as many.
///
/// # Safety
/// As for [`sort`].
#[inline(always)]
unsafe fn sort_in_rows<L: Lanes, const ROWS: usize>(words: *mut L::Word, offsets: &[usize]) {
    let mut batch = [(0, 0); SEGMENTS];
    let mut count = 0;
    for ends in offsets.windows(2) {
        let (begin, len) = (ends[0] - offsets[0], ends[1] - ends[0]);
        if len == 0 {
            continue;
        }
        let is_short = ROWS / 2 * L::LANES < len && len <= ROWS * L::LANES;
        if is_short {
            batch[count] = (begin, len);
            count += 1;
        }
        // Those of a batch are neighbours.
        if !is_short || count == SEGMENTS {
            // SAFETY: the caller's promise.
            unsafe { sort_batch::<L, ROWS>(words, &batch[..count]) };
            count = 0;
        }
    }
    // SAFETY: as above.
    unsafe { sort_batch::<L, ROWS>(words, &batch[..count]) };
}

/// Sorts up to [`SEGMENTS`] neighbouring segments, each of which begins at a word, and has so many.
///
/// # Safety
/// As for [`sort`].
#[inline(always)]
unsafe fn sort_batch<L: Lanes, const ROWS: usize>(words: *mut L::Word, batch: &[(usize, usize)]) {
    let Some(&(last, last_len)) = batch.last() else { return };
    let end = last + last_len;
    // SAFETY: the caller's promise.
    unsafe {
        // Loops rather than closures, as in `load_rows`.
        let mut segments = [[L::splat(L::Word::MAX); ROWS]; SEGMENTS];
        for (rows, &(begin, len)) in segments.iter_mut().zip(batch) {
            for (i, row) in rows.iter_mut().enumerate() {
                let first = i * L::LANES;
                *row = L::load_first(words.wrapping_add(begin + first), len as isize - first as isize);
            }
        }
        for rows in &mut segments {
            sort_rows(rows);
        }
        for (rows, &(begin, len)) in segments.iter().zip(batch) {
            for (row, at) in rows.iter().zip((begin..begin + len).step_by(L::LANES)) {
                if at + L::LANES <= end {
                    row.store(words.add(at));
                } else {
                    row.store_first(words.add(at), (begin + len - at) as isize);
                }
            }
        }
    }
}
