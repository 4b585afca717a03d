//! Finding out that there is nothing to sort.
//!
//! ```text
//!   detect_runs       3 ≤ 5 ≤ 5 ≤ 7 ≤ 9    no descent: sorted, and all that follows ends at once
//!                     9 > 7 > 5 > 3 > 1    no ascent: reverse puts it right, and all that follows ends at once
//!                     3 ≤ … > 2 ≤ … > 1 …  few descents: long runs, which one pass merges
//!                     3 ≤ 9 > 4 > 1 …      many, as most arrays show in their first keys: to be sorted
//! ```
//!
//! What has been found is noted in global memory: words that are 0 before, and where runs begin.

use crate::block::shared_memory::shared_memory;
use crate::kernels::sort::runs::MAX_RUNS;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot, reduce_add};

/// Threads of a block of [`detect_runs`] and of [`reverse`].
pub const DETECTION_THREADS: u32 = 256;

shared_memory! {
    /// Shared memory of [`detect_runs`].
    struct Memory() {
        /// What each warp has found.
        of_warps: [u32; DETECTION_THREADS / WARP_SIZE],
    }
}

/// Bytes of dynamic shared memory of [`detect_runs`].
pub const DETECTION_SHARED_BYTES: u32 = Memory::bytes();

/// Words that [`detect_runs`] writes, and
/// [`choose_digits`](crate::kernels::sort::divide::choose_digits::choose_digits).
pub const DETECTION_WORDS: usize = 4;

/// The words that tell what has been found, or none: then nothing is known.
#[derive(Clone, Copy)]
pub(super) struct Detection(Option<GlobalMut<u32>>);

/// Which of the words counts keys that are less than the one before, until there are many.
const DESCENTS: usize = 0;

/// Which of the words is 1 if there are more descents than long runs have, or [`UNDETECTED`].
const MANY: usize = 1;

/// That keys are taken to have many descents, without reading all of them.
const UNDETECTED: u32 = 2;

/// Which of the words is 1 if some key is greater than the one before it.
const ASCENT: usize = 2;

/// Which of the words is 1 if keys are divided, and not merged.
const DIVIDED: usize = 3;

impl Detection {
    /// # Safety
    /// `found` is null or of [`DETECTION_WORDS`] words in global memory that nothing else writes.
    #[inline(always)]
    pub(super) unsafe fn new(found: *mut u32) -> Self {
        // SAFETY: if not null, `found` has `DETECTION_WORDS`, four, as the caller promises, and they are indexed by
        // `DESCENTS` to `DIVIDED`, 0 to 3.
        Self((!found.is_null()).then(|| unsafe { GlobalMut::new(found, DETECTION_WORDS) }))
    }

    /// Whether keys were in order, or are by now because they have been reversed or merged.
    #[inline(always)]
    #[track_caller]
    pub(super) fn is_ordered(self) -> bool {
        self.0.is_some_and(|found| (found.get(MANY) == 0) | (found.get(ASCENT) == 0))
    }

    /// Whether there is nothing to do for the passes of merges: keys are in order, or are being divided.
    #[inline(always)]
    #[track_caller]
    pub(super) fn is_done(self) -> bool {
        // All words are read at once: thousands of blocks wait for them, and do nothing else, as a rule.
        self.is_ordered() | self.is_divided()
    }

    /// Whether keys are divided.
    #[inline(always)]
    #[track_caller]
    pub(super) fn is_divided(self) -> bool {
        self.0.is_some_and(|found| found.get(DIVIDED) != 0)
    }

    /// Notes that keys are divided.
    #[inline(always)]
    #[track_caller]
    pub(super) fn divide(self) {
        if let Some(found) = self.0 {
            found.set(DIVIDED, 1);
        }
    }

    /// Notes that keys are not divided after all.
    #[inline(always)]
    #[track_caller]
    pub(super) fn give_up(self) {
        if let Some(found) = self.0 {
            found.set(DIVIDED, 0);
        }
    }

