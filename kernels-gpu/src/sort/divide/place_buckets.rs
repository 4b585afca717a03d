//! The third step of a division: where the keys of each digit go, and what is done with them next.
//!
//! ```text
//!   digits     │0│1│  2  │3│       4       │5│6│    7    │
//!   buckets    │   │     │ │               │   │         │      neighbours that one block can sort together
//!   segments               │       4       │                    too many for a block: divided again
//! ```

use super::workspace::{Segment, Work, Workspace};
use super::{DIGITS_CAPACITY, MOST_DIGITS};
use crate::block_scan::{BLOCK_WORDS, sum_before};
use crate::key::Bits;
use crate::sort::detect_runs::Detection;
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Threads of a block.
pub const PLACE_THREADS: u32 = 256;

/// Digits of a thread, at most.
const OWN: usize = (DIGITS_CAPACITY as usize).div_ceil(PLACE_THREADS as usize);

/// Bytes of dynamic shared memory: the words of a scan; for each digit where its keys begin, which one begins the next bucket if
/// this one begins one, and whether it does; and for each bucket its first digit.
pub const PLACE_SHARED_BYTES: u32 = (BLOCK_WORDS + 4 * (DIGITS_CAPACITY + 1)) * size_of::<u32>() as u32;

const _: () = assert!(MOST_DIGITS <= DIGITS_CAPACITY);

