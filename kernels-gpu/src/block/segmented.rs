//! Segmented reductions over the threads of a block: each head starts a new segment.
//!
//! ```text
//!   thread    0     1     2     3     4
//!   heads     no    yes   no    no    yes
//!   tail      5     2     3     4     1          the thread's reduction since its last head, or of all its values
//!   carry     –     5     2     5     9          the reduction of earlier threads since their last head
//! ```
//!
//! The shape of the block determines the order of the operands, so that sums of floats are reproducible.

use super::shared_memory::shared_memory;
use crate::kernels::groups::reduction::Reduction;
use crate::key::Bits;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot, shuffle_idx};

shared_memory! {
    /// Shared memory of a block that reduces.
    pub struct SegmentedMemory<V: Word>() {
        /// The tail of each warp: its reduction since its last head.
        tails: [V; WARP_SIZE],
        /// 1 for a warp with a head, otherwise 0.
        heads: [u32; WARP_SIZE],
    }
}

/// A partial reduction that one thread, warp or tile carries to the next.
#[derive(Clone, Copy)]
pub struct Tail<V> {
    /// Whether there is a head.
    pub has_head: bool,
    /// The reduction since the last head, or of all values if there is no head.
    pub value: V,
}

impl<V: Bits> Tail<V> {
    /// Combines this tail with the tail `next` that follows it.
    #[inline(always)]
    pub fn then<R: Reduction<Value = V>>(self, next: Self) -> Self {
        let value = if next.has_head { next.value } else { R::combine(self.value, next.value) };
        Self { has_head: self.has_head | next.has_head, value }
    }
}

/// The value that lane `from` passed.
///
/// # Safety
/// All 32 lanes of the warp make this call, and `from` is below 32.
#[inline(always)]
pub unsafe fn shuffle_bits<V: Bits>(value: V, from: u32) -> V {
    let bits = value.to_register();
    // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which make both calls together: the branch depends on the
    // size of `V`. The caller passes `from < 32`.
    unsafe {
        let low = shuffle_idx(FULL_MASK, bits as u32, from) as u64;
        if const { size_of::<V>() == 4 } {
            return V::from_register(low);
        }
        V::from_register(low | (shuffle_idx(FULL_MASK, (bits >> 32) as u32, from) as u64) << 32)
    }
}

/// The tails of the lanes of a warp, each combined with the tails before it since the last head.
#[derive(Clone, Copy)]
struct WarpTails<V> {
    /// A bit for each lane with a head.
    heads: u32,
    /// The reduction over the lanes up to this one since the last head.
    value: V,
}

impl<V: Bits> WarpTails<V> {
    /// Combines the tails `own` of the lanes.
    ///
    /// # Safety
    /// All lanes of one whole warp make the same call.
    #[inline(always)]
    unsafe fn of<R: Reduction<Value = V>>(own: Tail<V>) -> Self {
        let lane = warp::lane_id();
        // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which make this call together.
        let heads = unsafe { ballot(FULL_MASK, own.has_head) };
        // The number of earlier lanes that belong to this lane's value: back to the last head up to this lane, or to
        // lane 0.
        let up_to = heads & (u32::MAX >> (WARP_SIZE - 1 - lane));
        let reach = if up_to == 0 { lane } else { lane - (WARP_SIZE - 1 - up_to.leading_zeros()) };
        let (mut value, mut distance) = (own.value, 1);
        while distance < WARP_SIZE {
            // SAFETY: the loop has the same five rounds in all 32 lanes, and the shuffle is outside the branch on
            // `reach`. A number modulo 32 is a lane.
            let before = unsafe { shuffle_bits(value, lane.wrapping_sub(distance) % WARP_SIZE) };
            if distance <= reach {
                value = R::combine(before, value);
            }
            distance *= 2;
        }
        Self { heads, value }
    }

    /// The tail of the lanes before `lane`, which is 0 to 32.
    ///
    /// # Safety
    /// All 32 lanes of the warp make this call, each with its own `lane`.
    #[inline(always)]
    unsafe fn before<R: Reduction<Value = V>>(self, lane: u32) -> Tail<V> {
        // SAFETY: the caller makes this call with all 32 lanes of the warp. A number modulo 32 is a lane.
        let value = unsafe { shuffle_bits(self.value, lane.wrapping_sub(1) % WARP_SIZE) };
        let before = if lane < WARP_SIZE { (1 << lane) - 1 } else { u32::MAX };
        Tail { has_head: self.heads & before != 0, value: if lane == 0 { R::IDENTITY } else { value } }
    }
}

impl<V: Bits> SegmentedMemory<V> {
    /// The carry to this thread from all earlier threads, and the tail of the whole block. This thread has the tail
    /// `own`. Contains a barrier.
    ///
    /// # Safety
    /// All threads of the block, which are whole warps, make this call. Nothing else uses this memory from the barrier
    /// before the call to the barrier after it.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn reduce<R: Reduction<Value = V>>(self, own: Tail<V>) -> (Tail<V>, Tail<V>) {
        let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
        // SAFETY: the block is whole warps and all its threads make this call, so that the 32 lanes of each warp do.
        let lanes = unsafe { WarpTails::of::<R>(own) };
        if lane == WARP_SIZE - 1 {
            self.tails.set(warp, lanes.value);
            self.heads.set(warp, (lanes.heads != 0) as u32);
        }
        // SAFETY: the branch on `lane` ends before this call, so that the 32 lanes of each warp make it.
        let in_warp = unsafe { lanes.before::<R>(lane) };
        thread::sync_threads();
        let warps = thread::block_dim_x() / WARP_SIZE;
        let mut of_warp = Tail { has_head: false, value: R::IDENTITY };
        if lane < warps {
            of_warp = Tail { has_head: self.heads.get(lane) != 0, value: self.tails.get(lane) };
        }
        // SAFETY: the block is whole warps and all its threads make this call, so that the 32 lanes of each warp do. A
        // block has at most 32 warps, so that `warp < 32` and `warps <= 32`.
        unsafe {
            let of_warps = WarpTails::of::<R>(of_warp);
            (of_warps.before::<R>(warp).then::<R>(in_warp), of_warps.before::<R>(warps))
        }
    }
}
