//! The last step of a division of keys with values: as in `divide`, but keys of one digit stay in their order.
//!
//! ```text
//!   tile       │ c0 a0 b0 a1 │ a2 c1 a3 b1 │     a warp has neighbouring rows of 32 keys; it counts the keys of each digit
//!   counters   │ a2 b1 c1    │ a2 b1 c1    │     of each warp; sums of them are where the keys of each warp go
//!   shared     │ a0 a1 a2 a3 b0 b1 c0 c1   │     row by row: after the lanes before that have the same digit
//!   to         … a0 a1 a2 a3 … b0 b1 … c0 c1 …   to places that were counted before
//! ```
//!
//! Values go the same ways. They are on their way to shared memory while slots of other keys are found.

use super::digits::{ANY, Curve, Digits, LINEAR, RADIX};
use super::tiles::{Tile, Tiles};
use super::workspace::{Arrays, Elements, Job, Workspace};
use super::{MOST_DIGITS_IN_ORDER, clear};
use crate::block_scan::{BLOCK_WORDS, sum_before};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot, lanes_alike, sync_warp};

/// Bits of a digit.
const DIGIT_BITS: u32 = MOST_DIGITS_IN_ORDER.trailing_zeros();

/// Words of the counters of a warp, which are of 16 bits.
const WARP_WORDS: u32 = MOST_DIGITS_IN_ORDER / 2;

/// Words of shared memory besides those of keys, values, and counters.
const WORDS: u32 = BLOCK_WORDS + MOST_DIGITS_IN_ORDER;

/// Keys of a thread that are on their way from slots at once.
const MOVED: usize = 4;

/// Bytes of dynamic shared memory for tiles of `threads * items_per_thread` keys of `key_bytes` bytes with values of `value_bytes`.
pub const fn shared_bytes(threads: usize, items_per_thread: usize, key_bytes: usize, value_bytes: usize) -> u32 {
    let words = threads as u32 / WARP_SIZE * WARP_WORDS + WORDS;
    (threads * items_per_thread * (key_bytes + value_bytes)) as u32 + words * size_of::<u32>() as u32
}

/// Kernel: as [`divide`](super::divide::divide), for keys with values, which at the first level become the indices of their keys if
/// `indexes` is not 0.
///
/// # Safety
/// As for `divide`, for all arrays of `from` and `to`, with [`shared_bytes`], after
/// [`place_parts`](super::place_parts::place_parts); keys are to stay in order.
#[kernel(
    u32v4 = <u32, u32, { ROW.divide_4v4.threads }, { ROW.divide_4v4.items_per_thread }> within (ROW.divide_4v4.threads, ROW.divide_4v4.blocks),
    u64v4 = <u64, u32, { ROW.divide_8v4.threads }, { ROW.divide_8v4.items_per_thread }> within (ROW.divide_8v4.threads, ROW.divide_8v4.blocks),
    u32v8 = <u32, u64, { ROW.divide_4v8.threads }, { ROW.divide_4v8.items_per_thread }> within (ROW.divide_4v8.threads, ROW.divide_4v8.blocks),
    u64v8 = <u64, u64, { ROW.divide_8v8.threads }, { ROW.divide_8v8.items_per_thread }> within (ROW.divide_8v8.threads, ROW.divide_8v8.blocks),
)]
pub unsafe fn divide_with_values<B: Bits, V: Word, const NT: usize, const VT: usize>(
    job: Job,
    from: Elements<B, V>,
    to: Elements<B, V>,
    level: u32,
    coding: Coding<B>,
    indexes: u32,
) {
    // SAFETY: the caller's promise.
    let (workspace, from, to) = unsafe { (Workspace::new(&job), from.arrays(job.plan.n), to.arrays(job.plan.n)) };
    // SAFETY: the caller's promise; barriers divide the accesses.
    let memory = unsafe { TileMemory::<B, V>::at_start::<NT, VT>() };
    let makes_indices = level == 0 && indexes != 0;
    let codings = [coding, Coding::NONE];
    let mut tiles = Tiles::<B, true>::of(job.plan, workspace, level);
    while let Some(tile) = tiles.next() {
        // SAFETY: all threads of the block are here.
        unsafe {
            let digits = || tile.digits();
            if tile.len == (NT * VT) as u32 && tile.curve == Curve::Distance {
                move_tile::<B, V, NT, VT, true, LINEAR>(tile, digits, from, makes_indices, codings, memory, to);
            } else {
                move_tile::<B, V, NT, VT, false, ANY>(tile, digits, from, makes_indices, codings, memory, to);
            }
        }
        thread::sync_threads();
        tiles.pass();
    }
}

