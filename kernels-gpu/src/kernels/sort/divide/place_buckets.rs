//! The third step of a division: the places of the keys of each digit, and the next step for these keys.
//!
//! ```text
//!   digits     │0│1│  2  │3│       4       │5│6│    7    │
//!   buckets    │   │     │ │               │   │         │      neighbours that one block can sort together
//!   segments               │       4       │                    too many for a block: divided again
//!   long buckets                           │   │         │      or fewer: a larger block sorts them
//! ```

use super::workspace::{Job, Segment, Work, Workspace};
use super::{DIGITS_CAPACITY, MOST_DIGITS};
use crate::block::scan::{BLOCK_WORDS, sum_before};
use crate::block::shared_memory::shared_memory;
use crate::kernels::sort::detect_runs::Detection;
use crate::key::Bits;
use cuda_std::prelude::*;

/// Threads of a block.
pub const PLACE_THREADS: u32 = 256;

/// Upper limit on the digits of a thread, in blocks of `threads` threads.
pub const fn own_digits_capacity(threads: usize) -> usize {
    (DIGITS_CAPACITY as usize).div_ceil(threads)
}

/// Bytes of dynamic shared memory.
pub const PLACE_SHARED_BYTES: u32 = PlaceMemory::bytes();

const _: () = assert!(MOST_DIGITS <= DIGITS_CAPACITY);

shared_memory! {
    /// Shared memory of a segment.
    pub(super) struct PlaceMemory() {
        /// Words of a scan.
        scan: [u32; BLOCK_WORDS],
        /// Index of the first key of each digit, counted from the segment's start, and the segment's length in the end.
        begins: [u32; DIGITS_CAPACITY + 1],
        /// First digit of each bucket.
        heads: [u32; DIGITS_CAPACITY + 1],
        /// First digit of the next bucket, if this digit begins one.
        next: [u32; DIGITS_CAPACITY + 1],
        /// Whether each digit begins a bucket.
        is_head: [u32; DIGITS_CAPACITY + 1],
    }
}

/// Kernel: turns the counters of each segment of `level` into the indices of the first key of each digit. It adds the
/// segment's buckets, and the segments of the next level, to their lists. If there is only one level, and a digit has
/// too many keys for a block, keys are not divided after all. Digits of equal keys need no work unless the keys are in
/// the scratch array or must be decoded, as `decodes` says.
///
/// # Safety
/// The requirements of [`count_digits`](super::count_digits::count_digits) hold, and that kernel has run before. Blocks
/// have [`PLACE_THREADS`] threads with [`PLACE_SHARED_BYTES`]. The launch of the first level has one block.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn place_buckets<B: Bits>(job: Job, level: u32, decodes: u32) {
    // SAFETY: the lists have `job.at.words` words, as `Job` says, and only these kernels write them.
    let workspace = unsafe { Workspace::new(&job) };
    // SAFETY: the launch has `PLACE_SHARED_BYTES`. Barriers of `Division::place` come between writing and reading, and
    // another one before the next segment.
    let memory = unsafe { PlaceMemory::at_start() };
    let mut i = thread::block_idx_x();
    while i < workspace.segments(level) {
        let segment = workspace.segment::<B>(i);
        let offsets = workspace.offsets(job.plan, i);
        let is_counted_twice = level == 0 && workspace.is_counted_twice();
        let counts = if is_counted_twice { workspace.first_counters(offsets.digits()) } else { offsets.begins() };
        let note = |digit: u32, begin: u32| offsets.begins().set(digit as usize, begin);
        let skip = || workspace.skip(i);
        let division = Division { job: &job, workspace, segment, level, decodes: decodes != 0 };
        // SAFETY: `i` and the number of segments are the same for all threads, so that all `PLACE_THREADS` threads of
        // the block make the call. `sync_threads` at the end of the loop comes before the next use of `memory`.
        let is_possible = unsafe {
            const THREADS: usize = PLACE_THREADS as usize;
            division.place::<THREADS, { own_digits_capacity(THREADS) }>(counts, note, skip, memory)
        };
        if !is_possible && thread::thread_idx_x() == 0 {
            // SAFETY: `job.order` has `DETECTION_WORDS`. This only happens if there is one level, whose launch has one
            // block, and thread 0 alone uses these words. No key has been moved yet.
            unsafe { Detection::new(job.order) }.give_up();
            workspace.clear();
        }
        thread::sync_threads();
        i += thread::grid_dim_x();
    }
}

