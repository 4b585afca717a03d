//! The places of the keys of each digit of a long segment, and the list of work that the division leaves.
//!
//! ```text
//!   keys of each digit   │ 9 │ 700 │ 40 │ 3000 │ 800 │ 1100 │ 200 │ 70000 │ 5 │
//!   heavy                              │ 3000 │                  │ 70000 │
//!   listed               │ 9   700   40│ 3000 │ 800   1100 │ 200│ 70000 │ 5 │
//! ```
//!
//! A digit of more than 2048 keys is heavy: one block sorts it alone, or it is a long segment of the next level. Other
//! digits are grouped with their neighbours, up to [`MAX_BINNED`] keys. A group holds the digits, between two heavy
//! ones, that begin in the same window. The window is shorter than a group by the keys of the longest light digit,
//! since that digit may end behind the window.

use super::{Digit, LongSegments, Unit, Workspace};
use crate::block::scan::{BLOCK_WORDS, sum_before};
use crate::block::shared_memory::shared_memory;
use crate::elements::has_values;
use crate::kernels::sort::segments::middle::{Lists, MAX_BINNED, MAX_LIGHT, MiddleSegments};
use crate::kernels::sort::tile_in_order::DIGITS;
use crate::key::Bits;
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot, reduce_max};

/// Threads of a block: one for each digit.
pub const PLACE_THREADS: u32 = DIGITS;

/// With fewer digits than this, their lengths do not tell how evenly the next digit divides.
const FEWEST_EVEN: u32 = 4;

/// Words of bits, one bit for each digit.
const HEAD_WORDS: u32 = DIGITS / 32;

shared_memory! {
    /// Shared memory of a block.
    struct Memory() {
        /// Bits of the threads whose unit is the first of its segment.
        firsts: [u32; HEAD_WORDS],
        scan: [u32; BLOCK_WORDS],
        /// Length of the longest light digit of each warp. At a multiple of 16 bytes: the assembler then reads 16 bytes
        /// at once, and nothing else with them.
        most: [u32; HEAD_WORDS],
        /// Number of digits with keys in each warp, aligned likewise.
        filled: [u32; HEAD_WORDS],
        /// Index of the first key of each digit, and the end of the last digit.
        begins: [u32; DIGITS + 1],
        /// Bits of the digits that are heavy or the first of a group.
        heads: [u32; HEAD_WORDS],
        /// The digits that are long segments, their number, and the first unit of each in the list.
        long: [u32; DIGITS],
        long_count: [u32; 1],
        first_units: [u32; DIGITS],
    }
}

/// Bytes of dynamic shared memory.
pub const fn shared_bytes() -> u32 {
    Memory::bytes()
}

/// Kernel: turns the counts of each part of each long segment of `level` into the places of its keys of each digit. It
/// lists the middle segments in `middle`, and the units of long segments for the next level.
///
/// # Safety
/// The requirements of [`LongSegments`] and of [`MiddleSegments`] hold, and `count_long_segments` has run for the
/// level. Blocks have [`PLACE_THREADS`] threads with [`shared_bytes`] of dynamic shared memory.
#[kernel(u32 = <u32, ()>, u64 = <u64, ()>, u32v4 = <u32, u32>, u32v8 = <u32, u64>)]
pub unsafe fn place_long_segments<B: Bits, V: Word>(long: LongSegments, middle: MiddleSegments, level: u32) {
    // SAFETY: the requirements of `LongSegments` and of `MiddleSegments` are this kernel's own. The launch has
    // `shared_bytes`. Barriers come between writing and reading.
    let (workspace, middle, memory) = unsafe { (long.open::<B, V>(), middle.open(), Memory::at_start()) };
    let units = workspace.counters().get(level as usize);
    let (thread, blocks) = (thread::thread_idx_x(), thread::grid_dim_x());
    // Each thread looks at one unit. The whole block then places the segments that begin with such a unit, one after
    // another.
    let mut first = thread::block_idx_x();
    while first < units {
        let own = first + thread * blocks;
        let is_first = own < units && workspace.unit(level, own).number == 0;
        // SAFETY: `first` is the same for all threads, so that the 32 lanes of the warp make the call.
        let of_warp = unsafe { ballot(FULL_MASK, is_first) };
        if thread.is_multiple_of(WARP_SIZE) {
            memory.firsts.set(thread / WARP_SIZE, of_warp);
        }
        thread::sync_threads();
        let mut word = 0;
        while word < HEAD_WORDS {
            let mut left = memory.firsts.get(word);
            while left != 0 {
                let unit = workspace.unit(level, first + (word * WARP_SIZE + left.trailing_zeros()) * blocks);
                left &= left - 1;
                // SAFETY: `left` is the same for all threads, so that all `PLACE_THREADS` threads of the block make the
                // call. Only `place` uses the memory, except `firsts`.
                unsafe { place::<B, V>(workspace, middle, memory, unit, level) };
                thread::sync_threads();
            }
            // Not unrolled: the code of `place` appears once.
            word = recomputed(word + 1);
        }
        thread::sync_threads();
        first += PLACE_THREADS * blocks;
    }
}

