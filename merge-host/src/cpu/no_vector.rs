//! Replaces `vector` on processors other than x86-64, and sorts keys in other ways.

use super::merge_ragged::Problems;
use crate::key_order::KeyOrder;
use crate::{Key, SortOrder};
use std::ops::{Range, RangeInclusive};

/// What decides between vectors and radix passes: nothing, without vectors.
#[expect(dead_code, reason = "the fields are those of `vector`")]
pub(super) struct Digits<N, E> {
    pub are_narrow: N,
    pub are_even: E,
}

/// Whether [`sort`] is the fastest way to sort keys of this type: it is not.
pub(super) fn can_sort<K: Key>(
    _: usize,
    _: Digits<impl FnOnce(RangeInclusive<u32>) -> bool, impl FnOnce() -> bool>,
) -> bool {
    false
}

/// The greatest number of keys of 1 byte that vectors sort: 0.
pub(super) const MOST_BYTES: usize = 0;

/// Whether there are vectors for keys of this type: there are none.
pub(super) fn has_vectors<K: Key>() -> bool {
    false
}

/// The greatest number of keys that networks sort: 0.
pub(super) fn most_of_networks<K: Key>() -> usize {
    0
}

/// Calls `work`.
#[inline(always)]
pub(crate) fn wide<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Whether sorting numbers is faster than moving pairs: it is not.
pub(super) fn is_faster_than_moving_pairs() -> bool {
    false
}

/// The greatest number of differing bits that is too few for vectors.
pub(super) const NARROW_BITS: u32 = 0;

/// Whether [`sort_on`] is the fastest way: it is not.
pub(super) fn can_sort_on<K: Key>(
    _: usize,
    _: usize,
    _: Digits<impl FnOnce(RangeInclusive<u32>) -> bool, impl FnOnce() -> bool>,
) -> bool {
    false
}

/// The greatest number of keys of a segment that [`sort_short`] sorts: 0.
pub(super) fn short<K: Key>() -> usize {
    0
}

/// Sorts no segment, so it returns that there are longer segments.
pub(super) fn sort_short<K: Key>(_: &mut [K], _: &[usize]) -> bool {
    false
}

/// The greatest number of keys of a problem that [`merge_short`] merges: 0.
pub(super) fn most_merged<K: Key>() -> usize {
    0
}

/// Merges no problem, so it returns that there are longer problems.
pub(super) fn merge_short<K: Key>(_: &[K], _: &[K], _: &mut [K], _: Range<usize>, _: Problems) -> bool {
    false
}

/// Sorts `keys` by the standard library.
pub(super) fn sort<K: Key>(order: SortOrder, keys: &mut [K]) {
    keys.sort_unstable_by_key(|key| KeyOrder::from(order).encode(*key));
}

/// Sorts `keys` by the standard library, on one thread.
pub(super) fn sort_on<K: Key>(order: SortOrder, keys: &mut [K], _: usize) {
    sort(order, keys);
}
