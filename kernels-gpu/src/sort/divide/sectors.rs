//! Moving keys, and what goes along with them, in whole sectors of memory.
//!
//! ```text
//!   tile       │ 3 1 0 3 2 0 1 3 │           the keys of each digit are counted, by atomic additions
//!   shared     │ 0 0 1 1 2 2 3 3 3 3 │       each goes to a place of its digit, by another one; so does what was left before
//!   to         … 0 0 … 1 1 … 2 2 … 3 3 …     whole sectors go to room that a third one reserves,
//!   left       │ 3 3 │                       the rest stays for the next tile
//! ```

use super::DIGITS_CAPACITY;
use super::digits::Digits;
use super::divide::{BATCH, load, next_slots};
use super::parts::Part;
use super::room::{Room, SECTOR};
use crate::block_scan::{BLOCK_WORDS, sum_before};
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::recomputed;

/// Keys of a sector, or 1 if nothing may be left of a tile, so that sectors are not whole.
pub(super) const fn sector(left: usize) -> u32 {
    if left > 0 { SECTOR } else { 1 }
}

/// Keys of a thread that are on their way from slots at once.
const MOVED: usize = 4;

/// Bytes of shared memory for the words of blocks of `threads`.
const fn word_bytes(threads: usize) -> usize {
    (BLOCK_WORDS as usize + 3 * DIGITS_CAPACITY as usize + 2 * threads) * size_of::<u32>()
}

/// Bytes of dynamic shared memory for blocks of `threads` that move tiles of `threads * items_per_thread` keys and keep up to `left` of them,
/// of `bytes` bytes each with what goes along with them.
pub const fn shared_bytes((threads, items_per_thread, left): (usize, usize, usize), bytes: usize) -> u32 {
    ((threads * items_per_thread + 2 * left) * bytes + word_bytes(threads)) as u32
}

/// What goes along with keys.
pub(super) trait Along {
    /// Starts to bring what belongs to the key at index `at` to `slot`.
    fn enter(&self, at: u32, slot: u32);
    /// Brings what belongs to key `i` of those left to `slot`.
    fn enter_again(&self, i: u32, slot: u32);
    /// Waits for what was started.
    fn wait(&self);
    /// Brings what is in `slots` to `places` of the other array.
    fn leave<const N: usize>(&self, slots: [u32; N], places: [u32; N]);
    /// Keeps what is in `slot` with key `i` of those left.
    fn keep(&self, slot: u32, i: u32);
}

/// A distance of a digit whose whole sectors have no room. Others are less, or more than minus the slots of a block.
const NO_ROOM: u32 = 1 << 31;

/// Shared memory of a block that moves parts.
///
/// ```text
///   slots      │ 0 0 0 0│ 2 2 2 2 2 2 2 2│ 0 1 1 1 3 3 │
///                whole sectors             the rest
/// ```
#[derive(Clone, Copy)]
pub(super) struct PartMemory<B, const LEFT: usize> {
    keys: Shared<B>,
    /// Keys that have been left.
    left: Shared<B>,
    scan: Shared<u32>,
    /// For each digit how many keys have it, and then the next free slot, if there were whole sectors only.
    pub begins: Shared<u32>,
    /// For each digit how far its whole sectors are from where they go.
    pub distances: Shared<u32>,
    /// For each digit the slot after its whole sectors.
    ends: Shared<u32>,
    /// For each digit how far the slots of its rest are from those after its whole sectors.
    rests: Shared<u32>,
    /// For each digit how far slots are from the numbers of keys that have been left.
    shifts: Shared<u32>,
}

/// How many keys are left of one tile for the next.
struct Left {
    all: u32,
    /// Those of this thread's digit, in the upper half, and how many are before these.
    of_digit: u32,
}

impl Left {
    const NOTHING: Self = Self { all: 0, of_digit: 0 };
}

