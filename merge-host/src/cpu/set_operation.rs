//! Set operations: pieces that end between groups of partners, counted, then written.
//!
//! A key of A and an equal one of B are partners. A step looks at the first key of each array: two partners, or the lesser
//! key, which has none. What is kept of them is all that tells the operations apart.
//!
//! For many threads the path of a merge is cut into pieces of one length. A cut inside a group of equal keys is moved to
//! where as many of A as of B are before it, so that no partners are torn apart, however large the group is:
//!
//! ```text
//!   A  1 2 2 2 2|2 2 5       the cut in a merge, after 7 keys: all 2s of A go before those of B
//!   B  1|2 2 4
//!
//!   A  1 2 2|2 2 2 2 5       where it is moved: two pairs of partners before it
//!   B  1 2 2|4
//! ```
//!
//! One pass counts the partners of each piece, which gives the number of keys that it keeps and, summed up, where in the
//! output they begin. The second pass writes them.

use super::run::Keys;
use crate::set_operation::{Kept, SetOperation};
use crate::{Error, Key};
use kernels_gpu::co_rank::co_rank;
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Pieces for each thread: more than one, so that a thread that is held up leaves some to the others.
const PIECES_A_THREAD: usize = 4;
/// Steps whose keys are collected before they are copied to the output.
const STEPS: usize = 512;

/// Replaces what is in `out` by the result.
pub(super) fn set_operation<K: Key>(
    operation: SetOperation,
    a: &[K],
    b: &[K],
    out: &mut Vec<K>,
    threads: usize,
) -> Result<(), Error> {
    let (kept, pieces) = (operation.kept(), pieces(a, b, if threads == 1 { 1 } else { threads * PIECES_A_THREAD }));
    let count = |&(a, b): &(&[K], &[K])| kept.count(a.len(), b.len(), pairs(a, b));
    // With one thread there need not be a pool.
    let counts: Vec<usize> = match threads {
        1 => pieces.iter().map(count).collect(),
        _ => pieces.par_iter().map(count).collect(),
    };
    let total = counts.iter().sum();
    out.clear();
    out.try_reserve_exact(total)
        .map_err(|_| Error::OutOfHostMemory { needed: (total as u64).saturating_mul(size_of::<K>() as u64) })?;
    let mut room = &mut out.spare_capacity_mut()[..total];
    let rooms = counts.iter().map(|&count| room.split_off_mut(..count).expect("the counts add up to the whole room"));
    let work: Vec<_> = pieces.into_iter().zip(rooms).collect();
    match threads {
        1 => work.into_iter().for_each(|((a, b), room)| write(kept, a, b, room)),
        _ => work.into_par_iter().for_each(|((a, b), room)| write(kept, a, b, room)),
    }
    // SAFETY: the rooms are the first `total` places, and `write` has filled each, or panicked.
    unsafe { out.set_len(total) };
    Ok(())
}

/// Cuts `a` and `b` into `count` pieces that belong together. None is missing, whatever the keys are.
fn pieces<'a, K: Key>(mut a: &'a [K], mut b: &'a [K], count: usize) -> Vec<(&'a [K], &'a [K])> {
    let (m, n) = (a.len(), b.len());
    let mut cuts: Vec<_> =
        (1..count).map(|p| cut(a, b, ((m + n) as u128 * p as u128 / count as u128) as usize)).collect();
    cuts.push((m, n));
    let mut piece = |(i, j): (usize, usize)| {
        // For keys that are not ascending, a cut may be before the one before it.
        let (a_piece, a_rest) = a.split_at(i.saturating_sub(m - a.len()));
        let (b_piece, b_rest) = b.split_at(j.saturating_sub(n - b.len()));
        (a, b) = (a_rest, b_rest);
        (a_piece, b_piece)
    };
    cuts.into_iter().map(&mut piece).collect()
}

