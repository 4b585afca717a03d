//! The first step of a division: by which digits keys are divided, from a sample of them.

use super::digits::{ANY, Curve, Digits, FINER, WHOLE};
use super::workspace::{COUNTED_TWICE, Job, MOST_TWICE, Pending, Segment, Workspace};
use crate::block::scan::{BLOCK_WORDS, block_range, sum_before};
use crate::block::shared_memory::shared_memory;
use crate::kernels::sort::detect_runs::Detection;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, reduce_max};

/// Threads of a block.
pub const CHOOSE_THREADS: u32 = 256;

/// Keys of a sample.
const SAMPLE: u32 = 2048;

/// How many of them each of `threads` threads samples.
pub(super) const fn of_thread(threads: u32) -> usize {
    (SAMPLE / threads) as usize
}

/// Intervals in which sampled keys are counted.
pub(super) const INTERVALS: u32 = WARP_SIZE;

const _: () = assert!(INTERVALS == WARP_SIZE && SAMPLE < 1 << 16, "a lane has an interval, and a count 16 bits");

/// Digits of an interval. The widths of few digits are rounded by up to a thirtieth, so that there are 33 where there
/// are to be 32; of many, by less.
const FINE: u32 = 32;

/// Bits of the number of an interval.
const INTERVAL_BITS: u32 = INTERVALS.trailing_zeros();

/// Keys of a sample that the fullest interval has, at most, of keys that are divided although they are uneven, if so
/// few are left after [`DEPTH`] looks: with more of them keys are sorted sooner in another way.
const UNEVEN: u32 = SAMPLE / 2;
const LEFT: u32 = SAMPLE / 5;

/// The same, however many are left.
const UNEVEN_ANYWAY: u32 = SAMPLE / 3;

/// The most digits that all keys are divided by first if they are uneven. With more of them tiles have so few keys of
/// most digits that these are written in small pieces.
const MOST_FIRST: u32 = 510;

/// How often it is looked whether keys are spread evenly, each time at those of the fullest interval.
const DEPTH: u32 = 3;

/// The same where there is one division only.
const DEPTH_ONCE: u32 = 2;

shared_memory! {
    /// Shared memory of a block that chooses digits.
    pub(super) struct ChooseMemory() {
        /// Words of a scan.
        pub scan: [u32; BLOCK_WORDS],
        /// For each interval, how many sampled keys are in it.
        pub intervals: [u32; INTERVALS],
    }
}

/// Bytes of dynamic shared memory.
pub const CHOOSE_SHARED_BYTES: u32 = ChooseMemory::bytes();

