//! The second launch: the result, tile by tile.

use super::{Kept, unpack};
use crate::block::compaction::CompactionMemory;
use crate::block::indexed_merge::{self, Parts};
use crate::block::shared_memory::{self, shared_memory};
use crate::kernels::sort::elements::Elements;
use crate::key::{Bits, Coding};
use crate::textbook::co_rank::clamp_split;
use crate::thread::balanced_path::balance;
use crate::thread::diagonal::diagonal_search;
use crate::tuning::ROW;
use crate::warp::look_back::Tiles;
use cuda_std::prelude::*;

shared_memory! {
    /// Shared memory of a block.
    struct Memory<B: Word>(threads: usize, items_per_thread: usize) {
        /// What the tile has of A, then what it has of B, and a key for each step that reads beyond.
        keys: [B; threads * items_per_thread + items_per_thread + 1],
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

/// Keys of a tile, less one where it begins in the middle of a pair: then it has the whole pair.
pub const fn tile_keys(threads: usize, items_per_thread: usize) -> usize {
    threads * items_per_thread - 1
}

/// Kernel: writes the keys that `kept` keeps of `a` and `b` to `out`, ascending in the order of `coding`, with their values, and how
/// many these are to `count`. One block a tile. There are no values if `V` is `()`.
///
/// Of a pair of equal keys the one of `a` is kept, with its value.
///
/// # Safety
/// `a` and `b` are ascending arrays of `m` and `n` keys, one of which is not 0, with as many values each. `out` has capacity for
/// `capacity` keys and values, `count` for one number. `splits` are those of
/// [`balance_path`](super::balance_path::balance_path) for tiles of [`tile_keys`]; `tiles` are the
/// [`words`](crate::warp::look_back::words) of as many tiles, which are 0. Blocks are of `NT` threads, whole warps, one for each tile,
/// with [`shared_bytes`]. What is written overlaps nothing that is read.
#[kernel(
    u32 = <u32, (), { ROW.sets.of(4, 0).threads }, { ROW.sets.of(4, 0).items_per_thread }>,
    u64 = <u64, (), { ROW.sets.of(8, 0).threads }, { ROW.sets.of(8, 0).items_per_thread }>,
    u32v4 = <u32, u32, { ROW.sets.of(4, 0).threads }, { ROW.sets.of(4, 0).items_per_thread }>,
    u32v8 = <u32, u64, { ROW.sets.of(4, 0).threads }, { ROW.sets.of(4, 0).items_per_thread }>,
    u64v4 = <u64, u32, { ROW.sets.of(8, 0).threads }, { ROW.sets.of(8, 0).items_per_thread }>,
    u64v8 = <u64, u64, { ROW.sets.of(8, 0).threads }, { ROW.sets.of(8, 0).items_per_thread }>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn combine_sets<B: Bits, V: Word, const NT: usize, const VT: usize>(
    a: Elements<B, V>,
    m: usize,
    b: Elements<B, V>,
    n: usize,
    out: Elements<B, V>,
    capacity: usize,
    count: *mut u64,
    tiles: *mut u64,
    splits: *const usize,
    kept: u32,
    coding: Coding<B>,
) {
    const { assert!(VT < 32 && NT * VT <= 1 << 16, "a thread has a bit for each step, and a key an index of 16 bits") };
    const { shared_memory::check(Memory::<B>::bytes(NT, VT)) };
    let tile_keys = const { tile_keys(NT, VT) };
    let number = (m + n).div_ceil(tile_keys);
    // SAFETY: `tiles` has a word more than there are tiles, and is used for nothing else; `splits` has one for each tile. The
    // launch has `shared_bytes`. Thread `t` writes slots `t + i * NT` of `keys`, `i < VT`, before a barrier.
    let (tiles, splits, Memory { keys: slots, compaction }) =
        unsafe { (Tiles::new(tiles, number), Global::new(splits, number), Memory::<B>::at_start(NT, VT)) };
    let tile = compaction.take(tiles);
    let (t, k) = (tile as usize, tile as usize * tile_keys);
    let (a_first, b_first) = unpack(splits.get(t), k);
    let end = if t + 1 < number { unpack(splits.get(t + 1), k + tile_keys) } else { (m, n) };
    // At most `NT * VT` keys: a tile more than its share only if it begins one key before its diagonal.
    let total = end.0 + end.1 - a_first - b_first;
    let a_count = clamp_split(a_first, end.0, total) - a_first;
    // SAFETY: arrays have `m` and `n` elements, as the caller promises. Points of the path are in both arrays, and `clamp_split`
    // keeps the ends of a tile in order, so that `a_first + a_count <= m` and `b_first + total - a_count <= n`.
    let (keys, values) = unsafe {
        (
            Parts {
                a: Global::new(a.keys.cast_const(), m).slice(a_first, a_count),
                b: Global::new(b.keys.cast_const(), n).slice(b_first, total - a_count),
            },
            Parts {
                a: Global::new(a.values.cast_const(), m).slice(a_first, a_count),
                b: Global::new(b.values.cast_const(), n).slice(b_first, total - a_count),
            },
        )
    };
    indexed_merge::put_keys::<_, NT, VT>(load_keys::<B, NT, VT>(keys, coding), slots);
    thread::sync_threads();

    let walked = walk::<B, VT>(slots, a_count as u32, total as u32, Kept(kept));
    // SAFETY: all threads of the block are here, whole warps. Each keeps at most the steps of its part of the tile.
    let of_tile = unsafe { compaction.keep(tiles, tile, walked.kept, walked.sources) }.of_tile;
    // SAFETY: as above.
    unsafe { compaction.look_back(tiles, tile, of_tile) };
    thread::sync_threads();
    let before = compaction.kept_before();
    if t + 1 == number && thread::thread_idx_x() == 0 {
        // SAFETY: `count` is one number, as the caller promises, which the block of the last tile alone writes.
        unsafe { GlobalMut::new(count, 1) }.set(0, before as u64 + of_tile as u64);
    }
    // Arrays that are not ascending may give more keys than there can be of ascending ones.
    let begin = before.min(capacity);
    let len = (of_tile as usize).min(capacity - begin);
    // SAFETY: `out` has `capacity` elements, as the caller promises. Tiles write one after the other, none what another one writes.
    let (to_keys, to_values) = unsafe {
        (GlobalMut::new(out.keys, capacity).slice(begin, len), GlobalMut::new(out.values, capacity).slice(begin, len))
    };
    compaction.write::<B, NT, VT>(slots, to_keys, |key| coding.decode(key));
    if const { size_of::<V>() > 0 } {
        indexed_merge::gather_values::<V, NT, VT>(values, compaction.sources, to_values);
    }
}

/// Global to registers, strided: A's part, then B's, as `coding` encodes them, and the greatest key behind them.
///
/// [`indexed_merge::load_keys`] for tiles whose length varies by a key or two: all rows but the last one are full in each tile but the
/// last one.
#[inline(always)]
#[track_caller]
fn load_keys<B: Bits, const NT: usize, const VT: usize>(parts: Parts<B>, coding: Coding<B>) -> [B; VT] {
    let thread = thread::thread_idx_x() as usize;
    if parts.a.len() + parts.b.len() < NT * (VT - 1) {
        return indexed_merge::load_keys::<B, NT, VT>(parts, coding);
    }
    let (in_a, in_b) = (parts.a.place(thread), parts.b.place(thread.wrapping_sub(parts.a.len())));
    // Relative to the thread, so that the indices of its keys compare as constants.
    let a_end = parts.a.len() as i32 - thread as i32;
    let end = a_end + parts.b.len() as i32;
    let mut keys = [coding.decode(B::MAX); VT];
    for i in 0..VT {
        let step = i * NT;
        if i + 1 < VT || (step as i32) < end {
            keys[i] = if (step as i32) < a_end { in_a.get(step as isize) } else { in_b.get(step as isize) };
        }
    }
    coding.encode_all(&mut keys);
    keys
}

/// What a thread keeps of its part of the path.
struct Walked<const VT: usize> {
    /// For each step the index in the tile of the key that it takes, of A's if it takes one of both.
    sources: [u32; VT],
    /// A bit for each step, of whether its key is kept.
    kept: u32,
}

/// Walks a thread's part of the path of a tile: from the last point up to its diagonal to the last point up to the next thread's.
///
/// That takes `VT` steps at most: `VT` keys, and one more if the part begins one key before its diagonal, with a pair.
#[inline(always)]
#[track_caller]
fn walk<B: Bits, const VT: usize>(keys: Shared<B>, a_count: u32, count: u32, kept: Kept) -> Walked<VT> {
    let diagonal = (thread::thread_idx_x() * VT as u32).min(count);
    let runs = (keys.slice(0, a_count), keys.slice(a_count, count - a_count));
    let point = balance(diagonal, diagonal_search(diagonal, runs.0, runs.1), runs.0, runs.1);
    let first = point.rank(diagonal);
    let (mut a, mut b) = (point.a, a_count + first - point.a);
    let mut left = (diagonal + VT as u32).min(count) - first;
    let (mut a_key, mut b_key) = (keys.get(a), keys.get(b));
    let mut walked = Walked { sources: [0; VT], kept: 0 };
    for i in 0..VT {
        let (has_a, has_b) = (a < a_count, b < count);
        let of_a = has_a & (!has_b | (a_key <= b_key));
        let of_b = has_b & (!has_a | (b_key <= a_key));
        let step = of_a as u32 + of_b as u32;
        // A pair that the next thread's diagonal divides is the next thread's.
        let takes = step <= left;
        walked.sources[i] = if of_a { a } else { b };
        walked.kept |= ((takes & kept.keeps(of_a, of_b)) as u32) << i;
        if i + 1 < VT {
            left = if takes { left - step } else { 0 };
            a += of_a as u32;
            b += of_b as u32;
            if of_a {
                a_key = keys.get(a);
            }
            if of_b {
                b_key = keys.get(b);
            }
        }
    }
    walked
}
