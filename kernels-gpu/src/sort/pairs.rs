//! The sort of keys of 4 bytes with values of 4 bytes: the same two phases, with a second array beside the keys.
//!
//! ```text
//!   registers   VT keys a thread, with their indices among these, sorted by a network
//!   shared      │ keys … │       a round moves the keys, and the values on the same ways
//!               │ values … │
//! ```
//!
//! It is stable because indices make all keys different in the network, and because merges take A's first of equal keys.

use crate::key::Coding;
use crate::sort::detect_runs::Detection;
use crate::sort::indexed_key::{INDICES, indexed, key_and_index};
use crate::sort::merge_pass::long_runs::long_runs;
use crate::sort::merge_pass::plan::{PLAN_BYTES, Plan};
use crate::sort::merge_pass::rounds::List;
use crate::sort::merge_pass::with_values::{OwnTiles, PairArrays};
use crate::sort::merge_pass::{MIN_BLOCKS_PER_SM, runs_of_pass, tile_keys};
use crate::sort::network::sort_registers;
use crate::sort::runs::{Division, MAX_RUNS};
use crate::tile;
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Bytes of dynamic shared memory of [`block_sort_pairs`] for tiles of `slots` keys.
pub const fn block_shared_bytes(slots: usize) -> u32 {
    assert!(slots <= INDICES);
    (slots * 2 * size_of::<u32>()) as u32
}

/// Bytes of dynamic shared memory of [`merge_runs_pairs`] for tiles of that many slots.
pub const fn merge_shared_bytes(slots: usize) -> u32 {
    block_shared_bytes(slots) + PLAN_BYTES
}

/// The keys and the values of a tile in shared memory.
#[derive(Clone, Copy)]
struct PairTile {
    keys: Shared<u32>,
    values: Shared<u32>,
}

impl PairTile {
    /// # Safety
    /// The launch has [`block_shared_bytes`] of dynamic shared memory for `slots` keys; barriers divide writing from reading.
    #[inline(always)]
    #[track_caller]
    unsafe fn at_start(slots: usize) -> Self {
        let (slots, keys_bytes) = (slots as u32, (slots * size_of::<u32>()) as u32);
        // SAFETY: `slots` keys of 4 bytes, and as many values behind them, are the `block_shared_bytes` of the launch.
        // The caller promises barriers between writing and reading.
        unsafe { Self { keys: Shared::dynamic(0, slots), values: Shared::dynamic(keys_bytes, slots) } }
    }

    /// Registers to shared: the thread's pairs, which are those from slot `slot` on of the merge of `list`, upwards from
    /// there or downwards from as far before the list's end.
    #[inline(always)]
    #[track_caller]
    fn store<const VT: usize>(self, (keys, values): ([u32; VT], [u32; VT]), list: List, slot: u32, upwards: bool) {
        let first = if upwards { slot } else { list.end - VT as u32 - (slot - list.begin) };
        // SAFETY: the threads of the block are all here.
        unsafe {
            tile::store_blocked_or_reversed(keys, first, upwards, self.keys);
            tile::store_blocked_or_reversed(values, first, upwards, self.values);
        }
    }

    /// One round: merges `list`, in which the thread has `VT` slots from `slot` on. It ends upwards or downwards.
    #[inline(always)]
    #[track_caller]
    fn merge<const VT: usize>(self, list: List, slot: u32, upwards: bool) {
        let List { begin, half, end } = list;
        let runs = (self.keys.slice(begin, end - begin), self.values.slice(begin, end - begin));
        let merged: ([u32; VT], [u32; VT]) = tile::merge_pairs_to_registers(runs, half - begin, slot - begin);
        thread::sync_threads();
        self.store(merged, list, slot, upwards);
        thread::sync_threads();
    }

    /// Shared to global, strided.
    #[inline(always)]
    #[track_caller]
    fn store_to<const NT: usize>(self, to: GlobalMut<u32>, values_to: GlobalMut<u32>, coding: Coding<u32>) {
        tile::decode_to_global::<_, NT>(self.keys, to, coding, thread::thread_idx_x());
        let mut i = thread::thread_idx_x() as usize;
        while i < values_to.len() {
            values_to.set(i, self.values.get(i as u32));
            i += NT;
        }
    }
}

