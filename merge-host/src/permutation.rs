//! Permutations: the index of the value that goes to each slot of an output.
//!
//! Values of any size are sorted by their keys in three steps: number the values, sort keys and numbers, and gather the
//! values in the order of the numbers. So each value moves once, at any size:
//!
//! ```
//! use merge_host::{Engine, SortOrder, permutation};
//!
//! let (mut keys, names) = ([30u32, 10, 20], b"xyzabcpqr");
//! let (mut order, mut sorted) = ([0u32; 3], [0; 9]);
//! permutation::fill_identity(&mut order);
//! Engine::cpu().sort_with(SortOrder::Ascending, (&mut keys, &mut order))?;
//! permutation::gather(3, &[names], &order, &mut sorted);
//! assert_eq!((order, &sorted), ([1, 2, 0], b"abcpqrxyz"));
//! # Ok::<(), merge_host::Error>(())
//! ```
//!
//! [`gather`] copies bytes, and its indices need not be a permutation. [`permute`], [`permute_in_place`] and
//! [`permuted`] move elements of any type, and return an error if the indices are not a permutation.

use crate::cpu::memory;
use crate::cpu::moved::{self, Moved};
use crate::cpu::scratch::Scratch;
use crate::engine::check_length;
use crate::{Error, Index, parallel};
use std::sync::atomic::{AtomicU8, Ordering};

/// The least number of values that a task gathers.
const BLOCK: usize = 1 << 14;

/// Writes 0, 1, 2 and so on to `indices`. Takes linear time, on the threads of [`parallel`] loops.
///
/// # Panics
/// Panics if `I` is `u32` and there are more than 2^32 indices.
pub fn fill_identity<I: Index>(indices: &mut [I]) {
    assert!(indices.len() as u128 <= I::COUNT, "{} indices exceed {}", indices.len(), I::NAME);
    fill_identity_on(parallel::threads_for(indices.len(), BLOCK), indices);
}

/// [`fill_identity`] on up to `threads` threads. 1 is the calling thread.
pub(crate) fn fill_identity_on<I: Index>(threads: usize, indices: &mut [I]) {
    let share = parallel::share_length_for(threads, indices.len(), BLOCK);
    parallel::for_each_on(threads, indices.chunks_mut(share).enumerate(), |(i, indices)| {
        indices.iter_mut().enumerate().for_each(|(j, index)| *index = I::from_usize(i * share + j));
    });
}

/// Copies to slot `i` of `out` the value at index `permutation[i]` of `parts`. The values of all parts are numbered in
/// sequence.
///
/// A value has `width` bytes. Each part has whole values, and `out` has one value for each index. Takes linear time,
/// times the logarithm of the number of parts, on the threads of [`parallel`] loops.
///
/// ```
/// let mut out = [0; 6];
/// merge_host::permutation::gather(2, &[b"aabb", b"cc"], &[2u32, 0, 1], &mut out);
/// assert_eq!(&out, b"ccaabb");
/// ```
///
/// # Panics
/// Panics if `out` does not have `width` bytes for each index, or if an index is not less than the number of values.
pub fn gather<I: Index>(width: usize, parts: &[&[u8]], permutation: &[I], out: &mut [u8]) {
    let ends = memory::collected(parts.iter().scan(0usize, |end, part| {
        // The same part may occur many times, so the sum may overflow.
        *end = end.saturating_add(part.len());
        Some(*end)
    }));
    let threads = parallel::threads_for(permutation.len(), BLOCK);
    match ends {
        Ok(ends) => gather_with(width, permutation, out, threads, |index| {
            let begin = byte_of(index, width);
            // The first part that ends behind the value's first byte. An empty part is never the first.
            let part = ends.partition_point(|&end| end <= begin);
            assert!(part < parts.len(), "index {index} is not below the number of values");
            &parts[part][begin - (ends[part] - parts[part].len())..][..width]
        }),
        // There is no memory for the ends.
        Err(_) => gather_with(width, permutation, out, threads, |index| {
            let mut begin = byte_of(index, width);
            let of_value = parts.iter().find(|part| {
                let is_there = begin < part.len();
                begin -= if is_there { 0 } else { part.len() };
                is_there
            });
            &of_value.expect("an index is below the number of values")[begin..][..width]
        }),
    }
}

/// The byte at which the value with this index begins.
fn byte_of(index: usize, width: usize) -> usize {
    index.checked_mul(width).expect("an index is below the number of values")
}

