//! The candidates of a block: a buffer in shared memory, and the keys of a tile in registers.
//!
//! ```text
//!   buffer     │ ■ ■ ■ ■ ■ ■ · · │     from earlier tiles; slot t + j * threads belongs to thread t
//!   tile       │ · ■ · · ■ · ■ … │     keys up to the bound
//!   narrow     if both together exceed the buffer, a radix select finds a bound that k candidates do not exceed
//! ```

use super::interval::Interval;
use super::{Memory, SLOTS};
use crate::block::scan::{block_range, sum_before};
use crate::key::{Bits, Coding};
use crate::warp::multiway_co_rank::from_lane;
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::WARP_SIZE;

/// The keys of a thread in a tile, as ordered bits. Key `i` is `i` times the number of threads behind the first.
pub(super) struct Tile<B, const VT: usize> {
    keys: [B; VT],
    /// Index of the first key in the segment.
    first: u32,
    /// Bit `i`: whether key `i` is a candidate.
    kept: u32,
}

impl<B: Bits, const VT: usize> Tile<B, VT> {
    /// The thread's keys of the tile that begins at key `begin` of a segment, which has at most 2^31 keys.
    #[inline(always)]
    #[track_caller]
    pub(super) fn load(segment: Global<B>, begin: u32, coding: Coding<B>) -> Self {
        const { assert!(VT < 32, "there is a bit for each key") };
        let (threads, first) = (thread::block_dim_x() as usize, (begin + thread::thread_idx_x()) as usize);
        let (mut keys, mut kept) = ([coding.decode(B::MAX); VT], (1 << VT) - 1);
        // Full and partial tiles have separate code, so that full tiles need no bounds checks.
        if begin as usize + threads * VT <= segment.len() {
            for i in 0..VT {
                keys[i] = segment.get(first + i * threads);
            }
        } else {
            kept = 0;
            for i in 0..VT {
                if first + i * threads < segment.len() {
                    keys[i] = segment.get(first + i * threads);
                    kept |= 1 << i;
                }
            }
        }
        coding.encode_all(&mut keys);
        Self { keys, first: first as u32, kept }
    }

    /// Number of the thread's candidates.
    #[inline(always)]
    pub(super) fn count(&self) -> u32 {
        self.kept.count_ones()
    }

    /// Calls `visit` for each candidate of the thread: its key and its index.
    #[inline(always)]
    fn for_each(&self, mut visit: impl FnMut(B, u32)) {
        let (mut index, threads) = (recomputed(self.first), thread::block_dim_x());
        for i in 0..VT {
            if self.kept >> i & 1 != 0 {
                visit(self.keys[i], index);
            }
            index += threads;
        }
    }

    /// Keeps the candidates up to `last`.
    #[inline(always)]
    fn retain(&mut self, last: (B, u32)) {
        let (mut kept, mut index, threads) = (self.kept, recomputed(self.first), thread::block_dim_x());
        for i in 0..VT {
            kept &= !((!is_up_to(last, self.keys[i], index) as u32) << i);
            index += threads;
        }
        self.kept = kept;
    }

    /// Keeps the candidates with keys up to `bound`.
    #[inline(always)]
    pub(super) fn retain_keys(&mut self, bound: B) {
        let mut kept = self.kept;
        for i in 0..VT {
            kept &= !(((self.keys[i] > bound) as u32) << i);
        }
        self.kept = kept;
    }

    /// A bound that at least `k` of the tile's keys do not exceed, if there are as many keys. This tile is the first of
    /// a segment of `len` keys.
    ///
    /// At least k groups of threads have keys. The minima of the groups are distinct keys, so that at least k keys do
    /// not exceed the greatest minimum.
    ///
    /// # Safety
    /// All threads of the block, which are whole warps, make this call, and nothing else uses `memory.scan`.
    #[inline(always)]
    #[track_caller]
    pub(super) unsafe fn bound(&self, len: u32, k: u32, memory: Memory<B>) -> B {
        let threads = thread::block_dim_x();
        let (mut least, mut greatest) = (B::MAX, B::MIN);
        if len >= threads && k <= threads {
            // Missing keys are the greatest ones.
            for i in 0..VT {
                least = self.keys[i].min(least);
            }
            let mut lanes = 1;
            while lanes < WARP_SIZE && 2 * lanes * k <= threads {
                // SAFETY: the loop's conditions are equal in all threads, so that the 32 lanes of each warp make this
                // call. The source is the XOR of a lane and a power of two below 32.
                let other = unsafe { from_lane(least, warp::lane_id() ^ lanes) };
                least = other.min(least);
                lanes *= 2;
            }
            greatest = least;
        } else {
            self.for_each(|key, _| greatest = key.max(greatest));
        }
        // SAFETY: `len`, `k` and `threads` are equal in all threads, so that all threads of the block, which are whole
        // warps, make this call. Nothing else uses `scan`.
        unsafe { block_range(least, greatest, memory.scan).1 }
    }
}

