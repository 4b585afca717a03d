//! Workspace of the kernels of the divisions, in words of global memory.
//!
//! ```text
//!   segment    keys that are divided next: where they are, and by which digits
//!   part       one or several tiles of a segment, which one block counts
//!   counter    how many keys of a segment have a digit; then where they go
//!   bucket     neighbouring keys, final as a whole, that one block sorts; a long bucket takes a larger block
//!   rest       keys that no division has spread, too many for a block
//!   round      a step of the quicksort that sorts the rests
//! ```

use super::digits::{Curve, Digits, FINER, Scale, WHOLE};
use super::offsets::Offsets;
use super::{DIGITS_CAPACITY, MOST_DIGITS, MOST_DIGITS_IN_ORDER, MOST_LEVELS, usual_len};
use crate::elements::{Arrays, Elements};
use crate::kernels::sort::tasks::Tasks;
use crate::key::Bits;
use cuda_std::prelude::*;

/// Offsets of the lists, in words, and the number of words in all.
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

/// Words of the heads of the lists: the numbers of segments, parts and counters of each level, the numbers of buckets
/// and rests, and other counts.
pub const HEAD_WORDS: usize = MOST_LEVELS * 3 + 8;

/// Words of a pending segment.
const PENDING: usize = 4;
/// Words of a rest.
const REST: usize = 2;
/// Upper limit on the rounds of the quicksort. A round about halves a rest, as a rule.
pub const MOST_ROUNDS: u32 = 24;
/// Words of the rounds, before the segments: the number of rests and of tiles of each.
const ROUNDS: usize = 2 * MOST_ROUNDS as usize;
/// Words of a segment.
const SEGMENT: usize = 11;
/// Words after the heads if the digits of two levels may be counted at once: the first segment, a counter for each
/// digit, and a counter for each finer digit.
const TWICE: usize = SEGMENT + (MOST_TWICE * (1 + FINER)) as usize;
/// Upper limit on the digits whose finer digits are counted at once.
pub const MOST_TWICE: u32 = 256;
/// Words of a bucket.
const BUCKET: usize = 2;

/// How keys are divided.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Number of keys: at most [`MOST_KEYS`](super::MOST_KEYS), or [`MOST_LISTED_KEYS`](super::MOST_LISTED_KEYS) if
    /// segments are listed.
    pub n: u32,
    /// Upper limit on the levels of divisions.
    pub levels: u32,
    /// Keys of a tile.
    pub tile: u32,
    /// Tiles of a part.
    pub tiles: u32,
    /// Upper limit on the keys of a bucket.
    pub bucket: u32,
    /// Upper limit on the keys of a long bucket: above `bucket`, or 0 if there are no long buckets.
    pub long: u32,
    /// 1 if the division is stable, as for keys with values, and 0 otherwise.
    pub in_order: u32,
    /// 1 if the digits of two levels may be counted at once, and 0 otherwise.
    pub twice: u32,
    /// 1 if the segments of the first level are listed before the first kernel, each of more keys than a bucket. 0 if
    /// the first level has one segment, the array.
    pub listed: u32,
    /// Keys that look as if they were out of order only within half of this number of places are sorted by
    /// [windows](crate::kernels::sort::windows). 0 if none are.
    pub window: u32,
}

impl Plan {
    /// Whether there is only one division, and keys may change order.
    #[inline(always)]
    pub const fn is_once(&self) -> bool {
        self.levels == 1 && self.in_order == 0
    }

    /// Whether the only segment of `level` is the array.
    #[inline(always)]
    pub(super) const fn is_array(&self, level: u32) -> bool {
        level == 0 && self.listed == 0
    }

    /// Keys of a part.
    #[inline(always)]
    pub(super) const fn part(&self) -> u32 {
        at_least_one(self.tile * self.tiles)
    }

    /// Number of parts of a segment of `len` keys.
    #[inline(always)]
    pub const fn parts(&self, len: u32) -> u32 {
        len.div_ceil(self.part())
    }

