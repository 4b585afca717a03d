//! Sort of keys with values, and of places by their keys.
//!
//! Small values are moved along with their keys, pass by pass. Of large ones the places are, and each value is moved once
//! in the end, to where its place has come:
//!
//! ```text
//!   keys    7 3 5             3 5 7
//!   places  0 1 2   ─ sort ─► 1 2 0
//!   values  A B C             B C A
//! ```

use super::run::RunMut;
use super::{for_each_piece, memory, parallel_radix, sort};
use crate::index::sealed::Sealed;
use crate::{Error, Index, Key, SortOrder};
use std::mem::MaybeUninit;

/// The most bytes of a value that is moved along with its key.
const SMALL_VALUE: usize = 16;
/// Keys that are handled at once where each is by itself.
const PIECE: usize = 1 << 14;

/// Sorts `keys`, and the value of each along with it. There are as many values.
pub(super) fn sort_pairs<K: Key, V: Copy + Send + Sync>(
    order: SortOrder,
    keys: &mut [K],
    values: &mut [V],
    threads: usize,
) -> Result<(), Error> {
    // SAFETY: values are moved from one place to another and nothing else is written.
    let values = unsafe { memory::as_room(values) };
    if size_of::<V>() <= SMALL_VALUE {
        sort_small(order, keys, values, threads)
    } else if keys.len() as u128 <= u32::PLACES {
        sort_large::<K, V, u32>(order, keys, values, threads)
    } else {
        sort_large::<K, V, u64>(order, keys, values, threads)
    }
}

fn sort_small<K: Key, V: Copy + Send + Sync>(
    order: SortOrder,
    keys: &mut [K],
    values: &mut [MaybeUninit<V>],
    threads: usize,
) -> Result<(), Error> {
    let mut scratch = (memory::zeroed(keys.len())?, memory::room(keys.len())?);
    let scratch = RunMut::new((&mut scratch.0, &mut scratch.1));
    sort::in_order(order, keys, threads, |keys| sort::sort(RunMut::new((keys, values)), scratch, threads));
    Ok(())
}

fn sort_large<K: Key, V: Copy + Send + Sync, I: Index>(
    order: SortOrder,
    keys: &mut [K],
    values: &mut [MaybeUninit<V>],
    threads: usize,
) -> Result<(), Error> {
    let (mut places, mut sorted) = (memory::zeroed::<I>(keys.len())?, memory::room(keys.len())?);
    for_each_piece(RunMut::of_keys(&mut places), PIECE, threads, |begin, places| number(begin, places.keys));
    let mut scratch = (memory::zeroed(keys.len())?, memory::zeroed(keys.len())?);
    {
        let scratch = RunMut::new((&mut scratch.0, &mut scratch.1));
        sort::in_order(order, keys, threads, |keys| sort::sort(RunMut::new((keys, &mut places)), scratch, threads));
    }
    drop(scratch);
    for_each_piece(RunMut::of_keys(&mut sorted), PIECE, threads, |begin, sorted| {
        for (value, place) in sorted.keys.iter_mut().zip(&places[begin..]) {
            *value = values[place.place()];
        }
    });
    for_each_piece(RunMut::of_keys(values), PIECE, threads, |begin, values| {
        values.keys.copy_from_slice(&sorted[begin..][..values.keys.len()]);
    });
    Ok(())
}

/// Writes to `indices` the places of `keys` in sorted order. There are as many.
pub(super) fn argsort<K: Key, I: Index>(
    order: SortOrder,
    keys: &[K],
    indices: &mut [I],
    threads: usize,
) -> Result<(), Error> {
    if parallel_radix::can_argsort(keys.len(), threads) {
        return parallel_radix::argsort(order, keys, indices, threads);
    }
    let mut sorted = memory::zeroed(keys.len())?;
    let mut scratch = (memory::zeroed(keys.len())?, memory::zeroed(keys.len())?);
    let mut run = RunMut::new((&mut *sorted, indices));
    for_each_piece(run.part(0..keys.len()), PIECE, threads, |begin, piece| {
        piece.keys.iter_mut().zip(&keys[begin..]).for_each(|(to, key)| *to = order.applied_to(*key));
        number(begin, piece.values);
    });
    sort::sort(run, RunMut::new((&mut scratch.0, &mut scratch.1)), threads);
    Ok(())
}

/// Writes to `indices` the places from `begin` on.
fn number<I: Index>(begin: usize, indices: &mut [I]) {
    indices.iter_mut().enumerate().for_each(|(i, index)| *index = I::new(begin + i));
}
