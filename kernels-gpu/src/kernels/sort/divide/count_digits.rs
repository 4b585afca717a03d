//! The second step of a division: the histogram of the digits of each segment.

use super::DIGITS_CAPACITY;
use super::digits::{Curve, Digits, LINEAR};
use super::offsets::Offsets;
use super::workspace::{Job, Plan, Segment, Workspace};
use crate::block::clear;
use crate::block::counters::Counters;
use crate::block::shared_memory::shared_memory;
use crate::kernels::sort::for_each_batch;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;

/// Counters of each digit.
pub(super) const COPIES: u32 = 2;

shared_memory! {
    /// Shared memory of a block that counts.
    struct Memory() {
        counters: [u32; COPIES * DIGITS_CAPACITY],
        /// Number of keys of each digit that had been counted before a tile.
        before: [u32; DIGITS_CAPACITY],
    }
}

/// Bytes of dynamic shared memory.
pub const COUNT_SHARED_BYTES: u32 = Memory::bytes();

/// Threads of a block.
pub const COUNT_THREADS: usize = 512;

/// Blocks of a multiprocessor, for keys of `bytes` bytes: limited by registers.
pub const fn count_blocks(bytes: usize) -> usize {
    if bytes == 4 { 4 } else { 3 }
}

/// Kernel: counts the keys of each digit in each segment of `level`. Keys without values are counted by segment: a
/// block takes a share of the level's parts, and adds its counts to the segment's where a segment ends. Keys with
/// values are counted by part and by tile. Levels that [`count_twice`](super::count_twice::count_twice) has counted are
/// skipped.
///
/// # Safety
/// The requirements of [`choose_digits`](super::choose_digits::choose_digits) hold, and that kernel has run before.
/// Blocks have `NT` threads with [`COUNT_SHARED_BYTES`].
#[kernel(
    u32 = <u32, COUNT_THREADS> within (COUNT_THREADS, count_blocks(4)),
    u64 = <u64, COUNT_THREADS> within (COUNT_THREADS, count_blocks(8)),
)]
pub unsafe fn count_digits<B: Bits, const NT: usize>(job: Job, keys: *mut B, level: u32, coding: Coding<B>) {
    // SAFETY: the lists have `job.at.words` words, as `Job` says, and only these kernels write them.
    let workspace = unsafe { Workspace::new(&job) };
    let plan = job.plan;
    if level < 2 && workspace.is_counted_twice() {
        return;
    }
    // SAFETY: `keys` has `plan.n` keys, which this launch only reads. Segments lie within these.
    let keys = unsafe { GlobalMut::new(keys, plan.n as usize) };
    // SAFETY: the launch has `COUNT_SHARED_BYTES`. Barriers come between clearing, adding to and reading counts.
    // Another one comes after `before` is cleared. Then the words of digits `2 * word` and `2 * word + 1` are used by
    // one thread only, the same for all tiles.
    let Memory { counters, before } = unsafe { Memory::at_start() };
    let counts = Counters::<COPIES>(counters);
    let parts = workspace.parts(level);
    if plan.in_order != 0 {
        let mut part = thread::block_idx_x();
        while part < parts {
            let i = workspace.segment_of_part(part);
            let segment: Segment<B> = workspace.segment(i);
            let keys = keys.slice(segment.start as usize, segment.len as usize);
            let of_segment = part - segment.first_part;
            count_part::<B, NT>(
                keys,
                &plan,
                of_segment,
                segment.digits,
                coding,
                (counts, before),
                workspace.offsets(plan, i),
            );
            part += thread::grid_dim_x();
        }
        return;
    }
    let share = parts.div_ceil(thread::grid_dim_x());
    let (mut part, end) = (thread::block_idx_x() * share, ((thread::block_idx_x() + 1) * share).min(parts));
    while part < end {
        let i = workspace.segment_of_part(part);
        let Segment::<B> { start, len, first_part, digits, .. } = workspace.segment(i);
        // The keys of this block's parts of the segment.
        let parts_end = end.min(first_part + plan.parts(len));
        let first = (part - first_part) * plan.part();
        let share_len = (len - first).min((parts_end - part) * plan.part());
        counts.clear::<NT>(digits.count);
        thread::sync_threads();
        count::<B, NT, false>(keys.slice((start + first) as usize, share_len as usize), digits, coding, counts);
        thread::sync_threads();
        counts.add_to::<NT>(workspace.offsets(plan, i).begins());
        thread::sync_threads();
        part = parts_end;
    }
}

