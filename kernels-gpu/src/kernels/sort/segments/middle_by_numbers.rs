//! The sort of a middle segment of 4-byte keys with values, by 4-byte numbers and [runs](super::middle_runs).
//!
//! ```text
//!   numbers    │ key - least │ index │     all different: the sort is stable
//!   keys       │ …                         in the end: read by index
//!   values     │ …                         the same
//! ```
//!
//! If a number has too few bits for both, some keys are put in order after the sort, or the sort runs twice more
//! (`numbers`).

use super::middle_runs::{MOST_THREADS, RUN, SegmentWords, end_of_runs, merge_runs, own_row, sort_run};
use super::numbers::{MOST_ALIKE, Numbers, Pass};
use crate::block::shared_memory::shared_memory;
use crate::block::swizzled::Swizzled;
use crate::elements::{Arrays, Elements};
use crate::key::{Bits, Coding};
use crate::thread::insertion::insert;
use crate::warp::sort_lanes::LANE_KEYS;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, reduce_max, sync_warp};
use cuda_std::{recomputed, shared};

shared_memory! {
    /// Numbers in the order of the sort, and keys in their original order.
    struct Sorted<B: Word>(threads: usize) {
        numbers: [u32; LANE_KEYS * threads],
        keys: [B; LANE_KEYS * threads],
    }
}

shared_memory! {
    /// Values overwrite the numbers, and keys, too, if values have 8 bytes.
    union Slots<B: Word, V: Word>(threads: usize) {
        sorted: Sorted<B> { threads },
        values: [V; LANE_KEYS * threads],
    }
}

shared_memory! {
    /// Shared memory of a block of `threads` threads.
    pub(super) struct Memory<B: Word, V: Word>(threads: usize) {
        slots: Slots<B, V> { threads },
        pub segment: SegmentWords {},
        /// How keys become numbers.
        coding: [u32; Numbers::WORDS],
        /// Maximum of each warp's keys, and maximum of the keys' complements.
        greatest: [u32; MOST_WARPS],
        greatest_complement: [u32; MOST_WARPS],
        /// Number of groups that must be put in order, or more than `MOST_GROUPS`. Then the first number of each group,
        /// with the last number in the upper half of the word.
        group_count: [u32; 1],
        groups: [u32; MOST_GROUPS],
    }
}

/// Upper limit on the warps of a block.
const MOST_WARPS: u32 = MOST_THREADS as u32 / WARP_SIZE;

/// With more groups than this, the lower bits are sorted first instead.
const MOST_GROUPS: u32 = 256;

/// Keys that a thread loads from slots at once.
const MOVED: usize = 8;

/// The sort of a segment. The segment's properties are read again at each call: to keep them takes registers.
///
/// # Safety
/// Requirements of each unsafe function: all threads of the block make the call, after a barrier, in the order of
/// [`sort`](Self::sort). Nothing else uses the memory, or the segment. The requirements of the kernel hold for the
/// segment.
#[derive(Clone, Copy)]
pub(super) struct Sort<B, V> {
    pub at: Elements<B, V>,
    pub n: usize,
    pub coding: Coding<B>,
    pub memory: Memory<B, V>,
}

