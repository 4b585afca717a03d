//! The second launch: computes the result, tile by tile.

use super::{Kept, unpack};
use crate::block::compaction::{self, CompactionMemory, load_each, prefetch_lines, scatter};
use crate::block::indexed_merge::Parts;
use crate::block::shared_memory::{self, shared_memory};
use crate::elements::{Arrays, Output, Source, has_values};
use crate::kernels::merge_path::TwoRuns;
use crate::key::{Bits, Coding};
use crate::textbook::co_rank::clamp_split;
use crate::thread::balanced_path::balance;
use crate::thread::diagonal::diagonal_search;
use crate::tuning::ROW;
use crate::warp::look_back::Tiles;
use core::hint::select_unpredictable;
use cuda_std::prelude::*;
use cuda_std::recomputed;

shared_memory! {
    /// Shared memory of a block.
    struct Memory<B: Word>(threads: usize, items_per_thread: usize, has_values: bool) {
        /// The tile's keys of A and a sentinel, its keys of B and a sentinel, and one key for each step that reads
        /// beyond. Later, the kept keys.
        keys: [B; threads * items_per_thread + items_per_thread + 2],
        /// For each kept element, its index in the tile, where the keys of A come before the keys of B.
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

/// Prefetch distance, in tiles. All later tiles wait for a tile's loads, until it publishes its count: they should hit
/// the L2 cache.
const AHEAD: usize = 256;

/// Keys per tile. A tile that begins between the two keys of a pair takes the whole pair, and has one key more.
pub const fn tile_keys(threads: usize, items_per_thread: usize) -> usize {
    threads * items_per_thread - 1
}

/// Kernel: writes the keys of the runs A and B that `kept` selects to `out`, ascending in the order of `coding`, with
/// their values. One block per tile. There are no values if `V` is `()`.
///
/// Of a pair of equal keys, the key of A is kept, with its value.
///
/// # Safety
/// The runs are ascending arrays without offsets, and have room for at least one key. If they have counts, the instance
/// is `COUNTED`. `splits` is the result of [`balance_path`](super::balance_path::balance_path) for them and tiles of
/// [`tile_keys`]. `tiles` points to the [`words`](crate::warp::look_back::words) of all tiles, which are 0. Blocks have
/// `NT` threads, whole warps, one block per tile, with [`shared_bytes`]. The output arrays do not overlap the input
/// arrays.
#[kernel(
    u32 = <u32, (), { ROW.sets.of(4, 0).threads }, { ROW.sets.of(4, 0).items_per_thread }, false>
        within (ROW.sets.of(4, 0).threads, ROW.sets_blocks),
    u64 = <u64, (), { ROW.sets.of(8, 0).threads }, { ROW.sets.of(8, 0).items_per_thread }, false>
        within (ROW.sets.of(8, 0).threads, ROW.wide_sets_blocks),
    u32v4 = <u32, u32, { ROW.sets.of(4, 4).threads }, { ROW.sets.of(4, 4).items_per_thread }, false>,
    u32v8 = <u32, u64, { ROW.sets.of(4, 8).threads }, { ROW.sets.of(4, 8).items_per_thread }, false>,
    u64v4 = <u64, u32, { ROW.sets.of(8, 4).threads }, { ROW.sets.of(8, 4).items_per_thread }, false>,
    u64v8 = <u64, u64, { ROW.sets.of(8, 8).threads }, { ROW.sets.of(8, 8).items_per_thread }, false>,
    u32counted = <u32, (), { ROW.sets.of(4, 0).threads }, { ROW.sets.of(4, 0).items_per_thread }, true>
        within (ROW.sets.of(4, 0).threads, ROW.sets_blocks),
    u64counted = <u64, (), { ROW.sets.of(8, 0).threads }, { ROW.sets.of(8, 0).items_per_thread }, true>
        within (ROW.sets.of(8, 0).threads, ROW.wide_sets_blocks),
    u32v4counted = <u32, u32, { ROW.sets.of(4, 4).threads }, { ROW.sets.of(4, 4).items_per_thread }, true>,
    u32v8counted = <u32, u64, { ROW.sets.of(4, 8).threads }, { ROW.sets.of(4, 8).items_per_thread }, true>,
    u64v4counted = <u64, u32, { ROW.sets.of(8, 4).threads }, { ROW.sets.of(8, 4).items_per_thread }, true>,
    u64v8counted = <u64, u64, { ROW.sets.of(8, 8).threads }, { ROW.sets.of(8, 8).items_per_thread }, true>,
)]
pub unsafe fn combine_sets<B: Bits, V: Word, const NT: usize, const VT: usize, const COUNTED: bool>(
    runs: TwoRuns<B, V>,
    out: Output<B, V>,
    tiles: *mut u64,
    splits: *const usize,
    kept: u32,
    coding: Coding<B>,
) {
    const { assert!(VT < 32 && NT * VT <= 1 << 16, "a thread has a bit for each step, and a key an index of 16 bits") };
    const { shared_memory::check(Memory::<B>::bytes(NT, VT, has_values::<V>())) };
    let tile_keys = const { tile_keys(NT, VT) };
    let most = runs.len.div_ceil(tile_keys);
    // SAFETY: `splits` has a number for each of up to `most` tiles, and two numbers behind them. The launch has
    // `shared_bytes`. Before the first barrier, a thread writes its own slots of the tile, and thread 0 a sentinel.
    // After a barrier behind the reads, a thread writes the slots of its own kept keys, which the scan makes disjoint.
    let (splits, Memory { keys: slots, sources, compaction }) =
        unsafe { (Global::new(splits, most + 2), Memory::<B>::at_start(NT, VT, has_values::<V>())) };
    let (m, all) = if COUNTED { (splits.get(most), splits.get(most + 1)) } else { (runs.a_len, runs.len) };
    let (n, number) = (all - m, all.div_ceil(tile_keys));
    // SAFETY: `tiles` has `most + 1` words, which nothing else uses.
    let tiles = unsafe { Tiles::new(tiles, number) };
    // SAFETY: the caller passes one number at the count, which only the block of the last tile writes.
    let Some(tile) = (unsafe { compaction.take_of::<COUNTED>(tiles, number, out.count) }) else { return };
    let t = tile as usize;
    // SAFETY: the runs have `m` and `n` elements, which nothing writes during the launch.
    let (a, b) = unsafe { (runs.a.source(m), runs.b.source(n)) };
    let (parts, ahead) = parts_of_tile(a, b, splits.slice(0, number), t, tile_keys);
    let (a_count, total) = (parts.a.len(), parts.a.len() + parts.b.len());
    let prefetch = || {
        let [(a_first, b_first), (a_end, b_end)] = ahead;
        prefetch_lines(a.keys, a_first, a_end);
        prefetch_lines(b.keys, b_first, b_end);
    };
    load_keys::<B, V, NT, VT>(parts, coding, slots, prefetch);
    thread::sync_threads();

    let (walked, steps) = walk::<B, VT>(slots, a_count, total);
    let kept = walked.kept(Kept(kept), steps);
    // SAFETY: all threads of the block, which are whole warps, make this call: they have the same `tile`, so that all
    // or none have returned.
    let counted = unsafe { compaction.count(tiles, tile, kept.count_ones()) };
    let of_tile = counted.of_tile;
    // All threads have read the keys: `count` contains a barrier.
    scatter::<B, VT>(kept, counted.before_thread, |i| walked.keys[i], slots);
    let mut loaded = [V::from_register(0); VT];
    if has_values::<V>() {
        let source = |i: usize| source(walked.sources[i], slots, a_count as u32);
        scatter::<u16, VT>(kept, counted.before_thread, source, sources);
        thread::sync_threads();
        // The loads of the values overlap with the look-back.
        loaded = load_values::<B, V, NT, VT>(parts, sources, of_tile as usize);
    }
    // SAFETY: all threads of the block, which are whole warps, make this call after `count`.
    unsafe { compaction.look_back(tiles, tile, of_tile, const { pause(has_values::<V>()) }) };
    thread::sync_threads();
    let before = compaction.kept_before();
    // Computed again, which saves registers.
    let number = recomputed(all).div_ceil(tile_keys);
    if t + 1 == number && thread::thread_idx_x() == 0 {
        // SAFETY: `out.count` points to one number. Only thread 0 of the block of the last tile writes it.
        unsafe { GlobalMut::new(out.count, 1) }.set(0, before as u64 + of_tile as u64);
    }
    // SAFETY: `out` has capacity for `out.capacity` elements. A tile writes its elements from `before` on, behind the
    // elements of earlier tiles, so that no two tiles write the same one.
    let to = slice_up_to(unsafe { out.at.arrays(out.capacity) }, before, of_tile as usize);
    compaction::write::<B, NT, VT>(slots, to.keys, coding);
    if has_values::<V>() {
        compaction::put::<V, NT, VT>(loaded, to.values);
    }
}