/// A number that looks random, another one for each `i`.
#[inline(always)]
fn scrambled(seed: u32, i: u32) -> u32 {
    let mut x = (i ^ seed).wrapping_mul(0x9e37_79b9);
    x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

/// Whether the fullest of the intervals of `sampled` keys has no more of them than one has by chance.
#[inline(always)]
fn is_even(fullest: u32, sampled: u32) -> bool {
    let mean = sampled / INTERVALS;
    // Twelve is four and a half deviations for a mean of 7.
    fullest <= mean + mean / 2 + 12
}

/// How many digits there have to be for each one of even keys, where the fullest interval has that many keys of a
/// sample.
#[inline(always)]
fn digits_of_even(fullest: u32) -> u32 {
    fullest.div_ceil(SAMPLE / INTERVALS) + 1
}

/// How many digits to divide `len` keys by, of which the fullest of [`INTERVALS`] intervals of a sample has `fullest`.
///
/// Enough for buckets of `usual` keys; or the root of that, for two divisions. Where intervals differ by more than they
/// do by chance the fullest one counts, and as many keys as can be are not to need another division.
#[inline(always)]
fn digits_for(len: u32, fullest: u32, usual: u32, single: u32, most: u32) -> u32 {
    let wanted = len.div_ceil(usual.max(1));
    if !is_even(fullest, SAMPLE) {
        return wanted.saturating_mul(digits_of_even(fullest)).clamp(2, most);
    }
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

/// Kernel: chooses the digits of each segment of `level`, and sets its counters to 0. The first level is one segment,
/// all keys. Positions of the sample are drawn by `random`, any number. Up to `single` digits, one division is to be
/// enough.
///
/// At the first level it is decided whether keys are divided at all, and noted in the words of `detect_runs`. They are
/// if the sample is spread evenly along one of the curves, or the part of it that is in one interval, or not too
/// unevenly for the levels that there are; unless most keys are in ascending or descending runs, which merges are
/// faster with. If `always_divides` is not 0 they are in any case. The words of `detect_runs`, the heads of the lists,
/// and `cleared` words before these are set first.
///
/// # Safety
/// `keys` is what this level reads, as `coding` encodes it. What [`Job`] says holds, and `cleared` words before its own
/// are writable. Blocks are of [`CHOOSE_THREADS`] threads with [`CHOOSE_SHARED_BYTES`]; for the first level there is
/// one block.
#[kernel(u32 = <u32>, u64 = <u64>)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn choose_digits<B: Bits>(
    job: Job,
    keys: *mut B,
    level: u32,
    coding: Coding<B>,
    single: u32,
    random: u64,
    cleared: u32,
    always_divides: u32,
) {
    // SAFETY: `job.order` is null, or has `DETECTION_WORDS` words. Thread 0 of the only block of the first level alone
    // writes them.
    let detection = unsafe { Detection::new(job.order) };
    let plan = job.plan;
    // SAFETY: `keys` has `plan.n` keys, which this launch only reads, and the lists have `job.at.words` words, as `Job`
    // says. The array is not constant: these are the keys that later kernels move.
    let (keys, workspace) = unsafe { (GlobalMut::new(keys, plan.n as usize), Workspace::new(&job)) };
    // SAFETY: the launch has `CHOOSE_SHARED_BYTES`. Barriers of `choose` come between writing and reading, and one
    // before the next segment.
    let memory = unsafe { ChooseMemory::at_start() };
    let thread = thread::thread_idx_x();
    if level == 0 {
        // There is one block, and nothing has been launched before it.
        if thread == 0 {
            workspace.clear();
            detection.begin();
        }
        // SAFETY: the caller promises `cleared` writable words before the job's. Thread `t` of the only block writes
        // words `t + i * CHOOSE_THREADS`, below `cleared`.
        let before = unsafe { GlobalMut::new(job.words.wrapping_sub(cleared as usize), cleared as usize) };
        let mut word = thread;
        while word < cleared {
            before.set(word as usize, 0);
            word += CHOOSE_THREADS;
        }
        thread::sync_threads();
    }
    let segments = if level == 0 { 1 } else { workspace.segments(level) };
    let parts = if level == 0 { plan.parts(plan.n) } else { workspace.parts(level) };
    let mut i = thread::block_idx_x();
    while i < segments {
        let Pending { start, len, first_part, digit } = if level == 0 {
            Pending { start: 0, len: plan.n, first_part: 0, digit: WHOLE }
        } else {
            workspace.pending(i)
        };
        if level == 1 && workspace.is_counted_twice() {
            // Its digits are known, and counted.
            if thread == 0 {
                let digits: Digits<B> = workspace.segment(COUNTED_TWICE).digits;
                let (digits, counters) = (digits.finer_within(digit), workspace.finer_counters(digit));
                let segment = Segment { start, len, first_part, counters, exact: false, skipped: false, digits };
                workspace.set_segment(i, segment);
            }
            note_parts(workspace, i, first_part, plan.parts(len));
            i += thread::grid_dim_x();
            continue;
        }
        // There are two digits more.
        let most = plan.most_digits(len, parts) - 2;
        let how = How { level, single, most, seed: start ^ random as u32, always_divides: always_divides != 0 };
        let part = keys.slice(start as usize, len as usize);
        // SAFETY: all threads of the block are here, since they all know the same.
        let choice = unsafe { choose::<B, { of_thread(CHOOSE_THREADS) }, false>(&job, part, coding, how, memory) };
        let Choice { digits, exact, twice } = match choice {
            Ok(choice) => choice,
            Err(Undivided { in_order, .. }) => {
                if thread == 0 && in_order {
                    detection.detect_later();
                }
                return;
            }
        };
        let count = digits.count;
        if level == 0 && thread == 0 {
            detection.divide();
            workspace.begin(plan.parts(plan.n));
        }
        if thread == 0 {
            let counters = workspace.add_counters(level, plan.counters(len, count));
            let segment = Segment { start, len, first_part, counters, exact, skipped: false, digits };
            workspace.set_segment(i, segment);
            if twice {
                workspace.set_segment(COUNTED_TWICE, segment);
                workspace.count_twice();
            }
            memory.scan.set(0, counters);
        }
        thread::sync_threads();
        let counters = workspace.counters(memory.scan.get(0), count);
        let mut at = thread;
        while at < count {
            counters.set(at as usize, 0);
            at += CHOOSE_THREADS;
        }
        note_parts(workspace, i, first_part, plan.parts(len));
        thread::sync_threads();
        i += thread::grid_dim_x();
    }
}

/// What a sample is to tell.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// The level of the segment.
    pub level: u32,
    /// Up to so many digits one division is to be enough.
    pub single: u32,
    /// The most digits.
    pub most: u32,
    /// By which positions of the sample are drawn: any number.
    pub seed: u32,
    /// Whether keys are divided in any case.
    pub always_divides: bool,
}

