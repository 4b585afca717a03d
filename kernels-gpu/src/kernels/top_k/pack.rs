//! Packs the gathered keys without gaps, in their original order.

use super::gather::{PAGE, Pages};
use super::{GATHERED, Progress};
use crate::block::scan::{BLOCK_WORDS, sum_before};
use crate::block::shared_memory::{self, shared_memory};
use crate::elements::{Elements, has_values};
use crate::key::Bits;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Threads of a block.
pub const THREADS: usize = 512;

/// Maximum number of warps that gather.
pub const MOST_WARPS: usize = 8192;

shared_memory! {
    struct Memory() {
        /// Output index of each warp's first key.
        begins: [u32; MOST_WARPS],
        scan: [u32; BLOCK_WORDS],
    }
}

/// Bytes of dynamic shared memory.
pub const SHARED_BYTES: u32 = Memory::bytes();

const _: () = shared_memory::check(SHARED_BYTES);

/// Kernel: moves the elements of all pages of `from` to `candidates`, if they are all elements up to the bound and at
/// least `k`. The candidates then include the k-th key.
///
/// # Safety
/// `from`, `pages` and `progress` are the results of [`gather`](super::gather::gather) with at most [`MOST_WARPS`]
/// warps. `candidates` has the capacity of all pages. Blocks have [`THREADS`] threads, with [`SHARED_BYTES`].
#[kernel(
    u32 = <u32, ()>,
    u64 = <u64, ()>,
    u32v4 = <u32, u32>,
    u32v8 = <u32, u64>,
    u64v4 = <u64, u32>,
    u64v8 = <u64, u64>,
)]
pub unsafe fn pack<B: Bits, V: Word>(
    from: Elements<B, V>,
    candidates: Elements<B, V>,
    k: usize,
    pages: Pages,
    progress: *mut u64,
) {
    // SAFETY: the launch has `SHARED_BYTES`. It reads the words of the bound in `progress`, and one thread writes the
    // words of the collection.
    let (progress, memory) = unsafe { (Progress::new(progress), Memory::at_start()) };
    if progress.bound().is_none() {
        return;
    }
    // SAFETY: the caller passes the parts of `pages`, and `PAGE` elements per page at `from` and at `candidates`. This
    // launch only reads `pages` and `from`. Each element has an output index of its own: the start of its warp plus its
    // number in this warp.
    let (of_pages, from, to) = unsafe {
        let room = pages.count as usize * PAGE;
        (pages.open(), from.source(room), candidates.arrays(room))
    };
    let taken = of_pages.taken.get(0);
    if taken > pages.count {
        return;
    }
    let thread = thread::thread_idx_x();
    // SAFETY: all threads of the block, which are whole warps, make this call: `taken` and `pages.count` are equal in
    // all threads. Nothing else uses the memory.
    let all = unsafe { find_begins(pages.warps, of_pages.of_warps, memory) };
    if (all as usize) < k {
        return;
    }
    thread::sync_threads();
    let block = thread::block_idx_x();
    if block == 0 && thread == 0 {
        progress.set_collection(all as u64, 0, GATHERED);
    }
    let (lane, warps) = (warp::lane_id() as usize, thread::grid_dim_x() * (THREADS as u32 / WARP_SIZE));
    let mut page = (block * THREADS as u32 + thread) / WARP_SIZE;
    while page < taken {
        let owner = of_pages.owners.get(2 * page as usize);
        let number = of_pages.owners.get(2 * page as usize + 1) as usize;
        let of_owner = number * PAGE + lane;
        if of_owner < of_pages.of_warps.get(owner as usize) as usize {
            let (at, goes_to) = (page as usize * PAGE + lane, memory.begins.get(owner) as usize + of_owner);
            to.keys.set(goes_to, from.keys.get(at));
            if has_values::<V>() {
                to.values.set(goes_to, from.values.get(at));
            }
        }
        page += warps;
    }
}

/// Sets the start of each warp to the number of keys of earlier warps. Returns the number of all keys. The starts are
/// available after the next barrier.
///
/// # Safety
/// All threads of the block, whole warps, make this call, and nothing else uses the memory.
#[inline(always)]
#[track_caller]
unsafe fn find_begins(warps: u32, of_warps: GlobalMut<u32>, memory: Memory) -> u32 {
    // A thread has `of_thread` consecutive warps.
    let (thread, of_thread) = (thread::thread_idx_x(), warps.div_ceil(THREADS as u32));
    let (first, end) = (thread * of_thread, ((thread + 1) * of_thread).min(warps));
    let mut sum = 0;
    for warp in first..end {
        memory.begins.set(warp, sum);
        sum += of_warps.get(warp as usize);
    }
    // SAFETY: all threads of the block, which are whole warps, make this call, and nothing else uses `scan`.
    let (before, all) = unsafe { sum_before(sum, memory.scan) };
    for warp in first..end {
        memory.begins.set(warp, before + memory.begins.get(warp));
    }
    all
}
