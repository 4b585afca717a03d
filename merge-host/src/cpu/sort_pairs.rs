//! Sorts of key-value pairs, and of the indices of keys.
//!
//! Small values move together with their keys, pass by pass. For large values the indices move, and each value is moved
//! once at the end:
//!
//! ```text
//!   keys     7 3 5             3 5 7
//!   indices  0 1 2   ─ sort ─► 1 2 0
//!   values   A B C             B C A
//! ```

use super::blocks::{copy, for_each_block_of_keys};
use super::few_values::{self, FewValues};
use super::presorted::{self, Runs};
use super::run::RunMut;
use super::scratch::Scratch;
use super::workers::timed_whole;
use super::{Workers, few_keys, key_index, limit, memory, parallel_radix, sort};
use crate::index::sealed::Sealed;
use crate::key_order::KeyOrder;
use crate::permutation::fill_identity_on;
use crate::timing::Steps;
use crate::{Error, Index, Key};
use std::mem::MaybeUninit;

/// The greatest size of a value that moves together with its key, in bytes.
pub(super) const MAX_MOVED_VALUE: usize = 16;
/// The number of keys, indices or values of a block that a thread copies.
const COPY_BLOCK: usize = 1 << 14;

/// Sorts `keys`, and `values` with them. Both have the same length.
pub(super) fn sort<K: Key, V: Copy + Send + Sync>(
    order: KeyOrder,
    RunMut { keys, values }: RunMut<K, V>,
    threads: usize,
) -> Result<(), Error> {
    // SAFETY: both sorts write only copies of values to `values`. They read values from it, which are initialised, or
    // from scratch memory that they have written.
    let values = unsafe { memory::as_uninit_mut(values) };
    // The condition is a constant, so only one way is compiled.
    if const { size_of::<V>() <= MAX_MOVED_VALUE } {
        sort_values(order, keys, values, threads)
    } else if keys.len() as u128 <= u32::COUNT {
        sort_indices::<K, V, u32>(order, keys, values, threads)
    } else {
        sort_indices::<K, V, u64>(order, keys, values, threads)
    }
}

/// Moves values together with their keys.
fn sort_values<K: Key, V: Copy + Send + Sync>(
    order: KeyOrder,
    keys: &mut [K],
    values: &mut [MaybeUninit<V>],
    threads: usize,
) -> Result<(), Error> {
    let mut scratch = (Scratch::to_scatter(keys.len())?, Scratch::<V>::uninit(keys.len())?);
    let scratch = RunMut::new((&mut scratch.0, &mut scratch.1));
    sort::in_order(order, keys, threads, |keys| sort::sort_bits(RunMut::new((keys, values)), scratch, threads));
    Ok(())
}

/// Sorts the indices of the values, then gathers the values.
fn sort_indices<K: Key, V: Copy + Send + Sync, I: Index>(
    order: KeyOrder,
    keys: &mut [K],
    values: &mut [MaybeUninit<V>],
    threads: usize,
) -> Result<(), Error> {
    let (mut indices, mut sorted) = (Scratch::<I>::init(keys.len())?, Scratch::<V>::uninit(keys.len())?);
    fill_identity_on(threads, &mut indices);
    // SAFETY: the sort writes only copies of indices to `indices`, which are initialised. It reads scratch memory only
    // after it has written it.
    sort_values(order, keys, unsafe { memory::as_uninit_mut(&mut indices) }, threads)?;
    for_each_block_of_keys(&mut sorted, COPY_BLOCK, threads, |begin, sorted| {
        for (value, index) in sorted.iter_mut().zip(&indices[begin..]) {
            *value = values[index.to_usize()];
        }
    });
    copy(&sorted, values, threads);
    Ok(())
}

/// [`argsort`] of fewer than [`UNTIMED_KEYS`](super::UNTIMED_KEYS) keys on the calling thread. Compiled once for all
/// forms of arguments.
#[inline(never)]
pub(crate) fn argsort_untimed<K: Key, I: Index>(order: KeyOrder, keys: &[K], indices: &mut [I]) -> Result<(), Error> {
    limit::check()?;
    argsort(order, keys, indices, 1)
}

/// [`argsort`] on the threads of `workers`, as [`sort::sort_on`] does.
pub(crate) fn argsort_on<K: Key, I: Index>(
    workers: &Workers,
    order: KeyOrder,
    keys: &[K],
    indices: &mut [I],
) -> Result<Steps, Error> {
    if !sort::is_worth_a_look(workers, keys) {
        return workers.sort(keys.len(), |threads| argsort(order, keys, indices, threads));
    }
    timed_whole(|| {
        let runs = Runs::of(order, keys, presorted::most_runs::<K, I>(keys.len()), 1);
        let mut sort = |threads| argsort_seen(order, keys, indices, runs.as_ref(), threads);
        match runs.as_ref().is_some_and(Runs::is_one) {
            true => sort(1).map(|()| Steps::default()),
            false => workers.sort(keys.len(), sort),
        }
    })
}

