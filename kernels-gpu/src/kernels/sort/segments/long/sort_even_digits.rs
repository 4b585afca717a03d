//! The keys of the digits of a long segment that all have about as many, and few: some lanes of a warp sort those of each digit.
//!
//! ```text
//!   digits      │ 0       │ 1       │ 2       │ 3       │ 4       │ …      300 keys at most
//!   a warp      │ lanes 0 to 9 │ 10 to 19 │ 20 to 29 │                    of three neighbouring digits, and then of the next three
//!   a group     │ 30 digits                          │                    is listed, and a warp sorts it
//! ```
//!
//! So a digit costs what a [segment](crate::kernels::sort::segments::sort_wide_rows) of as many keys does. To sort several digits together as one longer segment takes up to
//! twice as long.

use super::super::padded::LaneRow;
use super::super::sort_wide_rows::{self, WIDE_ROW_THREADS, WarpRows};
use super::{GROUPS, LongSegments, Unit, Workspace};
use crate::kernels::sort::elements::Arrays;
use crate::kernels::sort::tile_in_order::DIGITS;
use crate::key::{Bits, Coding};
use crate::warp::sort_lanes::{Group, LANE_KEYS, sort_lanes};
use core::hint::assert_unchecked;
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, sync_warp};

/// Threads of a block.
pub const THREADS: usize = WIDE_ROW_THREADS;

/// Warps of a block.
const WARPS: u32 = THREADS as u32 / WARP_SIZE;

/// The most keys of a digit: of half of the lanes of a warp.
const MAX_EVEN: u32 = WARP_SIZE / 2 * LANE_KEYS as u32;

/// The most groups of the digits of a segment: of 30 digits or more, whatever their lanes are.
pub(super) const MOST_GROUPS: u32 = DIGITS.div_ceil(WARP_SIZE - 2);

/// Words of a group in the list: where its segment begins and ends; and its first digit, the lanes for a digit, and the level behind that of its digits.
pub(super) const GROUP_WORDS: usize = 3;

/// Bytes of dynamic shared memory.
pub const fn shared_bytes() -> u32 {
    sort_wide_rows::shared_bytes(4, 0)
}

/// Whether digits can be even at all: those of keys of `key_bytes` bytes with values of `value_bytes` bytes, or 0. Not of 8 bytes or with values, which lanes take longer to sort than blocks to merge.
pub const fn may_be_even(key_bytes: usize, value_bytes: usize) -> bool {
    key_bytes == 4 && value_bytes == 0
}

/// Whether the digits of a segment of `keys` keys of type `B` with values of type `V` are even, of which the one with the most has `longest`: no more than half of the
/// lanes have nothing to do then.
#[inline(always)]
pub(super) fn is_even<B, V>(longest: u32, keys: u32) -> bool {
    may_be_even(size_of::<B>(), size_of::<V>()) && longest <= MAX_EVEN && longest * (DIGITS / 2) <= keys
}

/// How many digits a warp sorts at once, of `lanes` lanes each.
#[inline(always)]
fn digits_at_once(lanes: u32) -> u32 {
    // SAFETY: a digit has a key. A division by 0 would bring in the code of a panic.
    unsafe { assert_unchecked(lanes != 0) };
    WARP_SIZE / lanes
}

/// How many digits a group has, of `lanes` lanes each: such that all but the last group of a segment keep a warp busy.
#[inline(always)]
fn digits_of_group(lanes: u32) -> u32 {
    let at_once = digits_at_once(lanes);
    // SAFETY: as above: there are at most `WARP_SIZE` lanes.
    unsafe { assert_unchecked(at_once != 0) };
    WARP_SIZE - WARP_SIZE % at_once
}

/// Lists the groups of the digits of `level` of the segment of `unit`, each of at most `longest` keys. All threads of the block make this call, at least [`MOST_GROUPS`].
#[inline(always)]
#[track_caller]
pub(super) fn list_groups<B: Bits, V: Word>(workspace: Workspace<B, V>, unit: Unit, level: u32, longest: u32) {
    let lanes = longest.div_ceil(LANE_KEYS as u32);
    let digit = thread::thread_idx_x() * digits_of_group(lanes);
    if digit < DIGITS {
        let at = GROUP_WORDS * workspace.counters().fetch_add(GROUPS, 1) as usize;
        let words = workspace.groups().slice(at, GROUP_WORDS);
        words.set(0, unit.start);
        words.set(1, unit.end);
        words.set(2, digit | lanes << 8 | (level + 1) << 16);
    }
}

/// Neighbouring digits that a warp sorts at once.
#[derive(Clone, Copy)]
struct EvenDigits<B> {
    workspace: Workspace<B, ()>,
    unit: Unit,
    /// From the first one to the one behind the last.
    first: u32,
    end: u32,
    /// Behind the last one of the group.
    end_of_group: u32,
    /// Lanes for each.
    lanes: u32,
    /// The level behind that of the digits.
    level: u32,
}

/// Bits of the number of a digit among those of a group.
const NUMBER_BITS: u32 = WARP_SIZE.ilog2();

