//! Quicksort of words that fit a core's own caches, between two arrays: there it is faster than in place, where each step has to wait to
//! know on which side there is room.
//!
//! ```text
//!   one array     │ 3 7 1 9 8 2 5 6 │   pivot 5
//!   … the same    │ 3 1 2 │                 what is less stays, moved to the front
//!   … the other           │ 6 5 8 9 7 │     all else, from the end on: where it belongs
//! ```
//!
//! So each step reads once and writes once, and no keys have to make room for others. Few keys are sorted by networks, to the array where
//! they are to be in the end.

use super::lanes::{Lanes, Word};
use super::network;
use super::quicksort::pivot;

/// Words that are to be sorted.
#[derive(Clone, Copy)]
struct Segment {
    begin: usize,
    end: usize,
    /// Whether they are in the other array.
    in_scratch: bool,
    /// How often they may be divided.
    steps: u32,
}

/// Sorts the `len` words of `run`, with `scratch` of the same length. Words are divided up to `steps` times, and what is left then is sorted in
/// another way. `ROWS` and `FEW` rows are what networks sort; `SQUARE` is the number of lanes.
///
/// # Safety
/// The processor has the instruction set; `run` and `scratch` point to `len` words each, which do not overlap.
#[inline(always)]
pub(super) unsafe fn sort<L: Lanes, const ROWS: usize, const FEW: usize, const SQUARE: usize>(
    run: *mut L::Word,
    scratch: *mut L::Word,
    len: usize,
    steps: u32,
    random: &mut u64,
) {
    let (arrays, to) = ([run, scratch], run);
    // The longer part waits, so that each one is at most half as long as that before it.
    let mut waiting = [Segment { begin: 0, end: 0, in_scratch: false, steps: 0 }; usize::BITS as usize];
    let mut count = 0;
    let mut next = Segment { begin: 0, end: len, in_scratch: false, steps };
    loop {
        let Segment { begin, end, in_scratch, steps } = next;
        let len = end - begin;
        let (from, other) = (arrays[usize::from(in_scratch)], arrays[usize::from(!in_scratch)]);
        // SAFETY: segments are parts of both arrays, as below.
        let both = unsafe {
            if len <= FEW * L::LANES {
                network::sort::<L, FEW, SQUARE>(from.add(begin), to.add(begin), len);
                None
            } else if len <= ROWS * L::LANES {
                network::sort::<L, ROWS, SQUARE>(from.add(begin), to.add(begin), len);
                None
            } else if steps == 0 {
                // Pivots have been bad again and again.
                std::ptr::copy(from.add(begin), to.add(begin), len);
                std::slice::from_raw_parts_mut(to.add(begin), len).sort_unstable();
                None
            } else {
                let pivot = pivot::<L, ROWS, SQUARE>(from.add(begin), len, random);
                let mut middle = divide::<L>(from, other, begin, end, pivot);
                let steps = steps - 1;
                if middle == begin {
                    // The pivot is the least word: those equal to it are in order. All are in the other array now.
                    let rest =
                        if pivot == L::Word::MAX { end } else { divide::<L>(other, from, begin, end, pivot.next()) };
                    std::slice::from_raw_parts_mut(to.add(begin), rest - begin).fill(pivot);
                    middle = rest;
                    let rest = Segment { begin: middle, end, in_scratch, steps };
                    (middle < end).then_some((rest, Segment { begin: end, ..rest }))
                } else {
                    let less = Segment { begin, end: middle, in_scratch, steps };
                    Some((less, Segment { begin: middle, end, in_scratch: !in_scratch, steps }))
                }
            }
        };
        match both {
            Some((a, b)) => {
                let (shorter, longer) = if a.end - a.begin < b.end - b.begin { (a, b) } else { (b, a) };
                waiting[count] = longer;
                count += 1;
                next = shorter;
            }
            None if count == 0 => return,
            None => {
                count -= 1;
                next = waiting[count];
            }
        }
    }
}

/// Moves the words of `from` in `begin..end` that are less than `pivot` to the front of these, and the others to the end of the same part
/// of `other`. Gives where the latter begin.
///
/// # Safety
/// The processor has the instruction set; both arrays have words in `begin..end`, and do not overlap.
#[inline(always)]
unsafe fn divide<L: Lanes>(from: *mut L::Word, other: *mut L::Word, begin: usize, end: usize, pivot: L::Word) -> usize {
    let (mut at, mut below, mut above) = (begin, begin, end);
    // SAFETY: the caller's promise. Words are read before others are written there: as many are written below as have been read, and
    // before `above` there is room for all that are left.
    unsafe {
        let pivots = L::splat(pivot);
        while end - at >= 4 * L::LANES {
            let rows: [L; 4] = std::array::from_fn(|i| L::load(from.add(at + i * L::LANES)));
            for row in rows {
                let less = row.divide(pivots, from.add(below), other.add(above));
                below += less;
                above -= L::LANES - less;
            }
            at += 4 * L::LANES;
        }
        while end - at >= L::LANES {
            let row = L::load(from.add(at));
            let less = row.divide(pivots, from.add(below), other.add(above));
            below += less;
            above -= L::LANES - less;
            at += L::LANES;
        }
        // To both sides, of which one is written again: no branch that cannot be predicted.
        while at < end {
            let word = *from.add(at);
            let is_less = usize::from(word < pivot);
            *from.add(below) = word;
            *other.add(above - 1) = word;
            below += is_less;
            above -= 1 - is_less;
            at += 1;
        }
    }
    below
}
