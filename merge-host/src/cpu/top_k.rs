//! The first keys of the order, without sorting the others.
//!
//! A threshold, the last of k items that were seen, keeps most items out. Those that pass are candidates, and when there are many the k first of
//! them are selected, which lowers the threshold:
//!
//! ```text
//!   items ──► those before the threshold ──► candidates (2 k or more) ──select──► k candidates, a lower threshold
//! ```

use crate::parallel::map_on;
use crate::{Index, Key, SortOrder};

/// Items that a thread compares with the threshold at once.
const BLOCK: usize = 1 << 16;
/// Blocks of each thread for which one threshold is used.
const BLOCKS_PER_THREAD: usize = 4;
/// Candidates to collect at least before selecting among them.
const FEWEST_CANDIDATES: usize = 1 << 14;

/// Fills `out` with the first keys in that order.
pub(crate) fn top_k<K: Key>(order: SortOrder, keys: &[K], out: &mut [K], threads: usize) {
    let first = first(keys.len(), out.len(), |i| in_order(order, keys[i]), threads);
    out.iter_mut().zip(first).for_each(|(out, bits)| *out = K::from_ordered(of_order(order, bits)));
}

/// The same with the indices that these keys have.
pub(crate) fn top_k_indices<K: Key, I: Index>(
    order: SortOrder,
    keys: &[K],
    (out, indices): (&mut [K], &mut [I]),
    threads: usize,
) {
    let first = first(keys.len(), out.len(), |i| (in_order(order, keys[i]), i), threads);
    for ((out, index), (bits, i)) in out.iter_mut().zip(indices).zip(first) {
        *out = K::from_ordered(of_order(order, bits));
        *index = I::from_usize(i);
    }
}

/// Bits that ascend in that order.
fn in_order<K: Key>(order: SortOrder, key: K) -> K::Bits {
    of_order(order, key.to_ordered())
}

/// Those bits from ascending ones, and the other way round.
fn of_order<B: std::ops::Not<Output = B>>(order: SortOrder, bits: B) -> B {
    match order {
        SortOrder::Ascending => bits,
        SortOrder::Descending => !bits,
    }
}

/// The `k` least of `n` items, ascending.
fn first<T: Ord + Copy + Send + Sync>(n: usize, k: usize, item: impl Fn(usize) -> T + Sync, threads: usize) -> Vec<T> {
    let (mut candidates, mut threshold) = (Vec::new(), None);
    let round = threads * BLOCKS_PER_THREAD * BLOCK;
    for begin in (0..n).step_by(round) {
        let end = n.min(begin + round);
        let blocks = map_on(threads, (begin..end).step_by(BLOCK), |begin| {
            let items = (begin..end.min(begin + BLOCK)).map(&item);
            let mut passed: Vec<T> = items.filter(|item| threshold.is_none_or(|last| *item < last)).collect();
            select(&mut passed, k);
            passed
        });
        candidates.extend(blocks.into_iter().flatten());
        if candidates.len() >= k.saturating_mul(2).max(FEWEST_CANDIDATES) {
            threshold = select(&mut candidates, k).or(threshold);
        }
    }
    select(&mut candidates, k);
    candidates.sort_unstable();
    candidates
}

/// Leaves the `k` least of `items`, in any order. Gives the greatest of these if there are more, and any.
fn select<T: Ord + Copy>(items: &mut Vec<T>, k: usize) -> Option<T> {
    if items.len() <= k {
        return None;
    }
    let last = k.checked_sub(1).map(|last| *items.select_nth_unstable(last).1);
    items.truncate(k);
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::fresh_seed;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn the_first_keys_are_those_of_a_stable_sort() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let special = [f32::NAN, -f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY];
        for n in [0, 1, 2, 1000, BLOCK - 1, BLOCK + 1, 9 * BLOCK + 5] {
            for few in [false, true] {
                let draw = |random: &mut StdRng| match random.random_range(0..20) {
                    _ if few => special[random.random_range(0..6)],
                    i if i < 6 => special[i],
                    _ => f32::from_bits(random.random()),
                };
                let keys: Vec<f32> = (0..n).map(|_| draw(&mut random)).collect();
                for k in [0, 1, 2, n / 100, n / 2, n].into_iter().filter(|k| *k <= n) {
                    for order in [SortOrder::Ascending, SortOrder::Descending] {
                        let mut expected: Vec<u32> = (0..n as u32).collect();
                        expected.sort_by(|i, j| {
                            let ascending = keys[*i as usize].total_cmp(&keys[*j as usize]);
                            if order == SortOrder::Ascending { ascending } else { ascending.reverse() }
                        });
                        expected.truncate(k);
                        for threads in [1, 2] {
                            let (mut out, mut indices) = (vec![1.0; k], vec![7u32; k]);
                            let what = format!("{k} of {n}, {order:?}, {threads} threads, seed {seed}");
                            top_k_indices(order, &keys, (&mut out, &mut indices), threads);
                            assert!(indices == expected, "indices of {what}");
                            let same = |out: &[f32]| {
                                out.iter().zip(&expected).all(|(key, i)| key.to_bits() == keys[*i as usize].to_bits())
                            };
                            assert!(same(&out), "keys beside the indices of {what}");
                            out.fill(1.0);
                            top_k(order, &keys, &mut out, threads);
                            assert!(same(&out), "keys of {what}");
                        }
                    }
                }
            }
        }
    }
}
