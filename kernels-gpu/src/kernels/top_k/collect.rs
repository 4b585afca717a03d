//! Collects the keys that are certainly among the first k, and the candidates, in their original order.
//!
//! Few tiles have any such keys. Ballots of a warp determine the output index of each key:
//!
//! ```text
//!   row 0    ░ ■ ░ ░ ■ ░ … ░      ■ less: 2       □ equal: 0
//!   row 1    ■ ░ □ ░ ░ ■ … □      ■ less: 2       □ equal: 2
//!            the third ■ of the warp follows two of the warp and all ■ of earlier warps, tiles and chunks
//! ```

use super::{CHUNK_UNIT, Chunk, KEYS4, KEYS8, Places, Progress, next_row, prefix};
use crate::block::scan::{BLOCK_WORDS, sum_before};
use crate::block::shared_memory::shared_memory;
use crate::elements::{Elements, Slice, Source, has_values};
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, reduce_add};

/// Threads of a block.
pub const THREADS: usize = 512;

/// Blocks per multiprocessor.
pub const BLOCKS: usize = 2;

const WARPS: usize = THREADS / WARP_SIZE as usize;

shared_memory! {
    struct Memory() {
        /// Counts of each warp in a tile: lesser keys in the lower half of a word, equal keys in the upper half. Tiles
        /// use the two halves of the array in turn.
        of_warps: [u32; 2 * WARPS],
        scan: [u32; BLOCK_WORDS],
    }
}

/// Bytes of dynamic shared memory.
pub const SHARED_BYTES: u32 = Memory::bytes();

/// Number of the last collection. Any other collection has the number of the digit before it.
pub const LAST: u32 = u32::MAX;

