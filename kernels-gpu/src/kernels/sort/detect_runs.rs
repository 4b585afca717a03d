//! Detection of arrays that are in order or nearly so.
//!
//! ```text
//!   detect_runs       3 ≤ 5 ≤ 5 ≤ 7 ≤ 9    no descent: sorted, and all later kernels end at once
//!                     9 > 7 > 5 > 3 > 1    no ascent: reversed, and all later kernels end at once
//!                     3 ≤ … > 2 ≤ … > 1 …  few descents: long runs, which one pass merges
//!                     3 ≤ 9 > 4 > 1 …      many descents, usually seen in the first keys: to be sorted
//! ```
//!
//! The result is in global memory: words that are 0 before, and the starts of runs.

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
pub const DETECTION_WORDS: usize = 6;

/// The words of the result. If there are none, nothing is known.
#[derive(Clone, Copy)]
pub(super) struct Detection(Option<GlobalMut<u32>>);

/// Index of the count of keys that are less than the key before, until there are many.
const DESCENTS: usize = 0;

/// Index of the word that is 1 if there are more descents than long runs have, or [`UNDETECTED`].
const MANY: usize = 1;

/// Value of [`MANY`] for keys that are assumed to have many descents, without a look at all of them.
const UNDETECTED: u32 = 2;

/// Index of the word that is 1 if some key is greater than the key before it.
const ASCENT: usize = 2;

/// Index of the word that is 1 if keys are divided, and not merged.
const DIVIDED: usize = 3;

/// Index of the word that is 1 if keys are to be sorted by windows first.
const WINDOWS: usize = 4;

/// Index of the word that is 1 if some window could not be sorted.
const UNSORTED_WINDOW: usize = 5;

impl Detection {
    /// # Safety
    /// `found` is null or of [`DETECTION_WORDS`] words in global memory that nothing else writes.
    #[inline(always)]
    pub(super) unsafe fn new(found: *mut u32) -> Self {
        // SAFETY: if `found` is not null, the caller ensures `DETECTION_WORDS` = 6 words. They are indexed by
        // `DESCENTS` to `UNSORTED_WINDOW`, 0 to 5.
        Self((!found.is_null()).then(|| unsafe { GlobalMut::new(found, DETECTION_WORDS) }))
    }

    /// Whether keys were in order, or are in order by now because they have been reversed or merged.
    #[inline(always)]
    #[track_caller]
    pub(super) fn is_ordered(self) -> bool {
        self.0.is_some_and(|found| (found.get(MANY) == 0) | (found.get(ASCENT) == 0))
    }

    /// Whether the merge passes have nothing to do: keys are in order, or are being divided.
    #[inline(always)]
    #[track_caller]
    pub(super) fn is_done(self) -> bool {
        // All words are read at once: thousands of blocks wait for them and then usually end.
        self.is_ordered() | self.is_divided()
    }

    /// Whether keys are divided.
    #[inline(always)]
    #[track_caller]
    pub(super) fn is_divided(self) -> bool {
        self.0.is_some_and(|found| found.get(DIVIDED) != 0)
    }

    /// Stores that keys are divided.
    #[inline(always)]
    #[track_caller]
    pub(super) fn divide(self) {
        if let Some(found) = self.0 {
            found.set(DIVIDED, 1);
        }
    }

    /// Stores that keys are not divided after all.
    #[inline(always)]
    #[track_caller]
    pub(super) fn give_up(self) {
        if let Some(found) = self.0 {
            found.set(DIVIDED, 0);
        }
    }

    /// Stores that keys are assumed to be in no order, if nothing has been detected. The words need not be 0 before.
    #[inline(always)]
    #[track_caller]
    pub(super) fn begin(self) {
        if let Some(found) = self.0 {
            found.set(DESCENTS, 0);
            found.set(MANY, UNDETECTED);
            found.set(ASCENT, 1);
            found.set(DIVIDED, 0);
            found.set(WINDOWS, 0);
            found.set(UNSORTED_WINDOW, 0);
        }
    }

    /// Stores, after [`begin`](Self::begin), that [`detect_runs`] is to detect whether keys are in order.
    #[inline(always)]
    #[track_caller]
    pub(super) fn detect_later(self) {
        if let Some(found) = self.0 {
            found.set(MANY, 0);
            found.set(ASCENT, 0);
        }
    }