impl<B: Bits, const LEFT: usize> PartMemory<B, LEFT> {
    /// # Safety
    /// The launch has [`shared_bytes`]; barriers divide writing from reading.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn at_start<const NT: usize, const VT: usize>() -> Self {
        let (slots, left, bytes) = const { ((NT * VT + LEFT) as u32, LEFT as u32, size_of::<B>() as u32) };
        let (digits, threads) = (DIGITS_CAPACITY, const { NT as u32 });
        let words = (slots + left) * bytes;
        let at = |word: u32| words + (BLOCK_WORDS + word) * 4;
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                keys: Shared::dynamic(0, slots),
                left: Shared::dynamic(slots * bytes, left),
                scan: Shared::dynamic(words, BLOCK_WORDS),
                begins: Shared::dynamic(at(0), digits),
                distances: Shared::dynamic(at(digits), digits),
                ends: Shared::dynamic(at(2 * digits), digits),
                rests: Shared::dynamic(at(3 * digits), threads),
                shifts: Shared::dynamic(at(3 * digits + threads), threads),
            }
        }
    }

    /// Bytes up to where nothing is.
    pub const fn end<const NT: usize, const VT: usize>() -> u32 {
        shared_bytes((NT, VT, LEFT), size_of::<B>())
    }

    /// Sets the counters of `count` digits to 0.
    #[inline(always)]
    #[track_caller]
    pub fn clear<const NT: usize>(self, count: u32) {
        let mut digit = recomputed(thread::thread_idx_x());
        while digit < count {
            self.begins.set(digit, 0);
            digit += NT as u32;
        }
    }

    /// Makes the counters slots, where first of all are those keys of each digit that were left, and reserves room for whole sectors.
    /// Up to `most` keys may be left in their turn. Ends with a barrier.
    ///
    /// The room takes long to arrive: of this thread's first digit it is for [`settle`](Self::settle). With it comes how many slots
    /// whole sectors have.
    ///
    /// # Safety
    /// All threads of the block make this call, after a barrier.
    #[inline(always)]
    unsafe fn reserve<const NT: usize>(self, room: Room, left: &mut Left, most: u32) -> (u32, u32) {
        let Self { scan, begins, distances, ends, rests, shifts, .. } = self;
        let (thread, count) = (recomputed(thread::thread_idx_x()), room.digits());
        let (mut first, mut slots, mut reserved) = (0, 0, 0);
        // More digits than threads have one key a sector, and then nothing is left.
        while first < count {
            let digit = first + thread;
            let (left_before, left_own) = (left.of_digit & 0xffff, left.of_digit >> 16);
            let keys = if digit < count { begins.get(digit) + left_own } else { 0 };
            let whole = keys & !(room.sector() - 1);
            // SAFETY: the caller's promise. Neither sum reaches 2^16.
            let (before, all) = unsafe { sum_before(whole | (keys - whole) << 16, scan) };
            let (begin, rest) = (slots + (before & 0xffff), before >> 16);
            slots += all & 0xffff;
            if digit < count {
                begins.set(digit, begin + left_own);
                if first == 0 {
                    reserved = room.reserve(digit, whole);
                    distances.set(digit, 0u32.wrapping_sub(begin));
                } else {
                    distances.set(digit, room.reserve(digit, whole).wrapping_sub(begin));
                }
                if LEFT > 0 {
                    ends.set(digit, begin + whole);
                }
                if LEFT > 0 && room.sector() > 1 {
                    rests.set(digit, slots + rest - (begin + whole));
                    shifts.set(digit, begin.wrapping_sub(left_before));
                }
            }
            if LEFT > 0 {
                let first_left = rest.min(most);
                left.of_digit = ((rest + keys - whole).min(most) - first_left) << 16 | first_left;
            }
            first += NT as u32;
            thread::sync_threads();
        }
        (reserved, slots)
    }

    /// Makes the distances of the first digits those to the room that has been reserved.
    #[inline(always)]
    #[track_caller]
    fn settle(self, room: Room, reserved: u32) {
        let digit = recomputed(thread::thread_idx_x());
        if digit < room.digits() {
            // Minus the first slot.
            let distance = self.distances.get(digit);
            let is_held = room.holds(digit, reserved, self.ends.get(digit).wrapping_add(distance));
            self.distances.set(digit, if is_held { distance.wrapping_add(reserved) } else { NO_ROOM });
        }
    }

    /// Makes the counters slots, and the distances those to room that is reserved for all keys. Sectors need not be whole.
    ///
    /// # Safety
    /// As for [`reserve`](Self::reserve). Ends with a barrier.
    #[inline(always)]
    pub unsafe fn reserve_at_once<const NT: usize>(self, room: Room) {
        // SAFETY: the caller's promise.
        let (reserved, _) = unsafe { self.reserve::<NT>(room, &mut { Left::NOTHING }, 0) };
        self.settle(room, reserved);
        thread::sync_threads();
    }

    /// The slot of a key of a digit, if it would have `slot` among whole sectors.
    #[inline(always)]
    #[track_caller]
    fn slot(self, digit: u32, slot: u32) -> u32 {
        if LEFT == 0 || slot < self.ends.get(digit) { slot } else { slot.wrapping_add(self.rests.get(digit)) }
    }

    /// Where the key in `slot` goes, in a whole sector or, if these have no room, elsewhere.
    #[inline(always)]
    #[track_caller]
    fn place(self, part: Part, digit: u32, slot: u32) -> u32 {
        let distance = self.distances.get(digit);
        if LEFT > 0 && distance == NO_ROOM { part.room().other(digit) } else { distance.wrapping_add(slot) }
    }
}

