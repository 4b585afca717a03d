//! Moving the keys of a tile to the places of their digits, in any order.
//!
//! ```text
//!   tile       │ 3 1 0 3 2 0 1 3 │     the keys of each digit are counted, by atomic additions
//!   shared     │ 0 0 1 1 2 3 3 3 │     each key goes to a slot of its digit, by another addition
//!   to         … 0 0 … 1 1 … 2 … 3 3 3 …     neighbours go to neighbours, to places that a third addition reserves
//! ```

use super::DIGITS_CAPACITY;
use super::digits::{ANY, Curve, Digits, LINEAR, MIRRORED, OTHER};
use super::tiles::Tile;
use crate::block::clear;
use crate::block::scan::{BLOCK_WORDS, sum_before};
use crate::block::shared_memory::shared_memory;
use crate::key::{Bits, Coding};
use core::ops::Range;
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot, shuffle_idx};

/// Upper limit on the keys of a thread whose atomic additions are in flight at once.
const BATCH: usize = 8;

shared_memory! {
    /// Shared memory of a tile of `slots` keys.
    pub(super) struct TileMemory<B: Word>(slots: usize) {
        keys: [B; slots],
        /// Words of a scan.
        pub scan: [u32; BLOCK_WORDS],
        /// Distance from each digit's slots to the destination of its keys.
        pub distances: [u32; DIGITS_CAPACITY],
        /// Number of keys of each digit, and later the slot of the first.
        pub begins: [u32; DIGITS_CAPACITY],
    }
}

impl<B: Bits> TileMemory<B> {
    /// Turns the counters into slots, and reserves places for the keys of each digit, counted from its `base`. The
    /// atomic addition has a long latency: its result for this thread's first digit is returned, for
    /// [`settle`](Self::settle). Ends with a barrier.
    ///
    /// # Safety
    /// All threads of the block make this call, after a barrier. Nothing else uses `scan`.
    #[inline(always)]
    unsafe fn reserve<const NT: usize>(self, counters: GlobalMut<u32>, base: impl Fn(u32) -> u32) -> u32 {
        let Self { scan, begins, distances, .. } = self;
        let (thread, count) = (thread::thread_idx_x(), counters.len() as u32);
        let (mut first, mut before, mut room) = (0, 0, 0);
        while first < count {
            let digit = first + thread;
            let of_digit = if digit < count { begins.get(digit) } else { 0 };
            // SAFETY: `count` and so the number of rounds is the same for all threads, so that all of them make the
            // call. `sync_threads` at the end of a round comes between two uses of `scan`.
            let (sum, all) = unsafe { sum_before(of_digit, scan) };
            if digit < count {
                let begin = before + sum;
                begins.set(digit, begin);
                if first == 0 {
                    room = counters.fetch_add(digit as usize, of_digit);
                    distances.set(digit, base(digit).wrapping_sub(begin));
                } else {
                    let room = base(digit) + counters.fetch_add(digit as usize, of_digit);
                    distances.set(digit, room.wrapping_sub(begin));
                }
            }
            before += all;
            first += NT as u32;
            thread::sync_threads();
        }
        room
    }

    /// Adds the reserved place to the distance of the thread's first digit.
    #[inline(always)]
    #[track_caller]
    fn settle(self, room: u32, count: u32) {
        let digit = thread::thread_idx_x();
        if digit < count {
            self.distances.set(digit, self.distances.get(digit).wrapping_add(room));
        }
    }
}

/// Whether row `i` of `len` elements has an element for thread `thread`. `FULL` rows always have one.
#[inline(always)]
fn is_here<const NT: usize, const FULL: bool>(thread: u32, i: usize, len: u32) -> bool {
    FULL || thread + ((i * NT) as u32) < len
}

/// Global to registers: the thread's keys.
#[inline(always)]
#[track_caller]
pub(super) fn load<B: Bits, const NT: usize, const VT: usize, const FULL: bool>(from: GlobalMut<B>) -> [B; VT] {
    let mut own = [B::MIN; VT];
    for i in 0..VT {
        if is_here::<NT, FULL>(thread::thread_idx_x(), i, from.len() as u32) {
            own[i] = from.get(thread::thread_idx_x() as usize + i * NT);
        }
    }
    own
}

