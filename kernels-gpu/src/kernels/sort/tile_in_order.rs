//! A stable scatter: the keys of a tile move to the places of their digits.
//!
//! ```text
//!   tile       │ c0 a0 b0 a1 │ a2 c1 a3 b1 │     a warp counts the digits of neighbouring rows of 32 keys
//!   counters   │ a2 b1 c1    │ a2 b1 c1    │     of each warp; their prefix sums are the slots
//!   shared     │ a0 a1 a2 a3 b0 b1 c0 c1   │     row by row: after the lanes before that have the same digit
//!   to         … a0 a1 a2 a3 … b0 b1 … c0 c1 …   to the places of the digits
//! ```
//!
//! Values follow the keys, if there are any. Their loads to shared memory are in flight while the slots of other keys
//! are found.

use super::is_whole_warps;
use crate::block::clear;
use crate::block::scan::{BLOCK_WORDS, sum_before};
use crate::block::shared_memory::{of_widths, shared_memory};
use crate::elements::{Arrays, has_values};
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot, lanes_alike, sync_warp};

/// Bits of a digit.
pub const DIGIT_BITS: u32 = 8;

/// Number of digits.
pub const DIGITS: u32 = 1 << DIGIT_BITS;

/// Keys that a thread moves from slots at once.
const MOVED: usize = 4;

/// Bytes of dynamic shared memory for tiles of `threads * items_per_thread` keys of `key_bytes` bytes with values of
/// `value_bytes`, or 0.
pub const fn shared_bytes(threads: usize, items_per_thread: usize, key_bytes: usize, value_bytes: usize) -> u32 {
    of_widths!(key_bytes, value_bytes, TileMemory::bytes(threads, items_per_thread))
}

/// How keys become digits.
pub(super) trait ToDigit<B>: Copy {
    /// Whether the greatest key has the greatest digit. If so, a partial tile may be filled up with the greatest key:
    /// the filler comes last.
    const FILLS_UP: bool;

    /// The digit of a key, which is less than [`DIGITS`].
    fn of(self, key: B) -> u32;

    /// The same function, recomputed: the compiler computes each key's digit again instead of keeping all digits in
    /// registers.
    fn again(self) -> Self;
}

/// Digits that are [`DIGIT_BITS`] bits of a key, from this bit on.
#[derive(Clone, Copy)]
pub(super) struct BitsAt(pub u32);

impl<B: Bits> ToDigit<B> for BitsAt {
    const FILLS_UP: bool = true;

    #[inline(always)]
    fn of(self, key: B) -> u32 {
        key.shifted_down(self.0).to_register() as u32 & (DIGITS - 1)
    }

    #[inline(always)]
    fn again(self) -> Self {
        Self(recomputed(self.0))
    }
}

/// Places of the keys of a tile. All threads of the block make each of these calls, except [`counted`](Self::counted).
pub(super) trait Places {
    /// Sets the distance of each digit to the place of its first key in the tile, as far as it is known before the keys
    /// are counted.
    ///
    /// # Safety
    /// Nothing else uses `scan`, of [`BLOCK_WORDS`] words, or `distances`. A barrier follows.
    unsafe fn begin(&self, distances: Shared<u32>, scan: Shared<u32>);

    /// Receives the number of keys of `digit`.
    ///
    /// # Safety
    /// Whole warps make this call, and their lanes have neighbouring digits.
    #[inline(always)]
    unsafe fn counted(&self, _digit: u32, _count: u32) {}

    /// Called once all digits have been [`counted`](Self::counted).
    ///
    /// # Safety
    /// A barrier comes before.
    #[inline(always)]
    unsafe fn placed(&self) {}

    /// Adds to the distances the parts that were not known before.
    ///
    /// # Safety
    /// Nothing else uses `distances`. Barriers come before and after.
    #[inline(always)]
    unsafe fn finish(&self, _distances: Shared<u32>) {}
}

/// The elements of a tile.
#[derive(Clone, Copy)]
pub(super) struct TileElements<B, V> {
    /// The array that the tile is a part of.
    pub array: Arrays<B, V>,
    /// Index of the first element.
    pub begin: u32,
    /// Number of elements.
    pub len: u32,
    /// Whether values become the indices of their keys.
    pub makes_indices: bool,
}

shared_memory! {
    /// Shared memory of a tile, for blocks of `threads` threads with `items_per_thread` keys each.
    pub(super) struct TileMemory<B: Word, V: Word>(threads: usize, items_per_thread: usize) {
        keys: [B; threads * items_per_thread],
        values: [V; threads * items_per_thread],
        /// Number of keys of each digit in each warp, and later the slot of the warp's next such key.
        counters: [u32; threads as u32 / WARP_SIZE * DIGITS],
        scan: [u32; BLOCK_WORDS],
        /// Distance from the slots of each digit to the places of its keys.
        distances: [u32; DIGITS],
    }
}

