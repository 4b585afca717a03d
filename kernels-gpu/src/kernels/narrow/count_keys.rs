//! The histogram of keys of 1 and 2 bytes.
//!
//! ```text
//!   1 byte    word 32·key + lane          a counter for each lane: lanes never wait for each other
//!   2 bytes   word key mod 2^15           two counters of 16 bits: │ key ≥ 2^15 │ key < 2^15 │
//!             ≥ 2^15?                     2^15 keys go from the counter to global memory
//! ```
//!
//! Equal keys of 2 bytes in a warp would wait for each other. The keys that equal the first one of the warp are
//! therefore added at once.

use super::{InWords, Narrow};
use crate::block::counters::Counters;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, ballot, shuffle_idx};

/// Threads of a block, for keys of 1 byte and of 2 bytes.
pub const THREADS: [usize; 2] = [512, 1024];

/// Blocks of a multiprocessor, for keys of 1 byte and of 2 bytes.
pub const BLOCKS: [usize; 2] = [4, 1];

/// Words that a thread loads at once.
const AT_ONCE: usize = 4;

/// Words of a tile, for keys of this many bytes.
pub const fn tile(key_bytes: usize) -> usize {
    AT_ONCE * THREADS[key_bytes - 1]
}

/// Counters of a key of 1 byte.
const COPIES: usize = 32;

/// Counters of keys of 2 bytes in a word.
const IN_WORD: usize = 2;

/// A counter of 16 bits passes this number to global memory when it reaches it.
const MOST: u32 = 1 << 15;

/// Bytes of dynamic shared memory, for keys of this many bytes.
pub const fn shared_bytes(key_bytes: usize) -> u32 {
    4 * counter_words(key_bytes) as u32
}

const fn counter_words(key_bytes: usize) -> usize {
    match key_bytes {
        1 => COPIES << 8,
        _ => (1 << 16) / IN_WORD,
    }
}

/// Kernel: adds the number of keys with the bits `value` to word `value` of `counts`.
///
/// # Safety
/// `keys` has `n` keys, fewer than 2^32, that nothing writes, and `counts` has [`Narrow::VALUES`] words, in global
/// memory. The blocks have `NT` threads, with [`shared_bytes`].
#[kernel(u8 = <u8, 512> within (512, 4), u16 = <u16, 1024> within (1024, 1))]
pub unsafe fn count_keys<N: Narrow, const NT: usize>(keys: *const N, n: usize, counts: *mut u32) {
    const { assert!(NT == THREADS[size_of::<N>() - 1]) };
    let division = InWords::of(keys, n);
    // SAFETY: `counts` has `VALUES` words, to which blocks only add. The launch has `shared_bytes`, and barriers
    // separate clearing, atomic additions and reads of the counters.
    let block = unsafe {
        let words = Shared::dynamic(0, const { counter_words(size_of::<N>()) } as u32);
        Block { words, counts: GlobalMut::new(counts, N::VALUES) }
    };
    crate::block::clear::<NT>(block.words, block.words.len());
    thread::sync_threads();
    // SAFETY: `keys` has `n` keys that nothing writes. The whole words begin at a multiple of 8 bytes and end with the
    // array or before.
    let (keys, words) =
        unsafe { (Global::new(keys, n), Global::new(keys.wrapping_add(division.head).cast::<u64>(), division.words)) };
    if thread::block_idx_x() == 0
        && let Some(i) = division.outside::<N>(thread::thread_idx_x() as usize)
    {
        block.add(keys.get(i), 1);
    }
    block.count::<N, NT>(words);
    thread::sync_threads();
    block.pass_on::<N, NT>();
}

/// The counters of a block, and of all blocks.
#[derive(Clone, Copy)]
struct Block {
    words: Shared<u32>,
    counts: GlobalMut<u32>,
}