/// Shared memory of a tile.
#[derive(Clone, Copy)]
pub(super) struct TileMemory<B, V> {
    keys: Shared<B>,
    values: Shared<V>,
    /// For each warp, and each two digits, how many of its keys have them; then the next slots of its keys.
    counters: Shared<u32>,
    scan: Shared<u32>,
    /// For each digit how far its slots are from where the keys go.
    distances: Shared<u32>,
}

impl<B: Bits, V: Word> TileMemory<B, V> {
    /// # Safety
    /// The launch has [`shared_bytes`]; barriers divide writing from reading.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn at_start<const NT: usize, const VT: usize>() -> Self {
        let slots = const { (NT * VT) as u32 };
        // The greater ones first.
        let (key_bytes, value_bytes) = const { (size_of::<B>() as u32, size_of::<V>() as u32) };
        let (keys_at, values_at) =
            if key_bytes < value_bytes { (slots * value_bytes, 0) } else { (0, slots * key_bytes) };
        let counters_at = slots * (key_bytes + value_bytes);
        let counters = const { NT as u32 / WARP_SIZE * WARP_WORDS };
        let scan_at = counters_at + counters * 4;
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                keys: Shared::dynamic(keys_at, slots),
                values: Shared::dynamic(values_at, slots),
                counters: Shared::dynamic(counters_at, counters),
                scan: Shared::dynamic(scan_at, BLOCK_WORDS),
                distances: Shared::dynamic(scan_at + BLOCK_WORDS * 4, MOST_DIGITS_IN_ORDER),
            }
        }
    }

    /// The counters of warp `warp`, one for each digit.
    #[inline(always)]
    #[track_caller]
    fn of_warp<const NT: usize, const VT: usize>(self, warp: u32) -> Shared<u16> {
        let counters_at = const { (NT * VT * (size_of::<B>() + size_of::<V>())) as u32 };
        // SAFETY: these are `counters`, as numbers of half the size.
        unsafe { Shared::dynamic(counters_at + warp * WARP_WORDS * 4, MOST_DIGITS_IN_ORDER) }
    }

    /// The counter of two digits, `2 * word` and the next, of warp `warp`.
    #[inline(always)]
    fn counter(warp: u32, word: u32) -> u32 {
        warp * WARP_WORDS + word
    }

    /// Makes the counters the slots at which the keys of each warp begin, and the distances, which are where the keys go, how far that
    /// is from the slots. Ends with a barrier.
    ///
    /// # Safety
    /// All threads of the block make this call, after a barrier.
    #[inline(always)]
    unsafe fn place_warps<const NT: usize>(self) {
        let Self { counters, scan, distances, .. } = self;
        let (thread, warps) = (thread::thread_idx_x(), const { NT as u32 / WARP_SIZE });
        let (mut first, mut before) = (0, 0);
        while first < WARP_WORDS {
            let word = first + thread;
            // Of two digits at once, each sum in half a word: there are fewer than 2^16 keys.
            let (mut warp, mut both) = (0, 0);
            while warp < warps && word < WARP_WORDS {
                let of_warp = counters.get(Self::counter(warp, word));
                counters.set(Self::counter(warp, word), both);
                both += of_warp;
                warp += 1;
            }
            let (lower, upper) = (both & 0xffff, both >> 16);
            // SAFETY: the caller's promise.
            let (sum, all) = unsafe { sum_before(lower + upper, scan) };
            if word < WARP_WORDS {
                let begins = [before + sum, before + sum + lower];
                let (mut warp, both) = (0, begins[0] | begins[1] << 16);
                while warp < warps {
                    counters.set(Self::counter(warp, word), counters.get(Self::counter(warp, word)) + both);
                    warp += 1;
                }
                for digit in 0..2 {
                    let at = 2 * word + digit;
                    distances.set(at, distances.get(at).wrapping_sub(begins[digit as usize]));
                }
            }
            before += all;
            first += NT as u32;
            thread::sync_threads();
        }
    }
}

