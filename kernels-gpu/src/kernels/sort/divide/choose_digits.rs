//! The first step of a division: a sample of the keys decides the digits.

use super::digits::{ANY, Curve, Digits, FINER, WHOLE};
use super::workspace::{COUNTED_TWICE, Job, MOST_TWICE, Pending, Segment, Workspace};
use crate::block::scan::{BLOCK_WORDS, block_range, sum_before, sum_up_to};
use crate::block::shared_memory::shared_memory;
use crate::kernels::sort::detect_runs::Detection;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot, reduce_max};

/// Threads of a block.
pub const CHOOSE_THREADS: u32 = 256;

/// Keys of a sample.
const SAMPLE: u32 = 2048;

/// Number of keys that each of `threads` threads samples.
pub(super) const fn of_thread(threads: u32) -> usize {
    (SAMPLE / threads) as usize
}

/// Number of intervals in which sampled keys are counted.
pub(super) const INTERVALS: u32 = WARP_SIZE;

const _: () = assert!(INTERVALS == WARP_SIZE && SAMPLE < 1 << 16, "a lane has an interval, and a count 16 bits");

/// Digits of an interval. Rounding widens a few digits by up to a thirtieth, so that there may be 33 digits instead of
/// 32; many digits are rounded by less.
const FINE: u32 = 32;

/// Bits of the number of an interval.
const INTERVAL_BITS: u32 = INTERVALS.trailing_zeros();

/// Skewed keys are still divided if the fullest interval holds at most `UNEVEN` keys of the sample, and at most
/// [`LEFT`] of them remain after [`DEPTH`] looks. Above these limits another sort is faster.
const UNEVEN: u32 = SAMPLE / 2;
/// Limit of the sampled keys that remain after [`DEPTH`] looks: see [`UNEVEN`].
const LEFT: u32 = SAMPLE / 5;

/// Skewed keys are divided regardless of [`LEFT`] if the fullest interval holds at most this many keys of the sample.
const UNEVEN_ANYWAY: u32 = SAMPLE / 3;

/// Upper limit on the digits of the first division if keys are skewed. With more digits, a tile has few keys of most
/// digits and writes them in small pieces.
const MOST_FIRST: u32 = 510;

/// Number of looks for an even spread, each inside the fullest interval of the look before.
const DEPTH: u32 = 3;

/// Number of looks if there is only one division.
const DEPTH_ONCE: u32 = 2;

/// Keys may be displaced if more sampled keys than this are greater than their next keys. With fewer descents, keys
/// form long runs, or are better divided.
const DISPLACED: u32 = SAMPLE / 16;

/// Upper limit on the sampled keys that are outliers at one end of the range. There are further divisions for them.
const OUTLIERS: u32 = SAMPLE / 64;

/// Number of looks for the range without outliers. Each look may narrow the range to a thirtieth.
const BULK_LOOKS: u32 = 10;

shared_memory! {
    /// Shared memory of a block that chooses digits.
    pub(super) struct ChooseMemory() {
        /// Words of a scan.
        pub scan: [u32; BLOCK_WORDS],
        /// Number of sampled keys in each interval.
        pub intervals: [u32; INTERVALS],
    }
}

/// Bytes of dynamic shared memory.
pub const CHOOSE_SHARED_BYTES: u32 = ChooseMemory::bytes();

