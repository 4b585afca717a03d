//! The sort of keys with values, keys or values of 8 bytes: the same two phases, in which each key is packed with its slot.
//!
//! ```text
//!   shared     │ packed keys … │ low bits … │     sorted by a network and by rounds, as keys alone
//!   shared     │ values …      │                 in the end: fetched, and read by slot
//! ```

use crate::key::{Bits, Coding};
use crate::sort::block_sort::sort_tile;
use crate::sort::detect_runs::Detection;
use crate::sort::merge_pass::long_runs::long_runs;
use crate::sort::merge_pass::plan::{PLAN_BYTES, Plan};
use crate::sort::merge_pass::rounds::merge_segments;
use crate::sort::merge_pass::with_values::{OwnTiles, PairArrays};
use crate::sort::merge_pass::{MIN_BLOCKS_PER_SM, runs_of_pass, tile_keys};
use crate::sort::packing::{self, PackedTile, copy_tile, each_row, gather, gathered, own, prefetch_tile};
use crate::sort::runs::{Division, MAX_RUNS};
use crate::tile;
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Bytes of dynamic shared memory of [`merge_runs_packed`] for tiles of that many slots.
pub const fn merge_shared_bytes(slots: usize) -> u32 {
    packing::shared_bytes(slots) + PLAN_BYTES
}

/// Kernel: sorts each tile of `NT * VT` keys, with their values, to the same indices of `to` and `values_to`, which may be
/// the arrays that are read.
///
/// Keys are loaded as the first [`Coding`] encodes them and stored as the second decodes them. `order` and `random` are as for
/// keys alone.
///
/// # Safety
/// All arrays have `n` elements, in global memory; those written are those read or do not overlap them. Blocks are of `NT`
/// threads, a power of two from 32 to 1024, one for each tile, with [`packing::shared_bytes`] of dynamic shared memory.
#[kernel(
    u32v8 = <u32, u64, { ROW.block_packed.threads }, { ROW.block_packed.items_per_thread }> within (ROW.block_packed.threads, MIN_BLOCKS_PER_SM),
    u64v4 = <u64, u32, { ROW.block_packed.threads }, { ROW.block_packed.items_per_thread }> within (ROW.block_packed.threads, MIN_BLOCKS_PER_SM),
    u64v8 = <u64, u64, { ROW.block_packed.threads }, { ROW.block_packed.items_per_thread }> within (ROW.block_packed.threads, MIN_BLOCKS_PER_SM),
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn block_sort_packed<B: Bits, V: Word, const NT: usize, const VT: usize>(
    from: *mut B,
    values_from: *mut V,
    to: *mut B,
    values_to: *mut V,
    n: usize,
    encode_always: B,
    encode_when_negative: B,
    decode_always: B,
    decode_when_negative: B,
    order: *mut u32,
    random: u64,
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
    // Then a barrier of `gather` or of `sort_tile` comes between.
    let (from, values_from, to, values_to) = unsafe {
        (GlobalMut::new(from, n), GlobalMut::new(values_from, n), GlobalMut::new(to, n), GlobalMut::new(values_to, n))
    };
    let (from, values_from) = (from.slice(start, count), values_from.slice(start, count));
    let (to, values_to) = (to.slice(start, count), values_to.slice(start, count));
    // SAFETY: the launch has `packing::shared_bytes` for `NT * VT` slots. The packed keys take 8 bytes a slot, and what
    // is gathered no more, in their memory: barriers come between the last use of the one and the first of the other.
    let (mut tile, tile_keys, tile_values) =
        unsafe { (PackedTile::<B>::at_start(NT * VT), gathered::<B>(NT * VT), gathered::<V>(NT * VT)) };

    prefetch_tile::<V, NT>(values_from);
    let keys = tile::global_to_registers::<B, NT, VT>(from, encode, random);
    let slot = |i: usize| tile::column::<NT>(i, random) + (i * NT) as u32;
    // Full tiles have code of their own, without a comparison for each key.
    let mut packed = if count == NT * VT {
        tile.pack_all::<NT, VT>(keys, slot, |_| true)
    } else {
        tile.pack_all::<NT, VT>(keys, slot, |i| slot(i) < count as u32)
    };
    loop {
        sort_tile(packed, thread::block_dim_x(), tile.packed);
        if tile.is_in_order::<NT, VT>(count) {
            break;
        }
        let (packing, mut i) = (tile.packing(), thread::thread_idx_x());
        while i < (NT * VT) as u32 {
            let key = |i: u32| encode.encode(from.get(i as usize));
            tile.packed.set(i, if (i as usize) < count { tile.pack_ranked(packing, key(i), i) } else { u64::MAX });
            i += NT as u32;
        }
        // A thread reads what it has written.
        let own = tile.own();
        for i in 0..VT {
            packed[i] = own.get((i * NT) as u32);
        }
        thread::sync_threads();
    }

    let mut keys = [B::MAX; VT];
    let slots: [u32; VT] = tile.unpack::<NT, VT>(count, true, |i, key, _| keys[i] = B::from_register(key));
    // Packed keys are not read any more.
    thread::sync_threads();
    if tile.ranked {
        copy_tile::<B, NT>(from, tile_keys);
        gather::<B, NT, VT>(tile_keys, slots, to, |key| decode.decode(encode.encode(key)));
        thread::sync_threads();
    }
    copy_tile::<V, NT>(values_from, tile_values);
    if !tile.ranked {
        let own = own(to);
        each_row::<NT, VT>(0, count, |i| own.set(i * NT, decode.decode(keys[i])));
    }
    gather::<V, NT, VT>(tile_values, slots, values_to, |value| value);
}

