//! Sorts the keys that neighbouring lanes hold in registers, [`LANE_KEYS`] each.
//!
//! ```text
//!   lanes       │ 0      │ 1      │ 2      │ 3      │ 4      │     a group of 1 to 32 lanes of a warp, here 5
//!   each        │ sorted │ sorted │ sorted │ sorted │ sorted │     by a network
//!   2 lanes     │ sorted          │ sorted          │ sorted │     key j with key 31 - j of the other lane, then all
//!   4 lanes     │ sorted                            │ sorted │     at half the distance, at a quarter …: a bitonic
//!   8 lanes     │ sorted                                     │     merge
//! ```
//!
//! The number of lanes of a group need not be a power of two. The missing lanes would hold the greatest keys and keep
//! them in each comparison, since they are always on the upper side. A lane without a partner therefore compares with
//! its own keys, which changes nothing.
//!
//! The merge of 2^k lanes, for k from 1 to 5, compares each key k times with keys of other lanes. Each merge adds 5
//! comparisons with keys of the same lane.

use crate::key::Bits;
use crate::thread::network::sort_registers_by;
use core::hint::select_unpredictable;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, reduce_max, shuffle_idx};

/// Number of keys that a lane holds.
pub const LANE_KEYS: usize = 32;

/// The argument of kernels that call [`sort_lanes`].
pub const MINUS_ONE: u32 = u32::MAX;

/// Lanes that hold the keys of one array: the first lane has the first 32.
#[derive(Clone, Copy)]
pub struct Group {
    /// The first lane.
    pub first: u32,
    /// Number of lanes, at least 1. The last one is a lane of the warp.
    pub lanes: u32,
}

/// The keys that lane `source` passed; this lane passes `pass`.
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

/// The lesser of two keys if `is_lower`, otherwise the greater.
#[inline(always)]
fn one_of<B: Bits>(is_lower: bool, key: B, other: B) -> B {
    let (lesser, greater) = key.in_order(other);
    select_unpredictable(is_lower, lesser, greater)
}

/// Within a lane, one in this many comparisons selects its greater key; the others compute it.
const COMPARED: usize = 2;

/// The lesser and the greater of two keys, for comparison number `at` of a lane.
///
/// Minimum and maximum share an execution unit, which issues an instruction every other cycle and would be the
/// bottleneck. Some comparisons of 4-byte keys therefore compute the greater key as the sum minus the lesser key. They
/// use two products with -1, which run on other units. `minus_one` comes from the host, since the compiler would turn
/// products with a constant into sums.
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

/// Sorts the keys of each group of the warp: the first lane gets the least. Not stable. `minus_one` is [`MINUS_ONE`],
/// which must be unknown to the compiler.
///
/// # Safety
/// All lanes of the warp make this call, the lanes of a group with the same `Group`. The last lane of each group is
/// below 32.
#[inline(always)]
pub unsafe fn sort_lanes<B: Bits>(keys: &mut [B; LANE_KEYS], Group { first, lanes }: Group, minus_one: u32) {
    let in_order = |at: usize, key: B, other: B| in_order(at, key, other, minus_one);
    sort_registers_by(keys, in_order);
    let number = warp::lane_id() - first;
    // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which make this call together.
    let most = unsafe { reduce_max(FULL_MASK, lanes) };
    // The partner's lane, or this lane if there is no partner.
    let source = |partner: u32| first + if partner < lanes { partner } else { number };
    // The number of rounds depends on `lanes`, so that these loops are not unrolled.
    let mut half = 1;
    while half < most {
        let partner = number ^ (2 * half - 1);
        // A lane without a partner is a lower one. It reads its own keys, which are sorted, in reverse order.
        let is_lower = number & half == 0;
        let is_lower_of_two = is_lower && partner < lanes;
        let from = source(partner);
        for j in 0..LANE_KEYS / 2 {
            let (lesser, greater) = (keys[j], keys[LANE_KEYS - 1 - j]);
            // SAFETY: all 32 lanes run this round, since `most` is a maximum of the warp. `from` is at most the last
            // lane of the group, below 32.
            let (others, others_reversed) = unsafe { (shuffle(greater, from), shuffle(lesser, from)) };
            keys[j] = one_of(is_lower, lesser, others);
            keys[LANE_KEYS - 1 - j] = one_of(is_lower_of_two, greater, others_reversed);
        }
        let mut distance = half / 2;
        while distance > 0 {
            let (from, is_lower) = (source(number ^ distance), number & distance == 0);
            for key in keys.iter_mut() {
                // SAFETY: all 32 lanes run this round: `half` and `distance` are equal in all lanes. `from` is at most
                // the last lane of the group, below 32.
                let other = unsafe { shuffle(*key, from) };
                *key = one_of(is_lower, *key, other);
            }
            distance /= 2;
        }
        merge_registers(keys, in_order);
        half *= 2;
    }
}

/// Sorts a bitonic sequence: keys that first ascend and then descend, or a rotation of such keys.
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
