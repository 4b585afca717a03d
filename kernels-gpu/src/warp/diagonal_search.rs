//! The Merge Path search by a whole warp, which probes 32 points of a diagonal per step.
//!
//! The latency of memory dominates a search, so that fewer steps are worth more reads. Each step splits the range into
//! 33 parts instead of 2, and 28 steps become 6.
//!
//! ```text
//!   range    ├──────┼──────┼──────┼──────┼─ … ─┤
//!   lanes           0      1      2      3            is A[i] taken before B[k - 1 - i]?
//!                   yes    yes    no     no           the crossing is in the third part
//! ```

use crate::sequence::Sequence;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// The number of keys of `a` among the first `k` keys of the merge of `a` and `b`, in all lanes of a warp. The result
/// equals the result of [`diagonal_search`](crate::thread::diagonal::diagonal_search) and is known to be from `low` to
/// `high`.
///
/// # Safety
/// All lanes of the warp make the same call. `low <= high`, `high <= k`, `high <= a.length()` and
/// `k - low <= b.length()`.
#[inline(always)]
#[track_caller]
pub unsafe fn warp_diagonal_search<S>(k: usize, a: S, b: S, low: usize, high: usize) -> usize
where
    S: Sequence<Index = usize>,
{
    let (mut low, mut range) = (low, high - low);
    while range > 0 {
        // Lane l reads the last key of part l. The last part, number 32, has no lane.
        let step = range / (WARP_SIZE as usize + 1) + 1;
        let offset = (warp::lane_id() as usize + 1) * step;
        let taken = offset <= range && {
            let i = low + offset - 1;
            a.at(i) <= b.at(k - 1 - i)
        };
        // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make this call with the same arguments. Only their
        // ballots change `low` and `range`, so that all lanes run the same rounds.
        let parts = unsafe { warp::ballot(FULL_MASK, taken) }.count_ones() as usize;
        low += parts * step;
        range = (range - parts * step).min(step - 1);
    }
    low
}
