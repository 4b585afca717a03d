//! Co-rank: where the first `k` keys of a merge come from (figure 12.5; observations of figure 12.3).
//!
//! The first `k` keys of the merge of A and B are `i` keys of A and `j = k - i` of B. `i` is the co-rank of `k`: the
//! one split with
//!
//! ```text
//!            i                          j
//!   A ├──────┼────────────┤    B ├──────┼────────────┤
//!       A[i-1]  A[i]              B[j-1]  B[j]
//!
//!   A[i-1] <= B[j]     no key taken from A belongs after the remaining keys of B
//!   B[j-1] <  A[i]     no key taken from B belongs after, or ties with, the remaining keys of A
//! ```
//!
//! The strict `<` makes the merge stable: among equal keys, those from A come first.

use crate::elements::Slice;
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
        // `i > i_low >= 0` and `j < n`, so that both keys exist; likewise in the other branch. The figure tests against
        // 0 and n instead, which is equivalent for ascending inputs. With these bounds the search also ends for
        // unsorted inputs.
        if i > i_low && a.at(i - I::ONE) > b.at(j) {
            // Too many keys from A: move half of the distance back to `i_low`, rounded up.
            let delta = (i - i_low + I::ONE).half();
            j_low = j;
            i = i - delta;
            j = j + delta;
        } else if j > j_low && b.at(j - I::ONE) >= a.at(i) {
            // Too many keys from B.
            let delta = (j - j_low + I::ONE).half();
            i_low = i;
            i = i + delta;
            j = j - delta;
        } else {
            return i;
        }
    }
}

/// Clamps the co-rank `i_next` at the end of a segment. The segment has `length` keys, begins at co-rank `i_curr`, and
/// takes 0 to `length` keys from A.
///
/// Co-ranks of ascending inputs already satisfy this. For unsorted inputs the clamp keeps every access in bounds,
/// although the order of the result is then unspecified.
#[inline(always)]
pub fn clamp_split<I: Position>(i_curr: I, i_next: I, length: I) -> I {
    i_next.max(i_curr).min(i_curr + length)
}

/// Kernel: thread `t` of the grid writes the co-rank of `min(t * step, m + n)` in `a`, of m keys, and `b`, of n keys,
/// in the order of `coding`, to `splits[t]`.
///
/// # Safety
/// `a` and `b` are ascending and `splits` has capacity for `count` indices, in global memory.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn co_rank_splits<B: Bits>(
    a: Slice<B, ()>,
    b: Slice<B, ()>,
    step: usize,
    splits: *mut usize,
    count: usize,
    coding: Coding<B>,
) {
    let (m, n) = (a.len, b.len);
    // SAFETY: the caller passes `m` keys in `a`, `n` in `b` and room for `count` indices at `splits`. `co_rank` gets
    // `k <= m + n` and reads indices below `m` and `n` only. Thread `t < count` alone writes `splits[t]`.
    let (a, b, splits) =
        unsafe { (Keys::new(a.at.keys, m, coding), Keys::new(b.at.keys, n, coding), GlobalMut::new(splits, count)) };
    let t = thread::block_idx_x() as usize * thread::block_dim_x() as usize + thread::thread_idx_x() as usize;
    if t < count {
        let k = t.saturating_mul(step).min(m + n);
        splits.set(t, co_rank(k, a, b));
    }
}
