//! Sort of a few keys by comparisons.
//!
//! The ordered bits are made once, and not again at each comparison. Those of keys with values are followed by the place
//! that the key comes from, in one number. No two numbers are the same then, so that the order is that of a stable sort,
//! and the places in it say which key and which value go where:
//!
//! ```text
//!   keys    7 3 7 1   →   7|0 3|1 7|2 1|3   →   1|3 3|1 7|0 7|2   →   keys    1 3 7 7
//!   values  a b c d                                                   values  d b a c
//! ```
//!
//! The place takes the room of as many upper bits, so these must be the same in all keys.

use super::run::RunMut;
use crate::Key;
use crate::key::sealed::Bits;
use bytemuck::Zeroable;

/// The most keys that are compared.
const KEYS: usize = 1 << 8;

/// Room for ordered bits.
pub(super) struct Leaf<K: Key>([K::Bits; KEYS]);

impl<K: Key> Leaf<K> {
    pub fn new() -> Self {
        Leaf([K::Bits::zeroed(); KEYS])
    }

    /// Whether so many keys can be sorted, with values of that type. `differing` are the bits that are not the same in all.
    pub fn can_sort<V>(keys: usize, differing: K::Bits) -> bool {
        keys <= KEYS && (size_of::<V>() == 0 || differing.leading_zeros() >= place_bits(keys))
    }

    /// Sorts `run`. It ends in `scratch` if `to_scratch`, and else where it is.
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
        let place_bits = place_bits(run.keys.len());
        let pairs = &mut self.0[..run.keys.len()];
        for (place, (pair, key)) in pairs.iter_mut().zip(&*run.keys).enumerate() {
            *pair = key.to_ordered() << place_bits | K::Bits::from_low(place);
        }
        pairs.sort_unstable();
        scratch.gather(run.as_run(), pairs.iter().map(|pair| pair.low() & ((1 << place_bits) - 1)));
        if !to_scratch {
            run.copy_from(scratch.as_run());
        }
    }
}

/// Sorts keys alone. `buffer` is room for as many, at least.
pub(super) fn sort_keys<K: Key>(keys: &mut [K], buffer: &mut [K::Bits]) {
    let buffer = &mut buffer[..keys.len()];
    buffer.iter_mut().zip(&*keys).for_each(|(bits, key)| *bits = key.to_ordered());
    buffer.sort_unstable();
    keys.iter_mut().zip(&*buffer).for_each(|(key, bits)| *key = K::from_ordered(*bits));
}

/// Bits of the places of so many keys.
pub(super) fn place_bits(keys: usize) -> u32 {
    keys.next_power_of_two().ilog2()
}
