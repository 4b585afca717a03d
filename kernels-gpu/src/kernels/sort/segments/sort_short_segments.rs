//! Segments of up to 1024 keys, of any lengths: the segments of a tile, by classes of length.
//!
//! ```text
//!   shared      │ a a a a b b b c c d d d d d d d d │     keys, as they are in the array
//!   list        │ b c … │ a … │ d … │                    starts and lengths of segments, class by class
//!   rows        │ d   │ d   │ … │ a │ …                  one lane each, long classes first, aligned to their lanes
//! ```
//!
//! A thread sorts a segment of up to 16 keys, with a network of 4, 8 or 16. A longer segment is cut into rows of 32
//! keys. [Neighbouring lanes sort it](crate::warp::sort_lanes), one for each row. A class holds the segments of up to
//! 1, 2, 4, … 32 rows.
//!
//! Keys with values stay where they are, and keys and values are stored in sorted order in the end (`row_slots`).
//! Values are loaded over the keys and lists, so that they are read from global memory in its order.

use super::middle::{Lists, MiddleSegments};
use super::padded::{LaneRow, slot};
use super::row_slots::{RowSlots, sort_row};
use super::{Bounds, SegmentLists, Segments, Tiles};
use crate::block::shared_memory::{self, shared_memory};
use crate::elements::{Arrays, Slice, has_values};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use crate::warp::sort_lanes::{Group, LANE_KEYS};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, lanes_alike, shuffle_idx};
use cuda_std::{recomputed, shared};

/// Upper limit on the keys of a segment that this kernel sorts.
pub const MAX_SHORT: usize = WARP_SIZE as usize * LANE_KEYS;

/// Threads of a block. Small blocks: a multiprocessor then has several, and some sort while others wait for memory or
/// at a barrier.
pub const SHORT_THREADS: usize = 128;

/// Classes of segments: of 2 to 4 keys, of up to 8, 16, 32, … and 1024.
const CLASSES: u32 = 9;

/// The first class of rows: of 17 to 32 keys.
const FIRST_OF_ROWS: u32 = 3;

/// The class of segments of `len` keys, 2 to [`MAX_SHORT`].
#[inline(always)]
const fn class_of(len: u32) -> u32 {
    let bits = u32::BITS - (len - 1).leading_zeros();
    bits.saturating_sub(2)
}

/// Lower limit on the keys of a segment of `class`.
const fn least_keys(class: u32) -> u32 {
    if class == 0 { 2 } else { (2 << class) + 1 }
}

/// Number of list entries before the entries of `class`, for tiles of `slots` keys.
const fn entries_before(class: u32, slots: usize) -> u32 {
    let (mut entries, mut c) = (0, 0);
    while c < class {
        entries += slots as u32 / least_keys(c);
        c += 1;
    }
    entries
}

shared_memory! {
    /// Segments of a tile of up to `slots` keys.
    struct Sorted<B: Word, O: Word>(slots: usize) {
        rows: RowSlots<B, O> { slot(slots as u32) as usize },
        /// Start of each segment in the tile, with its length in the upper half.
        list: [u32; entries_before(CLASSES, slots)],
    }
}

shared_memory! {
    /// Values are loaded once the order of all keys is known.
    union Slots<B: Word, O: Word, V: Word>(slots: usize) {
        sorted: Sorted<B, O> { slots },
        values: [V; slots],
    }
}

shared_memory! {
    /// Shared memory of a tile of up to `slots` keys.
    struct Memory<B: Word, O: Word, V: Word>(slots: usize) {
        slots: Slots<B, O, V> { slots },
        /// End of the entries of each class.
        ends: [u32; CLASSES],
        /// Whether there are longer segments.
        has_longer: [u32; 1],
        /// Keys of the tile, kept here to save a register.
        len: [u32; 1],
    }
}

/// Bytes of dynamic shared memory for tiles of `slots` keys of `key_bytes` bytes, with values of `value_bytes` bytes or
/// 0.
pub const fn shared_bytes(key_bytes: usize, value_bytes: usize, slots: usize) -> u32 {
    match (key_bytes, value_bytes) {
        (4, 0) => Memory::<u32, (), ()>::bytes(slots),
        (4, 4) => Memory::<u32, u16, u32>::bytes(slots),
        (4, _) => Memory::<u32, u16, u64>::bytes(slots),
        _ => Memory::<u64, (), ()>::bytes(slots),
    }
}

