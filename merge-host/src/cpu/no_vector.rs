//! What stands for `vector` on processors other than those of x86-64: keys are sorted in other ways.

use crate::{Key, SortOrder};
use std::ops::Range;

/// Whether [`sort`] is the fastest way to sort so many keys of this type: it is not.
pub(super) fn can_sort<K: Key>(_: usize, _: impl FnOnce() -> K::Bits) -> bool {
    false
}

/// Whether numbers are sorted faster than pairs are moved: they are not.
pub(super) fn is_faster_than_moving_pairs() -> bool {
    false
}

/// The least bits that are not too few for vectors.
pub(super) const NARROW_BITS: u32 = 0;

/// Whether [`sort_on`] is the fastest way: it is not.
pub(super) fn can_sort_on<K: Key>(_: usize, _: usize, _: impl FnOnce() -> K::Bits) -> bool {
    false
}

/// The most keys of a segment that [`sort_short`] sorts: none.
pub(super) fn short<K: Key>() -> usize {
    0
}

/// Leaves all segments as they are: there are others than those that it sorts.
pub(super) fn sort_short<K: Key>(_: &mut [K], _: &[usize]) -> bool {
    false
}

/// The most keys of a problem that [`merge_short`] merges: none.
pub(super) fn most_merged<K: Key>() -> usize {
    0
}

/// Leaves all problems to the caller: there are others than those that it merges.
pub(super) fn merge_short<K: Key>(
    _: &[K],
    _: &[K],
    _: &mut [K],
    _: Range<usize>,
    _: impl Fn(usize) -> [usize; 2],
) -> bool {
    false
}

/// Sorts keys.
pub(super) fn sort<K: Key>(order: SortOrder, keys: &mut [K]) {
    keys.sort_unstable_by_key(|key| order.applied_to(key.to_ordered()));
}

/// Sorts keys.
pub(super) fn sort_on<K: Key>(order: SortOrder, keys: &mut [K], _: usize) {
    sort(order, keys);
}
