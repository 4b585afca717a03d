//! Sorts of elements of any type by ordered bits. The bits of all elements are extracted once and sorted with their
//! indices, and each element moves once, at the end.
//!
//! ```text
//!   items    "pear" "fig" "lime"         bits     4 3 4
//!   indices  1 0 2                       items    "fig" "pear" "lime"
//! ```

use super::blocks::{for_each_block, for_each_block_of_keys};
use super::few_values::{self, FewValues};
use super::moved::{self, Moved};
use super::presorted::{self, Runs};
use super::run::RunMut;
use super::scratch::Scratch;
use super::{sort_by, sort_pairs};
use crate::index::sealed::Sealed;
use crate::key_order::KeyOrder;
use crate::{Error, Index, SortKey, Word};
use std::mem::MaybeUninit;

/// The number of elements of a block: a thread extracts their bits.
const BLOCK: usize = 1 << 12;
/// The greatest number of elements that comparisons sort fastest.
const MAX_COMPARED: usize = 40;

/// Sorts `items` by the keys that `key` returns for them, on up to `threads` threads. Stable.
pub(crate) fn sort_by_key<T: Send, S: SortKey>(
    items: &mut [T],
    key: &(impl Fn(&T) -> S + Sync),
    threads: usize,
) -> Result<(), Error> {
    // The conditions on constants let each key type be compiled with one branch only.
    if items.len() <= MAX_COMPARED || const { size_of::<T>() == 0 } {
        sort_by::sort_by(items, &|a: &T, b: &T| key(a).ordered_bits().cmp(&key(b).ordered_bits()), 1)
    } else if const { S::BITS <= u32::BITS } {
        sort_by_word::<u32, T, S>(items, key, threads)
    } else if const { S::BITS <= u64::BITS } {
        sort_by_word::<u64, T, S>(items, key, threads)
    } else {
        sort_by_word::<u128, T, S>(items, key, threads)
    }
}

/// [`sort_by_key`] of keys with bits that fit a `W`.
fn sort_by_word<W: Word, T: Send, S: SortKey>(
    items: &mut [T],
    key: &(impl Fn(&T) -> S + Sync),
    threads: usize,
) -> Result<(), Error> {
    let mut words = Scratch::<W>::init(items.len())?;
    // The elements are borrowed exclusively, each by one thread, so that they need not be `Sync`.
    for_each_block(RunMut { keys: &mut words, values: items }, BLOCK, threads, |_, block| {
        block.keys.iter_mut().zip(block.values).for_each(|(word, item)| *word = W::narrowed(key(item).ordered_bits()));
    });
    if let Some(runs) = Runs::of(KeyOrder::ASCENDING, &words, 1, threads) {
        if !runs.is_ascending() {
            presorted::turn(&words, items, |x, y| x == y);
        }
        return Ok(());
    }
    if few_values::can_sort::<W, T>()
        && let Some(values) = FewValues::of(KeyOrder::ASCENDING, &words, threads)?
    {
        let scatter = |from: &[Moved<T>], to: &mut [MaybeUninit<T>]| {
            values.scatter(KeyOrder::ASCENDING, &words, |i| from[i].bits(), to, threads)
        };
        // SAFETY: the counts of the values add up to the number of words, and `scatter` writes that number of items to
        // the slots of each value.
        return unsafe { moved::move_all(items, scatter, threads) };
    }
    if items.len() as u128 <= u32::COUNT {
        permute_by_word::<W, u32, T>(items, words, threads)
    } else {
        permute_by_word::<W, u64, T>(items, words, threads)
    }
}

/// Moves `items` to the order of `words`.
fn permute_by_word<W: Word, I: Index, T: Send>(
    items: &mut [T],
    words: Scratch<W>,
    threads: usize,
) -> Result<(), Error> {
    let mut indices = Scratch::<I>::init(items.len())?;
    sort_pairs::argsort(KeyOrder::ASCENDING, &words, &mut indices, threads)?;
    // The move of the elements needs memory next.
    drop(words);
    // SAFETY: `argsort` has written a permutation: each index below `items.len()`, the length of `words`, once.
    unsafe { moved::permute(items, &indices, threads) }
}

/// Writes to `indices`, which has the length of `items`, the permutation that sorts them.
pub(crate) fn argsort_by_key<T: Sync, S: SortKey, I: Index>(
    items: &[T],
    key: &(impl Fn(&T) -> S + Sync),
    indices: &mut [I],
    threads: usize,
) -> Result<(), Error> {
    if const { S::BITS <= u32::BITS } {
        argsort_by_word::<u32, T, S, I>(items, key, indices, threads)
    } else if const { S::BITS <= u64::BITS } {
        argsort_by_word::<u64, T, S, I>(items, key, indices, threads)
    } else {
        argsort_by_word::<u128, T, S, I>(items, key, indices, threads)
    }
}

/// [`argsort_by_key`] of keys with bits that fit a `W`.
fn argsort_by_word<W: Word, T: Sync, S: SortKey, I: Index>(
    items: &[T],
    key: &(impl Fn(&T) -> S + Sync),
    indices: &mut [I],
    threads: usize,
) -> Result<(), Error> {
    let mut words = Scratch::<W>::init(items.len())?;
    for_each_block_of_keys(&mut words, BLOCK, threads, |begin, words| {
        words.iter_mut().zip(&items[begin..]).for_each(|(word, item)| *word = W::narrowed(key(item).ordered_bits()));
    });
    sort_pairs::argsort(KeyOrder::ASCENDING, &words, indices, threads)
}
