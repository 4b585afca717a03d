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
use crate::elements::{Output, Slice, Source};
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

/// The shape of tiles of keys of `key_bytes` bytes with values of `value_bytes` bytes, 4 or 8 each.
const fn tile(key_bytes: usize, value_bytes: usize) -> Tile {
    ROW.reduce.of(key_bytes, value_bytes)
}

/// Blocks per multiprocessor for sums of 8-byte floats, which take more registers than other reductions.
const WIDE_FLOAT_BLOCKS: usize = ROW.reduce_blocks - 1;

/// Kernel: writes the key of each group of `from` to `out`, with the reduction of its values, and the number of groups
/// to `out.count`. One block per tile of `NT * VT` keys. `coding` encodes the values, for a reduction that orders them.
///
/// # Safety
/// `from` has at least one element, and `out` has capacity for as many. `shared_words` points to [`words`] words, which
/// are 0. There is one block per tile, of `NT` threads, at least two whole warps, with [`shared_bytes`]. The output
/// arrays do not overlap the input arrays.
#[kernel(
    u32v4sum = <u32, u32, Sum<u32>, { tile(4, 4).threads }, { tile(4, 4).items_per_thread }>
        within (tile(4, 4).threads, ROW.reduce_blocks),
    u32v8sum = <u32, u64, Sum<u64>, { tile(4, 8).threads }, { tile(4, 8).items_per_thread }>
        within (tile(4, 8).threads, ROW.reduce_blocks),
    u64v4sum = <u64, u32, Sum<u32>, { tile(8, 4).threads }, { tile(8, 4).items_per_thread }>
        within (tile(8, 4).threads, ROW.reduce_blocks),
    u64v8sum = <u64, u64, Sum<u64>, { tile(8, 8).threads }, { tile(8, 8).items_per_thread }>
        within (tile(8, 8).threads, ROW.reduce_blocks),
    u32v4float = <u32, u32, FloatSum<u32>, { tile(4, 4).threads }, { tile(4, 4).items_per_thread }>
        within (tile(4, 4).threads, ROW.reduce_blocks),
    u32v8float = <u32, u64, FloatSum<u64>, { tile(4, 8).threads }, { tile(4, 8).items_per_thread }>
        within (tile(4, 8).threads, WIDE_FLOAT_BLOCKS),
    u64v4float = <u64, u32, FloatSum<u32>, { tile(8, 4).threads }, { tile(8, 4).items_per_thread }>
        within (tile(8, 4).threads, ROW.reduce_blocks),
    u64v8float = <u64, u64, FloatSum<u64>, { tile(8, 8).threads }, { tile(8, 8).items_per_thread }>
        within (tile(8, 8).threads, WIDE_FLOAT_BLOCKS),
    u32v4greatest = <u32, u32, Greatest<u32>, { tile(4, 4).threads }, { tile(4, 4).items_per_thread }>
        within (tile(4, 4).threads, ROW.reduce_blocks),
    u32v8greatest = <u32, u64, Greatest<u64>, { tile(4, 8).threads }, { tile(4, 8).items_per_thread }>
        within (tile(4, 8).threads, ROW.reduce_blocks),
    u64v4greatest = <u64, u32, Greatest<u32>, { tile(8, 4).threads }, { tile(8, 4).items_per_thread }>
        within (tile(8, 4).threads, ROW.reduce_blocks),
    u64v8greatest = <u64, u64, Greatest<u64>, { tile(8, 8).threads }, { tile(8, 8).items_per_thread }>
        within (tile(8, 8).threads, ROW.reduce_blocks),
)]
pub unsafe fn reduce_groups<B: Bits, V: Bits, R: Reduction<Value = V>, const NT: usize, const VT: usize>(
    from: Slice<B, V>,
    out: Output<B, V>,
    shared_words: *mut u64,
    coding: Coding<V>,
) {
    const { heads::check::<NT, VT>() };
    const { shared_memory::check(Memory::<B, V>::bytes(NT, VT)) };
    let (n, number) = (from.len, from.len.div_ceil(NT * VT));
    // SAFETY: `shared_words` has `words` words: `look_back::words(number)` of `tiles`, and then the words of `carries`.
    // Nothing else uses them. The launch has `shared_bytes`. Before the first barrier, a thread writes its own slots of
    // `keys` and `values`. After a barrier behind the reads, it writes the slots of its own heads, which the scan makes
    // disjoint.
    let (tiles, carries, memory) = unsafe {
        (
            Tiles::new(shared_words, number),
            Carries::new(shared_words.wrapping_add(look_back::words(number)), number, size_of::<V>()),
            Memory::<B, V>::at_start(NT, VT),
        )
    };
    // A constant, which takes no registers.
    let coding = Coding { rotation: V::MIN, ..coding };
    let Memory { keys: slots, values: reduced, segmented, carried, compaction } = memory;
    // SAFETY: the caller passes the elements of `from`.
    let from = unsafe { from.source() };
    heads::prefetch::<B, NT, VT>(from.keys);
    heads::prefetch::<V, NT, VT>(from.values);
    let tile = compaction.take(tiles);
    let len = load::<B, V, NT, VT>(from, tile, slots, reduced, coding.decode(R::IDENTITY));
    let heads = heads::find::<B, VT>(slots, tile == 0, len);
    // SAFETY: all threads of the block, which are whole warps, make this call: no branch of the kernel returns before
    // its end.
    let kept = unsafe { compaction.count(tiles, tile, heads.bits.count_ones()) };
    // All threads have read the keys: `count` contains a barrier.
    if heads.bits != 0 {
        scatter::<B, VT>(heads.bits, kept.before_thread, |i| heads.keys[i], slots);
    }
    shared::wait_for_copies();
    thread::sync_threads();
    // SAFETY: all threads of the block make this call, and nothing else uses `segmented`.
    let of_tile = unsafe { reduce_tile::<V, R, VT>((heads.bits, kept.before_thread), reduced, coding, segmented) };
    if thread::thread_idx_x() == WARP_SIZE {
        carries.publish(tile, of_tile);
    }
    // SAFETY: all threads of the block, which are whole warps, make these calls after `count`.
    unsafe {
        compaction.look_back(tiles, tile, kept.of_tile, ROW.groups_pause);
        carries.pass_on::<R>(tile, of_tile, ROW.groups_pause, carried);
    }
    thread::sync_threads();
    let carried = carried.get(0);
    if thread::thread_idx_x() == 0 && tile > 0 && kept.of_tile > 0 {
        reduced.set(0, R::combine(carried, reduced.get(0)));
    }
    let (keys, values) = (slots.slice(0, kept.of_tile), reduced.slice(0, kept.of_tile));
    // SAFETY: the caller passes room for `n` elements, and `kept_before` is the number of heads in earlier tiles.
    unsafe { write_groups::<B, V, NT, VT>((keys, values), tile == 0, compaction.kept_before(), (out, n), coding) };
    if tile as usize + 1 == number && thread::thread_idx_x() == 0 {
        let groups = compaction.kept_before() + kept.of_tile as usize;
        let last = if of_tile.has_head { of_tile.value } else { R::combine(carried, of_tile.value) };
        // SAFETY: the caller passes room for `n` elements and one number at `count`. The block of the last tile alone
        // writes it and the last group's value, since no head closes that group.
        unsafe {
            GlobalMut::new(out.at.values, n).set(groups - 1, coding.decode(last));
            GlobalMut::new(out.count, 1).set(0, groups as u64);
        }
    }
}

