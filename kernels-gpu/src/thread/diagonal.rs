//! The Merge Path search: where a diagonal crosses the path (Green, McColl and Bader, "GPU Merge Path", 2012).
//!
//! Draw A downwards and B to the right. The merge is a path from the top left corner to the bottom right. A step down
//! takes a key of A; a step right takes a key of B. After `k` steps the path is on diagonal `k`. A binary search along
//! the diagonal finds the point, which is the co-rank of `k`, with one comparison per step.
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

/// The number of keys of `a` among the first `k` keys of the merge of `a` and `b`. Stable: equal keys of `a` come
/// first.
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

/// Like [`diagonal_search`], where the answer is known to be from `low` to `high`, both valid on the diagonal.
#[inline(always)]
#[track_caller]
fn search_between<I: Position, S, T>(k: I, a: S, b: T, low: I, high: I) -> I
where
    S: Sequence<Index = I>,
    T: Sequence<Index = I, Item = S::Item>,
{
    let (mut low, mut range) = (low, high - low);
    while range > I::ZERO {
        // The answer is one of the `range + 1` numbers from `low`. The comparison in the middle halves them.
        let half = range.half();
        let middle = low + half;
        let above = a.at(middle) <= b.at(k - I::ONE - middle);
        low = select_unpredictable(above, middle + I::ONE, low);
        range = select_unpredictable(above, range - half - I::ONE, half);
    }
    low
}

/// Like [`diagonal_search`], where the answer is known to be from `low` to `high` and likely to be within `window` of
/// `guess`. Both bounds are valid on the diagonal.
///
/// Distant reads dominate the time of a search. A good guess saves them: the search reads at the guess and at `window`
/// from it, and then takes few steps between the two. A bad guess costs these two reads.
#[inline(always)]
#[track_caller]
pub fn search_near<I: Position, S, T>(k: I, a: S, b: T, (mut low, mut high): (I, I), guess: I, window: I) -> I
where
    S: Sequence<Index = I>,
    T: Sequence<Index = I, Item = S::Item>,
{
    let mut probe = |index: I| {
        // Only indices from `low` to `high - 1` narrow the range.
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

/// A likely bound on the distance between the crossing of two runs of random keys, `total` in all, and the straight
/// path. The standard deviation in the middle is sqrt(total) / 4. The bound is 3.5 times that, so that hardly a lane of
/// a warp has to search further.
#[inline(always)]
pub fn likely_window(total: u32) -> u32 {
    // One step of Heron's method from a power of two.
    let half = (u32::BITS - total.leading_zeros()) / 2;
    let root = ((1 << half) + (total >> half)) / 2;
    root - root / 8
}