impl<B: Bits, V: Word> TileMemory<B, V> {
    /// The counter of `digit` of warp `warp`.
    #[inline(always)]
    fn counter(warp: u32, digit: u32) -> u32 {
        warp * DIGITS + digit
    }

    /// Turns the counters into the first slots of each warp's keys, and the places in `distances` into distances from
    /// the slots. Ends with a barrier.
    ///
    /// # Safety
    /// All threads of the block make this call, after a barrier.
    #[inline(always)]
    unsafe fn place_warps<const NT: usize>(self, places: &impl Places) {
        let Self { counters, scan, distances, .. } = self;
        let (thread, warps) = (thread::thread_idx_x(), const { NT as u32 / WARP_SIZE });
        let (mut first, mut before) = (0, 0);
        while first < DIGITS {
            let digit = first + thread;
            let (mut warp, mut count) = (0, 0);
            while warp < warps && digit < DIGITS {
                let of_warp = counters.get(Self::counter(warp, digit));
                counters.set(Self::counter(warp, digit), count);
                count += of_warp;
                warp += 1;
            }
            if digit < DIGITS {
                // SAFETY: `DIGITS` = 256 is a multiple of 32, so that whole warps make the call. `digit` is `first +
                // thread`, so that lanes have neighbouring digits.
                unsafe { places.counted(digit, count) };
            }
            // SAFETY: the loop has the same number of rounds for all threads, so that all of the block make the call.
            // `NT` is a multiple of 32. `sync_threads` at the end of a round comes between two uses of `scan`.
            let (sum, all) = unsafe { sum_before(count, scan) };
            if digit < DIGITS {
                let (mut warp, begin) = (0, before + sum);
                while warp < warps {
                    counters.set(Self::counter(warp, digit), counters.get(Self::counter(warp, digit)) + begin);
                    warp += 1;
                }
                distances.set(digit, distances.get(digit).wrapping_sub(begin));
            }
            before += all;
            first += NT as u32;
            thread::sync_threads();
        }
    }
}