/// Sets the distances of all digits to where their first keys of `tile` go.
#[inline(always)]
#[track_caller]
fn find_places<B: Bits, const NT: usize>(tile: Tile, distances: Shared<u32>) {
    let (offsets, part) = (tile.offsets(), tile.part_of_segment::<B>());
    let place = |digit: u32| {
        if digit < offsets.digits() {
            offsets.begins().get(digit as usize) + offsets.of_parts(digit).get(part as usize)
        } else {
            0
        }
    };
    let mut word = thread::thread_idx_x();
    while word < WARP_WORDS {
        let (mut lower, mut upper) = (place(2 * word), place(2 * word + 1));
        if 2 * word < offsets.digits() {
            // Those of the tiles before it in its part go first.
            for of_tile in tile.before::<B>() {
                let both = offsets.of_tile(of_tile).get(word as usize);
                lower += both & 0xffff;
                upper += both >> 16;
            }
        }
        distances.set(2 * word, lower);
        distances.set(2 * word + 1, upper);
        word += NT as u32;
    }
}

/// Moves the keys of a tile, and their values, to the places of their `digits`. The first of the codings encodes keys; the second one decodes those
/// that are divided by all of their bits. `ALONG` is what is known of the curve: see [`Digits::of`].
///
/// # Safety
/// All threads of the block make this call. A `FULL` tile is.
#[inline(always)]
pub(super) unsafe fn move_tile<
    B: Bits,
    V: Word,
    const NT: usize,
    const VT: usize,
    const FULL: bool,
    const ALONG: u32,
>(
    tile: Tile,
    digits: impl Fn() -> Digits<B>,
    from: Arrays<B, V>,
    makes_indices: bool,
    [coding, decoding]: [Coding<B>; 2],
    memory: TileMemory<B, V>,
    to: Arrays<B, V>,
) {
    let TileMemory { counters, distances, .. } = memory;
    let thread = || recomputed(thread::thread_idx_x());
    clear::<NT>(counters, counters.len());
    let mut own = [B::MIN; VT];
    let first = first_row::<VT>();
    let tile_keys = from.keys.slice(tile.begin as usize, tile.len as usize);
    for i in 0..VT {
        if is_here::<FULL>(tile, first, i) {
            own[i] = tile_keys.get(first as usize + i * WARP_SIZE as usize);
        }
    }
    coding.encode_all(&mut own);
    find_places::<B, NT>(tile, distances);
    thread::sync_threads();
    let of_tile = digits();
    let (first, warp) = (first_row::<VT>(), thread() / WARP_SIZE);
    for i in 0..VT {
        if is_here::<FULL>(tile, first, i) {
            let digit = of_tile.of::<ALONG>(own[i], coding);
            counters.fetch_add(TileMemory::<B, V>::counter(warp, digit / 2), 1 << (16 * (digit % 2)));
        }
    }
    thread::sync_threads();
    // SAFETY: the caller's promise.
    unsafe { memory.place_warps::<NT>() };

    // SAFETY: as above.
    unsafe {
        move_to_slots::<B, V, NT, VT, FULL, ALONG>(own, tile, digits(), from.values, makes_indices, coding, memory)
    };
    shared::wait_for_copies();
    thread::sync_threads();

    let of_tile = digits();
    let digit = |key: B| of_tile.of::<ALONG>(key, coding);
    let decode = |key: B| if ALONG == RADIX { decoding.decode(key) } else { key };
    let mut slot = thread();
    while slot + const { ((MOVED - 1) * NT) as u32 } < tile.len {
        move_slots::<B, V, NT, MOVED>(slot, digit, decode, memory, to);
        slot += const { (MOVED * NT) as u32 };
    }
    while slot < tile.len {
        move_slots::<B, V, NT, 1>(slot, digit, decode, memory, to);
        slot += NT as u32;
    }
}

