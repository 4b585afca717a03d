//! The keys of each unit of a long segment go to the places of their digits.

use super::{LongSegments, UNIT_WORDS, Unit, digits_at, levels, long_tile};
use crate::block::shared_memory::{self, shared_memory};
use crate::kernels::sort::elements::Elements;
use crate::kernels::sort::is_whole_warps;
use crate::kernels::sort::tile_in_order::{DIGITS, Places, Span, TileMemory, move_tile};
use crate::key::{Bits, Coding};
use core::cell::Cell;
use cuda_std::prelude::*;
use cuda_std::shared;

shared_memory! {
    /// Shared memory of a block.
    struct Memory<B: Word>(threads: usize, items_per_thread: usize) {
        tile: TileMemory<B, ()> { threads, items_per_thread },
        /// The words of a unit, and of the next one.
        units: [u32; 2 * UNIT_WORDS],
        level: [u32; 1],
    }
}

/// Bytes of dynamic shared memory for keys of `key_bytes` bytes.
pub const fn shared_bytes(key_bytes: usize) -> u32 {
    let tile = long_tile(key_bytes);
    match key_bytes {
        4 => Memory::<u32>::bytes(tile.threads, tile.items_per_thread),
        _ => Memory::<u64>::bytes(tile.threads, tile.items_per_thread),
    }
}

/// Kernel: moves the keys of all units of `level` to the places of their digits, from `keys` to `scratch` or back. The first level encodes keys by
/// `coding`, and the last one decodes them.
///
/// # Safety
/// What [`LongSegments`] says holds, after `place_long_segments` of the level. `keys` and `scratch` have capacity for as many keys, and do not
/// overlap. Blocks are of `NT` threads, with [`shared_bytes`] of dynamic shared memory, for units of `NT * VT` keys.
#[kernel(
    u32 = <u32, { long_tile(4).threads }, { long_tile(4).items_per_thread }> within (long_tile(4).threads, long_tile(4).blocks),
    u64 = <u64, { long_tile(8).threads }, { long_tile(8).items_per_thread }> within (long_tile(8).threads, long_tile(8).blocks),
)]
pub unsafe fn divide_long_segments<B: Bits, const NT: usize, const VT: usize>(
    keys: *mut B,
    scratch: *mut B,
    long: LongSegments,
    level: u32,
    coding: Coding<B>,
) {
    const { assert!(is_whole_warps(NT) && NT * VT == super::unit_keys(size_of::<B>()), "a unit is a tile") };
    const { assert!(NT >= DIGITS as usize, "a thread has one digit at most") };
    const { shared_memory::check(shared_bytes(size_of::<B>())) };
    let elements = |keys| Elements { keys, values: core::ptr::null_mut::<()>() };
    let (from, to) = if level.is_multiple_of(2) { (keys, scratch) } else { (scratch, keys) };
    // SAFETY: the caller promises both arrays, of which this launch reads one and writes the other, the workspace and the memory. Each key goes to an index
    // of its own, as tiles reserve those of their keys. Barriers come between the accesses of different threads to the words of a unit.
    let (from, to, workspace, memory) = unsafe {
        let n = long.n as usize;
        (elements(from).arrays(n), elements(to).arrays(n), long.open::<B>(), Memory::<B>::at_start(NT, VT))
    };
    let Memory { tile: tile_memory, units, level: level_word } = memory;
    let encode = if level == 0 { coding } else { Coding::NONE };
    let decode = if level + 1 == const { levels(size_of::<B>()) } { coding } else { Coding::NONE };
    let count = || workspace.counters().get(level as usize);
    // The words of unit `i`, while another one is moved.
    let fetch = |i: u32, turn: u32| {
        let word = thread::thread_idx_x();
        if word < UNIT_WORDS as u32 && i < count() {
            units.copy_async_mut(
                turn * UNIT_WORDS as u32 + word,
                workspace.units(level),
                UNIT_WORDS * i as usize + word as usize,
            );
        }
    };
    if thread::thread_idx_x() == 0 {
        level_word.set(0, level);
    }
    let (mut i, mut turn) = (thread::block_idx_x(), 0);
    fetch(i, turn);
    shared::wait_for_copies();
    thread::sync_threads();
    while i < count() {
        let next = i + thread::grid_dim_x();
        fetch(next, 1 - turn);
        let at = turn * UNIT_WORDS as u32;
        let unit = Unit { start: units.get(at), end: units.get(at + 1), number: units.get(at + 2) };
        let (begin, len) = unit.span::<B>();
        let places = Reserved {
            next: workspace.counts(level, unit.start),
            filled_up: const { (NT * VT) as u32 } - len,
            room: Cell::new(0),
        };
        // Read anew at each call, which is after a barrier: else the assembler keeps the digits of all keys in local memory.
        let digits = || digits_at::<B>(level_word.get(0));
        let codings = (encode, |key| decode.decode(key));
        // SAFETY: all threads of the block are here, after a barrier. Tiles that are not full are filled up; each has one key at least.
        unsafe {
            move_tile::<B, (), _, NT, VT, true>(
                Span { begin, len },
                digits,
                &places,
                from,
                false,
                codings,
                tile_memory,
                to,
            );
        }
        thread::sync_threads();
        (i, turn) = (next, 1 - turn);
    }
}

/// The places of a tile's keys: those that it reserves.
struct Reserved {
    /// Where the next key of each digit goes.
    next: GlobalMut<u32>,
    /// How many keys the tile has been filled up with, which are of the last digit.
    filled_up: u32,
    /// Where the tile's keys of this thread's digit go, which takes long to arrive.
    room: Cell<u32>,
}

impl Places for Reserved {
    #[inline(always)]
    unsafe fn begin(&self, distances: Shared<u32>, _scan: Shared<u32>) {
        let digit = thread::thread_idx_x();
        if digit < DIGITS {
            distances.set(digit, 0);
        }
    }

    #[inline(always)]
    unsafe fn counted(&self, digit: u32, count: u32) {
        let count = if digit == DIGITS - 1 { count - self.filled_up } else { count };
        self.room.set(self.next.fetch_add(digit as usize, count));
    }

    #[inline(always)]
    unsafe fn finish(&self, distances: Shared<u32>) {
        let digit = thread::thread_idx_x();
        if digit < DIGITS {
            distances.set(digit, distances.get(digit).wrapping_add(self.room.get()));
        }
    }
}