/// Kernel: merges each group of `k` runs, with their values, one block a tile, as
/// [`merge_runs`](crate::sort::merge_pass::merge_runs::merge_runs) does.
///
/// # Safety
/// As for `merge_runs`; there are `n` values to read and capacity for as many; dynamic shared memory is [`merge_shared_bytes`].
#[kernel(
    u32v8 = <u32, u64, { ROW.runs_packed.threads }, { ROW.runs_packed.items_per_thread }> within (ROW.runs_packed.threads, MIN_BLOCKS_PER_SM),
    u64v4 = <u64, u32, { ROW.runs_packed.threads }, { ROW.runs_packed.items_per_thread }> within (ROW.runs_packed.threads, MIN_BLOCKS_PER_SM),
    u64v8 = <u64, u64, { ROW.runs_packed.threads }, { ROW.runs_packed.items_per_thread }> within (ROW.runs_packed.threads, MIN_BLOCKS_PER_SM),
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_runs_packed<B: Bits, V: Word, const NT: usize, const VT: usize>(
    from: *const B,
    values_from: *const V,
    n: usize,
    run: usize,
    k: u32,
    rank_tolerance: u32,
    to: *mut B,
    values_to: *mut V,
    splits: *const u32,
    always: B,
    when_negative: B,
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
    // One tile: for several there are not enough registers on all GPUs.
    if let Some(t) = tiles.next() {
        // SAFETY: all threads of the block are here with the same `t`, below the number of tiles, and the launch has
        // `merge_shared_bytes` for `NT * VT` slots.
        unsafe { merge_tile::<B, V, NT, VT>(runs, t, arrays, splits, Coding { always, when_negative }) };
    }
}

/// Kernel: as [`merge_runs_packed`], for the runs of which
/// [`split_long_runs`](crate::sort::merge_pass::long_runs::split_long_runs) has found the splits, as
/// [`merge_long_runs`](crate::sort::merge_pass::long_runs::merge_long_runs) does.
///
/// # Safety
/// As for `merge_long_runs`; there are `n` values to read and capacity for as many; dynamic shared memory is
/// [`merge_shared_bytes`].
#[kernel(
    u32v8 = <u32, u64, { ROW.runs_packed.threads }, { ROW.runs_packed.items_per_thread }> within (ROW.runs_packed.threads, MIN_BLOCKS_PER_SM),
    u64v4 = <u64, u32, { ROW.runs_packed.threads }, { ROW.runs_packed.items_per_thread }> within (ROW.runs_packed.threads, MIN_BLOCKS_PER_SM),
    u64v8 = <u64, u64, { ROW.runs_packed.threads }, { ROW.runs_packed.items_per_thread }> within (ROW.runs_packed.threads, MIN_BLOCKS_PER_SM),
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_long_runs_packed<B: Bits, V: Word, const NT: usize, const VT: usize>(
    from: *const B,
    values_from: *const V,
    n: usize,
    to: *mut B,
    values_to: *mut V,
    splits: *const u32,
    starts: *const usize,
    always: B,
    when_negative: B,
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
        unsafe { merge_tile::<B, V, NT, VT>(runs, t as usize, arrays, splits, Coding { always, when_negative }) };
        thread::sync_threads();
        t += thread::grid_dim_x();
    }
}

