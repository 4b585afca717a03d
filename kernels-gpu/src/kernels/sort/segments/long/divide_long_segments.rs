//! The scatter of the keys of each unit of a long segment to the places of their digits. Keys with values stay [in
//! order](tile_in_order), and keys without values need not:
//!
//! ```text
//!   unit       │ 3 1 0 3 2 0 1 3 │     the keys of each digit are counted, by atomic additions
//!   shared     │ 0 0 1 1 2 3 3 3 │     each key goes to a slot of its digit, by another addition
//!   to         … 0 0 … 1 1 … 2 … 3 3 3 …     neighbours go to neighbours, to places that a third addition reserves
//! ```

use super::rounds::{RoundMemory, Rounds, UnitOfRound};
use super::{LongSegments, PART_UNITS, Workspace, long_tile};
use crate::block::clear;
use crate::block::scan::{BLOCK_WORDS, sum_before};
use crate::block::shared_memory::{self, of_widths, shared_memory};
use crate::elements::{Arrays, Elements, has_values};
use crate::kernels::sort::is_whole_warps;
use crate::kernels::sort::tile_in_order::{self, DIGIT_BITS, DIGITS, Places, Span, ToDigit, move_tile};
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::{FULL_MASK, lanes_alike, shuffle_idx};

shared_memory! {
    /// Shared memory of a block, for tiles of `slots` keys alone.
    struct KeyMemory<B: Word>(slots: usize) {
        keys: [B; slots],
        scan: [u32; BLOCK_WORDS],
        /// Number of keys of each digit, and later the slot of the digit's first key.
        begins: [u32; DIGITS],
        /// Distance from the slots of each digit to the places of its keys.
        distances: [u32; DIGITS],
        /// Number of digits that have more than a quarter of the keys.
        uneven: [u32; 1],
        units: RoundMemory {},
    }
}

shared_memory! {
    /// Shared memory of a block, for tiles of `threads * items_per_thread` keys with values.
    struct Memory<B: Word, V: Word>(threads: usize, items_per_thread: usize) {
        tile: tile_in_order::TileMemory<B, V> { threads, items_per_thread },
        units: RoundMemory {},
    }
}

/// Bytes of dynamic shared memory for keys of `key_bytes` bytes with values of `value_bytes` bytes, or 0.
pub const fn shared_bytes(key_bytes: usize, value_bytes: usize) -> u32 {
    let tile = long_tile(key_bytes, value_bytes);
    match (key_bytes, value_bytes) {
        (4, 0) => KeyMemory::<u32>::bytes(tile.keys()),
        (8, 0) => KeyMemory::<u64>::bytes(tile.keys()),
        _ => of_widths!(key_bytes, value_bytes, Memory::bytes(tile.threads, tile.items_per_thread)),
    }
}

/// Keys that a thread moves to or from slots at once.
const MOVED: usize = 4;

