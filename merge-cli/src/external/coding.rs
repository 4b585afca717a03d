//! Keys as unsigned integers in the order that is wanted.
//!
//! Keys of every type become unsigned integers of as many bits as soon as they are read, and what they were just before
//! they are written. In between there are five types instead of twelve, and every order is ascending.

use crate::error::{Failure, Result};
use crate::input::Input;
use crate::key_type::FileKey;
use crate::order;
use merge_host::SortOrder;
use rayon::prelude::*;

/// Keys that a thread handles at once.
const PIECE: usize = 1 << 14;

/// What keys of some type are to those as which they are sorted.
#[derive(Clone, Copy, Debug)]
pub struct Coding<O> {
    /// Fills the memory with the next keys, as they are. As [`Input::read`].
    pub read: fn(&mut Input, &mut [O]) -> Result<usize>,
    /// Makes keys that were read what is sorted, ascending.
    pub encode: fn(&mut [O]),
    /// Makes what is sorted keys to write.
    pub decode: fn(&mut [O]),
    /// The error of an input whose key at an index, the second of two that are sorted, comes before the one before it.
    pub not_sorted: fn(&Input, [O; 2], u64) -> Failure,
}

impl<O: FileKey> Coding<O> {
    fn of_mirrored<K: FileKey<Ordered = O>, const MIRRORED: bool>() -> Self {
        let (encode, decode) = (encode::<K, MIRRORED>, decode::<K, MIRRORED>);
        Self { read: read::<K>, encode, decode, not_sorted: not_sorted::<K, MIRRORED> }
    }

    /// For keys of type `K` in that order.
    pub fn of<K: FileKey<Ordered = O>>(order: SortOrder) -> Self {
        match order {
            SortOrder::Ascending => Self::of_mirrored::<K, false>(),
            SortOrder::Descending => Self::of_mirrored::<K, true>(),
        }
    }
}

fn read<K: FileKey>(input: &mut Input, keys: &mut [K::Ordered]) -> Result<usize> {
    input.read::<K>(bytemuck::cast_slice_mut(keys))
}

fn encode<K: FileKey, const MIRRORED: bool>(keys: &mut [K::Ordered]) {
    for_each::<K>(keys, |key| {
        let bits = bytemuck::cast::<_, K>(*key).to_ordered();
        *key = bytemuck::cast(if MIRRORED { !bits } else { bits });
    });
}

fn decode<K: FileKey, const MIRRORED: bool>(keys: &mut [K::Ordered]) {
    for_each::<K>(keys, |key| {
        let bits = bytemuck::cast::<_, K::Bits>(*key);
        *key = bytemuck::cast(K::from_ordered(if MIRRORED { !bits } else { bits }));
    });
}

fn not_sorted<K: FileKey, const MIRRORED: bool>(input: &Input, mut pair: [K::Ordered; 2], index: u64) -> Failure {
    decode::<K, MIRRORED>(&mut pair);
    let order = if MIRRORED { SortOrder::Descending } else { SortOrder::Ascending };
    order::not_sorted(order, input, bytemuck::cast_slice::<_, K>(&pair), index, "")
}

fn for_each<K: FileKey>(keys: &mut [K::Ordered], change: impl Fn(&mut K::Ordered) + Sync) {
    keys.par_chunks_mut(PIECE).for_each(|keys| keys.iter_mut().for_each(&change));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_the_order_of_the_keys() {
        let sorted = [-f32::NAN, f32::NEG_INFINITY, -1.5, -0.0, 0.0, 1.5, f32::NAN];
        for order in [SortOrder::Ascending, SortOrder::Descending] {
            let coding = Coding::of::<f32>(order);
            let mut keys = sorted.map(f32::to_bits);
            (coding.encode)(&mut keys);
            if order == SortOrder::Descending {
                keys.reverse();
            }
            assert!(keys.is_sorted_by(|x, y| x < y));
            (coding.decode)(&mut keys);
            if order == SortOrder::Descending {
                keys.reverse();
            }
            assert_eq!(keys, sorted.map(f32::to_bits));
        }
    }
}