/// [`gather`] of the values that `value_at` returns for their indices, on up to `threads` threads.
pub(crate) fn gather_with<'a, I: Index>(
    width: usize,
    permutation: &[I],
    out: &mut [u8],
    threads: usize,
    value_at: impl Fn(usize) -> &'a [u8] + Sync,
) {
    let bytes = permutation.len().checked_mul(width);
    assert_eq!(Some(out.len()), bytes, "bytes of the output, for {} values", permutation.len());
    if width == 0 {
        return;
    }
    // The product does not exceed the bytes of `out` unless one share is all of it.
    let share = parallel::share_length_for(threads, permutation.len(), BLOCK);
    let shares = out.chunks_mut(share.saturating_mul(width)).zip(permutation.chunks(share));
    parallel::for_each_on(threads, shares, |(out, indices)| {
        for (to, index) in out.chunks_exact_mut(width).zip(indices) {
            to.copy_from_slice(value_at(index.to_usize()));
        }
    });
}

/// Moves to each slot `i` of `items` the element at index `permutation[i]`. Elements may be of any type. They are
/// moved, not cloned.
///
/// Takes linear time, on the threads of [`parallel`] loops. The scratch memory holds n elements and n bytes.
/// [`permute_in_place`] needs no scratch memory for the elements.
///
/// # Errors
/// - [`Error::LengthMismatch`] if `permutation` has another length than `items`.
/// - [`Error::IndexOutOfRange`] if an index is not less than the number of elements, and otherwise
///   [`Error::RepeatedIndex`] if an index occurs twice.
/// - [`Error::OutOfHostMemory`] if there is not enough scratch memory.
///
/// The elements are unchanged after an error.
///
/// ```
/// use merge_host::{Engine, Error, permutation};
///
/// let mut names = ["pear", "fig", "lime"].map(String::from);
/// let mut order = [0, 1, 2];
/// Engine::cpu().sort_by(&mut order, |&a, &b| names[a].cmp(&names[b]))?;
/// permutation::permute(&mut names, &order)?;
/// assert_eq!(names, ["fig", "lime", "pear"]);
///
/// let error = permutation::permute(&mut names, &[0u32, 2, 2]).unwrap_err();
/// assert_eq!(error, Error::RepeatedIndex { slot: 2, found: 2 });
/// # Ok::<(), Error>(())
/// ```
pub fn permute<T: Send, I: Index>(items: &mut [T], permutation: &[I]) -> Result<(), Error> {
    let threads = parallel::threads_for(items.len(), BLOCK);
    let permutation = Permutation::check(permutation, items.len(), threads)?;
    // SAFETY: `check` has returned a permutation, so each index below `items.len()` occurs once.
    unsafe { moved::permute(items, permutation.indices, threads) }
}

/// [`permute`] with one byte of scratch memory for each element: follows the cycles of the permutation, on one thread.
///
/// ```text
///   permutation  2 0 1 3       slots 0 ◄ 2 ◄ 1 ◄ 0    3
/// ```
///
/// # Errors
/// The errors of [`permute`].
///
/// ```
/// let mut letters = ['a', 'b', 'c', 'd'];
/// merge_host::permutation::permute_in_place(&mut letters, &[2u64, 0, 1, 3])?;
/// assert_eq!(letters, ['c', 'a', 'b', 'd']);
/// # Ok::<(), merge_host::Error>(())
/// ```
pub fn permute_in_place<T, I: Index>(items: &mut [T], permutation: &[I]) -> Result<(), Error> {
    let Permutation { indices, mut marks } = Permutation::check(permutation, items.len(), 1)?;
    for begin in 0..items.len() {
        let mut slot = begin;
        // A mark means that the slot does not have its element yet.
        while std::mem::take(marks[slot].get_mut()) != 0 {
            let from = indices[slot].to_usize();
            // At the end of the cycle the first element is already in the last slot.
            if from != begin {
                items.swap(slot, from);
            }
            slot = from;
        }
    }
    Ok(())
}

/// The elements of `items` in the order of `permutation`, as a new vector: the first is the element at index
/// `permutation[0]`.
///
/// `permuted` moves each element once, and [`permute`] moves it twice. Otherwise they are the same.
///
/// # Errors
/// The errors of [`permute`]. `items` is dropped then.
///
/// ```
/// let names = ["pear", "fig", "lime"].map(String::from).to_vec();
/// assert_eq!(merge_host::permutation::permuted(names, &[1u32, 2, 0])?, ["fig", "lime", "pear"]);
/// # Ok::<(), merge_host::Error>(())
/// ```
pub fn permuted<T: Send, I: Index>(mut items: Vec<T>, permutation: &[I]) -> Result<Vec<T>, Error> {
    let threads = parallel::threads_for(items.len(), BLOCK);
    Permutation::check(permutation, items.len(), threads)?;
    let mut sorted = memory::uninit::<T>(items.len())?;
    moved::gather(Moved::of(&mut items), permutation, &mut sorted, threads);
    // SAFETY: `check` has found each index once, so `gather` has moved each element once. `items` owns no element any
    // longer, and length 0 is within its capacity.
    unsafe { items.set_len(0) };
    let mut sorted = std::mem::ManuallyDrop::new(sorted);
    // SAFETY: `MaybeUninit<T>` has the layout of `T`, and `gather` has written the bits of an element to each slot. The
    // allocation belongs to a vector of the same capacity, and that vector is never dropped.
    Ok(unsafe { Vec::from_raw_parts(sorted.as_mut_ptr().cast(), sorted.len(), sorted.capacity()) })
}

