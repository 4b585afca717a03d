//! The second launch: the result, tile by tile.

use super::{Kept, unpack};
use crate::block::compaction::{self, CompactionMemory, load_each, prefetch_lines, scatter};
use crate::block::indexed_merge::Parts;
use crate::block::shared_memory::{self, shared_memory};
use crate::elements::{Output, Slice, has_values};
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
        /// What the tile has of A and a sentinel, what it has of B and a sentinel, and a key for each step that reads
        /// beyond. Then what is kept.
        keys: [B; threads * items_per_thread + items_per_thread + 2],
        /// For each element that is kept, its index in the tile: those of A, then those of B.
        sources: [u16; if has_values { threads * items_per_thread } else { 0 }],
        compaction: CompactionMemory {},
    }
}

/// Bytes of dynamic shared memory for `threads * items_per_thread` keys of `key_bytes` bytes, 4 or 8, alone or with
/// values.
pub const fn shared_bytes(threads: usize, items_per_thread: usize, key_bytes: usize, has_values: bool) -> u32 {
    if key_bytes == 4 {
        Memory::<u32>::bytes(threads, items_per_thread, has_values)
    } else {
        Memory::<u64>::bytes(threads, items_per_thread, has_values)
    }
}

/// How many tiles before it is taken the keys of a tile are brought to the L2 cache. What a tile reads between the
/// moment it is taken and the one at which it publishes how many keys it keeps, all tiles behind it wait for.
const AHEAD: usize = 256;

/// Keys of a tile, less one where it begins in the middle of a pair: then it has the whole pair.
pub const fn tile_keys(threads: usize, items_per_thread: usize) -> usize {
    threads * items_per_thread - 1
}

