//! The sort of middle segments by bins: each is sorted like a [bucket](crate::kernels::sort::divide::sort_buckets) of
//! the sort of an array.
//!
//! ```text
//!   by bins     │ 4100 │ 4300 │ 4288 │ …      one list, each segment by one block
//!   classes     │ … │ 4300 │ …                segments that bins do not sort, for merges of runs
//! ```
//!
//! Whether bins put keys in order depends on the keys' distribution, not on their order or number. Bins succeed if keys
//! are spread evenly, or have few different values. They also succeed if keys are spread evenly within each bin, as
//! bins are made finer once. Merges sort all other segments, which then take up to half as long again.

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

/// Number of times that bins are made finer. Merges are faster than a second time.
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

/// Kernel: sorts each segment in the list of `which` for bins, or each segment of one length that `which` describes. A
/// segment that bins cannot sort stays as it is and is appended to the list of its class.
///
/// # Safety
/// `at` has `which.n` elements, in global memory. Segments have at most `NT * VT` keys. The lists meet the requirements
/// of [`MiddleSegments`](super::middle::MiddleSegments), and all other launches that list segments have run before.
/// Blocks have `NT` threads with [`shared_bytes`] of dynamic shared memory. `FEW` is [`few`] of `VT`.
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
    which: WhichSegments,
    coding: Coding<B>,
) {
    const { assert!(NT == BINS_THREADS && NT * VT == MAX_BINNED, "a segment fits in a block") };
    const { shared_memory::check(Memory::<B, V>::bytes(NT, VT)) };
    let which = WhichSegments { list: BINNED as u32, ..which };
    // SAFETY: the launch has `shared_bytes` for `NT` threads with `VT` keys. Thread 0 alone writes the words of a
    // segment, between barriers. Barriers of `sort_bucket` order the accesses to `bucket`.
    let Memory { bucket, segment } = unsafe { Memory::<B, V>::at_start(NT, VT) };
    if thread::thread_idx_x() == 0 {
        // SAFETY: this is thread 0, before its first call of `next`. The lists meet the requirements of
        // `MiddleSegments`.
        unsafe { segment.begin(which) };
    }
    loop {
        if thread::thread_idx_x() == 0 {
            // SAFETY: this is thread 0. A barrier comes before, at the end of the loop, except for the first call, and
            // another one follows. The kernel appends only to lists of classes, not to the list that it reads.
            unsafe { segment.next(which) };
        }
        thread::sync_threads();
        if segment.len() == 0 {
            return;
        }
        // SAFETY: `at` has `which.n` elements. One block uses each segment.
        let part = || unsafe { at.arrays(which.n) }.slice(segment.start(), segment.len());
        // SAFETY: `segment` is the same for all threads, so that all `NT` threads of the block make the call. The
        // segment has up to `NT * VT` keys. A barrier comes before the next use of `bucket`.
        let is_sorted =
            unsafe { sort_bucket::<B, V, NT, VT, FEW, true, FINER>(part(), part, (coding, coding), bucket) };
        if !is_sorted && thread::thread_idx_x() == 0 {
            // SAFETY: the lists meet the requirements of `MiddleSegments`, and later launches read the list of the
            // class.
            unsafe { which.middle.open() }.append_to_class(segment.listed());
        }
        thread::sync_threads();
    }
}
