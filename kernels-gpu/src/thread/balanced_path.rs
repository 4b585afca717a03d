//! The balanced path: where a diagonal crosses the merge of two multisets that takes equal keys in pairs.
//!
//! A merge takes all equal keys of A before B's copies. A set operation pairs them: the k-th copy of a key in A with
//! the k-th copy in B. On the balanced path a group of equal keys is a staircase of pairs, each a key of A and a key of
//! B. The remaining copies of the longer side follow. A set operation can be divided at any point between two steps,
//! since this separates no pair (Baxter, "Modern GPU", 2013).
//!
//! ```text
//!            B   2   2   2   5
//!          ┌───┬───┬───┬───┬───┐
//!      A 2 ┃───┼───┼───┼───┼───┤        ┃ the merge path: A's 2s, then B's
//!        2 ┃  ╲│───┼───┼───┼───┤        ╲ the balanced path: pairs, then the third 2 of B
//!          ┗━━━┿━╲━┿━━━┿━━━┿━━━┥
//!        7 │   │   │───│───│───│
//! ```

use crate::key::Position;
use crate::sequence::Sequence;
use core::hint::select_unpredictable;

/// A point of the balanced path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balanced<I> {
    /// Keys of A before the point.
    pub a: I,
    /// Whether the diagonal divides a pair: the point is then one key before the diagonal, and the pair is the next
    /// step.
    pub is_short: bool,
}

impl<I: Position> Balanced<I> {
    /// Number of keys before the point, if it was found for diagonal `k`.
    #[inline(always)]
    pub fn rank(self, k: I) -> I {
        if self.is_short { k - I::ONE } else { k }
    }
}

/// The last point of the balanced path of `a` and `b` up to diagonal `k`, where the merge path has taken `i` keys of
/// `a`.
///
/// Reads two keys, and O(log g) more if the diagonal is in a group of g equal keys that occur in both sequences. The
/// point has at most `i` keys of `a` and is inside both sequences even if they are not ascending.
#[inline(always)]
#[track_caller]
pub fn balance<I: Position, S, T>(k: I, i: I, a: S, b: T) -> Balanced<I>
where
    S: Sequence<Index = I>,
    T: Sequence<Index = I, Item = S::Item>,
{
    let j = k - i;
    let unchanged = Balanced { a: i, is_short: false };
    if i == I::ZERO {
        return unchanged;
    }
    // The merge takes A's keys first: a pair can be divided only if A's last key before the diagonal equals B's next
    // key.
    let key = a.at(i - I::ONE);
    if j == b.length() || b.at(j) != key {
        return unchanged;
    }
    let (a_first, b_first) = (first_equal(key, a, i - I::ONE), first_equal(key, b, j));
    let (a_equal, b_equal) = (i - a_first, j - b_first);
    let before = a_equal + b_equal;
    let most = before - before.half();
    // If both sides have a copy for each pair that begins before the diagonal, the diagonal is between two pairs or in
    // one.
    let b_end = b.length().min(b_first + most);
    let b_copies = if b_equal >= most { most } else { end_of_equal(key, b, j, b_end) - b_first };
    if a_equal >= most && b_copies >= most {
        let pairs = before.half();
        return Balanced { a: a_first + pairs, is_short: pairs < most };
    }
    // All copies of one side are in pairs. The remaining copies of the other side follow.
    Balanced { a: a_first + if b_copies < most { before - b_copies } else { a_equal }, is_short: false }
}

/// The start of the group of keys equal to `key` in `keys`, where `last` is in the group. Steps double, since most
/// groups are short.
#[inline(always)]
#[track_caller]
fn first_equal<S: Sequence>(key: S::Item, keys: S, last: S::Index) -> S::Index {
    let (mut equal, mut step) = (last, S::Index::ONE);
    let mut low = S::Index::ZERO;
    while equal > S::Index::ZERO {
        let probe = equal.minus_or_zero(step);
        if keys.at(probe) != key {
            low = probe + S::Index::ONE;
            break;
        }
        equal = probe;
        step = step + step;
    }
    search(low, equal - low, |at| keys.at(at) != key)
}

/// The end of the group of keys equal to `key` in `keys`, between `first` and `end`.
#[inline(always)]
#[track_caller]
fn end_of_equal<S: Sequence>(key: S::Item, keys: S, first: S::Index, end: S::Index) -> S::Index {
    search(first, end.minus_or_zero(first), |at| keys.at(at) == key)
}

/// The first of the `range` indices from `low` where `before` is false, or `low + range` if there is none. `before`
/// must be true for a prefix of the indices.
#[inline(always)]
fn search<I: Position>(low: I, range: I, before: impl Fn(I) -> bool) -> I {
    let (mut low, mut range) = (low, range);
    while range > I::ZERO {
        let half = range.half();
        let above = before(low + half);
        low = select_unpredictable(above, low + half + I::ONE, low);
        range = select_unpredictable(above, range - half - I::ONE, half);
    }
    low
}
