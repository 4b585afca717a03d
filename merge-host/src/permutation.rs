//! Permutations: which value goes to each index of an output.
//!
//! Values of any size are sorted by their keys in three steps: number them, sort keys and numbers, and gather the values
//! in the order of the numbers. So each value moves once, however large it is:
//!
//! ```
//! use merge_host::{Engine, SortOrder, permutation};
//!
//! let (mut keys, names) = ([30u32, 10, 20], b"xyzabcpqr");
//! let (mut order, mut sorted) = ([0u32; 3], [0; 9]);
//! permutation::fill_identity(&mut order);
//! Engine::cpu().sort_pairs(SortOrder::Ascending, &mut keys, &mut order)?;
//! permutation::gather(3, &[names], &order, &mut sorted);
//! assert_eq!((order, &sorted), ([1, 2, 0], b"abcpqrxyz"));
//! # Ok::<(), merge_host::Error>(())
//! ```

use crate::{Index, parallel};

/// The fewest values that a thread gathers at once.
const BLOCK: usize = 1 << 14;

/// Writes 0, 1, 2 and so on to `indices`. Takes linear time, on the threads of [`parallel`] loops.
///
/// # Panics
/// Panics if `I` is `u32` and there are more than 2^32 indices.
pub fn fill_identity<I: Index>(indices: &mut [I]) {
    assert!(indices.len() as u128 <= I::COUNT, "{} indices exceed {}", indices.len(), I::NAME);
    fill_identity_on(parallel::threads(), indices);
}

/// [`fill_identity`] on up to `threads` threads. If that is 1, it is the calling thread.
pub(crate) fn fill_identity_on<I: Index>(threads: usize, indices: &mut [I]) {
    let share = parallel::share_length_for(threads, indices.len(), BLOCK);
    parallel::for_each_on(threads, indices.chunks_mut(share).enumerate(), |(i, indices)| {
        indices.iter_mut().enumerate().for_each(|(j, index)| *index = I::from_usize(i * share + j));
    });
}

/// Copies to slot `i` of `out` the value at index `permutation[i]` of `parts`, which are numbered one after the other.
///
/// A value has `width` bytes. Each part holds whole values, and `out` one for each index. Takes linear time, times the
/// logarithm of the number of parts, on the threads of [`parallel`] loops.
///
/// ```
/// let mut out = [0; 6];
/// merge_host::permutation::gather(2, &[b"aabb", b"cc"], &[2u32, 0, 1], &mut out);
/// assert_eq!(&out, b"ccaabb");
/// ```
///
/// # Panics
/// Panics if the lengths are not as said, or an index is not below the number of values.
pub fn gather<I: Index>(width: usize, parts: &[&[u8]], permutation: &[I], out: &mut [u8]) {
    let ends: Vec<usize> = parts
        .iter()
        .scan(0, |end, part| {
            *end += part.len();
            Some(*end)
        })
        .collect();
    gather_with(width, permutation, out, |index| {
        let begin = index * width;
        // The first part that ends behind the value's first byte. Empty parts hold none.
        let part = ends.partition_point(|&end| end <= begin);
        &parts[part][begin - (ends[part] - parts[part].len())..][..width]
    });
}

/// [`gather`] of the values that `value_at` finds by their indices.
pub(crate) fn gather_with<'a, I: Index>(
    width: usize,
    permutation: &[I],
    out: &mut [u8],
    value_at: impl Fn(usize) -> &'a [u8] + Sync,
) {
    assert_eq!(out.len(), permutation.len() * width, "bytes of the output, for {} values", permutation.len());
    if width == 0 {
        return;
    }
    let share = parallel::share_length(permutation.len(), BLOCK);
    parallel::for_each(out.chunks_mut(share * width).zip(permutation.chunks(share)), |(out, indices)| {
        for (to, index) in out.chunks_exact_mut(width).zip(indices) {
            to.copy_from_slice(value_at(index.to_usize()));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathers<I: Index>() {
        let (a, b): (Vec<u8>, Vec<u8>) = ((0..9).collect(), (9..30).collect());
        let permutation = [0, 3, 9, 2, 4].map(I::from_usize);
        let mut out = [99; 15];
        gather(3, &[&a, &b], &permutation, &mut out);
        assert_eq!(out, [0, 1, 2, 9, 10, 11, 27, 28, 29, 6, 7, 8, 12, 13, 14]);
        let mut same = [99; 15];
        gather(3, &[&[], &a[..3], &a[3..], &[], &b, &[]], &permutation, &mut same);
        assert_eq!(same, out);
    }

    #[test]
    fn values_come_from_their_indices_in_any_number_of_parts() {
        gathers::<u32>();
        gathers::<u64>();
        gather::<u32>(0, &[], &[], &mut []);
        gather::<u64>(5, &[&[]], &[], &mut []);
        gather(0, &[], &[3u32, 1], &mut []);
    }

    #[test]
    fn more_values_than_a_block_are_gathered() {
        let count = 2 * BLOCK + 3;
        let values: Vec<u8> = (0..2 * count).map(|i| (i / 2 * 7) as u8).collect();
        let mut permutation = vec![0u32; count];
        fill_identity(&mut permutation);
        assert!(permutation.iter().copied().eq(0..count as u32));
        permutation.reverse();
        let mut out = vec![0; 2 * count];
        gather(2, &[&values[..10], &values[10..]], &permutation, &mut out);
        assert!(out.chunks(2).eq(values.chunks(2).rev()));
    }

    #[test]
    #[should_panic(expected = "bytes of the output, for 2 values")]
    fn an_output_of_another_length_is_refused() {
        gather(2, &[&[1, 2, 3, 4]], &[0u32, 1], &mut [0; 3]);
    }
}
