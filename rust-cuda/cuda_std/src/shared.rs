//! The block's shared memory.

use crate::global::Place;
use crate::{Global, GlobalMut, Word, backend};
use core::marker::PhantomData;

/// A view of an array in the block's shared memory, with 32-bit indices and words of one type.
///
/// On the GPU an access is one `ld.shared` or `st.shared` instruction. The emulator checks bounds, reads of unwritten
/// memory, and races.
#[derive(Clone, Copy)]
pub struct Shared<T> {
    /// Byte address in the shared window.
    base: u32,
    len: u32,
    of: PhantomData<T>,
}

impl<T: Word> Shared<T> {
    /// The `len` elements at `byte_offset` bytes from the start of the launch's dynamic shared memory.
    ///
    /// # Safety
    /// `byte_offset` is a multiple of the size of `T`, and the launch has at least `byte_offset + len * size_of::<T>()`
    /// bytes of dynamic shared memory. Every index later used is below `len`. Barriers order the accesses of two
    /// threads to one element if one is a write.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn dynamic(byte_offset: u32, len: u32) -> Self {
        Self { base: backend::dynamic_shared_base() + byte_offset, len, of: PhantomData }
    }

    /// Number of elements.
    #[inline(always)]
    pub fn len(self) -> u32 {
        self.len
    }

    /// Whether the length is 0.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Element `i`.
    #[inline(always)]
    #[track_caller]
    pub fn get(self, i: u32) -> T {
        backend::check_index(i as usize, self.len as usize);
        // SAFETY: `dynamic`'s caller passes an index `i < len`, and `len` elements in the launch's shared memory.
        unsafe { backend::load_shared(self.base + i * size_of::<T>() as u32) }
    }

    /// Sets element `i` to `value`.
    #[inline(always)]
    #[track_caller]
    pub fn set(self, i: u32, value: T) {
        backend::check_index(i as usize, self.len as usize);
        // SAFETY: `dynamic`'s caller passes an index `i < len`, and `len` elements in the launch's shared memory.
        unsafe { backend::store_shared(self.base + i * size_of::<T>() as u32, value) }
    }

    /// Starts an asynchronous copy of element `j` of `from` to element `i`, for words of 4 or 8 bytes (`cp.async`). The
    /// copy does not use registers, and many copies can be in flight. The copying thread can use the element after
    /// [`wait_for_copies`], and other threads after a further barrier.
    #[inline(always)]
    #[track_caller]
    pub fn copy_async(self, i: u32, from: Global<T>, j: usize) {
        backend::check_index(i as usize, self.len as usize);
        // SAFETY: `dynamic`'s caller passes an index `i < len`, and `len` elements in the launch's shared memory.
        // `address` returns the address of an element of `from`.
        unsafe { backend::copy_async(self.base + i * size_of::<T>() as u32, from.address(j)) }
    }

    /// Like [`copy_async`](Self::copy_async), from the element at `distance` from a place.
    #[inline(always)]
    #[track_caller]
    pub fn copy_async_from(self, i: u32, from: Place<T>, distance: isize) {
        backend::check_index(i as usize, self.len as usize);
        // SAFETY: `dynamic`'s caller passes an index `i < len`, and `len` elements in the launch's shared memory.
        // `address` returns the address of an element of the place's view.
        unsafe { backend::copy_async(self.base + i * size_of::<T>() as u32, from.address(distance)) }
    }

    /// Like [`copy_async`](Self::copy_async), from an array that this launch writes later.
    #[inline(always)]
    #[track_caller]
    pub fn copy_async_mut(self, i: u32, from: GlobalMut<T>, j: usize) {
        backend::check_index(i as usize, self.len as usize);
        // SAFETY: `dynamic`'s caller passes an index `i < len`, and `len` elements in the launch's shared memory.
        // `address` returns the address of an element of `from`.
        unsafe { backend::copy_async_mut(self.base + i * size_of::<T>() as u32, from.address(j)) }
    }

    /// The address of element `i` in the shared window, for arithmetic in bytes. `i` may be at or beyond the length.
    #[inline(always)]
    pub fn address(self, i: u32) -> u32 {
        self.base.wrapping_add(i.wrapping_mul(size_of::<T>() as u32))
    }

    /// The index of the element at `address`, which must be the address of an element of this view.
    #[inline(always)]
    pub fn index(self, address: u32) -> u32 {
        address.wrapping_sub(self.base) / size_of::<T>() as u32
    }

    /// Like [`get`](Self::get), for the element at `address`, which must be the address of an element of this view.
    #[inline(always)]
    #[track_caller]
    pub fn get_at(self, address: u32) -> T {
        backend::check_index((address.wrapping_sub(self.base) / size_of::<T>() as u32) as usize, self.len as usize);
        // SAFETY: `address` belongs to an element below `len`, and `dynamic`'s caller passes `len` elements in the
        // launch's shared memory.
        unsafe { backend::load_shared(address) }
    }

    /// Like [`set`](Self::set), for the element at `address`, which must be the address of an element of this view.
    #[inline(always)]
    #[track_caller]
    pub fn set_at(self, address: u32, value: T) {
        backend::check_index((address.wrapping_sub(self.base) / size_of::<T>() as u32) as usize, self.len as usize);
        // SAFETY: `address` belongs to an element below `len`, and `dynamic`'s caller passes `len` elements in the
        // launch's shared memory.
        unsafe { backend::store_shared(address, value) }
    }

    /// If `is_next`, the address and the value of the element after the one at `address`, of 4 or 8 bytes. Otherwise
    /// `address` and `element`.
    #[inline(always)]
    #[track_caller]
    pub fn next_if(self, is_next: bool, address: u32, element: T) -> (u32, T) {
        if is_next {
            backend::check_index(
                (address.wrapping_sub(self.base) / size_of::<T>() as u32) as usize + 1,
                self.len as usize,
            );
        }
        // SAFETY: if `is_next`, the element after `address` is below `len`, and `dynamic`'s caller passes `len`
        // elements in the launch's shared memory.
        unsafe { backend::load_next_shared_if(is_next, address, element) }
    }

    /// If `bits & mask` is not 0, sets the element at `address`, of 2, 4 or 8 bytes, to `value` and returns the next
    /// address. Otherwise returns `address`.
    #[inline(always)]
    #[track_caller]
    pub fn push_if(self, bits: u32, mask: u32, address: u32, value: T) -> u32 {
        if bits & mask != 0 {
            backend::check_index((address.wrapping_sub(self.base) / size_of::<T>() as u32) as usize, self.len as usize);
        }
        // SAFETY: if the value is stored, `address` belongs to an element below `len`, and `dynamic`'s caller passes
        // `len` elements in the launch's shared memory.
        unsafe { backend::store_shared_if(bits, mask, address, value) }
    }

    /// The `len` elements from `start`.
    #[inline(always)]
    #[track_caller]
    pub fn slice(self, start: u32, len: u32) -> Self {
        backend::check_range(start as usize, len as usize, self.len as usize);
        Self { base: self.base + start * size_of::<T>() as u32, len, of: PhantomData }
    }
}

