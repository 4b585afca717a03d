//! What the kernels of the divisions tell each other, in words of global memory.
//!
//! ```text
//!   segment    keys that are divided next: where they are, and by which digits
//!   tile       a part of a segment that one block counts or moves at a time
//!   counter    how many keys of a segment have a digit; then where the next one goes
//!   bucket     neighbouring keys, in their final place as a whole, that one block sorts
//!   rest       keys that all divisions have left too many for a block
//! ```

use super::digits::{Digits, Number, Scale};
use super::{DIGITS_CAPACITY, MOST_LEVELS, keys_per_counter};
use crate::key::Bits;
use cuda_std::prelude::*;

/// Where the lists are, in words, and how many words there are in all.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pending: u32,
    segments: u32,
    tiles: u32,
    counters: u32,
    buckets: u32,
    rest: u32,
    /// Words in all.
    pub words: u32,
}

/// Words of the list's heads: for each level how many segments, tiles and counters there are; and how many buckets and rests.
pub const HEAD_WORDS: usize = MOST_LEVELS * 3 + 3;

/// Words of a pending segment.
const PENDING: usize = 3;
/// Words of a segment.
const SEGMENT: usize = 14;
/// Words of a bucket or of a rest.
const BUCKET: usize = 2;

impl Layout {
    /// For `n` keys that are divided up to `levels` times, in tiles of `tile` and buckets of at most `bucket`.
    pub const fn of(n: usize, levels: u32, tile: usize, bucket: usize) -> Self {
        // Segments have more keys than a bucket, but for the first one.
        let segments = n / bucket + 1;
        let pending = HEAD_WORDS;
        let all = pending + segments * PENDING;
        let tiles = all + segments * SEGMENT;
        let counters = tiles + n / tile + segments;
        let buckets = counters + n / keys_per_counter(bucket) + DIGITS_CAPACITY as usize;
        // Between two digits of a segment that have too many keys for a block, any two neighbouring buckets have more than one bucket's
        // keys together; and of those of equal keys all but one are full. At each level there are at most as many segments, and
        // digits with too many keys, as there are full buckets.
        let most_buckets = (2 + 2 * levels as usize) * segments;
        let rest = buckets + most_buckets * BUCKET;
        let words = rest + segments * BUCKET;
        assert!(words <= u32::MAX as usize, "there are no more keys than MOST_KEYS");
        Self {
            pending: pending as u32,
            segments: all as u32,
            tiles: tiles as u32,
            counters: counters as u32,
            buckets: buckets as u32,
            rest: rest as u32,
            words: words as u32,
        }
    }
}

/// What all kernels of the divisions of an array are told.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The lists, of which the first [`HEAD_WORDS`] are 0 before the first kernel. Nothing but these kernels writes any.
    pub words: *mut u32,
    /// What `detect_runs` has found, or zeros.
    pub order: *mut u32,
    /// Where the lists are: [`Layout::of`] the numbers below.
    pub at: Layout,
    /// How many keys there are: at most [`MOST_KEYS`](super::MOST_KEYS).
    pub n: u32,
    /// How often they are divided, at most.
    pub levels: u32,
    /// Keys of a tile.
    pub tile: u32,
    /// Keys of a bucket, at most.
    pub bucket: u32,
    /// Whether keys come with their indices, so that equal ones keep their order: 1, or else 0.
    pub indexed: u32,
}

impl Job {
    /// For `n` keys, and `words` of [`Layout::of`] these numbers.
    pub const fn new(
        (words, order): (*mut u32, *mut u32),
        n: usize,
        levels: u32,
        (tile, bucket): (usize, usize),
        indexed: bool,
    ) -> Self {
        let at = Layout::of(n, levels, tile, bucket);
        let (tile, bucket) = (tile as u32, bucket as u32);
        Self { words, order, n: n as u32, levels, tile, bucket, indexed: indexed as u32, at }
    }

    /// How many tiles so many keys have.
    #[inline(always)]
    pub(super) fn tiles(&self, len: u32) -> u32 {
        len.div_ceil(self.tile.max(1))
    }
}

/// Where keys are, and what belongs to them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Elements<B, V> {
    /// The keys.
    pub keys: *mut B,
    /// Where each was at first; before the first division nothing is there.
    pub indices: *mut u32,
    /// Their values, if there are any.
    pub values: *mut V,
}

impl<B: Bits, V: Word> Elements<B, V> {
    /// The arrays, of `n` elements each; of indices and of values only if there are any.
    ///
    /// # Safety
    /// That is what they have, and no other thread uses an element while one writes it.
    #[inline(always)]
    pub(super) unsafe fn arrays(self, n: u32, has_indices: bool, has_values: bool) -> Arrays<B, V> {
        let n = n as usize;
        // SAFETY: the caller's promise.
        unsafe {
            let values = GlobalMut::new(self.values, if has_values { n } else { 0 });
            let indices = GlobalMut::new(self.indices, if has_indices { n } else { 0 });
            Arrays { keys: GlobalMut::new(self.keys, n), indices, values }
        }
    }
}

