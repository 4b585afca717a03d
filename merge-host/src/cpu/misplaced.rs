//! Sort of an array in which few keys are out of place. These keys are taken out, sorted, and merged with the others.
//!
//! ```text
//!   keys     1 3 9 4 5 0 7 8     9 and 0 are out of place
//!   kept     1 3 4 5 7 8         taken out: 9 0, sorted: 0 9
//!   merged   0 1 3 4 5 7 8 9
//! ```
//!
//! An array without many such keys consists of long runs, which are compared by vector instructions and moved as a
//! whole. Cook and Kim describe the idea for pairs of keys in "Best sorting algorithm for nearly sorted lists" (1980).

use super::scratch::Scratch;
use super::sort::in_order;
use crate::key_order::KeyOrder;
use crate::sorted::first_break;
use crate::{Error, Key};
use std::iter::successors;

/// At most this fraction of the keys is taken out. With more keys, other sorts take less time.
const SHARE: usize = 64;
/// Of the keys read so far, this many and twice the fraction may be taken out.
const AT_FIRST: usize = 8;
/// With more threads, other sorts take less time.
pub(super) const MOST_THREADS: usize = 3;
/// The number of first keys that are compared before any are moved, and the most descents among them.
const FIRST: usize = 8;
const MOST_DESCENTS: u32 = 1;

/// Sorts `keys` if few of them are out of place. Otherwise returns `false`, and may have changed the order of the keys.
pub(super) fn sort<K: Key>(order: KeyOrder, keys: &mut [K]) -> Result<bool, Error> {
    if order.is_of::<K>() {
        // The most frequent order takes less time if it is compiled by itself.
        sort_by(order, keys, |x, y| x.to_ordered() > y.to_ordered())
    } else {
        sort_by(order, keys, |x, y| order.encode(x) > order.encode(y))
    }
}

/// [`sort`] of keys whose order is told by `is_greater`.
fn sort_by<K: Key>(order: KeyOrder, keys: &mut [K], is_greater: impl Fn(K, K) -> bool + Copy) -> Result<bool, Error> {
    let first = &keys[..keys.len().min(FIRST)];
    if first.windows(2).map(|pair| u32::from(is_greater(pair[0], pair[1]))).sum::<u32>() > MOST_DESCENTS {
        return Ok(false);
    }
    let mut taken = Scratch::init(keys.len() / SHARE + 1)?;
    let Some(count) = take_out(keys, &mut taken, is_greater) else { return Ok(false) };
    let taken = &mut taken[..count];
    // Equal keys have equal bits, so that the sort need not be stable.
    in_order(order, taken, 1, |bits| bits.sort_unstable());
    merge(keys, taken, is_greater);
    Ok(true)
}

/// Takes keys out of `keys`, so that the others ascend and come first. Returns the number of keys in `taken`, or `None`
/// if there is no room for them. Then `keys` has all keys, in some order.
fn take_out<K: Key>(keys: &mut [K], taken: &mut [K], is_greater: impl Fn(K, K) -> bool + Copy) -> Option<usize> {
    let (mut kept, mut read, mut count) = (0, 0, 0);
    while read < keys.len() {
        let (mut begin, rest) = (read, &keys[read..]);
        read += first_break(rest, is_greater).unwrap_or(rest.len());
        if kept > 0 && is_greater(keys[kept - 1], keys[begin]) {
            let room = taken.len().min(AT_FIRST + begin / SHARE * 2).saturating_sub(count);
            let Some((last, first)) = fewest_between(&keys[..kept], &keys[begin..read], room, is_greater) else {
                keys[kept..begin].copy_from_slice(&taken[..count]);
                return None;
            };
            for part in [&keys[kept - last..kept], &keys[begin..begin + first]] {
                taken[count..count + part.len()].copy_from_slice(part);
                count += part.len();
            }
            (kept, begin) = (kept - last, begin + first);
        }
        keys.copy_within(begin..read, kept);
        kept += read - begin;
    }
    Some(count)
}

/// The numbers of last keys of `kept` and of first keys of `run` without which the other keys ascend. Their sum is the
/// least possible, and `None` if that exceeds `room`. Both slices ascend, and are not empty.
fn fewest_between<K: Key>(
    kept: &[K],
    run: &[K],
    room: usize,
    is_greater: impl Fn(K, K) -> bool + Copy,
) -> Option<(usize, usize)> {
    // Mostly it is one key.
    if room > 0 && (kept.len() == 1 || !is_greater(kept[kept.len() - 2], run[0])) {
        return Some((1, 0));
    }
    if room > 0 && (run.len() == 1 || !is_greater(kept[kept.len() - 1], run[1])) {
        return Some((0, 1));
    }
    // The number of first keys of `run` to take out if `last` keys of `kept` are; `most + 1` stands for more.
    let first_for = |last: usize, most: usize| match kept.len().checked_sub(last + 1) {
        Some(i) => run[..run.len().min(most + 1)].partition_point(|&key| is_greater(kept[i], key)),
        None => 0,
    };
    let mut limits = successors(Some(2), |limit| (*limit < room).then_some(2 * limit)).map(|limit| limit.min(room));
    limits.find_map(|limit| {
        let both = (0..=limit.min(kept.len())).map(|last| (last, first_for(last, limit - last)));
        both.filter(|(last, first)| last + first <= limit).min_by_key(|(last, first)| last + first)
    })
}

