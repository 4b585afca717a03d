//! Keys of 1 and 2 bytes.
//!
//! Keys alone are sorted by counting. There are 256 or 65,536 different keys, and equal keys are equal bits, so that
//! the sorted array follows from the histogram:
//!
//! ```text
//!   keys          3 1 3 0 1 3
//!   count_keys    0: 1   1: 2   2: 0   3: 3      histogram: shared memory, then global memory
//!   scan_counts   0: 0   1: 1   2: 3   3: 3      prefix sum, in the order of the sort
//!   fill_keys     0 1 1 3 3 3                    each warp finds the keys of its range by binary search
//! ```
//!
//! All other operations run on keys of 4 bytes, between [`widen_keys`](widen::widen_keys) and
//! [`narrow_keys`](widen::narrow_keys).

pub mod count_keys;
pub mod fill_keys;
pub mod scan_counts;
pub mod widen;

use crate::key::Width;
use cuda_std::Word;

/// A word that is loaded or stored at once.
const WORD_BYTES: usize = 8;

/// The bits of a key of 1 or 2 bytes.
pub trait Narrow: Width + Word {
    /// Number of different keys.
    const VALUES: usize = 1 << (8 * size_of::<Self>());
    /// Keys in a word.
    const IN_WORD: usize = WORD_BYTES / size_of::<Self>();

    /// The key as a number.
    #[inline(always)]
    fn value(self) -> u32 {
        self.to_register() as u32
    }

    /// The key with the lowest bits of `value`.
    #[inline(always)]
    fn of_value(value: u32) -> Self {
        Self::from_register(value as u64)
    }

    /// Key `i` of a word.
    #[inline(always)]
    fn of_word(word: u64, i: usize) -> Self {
        Self::from_register(word >> (8 * size_of::<Self>() * i))
    }

    /// The word of [`IN_WORD`](Self::IN_WORD) such keys.
    #[inline(always)]
    fn repeated(self) -> u64 {
        // The lowest bit of each key of the word.
        self.to_register() * (u64::MAX / Self::MAX.to_register())
    }
}

impl Narrow for u8 {}
impl Narrow for u16 {}

/// The division of an array into words. A borrowed array may begin and end inside a word.
#[derive(Clone, Copy)]
struct InWords {
    /// Keys before the first whole word.
    head: usize,
    /// Whole words.
    words: usize,
    /// Keys after the last whole word.
    tail: usize,
}

impl InWords {
    #[inline(always)]
    fn of<N: Narrow>(first: *const N, n: usize) -> Self {
        let begin = first as usize % WORD_BYTES / size_of::<N>();
        let head = ((N::IN_WORD - begin) % N::IN_WORD).min(n);
        Self { head, words: (n - head) / N::IN_WORD, tail: (n - head) % N::IN_WORD }
    }

    /// The index of the key that is not in a whole word and has number `i` of these keys, if there is one.
    #[inline(always)]
    fn outside<N: Narrow>(self, i: usize) -> Option<usize> {
        let Self { head, words, tail } = self;
        match i {
            _ if i < head => Some(i),
            _ if i < head + tail => Some(i + words * N::IN_WORD),
            _ => None,
        }
    }
}
