//! Sorts of a few vectors, by networks: which words are compared does not depend on what they are.
//!
//! ```text
//!   rows         sorted columns    transposed
//!   7 2 9 4      0 1 3 4           0 2 5 7
//!   0 8 3 6  ──► 2 2 5 6       ──► 1 2 4 8      each row is sorted; then rows are merged, two by two, by bitonic networks
//!   5 1 8 9      5 4 8 9           3 5 8 9
//!   2 4 5 …      7 8 9 …           …
//! ```

use super::lanes::{Lanes, Word};
use std::mem::MaybeUninit;

/// The most lanes of a vector.
pub(super) const MOST_LANES: usize = 16;

/// Calls `exchange` with the rows of each pair, one pair after the other.
macro_rules! exchange {
    ($rows:ident: $($i:literal $j:literal),*) => {
        {$(($rows[$i], $rows[$j]) = $rows[$i].exchange($rows[$j]);)*}
    };
}

/// Sorts the columns of `N` rows, 4, 8 or 16, by Batcher's network of odd-even merges (1968).
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn sort_columns<L: Lanes, const N: usize>(rows: &mut [L; N]) {
    // SAFETY: the caller's promise.
    unsafe {
        match N {
            4 => exchange!(rows: 0 1, 2 3, 0 2, 1 3, 1 2),
            8 => {
                exchange!(rows: 0 1, 2 3, 4 5, 6 7, 0 2, 1 3, 4 6, 5 7, 1 2, 5 6, 0 4, 1 5, 2 6, 3 7, 2 4, 3 5, 1 2, 3 4, 5 6)
            }
            _ => exchange!(rows:
                0 1, 2 3, 4 5, 6 7, 8 9, 10 11, 12 13, 14 15, 0 2, 1 3, 4 6, 5 7, 8 10, 9 11, 12 14, 13 15, 1 2, 5 6, 9 10,
                13 14, 0 4, 1 5, 2 6, 3 7, 8 12, 9 13, 10 14, 11 15, 2 4, 3 5, 10 12, 11 13, 1 2, 3 4, 5 6, 9 10, 11 12,
                13 14, 0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15, 4 8, 5 9, 6 10, 7 11, 2 4, 3 5, 6 8, 7 9, 10 12, 11 13,
                1 2, 3 4, 5 6, 7 8, 9 10, 11 12, 13 14),
        }
    }
}

/// Makes columns rows, of as many rows as there are lanes: first of blocks of two by two, then of four by four, and so on.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn transpose<L: Lanes, const N: usize>(rows: &mut [L; N]) {
    // SAFETY: the caller's promise.
    unsafe {
        transpose_blocks::<L, N, 1>(rows);
        transpose_blocks::<L, N, 2>(rows);
        if N > 4 {
            transpose_blocks::<L, N, 4>(rows);
        }
        if N > 8 {
            transpose_blocks::<L, N, 8>(rows);
        }
    }
}

/// Swaps the blocks of `D` by `D` words beside the diagonal in each block of twice as many.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn transpose_blocks<L: Lanes, const N: usize, const D: usize>(rows: &mut [L; N]) {
    for i in 0..N {
        if i & D == 0 {
            let (a, b) = (rows[i], rows[i + D]);
            // SAFETY: the caller's promise.
            unsafe {
                rows[i] = a.blended::<D>(b.swapped::<D>());
                rows[i + D] = a.swapped::<D>().blended::<D>(b);
            }
        }
    }
}

/// Puts lanes whose numbers differ by bit `D` in order.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn step<L: Lanes, const D: usize>(row: L) -> L {
    // SAFETY: the caller's promise.
    unsafe {
        let (lesser, greater) = row.exchange(row.swapped::<D>());
        lesser.blended::<D>(greater)
    }
}

/// Sorts a bitonic row: one that ascends and then descends, or a rotation of such a row.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn sort_bitonic<L: Lanes>(mut row: L) -> L {
    // SAFETY: the caller's promise.
    unsafe {
        if L::LANES > 8 {
            row = step::<L, 8>(row);
        }
        if L::LANES > 4 {
            row = step::<L, 4>(row);
        }
        step::<L, 1>(step::<L, 2>(row))
    }
}

