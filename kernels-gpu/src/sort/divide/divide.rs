//! The last step of a division: keys go to the places of their digits.
//!
//! ```text
//!   tile       │ 3 1 0 3 2 0 1 3 │     the keys of each digit are counted, by atomic additions
//!   shared     │ 0 0 1 1 2 3 3 3 │     each key goes to a place of its digit, by another one
//!   to         … 0 0 … 1 1 … 2 … 3 3 3 …     neighbours go to neighbours, to room that a third one reserves
//! ```

use super::DIGITS_CAPACITY;
use super::digits::Digits;
use super::workspace::{Segment, Workspace};
use crate::block_scan::{BLOCK_WORDS, sum_before};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Keys of a thread that are on their way at once.
const BATCH: usize = 8;

/// Words of shared memory besides the tile: those of a scan, and two for each digit.
const WORDS: u32 = BLOCK_WORDS + 2 * DIGITS_CAPACITY;

/// Bytes of dynamic shared memory for tiles of that many keys.
pub const fn shared_bytes<B>(tile: usize) -> u32 {
    (tile * size_of::<B>()) as u32 + WORDS * size_of::<u32>() as u32
}

/// Kernel: moves the keys of each segment of `level` from `from` to `to`, to where `place_buckets` says.
///
/// # Safety
/// As for [`place_buckets`](super::place_buckets::place_buckets), which has been called before; `to` has capacity for `n` keys and
/// does not overlap `from`; blocks are of `NT` threads with [`shared_bytes`].
#[kernel(
    u32 = <u32, { ROW.divide_4.threads }, { ROW.divide_4.items_per_thread }, { ROW.buckets_4.threads * ROW.buckets_4.items_per_thread }> within (ROW.divide_4.threads, 3),
    u64 = <u64, { ROW.divide_8.threads }, { ROW.divide_8.items_per_thread }, { ROW.buckets_8.threads * ROW.buckets_8.items_per_thread }> within (ROW.divide_8.threads, 3),
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn divide<B: Bits, const NT: usize, const VT: usize, const BUCKET: usize>(
    from: *mut B,
    to: *mut B,
    n: usize,
    words: *mut u32,
    level: u32,
    levels: u32,
    always: B,
    when_negative: B,
    order: *mut u32,
) {
    // SAFETY: the caller's promise.
    let Some(workspace) = (unsafe { Workspace::if_divided(words, n, levels, (NT * VT, BUCKET), order) }) else {
        return;
    };
    let coding = Coding { always, when_negative };
    // SAFETY: the caller's promise.
    let (from, to) = unsafe { (GlobalMut::new(from, n), GlobalMut::new(to, n)) };
    // SAFETY: the caller's promise; barriers divide the accesses.
    let shared = unsafe { TileMemory::<B>::at_start(NT * VT) };
    let tiles = workspace.tiles(level);
    let mut t = thread::block_idx_x();
    while t < tiles {
        let Segment { start, len, first_tile, counters, digits, skipped, .. } =
            workspace.segment(workspace.segment_of_tile(t));
        if skipped {
            t += thread::grid_dim_x();
            continue;
        }
        let first = (t - first_tile) * (NT * VT) as u32;
        let count = (len - first).min((NT * VT) as u32);
        let source = from.slice((start + first) as usize, count as usize);
        let counters = workspace.counters(counters, digits.count());
        // SAFETY: all threads of the block are here.
        unsafe {
            if count == (NT * VT) as u32 {
                move_tile::<B, NT, VT, true>(source, to, digits, coding, counters, shared);
            } else {
                move_tile::<B, NT, VT, false>(source, to, digits, coding, counters, shared);
            }
        }
        t += thread::grid_dim_x();
        if t < tiles {
            thread::sync_threads();
        }
    }
}

/// Shared memory of a tile.
#[derive(Clone, Copy)]
struct TileMemory<B> {
    keys: Shared<B>,
    scan: Shared<u32>,
    /// For each digit how many keys have it, and then the slot of the first.
    begins: Shared<u32>,
    /// For each digit how far its slots are from where the keys go.
    distances: Shared<u32>,
}

