//! The first k keys in their order, without sorting the others: a radix select, in which each key is read twice as a rule.
//!
//! ```text
//!   count      keys by their first 11 bits      │ 31 │ 0 │ 57 │ 12 │ …        k = 40: the 40th key begins with bits 2
//!   choose                                                  ▲
//!   collect    those with less bits are among the first k ─► out
//!              those with these bits may be               ─► candidates, which are few
//!   count, choose     the candidates by their next 11 bits, and so on, until all bits of the k-th key are known
//!   collect    of the candidates those that are less      ─► out
//!              and the first ones that equal it           ─► out
//! ```
//!
//! What is collected keeps its order. Each block has the same chunk of the keys in all launches, and keeps how many of these have each digit: when the
//! digit of the k-th key is known, sums over the blocks before it say where a block's keys go. A sort of the k keys ends it.
//!
//! Where too many keys begin with the same bits, no candidates are collected, and all keys are read for each digit.

pub mod choose_digit;
pub mod collect;
pub mod count_chunks;
pub mod count_digit;

use crate::key::Bits;
use core::hint::assert_unchecked;
use cuda_std::prelude::*;

/// Bits of a digit.
pub const DIGIT_BITS: u32 = 11;

/// Digits that there are.
pub const DIGITS: usize = 1 << DIGIT_BITS;

/// Words in which digits are counted: two for each, the lower half of the count and the upper one.
pub const COUNT_WORDS: usize = 2 * DIGITS;

/// The most blocks that count and collect.
pub const MAX_BLOCKS: usize = 1024;

/// The keys of a chunk are a multiple of this.
pub const CHUNK_UNIT: usize = 8192;

/// Words for what blocks know of their chunks: two for each.
pub const PLACE_WORDS: usize = 2 * MAX_BLOCKS;

/// Numbers of [`Progress`].
pub const PROGRESS_NUMBERS: usize = 4;

/// How many digits keys of `bytes` bytes have.
pub const fn digits_of(bytes: usize) -> u32 {
    (8 * bytes as u32).div_ceil(DIGIT_BITS)
}

/// A digit of keys: the first one is number 0. The last one may have fewer bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digit {
    /// Bits below it.
    shift: u32,
    /// Its own.
    bits: u32,
}

impl Digit {
    /// Digit `number` of keys of `bytes` bytes.
    #[inline(always)]
    pub const fn of(bytes: usize, number: u32) -> Self {
        let above = number * DIGIT_BITS;
        let left = 8 * bytes as u32 - above;
        let bits = if left < DIGIT_BITS { left } else { DIGIT_BITS };
        Self { shift: left - bits, bits }
    }

    /// That of a key.
    #[inline(always)]
    pub fn get<B: Bits>(self, key: B) -> u32 {
        key.shifted_down(self.shift).to_register() as u32 & ((1 << self.bits) - 1)
    }

    /// The bits of the key down to this digit.
    #[inline(always)]
    pub fn prefix<B: Bits>(self, key: B) -> u64 {
        key.shifted_down(self.shift).to_register()
    }

    /// The bits of the key above this digit.
    #[inline(always)]
    pub fn above<B: Bits>(self, key: B) -> u64 {
        self.prefix(key) >> self.bits
    }
}

/// What is known of the k-th key.
#[derive(Clone, Copy)]
pub struct Progress {
    numbers: GlobalMut<u64>,
}

impl Progress {
    /// # Safety
    /// `first` points to [`PROGRESS_NUMBERS`] numbers, which one launch does not both read and write, but for one block.
    #[inline(always)]
    pub unsafe fn new(first: *mut u64) -> Self {
        // SAFETY: the caller's promise.
        Self { numbers: unsafe { GlobalMut::new(first, PROGRESS_NUMBERS) } }
    }

    /// Its first bits, as many as have been chosen.
    #[inline(always)]
    pub fn prefix(self) -> u64 {
        self.numbers.get(0)
    }

    /// Which one it is, from 1 on, of the candidates: those keys that begin with these bits.
    #[inline(always)]
    pub fn rank(self) -> u64 {
        self.numbers.get(1)
    }

    /// How many candidates there were of the first digit, if they have been collected, and else 0.
    #[inline(always)]
    pub fn collected(self) -> u64 {
        self.numbers.get(2)
    }

    /// How many keys begin with less than the first digit.
    #[inline(always)]
    pub fn before_collected(self) -> u64 {
        self.numbers.get(3)
    }
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
