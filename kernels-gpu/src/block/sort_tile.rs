//! A tile sorted by one block, in registers and then in shared memory.
//!
//! ```text
//!   registers   VT keys per thread, sorted by a network
//!   shared      runs of VT → 2 VT → 4 VT → … → NT * VT     each round doubles the runs: 2, 4, 8 … threads merge two
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

/// Registers to shared memory: sorts the keys of the block, `VT` per thread. Not stable.
///
/// `block` is the number of threads of the block, a power of two and a multiple of 32, and `tile` has `block * VT`
/// keys. All threads of the block make this call.
#[inline(always)]
#[track_caller]
pub(crate) fn sort_tile<B: Bits, const VT: usize>(mut keys: [B; VT], block: u32, tile: Shared<B>) {
    let thread = thread::thread_idx_x();
    sort_registers(&mut keys);

    let mut threads = 1;
    while threads < block {
        // Two runs of `threads * VT` keys each, merged by `2 * threads` threads.
        let first = thread & !(2 * threads - 1);
        let (run, pair) = (threads * VT as u32, tile.slice(first * VT as u32, 2 * threads * VT as u32));
        let slot = (thread - first) * VT as u32;
        // The second run is stored in reverse order.
        let (upwards, from) = (slot < run, pair.len() - VT as u32 - (slot.saturating_sub(run)));
        // SAFETY: the loop has the same number of rounds in each thread, so that the lanes of whole warps make this
        // call. A thread alone writes its `VT` slots, from `slot` or from `pair.len() - VT - (slot - run)`, which are
        // below `pair.len()`.
        unsafe { tile::store_blocked_or_reversed(keys, if upwards { slot } else { from }, upwards, pair) };
        thread::sync_threads();
        keys = tile::merge_to_registers(pair, run, slot);
        thread::sync_threads();
        threads *= 2;
    }

    tile::store_blocked(keys, thread * VT as u32, tile);
    thread::sync_threads();
}
