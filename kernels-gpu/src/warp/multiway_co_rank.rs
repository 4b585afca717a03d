//! Multi-sequence selection: a co-rank over up to 32 runs, one lane of a warp each.
//!
//! The selection divides each of K ascending runs. The parts before the divisions are the first `rank` keys of the
//! merge of all runs.
//!
//! ```text
//!   run 0   a a c│d e g …        rank 8: three keys of run 0, one of run 1, four of run 2
//!   run 1   b│d d f …
//!   run 2   a b c c│h h …        equal keys: keys of the earlier run come first
//! ```
//!
//! For each run, the warp keeps a range of indices that contains the division. Every lane takes the key where the
//! division of its run would be if the runs were alike. One such key, near the middle, becomes the pivot. Each
//! lane counts the keys of its run before the pivot by binary search. The sum of the counts tells the side of the
//! division, and one end of every range moves. Each round excludes at least one key, for any runs. Once at most one key
//! per lane is left, their order decides. About five rounds are enough.
//!
//! Each pivot divides the runs at some other rank. If any rank near the given one is acceptable, the second or third
//! pivot usually is.

use crate::key::Bits;
use crate::sequence::Sequence;
use core::hint::assert_unchecked;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot, reduce_add, reduce_max, shuffle_idx};

/// A lane's run and the range of its division: at least `low` and at most `high` of its keys come before.
#[derive(Clone, Copy)]
pub struct Range<S> {
    /// The run, of fewer than 2^32 keys.
    pub run: S,
    /// Least number of keys before the division.
    pub low: u32,
    /// Greatest number of keys before the division.
    pub high: u32,
}

/// Number of bits, so that the sum of 32 such numbers is below 2^32.
const BITS_OF_MEAN: u32 = u32::BITS - WARP_SIZE.trailing_zeros();

/// Rounds that find most divisions of evenly distributed keys.
const ROUNDS_OF_FRACTIONS: u32 = 5;

/// The sum over all lanes, which may exceed 2^32.
///
/// # Safety
/// All lanes of the warp make the same call.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn sum(value: u32) -> u64 {
    // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make this call.
    let (low, high) = unsafe { (reduce_add(FULL_MASK, value & 0xffff), reduce_add(FULL_MASK, value >> 16)) };
    low as u64 + ((high as u64) << 16)
}

/// The bits that lane `source` passed.
///
/// # Safety
/// All lanes of the warp make the same call.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn from_lane<B: Bits>(bits: B, source: u32) -> B {
    let bits = bits.to_register();
    // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make this call.
    let low = unsafe { shuffle_idx(FULL_MASK, bits as u32, source) };
    if size_of::<B>() == 4 {
        return B::from_register(low as u64);
    }
    // SAFETY: all 32 lanes are at this call, since the branch above depends on the size of `B` alone.
    let high = unsafe { shuffle_idx(FULL_MASK, (bits >> 32) as u32, source) };
    B::from_register(low as u64 | (high as u64) << 32)
}

/// The square root of `count`, rounded to a power of two: the typical deviation of a count of random keys.
#[inline(always)]
fn deviation(count: u32) -> u32 {
    1 << ((32 - count.leading_zeros()) / 2)
}