/// The parts of tile `t`, and the points of the path, in A and B, between which the tile lies that is [`AHEAD`] of it.
/// Each tile has `tile_keys` keys.
#[inline(always)]
#[track_caller]
fn parts_of_tile<B: Bits, V: Word>(
    a: Source<B, V>,
    b: Source<B, V>,
    splits: Global<usize>,
    t: usize,
    tile_keys: usize,
) -> (Parts<B, V>, [(usize, usize); 2]) {
    // The point where a tile begins.
    let begin = |t: usize| {
        if t < splits.len() { unpack(splits.get(t), t * tile_keys) } else { (a.len(), b.len()) }
    };
    let (a_first, b_first) = unpack(splits.get(t), t * tile_keys);
    let (end, ahead) = (begin(t + 1), [t + AHEAD, t + AHEAD + 1].map(begin));
    // At most `NT * VT` keys: `tile_keys` is `NT * VT - 1`, and a tile has one more only if it begins one key before
    // its diagonal.
    let total = end.0 + end.1 - a_first - b_first;
    // Points of the path are in both arrays, and `clamp_split` keeps the ends of a tile in order. So `a_first +
    // a_count` is at most the length of A, and `b_first + total - a_count` is at most the length of B.
    let a_count = clamp_split(a_first, end.0, total) - a_first;
    (Parts { a: a.slice(a_first, a_count), b: b.slice(b_first, total - a_count) }, ahead)
}

