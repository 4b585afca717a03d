//! The first k keys of each segment of an array, in order, without a sort of the other keys.
//!
//! ```text
//!   segment    │ tile 0           │ tile 1           │ tile 2    │      each key is read once, into registers
//!   minima       4  1  9  2  7  5                                       k minima of groups bound the k-th key
//!   kept         ■■  ■ ■   ■ ■        ■   ■              ■              keys up to the bound ─► candidates
//!   narrow                                                              too many: a radix select lowers the bound
//!   out        │ k keys │                                               candidates, ranked within bins of their keys
//! ```
//!
//! A candidate is a key with its index in the segment. No two candidates are equal, so that the choice is exact and
//! stable, and the order in which candidates were found does not matter.
//!
//! If there are fewer segments than a GPU can process at once, blocks select from parts of a segment. A second launch
//! selects from the results of these parts:
//!
//! ```text
//!   segment    │ part 0     │ part 1     │ part 2     │
//!   results    │ k │ k │ k │                                 equal keys still have the order of their indices
//!   out        │ k │
//! ```
//!
//! | file | idea |
//! | --- | --- |
//! | [`select_segments`] | the kernel: a block selects from a segment, from a part, or from the results of parts |
//! | `candidates` | the buffer of candidates, and the radix select that lowers its bound |
//! | `interval` | a range of candidates, divided by a digit |
//! | `ranks` | candidates in order: bins, and the rank of a candidate within its bin |
//! | [`copy_firsts`] | the first k elements of segments that were sorted, for k above [`MAX_K`] |

mod candidates;
pub mod copy_firsts;
mod interval;
mod ranks;
pub mod select_segments;

use crate::block::scan::BLOCK_WORDS;
use crate::block::shared_memory::{self, shared_memory};
use crate::kernels::sort::segments::{Bounds, Segments};
use cuda_std::prelude::*;

/// Fewest threads of a block, whose number is a power of two.
pub const MIN_THREADS: usize = 32;

/// Most threads of a block.
pub const MAX_THREADS: usize = 512;

/// Slots of a block for candidates, and bins, for each thread.
pub const SLOTS: usize = 4;

/// Greatest k of a block of [`MAX_THREADS`].
pub const MAX_K: usize = SLOTS * MAX_THREADS;

/// Most keys of a segment: an index has 31 bits.
pub const MAX_SEGMENT: usize = 1 << 31;

/// Keys per thread of a tile, for keys of 4 bytes and of 8.
const ITEMS4: usize = 16;
const ITEMS8: usize = ITEMS4 / 2;

/// Keys per thread of a tile, for keys of `key_bytes` bytes.
pub const fn items_per_thread(key_bytes: usize) -> usize {
    if key_bytes == 4 { ITEMS4 } else { ITEMS8 }
}

/// Blocks of [`MAX_THREADS`] threads per multiprocessor, for keys of 4 bytes and of 8.
const BLOCKS4: usize = 3;
const BLOCKS8: usize = 2;

/// Threads that a multiprocessor holds at once, for keys of `key_bytes` bytes.
pub const fn resident_threads(key_bytes: usize) -> usize {
    MAX_THREADS * if key_bytes == 4 { BLOCKS4 } else { BLOCKS8 }
}

shared_memory! {
    /// Shared memory of a block with `slots` slots, [`SLOTS`] for each thread.
    struct Memory<B: Word>(slots: u32) {
        keys: [B; slots],
        indices: [u32; slots],
        /// Counters of the values of a digit, or bounds of bins.
        counts: [u32; slots],
        scan: [u32; BLOCK_WORDS],
        /// The chosen value of a digit, the number of candidates with lesser values, and with this one.
        chosen: [u32; 3],
        /// Number of threads that have found a large bin.
        large: [u32; 1],
        /// The block's job. Threads would not have enough registers to keep it.
        job: [u64; 4],
    }
}

/// Bytes of dynamic shared memory for keys of `key_bytes` bytes and blocks of `threads` threads.
pub const fn shared_bytes(key_bytes: usize, threads: usize) -> u32 {
    let slots = (SLOTS * threads) as u32;
    if key_bytes == 4 { Memory::<u32>::bytes(slots) } else { Memory::<u64>::bytes(slots) }
}

const _: () = shared_memory::check(shared_bytes(8, MAX_THREADS));

/// The division of segments into parts, from which blocks select k elements each.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// The segments of an array, of up to [`MAX_SEGMENT`] elements each.
    pub segments: Segments,
    /// Number of elements of the array.
    pub n: usize,
    /// Number of elements to select from each segment, at least 1.
    pub k: u32,
    /// Most parts of a segment, at least 1.
    pub most: u32,
    /// Fewest elements of a part if the segment has several: at least k.
    pub least: u32,
    /// Whether the elements are the results of parts, `most * k` slots for each segment.
    pub of_results: bool,
}

/// The work of a block: a segment, a part of one, or the results of its parts.
#[derive(Clone, Copy)]
struct Job {
    /// The first element, and the number of elements.
    begin: usize,
    len: u32,
    /// Index of the first element in its segment.
    first: u32,
    /// Index of the first selected element in the output.
    to: usize,
}

impl Parts {
    /// Number of jobs: one for each part, or for each segment if the elements are results.
    pub const fn jobs(self) -> usize {
        if self.of_results { self.segments.count } else { self.segments.count * self.most as usize }
    }

    /// Job `number`. It has no elements if its segment has fewer parts.
    #[inline(always)]
    #[track_caller]
    fn job(self, bounds: Bounds, number: usize) -> Job {
        let Self { k, most, least, of_results, .. } = self;
        // The fields are at least 1. Without the maxima, divisions would compile to code that can panic.
        let (most, least) = (most.max(1) as usize, least.max(1) as u64);
        let (segment, part) = if of_results || most == 1 { (number, 0) } else { (number / most, number % most) };
        let begin = bounds.start(segment);
        let len = (bounds.start(segment + 1) - begin) as u64;
        let parts = (len / least).min(most as u64).max(1);
        if of_results {
            let results = if parts == 1 { len.min(k as u64) } else { parts * k as u64 };
            let (begin, to) = (number * most * k as usize, number * k as usize);
            return Job { begin, len: results as u32, first: 0, to };
        }
        let to = number * k as usize;
        if parts == 1 {
            return Job { begin, len: if part == 0 { len as u32 } else { 0 }, first: 0, to };
        }
        let start = |part: usize| len * (part as u64).min(parts) / parts;
        let (first, end) = (start(part), start(part + 1));
        Job { begin: begin + first as usize, len: (end - first) as u32, first: first as u32, to }
    }
}

impl Job {
    /// Stores the job for [`load`](Self::load). One thread makes this call.
    #[inline(always)]
    #[track_caller]
    fn store(self, job: Shared<u64>) {
        job.set(0, self.begin as u64);
        job.set(1, self.to as u64);
        job.set(2, self.len as u64);
        job.set(3, self.first as u64);
    }

    #[inline(always)]
    #[track_caller]
    fn load(job: Shared<u64>) -> Self {
        Self { begin: job.get(0) as usize, to: job.get(1) as usize, len: job.get(2) as u32, first: job.get(3) as u32 }
    }
}
