//! Run lengths: the key of each group, and the number of its keys.
//!
//! ```text
//!   keys      │ 3 3 5 5 5 7 │       tile
//!   heads     │ 0   2     5 │       indices: a group's length is the distance to the next head
//!   closed    │ c   2     3 │       at each head, the length of the group before it; at the first, with the carry
//!   tail      │           1 │       the tile's carry to the next tile
//! ```

use super::heads;
use super::reduce_groups::states;
use super::reduction::Length;
use crate::block::compaction::{self, CompactionMemory, is_behind, scatter};
use crate::block::segmented::Tail;
use crate::block::shared_memory::{self, shared_memory};
use crate::elements::counted;
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

shared_memory! {
    /// Shared memory of a block.
    struct Memory<B: Word>(threads: usize, items_per_thread: usize) {
        /// The key before the tile, and the tile's keys. Later, its heads alone, and then the heads' indices in the
        /// tile.
        keys: [B; heads::slots(threads, items_per_thread)],
        /// The carry to the tile.
        carried: [u64; 1],
        compaction: CompactionMemory {},
    }
}

/// Bytes of dynamic shared memory for tiles of `threads * items_per_thread` keys of `key_bytes` bytes, 4 or 8.
pub const fn shared_bytes(threads: usize, items_per_thread: usize, key_bytes: usize) -> u32 {
    if key_bytes == 4 {
        Memory::<u32>::bytes(threads, items_per_thread)
    } else {
        Memory::<u64>::bytes(threads, items_per_thread)
    }
}

/// Blocks per multiprocessor for keys whose number only the GPU knows, which takes registers.
const COUNTED_BLOCKS: usize = ROW.run_lengths_blocks - 1;

/// Kernel: writes the key of each group of `keys` to `out_keys`, the number of its keys to `lengths`, and the number of
/// groups to `count`. One block per tile of `NT * VT` keys. If the instance is `COUNTED`, only the first keys take
/// part. Their number is at `keys_count`.
///
/// # Safety
/// `keys` has `n` elements, at least one, and `out_keys` and `lengths` have capacity for `n`. Nothing writes the number
/// at `keys_count`. `count` points to one number, and `shared_words` to the [`words`](super::reduce_groups::words) for
/// values of 8 bytes, which are 0. There is one block per tile, of `NT` threads, at least two whole warps, with
/// [`shared_bytes`]. The output arrays do not overlap the input array.
#[kernel(
    u32 = <u32, { ROW.run_lengths.of(4, 0).threads }, { ROW.run_lengths.of(4, 0).items_per_thread }, false>
        within (ROW.run_lengths.of(4, 0).threads, ROW.run_lengths_blocks),
    u64 = <u64, { ROW.run_lengths.of(8, 0).threads }, { ROW.run_lengths.of(8, 0).items_per_thread }, false>
        within (ROW.run_lengths.of(8, 0).threads, ROW.run_lengths_blocks),
    u32counted = <u32, { ROW.run_lengths.of(4, 0).threads }, { ROW.run_lengths.of(4, 0).items_per_thread }, true>
        within (ROW.run_lengths.of(4, 0).threads, COUNTED_BLOCKS),
    u64counted = <u64, { ROW.run_lengths.of(8, 0).threads }, { ROW.run_lengths.of(8, 0).items_per_thread }, true>
        within (ROW.run_lengths.of(8, 0).threads, COUNTED_BLOCKS),
)]
pub unsafe fn run_lengths<B: Bits, const NT: usize, const VT: usize, const COUNTED: bool>(
    keys: *const B,
    n: usize,
    keys_count: *const u64,
    out_keys: *mut B,
    lengths: *mut u64,
    count: *mut u64,
    shared_words: *mut u64,
) {
    const { assert!(VT < 32 && NT * VT <= 1 << 16, "a thread has a bit for each key, and a key an index of 16 bits") };
    const { assert!(NT >= 64, "a warp adds up counts, and another one what is carried") };
    const { shared_memory::check(Memory::<B>::bytes(NT, VT)) };
    // SAFETY: nothing writes the number at `keys_count`.
    let n = if COUNTED { unsafe { counted(keys_count, n) } } else { n };
    let (thread, number) = (thread::thread_idx_x(), n.div_ceil(NT * VT));
    // SAFETY: `shared_words` has `words` words, which nothing else uses. The launch has `shared_bytes`. Before the
    // first barrier, a thread writes its own slots of `keys`. After a barrier behind the reads, it writes the slots of
    // its own heads, which the scan makes disjoint.
    let ((tiles, carries), memory) =
        unsafe { (states(shared_words, number, size_of::<u64>()), Memory::<B>::at_start(NT, VT)) };
    let Memory { keys: slots, carried, compaction } = memory;
    // SAFETY: the caller passes `n` keys at `keys`; `first + len` is at most `n`.
    let keys = unsafe { Global::new(keys, n) };
    heads::prefetch::<B, NT, VT>(keys);
    // SAFETY: the caller passes one number at the count, which only the block of the last tile writes.
    let Some(tile) = (unsafe { compaction.take_of::<COUNTED>(tiles, number, count) }) else { return };
    let first = tile as usize * (NT * VT);
    let len = (n - first).min(NT * VT);
    heads::load::<B, NT, VT>(keys, first, len, slots);
    shared::wait_for_copies();
    thread::sync_threads();

    let heads = heads::find::<B, VT>(slots, tile == 0, len);
    // SAFETY: all threads of the block, which are whole warps, make this call: they have the same `tile`, so that all
    // or none have returned.
    let kept = unsafe { compaction.count(tiles, tile, heads.bits.count_ones()) };
    // All threads have read the keys: `count` contains a barrier.
    if heads.bits != 0 {
        scatter::<B, VT>(heads.bits, kept.before_thread, |i| heads.keys[i], slots);
    }
    let ends_tile = kept.before_thread + heads.bits.count_ones() == kept.of_tile;
    if heads.bits != 0 && ends_tile {
        let last_head = thread * VT as u32 + heads.bits.ilog2();
        carries.publish(tile, Tail { has_head: true, value: (len as u32 - last_head) as u64 });
    } else if kept.of_tile == 0 && thread == WARP_SIZE {
        carries.publish(tile, Tail { has_head: false, value: len as u64 });
    }
    // SAFETY: all threads of the block, which are whole warps, make this call after `count`.
    unsafe { compaction.look_back(tiles, tile, kept.of_tile, ROW.groups_pause) };
    if thread / WARP_SIZE == 1 && tile > 0 {
        let of_tile = Tail { has_head: kept.of_tile > 0, value: len as u64 };
        // SAFETY: `thread / WARP_SIZE == 1` holds for the 32 lanes of the second warp, which all make this call with
        // the block's `tile`.
        unsafe { carries.pass_on::<Length>(tile, of_tile, carried, ROW.groups_pause) };
    }
    thread::sync_threads();

    let groups_before = compaction.kept_before();
    // SAFETY: `out_keys` and `lengths` have capacity for `n` elements, and there are at most `n` groups. Tiles write
    // disjoint ranges: `groups_before` is the number of heads in earlier tiles.
    let (to_keys, to_lengths) = unsafe { (GlobalMut::new(out_keys, n), GlobalMut::new(lengths, n)) };
    let heads_of_tile =
        TileHeads { count: kept.of_tile, before: groups_before, carried: if tile > 0 { carried.get(0) } else { 0 } };
    compaction::write::<B, NT, VT>(slots, to_keys.slice(groups_before, kept.of_tile as usize), Coding::NONE);
    thread::sync_threads();
    put_indices::<B, VT>(heads.bits, kept.before_thread, slots);
    thread::sync_threads();
    heads_of_tile.write_closed::<B, NT, VT>(slots, to_lengths);
    if tile as usize + 1 == number && thread == 0 {
        let groups = groups_before + kept.of_tile as usize;
        to_lengths.set(groups - 1, heads_of_tile.last(slots, len));
        // SAFETY: the caller passes one number at `count`, and the block of the last tile alone writes it.
        unsafe { GlobalMut::new(count, 1) }.set(0, groups as u64);
    }
}