impl<B: Bits> EvenDigits<B> {
    /// Those from a digit of a group on: the number of the group, and behind it [`NUMBER_BITS`] of the number of the digit.
    #[inline(always)]
    #[track_caller]
    fn at(workspace: Workspace<B, ()>, at: u32) -> Self {
        let words = workspace.groups().slice(GROUP_WORDS * (at >> NUMBER_BITS) as usize, GROUP_WORDS);
        let (unit, packed) = (Unit { start: words.get(0), end: words.get(1), number: 0 }, words.get(2));
        let (of_group, lanes, level) = (packed & 0xff, packed >> 8 & 0xff, packed >> 16);
        let end_of_group = (of_group + digits_of_group(lanes)).min(DIGITS);
        let first = of_group + at % WARP_SIZE;
        Self {
            workspace,
            unit,
            first,
            end: (first + digits_at_once(lanes)).min(end_of_group),
            end_of_group,
            lanes,
            level,
        }
    }

    /// Where digit `digit` begins, or the one before it ends.
    #[inline(always)]
    #[track_caller]
    fn begin_of(self, digit: u32) -> u32 {
        // What has been where digits begin has become where they end.
        let at = digit.wrapping_sub(1);
        if at >= DIGITS {
            if digit == 0 { self.unit.start } else { self.unit.end }
        } else {
            self.workspace.counts(self.level - 1, self.unit.start, 0).get(at as usize)
        }
    }

    /// The digit of this lane, which is not one of these if it is the one behind the last or later, and the lane's number among those of the digit.
    #[inline(always)]
    fn of_lane(self, lane: u32) -> (u32, u32) {
        // SAFETY: a digit has a lane. A division by 0 would bring in the code of a panic.
        unsafe { assert_unchecked(self.lanes != 0) };
        (self.first + lane / self.lanes, lane % self.lanes)
    }
}

/// Kernel: sorts the keys of each digit of the groups that are listed, from `scratch` to `home`, or in `home`, as their level says. Keys are ordered bits
/// before, and become what `coding` decodes.
///
/// # Safety
/// What [`LongSegments`] says holds, after all levels. `home` and `scratch` have as many keys, and do not overlap. Blocks are of [`THREADS`] threads, with [`shared_bytes`] of dynamic
/// shared memory. `minus_one` is [`MINUS_ONE`](crate::warp::sort_lanes::MINUS_ONE).
#[kernel(u32 = <u32> within (THREADS, 6))]
pub unsafe fn sort_even_digits<B: Bits>(
    home: *mut B,
    scratch: *mut B,
    long: LongSegments,
    coding: Coding<B>,
    minus_one: u32,
) {
    // SAFETY: the caller promises the workspace, which is only read here.
    let workspace = unsafe { long.open::<B, ()>() };
    let warp = thread::thread_idx_x() / WARP_SIZE;
    // The number of a group, and of a digit in it. All else is read and computed anew where it is used: to keep it takes registers.
    let mut at = (thread::block_idx_x() * WARPS + warp) << NUMBER_BITS;
    while at >> NUMBER_BITS < workspace.counters().get(GROUPS) {
        let digits = EvenDigits::at(workspace, at);
        let lane = recomputed(warp::lane_id());
        let (mut part, mut group) = (LaneRow { first: 0, len: 0 }, Group { first: lane, lanes: 1 });
        let (own, number) = digits.of_lane(lane);
        if own < digits.end {
            let (begin, end) = (digits.begin_of(own), digits.begin_of(own + 1));
            let (len, offset) = (end - begin, number * LANE_KEYS as u32);
            if offset < len {
                let first = begin - digits.begin_of(digits.first) + offset;
                part = LaneRow { first, len: (len - offset).min(LANE_KEYS as u32) };
                group = Group { first: lane - number, lanes: len.div_ceil(LANE_KEYS as u32) };
            }
        }
        // SAFETY: the caller promises both sides; all lanes are here, as what they branch on is the same for all, and lanes of a group have the same one.
        // The keys of a digit are one warp's, and fit in its slots, as those of no digit exceed its lanes. A barrier comes before the next digits.
        unsafe {
            let keys = |side: *mut B, digits: EvenDigits<B>| {
                let begin = digits.begin_of(digits.first);
                let len = digits.begin_of(digits.end) - begin;
                Arrays::alone(GlobalMut::new(side, workspace.keys()).slice(begin as usize, len as usize))
            };
            let from = keys(if digits.level.is_multiple_of(2) { home } else { scratch }, digits);
            let mut rows = WarpRows::<B, (), ()>::load(from, part, Coding::NONE);
            sort_lanes(&mut rows.row, group, minus_one);
            rows.store(keys(home, EvenDigits::at(workspace, recomputed(at))), coding);
            sync_warp(FULL_MASK);
        }
        let digits = EvenDigits::at(workspace, recomputed(at));
        let next_group = ((at >> NUMBER_BITS) + thread::grid_dim_x() * WARPS) << NUMBER_BITS;
        at = if digits.end < digits.end_of_group { at + (digits.end - digits.first) } else { next_group };
    }
}
