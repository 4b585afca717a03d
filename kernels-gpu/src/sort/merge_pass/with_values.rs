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
        // SAFETY: all arrays have `n` elements, and those written overlap no others, as the caller promises.
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

/// The numbers of this block's tiles, one after the other.
pub(in crate::sort) struct OwnTiles {
    next: usize,
    tiles: usize,
}

impl OwnTiles {
    /// The tiles of a pass, and its splits, which are empty if `splits` is null. `None` if an order has been found, or keys are divided.
    ///
    /// # Safety
    /// `splits` and `order` are as for [`merge_runs`](super::merge_runs::merge_runs).
    #[inline(always)]
    pub(in crate::sort) unsafe fn of(runs: Runs, splits: *const u32, order: *mut u32) -> Option<(Self, Global<u32>)> {
        // SAFETY: `order` is null, or `DETECTION_WORDS` words that this launch only reads.
        if unsafe { Detection::new(order) }.is_done() {
            return None;
        }
        let tiles = runs.tiles();
        // SAFETY: `splits` is null, or has `k` words for each of `tiles` tiles, as `split_runs` has written.
        let splits = unsafe { Global::new(splits, if splits.is_null() { 0 } else { tiles * runs.k() as usize }) };
        Some((Self { next: thread::block_idx_x() as usize, tiles }, splits))
    }

    /// The next tile, after a barrier if there was one before.
    #[inline(always)]
    #[track_caller]
    pub(in crate::sort) fn next(&mut self) -> Option<usize> {
        let t = self.next;
        if t >= self.tiles {
            return None;
        }
        if t >= thread::grid_dim_x() as usize {
            thread::sync_threads();
        }
        self.next += thread::grid_dim_x() as usize;
        Some(t)
    }
}
