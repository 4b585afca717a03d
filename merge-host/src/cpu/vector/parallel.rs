//! Quicksort on several threads, in place.
//!
//! ```text
//!   part       │ piece 0       │ piece 1       │      each thread divides pieces by the part's pivot
//!              │ less  │ other │ less  │ other │
//!              │ less  │ less  │ other │ other │      what is on the wrong side changes places
//! ```
//!
//! Parts are divided so until they are a fraction of a thread's share, and then sorted by one thread each.

use super::coding::Coding;
use super::instructions::Instructions;
use super::lanes::Word;
use super::quicksort::steps;
use crate::parallel;

/// Words of a piece, at least: many times as many as a division holds in registers.
const PIECE: usize = 1 << 15;

/// A part is sorted by one thread when it is not longer than the thread's share of all words divided by this.
const PARTS_PER_THREAD: usize = 4;

/// Sampled words whose median is a pivot.
const SAMPLE: usize = 255;

/// Words that are swapped at a time.
const BLOCK: usize = 1 << 14;

/// Sorts `words` on `threads` threads of the pool of the calling thread.
pub(super) fn sort<W: Word>(words: &mut [W], threads: usize, coding: Coding<W>, set: &impl Instructions<Word = W>) {
    let none = [W::ZERO; 2];
    let most = (words.len() / (threads * PARTS_PER_THREAD)).max(2 * PIECE);
    let (mut encode, mut parts, mut last) = (coding.encode, vec![words], vec![]);
    // Twice as many levels as with the best pivots. Keys that are made for bad ones are left to the threads' own sorts, which are safe from them.
    let levels = 2 * (threads * PARTS_PER_THREAD).ilog2();
    for _ in 0..levels {
        let (long, short): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| part.len() > most);
        last.extend(short);
        parts = long;
        if parts.is_empty() {
            break;
        }
        let pivots: Vec<W> = parts.iter().map(|part| pivot(part, encode, set)).collect();
        let divided = divide_all(parts, &pivots, threads, encode, set);
        encode = none;
        parts = vec![];
        let mut least = vec![];
        for ([less, others], pivot) in divided.into_iter().zip(pivots) {
            match (less.is_empty(), pivot == W::MAX) {
                // All are the pivot.
                (true, true) => last.push(others),
                // Those that are can be told from the others.
                (true, false) => least.push((others, pivot.next())),
                _ => parts.extend([less, others]),
            }
        }
        let (others, pivots): (Vec<_>, Vec<W>) = least.into_iter().unzip();
        for [equal, others] in divide_all(others, &pivots, threads, none, set) {
            last.push(equal);
            parts.push(others);
        }
    }
    last.extend(parts);
    last.sort_by_key(|part| std::cmp::Reverse(part.len()));
    let coding = Coding { encode, ..coding };
    parallel::for_each_on(threads, last, |part| set.sort(part, steps(part.len()), coding));
}

/// The median of a sample of `part`, as those flips encode it.
fn pivot<W: Word>(part: &[W], encode: [W; 2], set: &impl Instructions<Word = W>) -> W {
    let mut sample: Vec<W> = part.iter().step_by((part.len() / SAMPLE).max(1)).copied().collect();
    let limit = steps(sample.len());
    set.sort(&mut sample, limit, Coding { encode, decode: [W::ZERO; 2] });
    sample[sample.len() / 2]
}

/// Divides each of `parts` by its pivot: what is less, and all else.
fn divide_all<'a, W: Word>(
    mut parts: Vec<&'a mut [W]>,
    pivots: &[W],
    threads: usize,
    encode: [W; 2],
    set: &impl Instructions<Word = W>,
) -> Vec<[&'a mut [W]; 2]> {
    let pieces = parts.iter_mut().zip(pivots).flat_map(|(part, &pivot)| {
        let len = part.len().div_ceil(threads).max(PIECE);
        // The last piece has what is left, so that none is shorter than the others.
        let (all, last) = part.split_at_mut((part.len() / len).saturating_sub(1) * len);
        all.chunks_mut(len).chain([last]).map(move |piece| (piece, pivot))
    });
    let divided = parallel::map_on(threads, pieces.collect::<Vec<_>>(), |(words, pivot)| {
        (set.divide(words, pivot, encode), words.len())
    });
    let (mut divided, mut halves) = (divided.into_iter(), vec![]);
    let mut of_parts = vec![];
    for part in parts {
        let (mut pieces, mut len) = (vec![], 0);
        while len < part.len() {
            let piece = divided.next().expect("pieces are of all words");
            len += piece.1;
            pieces.push(piece);
        }
        let (less, others) = part.split_at_mut(pieces.iter().map(|(less, _)| less).sum());
        halves.push([less, others]);
        of_parts.push(pieces);
    }
    let pairs = halves.iter_mut().zip(of_parts).flat_map(|([less, others], pieces)| misplaced(less, others, &pieces));
    parallel::for_each_on(threads, pairs.collect::<Vec<_>>(), |(a, b)| a.swap_with_slice(b));
    halves
}

/// What is in the first part and belongs into the second one, and as many words of the second one that belong into the first. `pieces` of both
/// together have so many words that belong into the first part, which are in front, and so many in all.
fn misplaced<'a, W>(
    first: &'a mut [W],
    second: &'a mut [W],
    pieces: &[(usize, usize)],
) -> Vec<(&'a mut [W], &'a mut [W])> {
    let middle = first.len();
    let ends = pieces.iter().scan(0, |begin, (less, len)| {
        let ends = (*begin, *begin + less, *begin + len);
        *begin = ends.2;
        Some(ends)
    });
    let of_first = cut(first, ends.clone().map(|(_, less, end)| less.min(middle)..end.min(middle)));
    let of_second = cut(second, ends.map(|(begin, less, _)| begin.max(middle) - middle..less.max(middle) - middle));
    let (mut of_first, mut of_second) = (of_first.into_iter(), of_second.into_iter());
    let (mut a, mut b) = (of_first.next().unwrap_or_default(), of_second.next().unwrap_or_default());
    let mut pairs = vec![];
    while !a.is_empty() && !b.is_empty() {
        let len = a.len().min(b.len()).min(BLOCK);
        let ((now_a, later_a), (now_b, later_b)) = (a.split_at_mut(len), b.split_at_mut(len));
        pairs.push((now_a, now_b));
        a = if later_a.is_empty() { of_first.next().unwrap_or_default() } else { later_a };
        b = if later_b.is_empty() { of_second.next().unwrap_or_default() } else { later_b };
    }
    pairs
}

/// The parts of `words` in those ranges that are not empty, which ascend.
fn cut<W>(words: &mut [W], ranges: impl Iterator<Item = std::ops::Range<usize>>) -> Vec<&mut [W]> {
    let (mut rest, mut at, mut parts) = (words, 0, vec![]);
    for range in ranges.filter(|range| !range.is_empty()) {
        let (_, from_begin) = rest.split_at_mut(range.start - at);
        let part;
        (part, rest) = from_begin.split_at_mut(range.len());
        at = range.end;
        parts.push(part);
    }
    parts
}