    /// Notes that keys are taken to be in no order, where nothing has been detected. The words need not be 0 before.
    #[inline(always)]
    #[track_caller]
    pub(super) fn begin(self) {
        if let Some(found) = self.0 {
            found.set(DESCENTS, 0);
            found.set(MANY, UNDETECTED);
            found.set(ASCENT, 1);
            found.set(DIVIDED, 0);
        }
    }

    /// Notes, after [`begin`](Self::begin), that [`detect_runs`] is to find out whether keys are in order.
    #[inline(always)]
    #[track_caller]
    pub(super) fn detect_later(self) {
        if let Some(found) = self.0 {
            found.set(MANY, 0);
            found.set(ASCENT, 0);
        }
    }

    /// Notes, where all words are 0, that keys ascend unless one [descends](Self::note_descent).
    #[inline(always)]
    #[track_caller]
    pub(super) fn expect_ascent(self) {
        if let Some(found) = self.0 {
            found.set(ASCENT, 1);
        }
    }

    /// Notes that some key is less than the one before it.
    #[inline(always)]
    #[track_caller]
    pub(super) fn note_descent(self) {
        if let Some(found) = self.0 {
            found.raise(MANY);
        }
    }

    /// Whether keys descend.
    #[inline(always)]
    #[track_caller]
    fn descends(self) -> bool {
        self.0.is_some_and(|found| found.get(ASCENT) == 0 && (found.get(MANY) != 0 || found.get(DESCENTS) != 0))
    }

    /// Whether there are some runs, but few.
    #[inline(always)]
    #[track_caller]
    pub(super) fn is_of_long_runs(self) -> bool {
        self.0.is_some_and(|found| found.get(ASCENT) != 0 && found.get(MANY) == 0 && found.get(DESCENTS) != 0)
    }
}

/// Keys that a thread compares between two votes of its warp.
const KEYS_BETWEEN_VOTES: usize = 8;

const _: () = assert!(KEYS_BETWEEN_VOTES <= u32::BITS as usize, "a word has a bit for each");

/// Those of the warp.
const BETWEEN_VOTES: usize = KEYS_BETWEEN_VOTES * WARP_SIZE as usize;

/// Compares some keys, the one at `first` and others a warp's width apart, with the next ones, but for those from index
/// `end` on, of which there are none if they are `ALL` to be compared. Gives a bit for each that is greater than the
/// next one, and whether one is less, or equal and `equal_ascends`.
#[inline(always)]
#[track_caller]
fn compare<B: Bits, const ALL: bool>(
    keys: Global<B>,
    first: usize,
    end: usize,
    coding: Coding<B>,
    equal_ascends: bool,
) -> (u32, bool) {
    let mut own = [(B::MIN, B::MIN); KEYS_BETWEEN_VOTES];
    let is_here = |step: usize| ALL || first + step * (WARP_SIZE as usize) < end;
    for step in 0..KEYS_BETWEEN_VOTES {
        if is_here(step) {
            let i = first + step * WARP_SIZE as usize;
            own[step] = (keys.get(i), keys.get(i + 1));
        }
    }
    let (mut descents, mut ascends) = (0, false);
    for step in 0..KEYS_BETWEEN_VOTES {
        let (key, next) = (coding.encode(own[step].0), coding.encode(own[step].1));
        if is_here(step) {
            descents |= u32::from(next < key) << step;
            ascends |= key < next || equal_ascends && key == next;
        }
    }
    (descents, ascends)
}