/// Blocks of a multiprocessor that sort keys with values. Shared memory limits them.
const BLOCKS_WITH_VALUES: usize = 5;

const _: () = {
    /// Bytes of shared memory of a multiprocessor of compute capability 9.0 or 10.0, and bytes reserved for each block.
    const SHARED_BYTES: usize = 228 << 10;
    const RESERVED: usize = 1 << 10;
    let mut value_bytes = 4;
    while value_bytes <= 8 {
        let block = shared_bytes(4, value_bytes, ROW.sort_segments.of(4, value_bytes).keys()) as usize + RESERVED;
        assert!(BLOCKS_WITH_VALUES * block <= SHARED_BYTES, "a multiprocessor has so many blocks at once");
        value_bytes *= 2;
    }
};

/// Kernel: sorts each segment of up to [`MAX_SHORT`] keys that is short for its tile, with its values. One block takes
/// the segments of a tile. Stable. Longer segments of the tile are appended to `middle` if it takes them. Otherwise the
/// tile is appended to `longer`, whose first number counts the tiles.
///
/// # Safety
/// `segments` are the segments of the elements of `at`, in global memory. `find_segments` has written `lists`,
/// for [`Tiles::of`] of `SLOTS`. It has the capacities of [`SegmentLists`], and the first number of `longer` is 0
/// before the launch. `middle` meets the requirements of [`MiddleSegments`]. There is a block for each tile from
/// `first_tile` on, and no tile before has a short segment. Blocks have [`SHORT_THREADS`] threads with [`shared_bytes`]
/// of dynamic shared memory. `minus_one` is [`MINUS_ONE`](crate::warp::sort_lanes::MINUS_ONE).
#[kernel(
    u32 = <u32, (), (), { ROW.sort_segments.of(4, 0).keys() }> within (SHORT_THREADS, 6),
    u64 = <u64, (), (), { ROW.sort_segments.of(8, 0).keys() }> within (SHORT_THREADS, 3),
    u32v4 = <u32, u16, u32, { ROW.sort_segments.of(4, 4).keys() }> within (SHORT_THREADS, BLOCKS_WITH_VALUES),
    u32v8 = <u32, u16, u64, { ROW.sort_segments.of(4, 8).keys() }> within (SHORT_THREADS, BLOCKS_WITH_VALUES),
)]
pub unsafe fn sort_short_segments<B: Bits, O: Word, V: Word, const SLOTS: usize>(
    segments: Segments,
    at: Slice<B, V>,
    lists: SegmentLists,
    middle: MiddleSegments,
    first_tile: usize,
    coding: Coding<B>,
    minus_one: u32,
) {
    const { assert!(SLOTS < 1 << 16, "where a segment begins has 16 bits, as the index of a key does") };
    const { shared_memory::check(shared_bytes(size_of::<B>(), size_of::<V>(), SLOTS)) };
    let (tiles, thread) = (const { Tiles::of(SLOTS) }, thread::thread_idx_x());
    let t = first_tile + thread::block_idx_x() as usize;
    let n = at.len;
    // SAFETY: `segments` and `middle` meet the requirements of `of` and `open`, which are this kernel's own. `firsts`
    // and `longer` have `tiles.count(n) + 1` numbers. The launch has `shared_bytes`. Barriers come between accesses of
    // different threads to one element of shared memory: after loading and listing, before keys are stored, and before
    // and after values are loaded.
    let (bounds, middle, firsts, longer, memory) = unsafe {
        (
            segments.of(n),
            middle.open(),
            Global::new(lists.firsts, tiles.count(n) + 1),
            GlobalMut::new(lists.longer, tiles.count(n) + 1),
            Memory::<B, O, V>::at_start(SLOTS),
        )
    };
    let (first, next) = (firsts.get(t), firsts.get(t + 1));
    let last = tiles.end_of_short(bounds, t, first, next);
    if last == first {
        return;
    }
    let base = bounds.start(first);
    let len = bounds.start(last) - base;
    // SAFETY: the arrays have `n` elements, and blocks use disjoint segments.
    let Arrays { keys, values } = unsafe { at.arrays().slice(base, len) };
    if thread < CLASSES {
        memory.ends.set(thread, entries_before_class::<SLOTS>(thread));
    }
    if thread == 0 {
        memory.has_longer.set(0, 0);
        memory.len.set(0, len as u32);
    }
    // If there are only a few segments, all may be too long to be sorted here. Then keys are not loaded. Otherwise,
    // keys are in flight while segments are listed.
    let is_few = last - first <= FEW;
    let load = || load::<B, SLOTS>(keys, memory.len.get(0), coding);
    thread::sync_threads();
    let mut held = if is_few { [B::MAX; MOST_STRIDED] } else { load() };
    // SAFETY: `first` and `last` depend on the block only, so that all `SHORT_THREADS` threads, whole warps, make the
    // call with the same segments.
    unsafe { memory.list_segments::<SLOTS>(bounds, middle, base, first, last) };
    if is_few {
        thread::sync_threads();
        let mut is_listed = memory.has_longer.get(0) > 0;
        for class in 0..CLASSES {
            is_listed |= memory.ends.get(class) > entries_before(class, SLOTS);
        }
        if !is_listed {
            return;
        }
        held = load();
    }
    put::<B, O, SLOTS>(held, memory.len.get(0), memory.slots.sorted.rows, coding);
    thread::sync_threads();
    if thread == 0 && memory.has_longer.get(0) > 0 {
        longer.set(1 + longer.fetch_add(0, 1) as usize, t as u32);
    }
    // SAFETY: `is_listed` is the same for all threads, so that all threads of the block, whole warps, make the call.
    // Each segment belongs to one row or one group of rows.
    unsafe { memory.sort_rows::<SLOTS>(minus_one) };
    memory.sort_small::<4, SLOTS>(0);
    memory.sort_small::<8, SLOTS>(1);
    memory.sort_small::<16, SLOTS>(2);
    thread::sync_threads();
    memory.store::<SLOTS>(Arrays { keys, values }, coding);
}

