//! Collects the keys that are certainly among the first k, and the candidates, in their original order.
//!
//! Few tiles have any such keys. Ballots of a warp determine the output index of each key:
//!
//! ```text
//!   row 0    ░ ■ ░ ░ ■ ░ … ░      ■ less: 2       □ equal: 0
//!   row 1    ■ ░ □ ░ ░ ■ … □      ■ less: 2       □ equal: 2
//!            the third ■ of the warp follows two of the warp and all ■ of earlier warps, tiles and chunks
//! ```

use super::{CHUNK_UNIT, Chunk, Input, KEYS4, KEYS8, Places, Progress, next_row, prefix};
use crate::block::scan::{BLOCK_WORDS, sum_before};
use crate::block::shared_memory::shared_memory;
use crate::elements::{Arrays, Elements, Slice};
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
/// If `collection` is the number of a digit, all keys are compared with the k-th key's prefix up to this digit.
/// Lesser keys go to the front of `out`, and keys with an equal prefix to `candidates`, as ordered bits.
///
/// If `collection` is [`LAST`], the candidates are compared with the k-th key, or all keys if there are no candidates.
/// Lesser keys go to `out` behind the keys that are there, and the first equal keys to the end of its k elements.
///
/// # Safety
/// `from` has all elements, and `out` capacity for the k selected ones. `candidates` has the capacity that was passed
/// to [`choose_digit`](super::choose_digit::choose_digit), and `progress` is its state after this digit, or after all
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
    from: Elements<B, V>,
    candidates: Elements<B, V>,
    out: Elements<B, V>,
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
    // SAFETY: the caller passes all elements at `from`, and `collected` elements at `candidates` and k at `out`. This
    // launch writes to neither of its inputs. An element's index in the output is the number of lesser, or of equal,
    // elements before it, as counted by `places`: indices are distinct and in bounds.
    let wanted = unsafe { Wanted::new(from, candidates, out, progress, is_last, coding) };
    let Chunk { mut begin, end } = Chunk::of_block(wanted.input.source.len());
    // Without any keys, no launch has written `places`.
    if begin == end {
        return;
    }
    let chunks_before = before_chunk(places, memory.scan);
    let mut before = Found { less: wanted.begin + chunks_before[0], equal: chunks_before[1] };
    let [less, equal] = places.of_block(thread::block_idx_x());
    if less == 0 && (equal == 0 || before.equal >= wanted.ties) {
        return;
    }
    let warp = thread::thread_idx_x() / WARP_SIZE;
    let mut turn = 0;
    while begin < end {
        // Once enough equal keys are found, only lesser keys are collected.
        let has_ties = before.equal >= wanted.ties;
        if has_ties && wanted.prefix == 0 {
            return;
        }
        let first = begin + warp as usize * (WARP_SIZE as usize * VT) + warp::lane_id() as usize;
        let found: [B; VT] = wanted.input.rows(first, end, begin + THREADS * VT <= end);
        let lanes = Rows::<VT> { rows: wanted.collected(found, has_ties), first, end };
        // SAFETY: the 32 lanes of each warp make these calls: `begin` and `end` are equal in the block, and `of_warp`
        // is equal in the warp.
        unsafe {
            let of_warp = lanes.count(&wanted);
            let (of_tile, warps_before) = sums_of_tile(memory.of_warps, turn, of_warp);
            if of_warp > 0 {
                lanes.write(&wanted, before.plus(warps_before));
            }
            before = before.plus(of_tile);
        }
        begin += THREADS * VT;
        turn ^= WARPS as u32;
    }
}

/// The elements that a collection reads, the prefix that it compares their keys with, and where it writes them.
struct Wanted<B, V> {
    input: Input<B, V>,
    /// The bits of the k-th key that are known, and the number of bits below them.
    prefix: u64,
    left: u32,
    /// Whether this is the last collection.
    is_last: bool,
    /// Where lesser keys begin in `out`.
    begin: usize,
    /// The number of equal keys that are collected, and where they begin.
    ties: usize,
    ties_begin: usize,
    out: Arrays<B, V>,
    candidates: Arrays<B, V>,
    /// The coding of the keys of `out`.
    coding: Coding<B>,
}

impl<B: Bits, V: Word> Wanted<B, V> {
    /// Bit i: whether key i of these is collected. If it `has_ties`, only lesser keys are.
    #[inline(always)]
    fn collected<const VT: usize>(&self, keys: [B; VT], has_ties: bool) -> u32 {
        let (mut rows, last) = (0u32, self.prefix - has_ties as u64);
        for i in 0..VT {
            rows |= ((prefix(keys[i], self.left) <= last) as u32) << i;
        }
        rows
    }

    /// # Safety
    /// The arrays meet the requirements of [`collect`].
    #[inline(always)]
    unsafe fn new(
        from: Elements<B, V>,
        candidates: Elements<B, V>,
        out: Elements<B, V>,
        progress: Progress,
        is_last: bool,
        coding: Coding<B>,
    ) -> Self {
        let (collected, k) = (progress.collected() as usize, progress.selected());
        // SAFETY: the caller passes `collected` candidates, the elements of `from`, and `k` elements at `out`.
        let (input, out, candidates) = unsafe {
            let input = if is_last && collected > 0 {
                Input { source: candidates.source(collected), coding: Coding::NONE, has_indices: false }
            } else {
                Input::new(Slice { at: from, len: progress.keys() }, coding)
            };
            (input, out.arrays(k), candidates.arrays(collected))
        };
        let ties = if is_last { progress.rank() as usize } else { collected };
        Self {
            input,
            prefix: progress.prefix(),
            left: progress.left(),
            is_last,
            begin: if is_last { progress.before_collected() as usize } else { 0 },
            ties,
            // The first ties are the last of the k elements.
            ties_begin: if is_last { k - ties } else { 0 },
            out,
            candidates,
            coding,
        }
    }
}