    /// Stores, after [`begin`](Self::begin), that keys are to be sorted by windows, before [`detect_runs`] is to detect
    /// whether they are in order.
    #[inline(always)]
    #[track_caller]
    pub(super) fn begin_windows(self) {
        self.detect_later();
        if let Some(found) = self.0 {
            found.set(WINDOWS, 1);
        }
    }

    /// Stores that some window cannot be sorted.
    #[inline(always)]
    #[track_caller]
    pub(super) fn give_up_windows(self) {
        if let Some(found) = self.0 {
            found.raise(UNSORTED_WINDOW);
        }
    }

    /// Whether keys are to be sorted by windows.
    #[inline(always)]
    #[track_caller]
    pub(super) fn has_windows(self) -> bool {
        self.0.is_some_and(|found| found.get(WINDOWS) != 0)
    }

    /// Whether all windows have been sorted.
    #[inline(always)]
    #[track_caller]
    pub(super) fn has_sorted_windows(self) -> bool {
        self.0.is_some_and(|found| found.get(WINDOWS) != 0 && found.get(UNSORTED_WINDOW) == 0)
    }

    /// Stores that keys ascend unless one [descends](Self::note_descent). All words are 0 before.
    #[inline(always)]
    #[track_caller]
    pub(super) fn expect_ascent(self) {
        if let Some(found) = self.0 {
            found.set(ASCENT, 1);
        }
    }

    /// Stores that some key is less than the key before it.
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

    /// Whether it is known that there are not a few long runs.
    #[inline(always)]
    #[track_caller]
    pub(super) fn is_not_of_long_runs(self) -> bool {
        self.0.is_some() && !self.is_of_long_runs()
    }

    /// Whether there are at least two runs, but few.
    #[inline(always)]
    #[track_caller]
    pub(super) fn is_of_long_runs(self) -> bool {
        self.0.is_some_and(|found| found.get(ASCENT) != 0 && found.get(MANY) == 0 && found.get(DESCENTS) != 0)
    }
}

/// Keys that a thread compares between two votes of its warp.
const KEYS_BETWEEN_VOTES: usize = 8;

const _: () = assert!(KEYS_BETWEEN_VOTES <= u32::BITS as usize, "a word has a bit for each");

/// Keys that a warp compares between two votes.
const BETWEEN_VOTES: usize = KEYS_BETWEEN_VOTES * WARP_SIZE as usize;

/// Compares the key at `first`, and others a warp's width apart, each with its next key. Unless `ALL` keys are
/// compared, keys from index `end` on are left out. Returns a bit for each key that is greater than its next key. Also
/// returns whether a key is less than its next key, or equal to it if `equal_ascends`.
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

/// Kernel: detects whether the keys, as `coding` orders them, ascend, descend or consist of few runs, and stores the
/// result in `found`. If there are at most `most_descents` descents, fewer than [`MAX_RUNS`], the starts of runs go to
/// `starts`, in any order.
///
/// Equal neighbours count as an ascent if `equal_ascends` is not 0. An array without ascents may then be reversed with
/// its values, and stays stable. A warp stops once it has found an ascent and many descents; otherwise it reads its
/// whole share. Nothing is read if `choose_digits` has stored that keys are assumed to be in no order.
///
/// # Safety
/// `keys` has `n` keys, in global memory. `found` has [`DETECTION_WORDS`] words, which are 0 or set by
/// [`choose_digits`](crate::kernels::sort::divide::choose_digits::choose_digits). `starts` has capacity for
/// [`MAX_RUNS`] indices. Blocks are whole warps, of up to [`DETECTION_THREADS`] threads, with
/// [`DETECTION_SHARED_BYTES`] of dynamic shared memory.
#[kernel(u32 = <u32>, u64 = <u64> within (DETECTION_THREADS as usize, 5))]
pub unsafe fn detect_runs<B: Bits>(
    keys: *const B,
    n: usize,
    coding: Coding<B>,
    equal_ascends: u32,
    most_descents: u32,
    found: *mut u32,
    starts: *mut usize,
) {
    // SAFETY: `keys` has `n` keys, and key `i` is compared with key `i + 1` for `i < end = n - 1`. `found` has
    // `DETECTION_WORDS` words. All threads may use them in any order by `load`, `fetch_add` and `raise`.
    let (keys, found) = unsafe { (Global::new(keys, n), GlobalMut::new(found, DETECTION_WORDS)) };
    if found.load(MANY) == UNDETECTED {
        return;
    }
    // SAFETY: `starts` has capacity for `MAX_RUNS` indices. A slot is written only if it is below `most_descents`,
    // which is below `MAX_RUNS`. `fetch_add` gives each slot to one thread only.
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
        // SAFETY: `at`, `many` and `ascends` are the same for all lanes of a warp, so that the 32 lanes make the call.
        let count = unsafe { reduce_add(FULL_MASK, descents.count_ones()) };
        if count > 0 && !many {
            many = count > most_descents;
            if !many {
                many = !note_starts(descents, first, most_descents, found, starts);
            }
        }
        // SAFETY: no branch surrounds the calls that differs between lanes, so that the 32 lanes of the warp make both.
        (many, ascends) = unsafe { (ballot(FULL_MASK, many) != 0, ballot(FULL_MASK, ascends) != 0) };
        at += BETWEEN_VOTES * warps;
    }
    // SAFETY: the launch has `DETECTION_SHARED_BYTES`, and all threads of the block make this call.
    unsafe { raise_for_block(many, ascends, found) };
}

