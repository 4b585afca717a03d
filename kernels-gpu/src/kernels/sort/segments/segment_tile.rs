//! A tile of segments, sorted by one block.
//!
//! ```text
//!   segments    │a      │b │c           │d│e     │░░░     heads, a bit a slot, at a, b, c, d, e, and where keys end
//!   registers   │VT   │VT   │VT   │VT   │VT   │VT   │     sorted by (segment, key, index) in a network
//!   shared      │          ←┼→          │          …       a round: runs of VT → 2 VT → …; but of two runs only that
//!                         c … c                            part is merged which is of the segment that lies across
//! ```
//!
//! Two neighbouring runs share at most one segment. So a round has at most one merge for each two runs, and none if a
//! segment begins between them. A tile of short segments has hardly any merges in its later rounds.
//!
//! The sort is stable. If there are values, the keys' indices in the tile, in an array of 16-bit numbers, move with the
//! keys.

use super::Bounds;
use crate::block::indexed_merge::Cursors;
use crate::block::shared_memory::shared_memory;
use crate::block::tile;
use crate::elements::{Arrays, has_values};
use crate::key::{Bits, Coding};
use crate::thread::indexed_key::{indexed, key_and_index};
use crate::thread::network::{Wire, sort_registers};
use core::hint::select_unpredictable;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, reduce_max, shuffle_up};

shared_memory! {
    /// Shared memory of a tile of `slots` keys of `threads` threads, with values of `value_bytes` bytes or 0.
    struct Memory<B: Word>(threads: usize, slots: usize, value_bytes: usize) {
        /// One slot more: a merge reads the key behind the last key that it takes.
        keys: [B; slots + 1],
        /// The last head at or before each thread's first slot.
        befores: [u32; threads],
        /// The first head behind each thread's last head, if the thread has a head.
        nexts: [u32; threads],
        /// The heads, and one word more, as two words are read at once.
        heads: [u32; slots.div_ceil(32) + 1],
        /// The last head of each warp plus 1, or 0.
        of_warps: [u32; WARP_SIZE],
        /// Indices of keys in the tile.
        indices: [u16; if value_bytes > 0 { slots } else { 0 }],
    }
}

/// Bytes of dynamic shared memory for tiles of `slots` keys of `key_bytes` bytes with values of `value_bytes` bytes, or
/// 0.
pub const fn shared_bytes(key_bytes: usize, value_bytes: usize, threads: usize, slots: usize) -> u32 {
    match key_bytes {
        4 => Memory::<u32>::bytes(threads, slots, value_bytes),
        _ => Memory::<u64>::bytes(threads, slots, value_bytes),
    }
}

/// A key with its segment and its index among a thread's keys. It compares by segment, then by key, then by index.
pub trait Tagged<B>: Wire {
    /// Packs the three. The index is below 32, and the segment at most 32.
    fn new(segment: u32, key: B, index: u32) -> Self;
    /// The key and its index.
    fn key_and_index(self) -> (B, u32);
}

/// A number of 58 bits as the bits of a positive float. Such floats compare as the numbers do.
impl Tagged<u32> for f64 {
    #[inline(always)]
    fn new(segment: u32, key: u32, index: u32) -> f64 {
        f64::from_bits((segment as u64) << 52 | indexed(key, index).to_bits())
    }
    #[inline(always)]
    fn key_and_index(self) -> (u32, u32) {
        key_and_index(self)
    }
}

/// A key of 8 bytes, and a number that packs its segment and its index.
#[derive(Clone, Copy)]
pub struct Wide {
    key: u64,
    /// The index in the lower half.
    tag: u32,
}

impl Wire for Wide {
    #[inline(always)]
    fn in_order(self, other: Self) -> (Self, Self) {
        let (segment, other_segment) = (self.tag >> 16, other.tag >> 16);
        let is_less = (segment, self.key, self.tag) < (other_segment, other.key, other.tag);
        (
            Self {
                key: select_unpredictable(is_less, self.key, other.key),
                tag: select_unpredictable(is_less, self.tag, other.tag),
            },
            Self {
                key: select_unpredictable(is_less, other.key, self.key),
                tag: select_unpredictable(is_less, other.tag, self.tag),
            },
        )
    }
}

