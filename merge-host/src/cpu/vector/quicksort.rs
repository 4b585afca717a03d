//! Quicksort by vectors, in place.
//!
//! ```text
//!   │ 3 7 1 9 8 2 5 6 │   pivot 5
//!   │     1 9 8 2     │   the outer ones are held in registers, so that there is room on both sides
//!   │ 1       8 2   9 │   a few more at a time, from the side with less room: what is less to the left, all else to the right
//!   │ 1 2           … │
//!   │ 3 1 2 │ 5 6 8 9 7 │   and in the end those that were held
//! ```
//!
//! What fits a core's own caches is sorted between two arrays, by [`near`], and few keys by networks. Where there is no
//! memory for the second array, the standard library sorts what would fit.

use super::coding::{Coding, code_all, splat};
use super::lanes::{Lanes, Word, load_rows, prefetch_rows};
use super::parts::{Part, Parts, Sides};
use super::{few, near};
use crate::allocation;
use std::hint::select_unpredictable;

/// Sampled words whose median is the pivot, of many words and of some. Of fewer it is that of three.
const SAMPLES: (usize, usize) = (32, 8);

/// From so many words on, more than three are sampled, and from so many on, many.
const SOME: usize = 1 << 9;
const MANY: usize = 1 << 12;

/// Words that are compared before it is decided whether more are.
const COMPARED: usize = 1 << 7;

/// Rows that are divided at a time.
const BATCH: usize = 8;

/// Rows of what is divided, at least.
pub(super) const LEAST_DIVIDED: usize = 2 * BATCH;

/// How many times so many are between those that are read and those that are asked for.
const AHEAD: usize = 2;

/// Bytes of words that fit a core's own caches, with as much scratch memory.
const NEAR_BYTES: usize = 1 << 16;

/// How often words are divided, at most, before they are sorted in another way: twice as often as with the best pivots.
pub(super) fn steps(len: usize) -> u32 {
    2 * len.max(1).ilog2()
}

/// Sorts `len` words as `coding` encodes them, and decodes them. They are divided up to `steps` times, and what is left
/// then is sorted in another way. Networks sort up to `ROWS` rows.
///
/// Words of more memory than a core's caches are encoded while they are divided for the first time, and decoded while
/// they are there.
///
/// # Safety
/// The processor has the instruction set; `words` points to `len` words.
#[inline(always)]
pub(super) unsafe fn sort<L: Lanes, const ROWS: usize>(
    words: *mut L::Word,
    len: usize,
    steps: u32,
    coding: Coding<L::Word>,
) {
    const { assert!(ROWS * L::LANES >= SAMPLES.0, "a network sorts samples") };
    let near_len = const { NEAR_BYTES / size_of::<L::Word>() };
    // Networks need none.
    let scratch_len = if len <= few::most::<L, ROWS>() { 0 } else { len.min(near_len) };
    let mut scratch: Vec<L::Word> = Vec::new();
    let has_scratch = allocation::handled(|| scratch.try_reserve_exact(scratch_len)).is_ok();
    let scratch = scratch.as_mut_ptr();
    let mut parts = Parts::of(Part { begin: 0, end: len, in_scratch: false, steps });
    let mut random = len as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let mut encode = coding.encode;
    if len <= near_len || steps == 0 {
        // SAFETY: the caller's promise.
        unsafe { code_all::<L>(words, len, encode) };
        encode = [L::Word::ZERO; 2];
    }
    while let Some(Part { begin, end, in_scratch, steps }) = parts.next() {
        let len = end - begin;
        // SAFETY: these are parts of the words.
        unsafe {
            let words = words.add(begin);
            let mut sorted = len;
            if len <= near_len && has_scratch {
                near::sort::<L, ROWS>(words, scratch, len, steps, &mut random);
            } else if len <= near_len || steps == 0 {
                // There is no memory, or pivots have been bad again and again.
                std::slice::from_raw_parts_mut(words, len).sort_unstable();
            } else {
                let Sampled { median, is_same } = sample::<L, ROWS>(words, len, &mut random, encode);
                if is_same && encode == [L::Word::ZERO; 2] && are_all(words, len, median) {
                    code_all::<L>(words, len, coding.decode);
                    continue;
                }
                let less = divide::<L>(words, len, median, encode);
                encode = [L::Word::ZERO; 2];
                // If none is less, those equal to the pivot are in order once they are in front.
                sorted = match less {
                    0 if median == L::Word::MAX => len,
                    0 => divide::<L>(words, len, median.next(), encode),
                    _ => 0,
                };
                let (less, rest) = (begin + less, begin + less.max(sorted));
                let part = Part { begin, end: less, in_scratch, steps: steps - 1 };
                parts.add(part, Part { begin: rest, end, ..part });
            }
            code_all::<L>(words, sorted, coding.decode);
        }
    }
}

/// What a sample of words tells of them.
pub(super) struct Sampled<W> {
    /// Its median, which is a good pivot.
    pub median: W,
    /// Whether all sampled words are the same.
    pub is_same: bool,
}