/// Moves the keys of a part to the places of their digits, and what goes along with them.
///
/// # Safety
/// All threads of the block make this call.
#[inline(always)]
pub(super) unsafe fn move_part<B: Bits, const NT: usize, const VT: usize, const LEFT: usize>(
    part: Part,
    from: GlobalMut<B>,
    coding: Coding<B>,
    memory: PartMemory<B, LEFT>,
    to: GlobalMut<B>,
    along: &impl Along,
) {
    let Part { begin: mut at, end, .. } = part;
    let mut left = Left::NOTHING;
    while at < end {
        let len = (end - at).min((NT * VT) as u32);
        let (tile, next) = (from.slice(at as usize, len as usize), at + len);
        // In the end nothing is left.
        let most = if next < end { LEFT as u32 } else { 0 };
        // SAFETY: the caller's promise.
        unsafe {
            if len == (NT * VT) as u32 {
                move_tile::<B, NT, VT, LEFT, true>(tile, at, coding, part, memory, to, along, &mut left, most);
            } else {
                move_tile::<B, NT, VT, LEFT, false>(tile, at, coding, part, memory, to, along, &mut left, most);
            }
        }
        at = next;
    }
}

/// Moves the keys of a tile, whose first one has index `at`, and those that are `left`, of which up to `most` then are left once more.
///
/// # Safety
/// All threads of the block make this call.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn move_tile<B: Bits, const NT: usize, const VT: usize, const LEFT: usize, const FULL: bool>(
    tile: GlobalMut<B>,
    at: u32,
    coding: Coding<B>,
    part: Part,
    memory: PartMemory<B, LEFT>,
    to: GlobalMut<B>,
    along: &impl Along,
    left: &mut Left,
    most: u32,
) {
    let PartMemory { keys, begins, shifts, .. } = memory;
    // What is computed from it is not kept in registers from one tile to the next.
    let thread = recomputed(thread::thread_idx_x());
    let (len, threads) = (tile.len() as u32, NT as u32);
    let is_here = |i: usize| FULL || recomputed(thread) + ((i * NT) as u32) < len;
    let digits: Digits<B> = part.digits();
    memory.clear::<NT>(part.room().digits());
    let own = load::<B, NT, VT, FULL>(tile, coding);
    thread::sync_threads();
    for i in 0..VT {
        if is_here(i) {
            begins.fetch_add(digits.of(own[i]), 1);
        }
    }
    thread::sync_threads();

    // SAFETY: the caller's promise.
    let (reserved, whole) = unsafe { memory.reserve::<NT>(part.room(), left, most) };

    // In batches, each of loads and then of stores: the compiler does not change their order, and they take long to arrive.
    let digits = digits.again();
    for first in (0..VT).step_by(BATCH) {
        let rows = first..(first + BATCH).min(VT);
        let mut slots = next_slots(begins, digits, &own, rows.clone(), is_here);
        for i in rows.clone() {
            if LEFT > 0 && is_here(i) {
                slots[i - first] = memory.slot(digits.of(own[i]), slots[i - first]);
            }
        }
        for i in rows {
            if is_here(i) {
                keys.set(slots[i - first], own[i]);
                along.enter(at + thread + (i * NT) as u32, slots[i - first]);
            }
        }
    }
    let mut i = thread;
    while LEFT > 0 && i < left.all {
        let key = memory.left.get(i);
        let digit = digits.of(key);
        let slot = memory.slot(digit, i.wrapping_add(shifts.get(digit)));
        keys.set(slot, key);
        along.enter_again(i, slot);
        i += threads;
    }
    memory.settle(part.room(), reserved);
    along.wait();
    thread::sync_threads();

    let digits: Digits<B> = part.digits();
    // Without what is left, all slots of the tile.
    let whole = if LEFT > 0 { whole } else { len };
    let mut slot = thread;
    while slot + const { ((MOVED - 1) * NT) as u32 } < whole {
        move_slots::<B, NT, LEFT, MOVED>(slot, digits, part, memory, to, along);
        slot += const { (MOVED * NT) as u32 };
    }
    while slot < whole {
        move_slots::<B, NT, LEFT, 1>(slot, digits, part, memory, to, along);
        slot += threads;
    }
    if LEFT == 0 {
        return;
    }
    let rest = len + left.all - whole;
    let mut i = thread;
    while i < rest {
        let (slot, key) = (whole + i, keys.get(whole + i));
        if i < most {
            memory.left.set(i, key);
            along.keep(slot, i);
        } else {
            let place = part.room().other(digits.of(key));
            to.set(place as usize, key);
            along.leave([slot], [place]);
        }
        i += threads;
    }
    left.all = rest.min(most);
}

/// Moves the keys in whole sectors that are in `N` slots, from `slot` on one in each `NT`.
#[inline(always)]
#[track_caller]
fn move_slots<B: Bits, const NT: usize, const LEFT: usize, const N: usize>(
    slot: u32,
    digits: Digits<B>,
    part: Part,
    memory: PartMemory<B, LEFT>,
    to: GlobalMut<B>,
    along: &impl Along,
) {
    let slots: [u32; N] = core::array::from_fn(|i| slot + (i * NT) as u32);
    let (mut own, mut places) = ([B::MIN; N], [0; N]);
    for i in 0..N {
        own[i] = memory.keys.get(slots[i]);
    }
    for i in 0..N {
        places[i] = memory.place(part, digits.of(own[i]), slots[i]);
    }
    for i in 0..N {
        to.set(places[i] as usize, own[i]);
    }
    along.leave(slots, places);
}
