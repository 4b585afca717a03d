//! Decoupled look-back over 256 counts per tile: for each digit, the number of keys in earlier tiles, while these are
//! still being counted.
//!
//! ```text
//!   group      │ ····· 0 ····· │ ····· 1 ····· │ ····· 2 ····· │     of 32 tiles
//!   tile       │ 0 1 2 …    31 │ 32 33 …    63 │ 64 65 66 67 … │
//!   for 67       ─────────── sums of groups ─► │ 64 65 66        counts of the earlier tiles of its group
//! ```
//!
//! A tile publishes its histogram as soon as it is known. The last tile of a group publishes the sum over the group,
//! and later the sum over all groups up to its own. A tile therefore reads the histograms of earlier tiles of its
//! group. It then goes back over groups until one has a sum over all groups. A tile waits only for earlier tiles.
//! Running blocks hold them, since tiles are taken in order.
//!
//! The counts of a tile overwrite its input keys: these have been read by then, and the next pass writes there anyway.
//! A word per tile tells the number of the last pass with its counts. The sum of a group is a 64-bit number that
//! contains the number of the pass modulo 4. Nothing therefore has to be cleared between two passes.

use super::DIGITS;
use cuda_std::prelude::*;

/// Maximum number of keys per tile: a count has 16 bits.
pub const MOST_KEYS: usize = u16::MAX as usize;

/// Tiles per group.
const GROUP: u32 = 32;

/// Words of counts per tile, two digits each. A tile has at least this many keys, except for the last one. Its counts
/// are not read.
pub(super) const TILE_WORDS: u32 = DIGITS / 2;

/// Number of words for `tiles` tiles.
pub(super) const fn words(tiles: usize) -> usize {
    groups(tiles) * DIGITS as usize * 2 + tiles
}

/// Number of groups that another group follows.
const fn groups(tiles: usize) -> usize {
    tiles.saturating_sub(1) / GROUP as usize
}

/// Sums of groups that a thread loads at once.
const BATCH: usize = 3;

/// Position of the epoch in the sum of a group, and the flag of a sum over all groups up to this one.
const EPOCH: u32 = 32;
const ALL_BEFORE: u64 = 1 << 34;

/// The number of a pass in published words: different from the number of the pass before, and from 0 for the first
/// pass.
#[inline(always)]
fn epoch(sweep: u32) -> u32 {
    (sweep + 1) % 4
}

/// The words that tiles publish.
#[derive(Clone, Copy)]
pub(super) struct Published {
    groups: GlobalMut<u64>,
    /// For each tile, the number of passes with counts so far.
    counted: GlobalMut<u32>,
}

/// The counts of tiles of `tile` keys, which overwrite the keys that a pass reads.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    words: GlobalMut<u32>,
    tile: u32,
}

impl Counts {
    /// # Safety
    /// `keys` points to `n` keys of 4 bytes, and tiles have at least [`TILE_WORDS`] keys, except for the last one. The
    /// counts of a tile are written after its keys have been read.
    #[inline(always)]
    pub unsafe fn new<B>(keys: *mut B, n: u32, tile: u32) -> Self {
        // SAFETY: `n` keys of 4 bytes are `n` words. Word `word < TILE_WORDS` is inside a tile, which has at least
        // `TILE_WORDS` keys. Counts of the last tile, which may be shorter, are not accessed.
        Self { words: unsafe { GlobalMut::new(keys.cast(), n as usize) }, tile }
    }

    /// The index of word `word` of `tile`.
    #[inline(always)]
    fn at(self, tile: u32, word: u32) -> usize {
        (tile * self.tile + word) as usize
    }

    /// Sets the counts of `tile` for the two digits of `word`, the lower digit first.
    #[inline(always)]
    #[track_caller]
    pub fn set(self, tile: u32, word: u32, (lower, upper): (u32, u32)) {
        self.words.store(self.at(tile, word), upper << 16 | lower);
    }

    /// The counts that [`set`](Self::set) has stored.
    #[inline(always)]
    #[track_caller]
    fn of(self, tile: u32, word: u32) -> (u32, u32) {
        let both = self.words.load(self.at(tile, word));
        (both & 0xffff, both >> 16)
    }
}

impl Published {
    /// The words at `words`, for `tiles` tiles.
    ///
    /// # Safety
    /// `words` points to [`words`] words that nothing else uses, aligned to 8 bytes.
    #[inline(always)]
    pub unsafe fn new(words: *mut u32, tiles: usize) -> Self {
        let of_groups = groups(tiles) * DIGITS as usize;
        // SAFETY: `of_groups` numbers of 8 bytes are `2 * of_groups` words, at an address that the caller aligns to 8
        // bytes. With the `tiles` words after them they are `words(tiles)`.
        unsafe {
            Self {
                groups: GlobalMut::new(words.cast(), of_groups),
                counted: GlobalMut::new(words.wrapping_add(2 * of_groups), tiles),
            }
        }
    }

    /// Clears, before the first pass, element `first` and every `step`-th element after it.
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

    /// Publishes that the counts of `tile` are set. One thread makes this call, after a barrier behind the writes.
    #[inline(always)]
    #[track_caller]
    pub fn note_counted(self, sweep: u32, tile: u32) {
        thread::device_fence();
        self.counted.store(tile as usize, sweep + 1);
    }

    /// Waits until the counts of `tile` are set. They are visible to the block after the next barrier.
    #[inline(always)]
    #[track_caller]
    fn wait_for(self, sweep: u32, tile: u32) {
        while self.counted.load(tile as usize) <= sweep {}
        thread::device_fence();
    }

    /// Publishes the sum of `group`, or of all groups up to it if `of_all`.
    #[inline(always)]
    #[track_caller]
    fn publish_group(self, sweep: u32, group: u32, digit: u32, sum: u32, of_all: bool) {
        let flags = (epoch(sweep) as u64) << EPOCH | if of_all { ALL_BEFORE } else { 0 };
        self.groups.store((group * DIGITS + digit) as usize, flags | sum as u64);
    }

    /// The sum of `digit` over all groups before `group`. `read` is the result of
    /// [`groups_before`](Self::groups_before).
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

    /// The published sums of `digit` of the last groups before `group`, in descending order. 0 if a sum is not
    /// published.
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

    /// Adds, to the distance of each digit, the number of its keys in the tiles before `tile`. The counts of `tile`
    /// have been published.
    ///
    /// # Safety
    /// All `NT` threads of the block make this call. `sums` has [`DIGITS`] words, which are 0. A barrier comes before
    /// the next use of `distances` or `sums`.
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
        // Number of tiles of the group that this thread reads.
        let own = if share < shares && share < of_group { (of_group - share).div_ceil(shares) } else { 0 };
        let of_groups = self.groups_before(group, thread::thread_idx_x() % DIGITS);
        // Threads of one warp wait for all tiles, so that the other warps execute no fence.
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

/// Maximum number of tiles of its group that a thread reads, in a block of `threads` threads.
pub const fn own_tiles(threads: usize) -> usize {
    (GROUP as usize - 1).div_ceil(threads / TILE_WORDS as usize)
}
