//! Unique keys: the first key of each group, with its value.

use super::heads;
use crate::block::compaction::{self, CompactionMemory, load_each, scatter};
use crate::block::shared_memory::{self, shared_memory};
use crate::elements::{Output, Slice, has_values};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use crate::warp::look_back::Tiles;
use cuda_std::prelude::*;
use cuda_std::recomputed;

shared_memory! {
    /// Shared memory of a block.
    struct Memory<B: Word>(threads: usize, items_per_thread: usize, has_values: bool) {
        /// The key before the tile, and the tile's keys. Later, its heads alone.
        keys: [B; heads::slots(threads, items_per_thread)],
        /// Index in the tile of each head.
        sources: [u16; if has_values { threads * items_per_thread } else { 0 }],
        compaction: CompactionMemory {},
    }
}

/// Bytes of dynamic shared memory for tiles of `threads * items_per_thread` keys of `key_bytes` bytes, 4 or 8, without
/// or with values.
pub const fn shared_bytes(threads: usize, items_per_thread: usize, key_bytes: usize, has_values: bool) -> u32 {
    if key_bytes == 4 {
        Memory::<u32>::bytes(threads, items_per_thread, has_values)
    } else {
        Memory::<u64>::bytes(threads, items_per_thread, has_values)
    }
}

/// Blocks per multiprocessor for 4-byte keys with 8-byte values, which take more registers than other widths, and for
/// such keys with values whose number only the GPU knows.
const FEWER_BLOCKS: usize = ROW.unique_pairs_blocks - 1;

