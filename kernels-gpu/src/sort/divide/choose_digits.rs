//! The first step of a division: by which digits keys are divided, from a sample of them.

use super::digits::Digits;
use super::workspace::{Pending, Segment, Workspace};
use super::{BUCKET_PERCENT, MOST_DIGITS, keys_per_counter};
use crate::block_scan::{BLOCK_WORDS, block_range, sum_before};
use crate::key::{Bits, Coding};
use crate::sort::detect_runs::Detection;
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Threads of a block.
pub const CHOOSE_THREADS: u32 = 256;

/// Keys that a thread samples of each segment.
const SAMPLED: u32 = 8;

/// Intervals in which sampled keys are counted.
const INTERVALS: u32 = 32;

/// How often it is looked whether keys are spread evenly, each time at those of the fullest interval.
const DEPTH: u32 = 3;

/// Bytes of dynamic shared memory.
pub const CHOOSE_SHARED_BYTES: u32 = (BLOCK_WORDS + 2 * INTERVALS) * size_of::<u32>() as u32;

/// A number that looks random, another one for each `i`.
#[inline(always)]
fn scrambled(seed: u32, i: u32) -> u32 {
    let mut x = (i ^ seed).wrapping_mul(0x9e37_79b9);
    x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

/// Sampled keys of an interval, on average.
const MEAN: u32 = SAMPLED * CHOOSE_THREADS / INTERVALS;

/// Whether the fullest of the intervals of `sampled` keys has no more of them than one has by chance.
#[inline(always)]
fn is_even(fullest: u32, sampled: u32) -> bool {
    let mean = sampled / INTERVALS;
    // Twelve is four and a half deviations for a mean of 7.
    fullest <= mean + mean / 2 + 12
}

/// How many digits to divide `len` keys by, of which the fullest of [`INTERVALS`] intervals of a sample has `fullest`.
///
/// Enough for buckets of `bucket_target` keys; or the root of that, for two divisions.
#[inline(always)]
fn digits_for(len: u32, fullest: u32, bucket_target: u32, single: u32, most: u32) -> u32 {
    // Where intervals differ by more than they do by chance, the fullest one counts.
    let unevenness = if is_even(fullest, SAMPLED * CHOOSE_THREADS) { 1 } else { fullest.div_ceil(MEAN) + 1 };
    let wanted = len.div_ceil(bucket_target).saturating_mul(unevenness);
    if wanted <= single {
        return wanted.clamp(2, most);
    }
    // Newton's method, from above.
    let mut root = 1 << (32 - wanted.leading_zeros()).div_ceil(2);
    for _ in 0..4 {
        root = (root + wanted / root).div_ceil(2);
    }
    root.min(most)
}

/// Kernel: chooses the digits of each segment of `level`, and sets its counters to 0. The first level is one segment, all `n`
/// keys. Positions of the sample are drawn by `random`, any number. Up to `single` digits, one division is to be enough.
///
/// At the first level it is decided whether keys are divided at all, and noted in the words at `order`: if the sample is spread
/// evenly, or the part of it that is in one interval, unless most keys are in ascending or descending runs, which merges are
/// faster with; or in any case if `always_divides` is not 0. `detects` is 0 if `detect_runs` has not been called before, and then the
/// words are 0.
///
/// # Safety
/// `keys` is what this level reads, as `always` and `when_negative` encode it; `words` are those of
/// [`Layout`](super::workspace::Layout), of which the first are 0 before the first level. There are at most
/// [`MOST_KEYS`](super::MOST_KEYS) keys. Blocks are of [`CHOOSE_THREADS`] threads with [`CHOOSE_SHARED_BYTES`]; for the first level
/// there is one block.
#[kernel(
    u32 = <u32, { ROW.divide_4.threads * ROW.divide_4.items_per_thread }, { ROW.buckets_4.threads * ROW.buckets_4.items_per_thread }>,
    u64 = <u64, { ROW.divide_8.threads * ROW.divide_8.items_per_thread }, { ROW.buckets_8.threads * ROW.buckets_8.items_per_thread }>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn choose_digits<B: Bits, const TILE: usize, const BUCKET: usize>(
    keys: *mut B,
    n: usize,
    words: *mut u32,
    level: u32,
    levels: u32,
    always: B,
    when_negative: B,
    single: u32,
    random: u64,
    detects: u32,
    always_divides: u32,
    order: *mut u32,
) {
    // SAFETY: the caller's promise.
    let detection = unsafe { Detection::new(order) };
    let is_done = if level == 0 { detects != 0 && detection.is_ordered() } else { !detection.is_divided() };
    if is_done {
        return;
    }
    let coding = Coding { always, when_negative };
    // SAFETY: the caller's promise. The array is not constant: these are the keys that later kernels move.
    let (keys, workspace) = unsafe { (GlobalMut::new(keys, n), Workspace::new(words, n, levels, TILE, BUCKET)) };
    // SAFETY: the caller's promise; barriers divide the accesses.
    let (scan, intervals) =
        unsafe { (Shared::<u32>::dynamic(0, BLOCK_WORDS), Shared::<u32>::dynamic(BLOCK_WORDS * 4, 2 * INTERVALS)) };
    let thread = thread::thread_idx_x();
    let tiles = |len: u32| len.div_ceil(TILE as u32);
    if level == 0 && thread::index_1d() == 0 {
        workspace.begin(tiles(n as u32));
        if detects == 0 {
            detection.skip();
        }
    }
    let segments = if level == 0 { 1 } else { workspace.segments(level) };
    let mut i = thread::block_idx_x();
    while i < segments {
        let Pending { start, len, first_tile } =
            if level == 0 { Pending { start: 0, len: n as u32, first_tile: 0 } } else { workspace.pending(i) };
        let part = keys.slice(start as usize, len as usize);
        let place = |at: u32| {
            let place = scrambled(random as u32 ^ start, at * CHOOSE_THREADS + thread);
            ((place as u64 * (len - 1) as u64) >> 32) as usize
        };
        let mut sample = [B::MIN; SAMPLED as usize];
        for at in 0..SAMPLED {
            sample[at as usize] = coding.encode(part.get(place(at)));
        }
        let mut in_runs = false;
        if level == 0 && len > 1 {
            // The sampled keys that are less than the next one, and those that are greater.
            let (mut ascents, mut descents) = (0u32, 0u32);
            for at in 0..SAMPLED {
                let (key, next) = (sample[at as usize], coding.encode(part.get(place(at) + 1)));
                ascents += u32::from(key < next);
                descents += u32::from(key > next);
            }
            // SAFETY: all threads of the block are here, as below.
            let (_, both) = unsafe { sum_before(ascents << 16 | descents, scan) };
            thread::sync_threads();
            in_runs = (both >> 16).max(both & 0xffff) > SAMPLED * CHOOSE_THREADS * 5 / 8;
        }
        let (mut least, mut greatest) = (sample[0], sample[0]);
        for at in 1..SAMPLED as usize {
            (least, greatest) = (least.min(sample[at]), greatest.max(sample[at]));
        }
        // SAFETY: all threads of the block are here, as below.
        let (least, greatest) = unsafe { block_range(least, greatest, scan) };
        // There are two digits more.
        let most = (len / const { keys_per_counter(BUCKET) as u32 }).clamp(9, MOST_DIGITS + 2) - 2;
        let is_narrow = |least: B, greatest: B| greatest - least < B::from_register(most as u64);
        let exact = is_narrow(least, greatest);
        // Once, and then twice more for keys of the fullest interval, as long as that is uneven as well: floats are even within
        // a power of two.
        let (mut low, mut high, mut sampled) = (least, greatest, SAMPLED * CHOOSE_THREADS);
        let (mut fullest, mut spreads, mut depth) = (0, exact, 0);
        while !spreads && depth < DEPTH {
            let of_intervals = Digits::even(low, high, INTERVALS);
            let here = |key: B| low <= key && key <= high;
            if thread < 2 * INTERVALS {
                intervals.set(thread, 0);
            }
            thread::sync_threads();
            for at in 0..SAMPLED as usize {
                let key = sample[at];
                if here(key) {
                    intervals.fetch_add(of_intervals.of(key), 1);
                }
            }
            thread::sync_threads();
            let (mut keys, mut interval, mut at) = (0, 0, 0);
            while at < of_intervals.count() {
                let of_interval = intervals.get(at);
                (keys, interval) = if of_interval > keys { (of_interval, at) } else { (keys, interval) };
                at += 1;
            }
            if depth == 0 {
                fullest = keys;
            }
            spreads = is_even(keys, sampled);
            let (mut first, mut last) = (B::MAX, B::MIN);
            for at in 0..SAMPLED as usize {
                let key = sample[at];
                if here(key) && of_intervals.of(key) == interval {
                    (first, last) = (first.min(key), last.max(key));
                }
            }
            // SAFETY: all threads of the block are here, as below.
            (low, high) = unsafe { block_range(first, last, scan) };
            spreads |= is_narrow(low, high);
            (sampled, depth) = (keys, if level == 0 { depth + 1 } else { DEPTH });
        }
        let digits = if exact {
            Digits::exact(least, greatest)
        } else {
            let target = const { (BUCKET * BUCKET_PERCENT / 100) as u32 };
            let count = digits_for(len, fullest, target, single, most);
            // There are keys a little beyond those sampled.
            let margin = (greatest - least).shifted_down(8);
            Digits::even(least - margin.min(least), greatest + margin.min(B::MAX - greatest), count)
        };
        let count = digits.count();
        if level == 0 && thread == 0 && (spreads && !in_runs || always_divides != 0) {
            detection.divide();
        }
        if thread == 0 {
            let counters = workspace.add_counters(level, count);
            workspace.set_segment(i, Segment { start, len, first_tile, counters, exact, skipped: false, digits });
            scan.set(0, counters);
        }
        thread::sync_threads();
        let counters = workspace.counters(scan.get(0), count);
        let mut at = thread;
        while at < count {
            counters.set(at as usize, 0);
            at += CHOOSE_THREADS;
        }
        let mut tile = thread;
        while tile < tiles(len) {
            workspace.set_segment_of_tile(first_tile + tile, i);
            tile += CHOOSE_THREADS;
        }
        thread::sync_threads();
        i += thread::grid_dim_x();
    }
}