impl<B: Bits, V: Word> Sort<B, V> {
    /// Sorts the segment, stably. Ends with a barrier.
    ///
    /// # Safety
    /// The requirements of [`Sort`] hold.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn sort(&self, minus_one: u32) {
        // SAFETY: the three calls are in the required order, and `load` and `sort_numbers` end with barriers. The other
        // requirements of `Sort` are this function's own.
        unsafe {
            self.load();
            let pass = self.sort_numbers(minus_one);
            self.store(pass);
        }
    }

    /// The segment.
    #[inline(always)]
    #[track_caller]
    fn elements(&self) -> Arrays<B, V> {
        // SAFETY: `at` has `n` elements, by the requirements of the kernel.
        unsafe { self.at.arrays(self.n) }.slice(self.memory.segment.start(), self.memory.segment.len())
    }

    #[inline(always)]
    #[track_caller]
    fn len(&self) -> u32 {
        self.memory.segment.len() as u32
    }

    /// End of the last run.
    #[inline(always)]
    #[track_caller]
    fn end(&self) -> u32 {
        end_of_runs(self.memory.segment.len())
    }

    #[inline(always)]
    fn keys(&self) -> Swizzled<B> {
        Swizzled::new(self.memory.slots.sorted.keys)
    }

    #[inline(always)]
    fn numbers(&self) -> Swizzled<u32> {
        Swizzled::new(self.memory.slots.sorted.numbers)
    }

    /// This thread's row of keys, encoded. There are `own_len` keys, and behind them the first key again.
    #[inline(always)]
    #[track_caller]
    fn row(&self, own: u32, own_len: u32) -> [B; LANE_KEYS] {
        let mut row = self.keys().part_of_row(own, own_len, self.keys().get(own));
        self.coding.encode_all(&mut row);
        row
    }

    /// How keys become numbers, after `load`.
    #[inline(always)]
    #[track_caller]
    fn coding_of_numbers(&self) -> Numbers {
        let words = self.memory.coding;
        Numbers::of_words([words.get(0), words.get(1), words.get(2)])
    }

    /// Global to shared: loads the keys, and chooses how they become numbers. Ends with a barrier.
    ///
    /// # Safety
    /// The requirements of [`Sort`] hold.
    #[inline(always)]
    #[track_caller]
    unsafe fn load(&self) {
        let (lane, warp) = (warp::lane_id(), recomputed(thread::thread_idx_x()) / WARP_SIZE);
        let (mut greatest, mut greatest_complement) = (0, 0);
        // The same for all lanes of a warp.
        if own_row() < self.end() {
            let (from, own, len) = (self.elements().keys, own_row(), self.len());
            let first = own - lane * LANE_KEYS as u32;
            for i in 0..LANE_KEYS as u32 {
                let at = first + i * WARP_SIZE + lane;
                if at < len {
                    self.keys().copy_async_mut(at, from, at as usize);
                }
            }
            shared::wait_for_copies();
            // SAFETY: `own_row()` and `end()` are on the same side for all lanes of a warp, since `end()` is a multiple
            // of `RUN`. So the 32 lanes make the call.
            unsafe { sync_warp(FULL_MASK) };
            if own < len {
                let row = self.row(own, len - own);
                for i in 0..LANE_KEYS {
                    let key = row[i].to_register() as u32;
                    greatest = greatest.max(key);
                    greatest_complement = greatest_complement.max(!key);
                }
            }
        }
        let Memory { greatest: of_warps, greatest_complement: complements, group_count, .. } = self.memory;
        // SAFETY: no branch surrounds the calls, so that the 32 lanes of the warp make both.
        let both = unsafe { (reduce_max(FULL_MASK, greatest), reduce_max(FULL_MASK, greatest_complement)) };
        if lane == 0 {
            of_warps.set(warp, both.0);
            complements.set(warp, both.1);
        }
        thread::sync_threads();
        let is_warp = lane < thread::block_dim_x() / WARP_SIZE;
        let word = |words: Shared<u32>| if is_warp { words.get(lane) } else { 0 };
        // SAFETY: no branch surrounds the calls, so that the 32 lanes of the warp make both.
        let (greatest, complement) =
            unsafe { (reduce_max(FULL_MASK, word(of_warps)), reduce_max(FULL_MASK, word(complements))) };
        if thread::thread_idx_x() == 0 {
            let words = Numbers::new(!complement, greatest, self.len()).words();
            for i in 0..words.len() {
                self.memory.coding.set(i as u32, words[i]);
            }
            group_count.set(0, 0);
        }
        thread::sync_threads();
    }

    /// Sorts the numbers, in one pass or in three, and returns the last pass. Ends with a barrier.
    ///
    /// # Safety
    /// The requirements of [`Sort`] hold.
    #[inline(always)]
    #[track_caller]
    unsafe fn sort_numbers(&self, minus_one: u32) -> Pass {
        let mut pass = Pass::Upper;
        loop {
            if own_row() < self.end() {
                let (row, left) = (self.row_of_numbers(pass), self.len() - own_row() / RUN * RUN);
                // SAFETY: `end()` is a multiple of `RUN`, the keys of a warp's rows, so that the 32 lanes of the warp
                // make the call. Their rows are one run, and no other warp uses its slots.
                unsafe { sort_run(row, left, self.numbers(), || self.end(), minus_one) };
            }
            thread::sync_threads();
            // SAFETY: all threads of the block make the call: `pass` is the same for all. A barrier comes before, and
            // nothing else uses the slots.
            unsafe { merge_runs(self.numbers(), || self.end()) };
            // SAFETY: `pass` and `coding_of_numbers` are the same for all threads, so that all of the block make the
            // call. `merge_runs` ends with a barrier.
            let put_in_order = || unsafe { self.put_in_order() };
            let are_in_order = pass == Pass::Upper && (self.coding_of_numbers().have_all_bits() || put_in_order());
            let Some(next) = pass.next(are_in_order) else { return pass };
            pass = next;
            if pass == Pass::UpperOfLower {
                // SAFETY: `pass` is the same for all threads, so that all of the block make the call. `merge_runs` ends
                // with a barrier.
                unsafe { self.keep_order() };
            }
        }
    }

    /// This thread's row of numbers, followed by the greatest numbers.
    #[inline(always)]
    #[track_caller]
    fn row_of_numbers(&self, pass: Pass) -> [u32; LANE_KEYS] {
        let numbers = self.coding_of_numbers();
        let (mut row, own, len) = ([u32::MAX; LANE_KEYS], own_row(), self.len());
        if own >= len {
            return row;
        }
        if pass == Pass::UpperOfLower {
            let (order, encode) = (self.elements().keys, self.coding);
            for i in 0..LANE_KEYS as u32 {
                if own + i < len {
                    let key = self.keys().get(order.get((own + i) as usize).to_register() as u32);
                    row[i as usize] = numbers.of(pass, encode.encode(key), own + i);
                }
            }
            return row;
        }
        let keys = self.row(own, len - own);
        for i in 0..LANE_KEYS as u32 {
            if own + i < len {
                row[i as usize] = numbers.of(pass, keys[i as usize], own + i);
            }
        }
        row
    }

    /// Puts keys in order that differ only in the bits that their numbers leave out. The numbers are sorted. Returns
    /// whether all keys are in order. Ends with a barrier, unless the result is false.
    ///
    /// # Safety
    /// The requirements of [`Sort`] hold.
    #[inline(always)]
    #[track_caller]
    unsafe fn put_in_order(&self) -> bool {
        let numbers = self.coding_of_numbers();
        let (slots, len, Memory { group_count, groups, .. }) = (self.numbers(), self.len(), self.memory);
        let (keys, encode) = (self.keys(), self.coding);
        let key_of = |number: u32| encode.encode(keys.get(numbers.index(number)));
        let key = |rank: u32| key_of(slots.get(rank));
        let is_like_next = |rank: u32| numbers.are_alike(slots.get(rank), slots.get(rank + 1));
        let mut alike = self.alike(numbers);
        while alike != 0 {
            let rank = own_row() + alike.trailing_zeros();
            alike &= alike - 1;
            if key(rank) <= key(rank + 1) {
                continue;
            }
            // The group of both keys. If an earlier pair of the group is out of order, the thread that finds that pair
            // lists the group.
            let (mut first, mut last, mut is_listed) = (rank, rank + 1, false);
            while first > 0 && rank - first < MOST_ALIKE && !is_listed && is_like_next(first - 1) {
                first -= 1;
                is_listed = key(first) > key(first + 1);
            }
            if is_listed {
                continue;
            }
            while last + 1 < len && last - rank < MOST_ALIKE && is_like_next(last) {
                last += 1;
            }
            if last - first >= MOST_ALIKE {
                group_count.fetch_add(0, MOST_GROUPS + 1);
                break;
            }
            let at = group_count.fetch_add(0, 1);
            if at < MOST_GROUPS {
                groups.set(at, last << 16 | first);
            }
        }
        thread::sync_threads();
        let count = group_count.get(0);
        if count > MOST_GROUPS {
            return false;
        }
        let mut group = recomputed(thread::thread_idx_x());
        while group < count {
            let (first, last) = (groups.get(group) & 0xffff, groups.get(group) >> 16);
            insert((first, last), |rank| slots.get(rank), |rank, number| slots.set(rank, number), key_of);
            group += thread::block_dim_x();
        }
        thread::sync_threads();
        true
    }

    /// The numbers of this thread's row that are like the next number, as bits. All numbers are sorted.
    #[inline(always)]
    #[track_caller]
    fn alike(&self, numbers: Numbers) -> u32 {
        let (slots, own, len) = (self.numbers(), own_row(), self.len());
        if own + 1 >= len {
            return 0;
        }
        let (row, mut alike) = (slots.row(own), 0);
        for i in 0..LANE_KEYS - 1 {
            alike |= u32::from(numbers.are_alike(row[i], row[i + 1])) << i;
        }
        let (last, next) = (LANE_KEYS as u32 - 1, own + LANE_KEYS as u32);
        if next < len {
            return alike | u32::from(numbers.are_alike(row[LANE_KEYS - 1], slots.get(next))) << last;
        }
        // The greatest numbers are behind the last key.
        alike & ((1 << (len - 1 - own)) - 1)
    }

    /// Stores the indices of the sorted numbers over the segment's original keys, which are in shared memory. Ends with
    /// a barrier.
    ///
    /// # Safety
    /// The requirements of [`Sort`] hold.
    #[inline(always)]
    #[track_caller]
    unsafe fn keep_order(&self) {
        let numbers = self.coding_of_numbers();
        let (order, mut rank) = (self.elements().keys, recomputed(thread::thread_idx_x()));
        while rank < order.len() as u32 {
            order.set(rank as usize, B::from_register(numbers.index(self.numbers().get(rank)) as u64));
            rank += thread::block_dim_x();
        }
        thread::sync_threads();
    }

    /// The indices in the segment of this thread's sorted numbers, striped.
    #[inline(always)]
    #[track_caller]
    fn indices(&self, pass: Pass) -> [u32; LANE_KEYS] {
        let (numbers, own, len) = (self.coding_of_numbers(), recomputed(thread::thread_idx_x()), self.len());
        let rank = |i: usize| own + i as u32 * thread::block_dim_x();
        let mut indices = [0; LANE_KEYS];
        for i in 0..LANE_KEYS {
            if rank(i) < len {
                indices[i] = numbers.index(self.numbers().get(rank(i)));
            }
        }
        if pass == Pass::UpperOfLower {
            let order = self.elements().keys;
            for i in 0..LANE_KEYS {
                if rank(i) < len {
                    indices[i] = order.get(indices[i] as usize).to_register() as u32;
                }
            }
        }
        indices
    }

    /// Shared to global: stores keys by the indices of their numbers, and their values. Ends with a barrier.
    ///
    /// # Safety
    /// The requirements of [`Sort`] hold.
    #[inline(always)]
    #[track_caller]
    unsafe fn store(&self, pass: Pass) {
        // Computed again in each loop: to keep ranks takes registers.
        let first = || recomputed(thread::thread_idx_x());
        let rank = |first: u32, i: usize| first + i as u32 * thread::block_dim_x();
        let indices = self.indices(pass);
        thread::sync_threads();
        let values = self.memory.slots.values;
        let copy_values = || {
            let (own, from) = (first(), self.elements().values);
            for i in 0..LANE_KEYS {
                if rank(own, i) < from.len() as u32 {
                    values.copy_async_mut(rank(own, i), from, rank(own, i) as usize);
                }
            }
        };
        // Values of 4 bytes overwrite the numbers, and longer values the keys, too.
        if const { size_of::<V>() <= 4 } {
            copy_values();
        }
        let (own, to) = (first(), self.elements().keys);
        for batch in (0..LANE_KEYS).step_by(MOVED) {
            let mut keys = [B::MIN; MOVED];
            for i in 0..MOVED {
                if rank(own, batch + i) < to.len() as u32 {
                    keys[i] = self.keys().get(indices[batch + i]);
                }
            }
            for i in 0..MOVED {
                if rank(own, batch + i) < to.len() as u32 {
                    to.set(rank(own, batch + i) as usize, keys[i]);
                }
            }
        }
        if const { size_of::<V>() > 4 } {
            thread::sync_threads();
            copy_values();
        }
        shared::wait_for_copies();
        thread::sync_threads();
        let (own, to) = (first(), self.elements().values);
        for i in 0..LANE_KEYS {
            if rank(own, i) < to.len() as u32 {
                to.set(rank(own, i) as usize, values.get(indices[i]));
            }
        }
        thread::sync_threads();
    }
}