/// Numbers of lesser and of equal keys that have been found.
#[derive(Clone, Copy)]
struct Found {
    less: usize,
    equal: usize,
}

impl Found {
    /// Adds counts: lesser keys in the lower half of the word, equal keys in the upper half.
    #[inline(always)]
    fn plus(self, counts: u32) -> Self {
        Self { less: self.less + (counts & 0xffff) as usize, equal: self.equal + (counts >> 16) as usize }
    }
}

/// The rows of a warp in a tile. `rows` has a bit for each of this lane's keys that may be collected.
#[derive(Clone, Copy)]
struct Rows<const VT: usize> {
    rows: u32,
    /// The index of this lane's first key.
    first: usize,
    /// The end of the chunk.
    end: usize,
}

/// A row: this lane's key, the lanes with a lesser key, and the lanes with an equal prefix.
struct Vote<B> {
    key: B,
    less: u32,
    equal: u32,
}

impl<const VT: usize> Rows<VT> {
    /// The index of this lane's key in row `i`.
    #[inline(always)]
    fn row(self, i: usize) -> usize {
        self.first + i * WARP_SIZE as usize
    }

    /// The keys of row `i` are read again, since few tiles have any.
    ///
    /// # Safety
    /// All lanes of the warp make this call for the same row.
    #[inline(always)]
    #[track_caller]
    unsafe fn vote<B: Bits, V: Word>(self, i: usize, wanted: &Wanted<B, V>) -> Vote<B> {
        let is_key = self.row(i) < self.end;
        let key = if is_key { wanted.input.key(self.row(i)) } else { B::MAX };
        let bits = prefix(key, wanted.left);
        // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make these calls.
        let [less, equal] = unsafe {
            [
                warp::ballot(FULL_MASK, is_key && bits < wanted.prefix),
                warp::ballot(FULL_MASK, is_key && bits == wanted.prefix),
            ]
        };
        Vote { key, less, equal }
    }

    /// Counts of the warp: lesser keys in the lower half of the word, equal keys in the upper half.
    ///
    /// # Safety
    /// All lanes of the warp make this call.
    #[inline(always)]
    #[track_caller]
    unsafe fn count<B: Bits, V: Word>(self, wanted: &Wanted<B, V>) -> u32 {
        let (mut of_warp, mut rows) = (0, self.rows);
        // SAFETY: all 32 lanes make this call, since `next_row` itself decides about each further round, equally in all
        // lanes.
        while let Some((i, left)) = unsafe { next_row::<VT>(rows) } {
            // SAFETY: all 32 lanes make this call for the row that `next_row` has returned.
            let Vote { less, equal, .. } = unsafe { self.vote(i, wanted) };
            of_warp += less.count_ones() | equal.count_ones() << 16;
            rows = left;
        }
        of_warp
    }

    /// Writes the keys of the warp behind the keys that were found before.
    ///
    /// # Safety
    /// All lanes of the warp make this call. `before` is the number of keys that earlier warps and tiles have found.
    #[inline(always)]
    #[track_caller]
    unsafe fn write<B: Bits, V: Word>(self, wanted: &Wanted<B, V>, mut before: Found) {
        let (lane, mut rows) = (warp::lane_id(), self.rows);
        let below = (1 << lane) - 1;
        // SAFETY: all 32 lanes make this call, since `next_row` ends the loop equally in all lanes.
        while let Some((i, left)) = unsafe { next_row::<VT>(rows) } {
            // SAFETY: all 32 lanes make this call for the row that `next_row` has returned.
            let Vote { key, less, equal } = unsafe { self.vote(i, wanted) };
            rows = left;
            let (is_less, is_equal) = (less >> lane & 1 != 0, equal >> lane & 1 != 0);
            let tie = before.equal + (equal & below).count_ones() as usize;
            if is_less || (is_equal && tie < wanted.ties) {
                let index = before.less + (less & below).count_ones() as usize;
                let to = if is_less { index } else { wanted.ties_begin + tie };
                let goes_out = is_less || wanted.is_last;
                let side = if goes_out { wanted.out } else { wanted.candidates };
                wanted.input.copy(self.row(i), if goes_out { wanted.coding.decode(key) } else { key }, side, to);
            }
            before.less += less.count_ones() as usize;
            before.equal += equal.count_ones() as usize;
        }
    }
}

/// The sums of the counts of all warps, and of the warps before this one. Contains a barrier.
///
/// # Safety
/// All threads of the block make this call, with the half of `of_warps` at `turn`, which the tile before has not used.
#[inline(always)]
#[track_caller]
unsafe fn sums_of_tile(of_warps: Shared<u32>, turn: u32, of_warp: u32) -> (u32, u32) {
    let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
    if lane == 0 {
        of_warps.set(turn + warp, of_warp);
    }
    thread::sync_threads();
    let of_other = if lane < WARPS as u32 { of_warps.get(turn + lane) } else { 0 };
    // SAFETY: the block is whole warps, and all its threads have passed the barrier: the 32 lanes of each warp make
    // these calls.
    unsafe { (reduce_add(FULL_MASK, of_other), reduce_add(FULL_MASK, if lane < warp { of_other } else { 0 })) }
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
