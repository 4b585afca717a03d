//! Sequential merge: one thread, two cursors (figure 12.2).

use crate::key::{Bits, Coding, Position};
use crate::keys::{Keys, KeysMut};
use crate::sequence::Sequence;
use cuda_std::prelude::*;

/// Merges all of `a` and `b`, calling `emit` with the index and the key, in order. Stable: among equal keys, those from
/// `a` come first.
#[inline(always)]
#[track_caller]
pub fn merge_sequential<I: Position, S, T>(a: S, b: T, mut emit: impl FnMut(I, S::Item))
where
    S: Sequence<Index = I>,
    T: Sequence<Index = I, Item = S::Item>,
{
    let (m, n) = (a.length(), b.length());
    let (mut i, mut j) = (I::ZERO, I::ZERO);
    while i < m && j < n {
        let (x, y) = (a.at(i), b.at(j));
        if x <= y {
            emit(i + j, x);
            i = i + I::ONE;
        } else {
            emit(i + j, y);
            j = j + I::ONE;
        }
    }
    // One input is exhausted: copy the rest of the other.
    while i < m {
        emit(i + j, a.at(i));
        i = i + I::ONE;
    }
    while j < n {
        emit(i + j, b.at(j));
        j = j + I::ONE;
    }
}

/// Kernel: one thread merges all of `a` and `b` in the order of `coding`. Launch with one block of one thread.
///
/// # Safety
/// `a` and `b` are ascending arrays of `m` and `n` keys and `c` has capacity for `m + n` keys, in global memory; `c`
/// does not overlap `a` or `b`.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn merge_one_thread<B: Bits>(a: *const B, m: usize, b: *const B, n: usize, c: *mut B, coding: Coding<B>) {
    // SAFETY: the caller passes `m` keys at `a`, `n` at `b` and room for `m + n` at `c`. The only thread of the grid
    // reads keys `i < m` and `j < n` and writes keys `i + j < m + n`.
    let (a, b, c) = unsafe { (Keys::new(a, m, coding), Keys::new(b, n, coding), KeysMut::new(c, m + n, coding)) };
    merge_sequential(a, b, |k, key| c.set(k, key));
}