/// The steps of this thread in a tile of `total` keys, the first `a_count` of A, and their number.
#[inline(always)]
#[track_caller]
fn walk<B: Bits, const VT: usize>(slots: Shared<B>, a_count: usize, total: usize) -> (Walked<B, VT>, u32) {
    let part = Part::of_thread::<B, VT>(slots, a_count as u32, total as u32);
    // The sentinels end both runs unless a key of the tile is equal to them.
    let is_less = |end: u32, count: usize| count == 0 || slots.get(end - 1) != B::MAX;
    let walked = if is_less(a_count as u32, a_count) && is_less(total as u32 + 1, total - a_count) {
        part.walk::<B, VT, false>(slots)
    } else {
        part.walk::<B, VT, true>(slots)
    };
    (walked, part.count)
}

/// Index in the tile, where `a_count` keys are of A, of the element whose key is at this address.
#[inline(always)]
#[track_caller]
fn source<B: Bits>(address: u32, slots: Shared<B>, a_count: u32) -> u16 {
    // The source is inside the tile even for unsorted arrays. A step beyond the end of B reads the sentinel there and
    // takes a key of A. The kept steps take no more keys than are left.
    let slot = slots.index(address);
    (slot - (slot > a_count) as u32) as u16
}

/// Global to registers, striped: the values of the `count` kept elements, whose indices in the tile are `sources`.
#[inline(always)]
#[track_caller]
fn load_values<B: Bits, V: Word, const NT: usize, const VT: usize>(
    Parts { a, b }: Parts<B, V>,
    sources: Shared<u16>,
    count: usize,
) -> [V; VT] {
    load_each::<V, NT, VT>(count, |i| {
        let source = sources.get(i) as usize;
        if source < a.len() { a.values.get(source) } else { b.values.get(source - a.len()) }
    })
}

