//! Segments of one length, up to 1024 keys: some lanes of a warp sort each in their registers. One lane sorts several
//! segments of up to 16 keys.
//!
//! ```text
//!   global      │a a a a a a a a│b b b b b b b b│     key i of a warp's segments by lane i modulo 32
//!   shared      │a a a a░a a a a│b b b b░b b b b│     a padding slot after 32, so that lanes use different banks
//!   registers    a a a a → lane 0, a a a a → lane 1, …      32 keys of a segment, or what is left of it
//! ```
//!
//! Each warp works on its own, with barriers for its lanes only. Keys with values stay where they are, and keys and
//! values are stored in sorted order in the end (`row_slots`).

use super::padded::{LaneRow, slot};
use super::row_slots::{RowSlots, sort_row};
use crate::block::shared_memory::shared_memory;
use crate::elements::{Arrays, Elements, has_values};
use crate::key::{Bits, Coding};
use crate::warp::sort_lanes::{Group, LANE_KEYS};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, sync_warp};
use cuda_std::{recomputed, shared};

/// Slots of a warp.
const WARP_SLOTS: usize = WARP_SIZE as usize * (LANE_KEYS + 1);

/// Upper limit on the keys of a segment.
pub const MAX_WIDE_ROW: usize = WARP_SIZE as usize * LANE_KEYS;

/// Threads of a block.
pub const WIDE_ROW_THREADS: usize = 128;

/// Warps of a block.
const WARPS: usize = WIDE_ROW_THREADS / WARP_SIZE as usize;

/// Upper limit on the keys of a segment if a lane has several segments.
const MAX_SHARED: usize = LANE_KEYS / 2;

/// Whether segments of `length` keys can be sorted. If a lane has several segments, these must fill all of its keys.
pub const fn has_wide_rows(length: usize) -> bool {
    length <= MAX_WIDE_ROW && (length > MAX_SHARED || length.is_power_of_two())
}

/// Segments of a warp, of `length` keys each.
const fn rows_per_warp(length: usize) -> usize {
    if length <= MAX_SHARED { MAX_WIDE_ROW / length } else { WARP_SIZE as usize / length.div_ceil(LANE_KEYS) }
}

/// Segments of a block, of `length` keys each.
pub const fn rows_per_block(length: usize) -> usize {
    WARPS * rows_per_warp(length)
}

shared_memory! {
    /// Shared memory of a warp.
    struct Memory<B: Word, O: Word, V: Word>() {
        values: [V; MAX_WIDE_ROW],
        rows: RowSlots<B, O> { WARP_SLOTS },
    }
}

/// Bytes of dynamic shared memory for keys of `key_bytes` bytes, with values of `value_bytes` bytes or 0.
pub const fn shared_bytes(key_bytes: usize, value_bytes: usize) -> u32 {
    let bytes = match (key_bytes, value_bytes) {
        (4, 0) => Memory::<u32, (), ()>::bytes(),
        (4, 4) => Memory::<u32, u16, u32>::bytes(),
        (4, _) => Memory::<u32, u16, u64>::bytes(),
        _ => Memory::<u64, (), ()>::bytes(),
    };
    assert!(bytes.is_multiple_of(8), "the memory of a warp ends where that of the next one begins");
    WARPS as u32 * bytes
}

