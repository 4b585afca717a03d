//! The Merge Path search: where a diagonal crosses the path (Green, McColl and Bader, "GPU Merge Path", 2012).
//!
//! Draw A downwards and B to the right. The merge is a path from the top left corner to the bottom right: one step down
//! takes a key of A, one step right takes a key of B. After `k` steps the path is somewhere on diagonal `k`; a binary
//! search along the diagonal finds where. That place is the co-rank of `k`, found with one comparison a step.
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
        // The answer is one of `range + 1` places from `low` on. The key in the middle decides for a half.
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
/// A good guess saves reads of far places, which is where a search spends its time: the window's two ends are read at once,
/// and a search of few steps follows. A bad one costs those two reads.
#[inline(always)]
#[track_caller]
pub fn search_near<S, T>(k: usize, a: S, b: T, (low, high): (usize, usize), guess: usize, window: usize) -> usize
where
    S: Sequence<Index = usize>,
    T: Sequence<Index = usize, Item = S::Item>,
{
    let taken = |i: usize| a.at(i) <= b.at(k - 1 - i);
    let left = guess.saturating_sub(window).max(low).min(high);
    let right = (guess + window).min(high).max(left);
    let above = left == low || taken(left - 1);
    let below = right == high || !taken(right);
    let (low, high) = match (above, below) {
        (false, _) => (low, left - 1),
        (true, true) => (left, right),
        (true, false) => (right + 1, high),
    };
    search_between(k, a, b, low, high)
}