/// Kernel: writes the first key of each group of `from` to `out`, with its value, and the number of groups to
/// `out.count`. One block per tile of `NT * VT` keys. There are no values if `V` is `()`. If the instance is `COUNTED`,
/// only the first elements of `from` take part. Their number is at `from_count`.
///
/// # Safety
/// `from` has at least one element, and `out` has capacity for as many. Nothing writes the number at `from_count`.
/// `tiles` points to the [`words`](crate::warp::look_back::words) of all tiles, which are 0. There is one block per
/// tile, of `NT` threads, whole warps, with [`shared_bytes`]. The output arrays do not overlap the input arrays.
#[kernel(
    u32 = <u32, (), { ROW.unique.of(4, 0).threads }, { ROW.unique.of(4, 0).items_per_thread }, false>
        within (ROW.unique.of(4, 0).threads, ROW.unique_blocks),
    u64 = <u64, (), { ROW.unique.of(8, 0).threads }, { ROW.unique.of(8, 0).items_per_thread }, false>,
    u32v4 = <u32, u32, { ROW.unique.of(4, 4).threads }, { ROW.unique.of(4, 4).items_per_thread }, false>
        within (ROW.unique.of(4, 4).threads, ROW.unique_pairs_blocks),
    u32v8 = <u32, u64, { ROW.unique.of(4, 8).threads }, { ROW.unique.of(4, 8).items_per_thread }, false>
        within (ROW.unique.of(4, 8).threads, FEWER_BLOCKS),
    u64v4 = <u64, u32, { ROW.unique.of(8, 4).threads }, { ROW.unique.of(8, 4).items_per_thread }, false>
        within (ROW.unique.of(8, 4).threads, ROW.unique_pairs_blocks),
    u64v8 = <u64, u64, { ROW.unique.of(8, 8).threads }, { ROW.unique.of(8, 8).items_per_thread }, false>
        within (ROW.unique.of(8, 8).threads, ROW.unique_pairs_blocks),
    u32counted = <u32, (), { ROW.unique.of(4, 0).threads }, { ROW.unique.of(4, 0).items_per_thread }, true>
        within (ROW.unique.of(4, 0).threads, ROW.unique_blocks),
    u64counted = <u64, (), { ROW.unique.of(8, 0).threads }, { ROW.unique.of(8, 0).items_per_thread }, true>,
    u32v4counted = <u32, u32, { ROW.unique.of(4, 4).threads }, { ROW.unique.of(4, 4).items_per_thread }, true>
        within (ROW.unique.of(4, 4).threads, FEWER_BLOCKS),
    u32v8counted = <u32, u64, { ROW.unique.of(4, 8).threads }, { ROW.unique.of(4, 8).items_per_thread }, true>
        within (ROW.unique.of(4, 8).threads, FEWER_BLOCKS),
    u64v4counted = <u64, u32, { ROW.unique.of(8, 4).threads }, { ROW.unique.of(8, 4).items_per_thread }, true>
        within (ROW.unique.of(8, 4).threads, ROW.unique_pairs_blocks),
    u64v8counted = <u64, u64, { ROW.unique.of(8, 8).threads }, { ROW.unique.of(8, 8).items_per_thread }, true>
        within (ROW.unique.of(8, 8).threads, ROW.unique_pairs_blocks),
)]
pub unsafe fn unique<B: Bits, V: Word, const NT: usize, const VT: usize, const COUNTED: bool>(
    from: Slice<B, V>,
    from_count: *const u64,
    out: Output<B, V>,
    tiles: *mut u64,
) {
    const { assert!(VT < 32 && NT * VT <= 1 << 16, "a thread has a bit for each key, and a key an index of 16 bits") };
    const { shared_memory::check(Memory::<B>::bytes(NT, VT, has_values::<V>())) };
    // SAFETY: nothing writes the number at `from_count`.
    let from = unsafe { from.first::<COUNTED>(from_count) };
    let (n, number) = (from.len, from.len.div_ceil(NT * VT));
    // SAFETY: `tiles` has `number + 1` words, which nothing else uses. The launch has `shared_bytes`. Thread `t` writes
    // slots `1 + t + i * NT` of `keys`, and thread 0 slot 0. After a barrier behind the reads, it writes its own heads
    // to slots that the scan makes disjoint.
    let (tiles, Memory { keys: slots, sources, compaction }) =
        unsafe { (Tiles::new(tiles, number), Memory::<B>::at_start(NT, VT, has_values::<V>())) };
    // SAFETY: the caller passes `n` keys, and `n` values unless `V` is `()`.
    let from = unsafe { from.source() };
    heads::prefetch::<B, NT, VT>(from.keys);
    // SAFETY: the caller passes one number at the count, which only the block of the last tile writes.
    let Some(tile) = (unsafe { compaction.take_of::<COUNTED>(tiles, number, out.count) }) else { return };
    let first = tile as usize * (NT * VT);
    let len = (n - first).min(NT * VT);
    heads::load::<B, NT, VT>(from.keys, first, len, slots);
    shared::wait_for_copies();
    thread::sync_threads();
    let heads = heads::find::<B, VT>(slots, tile == 0, len);
    // SAFETY: all threads of the block, which are whole warps, make this call: they have the same `tile`, so that all
    // or none have returned.
    let counted = unsafe { compaction.count(tiles, tile, heads.bits.count_ones()) };
    let of_tile = counted.of_tile;
    // All threads have read the keys: `count` contains a barrier.
    scatter::<B, VT>(heads.bits, counted.before_thread, |i| heads.keys[i], slots);
    let mut loaded = [V::from_register(0); VT];
    if has_values::<V>() {
        let first_of_thread = recomputed(thread::thread_idx_x()) * VT as u32;
        scatter::<u16, VT>(heads.bits, counted.before_thread, |i| (first_of_thread + i as u32) as u16, sources);
        thread::sync_threads();
        // The loads of the values overlap with the look-back.
        let values = from.values.slice(first, len);
        loaded = load_each::<V, NT, VT>(of_tile as usize, |i| values.get(sources.get(i) as usize));
    }
    let pause = if has_values::<V>() { ROW.unique_pairs_pause } else { ROW.groups_pause };
    // SAFETY: all threads of the block, which are whole warps, make this call after `count`.
    unsafe { compaction.look_back(tiles, tile, of_tile, pause) };
    thread::sync_threads();
    let before = compaction.kept_before();
    if tile as usize + 1 == number && thread::thread_idx_x() == 0 {
        // SAFETY: the caller passes one number at `count`, and the block of the last tile alone writes it.
        unsafe { GlobalMut::new(out.count, 1) }.set(0, before as u64 + of_tile as u64);
    }
    // SAFETY: `out` has capacity for `n` groups, and `before`, the heads of earlier tiles, makes ranges disjoint.
    let to = unsafe { out.at.arrays(n) }.slice(before, of_tile as usize);
    compaction::write::<B, NT, VT>(slots, to.keys, Coding::NONE);
    if has_values::<V>() {
        compaction::put::<V, NT, VT>(loaded, to.values);
    }
}