/// Kernel: writes the keys that `kept` keeps of `a` and `b` to `out`, ascending in the order of `coding`, with their
/// values. One block a tile. There are no values if `V` is `()`.
///
/// Of a pair of equal keys the one of `a` is kept, with its value.
///
/// # Safety
/// `a` and `b` are ascending, and one of them has keys. `splits` are those of
/// [`balance_path`](super::balance_path::balance_path) for tiles of [`tile_keys`]; `tiles` are the
/// [`words`](crate::warp::look_back::words) of as many tiles, which are 0. Blocks are of `NT` threads, whole warps, one
/// for each tile, with [`shared_bytes`]. What is written overlaps nothing that is read.
#[kernel(
    u32 = <u32, (), { ROW.sets.of(4, 0).threads }, { ROW.sets.of(4, 0).items_per_thread }>
        within (ROW.sets.of(4, 0).threads, ROW.sets_blocks),
    u64 = <u64, (), { ROW.sets.of(8, 0).threads }, { ROW.sets.of(8, 0).items_per_thread }>
        within (ROW.sets.of(8, 0).threads, ROW.wide_sets_blocks),
    u32v4 = <u32, u32, { ROW.sets.of(4, 4).threads }, { ROW.sets.of(4, 4).items_per_thread }>,
    u32v8 = <u32, u64, { ROW.sets.of(4, 8).threads }, { ROW.sets.of(4, 8).items_per_thread }>,
    u64v4 = <u64, u32, { ROW.sets.of(8, 4).threads }, { ROW.sets.of(8, 4).items_per_thread }>,
    u64v8 = <u64, u64, { ROW.sets.of(8, 8).threads }, { ROW.sets.of(8, 8).items_per_thread }>,
)]
pub unsafe fn combine_sets<B: Bits, V: Word, const NT: usize, const VT: usize>(
    a: Slice<B, V>,
    b: Slice<B, V>,
    out: Output<B, V>,
    tiles: *mut u64,
    splits: *const usize,
    kept: u32,
    coding: Coding<B>,
) {
    const { assert!(VT < 32 && NT * VT <= 1 << 16, "a thread has a bit for each step, and a key an index of 16 bits") };
    const { shared_memory::check(Memory::<B>::bytes(NT, VT, has_values::<V>())) };
    let tile_keys = const { tile_keys(NT, VT) };
    let (m, n) = (a.len, b.len);
    let number = (m + n).div_ceil(tile_keys);
    // SAFETY: `tiles` has a word more than there are tiles, and is used for nothing else; `splits` has one for each
    // tile. The launch has `shared_bytes`. Threads write keys at different indices of a tile, and its sentinels, before
    // a barrier; and after another one what they keep, to slots that the scan gives to them alone.
    let (tiles, splits, Memory { keys: slots, sources, compaction }) = unsafe {
        let memory = Memory::<B>::at_start(NT, VT, has_values::<V>());
        (Tiles::new(tiles, number), Global::new(splits, number), memory)
    };
    let tile = compaction.take(tiles);
    let (t, k) = (tile as usize, tile as usize * tile_keys);
    let (a_first, b_first) = unpack(splits.get(t), k);
    let end = if t + 1 < number { unpack(splits.get(t + 1), k + tile_keys) } else { (m, n) };
    let ahead =
        [t + AHEAD, t + AHEAD + 1].map(|t| if t < number { unpack(splits.get(t), t * tile_keys) } else { (m, n) });
    // At most `NT * VT` keys: a tile more than its share only if it begins one key before its diagonal.
    let total = end.0 + end.1 - a_first - b_first;
    let a_count = clamp_split(a_first, end.0, total) - a_first;
    // SAFETY: arrays have `m` and `n` elements, as the caller promises.
    let (a, b) = unsafe { (a.source(), b.source()) };
    // Points of the path are in both arrays, and `clamp_split` keeps the ends of a tile in order, so that
    // `a_first + a_count <= m` and `b_first + total - a_count <= n`.
    let parts = Parts { a: a.slice(a_first, a_count), b: b.slice(b_first, total - a_count) };
    let prefetch = || {
        let [(a_first, b_first), (a_end, b_end)] = ahead;
        prefetch_lines(a.keys, a_first, a_end);
        prefetch_lines(b.keys, b_first, b_end);
    };
    load_keys::<B, V, NT, VT>(parts, coding, slots, prefetch);
    thread::sync_threads();

    let part = Part::of_thread::<B, VT>(slots, a_count as u32, total as u32);
    // Sentinels end both runs if no key of the tile is as great.
    let is_less = |end: u32, count: usize| count == 0 || slots.get(end - 1) != B::MAX;
    let walked = if is_less(a_count as u32, a_count) && is_less(total as u32 + 1, total - a_count) {
        part.walk::<B, VT, false>(slots)
    } else {
        part.walk::<B, VT, true>(slots)
    };
    let kept = walked.kept(Kept(kept), part.count);
    // SAFETY: all threads of the block are here, whole warps.
    let counted = unsafe { compaction.count(tiles, tile, kept.count_ones()) };
    let of_tile = counted.of_tile;
    // The keys of the tile have been read by all threads: `count` has a barrier.
    scatter::<B, VT>(kept, counted.before_thread, |i| walked.keys[i], slots);
    let mut loaded = [V::from_register(0); VT];
    if has_values::<V>() {
        let source = |i: usize| {
            // Within the tile even if arrays are not ascending: a step behind the end of B finds the greatest key
            // there, and so takes one of A; and the steps that are kept take no more keys than are left.
            let slot = slots.index(walked.sources[i]);
            slot - (slot > a_count as u32) as u32
        };
        scatter::<u16, VT>(kept, counted.before_thread, |i| source(i) as u16, sources);
        thread::sync_threads();
        // The values are on their way while the block looks back.
        loaded = load_each::<V, NT, VT>(of_tile as usize, |i| {
            let source = sources.get(i) as usize;
            if source < a_count { parts.a.values.get(source) } else { parts.b.values.get(source - a_count) }
        });
    }
    // SAFETY: as above.
    unsafe { compaction.look_back(tiles, tile, of_tile, const { pause(has_values::<V>()) }) };
    thread::sync_threads();
    let before = compaction.kept_before();
    // Computed anew: to keep it takes registers.
    let number = recomputed(m + n).div_ceil(tile_keys);
    if t + 1 == number && thread::thread_idx_x() == 0 {
        // SAFETY: `out.count` is one number, as the caller promises, which the block of the last tile alone writes.
        unsafe { GlobalMut::new(out.count, 1) }.set(0, before as u64 + of_tile as u64);
    }
    // Arrays that are not ascending may give more keys than there can be of ascending ones.
    let begin = before.min(out.capacity);
    let len = (of_tile as usize).min(out.capacity - begin);
    // SAFETY: `out` has capacity for as many elements, as the caller promises. Tiles write one after the other, none
    // what another one writes.
    let to = unsafe { out.at.arrays(out.capacity) }.slice(begin, len);
    compaction::write::<B, NT, VT>(slots, to.keys, coding);
    if has_values::<V>() {
        compaction::put::<V, NT, VT>(loaded, to.values);
    }
}

