//! How an array of sorted runs is divided for a pass that merges K of them into one.
//!
//! ```text
//!   from    │ run 0 │ run 1 │ run 2 │ run 3 │ run 4 │ run 5 │ r │     K = 4: groups of four runs, the last one shorter
//!   groups  │ 0                             │ 1                 │
//!   tiles   │  0  │  1  │  2  │  3  │ … │ 9 │ 10 │ 11 │  …  │   │     a group has its own tiles; its last one is short
//! ```

use core::hint::assert_unchecked;
use cuda_std::Global;

/// The most runs that one pass merges into one: the lanes of a warp.
pub const MAX_RUNS: u32 = 32;

/// How an array of runs is divided into tiles.
pub trait Division: Copy {
    /// Whether runs may turn out not to be ascending, because a user has made them. The splits of such runs may
    /// decrease from a tile to the next.
    const MAY_DESCEND: bool;
    /// Runs of a group.
    fn k(self) -> u32;
    /// Keys of a tile, but for the last one of a group.
    fn tile_keys(self) -> u32;
    /// How many keys earlier or later than that a tile may begin.
    fn rank_tolerance(self) -> u32;
    /// How many tiles there are in all.
    fn tiles(self) -> usize;
    /// Tile `t`.
    fn tile(self, t: usize) -> TileOfRuns;
    /// Where run `i`, below [`MAX_RUNS`], of the group that `tile` is in begins in the array, and how many keys it has.
    /// Runs from [`k`](Self::k) on are empty.
    fn extent_of(self, tile: TileOfRuns, i: u32) -> (usize, u32);
}

/// One group of up to [`MAX_RUNS`] runs of any lengths, which are one array together.
///
/// ```text
///   from    │ run 0      │ run 1 │ run 2           │ run 3 │        starts: 0, …, n, n, n
/// ```
#[derive(Clone, Copy)]
pub struct LongRuns {
    /// Where each run begins, and after the last one the array's end: [`MAX_RUNS`] and one more.
    pub starts: Global<usize>,
    /// Keys of the array. Below 2^32.
    pub n: usize,
    /// Keys of a tile.
    pub tile_keys: u32,
}

impl Division for LongRuns {
    const MAY_DESCEND: bool = true;
    #[inline(always)]
    fn k(self) -> u32 {
        MAX_RUNS
    }
    #[inline(always)]
    fn tile_keys(self) -> u32 {
        self.tile_keys
    }
    #[inline(always)]
    fn rank_tolerance(self) -> u32 {
        0
    }
    #[inline(always)]
    fn tiles(self) -> usize {
        self.n.div_ceil(self.tile_keys as usize)
    }
    #[inline(always)]
    fn tile(self, t: usize) -> TileOfRuns {
        TileOfRuns { group: 0, first_run: 0, length: self.n, rank: t * self.tile_keys as usize }
    }
    #[inline(always)]
    fn extent_of(self, _: TileOfRuns, i: u32) -> (usize, u32) {
        let start = self.starts.get(i as usize);
        (start, (self.starts.get(i as usize + 1) - start) as u32)
    }
}

/// Runs of any lengths, which are an array of `n` keys together, in a pass that merges `k` of them at a time: what its
/// kernels are told.
///
/// ```text
///   from    │ run 0      │ run 1 │ run 2           │ run 3 │ run 4       │ r │        k = 4: groups of four runs, the last one shorter
///   groups  │ 0                                            │ 1               │
///   tiles   │ 0   │ 1   │ 2   │ 3   │ 4   │ 5   │ 6   │ 7  │ 8   │ 9   │ 10  │ │ 11     a group has its own tiles, and perhaps an empty one
/// ```
///
/// Where groups begin is known on the device only. So that launches do not depend on that, tile 0 of group `g` is the
/// one whose number is `g` and the number of whole tiles before the group in the array: a group has as many tiles as it
/// needs, or one more.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OffsetRuns {
    /// Where the runs of the first pass begin, and after the last one the end: `count + 1` offsets that never decrease,
    /// from 0 to `n`.
    pub offsets: *const usize,
    /// How many runs the first pass has.
    pub count: usize,
    /// How many of these are one run of this pass, and of the next one. The first is not 0, and the second is `k` times
    /// the first.
    pub merged: [usize; 2],
    /// Keys of the array. Below 2^32.
    pub n: usize,
    /// How many groups there are: runs of the next pass.
    pub groups: usize,
    /// Runs of a group, from 2 to [`MAX_RUNS`].
    pub k: u32,
    /// Keys of a tile. Not 0.
    pub tile_keys: u32,
    /// How many keys earlier or later than at a multiple of that a tile may begin.
    pub rank_tolerance: u32,
}

