//! A sweep of all long segments.

use super::{LONG_TILE, LongSegments, TAKEN, Unit, Workspace};
use crate::block::shared_memory::{self, shared_memory};
use crate::kernels::sort::elements::Elements;
use crate::kernels::sort::is_whole_warps;
use crate::kernels::sort::radix::look_back::{MOST_KEYS, Published, TILE_WORDS, own_tiles};
use crate::kernels::sort::radix::sweep::{SweepMemory, SweptTile, sweep_tile};
use crate::kernels::sort::tile_in_order::DIGITS;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::shared;

shared_memory! {
    /// Shared memory of a block.
    struct Memory<B: Word>(threads: usize, items_per_thread: usize) {
        sweep: SweepMemory<B, ()> { threads, items_per_thread },
        words: UnitWords {},
    }
}

shared_memory! {
    /// The words of a block in shared memory that tell its unit. Thread 0 sets them.
    struct UnitWords() {
        words: [u32; UNIT_WORDS],
    }
}

const UNIT_WORDS: u32 = 5;

/// Which of the words is the number of the sweep,
const SWEEP: u32 = 0;

/// which one is the index of the first unit of the segment,
const FIRST: u32 = 1;

/// and which ones are the number of the unit in the segment, and where this begins and ends.
const NUMBER: u32 = 2;
const START: u32 = 3;
const END: u32 = 4;

/// Bytes of dynamic shared memory.
pub const fn shared_bytes() -> u32 {
    Memory::<u32>::bytes(LONG_TILE.threads, LONG_TILE.items_per_thread)
}

/// Kernel: sweep `sweep` of all long segments, from `keys` to `scratch` or back. The first one encodes keys by `coding`, and the last one decodes them.
///
/// # Safety
/// What [`LongSegments`] says holds, after `count_long_segments` and the sweeps before. `keys` and `scratch` have capacity for as many keys, and do not
/// overlap. Blocks are of `NT` threads, whole groups of 128, with [`shared_bytes`] of dynamic shared memory, for units of `NT * VT` keys; `OWN` is what
/// [`own_tiles`] says.
#[kernel(
    u32 = <u32, { LONG_TILE.threads }, { LONG_TILE.items_per_thread }, { own_tiles(LONG_TILE.threads) }>
        within (LONG_TILE.threads, LONG_TILE.blocks),
)]
pub unsafe fn sweep_long_segments<B: Bits, const NT: usize, const VT: usize, const OWN: usize>(
    keys: *mut B,
    scratch: *mut B,
    long: LongSegments,
    sweep: u32,
    coding: Coding<B>,
) {
    const { assert!(size_of::<B>() == 4, "four sweeps are all bits of a key, and a key has the counts of two digits") };
    const { assert!(NT.is_multiple_of(128) && is_whole_warps(NT), "threads that look back have two digits each") };
    const { assert!(NT * VT <= MOST_KEYS, "the counts of a tile have 16 bits") };
    const { assert!(NT * VT >= TILE_WORDS as usize, "the counts of a tile are where its keys have been") };
    const { assert!(NT * VT == super::UNIT_KEYS, "a unit is a tile") };
    const { assert!(NT >= DIGITS as usize, "a thread has one digit at most, whose count it loads ahead") };
    const { assert!(OWN >= own_tiles(NT), "a thread adds up all tiles that are its own") };
    const { shared_memory::check(Memory::<B>::bytes(NT, VT)) };
    let sides = [keys, scratch].map(|keys| Elements { keys, values: core::ptr::null_mut::<()>() });
    // SAFETY: the launch has `shared_bytes`. Thread 0 alone writes the words, before a barrier after which the others read them, and after the last one
    // of the unit before.
    let Memory { sweep: memory, words: unit_words } = unsafe { Memory::<B>::at_start(NT, VT) };
    let UnitWords { words } = unit_words;
    if thread::thread_idx_x() == 0 {
        words.set(SWEEP, sweep);
    }
    loop {
        if thread::thread_idx_x() == 0 {
            // SAFETY: the caller promises the workspace.
            let workspace = unsafe { long.open() };
            let i = workspace.counters().fetch_add(TAKEN + sweep as usize, 1);
            let none = Unit { start: 0, end: 0, number: 0 };
            let Unit { start, end, number } = if i < workspace.units() { workspace.unit(i) } else { none };
            words.set(FIRST, i - number);
            words.set(NUMBER, number);
            words.set(START, start);
            words.set(END, end);
        }
        thread::sync_threads();
        if words.get(END) == 0 {
            return;
        }
        let tile = TileOfSegment { long: &long, words };
        tile.load_counts(memory.begins);
        // SAFETY: all `NT` threads of the block are here, after a barrier, with one unit, which no other block has. A barrier comes before the next one.
        unsafe { sweep_tile::<B, (), _, NT, VT, OWN>(tile, long.n, sides, coding, false, memory) };
        thread::sync_threads();
    }
}

/// The tile that is a unit of a long segment.
#[derive(Clone, Copy)]
struct TileOfSegment<'a> {
    long: &'a LongSegments,
    words: Shared<u32>,
}

impl TileOfSegment<'_> {
    #[inline(always)]
    fn workspace(self) -> Workspace {
        // SAFETY: the caller of the kernel promises the workspace.
        unsafe { self.long.open() }
    }

    /// Starts loading how many keys of the segment have each digit of the sweep, each thread that of one digit.
    #[inline(always)]
    fn load_counts(self, begins: Shared<u32>) {
        let digit = thread::thread_idx_x();
        if digit < DIGITS {
            let counts = self.workspace().counts(self.words.get(FIRST));
            begins.copy_async_mut(digit, counts, (self.sweep() * DIGITS + digit) as usize);
        }
    }
}

impl SweptTile for TileOfSegment<'_> {
    #[inline(always)]
    fn sweep(&self) -> u32 {
        self.words.get(SWEEP)
    }

    #[inline(always)]
    fn tile(&self) -> u32 {
        self.words.get(NUMBER)
    }

    #[inline(always)]
    fn tiles(&self) -> u32 {
        Unit { start: self.words.get(START), end: self.words.get(END), number: 0 }.units()
    }

    #[inline(always)]
    fn first_key(&self) -> u32 {
        self.words.get(START)
    }

    #[inline(always)]
    fn keys(&self) -> u32 {
        self.words.get(END) - self.words.get(START)
    }

    #[inline(always)]
    fn published(&self) -> Published {
        self.workspace().published(self.words.get(FIRST), self.tiles())
    }

    #[inline(always)]
    fn begins_are_known(&self) -> bool {
        false
    }

    #[inline(always)]
    fn counts(&self, begins: Shared<u32>) -> impl Fn(u32) -> u32 {
        shared::wait_for_copies();
        move |digit| begins.get(digit)
    }
}
