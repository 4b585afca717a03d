//! Sorting networks for a few vectors: the sequence of comparisons does not depend on the words.
//!
//! ```text
//!   rows         sorted columns    merged in pairs of runs until one is left
//!   7 2 9 4      0 1 3 4           0 4 │ 1 6           0 3 6 8
//!   0 8 3 6  ──► 2 2 5 6      ──►  1 5 │ 2 8      ──►  1 4 6 8      and then as rows
//!   5 1 8 9      5 4 8 9           2 7 │ 4 9           2 4 7 9
//!   2 4 5 …      7 8 9 …           2 8 │ …             2 5 8 …
//! ```
//!
//! Most comparisons are between words of two rows in the same lane, which takes two instructions for all lanes. After
//! "Vectorized and performance-portable Quicksort" (Wassenberg, Blacher, Giesen and Sanders, 2022).

use super::lanes::Lanes;

/// The greatest number of lanes of a vector.
pub(super) const MOST_LANES: usize = 32;

/// Calls `exchange` with each pair of rows, in sequence.
macro_rules! exchange {
    ($rows:ident: $($i:literal $j:literal),*) => {
        {$(($rows[$i], $rows[$j]) = $rows[$i].exchange($rows[$j]);)*}
    };
}

/// Sorts the columns of `N` rows, at most 16, by Batcher's odd-even merge network (1968).
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn sort_columns<L: Lanes, const N: usize>(rows: &mut [L; N]) {
    // SAFETY: the processor has the instruction set, the only condition of `exchange`.
    unsafe {
        match N {
            1 => (),
            2 => exchange!(rows: 0 1),
            4 => exchange!(rows: 0 1, 2 3, 0 2, 1 3, 1 2),
            8 => exchange!(rows:
                0 1, 2 3, 4 5, 6 7, 0 2, 1 3, 4 6, 5 7, 1 2, 5 6, 0 4, 1 5, 2 6, 3 7, 2 4, 3 5, 1 2, 3 4, 5 6),
            _ => exchange!(rows:
                0 1, 2 3, 4 5, 6 7, 8 9, 10 11, 12 13, 14 15, 0 2, 1 3, 4 6, 5 7, 8 10, 9 11, 12 14, 13 15, 1 2, 5 6,
                9 10, 13 14, 0 4, 1 5, 2 6, 3 7, 8 12, 9 13, 10 14, 11 15, 2 4, 3 5, 10 12, 11 13, 1 2, 3 4, 5 6, 9 10,
                11 12, 13 14, 0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15, 4 8, 5 9, 6 10, 7 11, 2 4, 3 5, 6 8, 7 9,
                10 12, 11 13, 1 2, 3 4, 5 6, 7 8, 9 10, 11 12, 13 14),
        }
    }
}

/// The bit of a lane's number that selects one of two neighbouring runs of `2^level` columns. The bits are chosen such
/// that columns become rows when the least significant bits of lane and row number are exchanged.
const fn lane_bit(rows: usize, lanes: usize, level: u32) -> usize {
    let (of_row, of_lane) = (rows.ilog2(), lanes.ilog2());
    1 << if of_row <= of_lane { (level + of_row) % of_lane } else { level }
}

/// The union of [`lane_bit`] for all levels below `levels`.
const fn lane_bits(rows: usize, lanes: usize, levels: u32) -> usize {
    let (mut bits, mut level) = (0, 0);
    while level < levels {
        bits |= lane_bit(rows, lanes, level);
        level += 1;
    }
    bits
}

/// Merges each two neighbouring runs of `2^LEVEL` columns, which are sorted column by column, by a bitonic network
/// (Batcher, 1968).
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn merge_columns<L: Lanes, const N: usize, const LEVEL: u32>(rows: &mut [L; N]) {
    if 1 << LEVEL >= L::LANES {
        return;
    }
    // SAFETY: the processor has the instruction set, the only condition of each operation in this block.
    unsafe {
        // The first word of one run meets the last word of the other, and so on inwards.
        let (mirrored, bit) = const { (lane_bits(N, L::LANES, LEVEL + 1), lane_bit(N, L::LANES, LEVEL)) };
        for i in 0..N.div_ceil(2) {
            let (a, b) = (rows[i], rows[N - 1 - i]);
            rows[i] = a.ordered(b.flipped(mirrored), bit);
            rows[N - 1 - i] = b.ordered(a.flipped(mirrored), bit);
        }
        if LEVEL > 3 {
            order_lanes(rows, const { lane_bit(N, L::LANES, 3) });
        }
        if LEVEL > 2 {
            order_lanes(rows, const { lane_bit(N, L::LANES, 2) });
        }
        if LEVEL > 1 {
            order_lanes(rows, const { lane_bit(N, L::LANES, 1) });
        }
        if LEVEL > 0 {
            order_lanes(rows, const { lane_bit(N, L::LANES, 0) });
        }
        order_rows(rows);
    }
}

