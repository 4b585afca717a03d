//! Counts the candidates by their next digit.

use super::{BELOW, COUNT_WORDS, COUNTS, Chunk, Digit, MAX_BLOCKS, Progress};
use crate::block::clear;
use crate::block::shared_memory::shared_memory;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;

/// Threads of a block.
pub const THREADS: usize = 512;

/// Keys that a thread loads before it counts them.
const AT_ONCE: usize = 8;

shared_memory! {
    struct Memory() {
        counts: [u32; COUNTS],
    }
}

/// Bytes of dynamic shared memory.
pub const SHARED_BYTES: u32 = Memory::bytes();

/// Kernel: makes histograms of the next digit of the candidates, and counts the keys with a lesser prefix. Each block
/// writes the histogram of its chunk to `of_blocks` and adds it to `counts`. It reads all keys, or `candidates`, as
/// ordered bits, if candidates have been collected. Does nothing if all bits of the k-th key are known.
///
/// # Safety
/// `keys` has all keys, fewer than 2^32 per block. `counts` has [`COUNT_WORDS`] words, `of_blocks` has [`COUNTS`] words
/// per block, and `progress` is the state after the digits before. `candidates` is the result of `collect` or `pack`.
/// There are at most [`MAX_BLOCKS`] blocks of `NT` threads, with [`SHARED_BYTES`].
#[kernel(u32 = <u32, THREADS>, u64 = <u64, THREADS>)]
pub unsafe fn count_digit<B: Bits, const NT: usize>(
    keys: *const B,
    candidates: *const B,
    counts: *mut u32,
    of_blocks: *mut u32,
    progress: *mut u64,
    coding: Coding<B>,
) {
    let thread = thread::thread_idx_x() as usize;
    // SAFETY: this launch only reads `progress`. It has `SHARED_BYTES`. Barriers separate clearing, atomic additions
    // and reads of the counters.
    let (progress, memory) = unsafe { (Progress::new(progress), Memory::at_start()) };
    let collected = progress.collected() as usize;
    let (first, len, coding) =
        if collected > 0 { (candidates, collected, Coding::NONE) } else { (keys, progress.keys(), coding) };
    // SAFETY: the caller passes all keys at `keys` and `collected` keys at `candidates`, which nothing writes during
    // the launch.
    let keys = unsafe { Global::new(first, len) };
    let (left, prefix) = (progress.left(), progress.prefix());
    if left == 0 {
        return;
    }
    clear::<NT>(memory.counts, COUNTS as u32);
    thread::sync_threads();
    let below = count_chunk::<B, NT>(keys, coding, (Digit::of_left(left), prefix), memory.counts);
    if below > 0 {
        memory.counts.fetch_add(BELOW as u32, below);
    }
    thread::sync_threads();
    // SAFETY: `counts` has `COUNT_WORDS` words, and blocks only add to them atomically. `of_blocks` has `COUNTS` words
    // for each of up to `MAX_BLOCKS` blocks, and a block writes its own.
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

/// Adds the digits of this block's keys that have this prefix to `counts`, and returns the number of this thread's keys
/// with a lesser prefix.
#[inline(always)]
#[track_caller]
fn count_chunk<B: Bits, const NT: usize>(
    keys: Global<B>,
    coding: Coding<B>,
    (digit, prefix): (Digit, u64),
    counts: Shared<u32>,
) -> u32 {
    let thread = thread::thread_idx_x() as usize;
    let mut below = 0;
    let mut count = |key: B| {
        let above = digit.above(key);
        if above == prefix {
            counts.fetch_add(digit.get(key), 1);
        }
        below += (above < prefix) as u32;
    };
    let Chunk { mut begin, end } = Chunk::of_block(keys.len());
    while begin < end {
        let mut found = [B::MIN; AT_ONCE];
        // Full and partial tiles have separate code, so that full tiles need no bounds checks.
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
    below
}