impl<B: Bits> TileMemory<B> {
    /// # Safety
    /// The launch has [`shared_bytes`] for tiles of `slots` keys; barriers divide writing from reading.
    #[inline(always)]
    #[track_caller]
    unsafe fn at_start(slots: usize) -> Self {
        let bytes = (slots * size_of::<B>()) as u32;
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                keys: Shared::dynamic(0, slots as u32),
                scan: Shared::dynamic(bytes, BLOCK_WORDS),
                distances: Shared::dynamic(bytes + BLOCK_WORDS * 4, DIGITS_CAPACITY),
                begins: Shared::dynamic(bytes + (BLOCK_WORDS + DIGITS_CAPACITY) * 4, DIGITS_CAPACITY),
            }
        }
    }
}

/// Moves the keys of a tile, which is a full one if `FULL`.
///
/// # Safety
/// All threads of the block make this call.
#[inline(always)]
unsafe fn move_tile<B: Bits, const NT: usize, const VT: usize, const FULL: bool>(
    from: GlobalMut<B>,
    to: GlobalMut<B>,
    digits: Digits<B>,
    coding: Coding<B>,
    counters: GlobalMut<u32>,
    TileMemory { keys, scan, begins, distances }: TileMemory<B>,
) {
    let (thread, count) = (thread::thread_idx_x(), counters.len() as u32);
    let is_here = |i: usize| FULL || thread + ((i * NT) as u32) < from.len() as u32;
    let mut digit = thread;
    while digit < count {
        begins.set(digit, 0);
        digit += NT as u32;
    }
    let mut own = [B::MIN; VT];
    for i in 0..VT {
        if is_here(i) {
            own[i] = from.get(thread as usize + i * NT);
        }
    }
    thread::sync_threads();
    if coding != Coding::NONE {
        for key in &mut own {
            *key = coding.encode(*key);
        }
    }
    for i in 0..VT {
        if is_here(i) {
            begins.fetch_add(digits.of(own[i]), 1);
        }
    }
    thread::sync_threads();

    let (mut first, mut before) = (0, 0);
    while first < count {
        let digit = first + thread;
        let of_digit = if digit < count { begins.get(digit) } else { 0 };
        // SAFETY: the caller's promise.
        let (sum, all) = unsafe { sum_before(of_digit, scan) };
        if digit < count {
            let begin = before + sum;
            begins.set(digit, begin);
            if of_digit > 0 {
                distances.set(digit, counters.fetch_add(digit as usize, of_digit).wrapping_sub(begin));
            }
        }
        before += all;
        first += NT as u32;
        thread::sync_threads();
    }

    // In batches, each of loads and then of stores: the compiler does not change their order, and they take long to arrive.
    let digits = digits.again();
    for first in (0..VT).step_by(BATCH) {
        let rows = first..(first + BATCH).min(VT);
        let mut slots = [0; BATCH];
        for i in rows.clone() {
            slots[i - first] = if is_here(i) { begins.fetch_add(digits.of(own[i]), 1) } else { 0 };
        }
        for i in rows {
            if is_here(i) {
                keys.set(slots[i - first], own[i]);
            }
        }
    }
    thread::sync_threads();
    for i in 0..VT {
        if is_here(i) {
            own[i] = keys.get(thread + (i * NT) as u32);
        }
    }
    for first in (0..VT).step_by(BATCH) {
        let rows = first..(first + BATCH).min(VT);
        let mut places = [0; BATCH];
        for i in rows.clone() {
            let distance = if is_here(i) { distances.get(digits.of(own[i])) } else { 0 };
            places[i - first] = distance.wrapping_add(thread + (i * NT) as u32);
        }
        for i in rows {
            if is_here(i) {
                to.set(places[i - first] as usize, own[i]);
            }
        }
    }
}