/// Kernel: moves the elements of all units of `level` to the places of their digits, from `at` to `scratch` or back.
/// The first level encodes keys by `coding`, and the last one decodes them.
///
/// # Safety
/// The requirements of [`LongSegments`] hold, and `place_long_segments` has run for the level. `at` and `scratch` have
/// `long.n` elements each and do not overlap. Blocks have `NT` threads with [`shared_bytes`] of dynamic shared memory,
/// for units of `NT * VT` keys.
#[kernel(
    u32 = <u32, (), { long_tile(4, 0).threads }, { long_tile(4, 0).items_per_thread }>
        within (long_tile(4, 0).threads, long_tile(4, 0).blocks),
    u64 = <u64, (), { long_tile(8, 0).threads }, { long_tile(8, 0).items_per_thread }>
        within (long_tile(8, 0).threads, long_tile(8, 0).blocks),
    u32v4 = <u32, u32, { long_tile(4, 4).threads }, { long_tile(4, 4).items_per_thread }>
        within (long_tile(4, 4).threads, long_tile(4, 4).blocks),
    u32v8 = <u32, u64, { long_tile(4, 8).threads }, { long_tile(4, 8).items_per_thread }>
        within (long_tile(4, 8).threads, long_tile(4, 8).blocks),
)]
pub unsafe fn divide_long_segments<B: Bits, V: Word, const NT: usize, const VT: usize>(
    at: Elements<B, V>,
    scratch: Elements<B, V>,
    long: LongSegments,
    level: u32,
    coding: Coding<B>,
) {
    const { assert!(is_whole_warps(NT), "a block has up to 32 whole warps") };
    const { assert!(NT * VT == super::unit_keys(size_of::<B>(), size_of::<V>()), "a unit is a tile") };
    const { shared_memory::check(shared_bytes(size_of::<B>(), size_of::<V>())) };
    // SAFETY: the requirements of `LongSegments` are this kernel's own, and the launch has `shared_bytes`. Only
    // `rounds` uses the words of units, which lie behind the tile. No branch surrounds `begin` that differs between
    // threads.
    let (workspace, mut rounds) = unsafe {
        let units = if const { has_values::<V>() } {
            Memory::<B, V>::at_start(NT, VT).units
        } else {
            KeyMemory::<B>::at_start(NT * VT).units
        };
        let workspace = long.open::<B, V>();
        (workspace, Rounds::begin(workspace, level, units))
    };
    let sides = [at, scratch];
    while let Some(unit) = rounds.unit() {
        // SAFETY: `rounds.unit()` is the same for all threads, so that all `NT` threads of the block make one call.
        // Barriers of `rounds` come before and after. This launch reads one side and writes the other, each element to
        // its own index. A tile without values reserves its indices by `fetch_add`; for a tile with values, all units
        // have been counted.
        unsafe {
            if const { has_values::<V>() } {
                divide_in_order::<B, V, NT, VT>(sides, unit, workspace, level, coding);
            } else {
                let tile = Tile { sides: sides.map(|side| side.keys), unit, workspace, level, coding };
                let memory = KeyMemory::<B>::at_start(NT * VT);
                if tile.keys().len() == NT * VT {
                    tile.divide::<NT, VT, true>(memory);
                } else {
                    tile.divide::<NT, VT, false>(memory);
                }
            }
            rounds.pass();
        }
    }
}

/// Moves the elements of a unit stably.
///
/// # Safety
/// All `NT` threads of the block make this call, after a barrier, and a barrier follows. Nothing else uses the memory,
/// except the words of units. Both sides have `long.n` elements and do not overlap. This launch reads one side and
/// writes the other, and each unit belongs to one call.
#[inline(always)]
unsafe fn divide_in_order<B: Bits, V: Word, const NT: usize, const VT: usize>(
    sides: [Elements<B, V>; 2],
    unit: UnitOfRound,
    workspace: Workspace<B, V>,
    level: u32,
    coding: Coding<B>,
) {
    let n = workspace.long.n as usize;
    let [from, to] = if level.is_multiple_of(2) { sides } else { [sides[1], sides[0]] };
    let (begin, len) = unit.get().span::<B, V>();
    let places = Counted::<B, V, NT> { workspace, level, unit };
    // Read again at each call, after a barrier: otherwise the assembler keeps the digits of all keys in local memory.
    let digits = || unit.get().digit;
    let decode = if unit.get().digit.shift == 0 { coding } else { Coding::NONE };
    let codings = (if level == 0 { coding } else { Coding::NONE }, |key| decode.decode(key));
    // SAFETY: the caller ensures that all `NT` threads of the block make this call, and the memory and the elements.
    // Barriers of `move_tile` come between writing and reading. The tile is filled up to `NT * VT` keys, since
    // `Digit::FILLS_UP`; a unit has at least one key.
    unsafe {
        let (from, to, memory): (Arrays<B, V>, _, _) =
            (from.arrays(n), to.arrays(n), Memory::<B, V>::at_start(NT, VT).tile);
        move_tile::<B, V, _, NT, VT, true>(Span { begin, len }, digits, &places, from, false, codings, memory, to);
    }
}

/// The places of a unit's keys: the start of the digit in the part, plus the counts of the part's earlier units.
struct Counted<B, V, const NT: usize> {
    workspace: Workspace<B, V>,
    level: u32,
    unit: UnitOfRound,
}