/// Merges the sorted keys of `taken` with the first ones of `keys`, which are sorted. As many others are overwritten.
fn merge<K: Key>(keys: &mut [K], taken: &[K], is_greater: impl Fn(K, K) -> bool + Copy) {
    let mut kept = keys.len() - taken.len();
    for (before, &key) in taken.iter().enumerate().rev() {
        let begin = begin_of_greater(&keys[..kept], |other| is_greater(other, key));
        keys.copy_within(begin..kept, begin + before + 1);
        keys[begin + before] = key;
        kept = begin;
    }
}

/// The index from which on `is_greater` is true for all of the sorted `keys`. The search begins at the end.
fn begin_of_greater<K: Copy>(keys: &[K], is_greater: impl Fn(K) -> bool) -> usize {
    let mut step = 1;
    while step <= keys.len() && is_greater(keys[keys.len() - step]) {
        step *= 2;
    }
    let begin = keys.len().saturating_sub(step);
    begin + keys[begin..].partition_point(|key| !is_greater(*key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// Checks the sort of `keys`, and returns whether few keys were out of place.
    fn check(order: KeyOrder, keys: &[i32], what: &str) -> bool {
        let (mut sorted, mut expected) = (keys.to_vec(), keys.to_vec());
        let is_sorted = super::sort(order, &mut sorted).unwrap();
        if !is_sorted {
            sorted.sort_by_key(|key| order.encode(*key));
        }
        expected.sort_by_key(|key| order.encode(*key));
        assert_eq!(sorted, expected, "{what}");
        is_sorted
    }

    #[test]
    fn keys_are_sorted_if_few_are_out_of_place() {
        let seed = rand::random();
        let mut random = StdRng::seed_from_u64(seed);
        let descending = KeyOrder { direction: crate::SortOrder::Descending, ..KeyOrder::ASCENDING };
        for n in [0, 1, 2, 15, 16, 17, 1000, 5000] {
            for misplaced in [0, n.min(1), n / 200, n / 20, n / 2, n] {
                for order in [KeyOrder::ASCENDING, descending] {
                    // Few values, so that many keys are equal.
                    let most = if random.random() { 50 } else { i32::MAX };
                    let mut keys: Vec<i32> = (0..n).map(|_| random.random_range(-50..=most)).collect();
                    keys.sort_by_key(|key| order.encode(*key));
                    (0..misplaced).for_each(|_| keys[random.random_range(0..n)] = random.random_range(-50..=most));
                    let what = format!("{misplaced} of {n} keys up to {most}, {order:?}, seed {seed}");
                    let is_sorted = check(order, &keys, &what);
                    // Random keys may hit the first ones, which are then not looked at further.
                    let is_sure = misplaced == 0 || n > 100 && keys[..FIRST].is_sorted_by_key(|key| order.encode(*key));
                    assert!(is_sorted || misplaced > n / 200 || !is_sure, "{what}");
                    assert!(!is_sorted || n < 1000 || misplaced <= n / 20 || most == 50, "{what}");
                }
            }
        }
    }

    #[test]
    fn neighbours_are_out_of_place() {
        // A great key before a small one: neither the kept keys nor the run are in order without one of the two.
        for neighbours in [vec![9000, -9], vec![9000, 9001, -9], vec![9000, -9, -8], vec![9000, 9001, -9, -8, -7]] {
            let mut keys: Vec<i32> = (0..2000).collect();
            keys[1000..1000 + neighbours.len()].copy_from_slice(&neighbours);
            assert!(check(KeyOrder::ASCENDING, &keys, &format!("{neighbours:?}")));
        }
    }

    #[test]
    fn keys_at_either_end_and_runs_are_out_of_place() {
        let ascending: Vec<i32> = (0..2000).collect();
        let moved = |from: usize, to: usize, len: usize| {
            let mut keys = ascending.clone();
            let part: Vec<i32> = keys.drain(from..from + len).collect();
            keys.splice(to..to, part);
            check(KeyOrder::ASCENDING, &keys, &format!("{len} keys from {from} to {to}"))
        };
        for (from, to) in [(0, 1999), (1999, 0), (0, 1), (1000, 0), (1000, 1999), (300, 1700), (1700, 300)] {
            assert!(moved(from, to, 1));
        }
        assert!(moved(500, 1500, 20) && moved(1500, 500, 20));
        assert!(!moved(500, 1500, 40) && !moved(1500, 500, 40));
    }
}
