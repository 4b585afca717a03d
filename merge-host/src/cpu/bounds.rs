//! Lower and upper bounds of sorted needles. Each search begins at the bound of the needle before, and its steps grow.

use crate::{Index, Key, parallel};

/// The number of needles of a task.
const BLOCK: usize = 1 << 14;

/// Sets `bounds` to the lower bounds of the needles in `keys` if `lower`, and otherwise to the upper bounds. A lower
/// bound is the number of keys less than the needle, and an upper bound the number of keys not greater.
pub(crate) fn bounds<K: Key, I: Index>(lower: bool, needles: &[K], keys: &[K], bounds: &mut [I], threads: usize) {
    let blocks = needles.chunks(BLOCK).zip(bounds.chunks_mut(BLOCK));
    parallel::for_each_on(threads, blocks, |(needles, bounds)| {
        let mut bound = None;
        for (needle, to) in needles.iter().zip(bounds) {
            let needle = needle.to_ordered();
            let precedes = |key: &K| if lower { key.to_ordered() < needle } else { key.to_ordered() <= needle };
            let found = match bound {
                None => keys.partition_point(precedes),
                Some(before) => before + advance(&keys[before..], precedes),
            };
            bound = Some(found);
            *to = I::from_usize(found);
        }
    });
}

/// The number of first keys that `precedes` holds for: n keys take O(log n) time.
fn advance<K>(keys: &[K], precedes: impl Fn(&K) -> bool) -> usize {
    let (mut low, mut step) = (0, 1);
    while low + step <= keys.len() && precedes(&keys[low + step - 1]) {
        low += step;
        step *= 2;
    }
    low + keys[low..keys.len().min(low + step)].partition_point(precedes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advances_to_the_first_that_does_not_precede() {
        let keys: Vec<usize> = (0..40).collect();
        for len in 0..=40 {
            for end in 0..=len {
                assert_eq!(advance(&keys[..len], |&key| key < end), end);
            }
        }
    }
}
