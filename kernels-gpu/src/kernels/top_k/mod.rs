//! The first k keys in order, without a sort of the others: a radix select among the keys that a sample's bound admits.
//! Each key is usually read once.
//!
//! ```text
//!   sample     the common prefix of all keys, and a bound that slightly more than k keys do not exceed
//!   gather     the keys that do not exceed the bound      ─► pages
//!   pack       the pages in the order of the keys         ─► candidates, if there are at least k
//!   count      candidates by their next 11 bits, or all keys if there are no candidates, and so on as below
//! ```
//!
//! A sample guarantees nothing. The bound may be too low, or the pages may not suffice. There is no bound if many keys
//! are alike or k is large. In all these cases, all keys are usually read twice:
//!
//! ```text
//!   count      keys by their next 11 bits       │ 31 │ 0 │ 57 │ 12 │ …        k = 40: the 40th key has digit 2
//!   choose                                                  ▲
//!   collect    keys with a lesser digit are among the first k  ─► out
//!              keys with this digit may be                     ─► candidates, few
//!   count, choose     the candidates by their next 11 bits, and so on, until all bits of the k-th key are known
//!   collect    candidates less than the k-th key               ─► out
//!              the first candidates that equal it              ─► out
//! ```
//!
//! Keys with a prefix less than the guessed one are counted, too. If the k-th key turns out not to have the guessed
//! prefix, its digits are chosen again from the first one.
//!
//! The collected keys keep their order. A block has the same chunk of the keys in all launches and keeps the histogram
//! of its chunk. Once the digit of the k-th key is known, sums over earlier blocks give the output index of a block's
//! keys. A sort of the k keys comes last.
//!
//! If too many keys have the same digit, no candidates are collected, and the next digit is counted over all keys.
//!
//! [`segments`] has the kernels for the first k keys of each of many segments.

pub mod choose_digit;
pub mod collect;
pub mod count_chunks;
pub mod count_digit;
pub mod gather;
pub mod pack;
pub mod segments;
pub mod take_sample;

use crate::elements::{Arrays, Slice, Source, has_values};
use crate::key::{Bits, Coding};
use core::hint::assert_unchecked;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, reduce_max};

/// Bits of a digit.
pub const DIGIT_BITS: u32 = 11;

/// Number of digit values.
pub const DIGITS: usize = 1 << DIGIT_BITS;

/// Counters of a histogram: one per digit value, and one for keys with a prefix less than the k-th key's.
pub const COUNTS: usize = DIGITS + 1;

/// Index of the counter of keys with a lesser prefix.
const BELOW: usize = DIGITS;

/// Words of the histogram of all keys: a lower and an upper half for each count.
pub const COUNT_WORDS: usize = 2 * COUNTS;

/// Maximum number of blocks that count and collect.
pub const MAX_BLOCKS: usize = 1024;

/// The number of keys of a chunk is a multiple of this.
pub const CHUNK_UNIT: usize = 8192;

/// Words of the numbers that blocks keep about their chunks: two per block.
pub const PLACE_WORDS: usize = 2 * MAX_BLOCKS;

/// Number of words of [`Progress`].
pub const PROGRESS_NUMBERS: usize = 12;

/// Stands for a digit's number if the candidates were gathered before the first digit.
pub const GATHERED: u32 = u32::MAX - 1;

/// Keys per thread of `gather` and `collect`, for keys of 4 bytes and of 8.
const KEYS4: usize = 16;
const KEYS8: usize = KEYS4 / 2;

/// Maximum number of digits that are chosen for keys of `bytes` bytes: the digits of a key, and one more after a wrong
/// guess.
pub const fn most_digits(bytes: usize) -> u32 {
    (8 * bytes as u32).div_ceil(DIGIT_BITS) + 1
}

/// A digit: bits of a key that are compared at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digit {
    /// Number of bits below the digit.
    shift: u32,
    /// Number of bits of the digit.
    bits: u32,
}

impl Digit {
    /// The first digit of the last `left` bits of a key.
    #[inline(always)]
    fn of_left(left: u32) -> Self {
        let bits = if left < DIGIT_BITS { left } else { DIGIT_BITS };
        Self { shift: left - bits, bits }
    }

    /// The digit of a key.
    #[inline(always)]
    fn get<B: Bits>(self, key: B) -> u32 {
        self.prefix(key) as u32 & ((1 << self.bits) - 1)
    }

    /// The bits of the key down to this digit.
    #[inline(always)]
    fn prefix<B: Bits>(self, key: B) -> u64 {
        prefix(key, self.shift)
    }