/// The number of keys of the lane's run among the first keys of the merge of all lanes' runs. These are `rank` keys, or
/// up to `rank_tolerance` more or fewer.
///
/// # Safety
/// All lanes of the warp make the same call, with the same `rank` and `rank_tolerance`. The ranges contain the answer
/// for `rank`. With a tolerance above 0, the lanes' `low` are the answer for some rank. A range that ends before its
/// run must then have more than `rank - sum(low) - rank_tolerance` keys: the division is inside it.
#[inline(always)]
#[track_caller]
pub unsafe fn multiway_co_rank<B: Bits, S>(range: Range<S>, rank: u64, rank_tolerance: u32) -> u32
where
    S: Sequence<Index = usize, Item = B>,
{
    let Range { run, mut low, mut high } = range;
    let (lane, mut round) = (warp::lane_id(), 0);
    loop {
        let width = high - low;
        // SAFETY: all 32 lanes make this call with the same `rank`. Sums and ballots of the warp decide the branches
        // and the end of the loop, here and below. Their results are equal in all lanes, which therefore stay together.
        let (left, all) = unsafe { (rank - sum(low), sum(width)) };
        if left == 0 {
            return low;
        }
        if left == all {
            return high;
        }
        // SAFETY: `left` and `all` are sums of the warp, so that no lane or every lane has returned: all 32 lanes vote.
        if unsafe { ballot(FULL_MASK, width > 1) } == 0 {
            // Each lane has at most one key left: the lanes with the first `left` keys take them.
            let own = if width > 0 { run.at(low as usize) } else { B::MAX };
            // SAFETY: the ballot is 0 for all lanes or for none, so that all 32 lanes make this call.
            let before = unsafe { lane_rank(own, width > 0) };
            return low + u32::from(width > 0 && (before as u64) < left);
        }
        round += 1;
        // SAFETY: all 32 lanes make this call with the same `left` and `round`. The ballot above has found a lane with
        // `width > 1`, so that at least one takes part.
        let Guess { expected, own, source, pivot } = unsafe { Range { run, low, high }.guess(left, round) };
        // SAFETY: all 32 lanes vote: no branch of this round has separated them.
        if unsafe { ballot(FULL_MASK, width > 0 && own == pivot) }.count_ones() > 1 {
            // SAFETY: the ballot that leads here is equal in all 32 lanes, which all make this call.
            match unsafe { Range { run, low, high }.beside(rank, expected, own, pivot) } {
                Beside::Range(range) => (low, high) = range,
                Beside::Found(before) => return before,
            }
            continue;
        }
        let counted = if lane == source {
            expected + 1
        } else {
            let before = |key: B| key < pivot || (key == pivot && lane < source);
            count_near(low, high, expected, before(own), |i| before(run.at(i as usize)))
        };
        // SAFETY: all 32 lanes make this call. The ballot that would skip it is equal in all lanes, and the branch on
        // `source` ends before it.
        let before = unsafe { sum(counted - low) };
        if before.abs_diff(left) <= rank_tolerance as u64 {
            return counted;
        }
        if before < left {
            low = counted;
        } else {
            high = if lane == source { expected } else { counted };
        }
    }
}

/// A round's pivot: a key near the division.
struct Guess<B> {
    /// Where the division of this lane's run would be if the runs were alike, and the key there.
    expected: u32,
    own: B,
    /// The lane of the pivot.
    source: u32,
    pivot: B,
}

impl<B: Bits, S: Sequence<Index = usize, Item = B>> Range<S> {
    /// The pivot of round `round`, which counts from 1. `left` keys of the ranges are before the divisions.
    ///
    /// # Safety
    /// All lanes of the warp make the same call, and at least one lane has a key left.
    #[inline(always)]
    #[track_caller]
    unsafe fn guess(self, left: u64, round: u32) -> Guess<B> {
        let Self { run, low, high } = self;
        let width = high - low;
        // For evenly distributed keys, the division is at the same fraction of the rest of every run, or after the
        // first round, of every range. For other distributions halves are safer: each round then excludes a quarter of
        // the keys that are left.
        let even = round <= ROUNDS_OF_FRACTIONS;
        let part = if round == 1 { run.length() as u32 - low } else { width };
        // SAFETY: `round`, and with it `even`, is equal in all 32 lanes: every lane makes this call, or no lane does.
        let fraction = if even { left as f32 / unsafe { sum(part) } as f32 } else { 0.5 };
        let expected = low + ((part as f32 * fraction) as u32).min(width.saturating_sub(1));
        let own = if width > 0 { run.at(expected as usize) } else { B::MAX };
        // SAFETY: `even` is equal in all 32 lanes, which all make the same call. By `# Safety`, at least one takes
        // part.
        let source = unsafe { if even { closest_to_mean(own, width > 0) } else { median(own, width > 0) } };
        // SAFETY: all 32 lanes make this call. `source` is the first lane of a ballot that is not 0, so that it is
        // below 32.
        let pivot = unsafe { from_lane(own, source) };
        Guess { expected, own, source, pivot }
    }
}

