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
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot, shuffle_up};

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

/// The bits of the value that the lane `distance` below passed, or the lane's own where there is none so far below.
///
/// # Safety
/// All lanes of one whole warp make the same call.
#[inline(always)]
unsafe fn shuffle_bits_up<V: Bits>(value: V, distance: u32) -> V {
    let bits = value.to_register();
    // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which make this call together.
    unsafe {
        let low = shuffle_up(FULL_MASK, bits as u32, distance) as u64;
        if const { size_of::<V>() == 4 } {
            return V::from_register(low);
        }
        V::from_register(low | (shuffle_up(FULL_MASK, (bits >> 32) as u32, distance) as u64) << 32)
    }
}

/// What the threads before this one carry to it, and what the whole block has.
///
/// # Safety
/// All threads of the block make this call, which are whole warps, and nothing else uses `memory` between the barriers before and
/// after it. It has a barrier itself.
#[inline(always)]
#[track_caller]
pub unsafe fn carry_before<R: Reduction>(
    own: Tail<R::Value>,
    memory: SegmentedMemory<R::Value>,
) -> (Tail<R::Value>, Tail<R::Value>) {
    let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
    // SAFETY: the block is whole warps, and all its threads are here: so are the 32 lanes of each warp.
    let heads = unsafe { ballot(FULL_MASK, own.has_head) };
    // How far the lanes reach back from which this one's value is: to the last head up to this lane, or to all before it.
    let up_to = heads & (u32::MAX >> (WARP_SIZE - 1 - lane));
    let reach = if up_to == 0 { lane } else { lane - (WARP_SIZE - 1 - up_to.leading_zeros()) };
    let (mut value, mut distance) = (own.value, 1);
    while distance < WARP_SIZE {
        // SAFETY: as above; the loop has the same five rounds for each lane.
        let before = unsafe { shuffle_bits_up(value, distance) };
        if distance <= reach {
            value = R::combine(before, value);
        }
        distance *= 2;
    }
    if lane == WARP_SIZE - 1 {
        memory.tails.set(warp, value);
        memory.heads.set(warp, (heads != 0) as u32);
    }
    // SAFETY: as above.
    let before = unsafe { shuffle_bits_up(value, 1) };
    let in_warp =
        Tail { has_head: heads & ((1 << lane) - 1) != 0, value: if lane == 0 { R::IDENTITY } else { before } };
    thread::sync_threads();
    let none = Tail { has_head: false, value: R::IDENTITY };
    let (mut of_warps, mut before_warp) = (none, none);
    for other in 0..thread::block_dim_x() / WARP_SIZE {
        if other == warp {
            before_warp = of_warps;
        }
        let tail = Tail { has_head: memory.heads.get(other) != 0, value: memory.tails.get(other) };
        of_warps = of_warps.then::<R>(tail);
    }
    (before_warp.then::<R>(in_warp), of_warps)
}
