//! The first key of each group, with its value.

use super::heads;
use crate::block::compaction::CompactionMemory;
use crate::block::indexed_merge::{Parts, gather_values};
use crate::block::shared_memory::{self, shared_memory};
use crate::kernels::sort::elements::Elements;
use crate::key::Bits;
use crate::tuning::ROW;
use crate::warp::look_back::Tiles;
use cuda_std::prelude::*;

shared_memory! {
    /// Shared memory of a block.
    struct Memory<B: Word>(threads: usize, items_per_thread: usize) {
        /// The key before the tile, and its keys.
        keys: [B; heads::slots(threads, items_per_thread)],
        compaction: CompactionMemory { threads * items_per_thread },
    }
}

/// Bytes of dynamic shared memory for `threads * items_per_thread` keys of `key_bytes` bytes, 4 or 8.
pub const fn shared_bytes(threads: usize, items_per_thread: usize, key_bytes: usize) -> u32 {
    if key_bytes == 4 {
        Memory::<u32>::bytes(threads, items_per_thread)
    } else {
        Memory::<u64>::bytes(threads, items_per_thread)
    }
}

/// Kernel: writes the first key of each group of `at` to `out`, with its value, and the number of groups to `count`. One block a tile
/// of `NT * VT` keys. There are no values if `V` is `()`.
///
/// # Safety
/// `at` has `n` keys, at least one, and as many values; `out` has capacity for as many. `count` has one number. `tiles` are the
/// [`words`](crate::warp::look_back::words) of all tiles, which are 0. Blocks are of `NT` threads, whole warps, one for each tile, with
/// [`shared_bytes`]. What is written overlaps nothing that is read.
#[kernel(
    u32 = <u32, (), { ROW.groups.of(4, 0).threads }, { ROW.groups.of(4, 0).items_per_thread }>,
    u64 = <u64, (), { ROW.groups.of(8, 0).threads }, { ROW.groups.of(8, 0).items_per_thread }>,
    u32v4 = <u32, u32, { ROW.groups.of(4, 0).threads }, { ROW.groups.of(4, 0).items_per_thread }>,
    u32v8 = <u32, u64, { ROW.groups.of(4, 0).threads }, { ROW.groups.of(4, 0).items_per_thread }>,
    u64v4 = <u64, u32, { ROW.groups.of(8, 0).threads }, { ROW.groups.of(8, 0).items_per_thread }>,
    u64v8 = <u64, u64, { ROW.groups.of(8, 0).threads }, { ROW.groups.of(8, 0).items_per_thread }>,
)]
pub unsafe fn unique<B: Bits, V: Word, const NT: usize, const VT: usize>(
    at: Elements<B, V>,
    n: usize,
    out: Elements<B, V>,
    count: *mut u64,
    tiles: *mut u64,
) {
    const { assert!(VT < 32 && NT * VT <= 1 << 16, "a thread has a bit for each key, and a key an index of 16 bits") };
    const { shared_memory::check(Memory::<B>::bytes(NT, VT)) };
    let number = n.div_ceil(NT * VT);
    // SAFETY: `tiles` has a word more than there are tiles, and is used for nothing else. The launch has `shared_bytes`. Thread `t`
    // writes slots `1 + t + i * NT` of `keys`, `i < VT`, and thread 0 slot 0, before a barrier.
    let (tiles, Memory { keys: slots, compaction }) =
        unsafe { (Tiles::new(tiles, number), Memory::<B>::at_start(NT, VT)) };
    let tile = compaction.take(tiles);
    let first = tile as usize * (NT * VT);
    let len = (n - first).min(NT * VT);
    // SAFETY: `at` has `n` keys and values, as the caller promises.
    let (keys, values) = unsafe { (Global::new(at.keys.cast_const(), n), Global::new(at.values.cast_const(), n)) };
    heads::load::<B, NT, VT>(keys, first, len, slots);
    thread::sync_threads();
    let bits = heads::find::<B, VT>(slots, tile == 0, len);
    let sources = core::array::from_fn::<u32, VT, _>(|i| thread::thread_idx_x() * VT as u32 + i as u32);
    // SAFETY: all threads of the block are here, whole warps. Each keeps at most its own keys.
    let of_tile = unsafe { compaction.keep(tiles, tile, bits, sources) }.of_tile;
    // SAFETY: as above.
    unsafe { compaction.look_back(tiles, tile, of_tile) };
    thread::sync_threads();
    let before = compaction.kept_before();
    if tile as usize + 1 == number && thread::thread_idx_x() == 0 {
        // SAFETY: `count` is one number, as the caller promises, which the block of the last tile alone writes.
        unsafe { GlobalMut::new(count, 1) }.set(0, before as u64 + of_tile as u64);
    }
    // SAFETY: `out` has capacity for `n` elements, and there are no more groups. No tile writes what another one does.
    let (to_keys, to_values) = unsafe {
        (
            GlobalMut::new(out.keys, n).slice(before, of_tile as usize),
            GlobalMut::new(out.values, n).slice(before, of_tile as usize),
        )
    };
    compaction.write::<B, NT, VT>(slots.slice(1, (NT * VT) as u32), to_keys, |key| key);
    if const { size_of::<V>() > 0 } {
        let values = values.slice(first, len);
        let values = Parts { a: values, b: values.slice(0, 0) };
        gather_values::<V, NT, VT>(values, compaction.sources, to_values);
    }
}