/// Kernel: sorts each tile of `NT * VT` keys, with their values, to the same indices of `to` and `values_to`, which may be
/// the arrays that are read.
///
/// Keys are loaded as the first [`Coding`] encodes them and stored as the second decodes them. `order` is as for keys alone.
///
/// # Safety
/// All arrays have `n` elements, in global memory; those written are those read or do not overlap them. Blocks are of `NT`
/// threads, a power of two, one for each tile, with [`block_shared_bytes`] of dynamic shared memory.
#[kernel(
    u32v4 = <{ ROW.block_4v4.threads }, { ROW.block_4v4.items_per_thread }> within (ROW.block_4v4.threads, MIN_BLOCKS_PER_SM),
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn block_sort_pairs<const NT: usize, const VT: usize>(
    from: *mut u32,
    values_from: *mut u32,
    to: *mut u32,
    values_to: *mut u32,
    n: usize,
    encode_always: u32,
    encode_when_negative: u32,
    decode_always: u32,
    decode_when_negative: u32,
    order: *mut u32,
) {
    // SAFETY: `order` is null, or `DETECTION_WORDS` words that this launch only reads.
    if unsafe { Detection::new(order) }.is_done() {
        return;
    }
    let encode = Coding { always: encode_always, when_negative: encode_when_negative };
    let decode = Coding { always: decode_always, when_negative: decode_when_negative };
    let start = thread::block_idx_x() as usize * NT * VT;
    let count = (n - start).min(NT * VT);
    // SAFETY: all arrays have `n` elements, and there is one block for each tile, so that `start < n`. A block uses
    // `start .. start + count`, which no other block does. What is read is no constant view: it may be what is written.
    // Then the barrier after the copies comes between.
    let (from, values_from, to, values_to) = unsafe {
        (GlobalMut::new(from, n), GlobalMut::new(values_from, n), GlobalMut::new(to, n), GlobalMut::new(values_to, n))
    };
    let (from, values_from) = (from.slice(start, count), values_from.slice(start, count));
    // SAFETY: the launch has `block_shared_bytes` for `NT * VT` slots. Thread `t < NT` copies to slots `t + i * NT`,
    // and each round writes slots of which no two threads have one; barriers come between, as a round reads before it
    // writes.
    let tile = unsafe { PairTile::at_start(NT * VT) };

    let thread = thread::thread_idx_x();
    let mut i = thread;
    while i < (NT * VT) as u32 {
        if (i as usize) < count {
            tile.keys.copy_async_mut(i, from, i as usize);
            tile.values.copy_async_mut(i, values_from, i as usize);
        } else {
            // The greatest when encoded, and last of those.
            tile.keys.set(i, encode.decode(u32::MAX));
            tile.values.set(i, 0);
        }
        i += NT as u32;
    }
    shared::wait_for_copies();
    thread::sync_threads();
    // A thread's keys are neighbours, so that runs of neighbours are merged from here on.
    let slot = thread * VT as u32;
    let mut keys_at = [indexed(u32::MAX, 0); VT];
    for i in 0..VT as u32 {
        keys_at[i as usize] = indexed(encode.encode(tile.keys.get(slot + i)), i);
    }
    sort_registers(&mut keys_at);
    let (mut keys, mut values) = ([u32::MAX; VT], [0; VT]);
    for i in 0..VT {
        let (key, from) = key_and_index(keys_at[i]);
        (keys[i], values[i]) = (key, tile.values.get(slot + from));
    }
    // What a thread has read is where it writes.
    let list = List { begin: slot, half: slot, end: slot + VT as u32 };
    tile.store((keys, values), list, slot, thread.is_multiple_of(2));
    thread::sync_threads();
    // Runs of `threads` threads become runs of twice as many. Every other one lies downwards.
    let mut threads = 1;
    while threads < NT as u32 {
        let first = thread & !(2 * threads - 1);
        let [begin, half, end] = [first, first + threads, first + 2 * threads].map(|thread| thread * VT as u32);
        tile.merge::<VT>(List { begin, half, end }, slot, first & (2 * threads) == 0);
        threads *= 2;
    }
    tile.store_to::<NT>(to.slice(start, count), values_to.slice(start, count), decode);
}

/// Kernel: merges each group of `k` runs, with their values, one tile a block after the other, as
/// [`merge_runs`](crate::sort::merge_pass::merge_runs::merge_runs) does.
///
/// # Safety
/// As for `merge_runs`; there are `n` values to read and capacity for as many; dynamic shared memory is [`merge_shared_bytes`].
#[kernel(
    u32v4 = <{ ROW.runs_4v4.threads }, { ROW.runs_4v4.items_per_thread }> within (ROW.runs_4v4.threads, MIN_BLOCKS_PER_SM),
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_runs_pairs<const NT: usize, const VT: usize>(
    from: *const u32,
    values_from: *const u32,
    n: usize,
    run: usize,
    k: u32,
    rank_tolerance: u32,
    to: *mut u32,
    values_to: *mut u32,
    splits: *const u32,
    always: u32,
    when_negative: u32,
    order: *mut u32,
) {
    // SAFETY: the caller promises `run`, `k` and `rank_tolerance` as `Runs` says for tiles of `tile_keys`: then
    // `Runs::new` does not panic.
    let runs = unsafe { runs_of_pass::<NT, VT>(n, run, k, rank_tolerance) };
    // SAFETY: keys and values have `n` elements, those read and those written, and the latter overlap no others, as the
    // caller promises.
    let arrays = unsafe { PairArrays::new((from, values_from), (to, values_to), n) };
    // SAFETY: `splits` is null, or has `k` words for each of `tiles` tiles, as `split_runs` has written; `order` is
    // null, or `DETECTION_WORDS` words. This launch only reads both.
    let Some((mut tiles, splits)) = (unsafe { OwnTiles::of(runs, splits, order) }) else { return };
    while let Some(t) = tiles.next() {
        // SAFETY: all threads of the block are here with the same `t`, below the number of tiles, and the launch has
        // `merge_shared_bytes` for `NT * VT` slots. `next` has a barrier before each tile but for the first.
        unsafe { merge_tile::<NT, VT>(runs, t, arrays, splits, Coding { always, when_negative }) };
    }
}

