//! Counts the keys of a sorted run that are less than given keys: the step of a search for exact splits over several
//! runs.
//!
//! The runs may be on several GPUs. Each GPU counts in its own run, and the host adds up the counts. This is a multiway
//! co-rank in which only counts leave a GPU.

use crate::key::{Bits, Coding};
use crate::keys::Keys;
use cuda_std::prelude::*;

/// Threads of a block.
pub const THREADS: u32 = 128;

/// Words of a search: the two indices that bound the result, and the key as ordered bits.
pub const SEARCH_WORDS: usize = 3;

/// Kernel: replaces the first word of each of `count` searches by the number of keys that are less than the search's
/// key, in the order of `coding`. One thread for each search.
///
/// # Safety
/// `keys` is an ascending array of `n` keys, and `searches` has `count` times [`SEARCH_WORDS`] words, in global memory.
/// The first word of a search is at most the second, and the second is at most `n`. Nothing else uses the searches.
/// There are at least `count` threads.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn count_below<B: Bits>(keys: *const B, n: usize, searches: *mut u64, count: usize, coding: Coding<B>) {
    let i = thread::index_1d() as usize;
    if i >= count {
        return;
    }
    // SAFETY: `keys` has `n` keys, and keys below the second word are read. `searches` has `SEARCH_WORDS * count`
    // words, and only thread `i < count` uses the words of search `i`.
    let (keys, searches) = unsafe { (Keys::new(keys, n, coding), GlobalMut::new(searches, SEARCH_WORDS * count)) };
    let word = |j| searches.get(SEARCH_WORDS * i + j);
    let (mut low, mut high, key) = (word(0) as usize, word(1) as usize, B::from_register(word(2)));
    while low < high {
        let middle = low + (high - low) / 2;
        if keys.get(middle) < key {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    searches.set(SEARCH_WORDS * i, low as u64);
}