/// Kernel: sorts each segment of `length` keys with their values, as `coding` orders them. The last segment may be
/// shorter. Stable.
///
/// # Safety
/// `at` has `n` elements, in global memory. `length` is not 0, and [`has_wide_rows`] holds for it. Blocks have
/// [`WIDE_ROW_THREADS`] threads with [`shared_bytes`] of dynamic shared memory, and there is one for each
/// [`rows_per_block`] segments or fewer. `minus_one` is [`MINUS_ONE`](crate::warp::sort_lanes::MINUS_ONE).
#[kernel(
    u32 = <u32, (), ()> within (WIDE_ROW_THREADS, 6),
    u64 = <u64, (), ()> within (WIDE_ROW_THREADS, 3),
    u32v4 = <u32, u16, u32> within (WIDE_ROW_THREADS, 5),
    u32v8 = <u32, u16, u64> within (WIDE_ROW_THREADS, 3),
)]
pub unsafe fn sort_wide_rows<B: Bits, O: Word, V: Word>(
    at: Elements<B, V>,
    n: usize,
    length: u32,
    coding: Coding<B>,
    minus_one: u32,
) {
    let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
    // Several segments of a lane are loaded like one segment of all its keys.
    let segment = length;
    let length = if segment <= MAX_SHARED as u32 { LANE_KEYS as u32 } else { segment };
    let lanes = length.div_ceil(LANE_KEYS as u32);
    // SAFETY: `length` is not 0, so that `lanes` is at least 1. The assumption removes the code of a panic for a
    // division by 0.
    unsafe { core::hint::assert_unchecked(lanes != 0) };
    let rows = WARP_SIZE / lanes;
    let tile = rows * length;
    let start = (thread::block_idx_x() as usize * WARPS + warp as usize) * tile as usize;
    if start >= n {
        return;
    }
    // SAFETY: the arrays have `n` elements, and `start` is below `n`. Warps use disjoint elements.
    let elements = unsafe { at.arrays(n) }.slice(start, (tile as usize).min(n - start));
    let count = elements.keys.len() as u32;
    let (row, number) = (lane / lanes, lane % lanes);
    let offset = number * LANE_KEYS as u32;
    let first = (row * length + offset).min(count);
    let part = LaneRow { first, len: (length - offset).min(LANE_KEYS as u32).min(count - first) };
    // Surplus lanes have no keys, as their `row` is behind the last.
    let group = Group { first: lane - number, lanes: lanes.min(WARP_SIZE - (lane - number)) };
    // SAFETY: `start` is the same for all lanes, so that the 32 lanes of the warp make the calls. The launch has
    // `shared_bytes`. `segment` is the same for all lanes. The lanes of a group have the same `Group`, and parts of the
    // same row.
    unsafe {
        let mut rows = WarpRows::<B, O, V>::load(elements, part, coding);
        let row = &mut rows.row;
        match segment {
            0..=2 => sort_each::<B, O, 2>(row, part.first),
            4 => sort_each::<B, O, 4>(row, part.first),
            8 => sort_each::<B, O, 8>(row, part.first),
            16 => sort_each::<B, O, 16>(row, part.first),
            _ => rows.memory.rows.sort_lanes(row, (part, rows.whole), group, minus_one),
        }
        rows.store(elements, coding);
    }
}

/// Up to [`MAX_WIDE_ROW`] elements. Each lane of a warp sorts a part.
pub(super) struct WarpRows<B, O, V> {
    memory: Memory<B, O, V>,
    part: LaneRow,
    /// Whether [all parts are whole](LaneRow::are_whole).
    whole: bool,
    /// The keys of the part. If there is an order, they are replaced by their indices.
    pub(super) row: [B; LANE_KEYS],
}

impl<B: Bits, O: Word, V: Word> WarpRows<B, O, V> {
    /// Loads the elements of `from`. This lane has `part`.
    ///
    /// # Safety
    /// All lanes of the warp make this call, for parts that do not overlap. The block has [`WIDE_ROW_THREADS`] threads
    /// with [`shared_bytes`] of dynamic shared memory. Nothing else uses the elements. A barrier of the warp comes
    /// before the next call.
    #[inline(always)]
    #[track_caller]
    pub(super) unsafe fn load(from: Arrays<B, V>, part: LaneRow, coding: Coding<B>) -> Self {
        let (count, warp) = (from.keys.len(), thread::thread_idx_x() / WARP_SIZE);
        // SAFETY: warp `w < WARPS` uses bytes `w * bytes()` to `(w + 1) * bytes()` of the `shared_bytes`, `WARPS *
        // bytes()`. Barriers of the warp come between accesses of different lanes to an element.
        let memory = unsafe { Memory::<B, O, V>::at(warp * Memory::<B, O, V>::bytes()) };
        if const { has_values::<V>() } {
            for_each_strided::<false>(count, |_, index, _| {
                memory.values.copy_async_mut(index as u32, from.values, index);
            });
        }
        // Both have the same instructions, except the tests for partial tiles.
        if count == MAX_WIDE_ROW {
            load::<B, true>(from.keys, memory.rows.keys, coding)
        } else {
            load::<B, false>(from.keys, memory.rows.keys, coding)
        }
        // SAFETY: no branch separates the lanes, so that the 32 lanes of the warp make both calls.
        let whole = unsafe {
            sync_warp(FULL_MASK);
            part.are_whole()
        };
        Self { memory, part, whole, row: part.read(memory.rows.keys, whole) }
    }

