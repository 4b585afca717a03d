//! The first k keys in their order, without sorting the others: a radix select of those that a sample tells to be among the first, for which each key is read once.
//!
//! ```text
//!   sample     the bits that all keys begin with, and a bound that a few more than k keys do not exceed
//!   gather     the keys that do not exceed it             ─► pages
//!   pack       one behind the other                       ─► candidates, if there are k or more
//!   count      candidates by their next 11 bits, or all keys if there are no candidates: and so on, as follows
//! ```
//!
//! A sample cannot promise that. If the bound was too low, if there was room for no more, or if many keys are alike or k is not small, so that there is no bound, all keys are
//! read twice as a rule:
//!
//! ```text
//!   count      keys by their next 11 bits       │ 31 │ 0 │ 57 │ 12 │ …        k = 40: the 40th key has bits 2 there
//!   choose                                                  ▲
//!   collect    those with less bits are among the first k ─► out
//!              those with these bits may be               ─► candidates, which are few
//!   count, choose     the candidates by their next 11 bits, and so on, until all bits of the k-th key are known
//!   collect    of the candidates those that are less      ─► out
//!              and the first ones that equal it           ─► out
//! ```
//!
//! Keys that begin with less than what has been guessed are counted, too. If the k-th key turns out not to begin with it, its digits are chosen from the
//! first one on.
//!
//! What is collected keeps its order. Each block has the same chunk of the keys in all launches, and keeps how many of these have each digit: when the
//! digit of the k-th key is known, sums over the blocks before it say where a block's keys go. A sort of the k keys ends it.
//!
//! Where too many keys have the same digit, no candidates are collected, and all keys are read for the next one.

pub mod choose_digit;
pub mod collect;
pub mod count_chunks;
pub mod count_digit;
pub mod gather;
pub mod pack;
pub mod take_sample;

use crate::key::Bits;
use core::hint::assert_unchecked;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, reduce_max};

/// Bits of a digit.
pub const DIGIT_BITS: u32 = 11;

/// Digits that there are.
pub const DIGITS: usize = 1 << DIGIT_BITS;

/// What keys are counted by: digits, and one for keys that begin with less than the k-th key.
pub const COUNTS: usize = DIGITS + 1;

/// Which of the counts is of keys that begin with less.
const BELOW: usize = DIGITS;

/// Words in which all keys are counted: two for each count, its lower half and its upper one.
pub const COUNT_WORDS: usize = 2 * COUNTS;

/// The most blocks that count and collect.
pub const MAX_BLOCKS: usize = 1024;

/// The keys of a chunk are a multiple of this.
pub const CHUNK_UNIT: usize = 8192;

/// Words for what blocks know of their chunks: two for each.
pub const PLACE_WORDS: usize = 2 * MAX_BLOCKS;

/// Numbers of [`Progress`].
pub const PROGRESS_NUMBERS: usize = 10;

/// The number of no digit: candidates are those that have been gathered before the first one.
pub const GATHERED: u32 = u32::MAX - 1;

/// Keys of a thread of `gather` and `collect`, for keys of 4 bytes and of 8.
const KEYS4: usize = 16;
const KEYS8: usize = KEYS4 / 2;

/// The most digits that are chosen of keys of `bytes` bytes: those of a key, and one that a wrong guess has cost.
pub const fn most_digits(bytes: usize) -> u32 {
    (8 * bytes as u32).div_ceil(DIGIT_BITS) + 1
}

/// Bits of a key that are compared at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digit {
    /// Bits below it.
    shift: u32,
    /// Its own.
    bits: u32,
}

impl Digit {
    /// The first digit of the last `left` bits of a key.
    #[inline(always)]
    fn of_left(left: u32) -> Self {
        let bits = if left < DIGIT_BITS { left } else { DIGIT_BITS };
        Self { shift: left - bits, bits }
    }