/// Writes to `indices`, which has the length of `keys`, the permutation that sorts `keys`.
pub(crate) fn argsort<K: Key, I: Index>(
    order: KeyOrder,
    keys: &[K],
    indices: &mut [I],
    threads: usize,
) -> Result<(), Error> {
    if keys.len() <= few_keys::MOST_SHORT {
        few_keys::argsort(order, keys, indices);
        return Ok(());
    }
    let runs = Runs::of(order, keys, presorted::most_runs::<K, I>(keys.len()), threads);
    argsort_seen(order, keys, indices, runs.as_ref(), threads)
}

/// [`argsort`] of more than a few keys. They have `runs`, if these are few.
fn argsort_seen<K: Key, I: Index>(
    order: KeyOrder,
    keys: &[K],
    indices: &mut [I],
    runs: Option<&Runs>,
    threads: usize,
) -> Result<(), Error> {
    if let Some(run) = runs.filter(|runs| runs.is_one()) {
        return argsort_runs(order, keys, indices, run, threads);
    }
    if const { few_values::can_sort::<K, I>() }
        && let Some(values) = FewValues::of(order, keys, threads)?
    {
        return values.scatter(order, keys, I::from_usize, indices, threads);
    }
    if let Some(runs) = runs {
        return argsort_runs(order, keys, indices, runs, threads);
    }
    if few_keys::can_argsort::<K>(keys.len()) {
        few_keys::argsort(order, keys, indices);
        return Ok(());
    }
    if const { matches!(size_of::<K>(), 4 | 8) } && key_index::can_argsort::<K>(keys.len(), threads) {
        return key_index::argsort(order, keys, indices, threads);
    }
    if order.keeps_nans::<K>() && parallel_radix::can_argsort(keys.len(), threads) {
        return parallel_radix::argsort(order, keys, indices, threads);
    }
    let mut sorted = encoded(order, keys, threads)?;
    let mut scratch = (Scratch::to_scatter(keys.len())?, Scratch::<I>::uninit(keys.len())?);
    fill_identity_on(threads, indices);
    // SAFETY: the sort writes only copies of indices to `indices`, which are initialised. It reads scratch memory only
    // after it has written it.
    let run = RunMut::new((&mut *sorted, unsafe { memory::as_uninit_mut(indices) }));
    sort::sort_bits(run, RunMut::new((&mut scratch.0, &mut scratch.1)), threads);
    Ok(())
}

/// The ordered bits of `keys`, so that a sort is compiled for each width and not for each type.
fn encoded<K: Key>(order: KeyOrder, keys: &[K], threads: usize) -> Result<Scratch<K::Bits>, Error> {
    let mut encoded = Scratch::init(keys.len())?;
    for_each_block_of_keys(&mut encoded, COPY_BLOCK, threads, |begin, encoded| {
        encoded.iter_mut().zip(&keys[begin..]).for_each(|(to, key)| *to = order.encode(*key));
    });
    Ok(encoded)
}

/// [`argsort`] of keys that have these runs.
fn argsort_runs<K: Key, I: Index>(
    order: KeyOrder,
    keys: &[K],
    indices: &mut [I],
    runs: &Runs,
    threads: usize,
) -> Result<(), Error> {
    fill_identity_on(threads, indices);
    if runs.is_ascending() {
        return Ok(());
    }
    if runs.is_one() {
        presorted::turn(keys, indices, |x, y| order.encode(x) == order.encode(y));
        return Ok(());
    }
    let mut bits = encoded(order, keys, threads)?;
    // SAFETY: the merge writes only copies of the indices, which are initialised.
    runs.merge(RunMut::new((&mut bits, unsafe { memory::as_uninit_mut(indices) })), threads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NanOrder, SortOrder};

    /// The digits of the keys themselves have another order than keys whose order moves NaNs.
    #[test]
    fn indices_of_keys_that_digits_do_not_order() {
        // More keys than one thread sorts by digits, and fewer than vectors sort on several threads.
        let keys: Vec<f32> = (0..100_000u32).map(|i| f32::from_bits(i.wrapping_mul(2_654_435_761))).collect();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        for direction in [SortOrder::Ascending, SortOrder::Descending] {
            for nans in NanOrder::ALL {
                let order = KeyOrder { direction, nans };
                let mut expected: Vec<u32> = (0..100_000).collect();
                expected.sort_by_key(|i| order.encode(keys[*i as usize]));
                let mut indices = vec![u32::MAX; keys.len()];
                pool.install(|| argsort(order, &keys, &mut indices, 2)).unwrap();
                assert!(indices == expected, "{order:?}");
            }
        }
    }
}
