//! How many keys of each digit are in all tiles before one, while these are still being counted.
//!
//! ```text
//!   group      │ ····· 0 ····· │ ····· 1 ····· │ ····· 2 ····· │     of 32 tiles
//!   tile       │ 0 1 2 …    31 │ 32 33 …    63 │ 64 65 66 67 … │
//!   for 67       ───────────── sums of groups → │ 64 65 66        those of tiles before it in its group
//! ```
//!
//! Each tile publishes how many of its keys have each digit as soon as it knows. The last tile of a group adds up those of its group and publishes the
//! sum, and later the sum over all groups up to its own. So a tile reads what those before it in its group have published, and then goes back over groups
//! until one has published the latter. A tile waits only for tiles before it, whose blocks have begun, since tiles are taken in order.
//!
//! What is published is one word each, which says itself whether it is there: it carries the number of the sweep, modulo 4. So nothing has to be cleared
//! between two sweeps, and no other memory has to be ordered with it. Counts of two digits take one word for each tile.

use super::DIGITS;
use cuda_std::prelude::*;

/// The most keys of a tile: a count has 15 bits.
pub const MOST_KEYS: usize = (1 << COUNT_BITS) - 1;
const COUNT_BITS: u32 = 15;

/// Tiles of a group.
const GROUP: u32 = 32;

/// Words of a tile, which have the counts of two digits each.
pub(super) const TILE_WORDS: u32 = DIGITS / 2;

/// Where the epoch of a tile's word begins, above both counts.
const TILE_EPOCH: u32 = 2 * COUNT_BITS;

/// Words for so many tiles.
pub(super) const fn words(tiles: usize) -> usize {
    groups(tiles) * DIGITS as usize * 2 + tiles * TILE_WORDS as usize
}

/// Groups that are before another one.
const fn groups(tiles: usize) -> usize {
    tiles.saturating_sub(1) / GROUP as usize
}

/// Sums of groups that are on their way at once.
const BATCH: usize = 3;

/// Where the epoch of a group's sum begins, and what tells that it is of all groups up to this one.
const EPOCH: u32 = 32;
const ALL_BEFORE: u64 = 1 << 34;

/// What tells which sweep something is of: another number than that of the sweep before, and than 0 for the first one.
#[inline(always)]
fn epoch(sweep: u32) -> u32 {
    (sweep + 1) % 4
}

/// What tiles publish.
#[derive(Clone, Copy)]
pub(super) struct Published {
    groups: GlobalMut<u64>,
    tiles: GlobalMut<u32>,
}