/// What is at [`Elements`].
#[derive(Clone, Copy)]
pub(super) struct Arrays<B, V> {
    pub keys: GlobalMut<B>,
    pub indices: GlobalMut<u32>,
    pub values: GlobalMut<V>,
}

impl<B: Bits, V: Word> Arrays<B, V> {
    /// `len` elements from index `start` on.
    #[inline(always)]
    #[track_caller]
    pub fn slice(self, start: u32, len: u32) -> Self {
        let (start, len) = (start as usize, len as usize);
        let values = if self.values.is_empty() { self.values } else { self.values.slice(start, len) };
        Self { keys: self.keys.slice(start, len), indices: self.indices.slice(start, len), values }
    }

    /// Sets element `i`: its key, its index, and its value if there are values.
    #[inline(always)]
    #[track_caller]
    pub fn set(self, i: u32, (key, index, value): (B, u32, V)) {
        self.keys.set(i as usize, key);
        self.indices.set(i as usize, index);
        if !self.values.is_empty() {
            self.values.set(i as usize, value);
        }
    }
}

/// A segment whose digits are not chosen yet.
#[derive(Clone, Copy)]
pub(super) struct Pending {
    pub start: u32,
    pub len: u32,
    pub first_tile: u32,
}

/// Keys that are divided.
#[derive(Clone, Copy)]
pub(super) struct Segment<B> {
    pub start: u32,
    pub len: u32,
    /// Number of its first tile.
    pub first_tile: u32,
    /// Number of its first counter.
    pub counters: u32,
    /// Whether the keys of a digit are all equal.
    pub exact: bool,
    /// Whether all keys are equal, so that they stay where they are.
    pub skipped: bool,
    pub number: Number<B>,
    pub digits: Digits<B>,
}

/// What becomes of a bucket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// To be sorted.
    Sort,
    /// To be copied: equal keys.
    Copy,
}

/// Keys that one block puts to their places.
#[derive(Clone, Copy)]
pub(super) struct Bucket {
    pub start: u32,
    pub len: u32,
    /// Whether they are in the scratch array.
    pub in_scratch: bool,
    pub work: Work,
    /// Whether sorting them by their digits has failed.
    pub failed: bool,
}

/// Flags of a segment.
const EXACT: u32 = 1;
const IS_INDEX: u32 = 2;

/// Flags of a bucket.
const IN_SCRATCH: u32 = 1 << 31;
const COPY: u32 = 1 << 30;
const FAILED: u32 = 1 << 29;

/// The lists.
#[derive(Clone, Copy)]
pub(super) struct Workspace {
    words: GlobalMut<u32>,
    at: Layout,
}

/// Which of the words is the number of …
const SEGMENTS: usize = 0;
const TILES: usize = 1;
const COUNTERS: usize = 2;
const BUCKETS: usize = MOST_LEVELS * 3;
const RESTS: usize = MOST_LEVELS * 3 + 1;
const FAILURES: usize = MOST_LEVELS * 3 + 2;

impl Workspace {
    /// # Safety
    /// What [`Job`] says holds.
    #[inline(always)]
    pub unsafe fn new(job: &Job) -> Self {
        // SAFETY: the caller's promise.
        Self { words: unsafe { GlobalMut::new(job.words, job.at.words as usize) }, at: job.at }
    }

    #[inline(always)]
    pub fn segments(self, level: u32) -> u32 {
        self.words.get(level as usize * 3 + SEGMENTS)
    }

    #[inline(always)]
    pub fn tiles(self, level: u32) -> u32 {
        self.words.get(level as usize * 3 + TILES)
    }

    #[inline(always)]
    pub fn buckets(self) -> u32 {
        self.words.get(BUCKETS)
    }

    #[inline(always)]
    pub fn rests(self) -> u32 {
        self.words.get(RESTS)
    }

    #[inline(always)]
    pub fn failures(self) -> u32 {
        self.words.get(FAILURES)
    }

    /// Empties all lists: keys are not divided after all.
    #[inline(always)]
    pub fn give_up(self) {
        for word in 0..HEAD_WORDS {
            self.words.set(word, 0);
        }
    }

    /// Notes that the first level is one segment, and its tiles.
    #[inline(always)]
    pub fn begin(self, tiles: u32) {
        self.words.set(SEGMENTS, 1);
        self.words.set(TILES, tiles);
    }

    #[inline(always)]
    pub fn pending(self, i: u32) -> Pending {
        let words = self.words.slice(self.at.pending as usize + i as usize * PENDING, PENDING);
        Pending { start: words.get(0), len: words.get(1), first_tile: words.get(2) }
    }

    /// Adds a segment of `level`, which has `tiles` tiles.
    #[inline(always)]
    pub fn add_pending(self, level: u32, start: u32, len: u32, tiles: u32) {
        let i = self.words.fetch_add(level as usize * 3 + SEGMENTS, 1);
        let first_tile = self.words.fetch_add(level as usize * 3 + TILES, tiles);
        let words = self.words.slice(self.at.pending as usize + i as usize * PENDING, PENDING);
        words.set(0, start);
        words.set(1, len);
        words.set(2, first_tile);
    }

