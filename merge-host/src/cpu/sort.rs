//! Choice of the method that sorts keys.
//!
//! Keys are encoded as unsigned integers that have the order of the keys, or the opposite order for a descending sort.
//!
//! ```text
//!   keys  -3 1 2   ─ encode ─►  2^31 - 3   2^31 + 1   2^31 + 2   ─ sort, decode ─►  -3 1 2
//! ```

use super::blocks::for_each_block_of_keys;
use super::radix::Workspace;
use super::run::RunMut;
use super::scratch::Scratch;
use super::{counting, digit, leaf, parallel_radix, radix, sort_pairs, vector};
use crate::key_order::KeyOrder;
use crate::sorted::first_unsorted_on;
use crate::{Error, Key};
use bytemuck::Zeroable;
use std::any::TypeId;

/// The greatest number of keys that are sorted by comparisons: they are faster than radix passes, and need no scratch
/// memory on the heap.
const MAX_COMPARED_KEYS: usize = 1 << 10;
/// The number of keys of a block that a thread encodes.
const ENCODE_BLOCK: usize = 1 << 14;

/// Sorts keys, with their values if these have any bytes. Stable.
pub(crate) fn sort<K: Key, V: Copy + Send + Sync>(
    order: KeyOrder,
    run: RunMut<K, V>,
    threads: usize,
) -> Result<(), Error> {
    // A constant, so that the other way is not compiled.
    if const { size_of::<V>() == 0 } {
        sort_keys(order, run.keys, threads)
    } else {
        sort_pairs::sort(order, run, threads)
    }
}

/// Sorts keys alone.
fn sort_keys<K: Key>(order: KeyOrder, keys: &mut [K], threads: usize) -> Result<(), Error> {
    if counting::can_sort::<K>(keys.len()) {
        return counting::sort(order, keys, threads);
    }
    if !order.inverts_bits::<K>() {
        // Vectors and radix passes sort the encoded keys.
        let mut result = Ok(());
        in_order(order, keys, threads, |bits| result = sort_keys(KeyOrder::ASCENDING, bits, threads));
        return result;
    }
    let differing = || digit::differing_or_more(keys, vector::NARROW_BITS);
    if vector::can_sort_on::<K>(threads, keys.len(), differing) {
        if !is_sorted(order, keys, threads) {
            vector::sort_on(order.direction, keys, threads);
        }
        return Ok(());
    }
    if keys.len() <= MAX_COMPARED_KEYS {
        // Equal keys have equal bits, so a stable sort gives the same result.
        in_order(order, keys, 1, |keys| leaf::sort_keys(keys, &mut [K::Bits::zeroed(); MAX_COMPARED_KEYS]));
        return Ok(());
    }
    let mut scratch = Scratch::zeroed(keys.len())?;
    in_order(order, keys, threads, |keys| sort_bits(RunMut::of_keys(keys), RunMut::of_keys(&mut scratch), threads));
    Ok(())
}

/// Encodes `keys`, sorts their bits by `sort`, which sorts in ascending order, and decodes them. So a sort is compiled
/// for each width and not for each type, and floats take the time of integers. Does nothing if keys are in order.
pub(super) fn in_order<K: Key>(order: KeyOrder, keys: &mut [K], threads: usize, sort: impl FnOnce(&mut [K::Bits])) {
    if order.is_of::<K>() && TypeId::of::<K>() == TypeId::of::<K::Bits>() {
        return sort(bytemuck::cast_slice_mut(keys));
    }
    if is_sorted(order, keys, threads) {
        return;
    }
    replace_each(keys, threads, |key| bytemuck::cast(order.encode(key)));
    sort(bytemuck::cast_slice_mut(keys));
    replace_each(keys, threads, |bits| order.decode(bytemuck::cast(bits)));
}

/// Replaces each key by the result of `of`.
fn replace_each<K: Key>(keys: &mut [K], threads: usize, of: impl Fn(K) -> K + Sync) {
    for_each_block_of_keys(keys, ENCODE_BLOCK, threads, |_, keys| keys.iter_mut().for_each(|key| *key = of(*key)));
}

/// Whether `keys` are in order, as far as a scan without encoding tells. On several threads only the order of `K` is
/// scanned for, because the sort scans the encoded keys. The scan ends early unless keys are in order or nearly sorted.
fn is_sorted<K: Key>(order: KeyOrder, keys: &[K], threads: usize) -> bool {
    if order.is_of::<K>() {
        first_unsorted_on(threads, keys).is_none()
    } else {
        threads == 1 && keys.is_sorted_by_key(|key| order.encode(*key))
    }
}

/// Sorts `run` in ascending order. Stable. `scratch` has the same length.
pub(super) fn sort_bits<K: Key, V: Copy + Send + Sync>(run: RunMut<K, V>, scratch: RunMut<K, V>, threads: usize) {
    if threads == 1 {
        radix::sort(run, scratch, false, None, &mut Workspace::new());
    } else {
        parallel_radix::sort(run, scratch, threads);
    }
}