/// Whether a candidate does not come after `last`.
#[inline(always)]
fn is_up_to<B: Bits>(last: (B, u32), key: B, index: u32) -> bool {
    key < last.0 || (key == last.0 && index <= last.1)
}

/// Calls `visit` for each of the thread's slots below `count`, with its number among the thread's slots.
#[inline(always)]
pub(super) fn for_each_slot(count: u32, mut visit: impl FnMut(usize, u32)) {
    for j in 0..SLOTS {
        let slot = thread::thread_idx_x() + j as u32 * thread::block_dim_x();
        if slot < count {
            visit(j, slot);
        }
    }
}

/// The candidates in a block's buffer.
#[derive(Clone, Copy)]
pub(super) struct Candidates<B> {
    pub(super) memory: Memory<B>,
    /// Number of candidates, in the first slots.
    pub(super) count: u32,
    /// Number of bits of an index.
    pub(super) index_bits: u32,
}

impl<B: Bits> Candidates<B> {
    /// Calls `visit` for each candidate in the thread's slots.
    #[inline(always)]
    #[track_caller]
    pub(super) fn for_each(self, mut visit: impl FnMut(B, u32)) {
        let mut slot = thread::thread_idx_x();
        while slot < self.count {
            visit(self.memory.keys.get(slot), self.memory.indices.get(slot));
            slot += thread::block_dim_x();
        }
    }

    /// Number of bits of a digit, for as many values as there are slots.
    #[inline(always)]
    pub(super) fn digit_bits(self) -> u32 {
        self.memory.counts.len().trailing_zeros()
    }

    /// Sets the thread's counters to 0.
    #[inline(always)]
    #[track_caller]
    pub(super) fn clear_counts(self) {
        for_each_slot(self.memory.counts.len(), |_, slot| self.memory.counts.set(slot, 0));
    }

    /// Adds the candidates of a tile. If there are too many, keeps only candidates up to a bound that at least `k` of
    /// them do not exceed, and returns the key of this bound.
    ///
    /// # Safety
    /// All threads of the block, which are whole warps, make this call, and nothing else uses the memory. There are at
    /// least `k` candidates, and `k` is at most the number of slots. Barriers come before the call and behind it.
    #[inline(always)]
    #[track_caller]
    pub(super) unsafe fn add<const VT: usize>(&mut self, mut tile: Tile<B, VT>, k: u32) -> Option<B> {
        // SAFETY: all threads of the block, which are whole warps, make this call, and nothing else uses `scan`.
        let (before, all) = unsafe { sum_before(tile.count(), self.memory.scan) };
        if self.count + all <= self.memory.keys.len() {
            self.append(&tile, self.count + before);
            self.count += all;
            return None;
        }
        thread::sync_threads();
        // SAFETY: `count` and `all` are equal in all threads, so that all threads of the block make both calls. A
        // barrier has ended the use of `scan`, and `bound_of` ends with one.
        unsafe {
            let last = self.bound_of(k, &tile);
            tile.retain(last);
            self.retain(&tile, last);
            Some(last.0)
        }
    }

    /// Stores the candidates of a tile, those of this thread from slot `first` on.
    #[inline(always)]
    #[track_caller]
    fn append<const VT: usize>(self, tile: &Tile<B, VT>, first: u32) {
        let Memory { keys, indices, .. } = self.memory;
        let (mut index, threads) = (recomputed(tile.first), thread::block_dim_x());
        let (mut key_at, mut index_at) = (keys.address(first), indices.address(first));
        for i in 0..VT {
            key_at = keys.push_if(tile.kept, 1 << i, key_at, tile.keys[i]);
            index_at = indices.push_if(tile.kept, 1 << i, index_at, index);
            index += threads;
        }
    }