/// Global to shared memory: loads the keys and values of a tile, and fills the rest of its values with `rest`. Returns
/// the number of its elements when its keys are there. Its values are still on their way, because all later tiles wait
/// for this tile's count, and no tile waits for its values yet.
#[inline(always)]
#[track_caller]
fn load<B: Bits, V: Bits, const NT: usize, const VT: usize>(
    from: Source<B, V>,
    tile: u32,
    keys: Shared<B>,
    values: Shared<V>,
    rest: V,
) -> usize {
    let first = tile as usize * (NT * VT);
    let len = (from.len() - first).min(NT * VT);
    heads::load::<B, NT, VT>(from.keys, first, len, keys);
    shared::commit_copies();
    heads::load_striped::<V, NT, VT>(from.values.slice(first, len), values, rest);
    shared::commit_copies();
    shared::wait_for_all_but_last_commit();
    thread::sync_threads();
    len
}

/// Sets value `i` of the tile to the reduction of the values before head `i`, since the head before. The first head also
/// closes the values of earlier threads. Returns the tail of the tile. `heads` are the bits of this thread's heads, and
/// the number of heads of the threads before.
///
/// # Safety
/// All threads of the block, which are whole warps, make this call, and nothing else uses `segmented`.
#[inline(always)]
#[track_caller]
unsafe fn reduce_tile<V: Bits, R: Reduction<Value = V>, const VT: usize>(
    (heads, before_thread): (u32, u32),
    values: Shared<V>,
    coding: Coding<V>,
    segmented: SegmentedMemory<V>,
) -> Tail<V> {
    let mut own = [R::IDENTITY; VT];
    for i in 0..VT {
        own[i] = values.get(thread::thread_idx_x() * VT as u32 + i as u32);
    }
    coding.encode_all(&mut own);
    // For each key, the reduction of this thread's values before it, since the last head.
    let mut value = R::IDENTITY;
    for i in 0..VT {
        let before = value;
        value = if heads >> i & 1 != 0 { own[i] } else { R::combine(value, own[i]) };
        own[i] = before;
    }
    // SAFETY: all threads of the block, which are whole warps, make this call, and only the two halves of the reduction
    // use `segmented`.
    let in_warp = unsafe { segmented.put::<R>(Tail { has_head: heads != 0, value }) };
    // After this barrier, all threads have read the values.
    thread::sync_threads();
    // SAFETY: all threads of the block, which are whole warps, make this call; a barrier comes after `put`, which has
    // returned `in_warp`.
    let (before, of_tile) = unsafe { segmented.carry_before::<R>(in_warp) };
    if heads != 0 {
        scatter::<V, VT>(heads, before_thread, |i| own[i], values);
        // The first head of the thread also closes the values of earlier threads.
        values.set(before_thread, R::combine(before.value, values.get(before_thread)));
    }
    of_tile
}

