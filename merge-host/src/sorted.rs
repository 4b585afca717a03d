//! A test whether keys are sorted.

use crate::Key;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Keys that a thread scans at once.
const BLOCK: usize = 1 << 16;
/// Blocks for each thread that justify starting it.
const BLOCKS_PER_THREAD: usize = 16;

/// The index of the first key that is less than its predecessor in total order, or `None` if `keys` are ascending.
///
/// Scans the keys once at most, in O(n) time, on all CPU cores, and stops soon after it finds that index.
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
    let blocks = keys.len().div_ceil(BLOCK);
    let cores = if blocks < 2 * BLOCKS_PER_THREAD { 1 } else { thread::available_parallelism().map_or(1, |n| n.get()) };
    let helpers = cores.min(blocks / BLOCKS_PER_THREAD).saturating_sub(1);

    // Threads take blocks in order. Once one finds an unsorted key, only blocks that were taken before can contain an
    // earlier one, and their threads scan them to the end.
    let next = AtomicUsize::new(0);
    let found = AtomicUsize::new(usize::MAX);
    let work = || {
        loop {
            let begin = next.fetch_add(1, Ordering::Relaxed) * BLOCK;
            if begin >= keys.len() || begin >= found.load(Ordering::Relaxed) {
                return;
            }
            // One key more than the block, to compare its last key with the next block's first.
            let block = &keys[begin..keys.len().min(begin + BLOCK + 1)];
            if let Some(i) = first_unsorted_in_block(block) {
                found.fetch_min(begin + i, Ordering::Relaxed);
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..helpers {
            // If the system refuses to start a thread, the others and this one scan its blocks.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    Some(found.into_inner()).filter(|&i| i != usize::MAX)
}

/// [`first_unsorted`] on one thread.
pub(crate) fn first_unsorted_in_block<K: Key>(keys: &[K]) -> Option<usize> {
    /// Comparisons without a branch in between, so that the compiler uses vector instructions.
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