/// The division of a segment of `level`, whose buckets go to the lists of `workspace`.
#[derive(Clone, Copy)]
pub(super) struct Division<'a, B> {
    pub job: &'a Job,
    pub workspace: Workspace,
    pub segment: Segment<B>,
    pub level: u32,
    /// Whether keys must be decoded in the end.
    pub decodes: bool,
}

impl<B: Bits> Division<'_, B> {
    /// Adds the buckets of the segment, and the segments of the next level, to their lists. `counts` holds the number
    /// of keys of each digit. `note` receives each digit and the index of its first key. `skip` is called if all keys
    /// are equal and stay where they are. Returns false, and adds nothing, if there is only one level and a digit has
    /// too many keys for a block.
    ///
    /// # Safety
    /// All `NT` threads of the block make this call. Nothing else uses `memory` before it, and nothing after it without
    /// a barrier in between. `OWN` is [`own_digits_capacity`] of `NT`.
    #[inline(always)]
    pub unsafe fn place<const NT: usize, const OWN: usize>(
        self,
        counts: GlobalMut<u32>,
        note: impl Fn(u32, u32),
        skip: impl Fn(),
        memory: PlaceMemory,
    ) -> bool {
        let Self { job, segment, .. } = self;
        let PlaceMemory { scan, begins, heads, next, is_head } = memory;
        let (count, len) = (counts.len() as u32, segment.len);
        let mut gives_up = false;
        // SAFETY: no branch surrounds the call, so that all `NT` threads of the block make it. Nothing else uses `scan`
        // before the barrier below.
        unsafe {
            place_digits::<NT, OWN>(counts, scan, |digit, begin, length| {
                begins.set(digit, begin);
                note(digit, segment.start + begin);
                gives_up |= job.plan.levels == 1 && is_too_long(job, segment, digit, length);
            });
        }
        if thread::thread_idx_x() == 0 {
            begins.set(count, len);
        }
        thread::sync_threads();
        if job.plan.levels == 1 {
            // SAFETY: `job.plan` is the same for all threads, so that all of them make the call. A barrier comes before
            // this use of `scan`, and one of `mark_heads` before the next.
            let (_, all) = unsafe { sum_before(u32::from(gives_up), scan) };
            if all > 0 {
                return false;
            }
        }
        // SAFETY: `all` is the same for all threads, so that all of them make both calls. A barrier comes before the
        // first; `mark_heads` ends with one before the second.
        let all_heads = unsafe {
            mark_heads::<NT, OWN>(job.plan.bucket, count, len, begins, next, is_head);
            list_heads::<NT, OWN>(count, is_head, heads, scan)
        };
        let mut bucket = thread::thread_idx_x();
        while bucket < all_heads {
            let digit = heads.get(bucket);
            let (begin, end) = (begins.get(digit), begins.get(heads.get(bucket + 1)));
            self.add_bucket(digit, begin, end, &skip);
            bucket += NT as u32;
        }
        true
    }

    /// Adds the bucket from index `begin` of its segment to `end` to the list of its next step. `digit` is its first
    /// digit. If there is only one level, no bucket [`is_too_long`].
    #[inline(always)]
    #[track_caller]
    fn add_bucket(self, digit: u32, begin: u32, end: u32, skip: &impl Fn()) {
        let Self { job, workspace, segment, level, decodes } = self;
        let plan = &job.plan;
        // The array that this level's keys go to.
        let to_scratch = level.is_multiple_of(2);
        let (at, length) = (segment.start + begin, end - begin);
        if length == 0 {
            return;
        }
        if length <= plan.bucket {
            workspace.set_bucket(workspace.add_buckets(1), at, length, to_scratch, Work::Sort);
            return;
        }
        if segment.digits.is_one_key(digit, segment.exact) {
            // Keys stay where they are if they are the whole segment. Values are not in the array before the first
            // division, so that this division moves them.
            let stays = length == segment.len && (level > 0 || plan.in_order == 0);
            let in_scratch = to_scratch != stays;
            if stays {
                skip();
            }
            // Before the first division, keys are not encoded either.
            if (in_scratch || decodes) && !(stays && level == 0) {
                let pieces = length.div_ceil(plan.bucket);
                let (room, mut piece) = (workspace.add_buckets(pieces), 0);
                while piece < pieces {
                    let begin = piece * plan.bucket;
                    let piece_len = (length - begin).min(plan.bucket);
                    workspace.set_bucket(room + piece, at + begin, piece_len, in_scratch, Work::Copy);
                    piece += 1;
                }
            }
        } else if length <= plan.long {
            workspace.add_long_bucket(at, length, to_scratch);
        } else if level + 1 == plan.levels {
            workspace.add_rest(at, length);
        } else {
            workspace.add_pending(level + 1, (at, length), plan.parts(length), digit);
        }
    }
}