/// A pseudorandom number, different for each `i`.
#[inline(always)]
fn scrambled(seed: u32, i: u32) -> u32 {
    let mut x = (i ^ seed).wrapping_mul(0x9e37_79b9);
    x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

/// Whether the fullest interval of `sampled` keys holds no more keys than an interval may hold by chance.
#[inline(always)]
fn is_even(fullest: u32, sampled: u32) -> bool {
    let mean = sampled / INTERVALS;
    // Twelve is four and a half standard deviations for a mean of 7.
    fullest <= mean + mean / 2 + 12
}

/// Factor by which skewed keys need more digits than evenly spread keys, if the fullest interval holds `fullest` keys
/// of the sample.
#[inline(always)]
fn digits_of_even(fullest: u32) -> u32 {
    fullest.div_ceil(SAMPLE / INTERVALS) + 1
}

/// Number of digits by which to divide `len` keys, if the fullest of the `INTERVALS` intervals holds `fullest` keys
/// of the sample.
///
/// Evenly spread keys get enough digits for buckets of `usual` keys; for two divisions, the square root of that number.
/// A sixteenth more than `most` is divided once, since most buckets hold more than the usual number.
///
/// If intervals differ by more than chance, the fullest interval decides, so that few keys need another division.
#[inline(always)]
pub fn digits_for(len: u32, fullest: u32, usual: u32, single: u32, most: u32) -> u32 {
    let wanted = len.div_ceil(usual.max(1));
    if !is_even(fullest, SAMPLE) {
        return wanted.saturating_mul(digits_of_even(fullest)).clamp(2, most);
    }
    if wanted <= single.min(most + most / 16) {
        return wanted.clamp(2, most);
    }
    // Newton's method, from above.
    let mut root = 1 << (32 - wanted.leading_zeros()).div_ceil(2);
    for _ in 0..4 {
        root = (root + wanted / root).div_ceil(2);
    }
    root.min(most)
}

/// A level of the divisions, and how its digits are chosen.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LevelParameters {
    /// The number of the level, counted from 0.
    pub number: u32,
    /// Keys that need at most this many digits are divided once.
    pub single: u32,
    /// Number of words before the job's words that are cleared.
    pub cleared: u32,
    /// Not 0 if keys are divided in any case.
    pub always_divides: u32,
    /// Any number: the seed of the positions of the sample.
    pub random: u64,
}

/// Kernel: chooses the digits of each segment of `level`, and clears its counters. The first level is one segment, the
/// array, unless the plan's segments are listed.
///
/// For the array the kernel decides whether keys are divided at all, and stores the decision in the words of
/// `detect_runs`. Keys are divided if the sample, or its part in one interval, is spread evenly along one of the
/// curves. They are also divided if the skew is small enough for the number of levels. They are not divided if the
/// sample is in order, or if most of it is and keys are uneven or few. Keys that look as if they were nearly in their
/// places are to be sorted by [windows](crate::kernels::sort::windows) instead. The kernel first sets the words of
/// `detect_runs`, the heads of the lists, and the cleared words before these. Listed segments are divided in any case.
///
/// # Safety
/// `keys` is the array that this level reads, as `coding` encodes it. The requirements of [`Job`] hold, and the
/// `level.cleared` words before its words are writable. Blocks have [`CHOOSE_THREADS`] threads with
/// [`CHOOSE_SHARED_BYTES`]. The launch for the array as one segment has one block.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn choose_digits<B: Bits>(job: Job, keys: *mut B, coding: Coding<B>, level: LevelParameters) {
    // SAFETY: `job.order` is null, or has `DETECTION_WORDS` words. Only thread 0 of the single block for the array
    // writes them.
    let detection = unsafe { Detection::new(job.order) };
    let (plan, level, of_level) = (job.plan, level.number, level);
    let is_array = plan.is_array(level);
    // SAFETY: `keys` has `plan.n` keys, which this launch only reads. The lists have `job.at.words` words, as `Job`
    // says. The array is not constant memory: later kernels move these keys.
    let (keys, workspace) = unsafe { (GlobalMut::new(keys, plan.n as usize), Workspace::new(&job)) };
    // SAFETY: the launch has `CHOOSE_SHARED_BYTES`. Barriers of `choose` come between writing and reading, and another
    // barrier before the next segment.
    let memory = unsafe { ChooseMemory::at_start() };
    let thread = thread::thread_idx_x();
    if is_array {
        // The launch has one block, and comes first.
        if thread == 0 {
            workspace.clear();
            detection.begin();
        }
        // SAFETY: this kernel requires `cleared` writable words before the job's. Thread `t` of the only block writes
        // words `t + i * CHOOSE_THREADS`, below `cleared`, which nothing reads in this launch.
        let before =
            unsafe { GlobalMut::new(job.words.wrapping_sub(of_level.cleared as usize), of_level.cleared as usize) };
        clear_words(before);
    }
    let segments = if is_array { 1 } else { workspace.segments(level) };
    let parts = if is_array { plan.parts(plan.n) } else { workspace.parts(level) };
    let mut i = thread::block_idx_x();
    while i < segments {
        let pending = if is_array {
            Pending { start: 0, len: plan.n, first_part: 0, digit: WHOLE }
        } else {
            workspace.pending(i)
        };
        let Pending { start, len, first_part, .. } = pending;
        if level == 1 && workspace.is_counted_twice() {
            // The digits of these segments are known, and their keys counted.
            if thread == 0 {
                set_counted_twice::<B>(workspace, i, pending);
            }
            note_parts(workspace, i, first_part, plan.parts(len));
            i += thread::grid_dim_x();
            continue;
        }
        // Keys below and above the sample take two more digits.
        let most = plan.most_digits(len, parts) - 2;
        let always_divides = !is_array || of_level.always_divides != 0;
        let seed = start ^ of_level.random as u32;
        let how = How { level, is_array, single: of_level.single, most, seed, always_divides };
        let part = keys.slice(start as usize, len as usize);
        // SAFETY: all `CHOOSE_THREADS` threads of the block make the call: `i`, `segments` and the list are the same
        // for all. `memory.scan` was last read before the barrier at the end of the loop.
        let choice = unsafe { choose::<B, { of_thread(CHOOSE_THREADS) }, false>(&job, part, coding, how, memory) };
        let choice = match choice {
            Ok(choice) => choice,
            Err(Undivided { in_order, displaced, .. }) => {
                if thread == 0 && displaced {
                    detection.begin_windows();
                } else if thread == 0 && in_order {
                    detection.detect_later();
                }
                return;
            }
        };
        if is_array && thread == 0 {
            detection.divide();
            workspace.begin(plan.parts(plan.n));
        }
        let count = choice.digits.count;
        if thread == 0 {
            let counters = workspace.add_counters(level, plan.counters(len, count));
            choice.store(workspace, i, pending, counters);
            memory.scan.set(0, counters);
        }
        thread::sync_threads();
        clear_words(workspace.counters(memory.scan.get(0), count));
        note_parts(workspace, i, first_part, plan.parts(len));
        thread::sync_threads();
        i += thread::grid_dim_x();
    }
}

