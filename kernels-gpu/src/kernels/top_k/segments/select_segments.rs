//! Selects the first k elements of each segment: a block takes one segment after another.
//!
//! ```text
//!   block 0    │ segment 0 │ segment 4 │ …        32 threads for short segments, up to 512 for long ones
//!   block 1    │ segment 1 │ segment 5 │ …
//! ```
//!
//! Later tiles of a segment contribute only keys below the bound: a key that equals it comes after the k keys or more
//! that do not exceed it.

use super::candidates::{Candidates, Tile};
use super::{BLOCKS4, BLOCKS8, ITEMS4, ITEMS8, Job, MAX_THREADS, Memory, Parts, SLOTS};
use crate::elements::{Arrays, Elements, Slice, Source, has_values};
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;

/// Kernel: writes the first k elements of segment `q` to `out` from element `q * k` on, sorted and stable, or all
/// elements if there are fewer. Without `from.values`, an element's index in its segment is its value; if `V` is `()`,
/// there are no values.
///
/// If segments have several parts, it writes the first elements of part `p` of segment `q` from element
/// `(q * parts.most + p) * k` on. A second launch selects from these elements, as `parts.of_results` says, and with
/// their values.
///
/// # Safety
/// `from` has the `parts.n` elements of the segments, or the results of a launch with the same `parts`, except
/// `of_results`. The fields of `parts` meet their descriptions. `out` has `k` elements for each of [`Parts::jobs`].
/// Blocks have a power of two threads, from [`MIN_THREADS`](super::MIN_THREADS) to [`MAX_THREADS`], at least
/// `k / SLOTS`, with [`shared_bytes`](super::shared_bytes) of dynamic shared memory.
#[kernel(
    u32 = <u32, (), ITEMS4> within (MAX_THREADS, BLOCKS4),
    u64 = <u64, (), ITEMS8> within (MAX_THREADS, BLOCKS8),
    u32v4 = <u32, u32, ITEMS4> within (MAX_THREADS, BLOCKS4),
    u32v8 = <u32, u64, ITEMS4> within (MAX_THREADS, BLOCKS4),
    u64v4 = <u64, u32, ITEMS8> within (MAX_THREADS, BLOCKS8),
    u64v8 = <u64, u64, ITEMS8> within (MAX_THREADS, BLOCKS8),
)]
pub unsafe fn select_segments<B: Bits, V: Word, const VT: usize>(
    from: Slice<B, V>,
    out: Elements<B, V>,
    parts: Parts,
    coding: Coding<B>,
) {
    const { assert!(SLOTS <= VT, "the first tile of a segment with several has at least k keys") };
    // SAFETY: the caller passes `from.len` elements, which nothing writes during the launch, and segments as described.
    // The launch has `shared_bytes`, which are `Memory::bytes` of these slots. Blocks write disjoint elements of `out`,
    // `k` for each job. A rank in a job is below `k` and belongs to one candidate.
    let (source, out, bounds, memory) = unsafe {
        (
            from.source(),
            out.arrays(parts.jobs() * parts.k as usize),
            parts.segments.of(parts.n),
            Memory::<B>::at_start(thread::block_dim_x() * SLOTS as u32),
        )
    };
    let selection = Selection { source, out, has_indices: from.at.values.is_null(), memory, coding };
    let mut number = thread::block_idx_x() as usize;
    while number < parts.jobs() {
        if thread::thread_idx_x() == 0 {
            parts.job(bounds, number).store(memory.job);
        }
        thread::sync_threads();
        let len = Job::load(memory.job).len;
        if len > 0 {
            // SAFETY: `len` is equal in all threads, so that all threads of the block, which are whole warps, make this
            // call. Barriers come before it and behind it.
            unsafe { selection.select::<VT>(len, parts.k.min(len)) };
        }
        thread::sync_threads();
        number += thread::grid_dim_x() as usize;
    }
}

/// The elements of a launch, and a block's memory with its job.
#[derive(Clone, Copy)]
struct Selection<B, V> {
    source: Source<B, V>,
    out: Arrays<B, V>,
    /// Whether an element's index in its segment is its value.
    has_indices: bool,
    memory: Memory<B>,
    coding: Coding<B>,
}

impl<B: Bits, V: Word> Selection<B, V> {
    /// Selects the first `k` of the `len` elements of the block's job.
    ///
    /// # Safety
    /// All threads of the block, which are whole warps, make this call, and nothing else uses the memory. Barriers come
    /// before the call and behind it. `k` is 1 to `len`, and at most the number of slots.
    #[inline(always)]
    #[track_caller]
    unsafe fn select<const VT: usize>(self, len: u32, k: u32) {
        let Self { memory, coding, .. } = self;
        let mut candidates = Candidates { memory, count: 0, index_bits: u32::BITS - (len - 1).leading_zeros() };
        let (mut begin, mut bound) = (0, B::MAX);
        while begin < len {
            let keys = self.source.keys.slice(Job::load(memory.job).begin, len as usize);
            let mut tile = Tile::<B, VT>::load(keys, begin, coding);
            // SAFETY: `begin`, `bound` and `k` are equal in all threads, so that all threads of the block, which are
            // whole warps, make these calls. Barriers separate the calls and the rounds.
            let lowered = unsafe {
                let first = if begin == 0 { Some(tile.bound(len, k, memory)) } else { None };
                tile.retain_keys(first.unwrap_or(bound));
                candidates.add(tile, k).or(first)
            };
            thread::sync_threads();
            if let Some(reached) = lowered {
                // At least k keys so far do not exceed `reached`, so that later keys have to be less.
                if reached == B::MIN {
                    break;
                }
                bound = reached.minus(B::ONE);
            }
            begin += thread::block_dim_x() * VT as u32;
        }
        // SAFETY: all threads of the block, which are whole warps, make this call, behind a barrier.
        unsafe { candidates.in_order(k, |rank, key, index| self.write(rank, key, index)) };
    }

    /// Writes the candidate of this rank, which is below `k`.
    #[inline(always)]
    #[track_caller]
    fn write(self, rank: u32, key: B, index: u32) {
        let job = Job::load(self.memory.job);
        let to = job.to + rank as usize;
        self.out.keys.set(to, self.coding.decode(key));
        if has_values::<V>() {
            let value = if self.has_indices {
                V::from_register(job.first as u64 + index as u64)
            } else {
                self.source.values.get(job.begin + index as usize)
            };
            self.out.values.set(to, value);
        }
    }
}
