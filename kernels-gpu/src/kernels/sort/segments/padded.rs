//! Keys in shared memory with one padding slot after each 32, so that lanes that each read 32 neighbouring keys use
//! different banks.
//!
//! ```text
//!   keys     │0 1 … 31│32 33 … 63│64 …
//!   slots    │0 1 … 31│░│33 34 … 64│░│66 …
//! ```

use crate::warp::sort_lanes::LANE_KEYS;
use core::hint::select_unpredictable;
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::{FULL_MASK, ballot};

/// The slot of key `i`.
#[inline(always)]
pub(super) const fn slot(i: u32) -> u32 {
    i + i / LANE_KEYS as u32
}

/// The keys of a lane: up to `N` from `first` on, at most [`LANE_KEYS`], or none.
#[derive(Clone, Copy)]
pub(super) struct LaneRow {
    pub(super) first: u32,
    pub(super) len: u32,
}

impl LaneRow {
    /// Whether each lane of the warp has either no keys or a whole row of [`LANE_KEYS`] keys without a padding slot
    /// inside.
    ///
    /// # Safety
    /// All lanes of the warp make this call.
    #[inline(always)]
    pub(super) unsafe fn are_whole(self) -> bool {
        let is_whole = self.len == 0 || (self.len == LANE_KEYS as u32 && self.first.is_multiple_of(LANE_KEYS as u32));
        // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which make this call together.
        unsafe { ballot(FULL_MASK, is_whole) == FULL_MASK }
    }

    /// Calls `access` for each key of the row, with its index in the row and its address. `whole` is the result of
    /// [`are_whole`](Self::are_whole).
    #[inline(always)]
    fn for_each<B: Word, const N: usize>(self, slots: Shared<B>, whole: bool, mut access: impl FnMut(usize, u32)) {
        // Addresses are computed for each call: to keep them takes registers.
        let Self { first, len } = Self { first: recomputed(self.first), len: recomputed(self.len) };
        let at = |index: u32| slots.address(slot(first) + index);
        let bytes = |j: usize| (j * size_of::<B>()) as u32;
        if whole {
            if len > 0 {
                for j in 0..N {
                    access(j, at(0) + bytes(j));
                }
            }
        } else {
            let (before, behind) = (at(0), at(1));
            let left_out = LANE_KEYS as u32 - first % LANE_KEYS as u32;
            for j in 0..N {
                if (j as u32) < len {
                    access(j, select_unpredictable(j as u32 >= left_out, behind, before) + bytes(j));
                }
            }
        }
    }

    /// Calls `access` for each key of the row, of up to [`LANE_KEYS`], with its index in the row.
    #[inline(always)]
    pub(super) fn for_each_key(self, whole: bool, mut access: impl FnMut(usize)) {
        // Recomputed as in `for_each`: to keep the comparisons takes registers.
        let len = recomputed(self.len);
        if whole {
            if len > 0 {
                for j in 0..LANE_KEYS {
                    access(j);
                }
            }
        } else {
            for j in 0..LANE_KEYS {
                if (j as u32) < len {
                    access(j);
                }
            }
        }
    }

    /// The keys, and the greatest key where there are none.
    #[inline(always)]
    #[track_caller]
    pub(super) fn read<B: Word, const N: usize>(self, slots: Shared<B>, whole: bool) -> [B; N] {
        let mut keys = [B::from_register(u64::MAX); N];
        self.for_each::<B, N>(slots, whole, |j, address| keys[j] = slots.get_at(address));
        keys
    }

    /// Writes the keys.
    #[inline(always)]
    #[track_caller]
    pub(super) fn write<B: Word, const N: usize>(self, keys: &[B; N], slots: Shared<B>, whole: bool) {
        self.for_each::<B, N>(slots, whole, |j, address| slots.set_at(address, keys[j]));
    }
}
