//! Keys of 4 bytes that neighbouring lanes sort by [numbers](super::numbers) of 4 bytes.
//!
//! ```text
//!   registers   │ numbers of lane 0 │ of lane 1 │ …     sorted across lanes, 32 of a lane
//!   alike       │ 0 0 1 0 0 0 1 1 0 … │ 1 0 0 …         like the one before: groups of 2, 3, and across lanes
//! ```
//!
//! If keys are out of order and no group is long, each lane orders the groups that begin in it. An index counts from
//! the first key of its segment, which leaves the most bits for keys.

use super::numbers::{MOST_ALIKE, Numbers, Pass};
use super::padded::{LaneRow, slot};
use super::row_slots::RowSlots;
use crate::key::Bits;
use crate::thread::insertion::insert;
use crate::warp::sort_lanes::{Group, LANE_KEYS, sort_lanes};
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot, reduce_max, shuffle_idx, shuffle_up, sync_warp};

/// The sort of a warp's keys, as seen by one lane.
#[derive(Clone, Copy)]
pub(super) struct NumberedLanes<B, O> {
    slots: RowSlots<B, O>,
    part: LaneRow,
    whole: bool,
    group: Group,
}

impl<B: Bits, O: Word> NumberedLanes<B, O> {
    /// A lane that has `part` of the keys of a group. `whole` is the result of [`are_whole`](LaneRow::are_whole) for
    /// all parts.
    #[inline(always)]
    pub(super) fn new(slots: RowSlots<B, O>, (part, whole): (LaneRow, bool), group: Group) -> Self {
        Self { slots, part, whole, group }
    }

    /// Number of keys of the segment in the lanes before this one.
    #[inline(always)]
    fn offset(&self) -> u32 {
        // Computed again for each use: otherwise a register would be kept for the number of each key.
        recomputed((warp::lane_id() - self.group.first) * LANE_KEYS as u32)
    }

    /// Index of the segment's first key, if the lane has any key.
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