    /// The bits of the key above this digit.
    #[inline(always)]
    fn above<B: Bits>(self, key: B) -> u64 {
        self.prefix(key) >> self.bits
    }
}

/// The bits of the key without the last `left` ones.
#[inline(always)]
fn prefix<B: Bits>(key: B, left: u32) -> u64 {
    key.to_register().checked_shr(left).unwrap_or(0)
}

/// The state of the search for the k-th key.
#[derive(Clone, Copy)]
pub struct Progress {
    numbers: GlobalMut<u64>,
}

impl Progress {
    /// # Safety
    /// `first` points to [`PROGRESS_NUMBERS`] words. A launch of several blocks does not both read and write a word.
    #[inline(always)]
    pub unsafe fn new(first: *mut u64) -> Self {
        // SAFETY: the caller passes `PROGRESS_NUMBERS` words at `first`, and no two blocks of a launch access a word if
        // one of the two writes it.
        Self { numbers: unsafe { GlobalMut::new(first, PROGRESS_NUMBERS) } }
    }

    /// The chosen or guessed prefix of the k-th key.
    #[inline(always)]
    fn prefix(self) -> u64 {
        self.numbers.get(0)
    }

    /// Number of bits after the prefix.
    #[inline(always)]
    fn left(self) -> u32 {
        self.numbers.get(1) as u32
    }

    /// Number of bits of the digit chosen last, at the end of the prefix. 0 if the guessed prefix was wrong.
    #[inline(always)]
    fn chosen_bits(self) -> u32 {
        self.numbers.get(2) as u32
    }

    /// Number of digits counted and chosen.
    #[inline(always)]
    fn digits(self) -> u32 {
        self.numbers.get(7) as u32
    }

    /// Rank of the k-th key, from 1, among the candidates, which are the keys with the prefix.
    #[inline(always)]
    fn rank(self) -> u64 {
        self.numbers.get(3)
    }

    /// Number of candidates at their collection, or 0 if none have been collected.
    #[inline(always)]
    fn collected(self) -> u64 {
        self.numbers.get(4)
    }

    /// Number of keys that were less than the collected candidates.
    #[inline(always)]
    fn before_collected(self) -> u64 {
        self.numbers.get(5)
    }

    /// Number, from 0, of the digit after which candidates are collected.
    #[inline(always)]
    fn collection(self) -> u32 {
        self.numbers.get(6) as u32
    }

    /// The sample's bound, if any, which the k-th key probably does not exceed.
    #[inline(always)]
    fn bound(self) -> Option<u64> {
        if self.numbers.get(8) > 0 { Some(self.numbers.get(9)) } else { None }
    }

    /// Number of keys.
    #[inline(always)]
    fn keys(self) -> usize {
        self.numbers.get(10) as usize
    }

    /// Number of keys that are selected.
    #[inline(always)]
    fn selected(self) -> usize {
        self.numbers.get(11) as usize
    }

    /// Sets the number of keys, and of those that are selected.
    #[inline(always)]
    fn set_lengths(self, keys: usize, selected: usize) {
        self.numbers.set(10, keys as u64);
        self.numbers.set(11, selected as u64);
    }

    /// Sets the bound.
    #[inline(always)]
    fn set_bound(self, bound: u64) {
        self.numbers.set(8, 1);
        self.numbers.set(9, bound);
    }

    /// Sets the prefix, the number of bits after it, and the number of its bits that were chosen last.
    #[inline(always)]
    fn set_prefix(self, prefix: u64, left: u32, chosen_bits: u32) {
        self.numbers.set(0, prefix);
        self.numbers.set(1, left as u64);
        self.numbers.set(2, chosen_bits as u64);
    }

    /// Sets the rank, after the choice of digit `number`.
    #[inline(always)]
    fn set_rank(self, rank: u64, number: u32) {
        self.numbers.set(3, rank);
        self.numbers.set(7, number as u64 + 1);
    }

    /// Requests the collection of `candidates` candidates, `before` lesser keys in front, after the choice of digit
    /// `number`.
    #[inline(always)]
    fn set_collection(self, candidates: u64, before: u64, number: u32) {
        self.numbers.set(4, candidates);
        self.numbers.set(5, before);
        self.numbers.set(6, number as u64);
    }
}

