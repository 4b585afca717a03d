//! Moving the keys of a tile to the places of their digits, in any order.
//!
//! ```text
//!   tile       │ 3 1 0 3 2 0 1 3 │     the keys of each digit are counted, by atomic additions
//!   shared     │ 0 0 1 1 2 3 3 3 │     each key goes to a place of its digit, by another one
//!   to         … 0 0 … 1 1 … 2 … 3 3 3 …     neighbours go to neighbours, to places that a third one reserves
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

/// Keys of a thread that are on their way at once, at most.
const BATCH: usize = 8;

shared_memory! {
    /// Shared memory of a tile of `slots` keys.
    pub(super) struct TileMemory<B: Word>(slots: usize) {
        keys: [B; slots],
        /// Words of a scan.
        pub scan: [u32; BLOCK_WORDS],
        /// For each digit how far its slots are from where the keys go.
        pub distances: [u32; DIGITS_CAPACITY],
        /// For each digit how many keys have it, and then the slot of the first.
        pub begins: [u32; DIGITS_CAPACITY],
    }
}

impl<B: Bits> TileMemory<B> {
    /// Makes the counters slots, and reserves room for the keys of each digit, from `base` of it on. That takes long to
    /// arrive: of this thread's first digit it is for [`settle`](Self::settle). Ends with a barrier.
    ///
    /// # Safety
    /// All threads of the block make this call, after a barrier.
    #[inline(always)]
    unsafe fn reserve<const NT: usize>(self, counters: GlobalMut<u32>, base: impl Fn(u32) -> u32) -> u32 {
        let Self { scan, begins, distances, .. } = self;
        let (thread, count) = (thread::thread_idx_x(), counters.len() as u32);
        let (mut first, mut before, mut room) = (0, 0, 0);
        while first < count {
            let digit = first + thread;
            let of_digit = if digit < count { begins.get(digit) } else { 0 };
            // SAFETY: all threads of the block are here, as `count` and so the number of rounds is the same for all; a
            // barrier comes between two uses of `scan`.
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

    /// Makes the distances of the first digits those to the room that has been reserved.
    #[inline(always)]
    #[track_caller]
    fn settle(self, room: u32, count: u32) {
        let digit = thread::thread_idx_x();
        if digit < count {
            self.distances.set(digit, self.distances.get(digit).wrapping_add(room));
        }
    }
}

/// Whether row `i` of `len` elements has one for thread `thread`. All rows have if they are `FULL`.
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

/// For each key of `rows` that is here the next slot of its digit.
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

/// Moves the keys of `tile`, which has at most `NT * VT`, to the places of their digits.
///
/// # Safety
/// All `NT` threads of the block make this call, with [`TileMemory`] for `NT * VT` keys at the start of shared memory,
/// and a barrier comes before its next use.
#[inline(always)]
pub(super) unsafe fn divide_tile<B: Bits, const NT: usize, const VT: usize>(
    tile: Tile,
    from: GlobalMut<B>,
    coding: Coding<B>,
    to: GlobalMut<B>,
) {
    // SAFETY: the caller promises the memory. Barriers of `move_tile` come between writing and reading.
    let memory = unsafe { TileMemory::<B>::at_start(NT * VT) };
    // SAFETY: all threads of the block are here.
    unsafe {
        match tile.curve {
            _ if tile.len < (NT * VT) as u32 => move_tile::<B, NT, VT, false, ANY>(tile, from, coding, memory, to),
            Curve::Distance => move_tile::<B, NT, VT, true, LINEAR>(tile, from, coding, memory, to),
            // There are no registers for a form of their own for keys of 8 bytes along other curves.
            _ if size_of::<B>() == 8 => move_tile::<B, NT, VT, false, ANY>(tile, from, coding, memory, to),
            Curve::Mirrored => move_tile::<B, NT, VT, true, MIRRORED>(tile, from, coding, memory, to),
            _ => move_tile::<B, NT, VT, true, OTHER>(tile, from, coding, memory, to),
        }
    }
}

/// Moves the keys of a tile to the places of their digits. The tile is `FULL`, or it is not known that it is. `ALONG`
/// is what is known of the curve: see [`Digits::of`].
///
/// # Safety
/// All threads of the block make this call.
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
    // While the keys are on their way.
    clear::<NT>(memory.begins, digits.count);
    coding.encode_all(&mut own);
    thread::sync_threads();
    // SAFETY: all threads of the block are here, and a barrier comes after the counters of all digits have been
    // cleared.
    unsafe {
        move_keys::<B, NT, VT, FULL, ALONG>(tile, digits, own, coding, memory, to, tile.offsets().begins(), |_| 0);
    }
}

/// Moves the keys of a tile, which are in registers. Those of a digit go to where its counter says, counted from `base`
/// of it.
///
/// # Safety
/// All threads of the block make this call, after a barrier, with counters of the tile that are 0.
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

    // SAFETY: all threads of the block are here, and a barrier comes after keys have been counted.
    let room = unsafe { memory.reserve::<NT>(counters, base) };

    let digits = digits.again();
    // In batches, each of loads and then of stores: the compiler does not change their order, and they take long to
    // arrive. Other tiles and digits take more registers.
    let batch = match (FULL, ALONG) {
        (true, LINEAR) => BATCH,
        (true, _) => BATCH / 2,
        _ => BATCH / 4,
    };
    for first in (0..VT).step_by(batch) {
        let rows = first..(first + batch).min(VT);
        let digit = |key| digits.of::<ALONG>(key, coding);
        let slots = next_slots(begins, digit, &own, rows.clone(), is_here);
        for i in rows {
            if is_here(i) {
                keys.set(slots[i - first], own[i]);
            }
        }
    }
    memory.settle(room, digits.count);
    thread::sync_threads();
    // Read once more: there are no registers to spare.
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
    // So do the places of keys of 8 bytes.
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
