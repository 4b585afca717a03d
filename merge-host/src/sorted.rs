//! Is it sorted?

use crate::Key;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Keys that a thread looks at before it asks for more.
const BLOCK: usize = 1 << 16;
/// Blocks that make a second thread worth starting.
const BLOCKS_A_THREAD: usize = 16;

/// The index of the first key that comes before its predecessor in total order, or `None` if `keys` are ascending.
///
/// Reads each key once at most, on all CPU cores, and stops soon after the place is found.
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
    let cores = if blocks < 2 * BLOCKS_A_THREAD { 1 } else { thread::available_parallelism().map_or(1, |n| n.get()) };
    let helpers = cores.min(blocks / BLOCKS_A_THREAD).saturating_sub(1);

    // Blocks are handed out in order, so once one is found to be out of order, only the blocks already handed out can
    // hold an earlier place, and their threads finish them.
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
            // Where the system has no more threads to give, the ones there are do the work.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    Some(found.into_inner()).filter(|&i| i != usize::MAX)
}

/// [`first_unsorted`] on one thread.
pub(crate) fn first_unsorted_in_block<K: Key>(keys: &[K]) -> Option<usize> {
    /// Pairs compared without a branch between them, which lets the compiler use vector instructions.
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
