//! The sort of long segments of keys of 4 bytes alone, by all bits of the keys.
//!
//! ```text
//!   long        │ unit 0 │ unit 1 │ 2 │     swept by many blocks, a unit of more keys than a block holds by each
//! ```
//!
//! A long segment is swept as the sort [by all bits](crate::kernels::sort::radix) sweeps an array: its tiles look back at tiles of their own segment
//! only, and its digits begin where the segment does. The tiles of all long segments are units of one list, in the order of the array, so that a sweep is
//! one launch, however many segments there are. Blocks take units in that order, and a unit waits only for those before it.
//!
//! | file | idea |
//! | --- | --- |
//! | [`find_long_segments`] | a list of the units of long segments |
//! | [`count_long_segments`] | how many keys of each long segment have each digit |
//! | [`sweep_long_segments`] | a sweep of all long segments |

pub mod count_long_segments;
pub mod find_long_segments;
pub mod sweep_long_segments;

use crate::kernels::sort::radix::SWEEPS;
use crate::kernels::sort::radix::look_back::{GROUP, MOST_KEYS, Published};
use crate::kernels::sort::tile_in_order::DIGITS;
use crate::key::Bits;
use crate::tuning::{DivideTile, ROW};
use crate::warp::look_back as scan;
use cuda_std::prelude::*;
use find_long_segments::FIND_THREADS;

/// The tile of a unit of a long segment.
pub const LONG_TILE: DivideTile = ROW.sort_by_radix.of(4, 0);

/// Keys of a unit. A segment of more keys is long.
const UNIT_KEYS: usize = LONG_TILE.keys();

const _: () = assert!(UNIT_KEYS <= MOST_KEYS, "the counts of a tile have 16 bits");

/// Words of a unit in the list: where its segment begins and ends, and its number among those of the segment.
const UNIT_WORDS: usize = 3;

/// Counts of the keys of a segment, for each digit of each sweep.
const SEGMENT_COUNTS: usize = (SWEEPS * DIGITS) as usize;

/// Which of the counters is the number of units,
const UNITS: usize = 0;

/// and which is the first of those of units that have been taken, one for each sweep.
const TAKEN: usize = 1;

/// How many counters there are.
pub const COUNTERS: usize = TAKEN + SWEEPS as usize;

/// What the kernels are told of the long segments: the parts of a workspace, and of how many keys it is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LongSegments {
    /// [`scan_words`], which are 0 before. Nothing else uses these, nor what the other pointers are of.
    pub scan: *mut u64,
    /// [`COUNTERS`], which are 0 before.
    pub counters: *mut u32,
    /// [`sums`] of tiles.
    pub sums: *mut u64,
    /// A word for each of [`most_units`].
    pub counted: *mut u32,
    /// As many words as [`counts`] says.
    pub counts: *mut u32,
    /// The list of units: as many words as [`unit_words`] says.
    pub units: *mut u32,
    /// How many keys there are, of all segments: fewer than 2^32.
    pub n: u32,
    /// Tiles of the sort of short segments, in each of which at most one longer segment begins.
    pub tiles: u32,
}

/// Words of 8 bytes by which blocks that list the segments of `tiles` tiles know how many units come before theirs.
pub const fn scan_words(tiles: usize) -> usize {
    scan::words(tiles.div_ceil(FIND_THREADS as usize))
}

/// The most units of long segments of `n` keys: a segment of `UNIT_KEYS + 1` keys has two.
pub const fn most_units(n: usize) -> usize {
    2 * n / (UNIT_KEYS + 1)
}

/// Sums of 64 bits that the tiles of `units` units publish.
pub const fn sums(units: usize) -> usize {
    (units / GROUP as usize + 1) * DIGITS as usize
}

/// Words for the counts of all digits of the segments that `units` units are of, each of two at least.
pub const fn counts(units: usize) -> usize {
    units.div_ceil(2) * SEGMENT_COUNTS
}

/// Words of a list of `units` units.
pub const fn unit_words(units: usize) -> usize {
    units * UNIT_WORDS
}

/// A unit of a long segment.
#[derive(Clone, Copy)]
struct Unit {
    /// Where its segment begins and ends.
    start: u32,
    end: u32,
    /// Its number among the units of the segment.
    number: u32,
}

impl Unit {
    /// How many units the segment has.
    #[inline(always)]
    fn units(self) -> u32 {
        (self.end - self.start).div_ceil(UNIT_KEYS as u32)
    }
}

