//! Keys of 4 bytes that neighbouring lanes sort by [numbers](super::numbers) of 4 bytes.
//!
//! ```text
//!   registers   │ numbers of lane 0 │ of lane 1 │ …     sorted across lanes, 32 of a lane
//!   alike       │ 0 0 1 0 0 0 1 1 0 … │ 1 0 0 …         like the one before: a group of 2, one of 3, and one of two lanes
//! ```
//!
//! Groups are put in order by the lanes where they begin, if some keys are not and if no group is long. An index counts
//! from where the segment of a group begins, which leaves most bits for keys.

use super::numbers::{MOST_ALIKE, Numbers, Pass};
use super::padded::{LaneRow, slot};
use super::row_slots::RowSlots;
use crate::key::Bits;
use crate::thread::insertion::insert;
use crate::warp::sort_lanes::{Group, LANE_KEYS, sort_lanes};
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot, reduce_max, shuffle_idx, shuffle_up, sync_warp};

/// The sort of the keys of a warp, as one of its lanes has it.
#[derive(Clone, Copy)]
pub(super) struct NumberedLanes<B, O> {
    slots: RowSlots<B, O>,
    part: LaneRow,
    whole: bool,
    group: Group,
}

impl<B: Bits, O: Word> NumberedLanes<B, O> {
    /// Of a lane that has `part` of the keys of a group. They [are all `whole`](LaneRow::are_whole), or not.
    #[inline(always)]
    pub(super) fn new(slots: RowSlots<B, O>, (part, whole): (LaneRow, bool), group: Group) -> Self {
        Self { slots, part, whole, group }
    }

    /// How many keys of the segment the lanes before this one have.
    #[inline(always)]
    fn offset(&self) -> u32 {
        // Anew for each use: a register would be kept for each number of a key.
        recomputed((warp::lane_id() - self.group.first) * LANE_KEYS as u32)
    }

    /// The index of the segment's first key, if the lane has any of it.
    #[inline(always)]
    fn begin(&self) -> u32 {
        self.part.first.wrapping_sub(self.offset())
    }

    /// Key `i`.
    #[inline(always)]
    #[track_caller]
    fn key(&self, i: u32) -> B {
        self.slots.keys.get(slot(i))
    }

    /// Sorts the keys of each group of the warp, of which `row` has those of this lane: they become their indices.
    /// Stable.
    ///
    /// # Safety
    /// All lanes of the warp make this call, those of a group with the same one, and some with keys. Keys are in their
    /// slots, and all lanes of a group but the last one that has keys have [`LANE_KEYS`]. Nothing else uses the slots
    /// of the order; a barrier of the warp comes before other lanes use them.
    #[inline(always)]
    #[track_caller]
    pub(super) unsafe fn sort(&self, row: &mut [B; LANE_KEYS], minus_one: u32) {
        // SAFETY: all lanes are here, and at each call below, as what they branch on is the same for all of them.
        let numbers = unsafe { self.numbers(row) };
        let (mut pass, mut sorted) = (Pass::Upper, self.numbers_of(numbers, Pass::Upper, row));
        loop {
            // SAFETY: as above.
            unsafe { sort_lanes(&mut sorted, self.group, minus_one) };
            let may_be_alike = pass == Pass::Upper && !numbers.have_all_bits();
            // SAFETY: as above.
            let alike = if may_be_alike { unsafe { self.alike(numbers, &sorted) } } else { 0 };
            let begin = self.begin();
            for j in 0..LANE_KEYS {
                sorted[j] = begin.wrapping_add(numbers.index(sorted[j]));
            }
            let are_in_order = if may_be_alike {
                // SAFETY: as above.
                unsafe { self.put_in_order(&mut sorted, alike) }
            } else {
                pass == Pass::Upper
            };
            let Some(next) = pass.next(are_in_order) else { break };
            pass = next;
            let keys = if pass == Pass::Lower {
                self.part.read(self.slots.keys, self.whole)
            } else {
                self.write(&sorted);
                let mut keys = [B::MAX; LANE_KEYS];
                self.part.for_each_key(self.whole, |j| keys[j] = self.key(sorted[j]));
                keys
            };
            sorted = self.numbers_of(numbers, pass, &keys);
        }
        if pass == Pass::UpperOfLower {
            // SAFETY: as above. Indices have been written before, and are written again after.
            unsafe { sync_warp(FULL_MASK) };
            self.part.for_each_key(self.whole, |j| {
                sorted[j] = self.slots.order.get(slot(sorted[j])).to_register() as u32;
            });
            // SAFETY: as above.
            unsafe { sync_warp(FULL_MASK) };
        }
        for j in 0..LANE_KEYS {
            row[j] = B::from_register(sorted[j] as u64);
        }
    }

