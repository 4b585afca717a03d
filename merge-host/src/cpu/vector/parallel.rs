//! Quicksort on several threads, in place.
//!
//! ```text
//!   part       │ piece 0       │ piece 1       │      each thread divides pieces by the part's pivot
//!              │ less  │ other │ less  │ other │
//!               │ less  │ less  │ other │ other │      words on the wrong side change places
//! ```
//!
//! Parts are divided like this until they are a fraction of a thread's share of all words. Then one thread sorts each.
//! If there is no memory for the lists of parts and pieces, one thread sorts all words.

use super::coding::Coding;
use super::instructions::Instructions;
use super::lanes::Word;
use super::quicksort::steps;
use crate::cpu::memory::{collected, push};
use crate::{Error, parallel};

/// Least number of words of a piece: far more than a division holds in registers.
const PIECE: usize = 1 << 15;

/// One thread sorts a part of at most this fraction of its share of all words.
const PARTS_PER_THREAD: usize = 4;

/// Number of words to sample for a pivot, which is their median.
const SAMPLE: usize = 255;

/// Number of words that one task swaps.
const BLOCK: usize = 1 << 14;

/// Sorts `words` on `threads` threads of the pool of the calling thread.
pub(super) fn sort<W: Word>(words: &mut [W], threads: usize, coding: Coding<W>, set: &impl Instructions<Word = W>) {
    let mut encode = coding.encode;
    match divided(words, threads, &mut encode, set) {
        Ok(parts) => {
            let coding = Coding { encode, ..coding };
            parallel::for_each_on(threads, parts, |part| set.sort(part, steps(part.len()), coding));
        }
        Err(_) => set.sort(words, steps(words.len()), Coding { encode, ..coding }),
    }
}

/// Divides `words` into parts, and returns them in descending order of length. The first division encodes the words by
/// the flips in `encode`, and sets these to 0.
///
/// # Errors
/// [`Error::OutOfHostMemory`] if there is no memory for lists of parts. `words` then has all words, in any order, and
/// either all words are encoded or none.
fn divided<'a, W: Word>(
    words: &'a mut [W],
    threads: usize,
    encode: &mut [W; 2],
    set: &impl Instructions<Word = W>,
) -> Result<Vec<&'a mut [W]>, Error> {
    let none = [W::ZERO; 2];
    let most = (words.len() / (threads * PARTS_PER_THREAD)).max(2 * PIECE);
    let (mut parts, mut last) = (collected([words])?, vec![]);
    // Twice the number of levels that the best pivots would need. Parts of keys made for bad pivots are left to
    // `Instructions::sort`, which limits its own divisions.
    let levels = 2 * (threads * PARTS_PER_THREAD).ilog2();
    for _ in 0..levels {
        let mut long = vec![];
        for part in parts {
            push(if part.len() > most { &mut long } else { &mut last }, part)?;
        }
        if long.is_empty() {
            parts = long;
            break;
        }
        let pivots = collected(long.iter().map(|part| pivot(part, *encode, set)))?;
        let divided = divide_all(long, &pivots, threads, encode, set)?;
        parts = vec![];
        let (mut least, mut next_pivots) = (vec![], vec![]);
        for ([less, others], pivot) in divided.into_iter().zip(pivots) {
            match (less.is_empty(), pivot == W::MAX) {
                // All words equal the pivot.
                (true, true) => push(&mut last, others)?,
                // The pivot is the least word: a second division separates the words that equal it.
                (true, false) => {
                    push(&mut least, others)?;
                    push(&mut next_pivots, pivot.next())?;
                }
                _ => {
                    push(&mut parts, less)?;
                    push(&mut parts, others)?;
                }
            }
        }
        for [equal, others] in divide_all(least, &next_pivots, threads, &mut none.clone(), set)? {
            push(&mut last, equal)?;
            push(&mut parts, others)?;
        }
    }
    for part in parts {
        push(&mut last, part)?;
    }
    last.sort_unstable_by_key(|part| std::cmp::Reverse(part.len()));
    Ok(last)
}

/// The median of a sample of `part`, encoded by the flips `encode`.
fn pivot<W: Word>(part: &[W], encode: [W; 2], set: &impl Instructions<Word = W>) -> W {
    // Steps round down, so the sample may have more than `SAMPLE` words, but at most `2 * SAMPLE - 1`.
    let mut sample = [W::ZERO; 2 * SAMPLE];
    let sampled = part.iter().step_by((part.len() / SAMPLE).max(1)).zip(&mut sample);
    let count = sampled.map(|(word, to)| *to = *word).count();
    let sample = &mut sample[..count];
    set.sort(sample, steps(count), Coding { encode, decode: [W::ZERO; 2] });
    sample[count / 2]
}

