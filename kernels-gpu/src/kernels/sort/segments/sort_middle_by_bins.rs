//! The sort of middle segments by bins, for keys of 4 bytes alone: each is sorted as a
//! [bucket](crate::kernels::sort::divide::sort_buckets) of the sort of an array.
//!
//! ```text
//!   by bins     │ 4100 │ 4300 │ 4288 │ …      one list, each segment by one block
//!   classes     │ … │ 4300 │ …                those that bins do not put in order, for merges of runs
//! ```
//!
//! Whether bins put keys in order depends on their distribution, and neither on their order nor on how many there are.
//! They do if keys are spread evenly, have few different values, or are spread evenly within each bin, as bins are made
//! finer once. Merges sort all others, which then take up to half as long again.

use super::middle::{BINNED, MAX_BINNED, MiddleSegments};
use super::middle_runs::SegmentWords;
use crate::block::shared_memory::{self, shared_memory};
use crate::kernels::sort::divide::sort_buckets::{BucketMemory, few, sort_bucket};
use crate::key::{Bits, Coding};
use crate::tuning::{ROW, Tile};
use cuda_std::prelude::*;

/// The shape of a block.
const SHAPE: Tile = ROW.sort_buckets.of(4, 0);

/// Threads of a block.
pub const BINS_THREADS: usize = SHAPE.threads;

/// Blocks that a multiprocessor holds at once.
const BLOCKS: usize = 3;

/// How often bins are made finer: merges take less time than twice.
pub(super) const FINER: u32 = 1;

shared_memory! {
    /// Shared memory of a block of `threads` threads with `items_per_thread` keys each.
    struct Memory<B: Word>(threads: usize, items_per_thread: usize) {
        bucket: BucketMemory<B> { threads, items_per_thread },
        segment: SegmentWords {},
    }
}

/// Bytes of dynamic shared memory.
pub const fn shared_bytes() -> u32 {
    Memory::<u32>::bytes(SHAPE.threads, SHAPE.items_per_thread)
}

/// Kernel: sorts each segment that `middle` lists to be sorted by bins, or appends it to the list of its class and
/// leaves it as it is; or, if `length` is not 0, each segment of `length` keys, of which the last one may have fewer.
/// Keys of an odd level are in `scratch` before.
///
/// # Safety
/// There are `n` keys, in global memory, and as many in `scratch` if there are segments of odd levels, which do not
/// overlap. `length` is at most `NT * VT`. `middle` is what [`MiddleSegments`] says, after all other launches that list
/// segments. Blocks are of `NT` threads, with [`shared_bytes`] of dynamic shared memory; `FEW` is what [`few`] says.
#[kernel(
    u32 = <u32, { SHAPE.threads }, { SHAPE.items_per_thread }, { few(SHAPE.items_per_thread) }> within (BINS_THREADS, BLOCKS),
)]
pub unsafe fn sort_middle_by_bins<B: Bits, const NT: usize, const VT: usize, const FEW: usize>(
    keys: *mut B,
    scratch: *mut B,
    n: usize,
    length: u32,
    middle: MiddleSegments,
    coding: Coding<B>,
) {
    const { assert!(NT * VT == MAX_BINNED, "a segment fits in a block") };
    const { shared_memory::check(shared_bytes()) };
    // SAFETY: the launch has `shared_bytes` for `NT` threads with `VT` keys. Thread 0 alone writes the words of a
    // segment, between barriers; those for the rest are where `sort_bucket` says.
    let Memory { bucket, segment } = unsafe { Memory::<B>::at_start(NT, VT) };
    if thread::thread_idx_x() == 0 {
        // SAFETY: the caller promises the lists.
        unsafe { segment.begin(length, middle, BINNED as u32) };
    }
    loop {
        if thread::thread_idx_x() == 0 {
            // SAFETY: the caller promises the lists. A barrier comes before, but for the first time, and one behind.
            unsafe { segment.next(n, length, middle, BINNED as u32) };
        }
        thread::sync_threads();
        if segment.len() == 0 {
            return;
        }
        let level = segment.level();
        // SAFETY: the caller promises the keys, of which a segment is used by one block.
        let part = |keys: *mut B| unsafe { GlobalMut::new(keys, n) }.slice(segment.start(), segment.len());
        let from = part(if level % 2 == 0 { keys } else { scratch });
        let encode = if level == 0 { coding } else { Coding::NONE };
        // SAFETY: all threads of the block are here, with the same segment, of up to `NT * VT` keys.
        let is_sorted =
            unsafe { sort_bucket::<B, NT, VT, FEW, true, FINER>(from, || part(keys), (encode, coding), bucket) };
        if !is_sorted && thread::thread_idx_x() == 0 {
            // SAFETY: as above.
            unsafe { middle.open() }.append_to_class(segment.listed());
        }
        thread::sync_threads();
    }
}
