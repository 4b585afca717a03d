//! What is certain to be among the first k, and what may be, in the order in which it was.
//!
//! A warp has neighbouring keys, 32 of them in a row, so that votes tell where each key goes:
//!
//! ```text
//!   row 0    ░ ■ ░ ░ ■ ░ … ░      ■ less: 2       □ equal: 0
//!   row 1    ■ ░ □ ░ ░ ■ … □      ■ less: 2       □ equal: 2
//!            the third ■ of the warp goes behind two of the warp, those of the warps before, and those of the tiles before
//! ```

use super::{Digit, Progress};
use crate::block::shared_memory::shared_memory;
use crate::kernels::sort::elements::Elements;
use crate::key::{Bits, Coding};
use crate::warp::look_back::Tiles;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads of a block.
pub const THREADS: usize = 256;

/// Blocks of a multiprocessor: one less where keys and values have 8 bytes, for which registers would not do.
pub const BLOCKS: usize = 4;

/// Keys of a thread.
pub const KEYS_PER_THREAD: usize = 8;

/// Keys of a tile.
pub const TILE: usize = THREADS * KEYS_PER_THREAD;

const WARPS: usize = THREADS / WARP_SIZE as usize;

shared_memory! {
    struct Memory() {
        /// What the tiles before keep, of both kinds.
        before: [u64; 2],
        /// What each warp keeps, of both kinds.
        of_warps: [u32; 2 * WARPS],
        tile: [u32; 1],
    }
}

/// Bytes of dynamic shared memory.
pub const SHARED_BYTES: u32 = Memory::bytes();

/// Which of both collections it is.
pub const FIRST: u32 = 0;
/// The last one.
pub const LAST: u32 = 1;