/// Merges tile `t`, at splits that the block finds itself if `splits` is empty.
///
/// # Safety
/// As for [`merge_runs_packed`].
#[inline(always)]
unsafe fn merge_tile<B: Bits, V: Word, const NT: usize, const VT: usize>(
    runs: impl Division,
    t: usize,
    PairArrays { from, values_from, to, values_to }: PairArrays<B, V>,
    splits: Global<u32>,
    decode: Coding<B>,
) {
    let in_group = runs.tile(t);
    // SAFETY: `merge_shared_bytes` of the launch are `packing::shared_bytes` for `NT * VT` slots, and `PLAN_BYTES`
    // behind them. What is gathered takes no more than the 8 bytes a slot of the packed keys, in their memory: barriers
    // come between the last use of the one and the first of the other.
    let (mut tile, tile_keys, tile_values, plan) = unsafe {
        let plan = Plan::at(const { packing::shared_bytes(NT * VT) });
        (PackedTile::<B>::at_start(NT * VT), gathered::<B>(NT * VT), gathered::<V>(NT * VT), plan)
    };
    // SAFETY: all threads of the block are here, two warps or more; `splits` is empty or has `k` words for each tile,
    // those of `split_runs`.
    unsafe { plan.divide(runs, t, in_group, from, splits, VT as u32) };
    plan.prefetch::<NT, V>(values_from);
    loop {
        if tile.ranked {
            plan.each_loaded_key::<NT, B, u64, _>(from, tile.packed, || {
                let packing = tile.packing();
                move |key, slot, is_here| if is_here { tile.pack_ranked(packing, key, slot) } else { 0 }
            });
        } else {
            plan.each_loaded_key::<NT, B, u64, _>(from, tile.packed, || {
                let segment = thread::thread_idx_x();
                let keys = (segment < plan.segments()).then(|| plan.segment_of(segment, from));
                let ends = keys.map(|keys| [keys.get(0), keys.get(keys.len() - 1)]);
                let packing = tile.choose_packing::<NT>(ends.into_iter().flatten());
                move |key, slot, is_here| tile.pack(packing, key, slot, is_here)
            });
        }
        plan.each_gap::<NT>(|slot| tile.packed.set(slot, u64::MAX));
        merge_segments::<u64, NT, VT>(plan, tile.packed);
        if tile.is_in_order::<NT, VT>(plan.keys()) {
            break;
        }
    }

    let own = own(plan.part_of(to));
    let slots: [u32; VT] = tile.unpack::<NT, VT>(plan.keys(), decode == Coding::NONE, |i, key, is_plain| {
        let key = B::from_register(key);
        own.set(i * NT, if is_plain { key } else { decode.decode(key) });
    });
    // Packed keys are not read any more.
    thread::sync_threads();
    if tile.ranked {
        plan.each_segment::<NT, _>(|segment| {
            let (keys, before) = (plan.segment_of(segment, from), plan.before.get(segment));
            move |i, _| tile_keys.copy_async(before + i, keys, i as usize)
        });
        gather::<B, NT, VT>(tile_keys, slots, plan.part_of(to), |key| decode.decode(key));
        thread::sync_threads();
    }
    plan.each_segment::<NT, _>(|segment| {
        let (values, before) = (plan.segment_of(segment, values_from), plan.before.get(segment));
        move |i, _| tile_values.copy_async(before + i, values, i as usize)
    });
    gather::<V, NT, VT>(tile_values, slots, plan.part_of(values_to), |value| value);
}
