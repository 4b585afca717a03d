//! Loops over the blocks of an output, on one thread or on several.

use super::run::RunMut;
use crate::parallel::{self, Threads};
use std::mem::swap;

/// The number of keys of one call of a callback.
const CALLBACK_BLOCK: usize = 1 << 19;

/// The number of keys or values of a block that a thread copies.
const COPY_BLOCK: usize = 1 << 14;

/// Divides `out` into shares of `block` keys or a multiple of `block`; the last may be shorter. Calls `fill` with the
/// index of each share's first key and the share.
pub(super) fn for_each_block<K: Send, V: Send>(
    mut out: RunMut<K, V>,
    block: usize,
    threads: usize,
    fill: impl Fn(usize, RunMut<K, V>) + Sync,
) {
    let share = parallel::share_length_for(threads, out.keys.len(), block);
    parallel::for_each_on(threads, out.chunks(share).enumerate(), |(i, out)| fill(i * share, out));
}

/// [`for_each_block`] of keys without values.
pub(super) fn for_each_block_of_keys<K: Send>(
    out: &mut [K],
    block: usize,
    threads: usize,
    fill: impl Fn(usize, &mut [K]) + Sync,
) {
    for_each_block(RunMut::of_keys(out), block, threads, |begin, out| fill(begin, out.keys));
}

/// Copies `from` to `to`, which has the same length.
pub(super) fn copy<T: Copy + Send + Sync>(from: &[T], to: &mut [T], threads: usize) {
    for_each_block_of_keys(to, COPY_BLOCK, threads, |begin, to| to.copy_from_slice(&from[begin..][..to.len()]));
}

/// Reverses the order of `keys`.
pub(super) fn reverse<K: Send>(keys: &mut [K], threads: usize) {
    if threads == 1 {
        return keys.reverse();
    }
    let half = keys.len() / 2;
    let (front, back) = keys.split_at_mut(keys.len() - half);
    let share = parallel::share_length_for(threads, half, COPY_BLOCK);
    let pairs = front[..half].chunks_mut(share).zip(back.rchunks_mut(share));
    parallel::for_each_on(threads, pairs, |(front, back)| {
        front.iter_mut().zip(back.iter_mut().rev()).for_each(|(x, y)| swap(x, y));
    });
}

/// Calls `work`, which the user of the library provides, with blocks of `keys` and the index of each block's first key.
/// After an error no further call begins, and one of the errors is returned.
pub(crate) fn try_for_each_callback<K: Send, E: Send>(
    threads: Threads,
    keys: &mut [K],
    work: impl Fn(usize, &mut [K]) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let blocks = keys.chunks_mut(CALLBACK_BLOCK).enumerate();
    parallel::try_for_each_on(threads, blocks, |(i, block)| work(i * CALLBACK_BLOCK, block))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_reversed() {
        for len in [0, 1, 2, 3, 2 * COPY_BLOCK - 1, 2 * COPY_BLOCK, 20 * COPY_BLOCK + 1] {
            for threads in [1, 2, 3] {
                let mut keys: Vec<usize> = (0..len).collect();
                reverse(&mut keys, threads);
                assert!(keys.into_iter().eq((0..len).rev()), "{len} keys, {threads} threads");
            }
        }
    }
}