    /// Lower limit on the keys for each counter: `n` keys have at most `n / keys_per_counter()` counters.
    #[inline(always)]
    const fn keys_per_counter(&self) -> u32 {
        // In order, a tile has 128 words of counters for 256 digits, two in a word, and a share of the counters of its
        // part. Parts of one tile have no counters of tiles, and room for half of the digits. In any order, a segment,
        // which has more keys than a bucket, has room for at least nine digits.
        at_least_one(match (self.in_order, self.tiles) {
            (0, _) => self.bucket / 9,
            (_, 0 | 1) => self.tile / 147,
            (_, tiles) => self.tile / (131 + 256 / tiles),
        })
    }

    /// Twice the number of counters that a segment of `len` keys has for each of its digits.
    #[inline(always)]
    const fn half_counters(&self, len: u32) -> u32 {
        if self.in_order == 0 {
            return 2;
        }
        2 + 2 * self.parts(len) + if self.tiles > 1 { len.div_ceil(at_least_one(self.tile)) } else { 0 }
    }

    /// Number of counters of a segment of `len` keys that is divided by `digits` digits.
    #[inline(always)]
    pub(super) const fn counters(&self, len: u32, digits: u32) -> u32 {
        // The counters of tiles are two in a word.
        digits.next_multiple_of(2) * self.half_counters(len) / 2
    }

    /// Upper limit on the digits of a segment of `len` keys, so that its counters fit into the workspace. The segments
    /// of its level have `parts` parts in all.
    #[inline(always)]
    pub(super) fn most_digits(&self, len: u32, parts: u32) -> u32 {
        let most = if self.in_order != 0 { MOST_DIGITS_IN_ORDER } else { MOST_DIGITS + 2 };
        let room = 2 * (len / self.keys_per_counter()) / at_least_one(self.half_counters(len));
        // A level that has fewer keys left has more room for each key. With values, the counters of parts take most of
        // that room.
        let (all, parts) = (self.parts(self.n), at_least_one(parts));
        let room = if self.in_order != 0 || parts >= all { room } else { room.saturating_mul(all) / parts };
        (room & !1).clamp(8, most)
    }

    /// Upper limit on the digits of the first division.
    #[inline(always)]
    pub fn most_first_digits(&self) -> u32 {
        self.most_digits(self.n, self.parts(self.n))
    }
}

/// `number`, or 1 if `number` is 0: a divisor.
#[inline(always)]
const fn at_least_one(number: u32) -> u32 {
    if number > 1 { number } else { 1 }
}

impl Layout {
    /// Number of words after the heads that must be 0 before the first kernel.
    pub const fn cleared(plan: &Plan) -> usize {
        if plan.twice != 0 { TWICE } else { 0 }
    }

    /// The first word that must be 0 before [`count_once`](super::once::count_once), if there is only one division, and
    /// the number of such words. Each digit has a counter of its keys, and a counter of its keys that have been moved.
    #[inline(always)]
    pub fn once(&self, plan: &Plan) -> (usize, usize) {
        (self.counters as usize, 2 * plan.most_first_digits() as usize)
    }