/// How long a tile waits before it looks back, in nanoseconds.
const fn pause(has_values: bool) -> u32 {
    if has_values { ROW.sets_pairs_pause } else { ROW.sets_pause }
}

/// Global to shared, strided: A's part, a slot with the greatest key, B's part, and the greatest key in all slots that
/// follow. Keys are as `coding` encodes them. What is done `meanwhile`, none of that waits for. A barrier follows.
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
    // All rows but the last one are full in each tile but the last one, whose length varies by a key or two.
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
    if coding != Coding::NONE {
        each_row::<NT, VT>(0, end, |step, at| {
            let slot = at + (step >= a_end) as u32;
            slots.set(slot, coding.encode(slots.get(slot)));
        });
    }
}

/// Calls `work` with each multiple of `NT` below `end` and this thread's index so much further, for rows of a tile: the
/// first `full_rows` have an element for each thread.
#[inline(always)]
fn each_row<const NT: usize, const VT: usize>(full_rows: usize, end: i32, work: impl Fn(i32, u32)) {
    for i in 0..VT {
        let step = (i * NT) as i32;
        if i < full_rows || step < end {
            work(step, thread::thread_idx_x() + step as u32);
        }
    }
}

/// What a thread finds on its part of the path.
struct Walked<B, const VT: usize> {
    /// For each step the key that it takes.
    keys: [B; VT],
    /// For each step the address of the key that it takes, of A's if it takes one of both.
    sources: [u32; VT],
    /// A bit for each step, of whether it takes a key of A.
    of_a: u32,
    /// The same of B.
    of_b: u32,
}

impl<B, const VT: usize> Walked<B, VT> {
    /// A bit for each step of a part of `count` keys, of whether its key is kept.
    #[inline(always)]
    fn kept(&self, kept: Kept, count: u32) -> u32 {
        let if_kept = |of_a, of_b, steps: u32| if kept.keeps(of_a, of_b) { steps } else { 0 };
        let (pairs, mut steps) = (self.of_a & self.of_b, 0);
        let kept = if_kept(true, false, self.of_a & !self.of_b)
            | if_kept(false, true, self.of_b & !self.of_a)
            | if_kept(true, true, pairs);
        // A step takes one key, and a pair two: the most steps that take `count` keys at most.
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

/// A thread's part of the path of a tile: from the last point up to its diagonal to the last point up to the next
/// thread's. Addresses are of keys in shared memory.
#[derive(Clone, Copy)]
struct Part {
    a: u32,
    a_end: u32,
    b: u32,
    b_end: u32,
    /// How many keys the part has. A pair that the next thread's diagonal divides is the next thread's.
    count: u32,
}

impl Part {
    /// The part of this thread in a tile of `count` keys, of which `a_count` are of A.
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

    /// Walks this part, which takes `VT` steps at most: `VT` keys, and one more if it begins one key before the
    /// diagonal, with a pair.
    ///
    /// If no key is as great as the sentinels, ends need not be `CHECKED`: a run that is used up has the greater key.
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
