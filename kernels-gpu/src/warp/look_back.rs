//! Decoupled look-back: the sum over all tiles before one, while these are still being counted.
//!
//! ```text
//!   tile      0      1      2      3      4      5
//!   word      all 7  all 9  own 4  own 0  own 5  ?        tile 5 adds 5 + 0 + 4 + 9
//!                    ←──────────────────────────          128 words at a time, four a lane
//! ```
//!
//! A tile publishes its own sum as soon as it knows it, and the sum up to its end when that is known. Tile by tile it then goes back
//! over those before it, until it finds one that has published the latter: "Single-pass Parallel Prefix Scan with Decoupled
//! Look-back" (Merrill and Garland, 2016). A word carries its sum and what it is the sum of, so that no order with other memory is
//! needed.
//!
//! Whoever looks for a word again and again takes the memory's time from those that are to publish it, hundreds of warps of them. So a tile pauses before it looks
//! back at all, for as long as most of those before it may need, and between two looks.
//!
//! A tile waits only for those before it. Blocks [take](Tiles::take) tiles in order, so that these have all been taken by blocks that run.
//!
//! The sort by all bits has a look-back of its own, for the 256 digits of a tile at once.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, reduce_add, shuffle_idx};

/// Words that a lane reads at once. Hundreds of tiles are counted at the same time, so that a tile may have to go back over most of these: what it
/// reads in a step takes a part of a microsecond, however many words these are.
const AT_ONCE: usize = 4;

/// The pauses of a tile that looks back.
pub(super) struct Pauses {
    /// Between two looks at a word that has not been published, in nanoseconds.
    again: u32,
}

impl Pauses {
    /// Those of `tile`, the first one of which this makes: of `first` nanoseconds. The first tiles, which may be all there are, wait for few others.
    #[inline(always)]
    pub fn begin(tile: u32, first: u32) -> Self {
        let is_of_many = tile >= const { 4 * AT_ONCE as u32 * WARP_SIZE };
        if is_of_many {
            thread::sleep(first);
        }
        Self { again: if is_of_many { 1000 } else { 50 } }
    }

    /// Waits before another look.
    #[inline(always)]
    pub fn wait(&self) {
        thread::sleep(self.again);
    }
}

/// What tells of which tiles a word is the sum: of one tile, or of all up to it. A word that is 0 has not been published.
const OWN: u64 = 1 << 62;
const ALL: u64 = 1 << 63;

/// The sum in a word.
const SUM: u64 = OWN - 1;

/// The words of 8 bytes that blocks take tiles by, and that these publish their sums in, for `tiles` tiles.
pub const fn words(tiles: usize) -> usize {
    1 + tiles
}

/// The tiles of a launch: the next one to take, and the sums of those that have been counted.
#[derive(Clone, Copy)]
pub struct Tiles {
    taken: GlobalMut<u32>,
    sums: GlobalMut<u64>,
}

impl Tiles {
    /// The `tiles` tiles whose words are from `first` on.
    ///
    /// # Safety
    /// There are as many as [`words`] says, which were 0 before the launch, and which nothing else uses during it.
    #[inline(always)]
    pub unsafe fn new(first: *mut u64, tiles: usize) -> Self {
        // SAFETY: the first word has two halves, of which one is used; `tiles` follow.
        unsafe { Self { taken: GlobalMut::new(first.cast(), 1), sums: GlobalMut::new(first.wrapping_add(1), tiles) } }
    }

    /// The number of the next tile: each call gives another one, in ascending order.
    #[inline(always)]
    #[track_caller]
    pub fn take(self) -> u32 {
        self.taken.fetch_add(0, 1)
    }

    /// Publishes the sum of `tile`, which is below 2^26. One thread does.
    #[inline(always)]
    #[track_caller]
    pub fn publish(self, tile: u32, sum: u32) {
        self.sums.store(tile as usize, sum as u64 | if tile == 0 { ALL } else { OWN });
    }

    /// Whether `tile` need not look back if its own sum is 0. The last tile must, as it knows the sum of all; and one of so many does, or those behind would have to go
    /// further back.
    #[inline(always)]
    pub fn may_skip(self, tile: u32) -> bool {
        const LOOKS_BACK: u32 = 64;
        !tile.is_multiple_of(LOOKS_BACK) && tile as usize + 1 < self.sums.len()
    }

    /// The sum over the tiles before `tile`, which has published `sum`, after a pause of so many nanoseconds.
    ///
    /// # Safety
    /// All lanes of one whole warp make the same call.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn sum_before(self, tile: u32, sum: u32, pause: u32) -> u64 {
        let (lane, mut left, mut before) = (warp::lane_id(), tile, 0u64);
        let pauses = Pauses::begin(tile, pause);
        'steps: while left > 0 {
            let mut words = [0; AT_ONCE];
            for i in 0..AT_ONCE {
                let distance = i as u32 * WARP_SIZE + lane;
                if distance < left {
                    words[i] = self.sums.load((left - 1 - distance) as usize);
                }
            }
            for i in 0..AT_ONCE {
                let distance = i as u32 * WARP_SIZE + lane;
                let mut word = words[i];
                if distance < left {
                    while word == 0 {
                        pauses.wait();
                        word = self.sums.load((left - 1 - distance) as usize);
                    }
                }
                // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which make this call together with the same `tile`. The
                // loops go on by what all lanes have learnt, so that all are in the same round.
                let known = unsafe { warp::ballot(FULL_MASK, word & ALL != 0) };
                // The first lane that knows all; none before it does.
                let last = known.trailing_zeros();
                let own = if lane < last { word as u32 } else { 0 };
                // SAFETY: as above. `last % 32` is one of the lanes.
                let (own, low, high) = unsafe {
                    (
                        reduce_add(FULL_MASK, own),
                        shuffle_idx(FULL_MASK, word as u32, last % WARP_SIZE),
                        shuffle_idx(FULL_MASK, ((word & SUM) >> 32) as u32, last % WARP_SIZE),
                    )
                };
                before += own as u64;
                if known != 0 {
                    before += (high as u64) << 32 | low as u64;
                    break 'steps;
                }
            }
            left = left.saturating_sub(AT_ONCE as u32 * WARP_SIZE);
        }
        if lane == 0 && tile > 0 {
            self.sums.store(tile as usize, ALL | (before + sum as u64));
        }
        before
    }
}