    /// Layout for `plan`.
    pub const fn of(plan: &Plan) -> Self {
        let (n, bucket) = (plan.n as usize, plan.bucket as usize);
        // All segments have more keys than a bucket, except possibly the first.
        let segments = match n.checked_div(bucket) {
            Some(full) => full + 1,
            None => 1,
        };
        let all = HEAD_WORDS + Self::cleared(plan) + ROUNDS;
        let parts = all + segments * SEGMENT;
        let counters = parts + n / plan.part() as usize + segments;
        let buckets = counters + n / plan.keys_per_counter() as usize + DIGITS_CAPACITY as usize;
        // Any two neighbouring buckets hold more than `bucket` keys together, unless one of them is next to a digit
        // that is too long for a block. Or else digits hold half of `bucket` keys on average. Pieces of equal keys are
        // full, except the last. So there are at most two buckets for each full bucket of keys, one more for each
        // segment, and one more for each digit that is too long. In a level, neither the number of segments nor the
        // number of long digits exceeds the number of full buckets. If the first level is the array, its long digits
        // are the segments of the second level.
        let is_listed = plan.listed != 0;
        let of_array = !is_listed && segments > DIGITS_CAPACITY as usize;
        let first = if of_array { DIGITS_CAPACITY as usize } else { segments };
        let of_later = if plan.levels > 1 { first + (2 * plan.levels as usize - 3) * segments } else { 0 };
        let most_buckets = (2 + is_listed as usize) * segments + first + of_later;
        // Pending segments grow from the start of their words, and long buckets from the end. Both have more than
        // `bucket` keys and no key is in both, so that the words suffice for both.
        let pending = buckets + most_buckets * BUCKET;
        let words = pending + segments * PENDING;
        assert!(words <= u32::MAX as usize, "there are no more keys than the plan may have");
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

/// Parameters of all kernels that divide an array.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The lists, of which [`Layout::cleared`] words after the heads are 0 before the first kernel. Only these kernels
    /// write the lists; if keys are not divided, they write only the heads. If segments are listed, the heads are 0
    /// before `list`, which `choose_digits` follows.
    pub words: *mut u32,
    /// The words of `detect_runs`: what is known of the order of the keys.
    pub order: *mut u32,
    /// Offsets of the lists: [`Layout::of`] the plan.
    pub at: Layout,
    /// How keys are divided.
    pub plan: Plan,
    /// Usual number of keys in a bucket if keys are spread evenly.
    pub usual: u32,
}

impl Job {
    /// A job for keys that are divided by `plan`, with `words` of the plan's [`Layout`].
    pub const fn new(words: *mut u32, order: *mut u32, plan: Plan) -> Self {
        Self { words, order, at: Layout::of(&plan), plan, usual: usual_len(plan.bucket as usize) as u32 }
    }

    /// No job.
    pub const NONE: Self = Self {
        words: core::ptr::null_mut(),
        order: core::ptr::null_mut(),
        at: Layout { pending: 0, segments: 0, parts: 0, counters: 0, buckets: 0, words: 0 },
        plan: Plan {
            n: 0,
            levels: 0,
            tile: 0,
            tiles: 0,
            bucket: 0,
            long: 0,
            in_order: 0,
            twice: 0,
            listed: 0,
            window: 0,
        },
        usual: 0,
    };

    /// Whether this is not [`NONE`](Self::NONE).
    #[inline(always)]
    pub fn is_some(&self) -> bool {
        !self.words.is_null()
    }

    /// Lists the segment of `len` keys from key `start` on, for the first level.
    ///
    /// # Safety
    /// The requirements of [`Job`] hold, and this is not [`NONE`](Self::NONE). The plan's segments are listed. They do
    /// not overlap, and each has more keys than a bucket.
    #[inline(always)]
    pub(in crate::kernels::sort) unsafe fn list(&self, start: usize, len: usize) {
        // SAFETY: the requirements of `Job` are this function's own. The list has room for each segment of more keys
        // than a bucket.
        let workspace = unsafe { Workspace::new(self) };
        workspace.add_pending(0, (start as u32, len as u32), self.plan.parts(len as u32), WHOLE);
    }

    /// The lists, and both sides of the elements.
    ///
    /// # Safety
    /// The requirements of [`Job`] hold. Each side has `plan.n` elements, and no other thread uses an element while one
    /// writes it.
    #[inline(always)]
    pub(super) unsafe fn open<B: Bits, V: Word>(&self, sides: [Elements<B, V>; 2]) -> (Workspace, [Arrays<B, V>; 2]) {
        // SAFETY: `Job` says that the lists have `at.words` words, and the caller ensures `plan.n` elements on each
        // side.
        unsafe { (Workspace::new(self), sides.map(|side| side.arrays(self.plan.n as usize))) }
    }
}

/// A segment whose digits are not chosen yet.
#[derive(Clone, Copy)]
pub(super) struct Pending {
    pub start: u32,
    pub len: u32,
    pub first_part: u32,
    /// Digit of its keys at the level before.
    pub digit: u32,
}

/// Keys that are divided.
#[derive(Clone, Copy)]
pub(super) struct Segment<B> {
    pub start: u32,
    pub len: u32,
    /// Number of its first part.
    pub first_part: u32,
    /// Word of its first counter.
    pub counters: u32,
    /// Whether the keys of a digit are all equal.
    pub exact: bool,
    /// Whether all keys are equal, so that they stay in their place.
    pub skipped: bool,
    pub digits: Digits<B>,
}

/// What is done with a bucket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// To be sorted.
    Sort,
    /// To be copied: equal keys.
    Copy,
}