/// Kernel: detects whether the keys, as `coding` orders them, ascend or descend, or are of few runs, and notes it in
/// the words at `found`. Where runs begin is put to `starts`, in any order, if there are `most_descents` at most, which
/// is below [`MAX_RUNS`].
///
/// Equal neighbours count as an ascent if `equal_ascends` is not 0: then an array without ascents may be reversed with
/// its values, and stays stable. Warps read neighbouring keys. One ends when it has found an ascent and that there are
/// many descents, and reads all of its share only if it has not. None reads anything where `choose_digits` has noted
/// that keys are taken to be in no order.
///
/// # Safety
/// `keys` has `n` keys, in global memory, `found` [`DETECTION_WORDS`] words, which are 0, or set by
/// [`choose_digits`](crate::kernels::sort::divide::choose_digits::choose_digits), and `starts` capacity for
/// [`MAX_RUNS`] indices. Blocks are of whole warps, with [`DETECTION_SHARED_BYTES`] of dynamic shared memory for up to
/// [`DETECTION_THREADS`] threads.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn detect_runs<B: Bits>(
    keys: *const B,
    n: usize,
    coding: Coding<B>,
    equal_ascends: u32,
    most_descents: u32,
    found: *mut u32,
    starts: *mut usize,
) {
    // SAFETY: `keys` has `n` keys, and key `i` is compared with key `i + 1` for `i < end`, which is `n - 1`. `found`
    // has `DETECTION_WORDS`, of which `load`, `fetch_add` and `raise` allow that all threads use them without order.
    let (keys, found) = unsafe { (Global::new(keys, n), GlobalMut::new(found, DETECTION_WORDS)) };
    if found.load(MANY) == UNDETECTED {
        return;
    }
    // SAFETY: `starts` has capacity for `MAX_RUNS`. A slot is written if it is below `most_descents`, which is below
    // `MAX_RUNS`, and `fetch_add` gives each slot to one thread only.
    let starts = unsafe { GlobalMut::new(starts, MAX_RUNS as usize) };
    let warps = (thread::grid_dim_x() * (thread::block_dim_x() / WARP_SIZE)) as usize;
    let (warp, lane) = (thread::index_1d() / WARP_SIZE, warp::lane_id());
    let (mut at, end) = (warp as usize * BETWEEN_VOTES, n.saturating_sub(1));
    let (mut many, mut ascends) = (false, false);
    while at < end && !(many && ascends) {
        let first = at + lane as usize;
        let (descents, some_ascend) = if at + BETWEEN_VOTES <= end {
            compare::<B, true>(keys, first, end, coding, equal_ascends != 0)
        } else {
            compare::<B, false>(keys, first, end, coding, equal_ascends != 0)
        };
        ascends |= some_ascend;
        // SAFETY: the lanes of a warp have the same share, and leave the loop together.
        let count = unsafe { reduce_add(FULL_MASK, descents.count_ones()) };
        if count > 0 && !many {
            many = count > most_descents;
            if !many {
                let mut left = descents;
                while left != 0 {
                    let slot = found.fetch_add(DESCENTS, 1);
                    if slot < most_descents {
                        let step = left.trailing_zeros() as usize;
                        starts.set(slot as usize, at + step * WARP_SIZE as usize + lane as usize + 1);
                    } else {
                        many = true;
                    }
                    left &= left - 1;
                }
            }
        }
        // SAFETY: as above.
        (many, ascends) = unsafe { (ballot(FULL_MASK, many) != 0, ballot(FULL_MASK, ascends) != 0) };
        at += BETWEEN_VOTES * warps;
    }
    // Once a block: writes to one address wait for each other.
    // SAFETY: the launch has `DETECTION_SHARED_BYTES`. Lane 0 of each warp writes the word of its warp, before the
    // barrier; thread 0 reads them after it.
    let of_warps = unsafe { Memory::at_start() }.of_warps.slice(0, thread::block_dim_x() / WARP_SIZE);
    if lane == 0 {
        of_warps.set(thread::thread_idx_x() / WARP_SIZE, u32::from(many) | u32::from(ascends) << 1);
    }
    thread::sync_threads();
    if thread::thread_idx_x() == 0 {
        let (mut of_block, mut warp) = (0, 0);
        while warp < of_warps.len() {
            of_block |= of_warps.get(warp);
            warp += 1;
        }
        if of_block & 1 != 0 {
            found.raise(MANY);
        }
        if of_block & 2 != 0 {
            found.raise(ASCENT);
        }
    }
}