/// Up to `len` elements from index `begin` on. Unsorted arrays may give more keys than there is capacity for.
#[inline(always)]
#[track_caller]
fn slice_up_to<B: Bits, V: Word>(to: Arrays<B, V>, begin: usize, len: usize) -> Arrays<B, V> {
    let begin = begin.min(to.len());
    to.slice(begin, len.min(to.len() - begin))
}

/// Pause of a tile before its look-back, in nanoseconds.
const fn pause(has_values: bool) -> u32 {
    if has_values { ROW.sets_pairs_pause } else { ROW.sets_pause }
}

/// Global to shared memory, striped, encoded by `coding`: A's part, a sentinel, B's part, and sentinels in all further
/// slots. The sentinel is the greatest key. `meanwhile` runs during the asynchronous copies. The caller synchronizes
/// the block afterwards.
#[inline(always)]
#[track_caller]
fn load_keys<B: Bits, V: Word, const NT: usize, const VT: usize>(
    parts: Parts<B, V>,
    coding: Coding<B>,
    slots: Shared<B>,
    meanwhile: impl FnOnce(),
) {
    let (a, b) = (parts.a.keys, parts.b.keys);
    let (thread, count) = (thread::thread_idx_x() as usize, a.len() + b.len());
    let (in_a, in_b) = (a.place(thread), b.place(thread.wrapping_sub(a.len())));
    // Relative to the thread, so that the indices of its keys compare as constants.
    let a_end = a.len() as i32 - thread as i32;
    let end = a_end + b.len() as i32;
    // In every tile but the last, all rows except the last one are full; the length varies by one or two keys.
    let is_full = count >= NT * (VT - 1);
    let copy = |step: i32, at: u32| {
        if step < a_end {
            slots.copy_async_from(at, in_a, step as isize);
        } else {
            slots.copy_async_from(at + 1, in_b, step as isize);
        }
    };
    if is_full {
        each_row::<NT, VT>(VT - 1, end, copy);
    } else {
        each_row::<NT, VT>(0, end, copy);
    }
    meanwhile();
    if thread == 0 {
        slots.set(a.len() as u32, B::MAX);
    }
    let mut behind = (count + 1 + thread) as u32;
    while behind < slots.len() {
        slots.set(behind, B::MAX);
        behind += NT as u32;
    }
    shared::wait_for_copies();
    if !coding.is_identity() {
        each_row::<NT, VT>(0, end, |step, at| {
            let slot = at + (step >= a_end) as u32;
            slots.set(slot, coding.encode(slots.get(slot)));
        });
    }
}

/// Calls `work` for each row of a tile, with `step`, a multiple of `NT` below `end`, and this thread's index plus
/// `step`. The first `full_rows` rows have an element for each thread.
#[inline(always)]
fn each_row<const NT: usize, const VT: usize>(full_rows: usize, end: i32, work: impl Fn(i32, u32)) {
    for i in 0..VT {
        let step = (i * NT) as i32;
        if i < full_rows || step < end {
            work(step, thread::thread_idx_x() + step as u32);
        }
    }
}

/// The steps of a thread on its part of the path.
struct Walked<B, const VT: usize> {
    /// For each step, the key that it takes.
    keys: [B; VT],
    /// For each step, the address of the key that it takes: in a pair, of A's key.
    sources: [u32; VT],
    /// Bit i: whether step i takes a key of A.
    of_a: u32,
    /// Bit i: whether step i takes a key of B.
    of_b: u32,
}