/// Registers to shared: the keys of a tile to the slots of their digits, row by row, and their values, or indices if it `makes_indices`.
///
/// # Safety
/// All threads of the block make this call, after a barrier.
#[inline(always)]
unsafe fn move_to_slots<B: Bits, V: Word, const NT: usize, const VT: usize, const FULL: bool, const ALONG: u32>(
    own: [B; VT],
    tile: Tile,
    digits: Digits<B>,
    from: GlobalMut<V>,
    makes_indices: bool,
    coding: Coding<B>,
    memory: TileMemory<B, V>,
) {
    let TileMemory { keys, values, .. } = memory;
    let (first, lane) = (first_row::<VT>(), recomputed(thread::thread_idx_x()) % WARP_SIZE);
    let lanes_up_to = FULL_MASK >> (WARP_SIZE - 1 - lane);
    let next_slots = memory.of_warp::<NT, VT>(recomputed(thread::thread_idx_x()) / WARP_SIZE);
    let tile_values = from.slice(tile.begin as usize, tile.len as usize);
    for i in 0..VT {
        let is_here = is_here::<FULL>(tile, first, i);
        let digit = if FULL { digits } else { digits.again() }.of::<ALONG>(own[i], coding);
        // SAFETY: all lanes of the warp are here, as below.
        let mut alike = unsafe { lanes_alike::<DIGIT_BITS>(digit) };
        if !FULL {
            // SAFETY: as above.
            alike &= unsafe { ballot(FULL_MASK, is_here) };
        }
        let next = next_slots.get(digit) as u32 + (alike & lanes_up_to).count_ones();
        // SAFETY: as above.
        unsafe { sync_warp(FULL_MASK) };
        // The last one of them sets the next slot.
        if is_here && alike <= lanes_up_to {
            next_slots.set(digit, next as u16);
        }
        // SAFETY: as above.
        unsafe { sync_warp(FULL_MASK) };
        if is_here {
            let slot = next - 1;
            keys.set(slot, own[i]);
            if makes_indices {
                values.set(slot, V::from_register((tile.begin + first + i as u32 * WARP_SIZE) as u64));
            } else {
                values.copy_async_mut(slot, tile_values, first as usize + i * WARP_SIZE as usize);
            }
        }
    }
}

/// The number in its tile of this thread's first key. The rows of a warp are neighbours, and what is computed from it is not kept in
/// registers from one step to the next.
#[inline(always)]
fn first_row<const VT: usize>() -> u32 {
    let thread = recomputed(thread::thread_idx_x());
    thread / WARP_SIZE * const { WARP_SIZE * VT as u32 } + thread % WARP_SIZE
}

/// Whether row `i` of a warp has a key for this thread, whose first one has number `first`. All rows have if they are `FULL`.
#[inline(always)]
fn is_here<const FULL: bool>(tile: Tile, first: u32, i: usize) -> bool {
    FULL || first + i as u32 * WARP_SIZE < tile.len
}

/// Moves what is in `N` slots, from `slot` on one in each `NT`, and decodes the keys.
#[inline(always)]
#[track_caller]
fn move_slots<B: Bits, V: Word, const NT: usize, const N: usize>(
    slot: u32,
    digit: impl Fn(B) -> u32,
    decode: impl Fn(B) -> B,
    memory: TileMemory<B, V>,
    to: Arrays<B, V>,
) {
    let slots: [u32; N] = core::array::from_fn(|i| slot + (i * NT) as u32);
    let keys = slots.map(|slot| memory.keys.get(slot));
    let mut places = [0; N];
    for i in 0..N {
        places[i] = memory.distances.get(digit(keys[i])).wrapping_add(slots[i]) as usize;
    }
    let values = slots.map(|slot| memory.values.get(slot));
    for i in 0..N {
        to.keys.set(places[i], decode(keys[i]));
    }
    for i in 0..N {
        to.values.set(places[i], values[i]);
    }
}
