//! The end of the sort: each bucket is sorted by one block.
//!
//! ```text
//!   bins       │  2   │ │ 1 │  3   │ │    the keys of each bin are counted, by atomic additions
//!   tile       │ 5  3   17   41 40 44 │    each key goes to a place of its bin, by another one
//!   windows    │├──────┤├──────┤├──── │    sorted in registers, by a network
//!              │├──┤├──────┤├──────┤  │    … and once more, moved by half a window
//! ```
//!
//! Bins are about as many as keys, so that few are of more than a handful of keys. Where windows do not put them in order, bins of
//! many keys are divided into finer ones. If that does not help either, the bucket is left to `sort_rest`.

use super::digits::Scale;
use super::workspace::{Bucket, Job, Work, Workspace};
use crate::block_scan::{BLOCK_WORDS, block_range, sum_before};
use crate::key::{Bits, Coding};
use crate::sort::network::sort_registers;
use crate::tuning::ROW;
use core::hint::select_unpredictable;
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::WARP_SIZE;

/// How many bins a block of `threads` threads has.
pub(super) const fn bins(threads: usize) -> u32 {
    threads as u32 * OWN_BINS
}

/// Bins of a thread: two in a word, one of the lower half of the bins and one of the upper.
const OWN_BINS: u32 = 2 * OWN_WORDS;

/// Words of bins of a thread.
const OWN_WORDS: u32 = 4;

/// How often windows are sorted before bins are made finer, and before the bucket is given up.
const ROUNDS: u32 = 3;

/// So many windows that are not in order with the next one are not put in order by sorting them once more.
const FEW_INVERSIONS: u32 = 4;

/// How often bins are made finer, at most: once, and if that does not help, twice, and so on.
const MOST_FINER: u32 = 3;

/// Words of shared memory for the bins of `threads` threads: one more for each thread, so that threads which scan theirs use
/// different banks.
const fn bin_words(threads: usize) -> u32 {
    threads as u32 * (OWN_WORDS + 1)
}

/// Slots of the tile: for each key one, and for half a window.
const fn slots(threads: usize, items_per_thread: usize) -> u32 {
    (threads * items_per_thread + items_per_thread / 2) as u32
}

/// Bytes of dynamic shared memory for buckets of up to `threads * items_per_thread` keys.
pub const fn shared_bytes<B>(threads: usize, items_per_thread: usize) -> u32 {
    let tile = slots(threads, items_per_thread).next_multiple_of(2) * size_of::<B>() as u32;
    tile + (BLOCK_WORDS + KEPT_WORDS + bin_words(threads) + WARP_SIZE) * size_of::<u32>() as u32
}

/// Words of shared memory for what is kept of a bucket.
const KEPT_WORDS: u32 = 4;

/// Flag beside the shift of a scale.
const EXACT: u32 = 1 << 8;

/// The bins of a bucket's keys.
#[derive(Clone, Copy)]
pub(super) struct Bins<B> {
    least: B,
    scale: Scale,
    /// Whether the keys of a bin are all equal.
    exact: bool,
}

impl<B: Bits> Bins<B> {
    /// `count` bins, a power of two up to 4096, for keys from `least` to `greatest`, which are different.
    #[inline(always)]
    pub fn new(least: B, greatest: B, count: u32) -> Self {
        let range = greatest - least;
        let exact = range < B::from_register(count as u64);
        let scale = if exact { Scale::exact::<B>(count.trailing_zeros()) } else { Scale::even(range, count - 1) };
        Self { least, scale, exact }
    }

    /// A key's bin.
    #[inline(always)]
    fn of(self, key: B) -> u32 {
        self.scale.of(key - self.least)
    }
}

/// The number of keys in each bin, and then the slot of the next one.
#[derive(Clone, Copy)]
struct Counters {
    words: Shared<u32>,
    /// Half the number of bins.
    half: u32,
}