/// The first of `VT` rows where any lane has a bit in `rows`, and this lane's `rows` without that row. `None` if no
/// lane has a bit.
///
/// # Safety
/// All lanes of the warp make this call.
#[inline(always)]
unsafe fn next_row<const VT: usize>(rows: u32) -> Option<(usize, u32)> {
    // SAFETY: `FULL_MASK` names the warp's 32 lanes, which make this call together.
    let left = unsafe { reduce_max(FULL_MASK, (VT as u32).saturating_sub(rows.trailing_zeros())) };
    let row = VT as u32 - left;
    if left == 0 { None } else { Some((row as usize, rows & !(1 << row))) }
}

/// The elements that a launch reads. An element has its index as its value where there are no values.
#[derive(Clone, Copy)]
struct Input<B, V> {
    source: Source<B, V>,
    coding: Coding<B>,
    has_indices: bool,
}

impl<B: Bits, V: Word> Input<B, V> {
    /// The elements of `from`, with indices for values if `from.values` is null.
    ///
    /// # Safety
    /// There are `from.len` elements, which nothing writes during the launch.
    #[inline(always)]
    unsafe fn new(from: Slice<B, V>, coding: Coding<B>) -> Self {
        // SAFETY: the caller passes `from.len` elements that nothing writes. Null pointers of values are not read: then
        // `has_indices` is true or `V` is `()`.
        Self { source: unsafe { from.source() }, coding, has_indices: from.at.values.is_null() }
    }

    /// Key `i`, as ordered bits.
    #[inline(always)]
    #[track_caller]
    fn key(self, i: usize) -> B {
        self.coding.encode(self.source.keys.get(i))
    }

    /// The keys of a lane: `first` and every 32nd after it, as ordered bits. The greatest key stands for each key from
    /// `end` on.
    #[inline(always)]
    #[track_caller]
    fn rows<const VT: usize>(self, first: usize, end: usize, is_full: bool) -> [B; VT] {
        let row = |i: usize| first + i * WARP_SIZE as usize;
        let mut found = [self.coding.decode(B::MAX); VT];
        // Full and partial tiles have separate code, so that full tiles need no bounds checks.
        if is_full {
            for i in 0..VT {
                found[i] = self.source.keys.get(row(i));
            }
        } else {
            for i in 0..VT {
                if row(i) < end {
                    found[i] = self.source.keys.get(row(i));
                }
            }
        }
        self.coding.encode_all(&mut found);
        found
    }

    /// Sets element `to` of `out` to `key` with the value of element `i`.
    #[inline(always)]
    #[track_caller]
    fn copy(self, i: usize, key: B, out: Arrays<B, V>, to: usize) {
        out.keys.set(to, key);
        if has_values::<V>() {
            let value = if self.has_indices { V::from_register(i as u64) } else { self.source.values.get(i) };
            out.values.set(to, value);
        }
    }
}

/// A block's range of an array of keys. All chunks but the last ones have the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk {
    begin: usize,
    end: usize,
}

impl Chunk {
    /// The chunk of this block in an array of `len` keys.
    #[inline(always)]
    fn of_block(len: usize) -> Self {
        let blocks = thread::grid_dim_x() as usize;
        // SAFETY: a grid has at least one block. Without this hint, the division would compile to code that can panic.
        unsafe { assert_unchecked(blocks != 0) };
        let keys = len.div_ceil(blocks).next_multiple_of(CHUNK_UNIT);
        let begin = (thread::block_idx_x() as usize * keys).min(len);
        Self { begin, end: (begin + keys).min(len) }
    }
}

/// For each block, the number of its chunk's keys known to be less than the k-th key, and the number that may equal it.
#[derive(Clone, Copy)]
struct Places {
    words: GlobalMut<u32>,
}

impl Places {
    /// # Safety
    /// `first` points to [`PLACE_WORDS`] words. A launch does not both read and write a word, except for a block's own
    /// two words.
    #[inline(always)]
    unsafe fn new(first: *mut u32) -> Self {
        // SAFETY: the caller passes `PLACE_WORDS` words at `first`, and no two blocks of a launch access a word if one
        // of the two writes it.
        Self { words: unsafe { GlobalMut::new(first, PLACE_WORDS) } }
    }

    /// The two numbers of a block.
    #[inline(always)]
    #[track_caller]
    fn of_block(self, block: u32) -> [u32; 2] {
        [self.words.get(2 * block as usize), self.words.get(2 * block as usize + 1)]
    }

    #[inline(always)]
    #[track_caller]
    fn set(self, block: u32, [less, equal]: [u32; 2]) {
        self.words.set(2 * block as usize, less);
        self.words.set(2 * block as usize + 1, equal);
    }
}
