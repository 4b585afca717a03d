//! The sorted keys, from the offsets of all keys.
//!
//! ```text
//!   offsets    0: 0   1: 1   2: 3   3: 3   4: 6
//!   words     │0 1 1 3│3 3 4 4│…                   a word has equal keys, unless an offset is inside it
//! ```

use super::{InWords, Narrow};
use crate::key::Coding;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, shuffle_idx};

/// Threads of a block.
pub const THREADS: u32 = 256;

/// Words of a lane.
const EACH: usize = 16;

/// Words of a block.
pub const BLOCK_WORDS: usize = THREADS as usize * EACH;

/// Kernel: sets `keys` to the keys in order, of which the keys with the ordered bits `code` begin at
/// `offsets[code]`.
///
/// # Safety
/// `keys` has `n` keys, fewer than 2^32, that nothing else uses, and `offsets` has [`Narrow::VALUES`] ascending words
/// of at most `n`, the first of them 0, in global memory. The blocks have [`THREADS`] threads, and [`BLOCK_WORDS`]
/// words of 8 bytes each. There is at least one block.
#[kernel(u8 = <u8>, u16 = <u16>)]
pub unsafe fn fill_keys<N: Narrow>(keys: *mut N, n: usize, offsets: *const u32, coding: Coding<N>) {
    let division = InWords::of(keys, n);
    // SAFETY: `offsets` has `VALUES` words, which this launch only reads. `keys` has `n` keys. The whole words begin at
    // a multiple of 8 bytes and end with the array or before. No two threads write the same word, or the same key
    // outside of the words.
    let (offsets, keys, words) = unsafe {
        let words = GlobalMut::new(keys.wrapping_add(division.head).cast::<u64>(), division.words);
        (Global::new(offsets, N::VALUES), GlobalMut::new(keys, n), words)
    };
    let offsets = Offsets { offsets, n: n as u32 };
    if thread::block_idx_x() == 0
        && let Some(i) = division.outside::<N>(thread::thread_idx_x() as usize)
    {
        let code = offsets.code_at(i as u32, 0, const { N::VALUES as u32 - 1 });
        keys.set(i, coding.decode(N::of_value(code)));
    }
    let warp = thread::index_1d() / WARP_SIZE;
    let begin = warp as usize * const { WARP_SIZE as usize * EACH };
    if begin < words.len() {
        let end = words.len().min(begin + const { WARP_SIZE as usize * EACH });
        fill(words.slice(begin, end - begin), (division.head + begin * N::IN_WORD) as u32, offsets, coding);
    }
}

/// Fills the words of a warp, the first of whose keys has the index `first`. The lanes of a warp make this call
/// together.
#[inline(always)]
#[track_caller]
fn fill<N: Narrow>(words: GlobalMut<u64>, first: u32, offsets: Offsets, coding: Coding<N>) {
    let (lane, in_word) = (warp::lane_id(), N::IN_WORD as u32);
    // Lane 0 searches the first key of the warp, and the other lanes the last one.
    let end = if lane == 0 { first } else { first + words.len() as u32 * in_word - 1 };
    let found = offsets.code_at(end, 0, const { N::VALUES as u32 - 1 });
    // SAFETY: the 32 lanes of the warp make this call together.
    let (mut code, last) = unsafe { (shuffle_idx(FULL_MASK, found, 0), shuffle_idx(FULL_MASK, found, 1)) };
    let mut end = offsets.end_of::<N>(code);
    let mut i = lane;
    while i < words.len() as u32 {
        let at = first + i * in_word;
        let mut word = 0;
        if at + in_word <= end {
            word = coding.decode(N::of_value(code)).repeated();
        } else {
            for key in 0..N::IN_WORD {
                if at + key as u32 >= end {
                    code = offsets.code_at(at + key as u32, code + 1, last);
                    end = offsets.end_of::<N>(code);
                }
                let bits = coding.decode(N::of_value(code)).to_register();
                word |= bits << (8 * size_of::<N>() * key);
            }
        }
        words.set(i as usize, word);
        i += WARP_SIZE;
    }
}

/// The offset of the first key of each code, and the number of keys.
#[derive(Clone, Copy)]
struct Offsets {
    offsets: Global<u32>,
    n: u32,
}

impl Offsets {
    /// The code of the key at `index`, which is one of `low..=high`.
    #[inline(always)]
    #[track_caller]
    fn code_at(self, index: u32, mut low: u32, mut high: u32) -> u32 {
        // The last code that begins at `index` or before: codes without keys come before the code with keys that
        // begins where they do.
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.offsets.get(middle as usize) <= index {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }

    /// Where the keys of a code end.
    #[inline(always)]
    #[track_caller]
    fn end_of<N: Narrow>(self, code: u32) -> u32 {
        if (code as usize) < N::VALUES - 1 { self.offsets.get(code as usize + 1) } else { self.n }
    }
}