impl<B: Bits, V: Word, const NT: usize> Places for Counted<B, V, NT> {
    #[inline(always)]
    unsafe fn begin(&self, distances: Shared<u32>, _: Shared<u32>) {
        let Self { workspace, level, unit } = *self;
        let unit = unit.get();
        let first = unit.part::<V>() * PART_UNITS as u32;
        let begins = workspace.counts(level, unit.start, unit.part::<V>());
        let mut digit = thread::thread_idx_x();
        while digit < DIGITS {
            let mut places = [0; PART_UNITS];
            places[0] = begins.get(digit as usize);
            for i in 1..PART_UNITS {
                let before = first + i as u32 - 1;
                if before < unit.number {
                    places[i] = workspace.unit_counts(unit.start, before).get(digit as usize);
                }
            }
            distances.set(digit, places.into_iter().sum());
            digit += NT as u32;
        }
    }
}

/// A unit of keys without values. Its properties are read and computed again at each call: to keep them takes
/// registers.
struct Tile<B, V> {
    /// The arrays of all keys: the first is read by even levels, and the second by odd levels.
    sides: [*mut B; 2],
    unit: UnitOfRound,
    workspace: Workspace<B, V>,
    level: u32,
    coding: Coding<B>,
}

impl<B: Bits, V: Word> Tile<B, V> {
    /// The array from which `level` moves keys.
    ///
    /// # Safety
    /// Both `sides` have `long.n` keys.
    #[inline(always)]
    unsafe fn side(&self, level: u32) -> GlobalMut<B> {
        let side = if recomputed(level).is_multiple_of(2) { self.sides[0] } else { self.sides[1] };
        // SAFETY: the caller ensures that both sides have `long.n` keys.
        unsafe { GlobalMut::new(side, self.workspace.long.n as usize) }
    }

    /// The keys.
    #[inline(always)]
    #[track_caller]
    fn keys(&self) -> GlobalMut<B> {
        let (begin, len) = self.unit.get().span::<B, V>();
        // SAFETY: `divide_long_segments` makes tiles only of sides with `long.n` keys.
        unsafe { self.side(self.level) }.slice(begin as usize, len as usize)
    }

    /// Function from keys to digits, which computes each digit again.
    #[inline(always)]
    fn digits(&self) -> impl Fn(B) -> u32 {
        let digits = self.unit.get().digit;
        move |key| digits.of(key)
    }

    /// Whether this thread has a key in row `i` of `len` keys. `FULL` rows have a key for each thread.
    #[inline(always)]
    fn is_here<const NT: usize, const FULL: bool>(len: u32, i: usize) -> bool {
        FULL || thread::thread_idx_x() + ((i * NT) as u32) < len
    }