/// Puts each pair of lanes `i` and `i ^ bit` in order.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn order_lanes<L: Lanes, const N: usize>(rows: &mut [L; N], bit: usize) {
    for row in rows {
        // SAFETY: the processor has the instruction set, the only condition of `ordered` and `flipped`.
        *row = unsafe { row.ordered(row.flipped(bit), bit) };
    }
}

/// Sorts each column of up to 16 rows that is bitonic.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn order_rows<L: Lanes, const N: usize>(rows: &mut [L; N]) {
    // SAFETY: the processor has the instruction set, the only condition of `order_rows_by`.
    unsafe {
        order_rows_by::<L, N, 8>(rows);
        order_rows_by::<L, N, 4>(rows);
        order_rows_by::<L, N, 2>(rows);
        order_rows_by::<L, N, 1>(rows);
    }
}

/// Puts each pair of rows `i` and `i + D` in order, where `i` lacks bit `D`. Does nothing if `N <= D`.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn order_rows_by<L: Lanes, const N: usize, const D: usize>(rows: &mut [L; N]) {
    for i in 0..N {
        if i & D == 0 && i + D < N {
            // SAFETY: the processor has the instruction set, the only condition of `exchange`.
            (rows[i], rows[i + D]) = unsafe { rows[i].exchange(rows[i + D]) };
        }
    }
}

/// Turns columns into rows.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn transpose<L: Lanes, const N: usize>(rows: &mut [L; N]) {
    // SAFETY: the processor has the instruction set, the only condition of `transpose_blocks`.
    unsafe {
        transpose_blocks::<L, N, 1>(rows);
        transpose_blocks::<L, N, 2>(rows);
        transpose_blocks::<L, N, 4>(rows);
        transpose_blocks::<L, N, 8>(rows);
    }
    if N > L::LANES {
        // A column fills several rows, which are not adjacent yet.
        let (from, of_column) = (*rows, N / L::LANES);
        for i in 0..N {
            rows[i % L::LANES * of_column + i / L::LANES] = from[i];
        }
    }
}

/// Swaps the off-diagonal blocks of `D` by `D` words in each block of `2 D` by `2 D`. Does nothing if the rows have no
/// such blocks.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn transpose_blocks<L: Lanes, const N: usize, const D: usize>(rows: &mut [L; N]) {
    if D >= N || D >= L::LANES {
        return;
    }
    for i in 0..N {
        if i & D == 0 {
            let (a, b) = (rows[i], rows[i + D]);
            // SAFETY: the processor has the instruction set, the only condition of `blended` and `flipped`.
            unsafe {
                rows[i] = a.blended(b.flipped(D), D);
                rows[i + D] = a.flipped(D).blended(b, D);
            }
        }
    }
}

/// Sorts all words of `N` rows, at most 16.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
pub(super) unsafe fn sort_rows<L: Lanes, const N: usize>(rows: &mut [L; N]) {
    const { assert!(L::LANES <= MOST_LANES && N.is_power_of_two() && N <= 16) };
    // SAFETY: the processor has the instruction set, the only condition of the functions called.
    unsafe {
        sort_columns(rows);
        merge_columns::<L, N, 0>(rows);
        merge_columns::<L, N, 1>(rows);
        merge_columns::<L, N, 2>(rows);
        merge_columns::<L, N, 3>(rows);
        merge_columns::<L, N, 4>(rows);
        transpose(rows);
    }
}

/// The number of lanes that [`sort_first_lanes`] sorts.
pub(super) const FIRST_LANES: usize = 4;

/// Sorts the words of a row. No word behind the first [`FIRST_LANES`] words is less than one in front.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
pub(super) unsafe fn sort_first_lanes<L: Lanes>(row: &mut [L; 1]) {
    // SAFETY: the processor has the instruction set, the only condition of `merge_columns`.
    unsafe {
        merge_columns::<L, 1, 0>(row);
        merge_columns::<L, 1, 1>(row);
    }
}

/// Sorts all words of `N` rows, at most 16, if the sequence of the rows is bitonic.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
pub(super) unsafe fn merge_rows<L: Lanes, const N: usize>(rows: &mut [L; N]) {
    // SAFETY: the processor has the instruction set, the only condition of `order_rows` and `order_lanes`.
    unsafe {
        order_rows(rows);
        if L::LANES > 16 {
            order_lanes(rows, 16);
        }
        if L::LANES > 8 {
            order_lanes(rows, 8);
        }
        if L::LANES > 4 {
            order_lanes(rows, 4);
        }
        order_lanes(rows, 2);
        order_lanes(rows, 1);
    }
}