/// Moves the keys of a tile, and their values, to their `places`. `digits` gives the function from keys to digits, and
/// is called again and again to save registers. Keys are encoded by `coding` first, and decoded by `decode` in the end.
///
/// # Safety
/// All threads of the block make this call. A `FULL` tile has `NT * VT` keys, or is [filled up](ToDigit::FILLS_UP) and
/// has at least one key.
#[inline(always)]
pub(super) unsafe fn move_tile<B: Bits, V: Word, D: ToDigit<B>, const NT: usize, const VT: usize, const FULL: bool>(
    tile: TileElements<B, V>,
    digits: impl Fn() -> D,
    places: &impl Places,
    (coding, decode): (Coding<B>, impl Fn(B) -> B + Copy),
    memory: TileMemory<B, V>,
    to: Arrays<B, V>,
) {
    const { assert!(is_whole_warps(NT), "a block has up to 32 whole warps") };
    let TileMemory { counters, distances, scan, .. } = memory;
    let thread = || recomputed(thread::thread_idx_x());
    let mut own = [B::MIN; VT];
    let first = first_row::<VT>();
    let tile_keys = tile.array.keys.slice(tile.begin as usize, tile.len as usize);
    if D::FILLS_UP && tile.len < const { (NT * VT) as u32 } {
        own = [coding.decode(B::MAX); VT];
        for i in 0..VT {
            if is_here::<false>(tile.len, first, i) {
                own[i] = tile_keys.get(first as usize + i * WARP_SIZE as usize);
            }
        }
    } else {
        for i in 0..VT {
            if is_here::<FULL>(tile.len, first, i) {
                own[i] = tile_keys.get(first as usize + i * WARP_SIZE as usize);
            }
        }
    }
    // The loads are in flight meanwhile.
    clear::<NT>(counters, counters.len());
    coding.encode_all(&mut own);
    // SAFETY: no branch surrounds the call, so that all threads of the block make it. Nothing uses `scan` and
    // `distances` before the barrier that follows.
    unsafe { places.begin(distances, scan) };
    thread::sync_threads();
    let of_tile = digits();
    let (first, warp) = (first_row::<VT>(), thread() / WARP_SIZE);
    for i in 0..VT {
        if is_here::<FULL>(tile.len, first, i) {
            // Lanes that add 1 to the same word take no longer.
            counters.fetch_add(TileMemory::<B, V>::counter(warp, of_tile.of(own[i])), 1);
        }
    }
    thread::sync_threads();
    // SAFETY: no branch surrounds the call, so that all `NT` threads of the block make it, after the barrier.
    unsafe { memory.place_warps::<NT>(places) };

    // SAFETY: no branch surrounds the calls, so that all threads of the block make them. `place_warps` ends with a
    // barrier, and another one comes before distances are read.
    unsafe {
        places.placed();
        move_to_slots::<B, V, D, NT, VT, FULL>(own, tile, digits(), memory);
        places.finish(distances);
    }
    shared::wait_for_copies();
    thread::sync_threads();

    let of_tile = digits();
    let digit = |key: B| of_tile.of(key);
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

/// Registers to shared: moves the keys of a tile to the slots of their digits, row by row. Their values follow.
///
/// # Safety
/// All threads of the block make this call, after a barrier.
#[inline(always)]
unsafe fn move_to_slots<B: Bits, V: Word, D: ToDigit<B>, const NT: usize, const VT: usize, const FULL: bool>(
    own: [B; VT],
    tile: TileElements<B, V>,
    digits: D,
    memory: TileMemory<B, V>,
) {
    let TileMemory { keys, values, counters: next_slots, .. } = memory;
    let (first, lane) = (first_row::<VT>(), recomputed(thread::thread_idx_x()) % WARP_SIZE);
    let lanes_up_to = FULL_MASK >> (WARP_SIZE - 1 - lane);
    let warp = recomputed(thread::thread_idx_x()) / WARP_SIZE;
    let from = tile.array.values;
    let tile_values = if has_values::<V>() { from.slice(tile.begin as usize, tile.len as usize) } else { from };
    let last = recomputed(tile.len) - 1;
    for i in 0..VT {
        let is_here = is_here::<FULL>(tile.len, first, i);
        let digit = if FULL { digits } else { digits.again() }.of(own[i]);
        // SAFETY: the loop has `VT` rounds for each thread, so that the 32 lanes of the warp make the call.
        let mut alike = unsafe { lanes_alike::<DIGIT_BITS>(digit) };
        if !FULL {
            // SAFETY: `FULL` is a constant, so that the 32 lanes of the warp make the call.
            alike &= unsafe { ballot(FULL_MASK, is_here) };
        }
        let at = TileMemory::<B, V>::counter(warp, digit);
        let next = next_slots.get(at) + (alike & lanes_up_to).count_ones();
        // SAFETY: no branch surrounds the call, so that the 32 lanes of the warp make it. It separates the reads of
        // counters from the writes below.
        unsafe { sync_warp(FULL_MASK) };
        // The last lane with the digit sets the next slot.
        if is_here && alike <= lanes_up_to {
            next_slots.set(at, next);
        }
        // SAFETY: no branch surrounds the call, so that the 32 lanes of the warp make it. It separates the writes of
        // counters from the next row's reads.
        unsafe { sync_warp(FULL_MASK) };
        if is_here {
            let slot = next - 1;
            keys.set(slot, own[i]);
            if !has_values::<V>() {
                continue;
            }
            if tile.makes_indices {
                values.set(slot, V::from_register((tile.begin + first + i as u32 * WARP_SIZE) as u64));
            } else {
                let at = first + i as u32 * WARP_SIZE;
                values.copy_async_mut(slot, tile_values, if D::FILLS_UP { at.min(last) } else { at } as usize);
            }
        }
    }
}

/// Number of this thread's first key in its tile. The rows of a warp are neighbours. Results are recomputed at each
/// step to save registers.
#[inline(always)]
fn first_row<const VT: usize>() -> u32 {
    let thread = recomputed(thread::thread_idx_x());
    thread / WARP_SIZE * const { WARP_SIZE * VT as u32 } + thread % WARP_SIZE
}

/// Whether row `i` of a warp has a key for this thread, whose first key has number `first` of the `len` keys of a tile.
/// `FULL` rows have a key for each thread.
#[inline(always)]
fn is_here<const FULL: bool>(len: u32, first: u32, i: usize) -> bool {
    FULL || first + i as u32 * WARP_SIZE < len
}

/// Moves the elements of `N` slots, `slot` and then every `NT`th, and decodes the keys.
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
    if !has_values::<V>() {
        for i in 0..N {
            to.keys.set(places[i], decode(keys[i]));
        }
        return;
    }
    let values = slots.map(|slot| memory.values.get(slot));
    for i in 0..N {
        to.keys.set(places[i], decode(keys[i]));
    }
    for i in 0..N {
        to.values.set(places[i], values[i]);
    }
}