/// What is left of a range when keys equal to the pivot are excluded, or the division among these keys.
enum Beside {
    Range((u32, u32)),
    Found(u32),
}

impl<B: Bits, S: Sequence<Index = usize, Item = B>> Range<S> {
    /// Divides before all keys that equal the pivot, behind them, or among them. Several runs may have such keys,
    /// perhaps many.
    ///
    /// # Safety
    /// All lanes of the warp make the same call, with the same `rank` and `pivot`.
    #[inline(always)]
    #[track_caller]
    unsafe fn beside(self, rank: u64, expected: u32, own: B, pivot: B) -> Beside {
        let Self { run, low, high } = self;
        let less = count_near(low, high, expected, own < pivot, |i| run.at(i as usize) < pivot);
        let near = expected.max(less);
        let is_alike = if own < pivot && less < high { run.at(less as usize) == pivot } else { own == pivot };
        let up_to = count_near(less, high, near, is_alike, |i| run.at(i as usize) == pivot);
        // SAFETY: all 32 lanes make these calls.
        let (all_less, all_up_to) = unsafe { (sum(less), sum(up_to)) };
        if rank < all_less {
            Beside::Range((low, less))
        } else if rank > all_up_to {
            Beside::Range((up_to, high))
        } else {
            // SAFETY: `rank`, `all_less` and `all_up_to` are equal in all 32 lanes: every lane makes this call, or no
            // lane does.
            Beside::Found(less + unsafe { divide_in_order(rank - all_less, up_to - less) })
        }
    }
}

/// The lane's part of `wanted`, where each lane takes up to its `room` before the next lane takes any.
///
/// # Safety
/// All lanes of the warp make the same call.
#[inline(always)]
#[track_caller]
unsafe fn divide_in_order(wanted: u64, room: u32) -> u32 {
    let (mut left, mut own) = (wanted, 0);
    for lane in 0..WARP_SIZE {
        // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make this call. The loop has `WARP_SIZE` rounds in
        // each, and `lane < WARP_SIZE`.
        let share = left.min(unsafe { shuffle_idx(FULL_MASK, room, lane) } as u64);
        if lane == warp::lane_id() {
            own = share as u32;
        }
        left -= share;
    }
    own
}

