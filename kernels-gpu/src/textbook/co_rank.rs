//! Co-rank: where the first `k` keys of a merge come from (figure 12.5; observations of figure 12.3).
//!
//! The first `k` keys of the merge of A and B are the first `i` of A and the first `j` of B, with `i + j = k`. `i` is
//! the co-rank of `k`: the one split with
//!
//! ```text
//!            i                          j
//!   A ├──────┼────────────┤    B ├──────┼────────────┤
//!       A[i-1]  A[i]              B[j-1]  B[j]
//!
//!   A[i-1] <= B[j]     nothing taken from A belongs after what is left of B
//!   B[j-1] <  A[i]     nothing taken from B belongs after, or ties with, what is left of A
//! ```
//!
//! The `<` is what makes the merge stable: of equal keys, A's go first.

use crate::key::{Bits, Coding, Position};
use crate::keys::Keys;
use crate::sequence::Sequence;
use cuda_std::prelude::*;

/// The co-rank of `k`: how many of the first `k` keys of the merge of `a` and `b` come from `a`.
///
/// `k` is at most `a.length() + b.length()`. Reads O(log min(k, |a|, |b|)) keys of each.
#[inline(always)]
#[track_caller]
pub fn co_rank<I: Position, S, T>(k: I, a: S, b: T) -> I
where
    S: Sequence<Index = I>,
    T: Sequence<Index = I, Item = S::Item>,
{
    let (m, n) = (a.length(), b.length());
    let mut i = k.min(m);
    let mut j = k - i;
    let mut i_low = k.minus_or_zero(n);
    let mut j_low = k.minus_or_zero(m);
    loop {
        // Above its lower bound i is not 0 and j is below n, so these two keys exist; likewise below. The figure tests
        // against 0 and n, which for ascending inputs is the same; this way the search also ends for any other.
        if i > i_low && a.at(i - I::ONE) > b.at(j) {
            // Too many of A: go half of the way back to i_low, rounded up.
            let delta = (i - i_low + I::ONE).half();
            j_low = j;
            i = i - delta;
            j = j + delta;
        } else if j > j_low && b.at(j - I::ONE) >= a.at(i) {
            // Too many of B.
            let delta = (j - j_low + I::ONE).half();
            i_low = i;
            i = i + delta;
            j = j - delta;
        } else {
            return i;
        }
    }
}

/// Keeps the co-rank `i_next`, at the end of a segment of `length` keys that begins at co-rank `i_curr`, in step with it:
/// the segment takes at least none and at most all of its keys from A.
///
/// For ascending inputs that holds anyway. For others this is what keeps a merge inside its arrays: the result is then
/// in no particular order, but nothing is read or written out of bounds.
#[inline(always)]
pub fn clamp_split<I: Position>(i_curr: I, i_next: I, length: I) -> I {
    i_next.max(i_curr).min(i_curr + length)
}

/// Kernel: thread `t` of the grid finds the co-rank of `min(t * step, m + n)`, in the order of `coding`, and writes it to
/// `splits[t]`.
///
/// # Safety
/// `a` and `b` are ascending arrays of `m` and `n` keys and `splits` has capacity for `count` positions, in global memory.
#[kernel(u32 = <u32>, u64 = <u64>)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn co_rank_splits<B: Bits>(
    a: *const B,
    m: usize,
    b: *const B,
    n: usize,
    step: usize,
    splits: *mut usize,
    count: usize,
    coding: Coding<B>,
) {
    // SAFETY: `a`, `b` and `splits` have `m`, `n` and `count` elements, as the caller promises. `co_rank` is called
    // with `k <= m + n` and reads indices below `m` and `n`. Only thread `t` of the grid writes `splits[t]`, and only
    // if `t < count`.
    let (a, b, splits) = unsafe { (Keys::new(a, m, coding), Keys::new(b, n, coding), GlobalMut::new(splits, count)) };
    let t = thread::block_idx_x() as usize * thread::block_dim_x() as usize + thread::thread_idx_x() as usize;
    if t < count {
        let k = t.saturating_mul(step).min(m + n);
        splits.set(t, co_rank(k, a, b));
    }
}