impl Tagged<u64> for Wide {
    #[inline(always)]
    fn new(segment: u32, key: u64, index: u32) -> Self {
        Self { key, tag: segment << 16 | index }
    }
    #[inline(always)]
    fn key_and_index(self) -> (u64, u32) {
        (self.key, self.tag & 0xffff)
    }
}

/// The segments of a tile: segments `first .. last` of the array. If `first == last`, the whole tile is part of one
/// segment.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    pub(super) bounds: Bounds,
    pub(super) first: usize,
    pub(super) last: usize,
}

/// With more segments than this for each slot, most of the segments are empty, and threads search instead of looking at
/// each.
const MOST_LISTED: usize = 4;

impl Heads {
    /// Sets the bits of the heads among the `count` keys of a tile. The first key of the tile is key `base` of the
    /// array.
    #[inline(always)]
    #[track_caller]
    fn mark<const NT: usize, const VT: usize>(self, base: usize, count: u32, heads: Shared<u32>) {
        let thread = thread::thread_idx_x();
        // Nonempty segments begin at different keys, so that adding a bit sets it.
        let set = |slot: u32| heads.fetch_add(slot / 32, 1 << (slot % 32));
        if thread == 0 && count < (NT * VT) as u32 {
            set(count);
        }
        let Self { bounds, first, last } = self;
        if first == last {
            if thread == 0 {
                set(0);
            }
        } else if last - first <= MOST_LISTED * NT * VT {
            let mut q = first + thread as usize;
            while q < last {
                let start = bounds.start(q);
                if start < bounds.start(q + 1) {
                    set((start - base) as u32);
                }
                q += NT;
            }
        } else {
            let (mut slot, end) = (thread * VT as u32, ((thread + 1) * VT as u32).min(count));
            while slot < end {
                let q = bounds.first_from(base + slot as usize, first, last);
                if q == last {
                    break;
                }
                slot = (bounds.start(q) - base).min(end as usize) as u32;
                if slot < end {
                    set(slot);
                }
                slot += 1;
            }
        }
    }
}

/// The heads of a thread's slots as bits; the lowest bit is the first slot.
#[inline(always)]
#[track_caller]
fn own_heads<const VT: usize>(heads: Shared<u32>, slot: u32) -> u32 {
    const { assert!(VT <= 32, "the heads of a thread are a word") };
    let both = heads.get(slot / 32) as u64 | (heads.get(slot / 32 + 1) as u64) << 32;
    (both >> (slot % 32)) as u32 & (u32::MAX >> (32 - VT))
}

/// The last head of the threads before this one. A thread passes its last head plus 1, or 0. The first thread gets 0.
///
/// # Safety
/// All threads of the block, whole warps, make this call. `of_warps` has a word for each lane, which nothing else uses.
#[inline(always)]
#[track_caller]
unsafe fn last_before(own: u32, of_warps: Shared<u32>) -> u32 {
    let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
    let (mut greatest, mut distance) = (own, 1);
    while distance < WARP_SIZE {
        // SAFETY: `FULL_MASK` names the 32 lanes of the warp, which make this call together. The loop has the same five
        // rounds in each lane. A lane without a lane `distance` below gets its own value.
        let before = unsafe { shuffle_up(FULL_MASK, greatest, distance) };
        if lane >= distance {
            greatest = greatest.max(before);
        }
        distance *= 2;
    }
    if lane == WARP_SIZE - 1 {
        of_warps.set(warp, greatest);
    }
    thread::sync_threads();
    // SAFETY: no branch surrounds the two calls, so that the 32 lanes of the warp make both. Each lane reads one of 32
    // words.
    let (of_lanes, of_warps) = unsafe {
        let earlier = if lane < warp { of_warps.get(lane) } else { 0 };
        (shuffle_up(FULL_MASK, greatest, 1), reduce_max(FULL_MASK, earlier))
    };
    if lane == 0 { of_warps } else { of_lanes.max(of_warps) }
}

/// The part of two neighbouring runs that a round merges: slots `a .. middle` and `middle .. end`.
#[derive(Clone, Copy)]
struct Across {
    a: u32,
    middle: u32,
    end: u32,
}