/// Kernel: if there are long runs, copies the keys, as `coding` orders them, and puts the indices at which runs begin
/// in order, which the first block does: `starts` has [`MAX_RUNS`] of them and one more, the array's end where runs are
/// fewer.
///
/// # Safety
/// `from` and `to` have `n` keys, in global memory, and do not overlap; `found` and `begins` are what [`detect_runs`]
/// wrote; `starts` has capacity for [`MAX_RUNS`] and one more, of which each is written only if blocks have more than
/// [`MAX_RUNS`] threads.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn copy_runs<B: Bits>(
    from: *const B,
    to: *mut B,
    n: usize,
    coding: Coding<B>,
    found: *mut u32,
    begins: *const usize,
    starts: *mut usize,
) {
    // SAFETY: `found` has the `DETECTION_WORDS` words of `detect_runs`, which this launch only reads.
    if !unsafe { Detection::new(found) }.is_of_long_runs() {
        return;
    }
    // SAFETY: `from` and `to` have `n` keys and do not overlap. A thread moves those with `i < n` that its number has
    // modulo the number of threads, so that no two threads write one. `found` is only read.
    let (from, to, found) =
        unsafe { (Global::new(from, n), GlobalMut::new(to, n), GlobalMut::new(found, DETECTION_WORDS)) };
    // SAFETY: `begins` is read below `count`, which is below `MAX_RUNS`: `detect_runs` has noted that descents are not
    // many. Thread `number <= MAX_RUNS` of the first block alone writes `starts[number]`, of `MAX_RUNS + 1`.
    let (begins, starts) =
        unsafe { (Global::new(begins, MAX_RUNS as usize), GlobalMut::new(starts, MAX_RUNS as usize + 1)) };
    if thread::block_idx_x() == 0 && thread::thread_idx_x() <= MAX_RUNS {
        // The first run begins at 0, and the others where the thread's number of begins are before.
        let (number, count) = (thread::thread_idx_x(), found.get(DESCENTS));
        let mut start = if number == 0 { 0 } else { n };
        for i in 0..count {
            let begin = begins.get(i as usize);
            let mut before = 1;
            for j in 0..count {
                before += u32::from(begins.get(j as usize) < begin);
            }
            if before == number {
                start = begin;
            }
        }
        starts.set(number as usize, start);
    }
    let threads = (thread::grid_dim_x() * thread::block_dim_x()) as usize;
    let mut i = thread::index_1d() as usize;
    while i < n {
        to.set(i, coding.encode(from.get(i)));
        i += threads;
    }
}

/// Kernel: reverses an array of keys or of values, if [`detect_runs`] has found that the keys descend.
/// A thread swaps `PAIRS` pairs at once.
///
/// # Safety
/// `array` has `n` elements, in global memory; `found` is what `detect_runs` wrote.
#[kernel(u32 = <u32, 8>, u64 = <u64, 1>)]
pub unsafe fn reverse<T: Word, const PAIRS: usize>(array: *mut T, n: usize, found: *mut u32) {
    // SAFETY: `array` has `n` elements. For `at < n / 2` the pair `at` and `n - 1 - at` is two elements that are in no
    // other pair, and each `at` is of one thread.
    let array = unsafe { GlobalMut::new(array, n) };
    // SAFETY: `found` has the `DETECTION_WORDS` words of `detect_runs`, which this launch only reads.
    if !unsafe { Detection::new(found) }.descends() {
        return;
    }
    let threads = (thread::grid_dim_x() * thread::block_dim_x()) as usize;
    let mut i = thread::index_1d() as usize;
    while i < n / 2 {
        // All loads first, so that they are in flight together.
        let mut pairs = [(T::from_register(0), T::from_register(0)); PAIRS];
        for (step, pair) in pairs.iter_mut().enumerate() {
            let at = i + step * threads;
            if at < n / 2 {
                *pair = (array.get(at), array.get(n - 1 - at));
            }
        }
        for (step, (low, high)) in pairs.into_iter().enumerate() {
            let at = i + step * threads;
            if at < n / 2 {
                array.set(at, high);
                array.set(n - 1 - at, low);
            }
        }
        i += PAIRS * threads;
    }
}