impl OffsetRuns {
    /// [`Division::tiles`], for the host.
    pub const fn tile_count(self) -> usize {
        self.n / self.tile_keys as usize + self.groups
    }

    /// The division, of which `groups_of_tiles` has the group of each tile, or nothing.
    ///
    /// # Safety
    /// The fields are as they are described, and the offsets are not written during the launch.
    #[inline(always)]
    pub(in crate::kernels::sort) unsafe fn division(self, groups_of_tiles: Global<u32>) -> RunsOfOffsets {
        // SAFETY: the caller promises `count + 1` offsets.
        RunsOfOffsets { offsets: unsafe { Global::new(self.offsets, self.count + 1) }, groups_of_tiles, runs: self }
    }
}

/// The division of [`OffsetRuns`].
#[derive(Clone, Copy)]
pub(in crate::kernels::sort) struct RunsOfOffsets {
    offsets: Global<usize>,
    groups_of_tiles: Global<u32>,
    runs: OffsetRuns,
}

impl RunsOfOffsets {
    /// Where run `i` begins if `merged` runs of the first pass are one run, or the array's end if there are not so
    /// many.
    #[inline(always)]
    #[track_caller]
    fn start(self, i: usize, merged: usize) -> usize {
        self.offsets.get((i * merged).min(self.runs.count))
    }

    /// The number of the first tile of a group.
    #[inline(always)]
    #[track_caller]
    fn first_tile(self, group: usize) -> usize {
        let start = self.start(group, self.runs.merged[1]) as u32;
        // SAFETY: the host has set it so. A division by 0 would bring in the code of a panic.
        unsafe { assert_unchecked(self.runs.tile_keys != 0) };
        (start / self.runs.tile_keys) as usize + group
    }

    /// The group that `tile` is in.
    #[inline(always)]
    pub(in crate::kernels::sort) fn group_of(self, tile: TileOfRuns) -> u32 {
        // SAFETY: the host has set it so. A division by 0 would bring in the code of a panic.
        unsafe { assert_unchecked(self.runs.k != 0) };
        tile.first_run / self.runs.k
    }

    /// The group that has tile `t`: the last one whose first tile is not behind it.
    #[inline(always)]
    #[track_caller]
    fn group(self, t: usize) -> usize {
        if !self.groups_of_tiles.is_empty() {
            return self.groups_of_tiles.get(t) as usize;
        }
        last_where(self.runs.groups, |group| self.first_tile(group) <= t)
    }
}

impl Division for RunsOfOffsets {
    const MAY_DESCEND: bool = true;
    #[inline(always)]
    fn k(self) -> u32 {
        self.runs.k
    }
    #[inline(always)]
    fn tile_keys(self) -> u32 {
        self.runs.tile_keys
    }
    #[inline(always)]
    fn rank_tolerance(self) -> u32 {
        self.runs.rank_tolerance
    }
    #[inline(always)]
    fn tiles(self) -> usize {
        self.runs.tile_count()
    }
    /// An empty tile begins at the end of its group.
    #[inline(always)]
    fn tile(self, t: usize) -> TileOfRuns {
        let (number, merged) = (self.group(t), self.runs.merged[1]);
        let group = self.start(number, merged);
        let length = self.start(number + 1, merged) - group;
        let rank = ((t - self.first_tile(number)) * self.runs.tile_keys as usize).min(length);
        TileOfRuns { group, first_run: number as u32 * self.runs.k, length, rank }
    }
    #[inline(always)]
    fn extent_of(self, tile: TileOfRuns, i: u32) -> (usize, u32) {
        let (first, merged) = (tile.first_run as usize + i as usize, self.runs.merged[0]);
        // A group has no more runs than `k`.
        let (start, end) = (self.start(first, merged), self.start(first + 1, merged));
        (start, if i < self.runs.k { (end - start) as u32 } else { 0 })
    }
}