    /// That of a key.
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

/// The bits of a key but for the last `left` ones.
#[inline(always)]
fn prefix<B: Bits>(key: B, left: u32) -> u64 {
    key.to_register().checked_shr(left).unwrap_or(0)
}

/// What is known of the k-th key.
#[derive(Clone, Copy)]
pub struct Progress {
    numbers: GlobalMut<u64>,
}

impl Progress {
    /// # Safety
    /// `first` points to [`PROGRESS_NUMBERS`] numbers, of which one launch does not both read and write any, but for one block.
    #[inline(always)]
    pub unsafe fn new(first: *mut u64) -> Self {
        // SAFETY: the caller's promise.
        Self { numbers: unsafe { GlobalMut::new(first, PROGRESS_NUMBERS) } }
    }

    /// Its first bits: those that have been chosen, or guessed.
    #[inline(always)]
    fn prefix(self) -> u64 {
        self.numbers.get(0)
    }

    /// How many bits follow these.
    #[inline(always)]
    fn left(self) -> u32 {
        self.numbers.get(1) as u32
    }

    /// How many of the first bits are the digit that has been chosen last. 0 if what has been guessed was wrong.
    #[inline(always)]
    fn chosen_bits(self) -> u32 {
        self.numbers.get(2) as u32
    }

    /// How many digits have been counted and chosen.
    #[inline(always)]
    fn digits(self) -> u32 {
        self.numbers.get(7) as u32
    }

    /// Which one it is, from 1 on, of the candidates: those keys that begin with these bits.
    #[inline(always)]
    fn rank(self) -> u64 {
        self.numbers.get(3)
    }

    /// How many candidates there were when they were collected, if they have been, and else 0.
    #[inline(always)]
    fn collected(self) -> u64 {
        self.numbers.get(4)
    }

    /// How many keys were less than these.
    #[inline(always)]
    fn before_collected(self) -> u64 {
        self.numbers.get(5)
    }

    /// After the choice of which digit candidates are collected, from 0 on.
    #[inline(always)]
    fn collection(self) -> u32 {
        self.numbers.get(6) as u32
    }

    /// What the k-th key does not exceed, probably, if the sample has told.
    #[inline(always)]
    fn bound(self) -> Option<u64> {
        if self.numbers.get(8) > 0 { Some(self.numbers.get(9)) } else { None }
    }

    /// Sets the bound.
    #[inline(always)]
    fn set_bound(self, bound: u64) {
        self.numbers.set(8, 1);
        self.numbers.set(9, bound);
    }

    /// Sets the first bits, how many follow, and how many of them have been chosen last.
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

    /// Has that many candidates be collected, behind so many keys, after the choice of digit `number`.
    #[inline(always)]
    fn set_collection(self, candidates: u64, before: u64, number: u32) {
        self.numbers.set(4, candidates);
        self.numbers.set(5, before);
        self.numbers.set(6, number as u64);
    }
}

/// The first of `VT` rows in which a lane has a key that is wanted, and this lane's rows without it; or `None` if there is none. A bit of `rows` is a row.
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

/// What a block reads of an array of keys: as many as the others, one behind the other, but for the last ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk {
    begin: usize,
    end: usize,
}

impl Chunk {
    /// That of this block in an array of `len` keys.
    #[inline(always)]
    fn of_block(len: usize) -> Self {
        let blocks = thread::grid_dim_x() as usize;
        // SAFETY: a grid has a block. A division by 0 would bring in the code of a panic.
        unsafe { assert_unchecked(blocks != 0) };
        let keys = len.div_ceil(blocks).next_multiple_of(CHUNK_UNIT);
        let begin = (thread::block_idx_x() as usize * keys).min(len);
        Self { begin, end: (begin + keys).min(len) }
    }
}

/// For each block, how many keys of its chunk are less than the k-th key as far as that is known, and how many may equal it.
#[derive(Clone, Copy)]
struct Places {
    words: GlobalMut<u32>,
}

impl Places {
    /// # Safety
    /// `first` points to [`PLACE_WORDS`] words, which one launch does not both read and write, but for each block its own two.
    #[inline(always)]
    unsafe fn new(first: *mut u32) -> Self {
        // SAFETY: the caller's promise.
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