impl Counters {
    /// Counts a key in its bin and gives how many there were, or the slot that was next.
    #[inline(always)]
    #[track_caller]
    fn add(self, bin: u32, is_here: bool) -> u32 {
        let (is_upper, word) = (bin >= self.half, bin & (self.half - 1));
        // Keys that are not here are counted where nothing is read.
        let unused = self.words.len() - WARP_SIZE + warp::lane_id();
        let word = select_unpredictable(is_here, word + word / OWN_WORDS, unused);
        let before = self.words.fetch_add(word, select_unpredictable(is_upper, 1 << 16, 1));
        select_unpredictable(is_upper, before >> 16, before & 0xffff)
    }

    /// The slot at which the keys of bin `bin` begin, of `len` keys, before any has been given one; `len` after the last bin.
    #[inline(always)]
    #[track_caller]
    fn begin(self, bin: u32, len: u32) -> u32 {
        let word = bin & (self.half - 1);
        let begins = self.words.get(word + word / OWN_WORDS);
        match bin / self.half {
            0 => begins & 0xffff,
            1 => begins >> 16,
            _ => len,
        }
    }

    /// Once all keys have been given slots, each bin ends where the next one begins. Makes the slots those at which they begin again, and
    /// gives the number of keys. All threads of the block make this call, after a barrier. Ends with one.
    #[inline(always)]
    #[track_caller]
    fn restore(self) -> u32 {
        let (thread, own) = (thread::thread_idx_x(), |thread| self.own(thread));
        let last = own(self.half / OWN_WORDS - 1).get(OWN_WORDS - 1);
        // The upper half of the bins follows the lower one.
        let mut before = if thread == 0 { last << 16 } else { own(thread - 1).get(OWN_WORDS - 1) };
        thread::sync_threads();
        for word in 0..OWN_WORDS {
            let end = own(thread).get(word);
            own(thread).set(word, before);
            before = end;
        }
        thread::sync_threads();
        last >> 16
    }

    /// The words of thread `thread`.
    #[inline(always)]
    #[track_caller]
    fn own(self, thread: u32) -> Shared<u32> {
        self.words.slice(thread * (OWN_WORDS + 1), OWN_WORDS)
    }
}

/// Shared memory of a bucket.
#[derive(Clone, Copy)]
pub(super) struct BucketMemory<B> {
    /// The keys, sorted in the end.
    pub tile: Shared<B>,
    /// Words of a scan.
    pub scan: Shared<u32>,
    disorder: Shared<u32>,
    /// How keys become bins: there are no registers to spare for that.
    least: Shared<B>,
    scale: Shared<u32>,
    counters: Counters,
}

