//! Multi-sequence selection: a co-rank over up to 32 runs, one lane of a warp each.
//!
//! Where is each of K ascending runs to be divided, so that the parts before are the first `rank` keys of their merge?
//!
//! ```text
//!   run 0   a a c│d e g …        rank 8: three keys of run 0, one of run 1, four of run 2
//!   run 1   b│d d f …
//!   run 2   a b c c│h h …        of equal keys, those of the earlier run go first
//! ```
//!
//! A warp knows for each run between which indices the division is. Every lane takes the key where the division of its run
//! should be if the runs were alike, and of these keys one in the middle counts: a binary search a lane, all at once,
//! counts the keys of every run that belong before it. By the sum of the counts the division is on one side of that key
//! or on the other, so that one end of all ranges moves. Each round excludes one key at least, for any runs;
//! when there is one key left a lane, their order decides. It takes about five rounds.
//!
//! Each of these keys divides the runs, too, at some other rank. Where any rank near the one asked for is as good, the second
//! or third of them will do.

use crate::key::Bits;
use crate::sequence::Sequence;
use core::hint::assert_unchecked;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot, reduce_add, reduce_max, shuffle_idx};

/// A lane's run and what is known of its division: `low` to `high` keys of it go before.
#[derive(Clone, Copy)]
pub struct Range<S> {
    /// The run, of fewer than 2^32 keys.
    pub run: S,
    /// The least that go before.
    pub low: u32,
    /// The most.
    pub high: u32,
}

/// Bits of a number of which a warp's add up to one of 32 bits.
const BITS_OF_MEAN: u32 = u32::BITS - WARP_SIZE.trailing_zeros();

/// Rounds that are enough for most boundaries of evenly spread keys.
const ROUNDS_OF_SHARES: u32 = 5;

/// The sum over all lanes, which may be above 2^32.
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
    // SAFETY: as above; which of the two sizes `B` has is the same for all lanes.
    let high = unsafe { shuffle_idx(FULL_MASK, (bits >> 32) as u32, source) };
    B::from_register(low as u64 | (high as u64) << 32)
}

/// About the square root, which is how far off counts of random keys are.
#[inline(always)]
fn deviation(count: u32) -> u32 {
    1 << ((32 - count.leading_zeros()) / 2)
}

/// How many keys of the lane's run are among the first `rank` of the merge of all lanes' runs, or the first of up to
/// `rank_tolerance` more or fewer.
///
/// # Safety
/// All lanes of the warp make the same call, with the same `rank` and `rank_tolerance`. The ranges hold the answer for
/// `rank`. If there is tolerance, the lanes' `low` are the answer for some rank, and a range that ends before its run does has more keys than `rank`
/// less all `low` and the tolerance together: these cannot all go before.
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
        // SAFETY: all lanes of the warp make this call with one `rank`. What decides about branches and the end of the
        // loop, here and below, are sums and votes of the warp, so that lanes stay together.
        let (left, all) = unsafe { (rank - sum(low), sum(width)) };
        if left == 0 {
            return low;
        }
        if left == all {
            return high;
        }
        // SAFETY: as above.
        if unsafe { ballot(FULL_MASK, width > 1) } == 0 {
            // One key a lane at most is left: those that belong before are the first of them.
            let own = if width > 0 { run.at(low as usize) } else { B::MAX };
            // SAFETY: as above.
            let before = unsafe { lane_rank(own, width > 0) };
            return low + u32::from(width > 0 && (before as u64) < left);
        }
        // If keys are spread evenly, the division is at the same share of what is left of every run, and after the first
        // round, of every range. If they turn out not to be, halves are safer: each round does away with a quarter of what
        // is left then.
        round += 1;
        let even = round <= ROUNDS_OF_SHARES;
        let part = if round == 1 { run.length() as u32 - low } else { width };
        // SAFETY: as above.
        let share = if even { left as f32 / unsafe { sum(part) } as f32 } else { 0.5 };
        let expected = low + ((part as f32 * share) as u32).min(width.saturating_sub(1));
        let own = if width > 0 { run.at(expected as usize) } else { B::MAX };
        // SAFETY: as above. A lane with `width > 1` has voted, so that one takes part at least.
        let source = unsafe { if even { closest_to_mean(own, width > 0) } else { median(own, width > 0) } };
        // SAFETY: as above.
        let pivot = unsafe { from_lane(own, source) };
        // SAFETY: as above.
        if unsafe { ballot(FULL_MASK, width > 0 && own == pivot) }.count_ones() > 1 {
            // Other runs have keys like it, perhaps many: the division is before all of them, behind all, or among them.
            let less = count_near(low, high, expected, own < pivot, |i| run.at(i as usize) < pivot);
            let near = expected.max(less);
            let is_alike = if own < pivot && less < high { run.at(less as usize) == pivot } else { own == pivot };
            let up_to = count_near(less, high, near, is_alike, |i| run.at(i as usize) == pivot);
            // SAFETY: as above.
            let (all_less, all_up_to) = unsafe { (sum(less), sum(up_to)) };
            if rank < all_less {
                high = less;
            } else if rank > all_up_to {
                low = up_to;
            } else {
                // SAFETY: as above.
                return less + unsafe { share_in_order(rank - all_less, up_to - less) };
            }
            continue;
        }
        let counted = if lane == source {
            expected + 1
        } else {
            let before = |key: B| key < pivot || (key == pivot && lane < source);
            count_near(low, high, expected, before(own), |i| before(run.at(i as usize)))
        };
        // SAFETY: as above.
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

