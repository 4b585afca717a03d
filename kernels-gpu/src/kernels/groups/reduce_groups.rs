//! Reduce by key: the key of each group, and the reduction of its values.
//!
//! ```text
//!   keys      │ 3 3 5 5 5 7 │       tile
//!   values    │ 1 2 4 1 1 6 │
//!   closed    │     3     6 │       at each head, the reduction of the group before it; at the first, with the carry
//!   tail      │           6 │       the tile's carry to the next tile
//! ```

use super::heads;
use super::reduction::{FloatSum, Greatest, Reduction, Sum};
use crate::block::compaction::{self, CompactionMemory, scatter};
use crate::block::segmented::{SegmentedMemory, Tail};
use crate::block::shared_memory::{self, shared_memory};
use crate::elements::{Arrays, Output, Slice, Source};
use crate::key::{Bits, Coding};
use crate::tuning::{ROW, Tile};
use crate::warp::carry::Carries;
use crate::warp::look_back::{self, Tiles};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

shared_memory! {
    /// Shared memory of a block.
    struct Memory<B: Word, V: Word>(threads: usize, items_per_thread: usize) {
        /// The key before the tile, and the tile's keys. Later, its heads alone.
        keys: [B; heads::slots(threads, items_per_thread)],
        /// The values of the keys. Later, the reductions of the groups that the tile closes.
        values: [V; threads * items_per_thread],
        segmented: SegmentedMemory<V> {},
        /// The carry to the tile.
        carried: [V; 1],
        compaction: CompactionMemory {},
    }
}

/// Bytes of dynamic shared memory for tiles of `threads * items_per_thread` keys of `key_bytes` bytes and values of
/// `value_bytes` bytes, 4 or 8 each.
pub const fn shared_bytes(threads: usize, items_per_thread: usize, key_bytes: usize, value_bytes: usize) -> u32 {
    match (key_bytes, value_bytes) {
        (4, 4) => Memory::<u32, u32>::bytes(threads, items_per_thread),
        (4, _) => Memory::<u32, u64>::bytes(threads, items_per_thread),
        (_, 4) => Memory::<u64, u32>::bytes(threads, items_per_thread),
        _ => Memory::<u64, u64>::bytes(threads, items_per_thread),
    }
}

/// Number of 8-byte words that `tiles` tiles share, for values of `value_bytes` bytes.
pub const fn words(tiles: usize, value_bytes: usize) -> usize {
    look_back::words(tiles) + crate::warp::carry::words(tiles, value_bytes)
}

/// The states of `tiles` tiles and their carries, values of `value_bytes` bytes.
///
/// # Safety
/// `first` points to [`words`] words in global memory, which were 0 before the launch and which nothing else uses
/// during it.
#[inline(always)]
pub(super) unsafe fn states(first: *mut u64, tiles: usize, value_bytes: usize) -> (Tiles, Carries) {
    let carries = first.wrapping_add(look_back::words(tiles));
    // SAFETY: `words` are `look_back::words(tiles)` of the states, and then the words of the carries.
    unsafe { (Tiles::new(first, tiles), Carries::new(carries, tiles, value_bytes)) }
}

/// The shape of tiles of keys of `key_bytes` bytes with values of `value_bytes` bytes, 4 or 8 each.
const fn tile(key_bytes: usize, value_bytes: usize) -> Tile {
    ROW.reduce.of(key_bytes, value_bytes)
}

/// Blocks per multiprocessor for sums of 8-byte floats, which take more registers than other reductions.
const WIDE_FLOAT_BLOCKS: usize = ROW.reduce_blocks - 1;

