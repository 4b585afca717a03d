//! Keys with values: two arrays. A kernel is generic over the type `V` of the values, which is `()` for keys without
//! values.
//!
//! ```text
//!   Elements   addresses, as the host passes them; with a length, a Slice
//!   Source     arrays to read       │ k0 k1 k2 … │ v0 v1 v2 … │     value i belongs to key i
//!   Arrays     arrays to write      │ k0 k1 k2 … │ v0 v1 v2 … │
//! ```

use core::ptr::NonNull;
use cuda_std::prelude::*;

/// The number at `count`: the length of an array of which the host knows only that it is at most `most`. `most` if
/// `count` is null, or if the number is greater.
///
/// # Safety
/// `count` is null or points to a number in global memory, which nothing writes during the launch.
#[inline(always)]
pub(crate) unsafe fn counted(count: *const u64, most: usize) -> usize {
    // SAFETY: `count` points to one number if it is not null, and nothing writes the number.
    if count.is_null() { most } else { most.min(unsafe { Global::new(count, 1) }.get(0) as usize) }
}

/// The addresses of keys, and of their values unless `V` is `()`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Elements<B, V> {
    /// The keys.
    pub keys: *mut B,
    /// Their values.
    pub values: *mut V,
}

impl<B: Word, V: Word> Elements<B, V> {
    /// The address of element `i`.
    #[inline(always)]
    pub(crate) fn from(self, i: usize) -> Self {
        Self { keys: self.keys.wrapping_add(i), values: self.values.wrapping_add(i) }
    }

    /// The arrays, of `n` elements each.
    ///
    /// # Safety
    /// There are `n` keys and `n` values, and no other thread uses an element while one writes it.
    #[inline(always)]
    pub(crate) unsafe fn arrays(self, n: usize) -> Arrays<B, V> {
        // SAFETY: the caller ensures `n` keys and `n` values, which have no bytes if `V` is `()`. The caller also
        // ensures that no other thread uses an element while one writes it.
        unsafe { Arrays { keys: GlobalMut::new(self.keys, n), values: GlobalMut::new(self.values, n) } }
    }

    /// The arrays, of `n` elements each, to be read only.
    ///
    /// # Safety
    /// There are `n` keys and `n` values, and nothing writes them during the launch.
    #[inline(always)]
    pub(crate) unsafe fn source(self, n: usize) -> Source<B, V> {
        // SAFETY: the caller ensures `n` keys and `n` values, which have no bytes if `V` is `()`, and that nothing
        // writes them during the launch.
        unsafe { Source { keys: Global::new(self.keys, n), values: Global::new(self.values, n) } }
    }
}

/// An array: the addresses of its elements, and their number.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Slice<B, V> {
    /// The elements.
    pub at: Elements<B, V>,
    /// Number of elements.
    pub len: usize,
}

impl<B: Word, V: Word> Slice<B, V> {
    /// The first elements, whose number is at `count`: all if `count` is null, or if the number is greater. Instances
    /// of kernels that are not `COUNTED` do not read `count`, which keeps the length a constant that takes no
    /// registers.
    ///
    /// # Safety
    /// `count` is null or points to a number in global memory, which nothing writes during the launch.
    #[inline(always)]
    pub(crate) unsafe fn first<const COUNTED: bool>(self, count: *const u64) -> Self {
        // SAFETY: both functions have the same conditions.
        if COUNTED { Self { len: unsafe { counted(count, self.len) }, ..self } } else { self }
    }

    /// The arrays.
    ///
    /// # Safety
    /// There are `len` keys and values, and no other thread uses an element while one writes it.
    #[inline(always)]
    pub(crate) unsafe fn arrays(self) -> Arrays<B, V> {
        // SAFETY: the caller ensures `len` keys and values, and that no other thread uses an element while one writes
        // it.
        unsafe { self.at.arrays(self.len) }
    }

    /// The arrays, to be read only.
    ///
    /// # Safety
    /// There are `len` keys and values, and nothing writes them during the launch.
    #[inline(always)]
    pub(crate) unsafe fn source(self) -> Source<B, V> {
        // SAFETY: the caller ensures `len` keys and values, and that nothing writes them during the launch.
        unsafe { self.at.source(self.len) }
    }
}

/// An array for elements whose number a launch determines.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Output<B, V> {
    /// The elements.
    pub at: Elements<B, V>,
    /// Number of elements that the array has capacity for.
    pub capacity: usize,
    /// The address of one number: the number of elements in the end.
    pub count: *mut u64,
}

/// Keys, and their values unless `V` is `()`, that a launch only reads.
#[derive(Clone, Copy)]
pub struct Source<B, V> {
    pub(crate) keys: Global<B>,
    pub(crate) values: Global<V>,
}

impl<B: Word, V: Word> Source<B, V> {
    /// Number of elements.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.keys.len()
    }

    /// `len` elements from index `start` on.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn slice(self, start: usize, len: usize) -> Self {
        Self { keys: self.keys.slice(start, len), values: self.values.slice(start, len) }
    }
}

/// Keys, and their values unless `V` is `()`.
#[derive(Clone, Copy)]
pub struct Arrays<B, V> {
    pub(crate) keys: GlobalMut<B>,
    pub(crate) values: GlobalMut<V>,
}

impl<B: Word> Arrays<B, ()> {
    /// Keys without values.
    #[inline(always)]
    pub(crate) fn alone(keys: GlobalMut<B>) -> Self {
        // SAFETY: `V` is `()`, so that the `keys.len()` values have 0 bytes, and a dangling aligned pointer is valid
        // for 0 bytes.
        Self { keys, values: unsafe { GlobalMut::new(NonNull::dangling().as_ptr(), keys.len()) } }
    }
}

impl<B: Word, V: Word> Arrays<B, V> {
    /// Number of elements.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.keys.len()
    }

    /// `len` elements from index `start` on.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn slice(self, start: usize, len: usize) -> Self {
        Self { keys: self.keys.slice(start, len), values: self.values.slice(start, len) }
    }

    /// Element `i`: its key and its value.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn get(self, i: u32) -> (B, V) {
        (self.keys.get(i as usize), self.value(i))
    }

    /// The value of element `i`.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn value(self, i: u32) -> V {
        if has_values::<V>() { self.values.get(i as usize) } else { V::from_register(0) }
    }

    /// Sets element `i`.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn set(self, i: u32, (key, value): (B, V)) {
        self.keys.set(i as usize, key);
        if has_values::<V>() {
            self.values.set(i as usize, value);
        }
    }
}

/// Whether keys have values, of type `V`.
#[inline(always)]
pub(crate) const fn has_values<V>() -> bool {
    size_of::<V>() > 0
}
