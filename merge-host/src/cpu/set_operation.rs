//! Set operations: the input is divided into blocks that keep partners together. The results of the blocks are counted,
//! then written.
//!
//! A key of A and an equal key of B are partners. A step examines the first key of each array. Either they are
//! partners, or the lesser key has no partner. The operations differ only in the keys that they keep.
//!
//! For several threads the path of a merge is divided into blocks of one length. A boundary inside a group of equal
//! keys is moved to where equally many keys of A and of B in the group precede it. So partners belong to the same
//! block, however large the group is:
//!
//! ```text
//!   A  1 2 2 2 2|2 2 5       the boundary in a merge, after 7 keys: A's 2s precede B's
//!   B  1|2 2 4
//!
//!   A  1 2 2|2 2 2 2 5       the moved boundary: two pairs of partners before it
//!   B  1 2 2|4
//! ```
//!
//! The first pass counts the partners of each block, which gives the number of keys that the block keeps. A prefix sum
//! gives the output index of each block. The second pass writes the keys.

use super::memory::{self, out_of_memory};
use super::run::Keys;
use crate::set_operation::{Kept, SetOperation};
use crate::{Error, Key, allocation, parallel};
use kernels_gpu::textbook::co_rank::co_rank;
use std::mem::MaybeUninit;

/// Blocks for each thread: more than one, so that other threads take over some from a thread that is delayed.
const BLOCKS_PER_THREAD: usize = 4;
/// The number of steps that fill a buffer before it is copied to the output.
const STEPS: usize = 512;

/// Replaces the contents of `out` by the result.
pub(crate) fn set_operation<K: Key>(
    operation: SetOperation,
    a: &[K],
    b: &[K],
    out: &mut Vec<K>,
    threads: usize,
) -> Result<(), Error> {
    let (kept, blocks) = (operation.kept(), blocks(a, b, if threads == 1 { 1 } else { threads * BLOCKS_PER_THREAD })?);
    let count = |&(a, b): &(&[K], &[K])| kept.count(a.len(), b.len(), partners(a, b));
    let counts = parallel::try_map_on(threads, &blocks, count)?;
    let total = counts.iter().sum();
    out.clear();
    allocation::handled(|| out.try_reserve_exact(total)).map_err(|_| out_of_memory::<K>(total))?;
    let mut slots = &mut out.spare_capacity_mut()[..total];
    let slots = counts.iter().map(|&count| slots.split_off_mut(..count).expect("the counts add up to `total`"));
    parallel::for_each_on(threads, blocks.into_iter().zip(slots), |((a, b), slots)| write(kept, a, b, slots));
    // SAFETY: `out` has capacity for `total` keys. The blocks' slots are disjoint and cover the first `total` slots,
    // and `write` has filled all slots of its block, or panicked.
    unsafe { out.set_len(total) };
    Ok(())
}

/// The parts of both arrays that belong to a block.
type Block<'a, K> = (&'a [K], &'a [K]);

/// Divides `a` and `b` into `count` blocks such that partners belong to the same block. Every key belongs to a block,
/// even if `a` or `b` is not ascending.
fn blocks<'a, K: Key>(a: &'a [K], b: &'a [K], count: usize) -> Result<Vec<Block<'a, K>>, Error> {
    let (m, n) = (a.len(), b.len());
    let rank = |p| ((m + n) as u128 * p as u128 / count as u128) as usize;
    let boundaries = (1..count).map(|p| boundary(a, b, rank(p))).chain([(m, n)]);
    let (mut a, mut b) = (a, b);
    let block = |(i, j): (usize, usize)| {
        // If keys are not ascending, a boundary may precede the one before it.
        let (a_block, a_rest) = a.split_at(i.saturating_sub(m - a.len()));
        let (b_block, b_rest) = b.split_at(j.saturating_sub(n - b.len()));
        (a, b) = (a_rest, b_rest);
        (a_block, b_block)
    };
    memory::collected(boundaries.map(block))
}