/// Sets words to 0. All threads of the block make this call.
#[inline(always)]
#[track_caller]
fn clear_words(words: GlobalMut<u32>) {
    let mut at = thread::thread_idx_x();
    while at < words.len() as u32 {
        words.set(at as usize, 0);
        at += CHOOSE_THREADS;
    }
}

/// Sets segment `i`, whose keys have been counted with the keys of the level before.
#[inline(always)]
#[track_caller]
fn set_counted_twice<B: Bits>(workspace: Workspace, i: u32, pending: Pending) {
    let Pending { start, len, first_part, digit } = pending;
    let digits: Digits<B> = workspace.segment(COUNTED_TWICE).digits;
    let (digits, counters) = (digits.finer_within(digit), workspace.finer_counters(digit));
    let segment = Segment { start, len, first_part, counters, exact: false, skipped: false, digits };
    workspace.set_segment(i, segment);
}

/// Parameters of the choice of digits.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// The level of the segment.
    pub level: u32,
    /// Whether the segment is the array.
    pub is_array: bool,
    /// Limit of the digits up to which one division is enough.
    pub single: u32,
    /// Upper limit on the digits.
    pub most: u32,
    /// Seed of the positions of the sample: any number.
    pub seed: u32,
    /// Whether keys are divided in any case.
    pub always_divides: bool,
}

/// The digits by which a segment is divided.
#[derive(Clone, Copy)]
pub(super) struct Choice<B> {
    pub digits: Digits<B>,
    /// Whether the keys of a digit are all equal.
    pub exact: bool,
    /// Whether the digits of the next level are counted at once.
    pub twice: bool,
}

impl<B: Bits> Choice<B> {
    /// Stores the choice for segment `i`, with its counters.
    #[inline(always)]
    #[track_caller]
    fn store(self, workspace: Workspace, i: u32, pending: Pending, counters: u32) {
        let (Self { digits, exact, twice }, Pending { start, len, first_part, .. }) = (self, pending);
        let segment = Segment { start, len, first_part, counters, exact, skipped: false, digits };
        workspace.set_segment(i, segment);
        if twice {
            workspace.set_segment(COUNTED_TWICE, segment);
            workspace.count_twice();
        }
    }
}

/// What the sample tells of keys that are not divided.
#[derive(Clone, Copy)]
pub(super) struct Undivided {
    /// Whether the sampled keys only ascend, or only descend, each compared with its next key.
    pub in_order: bool,
    /// Whether no sampled key is greater than its next key.
    pub ascends: bool,
    /// Whether keys look as if they were out of order only within half a window of the plan.
    pub displaced: bool,
}

