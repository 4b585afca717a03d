//! Merges of runs of elements of any type by a comparison. A merge copies the bits of the elements and leaves the
//! originals in place.
//!
//! A pair of runs is merged in blocks of about one length. A block begins at an exact split of both runs:
//!
//! ```text
//!   from  │ a a a:a a a a:a │ b b:b b b:b b b │        two runs, divided for three blocks
//!   to    │ a a a b b:a a a a b b b:a b b b   │
//! ```
//!
//! All blocks are found before the first is merged, so only one thread at a time compares an element.

use super::memory;
use crate::{Error, parallel};
use std::mem::MaybeUninit;

/// Blocks for each thread: more than one, so that other threads take over some from a thread that is delayed.
const BLOCKS_PER_THREAD: usize = 4;

/// Elements of two runs, and the slots of their merge. `to.len() = a.len() + b.len()`.
struct Block<'a, T> {
    a: &'a mut [T],
    b: &'a mut [T],
    to: &'a mut [MaybeUninit<T>],
}

/// Merges the first run of `from` with the second, the third with the fourth and so on. Each run has `run` elements,
/// and the last may be shorter. A last run without a partner is copied.
///
/// Each slot of `to` receives the bits of another element, for any results of `is_less`.
pub(super) fn merge_pairs_of_runs<T: Send>(
    from: &mut [T],
    to: &mut [MaybeUninit<T>],
    run: usize,
    is_less: &(impl Fn(&T, &T) -> bool + Sync),
    threads: usize,
) {
    let length = from.len().div_ceil(threads * BLOCKS_PER_THREAD);
    let mut blocks = vec![];
    let listed = pairs_of_runs(from, to, run).try_for_each(|pair| divide(pair, length, is_less, &mut blocks));
    match listed {
        Ok(()) => merge_blocks(blocks, is_less, threads),
        // There is no memory for the list: the calling thread merges pair by pair.
        Err(_) => pairs_of_runs(from, to, run).for_each(|Block { a, b, to }| merge(a, b, to, is_less)),
    }
}

/// Each pair of runs of `run` elements, and the slots of its merge.
fn pairs_of_runs<'a, T>(
    from: &'a mut [T],
    to: &'a mut [MaybeUninit<T>],
    run: usize,
) -> impl Iterator<Item = Block<'a, T>> {
    from.chunks_mut(2 * run).zip(to.chunks_mut(2 * run)).map(move |(pair, to)| {
        let (a, b) = pair.split_at_mut(run.min(pair.len()));
        Block { a, b, to }
    })
}

/// Merges two runs into a vector, which then owns their elements.
///
/// If `is_less` panics, the runs still own and drop them.
pub(crate) fn merge_by<T: Send>(
    mut a: Vec<T>,
    mut b: Vec<T>,
    is_less: &(impl Fn(&T, &T) -> bool + Sync),
    threads: usize,
) -> Result<Vec<T>, Error> {
    // The sum overflows only for elements without a size. No vector has this many elements.
    let count = a.len().checked_add(b.len()).ok_or(Error::OutOfHostMemory { needed: u64::MAX })?;
    let mut merged: Vec<T> = memory::reserved(count)?;
    memory::prefer_huge_pages(merged.spare_capacity_mut());
    // Elements without a size have no bits to copy.
    if size_of::<T>() > 0 {
        let (length, mut blocks) = (count.div_ceil(threads * BLOCKS_PER_THREAD), vec![]);
        let to = &mut merged.spare_capacity_mut()[..count];
        divide(Block { a: &mut a, b: &mut b, to }, length, is_less, &mut blocks)?;
        merge_blocks(blocks, is_less, threads);
    }
    // SAFETY: `merged` has capacity for `count` elements. The blocks cover the `count` slots once, and each slot has
    // received the bits of another element of `a` or `b`. Their lengths become 0, so `merged` is the only owner.
    unsafe {
        a.set_len(0);
        b.set_len(0);
        merged.set_len(count);
    }
    Ok(merged)
}

/// Adds the blocks of a merge to `blocks`. A block has `length` elements, and the last may have fewer.
fn divide<'a, T>(
    whole: Block<'a, T>,
    length: usize,
    is_less: &impl Fn(&T, &T) -> bool,
    blocks: &mut Vec<Block<'a, T>>,
) -> Result<(), Error> {
    let Block { mut a, mut b, mut to } = whole;
    while to.len() > length {
        let i = split(a, b, length, is_less);
        let (a_part, b_part, to_part);
        (a_part, a) = a.split_at_mut(i);
        (b_part, b) = b.split_at_mut(length - i);
        (to_part, to) = to.split_at_mut(length);
        memory::push(blocks, Block { a: a_part, b: b_part, to: to_part })?;
    }
    memory::push(blocks, Block { a, b, to })
}

/// Merges each block.
fn merge_blocks<T: Send>(blocks: Vec<Block<T>>, is_less: &(impl Fn(&T, &T) -> bool + Sync), threads: usize) {
    parallel::for_each_on(threads, blocks, |Block { a, b, to }| merge(a, b, to, is_less));
}

/// The co-rank of `count` in `a`: the number of elements of `a` among the first `count` elements of a stable merge.
/// `count` is at most `a.len() + b.len()`.
fn split<T>(a: &[T], b: &[T], count: usize, is_less: &impl Fn(&T, &T) -> bool) -> usize {
    // Both bounds keep `count - i` within `0..=b.len()`.
    let (mut least, mut most) = (count.saturating_sub(b.len()), count.min(a.len()));
    while least < most {
        let i = least + (most - least) / 2;
        // `i < most <= a.len()`. `i >= count - b.len()`, so `count - 1 - i < b.len()`.
        if is_less(&b[count - 1 - i], &a[i]) {
            most = i;
        } else {
            least = i + 1;
        }
    }
    least
}

/// Copies the bits of all elements of `a` and `b` to `to` in the order of a stable merge. `to.len() = a.len() +
/// b.len()`.
fn merge<T>(a: &[T], b: &[T], to: &mut [MaybeUninit<T>], is_less: &impl Fn(&T, &T) -> bool) {
    assert_eq!(to.len(), a.len() + b.len());
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        // No branch depends on the comparison.
        let is_b = is_less(&b[j], &a[i]);
        let next = if is_b { &raw const b[j] } else { &raw const a[i] };
        // SAFETY: `next` points to an element of `a` or `b`. `i < a.len()` and `j < b.len()`, so slot `i + j` is less
        // than `to.len()`. `to` is borrowed exclusively, so it does not overlap `a` or `b`.
        unsafe { std::ptr::copy_nonoverlapping(next, to.as_mut_ptr().add(i + j).cast(), 1) };
        j += usize::from(is_b);
        i += usize::from(!is_b);
    }
    let (rest_of_a, rest_of_b) = to[i + j..].split_at_mut(a.len() - i);
    copy(&a[i..], rest_of_a);
    copy(&b[j..], rest_of_b);
}

/// Copies the bits of elements.
fn copy<T>(from: &[T], to: &mut [MaybeUninit<T>]) {
    assert_eq!(from.len(), to.len());
    // SAFETY: both slices have the same length by the assertion, and `to` is borrowed exclusively, so they do not
    // overlap.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr().cast(), from.len()) };
}