    /// Stores all elements to `to`, which has the same length, with each part sorted.
    ///
    /// # Safety
    /// The requirements of [`load`](Self::load) hold. `to` is the array that was loaded, or does not overlap it.
    #[inline(always)]
    #[track_caller]
    pub(super) unsafe fn store(&self, to: Arrays<B, V>, coding: Coding<B>) {
        self.memory.rows.write(self.part, &self.row, self.whole);
        if const { has_values::<V>() } {
            shared::wait_for_copies();
        }
        // SAFETY: no branch separates the lanes, so that the 32 lanes of the warp make the call.
        unsafe { sync_warp(FULL_MASK) };
        if to.keys.len() == MAX_WIDE_ROW {
            store::<B, O, V, true>(self.memory, to, coding)
        } else {
            store::<B, O, V, false>(self.memory, to, coding)
        }
    }
}

/// Sorts each `N` keys of a lane. `N` is a power of two, and the first key has index `first`.
#[inline(always)]
fn sort_each<B: Bits, O: Word, const N: usize>(keys: &mut [B; LANE_KEYS], first: u32) {
    for segment in 0..LANE_KEYS / N {
        let mut row = [B::MAX; N];
        for i in 0..N {
            row[i] = keys[segment * N + i];
        }
        sort_row::<B, O, N>(&mut row, first + (segment * N) as u32);
        for i in 0..N {
            keys[segment * N + i] = row[i];
        }
    }
}

/// Calls `access` for each of `count` keys that this lane loads and stores: in each row of 32 keys, the key of the
/// lane's number. `FULL` rows have a key for each lane.
#[inline(always)]
fn for_each_strided<const FULL: bool>(count: usize, mut access: impl FnMut(usize, usize, u32)) {
    let lane = recomputed(warp::lane_id());
    // Counted again for each loop over the keys: otherwise a predicate would be kept for each key.
    let left = (count as u32).saturating_sub(lane);
    for i in 0..LANE_KEYS {
        if FULL || i as u32 * WARP_SIZE < left {
            access(i, i * WARP_SIZE as usize + lane as usize, i as u32 * slot(WARP_SIZE) + lane);
        }
    }
}

/// Loads the keys of a warp to their slots.
#[inline(always)]
#[track_caller]
fn load<B: Bits, const FULL: bool>(keys: GlobalMut<B>, slots: Shared<B>, coding: Coding<B>) {
    let mut held = [coding.decode(B::MAX); LANE_KEYS];
    for_each_strided::<FULL>(keys.len(), |i, index, _| held[i] = keys.get(index));
    coding.encode_all(&mut held);
    for_each_strided::<FULL>(keys.len(), |i, _, slot| slots.set(slot, held[i]));
}

/// Stores the keys of a warp from their slots, and the values that belong to them.
#[inline(always)]
#[track_caller]
fn store<B: Bits, O: Word, V: Word, const FULL: bool>(
    Memory { rows, values: values_of_tile }: Memory<B, O, V>,
    Arrays { keys, values }: Arrays<B, V>,
    coding: Coding<B>,
) {
    let (mut held, mut indices) = ([B::MAX; LANE_KEYS], [0; LANE_KEYS]);
    for_each_strided::<FULL>(keys.len(), |i, _, slot| indices[i] = rows.index_at(slot));
    for_each_strided::<FULL>(keys.len(), |i, _, slot| held[i] = rows.key_at(slot, indices[i]));
    coding.decode_all(&mut held);
    for_each_strided::<FULL>(keys.len(), |i, index, _| keys.set(index, held[i]));
    if const { has_values::<V>() } {
        let mut moved = [V::from_register(0); LANE_KEYS];
        for_each_strided::<FULL>(keys.len(), |i, _, _| moved[i] = values_of_tile.get(indices[i]));
        for_each_strided::<FULL>(keys.len(), |i, index, _| values.set(index, moved[i]));
    }
}