/// Kernel: writes the key of each group of `from`, with the reduction of the group's values, to `out`, and the number
/// of groups to its count. One block per tile of `NT * VT` keys. `coding` encodes the values, for a reduction that
/// orders them. If the instance is `COUNTED`, only the first elements of `from` take part. Their number is at
/// `from_count`.
///
/// # Safety
/// `from` has at least one element, and `out` has capacity for as many and overlaps nothing. Nothing writes the number
/// at `from_count`. `shared_words` points to [`words`] words, which are 0. There is one block per tile, of `NT`
/// threads, at least two whole warps, with [`shared_bytes`].
#[kernel(
    u32v4sum = <u32, u32, Sum<u32>, { tile(4, 4).threads }, { tile(4, 4).items_per_thread }, false>
        within (tile(4, 4).threads, ROW.reduce_blocks),
    u32v8sum = <u32, u64, Sum<u64>, { tile(4, 8).threads }, { tile(4, 8).items_per_thread }, false>
        within (tile(4, 8).threads, ROW.reduce_blocks),
    u64v4sum = <u64, u32, Sum<u32>, { tile(8, 4).threads }, { tile(8, 4).items_per_thread }, false>
        within (tile(8, 4).threads, ROW.reduce_blocks),
    u64v8sum = <u64, u64, Sum<u64>, { tile(8, 8).threads }, { tile(8, 8).items_per_thread }, false>
        within (tile(8, 8).threads, ROW.reduce_blocks),
    u32v4float = <u32, u32, FloatSum<u32>, { tile(4, 4).threads }, { tile(4, 4).items_per_thread }, false>
        within (tile(4, 4).threads, ROW.reduce_blocks),
    u32v8float = <u32, u64, FloatSum<u64>, { tile(4, 8).threads }, { tile(4, 8).items_per_thread }, false>
        within (tile(4, 8).threads, WIDE_FLOAT_BLOCKS),
    u64v4float = <u64, u32, FloatSum<u32>, { tile(8, 4).threads }, { tile(8, 4).items_per_thread }, false>
        within (tile(8, 4).threads, ROW.reduce_blocks),
    u64v8float = <u64, u64, FloatSum<u64>, { tile(8, 8).threads }, { tile(8, 8).items_per_thread }, false>
        within (tile(8, 8).threads, WIDE_FLOAT_BLOCKS),
    u32v4greatest = <u32, u32, Greatest<u32>, { tile(4, 4).threads }, { tile(4, 4).items_per_thread }, false>
        within (tile(4, 4).threads, ROW.reduce_blocks),
    u32v8greatest = <u32, u64, Greatest<u64>, { tile(4, 8).threads }, { tile(4, 8).items_per_thread }, false>
        within (tile(4, 8).threads, ROW.reduce_blocks),
    u64v4greatest = <u64, u32, Greatest<u32>, { tile(8, 4).threads }, { tile(8, 4).items_per_thread }, false>
        within (tile(8, 4).threads, ROW.reduce_blocks),
    u64v8greatest = <u64, u64, Greatest<u64>, { tile(8, 8).threads }, { tile(8, 8).items_per_thread }, false>
        within (tile(8, 8).threads, ROW.reduce_blocks),
    u32v4sumcounted = <u32, u32, Sum<u32>, { tile(4, 4).threads }, { tile(4, 4).items_per_thread }, true>
        within (tile(4, 4).threads, ROW.reduce_blocks),
    u32v8sumcounted = <u32, u64, Sum<u64>, { tile(4, 8).threads }, { tile(4, 8).items_per_thread }, true>
        within (tile(4, 8).threads, ROW.reduce_blocks),
    u64v4sumcounted = <u64, u32, Sum<u32>, { tile(8, 4).threads }, { tile(8, 4).items_per_thread }, true>
        within (tile(8, 4).threads, ROW.reduce_blocks),
    u64v8sumcounted = <u64, u64, Sum<u64>, { tile(8, 8).threads }, { tile(8, 8).items_per_thread }, true>
        within (tile(8, 8).threads, ROW.reduce_blocks),
    u32v4floatcounted = <u32, u32, FloatSum<u32>, { tile(4, 4).threads }, { tile(4, 4).items_per_thread }, true>
        within (tile(4, 4).threads, WIDE_FLOAT_BLOCKS),
    u32v8floatcounted = <u32, u64, FloatSum<u64>, { tile(4, 8).threads }, { tile(4, 8).items_per_thread }, true>
        within (tile(4, 8).threads, WIDE_FLOAT_BLOCKS),
    u64v4floatcounted = <u64, u32, FloatSum<u32>, { tile(8, 4).threads }, { tile(8, 4).items_per_thread }, true>
        within (tile(8, 4).threads, ROW.reduce_blocks),
    u64v8floatcounted = <u64, u64, FloatSum<u64>, { tile(8, 8).threads }, { tile(8, 8).items_per_thread }, true>
        within (tile(8, 8).threads, WIDE_FLOAT_BLOCKS),
    u32v4greatestcounted = <u32, u32, Greatest<u32>, { tile(4, 4).threads }, { tile(4, 4).items_per_thread }, true>
        within (tile(4, 4).threads, ROW.reduce_blocks),
    u32v8greatestcounted = <u32, u64, Greatest<u64>, { tile(4, 8).threads }, { tile(4, 8).items_per_thread }, true>
        within (tile(4, 8).threads, ROW.reduce_blocks),
    u64v4greatestcounted = <u64, u32, Greatest<u32>, { tile(8, 4).threads }, { tile(8, 4).items_per_thread }, true>
        within (tile(8, 4).threads, ROW.reduce_blocks),
    u64v8greatestcounted = <u64, u64, Greatest<u64>, { tile(8, 8).threads }, { tile(8, 8).items_per_thread }, true>
        within (tile(8, 8).threads, ROW.reduce_blocks),
)]
pub unsafe fn reduce_groups<
    B: Bits,
    V: Bits,
    R: Reduction<Value = V>,
    const NT: usize,
    const VT: usize,
    const COUNTED: bool,
