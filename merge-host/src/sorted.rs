//! A check whether keys are sorted.

use crate::{Key, parallel};

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
    first_unsorted_on(parallel::threads_for(keys.len(), BLOCK), keys)
}

/// [`first_unsorted`] on up to `threads` threads of the pool. 1 is the calling thread.
pub(crate) fn first_unsorted_on<K: Key>(threads: usize, keys: &[K]) -> Option<usize> {
    if threads == 1 {
        return first_unsorted_in_block(keys);
    }
    // There is a pair of neighbours for each key except the last.
    parallel::find_first_on(threads, (0..keys.len().saturating_sub(1)).step_by(BLOCK), |begin| {
        // One more key than the block, to compare its last key with the next block's first.
        let block = &keys[begin..keys.len().min(begin + BLOCK + 1)];
        first_unsorted_in_block(block).map(|i| begin + i)
    })
}

/// [`first_unsorted`] on one thread.
pub(crate) fn first_unsorted_in_block<K: Key>(keys: &[K]) -> Option<usize> {
    /// The number of comparisons without a branch in between, so that the compiler uses vector instructions.
    const STRIDE: usize = 64;
    let mut begin = 0;
    while begin + 1 < keys.len() {
        let stride = &keys[begin..keys.len().min(begin + STRIDE + 1)];
        let pairs = stride.iter().zip(&stride[1..]);
        if pairs.fold(false, |any, (x, y)| any | (x.to_ordered() > y.to_ordered())) {
            let i = stride.windows(2).position(|pair| pair[0].to_ordered() > pair[1].to_ordered());
            return i.map(|i| begin + i + 1);
        }
        begin += STRIDE;
    }
    None
}
