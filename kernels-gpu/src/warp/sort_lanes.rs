//! Sorting the keys that neighbouring lanes hold in registers, [`LANE_KEYS`] each.
//!
//! ```text
//!   lanes       │ 0      │ 1      │ 2      │ 3      │ 4      │     a group of 1 to 32 lanes of a warp, here of 5
//!   each        │ sorted │ sorted │ sorted │ sorted │ sorted │     a network
//!   2 lanes     │ sorted          │ sorted          │ sorted │     key j with key 31 - j of the other lane, and then all
//!   4 lanes     │ sorted                            │ sorted │     keys half as far apart, a quarter as far …: a bitonic
//!   8 lanes     │ sorted                                     │     merge
//! ```
//!
//! A group need not be a power of two lanes. Those that it lacks would hold the greatest keys, and would keep them in each comparison, as they
//! are always the upper ones: so a lane whose partner is not there compares with its own keys, which changes nothing.
//!
//! A key takes part in 1, 2, 3, 4, 5 comparisons with other lanes' keys in the merges of 2, 4, 8, 16, 32 lanes, and in 5 with keys of its own lane
//! in each of them.

use crate::key::Bits;
use crate::thread::network::sort_registers_by;
use core::hint::select_unpredictable;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, reduce_max, shuffle_idx};

/// Keys of a lane.
pub const LANE_KEYS: usize = 32;

/// What kernels get as an argument, for [`sort_lanes`].
pub const MINUS_ONE: u32 = u32::MAX;

/// Lanes that hold the keys of one array, the first 32 of these in the first lane.
#[derive(Clone, Copy)]
pub struct Group {
    /// The first lane.
    pub first: u32,
    /// How many lanes there are, at least 1. The last one is a lane of the warp.
    pub lanes: u32,
}

/// The keys that lane `source` passed, `pass` of its own being what a lane passes.
///
/// # Safety
/// All lanes of the warp make this call. `source` is below 32.
#[inline(always)]
unsafe fn shuffle<B: Bits>(pass: B, source: u32) -> B {
    let bits = pass.to_register();
    // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which make both calls together.
    unsafe {
        let lower = shuffle_idx(FULL_MASK, bits as u32, source);
        let upper = if size_of::<B>() == 8 { shuffle_idx(FULL_MASK, (bits >> 32) as u32, source) } else { 0 };
        B::from_register(lower as u64 | (upper as u64) << 32)
    }
}

/// The lesser of two keys if `is_lower`, or else the greater.
#[inline(always)]
fn one_of<B: Bits>(is_lower: bool, key: B, other: B) -> B {
    let (lesser, greater) = key.in_order(other);
    select_unpredictable(is_lower, lesser, greater)
}

/// Of so many comparisons within a lane, one has its greater key selected, and the others computed.
const COMPARED: usize = 2;

/// The lesser of two keys and the greater, for the comparison `at` of a lane's.
///
/// Minimum and maximum take the same units of a multiprocessor, which would be all that is busy, with an instruction every other cycle. So of some
/// comparisons of keys of 4 bytes the greater is the sum without the lesser, by two products with -1, which other units compute. `minus_one` comes
/// from the host, since the compiler would make sums of products with a number that it knows.
#[inline(always)]
fn in_order<B: Bits>(at: usize, key: B, other: B, minus_one: u32) -> (B, B) {
    if size_of::<B>() != 4 || at.is_multiple_of(COMPARED) {
        return key.in_order(other);
    }
    let [key, other] = [key, other].map(|key| key.to_register() as u32);
    let lesser = key.min(other);
    let above_key = key.wrapping_mul(minus_one).wrapping_add(lesser);
    let greater = above_key.wrapping_mul(minus_one).wrapping_add(other);
    (B::from_register(lesser as u64), B::from_register(greater as u64))
}

/// Sorts the keys of each group of the warp: those of its first lane are the least. Not stable. `minus_one` is [`MINUS_ONE`], which the compiler
/// must not know.
///
/// # Safety
/// All lanes of the warp make this call, those of a group with the same one.
#[inline(always)]
pub unsafe fn sort_lanes<B: Bits>(keys: &mut [B; LANE_KEYS], Group { first, lanes }: Group, minus_one: u32) {
    let in_order = |at: usize, key: B, other: B| in_order(at, key, other, minus_one);
    sort_registers_by(keys, in_order);
    let number = warp::lane_id() - first;
    // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which make this call together.
    let most = unsafe { reduce_max(FULL_MASK, lanes) };
    // The partner's lane, or this one if there is none.
    let source = |partner: u32| first + if partner < lanes { partner } else { number };
    // Loops that stay loops: they are as long as the lanes say.
    let mut half = 1;
    while half < most {
        let partner = number ^ (2 * half - 1);
        // A lane without a partner is a lower one, with keys in order, which it finds reversed.
        let is_lower = number & half == 0;
        let is_lower_of_two = is_lower && partner < lanes;
        let from = source(partner);
        for j in 0..LANE_KEYS / 2 {
            let (lesser, greater) = (keys[j], keys[LANE_KEYS - 1 - j]);
            // SAFETY: all lanes are here, as `most` is the same for all of them. A group's last lane is one of the warp.
            let (others, others_reversed) = unsafe { (shuffle(greater, from), shuffle(lesser, from)) };
            keys[j] = one_of(is_lower, lesser, others);
            keys[LANE_KEYS - 1 - j] = one_of(is_lower_of_two, greater, others_reversed);
        }
        let mut distance = half / 2;
        while distance > 0 {
            let (from, is_lower) = (source(number ^ distance), number & distance == 0);
            for key in keys.iter_mut() {
                // SAFETY: as above.
                let other = unsafe { shuffle(*key, from) };
                *key = one_of(is_lower, *key, other);
            }
            distance /= 2;
        }
        merge_registers(keys, in_order);
        half *= 2;
    }
}

/// Sorts keys of which some first ones ascend and the others descend, or the rotation of such.
#[inline(always)]
fn merge_registers<B: Bits>(keys: &mut [B; LANE_KEYS], in_order: impl Fn(usize, B, B) -> (B, B)) {
    const COMPARISONS: usize = LANE_KEYS / 2 * LANE_KEYS.ilog2() as usize;
    for at in 0..COMPARISONS {
        let (step, pair) = (at / (LANE_KEYS / 2), at % (LANE_KEYS / 2));
        let distance = (LANE_KEYS / 2) >> step;
        let lower = pair / distance * 2 * distance + pair % distance;
        let (lesser, greater) = in_order(at, keys[lower], keys[lower + distance]);
        keys[lower] = lesser;
        keys[lower + distance] = greater;
    }
}