impl<B: Bits> BucketMemory<B> {
    /// # Safety
    /// The launch has [`shared_bytes`] for these numbers; barriers divide writing from reading.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn at_start(threads: usize, items_per_thread: usize) -> Self {
        let slots = slots(threads, items_per_thread);
        let bytes = slots.next_multiple_of(2) * size_of::<B>() as u32;
        // SAFETY: the caller's promise.
        unsafe {
            let kept = bytes + BLOCK_WORDS * 4;
            let words = Shared::dynamic(kept + KEPT_WORDS * 4, bin_words(threads) + WARP_SIZE);
            Self {
                tile: Shared::dynamic(0, slots),
                scan: Shared::dynamic(bytes, BLOCK_WORDS),
                disorder: Shared::dynamic(kept, 1),
                least: Shared::dynamic(kept + 4, 1),
                scale: Shared::dynamic(kept + 8, 2),
                counters: Counters { words, half: threads as u32 * OWN_WORDS },
            }
        }
    }

    /// Sets the counters to 0.
    #[inline(always)]
    #[track_caller]
    pub fn clear<const NT: usize>(self) {
        let mut i = thread::thread_idx_x();
        while i < self.counters.words.len() {
            self.counters.words.set(i, 0);
            i += NT as u32;
        }
    }

    /// Registers to shared: sorts the keys that `is_here` says are, of `VT` of each thread, to the first slots of the tile. The
    /// others are the greatest keys, and follow. Gives whether they are sorted now.
    ///
    /// # Safety
    /// All threads of the block make this call, which are `NT`; a barrier was after [`clear`](Self::clear). Ends with a barrier.
    #[inline(always)]
    pub unsafe fn sort<const NT: usize, const VT: usize>(
        self,
        own: [B; VT],
        of_bucket: Bins<B>,
        is_here: impl Fn(usize) -> bool,
    ) -> bool {
        let Self { tile, disorder, counters, .. } = self;
        let (thread, slots) = (thread::thread_idx_x(), tile.len());
        for i in 0..VT {
            counters.add(of_bucket.of(own[i]), is_here(i));
        }
        thread::sync_threads();

        // SAFETY: the caller's promise.
        unsafe { self.place_bins() };
        if thread == 0 {
            disorder.set(0, 0);
            self.keep(of_bucket);
        }
        thread::sync_threads();

        // The compiler would keep the bins in registers.
        let scale = Scale { factor: self.kept().scale.factor, ..of_bucket.scale };
        let of_bucket = Bins { least: recomputed(of_bucket.least), scale, ..of_bucket };
        // All loads, and then all stores: the compiler does not change their order, and they take long to arrive.
        let mut places = [0; VT];
        for i in 0..VT {
            places[i] = counters.add(of_bucket.of(own[i]), is_here(i));
        }
        for i in 0..VT {
            // Keys that are not here are the greatest, and fill the tile.
            tile.set(select_unpredictable(is_here(i), places[i], thread + (i * NT) as u32), own[i]);
        }
        if thread < slots - (NT * VT) as u32 {
            tile.set((NT * VT) as u32 + thread, B::MAX);
        }
        thread::sync_threads();

        let (mut is_sorted, mut finer, mut round) = (of_bucket.exact, 0, 0);
        while !is_sorted && round < ROUNDS {
            let half = VT as u32 / 2;
            sort_window::<B, VT>(tile, thread * VT as u32);
            thread::sync_threads();
            let last = sort_window::<B, VT>(tile, thread * VT as u32 + half);
            thread::sync_threads();
            // Windows are in order; are they in order with each other?
            let next = (thread + 1) * VT as u32 + half;
            let ascends =
                (next >= slots || last <= tile.get(next)) && (thread > 0 || tile.get(half - 1) <= tile.get(half));
            if !ascends {
                disorder.fetch_add(0, 1);
            }
            thread::sync_threads();
            let inversions = disorder.get(0);
            is_sorted = inversions == 0;
            round += 1;
            if !is_sorted {
                thread::sync_threads();
                if thread == 0 {
                    disorder.set(0, 0);
                }
                thread::sync_threads();
                if finer < MOST_FINER && (inversions > FEW_INVERSIONS || round == ROUNDS) {
                    finer += 1;
                    // SAFETY: the caller's promise.
                    unsafe { self.place_finely::<NT, VT>(finer, &is_here) };
                    round = 0;
                }
            }
        }
        is_sorted
    }

    /// Keeps how keys become bins. One thread does.
    #[inline(always)]
    #[track_caller]
    fn keep(self, Bins { least, scale: Scale { shift, factor }, exact }: Bins<B>) {
        self.least.set(0, least);
        self.scale.set(0, shift | if exact { EXACT } else { 0 });
        self.scale.set(1, factor);
    }

    /// What has been kept, after a barrier.
    #[inline(always)]
    #[track_caller]
    fn kept(self) -> Bins<B> {
        let shift = self.scale.get(0);
        let scale = Scale { shift: shift & (EXACT - 1), factor: self.scale.get(1) };
        Bins { least: self.least.get(0), scale, exact: shift & EXACT != 0 }
    }

    /// Makes the counts of the bins the slots at which they begin. Gives the number of keys.
    ///
    /// # Safety
    /// All threads of the block make this call, after a barrier.
    #[inline(always)]
    unsafe fn place_bins(self) -> u32 {
        let words = self.counters.own(thread::thread_idx_x());
        // Both halves at once: there are fewer than 2^16 keys.
        let mut sum = 0;
        for word in 0..OWN_WORDS {
            sum += words.get(word);
        }
        // SAFETY: the caller's promise.
        let (before, all) = unsafe { sum_before(sum, self.scan) };
        let mut begin = before + (all << 16);
        for word in 0..OWN_WORDS {
            // Read once more: there are no registers to spare.
            let count = words.get(word);
            words.set(word, begin);
            begin += count;
        }
        (all & 0xffff) + (all >> 16)
    }

    /// Shared to shared: moves the keys to the places of bins that have been made finer `times` times.
    ///
    /// ```text
    ///   bins       │ 1 │ 0 │   6   │ 1 │     6 keys: 6 finer bins of equal width
    ///   finer      │ 1 │   │1│0│1│0│4│0│ 1 │     … and once more: 4 finer ones of those
    /// ```
    ///
    /// So bins follow the keys, however uneven these are.
    ///
    /// # Safety
    /// As for [`sort`](Self::sort), after a barrier; the tile has the keys, in any order, in the slots that `is_here` says.
    #[inline(always)]
    unsafe fn place_finely<const NT: usize, const VT: usize>(self, times: u32, is_here: &impl Fn(usize) -> bool) {
        let Self { tile, counters, .. } = self;
        let thread = recomputed(thread::thread_idx_x());
        let of_bucket = self.kept();
        // Where keys are between the least and the greatest one, in parts of 2^32. The leading bits are the bin.
        let fraction_bits = const { u32::BITS - bins(NT).trailing_zeros() };
        let mut places = [0; VT];
        for i in 0..VT {
            if is_here(i) {
                let key = tile.get(thread + (i * NT) as u32);
                places[i] = of_bucket.scale.finer(key - of_bucket.least, fraction_bits);
            }
        }
        // At first these bins have been counted already.
        let (mut left, mut len) = (times, if times == 1 { counters.restore() } else { 0 });
        loop {
            if len > 0 {
                left -= 1;
                let unit = (1 << (u64::BITS - fraction_bits)) / len as u64;
                for i in 0..VT {
                    let place = recomputed(places[i]);
                    let (bin, fraction) = (place >> fraction_bits, place & ((1 << fraction_bits) - 1));
                    let (begin, end) = (counters.begin(bin, len), counters.begin(bin + 1, len));
                    let place = ((begin as u64) << fraction_bits) + fraction as u64 * (end - begin) as u64;
                    places[i] = (place.wrapping_mul(unit) >> 32) as u32;
                }
                thread::sync_threads();
            }
            self.clear::<NT>();
            thread::sync_threads();
            for i in 0..VT {
                // Recomputed, here and below: the compiler would keep all addresses in registers.
                counters.add(recomputed(places[i]) >> fraction_bits, is_here(i));
            }
            thread::sync_threads();
            // SAFETY: the caller's promise.
            len = unsafe { self.place_bins() };
            thread::sync_threads();
            if left == 0 {
                break;
            }
        }
        let mut own = [B::MAX; VT];
        for i in 0..VT {
            places[i] = counters.add(recomputed(places[i]) >> fraction_bits, is_here(i));
            if is_here(i) {
                own[i] = tile.get(thread + (i * NT) as u32);
            }
        }
        thread::sync_threads();
        for i in 0..VT {
            if is_here(i) {
                tile.set(places[i], own[i]);
            }
        }
        thread::sync_threads();
    }
}

