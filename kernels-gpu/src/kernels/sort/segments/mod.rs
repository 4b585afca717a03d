//! The sort of segments: each segment of an array on its own, whatever their lengths.
//!
//! ```text
//!   segments   │0│1│2 │3│4                           │5 │6│…     from an offset to the next, or of one length
//!   tiles      │ tile 0  │ tile 1  │ tile 2  │ tile 3  │ …       of most of the keys that a block can hold
//!              └─ 0 to 3 ┘                   └─ 5, 6 … ─         short: a block sorts those that begin in its tile
//!                      │ unit 0    │ unit 1    │ 2    │           long: divided, or cut into runs and merged
//! ```
//!
//! A segment is long if it ends too far behind its first tile for the tile's block to hold it. So no short segment is
//! ever divided, and the cost of a segment depends only on its own keys. The device finds the long segments. The host
//! knows nothing of this, so that the launches are the same for all offsets and can be captured.
//!
//! Segments of more than [`MAX_MIDDLE`](middle_runs::MAX_MIDDLE) keys are the segments of the first level of a
//! [division](super::divide). An array of too many keys for that has its long segments cut into runs and merged, and so
//! have 8-byte keys with values in segments of up to that length.
//!
//! | file | idea |
//! | --- | --- |
//! | [`find_segments`] | the first segment of each tile, and lists of longer segments |
//! | [`sort_short_segments`] | one block sorts the segments of a tile of up to 1024 keys, by classes of length |
//! | [`sort_segments`] | one block sorts the short segments of a tile, or a run of a long one |
//! | `segment_tile` | the sort of a tile whose merges end at the ends of segments |
//! | [`sort_rows`] | segments of one length up to 32 keys, each by one thread |
//! | [`sort_wide_rows`] | segments of one length up to 1024 keys, each by some lanes of a warp |
//! | `row_slots` | the slots of keys that lanes sort: keys move, or get an order for keys and values |
//! | `numbers` | numbers of keys with their indices, of 4 bytes for both |
//! | `numbered_lanes` | the sort of such numbers by lanes |
//! | `padded` | keys in shared memory that lanes read without bank conflicts |
//! | [`middle`] | lists of segments of more than 1024 keys that one block sorts alone |
//! | [`middle_runs`] | the block's merges of runs that warps have sorted |
//! | [`sort_middle_segments`] | the sort of these segments |
//! | `middle_by_numbers` | the sort of a segment with values, by numbers |
//! | [`sort_middle_by_bins`] | the sort of these segments by bins |
//! | [`merge_segments`] | a merge pass over long segments that are not divided |

pub mod find_segments;
pub mod merge_segments;
pub mod middle;
mod middle_by_numbers;
pub mod middle_runs;
mod numbered_lanes;
mod numbers;
mod padded;
mod row_slots;
mod segment_tile;
pub mod sort_middle_by_bins;
pub mod sort_middle_segments;
pub mod sort_rows;
pub mod sort_segments;
pub mod sort_short_segments;
pub mod sort_wide_rows;

pub use segment_tile::shared_bytes;

use self::sort_short_segments::MAX_SHORT;
use crate::kernels::sort::merge_pass::tile_keys;
use crate::kernels::sort::runs::{MAX_RUNS, Passes};
use crate::tuning::{ROW, Tile};
use core::hint::assert_unchecked;
use cuda_std::prelude::*;

/// Bounds of the segments of an array.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Segments {
    /// `count + 1` offsets that never decrease, the first 0 and the last the number of keys; or null for segments of
    /// one length.
    pub offsets: *const usize,
    /// Number of segments.
    pub count: usize,
    /// Length of each segment if there are no offsets, and then not 0. The last segment may be shorter.
    pub length: usize,
}

impl Segments {
    /// The segments of an array of `n` keys.
    ///
    /// # Safety
    /// If `offsets` is not null, it meets the description of the field. Nothing writes the offsets during the launch.
    #[inline(always)]
    pub(in crate::kernels) unsafe fn of(self, n: usize) -> Bounds {
        let offsets = if self.offsets.is_null() { 0 } else { self.count + 1 };
        // SAFETY: the view has `count + 1` offsets, which the caller ensures, or 0 if the pointer is null.
        Bounds { offsets: unsafe { Global::new(self.offsets, offsets) }, count: self.count, length: self.length, n }
    }
}

/// The bounds of the segments of an array of `n` keys.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Bounds {
    offsets: Global<usize>,
    count: usize,
    length: usize,
    n: usize,
}

impl Bounds {
    /// Start of segment `q`, which is the end of segment `q - 1`. `q` is at most the number of segments.
    #[inline(always)]
    #[track_caller]
    pub(in crate::kernels) fn start(self, q: usize) -> usize {
        if self.offsets.is_empty() { (q * self.length).min(self.n) } else { self.offsets.get(q) }
    }

    /// The first segment that begins at key `key` or behind it, or the number of segments. The search starts at the
    /// guess `key * density`, with `density` segments for each key. It continues in growing steps.
    #[inline(always)]
    #[track_caller]
    fn first_near(self, key: usize, density: f32) -> usize {
        /// The first step, and the factor by which steps grow.
        const STEP: usize = 64;
        const GROWTH: usize = 8;
        let (mut low, mut high, mut step) = (0, self.count, STEP);
        if self.offsets.is_empty() {
            return self.first_from(key, low, high);
        }
        let near = ((key as f32 * density) as usize).min(high);
        if near < high && self.offsets.get(near) < key {
            low = near + 1;
            while step < high - low && self.offsets.get(low + step) < key {
                low += step + 1;
                step *= GROWTH;
            }
            high = high.min(low + step);
        } else {
            high = near;
            while step < high && self.offsets.get(high - step) >= key {
                high -= step;
                step *= GROWTH;
            }
            low = high.saturating_sub(step);
        }
        self.first_from(key, low, high)
    }