/// Keys that one block puts into their places.
#[derive(Clone, Copy)]
pub(super) struct Bucket {
    pub start: u32,
    pub len: u32,
    /// Whether they are in the scratch array.
    pub in_scratch: bool,
    pub work: Work,
    /// Whether the bin sort has given up the bucket.
    pub failed: bool,
}

/// Flags of a segment, between the bits of the shift and the bits of the number of digits.
const EXACT: u32 = 1 << 8;
const SKIPPED: u32 = 1 << 9;
/// Position of the curve's number, which has three bits.
const CURVE: u32 = 10;
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

/// Index of the word that holds the number of …
const SEGMENTS: usize = 0;
const PARTS: usize = 1;
const COUNTERS: usize = 2;
const BUCKETS: usize = MOST_LEVELS * 3;
/// Index of the number of rests. The next word counts the buckets that are left to `sort_rest`.
pub const RESTS: usize = MOST_LEVELS * 3 + 1;
const FAILURES: usize = MOST_LEVELS * 3 + 2;
const IS_TWICE: usize = MOST_LEVELS * 3 + 3;
const IS_ONCE_MORE: usize = MOST_LEVELS * 3 + 4;
const LONG: usize = MOST_LEVELS * 3 + 5;
/// Index of the two words of the tasks of the quicksort.
const TASKS: usize = MOST_LEVELS * 3 + 6;

/// Number of the segment that stands for the first one if the digits of two levels are counted at once.
pub(super) const COUNTED_TWICE: u32 = u32::MAX;

impl Workspace {
    /// # Safety
    /// The requirements of [`Job`] hold.
    #[inline(always)]
    pub unsafe fn new(job: &Job) -> Self {
        // SAFETY: `Job` says that there are `at.words` words, the end of the last list of `Layout::of`. Threads change
        // shared heads by `fetch_add`.
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
    pub fn long_buckets(self) -> u32 {
        self.words.get(LONG)
    }

    #[inline(always)]
    pub fn rests(self) -> u32 {
        self.words.get(RESTS)
    }

    #[inline(always)]
    pub fn failures(self) -> u32 {
        self.words.get(FAILURES)
    }

    /// Empties all lists. One thread does.
    #[inline(always)]
    pub fn clear(self) {
        for word in 0..HEAD_WORDS {
            self.words.set(word, 0);
        }
    }

    /// Stores that the first level is one segment, and the number of its parts.
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
        Pending { start: words.get(0), len: words.get(1), first_part: words.get(2), digit: words.get(3) }
    }

    /// Adds a segment of `level` with `parts` parts. Its keys have `digit` at the level before.
    #[inline(always)]
    pub fn add_pending(self, level: u32, (start, len): (u32, u32), parts: u32, digit: u32) {
        let words = self.at_pending(self.words.fetch_add(level as usize * 3 + SEGMENTS, 1));
        let first_part = self.words.fetch_add(level as usize * 3 + PARTS, parts);
        words.set(0, start);
        words.set(1, len);
        words.set(2, first_part);
        words.set(3, digit);
    }

    /// Reserves `count` counters of `level`, and returns the word of the first.
    #[inline(always)]
    pub fn add_counters(self, level: u32, count: u32) -> u32 {
        self.at.counters + self.words.fetch_add(level as usize * 3 + COUNTERS, count)
    }

    /// The counters of `count` digits if there is only one division: of all keys, and of the keys that have been moved.
    #[inline(always)]
    pub fn once(self, plan: Plan, count: u32) -> [GlobalMut<u32>; 2] {
        let (first, both) = self.at.once(&plan);
        [0, both / 2].map(|before| self.counters((first + before) as u32, count))
    }