/// Sorts the lanes of a row, by merging runs of 1, 2, 4 … lanes.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
pub(super) unsafe fn sort_row<L: Lanes>(row: L) -> L {
    // SAFETY: the caller's promise.
    unsafe {
        let mut row = step::<L, 1>(row);
        // Lane i meets its mirror image in the two runs.
        let (lesser, greater) = row.exchange(row.swapped::<1>().swapped::<2>());
        row = step::<L, 1>(lesser.blended::<2>(greater));
        if L::LANES > 4 {
            let (lesser, greater) = row.exchange(row.swapped::<1>().swapped::<2>().swapped::<4>());
            row = step::<L, 1>(step::<L, 2>(lesser.blended::<4>(greater)));
        }
        if L::LANES > 8 {
            let (lesser, greater) = row.exchange(row.reversed());
            row = step::<L, 1>(step::<L, 2>(step::<L, 4>(lesser.blended::<8>(greater))));
        }
        row
    }
}

/// Merges each two neighbouring runs of `SIZE` rows, of `N` rows in all.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
pub(super) unsafe fn merge_runs<L: Lanes, const N: usize, const SIZE: usize>(rows: &mut [L; N]) {
    if SIZE >= N {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let mut begin = 0;
        while begin < N {
            // The second run is reversed: then both together are bitonic.
            let mut second = [rows[0]; SIZE];
            for i in 0..SIZE {
                second[i] = rows[begin + 2 * SIZE - 1 - i].reversed();
            }
            for i in 0..SIZE {
                (rows[begin + i], rows[begin + SIZE + i]) = rows[begin + i].exchange(second[i]);
            }
            begin += 2 * SIZE;
        }
        if SIZE > 4 {
            clean::<L, N, 4>(rows);
        }
        if SIZE > 2 {
            clean::<L, N, 2>(rows);
        }
        if SIZE > 1 {
            clean::<L, N, 1>(rows);
        }
        for row in rows {
            *row = sort_bitonic(*row);
        }
    }
}

/// Puts rows whose numbers differ by bit `D` in order.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn clean<L: Lanes, const N: usize, const D: usize>(rows: &mut [L; N]) {
    for i in 0..N {
        if i & D == 0 {
            // SAFETY: the caller's promise.
            (rows[i], rows[i + D]) = unsafe { rows[i].exchange(rows[i + D]) };
        }
    }
}

/// Sorts up to `ROWS * LANES` words from `from` to `to`, which may be the same. As many rows as lanes are sorted as columns first, if there
/// are so many: `SQUARE` is the number of lanes, and divides `ROWS`, or is greater.
///
/// # Safety
/// The processor has the instruction set; `from` and `to` point to `len` words.
#[inline(always)]
pub(super) unsafe fn sort<L: Lanes, const ROWS: usize, const SQUARE: usize>(
    from: *const L::Word,
    to: *mut L::Word,
    len: usize,
) {
    debug_assert!(len <= ROWS * L::LANES && SQUARE == L::LANES && L::LANES <= MOST_LANES);
    let mut words = [const { [const { MaybeUninit::<L::Word>::uninit() }; MOST_LANES] }; ROWS];
    let words: *mut L::Word = words.as_mut_ptr().cast();
    // SAFETY: the caller's promise. There are words for the most lanes of each row.
    unsafe {
        // Loops rather than closures, as in `load_rows`.
        let mut rows = [L::splat(L::Word::MAX); ROWS];
        for (i, row) in rows.iter_mut().enumerate() {
            let first = i * L::LANES;
            *row = L::load_first(from.wrapping_add(first), len as isize - first as isize);
        }
        if ROWS >= SQUARE {
            let mut first = 0;
            while first < ROWS {
                let mut square = [rows[first]; SQUARE];
                square.copy_from_slice(&rows[first..first + SQUARE]);
                sort_columns(&mut square);
                transpose(&mut square);
                rows[first..first + SQUARE].copy_from_slice(&square);
                first += SQUARE;
            }
        } else {
            for row in &mut rows {
                *row = sort_row(*row);
            }
        }
        merge_runs::<L, ROWS, 1>(&mut rows);
        merge_runs::<L, ROWS, 2>(&mut rows);
        merge_runs::<L, ROWS, 4>(&mut rows);
        merge_runs::<L, ROWS, 8>(&mut rows);
        for (i, row) in rows.into_iter().enumerate() {
            row.store(words.add(i * L::LANES));
        }
        std::ptr::copy_nonoverlapping(words, to, len);
    }
}