/// The parts of the workspace that have been opened.
#[derive(Clone, Copy)]
struct Workspace(LongSegments);

impl LongSegments {
    /// # Safety
    /// The parts have as many words as they are described to have, aligned, and only the kernels of one sort use them, one after another.
    #[inline(always)]
    unsafe fn open(self) -> Workspace {
        Workspace(self)
    }
}

impl Workspace {
    #[inline(always)]
    fn counters(self) -> GlobalMut<u32> {
        // SAFETY: `open` has promised the words, here and below.
        unsafe { GlobalMut::new(self.0.counters, COUNTERS) }
    }

    /// How many units there are, which another launch has found.
    #[inline(always)]
    #[track_caller]
    fn units(self) -> u32 {
        self.counters().get(UNITS)
    }

    /// The blocks that list segments.
    #[inline(always)]
    fn scan(self) -> scan::Tiles {
        // SAFETY: as above: `scan_words` are those of so many blocks.
        unsafe { scan::Tiles::new(self.0.scan, (self.0.tiles as usize).div_ceil(FIND_THREADS as usize)) }
    }

    /// The words of unit `i`.
    #[inline(always)]
    #[track_caller]
    fn unit_words(self, i: u32) -> GlobalMut<u32> {
        // SAFETY: as above.
        let units = unsafe { GlobalMut::new(self.0.units, unit_words(most_units(self.0.n as usize))) };
        units.slice(UNIT_WORDS * i as usize, UNIT_WORDS)
    }

    /// Unit `i`.
    #[inline(always)]
    #[track_caller]
    fn unit(self, i: u32) -> Unit {
        let words = self.unit_words(i);
        Unit { start: words.get(0), end: words.get(1), number: words.get(2) }
    }

    /// Sets unit `i`.
    #[inline(always)]
    #[track_caller]
    fn set_unit(self, i: u32, Unit { start, end, number }: Unit) {
        let words = self.unit_words(i);
        words.set(0, start);
        words.set(1, end);
        words.set(2, number);
    }

    /// Sets to 0 what is counted and published of unit `i`, and of its segment if it is the first one. The `lanes` threads that make this call, of which
    /// `lane` is this one, come after a barrier behind the listing of the unit.
    #[inline(always)]
    #[track_caller]
    fn begin_unit(self, i: u32, lane: u32, lanes: u32) {
        let (sums, counted) = self.all_published();
        if lane == 0 {
            counted.set(i as usize, 0);
        }
        if i.is_multiple_of(GROUP) {
            set_to_0(sums.slice((i / GROUP * DIGITS) as usize, DIGITS as usize), lane, lanes);
        }
        if self.unit(i).number == 0 {
            set_to_0(self.counts(i), lane, lanes);
        }
    }

    /// How many keys of the segment whose first unit is `first` have each digit, sweep by sweep. Segments have two units at least, so that half of
    /// that number is no other segment's.
    #[inline(always)]
    #[track_caller]
    fn counts(self, first: u32) -> GlobalMut<u32> {
        // SAFETY: as above.
        let all = unsafe { GlobalMut::new(self.0.counts, counts(most_units(self.0.n as usize))) };
        all.slice((first / 2) as usize * SEGMENT_COUNTS, SEGMENT_COUNTS)
    }

    /// The sums of all groups of tiles, and a word for each unit.
    #[inline(always)]
    fn all_published(self) -> (GlobalMut<u64>, GlobalMut<u32>) {
        let most = most_units(self.0.n as usize);
        // SAFETY: as above.
        unsafe { (GlobalMut::new(self.0.sums, sums(most)), GlobalMut::new(self.0.counted, most)) }
    }

    /// What the tiles of a segment of `units` units publish, of which `first` is the first one.
    #[inline(always)]
    #[track_caller]
    fn published(self, first: u32, units: u32) -> Published {
        let (sums, counted) = self.all_published();
        Published::of_part(sums, counted, first, units)
    }
}

/// Sets all `words` to 0, of which each of `lanes` threads has one in so many.
#[inline(always)]
#[track_caller]
fn set_to_0<T: Bits>(words: GlobalMut<T>, lane: u32, lanes: u32) {
    let mut at = lane as usize;
    while at < words.len() {
        words.set(at, T::MIN);
        at += lanes as usize;
    }
}