    /// The words of segment `i`, or of the first segment if the digits of two levels are counted at once.
    #[inline(always)]
    fn at_segment(self, i: u32) -> GlobalMut<u32> {
        let first = if i == COUNTED_TWICE { HEAD_WORDS } else { self.at.segments as usize + i as usize * SEGMENT };
        self.words.slice(first, SEGMENT)
    }

    /// Stores that the digits of the first two levels are counted at once, by the [`COUNTED_TWICE`] segment.
    #[inline(always)]
    pub fn count_twice(self) {
        self.words.set(IS_TWICE, 1);
    }

    /// Stores that a counter has overflowed, so that digits must be counted again.
    #[inline(always)]
    pub fn count_once_more(self) {
        self.words.fetch_add(IS_ONCE_MORE, 1);
    }

    /// Whether the digits of two levels are to be counted at once.
    #[inline(always)]
    pub fn is_twice(self) -> bool {
        self.words.get(IS_TWICE) != 0
    }

    /// Whether the digits of two levels have been counted at once, without overflow.
    #[inline(always)]
    pub fn is_counted_twice(self) -> bool {
        self.is_twice() && self.words.get(IS_ONCE_MORE) == 0
    }

    /// Number of keys of each of the `count` digits of the first level.
    #[inline(always)]
    pub fn first_counters(self, count: u32) -> GlobalMut<u32> {
        self.words.slice(HEAD_WORDS + SEGMENT, count as usize)
    }

    /// The word of the counter of the first finer digit within `digit`.
    #[inline(always)]
    pub fn finer_counters(self, digit: u32) -> u32 {
        (HEAD_WORDS + SEGMENT) as u32 + MOST_TWICE + digit * FINER
    }

    #[inline(always)]
    pub fn segment<B: Bits>(self, i: u32) -> Segment<B> {
        let words = self.at_segment(i);
        let wide = |at: usize| B::from_register(words.get(at) as u64 | (words.get(at + 1) as u64) << 32);
        let [start, len, first_part, counters, flags, factor] = [0, 1, 2, 3, 4, 5].map(|at| words.get(at));
        let scale = Scale { shift: flags & SHIFT, factor };
        let curve = match flags >> CURVE & 7 {
            0 => Curve::Distance,
            1 => Curve::Logarithm,
            2 => Curve::Mirrored,
            _ => Curve::Value,
        };
        let (least, greatest, count, within) = (wide(6), wide(8), flags >> DIGITS, words.get(10));
        let digits = Digits { least, greatest, curve, scale, count, within };
        let (exact, skipped) = (flags & EXACT != 0, flags & SKIPPED != 0);
        Segment { start, len, first_part, counters, exact, skipped, digits }
    }

    #[inline(always)]
    pub fn set_segment<B: Bits>(self, i: u32, segment: Segment<B>) {
        let words = self.at_segment(i);
        let Segment { start, len, first_part, counters, exact, skipped, digits } = segment;
        let Digits { least, greatest, curve, scale: Scale { shift, factor }, count, within } = digits;
        let [least, greatest] = [least, greatest].map(Word::to_register);
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        words.set(0, start);
        words.set(1, len);
        words.set(2, first_part);
        words.set(3, counters);
        words.set(4, shift | flag(exact, EXACT) | flag(skipped, SKIPPED) | (curve as u32) << CURVE | count << DIGITS);
        words.set(5, factor);
        words.set(6, least as u32);
        words.set(7, (least >> 32) as u32);
        words.set(8, greatest as u32);
        words.set(9, (greatest >> 32) as u32);
        words.set(10, within);
    }

    /// Places of the keys of segment `i`.
    #[inline(always)]
    pub fn offsets(self, plan: Plan, i: u32) -> Offsets {
        let words = self.at_segment(i);
        Offsets::new(self, plan, words.get(3), words.get(4) >> DIGITS, words.get(1))
    }

    /// Stores that the keys of segment `i` are all equal. One thread makes this call.
    #[inline(always)]
    pub fn skip(self, i: u32) {
        let words = self.at_segment(i);
        words.set(4, words.get(4) | SKIPPED);
    }

    /// `count` counters from word `first` on.
    #[inline(always)]
    pub fn counters(self, first: u32, count: u32) -> GlobalMut<u32> {
        self.words.slice(first as usize, count as usize)
    }