/// Kernel: as [`merge_runs_pairs`], for the runs of which
/// [`split_long_runs`](crate::sort::merge_pass::long_runs::split_long_runs) has found the splits, as
/// [`merge_long_runs`](crate::sort::merge_pass::long_runs::merge_long_runs) does.
///
/// # Safety
/// As for `merge_long_runs`; there are `n` values to read and capacity for as many; dynamic shared memory is
/// [`merge_shared_bytes`].
#[kernel(
    u32v4 = <{ ROW.runs_4v4.threads }, { ROW.runs_4v4.items_per_thread }> within (ROW.runs_4v4.threads, MIN_BLOCKS_PER_SM),
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_long_runs_pairs<const NT: usize, const VT: usize>(
    from: *const u32,
    values_from: *const u32,
    n: usize,
    to: *mut u32,
    values_to: *mut u32,
    splits: *const u32,
    starts: *const usize,
    always: u32,
    when_negative: u32,
    order: *mut u32,
) {
    // SAFETY: `order` has the `DETECTION_WORDS` words of `detect_runs`, which this launch only reads.
    if !unsafe { Detection::new(order) }.is_of_long_runs() {
        return;
    }
    // SAFETY: `starts` has `MAX_RUNS + 1` indices, as `copy_runs` has written, and `splits` has `MAX_RUNS` for each
    // tile, as `split_long_runs` has.
    let (runs, splits) = unsafe { long_runs(n, tile_keys(NT * VT, VT, MAX_RUNS, 0), splits, starts) };
    // SAFETY: keys and values have `n` elements, those read and those written, and the latter overlap no others, as the
    // caller promises.
    let arrays = unsafe { PairArrays::new((from, values_from), (to, values_to), n) };
    let mut t = thread::block_idx_x();
    while t < runs.tiles() as u32 {
        // SAFETY: all threads of the block are here with the same `t`, below the number of tiles, and the launch has
        // `merge_shared_bytes` for `NT * VT` slots. A barrier comes before the next tile.
        unsafe { merge_tile::<NT, VT>(runs, t as usize, arrays, splits, Coding { always, when_negative }) };
        thread::sync_threads();
        t += thread::grid_dim_x();
    }
}

/// Merges tile `t`, at splits that the block finds itself if `splits` is empty.
///
/// # Safety
/// As for [`merge_runs_pairs`].
#[inline(always)]
unsafe fn merge_tile<const NT: usize, const VT: usize>(
    runs: impl Division,
    t: usize,
    PairArrays { from, values_from, to, values_to }: PairArrays<u32, u32>,
    splits: Global<u32>,
    decode: Coding<u32>,
) {
    let in_group = runs.tile(t);
    // SAFETY: `merge_shared_bytes` of the launch are `block_shared_bytes` for `NT * VT` slots, and `PLAN_BYTES` behind
    // them. Barriers come between loading and the rounds, and between the reads and the writes of each.
    let (tile, plan) = unsafe { (PairTile::at_start(NT * VT), Plan::at(const { block_shared_bytes(NT * VT) })) };
    // SAFETY: all threads of the block are here, two warps or more; `splits` is empty or has `k` words for each tile,
    // those of `split_runs`.
    unsafe { plan.divide(runs, t, in_group, from, splits, VT as u32) };
    plan.each_segment::<NT, _>(|segment| {
        let (keys, values) = (plan.segment_of(segment, from), plan.segment_of(segment, values_from));
        move |i, slot| {
            tile.keys.copy_async(slot, keys, i as usize);
            tile.values.copy_async(slot, values, i as usize);
        }
    });
    let fill = |slot| {
        tile.keys.set(slot, u32::MAX);
        tile.values.set(slot, 0);
    };
    plan.each_gap::<NT>(fill);
    let slot = thread::thread_idx_x() * VT as u32;
    let position = plan.position(slot);
    if position.pair.is_none() {
        for i in 0..VT as u32 {
            fill(slot + i);
        }
    }
    shared::wait_for_copies();
    thread::sync_threads();

    let levels = plan.levels();
    let mut level = 0;
    while level < levels {
        let (list, upwards) = plan.list(position, level, VT as u32);
        tile.merge::<VT>(list, slot, upwards);
        level += 1;
    }
    tile.store_to::<NT>(plan.part_of(to), plan.part_of(values_to), decode);
}
