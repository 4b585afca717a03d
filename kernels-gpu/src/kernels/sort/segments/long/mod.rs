//! The division of long segments, digit by digit from the most significant one, until one block can sort each part.
//!
//! ```text
//!   segment     │ unit 0      │ unit 1      │ unit 2   │      more keys than one block sorts
//!   counts      │ a a │ b b b b b b b b b │ c │ d d d │      the histogram of digits: the starts of their keys
//!   divided     │ a a │ b b b b b b b b b │ c │ d d d │      a block moves the keys of a unit, independent of others
//!                       └─ long: by the next digit └─ middle: listed with its neighbours
//! ```
//!
//! A level divides all segments that are still long by one digit of up to 8 bits. It reads one of two arrays and writes
//! the other. A key takes only the levels that it needs. After all of its bits it is in its place, whatever the
//! distribution. Where keys have been divided evenly, a digit may have fewer bits: enough to leave parts that one block
//! sorts. With fewer digits, more keys go to neighbouring places.
//!
//! The kernels of a level are always launched. Each reads its work from a list that earlier kernels have made, and the
//! list may be empty.
//!
//! Keys without values go behind the keys of the units before, in any order. Keys with values are divided stably:
//!
//! ```text
//!   units       │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ 6 │      each unit has its own counts
//!   parts       │ 0             │ 1         │      and so has each part of several units
//!   a digit     │ of part 0     │ of part 1 │      each part begins where the one before ends; a unit sums few counts
//! ```
//!
//! | file | idea |
//! | --- | --- |
//! | [`find_long_segments`] | a list of the units of long segments |
//! | [`count_long_segments`] | the histogram of the digits of each segment |
//! | [`place_long_segments`] | the places of the keys of each digit, and the work that is left |
//! | `rounds` | the assignment of units to blocks |
//! | [`divide_long_segments`] | the scatter of the keys of each unit, stable with values |

pub mod count_long_segments;
pub mod divide_long_segments;
pub mod find_long_segments;
pub mod place_long_segments;
mod rounds;

use super::middle::MAX_BINNED;
use super::middle_runs::MAX_MIDDLE;
use crate::elements::has_values;
use crate::kernels::sort::divide::usual_len;
use crate::kernels::sort::tile_in_order::{DIGIT_BITS, DIGITS, ToDigit};
use crate::key::Bits;
use crate::tuning::{DivideTile, ROW};
use cuda_std::prelude::*;
use cuda_std::recomputed;

/// The tile of a unit of a long segment, for keys of `key_bytes` bytes with values of `value_bytes` bytes, or 0.
pub const fn long_tile(key_bytes: usize, value_bytes: usize) -> DivideTile {
    ROW.divide_segments.of(key_bytes, value_bytes)
}

/// Keys of a unit.
const fn unit_keys(key_bytes: usize, value_bytes: usize) -> usize {
    long_tile(key_bytes, value_bytes).keys()
}

/// Units of a part of a segment of keys with values. Keys alone of a segment are one part.
const PART_UNITS: usize = 8;

/// Levels of keys of `key_bytes` bytes. The number is even: the last level ends in the array where the first one
/// begins.
///
/// A part of a segment that is about as long as its neighbours is divided by fewer bits than [`DIGIT_BITS`], so that
/// [bins](super::sort_middle_by_bins) sort the parts. Two more levels take the bits that remain.
pub const fn levels(key_bytes: usize) -> u32 {
    8 * key_bytes as u32 / DIGIT_BITS + 2
}

/// Upper limit on the levels.
pub(super) const MOST_LEVELS: usize = levels(8) as usize;

/// The bits of a key by which a level divides a segment.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Digit {
    /// Position of the lowest bit. The bits below are left to other levels.
    shift: u32,
    /// Number of bits, at most [`DIGIT_BITS`].
    bits: u32,
}

impl Digit {
    /// The first digit of keys of type `B`.
    const fn first<B>() -> Self {
        Self { shift: 8 * size_of::<B>() as u32 - DIGIT_BITS, bits: DIGIT_BITS }
    }

    /// The digit of `level`, for a segment of `keys` keys that this digit has separated. It `is_even` if the segment is
    /// about as long as its neighbours.
    #[inline(always)]
    fn next<B>(self, keys: u32, level: u32, is_even: bool) -> Self {
        let mut bits = DIGIT_BITS;
        if is_even {
            bits = bits.min(u32::BITS - (keys / const { usual_len(MAX_BINNED) as u32 }).leading_zeros());
        }
        // Later levels cannot take more bits than this; the digit takes the others.
        let behind = DIGIT_BITS * (const { levels(size_of::<B>()) - 1 } - level);
        bits = bits.max(self.shift.saturating_sub(behind));
        // The last bits go to an odd level, which ends in the array where the first level begins.
        bits = bits.min(if level.is_multiple_of(2) { self.shift - 1 } else { self.shift });
        Self { shift: self.shift - bits, bits }
    }
}

impl<B: Bits> ToDigit<B> for Digit {
    const FILLS_UP: bool = true;