impl Shared<u32> {
    /// Adds `value` to element `i`, modulo 2^32, and returns the previous value (`atom.shared.add`). Many threads may
    /// do so in any order. No thread may access the element in another way before a barrier.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_add(self, i: u32, value: u32) -> u32 {
        backend::check_index(i as usize, self.len as usize);
        // SAFETY: `dynamic`'s caller passes an index `i < len`, and `len` elements in the launch's shared memory.
        unsafe { backend::add_shared(self.base + i * size_of::<u32>() as u32, value) }
    }
}

/// Commits the copies that this thread has started since the last commit as one group (`cp.async.commit_group`).
#[inline(always)]
pub fn commit_copies() {
    backend::commit_copies();
}

/// Waits for this thread's [committed](commit_copies) groups of copies, except the last one (`cp.async.wait_group 1`).
#[inline(always)]
pub fn wait_for_all_but_last_commit() {
    backend::wait_for_all_but_last_commit();
}

/// Waits for all copies that this thread has started with [`Shared::copy_async`].
#[inline(always)]
pub fn wait_for_copies() {
    backend::wait_for_copies();
}

/// Bytes of dynamic shared memory per block of the launch.
#[inline(always)]
pub fn dynamic_shared_size() -> u32 {
    backend::dynamic_shared_size()
}
