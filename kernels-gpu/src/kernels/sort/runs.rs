//! Division of an array of sorted runs for a pass that merges K runs into one.
//!
//! ```text
//!   from    │ run 0 │ run 1 │ run 2 │ run 3 │ run 4 │ run 5 │ r │     K = 4: groups of four runs, the last one shorter
//!   groups  │ 0                             │ 1                 │
//!   tiles   │  0  │  1  │  2  │  3  │ … │ 9 │ 10 │ 11 │  …  │   │     a group has its own tiles; its last one is short
//! ```

use core::hint::assert_unchecked;
use cuda_std::Global;

/// Upper limit on the runs that one pass merges into one: the lanes of a warp.
pub const MAX_RUNS: u32 = 32;

/// Division of an array of runs into tiles.
pub trait Division: Copy {
    /// Whether runs may be out of order, because a user has made them. The splits of such runs may decrease from one
    /// tile to the next.
    const MAY_DESCEND: bool;
    /// Runs of a group.
    fn k(self) -> u32;
    /// Keys of a tile, except the last tile of a group.
    fn tile_keys(self) -> u32;
    /// Number of keys by which a tile may begin earlier or later than its rank.
    fn rank_tolerance(self) -> u32;
    /// Number of tiles in all.
    fn tiles(self) -> usize;
    /// Tile `t`.
    fn tile(self, t: usize) -> TileOfRuns;
    /// Start in the array, and number of keys, of run `i` of the group of `tile`. `i` is below [`MAX_RUNS`]. Runs from
    /// [`k`](Self::k) on are empty.
    fn extent_of(self, tile: TileOfRuns, i: u32) -> (usize, u32);
}

/// Runs of any lengths that make up an array of `n` keys, in a pass that merges `k` of them at a time. Argument of the
/// kernels of such a pass.
///
/// ```text
///   from    │ run 0      │ run 1 │ run 2           │ run 3 │ run 4       │ r │   k = 4: the last group is short
///   groups  │ 0                                            │ 1               │
///   tiles   │ 0   │ 1   │ 2   │ 3   │ 4   │ 5   │ 6   │ 7  │ 8   │ 9   │ 10  │ │ 11     own tiles, one perhaps empty
/// ```
///
/// Only the device knows where groups begin, and launches must not depend on it. Tile 0 of group `g` therefore has
/// number `g` plus the number of whole tiles in the array before the group. A group has the tiles that it needs, or one
/// more.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OffsetRuns {
    /// Starts of the runs of the first pass, and the end: `count + 1` nondecreasing offsets from 0 to `n`.
    pub offsets: *const usize,
    /// Number of runs of the first pass.
    pub count: usize,
    /// Number of these runs in one run of this pass, and in one run of the next pass. The first is not 0, and the
    /// second is `k` times the first.
    pub merged: [usize; 2],
    /// Keys of the array. Below 2^32.
    pub n: usize,
    /// Number of groups, which are the runs of the next pass.
    pub groups: usize,
    /// Runs of a group, from 2 to [`MAX_RUNS`].
    pub k: u32,
    /// Keys of a tile. Not 0.
    pub tile_keys: u32,
    /// Number of keys by which a tile may begin earlier or later than at a multiple of `tile_keys`.
    pub rank_tolerance: u32,
}

impl OffsetRuns {
    /// [`Division::tiles`], for the host.
    pub const fn tile_count(self) -> usize {
        self.n / self.tile_keys as usize + self.groups
    }

    /// The division. `groups_of_tiles` has the group of each tile, or is empty.
    ///
    /// # Safety
    /// The fields meet their descriptions, and nothing writes the offsets during the launch.
    #[inline(always)]
    pub(in crate::kernels::sort) unsafe fn division(self, groups_of_tiles: Global<u32>) -> RunsOfOffsets {
        // SAFETY: the caller ensures `count + 1` offsets.
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
    /// Start of run `i` if `merged` runs of the first pass are one run, or the array's end if there is no such run.
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
        // SAFETY: the caller of `division` ensures that `tile_keys` is not 0. The assumption removes the code of a
        // panic for a division by 0.
        unsafe { assert_unchecked(self.runs.tile_keys != 0) };
        (start / self.runs.tile_keys) as usize + group
    }

    /// The group of `tile`.
    #[inline(always)]
    pub(in crate::kernels::sort) fn group_of(self, tile: TileOfRuns) -> u32 {
        // SAFETY: the caller of `division` ensures that `k` is at least 2. The assumption removes the code of a panic
        // for a division by 0.
        unsafe { assert_unchecked(self.runs.k != 0) };
        tile.first_run / self.runs.k
    }

