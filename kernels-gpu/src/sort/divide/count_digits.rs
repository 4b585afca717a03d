//! The second step of a division: how many keys of each segment have each digit.

use super::DIGITS_CAPACITY;
use super::divide::add_alike;
use super::workspace::{Job, Segment, Workspace};
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Bytes of dynamic shared memory: a counter for each digit.
pub const COUNT_SHARED_BYTES: u32 = DIGITS_CAPACITY * size_of::<u32>() as u32;

/// Threads of a block, and blocks of a multiprocessor: all that it holds.
pub const COUNT_THREADS: usize = 512;
/// Blocks of a multiprocessor.
pub const COUNT_BLOCKS: usize = 4;

/// Keys of a thread that are on their way at once.
const BATCH: u32 = 8;

/// Kernel: adds to each counter of each segment of `level` how many keys have its digit. A block counts a share of the level's
/// parts, and adds up its counts where a segment ends.
///
/// # Safety
/// As for [`choose_digits`](super::choose_digits::choose_digits), which has been called before; blocks have
/// [`COUNT_SHARED_BYTES`].
#[kernel(
    u32 = <u32, COUNT_THREADS> within (COUNT_THREADS, COUNT_BLOCKS),
    u64 = <u64, COUNT_THREADS> within (COUNT_THREADS, COUNT_BLOCKS),
)]
pub unsafe fn count_digits<B: Bits, const NT: usize>(
    job: Job,
    keys: *mut B,
    indices: *mut u32,
    level: u32,
    coding: Coding<B>,
) {
    // SAFETY: the caller's promise.
    let workspace = unsafe { Workspace::new(&job) };
    let has_indices = job.indexed != 0 && level > 0;
    // SAFETY: the caller's promise.
    let (keys, indices) = unsafe {
        let indices = GlobalMut::new(indices, if has_indices { job.n as usize } else { 0 });
        (GlobalMut::new(keys, job.n as usize), indices)
    };
    // SAFETY: the caller's promise; barriers divide the accesses.
    let counts = unsafe { Shared::<u32>::dynamic(0, DIGITS_CAPACITY) };
    let (thread, threads) = (thread::thread_idx_x(), const { NT as u32 });
    let parts = workspace.parts(level);
    let share = parts.div_ceil(thread::grid_dim_x());
    let (mut part, end) = (thread::block_idx_x() * share, ((thread::block_idx_x() + 1) * share).min(parts));
    while part < end {
        let segment: Segment<B> = workspace.segment(workspace.segment_of_part(part));
        let (digits, count) = (segment.digits, segment.digits.count());
        // The keys of this block's parts of the segment.
        let parts_end = end.min(segment.first_part + job.parts(segment.len));
        let first = (part - segment.first_part) * job.part;
        let len = (segment.len - first).min((parts_end - part) * job.part);
        let first = segment.start + first;
        let keys = keys.slice(first as usize, len as usize);
        let mut digit = thread;
        while digit < count {
            counts.set(digit, 0);
            digit += threads;
        }
        thread::sync_threads();
        let mut at = thread;
        if segment.number.is_index {
            while at < len {
                let index = if has_indices { indices.get((first + at) as usize) } else { first + at };
                let number = segment.number.of(coding.encode(keys.get(at as usize)), index);
                add_alike(counts, digits.of(number), (at | (WARP_SIZE - 1)) < len);
                at += threads;
            }
        } else {
            // All loads of a batch, and then all additions: the compiler does not change their order.
            while at + (BATCH - 1) * threads < len {
                let mut own = [B::MIN; BATCH as usize];
                for i in 0..BATCH {
                    own[i as usize] = keys.get((at + i * threads) as usize);
                }
                for i in 0..BATCH {
                    counts.fetch_add(digits.of(coding.encode(own[i as usize])), 1);
                }
                at += BATCH * threads;
            }
            while at < len {
                counts.fetch_add(digits.of(coding.encode(keys.get(at as usize))), 1);
                at += threads;
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
        part = parts_end;
    }
}
