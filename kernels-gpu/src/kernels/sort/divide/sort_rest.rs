//! Keys that remain after all divisions.
//!
//! All blocks together divide long rests (`quicksort`). One block sorts each of their parts, each short rest, and each
//! bucket whose bins were too full. It sorts tiles, and then merges runs. Keys with values stay in order
//! (`rest_in_order`).

use super::quicksort::{is_short, sort_rests};
use super::rest_in_order::{merge_pairs_of_runs, sort_elements};
use super::workspace::{Bucket, Job, Workspace};
use crate::block::shared_memory;
use crate::block::sort_tile::{KeyTile, sort_tile};
use crate::block::tile as block_tile;
use crate::elements::{Arrays, Elements, has_values};
use crate::kernels::sort::is_whole_warps;
use crate::key::{Bits, Coding};
use crate::thread::diagonal::diagonal_search;
use crate::tuning::{ROW, Tile};
use cuda_std::prelude::*;

/// Bytes of dynamic shared memory for tiles of `slots` keys of `key_bytes` bytes: a key for each slot, or a number of 8
/// bytes if there are values.
pub const fn shared_bytes(slots: usize, key_bytes: usize, has_values: bool) -> u32 {
    if key_bytes == 8 || has_values { KeyTile::<u64>::bytes(slots) } else { KeyTile::<u32>::bytes(slots) }
}

/// The tile of a block, for keys of `key_bytes` bytes with values of `value_bytes` bytes, or 0. A bucket with values
/// has two tiles: with more threads, values would take too many registers.
pub const fn tile(key_bytes: usize, value_bytes: usize) -> Tile {
    let bucket = ROW.sort_buckets.of(key_bytes, value_bytes);
    Tile { threads: if value_bytes > 0 { bucket.threads / 2 } else { bucket.threads }, ..bucket }
}

/// Kernel: sorts the rests, and the buckets that `sort_buckets` has given up, to the same indices of `at`. Keys in `at`
/// are as `coding` decodes them. Rests are in the array that the last level has written.
///
/// # Safety
/// The requirements of [`sort_buckets`](super::sort_buckets::sort_buckets) hold, and that kernel has run before. Blocks
/// have `NT` threads, a power of two, with [`shared_bytes`] for `NT * VT` keys.
#[kernel(
    u32 = <u32, (), { tile(4, 0).threads }, { tile(4, 0).items_per_thread }>
        within (tile(4, 0).threads, 1),
    u64 = <u64, (), { tile(8, 0).threads }, { tile(8, 0).items_per_thread }>
        within (tile(8, 0).threads, 1),
    u32v4 = <u32, u32, { tile(4, 4).threads }, { tile(4, 4).items_per_thread }>
        within (tile(4, 4).threads, 1),
    u32v8 = <u32, u64, { tile(4, 8).threads }, { tile(4, 8).items_per_thread }>
        within (tile(4, 8).threads, 1),
    u64v4 = <u64, u32, { tile(8, 4).threads }, { tile(8, 4).items_per_thread }>
        within (tile(8, 4).threads, 1),
    u64v8 = <u64, u64, { tile(8, 8).threads }, { tile(8, 8).items_per_thread }>
        within (tile(8, 8).threads, 1),
)]
pub unsafe fn sort_rest<B: Bits, V: Word, const NT: usize, const VT: usize>(
    job: Job,
    at: Elements<B, V>,
    scratch: Elements<B, V>,
    coding: Coding<B>,
) {
    const { assert!(NT.is_power_of_two() && is_whole_warps(NT), "threads are a power of two, in whole warps") };
    const { assert!(NT * VT <= 1 << 16, "a slot and an element have 16 bits each") };
    const { shared_memory::check(shared_bytes(NT * VT, size_of::<B>(), has_values::<V>())) };
    // SAFETY: all arrays have `plan.n` elements, and both sides do not overlap. The lists have `job.at.words` words, as
    // `Job` says. Only the quicksort writes them, between barriers or phases.
    let (workspace, sides) = unsafe { job.open([at, scratch]) };
    each_short(workspace, job.plan.levels, is_short::<NT, VT>, |start, len, in_scratch| {
        // SAFETY: the lists are the same for all threads, so that all threads of the block make the call. Neither
        // buckets nor rests overlap, and one block takes each.
        unsafe { sort_part::<B, V, NT, VT>(sides, (start, len), in_scratch, coding) };
    });
    if workspace.rests() > 0 {
        // SAFETY: the number of rests is the same for all threads, so that all threads of the block make the call.
        // Rests overlap neither each other nor buckets, and no other launch uses them. The launch has `shared_bytes`,
        // and a barrier came after the last use of shared memory.
        unsafe { sort_rests::<B, V, NT, VT>(workspace, job.plan.levels, sides, coding) };
    }
}

/// Calls `sort` for this block's share of the short rests of `levels` levels, and of the buckets that bins have given
/// up. Its arguments are the start of the keys, their number, and whether they are in the scratch array.
#[inline(always)]
#[track_caller]
fn each_short(workspace: Workspace, levels: u32, is_short: impl Fn(u32) -> bool, mut sort: impl FnMut(u32, u32, bool)) {
    let rests = workspace.rests();
    let (buckets, long) = match workspace.failures() {
        0 => (0, 0),
        _ => (workspace.buckets(), workspace.long_buckets()),
    };
    let mut i = thread::block_idx_x();
    while i < rests + buckets + long {
        let (start, len, in_scratch, is_left) = if i < rests {
            let (start, len) = workspace.rest(0, i);
            (start, len, levels % 2 == 1, is_short(len))
        } else {
            let of_list = i - rests;
            let number = if of_list < buckets { of_list } else { workspace.long_bucket(of_list - buckets) };
            let Bucket { start, len, in_scratch, failed, .. } = workspace.bucket(number);
            (start, len, in_scratch, failed)
        };
        if is_left {
            sort(start, len, in_scratch);
        }
        i += thread::grid_dim_x();
    }
}

