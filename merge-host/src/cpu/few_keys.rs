//! Stable sort of a few keys: each key is compared with all keys before it, without a branch.
//!
//! ```text
//!   keys    7 3 9 3
//!   ranks   2 0 3 1     the number of keys that come before each in the order
//!   sorted  3 3 7 9
//! ```

use super::run::RunMut;
use crate::key::sealed::Bits;
use crate::key_order::KeyOrder;
use crate::{Index, Key};
use std::mem::MaybeUninit;

/// The greatest number of keys.
pub(super) const MOST: usize = 32;
/// The greatest size of a value, in bytes.
const MAX_VALUE: usize = 16;

/// Whether [`sort`] sorts this number of keys.
#[inline(always)]
pub(super) fn can_sort<V>(keys: usize) -> bool {
    keys <= MOST && size_of::<V>() <= MAX_VALUE
}

/// Sorts `run`, which [`can_sort`] accepts. Stable.
pub(super) fn sort<K: Key, V: Copy>(order: KeyOrder, RunMut { keys, values }: RunMut<K, V>) {
    let len = keys.len().min(MOST);
    let mut bits = [K::Bits::from_low(0); MOST];
    for (bits, key) in bits.iter_mut().zip(&*keys) {
        *bits = order.encode(*key);
    }
    if bits[..len].is_sorted_by_key(|bits| bits.to_ordered()) {
        return;
    }
    let ranks = ranks(&bits[..len]);
    if const { size_of::<V>() > 0 } {
        let mut copies = [const { MaybeUninit::<V>::uninit() }; MOST];
        for (copy, value) in copies.iter_mut().zip(&*values) {
            copy.write(*value);
        }
        for (copy, rank) in copies[..len].iter().zip(ranks) {
            // SAFETY: the loop before has written the first `len` copies: there is a value for each key.
            values[usize::from(rank)] = unsafe { copy.assume_init() };
        }
    }
    for (bits, rank) in bits[..len].iter().zip(ranks) {
        keys[usize::from(rank)] = order.decode(*bits);
    }
}

/// The ranks of up to [`MOST`] keys in a stable sort.
#[inline(always)]
fn ranks<B: Key>(bits: &[B]) -> [u8; MOST] {
    let mut ranks = [0; MOST];
    for (i, later) in bits.iter().enumerate() {
        let mut rank = 0;
        for (earlier, of_earlier) in bits[..i].iter().zip(&mut ranks) {
            let is_before = u8::from(earlier.to_ordered() <= later.to_ordered());
            rank += is_before;
            *of_earlier += 1 - is_before;
        }
        ranks[i] = rank;
    }
    ranks
}

/// Writes to `indices` the permutation that sorts up to [`MOST`] keys. Stable.
pub(super) fn argsort<K: Key, I: Index>(order: KeyOrder, keys: &[K], indices: &mut [I]) {
    let len = keys.len().min(MOST);
    let mut bits = [K::Bits::from_low(0); MOST];
    for (bits, key) in bits.iter_mut().zip(keys) {
        *bits = order.encode(*key);
    }
    for (i, rank) in ranks(&bits[..len])[..len].iter().enumerate() {
        indices[usize::from(*rank)] = I::from_usize(i);
    }
}