/// The last number below `count`, which is not 0, for which `holds`. It holds for 0, and for all numbers below one for
/// which it holds.
#[inline(always)]
pub(in crate::kernels::sort) fn last_where(count: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut last, mut others) = (0, count - 1);
    while others > 0 {
        let half = others.div_ceil(2);
        if holds(last + half) {
            last += half;
        }
        others -= half;
    }
    last
}

/// The passes of a sort: how many runs each of them merges into one.
#[derive(Clone, Copy, Debug)]
pub struct Passes {
    levels: u32,
}

impl Passes {
    /// Those that make one run of `runs`.
    pub const fn of(runs: usize) -> Self {
        let runs = if runs == 0 { 1 } else { runs };
        Self { levels: runs.next_power_of_two().trailing_zeros() }
    }

    /// How many passes are left.
    pub const fn left(self) -> u32 {
        self.levels.div_ceil(MAX_RUNS.trailing_zeros())
    }
}

impl Iterator for Passes {
    type Item = u32;

    /// As few passes as can be, and as alike.
    fn next(&mut self) -> Option<u32> {
        if self.levels == 0 {
            return None;
        }
        let levels = self.levels.div_ceil(self.left());
        self.levels -= levels;
        Some(1 << levels)
    }
}

/// An order of runs, other than that in which they lie, in which a pass takes them to form its groups.
///
/// ```text
///   i → step * i + offset modulo 2^b, among the first 2^b and then, with other numbers, among the last
///   0 1 2 3│4 5   →   2 1 0 3│4 5   →   5 1│0 2 3 4         b = 2, first 3 i + 2, then i + 3
/// ```
///
/// Keys alone may be merged in any order. In one that cannot be predicted, no input can be made of which the runs that
/// meet are slow to merge.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Shuffle {
    /// How many runs are reordered: the first ones, all of the same length.
    pub runs: u32,
    /// Any number: the order depends on it.
    pub random: u64,
}

impl Shuffle {
    /// The order in which runs lie.
    pub const NONE: Self = Self { runs: 0, random: 0 };

    /// The run that is number `i`, below `runs`.
    #[inline(always)]
    pub fn at(self, i: u32) -> u32 {
        let reach = 1 << (u32::BITS - 1 - self.runs.leading_zeros());
        let (a, b) = (self.random as u32, (self.random >> 32) as u32);
        let turn = |i: u32, step: u32, offset: u32| i.wrapping_mul(step | 1).wrapping_add(offset) & (reach - 1);
        let (i, others) = (if i < reach { turn(i, a, b) } else { i }, self.runs - reach);
        if i < others { i } else { others + turn(i - others, b, a) }
    }
}

/// Runs of `run` keys in an array of `n`, merged `k` at a time in tiles of `tile_keys`: what the kernels of a pass are
/// told.
///
/// ```compile_fail,E0451
/// # use kernels_gpu::kernels::sort::runs::{Runs, Shuffle};
/// // There is no way around `new`, which refuses runs of no keys.
/// let runs = Runs { n: 100, run: 0, k: 2, tile_keys: 32, rank_tolerance: 0, shuffle: Shuffle::NONE };
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Runs {
    n: usize,
    run: usize,
    k: u32,
    tile_keys: u32,
    rank_tolerance: u32,
    shuffle: Shuffle,
}

impl Runs {
    /// Runs in the order in which they lie. `n` is the length of the array, and `run` that of a run, but for the last
    /// one, which may be shorter; `k` runs form a group. A tile may begin up to `rank_tolerance` keys earlier or later
    /// than at a multiple of `tile_keys`.
    ///
    /// # Panics
    /// If `run` is 0 or 2^32 or more, `k` is not a power of two from 2 to [`MAX_RUNS`], or `tile_keys` is not more than
    /// twice `rank_tolerance`.
    pub const fn new(n: usize, run: usize, k: u32, tile_keys: u32, rank_tolerance: u32) -> Self {
        assert!(0 < run && run <= u32::MAX as usize, "a run has 1 to 2^32 - 1 keys");
        assert!(k.is_power_of_two() && 2 <= k && k <= MAX_RUNS, "a group has a power of two runs, from 2 to 32");
        assert!(tile_keys as u64 > 2 * rank_tolerance as u64, "a tile has more than twice the rank_tolerance");
        Self { n, run, k, tile_keys, rank_tolerance, shuffle: Shuffle::NONE }
    }

