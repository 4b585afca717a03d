//! The block's shared memory.

use crate::global::Place;
use crate::{Global, GlobalMut, Word, backend};
use core::marker::PhantomData;

/// A view of an array in the block's shared memory: 32-bit positions, words of one type.
///
/// On the GPU an access is one `ld.shared` or `st.shared` instruction; in the emulator it is checked for bounds,
/// for reads of memory that no thread wrote, and for races.
#[derive(Clone, Copy)]
pub struct Shared<T> {
    /// Byte address in the shared window.
    base: u32,
    len: u32,
    of: PhantomData<T>,
}

impl<T: Word> Shared<T> {
    /// The `len` elements that start `byte_offset` bytes into the dynamic shared memory of the launch.
    ///
    /// # Safety
    /// `byte_offset` is a multiple of the size of `T`, the launch has at least `byte_offset + len * size_of::<T>()`
    /// bytes of dynamic shared memory, every index later used is below `len`, and threads order their accesses to one
    /// element with barriers if one of them writes it.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn dynamic(byte_offset: u32, len: u32) -> Self {
        Self { base: backend::dynamic_shared_base() + byte_offset, len, of: PhantomData }
    }

    /// Elements in view.
    #[inline(always)]
    pub fn len(self) -> u32 {
        self.len
    }

    /// Whether the view is of no elements.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Element `i`.
    #[inline(always)]
    #[track_caller]
    pub fn get(self, i: u32) -> T {
        backend::check_index(i as usize, self.len as usize);
        // SAFETY: `dynamic`'s caller promised that elements below `len` are in the launch's shared memory.
        unsafe { backend::load_shared(self.base + i * size_of::<T>() as u32) }
    }

    /// Makes element `i` be `value`.
    #[inline(always)]
    #[track_caller]
    pub fn set(self, i: u32, value: T) {
        backend::check_index(i as usize, self.len as usize);
        // SAFETY: as for `get`.
        unsafe { backend::store_shared(self.base + i * size_of::<T>() as u32, value) }
    }

    /// Starts copying element `j` of `from` to element `i`, for words of 4 or 8 bytes (`cp.async`). The copy does not pass
    /// through registers, and many can be under way; it is there after [`wait_for_copies`] of the same thread, and a
    /// barrier for other threads.
    #[inline(always)]
    #[track_caller]
    pub fn copy_async(self, i: u32, from: Global<T>, j: usize) {
        backend::check_index(i as usize, self.len as usize);
        // SAFETY: as for `get`; `address` is of an element of the view.
        unsafe { backend::copy_async(self.base + i * size_of::<T>() as u32, from.address(j)) }
    }

    /// As [`copy_async`](Self::copy_async), of the element `distance` after a place.
    #[inline(always)]
    #[track_caller]
    pub fn copy_async_from(self, i: u32, from: Place<T>, distance: isize) {
        backend::check_index(i as usize, self.len as usize);
        // SAFETY: as for `copy_async`.
        unsafe { backend::copy_async(self.base + i * size_of::<T>() as u32, from.address(distance)) }
    }

    /// As [`copy_async`](Self::copy_async), from an array that this launch writes, later on.
    #[inline(always)]
    #[track_caller]
    pub fn copy_async_mut(self, i: u32, from: GlobalMut<T>, j: usize) {
        backend::check_index(i as usize, self.len as usize);
        // SAFETY: as for `copy_async`.
        unsafe { backend::copy_async_mut(self.base + i * size_of::<T>() as u32, from.address(j)) }
    }

    /// The address of element `i` in the window of shared memory, for arithmetic in bytes. `i` need not be below the
    /// length.
    #[inline(always)]
    pub fn address(self, i: u32) -> u32 {
        self.base.wrapping_add(i.wrapping_mul(size_of::<T>() as u32))
    }

    /// The index of the element at an address that is that of an element of this view.
    #[inline(always)]
    pub fn index(self, address: u32) -> u32 {
        address.wrapping_sub(self.base) / size_of::<T>() as u32
    }

    /// The element at an address that is that of an element of this view: what [`get`](Self::get) reads, where the
    /// arithmetic has been done on addresses.
    #[inline(always)]
    #[track_caller]
    pub fn get_at(self, address: u32) -> T {
        backend::check_index((address.wrapping_sub(self.base) / size_of::<T>() as u32) as usize, self.len as usize);
        // SAFETY: `dynamic`'s caller promised that elements below `len` are in the launch's shared memory.
        unsafe { backend::load_shared(address) }
    }

    /// Makes the element at an address be `value`: what [`set`](Self::set) does, as [`get_at`](Self::get_at) is [`get`](Self::get).
    #[inline(always)]
    #[track_caller]
    pub fn set_at(self, address: u32, value: T) {
        backend::check_index((address.wrapping_sub(self.base) / size_of::<T>() as u32) as usize, self.len as usize);
        // SAFETY: as for `get_at`.
        unsafe { backend::store_shared(address, value) }
    }

    /// The address of the element after the one at `address`, and that element, of 4 or 8 bytes, if `is_next`. Otherwise `address` and `element`.
    #[inline(always)]
    #[track_caller]
    pub fn next_if(self, is_next: bool, address: u32, element: T) -> (u32, T) {
        if is_next {
            backend::check_index(
                (address.wrapping_sub(self.base) / size_of::<T>() as u32) as usize + 1,
                self.len as usize,
            );
        }
        // SAFETY: as for `get_at`.
        unsafe { backend::load_next_shared_if(is_next, address, element) }
    }

    /// Makes the element at an address be `value`, for words of 2, 4 or 8 bytes, and returns the address of the next one, if `bits` has a bit of `mask`.
    /// Otherwise does nothing, and returns `address`.
    #[inline(always)]
    #[track_caller]
    pub fn push_if(self, bits: u32, mask: u32, address: u32, value: T) -> u32 {
        if bits & mask != 0 {
            backend::check_index((address.wrapping_sub(self.base) / size_of::<T>() as u32) as usize, self.len as usize);
        }
        // SAFETY: as for `get_at`.
        unsafe { backend::store_shared_if(bits, mask, address, value) }
    }

    /// The `len` elements from `start` on.
    #[inline(always)]
    #[track_caller]
    pub fn slice(self, start: u32, len: u32) -> Self {
        backend::check_range(start as usize, len as usize, self.len as usize);
        Self { base: self.base + start * size_of::<T>() as u32, len, of: PhantomData }
    }
}

impl Shared<u32> {
    /// Adds `value` to element `i`, modulo 2^32, and returns what it was before (`atom.shared.add`). Many threads may do so,
    /// without order; none may read or write it in another way before a barrier.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_add(self, i: u32, value: u32) -> u32 {
        backend::check_index(i as usize, self.len as usize);
        // SAFETY: as for `get`.
        unsafe { backend::add_shared(self.base + i * size_of::<u32>() as u32, value) }
    }
}

/// Makes one group of the copies that this thread has started since it called this before (`cp.async.commit_group`).
#[inline(always)]
pub fn commit_copies() {
    backend::commit_copies();
}

/// Waits until the copies of all groups that this thread has [made](commit_copies) are there, but those of the last one (`cp.async.wait_group 1`).
#[inline(always)]
pub fn wait_for_all_but_last_commit() {
    backend::wait_for_all_but_last_commit();
}

/// Waits until all copies that this thread has started with [`Shared::copy_async`] are there.
#[inline(always)]
pub fn wait_for_copies() {
    backend::wait_for_copies();
}

/// Bytes of dynamic shared memory that the launch gave to each block.
#[inline(always)]
pub fn dynamic_shared_size() -> u32 {
    backend::dynamic_shared_size()
}