/// Kernel: sorts all buckets of keys of 4 bytes, from where they are to the same indices of `keys`, as `coding` decodes them.
///
/// # Safety
/// As for [`divide`](super::divide::divide), which has been called for all levels; `scratch` is the other array of theirs;
/// buckets are of `NT * VT` keys, blocks of `NT` threads with [`shared_bytes`].
#[kernel(
    u32 = <u32, { ROW.buckets_4.threads }, { ROW.buckets_4.items_per_thread }> within (ROW.buckets_4.threads, 3),
)]
pub unsafe fn sort_buckets<B: Bits, const NT: usize, const VT: usize>(
    job: Job,
    keys: *mut B,
    scratch: *mut B,
    coding: Coding<B>,
) {
    // SAFETY: the caller's promise.
    let workspace = unsafe { Workspace::new(&job) };
    let n = job.plan.n as usize;
    // SAFETY: the caller's promise.
    let (keys, scratch) = unsafe { (GlobalMut::new(keys, n), GlobalMut::new(scratch, n)) };
    // SAFETY: the caller's promise.
    unsafe { sort_all::<B, NT, VT>(workspace, keys, scratch, coding, |bucket| fail(workspace, bucket)) };
}

/// Notes that a bucket is left to `sort_rest`. All threads of its block make this call.
#[inline(always)]
pub(super) fn fail(workspace: Workspace, bucket: u32) {
    if thread::thread_idx_x() == 0 {
        workspace.fail(bucket);
    }
}