/// Kernel: collects keys with their values. Without `from.values`, an element's index is its value; if `V` is `()`,
/// there are no values.
///
/// If `collection` is the number of a digit, all `n` keys are compared with the k-th key's prefix up to this digit.
/// Lesser keys go to the front of `out`, and keys with an equal prefix to `candidates`, as ordered bits.
///
/// If `collection` is [`LAST`], the candidates are compared with the k-th key, or all keys if there are no candidates.
/// Lesser keys go to `out` behind the keys that are there, and the first equal keys to the end of its `k` elements.
///
/// # Safety
/// `out` has capacity for `k` elements, its length. `candidates` has the capacity that was passed to
/// [`choose_digit`](super::choose_digit::choose_digit), and `progress` is its state after this digit, or after all
/// digits. `places` is the result of [`count_chunks`](super::count_chunks::count_chunks) for that state. Blocks have
/// [`THREADS`] threads, and their number is the number of blocks that have counted the digit, with [`SHARED_BYTES`].
#[kernel(
    u32 = <u32, (), KEYS4> within (THREADS, BLOCKS),
    u64 = <u64, (), KEYS8> within (THREADS, BLOCKS),
    u32v4 = <u32, u32, KEYS4> within (THREADS, BLOCKS),
    u32v8 = <u32, u64, KEYS4> within (THREADS, BLOCKS),
    u64v4 = <u64, u32, KEYS8> within (THREADS, BLOCKS),
    u64v8 = <u64, u64, KEYS8> within (THREADS, BLOCKS),
)]
pub unsafe fn collect<B: Bits, V: Word, const VT: usize>(
    from: Slice<B, V>,
    candidates: Elements<B, V>,
    out: Slice<B, V>,
    progress: *mut u64,
    places: *mut u32,
    collection: u32,
    coding: Coding<B>,
) {
    const { assert!(CHUNK_UNIT.is_multiple_of(THREADS * VT), "a chunk has whole tiles but for the last one") };
    // SAFETY: this launch only reads `progress` and `places`. It has `SHARED_BYTES`. Lane 0 alone writes its warp's
    // slot of `of_warps`. A barrier comes before the reads, and the next tile writes the other half.
    let (progress, places, memory) = unsafe { (Progress::new(progress), Places::new(places), Memory::at_start()) };
    let (collected, is_last) = (progress.collected() as usize, collection == LAST);
    if !is_last && (collected == 0 || progress.collection() != collection || progress.digits() != collection + 1) {
        return;
    }
    let is_from_candidates = is_last && collected > 0;
    let has_indices = !is_from_candidates && from.at.values.is_null();
    // SAFETY: the caller passes `n` elements at `from` and `collected` elements at `candidates`. This launch writes to
    // neither of its inputs. Null pointers of values are not read: then `has_indices` is true or `V` is `()`.
    let (Source { keys, values }, coding_of_keys) = unsafe {
        if is_from_candidates { (candidates.source(collected), Coding::NONE) } else { (from.source(), coding) }
    };
    let k = out.len;
    // SAFETY: `out` has `k` elements and `candidates` has `collected`. An element's index is the number of lesser, or
    // of equal, elements before it, as counted by `places`: indices are distinct and in bounds.
    let (out, candidates) = unsafe { (out.arrays(), candidates.arrays(collected)) };
    let (left, chosen) = (progress.left(), progress.prefix());
    let out_begin = if is_last { progress.before_collected() as usize } else { 0 };
    // The first ties are the last of the `k` elements.
    let ties_wanted = if is_last { progress.rank() as usize } else { collected };
    let ties_begin = if is_last { k - ties_wanted } else { 0 };
    let (thread, lane) = (thread::thread_idx_x(), warp::lane_id());
    let warp = thread / WARP_SIZE;
    let Chunk { mut begin, end } = Chunk::of_block(keys.len());
    let chunks_before = before_chunk(places, memory.scan);
    let (mut less_before, mut equal_before) = (out_begin + chunks_before[0], chunks_before[1]);
    let [less, equal] = places.of_block(thread::block_idx_x());
    if less == 0 && (equal == 0 || equal_before >= ties_wanted) {
        return;
    }
    let mut turn = 0;
    while begin < end {
        let first = begin + warp as usize * (WARP_SIZE as usize * VT) + lane as usize;
        let row = |i: usize| first + i * WARP_SIZE as usize;
        let mut found = [coding_of_keys.decode(B::MAX); VT];
        // Full and partial tiles have separate code, so that full tiles need no bounds checks.
        if begin + THREADS * VT <= end {
            for i in 0..VT {
                found[i] = keys.get(row(i));
            }
        } else {
            for i in 0..VT {
                if row(i) < end {
                    found[i] = keys.get(row(i));
                }
            }
        }
        coding_of_keys.encode_all(&mut found);
        // Once enough equal keys are found, only lesser keys are collected.
        let has_ties = equal_before >= ties_wanted;
        if has_ties && chosen == 0 {
            return;
        }
        // Bit i: whether this lane's key of row i is collected.
        let (mut found_in, last) = (0u32, chosen - has_ties as u64);
        for i in 0..VT {
            found_in |= ((prefix(found[i], left) <= last) as u32) << i;
        }
        // The lanes with a lesser key in row `i`, the lanes with an equal prefix, and this lane's key. The key is read
        // again, since few tiles have any.
        let vote = |i: usize| {
            let is_key = row(i) < end;
            let key = if is_key { coding_of_keys.encode(keys.get(row(i))) } else { B::MAX };
            let bits = prefix(key, left);
            // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make these calls: `begin` and `end` are equal in
            // the block, and `next_row` returns the same row, or `None`, to all lanes of the warp.
            let [less, equal] = unsafe {
                [warp::ballot(FULL_MASK, is_key && bits < chosen), warp::ballot(FULL_MASK, is_key && bits == chosen)]
            };
            (key, less, equal)
        };
        let mut of_warp = 0;
        let mut rows = found_in;
        // SAFETY: all 32 lanes make this call, since `next_row` itself decides about each further round, equally in all
        // lanes.
        while let Some((i, left)) = unsafe { next_row::<VT>(rows) } {
            let (_, less, equal) = vote(i);
            of_warp += less.count_ones() | equal.count_ones() << 16;
            rows = left;
        }
        if lane == 0 {
            memory.of_warps.set(turn + warp, of_warp);
        }
        thread::sync_threads();
        let of_other = if lane < WARPS as u32 { memory.of_warps.get(turn + lane) } else { 0 };
        // SAFETY: the block is whole warps, and all its threads have passed the barrier: the 32 lanes of each warp make
        // these calls.
        let (of_tile, warps_before) =
            unsafe { (reduce_add(FULL_MASK, of_other), reduce_add(FULL_MASK, if lane < warp { of_other } else { 0 })) };
        if of_warp > 0 {
            let mut less_begin = less_before + (warps_before & 0xffff) as usize;
            let mut tie_begin = equal_before + (warps_before >> 16) as usize;
            let below = (1 << lane) - 1;
            let mut rows = found_in;
            // SAFETY: `of_warp` is a sum of ballots, equal in all 32 lanes, and `next_row` ends the loop equally in all
            // lanes: all 32 make this call.
            while let Some((i, left)) = unsafe { next_row::<VT>(rows) } {
                let (key, less, equal) = vote(i);
                rows = left;
                let (is_less, is_equal) = (less >> lane & 1 != 0, equal >> lane & 1 != 0);
                let tie = tie_begin + (equal & below).count_ones() as usize;
                let (is_tie, goes_out) = (is_equal && tie < ties_wanted, is_less || is_last);
                if is_less || is_tie {
                    let to = if is_less { less_begin + (less & below).count_ones() as usize } else { ties_begin + tie };
                    let side = if goes_out { out } else { candidates };
                    side.keys.set(to, if goes_out { coding.decode(key) } else { key });
                    if has_values::<V>() {
                        side.values
                            .set(to, if has_indices { V::from_register(row(i) as u64) } else { values.get(row(i)) });
                    }
                }
                less_begin += less.count_ones() as usize;
                tie_begin += equal.count_ones() as usize;
            }
        }
        less_before += (of_tile & 0xffff) as usize;
        equal_before += (of_tile >> 16) as usize;
        begin += THREADS * VT;
        turn ^= WARPS as u32;
    }
}

/// Numbers of lesser keys and of equal keys in the chunks of earlier blocks.
#[inline(always)]
#[track_caller]
fn before_chunk(places: Places, scan: Shared<u32>) -> [usize; 2] {
    let block = thread::block_idx_x();
    let mut sums = [0u64; 2];
    let mut other = thread::thread_idx_x();
    while other < block {
        let [less, equal] = places.of_block(other);
        sums[0] += less as u64;
        sums[1] += equal as u64;
        other += THREADS as u32;
    }
    sums.map(|sum| {
        // In two halves: the lower one is below 2^22 for each thread, and the upper one below 2^11. With 512 threads,
        // both sums fit in 32 bits. SAFETY: no branch surrounds the calls, so that all threads of the block, whole
        // warps, make both. A barrier ends each use of `scan`.
        unsafe {
            let (_, low) = sum_before((sum & 0x3f_ffff) as u32, scan);
            thread::sync_threads();
            let (_, high) = sum_before((sum >> 22) as u32, scan);
            thread::sync_threads();
            low as usize + ((high as usize) << 22)
        }
    })
}
