//! Sorting keys, or numbers, in shared memory by bins.
//!
//! ```text
//!   bins       │  2   │ │ 1 │  3   │ │    the keys of each bin are counted, by atomic additions
//!   tile       │ 5  3   17   41 40 44 │    each key goes to a slot of its bin, by another addition
//!   windows    │├──────┤├──────┤├──── │    sorted in registers, by a network
//!              │├──┤├──────┤├──────┤  │    … and once more, moved by half a window
//! ```
//!
//! There are about as many bins as keys, so that few bins hold more than a handful. Where a bin is larger, or windows
//! leave keys out of order, bins with many keys are divided into finer bins. If that does not help either, the keys are
//! not sorted.

use super::digits::{MOST_EVEN, Scale};
use crate::block::scan::{BLOCK_WORDS, sum_before};
use crate::block::shared_memory::shared_memory;
use crate::kernels::sort::is_whole_warps;
use crate::key::Bits;
use crate::thread::network::sort_registers;
use core::hint::select_unpredictable;
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::WARP_SIZE;

/// Number of bins of a block of `threads` threads.
pub(super) const fn bins(threads: usize) -> u32 {
    threads as u32 * OWN_BINS
}

/// Bins of a thread: two in a word, one of the lower half of the bins and one of the upper.
const OWN_BINS: u32 = 2 * OWN_WORDS;

/// Words of bins of a thread.
const OWN_WORDS: u32 = 4;

/// Number of times that windows are sorted before bins are made finer, and before the bucket is given up.
const ROUNDS: u32 = 3;

/// With more than this many windows out of order with the next one, sorting windows once more does not help.
const FEW_INVERSIONS: u32 = 4;

/// Upper limit on making bins finer: once, then twice if that does not help, and so on.
pub(super) const MOST_FINER: u32 = 5;

/// A bucket is given up at once if one bin holds more than `1 / HOT_PART` of its keys, unless bins may be made finer
/// [`MOST_FINER`] times. Such keys are close together, and finer bins would tell few of them apart.
const HOT_PART: u32 = 4;

/// Slots of the tile: one for each key, and half a window.
const fn slots(threads: usize, items_per_thread: usize) -> u32 {
    (threads * items_per_thread + items_per_thread / 2) as u32
}

/// Flag beside the shift of a scale.
const EXACT: u32 = 1 << 8;

/// Lower limit of the count of crowded bins if one of them is hot.
const HOT: u32 = 1 << 16;

/// The bins of a bucket's keys.
#[derive(Clone, Copy)]
pub(in crate::kernels::sort) struct Bins<B> {
    least: B,
    scale: Scale,
    /// Whether the keys of a bin are all equal.
    exact: bool,
}

impl<B: Bits> Bins<B> {
    /// `count` bins, a power of two, for keys from `least` to `greatest`, which differ. The last bin holds no key,
    /// unless the bins are exact.
    #[inline(always)]
    pub fn new(least: B, greatest: B, count: u32) -> Self {
        let range = greatest - least;
        let exact = range < B::from_register(count as u64);
        let scale = if exact {
            Scale::exact::<B>(count.trailing_zeros())
        } else {
            // A scale is made for fewer than `MOST_EVEN` bins. Then each bin becomes several.
            let times = count.div_ceil(MOST_EVEN).max(1);
            let Scale { shift, factor } = Scale::even(range, count / times - 1);
            Scale { shift, factor: factor * times }
        };
        Self { least, scale, exact }
    }

    /// A key's bin.
    #[inline(always)]
    fn of(self, key: B) -> u32 {
        self.scale.of(key - self.least)
    }
}

shared_memory! {
    /// The number of keys in each bin, and later the slot of the bin's next key.
    struct BinCounters(threads: usize) {
        /// A thread has one word more than it uses, so that threads that scan their words use different banks. Each
        /// lane has one word more that is never read.
        words: [u32; threads as u32 * (OWN_WORDS + 1) + WARP_SIZE],
    }
}

impl BinCounters {
    /// Half the number of bins.
    #[inline(always)]
    fn half(self) -> u32 {
        (self.words.len() - WARP_SIZE) / (OWN_WORDS + 1) * OWN_WORDS
    }