    #[inline(always)]
    fn of(self, key: B) -> u32 {
        key.shifted_down(self.shift).to_register() as u32 & ((1 << self.bits) - 1)
    }

    #[inline(always)]
    fn again(self) -> Self {
        Self { shift: recomputed(self.shift), bits: recomputed(self.bits) }
    }
}

/// Number of counters: one for each level, of its units.
pub const COUNTERS: usize = MOST_LEVELS;

/// Words of a unit in a list: the start and the end of its segment, and a word with the unit's number in the segment
/// and the digit that divides the segment.
const UNIT_WORDS: usize = 3;

/// Positions of the digit's shift and bits in the last word.
const SHIFT_AT: u32 = 20;
const BITS_AT: u32 = 26;
const _: () = {
    assert!(
        u32::MAX as usize / unit_keys(8, 0) < 1 << SHIFT_AT && u32::MAX as usize / unit_keys(4, 8) < 1 << SHIFT_AT,
        "numbers of units"
    );
    assert!(
        Digit::first::<u64>().shift < 1 << (BITS_AT - SHIFT_AT) && DIGIT_BITS < 1 << (u32::BITS - BITS_AT),
        "digits"
    );
};

/// Parameters of the kernels for long segments: the parts of a workspace, and the number of keys.
///
/// There are two lists of units and two sets of counts: for even levels, and behind these for odd levels.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LongSegments {
    /// [`COUNTERS`] words, 0 before the sort. Nothing else uses these words, or the words of the other pointers.
    pub counters: *mut u32,
    /// Counts of digits, and later the places of their next keys, in [`count_words`] words. With values, also the
    /// counts of each unit.
    pub counts: *mut u32,
    /// The lists of units, in [`unit_words`] words.
    pub units: *mut u32,
    /// Number of keys of all segments: fewer than 2^32.
    pub n: u32,
    /// Number of tiles of the sort of short segments. At most one longer segment begins in each tile.
    pub tiles: u32,
}

/// Upper limit on the long segments of `n` keys, at one level.
const fn most_segments(n: usize) -> usize {
    n / (MAX_MIDDLE + 1) + 1
}

/// Upper limit on the units of long segments of `n` keys of `key_bytes` bytes with values of `value_bytes` bytes, or 0.
pub const fn most_units(n: usize, key_bytes: usize, value_bytes: usize) -> usize {
    n / unit_keys(key_bytes, value_bytes) + most_segments(n)
}

/// Upper limit on the parts of these segments.
const fn most_parts(n: usize, key_bytes: usize, value_bytes: usize) -> usize {
    let more = if value_bytes == 0 { 0 } else { n / (PART_UNITS * unit_keys(key_bytes, value_bytes)) };
    more + most_segments(n)
}

/// Words of the counts for `n` keys: counts of parts for even and for odd levels, and with values the counts of units.
pub const fn count_words(n: usize, key_bytes: usize, value_bytes: usize) -> usize {
    let units = if value_bytes == 0 { 0 } else { most_units(n, key_bytes, value_bytes) };
    (2 * most_parts(n, key_bytes, value_bytes) + units) * DIGITS as usize
}

/// Words of both lists of units of `n` keys.
pub const fn unit_words(n: usize, key_bytes: usize, value_bytes: usize) -> usize {
    2 * most_units(n, key_bytes, value_bytes) * UNIT_WORDS
}

/// A unit of a long segment.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Unit {
    /// Start and end of its segment.
    start: u32,
    end: u32,
    /// Its number among the units of the segment.
    number: u32,
    /// The digit that divides the segment.
    digit: Digit,
}

impl Unit {
    /// The unit of these words.
    #[inline(always)]
    fn of([start, end, last]: [u32; UNIT_WORDS]) -> Self {
        let digit = Digit { shift: (last >> SHIFT_AT) & ((1 << (BITS_AT - SHIFT_AT)) - 1), bits: last >> BITS_AT };
        Self { start, end, number: last & ((1 << SHIFT_AT) - 1), digit }
    }

    /// Its words.
    #[inline(always)]
    fn words(self) -> [u32; UNIT_WORDS] {
        [self.start, self.end, self.number | self.digit.shift << SHIFT_AT | self.digit.bits << BITS_AT]
    }

    /// Number of units of a segment of `keys` keys.
    #[inline(always)]
    fn count<B, V>(keys: u32) -> u32 {
        keys.div_ceil(const { unit_keys(size_of::<B>(), size_of::<V>()) as u32 })
    }

    /// Start of the unit, and its number of keys.
    #[inline(always)]
    fn span<B, V>(self) -> (u32, u32) {
        let keys = const { unit_keys(size_of::<B>(), size_of::<V>()) as u32 };
        let begin = self.start + self.number * keys;
        (begin, (self.end - begin).min(keys))
    }

    /// Number of its part in the segment.
    #[inline(always)]
    fn part<V>(self) -> u32 {
        if has_values::<V>() { self.number / PART_UNITS as u32 } else { 0 }
    }

    /// Whether it is the first unit of its part.
    #[inline(always)]
    fn begins_part<V>(self) -> bool {
        if has_values::<V>() { self.number.is_multiple_of(PART_UNITS as u32) } else { self.number == 0 }
    }