/// Kernel: collects keys, with their values, or their indices if `from` has no values, or none if `V` is `()`.
///
/// If `collection` is [`FIRST`], and the candidates of the first digit fit: of all `n` keys, those with less bits go to the front of `out`, and those with the
/// same ones to `candidates`, as ordered bits. If it is [`LAST`]: of the candidates, or of all keys if there are none, those that are less than the k-th key go to
/// `out` behind what is there, and the first ones that equal it to the end of the `k` elements.
///
/// # Safety
/// `from` has `n` elements, `out` `k`, `candidates` as many as the capacity that [`choose_digit`](super::choose_digit::choose_digit) was told, whose `progress` is that of
/// the first digit, or of all. `tiles` and `ties` are each the [words](crate::warp::look_back::words) for `ceil(n / TILE)` tiles, which are 0. Blocks are of [`THREADS`]
/// threads, any number of them, with [`SHARED_BYTES`].
#[kernel(
    u32 = <u32, ()> within (THREADS, BLOCKS),
    u64 = <u64, ()> within (THREADS, BLOCKS),
    u32v4 = <u32, u32> within (THREADS, BLOCKS),
    u32v8 = <u32, u64> within (THREADS, BLOCKS),
    u64v4 = <u64, u32> within (THREADS, BLOCKS),
    u64v8 = <u64, u64> within (THREADS, BLOCKS - 1),
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn collect<B: Bits, V: Word>(
    from: Elements<B, V>,
    n: usize,
    candidates: Elements<B, V>,
    out: Elements<B, V>,
    k: usize,
    progress: *mut u64,
    tiles: *mut u64,
    ties: *mut u64,
    collection: u32,
    coding: Coding<B>,
) {
    // SAFETY: `progress` is only read here. The launch has `SHARED_BYTES`; barriers come between writes and reads.
    let (progress, memory) = unsafe { (Progress::new(progress), Memory::at_start()) };
    let (collected, is_last) = (progress.collected() as usize, collection == LAST);
    if !is_last && collected == 0 {
        return;
    }
    let is_from_candidates = is_last && collected > 0;
    let has_indices = !is_from_candidates && from.values.is_null();
    // SAFETY: there are so many elements, as the caller promises, which nothing writes during the launch.
    let (keys, values, coding_of_keys) = unsafe {
        if is_from_candidates {
            let values = Global::new(candidates.values.cast_const(), collected);
            (Global::new(candidates.keys.cast_const(), collected), values, Coding::NONE)
        } else {
            (Global::new(from.keys.cast_const(), n), Global::new(from.values.cast_const(), n), coding)
        }
    };
    let len = keys.len();
    // SAFETY: the words are those of as many tiles at least; `out` and `candidates` have so many elements. What is collected goes to places that no other
    // thread has: the look-back counts it.
    let (tiles, ties, out_keys, out_values, to_keys, to_values) = unsafe {
        (
            Tiles::new(tiles, n.div_ceil(TILE)),
            Tiles::new(ties, n.div_ceil(TILE)),
            GlobalMut::new(out.keys, k),
            GlobalMut::new(out.values, k),
            GlobalMut::new(candidates.keys, collected),
            GlobalMut::new(candidates.values, collected),
        )
    };
    let digit = if is_last { Digit { shift: 0, bits: 0 } } else { Digit::of(size_of::<B>(), 0) };
    let prefix = progress.prefix();
    let out_begin = if is_last { progress.before_collected() as usize } else { 0 };
    // The first ties are the last of the k elements.
    let ties_wanted = if is_last { progress.rank() as usize } else { collected };
    let ties_begin = if is_last { k - ties_wanted } else { 0 };
    let (thread, lane) = (thread::thread_idx_x(), warp::lane_id());
    let warp = thread / WARP_SIZE;
    loop {
        if thread == 0 {
            memory.tile.set(0, tiles.take());
        }
        thread::sync_threads();
        let tile = memory.tile.get(0);
        if tile as usize >= len.div_ceil(TILE) {
            return;
        }
        let first = tile as usize * TILE + (warp * WARP_SIZE) as usize * KEYS_PER_THREAD + lane as usize;
        let mut found = [B::MIN; KEYS_PER_THREAD];
        for i in 0..KEYS_PER_THREAD {
            let at = first + i * WARP_SIZE as usize;
            if at < len {
                found[i] = keys.get(at);
            }
        }
        let (mut less, mut equal) = ([0; KEYS_PER_THREAD], [0; KEYS_PER_THREAD]);
        let (mut less_of_warp, mut equal_of_warp) = (0, 0);
        for i in 0..KEYS_PER_THREAD {
            found[i] = coding_of_keys.encode(found[i]);
            let (is_key, begin) = (first + i * (WARP_SIZE as usize) < len, digit.prefix(found[i]));
            // SAFETY: `FULL_MASK` names the warp's 32 lanes, which are all here: the tile is that of the block.
            unsafe {
                less[i] = warp::ballot(FULL_MASK, is_key && begin < prefix);
                equal[i] = warp::ballot(FULL_MASK, is_key && begin == prefix);
            }
            less_of_warp += less[i].count_ones();
            equal_of_warp += equal[i].count_ones();
        }
        if lane == 0 {
            memory.of_warps.set(2 * warp, less_of_warp);
            memory.of_warps.set(2 * warp + 1, equal_of_warp);
        }
        thread::sync_threads();
        let (mut own, mut of_tile) = ([0; 2], [0; 2]);
        for other in 0..WARPS as u32 {
            for kind in 0..2 {
                let count = memory.of_warps.get(2 * other + kind);
                own[kind as usize] += if other < warp { count } else { 0 };
                of_tile[kind as usize] += count;
            }
        }
        if thread == 0 {
            tiles.publish(tile, of_tile[0]);
            ties.publish(tile, of_tile[1]);
        }
        if warp < 2 {
            let (of_kind, sum) = if warp == 0 { (tiles, of_tile[0]) } else { (ties, of_tile[1]) };
            // SAFETY: the whole warp is here, with the block's tile.
            let before = unsafe { of_kind.sum_before(tile, sum) };
            if lane == 0 {
                memory.before.set(warp, before);
            }
        }
        thread::sync_threads();
        let less_begin = out_begin + memory.before.get(0) as usize + own[0] as usize;
        let ties_before = memory.before.get(1) as usize + own[1] as usize;
        let (mut less_of_rows, mut equal_of_rows) = (0, 0);
        let below = (1 << lane) - 1;
        for i in 0..KEYS_PER_THREAD {
            let at = first + i * WARP_SIZE as usize;
            let (is_less, is_equal) = (less[i] >> lane & 1 != 0, equal[i] >> lane & 1 != 0);
            let tie = ties_before + (equal_of_rows + (equal[i] & below).count_ones()) as usize;
            let (is_tie, goes_out) = (is_equal && tie < ties_wanted, is_less || is_last);
            if is_less || is_tie {
                let to = if is_less {
                    less_begin + (less_of_rows + (less[i] & below).count_ones()) as usize
                } else {
                    ties_begin + tie
                };
                let (keys, values_to) = if goes_out { (out_keys, out_values) } else { (to_keys, to_values) };
                keys.set(to, if goes_out { coding.decode(found[i]) } else { found[i] });
                if const { size_of::<V>() > 0 } {
                    values_to.set(to, if has_indices { V::from_register(at as u64) } else { values.get(at) });
                }
            }
            less_of_rows += less[i].count_ones();
            equal_of_rows += equal[i].count_ones();
        }
        // Words of shared memory are written again by the next tile.
        thread::sync_threads();
    }
}