/// Sorts `len` elements from `start` on to the first side: tiles, and then passes that merge pairs of runs. Ends with a
/// barrier.
///
/// # Safety
/// All threads of the block make this call, after a barrier. Nothing else uses these elements.
#[inline(always)]
pub(super) unsafe fn sort_part<B: Bits, V: Word, const NT: usize, const VT: usize>(
    [at, scratch]: [Arrays<B, V>; 2],
    (start, len): (u32, u32),
    in_scratch: bool,
    coding: Coding<B>,
) {
    let slots = (NT * VT) as u32;
    let side = |in_scratch: bool| if in_scratch { scratch } else { at }.slice(start as usize, len as usize);
    // Number of passes left. Each goes from one side to the other, and the last pass to the first side.
    let mut passes = 32 - (len.div_ceil(slots) - 1).leading_zeros();
    let decode = |passes: u32| if passes == 0 { coding } else { Coding::NONE };
    // SAFETY: the launch has `shared_bytes`. Keys with values use none of this view. Each way to fill the tile ends
    // with a barrier before the tile is stored, and another one follows.
    let tile = unsafe { KeyTile::<B>::at_start(NT * VT) }.keys;
    if const { has_values::<V>() } {
        let mut at = 0;
        while at < len {
            let part = |side: Arrays<B, V>| side.slice(at as usize, (len - at).min(slots) as usize);
            sort_elements::<B, V, NT, VT>(part(side(in_scratch)), part(side(passes % 2 == 1)), decode(passes));
            at += slots;
        }
    } else {
        let from = side(in_scratch).keys;
        each_tile::<B, NT>(tile, side(passes % 2 == 1).keys, decode(passes), |at, count| {
            load_and_sort::<B, NT, VT>(from.slice(at as usize, count as usize), tile);
        });
    }
    let mut run = slots;
    while passes > 0 {
        let from = side(passes % 2 == 1);
        passes -= 1;
        let (to, decode) = (side(passes % 2 == 1), decode(passes));
        if const { has_values::<V>() } {
            merge_pairs_of_runs(from, to, run, decode);
            thread::sync_threads();
        } else {
            each_tile::<B, NT>(tile, to.keys, decode, |at, _| merge_tile::<B, NT, VT>(from.keys, at, run, tile));
        }
        run = run.saturating_mul(2);
    }
}

/// Sorts the keys of `from`, at most a tile, to shared memory. Ends with a barrier.
#[inline(always)]
#[track_caller]
fn load_and_sort<B: Bits, const NT: usize, const VT: usize>(from: GlobalMut<B>, tile: Shared<B>) {
    let (thread, mut keys) = (thread::thread_idx_x(), [B::MAX; VT]);
    for i in 0..VT {
        let slot = thread + (i * NT) as u32;
        if slot < from.len() as u32 {
            keys[i] = from.get(slot as usize);
        }
    }
    // The size of the block as a variable, so that rounds are not unrolled.
    sort_tile(keys, thread::block_dim_x(), tile);
}

/// Fills and stores each tile of `to`. `fill` receives the tile's start and number of keys.
#[inline(always)]
#[track_caller]
fn each_tile<B: Bits, const NT: usize>(
    tile: Shared<B>,
    to: GlobalMut<B>,
    decode: Coding<B>,
    mut fill: impl FnMut(u32, u32),
) {
    let (len, mut at) = (to.len() as u32, 0);
    while at < len {
        let count = (len - at).min(tile.len());
        fill(at, count);
        block_tile::decode_to_global::<_, NT>(
            tile,
            to.slice(at as usize, count as usize),
            decode,
            thread::thread_idx_x(),
        );
        thread::sync_threads();
        at += tile.len();
    }
}

/// Merges the tile from index `at` on, of runs of `run` keys in pairs, to shared memory. Ends with a barrier.
#[inline(always)]
#[track_caller]
fn merge_tile<B: Bits, const NT: usize, const VT: usize>(from: GlobalMut<B>, at: u32, run: u32, tile: Shared<B>) {
    let (len, slots, thread) = (from.len() as u32, tile.len(), thread::thread_idx_x());
    // A run is one tile, two tiles, four tiles and so on. No key is that far that twice a long run needs more bits.
    let begin = at - at % run.saturating_mul(2).max(1);
    let a = from.slice(begin as usize, run.min(len - begin) as usize);
    let b_begin = begin + a.len() as u32;
    let b = from.slice(b_begin as usize, run.min(len - b_begin) as usize);
    let total = (a.len() + b.len()) as u32;
    let (first, end) = (at - begin, (at - begin + slots).min(total));
    let [a_first, a_end] = [first, end].map(|rank| diagonal_search(rank as usize, a, b) as u32);
    let (b_first, b_end) = (first - a_first, end - a_end);
    // A ascends from the first slot, and B descends from the last. Slots between them hold the greatest key.
    for i in 0..VT {
        let slot = thread + (i * NT) as u32;
        let key = if slot < a_end - a_first {
            a.get((a_first + slot) as usize)
        } else if slots - 1 - slot < b_end - b_first {
            b.get((b_first + slots - 1 - slot) as usize)
        } else {
            B::MAX
        };
        tile.set(slot, key);
    }
    thread::sync_threads();
    let slot = thread * VT as u32;
    let keys: [B; VT] = block_tile::merge_to_registers(tile, slots - (b_end - b_first), slot);
    thread::sync_threads();
    block_tile::store_blocked(keys, slot, tile);
    thread::sync_threads();
}
