//! Views of global memory.

use crate::{Word, backend};

/// A read-only view of an array in global memory that is not written during the launch.
///
/// On the GPU a read is one `ld.global.nc` instruction without a bounds check; in the emulator it is checked.
#[derive(Clone, Copy)]
pub struct Global<T> {
    ptr: *const T,
    len: usize,
}

impl<T: Word> Global<T> {
    /// The `len` elements at `ptr`.
    ///
    /// # Safety
    /// `ptr` is aligned and readable for `len` elements and nothing writes them while the view is in use. Every index
    /// later passed to [`get`](Self::get) is below `len`.
    #[inline(always)]
    pub unsafe fn new(ptr: *const T, len: usize) -> Self {
        Self { ptr, len }
    }

    /// Elements in view.
    #[inline(always)]
    pub fn len(self) -> usize {
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
    pub fn get(self, i: usize) -> T {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller promised that `i < len` elements are readable and constant.
        unsafe { backend::load_global_const(self.ptr.wrapping_add(i)) }
    }

    /// The address of element `i`, which is below the length.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn address(self, i: usize) -> *const T {
        backend::check_index(i, self.len);
        self.ptr.wrapping_add(i)
    }

    /// The place of element `i`, which may be outside of the view, before its start too (as a wrapped index).
    #[inline(always)]
    pub fn place(self, i: usize) -> Place<T> {
        Place { view: self, index: i, ptr: self.ptr.wrapping_add(i) }
    }

    /// Has the memory line of element `i` brought to the L2 cache (`prefetch.global.L2`), for a read later on.
    #[inline(always)]
    #[track_caller]
    pub fn prefetch(self, i: usize) {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller promised that the elements of the view are readable.
        unsafe { backend::prefetch(self.ptr.wrapping_add(i)) }
    }

    /// The `len` elements from `start` on.
    #[inline(always)]
    #[track_caller]
    pub fn slice(self, start: usize, len: usize) -> Self {
        backend::check_range(start, len, self.len);
        Self { ptr: self.ptr.wrapping_add(start), len }
    }
}

/// A place in a [`Global`] view, to read at constant distances from.
///
/// On the GPU the place is an address in a register and the distance is part of the instruction.
#[derive(Clone, Copy)]
pub struct Place<T> {
    view: Global<T>,
    index: usize,
    ptr: *const T,
}

impl<T: Word> Place<T> {
    /// The element `distance` after the place, or before it where that is negative. The place itself may lie outside of
    /// the view; the element may not.
    #[inline(always)]
    #[track_caller]
    pub fn get(self, distance: isize) -> T {
        backend::check_index(self.index.wrapping_add_signed(distance), self.view.len);
        // SAFETY: `Global::new`'s caller promised that the elements of the view are readable and constant.
        unsafe { backend::load_global_const(self.ptr.wrapping_offset(distance)) }
    }

    /// The address of the element `distance` after the place.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn address(self, distance: isize) -> *const T {
        backend::check_index(self.index.wrapping_add_signed(distance), self.view.len);
        self.ptr.wrapping_offset(distance)
    }
}

/// A view of an array in global memory that this launch writes.
///
/// On the GPU an access is one `ld.global` or `st.global` instruction without a bounds check; in the emulator it is
/// checked, and so are races between threads.
#[derive(Clone, Copy)]
pub struct GlobalMut<T> {
    ptr: *mut T,
    len: usize,
}

impl<T: Word> GlobalMut<T> {
    /// The address of element `i`, which is below the length.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn address(self, i: usize) -> *const T {
        backend::check_index(i, self.len);
        self.ptr.wrapping_add(i)
    }

    /// The `len` elements at `ptr`.
    ///
    /// # Safety
    /// `ptr` is aligned and writable for `len` elements, and no two threads use one element unordered if one of them
    /// writes it. Every index later passed to [`get`](Self::get) or [`set`](Self::set) is below `len`.
    #[inline(always)]
    pub unsafe fn new(ptr: *mut T, len: usize) -> Self {
        Self { ptr, len }
    }

    /// Elements in view.
    #[inline(always)]
    pub fn len(self) -> usize {
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
    pub fn get(self, i: usize) -> T {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller promised that `i < len` elements are readable.
        unsafe { backend::load_global(self.ptr.wrapping_add(i)) }
    }

    /// Makes element `i` be `value`.
    #[inline(always)]
    #[track_caller]
    pub fn set(self, i: usize, value: T) {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller promised that `i < len` elements are writable and not used by another thread.
        unsafe { backend::store_global(self.ptr.wrapping_add(i), value) }
    }

    /// Has the memory line of element `i` brought to the L2 cache (`prefetch.global.L2`), for a read later on.
    #[inline(always)]
    #[track_caller]
    pub fn prefetch(self, i: usize) {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller promised that the elements of the view are readable.
        unsafe { backend::prefetch(self.ptr.wrapping_add(i)) }
    }

    /// The `len` elements from `start` on.
    #[inline(always)]
    #[track_caller]
    pub fn slice(self, start: usize, len: usize) -> Self {
        backend::check_range(start, len, self.len);
        Self { ptr: self.ptr.wrapping_add(start), len }
    }
}

/// Words that the threads of a launch tell each other something in, one word at a time.
impl<T: Word> GlobalMut<T> {
    /// Element `i`, of 4 or 8 bytes, as some thread has stored it (`ld.relaxed.gpu`): many threads may load and [`store`](Self::store) it,
    /// without order with other memory.
    #[inline(always)]
    #[track_caller]
    pub fn load(self, i: usize) -> T {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller promised that `i < len` elements are readable.
        unsafe { backend::load_relaxed(self.ptr.wrapping_add(i)) }
    }

    /// Makes element `i`, of 4 or 8 bytes, be `value` (`st.relaxed.gpu`), as [`load`](Self::load) finds it from then on.
    #[inline(always)]
    #[track_caller]
    pub fn store(self, i: usize, value: T) {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller promised that `i < len` elements are writable.
        unsafe { backend::store_relaxed(self.ptr.wrapping_add(i), value) }
    }
}

impl GlobalMut<u32> {
    /// Makes element `i` be 1. Many threads may do so, without order; none may write another value in the same launch.
    #[inline(always)]
    #[track_caller]
    pub fn raise(self, i: usize) {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller promised that `i < len` elements are writable.
        unsafe { backend::raise_global(self.ptr.wrapping_add(i)) }
    }

    /// Adds `value` to element `i`, modulo 2^32, and returns what it was before. Many threads may do so, without order; none
    /// may read or write it in another way in the same launch.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_add(self, i: usize, value: u32) -> u32 {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller promised that `i < len` elements are writable.
        unsafe { backend::add_global(self.ptr.wrapping_add(i), value) }
    }
}
