//! The second step of a division: how many keys of each segment have each digit.

use super::DIGITS_CAPACITY;
use super::workspace::{Job, Segment, Workspace};
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;

/// Bytes of dynamic shared memory: a counter for each digit.
pub const COUNT_SHARED_BYTES: u32 = DIGITS_CAPACITY * size_of::<u32>() as u32;

/// Keys of a thread that are on their way at once.
const BATCH: usize = 8;

/// Kernel: adds to each counter of each segment of `level` how many keys have its digit. A block counts the tiles of a part of
/// the level, and adds up its counts where a segment ends.
///
/// # Safety
/// As for [`choose_digits`](super::choose_digits::choose_digits), which has been called before; blocks have
/// [`COUNT_SHARED_BYTES`].
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn count_digits<B: Bits>(job: Job, keys: *mut B, indices: *mut u32, level: u32, coding: Coding<B>) {
    // SAFETY: the caller's promise.
    let Some(workspace) = (unsafe { Workspace::if_divided(&job) }) else { return };
    let has_indices = job.indexed != 0 && level > 0;
    // SAFETY: the caller's promise.
    let (keys, indices) = unsafe {
        let indices = GlobalMut::new(indices, if has_indices { job.n as usize } else { 0 });
        (GlobalMut::new(keys, job.n as usize), indices)
    };
    // SAFETY: the caller's promise; barriers divide the accesses.
    let counts = unsafe { Shared::<u32>::dynamic(0, DIGITS_CAPACITY) };
    let (thread, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let tiles = workspace.tiles(level);
    let part = tiles.div_ceil(thread::grid_dim_x());
    let (mut t, end) = (thread::block_idx_x() * part, ((thread::block_idx_x() + 1) * part).min(tiles));
    while t < end {
        let segment: Segment<B> = workspace.segment(workspace.segment_of_tile(t));
        let (digits, count) = (segment.digits, segment.digits.count());
        // The keys of this block's tiles of the segment.
        let tiles_end = end.min(segment.first_tile + job.tiles(segment.len));
        let first = (t - segment.first_tile) * job.tile;
        let len = (segment.len - first).min((tiles_end - t) * job.tile);
        let (first, len) = ((segment.start + first) as usize, len as usize);
        let keys = keys.slice(first, len);
        let mut digit = thread;
        while digit < count {
            counts.set(digit, 0);
            digit += threads;
        }
        thread::sync_threads();
        let step = threads as usize;
        if segment.number.is_index {
            let mut i = thread as usize;
            while i < len {
                let index = if has_indices { indices.get(first + i) } else { (first + i) as u32 };
                counts.fetch_add(digits.of(segment.number.of(coding.encode(keys.get(i)), index)), 1);
                i += step;
            }
        } else {
            let mut at = thread as usize;
            while at < len {
                let is_here = |i: usize| at + i * step < len;
                let mut own = [B::MIN; BATCH];
                for i in 0..BATCH {
                    if is_here(i) {
                        own[i] = keys.get(at + i * step);
                    }
                }
                for i in 0..BATCH {
                    if is_here(i) {
                        counts.fetch_add(digits.of(coding.encode(own[i])), 1);
                    }
                }
                at += BATCH * step;
            }
        }
        thread::sync_threads();
        let counters = workspace.counters(segment.counters, count);
        let mut digit = thread;
        while digit < count {
            let of_block = counts.get(digit);
            if of_block > 0 {
                counters.fetch_add(digit as usize, of_block);
            }
            digit += threads;
        }
        // A thread sets to 0 again what it has read.
        t = tiles_end;
    }
}
