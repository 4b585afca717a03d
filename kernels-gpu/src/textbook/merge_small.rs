//! Small merge: one block, one thread per key (the course's `mergeSmall_k` and its Algorithm 2).
//!
//! Thread `i` owns diagonal `i` of the Merge Path grid. It searches from the diagonal's low point K to its high point P
//! for the point Q on the path. It writes the key that the path takes at Q.
//!
//! ```text
//!              x (B) →
//!        ┌────────────P        K = (0, i), or on A's lower edge
//!   y    │          ╱          P = (i, 0), or on B's right edge
//!  (A)   │        Q            Q: above it A[y-1] <= B[x], left of it B[x-1] < A[y]
//!   ↓    │      ╱
//!        │    K
//! ```

use crate::key::{Bits, Coding};
use crate::keys::{Keys, KeysMut};
use crate::sequence::Sequence;
use cuda_std::prelude::*;

/// Maximum number of keys that one block merges.
pub const MAX_KEYS: usize = 1024;

/// Bytes of dynamic shared memory for `keys` keys.
pub const fn shared_bytes<B>(keys: u32) -> u32 {
    keys * size_of::<B>() as u32
}

/// Kernel: merges `a` and `b` into `c` in the order of `coding`, with one block of at least `m + n` threads.
///
/// # Safety
/// `a` and `b` are ascending arrays of `m` and `n` keys in global memory. `m + n` is at most [`MAX_KEYS`], and `c` has
/// capacity for `m + n` keys. The launch is one block of at least `m + n` threads with [`shared_bytes`] of dynamic
/// shared memory. `c` does not overlap `a` or `b`.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn merge_small<B: Bits>(a: *const B, m: usize, b: *const B, n: usize, c: *mut B, coding: Coding<B>) {
    // SAFETY: the caller passes `m` keys at `a`, `n` at `b` and room for `m + n` at `c`. Thread `i` reads `a[i]` only
    // if `i < m` and `b[i - m]` only if `m <= i < m + n`. For `i < m + n` it alone writes `c[i]`.
    let (a, b, c) = unsafe { (Keys::new(a, m, coding), Keys::new(b, n, coding), KeysMut::new(c, m + n, coding)) };
    // SAFETY: the `shared_bytes` of the launch hold `m + n` keys. Thread `i < m + n` alone writes slot `i`. The barrier
    // comes before the reads, which are of slots `0 .. m` and `m .. m + n`.
    let keys = unsafe { Shared::<B>::dynamic(0, (m + n) as u32) };
    let i = thread::thread_idx_x();
    if (i as usize) < m {
        keys.set(i, a.get(i as usize));
    } else if (i as usize) < m + n {
        keys.set(i, b.get(i as usize - m));
    }
    thread::sync_threads();
    if (i as usize) < m + n {
        let key = key_on_diagonal(i, keys.slice(0, m as u32), keys.slice(m as u32, n as u32));
        c.set(i as usize, key);
    }
}

/// The key at index `i < a.length() + b.length()` of the merge of `a` and `b` (Algorithm 2).
#[inline(always)]
#[track_caller]
pub fn key_on_diagonal<S>(i: u32, a: S, b: S) -> S::Item
where
    S: Sequence<Index = u32>,
{
    let (m, n) = (a.length(), b.length());
    // A point is (x, y): x keys of B and y keys of A. On diagonal i, x + y = i, so that y determines the point. K and P
    // are the ends of the diagonal inside the grid.
    let (mut k_y, mut p_y) = (i.min(m), i.saturating_sub(n));
    loop {
        let q_y = k_y - (k_y - p_y) / 2;
        let q_x = i - q_y;
        if q_y < m && q_x > 0 && a.at(q_y) <= b.at(q_x - 1) {
            // B[x-1] belongs after A[y], or ties with it: Q is too far right.
            p_y = q_y + 1;
        } else if q_x < n && q_y > 0 && a.at(q_y - 1) > b.at(q_x) {
            // A[y-1] belongs after B[x]: Q is too low.
            k_y = q_y - 1;
        } else {
            // The path passes through Q and continues down, by a key of A, or right, by a key of B.
            return if q_y < m && (q_x == n || a.at(q_y) <= b.at(q_x)) { a.at(q_y) } else { b.at(q_x) };
        }
    }
}