    /// The number of the segment that part `part` belongs to.
    #[inline(always)]
    pub fn segment_of_part(self, part: u32) -> u32 {
        self.words.get(self.at.parts as usize + part as usize)
    }

    #[inline(always)]
    pub fn set_segment_of_part(self, part: u32, segment: u32) {
        self.words.set(self.at.parts as usize + part as usize, segment);
    }

    /// Reserves `count` buckets, and returns the number of the first.
    #[inline(always)]
    pub fn add_buckets(self, count: u32) -> u32 {
        self.words.fetch_add(BUCKETS, count)
    }

    /// The number of long bucket `i`. Long buckets are listed from the end of the words.
    #[inline(always)]
    pub fn long_bucket(self, i: u32) -> u32 {
        (self.at.words - self.at.buckets) / BUCKET as u32 - 1 - i
    }

    /// Adds a long bucket, to be sorted.
    #[inline(always)]
    pub fn add_long_bucket(self, start: u32, len: u32, in_scratch: bool) {
        let bucket = self.long_bucket(self.words.fetch_add(LONG, 1));
        self.set_bucket(bucket, start, len, in_scratch, Work::Sort);
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

    /// Stores that bucket `i` is left to `sort_rest`.
    #[inline(always)]
    pub fn fail(self, i: u32) {
        let words = self.at_bucket(i);
        words.set(1, words.get(1) | FAILED);
        self.words.fetch_add(FAILURES, 1);
    }

    /// The list of the rests of a round. Each has more keys than a bucket.
    #[inline(always)]
    fn list(self, round: u32) -> GlobalMut<u32> {
        let segments = (self.at.parts - self.at.segments) as usize / SEGMENT;
        // After the divisions, the words of the segments hold the lists of two successive rounds.
        let first = match round {
            0 => self.at.pending as usize,
            _ => self.at.segments as usize + round as usize % 2 * segments * REST,
        };
        self.words.slice(first, segments * REST)
    }

    /// Start and length of rest `i` of a round.
    #[inline(always)]
    pub fn rest(self, round: u32, i: u32) -> (u32, u32) {
        let words = self.list(round).slice(i as usize * REST, REST);
        (words.get(0), words.get(1))
    }

    /// Adds a rest to the first round, at the last level, where no segment is pending.
    #[inline(always)]
    pub fn add_rest(self, start: u32, len: u32) {
        self.set_rest(0, self.words.fetch_add(RESTS, 1), (start, len));
    }

    #[inline(always)]
    fn set_rest(self, round: u32, i: u32, (start, len): (u32, u32)) {
        let words = self.list(round).slice(i as usize * REST, REST);
        words.set(0, start);
        words.set(1, len);
    }

    /// The number of rests of a round after the first, and of their tiles.
    #[inline(always)]
    pub fn round(self, round: u32) -> GlobalMut<u32> {
        self.words.slice(self.at.segments as usize - ROUNDS + 2 * round as usize, 2)
    }

    /// Empties the list of a round after the first.
    #[inline(always)]
    pub fn clear_round(self, round: u32) {
        let words = self.round(round);
        words.set(0, 0);
        words.set(1, 0);
    }

    /// Adds a rest of `tiles` tiles to a round after the first, whose list has been [cleared](Self::clear_round).
    #[inline(always)]
    pub fn add_rest_to(self, round: u32, rest: (u32, u32), tiles: u32) {
        self.round(round).fetch_add(1, tiles);
        self.set_rest(round, self.round(round).fetch_add(0, 1), rest);
    }

    /// A word for each of `tiles` tiles of rests. It has been a counter of the divisions.
    #[inline(always)]
    pub fn counts_of_tiles(self, tiles: u32) -> GlobalMut<u32> {
        self.words.slice(self.at.counters as usize, tiles as usize)
    }

    /// The tasks of the quicksort, with one counter of finished tasks.
    #[inline(always)]
    pub fn tasks(self) -> Tasks {
        Tasks { taken: self.words.slice(TASKS, 1), finished: self.words.slice(TASKS + 1, 1) }
    }
}
