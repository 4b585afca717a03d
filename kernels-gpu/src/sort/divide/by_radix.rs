//! Dividing keys with values by all of their bits: what uneven ones take.
//!
//! ```text
//!   division   bits of a key
//!     first    │        │        │        │ ██████ │
//!     second   │        │        │ ██████ │        │     each division keeps the order of the one before, so that
//!     third    │        │ ██████ │        │        │     after the last one keys are in order by all bits
//!     last     │ ██████ │        │        │        │
//! ```
//!
//! That takes the same time for any keys, and there are no buckets to sort in the end. It is a sort of its own, which may run beside the
//! divisions that follow the keys' values: of both one has something to do. `count_digits` and `place_parts` are those of these, and so are the
//! words of the lists, but for those that say what there is to do: these divisions have the last levels.

use super::MOST_LEVELS;
use super::choose_digits::note_parts;
use super::digits::{Digits, RADIX, RADIX_LEVELS};
use super::divide_with_values::{TileMemory, move_tile};
use super::place_buckets::{PLACE_THREADS, own_digits_capacity, place_digits};
use super::tiles::Tile;
use super::workspace::{Elements, Job, Segment, Workspace};
use crate::block_scan::BLOCK_WORDS;
use crate::key::{Bits, Coding};
use crate::sort::detect_runs::Detection;
use crate::tuning::ROW;
use cuda_std::prelude::*;
use cuda_std::recomputed;

/// Threads of a block of [`begin_radix`] and [`place_radix`].
pub const RADIX_THREADS: u32 = PLACE_THREADS;

/// The level of the first division by bits of a key. That of the last one is the last there is.
pub const FIRST_RADIX: u32 = LAST_RADIX + 1 - RADIX_LEVELS;
const LAST_RADIX: u32 = MOST_LEVELS as u32 - 1;

/// The digits of such a level.
#[inline(always)]
fn digits_of_level<B: Bits>(level: u32) -> Digits<B> {
    const { assert!(FIRST_RADIX.is_multiple_of(RADIX_LEVELS), "the remainder is which one of these levels it is") };
    Digits::radix(level % RADIX_LEVELS)
}

/// Bytes of dynamic shared memory of [`place_radix`].
pub const RADIX_SHARED_BYTES: u32 = BLOCK_WORDS * size_of::<u32>() as u32;

/// Makes all keys the one segment of `level`. One thread does. Its counters are the words of the level before; they need not be 0, since each
/// part sets its own, and those of the digits are sums of these.
#[inline(always)]
#[track_caller]
fn begin_level<B: Bits>(job: Job, workspace: Workspace, level: u32) {
    let (digits, len) = (digits_of_level::<B>(level), job.plan.n);
    let counters = workspace.add_counters(level, job.plan.counters(len, digits.count));
    workspace.begin_level(level, job.plan.parts(len));
    workspace.set_segment(0, Segment { start: 0, len, first_part: 0, counters, exact: false, skipped: false, digits });
}

/// Kernel: begins [the first](FIRST_RADIX) of these divisions, unless keys are in order or divided otherwise, and notes that they are divided.
///
/// # Safety
/// What [`Job`] says holds, with the plan of these divisions and the words in which those by value are listed. `choose_digits` has been
/// called with these. There is one block, of [`RADIX_THREADS`].
#[kernel(u32 = <u32>)]
pub unsafe fn begin_radix<B: Bits>(job: Job) {
    // SAFETY: the caller's promise.
    let (workspace, detection) = unsafe { (Workspace::new(&job), Detection::new(job.order)) };
    let is_done = detection.is_done();
    thread::sync_threads();
    if is_done {
        return;
    }
    if thread::thread_idx_x() == 0 {
        detection.divide();
        begin_level::<B>(job, workspace, FIRST_RADIX);
    }
    note_parts(workspace, 0, 0, job.plan.parts(job.plan.n));
}

/// Kernel: makes the counters of `level` the indices at which the keys of each digit begin, and begins the next level.
///
/// # Safety
/// As for [`begin_radix`]; [`place_parts`](super::place_parts::place_parts) has been called before, and the block has [`RADIX_SHARED_BYTES`].
#[kernel(u32 = <u32>)]
pub unsafe fn place_radix<B: Bits>(job: Job, level: u32) {
    // SAFETY: the caller's promise.
    let workspace = unsafe { Workspace::new(&job) };
    if workspace.segments(level) == 0 {
        return;
    }
    // SAFETY: the caller's promise; barriers divide the accesses.
    let scan = unsafe { Shared::<u32>::dynamic(0, BLOCK_WORDS) };
    let begins = workspace.offsets(job.plan, 0).begins();
    // SAFETY: all threads of the block are here.
    unsafe {
        place_digits::<{ RADIX_THREADS as usize }, { own_digits_capacity(RADIX_THREADS as usize) }>(
            begins,
            scan,
            |digit, begin, _| begins.set(digit as usize, begin),
        );
    }
    thread::sync_threads();
    if level < LAST_RADIX && thread::thread_idx_x() == 0 {
        begin_level::<B>(job, workspace, level + 1);
    }
}

/// Kernel: the last step of `level`, as [`divide_with_values`](super::divide_with_values::divide_with_values). The last level stores keys as
/// `decoding` decodes them.
///
/// # Safety
/// As for `divide_with_values`, with any number of blocks, after [`place_radix`].
#[kernel(
    u32v4 = <u32, u32, { ROW.divide_4v4.threads }, { ROW.divide_4v4.items_per_thread }> within (ROW.divide_4v4.threads, ROW.divide_4v4.blocks),
    u32v8 = <u32, u64, { ROW.divide_4v8.threads }, { ROW.divide_4v8.items_per_thread }> within (ROW.divide_4v8.threads, ROW.divide_4v8.blocks),
)]
pub unsafe fn divide_by_radix<B: Bits, V: Word, const NT: usize, const VT: usize>(
    job: Job,
    from: Elements<B, V>,
    to: Elements<B, V>,
    level: u32,
    coding: Coding<B>,
    decoding: Coding<B>,
    indexes: u32,
) {
    // SAFETY: the caller's promise.
    let (workspace, from, to) = unsafe { (Workspace::new(&job), from.arrays(job.plan.n), to.arrays(job.plan.n)) };
    if workspace.segments(level) == 0 {
        return;
    }
    // SAFETY: the caller's promise; barriers divide the accesses.
    let memory = unsafe { TileMemory::<B, V>::at_start::<NT, VT>() };
    let makes_indices = level == FIRST_RADIX && indexes != 0;
    let codings = [coding, if level == LAST_RADIX { decoding } else { Coding::NONE }];
    // The words of the segment are of the next level by now.
    let digits = || digits_of_level(recomputed(level));
    let mut number = thread::block_idx_x();
    while let Some(tile) = Tile::of_all(job.plan, workspace, number) {
        // SAFETY: all threads of the block are here.
        unsafe {
            if tile.len == (NT * VT) as u32 {
                move_tile::<B, V, NT, VT, true, RADIX>(tile, digits, from, makes_indices, codings, memory, to);
            } else {
                move_tile::<B, V, NT, VT, false, RADIX>(tile, digits, from, makes_indices, codings, memory, to);
            }
        }
        thread::sync_threads();
        number += thread::grid_dim_x();
    }
}