    /// As [`new`](Self::new), without checks, for runs that a kernel finds.
    ///
    /// # Safety
    /// [`new`](Self::new) does not panic for these arguments.
    #[inline(always)]
    pub(in crate::kernels::sort) const unsafe fn new_unchecked(
        n: usize,
        run: usize,
        k: u32,
        tile_keys: u32,
        rank_tolerance: u32,
    ) -> Self {
        Self { n, run, k, tile_keys, rank_tolerance, shuffle: Shuffle::NONE }
    }

    /// The same runs, taken in the order of `shuffle` to form groups.
    #[inline(always)]
    pub const fn shuffled(self, shuffle: Shuffle) -> Self {
        Self { shuffle, ..self }
    }

    /// Keys of the array.
    #[inline(always)]
    pub const fn keys(self) -> usize {
        self.n
    }
}

/// A tile: where its group is, and how many keys of the group come before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileOfRuns {
    /// Where the group begins.
    pub group: usize,
    /// Runs before the group.
    pub first_run: u32,
    /// Keys of the group.
    pub length: usize,
    /// Keys of the group before the tile, give or take the [`rank_tolerance`](Division::rank_tolerance).
    pub rank: usize,
}

impl Runs {
    const fn group(self) -> usize {
        self.run * self.k as usize
    }

    /// [`Division::tiles`], for constants.
    pub const fn tile_count(self) -> usize {
        let (whole, rest) = (self.n / self.group(), self.n % self.group());
        whole * self.group().div_ceil(self.tile_keys as usize) + rest.div_ceil(self.tile_keys as usize)
    }

    /// Where run `i` of the group that `tile` is in begins in the group: its end where the array has ended, and from
    /// [`k`](Self::k) on.
    #[inline(always)]
    fn start_of(self, tile: TileOfRuns, i: u32) -> usize {
        if i < self.k { (i as usize * self.run).min(tile.length) } else { tile.length }
    }

    /// Keys of run `i` of the group that `tile` is in.
    #[inline(always)]
    pub fn length_of(self, tile: TileOfRuns, i: u32) -> u32 {
        self.run.min(tile.length - self.start_of(tile, i)) as u32
    }
}

impl Division for Runs {
    const MAY_DESCEND: bool = false;
    #[inline(always)]
    fn k(self) -> u32 {
        self.k
    }
    #[inline(always)]
    fn tile_keys(self) -> u32 {
        self.tile_keys
    }
    #[inline(always)]
    fn rank_tolerance(self) -> u32 {
        self.rank_tolerance
    }
    #[inline(always)]
    fn tiles(self) -> usize {
        self.tile_count()
    }
    #[inline(always)]
    fn tile(self, t: usize) -> TileOfRuns {
        // SAFETY: `new`, the only way to make `Runs`, has checked the first three, and that `run` is below 2^32 and `k`
        // at most 32, so that their product does not wrap to 0. A division by 0 would bring in the code of a panic.
        unsafe { assert_unchecked(self.run != 0 && self.k != 0 && self.tile_keys != 0 && self.group() != 0) };
        let tiles_of_group = self.group().div_ceil(self.tile_keys as usize);
        // SAFETY: a positive number divided by another, rounded up.
        unsafe { assert_unchecked(tiles_of_group != 0) };
        let (number, tile) = (t / tiles_of_group, t % tiles_of_group);
        let (group, rank) = (number * self.group(), tile * self.tile_keys as usize);
        TileOfRuns { group, first_run: number as u32 * self.k, length: self.group().min(self.n - group), rank }
    }
    #[inline(always)]
    fn extent_of(self, tile: TileOfRuns, i: u32) -> (usize, u32) {
        let (number, mut start) = (tile.first_run + i, tile.group + self.start_of(tile, i));
        if i < self.k && number < self.shuffle.runs {
            start = self.shuffle.at(number) as usize * self.run;
        }
        (start, self.length_of(tile, i))
    }
}