/// The lane with the key closest to the mean, of the lanes that `take_part`. For evenly distributed keys it is near the
/// median, and it takes a few instructions.
///
/// # Safety
/// All lanes of the warp make the same call, and at least one takes part.
#[inline(always)]
#[track_caller]
unsafe fn closest_to_mean<B: Bits>(key: B, take_part: bool) -> u32 {
    // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make this call. The branches below depend on the size of
    // `B` and on maxima of the warp, which are equal in all lanes.
    let lanes = unsafe { ballot(FULL_MASK, take_part) };
    // SAFETY: all 32 lanes make this call. `lanes` is the result of a ballot, so that `source` is equal in all lanes;
    // `% WARP_SIZE` makes it below 32.
    let first = unsafe { from_lane(key, lanes.trailing_zeros() % WARP_SIZE) };
    let differing = if take_part { (key ^ first).to_register() } else { 0 };
    // The number of bits up to the highest differing bit of the keys.
    // SAFETY: the branches around the two calls of the closure depend on the size of `B` and on `width`, a maximum of
    // the warp. All 32 lanes take the same branch.
    let bits_of = |word: u32| u32::BITS - unsafe { reduce_max(FULL_MASK, word) }.leading_zeros();
    let mut width = 0;
    if size_of::<B>() == 8 {
        width = bits_of((differing >> 32) as u32);
        width += if width > 0 { u32::BITS } else { 0 };
    }
    if width == 0 {
        width = bits_of(differing as u32);
    }
    // The upper bits, few enough for a sum over 32 lanes to be below 2^32.
    let excess = width.saturating_sub(BITS_OF_MEAN);
    let word = (key.to_register() >> excess) as u32 & ((1 << width.min(BITS_OF_MEAN)) - 1);
    let count = lanes.count_ones();
    // SAFETY: the caller has at least one lane that takes part, so that `lanes` has a bit set. Without this hint, the
    // division would compile to code that can panic.
    unsafe { assert_unchecked(count != 0) };
    // SAFETY: all 32 lanes make this call, since no branch of this function returns early.
    let mean = unsafe { reduce_add(FULL_MASK, if take_part { word } else { 0 }) } / count;
    let closeness = if take_part { u32::MAX - word.abs_diff(mean) } else { 0 };
    // SAFETY: all 32 lanes make both calls. Each word is below 2^27, so that closeness is above 0 in every lane that
    // takes part: such a lane has the maximum.
    unsafe { ballot(FULL_MASK, closeness == reduce_max(FULL_MASK, closeness)) }.trailing_zeros()
}

/// The lane with the median key, of the lanes that `take_part`.
///
/// # Safety
/// All lanes of the warp make the same call, and at least one takes part.
#[inline(always)]
#[track_caller]
unsafe fn median<B: Bits>(key: B, take_part: bool) -> u32 {
    // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make these calls. The ranks of lanes that take part are
    // distinct numbers from 0, so that exactly one lane has the middle rank.
    unsafe {
        let (middle, rank) = (ballot(FULL_MASK, take_part).count_ones() / 2, lane_rank(key, take_part));
        ballot(FULL_MASK, take_part && rank == middle).trailing_zeros()
    }
}

/// The number of keys before the lane's own, of the lanes that `take_part`: lesser keys, and equal keys of earlier
/// lanes.
///
/// # Safety
/// All lanes of the warp make the same call.
#[inline(always)]
#[track_caller]
unsafe fn lane_rank<B: Bits>(key: B, take_part: bool) -> u32 {
    // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make this call.
    let (lane, mut rank, mut rest) = (warp::lane_id(), 0, unsafe { ballot(FULL_MASK, take_part) });
    while rest != 0 {
        let other_lane = rest.trailing_zeros();
        // SAFETY: `rest` starts as the result of a ballot and loses one bit per round, equally in all 32 lanes, which
        // therefore all make this call. `other_lane` is the index of a set bit, below 32.
        let other = unsafe { from_lane(key, other_lane) };
        rank += u32::from(other < key || (other == key && other_lane < lane));
        rest &= rest - 1;
    }
    rank
}

/// The index from `low` to `high` where `before` turns false, searched in growing steps from `expected`. `first` is
/// `before(expected)`, unless the range is empty.
#[inline(always)]
#[track_caller]
fn count_near(mut low: u32, mut high: u32, expected: u32, first: bool, before: impl Fn(u32) -> bool) -> u32 {
    let mut step = deviation((expected - low).min(high - expected));
    let (mut near, mut index, mut above) = (true, expected, first);
    while low < high {
        if above {
            low = index + 1;
        } else {
            high = index;
        }
        if low == high {
            break;
        }
        index = match (near, above) {
            // Clamped to the range. The step is clamped before it is added, since `low + step` could exceed 32 bits for
            // a saturated step.
            (true, true) => low + (step - 1).min(high - 1 - low),
            (true, false) => high.saturating_sub(step).max(low),
            (false, _) => low + (high - low) / 2,
        };
        step = step.saturating_mul(8);
        above = before(index);
        // Once the index has been passed, the search halves the range.
        near &= above == first;
    }
    low
}
