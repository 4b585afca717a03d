//! Sort of a few keys by comparisons.
//!
//! The ordered bits of each key are computed once, not at each comparison. If keys have values, one number contains the
//! ordered bits and the key's index. No two numbers are equal, so their order is the order of a stable sort. Their
//! indices are the permutation of keys and values:
//!
//! ```text
//!   keys    7 3 7 1   →   7|0 3|1 7|2 1|3   →   1|3 3|1 7|0 7|2   →   keys    1 3 7 7
//!   values  a b c d                                                   values  d b a c
//! ```
//!
//! The index displaces some upper bits of the key, which must therefore be the same in all keys.

use super::run::RunMut;
use crate::Key;
use crate::key::sealed::Bits;
use bytemuck::Zeroable;

/// The greatest number of keys that are sorted by comparisons.
const MAX_KEYS: usize = 1 << 8;

/// Scratch memory for ordered bits.
pub(super) struct Leaf<K: Key>([K::Bits; MAX_KEYS]);

impl<K: Key> Leaf<K> {
    pub fn new() -> Self {
        Leaf([K::Bits::zeroed(); MAX_KEYS])
    }

    /// Whether `keys` keys with values of type `V` can be sorted. Keys differ only in the bits `differing`.
    pub fn can_sort<V>(keys: usize, differing: K::Bits) -> bool {
        keys <= MAX_KEYS && (size_of::<V>() == 0 || differing.leading_zeros() >= index_bits(keys))
    }

    /// Sorts `run`. The result is in `scratch` if `to_scratch`, and otherwise in `run`.
    pub fn sort<V: Copy>(&mut self, mut run: RunMut<K, V>, mut scratch: RunMut<K, V>, to_scratch: bool) {
        if size_of::<V>() == 0 {
            let sorted = if to_scratch {
                scratch.copy_from(run.as_run());
                scratch
            } else {
                run
            };
            return sort_keys(sorted.keys, &mut self.0);
        }
        let index_bits = index_bits(run.keys.len());
        let numbers = &mut self.0[..run.keys.len()];
        for (index, key) in run.keys.iter().enumerate() {
            numbers[index] = key.to_ordered() << index_bits | K::Bits::from_low(index);
        }
        numbers.sort_unstable();
        scratch.gather(run.as_run(), numbers.iter().map(|number| number.low() & ((1 << index_bits) - 1)));
        if !to_scratch {
            run.copy_from(scratch.as_run());
        }
    }
}

/// Sorts keys without values. `buffer` has at least the length of `keys`.
pub(super) fn sort_keys<K: Key>(keys: &mut [K], buffer: &mut [K::Bits]) {
    let buffer = &mut buffer[..keys.len()];
    for (i, key) in keys.iter().enumerate() {
        buffer[i] = key.to_ordered();
    }
    buffer.sort_unstable();
    for (i, key) in keys.iter_mut().enumerate() {
        *key = K::from_ordered(buffer[i]);
    }
}

/// The number of bits of an index of `keys` keys.
pub(super) fn index_bits(keys: usize) -> u32 {
    keys.next_power_of_two().ilog2()
}
