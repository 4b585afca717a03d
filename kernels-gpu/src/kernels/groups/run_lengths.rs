//! Run lengths: the key of each group, and the number of its keys.
//!
//! ```text
//!   keys      │ 3 3 5 5 5 7 │       tile
//!   heads     │ 0   2     5 │       indices: a group's length is the distance to the next head
//!   closed    │ c   2     3 │       at each head, the length of the group before it; at the first, with the carry
//!   tail      │           1 │       the tile's carry to the next tile
//! ```

use super::heads;
use super::reduction::Length;
use crate::block::compaction::{self, CompactionMemory, is_behind, scatter};
use crate::block::segmented::Tail;
use crate::block::shared_memory::{self, shared_memory};
use crate::elements::counted;
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use crate::warp::carry::Carries;
use crate::warp::look_back::{self, Tiles};
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
/// part, whose number is at `keys_count`.
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
    // SAFETY: `shared_words` has `words` words: `look_back::words(number)` of `tiles`, and then the words of `carries`.
    // Nothing else uses them. The launch has `shared_bytes`. Before the first barrier, a thread writes its own slots of
    // `keys`. After a barrier behind the reads, it writes the slots of its own heads, which the scan makes disjoint.
    let (tiles, carries, memory) = unsafe {
        (
            Tiles::new(shared_words, number),
            Carries::new(shared_words.wrapping_add(look_back::words(number)), number, size_of::<u64>()),
            Memory::<B>::at_start(NT, VT),
        )
    };
    let Memory { keys: slots, carried, compaction } = memory;
    // SAFETY: the caller passes `n` keys at `keys`; `first + len` is at most `n`.
    let keys = unsafe { Global::new(keys, n) };
    heads::prefetch::<B, NT, VT>(keys);
    let tile = compaction.take(tiles);
    if COUNTED && tile as usize >= number {
        // SAFETY: the caller passes one number, which no block with a tile writes if there are no tiles.
        unsafe { compaction::count_none(n, tile, count) };
        return;
    }
    let first = tile as usize * (NT * VT);
    let len = (n - first).min(NT * VT);
    heads::load::<B, NT, VT>(keys, first, len, slots);
    shared::wait_for_copies();
    thread::sync_threads();

    let heads = heads::find::<B, VT>(slots, tile == 0, len);
    // SAFETY: all threads of the block, which are whole warps, make this call: they have the same `tile`, so
    // that all or none have returned.
    let kept = unsafe { compaction.count(tiles, tile, heads.bits.count_ones()) };
    // All threads have read the keys: `count` contains a barrier.
    if heads.bits != 0 {
        scatter::<B, VT>(heads.bits, kept.before_thread, |i| heads.keys[i], slots);
    }
    let end_of_thread = kept.before_thread + heads.bits.count_ones();
    let first_of_thread = thread * VT as u32;
    if heads.bits != 0 && end_of_thread == kept.of_tile {
        let last_head = first_of_thread + heads.bits.ilog2();
        carries.publish(tile, Tail { has_head: true, value: (len as u32 - last_head) as u64 });
    } else if kept.of_tile == 0 && thread == WARP_SIZE {
        carries.publish(tile, Tail { has_head: false, value: len as u64 });
    }
    // SAFETY: all threads of the block, which are whole warps, make this call after `count`.
    unsafe { compaction.look_back(tiles, tile, kept.of_tile, ROW.groups_pause) };
    if thread / WARP_SIZE == 1 {
        // SAFETY: `thread / WARP_SIZE == 1` holds for the 32 lanes of the second warp, which all make this call with
        // the block's `tile`.
        let value = if tile > 0 { unsafe { carries.carried::<Length>(tile, ROW.groups_pause) } } else { 0 };
        if thread == WARP_SIZE {
            carried.set(0, value);
            if kept.of_tile == 0 {
                carries.publish(tile, Tail { has_head: true, value: value + len as u64 });
            }
        }
    }
    thread::sync_threads();

    let (groups_before, carried) = (compaction.kept_before(), carried.get(0));
    // SAFETY: `out_keys` and `lengths` have capacity for `n` elements, and there are at most `n` groups. Tiles write
    // disjoint ranges: `groups_before` is the number of heads in earlier tiles.
    let (to_keys, to_lengths) = unsafe { (GlobalMut::new(out_keys, n), GlobalMut::new(lengths, n)) };
    compaction::write::<B, NT, VT>(slots, to_keys.slice(groups_before, kept.of_tile as usize), Coding::NONE);
    thread::sync_threads();
    if heads.bits != 0 {
        let index = |i: usize| B::from_register((first_of_thread + i as u32) as u64);
        scatter::<B, VT>(heads.bits, kept.before_thread, index, slots);
    }
    thread::sync_threads();
    let index = |head: u32| slots.get(head).to_register();
    // Head `i` of the tile closes the group before its own. The first head of the array closes none.
    for i in 0..VT {
        if is_behind::<NT>(i, kept.of_tile as usize) {
            break;
        }
        let head = thread + (i * NT) as u32;
        if head < kept.of_tile && groups_before + head as usize > 0 {
            let length = if head > 0 { index(head) - index(head - 1) } else { index(0) + carried };
            to_lengths.set(groups_before + (thread as usize + i * NT) - 1, length);
        }
    }
    if tile as usize + 1 == number && thread == 0 {
        let groups = groups_before + kept.of_tile as usize;
        let of_last = len as u64 - if kept.of_tile > 0 { index(kept.of_tile - 1) } else { 0 };
        to_lengths.set(groups - 1, if kept.of_tile > 0 { of_last } else { carried + of_last });
        // SAFETY: the caller passes one number at `count`, and the block of the last tile alone writes it.
        unsafe { GlobalMut::new(count, 1) }.set(0, groups as u64);
    }
}
