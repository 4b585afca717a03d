//! Views of global memory.

use crate::{Word, backend};

/// A read-only view of an array in global memory that is constant during the launch.
///
/// On the GPU a read is one `ld.global.nc` instruction without a bounds check. The emulator checks bounds.
#[derive(Clone, Copy)]
pub struct Global<T> {
    ptr: *const T,
    len: usize,
}

impl<T: Word> Global<T> {
    /// The `len` elements at `ptr`.
    ///
    /// # Safety
    /// `ptr` is aligned and readable for `len` elements, and nothing writes the elements while the view is in use.
    /// Every index later passed to [`get`](Self::get) is below `len`.
    #[inline(always)]
    pub unsafe fn new(ptr: *const T, len: usize) -> Self {
        Self { ptr, len }
    }

    /// Number of elements.
    #[inline(always)]
    pub fn len(self) -> usize {
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
    pub fn get(self, i: usize) -> T {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller passes an index `i < len`, and `len` elements that are readable and constant.
        unsafe { backend::load_global_const(self.ptr.wrapping_add(i)) }
    }

    /// The address of element `i`, which is below the length.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn address(self, i: usize) -> *const T {
        backend::check_index(i, self.len);
        self.ptr.wrapping_add(i)
    }

    /// The place of element `i`, which may be outside of the view, also before its start (as a wrapped index).
    #[inline(always)]
    pub fn place(self, i: usize) -> Place<T> {
        Place { view: self, index: i, ptr: self.ptr.wrapping_add(i) }
    }

    /// Prefetches the cache line of element `i` into the L2 cache (`prefetch.global.L2`).
    #[inline(always)]
    #[track_caller]
    pub fn prefetch(self, i: usize) {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller passes an index `i < len`, and `len` elements that are readable.
        unsafe { backend::prefetch(self.ptr.wrapping_add(i)) }
    }

    /// The `len` elements from `start`.
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
    /// The element at `distance` from the place, which may be negative. The place may be outside of the view; the
    /// element must be inside.
    #[inline(always)]
    #[track_caller]
    pub fn get(self, distance: isize) -> T {
        backend::check_index(self.index.wrapping_add_signed(distance), self.view.len);
        // SAFETY: the element is inside the view, and `Global::new`'s caller passes elements that are readable and
        // constant.
        unsafe { backend::load_global_const(self.ptr.wrapping_offset(distance)) }
    }

    /// The address of the element at `distance` from the place.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn address(self, distance: isize) -> *const T {
        backend::check_index(self.index.wrapping_add_signed(distance), self.view.len);
        self.ptr.wrapping_offset(distance)
    }
}

/// A view of an array in global memory that this launch writes.
///
/// On the GPU an access is one `ld.global` or `st.global` instruction without a bounds check. The emulator checks
/// bounds and races between threads.
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
    /// `ptr` is aligned and writable for `len` elements, and accesses of two threads to one element are ordered if one
    /// is a write. Every index later passed to [`get`](Self::get) or [`set`](Self::set) is below `len`.
    #[inline(always)]
    pub unsafe fn new(ptr: *mut T, len: usize) -> Self {
        Self { ptr, len }
    }

    /// Number of elements.
    #[inline(always)]
    pub fn len(self) -> usize {
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
    pub fn get(self, i: usize) -> T {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller passes an index `i < len`, and `len` elements that are readable.
        unsafe { backend::load_global(self.ptr.wrapping_add(i)) }
    }

    /// Sets element `i` to `value`.
    #[inline(always)]
    #[track_caller]
    pub fn set(self, i: usize, value: T) {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller passes an index `i < len`, and `len` writable elements, each used by one thread at a
        // time.
        unsafe { backend::store_global(self.ptr.wrapping_add(i), value) }
    }

    /// Prefetches the cache line of element `i` into the L2 cache (`prefetch.global.L2`).
    #[inline(always)]
    #[track_caller]
    pub fn prefetch(self, i: usize) {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller passes an index `i < len`, and `len` elements that are readable.
        unsafe { backend::prefetch(self.ptr.wrapping_add(i)) }
    }

    /// The `len` elements from `start`.
    #[inline(always)]
    #[track_caller]
    pub fn slice(self, start: usize, len: usize) -> Self {
        backend::check_range(start, len, self.len);
        Self { ptr: self.ptr.wrapping_add(start), len }
    }
}

/// Words that the threads of a launch use to communicate, one word at a time.
impl<T: Word> GlobalMut<T> {
    /// Element `i`, of 4 or 8 bytes, as stored by some thread (`ld.relaxed.gpu`). Many threads may load and
    /// [`store`](Self::store) it. The access is not ordered with other memory.
    #[inline(always)]
    #[track_caller]
    pub fn load(self, i: usize) -> T {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller passes an index `i < len`, and `len` elements that are readable.
        unsafe { backend::load_relaxed(self.ptr.wrapping_add(i)) }
    }

    /// Sets element `i`, of 4 or 8 bytes, to `value` (`st.relaxed.gpu`), for later [`load`](Self::load)s.
    #[inline(always)]
    #[track_caller]
    pub fn store(self, i: usize, value: T) {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller passes an index `i < len`, and `len` elements that are writable.
        unsafe { backend::store_relaxed(self.ptr.wrapping_add(i), value) }
    }
}

impl GlobalMut<u32> {
    /// Sets element `i` to 1. Many threads may do so in any order. No thread may write another value in the same
    /// launch.
    #[inline(always)]
    #[track_caller]
    pub fn raise(self, i: usize) {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller passes an index `i < len`, and `len` elements that are writable.
        unsafe { backend::raise_global(self.ptr.wrapping_add(i)) }
    }

    /// Adds `value` to element `i`, modulo 2^32, and returns the previous value. Many threads may do so in any order.
    /// No thread may access the element in another way in the same launch.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_add(self, i: usize, value: u32) -> u32 {
        backend::check_index(i, self.len);
        // SAFETY: `new`'s caller passes an index `i < len`, and `len` elements that are writable.
        unsafe { backend::add_global(self.ptr.wrapping_add(i), value) }
    }
}