/// Upper limit on "a few" segments of a tile.
const FEW: usize = 8;

/// Calls `access` for each of `count` keys that this thread loads and stores: with the key's number in the thread, its
/// index and its slot.
#[inline(always)]
fn for_each_strided<const SLOTS: usize>(count: u32, mut access: impl FnMut(usize, usize, u32)) {
    let thread = recomputed(thread::thread_idx_x());
    let (left, own_slot) = (count.saturating_sub(thread), slot(thread));
    for i in 0..SLOTS.div_ceil(SHORT_THREADS) {
        if ((i * SHORT_THREADS) as u32) < left {
            access(i, i * SHORT_THREADS + thread as usize, i as u32 * const { slot(SHORT_THREADS as u32) } + own_slot);
        }
    }
}

/// Upper limit on the keys that a thread loads and stores.
const MOST_STRIDED: usize = 36;

/// Loads this thread's keys of a tile of `count` keys.
#[inline(always)]
#[track_caller]
fn load<B: Bits, const SLOTS: usize>(keys: GlobalMut<B>, count: u32, coding: Coding<B>) -> [B; MOST_STRIDED] {
    const { assert!(SLOTS.div_ceil(SHORT_THREADS) <= MOST_STRIDED, "a thread loads so many keys") };
    let mut held = [coding.decode(B::MAX); MOST_STRIDED];
    for_each_strided::<SLOTS>(count, |i, index, _| held[i] = keys.get(index));
    held
}

/// Puts keys into their slots. Their order is initially the order of the array.
#[inline(always)]
#[track_caller]
fn put<B: Bits, O: Word, const SLOTS: usize>(
    mut held: [B; MOST_STRIDED],
    count: u32,
    rows: RowSlots<B, O>,
    coding: Coding<B>,
) {
    coding.encode_all(&mut held);
    for_each_strided::<SLOTS>(count, |i, index, slot| rows.set(slot, held[i], index as u32));
}

/// With more segments than this for each slot, most of the segments are empty, and threads search instead of looking at
/// each.
const MOST_LISTED: usize = 4;

