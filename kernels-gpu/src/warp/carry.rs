//! What tiles carry to the next ones: the reduction of the group that a tile ends in, back to where it begins in one of the tiles
//! before.
//!
//! ```text
//!   tile      0        1        2        3        4
//!   groups    │aaa bbbb│bbbbbbbb│bbb cccc│cccccccc│cc …
//!   word      final b  own b    final c  own c             tile 4 goes back to tile 2, the last one that knows where its group begins
//! ```
//!
//! This is a [look-back](crate::warp::look_back) as that over counts. A tile in which a group begins knows at once what it carries.
//! Others publish what they have, and when they know what has been carried to them, the whole. Where the order makes a difference, what is found is combined
//! from the first tile to the last one, whichever of them has been final by then: the sum of floats is the same each time.

use crate::block::segmented::{Tail, shuffle_bits};
use crate::kernels::groups::reduction::Reduction;
use crate::key::Bits;
use crate::warp::look_back::Pauses;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot};

/// What a word has, above 32 bits of a value: what the tile has of its own group's, or what it carries.
const OWN: u64 = 1 << 32;
const FINAL: u64 = 1 << 33;

/// The words of 8 bytes for `tiles` tiles and values of `value_bytes` bytes, 4 or 8. Each has half of a value of 8 bytes, and both tell
/// what it is: a reader that finds two that differ reads again.
pub const fn words(tiles: usize, value_bytes: usize) -> usize {
    tiles * (value_bytes / 4)
}

/// What the tiles of a launch carry.
#[derive(Clone, Copy)]
pub struct Carries {
    words: GlobalMut<u64>,
}

impl Carries {
    /// Those of `tiles` tiles, for values of `value_bytes` bytes, whose words are from `first` on.
    ///
    /// # Safety
    /// There are as many as [`words`] says, which were 0 before the launch, and which nothing else uses during it.
    #[inline(always)]
    pub unsafe fn new(first: *mut u64, tiles: usize, value_bytes: usize) -> Self {
        // SAFETY: the caller promises the words.
        Self { words: unsafe { GlobalMut::new(first, words(tiles, value_bytes)) } }
    }

    /// Publishes what `tile` has of the group that it ends in, and all of it if `tail` has a head. One thread does.
    #[inline(always)]
    #[track_caller]
    pub fn publish<V: Bits>(self, tile: u32, tail: Tail<V>) {
        let (state, bits) = (if tail.has_head { FINAL } else { OWN }, tail.value.to_register());
        let first = tile as usize * const { size_of::<V>() / 4 };
        self.words.store(first, state | bits & u32::MAX as u64);
        if const { size_of::<V>() == 8 } {
            self.words.store(first + 1, state | bits >> 32);
        }
    }

    /// What `tile` has published, which this waits for.
    #[inline(always)]
    #[track_caller]
    fn published<V: Bits>(self, tile: u32, pauses: &Pauses) -> Tail<V> {
        let first = tile as usize * const { size_of::<V>() / 4 };
        loop {
            let low = self.words.load(first);
            let high = if const { size_of::<V>() == 8 } { self.words.load(first + 1) } else { low };
            let state = low & (OWN | FINAL);
            if state != 0 && state == high & (OWN | FINAL) {
                let upper = if const { size_of::<V>() == 8 } { high << 32 } else { 0 };
                let value = V::from_register(low & u32::MAX as u64 | upper);
                return Tail { has_head: state == FINAL, value };
            }
            pauses.wait();
        }
    }

    /// What is carried to `tile`, which is not the first one, after a pause of so many nanoseconds. A group begins in the first tile.
    ///
    /// # Safety
    /// All lanes of one whole warp make the same call.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn carried<R: Reduction>(self, tile: u32, pause: u32) -> R::Value {
        let (lane, pauses) = (warp::lane_id(), Pauses::begin(tile, pause));
        let read = |end: u32| {
            // Lanes that have no tile read the first one, which is none of those that count.
            let tail: Tail<R::Value> = self.published((end - 1).saturating_sub(lane), &pauses);
            // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which make this call together, with the same `end`: it changes
            // by what all lanes have learnt.
            (tail, unsafe { ballot(FULL_MASK, tail.has_head) })
        };
        let mut end = tile;
        if R::HAS_ANY_ORDER {
            let mut carried = R::IDENTITY;
            loop {
                let (tail, finals) = read(end);
                let value = if lane <= finals.trailing_zeros() { tail.value } else { R::IDENTITY };
                // SAFETY: as above; the loop goes on by what all lanes have learnt.
                carried = R::combine(unsafe { combine_lanes::<R>(value) }, carried);
                if finals != 0 {
                    return carried;
                }
                end -= WARP_SIZE;
            }
        }
        let (mut tail, mut finals) = read(end);
        // The first tile is final, so that this ends there.
        while finals == 0 {
            end -= WARP_SIZE;
            (tail, finals) = read(end);
        }
        let (mut carried, mut last) = (R::IDENTITY, finals.trailing_zeros());
        loop {
            loop {
                // SAFETY: as above; `last` is a lane, and the same for all.
                let value = unsafe { shuffle_bits(tail.value, last) };
                let is_final = finals >> last & 1 != 0;
                carried = if is_final { value } else { R::combine(carried, value) };
                if last == 0 {
                    break;
                }
                last -= 1;
            }
            if end == tile {
                return carried;
            }
            end += WARP_SIZE;
            // Some of these may be final by now, which is what is carried up to them as well.
            (tail, finals) = read(end);
            last = WARP_SIZE - 1;
        }
    }
}

/// The values of all lanes, combined.
///
/// # Safety
/// All lanes of one whole warp make the same call.
#[inline(always)]
unsafe fn combine_lanes<R: Reduction>(mut value: R::Value) -> R::Value {
    let mut distance = WARP_SIZE / 2;
    while distance > 0 {
        // SAFETY: the caller's promise; the loop has the same rounds for each lane.
        value = R::combine(value, unsafe { shuffle_bits(value, warp::lane_id() ^ distance) });
        distance /= 2;
    }
    value
}