/// Chooses the digits of `part`, a segment, from a sample of `SAMPLED` keys for each thread. Returns an error if keys
/// are not to be divided. With `ONCE`, there is one division and keys may change order; otherwise there may be several
/// levels.
///
/// # Safety
/// All threads of the block make this call. `SAMPLED` is [`of_thread`] of their number. Nothing else uses the memory.
#[inline(always)]
pub(super) unsafe fn choose<B: Bits, const SAMPLED: usize, const ONCE: bool>(
    job: &Job,
    part: GlobalMut<B>,
    coding: Coding<B>,
    How { level, is_array, single, most, seed, always_divides }: How,
    memory: ChooseMemory,
) -> Result<Choice<B>, Undivided> {
    const { assert!((SAMPLE as usize).is_multiple_of(SAMPLED), "each thread samples as many keys") };
    let (plan, len) = (job.plan, part.len() as u32);
    let ChooseMemory { scan, intervals } = memory;
    let (keys, next) = load_sample::<B, SAMPLED>(part, coding, is_array, seed);
    // SAFETY: `is_array` and `len` are the same for all threads, so that all or none make the call. `scan` has
    // `BLOCK_WORDS` words, and `steps` ends with a barrier before the next use.
    let (ascents, descents) = if is_array && len > 1 { unsafe { steps(keys, next, scan) } } else { (0, 0) };
    let may_be_displaced = !ONCE && is_array && !always_divides && plan.window > 0 && descents > DISPLACED;
    // SAFETY: all threads have the same condition, so that all or none make the call. `steps` ended with a barrier, and
    // so does this call.
    if may_be_displaced && unsafe { is_in_order_from_afar(keys, part, coding, (plan.window / 2, seed), scan) } {
        return Err(Undivided { in_order: false, ascends: false, displaced: true });
    }
    // SAFETY: no branch surrounds the call but for returns that all threads make, so that all threads of the block make
    // it. `scan` has `BLOCK_WORDS` words, and each use before ended with a barrier.
    let range = unsafe { range(keys, scan) };
    // SAFETY: no branch surrounds the call, so that all threads of the block make it. `intervals` has `INTERVALS`
    // words, and nothing else uses them.
    let spread = unsafe { spread::<_, _, ONCE>(keys, range, most, coding, intervals) };
    // Outliers share the first digit and the last one, and need further levels.
    let may_leave_outliers = !ONCE && level == 0 && plan.levels > 1 && !spread.is_even();
    // SAFETY: the condition is the same for all threads, so that all or none make the call. `scan` was last read before
    // a barrier of `spread`.
    let bulk = if may_leave_outliers { unsafe { bulk(keys, range, most, intervals, scan) } } else { None };
    let ((least, greatest), spread) = bulk.unwrap_or((range, spread));
    let Spread { is_exact, curve, fullest } = spread;
    let in_runs = ascents.max(descents) > SAMPLE * 5 / 8;
    // Nearly sorted keys are divided if they are even: merges and a sort by all bits are slower than two divisions.
    let is_left = in_runs && (plan.levels == 1 || !spread.is_even() || ascents.min(descents) == 0);
    // Even digits allow counting the next level at the same time, unless keys have few values, or there are too many
    // keys.
    let wanted = len.div_ceil(job.usual.max(1));
    let twice = plan.twice != 0
        && is_array
        && plan.levels > 1
        && greatest - least > B::from_register(1 << 24)
        && curve == Curve::Distance
        && is_even(fullest, SAMPLE)
        && wanted > single
        && wanted.div_ceil(FINER) < MOST_TWICE
        // SAFETY: all conditions are the same for all threads, so that all or none make the call. `scan` was last read
        // before a barrier of `spread`.
        && !unsafe { is_clustered(keys, next, greatest - least, scan) };
    let digits = if is_exact {
        Digits::exact(least, greatest)
    } else {
        // Nothing is divided after the last level.
        let single = if level + 1 < plan.levels { single } else { most };
        let scatters = level == 0 && !ONCE && !is_even(fullest, SAMPLE);
        let most = if scatters { most.min(MOST_FIRST) } else { most };
        let count = if twice { wanted.div_ceil(FINER) } else { digits_for(len, fullest, job.usual, single, most) };
        digits_beyond(curve, least, greatest, count, coding)
    };
    let sample = Sampled { keys, range: (least, greatest), spread };
    // SAFETY: `always_divides` and `is_left` are the same for all threads: they come from sums over the block. So all
    // threads make the call, or none.
    let is_even_enough = || unsafe { sample.is_even_enough::<ONCE>(plan.levels, wanted, most, coding, memory) };
    if always_divides || !is_left && is_even_enough() {
        Ok(Choice { digits, exact: is_exact, twice })
    } else {
        Err(Undivided { in_order: ascents.min(descents) == 0, ascends: descents == 0, displaced: false })
    }
}

