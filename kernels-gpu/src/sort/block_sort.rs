//! Block sort: a tile sorted by one block, in registers and then in shared memory.
//!
//! ```text
//!   registers   VT keys a thread, sorted by a network
//!   shared      runs of VT → 2 VT → 4 VT → … → NT * VT     a round a doubling: 2, 4, 8 … threads merge two runs
//! ```

use crate::key::{Bits, Coding};
use crate::sort::detect_runs::Detection;
use crate::sort::network::sort_registers;
use crate::tile;
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Bytes of dynamic shared memory for blocks of `threads` threads with `items_per_thread` keys each.
pub const fn shared_bytes<B>(threads: usize, items_per_thread: usize) -> u32 {
    (threads * items_per_thread * size_of::<B>()) as u32
}

/// Kernel: sorts each tile of `NT * VT` keys of `from` to the same indices of `to`, which may be the same array.
///
/// Keys are loaded as the first [`Coding`] encodes them and stored as the second decodes them. Nothing is done if `order` is
/// not null and `detect_runs` has found one. `random` is any number: which thread begins with which keys depends on it, so
/// that no input can be made that is slow because of how its keys meet.
///
/// # Safety
/// `from` and `to` have `n` keys, in global memory, and are the same array or do not overlap. Blocks are of `NT` threads,
/// a power of two, one for each tile, with [`shared_bytes`] of dynamic shared memory. `order` is null or what `detect_runs` or
/// `choose_digits` wrote, which nothing writes during the launch.
#[kernel(
    u32 = <u32, { ROW.block_4.threads }, { ROW.block_4.items_per_thread }> within (ROW.block_4.threads, 5),
    u64 = <u64, { ROW.block_8.threads }, { ROW.block_8.items_per_thread }>,
    u32small = <u32, { ROW.small_block_4.threads }, { ROW.small_block_4.items_per_thread }>,
    u64small = <u64, { ROW.small_block_8.threads }, { ROW.small_block_8.items_per_thread }>,
    u32tiny = <u32, { ROW.tiny_block_4.threads }, { ROW.tiny_block_4.items_per_thread }>,
    u64tiny = <u64, { ROW.tiny_block_8.threads }, { ROW.tiny_block_8.items_per_thread }>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn block_sort<B: Bits, const NT: usize, const VT: usize>(
    from: *mut B,
    to: *mut B,
    n: usize,
    encode_always: B,
    encode_when_negative: B,
    decode_always: B,
    decode_when_negative: B,
    order: *mut u32,
    random: u64,
) {
    let encode = Coding { always: encode_always, when_negative: encode_when_negative };
    let decode = Coding { always: decode_always, when_negative: decode_when_negative };
    // SAFETY: both arrays have `n` keys, and there is one block for each tile, so that `start < n`. A block uses
    // `start .. start + count` of both, which no other block does. `from` is not a constant view: it may be `to`. Then
    // barriers of `sort_tile` come between the reads and the writes.
    let (from, to) = unsafe { (GlobalMut::new(from, n), GlobalMut::new(to, n)) };
    let start = thread::block_idx_x() as usize * NT * VT;
    let count = (n - start).min(NT * VT);
    let (from, to) = (from.slice(start, count), to.slice(start, count));
    // SAFETY: `NT * VT` keys are the `shared_bytes` of the launch. In `sort_tile` each thread writes `VT` slots that no
    // other one writes, below `NT * VT`; barriers come between the writes and the reads of each round, and before the
    // tile is stored.
    let tile = unsafe { Shared::<B>::dynamic(0, (NT * VT) as u32) };

    // SAFETY: `order` is null, or `DETECTION_WORDS` words that this launch only reads.
    if unsafe { Detection::new(order) }.is_done() {
        return;
    }
    // Any VT keys will do for a thread to begin with, so those that it loads.
    sort_tile(tile::global_to_registers::<B, NT, VT>(from, encode, random), NT as u32, tile);
    tile::decode_to_global::<_, NT>(tile, to, decode, thread::thread_idx_x());
}

/// Registers to shared: sorts the `VT` keys that each thread has, all together.
///
/// The block has `NT` threads, a power of two, which all call this; `tile` is of `NT * VT` keys.
#[inline(always)]
#[track_caller]
pub(super) fn sort_tile<B: Bits, const VT: usize>(mut keys: [B; VT], block: u32, tile: Shared<B>) {
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
