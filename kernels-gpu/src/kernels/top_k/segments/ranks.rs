//! The order of the candidates of a block.
//!
//! ```text
//!   candidates   │ 7 2 9 2 4 8 3 │
//!   bins         │ 2 3 2 │ 4 │ 7 │ 9 8 │      by the first bits of their distance from the least
//!   ranks          0 2 1   3   4   6 5        first slot of the bin, and the number of lesser candidates in the bin
//! ```
//!
//! If a bin has many candidates, all candidates are sorted by a bitonic network instead.

use super::candidates::{Candidates, for_each_slot};
use super::interval::{Digit, Interval};
use super::{Memory, SLOTS};
use crate::block::scan::{block_range, sum_before};
use crate::key::Bits;
use cuda_std::prelude::*;

/// Up to this many candidates are one bin.
const FEW: u32 = 64;

/// Most candidates of a bin.
const MAX_BIN: u32 = 32;

impl<B: Bits> Candidates<B> {
    /// Calls `write` for the first `k` candidates, each by one thread, with their rank, their key and their index.
    ///
    /// # Safety
    /// All threads of the block, which are whole warps, make this call, and nothing else uses the memory. Barriers come
    /// before the call and behind it. There are at least `k` candidates.
    #[inline(always)]
    #[track_caller]
    pub(super) unsafe fn in_order(self, k: u32, write: impl Fn(u32, B, u32)) {
        let write_ranked = |begin: u32, end: u32, key: B, index: u32| {
            let rank = if begin < k { self.rank_within(begin, end, (key, index)) } else { k };
            if rank < k {
                write(rank, key, index);
            }
        };
        if self.count <= FEW {
            return self.for_each(|key, index| write_ranked(0, self.count, key, index));
        }
        // SAFETY: `count` is equal in all threads, so that all threads of the block, which are whole warps, make these
        // calls. The result of `move_to_bins` is equal in all threads, too.
        unsafe {
            if let Some(digit) = self.move_to_bins() {
                let counts = self.memory.counts;
                self.for_each(|key, index| {
                    // Each counter is now the end of its bin.
                    let bin = digit.of(key, index);
                    let begin = if bin == 0 { 0 } else { counts.get(bin - 1) };
                    write_ranked(begin, counts.get(bin), key, index);
                });
            } else {
                self.sort();
                let Memory { keys, indices, .. } = self.memory;
                for_each_slot(k, |_, slot| write(slot, keys.get(slot), indices.get(slot)));
            }
        }
    }

    /// `begin` and the number of candidates in slots `begin .. end` that come before `candidate`.
    #[inline(always)]
    #[track_caller]
    fn rank_within(self, begin: u32, end: u32, candidate: (B, u32)) -> u32 {
        let Memory { keys, indices, .. } = self.memory;
        let mut rank = begin;
        for slot in begin..end {
            rank += ((keys.get(slot), indices.get(slot)) < candidate) as u32;
        }
        rank
    }

    /// Moves candidates to the slots of their bins, which are the values of the digit that is returned. `None` if a bin
    /// has too many candidates. Ends with a barrier.
    ///
    /// # Safety
    /// The requirements of [`in_order`](Self::in_order) hold.
    #[inline(always)]
    #[track_caller]
    unsafe fn move_to_bins(self) -> Option<Digit<B>> {
        let Memory { keys, indices, counts, scan, large, .. } = self.memory;
        let (mut least, mut greatest) = (B::MAX, B::MIN);
        self.for_each(|key, _| {
            (least, greatest) = (least.min(key), greatest.max(key));
        });
        self.clear_counts();
        if thread::thread_idx_x() == 0 {
            large.set(0, 0);
        }
        // SAFETY: all threads of the block, which are whole warps, make this call, and nothing else uses `scan`.
        let (least, greatest) = unsafe { block_range(least, greatest, scan) };
        let digit = Interval::new(least, greatest, self.index_bits).digit(self.digit_bits());
        let (mut held, mut held_indices) = ([B::MIN; SLOTS], [0; SLOTS]);
        for_each_slot(self.count, |j, slot| {
            (held[j], held_indices[j]) = (keys.get(slot), indices.get(slot));
            counts.fetch_add(digit.of(held[j], held_indices[j]), 1);
        });
        thread::sync_threads();
        // SAFETY: all threads of the block, which are whole warps, make this call. Nothing has used `scan` since the
        // barrier.
        let has_large = unsafe { self.begin_bins() };
        if has_large {
            return None;
        }
        for_each_slot(self.count, |j, _| {
            let slot = counts.fetch_add(digit.of(held[j], held_indices[j]), 1);
            keys.set(slot, held[j]);
            indices.set(slot, held_indices[j]);
        });
        thread::sync_threads();
        Some(digit)
    }

    /// Replaces the number of candidates of each bin by its first slot. Returns whether a bin is large. Ends with a
    /// barrier.
    ///
    /// # Safety
    /// All threads of the block, which are whole warps, make this call, and nothing else uses the memory.
    #[inline(always)]
    #[track_caller]
    unsafe fn begin_bins(self) -> bool {
        let Memory { counts, scan, large, .. } = self.memory;
        let first = thread::thread_idx_x() * SLOTS as u32;
        let (mut own, mut most) = ([0; SLOTS], 0);
        for j in 0..SLOTS {
            own[j] = counts.get(first + j as u32);
            most = own[j].max(most);
        }
        if most > MAX_BIN {
            large.fetch_add(0, 1);
        }
        // SAFETY: all threads of the block, which are whole warps, make this call, and nothing else uses `scan`.
        let (mut before, _) = unsafe { sum_before(own.iter().sum(), scan) };
        for j in 0..SLOTS {
            counts.set(first + j as u32, before);
            before += own[j];
        }
        thread::sync_threads();
        large.get(0) > 0
    }

    /// Sorts the candidates by a bitonic network. Ends with a barrier.
    ///
    /// # Safety
    /// All threads of the block make this call, behind a barrier, and nothing else uses the memory.
    #[inline(always)]
    #[track_caller]
    unsafe fn sort(self) {
        let Memory { keys, indices, .. } = self.memory;
        let (thread, threads) = (thread::thread_idx_x(), thread::block_dim_x());
        let all = self.count.next_power_of_two();
        for_each_slot(all, |_, slot| {
            if slot >= self.count {
                keys.set(slot, B::MAX);
                indices.set(slot, u32::MAX);
            }
        });
        let mut run = 2;
        while run <= all {
            let mut distance = run / 2;
            while distance > 0 {
                thread::sync_threads();
                let mut pair = thread;
                while pair < all / 2 {
                    // `distance` is a power of two.
                    let lower = 2 * pair - (pair & (distance - 1));
                    // In the first step of a run, the second half is compared in reverse order.
                    let upper = lower ^ if 2 * distance == run { run - 1 } else { distance };
                    let (a, b) = ((keys.get(lower), indices.get(lower)), (keys.get(upper), indices.get(upper)));
                    if b < a {
                        keys.set(lower, b.0);
                        indices.set(lower, b.1);
                        keys.set(upper, a.0);
                        indices.set(upper, a.1);
                    }
                    pair += threads;
                }
                distance /= 2;
            }
            run *= 2;
        }
        thread::sync_threads();
    }
}