    /// Moves the keys to the places of their digits. A `FULL` tile has `NT * VT` keys; otherwise the length is tested.
    ///
    /// # Safety
    /// All `NT` threads of the block make this call, after a barrier, and a barrier follows. Nothing else uses the
    /// memory, except the words of units. Both sides have `long.n` keys and do not overlap. This launch reads one side
    /// and writes the other, and each unit belongs to one call.
    #[inline(always)]
    unsafe fn divide<const NT: usize, const VT: usize, const FULL: bool>(&self, memory: KeyMemory<B>) {
        const { assert!(has_values::<V>() || NT >= DIGITS as usize, "a thread has one digit at most") };
        const { assert!(has_values::<V>() || VT.is_multiple_of(MOVED), "keys are moved so many at once") };
        let KeyMemory { keys, scan, begins, distances, uneven, .. } = memory;
        let (from, mut own) = (self.keys(), [B::MIN; VT]);
        let len = from.len() as u32;
        for i in 0..VT {
            if Self::is_here::<NT, FULL>(len, i) {
                own[i] = from.get(thread::thread_idx_x() as usize + i * NT);
            }
        }
        // The loads are in flight meanwhile.
        clear::<NT>(begins, DIGITS);
        if thread::thread_idx_x() == 0 {
            uneven.set(0, 0);
        }
        if self.level == 0 {
            self.coding.encode_all(&mut own);
        }
        thread::sync_threads();
        let digit_of = self.digits();
        for i in 0..VT {
            if Self::is_here::<NT, FULL>(len, i) {
                begins.fetch_add(digit_of(own[i]), 1);
            }
        }
        thread::sync_threads();
        let digit = recomputed(thread::thread_idx_x());
        let is_digit = digit < DIGITS;
        let count = if is_digit { begins.get(digit) } else { 0 };
        // Place of the digit's keys. The atomic addition has a long latency.
        let room = if count > 0 {
            self.workspace.counts(self.level, self.unit.get().start, 0).fetch_add(digit as usize, count)
        } else {
            0
        };
        // SAFETY: no branch surrounds the call, so that all threads of the block make it. `NT` is a multiple of 32.
        // Barriers come before and after this use of `scan`.
        let (begin, _) = unsafe { sum_before(count, scan) };
        if is_digit {
            begins.set(digit, begin);
        }
        if count > const { (NT * VT / 4) as u32 } {
            uneven.fetch_add(0, 1);
        }
        thread::sync_threads();
        let (len, digit_of) = (self.unit.get().span::<B, V>().1, self.digits());
        if FULL && uneven.get(0) > 0 {
            for i in 0..VT {
                // SAFETY: `uneven` is the same for all threads, so that the 32 lanes of the warp make the call. A
                // `FULL` tile has a key for each lane in each row.
                keys.set(unsafe { next_slot_of_warp(digit_of(own[i]), begins) }, own[i]);
            }
        } else {
            for first in (0..VT).step_by(MOVED) {
                let mut slots = [0; MOVED];
                for i in 0..MOVED {
                    if Self::is_here::<NT, FULL>(len, first + i) {
                        slots[i] = begins.fetch_add(digit_of(own[first + i]), 1);
                    }
                }
                for i in 0..MOVED {
                    if Self::is_here::<NT, FULL>(len, first + i) {
                        keys.set(slots[i], own[first + i]);
                    }
                }
            }
        }
        if is_digit {
            distances.set(digit, room.wrapping_sub(begin));
        }
        thread::sync_threads();
        // SAFETY: the caller ensures that both sides have `long.n` keys.
        let to = unsafe { self.side(self.level + 1) };
        let (len, digit_of) = (self.unit.get().span::<B, V>().1, self.digits());
        let is_last = self.unit.get().digit.shift == 0;
        let decode = if is_last { self.coding } else { Coding::NONE };
        let thread = recomputed(thread::thread_idx_x());
        for first in (0..VT).step_by(2 * MOVED) {
            let rows = first..(first + 2 * MOVED).min(VT);
            let mut places = [0; 2 * MOVED];
            for i in rows.clone() {
                if Self::is_here::<NT, FULL>(len, i) {
                    own[i] = keys.get(thread + (i * NT) as u32);
                }
            }
            for i in rows.clone() {
                places[i - first] = distances.get(digit_of(own[i])).wrapping_add(thread + (i * NT) as u32);
            }
            for i in rows {
                if Self::is_here::<NT, FULL>(len, i) {
                    to.set(places[i - first] as usize, decode.decode(own[i]));
                }
            }
        }
    }
}

/// The next slot of a digit, for each lane. One lane adds for all lanes of the warp that have the same digit. Separate
/// additions would wait for each other.
///
/// # Safety
/// All lanes of the warp make this call.
#[inline(always)]
#[track_caller]
unsafe fn next_slot_of_warp(digit: u32, begins: Shared<u32>) -> u32 {
    let lane = recomputed(warp::lane_id());
    // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which make these calls together. `leader` is the lowest lane
    // in `alike`, which contains this lane, so that it is below 32.
    unsafe {
        let alike = lanes_alike::<DIGIT_BITS>(digit);
        let leader = alike.trailing_zeros();
        let first = if lane == leader { begins.fetch_add(digit, alike.count_ones()) } else { 0 };
        shuffle_idx(FULL_MASK, first, leader) + (alike & ((1 << lane) - 1)).count_ones()
    }
}