/// The keys that this thread samples of `part`, and the next key of each if the part is the array, as `coding` encodes
/// them.
#[inline(always)]
#[track_caller]
fn load_sample<B: Bits, const SAMPLED: usize>(
    part: GlobalMut<B>,
    coding: Coding<B>,
    is_array: bool,
    seed: u32,
) -> ([B; SAMPLED], [B; SAMPLED]) {
    let len = part.len() as u32;
    let places = places::<SAMPLED>(len, seed);
    let (mut sample, mut next) = ([B::MIN; SAMPLED], [B::MIN; SAMPLED]);
    for at in 0..SAMPLED {
        // Of many segments, each thread reads keys in pairs of neighbours: reading at many places takes long.
        let is_beside = !is_array && len > 1 && at % 2 > 0;
        sample[at] = part.get(if is_beside { places[at - 1] + 1 } else { places[at] });
    }
    if is_array && len > 1 {
        for at in 0..SAMPLED {
            next[at] = part.get(places[at] + 1);
        }
    }
    coding.encode_all(&mut sample);
    coding.encode_all(&mut next);
    (sample, next)
}

/// `count` digits along `curve` for keys whose sample lies between `least` and `greatest`. A few keys lie a little
/// beyond the sampled ones.
#[inline(always)]
fn digits_beyond<B: Bits>(curve: Curve, least: B, greatest: B, count: u32, coding: Coding<B>) -> Digits<B> {
    // Near the least key, a logarithm belongs to few keys.
    let margin = if curve == Curve::Distance { (greatest - least).shifted_down(8) } else { B::MIN };
    let (least, greatest) = (least - margin.min(least - B::MIN), greatest + margin.min(B::MAX - greatest));
    Digits::along(curve, least, greatest, count, coding)
}

/// The sampled keys of this thread, and what is known of the sample of the block.
struct Sampled<B, const SAMPLED: usize> {
    keys: [B; SAMPLED],
    range: (B, B),
    spread: Spread,
}

impl<B: Bits, const SAMPLED: usize> Sampled<B, SAMPLED> {
    /// Whether keys are spread evenly enough to be divided by up to `most` digits in up to `levels` levels. Evenly
    /// spread keys take `wanted` digits.
    ///
    /// # Safety
    /// All threads of the block make this call, with the same arguments. Nothing else uses the memory, and a barrier
    /// came after the last use of its scan.
    #[inline(always)]
    unsafe fn is_even_enough<const ONCE: bool>(
        &self,
        levels: u32,
        wanted: u32,
        most: u32,
        coding: Coding<B>,
        ChooseMemory { scan, intervals }: ChooseMemory,
    ) -> bool {
        let &Self { keys, range, spread } = self;
        let Spread { curve, fullest, .. } = spread;
        if spread.is_even() {
            return true;
        }
        if ONCE {
            // Digits are to be narrow enough that the keys of the fullest interval fit into buckets, if they are even.
            let inside = (curve, coding, DEPTH_ONCE);
            // SAFETY: `wanted`, `fullest` and `most` are the same for all threads: they come from sums over the block.
            // So all threads make the call, or none. `scan` was last read before a barrier of `block_range`.
            return wanted * digits_of_even(fullest) <= most
                && unsafe { left_uneven(keys, range, most, inside, intervals, scan) } == 0;
        }
        let inside = (Curve::Distance, Coding::NONE, DEPTH);
        // SAFETY: `is_exact` and `fullest` are the same for all threads: they come from sums over the block. So all
        // threads make the call. `scan` was last read before a barrier of `block_range`.
        let left = unsafe { left_uneven(keys, range, most, inside, intervals, scan) };
        // Skewed keys take more levels than short inputs or keys with values have.
        left == 0 || levels > 3 && fullest <= UNEVEN && (fullest <= UNEVEN_ANYWAY || left <= LEFT)
    }
}

/// Stores that the `parts` parts from number `first` on belong to segment `i`.
#[inline(always)]
#[track_caller]
pub(super) fn note_parts(workspace: Workspace, i: u32, first: u32, parts: u32) {
    let mut part = thread::thread_idx_x();
    while part < parts {
        workspace.set_segment_of_part(first + part, i);
        part += thread::block_dim_x();
    }
}

/// Indices of the keys that this thread samples among `len` keys. No index is the last one unless `len` is 1.
#[inline(always)]
fn places<const SAMPLED: usize>(len: u32, seed: u32) -> [usize; SAMPLED] {
    let mut places = [0; SAMPLED];
    for at in 0..SAMPLED as u32 {
        let number = scrambled(seed, at * const { SAMPLE / SAMPLED as u32 } + thread::thread_idx_x());
        places[at as usize] = ((number as u64 * (len - 1) as u64) >> 32) as usize;
    }
    places
}