/// Sorts the segments of `from`, a tile whose first key is key `base` of the array. `to` is the same arrays or others.
/// Keys are loaded as `encode` encodes them and stored as `decode` decodes them. Stable.
///
/// # Safety
/// All `NT` threads of the block make this call, with [`shared_bytes`] of dynamic shared memory that nothing else uses.
/// `from` and `to` have the same length, from 1 to `NT * VT`, and nothing else uses their elements. They are the same
/// arrays or do not overlap.
#[inline(always)]
pub(super) unsafe fn sort_segments_of_tile<B: Bits, V: Word, T: Tagged<B>, const NT: usize, const VT: usize>(
    segments: Heads,
    base: usize,
    [from, to]: [Arrays<B, V>; 2],
    [encode, decode]: [Coding<B>; 2],
) {
    const { assert!(NT * VT < 1 << 16, "indices in a tile have 16 bits") };
    let slots = (NT * VT) as u32;
    // SAFETY: the caller ensures `shared_bytes`. Barriers come between accesses of different threads to one element:
    // after loading, around each round, and before keys are stored.
    let memory = unsafe { Memory::<B>::at_start(NT, NT * VT, size_of::<V>()) };
    let (thread, count) = (thread::thread_idx_x(), from.keys.len() as u32);
    let slot = thread * VT as u32;

    let keys = tile::global_to_registers::<B, NT, VT>(from.keys, encode, 0);
    tile::store_striped::<B, NT, VT>(keys, memory.keys);
    memory.nexts.set(thread, slots);
    let mut word = thread;
    while word < memory.heads.len() {
        memory.heads.set(word, 0);
        word += NT as u32;
    }
    if thread == 0 {
        memory.keys.set(slots, B::MAX);
    }
    thread::sync_threads();
    segments.mark::<NT, VT>(base, count, memory.heads);
    thread::sync_threads();

    // SAFETY: no branch surrounds the call, so that all `NT` threads of the block make it.
    let heads = unsafe { find_neighbours::<B, VT>(memory) };
    sort_own::<B, V, T, VT>(memory, heads, count);
    thread::sync_threads();

    // Not unrolled: the block size is a variable.
    let mut threads = 1;
    while threads < thread::block_dim_x() {
        let first = thread & !(2 * threads - 1);
        let [begin, middle, end] = [first, first + threads, first + 2 * threads].map(|thread| thread * VT as u32);
        let head = memory.befores.get(first + threads);
        let across = Across { a: head.max(begin), middle, end: memory.nexts.get(head / VT as u32).min(end) };
        // SAFETY: all threads of the block make the call: the loop depends on the block size only. `across` lies in the
        // tile and in one segment, whose keys are in order on both sides. Slots behind the `count` keys are not merged.
        unsafe { merge_across::<B, V, VT>(memory, across, slot, head < middle.min(count)) };
        threads *= 2;
    }

    tile::decode_to_global::<_, NT>(memory.keys, to.keys, decode, thread);
    if const { has_values::<V>() } {
        move_values::<V, NT, VT>(memory.indices, from.values, to.values);
    }
}

/// Returns the heads among this thread's slots as bits. Sets for each thread the last head up to its first slot, and
/// for each last head of a thread the next head.
///
/// # Safety
/// All threads of the block make this call once, after the heads are marked.
#[inline(always)]
#[track_caller]
unsafe fn find_neighbours<B: Bits, const VT: usize>(memory: Memory<B>) -> u32 {
    let thread = thread::thread_idx_x();
    let slot = thread * VT as u32;
    let heads = own_heads::<VT>(memory.heads, slot);
    let last = if heads == 0 { 0 } else { slot + u32::BITS - heads.leading_zeros() };
    // SAFETY: all threads of the block make this call. `of_warps` has `WARP_SIZE` words and is used once.
    let before = unsafe { last_before(last, memory.of_warps) };
    let starts_segment = heads & 1 == 1;
    // The first slot of the tile is a head, so that only the first thread has no head before.
    memory.befores.set(thread, if starts_segment { slot } else { before - 1 });
    if heads != 0 && before > 0 {
        memory.nexts.set((before - 1) / VT as u32, slot + heads.trailing_zeros());
    }
    heads
}