/// A permutation: indices that contain each number below their length once.
pub(crate) struct Permutation<'a, I> {
    indices: &'a [I],
    /// A 1 for each element.
    marks: Vec<AtomicU8>,
}

impl<'a, I: Index> Permutation<'a, I> {
    /// `indices`, if they are a permutation of `count` elements, on up to `threads` threads.
    ///
    /// Each index marks its element. If `count` indices have marked `count` elements, no index occurs twice. The marks
    /// are atomic because two threads may write the same mark.
    pub fn check(indices: &'a [I], count: usize, threads: usize) -> Result<Self, Error> {
        check_length("the permutation", count, indices.len(), "|items|")?;
        let mut marks = memory::reserved(count)?;
        marks.resize_with(count, || AtomicU8::new(0));
        let share = parallel::share_length_for(threads, count, BLOCK);
        let mark = |index: &I| marks.get(index.to_usize()).map(|mark| mark.store(1, Ordering::Relaxed)).is_some();
        let wrong = parallel::try_map_on(threads, indices.chunks(share).enumerate(), |(i, indices)| {
            indices.iter().position(|index| !mark(index)).map(|wrong| i * share + wrong)
        })?;
        if let Some(slot) = wrong.into_iter().flatten().next() {
            return Err(Error::IndexOutOfRange { slot, found: indices[slot].to_usize(), count });
        }
        let all_are_marked = parallel::try_map_on(threads, marks.chunks(share), |marks| {
            marks.iter().all(|mark| mark.load(Ordering::Relaxed) != 0)
        })?;
        if !all_are_marked.into_iter().all(|all| all) {
            return Err(repeated(indices, marks));
        }
        Ok(Self { indices, marks })
    }

    /// Moves the elements of both slices as [`permute`] does. If there is not enough memory, no element of either slice
    /// moves.
    pub fn permute_both<A: Send, B: Send>(&self, a: &mut [A], b: &mut [B], threads: usize) -> Result<(), Error> {
        let (mut of_a, mut of_b) = (Scratch::<A>::uninit(a.len())?, Scratch::<B>::uninit(b.len())?);
        // SAFETY: `check` has found each index once, and `permute_by` asserts that the indices have the length of its
        // slice.
        unsafe {
            moved::permute_by(a, self.indices, &mut of_a, threads);
            moved::permute_by(b, self.indices, &mut of_b, threads);
        }
        Ok(())
    }
}