/// Counts the keys of part `part` of a segment.
#[inline(always)]
#[track_caller]
fn count_part<B: Bits, const NT: usize>(
    keys: GlobalMut<B>,
    &Plan { tile, tiles, .. }: &Plan,
    part: u32,
    digits: Digits<B>,
    coding: Coding<B>,
    (counts, before): (Counters<COPIES>, Shared<u32>),
    offsets: Offsets,
) {
    let (thread, threads, len) = (thread::thread_idx_x(), const { NT as u32 }, keys.len() as u32);
    // There may be room for one digit more, as the counts of two digits share a word.
    let room = digits.count.next_multiple_of(2);
    counts.clear::<NT>(room);
    clear::<NT>(before, room);
    thread::sync_threads();
    let (mut i, end) = (part * tiles, ((part + 1) * tiles).min(len.div_ceil(tile)));
    while i < end {
        let begin = i * tile;
        count::<B, NT, false>(keys.slice(begin as usize, (len - begin).min(tile) as usize), digits, coding, counts);
        thread::sync_threads();
        if tiles > 1 {
            let (of_tile, mut word) = (offsets.of_tile(i), thread);
            while word < of_tile.len() as u32 {
                let [lower, upper] = [2 * word, 2 * word + 1].map(|digit| {
                    let (now, then) = (counts.of(digit), before.get(digit));
                    before.set(digit, now);
                    now - then
                });
                of_tile.set(word as usize, lower | upper << 16);
                word += threads;
            }
            thread::sync_threads();
        }
        i += 1;
    }
    let mut digit = thread;
    while digit < digits.count {
        offsets.of_parts(digit).set(part as usize, counts.of(digit));
        digit += threads;
    }
    thread::sync_threads();
}

/// Counts the keys of each digit. Keys that are divided `ONCE` are never divided along a logarithm.
#[inline(always)]
#[track_caller]
pub(super) fn count<B: Bits, const NT: usize, const ONCE: bool>(
    keys: GlobalMut<B>,
    digits: Digits<B>,
    coding: Coding<B>,
    counts: Counters<COPIES>,
) {
    // A loop for each curve: one loop for all curves takes more registers.
    match digits.curve {
        Curve::Distance => count_by::<B, NT, 8>(keys, |key| digits.of::<LINEAR>(coding.encode(key), coding), counts),
        Curve::Value => count_by::<B, NT, 4>(keys, |key| digits.of_value(coding.encode(key), coding), counts),
        _ if ONCE => (),
        Curve::Logarithm => count_by::<B, NT, 4>(keys, |key| digits.of_logarithm(coding.encode(key), false), counts),
        Curve::Mirrored => count_by::<B, NT, 4>(keys, |key| digits.of_logarithm(coding.encode(key), true), counts),
    }
}

/// Counts the keys of each `digit`: `BATCH` of the thread's keys at a time, then fewer, and then the rest one by one.
#[inline(always)]
#[track_caller]
fn count_by<B: Bits, const NT: usize, const BATCH: usize>(
    keys: GlobalMut<B>,
    digit: impl Fn(B) -> u32,
    counts: Counters<COPIES>,
) {
    let add = |key: B| counts.add(digit(key));
    let at = for_each_batch::<B, NT, BATCH>(keys, thread::thread_idx_x(), add);
    let at = if BATCH > 4 { for_each_batch::<B, NT, 4>(keys, at, add) } else { at };
    for_each_batch::<B, NT, 1>(keys, at, add);
}