impl Published {
    /// At `words`, for so many tiles.
    ///
    /// # Safety
    /// There are as many as [`words`] says, which nothing else uses, at an address for numbers of 8 bytes.
    #[inline(always)]
    pub unsafe fn new(words: *mut u32, tiles: usize) -> Self {
        let of_groups = groups(tiles) * DIGITS as usize;
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                groups: GlobalMut::new(words.cast(), of_groups),
                tiles: GlobalMut::new(words.wrapping_add(2 * of_groups), tiles * TILE_WORDS as usize),
            }
        }
    }

    /// Sets all to 0 before the first sweep: element `first`, and one in each `step`.
    #[inline(always)]
    pub fn clear(self, first: usize, step: usize) {
        let mut i = first;
        while i < self.groups.len() {
            self.groups.set(i, 0);
            i += step;
        }
        let mut i = first;
        while i < self.tiles.len() {
            self.tiles.set(i, 0);
            i += step;
        }
    }

    /// The index of word `word` of `tile`.
    #[inline(always)]
    fn of_tile(tile: u32, word: u32) -> usize {
        (tile * TILE_WORDS + word) as usize
    }

    /// Publishes how many keys of `tile` have each of both digits of `word`, the lower one first.
    #[inline(always)]
    #[track_caller]
    pub fn publish(self, sweep: u32, tile: u32, word: u32, (lower, upper): (u32, u32)) {
        self.tiles.store(Self::of_tile(tile, word), epoch(sweep) << TILE_EPOCH | upper << COUNT_BITS | lower);
    }

    /// What `tile` has published in `word`, as soon as it has; `read` is what has been read there before.
    #[inline(always)]
    #[track_caller]
    fn wait_for_tile(self, sweep: u32, tile: u32, word: u32, mut read: u32) -> (u32, u32) {
        while read >> TILE_EPOCH != epoch(sweep) {
            read = self.tiles.load(Self::of_tile(tile, word));
        }
        (read & MOST_KEYS as u32, read >> COUNT_BITS & MOST_KEYS as u32)
    }

    /// Publishes the sum of `group`, or of all up to it.
    #[inline(always)]
    #[track_caller]
    fn publish_group(self, sweep: u32, group: u32, digit: u32, sum: u32, of_all: bool) {
        let flags = (epoch(sweep) as u64) << EPOCH | if of_all { ALL_BEFORE } else { 0 };
        self.groups.store((group * DIGITS + digit) as usize, flags | sum as u64);
    }

    /// The sum of `digit` over all groups before `group`.
    #[inline(always)]
    #[track_caller]
    fn before_group(self, sweep: u32, group: u32, digit: u32, mut read: [u64; BATCH]) -> u32 {
        let (mut left, mut sum) = (group, 0u32);
        let load = |group: u32| self.groups.load((group * DIGITS + digit) as usize);
        while left > 0 {
            for i in 0..BATCH as u32 {
                if i < left {
                    let mut own = read[i as usize];
                    while (own >> EPOCH) as u32 % 4 != epoch(sweep) {
                        own = load(left - 1 - i);
                    }
                    sum = sum.wrapping_add(own as u32);
                    if own & ALL_BEFORE != 0 {
                        return sum;
                    }
                }
            }
            left = left.saturating_sub(BATCH as u32);
            read = self.groups_before(left, digit);
        }
        sum
    }

    /// What the last groups before `group` have published of `digit` by now, the last one first.
    #[inline(always)]
    #[track_caller]
    fn groups_before(self, group: u32, digit: u32) -> [u64; BATCH] {
        let mut read = [0; BATCH];
        for i in 0..BATCH as u32 {
            if i < group {
                read[i as usize] = self.groups.load(((group - 1 - i) * DIGITS + digit) as usize);
            }
        }
        read
    }

    /// Adds to the distances of all digits how many keys of them are in the tiles before `tile`, whose own counts have been published.
    ///
    /// # Safety
    /// All `NT` threads of the block make this call, and barriers follow before the distances are used otherwise, and before `sums`, of
    /// [`DIGITS`] words that are 0, are.
    #[inline(always)]
    pub unsafe fn look_back<const NT: usize, const OWN: usize>(
        self,
        sweep: u32,
        tile: u32,
        distances: Shared<u32>,
        sums: Shared<u32>,
    ) {
        let (group, of_group) = (tile / GROUP, tile % GROUP);
        let (word, share) = (thread::thread_idx_x() % TILE_WORDS, thread::thread_idx_x() / TILE_WORDS);
        let shares = const { NT as u32 / TILE_WORDS };
        let number = |i: usize| share + i as u32 * shares;
        // All that is read is on its way at once.
        let of_groups = self.groups_before(group, thread::thread_idx_x() % DIGITS);
        let mut read = [0; OWN];
        for i in 0..OWN {
            if number(i) < of_group && share < shares {
                read[i] = self.tiles.load(Self::of_tile(group * GROUP + number(i), word));
            }
        }
        let (mut lower, mut upper) = (0, 0);
        for i in 0..OWN {
            if number(i) < of_group && share < shares {
                let of_tile = self.wait_for_tile(sweep, group * GROUP + number(i), word, read[i]);
                lower += of_tile.0;
                upper += of_tile.1;
            }
        }
        sums.fetch_add(2 * word, lower);
        sums.fetch_add(2 * word + 1, upper);
        thread::sync_threads();
        let (mut digit, mut read) = (thread::thread_idx_x(), of_groups);
        while digit < DIGITS {
            let sum = sums.get(digit);
            let is_last = of_group + 1 == GROUP && (group as usize) < self.groups.len() / DIGITS as usize;
            let mut of_all = sum;
            if is_last {
                let own = self.wait_for_tile(sweep, tile, digit / 2, self.tiles.load(Self::of_tile(tile, digit / 2)));
                of_all += if digit.is_multiple_of(2) { own.0 } else { own.1 };
                self.publish_group(sweep, group, digit, of_all, group == 0);
            }
            let before = self.before_group(sweep, group, digit, read);
            if is_last && group > 0 {
                self.publish_group(sweep, group, digit, of_all.wrapping_add(before), true);
            }
            distances.set(digit, distances.get(digit).wrapping_add(sum).wrapping_add(before));
            digit += NT as u32;
            if const { NT < DIGITS as usize } {
                read = self.groups_before(group, digit % DIGITS);
            }
        }
    }
}

/// How many tiles of its group a thread of `threads` reads, at most.
pub const fn own_tiles(threads: usize) -> usize {
    (GROUP as usize - 1).div_ceil(threads / TILE_WORDS as usize)
}