    /// The first segment from `low` to `high` that begins at key `key` or behind it, or `high` if none does.
    #[inline(always)]
    #[track_caller]
    fn first_from(self, key: usize, mut low: usize, mut high: usize) -> usize {
        if self.offsets.is_empty() {
            // SAFETY: `Segments` says that `length` is not 0 without offsets. The assumption removes the code of a
            // panic for a division by 0.
            unsafe { assert_unchecked(self.length != 0) };
            return key.div_ceil(self.length).max(low).min(high);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.offsets.get(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Division of an array into tiles: a tile every `keys` keys. The last segment of a tile may have up to `overhang` keys
/// behind the tile.
///
/// ```text
///   │ keys of a tile              │          │
///          │ short │ short        :  │              ends within the overhang
///          │ short │ long         :          : │    ends behind it
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// Keys from the start of a tile to the start of the next one.
    pub keys: usize,
    /// Keys behind the tile that its block can hold, too.
    pub overhang: usize,
}

impl Tiles {
    /// Tiles for blocks that hold `slots` keys. If blocks have many slots, no segment of up to [`MAX_SHORT`] keys is
    /// long.
    pub const fn of(slots: usize) -> Self {
        let overhang = if slots / 4 > MAX_SHORT { MAX_SHORT } else { slots / 4 };
        Self { keys: slots - overhang, overhang }
    }

    /// End of the short segments among `first .. next`, which begin in tile `t`.
    #[inline(always)]
    #[track_caller]
    fn end_of_short(self, bounds: Bounds, t: usize, first: usize, next: usize) -> usize {
        // Only the last segment ends behind the tile.
        let is_long = next > first && bounds.start(next) > (t + 1) * self.keys + self.overhang;
        next - usize::from(is_long)
    }

    /// Number of tiles of an array of `n` keys.
    pub const fn count(self, n: usize) -> usize {
        n.div_ceil(self.keys)
    }
}

/// Arrays in which [`find_segments`] and [`sort_short_segments`] tell later kernels what there is to do.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SegmentLists {
    /// The first segment that begins in each of `t` tiles, or behind it, and the number of segments: `t + 1` numbers.
    pub firsts: *mut usize,
    /// The number of tiles with longer segments, and these tiles: room for `t + 1` numbers. Null if no segments are
    /// sorted in registers.
    pub longer: *mut u32,
    /// The units of long segments: room for [`most_units`] of `t`, [`UNIT_WORDS`] words each.
    pub units: *mut usize,
    /// The number of units.
    pub unit_count: *mut u32,
}

/// Words of a unit in the list: start and end of its segment, and its number among the segment's units.
pub const UNIT_WORDS: usize = 3;

/// Upper limit on the units of `tiles` tiles: in each tile, one long segment may begin and one may continue.
pub const fn most_units(tiles: usize) -> usize {
    2 * tiles
}

/// A unit of a long segment: a run to be sorted, or a tile to be merged, if the pass has a tile of that number.
#[derive(Clone, Copy)]
struct Unit {
    start: usize,
    end: usize,
    number: usize,
}

/// The list of units.
#[derive(Clone, Copy)]
struct Units(Global<usize>);

impl Units {
    /// The first `count` units at `list`.
    ///
    /// # Safety
    /// `find_segments` has written the units, and nothing writes them during the launch.
    #[inline(always)]
    unsafe fn new(list: *const usize, count: usize) -> Self {
        // SAFETY: the caller ensures `count` units, of `UNIT_WORDS` words each.
        Self(unsafe { Global::new(list, UNIT_WORDS * count) })
    }

    /// Unit `i`.
    #[inline(always)]
    #[track_caller]
    fn get(self, i: usize) -> Unit {
        let word = |word| self.0.get(UNIT_WORDS * i + word);
        Unit { start: word(0), end: word(1), number: word(2) }
    }
}

impl Unit {
    /// Keys of the segment.
    #[inline(always)]
    fn segment_keys(self) -> usize {
        self.end - self.start
    }
}

/// The passes that merge the runs of a segment of `keys` keys, `run` keys each, to one run.
#[inline(always)]
pub const fn passes(keys: usize, run: usize) -> Passes {
    Passes::of(keys.div_ceil(run))
}

/// Whether the units of a long segment suffice for the tiles of each pass. A segment has a unit for each `Tiles::keys`
/// keys, rounded up.
const fn has_units(block: Tile, merge: Tile, rank_tolerance: u32) -> bool {
    let (run, tiles) = (block.keys(), Tiles::of(block.keys()));
    // In longer groups, units outnumber tiles by so much that rounding does not matter.
    let mut group = 2 * run;
    while group <= 1024 * run {
        let mut k = 2;
        while k <= MAX_RUNS && k as usize * run <= group {
            let tile = tile_keys(merge.keys(), merge.items_per_thread, k, rank_tolerance) as usize;
            if tile < tiles.keys || group.div_ceil(tile) > group / tiles.keys {
                return false;
            }
            k *= 2;
        }
        group *= 2;
    }
    true
}

const _: () = {
    let widths = [(4, 0), (8, 0), (4, 4), (4, 8), (8, 4), (8, 8)];
    let mut i = 0;
    while i < widths.len() {
        let (key_bytes, value_bytes) = widths[i];
        let (block, merge) = (ROW.sort_segments.of(key_bytes, value_bytes), ROW.merge_runs.of(key_bytes, value_bytes));
        assert!(has_units(block, merge, ROW.small_rank_tolerance), "a long segment has a unit for each tile of a pass");
        i += 1;
    }
};