    /// The group of tile `t`: the last group whose first tile is at or before `t`.
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
        // A group has at most `k` runs.
        let (start, end) = (self.start(first, merged), self.start(first + 1, merged));
        (start, if i < self.runs.k { (end - start) as u32 } else { 0 })
    }
}

/// The last number below `count` for which `holds` is true. `count` is not 0. `holds` is true for 0 and monotone: if it
/// is true for a number, it is true for all smaller ones.
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

/// The passes of a sort, as the number of runs that each pass merges into one.
#[derive(Clone, Copy, Debug)]
pub struct Passes {
    levels: u32,
}

impl Passes {
    /// The passes that merge `runs` runs into one.
    pub const fn of(runs: usize) -> Self {
        let runs = if runs == 0 { 1 } else { runs };
        Self { levels: runs.next_power_of_two().trailing_zeros() }
    }

    /// Number of passes left.
    pub const fn left(self) -> u32 {
        self.levels.div_ceil(MAX_RUNS.trailing_zeros())
    }
}

impl Iterator for Passes {
    type Item = u32;

    /// The fewest passes, with numbers of runs that are as equal as possible.
    fn next(&mut self) -> Option<u32> {
        if self.levels == 0 {
            return None;
        }
        let levels = self.levels.div_ceil(self.left());
        self.levels -= levels;
        Some(1 << levels)
    }
}

/// An order in which a pass takes runs to form its groups, other than their order in the array.
///
/// ```text
///   i → step * i + offset modulo 2^b, among the first 2^b and then, with other numbers, among the last
///   0 1 2 3│4 5   →   2 1 0 3│4 5   →   5 1│0 2 3 4         b = 2, first 3 i + 2, then i + 3
/// ```
///
/// Keys without values may be merged in any order. An unpredictable order prevents inputs whose runs are slow to merge
/// with each other.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Shuffle {
    /// Number of runs that are reordered: the first ones, all of the same length.
    pub runs: u32,
    /// Any number: the seed of the order.
    pub random: u64,
}

impl Shuffle {
    /// The order of the array.
    pub const NONE: Self = Self { runs: 0, random: 0 };

    /// The run that is taken as number `i`, below `runs`.
    #[inline(always)]
    pub fn at(self, i: u32) -> u32 {
        let reach = 1 << (u32::BITS - 1 - self.runs.leading_zeros());
        let (a, b) = (self.random as u32, (self.random >> 32) as u32);
        let turn = |i: u32, step: u32, offset: u32| i.wrapping_mul(step | 1).wrapping_add(offset) & (reach - 1);
        let (i, others) = (if i < reach { turn(i, a, b) } else { i }, self.runs - reach);
        if i < others { i } else { others + turn(i - others, b, a) }
    }
}

/// Runs of `run` keys in an array of `n`, merged `k` at a time in tiles of `tile_keys`. Argument of the kernels of a
/// pass.
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
    /// Runs in the order of the array. `n` is the length of the array, and `run` the length of a run; the last run may
    /// be shorter. `k` runs form a group. A tile may begin up to `rank_tolerance` keys earlier or later than at a
    /// multiple of `tile_keys`.
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

    /// [`new`](Self::new) without checks, for runs that a kernel finds.
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

/// A tile: its group, and its rank in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileOfRuns {
    /// Start of the group.
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

    /// Start of run `i` in the group of `tile`. For runs behind the end of the array, and from [`k`](Self::k) on, the
    /// end of the group.
    #[inline(always)]
    fn start_of(self, tile: TileOfRuns, i: u32) -> usize {
        if i < self.k { (i as usize * self.run).min(tile.length) } else { tile.length }
    }

    /// Keys of run `i` of the group of `tile`.
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
        // SAFETY: `new`, and the caller of `new_unchecked`, ensure that `run`, `k` and `tile_keys` are not 0. `run` is
        // below 2^32 and `k` at most 32, so that their product does not wrap to 0. The assumption removes the code of a
        // panic for a division by 0.
        unsafe { assert_unchecked(self.run != 0 && self.k != 0 && self.tile_keys != 0 && self.group() != 0) };
        let tiles_of_group = self.group().div_ceil(self.tile_keys as usize);
        // SAFETY: the rounded-up quotient of two positive numbers is at least 1.
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