/// Adds the starts of runs behind a lane's descents to `starts`. Bit i of `descents` belongs to key `first + 32 i`.
/// Returns false if there are too many.
#[inline(always)]
#[track_caller]
fn note_starts(descents: u32, first: usize, most: u32, found: GlobalMut<u32>, starts: GlobalMut<usize>) -> bool {
    let (mut left, mut has_room) = (descents, true);
    while left != 0 {
        let slot = found.fetch_add(DESCENTS, 1);
        if slot < most {
            starts.set(slot as usize, first + left.trailing_zeros() as usize * WARP_SIZE as usize + 1);
        } else {
            has_room = false;
        }
        left &= left - 1;
    }
    has_room
}

/// Raises what the warps of the block have found, by one write for each word: writes to one address wait for each
/// other.
///
/// # Safety
/// The launch has [`DETECTION_SHARED_BYTES`], and all threads of the block, which are whole warps, make this call.
#[inline(always)]
#[track_caller]
unsafe fn raise_for_block(many: bool, ascends: bool, found: GlobalMut<u32>) {
    // SAFETY: the launch has `DETECTION_SHARED_BYTES`. Lane 0 of each warp writes the word of its warp before the
    // barrier, and thread 0 reads the words after it.
    let of_warps = unsafe { Memory::at_start() }.of_warps.slice(0, thread::block_dim_x() / WARP_SIZE);
    if warp::lane_id() == 0 {
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

/// Kernel: if there are long runs, copies the keys, as `coding` encodes them. The first block also sorts the starts of
/// runs. `starts` gets [`MAX_RUNS`] indices and one more; the surplus is the array's end.
///
/// # Safety
/// `from` and `to` have `n` keys, in global memory, and do not overlap. [`detect_runs`] has written `found` and
/// `begins`. `starts` has capacity for [`MAX_RUNS`] indices and one more. Blocks have more than [`MAX_RUNS`] threads,
/// since otherwise some indices are not written.
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
    // SAFETY: `from` and `to` have `n` keys and do not overlap. Thread `t` moves the keys `i < n` with `i` mod
    // `threads` = `t`, so that no two threads write the same one. `found` is only read.
    let (from, to, found) =
        unsafe { (Global::new(from, n), GlobalMut::new(to, n), GlobalMut::new(found, DETECTION_WORDS)) };
    // SAFETY: `begins` is read below `count`, which is below `MAX_RUNS`, since `detect_runs` has found few descents.
    // Only thread `number <= MAX_RUNS` of the first block writes `starts[number]`, of `MAX_RUNS + 1` indices.
    let (begins, starts) =
        unsafe { (Global::new(begins, MAX_RUNS as usize), GlobalMut::new(starts, MAX_RUNS as usize + 1)) };
    if thread::block_idx_x() == 0 && thread::thread_idx_x() <= MAX_RUNS {
        // The first run starts at 0. Run `number` starts at the begin that has `number - 1` smaller ones.
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
/// `array` has `n` elements, in global memory. `detect_runs` has written `found`.
#[kernel(u32 = <u32, 8>, u64 = <u64, 1>)]
pub unsafe fn reverse<T: Word, const PAIRS: usize>(array: *mut T, n: usize, found: *mut u32) {
    // SAFETY: `array` has `n` elements. For `at < n / 2`, elements `at` and `n - 1 - at` are in no other pair, and each
    // `at` belongs to one thread.
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