/// Whether a digit of `length` keys has too many for a block, and these are not all equal.
#[inline(always)]
pub(super) fn is_too_long<B: Bits>(job: &Job, segment: Segment<B>, digit: u32, length: u32) -> bool {
    length > job.plan.bucket && !segment.digits.is_one_key(digit, segment.exact)
}

/// The digits of a thread: the first one, and the end.
#[inline(always)]
fn own_digits<const NT: usize>(count: u32) -> (u32, u32) {
    let own = count.div_ceil(NT as u32);
    let first = (thread::thread_idx_x() * own).min(count);
    (first, (first + own).min(count))
}

/// Calls `each` for each digit of this thread, with the digit, the number of keys of the digits before it, and its own
/// number of keys. `counts` holds the number of keys of each digit.
///
/// # Safety
/// All `NT` threads of the block make this call. `OWN` is [`own_digits_capacity`] of `NT`. Nothing else uses `scan`, of
/// [`BLOCK_WORDS`] words, between the barriers before and after the call.
#[inline(always)]
pub(super) unsafe fn place_digits<const NT: usize, const OWN: usize>(
    counts: GlobalMut<u32>,
    scan: Shared<u32>,
    mut each: impl FnMut(u32, u32, u32),
) {
    const { assert!(OWN >= own_digits_capacity(NT), "a thread has registers for its digits") };
    let (first, end) = own_digits::<NT>(counts.len() as u32);
    let mut own = [0; OWN];
    let mut sum = 0;
    for at in 0..OWN as u32 {
        if first + at < end {
            own[at as usize] = counts.get((first + at) as usize);
            sum += own[at as usize];
        }
    }
    // SAFETY: no branch surrounds the call, so that all `NT` threads of the block make it. Nothing uses `scan` before
    // the next barrier, as the caller ensures.
    let (mut begin, _) = unsafe { sum_before(sum, scan) };
    for at in 0..OWN as u32 {
        if first + at < end {
            each(first + at, begin, own[at as usize]);
            begin += own[at as usize];
        }
    }
}

/// Marks the digits that begin a bucket of up to `most` keys, among `count` digits of `len` keys.
///
/// # Safety
/// All threads of the block make this call, after a barrier. Ends with another one.
#[inline(always)]
unsafe fn mark_heads<const NT: usize, const OWN: usize>(
    most: u32,
    count: u32,
    len: u32,
    begins: Shared<u32>,
    next: Shared<u32>,
    is_head: Shared<u32>,
) {
    if len / count.max(1) > most / 2 {
        mark_most::<NT>(most, count, begins, is_head);
    } else {
        // SAFETY: `len`, `count` and `most` are the same for all threads. So all threads make the call, and the
        // caller's barrier comes before it.
        unsafe { mark_full::<NT, OWN>(most, count, begins, next, is_head) };
    }
}