/// By which digits a segment is divided.
#[derive(Clone, Copy)]
pub(super) struct Choice<B> {
    pub digits: Digits<B>,
    /// Whether the keys of a digit are all equal.
    pub exact: bool,
    /// Whether the digits of the next level are counted at once.
    pub twice: bool,
}

/// What is known of keys that are not to be divided.
#[derive(Clone, Copy)]
pub(super) struct Undivided {
    /// Whether no sampled key is less than the next one, or none is greater.
    pub in_order: bool,
    /// Whether none is greater.
    pub ascends: bool,
}

/// Chooses the digits of `part`, a segment, by a sample of `SAMPLED` keys for each thread; or none, where keys are not
/// to be divided. Keys that need not stay in order are divided `ONCE`, or there are several levels.
///
/// # Safety
/// All threads of the block make this call, each of which samples `SAMPLED` keys, as [`of_thread`] says; nothing else
/// uses the memory.
#[inline(always)]
pub(super) unsafe fn choose<B: Bits, const SAMPLED: usize, const ONCE: bool>(
    job: &Job,
    part: GlobalMut<B>,
    coding: Coding<B>,
    How { level, single, most, seed, always_divides }: How,
    ChooseMemory { scan, intervals }: ChooseMemory,
) -> Result<Choice<B>, Undivided> {
    const { assert!((SAMPLE as usize).is_multiple_of(SAMPLED), "each thread samples as many keys") };
    let (plan, len) = (job.plan, part.len() as u32);
    let places = places::<SAMPLED>(len, seed);
    let (mut sample, mut next) = ([B::MIN; SAMPLED], [B::MIN; SAMPLED]);
    for at in 0..SAMPLED {
        // Of many segments two keys at a time: what takes long is to read at so many places.
        let is_beside = level > 0 && len > 1 && at % 2 > 0;
        sample[at] = part.get(if is_beside { places[at - 1] + 1 } else { places[at] });
    }
    let looks_for_runs = level == 0 && len > 1;
    if looks_for_runs {
        for at in 0..SAMPLED {
            next[at] = part.get(places[at] + 1);
        }
    }
    coding.encode_all(&mut sample);
    coding.encode_all(&mut next);
    // SAFETY: all threads of the block are here, as below.
    let (ascents, descents) = if looks_for_runs { unsafe { steps(sample, next, scan) } } else { (0, 0) };
    let in_runs = ascents.max(descents) > SAMPLE * 5 / 8;
    // SAFETY: as above.
    let (least, greatest) = unsafe { range(sample, scan) };
    // SAFETY: as above.
    let Spread { is_exact, curve, fullest } =
        unsafe { spread::<_, _, ONCE>(sample, (least, greatest), most, coding, intervals) };
    // If digits are to be even, those of the next level can be counted at once, unless keys are of few values, or too
    // many.
    let wanted = len.div_ceil(job.usual.max(1));
    let twice = plan.twice != 0
        && level == 0
        && plan.levels > 1
        && greatest - least > B::from_register(1 << 24)
        && curve == Curve::Distance
        && is_even(fullest, SAMPLE)
        && wanted > single
        && wanted.div_ceil(FINER) < MOST_TWICE;
    let digits = if is_exact {
        Digits::exact(least, greatest)
    } else {
        // After the last level nothing is divided any more.
        let single = if level + 1 < plan.levels { single } else { most };
        let scatters = level == 0 && !ONCE && !is_even(fullest, SAMPLE);
        let most = if scatters { most.min(MOST_FIRST) } else { most };
        let count = if twice { wanted.div_ceil(FINER) } else { digits_for(len, fullest, job.usual, single, most) };
        // There are keys a little beyond those sampled. Near the least one logarithms are of few keys each.
        let margin = if curve == Curve::Distance { (greatest - least).shifted_down(8) } else { B::MIN };
        let (least, greatest) = (least - margin.min(least - B::MIN), greatest + margin.min(B::MAX - greatest));
        Digits::along(curve, least, greatest, count, coding)
    };
    let is_even_enough = || {
        if is_exact || is_even(fullest, SAMPLE) {
            return true;
        }
        if ONCE {
            // Digits are to be so narrow that the keys of the fullest interval fit buckets, if they are even.
            let inside = (curve, coding, DEPTH_ONCE);
            // SAFETY: all threads of the block are here, since they all know the same, as below.
            return wanted * digits_of_even(fullest) <= most
                && unsafe { left_uneven(sample, (least, greatest), most, inside, intervals, scan) } == 0;
        }
        let inside = (Curve::Distance, Coding::NONE, DEPTH);
        // SAFETY: as above.
        let left = unsafe { left_uneven(sample, (least, greatest), most, inside, intervals, scan) };
        // Uneven keys take more levels than there are for fewer keys, or with values.
        left == 0 || plan.levels > 3 && fullest <= UNEVEN && (fullest <= UNEVEN_ANYWAY || left <= LEFT)
    };
    let divides = level > 0 || always_divides || !in_runs && is_even_enough();
    if divides {
        Ok(Choice { digits, exact: is_exact, twice })
    } else {
        Err(Undivided { in_order: ascents.min(descents) == 0, ascends: descents == 0 })
    }
}

