//! How many candidates have each digit.

use super::{BELOW, COUNT_WORDS, COUNTS, Chunk, Digit, MAX_BLOCKS, Progress};
use crate::block::shared_memory::shared_memory;
use crate::kernels::sort::clear;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;

/// Threads of a block.
pub const THREADS: usize = 512;

/// Keys that a thread reads before it counts them.
const AT_ONCE: usize = 8;

shared_memory! {
    struct Memory() {
        counts: [u32; COUNTS],
    }
}

/// Bytes of dynamic shared memory.
pub const SHARED_BYTES: u32 = Memory::bytes();

/// Kernel: writes to `of_blocks` how many candidates of its chunk have each value of the next digit, for each block, and how many keys begin with less, and
/// adds these to `counts`: of the `n` keys, or of those that have been put to `candidates`, as ordered bits. If all bits of the k-th key are known, does nothing.
///
/// # Safety
/// `keys` has `n` keys, of which each block has less than 2^32, `counts` [`COUNT_WORDS`], `of_blocks` has [`COUNTS`] words for each block, and `progress`
/// is that of the digits before. `candidates` are those of `collect` or `pack`. Blocks are of `NT` threads, [`MAX_BLOCKS`] at most,
/// with [`SHARED_BYTES`].
#[kernel(u32 = <u32, THREADS>, u64 = <u64, THREADS>)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn count_digit<B: Bits, const NT: usize>(
    keys: *const B,
    n: usize,
    candidates: *const B,
    counts: *mut u32,
    of_blocks: *mut u32,
    progress: *mut u64,
    coding: Coding<B>,
) {
    let thread = thread::thread_idx_x() as usize;
    // SAFETY: `progress` is only read here. The launch has `SHARED_BYTES`. Barriers come between clearing, adding and reading.
    let (progress, memory) = unsafe { (Progress::new(progress), Memory::at_start()) };
    let collected = progress.collected() as usize;
    let (first, len, coding) = if collected > 0 { (candidates, collected, Coding::NONE) } else { (keys, n, coding) };
    // SAFETY: there are so many keys, as the caller promises, which nothing writes during the launch.
    let keys = unsafe { Global::new(first, len) };
    let (left, prefix) = (progress.left(), progress.prefix());
    if left == 0 {
        return;
    }
    let digit = Digit::of_left(left);
    clear::<NT>(memory.counts, COUNTS as u32);
    thread::sync_threads();
    let mut below = 0;
    let mut count = |key: B| {
        let above = digit.above(key);
        if above == prefix {
            memory.counts.fetch_add(digit.get(key), 1);
        }
        below += (above < prefix) as u32;
    };
    let Chunk { mut begin, end } = Chunk::of_block(keys.len());
    while begin < end {
        let mut found = [B::MIN; AT_ONCE];
        // Each kind of tile has loads of its own, so that those of a full one are nothing else.
        if begin + NT * AT_ONCE <= end {
            for i in 0..AT_ONCE {
                found[i] = keys.get(begin + i * NT + thread);
            }
            coding.encode_all(&mut found);
            for i in 0..AT_ONCE {
                count(found[i]);
            }
        } else {
            for i in 0..AT_ONCE {
                let at = begin + i * NT + thread;
                if at < end {
                    count(coding.encode(keys.get(at)));
                }
            }
        }
        begin += NT * AT_ONCE;
    }
    if below > 0 {
        memory.counts.fetch_add(BELOW as u32, below);
    }
    thread::sync_threads();
    // SAFETY: `counts` has as many words, to which all blocks only add; and `of_blocks` those of each block, which writes its own.
    let (counts, of_blocks) =
        unsafe { (GlobalMut::new(counts, COUNT_WORDS), GlobalMut::new(of_blocks, MAX_BLOCKS * COUNTS)) };
    let own = thread::block_idx_x() as usize * COUNTS;
    let mut value = thread;
    while value < COUNTS {
        let count = memory.counts.get(value as u32);
        of_blocks.set(own + value, count);
        if count > 0 && counts.fetch_add(2 * value, count).checked_add(count).is_none() {
            counts.fetch_add(2 * value + 1, 1);
        }
        value += NT;
    }
}