    /// Room for `count` counters of `level`: the number of the first.
    #[inline(always)]
    pub fn add_counters(self, level: u32, count: u32) -> u32 {
        self.words.fetch_add(level as usize * 3 + COUNTERS, count)
    }

    #[inline(always)]
    pub fn segment<B: Bits>(self, i: u32) -> Segment<B> {
        let words = self.words.slice(self.at.segments as usize + i as usize * SEGMENT, SEGMENT);
        let wide = |at: usize| B::from_register(words.get(at) as u64 | (words.get(at + 1) as u64) << 32);
        let scale = Scale { shift: words.get(5), factor: words.get(6) };
        let digits = Digits { least: wide(8), greatest: wide(10), scale };
        let [start, len, first_tile, counters] = [0, 1, 2, 3].map(|at| words.get(at));
        let number = Number { is_index: words.get(4) & IS_INDEX != 0, pivot: wide(12) };
        let (exact, skipped) = (words.get(4) & EXACT != 0, words.get(7) != 0);
        Segment { start, len, first_tile, counters, exact, skipped, number, digits }
    }

    #[inline(always)]
    pub fn set_segment<B: Bits>(self, i: u32, segment: Segment<B>) {
        let words = self.words.slice(self.at.segments as usize + i as usize * SEGMENT, SEGMENT);
        let Segment { start, len, first_tile, counters, exact, skipped, number, digits } = segment;
        let Digits { least, greatest, scale: Scale { shift, factor } } = digits;
        let [least, greatest, pivot] = [least, greatest, number.pivot].map(Word::to_register);
        words.set(0, start);
        words.set(1, len);
        words.set(2, first_tile);
        words.set(3, counters);
        words.set(4, if exact { EXACT } else { 0 } | if number.is_index { IS_INDEX } else { 0 });
        words.set(5, shift);
        words.set(6, factor);
        words.set(7, u32::from(skipped));
        words.set(8, least as u32);
        words.set(9, (least >> 32) as u32);
        words.set(10, greatest as u32);
        words.set(11, (greatest >> 32) as u32);
        words.set(12, pivot as u32);
        words.set(13, (pivot >> 32) as u32);
    }

    /// Notes that the keys of segment `i` are all equal.
    #[inline(always)]
    pub fn skip(self, i: u32) {
        self.words.slice(self.at.segments as usize + i as usize * SEGMENT, SEGMENT).set(7, 1);
    }

    /// The counters from `first` on, as many as digits.
    #[inline(always)]
    pub fn counters(self, first: u32, digits: u32) -> GlobalMut<u32> {
        self.words.slice(self.at.counters as usize + first as usize, digits as usize)
    }

    /// The number of the segment of each tile.
    #[inline(always)]
    pub fn segment_of_tile(self, tile: u32) -> u32 {
        self.words.get(self.at.tiles as usize + tile as usize)
    }

    #[inline(always)]
    pub fn set_segment_of_tile(self, tile: u32, segment: u32) {
        self.words.set(self.at.tiles as usize + tile as usize, segment);
    }

    /// Room for `count` buckets: the number of the first.
    #[inline(always)]
    pub fn add_buckets(self, count: u32) -> u32 {
        self.words.fetch_add(BUCKETS, count)
    }

    #[inline(always)]
    fn at_bucket(self, list: u32, i: u32) -> GlobalMut<u32> {
        self.words.slice(list as usize + i as usize * BUCKET, BUCKET)
    }

    #[inline(always)]
    pub fn bucket(self, i: u32) -> Bucket {
        let words = self.at_bucket(self.at.buckets, i);
        let (start, len) = (words.get(0), words.get(1));
        let work = if len & COPY != 0 { Work::Copy } else { Work::Sort };
        let (in_scratch, failed) = (len & IN_SCRATCH != 0, len & FAILED != 0);
        Bucket { start, len: len & !(IN_SCRATCH | COPY | FAILED), in_scratch, work, failed }
    }

    #[inline(always)]
    pub fn set_bucket(self, i: u32, start: u32, len: u32, in_scratch: bool, work: Work) {
        let words = self.at_bucket(self.at.buckets, i);
        let copy = if work == Work::Copy { COPY } else { 0 };
        words.set(0, start);
        words.set(1, len | copy | if in_scratch { IN_SCRATCH } else { 0 });
    }

    /// Notes that bucket `i` is yet to be sorted, in another way.
    #[inline(always)]
    pub fn fail(self, i: u32) {
        let words = self.at_bucket(self.at.buckets, i);
        words.set(1, words.get(1) | FAILED);
        self.words.fetch_add(FAILURES, 1);
    }

    /// A rest: where it begins, and how long it is.
    #[inline(always)]
    pub fn rest(self, i: u32) -> (u32, u32) {
        let words = self.at_bucket(self.at.rest, i);
        (words.get(0), words.get(1))
    }

    #[inline(always)]
    pub fn add_rest(self, start: u32, len: u32) {
        let words = self.at_bucket(self.at.rest, self.words.fetch_add(RESTS, 1));
        words.set(0, start);
        words.set(1, len);
    }
}
