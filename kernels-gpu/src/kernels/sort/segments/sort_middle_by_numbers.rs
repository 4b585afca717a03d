//! The sort of middle segments by bins, for keys of 4 bytes with values, and for keys of 8 bytes alone: each is sorted as a
//! [bucket](crate::kernels::sort::divide::sort_buckets_with_values) of such keys in the sort of an array, by numbers of 4 bytes.
//!
//! ```text
//!   by bins     │ 4100 │ 4300 │ 4288 │ …      one list, each segment by one block
//!   numbers     │ key - least │ slot │         of a key and its slot, all different, are sorted as keys alone are
//!   classes     │ … │ 4300 │ …                those that bins do not put in order, for merges of runs
//! ```

use super::middle::{BINNED, MAX_BINNED, MiddleSegments};
use super::middle_runs::SegmentWords;
use super::sort_middle_by_bins::FINER;
use crate::block::shared_memory::{self, of_widths, shared_memory};
use crate::elements::Elements;
use crate::kernels::sort::divide::sort_buckets_with_values::{Slots, sort_by_numbers};
use crate::key::{Bits, Coding};
use crate::tuning::{ROW, Tile};
use cuda_std::prelude::*;

/// The shape of a block for keys of `key_bytes` bytes with values of `value_bytes` bytes, or 0.
const fn shape(key_bytes: usize, value_bytes: usize) -> Tile {
    ROW.sort_buckets.of(key_bytes, value_bytes)
}

/// Threads of a block.
pub const NUMBERS_THREADS: usize = shape(4, 4).threads;

/// Blocks that a multiprocessor holds at once.
const BLOCKS: usize = 2;

shared_memory! {
    /// Shared memory of a block of `threads` threads with `items_per_thread` keys each.
    struct Memory<B: Word, V: Word>(threads: usize, items_per_thread: usize) {
        slots: Slots<B, V> { threads, items_per_thread },
        segment: SegmentWords {},
    }
}

/// Bytes of dynamic shared memory for keys of `key_bytes` bytes with values of `value_bytes` bytes, or 0.
pub const fn shared_bytes(key_bytes: usize, value_bytes: usize) -> u32 {
    let Tile { threads, items_per_thread, .. } = shape(key_bytes, value_bytes);
    of_widths!(key_bytes, value_bytes, Memory::bytes(threads, items_per_thread))
}

/// Kernel: as [`sort_middle_by_bins`](super::sort_middle_by_bins::sort_middle_by_bins()), for keys with the values that move with them.
///
/// # Safety
/// As for `sort_middle_by_bins`, for all arrays of `at` and `scratch`, with [`shared_bytes`] of dynamic shared memory.
#[kernel(
    u64 = <u64, (), { shape(8, 0).threads }, { shape(8, 0).items_per_thread }> within (NUMBERS_THREADS, BLOCKS),
    u32v4 = <u32, u32, { shape(4, 4).threads }, { shape(4, 4).items_per_thread }> within (NUMBERS_THREADS, BLOCKS),
    u32v8 = <u32, u64, { shape(4, 8).threads }, { shape(4, 8).items_per_thread }> within (NUMBERS_THREADS, BLOCKS),
)]
pub unsafe fn sort_middle_by_numbers<B: Bits, V: Word, const NT: usize, const VT: usize>(
    at: Elements<B, V>,
    scratch: Elements<B, V>,
    n: usize,
    length: u32,
    middle: MiddleSegments,
    coding: Coding<B>,
) {
    const { assert!(NT == NUMBERS_THREADS && NT * VT == MAX_BINNED, "a segment fits in a block") };
    const { shared_memory::check(Memory::<B, V>::bytes(NT, VT)) };
    // SAFETY: the launch has `shared_bytes` for `NT` threads with `VT` keys. Thread 0 alone writes the words of a segment, between barriers; those for
    // the rest are where `sort_by_numbers` says.
    let Memory { slots, segment } = unsafe { Memory::<B, V>::at_start(NT, VT) };
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
        // SAFETY: the caller promises the elements, of which a segment is used by one block.
        let part = |elements: Elements<B, V>| unsafe { elements.arrays(n) }.slice(segment.start(), segment.len());
        let from = part(if level % 2 == 0 { at } else { scratch });
        let encode = if level == 0 { coding } else { Coding::NONE };
        // SAFETY: all threads of the block are here, with the same segment, of up to `NT * VT` keys.
        let is_sorted = unsafe { sort_by_numbers::<B, V, NT, VT, FINER>(from, || part(at), (encode, coding), slots) };
        if !is_sorted && thread::thread_idx_x() == 0 {
            // SAFETY: as above.
            unsafe { middle.open() }.append_to_class(segment.listed());
        }
        thread::sync_threads();
    }
}
