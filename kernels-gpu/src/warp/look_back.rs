//! Decoupled look-back: the sum over all tiles before a tile, while these are still being counted.
//!
//! ```text
//!   tile      0      1      2      3      4      5
//!   word      all 7  all 9  own 4  own 0  own 5  ?        tile 5 adds 5 + 0 + 4 + 9
//!                     ←──────────────────────────          128 words per step, four per lane
//! ```
//!
//! A tile publishes its own sum as soon as it is known, and later the inclusive prefix sum up to its end. To find its
//! exclusive prefix, a tile goes back over earlier tiles until one has published an inclusive prefix. The source is
//! "Single-pass Parallel Prefix Scan with Decoupled Look-back" (Merrill and Garland, 2016). A word holds a sum and its
//! kind, so that it needs no ordering with other memory.
//!
//! Polling competes with publishing: hundreds of warps that poll slow down the memory for the tiles that are about to
//! publish. A tile therefore pauses before its first look, for about the time that most earlier tiles need, and between
//! two looks.
//!
//! A tile waits only for earlier tiles. Blocks [take](Tiles::take) tiles in ascending order, so that running blocks
//! hold all earlier tiles.
//!
//! The radix sort has a look-back of its own, for the 256 digits of a tile at once.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, reduce_add, shuffle_idx};

/// Words that a lane reads per step. Hundreds of tiles are counted concurrently, and a tile may have to go back over
/// most. A step takes a fraction of a microsecond for any number of words.
const AT_ONCE: usize = 4;

/// The pauses of a tile during its look-back.
pub(super) struct Pauses {
    /// Between two looks at a word that has not been published, in nanoseconds.
    again: u32,
}

impl Pauses {
    /// The pauses of `tile`. Makes the first pause, of `first` nanoseconds. The first 512 tiles make none, since they
    /// wait for few others.
    #[inline(always)]
    pub fn begin(tile: u32, first: u32) -> Self {
        let is_of_many = tile >= const { 4 * AT_ONCE as u32 * WARP_SIZE };
        if is_of_many {
            thread::sleep(first);
        }
        Self { again: if is_of_many { 1000 } else { 50 } }
    }

    /// Pauses before the next look.
    #[inline(always)]
    pub fn wait(&self) {
        thread::sleep(self.again);
    }
}

/// The kind of the sum in a word: of the tile alone (`OWN`), or of all tiles up to it (`ALL`). An unpublished word is
/// 0.
const OWN: u64 = 1 << 62;
const ALL: u64 = 1 << 63;

/// The sum in a word.
const SUM: u64 = OWN - 1;

/// Number of 8-byte words for `tiles` tiles: the counter of tiles taken, and one sum per tile.
pub const fn words(tiles: usize) -> usize {
    1 + tiles
}

/// The tiles of a launch: the counter of tiles taken, and the sums published so far.
#[derive(Clone, Copy)]
pub struct Tiles {
    taken: GlobalMut<u32>,
    sums: GlobalMut<u64>,
}

impl Tiles {
    /// The `tiles` tiles with the words from `first`.
    ///
    /// # Safety
    /// `first` points to [`words`] words in global memory, which were 0 before the launch and which nothing else uses
    /// during it.
    #[inline(always)]
    pub unsafe fn new(first: *mut u64, tiles: usize) -> Self {
        // SAFETY: the caller passes `1 + tiles` words at `first`. The counter is the lower half of word 0; the sums are
        // the `tiles` words after it.
        unsafe { Self { taken: GlobalMut::new(first.cast(), 1), sums: GlobalMut::new(first.wrapping_add(1), tiles) } }
    }

    /// Takes the next tile. Calls return distinct numbers, in ascending order.
    #[inline(always)]
    #[track_caller]
    pub fn take(self) -> u32 {
        self.taken.fetch_add(0, 1)
    }

    /// Publishes the sum of `tile`, which is below 2^26. One thread makes this call.
    #[inline(always)]
    #[track_caller]
    pub fn publish(self, tile: u32, sum: u32) {
        self.sums.store(tile as usize, sum as u64 | if tile == 0 { ALL } else { OWN });
    }

    /// Whether `tile` can skip the look-back if its own sum is 0. The last tile cannot, as its prefix is the total. One
    /// in 64 tiles cannot either: it publishes a prefix that limits the look-back of later tiles.
    #[inline(always)]
    pub fn may_skip(self, tile: u32) -> bool {
        const LOOKS_BACK: u32 = 64;
        !tile.is_multiple_of(LOOKS_BACK) && tile as usize + 1 < self.sums.len()
    }

    /// The sum over the tiles before `tile`, which has published `sum`, after a pause of `pause` nanoseconds.
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
                // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which make this call together with the same
                // `tile`. Ballots alone end the loops, and their results are equal in all lanes, so that all lanes run
                // the same rounds.
                let known = unsafe { warp::ballot(FULL_MASK, word & ALL != 0) };
                // The first lane with an inclusive prefix; the lanes before it have only their own sums.
                let last = known.trailing_zeros();
                let own = if lane < last { word as u32 } else { 0 };
                // SAFETY: all 32 lanes make these calls, since the ballot above has brought them together. `last % 32`
                // is below 32.
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
