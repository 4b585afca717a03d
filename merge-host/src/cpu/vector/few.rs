//! Sorts of few words: by a network, or by two networks and a bitonic merge (Batcher, 1968).
//!
//! ```text
//!   words     5 1 8 3 │ 9 4      as many as a network takes, and the rest
//!   sorted    1 3 5 8 │ 4 9 ∞ ∞
//!   mirrored  1 3 5 4 │ 8 9 …    the lesser word of each two with the same distance from the middle, and the greater one
//!   merged    1 3 4 5 │ 8 9      each half by itself
//! ```
//!
//! So there are fewer words for which half of a network's rows are empty, as there would be if so many were divided.

use super::lanes::{Lanes, Word, load_rows};
use super::network::{merge_rows, sort_rows};

/// The most words that [`sort`] sorts, where a network takes up to `ROWS` rows.
pub(super) const fn most<L: Lanes, const ROWS: usize>() -> usize {
    2 * ROWS * L::LANES
}

/// Sorts up to [`most`] words from `from` to `to`, which may be the same. Networks sort up to `MOST` rows, 8 or 16, of
/// which as few take part as words need.
///
/// # Safety
/// The processor has the instruction set; `from` and `to` point to `len` words each.
#[inline(always)]
pub(super) unsafe fn sort<L: Lanes, const MOST: usize>(from: *const L::Word, to: *mut L::Word, len: usize) {
    debug_assert!(len <= most::<L, MOST>());
    let half = const { MOST * L::LANES };
    // SAFETY: the caller's promise.
    unsafe {
        // A loop, so that the networks are there once.
        for at in (0..len).step_by(half) {
            let (from, to, len) = (from.add(at), to.add(at), half.min(len - at));
            let is_rest = at > 0;
            match len.div_ceil(L::LANES) {
                0..=1 => sort_half::<L, 1>(from, to, len, is_rest),
                2 => sort_half::<L, 2>(from, to, len, is_rest),
                3..=4 => sort_half::<L, 4>(from, to, len, is_rest),
                5..=8 => sort_half::<L, 8>(from, to, len, is_rest),
                _ => sort_half::<L, MOST>(from, to, len, is_rest),
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

/// Sorts up to `ROWS * LANES` words from `from` to `to`, which may be the same. If they are the rest, there are sorted
/// words before `to`, which then are bitonic, and not greater than any of the rest.
///
/// # Safety
/// The processor has the instruction set; `from` and `to` point to `len` words each, and if they are the rest, there
/// are `ROWS` rows before `to`.
#[inline(always)]
unsafe fn sort_half<L: Lanes, const ROWS: usize>(from: *const L::Word, to: *mut L::Word, len: usize, is_rest: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        // Loops rather than closures, as in `load_rows`.
        let greatest = L::splat(L::Word::MAX);
        let mut rows = [greatest; ROWS];
        for (i, row) in rows.iter_mut().enumerate() {
            let first = i * L::LANES;
            *row = L::load_first(from.wrapping_add(first), len as isize - first as isize, greatest);
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
        for (i, row) in rows.into_iter().enumerate() {
            let first = i * L::LANES;
            row.store_first(to.wrapping_add(first), len as isize - first as isize);
        }
    }
}