/// The least and the greatest key of a sample.
///
/// # Safety
/// The requirements of [`block_range`] hold for `scan`.
#[inline(always)]
unsafe fn range<B: Bits, const SAMPLED: usize>(sample: [B; SAMPLED], scan: Shared<u32>) -> (B, B) {
    let (mut least, mut greatest) = (sample[0], sample[0]);
    for at in 1..SAMPLED {
        (least, greatest) = (least.min(sample[at]), greatest.max(sample[at]));
    }
    // SAFETY: the requirements of `block_range` are this function's own: all threads of the block make the call, and
    // nothing else uses `scan`, of `BLOCK_WORDS` words.
    unsafe { block_range(least, greatest, scan) }
}

/// Number of sampled keys that are less than their `next` key, and number of keys that are greater.
///
/// # Safety
/// The requirements of [`sum_before`] hold for `scan`. Ends with a barrier.
#[inline(always)]
unsafe fn steps<B: Bits, const SAMPLED: usize>(
    sample: [B; SAMPLED],
    next: [B; SAMPLED],
    scan: Shared<u32>,
) -> (u32, u32) {
    let (mut ascents, mut descents) = (0u32, 0u32);
    for at in 0..SAMPLED {
        ascents += u32::from(sample[at] < next[at]);
        descents += u32::from(sample[at] > next[at]);
    }
    // SAFETY: all threads of the block make the call, and nothing else uses `scan`, of `BLOCK_WORDS` words, before the
    // barrier that follows. Each sum is at most `SAMPLE`, which fits 16 bits.
    let (_, both) = unsafe { sum_before(ascents << 16 | descents, scan) };
    thread::sync_threads();
    (both >> 16, both & 0xffff)
}

/// Whether no sampled key is greater than another key that lies `half` to twice `half` places behind it.
///
/// # Safety
/// The requirements of [`sum_before`] hold for `scan`. Ends with a barrier.
#[inline(always)]
unsafe fn is_in_order_from_afar<B: Bits, const SAMPLED: usize>(
    sample: [B; SAMPLED],
    part: GlobalMut<B>,
    coding: Coding<B>,
    (half, seed): (u32, u32),
    scan: Shared<u32>,
) -> bool {
    let places = places::<SAMPLED>(part.len() as u32, seed);
    let mut behind = [coding.decode(B::MAX); SAMPLED];
    for at in 0..SAMPLED {
        // A distance of its own for each key: periodic keys would be equal at one distance.
        let further = (scrambled(!seed, places[at] as u32) as u64 * half as u64) >> 32;
        let place = places[at] + half as usize + further as usize;
        if place < part.len() {
            behind[at] = part.get(place);
        }
    }
    coding.encode_all(&mut behind);
    let mut inversions = 0;
    for at in 0..SAMPLED {
        inversions += u32::from(sample[at] > behind[at]);
    }
    // SAFETY: the requirements of `sum_before` are this function's own.
    let (_, inversions) = unsafe { sum_before(inversions, scan) };
    thread::sync_threads();
    inversions == 0
}

/// Whether most of the sampled keys are close to their `next` key, compared with the `range` of all keys, so that the
/// lanes of a warp would add to the same counter of two levels.
///
/// # Safety
/// The requirements of [`sum_before`] hold for `scan`. Ends with a barrier.
#[inline(always)]
unsafe fn is_clustered<B: Bits, const SAMPLED: usize>(
    sample: [B; SAMPLED],
    next: [B; SAMPLED],
    range: B,
    scan: Shared<u32>,
) -> bool {
    let mut close = 0;
    for at in 0..SAMPLED {
        let distance = sample[at].max(next[at]) - sample[at].min(next[at]);
        close += u32::from(distance <= range.shifted_down(12));
    }
    // SAFETY: the requirements of `sum_before` are this function's own.
    let (_, close) = unsafe { sum_before(close, scan) };
    thread::sync_threads();
    close > SAMPLE / 2
}

/// How the keys of a sample are spread over their range.
#[derive(Clone, Copy)]
struct Spread {
    /// Whether the range is so narrow that each number in it can have a digit.
    is_exact: bool,
    /// The curve along which digits of equal width hold about equal numbers of keys, or the least unequal ones.
    curve: Curve,
    /// Number of keys in the fullest of the [`INTERVALS`] intervals along that curve.
    fullest: u32,
}