    /// Sorts the keys of each group of the warp, and replaces them by their indices. `row` holds this lane's keys.
    /// Stable.
    ///
    /// # Safety
    /// All lanes of the warp make this call, the lanes of a group with the same group, and some lane has keys. Keys are
    /// in their slots. All lanes of a group have [`LANE_KEYS`] keys, except the last lane with keys. Nothing else uses
    /// the slots of the order. A barrier of the warp comes before other lanes use these slots.
    #[inline(always)]
    #[track_caller]
    pub(super) unsafe fn sort(&self, row: &mut [B; LANE_KEYS], minus_one: u32) {
        // SAFETY: the caller ensures that all lanes of the warp make this call, with keys in their slots.
        let numbers = unsafe { self.numbers(row) };
        let (mut pass, mut sorted) = (Pass::Upper, self.numbers_of(numbers, Pass::Upper, row));
        loop {
            // SAFETY: `pass` and `numbers` come from warp-wide votes and maxima, the same for all lanes. So all 32
            // lanes make the call, the lanes of a group with the same group, which lies in the warp.
            unsafe { sort_lanes(&mut sorted, self.group, minus_one) };
            let may_be_alike = pass == Pass::Upper && !numbers.have_all_bits();
            // SAFETY: `pass` and `numbers` are the same for all lanes, so that all 32 make the call.
            let alike = if may_be_alike { unsafe { self.alike(numbers, &sorted) } } else { 0 };
            let begin = self.begin();
            for j in 0..LANE_KEYS {
                sorted[j] = begin.wrapping_add(numbers.index(sorted[j]));
            }
            let are_in_order = if may_be_alike {
                // SAFETY: `may_be_alike` is the same for all lanes, so that all 32 make the call.
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
            // SAFETY: `pass` is the same for all lanes, so that all 32 make the call. It separates the writes of
            // indices from the reads below.
            unsafe { sync_warp(FULL_MASK) };
            self.part.for_each_key(self.whole, |j| {
                sorted[j] = self.slots.order.get(slot(sorted[j])).to_register() as u32;
            });
            // SAFETY: `pass` is the same for all lanes, so that all 32 make the call. It separates the reads above from
            // later writes.
            unsafe { sync_warp(FULL_MASK) };
        }
        for j in 0..LANE_KEYS {
            row[j] = B::from_register(sorted[j] as u64);
        }
    }

    /// Chooses how the keys of the warp become numbers.
    ///
    /// # Safety
    /// All lanes of the warp make this call, and some lane has keys.
    #[inline(always)]
    unsafe fn numbers(&self, keys: &[B; LANE_KEYS]) -> Numbers {
        let (mut least, mut greatest) = (u32::MAX, 0);
        self.part.for_each_key(self.whole, |j| {
            let key = keys[j].to_register() as u32;
            (least, greatest) = (least.min(key), greatest.max(key));
        });
        let len = if self.part.len > 0 { self.offset() + self.part.len } else { 0 };
        // SAFETY: no branch surrounds the calls, so that the 32 lanes of the warp make all three.
        unsafe {
            let least = !reduce_max(FULL_MASK, !least);
            Numbers::new(least, reduce_max(FULL_MASK, greatest), reduce_max(FULL_MASK, len))
        }
    }

    /// The numbers of the keys, followed by the greatest numbers.
    #[inline(always)]
    fn numbers_of(&self, numbers: Numbers, pass: Pass, keys: &[B; LANE_KEYS]) -> [u32; LANE_KEYS] {
        let (mut of, offset) = ([u32::MAX; LANE_KEYS], self.offset());
        self.part.for_each_key(self.whole, |j| of[j] = numbers.of(pass, keys[j], offset + j as u32));
        of
    }

    /// The sorted numbers of this lane that are like the number before, in the same segment, as bits.
    ///
    /// # Safety
    /// All lanes of the warp make this call.
    #[inline(always)]
    unsafe fn alike(&self, numbers: Numbers, sorted: &[u32; LANE_KEYS]) -> u32 {
        // SAFETY: no branch surrounds the call, so that the 32 lanes of the warp make it. A lane without a lane below
        // gets its own value.
        let before = unsafe { shuffle_up(FULL_MASK, sorted[LANE_KEYS - 1], 1) };
        let mut alike = u32::from(self.offset() > 0 && numbers.are_alike(before, sorted[0]));
        for j in 1..LANE_KEYS {
            alike |= u32::from(numbers.are_alike(sorted[j - 1], sorted[j])) << j;
        }
        // The greatest numbers are behind the last key.
        alike & ((1_u64 << self.part.len) - 1) as u32
    }

    /// Puts keys in order that are alike in their upper bits. `sorted` holds their indices. Returns whether all keys
    /// are in order.
    ///
    /// # Safety
    /// The requirements of [`sort`](Self::sort) hold.
    #[inline(always)]
    #[track_caller]
    unsafe fn put_in_order(&self, sorted: &mut [u32; LANE_KEYS], alike: u32) -> bool {
        // SAFETY: no branch surrounds the call, so that the 32 lanes of the warp make it.
        if unsafe { ballot(FULL_MASK, alike != 0) } == 0 {
            return true;
        }
        // With the bits of the next lane. The last lane gets the bits of the first, whose first number begins a group.
        // SAFETY: the ballot above has the same result in all lanes, so that all 32 make the call. The source is below
        // 32.
        let next = unsafe { shuffle_idx(FULL_MASK, alike, (warp::lane_id() + 1) % WARP_SIZE) };
        let of_two_lanes = alike as u64 | (next as u64) << 32;
        // SAFETY: no branch has separated the lanes, so that all 32 make the call. A lane without a lane below gets its
        // own value.
        let before = unsafe { shuffle_up(FULL_MASK, sorted[LANE_KEYS - 1], 1) };
        let (mut before, of_groups) =
            (if alike & 1 != 0 { self.key(before) } else { B::MIN }, alike | (of_two_lanes >> 1) as u32);
        let mut wrong = 0;
        for j in 0..LANE_KEYS {
            let key = if of_groups >> j & 1 != 0 { self.key(sorted[j]) } else { B::MIN };
            wrong |= u32::from(before > key) << j;
            before = key;
        }
        // SAFETY: no branch has separated the lanes, so that all 32 make the call.
        if unsafe { ballot(FULL_MASK, wrong & alike != 0) } == 0 {
            return true;
        }
        // SAFETY: the ballot above has the same result in all lanes, so that all 32 make the call.
        if unsafe { ballot(FULL_MASK, has_long_group(of_two_lanes)) } != 0 {
            return false;
        }
        self.write(sorted);
        // SAFETY: the ballot above has the same result in all lanes, so that all 32 make the call.
        unsafe { sync_warp(FULL_MASK) };
        // The first number of each group, which ends in the next lane at the latest.
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
        // SAFETY: the loop has ended for all lanes, so that all 32 make the call.
        unsafe { sync_warp(FULL_MASK) };
        let indices = self.part.read::<O, LANE_KEYS>(self.slots.order, self.whole);
        for j in 0..LANE_KEYS {
            sorted[j] = indices[j].to_register() as u32;
        }
        true
    }

    /// Writes this lane's indices to the slots of the order.
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

/// Whether a group has more than [`MOST_ALIKE`] keys: that many neighbouring bits are set.
#[inline(always)]
fn has_long_group(alike: u64) -> bool {
    let (mut runs, mut len) = (alike, 1);
    while len < MOST_ALIKE {
        runs &= runs >> len;
        len *= 2;
    }
    runs != 0
}
