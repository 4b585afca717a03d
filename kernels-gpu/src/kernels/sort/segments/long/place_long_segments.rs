//! Where the keys of each digit of a long segment go, and who sorts them there.
//!
//! ```text
//!   keys of each digit   │ 9 │ 700 │ 40 │ 3000 │ 800 │ 1100 │ 200 │ 70000 │ 5 │
//!   heavy                              │ 3000 │                  │ 70000 │
//!   listed               │ 9   700   40│ 3000 │ 800   1100 │ 200│ 70000 │ 5 │
//! ```
//!
//! A digit of more than 2048 keys is alone: one block sorts it, or it is a long segment of the next level. Others are
//! sorted together with their neighbours, up to [`MAX_BINNED`] keys: of the digits between two that are alone, those
//! that begin in the same window, which is shorter than a group by the keys of the longest one, as that may end behind
//! it.

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

/// Fewer digits say nothing of how evenly keys are divided by the next one.
const FEWEST_EVEN: u32 = 4;

/// Words of bits, one for each digit.
const HEAD_WORDS: u32 = DIGITS / 32;

shared_memory! {
    /// Shared memory of a block.
    struct Memory() {
        /// Which of the units that the threads look at are the first ones of segments.
        firsts: [u32; HEAD_WORDS],
        scan: [u32; BLOCK_WORDS],
        /// The most keys of a digit of each warp that is not alone. At a multiple of 16 bytes: the assembler reads so
        /// many at once, and no others then.
        most: [u32; HEAD_WORDS],
        /// How many digits of each warp have any keys, likewise.
        filled: [u32; HEAD_WORDS],
        /// Where each digit begins, and where the last one ends.
        begins: [u32; DIGITS + 1],
        /// Which digits are alone, or the first of those that are sorted together.
        heads: [u32; HEAD_WORDS],
        /// The digits that are long segments, how many these are, and the first of the units of each in the list.
        long: [u32; DIGITS],
        long_count: [u32; 1],
        first_units: [u32; DIGITS],
    }
}

/// Bytes of dynamic shared memory.
pub const fn shared_bytes() -> u32 {
    Memory::bytes()
}

/// Kernel: makes the counts of each part of each long segment of `level` where its keys of each digit begin; and lists
/// what is left to sort: middle segments in `middle`, and the units of long ones for the next level.
///
/// # Safety
/// What [`LongSegments`] says holds, after `count_long_segments` of the level, and what [`MiddleSegments`] says. Blocks
/// are of [`PLACE_THREADS`] threads, with [`shared_bytes`] of dynamic shared memory.
#[kernel(u32 = <u32, ()>, u64 = <u64, ()>, u32v4 = <u32, u32>, u32v8 = <u32, u64>)]
pub unsafe fn place_long_segments<B: Bits, V: Word>(long: LongSegments, middle: MiddleSegments, level: u32) {
    // SAFETY: the caller promises the workspace, the lists and the memory. Barriers come between writing and reading
    // it.
    let (workspace, middle, memory) = unsafe { (long.open::<B, V>(), middle.open(), Memory::at_start()) };
    let units = workspace.counters().get(level as usize);
    let (thread, blocks) = (thread::thread_idx_x(), thread::grid_dim_x());
    // Each thread looks at a unit, and those with which a segment begins are placed by the whole block, one after the
    // other.
    let mut first = thread::block_idx_x();
    while first < units {
        let own = first + thread * blocks;
        let is_first = own < units && workspace.unit(level, own).number == 0;
        // SAFETY: all lanes of the warp are here.
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
                // SAFETY: all threads of the block are here, as `left` is the same for all, and the memory but for
                // `firsts` is used by this alone.
                unsafe { place::<B, V>(workspace, middle, memory, unit, level) };
                thread::sync_threads();
            }
            // Not unrolled: the block places a segment in one place of the code.
            word = recomputed(word + 1);
        }
        thread::sync_threads();
        first += PLACE_THREADS * blocks;
    }
}

/// Places the segment that begins with `unit`.
///
/// # Safety
/// All threads of the block make this call, after a barrier, and nothing else uses the memory but for `firsts` until
/// the next one.
#[inline(always)]
#[track_caller]
unsafe fn place<B: Bits, V: Word>(workspace: Workspace<B, V>, middle: Lists, memory: Memory, unit: Unit, level: u32) {
    let digit = thread::thread_idx_x();
    let of_part = |part: u32| workspace.counts(level, unit.start, part).slice(digit as usize, 1);
    let mut count = 0;
    for_each_part(unit.parts::<B, V>(), of_part, |_, of_part| count += of_part);
    // SAFETY: all threads of the block are here, which are whole warps; barriers are around this use of `scan`.
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
    // SAFETY: all lanes of the warp are here.
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
    // Behind the last digit all keys are where they belong.
    if unit.digit.shift > 0 {
        // SAFETY: as above.
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
        // As many keys as twice the mean of the digits that there are: those of few digits may all be close together.
        let filled = sum(memory.filled);
        let even = if filled >= FEWEST_EVEN { 2 * ((unit.end - unit.start) / filled) } else { 0 };
        list_units(workspace, memory, unit.digit, even, level + 1);
    }
}

/// Counts of a thread that are on their way at once.
const BATCH: u32 = 8;

/// Calls `each` for the words of parts `0 .. parts`, in order, and what has been there.
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

/// The greatest of the warps' numbers.
#[inline(always)]
#[track_caller]
fn greatest(of_warps: Shared<u32>) -> u32 {
    let mut greatest = 0;
    for warp in 0..HEAD_WORDS {
        greatest = greatest.max(of_warps.get(warp));
    }
    greatest
}

/// The sum of the warps' numbers.
#[inline(always)]
#[track_caller]
fn sum(of_warps: Shared<u32>) -> u32 {
    let mut sum = 0;
    for warp in 0..HEAD_WORDS {
        sum += of_warps.get(warp);
    }
    sum
}

/// Where the digits begin and end of which `digit` is the first, and which are sorted together, if there are any.
///
/// # Safety
/// All threads of the block make this call, each with another digit, after a barrier behind which `begins` of the
/// memory have been set.
#[inline(always)]
#[track_caller]
unsafe fn group_of(digit: u32, start: u32, Memory { begins, heads, most, .. }: Memory) -> Option<(u32, u32)> {
    let window_keys = MAX_BINNED as u32 - greatest(most);
    // SAFETY: digits that are not alone have `MAX_LIGHT` keys at most, which are fewer. A division by 0 would bring in
    // the code of a panic.
    unsafe { core::hint::assert_unchecked(window_keys != 0) };
    let is_heavy = |digit: u32| begins.get(digit + 1) - begins.get(digit) > MAX_LIGHT as u32;
    let window = |digit: u32| (begins.get(digit) - start) / window_keys;
    let is_head = digit == 0 || is_heavy(digit) || is_heavy(digit - 1) || window(digit) != window(digit - 1);
    // SAFETY: all lanes of the warp are here.
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

/// Lists the units of the digits that are long segments of `level`, and sets their counts to 0. They are parts of a
/// segment that `divided` has been the digit of, which are even up to `even` keys. All threads of the block make this
/// call.
#[inline(always)]
#[track_caller]
fn list_units<B: Bits, V: Word>(workspace: Workspace<B, V>, memory: Memory, divided: Digit, even: u32, level: u32) {
    // A warp for each.
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