>(
    from: Slice<B, V>,
    from_count: *const u64,
    out: Output<B, V>,
    shared_words: *mut u64,
    coding: Coding<V>,
) {
    const { assert!(VT < 32 && NT * VT <= 1 << 16, "a thread has a bit for each key, and a key an index of 16 bits") };
    const { assert!(NT >= 64, "a warp adds up counts, and another one what is carried") };
    const { shared_memory::check(Memory::<B, V>::bytes(NT, VT)) };
    // SAFETY: nothing writes the number at `from_count`.
    let from = unsafe { from.first::<COUNTED>(from_count) };
    let n = from.len;
    let (thread, number) = (thread::thread_idx_x(), n.div_ceil(NT * VT));
    // SAFETY: `shared_words` has `words` words, which nothing else uses. The launch has `shared_bytes`. Before the
    // first barrier, a thread writes its own slots of `keys` and `values`. After a barrier behind the reads, it writes
    // the slots of its own heads, which the scan makes disjoint.
    let ((tiles, carries), memory) =
        unsafe { (states(shared_words, number, size_of::<V>()), Memory::<B, V>::at_start(NT, VT)) };
    // A constant, which takes no registers.
    let coding = Coding { rotation: V::MIN, ..coding };
    let Memory { keys: slots, values: reduced, carried, compaction, .. } = memory;
    // SAFETY: the caller passes `n` elements in `from`; `first + len` is at most `n`.
    let Source { keys, values } = unsafe { from.source() };
    heads::prefetch::<B, NT, VT>(keys);
    heads::prefetch::<V, NT, VT>(values);
    // SAFETY: the caller passes one number at the count, which only the block of the last tile writes.
    let Some(tile) = (unsafe { compaction.take_of::<COUNTED>(tiles, number, out.count) }) else { return };
    let first = tile as usize * (NT * VT);
    let len = (n - first).min(NT * VT);
    heads::load::<B, NT, VT>(keys, first, len, slots);
    shared::commit_copies();
    heads::load_striped::<V, NT, VT>(values.slice(first, len), reduced, coding.decode(R::IDENTITY));
    shared::commit_copies();
    // Wait for the keys alone: all later tiles wait for this tile's count, and no tile waits for its values yet.
    shared::wait_for_all_but_last_commit();
    thread::sync_threads();
    let heads = heads::find::<B, VT>(slots, tile == 0, len);
    // SAFETY: all threads of the block, which are whole warps, make this call: they have the same `tile`, so that all
    // or none have returned.
    let kept = unsafe { compaction.count(tiles, tile, heads.bits.count_ones()) };
    // All threads have read the keys: `count` contains a barrier.
    if heads.bits != 0 {
        scatter::<B, VT>(heads.bits, kept.before_thread, |i| heads.keys[i], slots);
    }
    shared::wait_for_copies();
    thread::sync_threads();

    // SAFETY: all threads of the block, which are whole warps, make this call, after the barrier.
    let of_tile = unsafe { reduce_tile::<B, V, R, VT>(memory, heads.bits, kept.before_thread, tile, carries, coding) };
    // SAFETY: all threads of the block, which are whole warps, make this call after `count`.
    unsafe { compaction.look_back(tiles, tile, kept.of_tile, ROW.groups_pause) };
    if thread / WARP_SIZE == 1 && tile > 0 {
        // SAFETY: `thread / WARP_SIZE == 1` holds for the 32 lanes of the second warp, which all make this call with
        // the block's `tile`.
        unsafe { carries.pass_on::<R>(tile, of_tile, carried, ROW.groups_pause) };
    }
    thread::sync_threads();
    let groups = TileGroups { tile, heads: kept.of_tile, of_tile };
    // SAFETY: the caller passes capacity for `n` elements in `out`, and one number at its count. A barrier came after
    // the last writes to the shared memory.
    unsafe { groups.write::<B, R, NT, VT>(out, n, memory, coding) };
}

