//! The sort of keys of 4 bytes with values of 4 or 8: the same two phases, on keys that carry their places.
//!
//! ```text
//!   shared   │ key │ place │   one number of 64 bits: equal keys are in the order of their places, so the sort is stable
//!            │ value of place 0 │ value of place 1 │ …         loaded while the keys are sorted, and read by place at the end
//! ```
//!
//! Between the two, tiles are sorted and merged as tiles of 64-bit keys are.

use crate::key::Coding;
use crate::sort::block_sort::sort_tile;
use crate::sort::merge_pass::{self, Plan, merge_pieces};
use crate::sort::runs::Runs;
use crate::tile;
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Bytes of dynamic shared memory for a tile of `slots` keys with values of `value_bytes` bytes in [`block_sort_pairs`].
pub const fn block_shared_bytes(slots: usize, value_bytes: usize) -> u32 {
    (slots * (size_of::<u64>() + value_bytes)) as u32
}

/// Bytes of dynamic shared memory for a tile of `slots` places with values of `value_bytes` bytes in [`merge_runs_pairs`].
pub const fn merge_shared_bytes(slots: usize, value_bytes: usize) -> u32 {
    merge_pass::shared_bytes::<u64>(slots).next_multiple_of(8) + (slots * value_bytes) as u32
}

/// Shared to global, strided: the sorted keys, and the values at the places they came with.
#[inline(always)]
#[track_caller]
fn store<V: Word, const NT: usize>(
    sorted: Shared<u64>,
    values: Shared<V>,
    to: GlobalMut<u32>,
    values_to: GlobalMut<V>,
    coding: Coding<u32>,
) {
    let mut i = thread::thread_idx_x() as usize;
    while i < to.len() {
        let item = sorted.get(i as u32);
        to.set(i, coding.decode((item >> 32) as u32));
        values_to.set(i, values.get(item as u32));
        i += NT;
    }
}

/// Kernel: sorts each tile of `NT * VT` keys, with their values, into the same places of `to` and `values_to`, which may be
/// the arrays that are read.
///
/// Keys are loaded as the first [`Coding`] encodes them and stored as the second decodes them.
///
/// # Safety
/// All arrays have `n` elements, in global memory; those written are those read or do not overlap them. Blocks are of `NT`
/// threads, a power of two, one for each tile, with [`block_shared_bytes`] of dynamic shared memory.
#[kernel(
    u32v4 = <u32, { ROW.block_pairs.threads }, { ROW.block_pairs.values }>,
    u32v8 = <u64, { ROW.block_pairs.threads }, { ROW.block_pairs.values }>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn block_sort_pairs<V: Word, const NT: usize, const VT: usize>(
    from: *mut u32,
    values_from: *mut V,
    to: *mut u32,
    values_to: *mut V,
    n: usize,
    encode_always: u32,
    encode_when_negative: u32,
    decode_always: u32,
    decode_when_negative: u32,
) {
    let encode = Coding { always: encode_always, when_negative: encode_when_negative };
    let decode = Coding { always: decode_always, when_negative: decode_when_negative };
    let start = thread::block_idx_x() as usize * NT * VT;
    let count = (n - start).min(NT * VT);
    // SAFETY: the caller's promise. What is read is no constant view: it may be what this kernel writes.
    let (from, values_from, to, values_to) = unsafe {
        (GlobalMut::new(from, n), GlobalMut::new(values_from, n), GlobalMut::new(to, n), GlobalMut::new(values_to, n))
    };
    let (from, values_from) = (from.slice(start, count), values_from.slice(start, count));
    // SAFETY: the caller's promise; barriers divide writing from reading.
    let (tile, values) = unsafe {
        let slots = (NT * VT) as u32;
        (Shared::<u64>::dynamic(0, slots), Shared::<V>::dynamic(slots * size_of::<u64>() as u32, slots))
    };

    let mut i = thread::thread_idx_x();
    while (i as usize) < count {
        values.copy_async_mut(i, values_from, i as usize);
        i += NT as u32;
    }
    let keys = tile::global_to_registers::<u32, NT, VT>(from, encode);
    let mut items = [0; VT];
    for i in 0..VT {
        let place = thread::thread_idx_x() + (i * NT) as u32;
        items[i] = (keys[i] as u64) << 32 | place as u64;
    }
    shared::wait_for_copies();
    // Its barriers make the values visible, too.
    sort_tile::<u64, NT, VT>(items, tile);
    store::<V, NT>(tile, values, to.slice(start, count), values_to.slice(start, count), decode);
}

/// Kernel: merges each group of `k` runs, with their values, one block a tile, as [`merge_pass::merge_runs`] does.
///
/// # Safety
/// As for [`merge_pass::merge_runs`]; there are `n` values to read and room for as many; dynamic shared memory is
/// [`merge_shared_bytes`].
#[kernel(
    u32v4 = <u32, { ROW.runs_pairs.threads }, { ROW.runs_pairs.values }>,
    u32v8 = <u64, { ROW.runs_pairs.threads }, { ROW.runs_pairs.values }>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_runs_pairs<V: Word, const NT: usize, const VT: usize>(
    from: *const u32,
    values_from: *const V,
    n: usize,
    run: usize,
    k: u32,
    to: *mut u32,
    values_to: *mut V,
    splits: *const u32,
    always: u32,
    when_negative: u32,
) {
    let runs = Runs { n, run, k, tile_keys: merge_pass::tile_keys(NT * VT, VT, k) };
    let t = thread::block_idx_x() as usize;
    let tile = runs.tile(t);
    let count = (tile.length - tile.rank).min(runs.tile_keys as usize);
    // SAFETY: the caller's promise.
    let (from, values_from, to, values_to, splits) = unsafe {
        (
            Global::new(from, n),
            Global::new(values_from, n),
            GlobalMut::new(to, n),
            GlobalMut::new(values_to, n),
            Global::new(splits, if splits.is_null() { 0 } else { (t + 2) * k as usize }),
        )
    };
    // SAFETY: the caller's promise; barriers divide writing from reading.
    let (items, halves, values, plan) = unsafe {
        let slots = (NT * VT) as u32;
        let values = Shared::<V>::dynamic(merge_pass::shared_bytes::<u64>(NT * VT).next_multiple_of(8), slots);
        (Shared::<u64>::dynamic(0, slots), Shared::<u32>::dynamic(0, 2 * slots), values, Plan::after::<u64>(NT * VT))
    };
    // SAFETY: the caller's promise.
    unsafe { plan.divide(runs, t, tile, count, from, splits, VT as u32) };
    plan.each_piece::<NT, _>(|piece| {
        let (run, start) = (plan.runs.get(piece), plan.starts.get(piece));
        let (keys, values_from) = (runs.run_of(tile, run, from), runs.run_of(tile, run, values_from));
        // Places count up from run to run, and within each.
        let before = plan.before.get(piece);
        move |i, slot| {
            halves.set(2 * slot, before + i);
            halves.copy_async(2 * slot + 1, keys, (start + i) as usize);
            values.copy_async(before + i, values_from, (start + i) as usize);
        }
    });
    plan.fill::<u64, NT>(items);
    shared::wait_for_copies();
    merge_pieces::<u64, NT, VT>(plan, items);
    let start = tile.group + tile.rank;
    let coding = Coding { always, when_negative };
    store::<V, NT>(items, values, to.slice(start, count), values_to.slice(start, count), coding);
}
