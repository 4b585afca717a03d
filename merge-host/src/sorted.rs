//! A check whether keys are sorted.

use crate::cpu::wide;
use crate::{Key, parallel};
use std::ops::Range;

/// The number of keys of a block that a thread scans.
const BLOCK: usize = 1 << 16;

/// The index of the first key that is less than its predecessor in the order of their type, or `None` if `keys` are
/// ascending.
///
/// Scans the keys at most once, in O(n) time, on the threads of [`parallel`] loops. Stops soon after it finds the
/// index.
///
/// ```
/// use merge_host::first_unsorted;
///
/// assert_eq!(first_unsorted(&[1, 2, 2, 5]), None);
/// assert_eq!(first_unsorted(&[1, 2, 9, 5, 6, 4]), Some(3));
/// assert_eq!(first_unsorted(&[0.0, -0.0]), Some(1));
/// assert_eq!(first_unsorted::<u64>(&[]), None);
/// ```
pub fn first_unsorted<K: Key>(keys: &[K]) -> Option<usize> {
    first_break_on(parallel::threads_for(keys.len(), BLOCK), keys, is_unsorted)
}

/// [`first_unsorted`] on one thread.
pub(crate) fn first_unsorted_in_block<K: Key>(keys: &[K]) -> Option<usize> {
    first_break(keys, is_unsorted)
}

#[inline(always)]
fn is_unsorted<K: Key>(x: K, y: K) -> bool {
    x.to_ordered() > y.to_ordered()
}

/// The index of the first key that `is_break` is true for. Its arguments are the key's predecessor and the key. The
/// scan takes up to `threads` threads of the pool; 1 is the calling thread.
pub(crate) fn first_break_on<K: Copy + Sync>(
    threads: usize,
    keys: &[K],
    is_break: impl Fn(K, K) -> bool + Copy + Sync,
) -> Option<usize> {
    // The index of the first break among the keys of a range. Its first key has no predecessor there. `is_break` is
    // copied: a call by reference is a function of the standard library, which is not inlined without optimisation
    // across codegen units. The scan would take ten times as long.
    let within = |range: Range<usize>| first_break(&keys[range.clone()], is_break).map(|i| range.start + i);
    // Most arrays have a break soon.
    let begin = keys.len().min(BLOCK);
    let first = within(0..begin);
    if first.is_some() || begin == keys.len() {
        return first;
    }
    if threads == 1 {
        return within(begin - 1..keys.len());
    }
    find_in_blocks(threads, begin - 1..keys.len(), &within)
}

/// The first result of `find` for the blocks of the keys in `range`. Compiled once for all types of keys.
fn find_in_blocks(
    threads: usize,
    range: Range<usize>,
    find: &(dyn Fn(Range<usize>) -> Option<usize> + Sync),
) -> Option<usize> {
    // There is a pair of neighbours for each key except the last.
    parallel::find_first_on(threads, (range.start..range.end - 1).step_by(BLOCK), |begin| {
        // One more key than the block, to compare its last key with the next block's first.
        find(begin..range.end.min(begin + BLOCK + 1))
    })
}

/// [`first_break_on`] on one thread.
#[inline(always)]
pub(crate) fn first_break<K: Copy>(keys: &[K], is_break: impl Fn(K, K) -> bool) -> Option<usize> {
    /// The number of pairs that are compared one by one.
    const SINGLE: usize = 4;
    /// The number of comparisons without a branch in between, so that the compiler uses vector instructions.
    const STRIDE: usize = 64;
    let within = |keys: &[K]| keys.windows(2).position(|pair| is_break(pair[0], pair[1]));
    if const { size_of::<K>() > size_of::<u64>() } {
        // No vector instruction compares keys of 16 bytes.
        let mut begin = 0;
        while let Some([a, b, c, d, e]) = keys[begin..].first_chunk()
            && !(is_break(*a, *b) || is_break(*b, *c) || is_break(*c, *d) || is_break(*d, *e))
        {
            begin += 4;
        }
        return within(&keys[begin..]).map(|i| begin + i + 1);
    }
    if let Some(i) = within(&keys[..keys.len().min(SINGLE + 1)]) {
        return Some(i + 1);
    }
    wide(|| {
        let mut begin = SINGLE;
        while begin + 1 < keys.len() {
            let stride = &keys[begin..keys.len().min(begin + STRIDE + 1)];
            // A loop over indices, because the compiler does not inline the constructor of a zip.
            let (x, y) = (&stride[..stride.len() - 1], &stride[1..]);
            if (0..x.len()).fold(false, |any, i| any | is_break(x[i], y[i])) {
                return within(stride).map(|i| begin + i + 1);
            }
            begin += STRIDE;
        }
        None
    })
}
