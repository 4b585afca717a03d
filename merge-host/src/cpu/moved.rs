//! Elements of any type, moved in the order of a permutation.
//!
//! An element is moved by copying its bits. What it owns is neither copied nor dropped, so until the end of a move
//! there are two copies of its bits, of which one counts:
//!
//! ```text
//!   items    A B C D            A B C D            C A D B
//!   scratch  . . . .  ─ gather  C A D B  ─ copy ─► C A D B
//!   owner    items              items              items
//! ```
//!
//! The step that writes to `items` is the last one. A [`CopyBack`] completes it also if a thread panics in between.

use super::blocks::for_each_block_of_keys;
use super::memory;
use super::scratch::Scratch;
use crate::{Error, Index};
use std::mem::MaybeUninit;

/// Elements that a thread moves at once.
const BLOCK: usize = 1 << 14;
/// Elements whose bits are being fetched from memory while those of another are copied.
const AHEAD: usize = 16;
/// Bytes of the greatest element that the processor fetches early enough by itself.
const SMALL: usize = 16;

/// The bits of an element, which threads copy but do not use as an element.
#[repr(transparent)]
pub(crate) struct Moved<T>(MaybeUninit<T>);

// SAFETY: a shared reference gives access to bits only, of which a copy becomes an element of one thread, as if it had
// been sent to it.
unsafe impl<T: Send> Sync for Moved<T> {}

impl<T> Moved<T> {
    /// The bits of `items`.
    pub fn of(items: &mut [T]) -> &[Self] {
        // SAFETY: `Moved<T>` has the layout of `T`, and as long as the result lives nothing else refers to the
        // elements.
        unsafe { &*(std::ptr::from_mut(items) as *const [Self]) }
    }

    /// Copies the bits to `to`.
    #[inline(always)]
    fn copy_to(&self, to: &mut MaybeUninit<T>) {
        // SAFETY: one is to be read, the other to be written, and each has the size of a `T`.
        unsafe { std::ptr::copy_nonoverlapping(&raw const self.0, to, 1) };
    }
}

/// Copies to each slot of `to` the bits of the element that has the slot's index in `permutation`, on up to `threads`
/// threads.
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

/// Moves to each slot of `items` the element that has the slot's index in `permutation`, on up to `threads` threads.
///
/// # Errors
/// [`Error::OutOfHostMemory`] if there is no scratch memory for as many elements. They are unchanged then.
///
/// # Safety
/// `permutation` has each index of `items` once.
pub(crate) unsafe fn permute<T: Send, I: Index>(
    items: &mut [T],
    permutation: &[I],
    threads: usize,
) -> Result<(), Error> {
    let mut scratch = Scratch::<T>::uninit(items.len())?;
    // SAFETY: the contract is the same.
    unsafe { permute_by(items, permutation, &mut scratch, threads) };
    Ok(())
}

/// [`permute`] by scratch memory for as many elements.
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
    // SAFETY: each slot of the scratch memory has the bits of another element, because no index is there twice.
    unsafe { CopyBack::new(items, scratch) }.copy(threads);
}

/// The elements of a slice that are, at present, in scratch memory. They are copied back when this is dropped.
pub(super) struct CopyBack<'a, T> {
    items: &'a mut [T],
    scratch: &'a mut [MaybeUninit<T>],
}

impl<'a, T: Send> CopyBack<'a, T> {
    /// The elements in `scratch` are to replace those of `items`.
    ///
    /// # Safety
    /// Both have the same length, and `scratch` has the bits of all elements of `items`, in any order, each once.
    pub unsafe fn new(items: &'a mut [T], scratch: &'a mut [MaybeUninit<T>]) -> Self {
        Self { items, scratch }
    }

    /// The elements, where they are.
    pub fn elements(&mut self) -> &mut [T] {
        // SAFETY: each slot has the bits of an element of `items`, which count in place of those.
        unsafe { self.scratch.assume_init_mut() }
    }

    /// Slots for the elements, which have no elements that count, and the elements, where they are.
    pub fn slots_and_elements(&mut self) -> (&mut [MaybeUninit<T>], &mut [T]) {
        // SAFETY: `MaybeUninit<T>` has the layout of `T`, and whatever is written there is overwritten when this is
        // dropped.
        let slots = unsafe { &mut *(std::ptr::from_mut(self.items) as *mut [MaybeUninit<T>]) };
        // SAFETY: as for `elements`.
        (slots, unsafe { self.scratch.assume_init_mut() })
    }

    /// Copies the elements back on up to `threads` threads.
    pub fn copy(mut self, threads: usize) {
        let (to, from) = self.slots_and_elements();
        let from = Moved::of(from);
        for_each_block_of_keys(to, BLOCK, threads, |begin, to| {
            from[begin..][..to.len()].iter().zip(to).for_each(|(from, to)| from.copy_to(to));
        });
        // Nothing is left to copy.
        std::mem::forget(self);
    }

    /// The elements are in `items` again, in any order.
    ///
    /// # Safety
    /// The slots have the bits of all elements, each once.
    pub unsafe fn arrived(self) {
        std::mem::forget(self);
    }
}

impl<T> Drop for CopyBack<'_, T> {
    fn drop(&mut self) {
        // SAFETY: both slices have the same length and do not overlap, and the bits in `scratch` are those that count.
        unsafe {
            std::ptr::copy_nonoverlapping(self.scratch.as_ptr().cast(), self.items.as_mut_ptr(), self.items.len());
        }
    }
}
