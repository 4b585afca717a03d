//! The keys of each unit of a long segment go to the places of their digits, with their values, and those of one digit stay in their order.

use super::rounds::{RoundMemory, Rounds, UnitOfRound};
use super::{LongSegments, PART_UNITS, Workspace, long_tile};
use crate::block::shared_memory::{self, of_widths, shared_memory};
use crate::elements::Elements;
use crate::kernels::sort::tile_in_order::{DIGITS, Places, Span, TileMemory, move_tile};
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;

shared_memory! {
    /// Shared memory of a block, for tiles of `threads * items_per_thread` keys.
    struct Memory<B: Word, V: Word>(threads: usize, items_per_thread: usize) {
        tile: TileMemory<B, V> { threads, items_per_thread },
        units: RoundMemory {},
    }
}

/// Bytes of dynamic shared memory for keys of `key_bytes` bytes with values of `value_bytes` bytes.
pub const fn shared_bytes(key_bytes: usize, value_bytes: usize) -> u32 {
    let tile = long_tile(key_bytes, value_bytes);
    of_widths!(key_bytes, value_bytes, Memory::bytes(tile.threads, tile.items_per_thread))
}

/// Kernel: moves the keys of all units of `level`, with their values, to the places of their digits, from `at` to `scratch` or back. The first level
/// encodes keys by `coding`, and the last one decodes them.
///
/// # Safety
/// What [`LongSegments`] says holds, after `place_long_segments` of the level. `at` and `scratch` have as many elements, and do not overlap. Blocks are
/// of `NT` threads, with [`shared_bytes`] of dynamic shared memory, for units of `NT * VT` keys.
#[kernel(
    u32v4 = <u32, u32, { long_tile(4, 4).threads }, { long_tile(4, 4).items_per_thread }>
        within (long_tile(4, 4).threads, long_tile(4, 4).blocks),
    u32v8 = <u32, u64, { long_tile(4, 8).threads }, { long_tile(4, 8).items_per_thread }>
        within (long_tile(4, 8).threads, long_tile(4, 8).blocks),
)]
pub unsafe fn divide_long_segments_with_values<B: Bits, V: Word, const NT: usize, const VT: usize>(
    at: Elements<B, V>,
    scratch: Elements<B, V>,
    long: LongSegments,
    level: u32,
    coding: Coding<B>,
) {
    const { assert!(NT * VT == super::unit_keys(size_of::<B>(), size_of::<V>()), "a unit is a tile") };
    const { shared_memory::check(Memory::<B, V>::bytes(NT, VT)) };
    let n = long.n as usize;
    let [from, to] = if level.is_multiple_of(2) { [at, scratch] } else { [scratch, at] };
    // SAFETY: the caller promises the workspace, the memory and the elements. This launch reads those of one side and writes those of the other, each to an
    // index of its own: all have been counted. Barriers of `move_tile` come between writing and reading the memory, and one of `pass` behind it.
    let (workspace, Memory { tile: memory, units }, from, to) =
        unsafe { (long.open::<B, V>(), Memory::<B, V>::at_start(NT, VT), from.arrays(n), to.arrays(n)) };
    // SAFETY: all threads of the block are here, and nothing else uses the words of units.
    let mut rounds = unsafe { Rounds::begin(workspace, level, units) };
    let encode = if level == 0 { coding } else { Coding::NONE };
    while let Some(unit) = rounds.unit() {
        let (begin, len) = unit.get().span::<B, V>();
        let places = Counted::<B, V, NT> { workspace, level, unit };
        // Read anew at each call, which is after a barrier: else the assembler keeps the digits of all keys in local memory.
        let digits = || unit.get().digit;
        let decode = if unit.get().digit.shift == 0 { coding } else { Coding::NONE };
        let codings = (encode, |key| decode.decode(key));
        // SAFETY: all threads of the block are here. Tiles that are not full are filled up; a unit has a key at least.
        unsafe {
            move_tile::<B, V, _, NT, VT, true>(Span { begin, len }, digits, &places, from, false, codings, memory, to);
            rounds.pass();
        }
    }
}

/// The places of a unit's keys: where those of its part begin, and after those of the units before it there.
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