impl<B, const VT: usize> Walked<B, VT> {
    /// The steps with a kept key, as bits, in a part of `count` keys.
    #[inline(always)]
    fn kept(&self, kept: Kept, count: u32) -> u32 {
        let if_kept = |of_a, of_b, steps: u32| if kept.keeps(of_a, of_b) { steps } else { 0 };
        let (pairs, mut steps) = (self.of_a & self.of_b, 0);
        let kept = if_kept(true, false, self.of_a & !self.of_b)
            | if_kept(false, true, self.of_b & !self.of_a)
            | if_kept(true, true, pairs);
        // A step takes one key, or two for a pair. `steps` is the greatest number of steps that take at most `count`
        // keys.
        let mut bit = 16;
        while bit > 0 {
            let more = steps + bit;
            if more + (pairs & ((1 << more) - 1)).count_ones() <= count {
                steps = more;
            }
            bit /= 2;
        }
        kept & ((1 << steps) - 1)
    }
}

/// A thread's part of a tile's path, from the last point up to its diagonal to the last point up to the next thread's
/// diagonal. `a`, `a_end`, `b` and `b_end` are addresses of keys in shared memory.
#[derive(Clone, Copy)]
struct Part {
    a: u32,
    a_end: u32,
    b: u32,
    b_end: u32,
    /// Number of keys of the part. A pair that the next thread's diagonal divides belongs to the next thread.
    count: u32,
}

impl Part {
    /// The part of this thread in a tile of `count` keys, with `a_count` keys of A.
    #[inline(always)]
    #[track_caller]
    fn of_thread<B: Bits, const VT: usize>(keys: Shared<B>, a_count: u32, count: u32) -> Self {
        let b_first = a_count + 1;
        let diagonal = (thread::thread_idx_x() * VT as u32).min(count);
        let runs = (keys.slice(0, a_count), keys.slice(b_first, count - a_count));
        let point = balance(diagonal, diagonal_search(diagonal, runs.0, runs.1), runs.0, runs.1);
        let b = point.rank(diagonal) - point.a;
        let next = (diagonal + VT as u32).min(count);
        Self {
            a: keys.address(point.a),
            a_end: keys.address(a_count),
            b: keys.address(b_first + b),
            b_end: keys.address(count + 1),
            count: next - point.rank(diagonal),
        }
    }

    /// Walks this part in at most `VT` steps. It has at most `VT` keys, or `VT + 1` if it begins one key before its
    /// diagonal, with a pair.
    ///
    /// `CHECKED` adds bounds checks. They are needed only if a key equals the sentinel: otherwise an exhausted run has
    /// the greater key.
    #[inline(always)]
    #[track_caller]
    fn walk<B: Bits, const VT: usize, const CHECKED: bool>(self, keys: Shared<B>) -> Walked<B, VT> {
        let Self { mut a, a_end, mut b, b_end, .. } = self;
        let (mut a_key, mut b_key) = (keys.get_at(a), keys.get_at(b));
        let mut walked = Walked { keys: [B::MIN; VT], sources: [0; VT], of_a: 0, of_b: 0 };
        for i in 0..VT {
            let (mut of_a, mut of_b) = (a_key <= b_key, b_key <= a_key);
            if CHECKED {
                let (has_a, has_b) = (a < a_end, b < b_end);
                (of_a, of_b) = (has_a & (of_a | !has_b), has_b & (of_b | !has_a));
            }
            walked.keys[i] = select_unpredictable(of_a, a_key, b_key);
            walked.sources[i] = select_unpredictable(of_a, a, b);
            walked.of_a |= select_unpredictable(of_a, 1 << i, 0);
            walked.of_b |= select_unpredictable(of_b, 1 << i, 0);
            (a, a_key) = keys.next_if(of_a, a, a_key);
            (b, b_key) = keys.next_if(of_b, b, b_key);
        }
        walked
    }
}
