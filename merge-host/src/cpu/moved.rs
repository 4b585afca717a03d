//! Elements of any type, moved by a permutation.
//!
//! An element is moved by copying its bits. Memory that it owns is not copied or dropped. So until a move ends, the
//! bits of an element exist twice, and one of the copies counts:
//!
//! ```text
//!   items    A B C D            A B C D            C A D B
//!   scratch  . . . .  ─ gather  C A D B  ─ copy ─► C A D B
//!   owner    items              items              items
//! ```
//!
//! The last step is the write to `items`. A [`CopyBack`] completes it even if a thread panics before.

use super::blocks::for_each_block_of_keys;
use super::memory;
use super::scratch::Scratch;
use crate::{Error, Index};
use std::mem::MaybeUninit;

/// The number of elements of a block.
const BLOCK: usize = 1 << 14;
/// Prefetch distance, in elements.
const AHEAD: usize = 16;
/// The greatest size of an element that is not prefetched, in bytes: the processor fetches small elements early enough.
const SMALL: usize = 16;

/// The bits of an element, which threads copy but do not use as an element.
#[repr(transparent)]
pub(crate) struct Moved<T>(MaybeUninit<T>);

// SAFETY: a shared reference only lets threads copy the bits. At any time one copy counts as the element, so one thread
// at a time uses it, as if the element had been sent to that thread: `T` is `Send`.
unsafe impl<T: Send> Sync for Moved<T> {}

impl<T> Moved<T> {
    /// The bits of `items`.
    pub fn of(items: &mut [T]) -> &[Self] {
        // SAFETY: `Moved<T>` has the layout of `T`. `items` stays borrowed exclusively as long as the result lives, so
        // nothing else refers to the elements.
        unsafe { &*(std::ptr::from_mut(items) as *const [Self]) }
    }

    /// A copy of the bits.
    #[inline(always)]
    pub fn bits(&self) -> MaybeUninit<T> {
        // SAFETY: `self` is a `MaybeUninit<T>`, which may be copied bit by bit.
        unsafe { std::ptr::read(&raw const self.0) }
    }

    /// Copies the bits to `to`.
    #[inline(always)]
    fn copy_to(&self, to: &mut MaybeUninit<T>) {
        // SAFETY: `self` is a shared reference and `to` an exclusive one. Both have the size of a `T`, and they do not
        // overlap.
        unsafe { std::ptr::copy_nonoverlapping(&raw const self.0, to, 1) };
    }
}

/// Copies to each slot `i` of `to` the bits of element `permutation[i]` of `from`, on up to `threads` threads.
///
/// # Panics
/// Panics if an index is not below the number of elements, or if there are fewer indices than slots.
pub(crate) fn gather<T: Send, I: Index>(
    from: &[Moved<T>],
    permutation: &[I],
    to: &mut [MaybeUninit<T>],
    threads: usize,
) {
    assert!(permutation.len() >= to.len());
    for_each_block_of_keys(to, BLOCK, threads, |begin, to| {
        let indices = &permutation[begin..];
        for (i, slot) in to.iter_mut().enumerate() {
            if size_of::<T>() > SMALL
                && let Some(next) = indices.get(i + AHEAD)
            {
                memory::prefetch(from, next.to_usize());
            }
            from[indices[i].to_usize()].copy_to(slot);
        }
    });
}

/// Moves to each slot `i` of `items` the element `permutation[i]`, on up to `threads` threads.
///
/// # Errors
/// [`Error::OutOfHostMemory`] if there is no scratch memory for all elements. `items` is unchanged then.
///
/// # Safety
/// `permutation` has each index of `items` once.
pub(crate) unsafe fn permute<T: Send, I: Index>(
    items: &mut [T],
    permutation: &[I],
    threads: usize,
) -> Result<(), Error> {
    assert!(permutation.len() == items.len());
    let gather = |from: &[Moved<T>], to: &mut [MaybeUninit<T>]| {
        gather(from, permutation, to, threads);
        Ok(())
    };
    // SAFETY: `permutation` has each index of `items` once, so the gather writes the bits of each element once.
    unsafe { move_all(items, gather, threads) }
}