impl<B: Bits, O: Word, V: Word> Memory<B, O, V> {
    /// Lists the segments `first .. last` of 2 to [`MAX_SHORT`] keys, and reports longer ones, which `middle` may take.
    /// The tile begins with key `base`.
    ///
    /// # Safety
    /// All threads of the block, whole warps, make this call with the same segments.
    #[inline(always)]
    #[track_caller]
    unsafe fn list_segments<const SLOTS: usize>(
        self,
        bounds: Bounds,
        middle: Lists,
        base: usize,
        first: usize,
        last: usize,
    ) {
        let thread = thread::thread_idx_x();
        let is_listed = |len: u32| (2..=MAX_SHORT as u32).contains(&len);
        if last - first > MOST_LISTED * SLOTS {
            let each = SLOTS.div_ceil(SHORT_THREADS);
            let (mut key, end) = (base + thread as usize * each, base + (thread as usize + 1) * each);
            while key < end {
                let q = bounds.first_from(key, first, last);
                if q == last || bounds.start(q) >= end {
                    break;
                }
                // The last segment that begins there, since the others are empty.
                let start = bounds.start(q);
                let stop = bounds.start(bounds.first_from(start + 1, q, last));
                let len = (stop - start) as u32;
                if is_listed(len) {
                    self.enter(self.ends.fetch_add(class_of(len), 1), (start - base) as u32, len);
                }
                self.note_longer(middle, start, len);
                // Behind `start` in any case: if only empty segments begin there, nothing is left.
                key = stop.max(start + 1);
            }
            return;
        }
        let (lane, mut from) = (warp::lane_id(), (thread - warp::lane_id()) as usize + first);
        while from < last {
            let q = from + lane as usize;
            // Both indices are in the tile or at its end.
            let index = |q: usize| (bounds.start(q) - base) as u32;
            let (start, stop) = if q < last { (index(q), index(q + 1)) } else { (0, 0) };
            let len = stop - start;
            let class = if is_listed(len) { class_of(len) } else { CLASSES };
            // One atomic addition for all lanes of a class. SAFETY: `from` is the same for all lanes of the warp, so
            // that all 32 make the call.
            let alike = unsafe { lanes_alike::<4>(class) };
            let leader = alike.trailing_zeros();
            let at = if lane == leader && class < CLASSES { self.ends.fetch_add(class, alike.count_ones()) } else { 0 };
            // SAFETY: `from` is the same for all lanes, so that all 32 make the call. `leader` is the lowest lane in
            // `alike`, which contains this lane.
            let at = unsafe { shuffle_idx(FULL_MASK, at, leader) };
            if class < CLASSES {
                self.enter(at + (alike & ((1 << lane) - 1)).count_ones(), start, len);
            }
            self.note_longer(middle, base + start as usize, len);
            from += SHORT_THREADS;
        }
    }

    /// Stores the segment of `len` keys from key `start` of the tile on as entry `at` of the list.
    #[inline(always)]
    #[track_caller]
    fn enter(self, at: u32, start: u32, len: u32) {
        self.slots.sorted.list.set(at, start | len << 16);
    }

    /// Reports a segment of `len` keys from key `start` of the array on, if it is too long to be sorted here.
    #[inline(always)]
    #[track_caller]
    fn note_longer(self, middle: Lists, start: usize, len: u32) {
        if len > MAX_SHORT as u32 {
            if middle.takes(len as usize) {
                middle.append(start, len as usize);
            } else {
                self.has_longer.fetch_add(0, 1);
            }
        }
    }

    /// Entry `at` of the list: the start of the segment in the tile, and its length.
    #[inline(always)]
    #[track_caller]
    fn entry(self, at: u32) -> (u32, u32) {
        let entry = self.slots.sorted.list.get(at);
        (entry & 0xffff, entry >> 16)
    }