/// The error of indices with a repeated index.
fn repeated<I: Index>(indices: &[I], mut marks: Vec<AtomicU8>) -> Error {
    marks.iter_mut().for_each(|mark| *mark.get_mut() = 0);
    let slot = indices.iter().position(|index| std::mem::replace(marks[index.to_usize()].get_mut(), 1) == 1);
    let slot = slot.expect("an element is not marked, so that another is marked twice");
    Error::RepeatedIndex { slot, found: indices[slot].to_usize() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::fresh_seed;
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use rand::seq::SliceRandom;
    use std::fmt::Debug;

    fn gathers<I: Index>() {
        let (a, b): (Vec<u8>, Vec<u8>) = ((0..9).collect(), (9..30).collect());
        let permutation = [0, 3, 9, 2, 4].map(I::from_usize);
        let mut out = [99; 15];
        gather(3, &[&a, &b], &permutation, &mut out);
        assert_eq!(out, [0, 1, 2, 9, 10, 11, 27, 28, 29, 6, 7, 8, 12, 13, 14]);
        let mut same = [99; 15];
        gather(3, &[&[], &a[..3], &a[3..], &[], &b, &[]], &permutation, &mut same);
        assert_eq!(same, out);
    }

    #[test]
    fn values_come_from_their_indices_in_any_number_of_parts() {
        gathers::<u32>();
        gathers::<u64>();
        gather::<u32>(0, &[], &[], &mut []);
        gather::<u64>(5, &[&[]], &[], &mut []);
        gather(0, &[], &[3u32, 1], &mut []);
    }

    #[test]
    fn more_values_than_a_block_are_gathered() {
        let count = 2 * BLOCK + 3;
        let values: Vec<u8> = (0..2 * count).map(|i| (i / 2 * 7) as u8).collect();
        let mut permutation = vec![0u32; count];
        fill_identity(&mut permutation);
        assert!(permutation.iter().copied().eq(0..count as u32));
        permutation.reverse();
        let mut out = vec![0; 2 * count];
        gather(2, &[&values[..10], &values[10..]], &permutation, &mut out);
        assert!(out.chunks(2).eq(values.chunks(2).rev()));
    }

    #[test]
    #[should_panic(expected = "bytes of the output, for 2 values")]
    fn an_output_of_another_length_is_refused() {
        gather(2, &[&[1, 2, 3, 4]], &[0u32, 1], &mut [0; 3]);
    }

    /// Compares every way to move elements with a loop.
    fn moves<T: Clone + Send + PartialEq + Debug, I: Index>(make: impl Fn(usize) -> T) {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        for len in [0, 1, 2, 3, 10, 1000, BLOCK, BLOCK + 1, 3 * BLOCK + 7] {
            let items: Vec<T> = (0..len).map(&make).collect();
            let mut order: Vec<usize> = (0..len).collect();
            for kind in ["identity", "reversed", "rotated", "random"] {
                match kind {
                    "reversed" => order.reverse(),
                    "rotated" => order.rotate_left(len / 3),
                    "random" => order.shuffle(&mut random),
                    _ => {}
                }
                let expected: Vec<T> = order.iter().map(|&index| items[index].clone()).collect();
                let indices: Vec<I> = order.iter().map(|&index| I::from_usize(index)).collect();
                let what = format!("{len} elements, {kind}, seed {seed}");
                let mut found = items.clone();
                permute(&mut found, &indices).unwrap();
                assert!(found == expected, "{what}");
                let mut found = items.clone();
                permute_in_place(&mut found, &indices).unwrap();
                assert!(found == expected, "in place, {what}");
                assert!(permuted(items.clone(), &indices).unwrap() == expected, "as a vector, {what}");
            }
        }
    }

    #[test]
    fn elements_of_any_type_are_moved() {
        moves::<u8, u32>(|i| i as u8);
        moves::<[u64; 5], u64>(|i| [i as u64; 5]);
        moves::<String, u32>(|i| i.to_string());
        moves::<(), u64>(|_| ());
    }

    #[test]
    fn what_is_not_a_permutation_is_refused() {
        let refused = |indices: &[u64]| {
            let items: Vec<Box<usize>> = (0..4).map(Box::new).collect();
            let (mut moved, mut in_place) = (items.clone(), items.clone());
            let error = permute(&mut moved, indices).unwrap_err();
            assert_eq!(permute_in_place(&mut in_place, indices), Err(error.clone()));
            assert_eq!(permuted(items.clone(), indices), Err(error.clone()));
            assert!(moved == items && in_place == items);
            error
        };
        assert!(matches!(refused(&[0, 1, 2]), Error::LengthMismatch { expected: 4, found: 3, .. }));
        assert!(matches!(refused(&[0, 1, 2, 3, 4]), Error::LengthMismatch { expected: 4, found: 5, .. }));
        assert_eq!(refused(&[0, 1, 4, 3]), Error::IndexOutOfRange { slot: 2, found: 4, count: 4 });
        assert_eq!(refused(&[0, u64::MAX, 4, 3]), Error::IndexOutOfRange { slot: 1, found: usize::MAX, count: 4 });
        assert_eq!(refused(&[0, 1, 0, 3]), Error::RepeatedIndex { slot: 2, found: 0 });
        assert_eq!(refused(&[3, 3, 3, 3]), Error::RepeatedIndex { slot: 1, found: 3 });
    }

    #[test]
    fn a_wrong_index_is_found_anywhere() {
        let count = 3 * BLOCK + 7;
        let order: Vec<u32> = (0..count as u32).rev().collect();
        for slot in [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK + 5, count - 1] {
            let mut wrong = order.clone();
            wrong[slot] = count as u32;
            let error = permute(&mut vec![0u8; count], &wrong).unwrap_err();
            assert_eq!(error, Error::IndexOutOfRange { slot, found: count, count });
            wrong[slot] = order[(slot + BLOCK) % count];
            let slot = slot.max((slot + BLOCK) % count);
            let error = permute(&mut vec![0u8; count], &wrong).unwrap_err();
            assert_eq!(error, Error::RepeatedIndex { slot, found: wrong[slot] as usize });
        }
    }
}