/// Moves `items` as `place` does, which copies the bits of each to one slot of scratch memory.
///
/// # Errors
/// [`Error::OutOfHostMemory`] if there is no scratch memory for all elements, and the errors of `place`. `items` is
/// unchanged then.
///
/// # Safety
/// If `place` succeeds, it has written the bits of each element of its first argument once to its second argument.
pub(super) unsafe fn move_all<T: Send>(
    items: &mut [T],
    place: impl FnOnce(&[Moved<T>], &mut [MaybeUninit<T>]) -> Result<(), Error>,
    threads: usize,
) -> Result<(), Error> {
    let mut scratch = Scratch::<T>::uninit(items.len())?;
    place(Moved::of(items), &mut scratch)?;
    // SAFETY: both slices have the same length. `place` has written the bits of each element once.
    unsafe { CopyBack::new(items, &mut scratch) }.copy(threads);
    Ok(())
}

/// [`permute`] with scratch memory of the length of `items`.
///
/// # Safety
/// `permutation` has each index of `items` once.
pub(crate) unsafe fn permute_by<T: Send, I: Index>(
    items: &mut [T],
    permutation: &[I],
    scratch: &mut [MaybeUninit<T>],
    threads: usize,
) {
    assert!(scratch.len() == items.len() && permutation.len() == items.len());
    gather(Moved::of(items), permutation, scratch, threads);
    // SAFETY: both slices have the same length by the assertion. `permutation` has each index once, so the scratch
    // memory has the bits of each element once.
    unsafe { CopyBack::new(items, scratch) }.copy(threads);
}

/// The elements of a slice while they are in scratch memory. Dropping this copies them back.
pub(super) struct CopyBack<'a, T> {
    items: &'a mut [T],
    scratch: &'a mut [MaybeUninit<T>],
}

impl<'a, T: Send> CopyBack<'a, T> {
    /// The elements in `scratch` replace the contents of `items`.
    ///
    /// # Safety
    /// Both slices have the same length, and `scratch` has the bits of each element of `items` once, in any order.
    pub unsafe fn new(items: &'a mut [T], scratch: &'a mut [MaybeUninit<T>]) -> Self {
        Self { items, scratch }
    }

    /// The elements, in the scratch memory.
    pub fn elements(&mut self) -> &mut [T] {
        // SAFETY: by the contract of `new`, each slot of `scratch` has the bits of an element, so it is initialised.
        // The copies in `items` are not used as elements.
        unsafe { self.scratch.assume_init_mut() }
    }

    /// The slots of `items`, which may be overwritten, and the elements in the scratch memory.
    pub fn slots_and_elements(&mut self) -> (&mut [MaybeUninit<T>], &mut [T]) {
        // SAFETY: `MaybeUninit<T>` has the layout of `T`. The slots are written with any bits, but `drop` overwrites
        // every slot before `items` is used again.
        let slots = unsafe { &mut *(std::ptr::from_mut(self.items) as *mut [MaybeUninit<T>]) };
        // SAFETY: by the contract of `new`, each slot of `scratch` has the bits of an element, so it is initialised.
        (slots, unsafe { self.scratch.assume_init_mut() })
    }

    /// Copies the elements back on up to `threads` threads.
    pub fn copy(mut self, threads: usize) {
        let (to, from) = self.slots_and_elements();
        let from = Moved::of(from);
        for_each_block_of_keys(to, BLOCK, threads, |begin, to| {
            from[begin..][..to.len()].iter().zip(to).for_each(|(from, to)| from.copy_to(to));
        });
        // All elements have been copied back, so `drop` must not copy again.
        std::mem::forget(self);
    }

    /// Ends the move without a copy, because the elements are in `items` again, in any order.
    ///
    /// # Safety
    /// The slots of `items` have the bits of each element once.
    pub unsafe fn arrived(self) {
        std::mem::forget(self);
    }
}

impl<T> Drop for CopyBack<'_, T> {
    fn drop(&mut self) {
        // SAFETY: by the contract of `new`, both slices have the same length, and `scratch` has the bits of each
        // element once. Both are borrowed exclusively, so they do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(self.scratch.as_ptr().cast(), self.items.as_mut_ptr(), self.items.len());
        }
    }
}
