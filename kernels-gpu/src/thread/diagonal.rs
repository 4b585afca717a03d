//! The Merge Path search: where a diagonal crosses the path (Green, McColl and Bader, "GPU Merge Path", 2012).
//!
//! Draw A downwards and B to the right. The merge is a path from the top left corner to the bottom right: one step down
//! takes a key of A, one step right takes a key of B. After `k` steps the path is somewhere on diagonal `k`; a binary
//! search along the diagonal finds where. That point is the co-rank of `k`, found with one comparison a step.
//!
//! ```text
//!            B[0] B[1] B[2]
//!          ┌────┬────┬────┐
//!     A[0] │    │   ╱│    │       diagonal 2:  i + j = 2
//!          ├────┼─╱──┼────┤
//!     A[1] │   ╱│    │    │       i: keys of A, j: keys of B before the crossing
//!          ├─╱──┼────┼────┤
//! ```

use crate::key::Position;
use crate::sequence::Sequence;
use core::hint::select_unpredictable;

/// How many of the first `k` keys of the merge of `a` and `b` come from `a`; of equal keys, `a`'s go first.
///
/// `k` is at most `a.length() + b.length()`. Reads O(log min(k, |a|, |b|)) keys of each.
#[inline(always)]
#[track_caller]
pub fn diagonal_search<I: Position, S, T>(k: I, a: S, b: T) -> I
where
    S: Sequence<Index = I>,
    T: Sequence<Index = I, Item = S::Item>,
{
    let low = k.minus_or_zero(b.length());
    search_between(k, a, b, low, k.min(a.length()))
}

/// As [`diagonal_search`], if the answer is known to be `low` to `high`, both possible on the diagonal.
#[inline(always)]
#[track_caller]
fn search_between<I: Position, S, T>(k: I, a: S, b: T, low: I, high: I) -> I
where
    S: Sequence<Index = I>,
    T: Sequence<Index = I, Item = S::Item>,
{
    let (mut low, mut range) = (low, high - low);
    while range > I::ZERO {
        // The answer is one of `range + 1` numbers from `low` on. The key in the middle decides for a half.
        let half = range.half();
        let middle = low + half;
        let above = a.at(middle) <= b.at(k - I::ONE - middle);
        low = select_unpredictable(above, middle + I::ONE, low);
        range = select_unpredictable(above, range - half - I::ONE, half);
    }
    low
}

/// As [`diagonal_search`], if the answer is known to be `low` to `high`, both possible on the diagonal, and likely to be
/// within `window` of `guess`.
///
/// A good guess saves reads that are far apart, which is where a search spends its time: two reads, at the guess and as far
/// from it as the window is wide, and a search of few steps between them. A bad one costs those two reads.
#[inline(always)]
#[track_caller]
pub fn search_near<I: Position, S, T>(k: I, a: S, b: T, (mut low, mut high): (I, I), guess: I, window: I) -> I
where
    S: Sequence<Index = I>,
    T: Sequence<Index = I, Item = S::Item>,
{
    let mut probe = |index: I| {
        // Indices from `low` to `high - 1` tell on which side the answer is.
        let inside = low <= index && index < high;
        let above = inside && a.at(index) <= b.at(k - I::ONE - index);
        low = select_unpredictable(above, index + I::ONE, low);
        high = select_unpredictable(inside && !above, index, high);
        above
    };
    let above = probe(guess);
    probe(select_unpredictable(above, guess + window, guess.minus_or_zero(window)));
    search_between(k, a, b, low, high)
}

/// How far from the straight path the crossing of two runs of random keys, `total` in all, can be expected to be: in the
/// middle the deviation is sqrt(total) / 4, and this is 3.5 times as much, so that hardly a lane of a warp has to search
/// further.
#[inline(always)]
pub fn likely_window(total: u32) -> u32 {
    // One step of Heron's method from a power of two.
    let half = (u32::BITS - total.leading_zeros()) / 2;
    let root = ((1 << half) + (total >> half)) / 2;
    root - root / 8
}