/// Writes the heads of a tile, and the values of the groups that they close: head `i` closes the group before its own,
/// and the first head of the array closes none.
///
/// # Safety
/// `out` has room for `n` elements, and `groups_before` is the number of heads in earlier tiles.
#[inline(always)]
#[track_caller]
unsafe fn write_groups<B: Bits, V: Bits, const NT: usize, const VT: usize>(
    (keys, values): (Shared<B>, Shared<V>),
    is_first: bool,
    groups_before: usize,
    (out, n): (Output<B, V>, usize),
    coding: Coding<V>,
) {
    let (heads, closes_none) = (keys.len(), is_first as u32);
    let closed = heads as usize - closes_none as usize;
    // A tile without heads closes no group and may have skipped the look-back, so that `groups_before` may be 0.
    let first_closed = (groups_before + closes_none as usize).max(1) - 1;
    // SAFETY: `out` has capacity for `n` elements, and there are at most `n` groups. Tiles write disjoint ranges:
    // `groups_before` is the number of heads in earlier tiles.
    let (to_keys, to_values) = unsafe {
        (
            GlobalMut::new(out.at.keys, n).slice(groups_before, heads as usize),
            GlobalMut::new(out.at.values, n).slice(first_closed, closed),
        )
    };
    compaction::write::<B, NT, VT>(keys, to_keys, Coding::NONE);
    compaction::write::<V, NT, VT>(values.slice(closes_none, closed as u32), to_values, coding);
}