/// Divides each of `parts` by its pivot into lesser words and all others. Encodes the words by the flips in `encode`,
/// and sets these to 0.
fn divide_all<'a, W: Word>(
    mut parts: Vec<&'a mut [W]>,
    pivots: &[W],
    threads: usize,
    encode: &mut [W; 2],
    set: &impl Instructions<Word = W>,
) -> Result<Vec<[&'a mut [W]; 2]>, Error> {
    let pieces = parts.iter_mut().zip(pivots).flat_map(|(part, &pivot)| {
        let len = part.len().div_ceil(threads).max(PIECE);
        // The last piece also takes the remainder, so that no piece is shorter than the others.
        let (all, last) = part.split_at_mut((part.len() / len).saturating_sub(1) * len);
        all.chunks_mut(len).chain([last]).map(move |piece| (piece, pivot))
    });
    let (pieces, flips) = (collected(pieces)?, *encode);
    let divided =
        parallel::try_map_on(threads, pieces, |(words, pivot)| (set.divide(words, pivot, flips), words.len()))?;
    *encode = [W::ZERO; 2];
    let (mut divided, mut halves) = (&divided[..], vec![]);
    let mut of_parts = vec![];
    for part in parts {
        let (mut count, mut len) = (0, 0);
        while len < part.len() {
            len += divided[count].1;
            count += 1;
        }
        let pieces;
        (pieces, divided) = divided.split_at(count);
        let (less, others) = part.split_at_mut(pieces.iter().map(|(less, _)| less).sum());
        push(&mut halves, [less, others])?;
        push(&mut of_parts, pieces)?;
    }
    let mut pairs = vec![];
    for ([less, others], pieces) in halves.iter_mut().zip(of_parts) {
        misplaced(less, others, pieces, &mut pairs)?;
    }
    parallel::for_each_on(threads, pairs, |(a, b)| a.swap_with_slice(b));
    Ok(halves)
}

/// Adds to `pairs` the words to swap: words of the first part that belong in the second, and an equal number of words
/// of the second part that belong in the first. `pieces` covers both parts. Each piece has the number of its words that
/// belong in the first part, which are in front, and its length.
fn misplaced<'a, W>(
    first: &'a mut [W],
    second: &'a mut [W],
    pieces: &[(usize, usize)],
    pairs: &mut Vec<(&'a mut [W], &'a mut [W])>,
) -> Result<(), Error> {
    let middle = first.len();
    let ends = pieces.iter().scan(0, |begin, (less, len)| {
        let ends = (*begin, *begin + less, *begin + len);
        *begin = ends.2;
        Some(ends)
    });
    let of_first = cut(first, ends.clone().map(|(_, less, end)| less.min(middle)..end.min(middle)))?;
    let of_second = cut(second, ends.map(|(begin, less, _)| begin.max(middle) - middle..less.max(middle) - middle))?;
    let (mut of_first, mut of_second) = (of_first.into_iter(), of_second.into_iter());
    let (mut a, mut b) = (of_first.next().unwrap_or_default(), of_second.next().unwrap_or_default());
    while !a.is_empty() && !b.is_empty() {
        let len = a.len().min(b.len()).min(BLOCK);
        let ((now_a, later_a), (now_b, later_b)) = (a.split_at_mut(len), b.split_at_mut(len));
        push(pairs, (now_a, now_b))?;
        a = if later_a.is_empty() { of_first.next().unwrap_or_default() } else { later_a };
        b = if later_b.is_empty() { of_second.next().unwrap_or_default() } else { later_b };
    }
    Ok(())
}

/// The non-empty parts of `words` in `ranges`, which ascend.
fn cut<W>(words: &mut [W], ranges: impl Iterator<Item = std::ops::Range<usize>>) -> Result<Vec<&mut [W]>, Error> {
    let (mut rest, mut at, mut parts) = (words, 0, vec![]);
    for range in ranges.filter(|range| !range.is_empty()) {
        let (_, from_begin) = rest.split_at_mut(range.start - at);
        let part;
        (part, rest) = from_begin.split_at_mut(range.len());
        at = range.end;
        push(&mut parts, part)?;
    }
    Ok(parts)
}
