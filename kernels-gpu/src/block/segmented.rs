//! Reductions over the threads of a block that begin anew at each head.
//!
//! ```text
//!   thread    0     1     2     3     4
//!   heads     no    yes   no    no    yes
//!   tail      5     2     3     4     1          what the thread has from its last head on, or all it has
//!   carry     –     5     2     5     9          over the threads before, from the last head on
//! ```
//!
//! Tails are combined in an order that the shape of the block decides: the sum of floats is the same each time.

use super::shared_memory::shared_memory;
use crate::kernels::groups::reduction::Reduction;
use crate::key::Bits;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot, shuffle_idx};

shared_memory! {
    /// Shared memory of a block that reduces.
    pub struct SegmentedMemory<V: Word>() {
        /// What each warp has from its last head on.
        tails: [V; WARP_SIZE],
        /// Whether it has a head.
        heads: [u32; WARP_SIZE],
    }
}

/// What is carried from one thread, or tile, to the next.
#[derive(Clone, Copy)]
pub struct Tail<V> {
    /// Whether there is a head.
    pub has_head: bool,
    /// The reduction from the last head on, or of all if there is none.
    pub value: V,
}

impl<V: Bits> Tail<V> {
    /// This one, and then `next`.
    #[inline(always)]
    pub fn then<R: Reduction<Value = V>>(self, next: Self) -> Self {
        let value = if next.has_head { next.value } else { R::combine(self.value, next.value) };
        Self { has_head: self.has_head | next.has_head, value }
    }
}

/// The bits of the value that lane `from` passed.
///
/// # Safety
/// All lanes of one whole warp make the same call; `from` is one of them.
#[inline(always)]
pub unsafe fn shuffle_bits<V: Bits>(value: V, from: u32) -> V {
    let bits = value.to_register();
    // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which make this call together.
    unsafe {
        let low = shuffle_idx(FULL_MASK, bits as u32, from) as u64;
        if const { size_of::<V>() == 4 } {
            return V::from_register(low);
        }
        V::from_register(low | (shuffle_idx(FULL_MASK, (bits >> 32) as u32, from) as u64) << 32)
    }
}

/// The tails of the lanes of a warp, each combined with those before it, back to the last head.
#[derive(Clone, Copy)]
struct WarpTails<V> {
    /// A bit for each lane that has a head.
    heads: u32,
    /// What the lanes up to this one have from the last head on.
    value: V,
}

impl<V: Bits> WarpTails<V> {
    /// Those of the lanes' `own`.
    ///
    /// # Safety
    /// All lanes of one whole warp make the same call.
    #[inline(always)]
    unsafe fn of<R: Reduction<Value = V>>(own: Tail<V>) -> Self {
        let lane = warp::lane_id();
        // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which make this call together.
        let heads = unsafe { ballot(FULL_MASK, own.has_head) };
        // How far the lanes reach back from which this one's value is: to the last head up to this lane, or to all before it.
        let up_to = heads & (u32::MAX >> (WARP_SIZE - 1 - lane));
        let reach = if up_to == 0 { lane } else { lane - (WARP_SIZE - 1 - up_to.leading_zeros()) };
        let (mut value, mut distance) = (own.value, 1);
        while distance < WARP_SIZE {
            // SAFETY: as above; the loop has the same five rounds for each lane. Lanes that reach less far pass a lane, too.
            let before = unsafe { shuffle_bits(value, lane.wrapping_sub(distance) % WARP_SIZE) };
            if distance <= reach {
                value = R::combine(before, value);
            }
            distance *= 2;
        }
        Self { heads, value }
    }

    /// What the lanes before `lane` have, which may be one more than there are.
    ///
    /// # Safety
    /// All lanes of one whole warp make the same call, with a lane each.
    #[inline(always)]
    unsafe fn before<R: Reduction<Value = V>>(self, lane: u32) -> Tail<V> {
        // SAFETY: the caller's promise.
        let value = unsafe { shuffle_bits(self.value, lane.wrapping_sub(1) % WARP_SIZE) };
        let before = if lane < WARP_SIZE { (1 << lane) - 1 } else { u32::MAX };
        Tail { has_head: self.heads & before != 0, value: if lane == 0 { R::IDENTITY } else { value } }
    }
}

impl<V: Bits> SegmentedMemory<V> {
    /// The first half of a reduction, before a barrier: what the lanes before this one carry to it.
    ///
    /// # Safety
    /// All threads of the block make this call, which are whole warps, and nothing else uses this memory between the barriers before and
    /// after both halves.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn put<R: Reduction<Value = V>>(self, own: Tail<V>) -> Tail<V> {
        let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
        // SAFETY: the block is whole warps, and all its threads are here: so are the 32 lanes of each warp. Here and below.
        let lanes = unsafe { WarpTails::of::<R>(own) };
        if lane == WARP_SIZE - 1 {
            self.tails.set(warp, lanes.value);
            self.heads.set(warp, (lanes.heads != 0) as u32);
        }
        // SAFETY: as above.
        unsafe { lanes.before::<R>(lane) }
    }

    /// The second half, after the barrier: what the threads before this one carry to it, and what the whole block has.
    ///
    /// # Safety
    /// As for [`put`](Self::put), which has given `in_warp`.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn carry_before<R: Reduction<Value = V>>(self, in_warp: Tail<V>) -> (Tail<V>, Tail<V>) {
        let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
        let warps = thread::block_dim_x() / WARP_SIZE;
        let mut of_warp = Tail { has_head: false, value: R::IDENTITY };
        if lane < warps {
            of_warp = Tail { has_head: self.heads.get(lane) != 0, value: self.tails.get(lane) };
        }
        // SAFETY: as for `put`. A block has 32 warps at most.
        unsafe {
            let of_warps = WarpTails::of::<R>(of_warp);
            (of_warps.before::<R>(warp).then::<R>(in_warp), of_warps.before::<R>(warps))
        }
    }
}