/// Sorts all buckets from `keys` or `scratch` to `keys`, but for those that it calls `fail` for, with all threads, where they stay as they
/// are.
///
/// # Safety
/// As for [`sort_buckets`].
#[inline(always)]
pub(super) unsafe fn sort_all<B: Bits, const NT: usize, const VT: usize>(
    workspace: Workspace,
    keys: GlobalMut<B>,
    scratch: GlobalMut<B>,
    coding: Coding<B>,
    fail: impl Fn(u32),
) {
    // SAFETY: the caller's promise; barriers divide the accesses.
    let memory = unsafe { BucketMemory::<B>::at_start(NT, VT) };
    let thread = thread::thread_idx_x();
    let buckets = workspace.buckets();
    let mut b = thread::block_idx_x();
    while b < buckets {
        let Bucket { start, len, in_scratch, work, .. } = workspace.bucket(b);
        let from = if in_scratch { scratch } else { keys }.slice(start as usize, len as usize);
        // Where the bucket goes, computed anew wherever it is asked.
        let to = || keys.slice(recomputed(start) as usize, len as usize);
        b += thread::grid_dim_x();
        if work == Work::Copy {
            let (to, mut i) = (to(), thread as usize);
            while i < to.len() {
                to.set(i, coding.decode(from.get(i)));
                i += NT;
            }
            continue;
        }
        // Compared anew wherever it is asked: the compiler would keep all answers in registers.
        let is_here = |i: usize| thread + ((i * NT) as u32) < recomputed(len);
        let mut own = [B::MAX; VT];
        for i in 0..VT {
            if is_here(i) {
                own[i] = from.get(thread as usize + i * NT);
            }
        }
        memory.clear::<NT>();
        let (mut least, mut greatest) = (B::MAX, B::MIN);
        for i in 0..VT {
            least = least.min(own[i]);
            greatest = greatest.max(select_unpredictable(is_here(i), own[i], B::MIN));
        }
        // SAFETY: all threads of the block are here, as below.
        let (least, greatest) = unsafe { block_range(least, greatest, memory.scan) };
        if least == greatest {
            let to = to();
            for i in 0..VT {
                if is_here(i) {
                    to.set(thread as usize + i * NT, coding.decode(least));
                }
            }
            continue;
        }
        // SAFETY: as above.
        let is_sorted = unsafe { memory.sort::<NT, VT>(own, Bins::new(least, greatest, bins(NT)), is_here) };
        if is_sorted {
            for i in 0..VT {
                own[i] = memory.tile.get(thread + (i * NT) as u32);
            }
            if coding != Coding::NONE {
                for key in &mut own {
                    *key = coding.decode(*key);
                }
            }
            let to = to();
            for i in 0..VT {
                if is_here(i) {
                    to.set(thread as usize + i * NT, own[i]);
                }
            }
        } else {
            fail(b - thread::grid_dim_x());
        }
        thread::sync_threads();
    }
}

/// Sorts the `VT` keys from `first` on. Gives the last one.
#[inline(always)]
#[track_caller]
fn sort_window<B: Bits, const VT: usize>(tile: Shared<B>, first: u32) -> B {
    let mut keys = [B::MIN; VT];
    for i in 0..VT {
        keys[i] = tile.get(first + i as u32);
    }
    sort_registers(&mut keys);
    for i in 0..VT {
        tile.set(first + i as u32, keys[i]);
    }
    keys[VT - 1]
}