/// Kernel: makes the counters of each segment of `level` the indices at which the keys of each digit begin, and adds its buckets,
/// and the segments of the next level, to their lists. If there is one level only, and keys of a digit are too many for a block,
/// keys are not divided after all. Equal keys are in their places already unless they are in the scratch
/// array or have to be decoded, as `decodes` says.
///
/// # Safety
/// As for [`count_digits`](super::count_digits::count_digits), which has been called before; blocks are of [`PLACE_THREADS`]
/// threads with [`PLACE_SHARED_BYTES`]; for the first level there is one block.
#[kernel(
    u32 = <u32, { ROW.divide_4.threads * ROW.divide_4.items_per_thread }, { ROW.buckets_4.threads * ROW.buckets_4.items_per_thread }>,
    u64 = <u64, { ROW.divide_8.threads * ROW.divide_8.items_per_thread }, { ROW.buckets_8.threads * ROW.buckets_8.items_per_thread }>,
)]
pub unsafe fn place_buckets<B: Bits, const TILE: usize, const BUCKET: usize>(
    n: usize,
    words: *mut u32,
    level: u32,
    levels: u32,
    decodes: u32,
    order: *mut u32,
) {
    // SAFETY: the caller's promise.
    let detection = unsafe { Detection::new(order) };
    if !detection.is_divided() {
        return;
    }
    // SAFETY: the caller's promise.
    let workspace = unsafe { Workspace::new(words, n, levels, TILE, BUCKET) };
    let capacity = DIGITS_CAPACITY + 1;
    // SAFETY: the caller's promise; barriers divide the accesses.
    let (scan, begins, heads, next, is_head) = unsafe {
        (
            Shared::<u32>::dynamic(0, BLOCK_WORDS),
            Shared::<u32>::dynamic(BLOCK_WORDS * 4, capacity),
            Shared::<u32>::dynamic((BLOCK_WORDS + capacity) * 4, capacity),
            Shared::<u32>::dynamic((BLOCK_WORDS + 2 * capacity) * 4, capacity),
            Shared::<u32>::dynamic((BLOCK_WORDS + 3 * capacity) * 4, capacity),
        )
    };
    let thread = thread::thread_idx_x();
    // Where this level's keys go.
    let to_scratch = level.is_multiple_of(2);
    let mut i = thread::block_idx_x();
    while i < workspace.segments(level) {
        let Segment::<B> { start, len, counters, digits, exact, .. } = workspace.segment(i);
        let count = digits.count();
        let counters = workspace.counters(counters, count);
        let own = count.div_ceil(PLACE_THREADS);
        let first = (thread * own).min(count);
        let end = (first + own).min(count);

        // Where each digit begins.
        let mut counts = [0; OWN];
        let mut sum = 0;
        for at in 0..OWN as u32 {
            if first + at < end {
                counts[at as usize] = counters.get((first + at) as usize);
                sum += counts[at as usize];
            }
        }
        // SAFETY: all threads of the block are here, as below.
        let (mut begin, _) = unsafe { sum_before(sum, scan) };
        for at in 0..OWN as u32 {
            if first + at < end {
                begins.set(first + at, begin);
                counters.set((first + at) as usize, start + begin);
                begin += counts[at as usize];
            }
        }
        if thread == 0 {
            begins.set(count, len);
        }
        thread::sync_threads();

        // A bucket takes as many digits as a block can sort, or one: its last digit is followed by the next one's first.
        // Which digits begin a bucket is found from the first one on, in steps that double.
        let mut digit = thread;
        while digit < count {
            let most = begins.get(digit) + BUCKET as u32;
            let (mut low, mut high) = (digit + 1, count);
            while low < high {
                let middle = (low + high).div_ceil(2);
                if begins.get(middle) <= most { low = middle } else { high = middle - 1 }
            }
            next.set(digit, low);
            is_head.set(digit, u32::from(digit == 0));
            digit += PLACE_THREADS;
        }
        thread::sync_threads();
        let mut step = 1;
        while step < count {
            let (mut then, mut heads) = ([0; OWN], [count; OWN]);
            for at in 0..OWN as u32 {
                let digit = thread + at * PLACE_THREADS;
                if digit < count {
                    let after = next.get(digit);
                    then[at as usize] = if after < count { next.get(after) } else { count };
                    heads[at as usize] = if is_head.get(digit) != 0 { after } else { count };
                }
            }
            thread::sync_threads();
            for at in 0..OWN as u32 {
                let digit = thread + at * PLACE_THREADS;
                if digit < count {
                    next.set(digit, then[at as usize]);
                }
                if heads[at as usize] < count {
                    is_head.fetch_add(heads[at as usize], 1);
                }
            }
            thread::sync_threads();
            step *= 2;
        }
        let mut own_heads = 0;
        for at in 0..OWN as u32 {
            if first + at < end {
                own_heads += u32::from(is_head.get(first + at) != 0);
            }
        }
        // SAFETY: as above.
        let (mut head, all_heads) = unsafe { sum_before(own_heads, scan) };
        for at in 0..OWN as u32 {
            if first + at < end && is_head.get(first + at) != 0 {
                heads.set(head, first + at);
                head += 1;
            }
        }
        if thread == 0 {
            heads.set(all_heads, count);
        }
        thread::sync_threads();

        let (mut bucket, mut gives_up) = (thread, false);
        while bucket < all_heads {
            let digit = heads.get(bucket);
            let (begin, end) = (begins.get(digit), begins.get(heads.get(bucket + 1)));
            let (at, length) = (start + begin, end - begin);
            if length > BUCKET as u32 {
                if exact && digits.is_one_key(digit) {
                    // All keys are equal: they stay where they are.
                    let stays = length == len;
                    let in_scratch = to_scratch != stays;
                    if stays {
                        workspace.skip(i);
                    }
                    // Before the first division they are not encoded either.
                    if (in_scratch || decodes != 0) && !(stays && level == 0) {
                        let pieces = length.div_ceil(BUCKET as u32);
                        let (room, mut piece) = (workspace.add_buckets(pieces), 0);
                        while piece < pieces {
                            let begin = piece * BUCKET as u32;
                            let piece_len = (length - begin).min(BUCKET as u32);
                            workspace.set_bucket(room + piece, at + begin, piece_len, in_scratch, Work::Copy);
                            piece += 1;
                        }
                    }
                } else if levels == 1 {
                    gives_up = true;
                } else if level + 1 == levels {
                    workspace.add_rest(at, length);
                } else {
                    workspace.add_pending(level + 1, at, length, length.div_ceil(TILE as u32));
                }
            } else if length > 0 {
                workspace.set_bucket(workspace.add_buckets(1), at, length, to_scratch, Work::Sort);
            }
            bucket += PLACE_THREADS;
        }
        thread::sync_threads();
        if levels == 1 {
            // SAFETY: as above.
            let (_, all) = unsafe { sum_before(u32::from(gives_up), scan) };
            if thread == 0 && all > 0 {
                // Nothing has been moved yet.
                detection.give_up();
            }
            thread::sync_threads();
        }
        i += thread::grid_dim_x();
    }
}
