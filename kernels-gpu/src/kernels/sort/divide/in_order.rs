//! Moving the keys of a tile and their values to the places of their digits, stably.

use super::digits::{ANY, Curve, Digits, LINEAR};
use super::tiles::Tile;
use crate::elements::Arrays;
use crate::kernels::sort::tile_in_order::{DIGITS, Places, TileElements, TileMemory, ToDigit, move_tile};
use crate::key::{Bits, Coding};
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// Moves the elements of `tile`, at most `NT * VT`, to the places of their digits. If it `makes_indices`, values become
/// the indices of their keys.
///
/// # Safety
/// All `NT` threads of the block make this call. The launch has [`TileMemory`] for `NT * VT` elements at the start of
/// shared memory. A barrier comes before the next use of that memory.
#[inline(always)]
pub(super) unsafe fn divide_tile<B: Bits, V: Word, const NT: usize, const VT: usize>(
    tile: Tile,
    from: Arrays<B, V>,
    makes_indices: bool,
    coding: Coding<B>,
    to: Arrays<B, V>,
) {
    const { assert!(NT * VT <= u16::MAX as usize, "the counts of a tile have 16 bits") };
    // SAFETY: the caller ensures the memory. `tile` is the same for all threads, so that all `NT` threads of the block
    // make one call. Barriers of `move_tile` come between writing and reading.
    unsafe {
        let memory = TileMemory::<B, V>::at_start(NT, VT);
        let elements = TileElements { array: from, begin: tile.begin, len: tile.len, makes_indices };
        let (places, codings) = (Counted::<B, NT>(tile, PhantomData), (coding, |key| key));
        if tile.len == (NT * VT) as u32 && tile.curve == Curve::Distance {
            let digits = || Along::<B, LINEAR> { digits: tile.digits(), coding };
            move_tile::<B, V, _, NT, VT, true>(elements, digits, &places, codings, memory, to);
        } else {
            let digits = || Along::<B, ANY> { digits: tile.digits(), coding };
            move_tile::<B, V, _, NT, VT, false>(elements, digits, &places, codings, memory, to);
        }
    }
}

/// The digits of a tile's keys, as `coding` encodes them. `ALONG` says what is known of the curve: see [`Digits::of`].
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

/// The places of a tile's keys, from counts of each digit in each part and each tile.
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
                // Keys of the tiles before this one in its part go first.
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
