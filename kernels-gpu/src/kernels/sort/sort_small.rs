//! Small sort: one block sorts all elements in one launch.
//!
//! ```text
//!   bins       │  2   │ │ 1 │  3   │ │    as a bucket of the sort by division, if keys are spread evenly
//!   merges     │ run │ run │ run │ run │  as a tile of the sort by merging, if bins do not put keys in order
//! ```
//!
//! Few elements leave all other multiprocessors idle, so that latency decides and not throughput. Bins take some ten
//! barriers for any number of keys. Merges take two for each doubling of the runs, with a search and dependent reads
//! between them.

use crate::block::shared_memory;
use crate::elements::{Slice, has_values};
use crate::kernels::sort::divide::sort_buckets::{self, Memory, sort_bucket};
use crate::kernels::sort::is_whole_warps;
use crate::kernels::sort::payload::beside::Beside;
use crate::kernels::sort::payload::nothing::Nothing;
use crate::kernels::sort::payload::packed::Packed;
use crate::kernels::sort::payload::{Payload, block_sort_bytes, is_of_host};
use crate::key::{Bits, Coding};
use crate::tuning::{ROW, Tile};
use cuda_std::prelude::*;

/// Number of times that bins are made finer. Merges are faster than a second time.
const FINER: u32 = 1;

/// The shape of a block for keys of `key_bytes` bytes with values of `value_bytes` bytes, or 0.
const fn small(key_bytes: usize, value_bytes: usize) -> Tile {
    ROW.sort_small.of(key_bytes, value_bytes)
}

/// The shape for very few elements.
const fn tiny(key_bytes: usize, value_bytes: usize) -> Tile {
    ROW.sort_tiny.of(key_bytes, value_bytes)
}

/// Bytes of dynamic shared memory of blocks of this shape, for keys of `key_bytes` bytes with values of `value_bytes`
/// bytes, or 0.
pub const fn shared_bytes(shape: Tile, key_bytes: usize, value_bytes: usize) -> u32 {
    let bins = sort_buckets::shared_bytes(shape.threads, shape.items_per_thread, key_bytes, value_bytes);
    let merges = block_sort_bytes(key_bytes, value_bytes, shape.keys());
    if bins > merges { bins } else { merges }
}

/// Kernel: sorts the first elements of `at` stably, as `coding` orders their keys. Their number is at `count`; if
/// `count` is null, all elements are sorted. Values begin as the keys' indices if `indexes` is not 0. `random` is any
/// number: the seed of the order in which merges take keys at first.
///
/// # Safety
/// `at` has up to `NT * VT` elements, in global memory, that nothing else uses. `count` is null, or points to a number
/// in global memory that nothing writes. There is one block of `NT` threads, with [`shared_bytes`] of dynamic shared
/// memory.
#[kernel(
    u32 = <u32, (), Nothing, { small(4, 0).threads }, { small(4, 0).items_per_thread }>
        within (small(4, 0).threads, 1),
    u32tiny = <u32, (), Nothing, { tiny(4, 0).threads }, { tiny(4, 0).items_per_thread }>,
    u32v4tiny = <u32, u32, Beside, { tiny(4, 4).threads }, { tiny(4, 4).items_per_thread }>,
    u32v8tiny = <u32, u64, Packed, { tiny(4, 8).threads }, { tiny(4, 8).items_per_thread }>,
    u64v4tiny = <u64, u32, Packed, { tiny(8, 4).threads }, { tiny(8, 4).items_per_thread }>,
    u64v8tiny = <u64, u64, Packed, { tiny(8, 8).threads }, { tiny(8, 8).items_per_thread }>,
)]
pub unsafe fn sort_small<B: Bits, V: Word, P: Payload<B, V, NT, VT>, const NT: usize, const VT: usize>(
    at: Slice<B, V>,
    count: *const u64,
    coding: Coding<B>,
    indexes: u32,
    random: u64,
) {
    const { assert!(NT.is_power_of_two() && is_whole_warps(NT), "threads are a power of two, in whole warps") };
    const { assert!(is_of_host::<B, V, P, NT, VT>(), "the host launches with memory for another payload") };
    const {
        let shape = Tile { threads: NT, items_per_thread: VT };
        shared_memory::check(shared_bytes(shape, size_of::<B>(), size_of::<V>()));
    }
    // SAFETY: nothing writes `count`. `at` has `len` elements, which this block alone uses. Barriers of both sorts come
    // between the reads and the writes of different threads.
    let at = unsafe { at.first::<true>(count).arrays() };
    if at.len() == 0 {
        return;
    }
    if has_values::<V>() && indexes != 0 {
        let mut i = thread::thread_idx_x() as usize;
        while i < at.len() {
            at.values.set(i, V::from_register(i as u64));
            i += NT;
        }
        thread::sync_threads();
    }
    // SAFETY: the launch has `shared_bytes`. Barriers of `sort_bucket` order the accesses, and another barrier comes
    // before `P::sort` uses the same bytes.
    let memory = unsafe { Memory::<B, V>::at_start(NT, VT) };
    // SAFETY: no branch that depends on the thread surrounds the call, so that all `NT` threads of the block make it.
    // `at` has up to `NT * VT` elements.
    let is_sorted = unsafe { sort_bucket::<B, V, NT, VT, VT, true, FINER>(at, || at, (coding, coding), memory) };
    if !is_sorted {
        thread::sync_threads();
        // SAFETY: `is_sorted` is the same for all threads, so that all `NT` threads of the block make the call. `at` is
        // as before, and the launch has `shared_bytes`, which are at least `P::TILE_BYTES`.
        unsafe { P::sort(at, at, coding, coding, random) };
    }
}