    /// Keeps the candidates of the buffer up to `last`, and adds the candidates of a tile.
    ///
    /// # Safety
    /// All threads of the block, which are whole warps, make this call, and nothing else uses the memory. At most as
    /// many candidates as there are slots are kept.
    #[inline(always)]
    #[track_caller]
    unsafe fn retain<const VT: usize>(&mut self, tile: &Tile<B, VT>, last: (B, u32)) {
        let Memory { keys, indices, scan, .. } = self.memory;
        let (mut kept, mut first) = (0, 0);
        // A round for each slot of a thread. The kept candidates move to slots of this round or of earlier ones.
        while first < self.count {
            let slot = first + thread::thread_idx_x();
            let is_used = slot < self.count;
            let (key, index) = if is_used { (keys.get(slot), indices.get(slot)) } else { (B::MAX, u32::MAX) };
            let is_kept = is_used && is_up_to(last, key, index);
            // SAFETY: `first` and `count` are equal in all threads, so that all threads of the block, which are whole
            // warps, make this call. A barrier ends each round, so that nothing else uses `scan`.
            let (before, all) = unsafe { sum_before(is_kept as u32, scan) };
            // The sum has a barrier, so that all slots of this round have been read.
            if is_kept {
                keys.set(kept + before, key);
                indices.set(kept + before, index);
            }
            kept += all;
            first += thread::block_dim_x();
            thread::sync_threads();
        }
        // SAFETY: all threads of the block, which are whole warps, make this call, behind a barrier.
        let (before, all) = unsafe { sum_before(tile.count(), scan) };
        self.append(tile, kept + before);
        self.count = kept + all;
    }

    /// The last of at least `k` candidates of the buffer and a tile together, and of at most as many as there are
    /// slots.
    ///
    /// # Safety
    /// The requirements of [`add`](Self::add) hold. Ends with a barrier.
    #[inline(always)]
    #[track_caller]
    unsafe fn bound_of<const VT: usize>(self, k: u32, tile: &Tile<B, VT>) -> (B, u32) {
        let counts = self.memory.counts;
        let (mut least, mut greatest) = (B::MAX, B::MIN);
        let mut extend = |key, _| {
            (least, greatest) = (least.min(key), greatest.max(key));
        };
        self.for_each(&mut extend);
        tile.for_each(&mut extend);
        // SAFETY: all threads of the block, which are whole warps, make this call, and nothing else uses `scan`.
        let (least, greatest) = unsafe { block_range(least, greatest, self.memory.scan) };
        let mut interval = Interval::new(least, greatest, self.index_bits);
        let (mut rank, mut below) = (k, 0);
        loop {
            let digit = interval.digit(self.digit_bits());
            self.clear_counts();
            thread::sync_threads();
            let count = |key, index| {
                if interval.contains(key, index) {
                    counts.fetch_add(digit.of(key, index), 1);
                }
            };
            self.for_each(count);
            tile.for_each(count);
            thread::sync_threads();
            // SAFETY: the loop has the same rounds in all threads, which read the same chosen values: all threads of
            // the block make this call.
            let [value, lesser, equal] = unsafe { self.value_of_rank(rank) };
            interval = digit.part(value);
            if below + lesser + equal <= self.memory.keys.len() {
                return interval.last();
            }
            // A digit without bits behind it has one candidate for each value, so that this ends.
            below += lesser;
            rank -= lesser;
        }
    }

    /// The value of the counted digit of the candidate of this rank, from 1, and the numbers of candidates with lesser
    /// values and with this one. Ends with a barrier.
    ///
    /// # Safety
    /// All threads of the block, which are whole warps, make this call behind a barrier, and nothing else uses the
    /// memory.
    #[inline(always)]
    #[track_caller]
    unsafe fn value_of_rank(self, rank: u32) -> [u32; 3] {
        let Memory { counts, scan, chosen, .. } = self.memory;
        let first = thread::thread_idx_x() * SLOTS as u32;
        let mut own = [0; SLOTS];
        for j in 0..SLOTS {
            own[j] = counts.get(first + j as u32);
        }
        // SAFETY: all threads of the block, which are whole warps, make this call, and nothing else uses `scan`.
        let (mut before, _) = unsafe { sum_before(own.iter().sum(), scan) };
        for j in 0..SLOTS {
            if before < rank && rank <= before + own[j] {
                chosen.set(0, first + j as u32);
                chosen.set(1, before);
                chosen.set(2, own[j]);
            }
            before += own[j];
        }
        thread::sync_threads();
        [chosen.get(0), chosen.get(1), chosen.get(2)]
    }
}