    /// Number of parts of its segment.
    #[inline(always)]
    fn parts<B, V>(self) -> u32 {
        if has_values::<V>() { Self::count::<B, V>(self.end - self.start).div_ceil(PART_UNITS as u32) } else { 1 }
    }
}

/// The parts of the workspace that have been opened, for keys of type `B` with values of type `V`.
#[derive(Clone, Copy)]
struct Workspace<B, V> {
    long: LongSegments,
    of: core::marker::PhantomData<(B, V)>,
}

impl LongSegments {
    /// # Safety
    /// The pointers have the documented numbers of words, for keys of type `B` with values of type `V`. Only the
    /// kernels of one sort use them, one after another.
    #[inline(always)]
    unsafe fn open<B: Bits, V: Word>(self) -> Workspace<B, V> {
        Workspace { long: self, of: core::marker::PhantomData }
    }
}

impl<B: Bits, V: Word> Workspace<B, V> {
    /// Number of units of each level.
    #[inline(always)]
    fn counters(self) -> GlobalMut<u32> {
        // SAFETY: the caller of `open` ensures that `counters` has `COUNTERS` words, which only kernels of this sort
        // use.
        unsafe { GlobalMut::new(self.long.counters, COUNTERS) }
    }

    /// The list of the units of `level`.
    #[inline(always)]
    #[track_caller]
    fn units(self, level: u32) -> GlobalMut<u32> {
        let (n, parity) = (self.long.n as usize, level as usize % 2);
        let words = unit_words(n, size_of::<B>(), size_of::<V>());
        // SAFETY: the caller of `open` ensures that `units` has `unit_words` words, which only kernels of this sort
        // use.
        let all = unsafe { GlobalMut::new(self.long.units, words) };
        all.slice(parity * words / 2, words / 2)
    }

    /// Unit `i` of `level`.
    #[inline(always)]
    #[track_caller]
    fn unit(self, level: u32, i: u32) -> Unit {
        let words = self.units(level).slice(UNIT_WORDS * i as usize, UNIT_WORDS);
        Unit::of([words.get(0), words.get(1), words.get(2)])
    }

    /// Makes unit `i` of `level` be `unit`.
    #[inline(always)]
    #[track_caller]
    fn set_unit(self, level: u32, i: u32, unit: Unit) {
        let words = self.units(level).slice(UNIT_WORDS * i as usize, UNIT_WORDS);
        let [start, end, last] = unit.words();
        words.set(0, start);
        words.set(1, end);
        words.set(2, last);
    }

    /// All counts.
    #[inline(always)]
    fn all_counts(self) -> GlobalMut<u32> {
        // SAFETY: the caller of `open` ensures that `counts` has `count_words` words, which only kernels of this sort
        // use.
        unsafe { GlobalMut::new(self.long.counts, count_words(self.long.n as usize, size_of::<B>(), size_of::<V>())) }
    }

    /// Number of keys of each digit of `level` in part `part` of the segment that begins with key `start`, and later
    /// the places of the next keys. No two parts share a number. The next long segment begins more than `MAX_MIDDLE`
    /// keys later, so that its first quotient is greater by 1 at least. Its second quotient grows by the number of
    /// whole parts of this segment, and this segment has at most one more part.
    #[inline(always)]
    #[track_caller]
    fn counts(self, level: u32, start: u32, part: u32) -> GlobalMut<u32> {
        let parity = level as usize % 2;
        let mut number = parity * most_parts(self.long.n as usize, size_of::<B>(), size_of::<V>());
        number += start as usize / (MAX_MIDDLE + 1);
        if has_values::<V>() {
            let part_keys = const { PART_UNITS * unit_keys(size_of::<B>(), size_of::<V>()) };
            number += start as usize / part_keys + part as usize;
        }
        self.all_counts().slice(number * DIGITS as usize, DIGITS as usize)
    }

    /// Number of keys of each digit in unit `number` of the segment that begins with key `start`, for the level that is
    /// being counted. Only keys with values have such counts. No two units share a number, by the argument in
    /// [`counts`](Self::counts).
    #[inline(always)]
    #[track_caller]
    fn unit_counts(self, start: u32, number: u32) -> GlobalMut<u32> {
        let of_parts = 2 * most_parts(self.long.n as usize, size_of::<B>(), size_of::<V>());
        let unit_keys = const { unit_keys(size_of::<B>(), size_of::<V>()) };
        let before = start as usize / (MAX_MIDDLE + 1) + start as usize / unit_keys;
        self.all_counts().slice((of_parts + before + number as usize) * DIGITS as usize, DIGITS as usize)
    }

    /// Clears the counts of a part. `lanes` threads make this call, of which this one is number `lane`. No thread
    /// counts in this part yet.
    #[inline(always)]
    #[track_caller]
    fn clear_counts(self, level: u32, (start, part): (u32, u32), lane: u32, lanes: u32) {
        let (counts, mut digit) = (self.counts(level, start, part), lane);
        while digit < DIGITS {
            counts.set(digit as usize, 0);
            digit += lanes;
        }
    }
}
