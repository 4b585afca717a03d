//! What the kernels of the divisions tell each other, in words of global memory.
//!
//! ```text
//!   segment    keys that are divided next: where they are, and by which digits
//!   part       keys of a segment that one block counts, or moves, tile by tile
//!   counter    how many keys of a segment have a digit; then where they go
//!   bucket     neighbouring keys, in their final place as a whole, that one block sorts
//!   rest       keys that all divisions have left too many for a block
//! ```

use super::digits::{Digits, Number, Scale};
use super::room::Room;
use super::{DIGITS_CAPACITY, MOST_LEVELS, keys_per_counter, usual_len};
use crate::key::Bits;
use cuda_std::prelude::*;

/// Where the lists are, in words, and how many words there are in all.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pending: u32,
    segments: u32,
    parts: u32,
    counters: u32,
    buckets: u32,
    /// Words in all.
    pub words: u32,
}

/// Words of the list's heads: for each level how many segments, parts and counters there are; and how many buckets and rests.
pub const HEAD_WORDS: usize = MOST_LEVELS * 3 + 3;

/// Words of a pending segment, or of a rest.
const PENDING: usize = 3;
/// Words of a segment.
const SEGMENT: usize = 12;
/// Words of a bucket.
const BUCKET: usize = 2;

impl Layout {
    /// For `n` keys that are divided up to `levels` times, in parts of `part` and buckets of at most `bucket`.
    pub const fn of(n: usize, levels: u32, part: usize, bucket: usize) -> Self {
        // Segments have more keys than a bucket, but for the first one.
        let segments = n / bucket + 1;
        let pending = HEAD_WORDS;
        let all = pending + segments * PENDING;
        let parts = all + segments * SEGMENT;
        let counters = parts + n / part + segments;
        let buckets = counters + n / keys_per_counter(bucket) + DIGITS_CAPACITY as usize;
        // Between two digits of a segment that have too many keys for a block, any two neighbouring buckets have more than one bucket's
        // keys together; and of those of equal keys all but one are full. At each level there are at most as many segments, and
        // digits with too many keys, as there are full buckets.
        let most_buckets = (2 + 2 * levels as usize) * segments;
        let words = buckets + most_buckets * BUCKET;
        assert!(words <= u32::MAX as usize, "there are no more keys than MOST_KEYS");
        Self {
            pending: pending as u32,
            segments: all as u32,
            parts: parts as u32,
            counters: counters as u32,
            buckets: buckets as u32,
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
    /// Keys of a part, which are those of one or several tiles.
    pub part: u32,
    /// The most digits of segments whose keys go in whole sectors: as many as a block has threads, or 0.
    pub whole_digits: u32,
    /// Keys of a bucket, at most.
    pub bucket: u32,
    /// Keys of a bucket where they are spread evenly.
    pub usual: u32,
    /// Whether keys come with their indices, so that equal ones keep their order: 1, or else 0.
    pub indexed: u32,
}

impl Job {
    /// For `n` keys, and `words` of [`Layout::of`] these numbers.
    pub const fn new(
        (words, order): (*mut u32, *mut u32),
        n: usize,
        levels: u32,
        (whole_digits, part, bucket): (usize, usize, usize),
        indexed: bool,
    ) -> Self {
        let at = Layout::of(n, levels, part, bucket);
        let usual = usual_len(bucket) as u32;
        let (n, whole_digits, part, bucket) = (n as u32, whole_digits as u32, part as u32, bucket as u32);
        Self { words, order, at, n, levels, part, whole_digits, bucket, usual, indexed: indexed as u32 }
    }

    /// How many parts so many keys have.
    #[inline(always)]
    pub(super) fn parts(&self, len: u32) -> u32 {
        len.div_ceil(self.part.max(1))
    }

    /// Whether the keys of a segment of `len` keys that is divided by `count` digits are to go in whole sectors: if there are not
    /// too many digits, and room for their counters.
    #[inline(always)]
    pub(super) fn is_whole(&self, len: u32, count: u32) -> bool {
        count <= self.whole_digits && Room::counters(count, true) <= len / keys_per_counter(self.bucket as usize) as u32
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
    pub first_part: u32,
}

/// Keys that are divided.
#[derive(Clone, Copy)]
pub(super) struct Segment<B> {
    pub start: u32,
    pub len: u32,
    /// Number of its first part.
    pub first_part: u32,
    /// Number of its first counter.
    pub counters: u32,
    /// Whether the keys of a digit are all equal.
    pub exact: bool,
    /// Whether all keys are equal, so that they stay where they are.
    pub skipped: bool,
    /// Whether keys go in whole sectors.
    pub is_whole: bool,
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

/// Flags of a segment, between the bits of a shift and those of a number of digits.
const EXACT: u32 = 1 << 8;
const IS_INDEX: u32 = 1 << 9;
const SKIPPED: u32 = 1 << 10;
const IS_WHOLE: u32 = 1 << 11;
const SHIFT: u32 = 0xff;
const DIGITS: u32 = 16;

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
const PARTS: usize = 1;
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
    pub fn parts(self, level: u32) -> u32 {
        self.words.get(level as usize * 3 + PARTS)
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

    /// Notes that the first level is one segment, and its parts.
    #[inline(always)]
    pub fn begin(self, parts: u32) {
        self.words.set(SEGMENTS, 1);
        self.words.set(PARTS, parts);
    }

    #[inline(always)]
    fn at_pending(self, i: u32) -> GlobalMut<u32> {
        self.words.slice(self.at.pending as usize + i as usize * PENDING, PENDING)
    }

    #[inline(always)]
    pub fn pending(self, i: u32) -> Pending {
        let words = self.at_pending(i);
        Pending { start: words.get(0), len: words.get(1), first_part: words.get(2) }
    }

    /// Adds a segment of `level`, which has `parts` parts.
    #[inline(always)]
    pub fn add_pending(self, level: u32, start: u32, len: u32, parts: u32) {
        let words = self.at_pending(self.words.fetch_add(level as usize * 3 + SEGMENTS, 1));
        let first_part = self.words.fetch_add(level as usize * 3 + PARTS, parts);
        words.set(0, start);
        words.set(1, len);
        words.set(2, first_part);
    }

    /// Room for `count` counters of `level`: the number of the first.
    #[inline(always)]
    pub fn add_counters(self, level: u32, count: u32) -> u32 {
        self.words.fetch_add(level as usize * 3 + COUNTERS, count)
    }

    #[inline(always)]
    fn at_segment(self, i: u32) -> GlobalMut<u32> {
        self.words.slice(self.at.segments as usize + i as usize * SEGMENT, SEGMENT)
    }

    #[inline(always)]
    pub fn segment<B: Bits>(self, i: u32) -> Segment<B> {
        let words = self.at_segment(i);
        let wide = |at: usize| B::from_register(words.get(at) as u64 | (words.get(at + 1) as u64) << 32);
        let [start, len, first_part, counters, flags, factor] = [0, 1, 2, 3, 4, 5].map(|at| words.get(at));
        let digits = Digits { least: wide(6), greatest: wide(8), scale: Scale { shift: flags & SHIFT, factor } };
        let number = Number { is_index: flags & IS_INDEX != 0, pivot: wide(10) };
        let [exact, skipped, is_whole] = [EXACT, SKIPPED, IS_WHOLE].map(|flag| flags & flag != 0);
        Segment { start, len, first_part, counters, exact, skipped, is_whole, number, digits }
    }

    #[inline(always)]
    pub fn set_segment<B: Bits>(self, i: u32, segment: Segment<B>) {
        let words = self.at_segment(i);
        let Segment { start, len, first_part, counters, exact, skipped, is_whole, number, digits } = segment;
        let Digits { least, greatest, scale: Scale { shift, factor } } = digits;
        let [least, greatest, pivot] = [least, greatest, number.pivot].map(Word::to_register);
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let flags = flag(exact, EXACT) | flag(number.is_index, IS_INDEX) | flag(skipped, SKIPPED);
        words.set(0, start);
        words.set(1, len);
        words.set(2, first_part);
        words.set(3, counters);
        words.set(4, shift | flags | flag(is_whole, IS_WHOLE) | digits.count() << DIGITS);
        words.set(5, factor);
        words.set(6, least as u32);
        words.set(7, (least >> 32) as u32);
        words.set(8, greatest as u32);
        words.set(9, (greatest >> 32) as u32);
        words.set(10, pivot as u32);
        words.set(11, (pivot >> 32) as u32);
    }

    /// Of segment `i`: the number of its first counter, how many digits it has, and whether keys go in whole sectors.
    #[inline(always)]
    pub fn room(self, i: u32) -> (u32, u32, bool) {
        let words = self.at_segment(i);
        let flags = words.get(4);
        (words.get(3), flags >> DIGITS, flags & IS_WHOLE != 0)
    }

    /// Notes that the keys of segment `i` are all equal. One thread does.
    #[inline(always)]
    pub fn skip(self, i: u32) {
        let words = self.at_segment(i);
        words.set(4, words.get(4) | SKIPPED);
    }

    /// `count` counters from `first` on.
    #[inline(always)]
    pub fn counters(self, first: u32, count: u32) -> GlobalMut<u32> {
        self.words.slice(self.at.counters as usize + first as usize, count as usize)
    }

    /// The number of the segment of each part.
    #[inline(always)]
    pub fn segment_of_part(self, part: u32) -> u32 {
        self.words.get(self.at.parts as usize + part as usize)
    }

    #[inline(always)]
    pub fn set_segment_of_part(self, part: u32, segment: u32) {
        self.words.set(self.at.parts as usize + part as usize, segment);
    }

    /// Room for `count` buckets: the number of the first.
    #[inline(always)]
    pub fn add_buckets(self, count: u32) -> u32 {
        self.words.fetch_add(BUCKETS, count)
    }

    #[inline(always)]
    fn at_bucket(self, i: u32) -> GlobalMut<u32> {
        self.words.slice(self.at.buckets as usize + i as usize * BUCKET, BUCKET)
    }

    #[inline(always)]
    pub fn bucket(self, i: u32) -> Bucket {
        let words = self.at_bucket(i);
        let (start, len) = (words.get(0), words.get(1));
        let work = if len & COPY != 0 { Work::Copy } else { Work::Sort };
        let (in_scratch, failed) = (len & IN_SCRATCH != 0, len & FAILED != 0);
        Bucket { start, len: len & !(IN_SCRATCH | COPY | FAILED), in_scratch, work, failed }
    }

    #[inline(always)]
    pub fn set_bucket(self, i: u32, start: u32, len: u32, in_scratch: bool, work: Work) {
        let words = self.at_bucket(i);
        let copy = if work == Work::Copy { COPY } else { 0 };
        words.set(0, start);
        words.set(1, len | copy | if in_scratch { IN_SCRATCH } else { 0 });
    }

    /// Notes that bucket `i` is yet to be sorted, in another way.
    #[inline(always)]
    pub fn fail(self, i: u32) {
        let words = self.at_bucket(i);
        words.set(1, words.get(1) | FAILED);
        self.words.fetch_add(FAILURES, 1);
    }

    /// A rest: where it begins, and how long it is.
    #[inline(always)]
    pub fn rest(self, i: u32) -> (u32, u32) {
        let words = self.at_pending(i);
        (words.get(0), words.get(1))
    }

    /// Adds a rest, at the last level: no segment is pending then.
    #[inline(always)]
    pub fn add_rest(self, start: u32, len: u32) {
        let words = self.at_pending(self.words.fetch_add(RESTS, 1));
        words.set(0, start);
        words.set(1, len);
    }
}
