//! Quicksort by vectors, in place.
//!
//! ```text
//!   │ 3 7 1 9 8 2 5 6 │   pivot 5
//!   │     1 9 8 2     │   the outer words are held in registers, so that there is room on both sides
//!   │ 1       8 2   9 │   a few at a time, from the side with less room: lesser words to the left, others to the right
//!   │ 1 2           … │
//!   │ 3 1 2 │ 5 6 8 9 7 │   the held words come last
//! ```
//!
//! [`near`] sorts parts that fit a core's own caches, between two arrays, and networks sort few keys. If there is no
//! memory for the second array, the standard library sorts the parts that would fit.

use super::coding::{Coding, code_all, splat};
use super::few::Networks;
use super::lanes::{Divide, Word, load_rows, prefetch_rows};
use super::near;
use super::parts::{Part, Parts, Sides};
use crate::allocation;
use std::hint::select_unpredictable;

/// Number of words to sample for a pivot, which is their median: of `MANY` words or more, and of `SOME` or more. For
/// fewer words the pivot is the median of three.
const SAMPLES: (usize, usize) = (32, 8);

/// Least lengths for the smaller and for the larger of [`SAMPLES`].
const SOME: usize = 1 << 9;
const MANY: usize = 1 << 12;

/// Words that [`are_all`] compares before it branches.
const COMPARED: usize = 1 << 7;

/// Rows per batch of a division.
const BATCH: usize = 8;

/// Least number of rows that [`divide`] divides: two batches are held in registers.
pub(super) const LEAST_DIVIDED: usize = 2 * BATCH;

/// Prefetch distance, in batches.
const AHEAD: usize = 2;

/// Bytes of words that fit a core's own caches together with scratch memory of the same size.
const NEAR_BYTES: usize = 1 << 16;

/// The greatest number of divisions before a part is sorted in another way: twice the number that the best pivots need.
#[inline]
pub(super) fn steps(len: usize) -> u32 {
    2 * len.max(1).ilog2()
}

/// Sorts `len` words in the order of their encoding by `coding`, and decodes them. A part that remains after `steps`
/// divisions is sorted by the standard library.
///
/// Words that do not fit a core's caches are encoded during the first division, and each part is decoded while it is in
/// the cache.
///
/// # Safety
/// The processor has the instruction set; `words` points to `len` words.
#[inline(always)]
pub(super) unsafe fn sort<L: Networks + Divide>(words: *mut L::Word, len: usize, steps: u32, coding: Coding<L::Word>) {
    const { assert!(L::HALF >= SAMPLES.0, "a network sorts samples") };
    let near_len = const { NEAR_BYTES / size_of::<L::Word>() };
    let scratch_len = len.min(near_len);
    let mut scratch: Vec<L::Word> = Vec::new();
    let has_scratch = allocation::handled(|| scratch.try_reserve_exact(scratch_len)).is_ok();
    let scratch = scratch.as_mut_ptr();
    let mut parts = Parts::of(Part { begin: 0, end: len, in_scratch: false, steps });
    let mut random = len as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let mut encode = coding.encode;
    if len <= near_len || steps == 0 {
        // SAFETY: the processor has the instruction set, and `words` points to `len` words.
        unsafe { code_all::<L>(words, len, encode) };
        encode = [L::Word::ZERO; 2];
    }
    while let Some(Part { begin, end, in_scratch, steps }) = parts.next() {
        let len = end - begin;
        // SAFETY: the processor has the instruction set. Parts are subranges of `0..len`: `less` and `rest` are between
        // `begin` and `end`. A part for `near` has at most `near_len` words and at most all words, and `scratch` has as
        // many. `divide` gets more than `near_len` words, which are more than `LEAST_DIVIDED` rows.
        unsafe {
            let words = words.add(begin);
            let mut sorted = len;
            if len <= near_len && has_scratch {
                near::sort::<L>(words, scratch, len, steps, &mut random);
            } else if len <= near_len || steps == 0 {
                // There is no memory, or pivots have divided badly too often.
                std::slice::from_raw_parts_mut(words, len).sort_unstable();
            } else {
                let less;
                (less, sorted) = divide_at_sample::<L>(words, len, &mut random, encode);
                encode = [L::Word::ZERO; 2];
                let (less, rest) = (begin + less, begin + less.max(sorted));
                let part = Part { begin, end: less, in_scratch, steps: steps - 1 };
                parts.add(part, Part { begin: rest, end, ..part });
            }
            code_all::<L>(words, sorted, coding.decode);
        }
    }
}

/// Divides `len` words, encoded by the flips `encode`, at a pivot from a sample. Returns the number of words that are
/// less than the pivot, at the front, and the number of words at the front that are in order.
///
/// # Safety
/// The processor has the instruction set; `words` points to `len` words, more than [`LEAST_DIVIDED`] rows.
#[inline(always)]
unsafe fn divide_at_sample<L: Networks + Divide>(
    words: *mut L::Word,
    len: usize,
    random: &mut u64,
    encode: [L::Word; 2],
) -> (usize, usize) {
    // SAFETY: the caller ensures the instruction set, and `len` words, which are enough to be divided.
    unsafe {
        let Sampled { median, is_same } = sample::<L>(words, len, random, encode);
        if is_same && encode == [L::Word::ZERO; 2] && are_all(words, len, median) {
            return (0, len);
        }
        match divide::<L>(words, len, median, encode) {
            0 if median == L::Word::MAX => (0, len),
            // A second division moves the words that equal the pivot to the front, where they are in order.
            0 => (0, divide::<L>(words, len, median.next(), [L::Word::ZERO; 2])),
            less => (less, 0),
        }
    }
}