    /// Counts a key in its bin. Returns the number of keys before it, or the next slot.
    #[inline(always)]
    #[track_caller]
    fn add(self, bin: u32, is_here: bool) -> u32 {
        let (is_upper, word) = (bin >= self.half(), bin & (self.half() - 1));
        // Keys that are not there are counted in words that are never read.
        let unused = self.words.len() - WARP_SIZE + warp::lane_id();
        let word = select_unpredictable(is_here, word + word / OWN_WORDS, unused);
        let before = self.words.fetch_add(word, select_unpredictable(is_upper, 1 << 16, 1));
        select_unpredictable(is_upper, before >> 16, before & 0xffff)
    }

    /// The slot at which the keys of bin `bin` begin, before any has been given one.
    #[inline(always)]
    #[track_caller]
    fn begin(self, bin: u32) -> u32 {
        let (upper, word) = (bin / self.half(), bin & (self.half() - 1));
        self.words.get(word + word / OWN_WORDS) >> (16 * upper) & 0xffff
    }

    /// Turns each bin's end into its begin again. Once all keys have their slots, each bin ends where the next one
    /// begins. All threads of the block make this call, after a barrier. Ends with a barrier.
    #[inline(always)]
    #[track_caller]
    fn restore(self) {
        let (thread, own) = (thread::thread_idx_x(), |thread| self.own(thread));
        let last = own(self.half() / OWN_WORDS - 1).get(OWN_WORDS - 1);
        // The upper half of the bins follows the lower one.
        let mut before = if thread == 0 { last << 16 } else { own(thread - 1).get(OWN_WORDS - 1) };
        thread::sync_threads();
        for word in 0..OWN_WORDS {
            let end = own(thread).get(word);
            own(thread).set(word, before);
            before = end;
        }
        thread::sync_threads();
    }

    /// The words of thread `thread`.
    #[inline(always)]
    #[track_caller]
    fn own(self, thread: u32) -> Shared<u32> {
        self.words.slice(thread * (OWN_WORDS + 1), OWN_WORDS)
    }
}

shared_memory! {
    /// Shared memory of a bucket, for blocks of `threads` threads with `items_per_thread` keys each.
    pub(in crate::kernels::sort) struct BucketMemory<B: Word>(threads: usize, items_per_thread: usize) {
        /// The keys, sorted in the end. The number of slots is even, so that the words behind them can be read two at a
        /// time.
        pub tile: [B; slots(threads, items_per_thread).next_multiple_of(2)],
        /// Words of a scan.
        pub scan: [u32; BLOCK_WORDS],
        /// How keys become bins: kept here because registers are scarce.
        scale: [u32; 2],
        least: [B; 1],
        /// The number of buckets. Behind the keys: threads may still read it while others fill the tile of `sort_once`.
        pub buckets: [u32; 1],
        disorder: [u32; 1],
        counters: BinCounters { threads },
    }
}

impl<B: Bits> BucketMemory<B> {
    /// Clears the counters and the count of windows out of order.
    #[inline(always)]
    #[track_caller]
    pub fn clear<const NT: usize>(self) {
        if thread::thread_idx_x() == 0 {
            self.disorder.set(0, 0);
        }
        let mut i = thread::thread_idx_x();
        while i < self.counters.words.len() {
            self.counters.words.set(i, 0);
            i += NT as u32;
        }
    }

