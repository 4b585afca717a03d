//! How many keys of a sorted run are less than given ones: what a search for exact splits needs to know of a run.
//!
//! The runs may be on several GPUs. Each counts in its own, and the host adds up: co-rank over many runs, of which only
//! counts leave a GPU.

use crate::key::{Bits, Coding};
use crate::keys::Keys;
use cuda_std::prelude::*;

/// Threads of a block.
pub const THREADS: u32 = 128;

/// Words of a search: the two indices between which the answer is known to be, and the key as ordered bits.
pub const SEARCH_WORDS: usize = 3;

/// Kernel: replaces the first word of each of `count` searches by the number of keys that are less than the key, as
/// `coding` orders them. One thread a search.
///
/// # Safety
/// `keys` is an ascending array of `n` keys, and `searches` has `count` times [`SEARCH_WORDS`] words, in global memory;
/// the first word of a search is at most the second, and that is at most `n`. Nothing else uses the searches. There are
/// at least `count` threads.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn count_below<B: Bits>(keys: *const B, n: usize, searches: *mut u64, count: usize, coding: Coding<B>) {
    let i = thread::index_1d() as usize;
    if i >= count {
        return;
    }
    // SAFETY: `keys` has `n` keys, of which those below the second word are read. `searches` has `SEARCH_WORDS * count`
    // words, and thread `i < count` alone uses those of search `i`.
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