/// The result of a sample.
pub(super) struct Sampled<W> {
    /// The median of the sample: a good pivot.
    pub median: W,
    /// Whether all sampled words are the same.
    pub is_same: bool,
}

/// A sample of `len` words, encoded by the flips `encode`. There are more words than networks sort.
///
/// # Safety
/// The processor has the instruction set; `from` points to `len` words, at least one.
#[inline(always)]
pub(super) unsafe fn sample<L: Networks>(
    from: *const L::Word,
    len: usize,
    random: &mut u64,
    encode: [L::Word; 2],
) -> Sampled<L::Word> {
    if len < SOME {
        // SAFETY: `len` is positive, so that `len / 4`, `len / 2` and `len / 4 * 3` are less than `len`; `from` has
        // `len` words.
        let [a, b, c] = unsafe { [*from.add(len / 4), *from.add(len / 2), *from.add(len / 4 * 3)] };
        return Sampled { median: a.min(b).max(a.max(b).min(c)), is_same: a == b && b == c };
    }
    let mut sample = [L::Word::MAX; SAMPLES.0];
    let count = if len < MANY { SAMPLES.1 } else { SAMPLES.0 };
    let stride = len / count;
    // SAFETY: the processor has the instruction set. `within < stride`, so `i * stride + within < count * stride <=
    // len`. `sample` has `SAMPLES.0 >= count` words, at most `L::HALF`, as `sort` asserts.
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
        L::sort_few(words, words, count);
    }
    Sampled { median: sample[count / 2], is_same: sample[0] == sample[count - 1] }
}

/// Whether all `len` words equal `word`.
///
/// # Safety
/// `from` points to `len` words.
#[inline(always)]
pub(super) unsafe fn are_all<W: Word>(from: *const W, len: usize, word: W) -> bool {
    // SAFETY: `from` points to `len` words, and nothing writes to them during this function.
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

/// Encodes words by the flips `encode`, and moves the words less than `pivot` to the front. Returns their number.
///
/// # Safety
/// The processor has the instruction set; `words` points to `len` words, at least `2 * BATCH` rows.
#[inline(always)]
pub(super) unsafe fn divide<L: Divide>(words: *mut L::Word, len: usize, pivot: L::Word, encode: [L::Word; 2]) -> usize {
    // SAFETY: the conditions of `divide_encoded` and `splat` are the instruction set and `2 * BATCH` rows of words,
    // which this function requires.
    unsafe {
        if encode == [L::Word::ZERO; 2] {
            divide_encoded::<L>(words, len, pivot, |row| row)
        } else {
            let flips = splat::<L>(encode);
            divide_encoded::<L>(words, len, pivot, |row| row.coded(flips))
        }
    }
}

/// [`divide`], with `encode` applied to each row.
///
/// # Safety
/// The processor has the instruction set; `words` points to `len` words, at least `2 * BATCH` rows.
#[inline(always)]
unsafe fn divide_encoded<L: Divide>(words: *mut L::Word, len: usize, pivot: L::Word, encode: impl Fn(L) -> L) -> usize {
    let batch = BATCH * L::LANES;
    // The unread words are `at..end`. Words to write go from `sides.below` up to `at`, and from `sides.above` down to
    // `end`. These two rooms have two batches together, because two batches are held in registers.
    let (mut at, mut end) = (batch, len - batch);
    // SAFETY: the processor has the instruction set. Reads are within `at..end`, and `len >= 2 * batch`. Before a read
    // of `count <= batch` words both rooms have `2 * batch` words together. The side with less room gets `count` more,
    // and the other side has at least `batch`. So each side has room for all `count` words, one row after the other.
    // The last `end - at` words join both rooms. From then on each row is stored within `below..above`, which has at
    // least the words that are still to be stored.
    unsafe {
        let mut sides = Sides::<L>::new([words; 2], (0, len), pivot);
        let held = [load_rows::<L, BATCH>(words), load_rows::<L, BATCH>(words.add(end))];
        while end - at >= batch {
            // The hardware prefetcher cannot predict which side is read next.
            prefetch_rows::<L, BATCH>(words.wrapping_add(at + AHEAD * batch));
            prefetch_rows::<L, BATCH>(words.wrapping_add(end).wrapping_sub((AHEAD + 1) * batch));
            for row in load_rows::<L, BATCH>(words.add(next_from(&mut at, &mut end, &sides, batch))) {
                sides.add_row(encode(row));
            }
        }
        while end - at >= L::LANES {
            sides.add_row(encode(L::load(words.add(next_from(&mut at, &mut end, &sides, L::LANES)))));
        }
        // Both rooms are one from here on.
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

/// Takes the next `count` words of `at..end` from the side with less room, and returns the index of the first. The side
/// cannot be predicted, so the function has no branch.
#[inline(always)]
fn next_from<L: Divide>(at: &mut usize, end: &mut usize, sides: &Sides<L>, count: usize) -> usize {
    let is_front = *at - sides.below <= sides.above - *end;
    let from = select_unpredictable(is_front, *at, *end - count);
    *at += select_unpredictable(is_front, count, 0);
    *end -= select_unpredictable(is_front, 0, count);
    from
}