/// The next slot of the digit of each key of `rows` that is there.
#[inline(always)]
#[track_caller]
fn next_slots<B: Bits>(
    begins: Shared<u32>,
    digit: impl Fn(B) -> u32,
    own: &[B],
    rows: Range<usize>,
    is_here: impl Fn(usize) -> bool,
) -> [u32; BATCH] {
    let (mut slots, first) = ([0; BATCH], rows.start);
    for i in rows {
        slots[i - first] = if is_here(i) { begins.fetch_add(digit(own[i]), 1) } else { 0 };
    }
    slots
}

/// The next slot of the digit of a row's key. If all lanes have one digit, one lane adds for all of them: lanes that
/// add to one word wait for each other.
///
/// # Safety
/// Whole warps make this call.
#[inline(always)]
unsafe fn next_slot_of_row(begins: Shared<u32>, digit: u32) -> u32 {
    // SAFETY: the result of `is_of_warp` is the same for all lanes, so that whole warps make all calls.
    unsafe {
        if !is_of_warp(digit) {
            return begins.fetch_add(digit, 1);
        }
        let room = if warp::lane_id() == 0 { begins.fetch_add(digit, WARP_SIZE) } else { 0 };
        shuffle_idx(FULL_MASK, room, 0) + warp::lane_id()
    }
}

/// Whether all lanes of the warp have the same `digit`.
///
/// # Safety
/// Whole warps make this call.
#[inline(always)]
unsafe fn is_of_warp(digit: u32) -> bool {
    // SAFETY: `FULL_MASK` names all lanes, which make both calls.
    unsafe { ballot(FULL_MASK, digit == shuffle_idx(FULL_MASK, digit, 0)) == FULL_MASK }
}

/// Moves the keys of `tile`, which has at most `NT * VT`, to the places of their digits.
///
/// # Safety
/// All `NT` threads of the block make this call. The launch has [`TileMemory`] for `NT * VT` keys at the start of
/// shared memory. A barrier comes before the next use of that memory.
#[inline(always)]
pub(super) unsafe fn divide_tile<B: Bits, const NT: usize, const VT: usize>(
    tile: Tile,
    from: GlobalMut<B>,
    coding: Coding<B>,
    to: GlobalMut<B>,
) {
    // SAFETY: the caller ensures the memory for `NT * VT` keys. Barriers of `move_tile` come between writing and
    // reading.
    let memory = unsafe { TileMemory::<B>::at_start(NT * VT) };
    // SAFETY: `tile` is the same for all threads, so that all `NT` threads of the block make one call. A `FULL` tile
    // has `NT * VT` keys, by the first branch.
    unsafe {
        match tile.curve {
            _ if tile.len < (NT * VT) as u32 => move_tile::<B, NT, VT, false, ANY>(tile, from, coding, memory, to),
            Curve::Distance => move_tile::<B, NT, VT, true, LINEAR>(tile, from, coding, memory, to),
            // Keys of 8 bytes along other curves have no form of their own: there are not enough registers.
            _ if size_of::<B>() == 8 => move_tile::<B, NT, VT, false, ANY>(tile, from, coding, memory, to),
            Curve::Mirrored => move_tile::<B, NT, VT, true, MIRRORED>(tile, from, coding, memory, to),
            _ => move_tile::<B, NT, VT, true, OTHER>(tile, from, coding, memory, to),
        }
    }
}

/// Moves the keys of a tile to the places of their digits. A `FULL` tile has `NT * VT` keys; otherwise the length is
/// tested. `ALONG` says what is known of the curve: see [`Digits::of`].
///
/// # Safety
/// All threads of the block make this call. Nothing else uses `memory`.
#[inline(always)]
unsafe fn move_tile<B: Bits, const NT: usize, const VT: usize, const FULL: bool, const ALONG: u32>(
    tile: Tile,
    from: GlobalMut<B>,
    coding: Coding<B>,
    memory: TileMemory<B>,
    to: GlobalMut<B>,
) {
    let digits: Digits<B> = tile.digits();
    let mut own = load::<B, NT, VT, FULL>(from.slice(tile.begin as usize, tile.len as usize));
    // The loads are in flight meanwhile.
    clear::<NT>(memory.begins, digits.count);
    coding.encode_all(&mut own);
    thread::sync_threads();
    // SAFETY: no branch surrounds the call, so that all threads of the block make it. The barrier comes after the
    // counters of all `digits.count` digits have been cleared.
    unsafe {
        move_keys::<B, NT, VT, FULL, ALONG>(tile, digits, own, coding, memory, to, tile.offsets().begins(), |_| 0);
    }
}

