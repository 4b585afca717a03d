//! The last step of a division of keys with values: as in `divide`, but keys of one digit stay in their order.

use super::digits::{ANY, Curve, Digits, LINEAR};
use super::tiles::{Tile, Tiles};
use super::workspace::{Job, Workspace};
use crate::block::shared_memory;
use crate::elements::Elements;
use crate::kernels::sort::tile_in_order::{DIGITS, Places, Span, TileMemory, ToDigit, move_tile};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// Kernel: as [`divide`](super::divide::divide), for keys with values, which at the first level become the indices of their keys if
/// `indexes` is not 0.
///
/// # Safety
/// As for `divide`, for all arrays of `from` and `to`, with [`shared_bytes`](crate::kernels::sort::tile_in_order::shared_bytes), after
/// [`place_parts`](super::place_parts::place_parts); keys are to stay in order.
#[kernel(
    u32v4 = <u32, u32, { ROW.divide.of(4, 4).threads }, { ROW.divide.of(4, 4).items_per_thread }>
        within (ROW.divide.of(4, 4).threads, ROW.divide.of(4, 4).blocks),
    u64v4 = <u64, u32, { ROW.divide.of(8, 4).threads }, { ROW.divide.of(8, 4).items_per_thread }>
        within (ROW.divide.of(8, 4).threads, ROW.divide.of(8, 4).blocks),
    u32v8 = <u32, u64, { ROW.divide.of(4, 8).threads }, { ROW.divide.of(4, 8).items_per_thread }>
        within (ROW.divide.of(4, 8).threads, ROW.divide.of(4, 8).blocks),
    u64v8 = <u64, u64, { ROW.divide.of(8, 8).threads }, { ROW.divide.of(8, 8).items_per_thread }>
        within (ROW.divide.of(8, 8).threads, ROW.divide.of(8, 8).blocks),
)]
pub unsafe fn divide_with_values<B: Bits, V: Word, const NT: usize, const VT: usize>(
    job: Job,
    from: Elements<B, V>,
    to: Elements<B, V>,
    level: u32,
    coding: Coding<B>,
    indexes: u32,
) {
    const { assert!(NT * VT <= u16::MAX as usize, "the counts of a tile have 16 bits") };
    const { shared_memory::check(TileMemory::<B, V>::bytes(NT, VT)) };
    let n = job.plan.n as usize;
    // SAFETY: all arrays have `plan.n` elements, and those of `from` and `to` do not overlap; the lists have
    // `job.at.words` words, as `Job` says. Elements are read from one side and written to the other, each to an index
    // of its own: all have been counted.
    let (workspace, from, to) = unsafe { (Workspace::new(&job), from.arrays(n), to.arrays(n)) };
    // SAFETY: the launch has `shared_bytes` for tiles of `NT * VT` keys. Barriers of `move_tile` come between writing
    // and reading, and another one before the next tile.
    let memory = unsafe { TileMemory::<B, V>::at_start(NT, VT) };
    let makes_indices = level == 0 && indexes != 0;
    let mut tiles = Tiles::<B, true>::of(job.plan, workspace, level);
    while let Some(tile) = tiles.next() {
        // SAFETY: all threads of the block are here.
        unsafe {
            let span = Span { begin: tile.begin, len: tile.len };
            let (places, codings) = (Counted::<B, NT>(tile, PhantomData), (coding, |key| key));
            if tile.len == (NT * VT) as u32 && tile.curve == Curve::Distance {
                let digits = || Along::<B, LINEAR> { digits: tile.digits(), coding };
                move_tile::<B, V, _, NT, VT, true>(span, digits, &places, from, makes_indices, codings, memory, to);
            } else {
                let digits = || Along::<B, ANY> { digits: tile.digits(), coding };
                move_tile::<B, V, _, NT, VT, false>(span, digits, &places, from, makes_indices, codings, memory, to);
            }
        }
        thread::sync_threads();
        tiles.pass();
    }
}

/// The digits of a tile's keys, as `coding` encodes them. `ALONG` is what is known of their curve: see [`Digits::of`].
#[derive(Clone, Copy)]
struct Along<B, const ALONG: u32> {
    digits: Digits<B>,
    coding: Coding<B>,
}

impl<B: Bits, const ALONG: u32> ToDigit<B> for Along<B, ALONG> {
    const FILLS_UP: bool = false;

    #[inline(always)]
    fn of(self, key: B) -> u32 {
        self.digits.of::<ALONG>(key, self.coding)
    }

    #[inline(always)]
    fn again(self) -> Self {
        Self { digits: self.digits.again(), ..self }
    }
}

/// The places of a tile's keys, which have been counted before: for each digit in each part, and in each tile.
struct Counted<B, const NT: usize>(Tile, PhantomData<B>);

impl<B: Bits, const NT: usize> Places for Counted<B, NT> {
    #[inline(always)]
    unsafe fn begin(&self, distances: Shared<u32>, _: Shared<u32>) {
        let &Self(tile, _) = self;
        let (offsets, part) = (tile.offsets(), tile.part_of_segment::<B>());
        let place = |digit: u32| {
            if digit < offsets.digits() {
                offsets.begins().get(digit as usize) + offsets.of_parts(digit).get(part as usize)
            } else {
                0
            }
        };
        let mut word = thread::thread_idx_x();
        while word < DIGITS / 2 {
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
}
