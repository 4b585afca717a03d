//! Slots of keys that lanes sort. Without values the keys move. With values, keys of 4 bytes stay, and their order is
//! written beside them; keys and values are stored in that order in the end.
//!
//! ```text
//!   keys      │ d a c b │            │ a b c d │         moved, if there are no values
//!
//!   keys      │ d a c b │            │ d a c b │
//!   order     │         │            │ 1 3 2 0 │         the index of the first key, of the second …
//! ```

use super::numbered_lanes::NumberedLanes;
use super::padded::{LaneRow, slot};
use crate::block::shared_memory::shared_memory;
use crate::key::Bits;
use crate::thread::network::sort_registers;
use crate::warp::sort_lanes::{Group, LANE_KEYS, sort_lanes};
use cuda_std::prelude::*;

shared_memory! {
    /// Slots of keys, and of their order: indices of type `u16`, or `()` if keys move.
    pub(super) struct RowSlots<B: Word, O: Word>(slots: usize) {
        pub(super) keys: [B; slots],
        pub(super) order: [O; slots],
    }
}

/// Whether there is an order, of type `O`.
const fn has_order<O>() -> bool {
    size_of::<O>() > 0
}

/// Sorts `N` keys. If there is an order of type `O`, keys are replaced by their indices, which begin with `first`.
#[inline(always)]
pub(super) fn sort_row<B: Bits, O: Word, const N: usize>(row: &mut [B; N], first: u32) {
    if const { !has_order::<O>() } {
        return sort_registers(row);
    }
    // All numbers differ, so that the sort is stable.
    let mut tagged = [u64::MAX; N];
    for i in 0..N {
        tagged[i] = row[i].to_register() << 32 | first.wrapping_add(i as u32) as u64;
    }
    sort_registers(&mut tagged);
    for i in 0..N {
        row[i] = B::from_register(tagged[i] as u32 as u64);
    }
}

impl<B: Bits, O: Word> RowSlots<B, O> {
    /// Stores a key in `slot`, with index `index`. The order initially holds that index.
    #[inline(always)]
    #[track_caller]
    pub(super) fn set(self, slot: u32, key: B, index: u32) {
        self.keys.set(slot, key);
        if const { has_order::<O>() } {
            self.order.set(slot, O::from_register(index as u64));
        }
    }

    /// Sorts the keys of each group of the warp as [`sort_lanes`] does. `row` holds the keys of this lane's `part`. If
    /// there is an order, the sort is stable, and keys are replaced by their indices.
    ///
    /// # Safety
    /// The requirements of [`NumberedLanes::sort`] hold if there is an order, and otherwise the requirements of
    /// [`sort_lanes`].
    #[inline(always)]
    #[track_caller]
    pub(super) unsafe fn sort_lanes(
        self,
        row: &mut [B; LANE_KEYS],
        (part, whole): (LaneRow, bool),
        group: Group,
        minus_one: u32,
    ) {
        if const { has_order::<O>() } {
            // SAFETY: there is an order, so that the caller ensures the requirements of `NumberedLanes::sort`.
            unsafe { NumberedLanes::new(self, (part, whole), group).sort(row, minus_one) }
        } else {
            // SAFETY: there is no order, so that the caller ensures the requirements of `sort_lanes`.
            unsafe { sort_lanes(row, group, minus_one) }
        }
    }

    /// Writes sorted keys, or sorted indices if there is an order.
    #[inline(always)]
    #[track_caller]
    pub(super) fn write<const N: usize>(self, part: LaneRow, row: &[B; N], whole: bool) {
        if const { !has_order::<O>() } {
            return part.write(row, self.keys, whole);
        }
        let mut indices = [O::from_register(0); N];
        for i in 0..N {
            indices[i] = O::from_register(row[i].to_register());
        }
        part.write(&indices, self.order, whole);
    }

    /// Index of the key that is stored at `slot` in the end, or 0 if there is no order.
    #[inline(always)]
    #[track_caller]
    pub(super) fn index_at(self, slot: u32) -> u32 {
        if const { has_order::<O>() } { self.order.get(slot).to_register() as u32 } else { 0 }
    }

    /// The key that is stored at slot `at` in the end, whose index is `index`.
    #[inline(always)]
    #[track_caller]
    pub(super) fn key_at(self, at: u32, index: u32) -> B {
        self.keys.get(if const { has_order::<O>() } { slot(index) } else { at })
    }
}
