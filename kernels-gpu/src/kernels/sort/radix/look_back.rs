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
//! The counts of a tile are put where its keys have come from: these have all been read by then, and the next sweep writes there anew. A word for each
//! tile tells for which sweep they are there. The sum of a group is one number of 64 bits, which says itself whether it is there: it carries the number
//! of the sweep, modulo 4. So nothing has to be cleared between two sweeps.

use super::DIGITS;
use cuda_std::prelude::*;

/// The most keys of a tile, whose counts have 16 bits each.
pub const MOST_KEYS: usize = u16::MAX as usize;

/// Tiles of a group.
const GROUP: u32 = 32;

/// Words of a tile, which have the counts of two digits each. A tile has no fewer keys, but for the last one, whose counts nothing reads.
pub(super) const TILE_WORDS: u32 = DIGITS / 2;

/// Words for so many tiles.
pub(super) const fn words(tiles: usize) -> usize {
    groups(tiles) * DIGITS as usize * 2 + tiles
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
    /// For each tile how many sweeps have its counts.
    counted: GlobalMut<u32>,
}

/// Where the counts of tiles of `tile` keys are: among the keys that a sweep reads.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    words: GlobalMut<u32>,
    tile: u32,
}

impl Counts {
    /// # Safety
    /// At `keys` are `n` keys of 4 bytes, and tiles have no fewer than [`TILE_WORDS`], but for the last one. Each is written after its keys have been
    /// read.
    #[inline(always)]
    pub unsafe fn new<B>(keys: *mut B, n: u32, tile: u32) -> Self {
        // SAFETY: `n` keys of 4 bytes are as many words. Word `word < TILE_WORDS` of a tile is below the tile's end, as
        // a tile has no fewer keys, but for the last, whose counts are neither set nor read.
        Self { words: unsafe { GlobalMut::new(keys.cast(), n as usize) }, tile }
    }

    /// The index of word `word` of `tile`.
    #[inline(always)]
    fn at(self, tile: u32, word: u32) -> usize {
        (tile * self.tile + word) as usize
    }

    /// Sets how many keys of `tile` have each of both digits of `word`, the lower one first.
    #[inline(always)]
    #[track_caller]
    pub fn set(self, tile: u32, word: u32, (lower, upper): (u32, u32)) {
        self.words.store(self.at(tile, word), upper << 16 | lower);
    }

    /// The same, as it has been set.
    #[inline(always)]
    #[track_caller]
    fn of(self, tile: u32, word: u32) -> (u32, u32) {
        let both = self.words.load(self.at(tile, word));
        (both & 0xffff, both >> 16)
    }
}

impl Published {
    /// At `words`, for so many tiles.
    ///
    /// # Safety
    /// There are as many as [`words`] says, which nothing else uses, at an address for numbers of 8 bytes.
    #[inline(always)]
    pub unsafe fn new(words: *mut u32, tiles: usize) -> Self {
        let of_groups = groups(tiles) * DIGITS as usize;
        // SAFETY: `groups` numbers of 8 bytes are `2 * of_groups` words, at the promised alignment, and `tiles` words
        // follow: together `words(tiles)`.
        unsafe {
            Self {
                groups: GlobalMut::new(words.cast(), of_groups),
                counted: GlobalMut::new(words.wrapping_add(2 * of_groups), tiles),
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
        while i < self.counted.len() {
            self.counted.set(i, 0);
            i += step;
        }
    }

    /// Notes that the counts of `tile` have been set, by threads that have come to a barrier. One thread does.
    #[inline(always)]
    #[track_caller]
    pub fn note_counted(self, sweep: u32, tile: u32) {
        thread::device_fence();
        self.counted.store(tile as usize, sweep + 1);
    }

    /// Waits until the counts of `tile` have been set. After another barrier threads see them.
    #[inline(always)]
    #[track_caller]
    fn wait_for(self, sweep: u32, tile: u32) {
        while self.counted.load(tile as usize) <= sweep {}
        thread::device_fence();
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
        counts: Counts,
        distances: Shared<u32>,
        sums: Shared<u32>,
    ) {
        let (group, of_group) = (tile / GROUP, tile % GROUP);
        let (word, share) = (thread::thread_idx_x() % TILE_WORDS, thread::thread_idx_x() / TILE_WORDS);
        let shares = const { NT as u32 / TILE_WORDS };
        let first = group * GROUP + share;
        // How many tiles of the group are this thread's.
        let own = if share < shares && share < of_group { (of_group - share).div_ceil(shares) } else { 0 };
        let of_groups = self.groups_before(group, thread::thread_idx_x() % DIGITS);
        // One warp waits for all, so that no other one has a fence to pass.
        if thread::thread_idx_x() < of_group {
            self.wait_for(sweep, group * GROUP + thread::thread_idx_x());
        }
        thread::sync_threads();
        let (mut lower, mut upper) = (0, 0);
        for i in 0..OWN as u32 {
            if i < own {
                let of_tile = counts.of(first + i * shares, word);
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
                let own = counts.of(tile, digit / 2);
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