/// Where to cut `a` and `b` such that about `k` keys are before the cut, and partners on the same side of it.
fn cut<K: Key>(a: &[K], b: &[K], k: usize) -> (usize, usize) {
    let i = co_rank(k, Keys(a), Keys(b));
    let next = [a.get(i), b.get(k - i)].into_iter().flatten().map(|key| key.to_ordered()).min();
    let Some(next) = next else { return (a.len(), b.len()) };
    // The group of the next key, and how many of it are before the cut.
    let group = |keys: &[K]| {
        let begin = keys.partition_point(|key| key.to_ordered() < next);
        (begin, keys[begin..].partition_point(|key| key.to_ordered() == next))
    };
    let ((a_begin, a_count), (b_begin, b_count)) = (group(a), group(b));
    let before = k.saturating_sub(a_begin + b_begin);
    // As many pairs as fit; after the last of them, keys without a partner.
    let all_pairs = a_count.min(b_count);
    let pairs = all_pairs.min(before / 2);
    let alone = if pairs == all_pairs { before - 2 * pairs } else { 0 };
    let (of_a, of_b) = if a_count > b_count { (alone, 0) } else { (0, alone) };
    (a_begin + pairs + of_a.min(a_count - pairs), b_begin + pairs + of_b.min(b_count - pairs))
}

/// How many pairs of partners there are.
fn pairs<K: Key>(a: &[K], b: &[K]) -> usize {
    let (mut i, mut j, mut pairs) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i].to_ordered(), b[j].to_ordered());
        pairs += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    pairs
}

/// Writes what is kept to `out`, which has room for just that.
fn write<K: Key>(kept: Kept, mut a: &[K], mut b: &[K], mut out: &mut [MaybeUninit<K>]) {
    let mut buffer = [K::zeroed(); STEPS];
    loop {
        // A step takes at most one key of each, so that so many can be taken without looking whether one is used up.
        let steps = a.len().min(b.len()).min(STEPS);
        if steps == 0 {
            break;
        }
        let (mut i, mut j, mut filled) = (0, 0, 0);
        for _ in 0..steps {
            let (x, y) = (a[i].to_ordered(), b[j].to_ordered());
            let (from_a, from_b) = (x <= y, y <= x);
            // Written in any case, and written over by the next one if it is not kept.
            buffer[filled] = K::from_ordered(x.min(y));
            // Without a branch, which would be mispredicted every second time.
            let keep = (kept.a_alone & !from_b) | (kept.pairs & from_a & from_b) | (kept.b_alone & !from_a);
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
    assert!(out.is_empty(), "as many keys are kept as were counted");
}

/// Copies `keys` to the front of `out`, which is what is left of it then.
fn append<K: Copy>(out: &mut &mut [MaybeUninit<K>], keys: &[K]) {
    let room = out.split_off_mut(..keys.len()).expect("no more keys are kept than were counted");
    room.write_copy_of_slice(keys);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cuts_are_near_and_tear_no_partners_apart(
            mut a in vec(0u32..6, 0..60),
            mut b in vec(0u32..6, 0..60),
            k in 0usize..120,
        ) {
            a.sort();
            b.sort();
            let k = k.min(a.len() + b.len());
            let (i, j) = cut(&a, &b, k);
            prop_assert!(i + j == k || i + j + 1 == k, "{i} + {j} for {k}");
            let whole = pairs(&a, &b);
            prop_assert_eq!(pairs(&a[..i], &b[..j]) + pairs(&a[i..], &b[j..]), whole);
            prop_assert!(a[..i].iter().chain(&b[..j]).max() <= a[i..].iter().chain(&b[j..]).min() || i + j == a.len() + b.len());
        }

        #[test]
        fn pieces_are_the_whole_for_any_keys(a in vec(0u32..9, 0..40), b in vec(0u32..9, 0..40), count in 1usize..9) {
            let pieces = pieces(&a, &b, count);
            prop_assert_eq!(pieces.len(), count);
            let (of_a, of_b): (Vec<_>, Vec<_>) = pieces.into_iter().unzip();
            prop_assert_eq!(&of_a.concat(), &a);
            prop_assert_eq!(&of_b.concat(), &b);
        }
    }
}