impl Spread {
    /// Whether digits of equal width hold about equal numbers of keys, or one key each.
    #[inline(always)]
    fn is_even(self) -> bool {
        self.is_exact || is_even(self.fullest, SAMPLE)
    }
}

/// Whether the range from `least` to `greatest` has at most `most` numbers, so that each can have a digit.
#[inline(always)]
fn is_narrow<B: Bits>(least: B, greatest: B, most: u32) -> bool {
    greatest - least < B::from_register(most as u64)
}

/// Looks at a sample between the `range` of its keys along one curve after another, until one is even. The logarithms
/// are left out if keys are divided `ONCE`. Up to `most` numbers have a digit each.
///
/// # Safety
/// All threads of the block make this call; `intervals` has a word for each interval, which nothing else uses.
#[inline(always)]
unsafe fn spread<B: Bits, const SAMPLED: usize, const ONCE: bool>(
    sample: [B; SAMPLED],
    (least, greatest): (B, B),
    most: u32,
    coding: Coding<B>,
    intervals: Shared<u32>,
) -> Spread {
    let mut best = Spread { is_exact: is_narrow(least, greatest, most), curve: Curve::Distance, fullest: 0 };
    if best.is_exact {
        return best;
    }
    best.fullest = SAMPLE + 1;
    let mut look = |curve: Curve| {
        if !is_even(best.fullest, SAMPLE) {
            let of_intervals = intervals_along(curve, least, greatest, coding);
            // SAFETY: all threads of the block make the call: `best` comes from counts that all of them have read
            // alike. Nothing else uses `intervals`.
            let (fullest, _) = unsafe { fullest_interval(sample, of_intervals, coding, |_| true, intervals) };
            // Digits along the distance are faster to compute.
            if curve == Curve::Distance || 4 * fullest < 3 * best.fullest {
                best = Spread { curve, fullest, ..best };
            }
        }
    };
    look(Curve::Distance);
    if coding.is_of_floats() {
        look(Curve::Value);
    }
    // Keys that are even along a logarithm have some values that are too frequent for one division.
    if !ONCE {
        look(Curve::Logarithm);
        look(Curve::Mirrored);
    }
    best
}

/// The range of the sampled keys without outliers, and how all keys are spread over it, if they are even along the
/// distance. Outliers are up to [`OUTLIERS`] keys at either end of the sample's range, which is from `low` to `high`.
/// Each look keeps the intervals of the other keys.
///
/// # Safety
/// The requirements of [`block_range`] hold for `scan`, and the requirements of [`spread`] for `intervals`.
#[inline(always)]
unsafe fn bulk<B: Bits, const SAMPLED: usize>(
    sample: [B; SAMPLED],
    (mut low, mut high): (B, B),
    most: u32,
    intervals: Shared<u32>,
    scan: Shared<u32>,
) -> Option<((B, B), Spread)> {
    // A number of looks that the compiler does not know, so that it does not unroll the loop.
    let (depth, mut looks) = (recomputed(BULK_LOOKS), 0);
    while looks < depth {
        let mut spread = Spread { is_exact: is_narrow(low, high, most), curve: Curve::Distance, fullest: 0 };
        if spread.is_exact {
            return Some(((low, high), spread));
        }
        let of_intervals = intervals_along(Curve::Distance, low, high, Coding::NONE);
        // Outliers count in the first interval and in the last.
        // SAFETY: all threads of the block make the call: the loop ends by numbers that all of them have read alike.
        // Nothing else uses `intervals`.
        (spread.fullest, _) = unsafe { fullest_interval(sample, of_intervals, Coding::NONE, |_| true, intervals) };
        if spread.is_even() {
            return Some(((low, high), spread));
        }
        let keys = intervals.get(warp::lane_id());
        // SAFETY: no branch surrounds the calls but for numbers that all threads have alike, so that whole warps make
        // them.
        let (first, end) = unsafe {
            let through = sum_up_to(keys);
            let first = ballot(FULL_MASK, through > OUTLIERS).trailing_zeros();
            (first, WARP_SIZE - ballot(FULL_MASK, through - keys < SAMPLE - OUTLIERS).leading_zeros())
        };
        if end - first > INTERVALS / 2 {
            return None;
        }
        let (mut least, mut greatest) = (B::MAX, B::MIN);
        for at in 0..SAMPLED {
            let key = sample[at];
            let interval = interval(of_intervals, key, Coding::NONE);
            if low <= key && key <= high && first <= interval && interval < end {
                (least, greatest) = (least.min(key), greatest.max(key));
            }
        }
        // SAFETY: all threads make the call, as the first one. Nothing else uses `scan`, of `BLOCK_WORDS` words, and
        // barriers of `fullest_interval` come before the call.
        (low, high) = unsafe { block_range(least, greatest, scan) };
        looks += 1;
    }
    None
}

