//! Whether keys are in order, with all threads.

use crate::error::Failure;
use crate::input::Input;
use crate::key_type::FileKey;
use merge_host::SortOrder;
use rayon::prelude::*;
use std::ops::Not;

/// Keys that a thread looks at once: few enough for the library to see no use in threads of its own, so that
/// `--parallel` counts.
const PIECE: usize = 1 << 18;

/// The order that `--reverse` asks for, or its absence.
pub fn order_of(reverse: bool) -> SortOrder {
    if reverse { SortOrder::Descending } else { SortOrder::Ascending }
}

/// The bits of a key such that lesser ones come first in this order; the same turns them back.
pub fn turned<B: Not<Output = B>>(order: SortOrder, bits: B) -> B {
    match order {
        SortOrder::Ascending => bits,
        SortOrder::Descending => !bits,
    }
}

/// Puts in place of each key the one that an ascending merge needs to merge in this order, and the other way round.
pub fn mirror<K: FileKey>(order: SortOrder, keys: &mut [K]) {
    if order != SortOrder::Ascending {
        keys.par_iter_mut().for_each(|key| *key = K::from_ordered(turned(order, key.to_ordered())));
    }
}

/// The index of the first key that is less than the one before it.
pub fn first_unsorted<K: FileKey>(keys: &[K]) -> Option<usize> {
    first_unsorted_between(keys, &[])
}

/// As [`first_unsorted`], where a run begins at each of the offsets, which ascend, and only the order within a run counts.
pub fn first_unsorted_between<K: FileKey>(keys: &[K], offsets: &[usize]) -> Option<usize> {
    let pieces = (0..keys.len().div_ceil(PIECE)).into_par_iter();
    let found = pieces.map(|piece| {
        let mut begin = piece * PIECE;
        // One key more, to compare the last of this piece with the first of the next.
        let end = keys.len().min(begin + PIECE + 1);
        loop {
            let index = begin + merge_host::first_unsorted(&keys[begin..end])?;
            if offsets.binary_search(&index).is_err() {
                return Some(index);
            }
            begin = index;
        }
    });
    found.find_first(Option::is_some).flatten()
}

/// The index of the first key that comes before the one before it, in that order.
pub fn first_unsorted_in<K: FileKey>(order: SortOrder, keys: &[K]) -> Option<usize> {
    match order {
        SortOrder::Ascending => first_unsorted(keys),
        SortOrder::Descending => {
            let found = keys.par_windows(2).position_first(|pair| pair[0].to_ordered() < pair[1].to_ordered());
            found.map(|i| i + 1)
        }
    }
}

/// As [`first_unsorted`], for keys that are runs of `length` each, where only the order within a run counts.
pub fn first_unsorted_in_runs<K: FileKey>(keys: &[K], length: usize) -> Option<usize> {
    if length == 0 {
        return None;
    }
    let runs_a_piece = PIECE.div_ceil(length);
    let pieces = keys.par_chunks(runs_a_piece * length).enumerate();
    let found = pieces.map(|(piece, runs)| {
        let begin = piece * runs_a_piece * length;
        let mut runs = runs.chunks(length).enumerate();
        runs.find_map(|(run, keys)| Some(begin + run * length + merge_host::first_unsorted(keys)?))
    });
    found.find_first(Option::is_some).flatten()
}

/// The error of an input to merge whose key at `index`, the second of `pair`, comes before the one before it. `place` says
/// where that is beyond its index, if there is something to say.
pub fn not_sorted<K: FileKey>(order: SortOrder, input: &Input, pair: &[K], index: u64, place: &str) -> Failure {
    let (what, byte) = (describe(pair, 1), input.offset_of::<K>(index));
    let sort = if order == SortOrder::Descending { "gmerge sort --reverse" } else { "gmerge sort" };
    Failure::file(
        input.path(),
        format!("not sorted at index {index}{place}: {what} (byte {byte}); sort it first, with {sort}"),
    )
}

/// What to say about the key at `index`, which is less than the one before it.
pub fn describe<K: FileKey>(keys: &[K], index: usize) -> String {
    format!("{} after {}", keys[index].show(), keys[index - 1].show())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_is_found_wherever_it_is() {
        let count = 3 * PIECE + 5;
        let sorted: Vec<u32> = (0..count as u32).collect();
        assert_eq!(first_unsorted(&sorted), None);
        for place in [1, 2, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, count - 1] {
            let mut keys = sorted.clone();
            keys[place - 1] = u32::MAX;
            assert_eq!(first_unsorted(&keys), Some(place));
            keys[count - 1] = 0;
            assert_eq!(first_unsorted(&keys), Some(place));
        }
    }

    #[test]
    fn runs_of_any_lengths_count_by_themselves() {
        let keys = [5u32, 6, 1, 2, 0, 9, 4, 3];
        assert_eq!(first_unsorted_between(&keys, &[0, 2, 2, 4, 6, 8]), Some(7));
        assert_eq!(first_unsorted_between(&keys, &[0, 2, 4, 6, 7, 8]), None);
        assert_eq!(first_unsorted_between(&keys, &[0, 0, 0, 2, 8]), Some(4));
        assert_eq!(first_unsorted_between::<u32>(&[], &[0, 0]), None);
        // Runs begin at the ends of pieces and beside them.
        let mut keys = vec![7u32; 3 * PIECE];
        for begin in [PIECE - 1, PIECE, PIECE + 1, 2 * PIECE] {
            keys[begin] -= (begin / 100_000) as u32;
        }
        let offsets = [0, PIECE - 1, PIECE + 1, 2 * PIECE, 3 * PIECE];
        assert_eq!(first_unsorted_between(&keys, &offsets), None);
        assert_eq!(first_unsorted_between(&keys, &offsets[..3]), Some(2 * PIECE));
        assert_eq!(first_unsorted_between(&keys, &offsets[2..]), Some(PIECE - 1));
    }

    #[test]
    fn runs_count_by_themselves() {
        let keys = [5u32, 6, 1, 2, 0, 9, 4, 3];
        assert_eq!(first_unsorted_in_runs(&keys, 2), Some(7));
        assert_eq!(first_unsorted_in_runs(&keys, 4), Some(2));
        assert_eq!(first_unsorted_in_runs(&keys, 1), None);
        assert_eq!(first_unsorted_in_runs::<u32>(&[], 0), None);
        let mut keys = vec![1f64; 3 * PIECE];
        keys[2 * PIECE + 2] = -0.0;
        assert_eq!(first_unsorted_in_runs(&keys, 3), Some(2 * PIECE + 2));
    }
}