    /// Registers to shared: sorts the `len` keys for which `is_here` is true, of the `VT` keys of each thread, to the
    /// first slots of the tile. The other keys are the greatest, and follow. If keys may be `UNEVEN`, the bins are
    /// searched for crowded ones at once. Bins are made finer up to `FINER` times. Returns whether the keys are sorted.
    ///
    /// # Safety
    /// All `NT` threads of the block make this call. A barrier came after [`clear`](Self::clear). Ends with a barrier.
    #[inline(always)]
    pub unsafe fn sort<const NT: usize, const VT: usize, const UNEVEN: bool, const FINER: u32>(
        self,
        own: [B; VT],
        len: u32,
        of_bucket: Bins<B>,
        is_here: impl Fn(usize) -> bool,
    ) -> bool {
        const { assert!(NT.is_power_of_two() && is_whole_warps(NT), "there is a power of two bins") };
        const { assert!(NT * VT < 1 << 15, "a counter has 16 bits, of which one is for what is too many") };
        let Self { disorder, counters, .. } = self;
        let (thread, slots) = (thread::thread_idx_x(), const { slots(NT, VT) });
        let tile = self.tile.slice(0, slots);
        if thread == 0 {
            self.keep(of_bucket);
        }
        for i in 0..VT {
            counters.add(of_bucket.of(own[i]), is_here(i));
        }
        thread::sync_threads();

        // Bins with more keys than a window, rare for evenly spread keys, are made finer at once. SAFETY: no branch
        // surrounds the call, so that all `NT` threads of the block make it. A barrier comes after the counting, and
        // another one before the next use of `scan`.
        let (own_are_crowded, own_are_hot) = unsafe { self.place_bins(VT as u32, len / HOT_PART) };
        if UNEVEN && own_are_crowded && !of_bucket.exact {
            disorder.fetch_add(0, if own_are_hot { HOT } else { 1 });
        }
        thread::sync_threads();
        if const { UNEVEN && FINER < MOST_FINER } && disorder.get(0) >= HOT {
            return false;
        }

        let is_crowded = || UNEVEN && disorder.get(0) > 0;
        if is_crowded() {
            for i in 0..VT {
                tile.set(thread + (i * NT) as u32, own[i]);
            }
        } else {
            // The compiler would keep the bins in registers.
            let of_bucket = self.kept();
            // All loads come before all stores: the compiler keeps their order, and loads have a long latency.
            let mut places = [0; VT];
            for i in 0..VT {
                places[i] = counters.add(of_bucket.of(own[i]), is_here(i));
            }
            for i in 0..VT {
                // Keys that are not there are the greatest, and fill the tile.
                tile.set(select_unpredictable(is_here(i), places[i], thread + (i * NT) as u32), own[i]);
            }
        }
        if thread < slots - (NT * VT) as u32 {
            tile.set((NT * VT) as u32 + thread, B::MAX);
        }
        thread::sync_threads();

        let (mut is_sorted, mut makes_finer, mut finer, mut round) = (self.kept().exact, is_crowded(), 0, 0);
        while !is_sorted && round < ROUNDS {
            if makes_finer {
                finer += 1;
                // SAFETY: all threads of the block make the call, since they have read the same `disorder` between two
                // barriers. The second of these comes after the keys were put into the tile.
                unsafe { self.place_finely::<NT, VT>(finer, &is_here) };
            }
            let half = VT as u32 / 2;
            // Slots without keys hold the greatest key.
            let first = thread * VT as u32;
            if first < recomputed(len) {
                sort_window::<B, VT>(tile, first);
            }
            thread::sync_threads();
            let last = if first < recomputed(len) { sort_window::<B, VT>(tile, first + half) } else { B::MAX };
            thread::sync_threads();
            // Each window is sorted. Is it in order with the next one?
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
                makes_finer = finer < FINER && (inversions > FEW_INVERSIONS || round == ROUNDS);
                if makes_finer {
                    round = 0;
                    if finer == 0 {
                        counters.restore();
                    }
                }
            }
        }
        is_sorted
    }

    /// Stores how keys become bins. One thread makes this call.
    #[inline(always)]
    #[track_caller]
    fn keep(self, Bins { least, scale: Scale { shift, factor }, exact }: Bins<B>) {
        self.least.set(0, least);
        self.scale.set(0, shift | if exact { EXACT } else { 0 });
        self.scale.set(1, factor);
    }

    /// How keys become bins, as stored by [`keep`](Self::keep), after a barrier.
    #[inline(always)]
    #[track_caller]
    fn kept(self) -> Bins<B> {
        let shift = self.scale.get(0);
        let scale = Scale { shift: shift & (EXACT - 1), factor: self.scale.get(1) };
        Bins { least: self.least.get(0), scale, exact: shift & EXACT != 0 }
    }

    /// Turns the counts of the bins into their first slots. Returns whether a bin of this thread has more than `most`
    /// keys, and whether one has more than `very_most`.
    ///
    /// # Safety
    /// All threads of the block make this call, after a barrier.
    #[inline(always)]
    unsafe fn place_bins(self, most: u32, very_most: u32) -> (bool, bool) {
        let words = self.counters.own(thread::thread_idx_x());
        // Both halves of a word are summed at once: there are fewer than 2^15 keys.
        let mut sum = 0;
        for word in 0..OWN_WORDS {
            sum += words.get(word);
        }
        // SAFETY: all threads of the block make the call, after a barrier, as the caller ensures. Another barrier comes
        // before the next use of `scan`, which has `BLOCK_WORDS` words.
        let (before, all) = unsafe { sum_before(sum, self.scan) };
        let (mut begin, mut crowded, mut hot) = (before + (all << 16), 0, 0);
        // A count above `most` sets the top bit of its half.
        let more_than = |most: u32| ((1 << 15) - 1 - most) * 0x1_0001;
        for word in 0..OWN_WORDS {
            // Read again: registers are scarce.
            let count = words.get(word);
            words.set(word, begin);
            begin += count;
            crowded |= count + more_than(most);
            hot |= count + more_than(very_most);
        }
        (crowded & 0x8000_8000 != 0, hot & 0x8000_8000 != 0)
    }

    /// Shared to shared: moves the keys to their places in bins that have been made finer `times` times. For `times ==
    /// 1`, the counters already hold the first slots of the bins.
    ///
    /// ```text
    ///   bins       │ 1 │ 0 │   6   │ 1 │     6 keys: 6 finer bins of equal width
    ///   finer      │ 1 │   │1│0│1│0│4│0│ 1 │     … and once more: 4 finer ones of those
    /// ```
    ///
    /// So bins follow the keys, however skewed these are.
    ///
    /// # Safety
    /// The requirements of [`sort`](Self::sort) hold, and a barrier came before. The tile holds the keys, in any order,
    /// in the slots for which `is_here` is true.
    #[inline(always)]
    unsafe fn place_finely<const NT: usize, const VT: usize>(self, times: u32, is_here: &impl Fn(usize) -> bool) {
        let Self { tile, counters, .. } = self;
        let thread = recomputed(thread::thread_idx_x());
        let of_bucket = self.kept();
        // Position of a key between the least and the greatest key, in units of 2^-32. The leading bits are the bin.
        let fraction_bits = const { u32::BITS - bins(NT).trailing_zeros() };
        let mut places = [0; VT];
        for i in 0..VT {
            if is_here(i) {
                let key = tile.get(thread + (i * NT) as u32);
                places[i] = of_bucket.scale.finer(key - of_bucket.least, fraction_bits);
            }
        }
        let (mut left, mut is_counted) = (times, times == 1);
        loop {
            if is_counted {
                left -= 1;
                for i in 0..VT {
                    places[i] = self.place_within::<NT, VT>(recomputed(places[i]));
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
            // SAFETY: `left` is the same for all threads, so that all of them make the call. A barrier comes after the
            // counting, and another one before the next use of `scan`.
            unsafe { self.place_bins(VT as u32, VT as u32) };
            thread::sync_threads();
            if left == 0 {
                break;
            }
            is_counted = true;
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

    /// Position of a key among all keys, from its position `place` between the least and the greatest key, in units of
    /// 2^-32. The counters hold the first slots of the bins.
    #[inline(always)]
    #[track_caller]
    fn place_within<const NT: usize, const VT: usize>(self, place: u32) -> u32 {
        let (counters, fraction_bits) = (self.counters, const { u32::BITS - bins(NT).trailing_zeros() });
        // In a unit such that all positions are below 2^32.
        let part_bits = const { u32::BITS - (NT * VT).next_power_of_two().trailing_zeros() };
        // Positions are scaled so that a full bucket fills the 32 bits again, and no key is in the last bin. `factor`
        // holds the part of the scale factor above 1.
        let factor = const { factor_above_one(bins(NT), NT * VT) };
        let (bin, fraction) = (place >> fraction_bits, place & ((1 << fraction_bits) - 1));
        let (begin, end) = (counters.begin(bin), counters.begin(bin + 1));
        // No bit is lost here: neighbouring keys, which may have many duplicates, must be told apart in the end.
        let within = (fraction as u64 * (end - begin) as u64) >> (fraction_bits - part_bits);
        let place = (begin << part_bits) + within as u32;
        place + ((place as u64 * factor as u64) >> 32) as u32
    }
}

/// Scale factor from the position of a key among `keys` keys to a bin, minus 1, in units of 2^-32. A position is in
/// units of 2^-32 of the next power of two of `keys`. Bins are `bins - 1` of `bins` equal parts of 2^32.
const fn factor_above_one(bins: u32, keys: usize) -> u32 {
    let factor = ((bins as u64 - 1) << 32) / bins as u64 * keys.next_power_of_two() as u64 / keys as u64;
    assert!(factor >> 32 == 1, "there are too few keys to a bin");
    factor as u32
}

/// Sorts the `VT` keys from slot `first` on, and returns the last key.
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
