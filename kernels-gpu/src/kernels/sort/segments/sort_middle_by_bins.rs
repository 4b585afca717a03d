//! The sort of middle segments by bins: each is sorted as a [bucket](crate::kernels::sort::divide::sort_buckets) of the
//! sort of an array.
//!
//! ```text
//!   by bins     │ 4100 │ 4300 │ 4288 │ …      one list, each segment by one block
//!   classes     │ … │ 4300 │ …                those that bins do not put in order, for merges of runs
//! ```
//!
//! Whether bins put keys in order depends on their distribution, and neither on their order nor on how many there are.
//! They do if keys are spread evenly, have few different values, or are spread evenly within each bin, as bins are made
//! finer once. Merges sort all others, which then take up to half as long again.

use super::middle::{BINNED, MAX_BINNED};
use super::middle_runs::{SegmentWords, WhichSegments};
use crate::block::shared_memory::{self, of_widths, shared_memory};
use crate::elements::Elements;
use crate::kernels::sort::divide::sort_buckets::{self, few, sort_bucket};
use crate::key::{Bits, Coding};
use crate::tuning::{ROW, Tile};
use cuda_std::prelude::*;

/// The shape of a block for keys of `key_bytes` bytes with values of `value_bytes` bytes, or 0.
const fn shape(key_bytes: usize, value_bytes: usize) -> Tile {
    ROW.sort_buckets.of(key_bytes, value_bytes)
}

/// Threads of a block.
pub const BINS_THREADS: usize = shape(4, 0).threads;

/// How often bins are made finer: merges take less time than twice.
const FINER: u32 = 1;

shared_memory! {
    /// Shared memory of a block of `threads` threads with `items_per_thread` keys each.
    struct Memory<B: Word, V: Word>(threads: usize, items_per_thread: usize) {
        bucket: sort_buckets::Memory<B, V> { threads, items_per_thread },
        segment: SegmentWords {},
    }
}

/// Bytes of dynamic shared memory for keys of `key_bytes` bytes with values of `value_bytes` bytes, or 0.
pub const fn shared_bytes(key_bytes: usize, value_bytes: usize) -> u32 {
    let Tile { threads, items_per_thread, .. } = shape(key_bytes, value_bytes);
    of_widths!(key_bytes, value_bytes, Memory::bytes(threads, items_per_thread))
}

/// Kernel: sorts each segment that `which` lists to be sorted by bins, or appends it to the list of its class and
/// leaves it as it is; or each of the segments of one length that `which` has. Elements of an odd level are in
/// `scratch` before.
///
/// # Safety
/// There are as many elements as `which` says, in global memory, and as many in `scratch` if there are segments of odd
/// levels, which do not overlap. Segments are of at most `NT * VT` keys. The lists are what
/// [`MiddleSegments`](super::middle::MiddleSegments) says, after all other launches that list segments. Blocks are of
/// `NT` threads, with [`shared_bytes`] of dynamic shared memory; `FEW` is what [`few`] says.
#[kernel(
    u32 = <u32, (), { shape(4, 0).threads }, { shape(4, 0).items_per_thread }, { few(shape(4, 0).items_per_thread) }>
        within (BINS_THREADS, 3),
    u64 = <u64, (), { shape(8, 0).threads }, { shape(8, 0).items_per_thread }, { few(shape(8, 0).items_per_thread) }>
        within (BINS_THREADS, 2),
    u32v4 = <u32, u32, { shape(4, 4).threads }, { shape(4, 4).items_per_thread }, { few(shape(4, 4).items_per_thread) }>
        within (BINS_THREADS, 2),
    u32v8 = <u32, u64, { shape(4, 8).threads }, { shape(4, 8).items_per_thread }, { few(shape(4, 8).items_per_thread) }>
        within (BINS_THREADS, 2),
)]
pub unsafe fn sort_middle_by_bins<B: Bits, V: Word, const NT: usize, const VT: usize, const FEW: usize>(
    at: Elements<B, V>,
    scratch: Elements<B, V>,
    which: WhichSegments,
    coding: Coding<B>,
) {
    const { assert!(NT == BINS_THREADS && NT * VT == MAX_BINNED, "a segment fits in a block") };
    const { shared_memory::check(Memory::<B, V>::bytes(NT, VT)) };
    let which = WhichSegments { list: BINNED as u32, ..which };
    // SAFETY: the launch has `shared_bytes` for `NT` threads with `VT` keys. Thread 0 alone writes the words of a
    // segment, between barriers; those for the rest are where `sort_bucket` says.
    let Memory { bucket, segment } = unsafe { Memory::<B, V>::at_start(NT, VT) };
    if thread::thread_idx_x() == 0 {
        // SAFETY: the caller promises the lists.
        unsafe { segment.begin(which) };
    }
    loop {
        if thread::thread_idx_x() == 0 {
            // SAFETY: the caller promises the lists. A barrier comes before, but for the first time, and one behind.
            unsafe { segment.next(which) };
        }
        thread::sync_threads();
        if segment.len() == 0 {
            return;
        }
        let level = segment.level();
        // SAFETY: the caller promises the elements, of which a segment is used by one block.
        let part = |side: Elements<B, V>| unsafe { side.arrays(which.n) }.slice(segment.start(), segment.len());
        let from = part(if level % 2 == 0 { at } else { scratch });
        let codings = (if level == 0 { coding } else { Coding::NONE }, coding);
        // SAFETY: all threads of the block are here, with the same segment, of up to `NT * VT` keys.
        let is_sorted = unsafe { sort_bucket::<B, V, NT, VT, FEW, true, FINER>(from, || part(at), codings, bucket) };
        if !is_sorted && thread::thread_idx_x() == 0 {
            // SAFETY: the caller promises the lists.
            unsafe { which.middle.open() }.append_to_class(segment.listed());
        }
        thread::sync_threads();
    }
}