/// Sorts the parts of segments in this thread's slots, in registers. A thread writes the slots that it has read.
#[inline(always)]
#[track_caller]
fn sort_own<B: Bits, V: Word, T: Tagged<B>, const VT: usize>(memory: Memory<B>, heads: u32, count: u32) {
    let slot = thread::thread_idx_x() * VT as u32;
    if slot < count {
        let mut tagged = [T::new(0, B::MAX, 0); VT];
        for i in 0..VT as u32 {
            let segment = (heads & (u32::MAX >> (31 - i))).count_ones();
            tagged[i as usize] = T::new(segment, memory.keys.get(slot + i), i);
        }
        sort_registers(&mut tagged);
        for i in 0..VT {
            let (key, index) = tagged[i].key_and_index();
            memory.keys.set(slot + i as u32, key);
            if const { has_values::<V>() } {
                memory.indices.set(slot + i as u32, (slot + index) as u16);
            }
        }
    }
    if const { has_values::<V>() } && slot >= count {
        // Merges may read these indices, but do not use them.
        for i in 0..VT as u32 {
            memory.indices.set(slot + i, 0);
        }
    }
}

/// Sets value `i` of `to` to value `indices[i]` of `from`. All values are read before any is written, as `to` may be
/// `from`.
#[inline(always)]
#[track_caller]
fn move_values<V: Word, const NT: usize, const VT: usize>(indices: Shared<u16>, from: GlobalMut<V>, to: GlobalMut<V>) {
    let (thread, count) = (thread::thread_idx_x(), from.len() as u32);
    let mut values = [V::from_register(0); VT];
    for i in 0..VT {
        let at = thread + (i * NT) as u32;
        if at < count {
            values[i] = from.get(indices.get(at) as usize);
        }
    }
    thread::sync_threads();
    for i in 0..VT {
        let at = thread + (i * NT) as u32;
        if at < count {
            to.set(at as usize, values[i]);
        }
    }
}

/// A thread's part of a round: its slots, from `slot` on, that lie in the merged range. The range `is_there` unless a
/// segment begins in the middle.
///
/// # Safety
/// All threads of the block make this call. `across` lies in the tile, with its keys in order on both sides. Threads
/// whose slots lie in `across` have the same `across`.
#[inline(always)]
#[track_caller]
unsafe fn merge_across<B: Bits, V: Word, const VT: usize>(
    memory: Memory<B>,
    across: Across,
    slot: u32,
    is_there: bool,
) {
    let Across { a, middle, end } = across;
    let (low, high) = (slot.max(a), (slot + VT as u32).min(end));
    let steps = if is_there { high.saturating_sub(low) } else { 0 };
    let (mut keys, mut indices) = ([B::MAX; VT], [0; VT]);
    if steps > 0 {
        let run = Cursors { a, b: middle, a_end: middle, b_end: end };
        let Cursors { mut a, mut b, a_end, b_end } = run.after(low - a, memory.keys);
        let (mut a_key, mut b_key) = (memory.keys.get(a), memory.keys.get(b));
        // Each thread makes the same number of steps, so that the arrays stay in registers. Steps beyond the thread's
        // share read on in A, whose end is at least a thread's slots before the end of the tile.
        for i in 0..VT {
            let take_a = b >= b_end || (a < a_end && a_key <= b_key);
            let source = select_unpredictable(take_a, a, b);
            keys[i] = select_unpredictable(take_a, a_key, b_key);
            if const { has_values::<V>() } {
                indices[i] = memory.indices.get(source) as u32;
            }
            let key = memory.keys.get(source + 1);
            a_key = select_unpredictable(take_a, key, a_key);
            b_key = select_unpredictable(take_a, b_key, key);
            a = select_unpredictable(take_a, source + 1, a);
            b = select_unpredictable(take_a, b, source + 1);
        }
    }
    thread::sync_threads();
    for i in 0..VT {
        if (i as u32) < steps {
            memory.keys.set(low + i as u32, keys[i]);
            if const { has_values::<V>() } {
                memory.indices.set(low + i as u32, indices[i] as u16);
            }
        }
    }
    thread::sync_threads();
}