/// A sample of `len` words, of which there are more than a few, as those flips encode them.
///
/// # Safety
/// The processor has the instruction set; `from` points to `len` words.
#[inline(always)]
pub(super) unsafe fn sample<L: Lanes, const ROWS: usize>(
    from: *const L::Word,
    len: usize,
    random: &mut u64,
    encode: [L::Word; 2],
) -> Sampled<L::Word> {
    if len < SOME {
        // SAFETY: the caller's promise.
        let [a, b, c] = unsafe { [*from.add(len / 4), *from.add(len / 2), *from.add(len / 4 * 3)] };
        return Sampled { median: a.min(b).max(a.max(b).min(c)), is_same: a == b && b == c };
    }
    let mut sample = [L::Word::MAX; SAMPLES.0];
    let count = if len < MANY { SAMPLES.1 } else { SAMPLES.0 };
    let stride = len / count;
    // SAFETY: the caller's promise; each place is within its stride.
    unsafe {
        for (i, sampled) in sample[..count].iter_mut().enumerate() {
            // xorshift (Marsaglia, 2003).
            *random ^= *random << 13;
            *random ^= *random >> 7;
            *random ^= *random << 17;
            let within = ((u128::from(*random) * stride as u128) >> 64) as usize;
            *sampled = *from.add(i * stride + within);
        }
        let words = sample.as_mut_ptr();
        code_all::<L>(words, count, encode);
        few::sort::<L, ROWS>(words, words, count);
    }
    Sampled { median: sample[count / 2], is_same: sample[0] == sample[count - 1] }
}

/// Whether all of `len` words are the same as `word`.
///
/// # Safety
/// `from` points to `len` words.
#[inline(always)]
pub(super) unsafe fn are_all<W: Word>(from: *const W, len: usize, word: W) -> bool {
    // SAFETY: the caller's promise.
    let words = unsafe { std::slice::from_raw_parts(from, len) };
    for block in words.chunks(COMPARED) {
        // No branch for each word, so that the compiler uses vectors.
        let mut are_all = true;
        for other in block {
            are_all &= *other == word;
        }
        if !are_all {
            return false;
        }
    }
    true
}

/// Encodes words by those flips, and moves those that are less than `pivot` to the front. Gives how many these are.
///
/// # Safety
/// The processor has the instruction set; `words` points to `len` words, `2 * BATCH` rows at least.
#[inline(always)]
pub(super) unsafe fn divide<L: Lanes>(words: *mut L::Word, len: usize, pivot: L::Word, encode: [L::Word; 2]) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        if encode == [L::Word::ZERO; 2] {
            divide_encoded::<L>(words, len, pivot, |row| row)
        } else {
            let flips = splat::<L>(encode);
            divide_encoded::<L>(words, len, pivot, |row| row.coded(flips))
        }
    }
}

/// Does what [`divide`] does, with rows as `encode` makes them.
///
/// # Safety
/// As for `divide`.
#[inline(always)]
unsafe fn divide_encoded<L: Lanes>(words: *mut L::Word, len: usize, pivot: L::Word, encode: impl Fn(L) -> L) -> usize {
    let batch = BATCH * L::LANES;
    // What is not held and not read yet, and where words go next on both sides. There is room before `at` and after
    // `end`, for two batches in all.
    let (mut at, mut end) = (batch, len - batch);
    // SAFETY: the caller's promise. Of both sides, the one with less room gets that of what is read next, and so has
    // enough for all of it.
    unsafe {
        let mut sides = Sides::<L>::new([words; 2], (0, len), pivot);
        let held = [load_rows::<L, BATCH>(words), load_rows::<L, BATCH>(words.add(end))];
        while end - at >= batch {
            // Which side is next cannot be predicted, by the processor neither.
            prefetch_rows::<L, BATCH>(words.wrapping_add(at + AHEAD * batch));
            prefetch_rows::<L, BATCH>(words.wrapping_add(end).wrapping_sub((AHEAD + 1) * batch));
            for row in load_rows::<L, BATCH>(words.add(next_from(&mut at, &mut end, &sides, batch))) {
                sides.add_row(encode(row));
            }
        }
        while end - at >= L::LANES {
            sides.add_row(encode(L::load(words.add(next_from(&mut at, &mut end, &sides, L::LANES)))));
        }
        // All is room from here on.
        let rest = L::load_first(words.add(at), (end - at) as isize, L::splat(pivot));
        sides.add_first(encode(rest), end - at);
        for rows in held {
            for row in rows {
                sides.add_row(encode(row));
            }
        }
        sides.below
    }
}

/// Takes the next `count` words of those in `at..end` from the side with less room: gives where they begin. That cannot
/// be predicted, so that there is to be no branch.
#[inline(always)]
fn next_from<L: Lanes>(at: &mut usize, end: &mut usize, sides: &Sides<L>, count: usize) -> usize {
    let is_front = *at - sides.below <= sides.above - *end;
    let from = select_unpredictable(is_front, *at, *end - count);
    *at += select_unpredictable(is_front, count, 0);
    *end -= select_unpredictable(is_front, 0, count);
    from
}
