//! What the passes of keys with values have in common: [`pairs`](crate::sort::pairs) and [`packed`](crate::sort::packed).

use crate::sort::detect_runs::Detection;
use crate::sort::runs::{Division, Runs};
use cuda_std::prelude::*;

/// The arrays of a pass with values: those read, and those written.
#[derive(Clone, Copy)]
pub(in crate::sort) struct PairArrays<B, V> {
    pub(in crate::sort) from: Global<B>,
    pub(in crate::sort) values_from: Global<V>,
    pub(in crate::sort) to: GlobalMut<B>,
    pub(in crate::sort) values_to: GlobalMut<V>,
}

impl<B: Word, V: Word> PairArrays<B, V> {
    /// # Safety
    /// All have `n` elements, in global memory, and those written do not overlap any other.
    #[inline(always)]
    pub(in crate::sort) unsafe fn new(
        (from, values_from): (*const B, *const V),
        (to, values_to): (*mut B, *mut V),
        n: usize,
    ) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                from: Global::new(from, n),
                values_from: Global::new(values_from, n),
                to: GlobalMut::new(to, n),
                values_to: GlobalMut::new(values_to, n),
            }
        }
    }
}

/// This block's tile and its splits, which are empty if `splits` is null. `None` if an order has been found.
///
/// # Safety
/// `splits` and `order` are as for [`merge_runs`](super::merge_runs::merge_runs).
#[inline(always)]
pub(in crate::sort) unsafe fn own_tile(
    runs: Runs,
    splits: *const u32,
    order: *mut u32,
) -> Option<(usize, Global<u32>)> {
    let t = thread::block_idx_x() as usize;
    // SAFETY: the caller's promise.
    let splits = unsafe { Global::new(splits, if splits.is_null() { 0 } else { (t + 2) * runs.k() as usize }) };
    // SAFETY: the caller's promise.
    (!unsafe { Detection::new(order) }.is_done()).then_some((t, splits))
}