/// Digits along `curve` from `least` to `greatest`: [`FINE`] digits for each interval.
#[inline(always)]
fn intervals_along<B: Bits>(curve: Curve, least: B, greatest: B, coding: Coding<B>) -> Digits<B> {
    Digits::along(curve, least, greatest, FINE * INTERVALS, coding)
}

/// Interval of a key. A surplus digit belongs to the last interval.
#[inline(always)]
fn interval<B: Bits>(of_intervals: Digits<B>, key: B, coding: Coding<B>) -> u32 {
    (of_intervals.of::<ANY>(key, coding) / FINE).min(INTERVALS - 1)
}

/// Number of keys in the fullest of `of_intervals`, among the counted keys of the sample, and the number of that
/// interval.
///
/// # Safety
/// The requirements of [`spread`] hold for `intervals`.
#[inline(always)]
unsafe fn fullest_interval<B: Bits, const SAMPLED: usize>(
    sample: [B; SAMPLED],
    of_intervals: Digits<B>,
    coding: Coding<B>,
    is_counted: impl Fn(B) -> bool,
    intervals: Shared<u32>,
) -> (u32, u32) {
    // The counters of the last call have been read.
    thread::sync_threads();
    if thread::thread_idx_x() < INTERVALS {
        intervals.set(thread::thread_idx_x(), 0);
    }
    thread::sync_threads();
    for at in 0..SAMPLED {
        if is_counted(sample[at]) {
            intervals.fetch_add(interval(of_intervals, sample[at], coding), 1);
        }
    }
    thread::sync_threads();
    // Each warp finds the maximum, with one interval for each lane. The number of keys and the interval are packed in
    // one number.
    let lane = warp::lane_id();
    // SAFETY: no branch surrounds the call, so that the 32 lanes of each warp make it. `lane` is below `INTERVALS`, the
    // length of `intervals`.
    let fullest = unsafe { reduce_max(FULL_MASK, intervals.get(lane) << INTERVAL_BITS | lane) };
    (fullest >> INTERVAL_BITS, fullest & (INTERVALS - 1))
}

/// Number of sampled keys that remain skewed after up to `depth` looks along a curve: at the fullest interval of the
/// range, then at the fullest interval of that interval, and so on. Returns 0 once a look finds the keys even, or in a
/// range of at most `most` numbers. Floats are even along the distance within a power of two.
///
/// # Safety
/// The requirements of [`block_range`] hold for `scan`, and the requirements of [`spread`] for `intervals`.
#[inline(always)]
unsafe fn left_uneven<B: Bits, const SAMPLED: usize>(
    sample: [B; SAMPLED],
    (mut low, mut high): (B, B),
    most: u32,
    (curve, coding, depth): (Curve, Coding<B>, u32),
    intervals: Shared<u32>,
    scan: Shared<u32>,
) -> u32 {
    let (depth, mut sampled, mut looks) = (recomputed(depth), SAMPLE, 0);
    while looks < depth {
        let of_intervals = intervals_along(curve, low, high, coding);
        let here = |key: B| low <= key && key <= high;
        // SAFETY: all threads of the block make the call: the loop ends by numbers that all of them have read alike.
        // Nothing else uses `intervals`.
        let (keys, interval) = unsafe { fullest_interval(sample, of_intervals, coding, here, intervals) };
        if is_even(keys, sampled) {
            return 0;
        }
        let (mut first, mut last) = (B::MAX, B::MIN);
        for at in 0..SAMPLED {
            let key = sample[at];
            if here(key) && self::interval(of_intervals, key, coding) == interval {
                (first, last) = (first.min(key), last.max(key));
            }
        }
        // SAFETY: `keys` and `sampled` are the same for all threads, so that all of them make the call. Nothing else
        // uses `scan`, of `BLOCK_WORDS` words, and barriers of `fullest_interval` come before the call.
        (low, high) = unsafe { block_range(first, last, scan) };
        if is_narrow(low, high, most) {
            return 0;
        }
        sampled = keys;
        looks += 1;
    }
    sampled
}