/// Notes that `parts` parts from number `first` on are those of segment `i`.
#[inline(always)]
#[track_caller]
pub(super) fn note_parts(workspace: Workspace, i: u32, first: u32, parts: u32) {
    let mut part = thread::thread_idx_x();
    while part < parts {
        workspace.set_segment_of_part(first + part, i);
        part += thread::block_dim_x();
    }
}

/// Where the keys are that this thread samples of `len`. None is the last one unless it is the only one.
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
/// As for [`block_range`].
#[inline(always)]
unsafe fn range<B: Bits, const SAMPLED: usize>(sample: [B; SAMPLED], scan: Shared<u32>) -> (B, B) {
    let (mut least, mut greatest) = (sample[0], sample[0]);
    for at in 1..SAMPLED {
        (least, greatest) = (least.min(sample[at]), greatest.max(sample[at]));
    }
    // SAFETY: all threads of the block are here, and nothing else uses `scan`, of `BLOCK_WORDS`: what `block_range`
    // asks for as well.
    unsafe { block_range(least, greatest, scan) }
}

/// How many of the sampled keys are less than the `next` one, and how many are greater.
///
/// # Safety
/// As for [`sum_before`]. Ends with a barrier.
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
    // SAFETY: all threads of the block are here, and nothing else uses `scan`, of `BLOCK_WORDS`, before the barrier
    // that follows.
    let (_, both) = unsafe { sum_before(ascents << 16 | descents, scan) };
    thread::sync_threads();
    (both >> 16, both & 0xffff)
}