/// A boundary in `a` and `b` with about `k` keys before it and partners on the same side.
fn boundary<K: Key>(a: &[K], b: &[K], k: usize) -> (usize, usize) {
    let i = co_rank(k, Keys(a), Keys(b));
    let next = [a.get(i), b.get(k - i)].into_iter().flatten().map(|key| key.to_ordered()).min();
    let Some(next) = next else { return (a.len(), b.len()) };
    // The beginning and the length of the group of `next`.
    let group = |keys: &[K]| {
        let begin = keys.partition_point(|key| key.to_ordered() < next);
        (begin, keys[begin..].partition_point(|key| key.to_ordered() == next))
    };
    let ((a_begin, a_count), (b_begin, b_count)) = (group(a), group(b));
    let before = k.saturating_sub(a_begin + b_begin);
    // The number of pairs that fit before the boundary. Keys without a partner follow the last pair.
    let all_pairs = a_count.min(b_count);
    let pairs = all_pairs.min(before / 2);
    let alone = if pairs == all_pairs { before - 2 * pairs } else { 0 };
    let (of_a, of_b) = if a_count > b_count { (alone, 0) } else { (0, alone) };
    (a_begin + pairs + of_a.min(a_count - pairs), b_begin + pairs + of_b.min(b_count - pairs))
}

/// The number of pairs of partners.
fn partners<K: Key>(a: &[K], b: &[K]) -> usize {
    let (mut i, mut j, mut partners) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i].to_ordered(), b[j].to_ordered());
        partners += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    partners
}

/// Writes the kept keys to `out`, which has one slot for each.
fn write<K: Key>(kept: Kept, mut a: &[K], mut b: &[K], mut out: &mut [MaybeUninit<K>]) {
    let mut buffer = [K::zeroed(); STEPS];
    loop {
        // A step takes at most one key of each array, so this number of steps cannot exhaust an array.
        let steps = a.len().min(b.len()).min(STEPS);
        if steps == 0 {
            break;
        }
        let (mut i, mut j, mut filled) = (0, 0, 0);
        for _ in 0..steps {
            let (x, y) = (a[i].to_ordered(), b[j].to_ordered());
            let (from_a, from_b) = (x <= y, y <= x);
            // The next key overwrites a key that is not kept.
            buffer[filled] = K::from_ordered(x.min(y));
            // A branch would be mispredicted every second time.
            let keep = (kept.a_alone & !from_b) | (kept.partners & from_a & from_b) | (kept.b_alone & !from_a);
            filled += usize::from(keep);
            i += usize::from(from_a);
            j += usize::from(from_b);
        }
        append(&mut out, &buffer[..filled]);
        (a, b) = (&a[i..], &b[j..]);
    }
    if kept.a_alone {
        append(&mut out, a);
    }
    if kept.b_alone {
        append(&mut out, b);
    }
    assert!(out.is_empty(), "fewer keys are kept than were counted");
}

/// Copies `keys` to the first slots of `out`, and removes these slots from it.
fn append<K: Copy>(out: &mut &mut [MaybeUninit<K>], keys: &[K]) {
    let slots = out.split_off_mut(..keys.len()).expect("no more keys are kept than were counted");
    slots.write_copy_of_slice(keys);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn boundaries_are_near_and_keep_partners_together(
            mut a in vec(0u32..6, 0..60),
            mut b in vec(0u32..6, 0..60),
            k in 0usize..120,
        ) {
            a.sort();
            b.sort();
            let k = k.min(a.len() + b.len());
            let (i, j) = boundary(&a, &b, k);
            prop_assert!(i + j == k || i + j + 1 == k, "{i} + {j} for {k}");
            let all = partners(&a, &b);
            prop_assert_eq!(partners(&a[..i], &b[..j]) + partners(&a[i..], &b[j..]), all);
            let greatest_before = a[..i].iter().chain(&b[..j]).max();
            let least_after = a[i..].iter().chain(&b[j..]).min();
            prop_assert!(greatest_before <= least_after || i + j == a.len() + b.len());
        }

        #[test]
        fn blocks_contain_all_keys_for_any_input(
            a in vec(0u32..9, 0..40),
            b in vec(0u32..9, 0..40),
            count in 1usize..9,
        ) {
            let blocks = blocks(&a, &b, count).unwrap();
            prop_assert_eq!(blocks.len(), count);
            let (of_a, of_b): (Vec<_>, Vec<_>) = blocks.into_iter().unzip();
            prop_assert_eq!(&of_a.concat(), &a);
            prop_assert_eq!(&of_b.concat(), &b);
        }
    }
}
