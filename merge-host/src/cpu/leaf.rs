//! Sort of a few keys by comparisons.
//!
//! The ordered bits are made once, and not again at each comparison. Keys with values are sorted as bits with the place
//! that they come from, which no two have in common: so the order is that of a stable sort, and the places say which
//! value goes where.
//!
//! ```text
//!   keys    7 3 7 1   →   (7,0) (3,1) (7,2) (1,3)   →   (1,3) (3,1) (7,0) (7,2)   →   keys    1 3 7 7
//!   values  a b c d                                                                   values  d b a c
//! ```

use super::run::RunMut;
use crate::Key;
use kernels_gpu::key::Bits;

/// Keys alone that are faster to sort by comparisons than to distribute once more.
const KEYS: usize = 1 << 12;
/// As many keys with values.
const PAIRS: usize = 1 << 8;

/// Room for ordered bits.
pub(super) struct Leaf<K: Key> {
    keys: [K::Bits; KEYS],
    pairs: [(K::Bits, u32); PAIRS],
}

impl<K: Key> Leaf<K> {
    pub fn new() -> Self {
        Leaf { keys: [K::Bits::MIN; KEYS], pairs: [(K::Bits::MIN, 0); PAIRS] }
    }

    /// The most keys that can be sorted, with values of that type.
    pub const fn most<V>() -> usize {
        if size_of::<V>() == 0 { KEYS } else { PAIRS }
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
            return sort_keys(sorted.keys, &mut self.keys);
        }
        let pairs = &mut self.pairs[..run.keys.len()];
        for (place, (pair, key)) in pairs.iter_mut().zip(&*run.keys).enumerate() {
            *pair = (key.to_ordered(), place as u32);
        }
        pairs.sort_unstable();
        for ((bits, place), (key, value)) in pairs.iter().zip(scratch.keys.iter_mut().zip(&mut *scratch.values)) {
            *key = K::from_ordered(*bits);
            *value = run.values[*place as usize];
        }
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