/// How many of `wanted` the lane has, of which each lane takes as many as it has `room` for before the next one takes any.
///
/// # Safety
/// All lanes of the warp make the same call.
#[inline(always)]
#[track_caller]
unsafe fn share_in_order(wanted: u64, room: u32) -> u32 {
    let (mut left, mut own) = (wanted, 0);
    for lane in 0..WARP_SIZE {
        // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make this call, and the loop has `WARP_SIZE` rounds
        // for each; `lane` is below that.
        let share = left.min(unsafe { shuffle_idx(FULL_MASK, room, lane) } as u64);
        if lane == warp::lane_id() {
            own = share as u32;
        }
        left -= share;
    }
    own
}

/// Of those lanes that `take_part`, of which there is one at least, the one whose key is closest to the mean of all: about
/// the middle one if keys are spread evenly, and found in a few instructions.
///
/// # Safety
/// All lanes of the warp make the same call, and one takes part at least.
#[inline(always)]
#[track_caller]
unsafe fn closest_to_mean<B: Bits>(key: B, take_part: bool) -> u32 {
    // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make this call. Branches below are by the size of `B`
    // and by maxima of the warp: the same for all.
    let lanes = unsafe { ballot(FULL_MASK, take_part) };
    // SAFETY: as above; `lanes` is the same for all.
    let first = unsafe { from_lane(key, lanes.trailing_zeros() % WARP_SIZE) };
    let differing = if take_part { (key ^ first).to_register() } else { 0 };
    // How many bits there are up to the highest in which keys differ.
    // SAFETY: as above; the closure is called by all lanes or by none.
    let bits_of = |word: u32| u32::BITS - unsafe { reduce_max(FULL_MASK, word) }.leading_zeros();
    let mut width = 0;
    if size_of::<B>() == 8 {
        width = bits_of((differing >> 32) as u32);
        width += if width > 0 { u32::BITS } else { 0 };
    }
    if width == 0 {
        width = bits_of(differing as u32);
    }
    // The upper ones of these bits, so few that the sum of a warp's is below 2^32.
    let excess = width.saturating_sub(BITS_OF_MEAN);
    let word = (key.to_register() >> excess) as u32 & ((1 << width.min(BITS_OF_MEAN)) - 1);
    let count = lanes.count_ones();
    // SAFETY: `lanes` has a bit for each lane that takes part, of which there is one at least, as the caller promises.
    // A division by 0 would bring in the code of a panic.
    unsafe { assert_unchecked(count != 0) };
    // SAFETY: as above.
    let mean = unsafe { reduce_add(FULL_MASK, if take_part { word } else { 0 }) } / count;
    let closeness = if take_part { u32::MAX - word.abs_diff(mean) } else { 0 };
    // SAFETY: as above. Closeness is above 0 for those that take part.
    unsafe { ballot(FULL_MASK, closeness == reduce_max(FULL_MASK, closeness)) }.trailing_zeros()
}

/// Of those lanes that `take_part`, of which there is one at least, the one that has the middle one of their keys.
///
/// # Safety
/// All lanes of the warp make the same call.
#[inline(always)]
#[track_caller]
unsafe fn median<B: Bits>(key: B, take_part: bool) -> u32 {
    // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make this call. Ranks are different, so that one lane
    // has the middle one.
    unsafe {
        let (middle, rank) = (ballot(FULL_MASK, take_part).count_ones() / 2, lane_rank(key, take_part));
        ballot(FULL_MASK, take_part && rank == middle).trailing_zeros()
    }
}

/// How many of the keys of those lanes that `take_part` are before the lane's own: less, or equal and of an earlier lane.
///
/// # Safety
/// All lanes of the warp make the same call.
#[inline(always)]
#[track_caller]
unsafe fn lane_rank<B: Bits>(key: B, take_part: bool) -> u32 {
    // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make this call; `rest` begins as their vote, the same
    // for all.
    let (lane, mut rank, mut rest) = (warp::lane_id(), 0, unsafe { ballot(FULL_MASK, take_part) });
    while rest != 0 {
        let other_lane = rest.trailing_zeros();
        // SAFETY: as above; `rest` is the same for all.
        let other = unsafe { from_lane(key, other_lane) };
        rank += u32::from(other < key || (other == key && other_lane < lane));
        rest &= rest - 1;
    }
    rank
}

/// The index from `low` to `high` where `before` turns false, searched from `expected` on in growing steps. `first` is
/// `before(expected)`, if the range is not empty.
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
            // At most the last index of the range, and at least its first. The step is clamped before it is added: once it
            // has saturated, `low + step` exceeds 32 bits.
            (true, true) => low + (step - 1).min(high - 1 - low),
            (true, false) => high.saturating_sub(step).max(low),
            (false, _) => low + (high - low) / 2,
        };
        step = step.saturating_mul(8);
        above = before(index);
        // Once the index has been passed, halves.
        near &= above == first;
    }
    low
}