/// Places the segment that begins with `unit`.
///
/// # Safety
/// All threads of the block make this call, after a barrier. Nothing else uses the memory, except `firsts`, until the
/// next barrier.
#[inline(always)]
#[track_caller]
unsafe fn place<B: Bits, V: Word>(workspace: Workspace<B, V>, middle: Lists, memory: Memory, unit: Unit, level: u32) {
    let digit = thread::thread_idx_x();
    let of_part = |part: u32| workspace.counts(level, unit.start, part).slice(digit as usize, 1);
    let mut count = 0;
    for_each_part(unit.parts::<B, V>(), of_part, |_, of_part| count += of_part);
    // SAFETY: no branch surrounds the call, so that all threads of the block, whole warps, make it. Barriers come
    // before and after this use of `scan`.
    let (before, _) = unsafe { sum_before(count, memory.scan) };
    let begin = unit.start + before;
    if has_values::<V>() {
        let mut next = begin;
        for_each_part(unit.parts::<B, V>(), of_part, |counts, of_part| {
            counts.set(0, next);
            next += of_part;
        });
    } else {
        of_part(0).set(0, begin);
    }
    memory.begins.set(digit, begin);
    let light = if count <= MAX_LIGHT as u32 { count } else { 0 };
    // SAFETY: no branch surrounds the calls, so that the 32 lanes of the warp make both.
    let (most, filled) = unsafe { (reduce_max(FULL_MASK, light), ballot(FULL_MASK, count > 0)) };
    if digit.is_multiple_of(WARP_SIZE) {
        memory.most.set(digit / WARP_SIZE, most);
        memory.filled.set(digit / WARP_SIZE, filled.count_ones());
    }
    if digit == 0 {
        memory.begins.set(DIGITS, unit.end);
        memory.long_count.set(0, 0);
    }
    thread::sync_threads();
    // After the last digit, all keys are in their place.
    if unit.digit.shift > 0 {
        // SAFETY: `unit` is the same for all threads, so that all of the block make the call, each with its own digit.
        // The barrier comes after `begins` has been set.
        let group = unsafe { group_of(digit, unit.start, memory) };
        if let Some((begin, end)) = group {
            if middle.takes((end - begin) as usize) {
                middle.append(begin as usize, (end - begin) as usize, level + 1);
            } else {
                let at = memory.long_count.fetch_add(0, 1);
                let count = Unit::count::<B, V>(end - begin);
                memory.long.set(at, digit);
                memory.first_units.set(at, workspace.counters().fetch_add(level as usize + 1, count));
            }
        }
        thread::sync_threads();
        // A segment is even up to twice the mean length of the digits that have keys. A few digits tell nothing, since
        // their keys may be close together.
        let filled = sum(memory.filled);
        let even = if filled >= FEWEST_EVEN { 2 * ((unit.end - unit.start) / filled) } else { 0 };
        list_units(workspace, memory, unit.digit, even, level + 1);
    }
}

/// Counts that a thread loads at once.
const BATCH: u32 = 8;

