//! Exact splits of two runs: the parts of A and B that a block of the output is merged from.

use super::run::Keys;
use crate::Key;
use kernels_gpu::textbook::co_rank::co_rank;
use std::ops::Range;

/// The parts of `a` and `b` that a merge of `a` and `b` has at the output keys `from..to`.
///
/// `from <= to <= |a| + |b|`. The lengths of the parts always add up to `to - from`. If `a` or `b` is not ascending,
/// the parts are otherwise unspecified.
pub(super) fn parts<'a, K: Key>(a: &'a [K], b: &'a [K], from: usize, to: usize) -> (&'a [K], &'a [K]) {
    let (a_part, b_part) = part_ranges(a, b, from, to);
    (&a[a_part], &b[b_part])
}

/// The ranges of [`parts`] in `a` and `b`.
pub(crate) fn part_ranges<K: Key>(a: &[K], b: &[K], from: usize, to: usize) -> (Range<usize>, Range<usize>) {
    let i_from = co_rank(from, Keys(a), Keys(b));
    let j_from = from - i_from;
    // For ascending input the bounds change nothing. For other input each co-rank is still a valid split, but two
    // co-ranks need not be in order. The bounds ensure `i_from <= i_to` and `j_from <= j_to`.
    let least = i_from.max(to.saturating_sub(b.len()));
    let most = a.len().min(i_from + (to - from));
    let i_to = co_rank(to, Keys(a), Keys(b)).clamp(least, most);
    (i_from..i_to, j_from..to - i_to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_lengths_of_parts_add_up_for_any_input(
            a in prop::collection::vec(0u32..20, 0..40),
            b in prop::collection::vec(0u32..20, 0..40),
            (x, y) in (0usize..100, 0usize..100),
        ) {
            let total = a.len() + b.len();
            let (from, to) = (x.min(y).min(total), x.max(y).min(total));
            let (a_part, b_part) = parts(&a, &b, from, to);
            prop_assert_eq!(a_part.len() + b_part.len(), to - from);
        }

        #[test]
        fn parts_of_ascending_input_are_those_of_a_stable_sort(
            mut a in prop::collection::vec(0u32..20, 0..40),
            mut b in prop::collection::vec(0u32..20, 0..40),
            (x, y) in (0usize..100, 0usize..100),
        ) {
            a.sort();
            b.sort();
            let total = a.len() + b.len();
            let (from, to) = (x.min(y).min(total), x.max(y).min(total));
            // The expected parts follow from a stable sort of pairs of a key and the name of its run.
            let mut merged: Vec<(u32, char)> = a.iter().map(|&k| (k, 'a')).chain(b.iter().map(|&k| (k, 'b'))).collect();
            merged.sort_by_key(|&(key, _)| key);
            let taken = |name| {
                merged[from..to].iter().filter(|&&(_, from)| from == name).map(|&(key, _)| key).collect::<Vec<_>>()
            };
            let (a_part, b_part) = parts(&a, &b, from, to);
            prop_assert_eq!(a_part, taken('a'));
            prop_assert_eq!(b_part, taken('b'));
        }
    }
}