/// Registers to shared: stores the indices in the tile of this thread's heads from slot `first_slot`. `heads` has a bit
/// for each head.
#[inline(always)]
#[track_caller]
fn put_indices<B: Bits, const VT: usize>(heads: u32, first_slot: u32, slots: Shared<B>) {
    if heads != 0 {
        let first = thread::thread_idx_x() * VT as u32;
        scatter::<B, VT>(heads, first_slot, |i| B::from_register((first + i as u32) as u64), slots);
    }
}

/// The heads of a tile.
#[derive(Clone, Copy)]
struct TileHeads {
    count: u32,
    /// Number of heads in earlier tiles.
    before: usize,
    /// Number of keys that earlier tiles have of the group that the tile begins in.
    carried: u64,
}

impl TileHeads {
    /// Writes the lengths of the groups that the heads close. `indices` are the heads' indices in the tile. Head `i`
    /// closes the group before its own. The first head of the array closes none.
    #[inline(always)]
    #[track_caller]
    fn write_closed<B: Bits, const NT: usize, const VT: usize>(self, indices: Shared<B>, lengths: GlobalMut<u64>) {
        let thread = thread::thread_idx_x();
        let index = |head: u32| indices.get(head).to_register();
        for i in 0..VT {
            if is_behind::<NT>(i, self.count as usize) {
                break;
            }
            let head = thread + (i * NT) as u32;
            if head < self.count && self.before + head as usize > 0 {
                let length = if head > 0 { index(head) - index(head - 1) } else { index(0) + self.carried };
                lengths.set(self.before + (thread as usize + i * NT) - 1, length);
            }
        }
    }

    /// The length of the group that ends with this tile of `len` keys.
    #[inline(always)]
    #[track_caller]
    fn last<B: Bits>(self, indices: Shared<B>, len: usize) -> u64 {
        let of_last = len as u64 - if self.count > 0 { indices.get(self.count - 1).to_register() } else { 0 };
        if self.count > 0 { of_last } else { self.carried + of_last }
    }
}