/// Calls `each` for the words of parts `0 .. parts`, in order, with the words' old values.
#[inline(always)]
#[track_caller]
fn for_each_part(parts: u32, word: impl Fn(u32) -> GlobalMut<u32>, mut each: impl FnMut(GlobalMut<u32>, u32)) {
    let mut first = 0;
    while first < parts {
        let mut counts = [0; BATCH as usize];
        for i in 0..BATCH.min(parts) {
            if first + i < parts {
                counts[i as usize] = word(first + i).get(0);
            }
        }
        for i in 0..BATCH.min(parts) {
            if first + i < parts {
                each(word(first + i), counts[i as usize]);
            }
        }
        first += BATCH;
    }
}

/// Maximum of the warps' numbers.
#[inline(always)]
#[track_caller]
fn greatest(of_warps: Shared<u32>) -> u32 {
    let mut greatest = 0;
    for warp in 0..HEAD_WORDS {
        greatest = greatest.max(of_warps.get(warp));
    }
    greatest
}

/// Sum of the warps' numbers.
#[inline(always)]
#[track_caller]
fn sum(of_warps: Shared<u32>) -> u32 {
    let mut sum = 0;
    for warp in 0..HEAD_WORDS {
        sum += of_warps.get(warp);
    }
    sum
}

/// Start and end of the group that begins with `digit`, if one does and has keys.
///
/// # Safety
/// All threads of the block make this call, each with its own digit, after a barrier behind the writes of `begins`.
#[inline(always)]
#[track_caller]
unsafe fn group_of(digit: u32, start: u32, Memory { begins, heads, most, .. }: Memory) -> Option<(u32, u32)> {
    let window_keys = MAX_BINNED as u32 - greatest(most);
    // SAFETY: `greatest(most)` is at most `MAX_LIGHT` = 2048, which is less than `MAX_BINNED`, so that the difference
    // is not 0. The assumption removes the code of a panic for a division by 0.
    unsafe { core::hint::assert_unchecked(window_keys != 0) };
    let is_heavy = |digit: u32| begins.get(digit + 1) - begins.get(digit) > MAX_LIGHT as u32;
    let window = |digit: u32| (begins.get(digit) - start) / window_keys;
    let is_head = digit == 0 || is_heavy(digit) || is_heavy(digit - 1) || window(digit) != window(digit - 1);
    // SAFETY: no branch surrounds the call, so that the 32 lanes of the warp make it.
    let of_warp = unsafe { ballot(FULL_MASK, is_head) };
    if digit.is_multiple_of(WARP_SIZE) {
        heads.set(digit / WARP_SIZE, of_warp);
    }
    thread::sync_threads();
    if !is_head {
        return None;
    }
    // The next head, or the end.
    let mut word = digit / WARP_SIZE;
    let mut left = heads.get(word) & !(u32::MAX >> (WARP_SIZE - 1 - digit % WARP_SIZE));
    while left == 0 && word + 1 < HEAD_WORDS {
        word += 1;
        left = heads.get(word);
    }
    let next = if left == 0 { DIGITS } else { word * WARP_SIZE + left.trailing_zeros() };
    let (begin, end) = (begins.get(digit), begins.get(next));
    if begin < end { Some((begin, end)) } else { None }
}

/// Lists the units of the digits that are long segments of `level`, and clears their counts. `divided` is the digit
/// that separated these segments. Segments of up to `even` keys are even. All threads of the block make this call.
#[inline(always)]
#[track_caller]
fn list_units<B: Bits, V: Word>(workspace: Workspace<B, V>, memory: Memory, divided: Digit, even: u32, level: u32) {
    // A warp takes each long segment.
    let (lane, mut at) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
    while at < memory.long_count.get(0) {
        let digit = memory.long.get(at);
        let (start, end) = (memory.begins.get(digit), memory.begins.get(digit + 1));
        let (first, count) = (memory.first_units.get(at), Unit::count::<B, V>(end - start));
        let divides = divided.next::<B>(end - start, level, end - start <= even);
        let unit = |number| Unit { start, end, number, digit: divides };
        let mut number = lane;
        while number < count {
            workspace.set_unit(level, first + number, unit(number));
            number += WARP_SIZE;
        }
        for part in 0..unit(0).parts::<B, V>() {
            workspace.clear_counts(level, (start, part), lane, WARP_SIZE);
        }
        at += const { PLACE_THREADS / WARP_SIZE };
    }
}