/// How the keys of a sample are spread over their range.
struct Spread {
    /// Whether the range has so few numbers that each can have a digit.
    is_exact: bool,
    /// Along what digits of equal width have about equally many keys, or more nearly than along others.
    curve: Curve,
    /// Keys in the fullest of [`INTERVALS`] intervals along that.
    fullest: u32,
}

/// Whether the keys from `least` to `greatest` are so few that up to `most` digits have one each.
#[inline(always)]
fn is_narrow<B: Bits>(least: B, greatest: B, most: u32) -> bool {
    greatest - least < B::from_register(most as u64)
}

/// Looks at a sample between the `range` of its keys, along one curve after the other until one is even, but not along
/// the logarithm if keys are divided `ONCE`. Up to `most` numbers have a digit each.
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
            // SAFETY: all threads of the block are here: `best` is made of numbers that all of them have read alike.
            // Nothing else uses `intervals`.
            let (fullest, _) = unsafe { fullest_interval(sample, of_intervals, coding, |_| true, intervals) };
            // Digits along the distance are made faster.
            if curve == Curve::Distance || 4 * fullest < 3 * best.fullest {
                best = Spread { curve, fullest, ..best };
            }
        }
    };
    look(Curve::Distance);
    if coding.is_of_floats() {
        look(Curve::Value);
    }
    // Keys that are even along it have some that are too frequent for one division.
    if !ONCE {
        look(Curve::Logarithm);
        look(Curve::Mirrored);
    }
    best
}

/// Digits along `curve` from `least` to `greatest`, of which as many as [`FINE`] are an interval.
#[inline(always)]
fn intervals_along<B: Bits>(curve: Curve, least: B, greatest: B, coding: Coding<B>) -> Digits<B> {
    Digits::along(curve, least, greatest, FINE * INTERVALS, coding)
}

/// The interval of a key. A digit more than there are to be belongs to the last one.
#[inline(always)]
fn interval<B: Bits>(of_intervals: Digits<B>, key: B, coding: Coding<B>) -> u32 {
    (of_intervals.of::<ANY>(key, coding) / FINE).min(INTERVALS - 1)
}

/// How many of those keys of a sample that are counted the fullest of `of_intervals` has, and which one that is.
///
/// # Safety
/// As for [`spread`].
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
    // Each warp finds it, of an interval a lane: the number of keys, and the interval, in one number.
    let lane = warp::lane_id();
    // SAFETY: whole warps are here.
    let fullest = unsafe { reduce_max(FULL_MASK, intervals.get(lane) << INTERVAL_BITS | lane) };
    (fullest >> INTERVAL_BITS, fullest & (INTERVALS - 1))
}

/// How many keys of a sample are left if one looks at those of the fullest interval along a curve, then at those of its
/// fullest one, and so on, `depth` times. It is 0 if one of these looks finds that digits of equal width have about
/// equally many of them, or that they are so few that up to `most` digits have one each. Floats are even along the
/// distance within a power of two.
///
/// # Safety
/// As for [`block_range`] and [`spread`].
#[inline(always)]
unsafe fn left_uneven<B: Bits, const SAMPLED: usize>(
    sample: [B; SAMPLED],
    (mut low, mut high): (B, B),
    most: u32,
    (curve, coding, depth): (Curve, Coding<B>, u32),
    intervals: Shared<u32>,
    scan: Shared<u32>,
) -> u32 {
    let (mut sampled, mut looks) = (SAMPLE, 0);
    while looks < depth {
        let of_intervals = intervals_along(curve, low, high, coding);
        let here = |key: B| low <= key && key <= high;
        // SAFETY: all threads of the block are here: when the loop ends is decided by numbers that all of them have
        // read alike. Nothing else uses `intervals`.
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
        // SAFETY: as above; nothing else uses `scan`, of `BLOCK_WORDS`.
        (low, high) = unsafe { block_range(first, last, scan) };
        if is_narrow(low, high, most) {
            return 0;
        }
        sampled = keys;
        looks += 1;
    }
    sampled
}
