//! Keys with values: two arrays.

use core::ptr::NonNull;
use cuda_std::prelude::*;

/// Where keys are, and their values, if `V` is not `()`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Elements<B, V> {
    /// The keys.
    pub keys: *mut B,
    /// Their values.
    pub values: *mut V,
}

impl<B: Word, V: Word> Elements<B, V> {
    /// Where element `i` is.
    #[inline(always)]
    pub(in crate::kernels::sort) fn from(self, i: usize) -> Self {
        Self { keys: self.keys.wrapping_add(i), values: self.values.wrapping_add(i) }
    }

    /// The arrays, of `n` elements each.
    ///
    /// # Safety
    /// That is what they have, and no other thread uses an element while one writes it.
    #[inline(always)]
    pub(in crate::kernels::sort) unsafe fn arrays(self, n: usize) -> Arrays<B, V> {
        // SAFETY: the caller promises `n` keys and `n` values, which are of no bytes if `V` is `()`, and that no thread
        // uses an element while another one writes it.
        unsafe { Arrays { keys: GlobalMut::new(self.keys, n), values: GlobalMut::new(self.values, n) } }
    }

    /// The arrays, of `n` elements each, to be read only.
    ///
    /// # Safety
    /// That is what they have, and nothing writes them during the launch.
    #[inline(always)]
    pub(in crate::kernels::sort) unsafe fn source(self, n: usize) -> Source<B, V> {
        // SAFETY: the caller promises `n` keys and `n` values, which are of no bytes if `V` is `()`, and that they stay
        // as they are during the launch.
        unsafe { Source { keys: Global::new(self.keys, n), values: Global::new(self.values, n) } }
    }
}

/// What is at [`Elements`] that a launch only reads; or keys alone.
#[derive(Clone, Copy)]
pub struct Source<B, V> {
    pub(in crate::kernels::sort) keys: Global<B>,
    pub(in crate::kernels::sort) values: Global<V>,
}

/// What is at [`Elements`]; or keys alone.
#[derive(Clone, Copy)]
pub struct Arrays<B, V> {
    pub(in crate::kernels::sort) keys: GlobalMut<B>,
    pub(in crate::kernels::sort) values: GlobalMut<V>,
}

impl<B: Word> Arrays<B, ()> {
    /// Keys alone.
    #[inline(always)]
    pub(in crate::kernels::sort) fn alone(keys: GlobalMut<B>) -> Self {
        // SAFETY: elements of no bytes, however many, can be anywhere.
        Self { keys, values: unsafe { GlobalMut::new(NonNull::dangling().as_ptr(), keys.len()) } }
    }
}

impl<B: Word, V: Word> Arrays<B, V> {
    /// `len` elements from index `start` on.
    #[inline(always)]
    #[track_caller]
    pub(in crate::kernels::sort) fn slice(self, start: usize, len: usize) -> Self {
        Self { keys: self.keys.slice(start, len), values: self.values.slice(start, len) }
    }

    /// Element `i`: its key and its value.
    #[inline(always)]
    #[track_caller]
    pub(in crate::kernels::sort) fn get(self, i: u32) -> (B, V) {
        (self.keys.get(i as usize), self.values.get(i as usize))
    }

    /// Sets element `i`.
    #[inline(always)]
    #[track_caller]
    pub(in crate::kernels::sort) fn set(self, i: u32, (key, value): (B, V)) {
        self.keys.set(i as usize, key);
        self.values.set(i as usize, value);
    }
}

/// Whether there are values, of type `V`.
#[inline(always)]
pub(in crate::kernels::sort) const fn has_values<V>() -> bool {
    size_of::<V>() > 0
}