/// Marks nearly all digits, if digits have more than half a bucket of keys on average. Shorter digits share a bucket if
/// they begin in the same half of `most` keys.
///
/// All threads of the block make this call, after a barrier. Ends with another one.
#[inline(always)]
#[track_caller]
fn mark_most<const NT: usize>(most: u32, count: u32, begins: Shared<u32>, is_head: Shared<u32>) {
    let half = (most / 2).max(1);
    let is_long = |digit: u32| begins.get(digit + 1) - begins.get(digit) > half;
    let mut digit = thread::thread_idx_x();
    while digit < count {
        let begins_one = digit == 0
            || is_long(digit)
            || is_long(digit - 1)
            || begins.get(digit) / half != begins.get(digit - 1) / half;
        is_head.set(digit, u32::from(begins_one));
        digit += NT as u32;
    }
    thread::sync_threads();
}

/// Marks digits so that each bucket takes digits while they have up to `most` keys together, or one digit.
///
/// The last digit of a bucket is followed by the first digit of the next bucket. Threads find that successor for all
/// digits. Then the marks spread from the first digit, in steps that double.
///
/// # Safety
/// All threads of the block make this call, after a barrier. Ends with another one.
#[inline(always)]
unsafe fn mark_full<const NT: usize, const OWN: usize>(
    most: u32,
    count: u32,
    begins: Shared<u32>,
    next: Shared<u32>,
    is_head: Shared<u32>,
) {
    let thread = thread::thread_idx_x();
    let mut digit = thread;
    while digit < count {
        let most = begins.get(digit) + most;
        let (mut low, mut high) = (digit + 1, count);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if begins.get(middle) <= most { low = middle } else { high = middle - 1 }
        }
        next.set(digit, low);
        is_head.set(digit, u32::from(digit == 0));
        digit += NT as u32;
    }
    thread::sync_threads();
    let mut step = 1;
    while step < count {
        let (mut then, mut heads) = ([0; OWN], [count; OWN]);
        for at in 0..OWN as u32 {
            let digit = thread + at * NT as u32;
            if digit < count {
                let after = next.get(digit);
                then[at as usize] = if after < count { next.get(after) } else { count };
                heads[at as usize] = if is_head.get(digit) != 0 { after } else { count };
            }
        }
        thread::sync_threads();
        for at in 0..OWN as u32 {
            let digit = thread + at * NT as u32;
            if digit < count {
                next.set(digit, then[at as usize]);
            }
            if heads[at as usize] < count {
                is_head.fetch_add(heads[at as usize], 1);
            }
        }
        thread::sync_threads();
        step *= 2;
    }
}

/// Lists the digits that begin a bucket, followed by `count`. Returns their number.
///
/// # Safety
/// All threads of the block make this call, after a barrier. Nothing else uses `scan`. Ends with a barrier.
#[inline(always)]
unsafe fn list_heads<const NT: usize, const OWN: usize>(
    count: u32,
    is_head: Shared<u32>,
    heads: Shared<u32>,
    scan: Shared<u32>,
) -> u32 {
    let (first, end) = own_digits::<NT>(count);
    let mut own = 0;
    for at in 0..OWN as u32 {
        if first + at < end {
            own += u32::from(is_head.get(first + at) != 0);
        }
    }
    // SAFETY: no branch surrounds the call, so that all threads of the block make it. Nothing uses `scan` before the
    // barrier at the end.
    let (mut head, all) = unsafe { sum_before(own, scan) };
    for at in 0..OWN as u32 {
        if first + at < end && is_head.get(first + at) != 0 {
            heads.set(head, first + at);
            head += 1;
        }
    }
    if thread::thread_idx_x() == 0 {
        heads.set(all, count);
    }
    thread::sync_threads();
    all
}