    /// How the keys of the warp become numbers.
    ///
    /// # Safety
    /// As for [`sort`](Self::sort).
    #[inline(always)]
    unsafe fn numbers(&self, keys: &[B; LANE_KEYS]) -> Numbers {
        let (mut least, mut greatest) = (u32::MAX, 0);
        self.part.for_each_key(self.whole, |j| {
            let key = keys[j].to_register() as u32;
            (least, greatest) = (least.min(key), greatest.max(key));
        });
        let len = if self.part.len > 0 { self.offset() + self.part.len } else { 0 };
        // SAFETY: all lanes are here.
        unsafe {
            let least = !reduce_max(FULL_MASK, !least);
            Numbers::new(least, reduce_max(FULL_MASK, greatest), reduce_max(FULL_MASK, len))
        }
    }

    /// The numbers of keys, and the greatest ones behind them.
    #[inline(always)]
    fn numbers_of(&self, numbers: Numbers, pass: Pass, keys: &[B; LANE_KEYS]) -> [u32; LANE_KEYS] {
        let (mut of, offset) = ([u32::MAX; LANE_KEYS], self.offset());
        self.part.for_each_key(self.whole, |j| of[j] = numbers.of(pass, keys[j], offset + j as u32));
        of
    }

    /// Which of the sorted numbers of this lane are like the one before, in the same segment, as bits.
    ///
    /// # Safety
    /// As for [`sort`](Self::sort).
    #[inline(always)]
    unsafe fn alike(&self, numbers: Numbers, sorted: &[u32; LANE_KEYS]) -> u32 {
        // SAFETY: all lanes are here.
        let before = unsafe { shuffle_up(FULL_MASK, sorted[LANE_KEYS - 1], 1) };
        let mut alike = u32::from(self.offset() > 0 && numbers.are_alike(before, sorted[0]));
        for j in 1..LANE_KEYS {
            alike |= u32::from(numbers.are_alike(sorted[j - 1], sorted[j])) << j;
        }
        // Greatest numbers are behind the last key.
        alike & ((1_u64 << self.part.len) - 1) as u32
    }

    /// Puts keys in order that are alike in their upper bits, of which `sorted` has the indices. Gives whether all are
    /// in order then.
    ///
    /// # Safety
    /// As for [`sort`](Self::sort).
    #[inline(always)]
    #[track_caller]
    unsafe fn put_in_order(&self, sorted: &mut [u32; LANE_KEYS], alike: u32) -> bool {
        // SAFETY: all lanes are here, and at each call below.
        if unsafe { ballot(FULL_MASK, alike != 0) } == 0 {
            return true;
        }
        // With those of the next lane. Behind the last lane come those of the first, of which the first number begins a
        // group. SAFETY: as above.
        let next = unsafe { shuffle_idx(FULL_MASK, alike, (warp::lane_id() + 1) % WARP_SIZE) };
        let of_two_lanes = alike as u64 | (next as u64) << 32;
        // SAFETY: as above.
        let before = unsafe { shuffle_up(FULL_MASK, sorted[LANE_KEYS - 1], 1) };
        let (mut before, of_groups) =
            (if alike & 1 != 0 { self.key(before) } else { B::MIN }, alike | (of_two_lanes >> 1) as u32);
        let mut wrong = 0;
        for j in 0..LANE_KEYS {
            let key = if of_groups >> j & 1 != 0 { self.key(sorted[j]) } else { B::MIN };
            wrong |= u32::from(before > key) << j;
            before = key;
        }
        // SAFETY: as above.
        if unsafe { ballot(FULL_MASK, wrong & alike != 0) } == 0 {
            return true;
        }
        // SAFETY: as above.
        if unsafe { ballot(FULL_MASK, has_long_group(of_two_lanes)) } != 0 {
            return false;
        }
        self.write(sorted);
        // SAFETY: as above.
        unsafe { sync_warp(FULL_MASK) };
        // The first one of each group, which ends in the next lane at the latest.
        let mut begins = !alike & (of_two_lanes >> 1) as u32;
        while begins != 0 {
            let begin = begins.trailing_zeros();
            begins &= begins - 1;
            let (first, others) = (self.part.first + begin, (of_two_lanes >> (begin + 1)).trailing_ones());
            let order = self.slots.order;
            insert(
                (first, first + others),
                |rank| order.get(slot(rank)),
                |rank, index| order.set(slot(rank), index),
                |index| self.key(index.to_register() as u32),
            );
        }
        // SAFETY: as above.
        unsafe { sync_warp(FULL_MASK) };
        let indices = self.part.read::<O, LANE_KEYS>(self.slots.order, self.whole);
        for j in 0..LANE_KEYS {
            sorted[j] = indices[j].to_register() as u32;
        }
        true
    }

    /// Writes indices of this lane to the slots of the order.
    #[inline(always)]
    #[track_caller]
    fn write(&self, indices: &[u32; LANE_KEYS]) {
        let mut row = [B::MAX; LANE_KEYS];
        for j in 0..LANE_KEYS {
            row[j] = B::from_register(indices[j] as u64);
        }
        self.slots.write(self.part, &row, self.whole);
    }
}

/// Whether so many neighbouring bits are set that a group has more than [`MOST_ALIKE`] keys.
#[inline(always)]
fn has_long_group(alike: u64) -> bool {
    let (mut runs, mut len) = (alike, 1);
    while len < MOST_ALIKE {
        runs &= runs >> len;
        len *= 2;
    }
    runs != 0
}
