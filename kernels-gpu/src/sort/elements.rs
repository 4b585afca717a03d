//! Keys with values: two arrays.

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
    /// The arrays, of `n` elements each.
    ///
    /// # Safety
    /// That is what they have, and no other thread uses an element while one writes it.
    #[inline(always)]
    pub(in crate::sort) unsafe fn arrays(self, n: u32) -> Arrays<B, V> {
        // SAFETY: the caller promises `n` keys and `n` values, which are of no bytes if `V` is `()`, and that no thread
        // uses an element while another one writes it.
        unsafe {
            Arrays { keys: GlobalMut::new(self.keys, n as usize), values: GlobalMut::new(self.values, n as usize) }
        }
    }
}

/// What is at [`Elements`]; or keys alone.
#[derive(Clone, Copy)]
pub(in crate::sort) struct Arrays<B, V> {
    pub keys: GlobalMut<B>,
    pub values: GlobalMut<V>,
}

impl<B: Word, V: Word> Arrays<B, V> {
    /// `len` elements from index `start` on.
    #[inline(always)]
    #[track_caller]
    pub fn slice(self, start: u32, len: u32) -> Self {
        let (start, len) = (start as usize, len as usize);
        let values = if self.values.is_empty() { self.values } else { self.values.slice(start, len) };
        Self { keys: self.keys.slice(start, len), values }
    }

    /// Element `i`: its key and its value.
    #[inline(always)]
    #[track_caller]
    pub fn get(self, i: u32) -> (B, V) {
        (self.keys.get(i as usize), self.values.get(i as usize))
    }

    /// Sets element `i`.
    #[inline(always)]
    #[track_caller]
    pub fn set(self, i: u32, (key, value): (B, V)) {
        self.keys.set(i as usize, key);
        self.values.set(i as usize, value);
    }
}
