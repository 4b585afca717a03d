//! Choice of the method that sorts keys.
//!
//! Keys are encoded for a descending sort: the least encoded key is the greatest key.
//!
//! ```text
//!   keys  3 1 2   ─ encode ─►  -3 -1 -2   ─ sort ─►  -3 -2 -1   ─ decode ─►  3 2 1
//! ```

use super::blocks::for_each_block_of_keys;
use super::radix::Workspace;
use super::run::RunMut;
use super::{counting, digit, leaf, memory, parallel_radix, radix, vector};
use crate::sorted::first_unsorted_in_block;
use crate::{Error, Key, SortOrder};
use bytemuck::Zeroable;

/// Up to this number of keys, comparisons are faster than radix passes, and need no scratch memory on the heap.
const MAX_COMPARED_KEYS: usize = 1 << 10;
/// Keys that a thread encodes at once.
const ENCODE_BLOCK: usize = 1 << 14;

/// Sorts `keys`.
pub(crate) fn sort_keys<K: Key>(order: SortOrder, keys: &mut [K], threads: usize) -> Result<(), Error> {
    if counting::can_sort::<K>(keys.len()) {
        return counting::sort(order, keys, threads);
    }
    if threads == 1 && vector::can_sort::<K>(keys.len(), || digit::differing(keys[0], &*keys)) {
        in_order(order, keys, 1, |keys| {
            if first_unsorted_in_block(keys).is_some() {
                vector::sort(keys);
            }
        });
        return Ok(());
    }
    if keys.len() <= MAX_COMPARED_KEYS {
        // Equal keys have equal bits, so a stable sort gives the same result.
        in_order(order, keys, 1, |keys| leaf::sort_keys(keys, &mut [K::Bits::zeroed(); MAX_COMPARED_KEYS]));
        return Ok(());
    }
    let mut scratch = memory::zeroed(keys.len())?;
    in_order(order, keys, threads, |keys| sort(RunMut::of_keys(keys), RunMut::of_keys(&mut scratch), threads));
    Ok(())
}

/// Encodes `keys`, calls `sort`, which sorts them in ascending order, and decodes them.
pub(super) fn in_order<K: Key>(order: SortOrder, keys: &mut [K], threads: usize, sort: impl FnOnce(&mut [K])) {
    // Inverting the bits twice restores them, so encoding and decoding are the same.
    let invert = |keys: &mut [K]| {
        if order == SortOrder::Descending {
            for_each_block_of_keys(keys, ENCODE_BLOCK, threads, |_, keys| {
                keys.iter_mut().for_each(|key| *key = order.applied_to(*key));
            });
        }
    };
    invert(keys);
    sort(keys);
    invert(keys);
}

/// Sorts `run` in ascending order. Stable. `scratch` has the same length.
pub(super) fn sort<K: Key, V: Copy + Send + Sync>(run: RunMut<K, V>, scratch: RunMut<K, V>, threads: usize) {
    if threads == 1 {
        radix::sort(run, scratch, false, None, &mut Workspace::new());
    } else {
        parallel_radix::sort(run, scratch, threads);
    }
}