/// Shared to shared: replaces the values by the reductions of the groups that the heads of the tile close, as far as
/// they are in the tile. `heads` has a bit for each head of this thread, whose first head has the slot `first_slot`.
/// Publishes the carry of the tile, and returns it.
///
/// # Safety
/// All threads of the block, which are whole warps, make this call, after a barrier.
#[inline(always)]
#[track_caller]
unsafe fn reduce_tile<B: Word, V: Bits, R: Reduction<Value = V>, const VT: usize>(
    Memory { values: reduced, segmented, .. }: Memory<B, V>,
    heads: u32,
    first_slot: u32,
    tile: u32,
    carries: Carries,
    coding: Coding<V>,
) -> Tail<V> {
    let thread = thread::thread_idx_x();
    let mut own = [R::IDENTITY; VT];
    for i in 0..VT {
        own[i] = reduced.get(thread * VT as u32 + i as u32);
    }
    coding.encode_all(&mut own);
    // For each key, the reduction of this thread's values before it, since the last head.
    let mut value = R::IDENTITY;
    for i in 0..VT {
        let before = value;
        value = if heads >> i & 1 != 0 { own[i] } else { R::combine(value, own[i]) };
        own[i] = before;
    }
    // SAFETY: all threads of the block, which are whole warps, make this call, and nothing else uses `segmented`.
    // After the barrier of the reduction, all threads have read the values.
    let (before, of_tile) = unsafe { segmented.reduce::<R>(Tail { has_head: heads != 0, value }) };
    if thread == WARP_SIZE {
        carries.publish(tile, of_tile);
    }
    if heads != 0 {
        scatter::<V, VT>(heads, first_slot, |i| own[i], reduced);
        // The first head of the thread also closes the values of earlier threads.
        reduced.set(first_slot, R::combine(before.value, reduced.get(first_slot)));
    }
    of_tile
}

/// The groups of a tile.
#[derive(Clone, Copy)]
struct TileGroups<V> {
    /// The number of the tile.
    tile: u32,
    /// Number of heads in the tile.
    heads: u32,
    /// What the tile carries to the next one.
    of_tile: Tail<V>,
}

impl<V: Bits> TileGroups<V> {
    /// Shared to global: writes the keys of the tile's heads, and the reductions of the groups that they close. The
    /// last tile also writes the last reduction and the number of groups.
    ///
    /// # Safety
    /// All threads of the block make this call, after a barrier. `out` has capacity for `n` elements, the keys of all
    /// tiles, and overlaps nothing.
    #[inline(always)]
    #[track_caller]
    unsafe fn write<B: Bits, R: Reduction<Value = V>, const NT: usize, const VT: usize>(
        self,
        out: Output<B, V>,
        n: usize,
        Memory { keys, values: reduced, carried, compaction, .. }: Memory<B, V>,
        coding: Coding<V>,
    ) {
        let (Self { tile, heads, of_tile }, thread) = (self, thread::thread_idx_x());
        // Head `i` of the tile closes the group before its own. The first head of the array closes none.
        let (groups_before, closes_none) = (compaction.kept_before(), (tile == 0) as usize);
        if thread == 0 && tile > 0 && heads > 0 {
            reduced.set(0, R::combine(carried.get(0), reduced.get(0)));
        }
        let closed = heads as usize - closes_none;
        // A tile without heads closes no group and may have skipped the look-back, so that `groups_before` may be 0.
        let first_closed = (groups_before + closes_none).max(1) - 1;
        // SAFETY: `out` has capacity for `n` elements, and there are at most `n` groups. Tiles write disjoint ranges:
        // `groups_before` is the number of heads in earlier tiles.
        let Arrays { keys: to_keys, values: to_values } = unsafe { out.at.arrays(n) };
        compaction::write::<B, NT, VT>(keys, to_keys.slice(groups_before, heads as usize), Coding::NONE);
        let values_closed = reduced.slice(closes_none as u32, closed as u32);
        compaction::write::<V, NT, VT>(values_closed, to_values.slice(first_closed, closed), coding);
        if tile as usize + 1 == n.div_ceil(NT * VT) && thread == 0 {
            let groups = groups_before + heads as usize;
            let last = if of_tile.has_head { of_tile.value } else { R::combine(carried.get(0), of_tile.value) };
            // No head closes the last group.
            to_values.set(groups - 1, coding.decode(last));
            // SAFETY: the caller passes one number at `count`, and the block of the last tile alone writes it.
            unsafe { GlobalMut::new(out.count, 1) }.set(0, groups as u64);
        }
    }
}