    /// Sorts the segments of more than 16 keys.
    ///
    /// # Safety
    /// All threads of the block, whole warps, make this call.
    #[inline(always)]
    #[track_caller]
    unsafe fn sort_rows<const SLOTS: usize>(self, minus_one: u32) {
        let mut row = thread::thread_idx_x();
        loop {
            // Read again for each row: to keep it takes a register.
            let lane = recomputed(warp::lane_id());
            // There are few classes: to count rows up to this one is faster than to look its segment up.
            let mut begin = 0;
            let (mut shift, mut own_begin, mut entries) = (0, u32::MAX, 0);
            for class in (FIRST_OF_ROWS..CLASSES).rev() {
                let before = entries_before(class, SLOTS);
                let end = begin + ((self.ends.get(class) - before) << (class - FIRST_OF_ROWS));
                if row >= begin && row < end {
                    (shift, own_begin, entries) = (class - FIRST_OF_ROWS, begin, before);
                }
                begin = end;
            }
            // The same for all lanes of the warp.
            if row - lane >= begin {
                break;
            }
            let (mut part, mut group) = (LaneRow { first: 0, len: 0 }, Group { first: lane, lanes: 1 });
            if own_begin <= row {
                let (start, len) = self.entry(entries + ((row - own_begin) >> shift));
                // Classes with more lanes come first, so that each class begins at a multiple of its own number of
                // lanes.
                let number = lane & ((1 << shift) - 1);
                let (offset, lanes) = (number * LANE_KEYS as u32, len.div_ceil(LANE_KEYS as u32));
                if number < lanes {
                    part = LaneRow { first: start + offset, len: (len - offset).min(LANE_KEYS as u32) };
                    group = Group { first: lane - number, lanes };
                }
            }
            // SAFETY: the loop ends for all lanes of a warp at once, so that all 32 make the calls. Lanes of one
            // segment have the same group, from `lane - number` on. Each class starts at a multiple of `1 << shift`
            // lanes, so that the group lies in the warp.
            unsafe {
                let whole = part.are_whole();
                let rows = self.slots.sorted.rows;
                let mut keys = part.read(rows.keys, whole);
                rows.sort_lanes(&mut keys, (part, whole), group, minus_one);
                rows.write(part, &keys, whole);
            }
            row += SHORT_THREADS as u32;
        }
    }

    /// Sorts the segments of `class`, which have up to `N` keys.
    #[inline(always)]
    #[track_caller]
    fn sort_small<const N: usize, const SLOTS: usize>(self, class: u32) {
        // The last threads come first: they are the threads without rows, if there are any.
        let first_entry = entries_before(class, SLOTS) + SHORT_THREADS as u32 - 1;
        let (end, mut at) = (self.ends.get(class), first_entry - thread::thread_idx_x());
        while at < end {
            let (first, len) = self.entry(at);
            let row = LaneRow { first, len };
            let rows = self.slots.sorted.rows;
            let mut keys = row.read::<B, N>(rows.keys, false);
            sort_row::<B, O, N>(&mut keys, first);
            rows.write(row, &keys, false);
            at += SHORT_THREADS as u32;
        }
    }

    /// Stores the keys of a tile from their slots, and the values that belong to them.
    ///
    /// All threads of the block make this call, after a barrier.
    #[inline(always)]
    #[track_caller]
    fn store<const SLOTS: usize>(self, Arrays { keys, values }: Arrays<B, V>, coding: Coding<B>) {
        let (count, Slots { sorted: Sorted { rows, .. }, values: values_of_tile }) = (self.len.get(0), self.slots);
        // Two indices in a register, unpacked again for each use.
        let (mut held, mut indices) = ([B::MAX; MOST_STRIDED], [0; MOST_STRIDED.div_ceil(2)]);
        for_each_strided::<SLOTS>(count, |i, _, slot| indices[i / 2] |= rows.index_at(slot) << (i % 2 * 16));
        let index = |i: usize| recomputed(indices[i / 2]) >> (i % 2 * 16) & 0xffff;
        for_each_strided::<SLOTS>(count, |i, _, slot| held[i] = rows.key_at(slot, index(i)));
        if const { has_values::<V>() } {
            thread::sync_threads();
            // Not unrolled: an unrolled loop would keep addresses in registers.
            let mut index = recomputed(thread::thread_idx_x());
            while index < count {
                values_of_tile.copy_async_mut(index, values, index as usize);
                index += SHORT_THREADS as u32;
            }
        }
        coding.decode_all(&mut held);
        for_each_strided::<SLOTS>(count, |i, index, _| keys.set(index, held[i]));
        if const { has_values::<V>() } {
            shared::wait_for_copies();
            thread::sync_threads();
            let mut moved = [V::from_register(0); MOST_STRIDED];
            for_each_strided::<SLOTS>(count, |i, _, _| moved[i] = values_of_tile.get(index(i)));
            for_each_strided::<SLOTS>(count, |i, index, _| values.set(index, moved[i]));
        }
    }
}

/// [`entries_before`] of a class that is only known at run time.
#[inline(always)]
fn entries_before_class<const SLOTS: usize>(class: u32) -> u32 {
    let mut entries = 0;
    for c in 0..CLASSES {
        if c == class {
            entries = entries_before(c, SLOTS);
        }
    }
    entries
}
