//! The 32 lanes of a warp.

use crate::backend;

/// Threads of a warp.
pub const WARP_SIZE: u32 = 32;

/// A mask of all lanes of a warp.
pub const FULL_MASK: u32 = u32::MAX;

/// The thread's index in its warp, below [`WARP_SIZE`].
#[inline(always)]
pub fn lane_id() -> u32 {
    backend::lane_id()
}

/// Waits until every lane in `mask` has arrived here (`__syncwarp`), and orders their memory accesses.
///
/// # Safety
/// The calling lane is in `mask`, and every lane in `mask` makes the same call.
#[inline(always)]
#[track_caller]
pub unsafe fn sync_warp(mask: u32) {
    backend::sync_warp(mask);
}

/// The `value` that lane `lane_id() ^ lane_mask` of the warp passed.
///
/// # Safety
/// The calling lane and its partner are in `mask`, and every lane in `mask` makes the same call.
#[inline(always)]
#[track_caller]
pub unsafe fn shuffle_xor(mask: u32, value: u32, lane_mask: u32) -> u32 {
    backend::shuffle_xor(mask, value, lane_mask)
}

/// The `value` that lane `src`, below [`WARP_SIZE`], of the warp passed.
///
/// # Safety
/// The calling lane and lane `src` are in `mask`, and every lane in `mask` makes the same call.
#[inline(always)]
#[track_caller]
pub unsafe fn shuffle_idx(mask: u32, value: u32, src: u32) -> u32 {
    backend::shuffle_idx(mask, value, src)
}

/// The `value` that the lane `distance` below passed, or the calling lane's own `value` if there is no such lane.
///
/// # Safety
/// The calling lane and the lane `distance` below are in `mask`, and every lane in `mask` makes the same call.
#[inline(always)]
#[track_caller]
pub unsafe fn shuffle_up(mask: u32, value: u32, distance: u32) -> u32 {
    backend::shuffle_up(mask, value, distance)
}

/// The sum of the `value`s that the lanes of `mask` passed, modulo 2^32. One instruction.
///
/// # Safety
/// The calling lane is in `mask`, and every lane in `mask` makes the same call.
#[inline(always)]
#[track_caller]
pub unsafe fn reduce_add(mask: u32, value: u32) -> u32 {
    backend::reduce_add(mask, value)
}

/// The greatest of the `value`s that the lanes of `mask` passed. One instruction.
///
/// # Safety
/// The calling lane is in `mask`, and every lane in `mask` makes the same call.
#[inline(always)]
#[track_caller]
pub unsafe fn reduce_max(mask: u32, value: u32) -> u32 {
    backend::reduce_max(mask, value)
}

/// The lanes of `mask` with a true `predicate`, as a bit mask.
///
/// # Safety
/// The calling lane is in `mask`, and every lane in `mask` makes the same call.
#[inline(always)]
#[track_caller]
pub unsafe fn ballot(mask: u32, predicate: bool) -> u32 {
    backend::ballot(mask, predicate)
}

/// The lanes of the warp with the same `BITS` lowest bits of `value` as this lane, as a bit mask. `BITS` is even. The
/// cost is dominated by one [`ballot`] per bit.
///
/// # Safety
/// All lanes of the warp make the same call.
#[inline(always)]
#[track_caller]
pub unsafe fn lanes_alike<const BITS: u32>(value: u32) -> u32 {
    const { assert!(BITS.is_multiple_of(2) && BITS <= 32) };
    let (mut lanes, mut bit) = (FULL_MASK, 0);
    while bit < BITS {
        let own = [backend::bit_of(value, bit), backend::bit_of(value, bit + 1)];
        // SAFETY: the caller makes this call with all 32 lanes of the warp, and the loop has the same rounds in each.
        let ballots = unsafe { [ballot(FULL_MASK, own[0] != 0), ballot(FULL_MASK, own[1] != 0)] };
        lanes = backend::and_alike(lanes, ballots, own);
        bit += 2;
    }
    lanes
}
