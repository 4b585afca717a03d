//! The first k elements of each segment of an array.
//!
//! ```text
//!   segments   │ 7 2 9 4 8 │ 5 │ 3 1 6 │
//!   out, k = 2 │ 2 4 │ 5 · │ 1 3 │          slots behind a short segment keep their contents
//! ```
//!
//! Threads share the segments as for a sort of each segment.

use super::memory::collected;
use super::run::{Run, RunMut};
use super::sort_segments::{Share, for_each_share};
use super::top_k::Selection;
use super::{sort, sort_by};
use crate::key_order::KeyOrder;
use crate::{Error, Key};
use std::ops::Range;

/// Writes the first `k` elements of each segment to the segment's `k` slots of `out`, sorted, or all elements of a
/// shorter segment. Stable.
pub(crate) fn select<K: Key, V: Copy + Send + Sync>(
    order: KeyOrder,
    (from, offsets): (Run<K, V>, &[usize]),
    k: usize,
    out: RunMut<K, V>,
    threads: usize,
) -> Result<(), Error> {
    for_each_share(Share::all_with_slots(out, offsets, k), threads, |share, threads| {
        let mut segment = share.first;
        share.for_each_segment(|mut slots| {
            let from = from.part(offsets[segment]..offsets[segment + 1]);
            segment += 1;
            select_from_one(order, from, slots.part(0..k.min(from.keys.len())), threads)
        })
    })
}

/// Writes the first elements of one segment, at least as many as `out` has, to `out`.
fn select_from_one<K: Key, V: Copy + Send + Sync>(
    order: KeyOrder,
    from: Run<K, V>,
    mut out: RunMut<K, V>,
    threads: usize,
) -> Result<(), Error> {
    let (n, k) = (from.keys.len(), out.keys.len());
    if k == n {
        out.copy_from(from);
        return sort::sort(order, out, threads);
    }
    // To sort most keys takes longer than to sort all of them without a selection.
    if k > n / 2 {
        let (mut keys, mut values) = (collected(from.keys.iter().copied())?, collected(from.values.iter().copied())?);
        sort::sort(order, RunMut::new((&mut keys, &mut values)), threads)?;
        out.copy_from(Run::new((&keys[..k], &values[..k])));
        return Ok(());
    }
    // A constant, so that the other way is not compiled.
    if const { size_of::<V>() > 0 } {
        select_pairs(order, from, out, threads)
    } else {
        select_keys(order, from.keys, out.keys, threads)
    }
}

/// Selects keys with values by the keys' bits and their indices, so that no two items are equal.
fn select_pairs<K: Key, V: Copy + Send + Sync>(
    order: KeyOrder,
    from: Run<K, V>,
    out: RunMut<K, V>,
    threads: usize,
) -> Result<(), Error> {
    let items = |range: Range<usize>| range.map(|i| (order.encode(from.keys[i]), i));
    let mut selection = Selection::new(out.keys.len());
    selection.add(from.keys.len(), items, threads)?;
    let mut items = selection.into_items();
    sort_by::sort_by(&mut items, &Ord::cmp, threads)?;
    for (i, (bits, index)) in items.into_iter().enumerate() {
        (out.keys[i], out.values[i]) = (order.decode(bits), from.values[index]);
    }
    Ok(())
}

fn select_keys<K: Key>(order: KeyOrder, from: &[K], out: &mut [K], threads: usize) -> Result<(), Error> {
    let bits = |range: Range<usize>| from[range].iter().map(|key| order.encode(*key));
    let mut selection = Selection::new(out.len());
    selection.add(from.len(), bits, threads)?;
    let mut bits = selection.into_items();
    sort::sort(KeyOrder::ASCENDING, RunMut::of_keys(&mut bits), threads)?;
    for (key, bits) in out.iter_mut().zip(bits) {
        *key = order.decode(bits);
    }
    Ok(())
}