/// Moves the keys of a tile, which are in registers. The keys of a digit go to the places that its counter reserves,
/// counted from its `base`.
///
/// # Safety
/// All threads of the block make this call, after a barrier. The tile's counters are 0.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn move_keys<B: Bits, const NT: usize, const VT: usize, const FULL: bool, const ALONG: u32>(
    tile: Tile,
    digits: Digits<B>,
    mut own: [B; VT],
    coding: Coding<B>,
    memory: TileMemory<B>,
    to: GlobalMut<B>,
    counters: GlobalMut<u32>,
    base: impl Fn(u32) -> u32,
) {
    let TileMemory { keys, begins, distances, .. } = memory;
    let thread = thread::thread_idx_x();
    let is_here = |i: usize| self::is_here::<NT, FULL>(thread, i, tile.len);
    for i in 0..VT {
        if is_here(i) {
            begins.fetch_add(digits.of::<ALONG>(own[i], coding), 1);
        }
    }
    thread::sync_threads();

    // SAFETY: no branch surrounds the call, so that all threads of the block make it. A barrier comes after the
    // counting.
    let room = unsafe { memory.reserve::<NT>(counters, base) };

    let digits = digits.again();
    // In batches, each of loads and then of stores: the compiler keeps their order, and loads have a long latency.
    // Partial tiles and other curves take more registers, and so smaller batches.
    let batch = match (FULL, ALONG) {
        (true, LINEAR) => BATCH,
        (true, _) => BATCH / 2,
        _ => BATCH / 4,
    };
    let digit = |key| digits.of::<ALONG>(key, coding);
    // Neighbours have one digit in arrays that are nearly in order.
    // SAFETY: no branch surrounds the call but for constants, so that whole warps make it.
    if FULL && ALONG == LINEAR && unsafe { is_of_warp(digit(own[0])) } {
        // Again, so that the compiler keeps no digits for both branches.
        let digits = digits.again();
        for i in 0..VT {
            // SAFETY: the result of `is_of_warp` is the same for all lanes, so that whole warps make the call.
            let slot = unsafe { next_slot_of_row(begins, digits.of::<ALONG>(own[i], coding)) };
            keys.set(slot, own[i]);
        }
    } else {
        for first in (0..VT).step_by(batch) {
            let rows = first..(first + batch).min(VT);
            let slots = next_slots(begins, digit, &own, rows.clone(), is_here);
            for i in rows {
                if is_here(i) {
                    keys.set(slots[i - first], own[i]);
                }
            }
        }
    }
    memory.settle(room, digits.count);
    thread::sync_threads();
    // Read again: registers are scarce.
    let (digits, thread): (Digits<B>, _) = (tile.digits(), recomputed(thread));
    let is_here = |i: usize| self::is_here::<NT, FULL>(thread, i, tile.len);
    let get = |own: &mut [B; VT], rows: Range<usize>| {
        for i in rows {
            if is_here(i) {
                own[i] = keys.get(thread + (i * NT) as u32);
            }
        }
    };
    if FULL {
        get(&mut own, 0..VT);
    }
    // Places of 8-byte keys take more registers, too.
    let batch = batch * 4 / size_of::<B>();
    for first in (0..VT).step_by(batch) {
        let rows = first..(first + batch).min(VT);
        if !FULL {
            get(&mut own, rows.clone());
        }
        let mut places = [0; BATCH];
        for i in rows.clone() {
            let distance = if is_here(i) { distances.get(digits.of::<ALONG>(own[i], coding)) } else { 0 };
            places[i - first] = distance.wrapping_add(thread + (i * NT) as u32);
        }
        for i in rows {
            if is_here(i) {
                to.set(places[i - first] as usize, own[i]);
            }
        }
    }
}
