//! Stable sort of a few keys with values, or of their indices, without scratch memory on the heap.
//!
//! Up to 16 keys are compared with all keys before them, without a branch:
//!
//! ```text
//!   keys    7 3 9 3
//!   ranks   2 0 3 1     the number of keys that come before each in the order
//!   sorted  3 3 7 9
//! ```
//!
//! More keys are sorted as numbers that contain a key's bits and its index. No two numbers are equal, so that any sort
//! of them is stable:
//!
//! ```text
//!   numbers  7|0 3|1 9|2 3|3   ─ sort ─►   3|1 3|3 7|0 9|2
//! ```
//!
//! If a key does not fit, its last bits are left out at first, and neighbours are compared.

use super::digit;
use super::run::RunMut;
use super::sort::sort_numbers;
use super::sort_pairs::MAX_MOVED_VALUE;
use crate::key::sealed::Bits;
use crate::key_order::KeyOrder;
use crate::{Index, Key, Word};
use std::mem::MaybeUninit;

/// The greatest number of keys.
pub(super) const MOST: usize = 128;
/// The greatest number of keys that are compared with all keys before them.
const MOST_RANKED: usize = 16;
/// The greatest number of keys alone, and of keys of 4 or 8 bytes with indices. Vectors sort more in less time.
pub(super) const MOST_SHORT: usize = 64;
/// The number of bits of an index.
const INDEX_BITS: u32 = MOST.ilog2();

/// Whether [`sort`] sorts this number of keys.
#[inline(always)]
pub(super) fn can_sort<V>(keys: usize) -> bool {
    keys <= MOST && size_of::<V>() <= MAX_MOVED_VALUE
}

/// Sorts `run`, which [`can_sort`] accepts. Stable.
pub(super) fn sort<K: Key, V: Copy>(order: KeyOrder, run: RunMut<K, V>) {
    if run.keys.len() <= MOST_RANKED {
        sort_by_ranks::<K, V, MOST_RANKED>(order, run);
    } else if run.keys.len() <= MOST_SHORT {
        sort_by_ranks::<K, V, MOST_SHORT>(order, run);
    } else {
        sort_by_ranks::<K, V, MOST>(order, run);
    }
}

/// [`sort`] of up to `N` keys.
fn sort_by_ranks<K: Key, V: Copy, const N: usize>(order: KeyOrder, RunMut { keys, values }: RunMut<K, V>) {
    let len = keys.len().min(N);
    let Some((bits, ranks)) = ranks::<K, N>(order, keys) else { return };
    let mut copies = [const { MaybeUninit::<V>::uninit() }; N];
    for (copy, value) in copies.iter_mut().zip(&*values) {
        copy.write(*value);
    }
    for ((bits, copy), rank) in bits[..len].iter().zip(&copies).zip(ranks) {
        keys[usize::from(rank)] = order.decode(*bits);
        // SAFETY: the loop before has written the first `len` copies: there is a value for each key.
        values[usize::from(rank)] = unsafe { copy.assume_init() };
    }
}

/// Whether [`argsort`] is the fastest way to sort the indices of this number of keys.
#[inline(always)]
pub(super) fn can_argsort<K>(keys: usize) -> bool {
    keys <= if const { matches!(size_of::<K>(), 4 | 8) } { MOST_SHORT } else { MOST }
}

/// Writes to `indices` the permutation that sorts up to [`MOST`] keys. Stable.
pub(super) fn argsort<K: Key, I: Index>(order: KeyOrder, keys: &[K], indices: &mut [I]) {
    if keys.len() <= MOST_RANKED {
        argsort_by_ranks::<K, I, MOST_RANKED>(order, keys, indices);
    } else if keys.len() <= MOST_SHORT {
        argsort_by_ranks::<K, I, MOST_SHORT>(order, keys, indices);
    } else {
        argsort_by_ranks::<K, I, MOST>(order, keys, indices);
    }
}

/// [`argsort`] of up to `N` keys.
fn argsort_by_ranks<K: Key, I: Index, const N: usize>(order: KeyOrder, keys: &[K], indices: &mut [I]) {
    let ranks = ranks::<K, N>(order, keys);
    for i in 0..keys.len().min(N) {
        indices[ranks.map_or(i, |(_, ranks)| usize::from(ranks[i]))] = I::from_usize(i);
    }
}

/// The encoded keys, and the rank of each in a stable sort; `None` if the keys are in order. There are at most `N`.
#[inline(always)]
fn ranks<K: Key, const N: usize>(order: KeyOrder, keys: &[K]) -> Option<([K::Bits; N], [u8; N])> {
    let len = keys.len().min(N);
    let mut bits = [K::Bits::from_low(0); N];
    for (bits, key) in bits.iter_mut().zip(keys) {
        *bits = order.encode(*key);
    }
    if bits[..len].is_sorted() {
        return None;
    }
    let mut ranks = [0; N];
    if const { N <= MOST_RANKED } {
        rank_by_comparisons(&bits[..len], &mut ranks);
    } else {
        rank_by_numbers(&bits[..len], &mut [0; N][..len], &mut ranks);
    }
    Some((bits, ranks))
}

/// Writes the rank of each key. There are few.
#[inline(always)]
fn rank_by_comparisons<B: Ord>(bits: &[B], ranks: &mut [u8]) {
    for (i, later) in bits.iter().enumerate() {
        let mut rank = 0;
        for (earlier, of_earlier) in bits[..i].iter().zip(&mut *ranks) {
            let is_before = u8::from(earlier <= later);
            rank += is_before;
            *of_earlier += 1 - is_before;
        }
        ranks[i] = rank;
    }
}

/// Writes the rank of each key. `numbers` has the length of `bits`, which is at most [`MOST`].
fn rank_by_numbers<B: Word>(bits: &[B], numbers: &mut [u64], ranks: &mut [u8]) {
    // The number of last bits that do not fit a number together with the index.
    let rest = if const { B::COUNT + INDEX_BITS <= u64::BITS } {
        0
    } else {
        (digit::significant(digit::differing(bits[0], bits)) + INDEX_BITS).saturating_sub(u64::BITS)
    };
    for ((number, bits), i) in numbers.iter_mut().zip(bits).zip(0..) {
        // The shift to the left may drop leading bits, which are the same in all keys.
        *number = ((*bits >> rest).low() as u64) << INDEX_BITS | i;
    }
    sort_numbers(numbers);
    let bits_of = |number: u64| bits[number as usize % MOST];
    if rest > 0 {
        // Keys that are the same up to the rest are neighbours. They are few, except among keys made for it.
        for end in 1..numbers.len() {
            let mut i = end;
            while i > 0 && bits_of(numbers[i]) < bits_of(numbers[i - 1]) {
                numbers.swap(i, i - 1);
                i -= 1;
            }
        }
    }
    (0..).zip(numbers).for_each(|(rank, number)| ranks[*number as usize % MOST] = rank);
}