impl Block {
    /// Counts the keys of this block's tiles. The next tile is loaded before a tile is counted.
    #[inline(always)]
    #[track_caller]
    fn count<N: Narrow, const NT: usize>(self, words: Global<u64>) {
        let (tile, step) = (const { AT_ONCE * NT }, thread::grid_dim_x() as usize * const { AT_ONCE * NT });
        let whole = words.len() / tile * tile;
        let mut begin = thread::block_idx_x() as usize * tile;
        let mut next = [0; AT_ONCE];
        if begin < whole {
            next = load::<NT>(words, begin);
        }
        while begin < whole {
            let own = next;
            if begin + step < whole {
                next = load::<NT>(words, begin + step);
            }
            for i in 0..AT_ONCE {
                self.count_word::<N>(own[i]);
            }
            if size_of::<N>() == 2 {
                // Between two barriers a block adds at most `4 * AT_ONCE * NT = MOST / 2` keys. A counter is below
                // `MOST` at each barrier, because a thread whose key makes it reach `MOST` subtracts `MOST` before the
                // next one. So it stays below 2^16 in between, and reaches `MOST` at most once.
                const { assert!(size_of::<N>() != 2 || N::IN_WORD * AT_ONCE * NT <= MOST as usize / 2) };
                thread::sync_threads();
            }
            begin += step;
        }
        // The block whose turn it is takes the last words. They are fewer than those of a tile.
        let mut i = whole + thread::thread_idx_x() as usize;
        while begin == whole && i < words.len() {
            let word = words.get(i);
            for key in 0..N::IN_WORD {
                self.add(N::of_word(word, key), 1);
            }
            i += NT;
        }
    }

    /// Adds the keys of a word. The lanes of a warp make this call together.
    #[inline(always)]
    #[track_caller]
    fn count_word<N: Narrow>(self, word: u64) {
        if size_of::<N>() == 1 {
            for i in 0..N::IN_WORD {
                self.add(N::of_word(word, i), 1);
            }
            return;
        }
        // SAFETY: the 32 lanes of the warp make this call together, and no branch surrounds it.
        let first = unsafe { shuffle_idx(FULL_MASK, N::of_word(word, 0).value(), 0) };
        let mut equal = 0;
        for i in 0..N::IN_WORD {
            let key = N::of_word(word, i);
            let is_equal = key.value() == first;
            // SAFETY: the 32 lanes of the warp make this call together, and no branch surrounds it.
            equal += unsafe { ballot(FULL_MASK, is_equal) }.count_ones();
            if !is_equal {
                self.add(key, 1);
            }
        }
        if warp::lane_id() == 0 {
            self.add(N::of_value(first), equal);
        }
    }

    /// Adds `count` keys, at most [`MOST`]` / 2`.
    #[inline(always)]
    #[track_caller]
    fn add<N: Narrow>(self, key: N, count: u32) {
        let value = key.value();
        if size_of::<N>() == 1 {
            Counters::<{ COPIES as u32 }>(self.words).add(value);
            return;
        }
        let (word, shift) = (value % MOST, value / MOST * 16);
        let before = self.words.fetch_add(word, count << shift) >> shift & 0xffff;
        if before < MOST && before + count >= MOST {
            self.words.fetch_add(word, (MOST << shift).wrapping_neg());
            self.counts.fetch_add(value as usize, MOST);
        }
    }

    /// Adds the counters of the block to those of all blocks.
    #[inline(always)]
    #[track_caller]
    fn pass_on<N: Narrow, const NT: usize>(self) {
        if size_of::<N>() == 1 {
            Counters::<{ COPIES as u32 }>(self.words).add_to::<NT>(self.counts);
            return;
        }
        let mut word = thread::thread_idx_x();
        while word < self.words.len() {
            let both = self.words.get(word);
            for half in 0..IN_WORD as u32 {
                let count = both >> (16 * half) & 0xffff;
                if count > 0 {
                    self.counts.fetch_add((word + half * MOST) as usize, count);
                }
            }
            word += NT as u32;
        }
    }
}

/// The words of a thread in the tile that begins at word `begin`, striped.
#[inline(always)]
#[track_caller]
fn load<const NT: usize>(words: Global<u64>, begin: usize) -> [u64; AT_ONCE] {
    let (mut own, thread) = ([0; AT_ONCE], thread::thread_idx_x() as usize);
    for i in 0..AT_ONCE {
        own[i] = words.get(begin + i * NT + thread);
    }
    own
}
