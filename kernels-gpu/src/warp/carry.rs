//! Values that tiles carry to later tiles: the reduction of a tile's last group, from the start of the group in an
//! earlier tile.
//!
//! ```text
//!   tile      0        1        2        3        4
//!   groups    │aaa bbbb│bbbbbbbb│bbb cccc│cccccccc│cc …
//!   word      final b  own b    final c  own c             tile 4 goes back to tile 2, a final one
//! ```
//!
//! This is a decoupled look-back (see [`look_back`](crate::warp::look_back)) over reductions instead of counts. A tile
//! with the start of a group knows at once what it carries and publishes it as final. Any other tile first publishes
//! its own reduction, and later the final one. If the order of the operands matters, as in sums of floats, tiles are
//! combined from first to last, whichever are final: results are reproducible.

use crate::block::segmented::{Tail, shuffle_bits};
use crate::kernels::groups::reduction::Reduction;
use crate::key::Bits;
use crate::warp::look_back::Pauses;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot};

/// The state of a word, above 32 bits of a value: the tile's own reduction (`OWN`), or the value that it carries
/// (`FINAL`).
const OWN: u64 = 1 << 32;
const FINAL: u64 = 1 << 33;

/// Number of 8-byte words for `tiles` tiles and values of `value_bytes` bytes, 4 or 8. A word holds 4 bytes of a value
/// and the state. A reader of an 8-byte value reads again if the states of its two words differ.
pub const fn words(tiles: usize, value_bytes: usize) -> usize {
    tiles * (value_bytes / 4)
}

/// The carries of all tiles of a launch.
#[derive(Clone, Copy)]
pub struct Carries {
    words: GlobalMut<u64>,
}

impl Carries {
    /// The carries of `tiles` tiles, for values of `value_bytes` bytes, in the words from `first`.
    ///
    /// # Safety
    /// `first` points to [`words`] words in global memory, which were 0 before the launch and which nothing else uses
    /// during it.
    #[inline(always)]
    pub unsafe fn new(first: *mut u64, tiles: usize, value_bytes: usize) -> Self {
        // SAFETY: the caller passes `words(tiles, value_bytes)` words at `first`, which nothing else uses. All accesses
        // are relaxed loads and stores.
        Self { words: unsafe { GlobalMut::new(first, words(tiles, value_bytes)) } }
    }

    /// Publishes the reduction of the group that `tile` ends in, as final if `tail` has the start of that group. One
    /// thread makes this call.
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

    /// Stores what earlier tiles carry to `tile`, which is not the first one, in `carried`, after a pause of `pause`
    /// nanoseconds. `of_tile` is the tile's own reduction. If it has no start of a group, the carry of the tile is
    /// published as final.
    ///
    /// # Safety
    /// All lanes of the second warp of a block make the same call.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn pass_on<R: Reduction>(
        self,
        tile: u32,
        of_tile: Tail<R::Value>,
        carried: Shared<R::Value>,
        pause: u32,
    ) {
        // SAFETY: all lanes of the second warp make this call with one `tile`.
        let value = unsafe { self.carried::<R>(tile, pause) };
        if thread::thread_idx_x() == WARP_SIZE {
            carried.set(0, value);
            if !of_tile.has_head {
                self.publish(tile, Tail { has_head: true, value: R::combine(value, of_tile.value) });
            }
        }
    }

    /// Waits for the words of `tile` and returns the reduction that they hold.
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

    /// The value carried to `tile`, which is not the first one, after a pause of `pause` nanoseconds. The first tile is
    /// always final.
    ///
    /// # Safety
    /// All lanes of one whole warp make the same call.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn carried<R: Reduction>(self, tile: u32, pause: u32) -> R::Value {
        let (lane, pauses) = (warp::lane_id(), Pauses::begin(tile, pause));
        let read = |end: u32| {
            // Lanes without a tile read tile 0, which is final. A lower lane also reads tile 0, and the search ends
            // there.
            let tail: Tail<R::Value> = self.published((end - 1).saturating_sub(lane), &pauses);
            // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which make this call together. `end` is equal in all
            // lanes: it starts as `tile`, and ballots alone change it.
            (tail, unsafe { ballot(FULL_MASK, tail.has_head) })
        };
        let mut end = tile;
        if R::HAS_ANY_ORDER {
            let mut carried = R::IDENTITY;
            loop {
                let (tail, finals) = read(end);
                let value = if lane <= finals.trailing_zeros() { tail.value } else { R::IDENTITY };
                // SAFETY: all 32 lanes run the same rounds, since `finals` is the result of a ballot and therefore
                // equal in all lanes.
                carried = R::combine(unsafe { combine_lanes::<R>(value) }, carried);
                if finals != 0 {
                    return carried;
                }
                end -= WARP_SIZE;
            }
        }
        let (mut tail, mut finals) = read(end);
        // Tile 0 is final, so that the loop ends.
        while finals == 0 {
            end -= WARP_SIZE;
            (tail, finals) = read(end);
        }
        let (mut carried, mut last) = (R::IDENTITY, finals.trailing_zeros());
        loop {
            loop {
                // SAFETY: all 32 lanes make this call: `last` and `finals` come from ballots and are equal in all
                // lanes. `last` is below 32.
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
            // Tiles that have become final since the first read hold the carry up to their end, which replaces the
            // partial result.
            (tail, finals) = read(end);
            last = WARP_SIZE - 1;
        }
    }
}

/// The combined values of all lanes.
///
/// # Safety
/// All lanes of one whole warp make the same call.
#[inline(always)]
unsafe fn combine_lanes<R: Reduction>(mut value: R::Value) -> R::Value {
    let mut distance = WARP_SIZE / 2;
    while distance > 0 {
        // SAFETY: the caller makes this call with all 32 lanes of the warp, and the loop has five rounds for each.
        // `lane ^ distance` is below 32.
        value = R::combine(value, unsafe { shuffle_bits(value, warp::lane_id() ^ distance) });
        distance /= 2;
    }
    value
}
