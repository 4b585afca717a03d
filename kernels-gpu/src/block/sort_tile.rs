//! A tile sorted by one block, in registers and then in shared memory.
//!
//! ```text
//!   registers   VT keys a thread, sorted by a network
//!   shared      runs of VT → 2 VT → 4 VT → … → NT * VT     a round a doubling: 2, 4, 8 … threads merge two runs
//! ```

use crate::block::shared_memory::shared_memory;
use crate::block::tile;
use crate::key::Bits;
use crate::thread::network::sort_registers;
use cuda_std::prelude::*;

shared_memory! {
    /// Shared memory of a tile of `slots` keys.
    pub(crate) struct KeyTile<B: Word>(slots: usize) {
        pub keys: [B; slots],
    }
}

/// Registers to shared: sorts the `VT` keys that each thread has, all together.
///
/// The block has `NT` threads, a power of two, which all call this; `tile` is of `NT * VT` keys.
#[inline(always)]
#[track_caller]
pub(crate) fn sort_tile<B: Bits, const VT: usize>(mut keys: [B; VT], block: u32, tile: Shared<B>) {
    let thread = thread::thread_idx_x();
    sort_registers(&mut keys);

    let mut threads = 1;
    while threads < block {
        // Two runs of `threads * VT` keys each, merged by twice as many threads.
        let first = thread & !(2 * threads - 1);
        let (run, pair) = (threads * VT as u32, tile.slice(first * VT as u32, 2 * threads * VT as u32));
        let slot = (thread - first) * VT as u32;
        // The second one lies downwards.
        let (upwards, from) = (slot < run, pair.len() - VT as u32 - (slot.saturating_sub(run)));
        // SAFETY: the loop has as many rounds for each thread, so that all threads of the block are here. A thread's
        // `VT` slots, from `slot` or from `pair.len() - VT - (slot - run)` on, are below `pair.len()`, and no other
        // thread of the pair has them.
        unsafe { tile::store_blocked_or_reversed(keys, if upwards { slot } else { from }, upwards, pair) };
        thread::sync_threads();
        keys = tile::merge_to_registers(pair, run, slot);
        thread::sync_threads();
        threads *= 2;
    }

    tile::store_blocked(keys, thread * VT as u32, tile);
    thread::sync_threads();
}
