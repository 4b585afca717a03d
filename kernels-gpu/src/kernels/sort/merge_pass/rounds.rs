//! The rounds of a tile: lists of keys in shared memory are merged two by two, until one is left.
//!
//! ```text
//!   segments   │░░→ ←░░░│░→ ←░░│░░→ ←░│░░→ ←░░│     round 0 makes a list of each pair
//!   lists      │░░░░░→     ←░░░│░░░→     ←░░░░│     every other one lies downwards, so that two have their ends together
//!              │░░░░░░░░→             ←░░░░░░░│     each round makes one of two
//!              │░░░░░░░░░░░░░░░               │
//! ```
//!
//! In each round a thread merges the same VT slots, of the list that they are in.

use super::plan::Plan;
use crate::block::tile;
use crate::kernels::sort::runs::MAX_RUNS;
use crate::key::Bits;
use cuda_std::prelude::*;

/// Two runs to be merged: slots `begin .. half`, upwards, and `half .. end`, downwards, with greatest keys after the
/// last.
#[derive(Clone, Copy)]
pub(in crate::kernels::sort) struct List {
    pub(in crate::kernels::sort) begin: u32,
    pub(in crate::kernels::sort) half: u32,
    pub(in crate::kernels::sort) end: u32,
}

/// A thread's slots in a tile: from `slot` on, in a pair if they are before the end.
#[derive(Clone, Copy)]
pub(in crate::kernels::sort) struct Position {
    slot: u32,
    pub(in crate::kernels::sort) pair: Option<u32>,
}

impl Plan {
    /// Where the last pair ends.
    #[inline(always)]
    fn end_of_siblings(self) -> u32 {
        self.siblings.get(MAX_RUNS / 2)
    }

    /// How many rounds there are.
    #[inline(always)]
    pub(in crate::kernels::sort) fn levels(self) -> u32 {
        self.segments.get(0).next_power_of_two().trailing_zeros()
    }

    /// The list of pairs that round `level` merges to slot `slot` among others, and whether it lies upwards then. A
    /// list of `items_per_thread` slots of its own for a thread beyond the last pair.
    #[inline(always)]
    pub(in crate::kernels::sort) fn list(self, position: Position, level: u32, items_per_thread: u32) -> (List, bool) {
        let Position { slot, pair } = position;
        let Some(pair) = pair else {
            return (List { begin: slot, half: slot, end: slot + items_per_thread }, true);
        };
        let list = pair >> level;
        let (begin, end) = (self.siblings.get(list << level), self.siblings.get((list + 1) << level));
        // Keys of the segments of the first half.
        let (first, middle) = (list << (level + 1), (list << (level + 1)) + (1 << level));
        let half = begin + (self.before.get(middle) - self.before.get(first));
        // The second half of the next list lies downwards from its end.
        (List { begin, half, end }, list.is_multiple_of(2))
    }

    /// The position of the thread with slots from `slot` on.
    #[inline(always)]
    pub(in crate::kernels::sort) fn position(self, slot: u32) -> Position {
        Position { slot, pair: (slot < self.end_of_siblings()).then(|| self.siblings_of(slot)) }
    }

    /// The pair that slot `slot` is in, if it is before the end.
    #[inline(always)]
    fn siblings_of(self, slot: u32) -> u32 {
        let (mut pair, mut half) = (0, MAX_RUNS / 4);
        // The last pair that begins at or before the slot: empty ones before it begin where it does.
        while half > 0 {
            if self.siblings.get(pair + half) <= slot {
                pair += half;
            }
            half /= 2;
        }
        pair
    }
}

/// Merges the segments of a tile in shared memory by rounds: in each, a list of `1 << level` pairs of segments is
/// merged from its two halves. Loads have been waited for; the barrier that divides them from here is in this function.
#[inline(always)]
#[track_caller]
pub(in crate::kernels::sort) fn merge_segments<B: Bits, const NT: usize, const VT: usize>(plan: Plan, keys: Shared<B>) {
    // A thread beyond the last pair merges a list of its own, so that all threads do the same.
    let slot = thread::thread_idx_x() * VT as u32;
    let position = plan.position(slot);
    if position.pair.is_none() {
        tile::store_blocked([B::MAX; VT], slot, keys);
    }
    thread::sync_threads();

    let levels = plan.levels();
    let mut level = 0;
    while level < levels {
        let (List { begin, half, end }, upwards) = plan.list(position, level, VT as u32);
        let merged: [B; VT] = tile::merge_to_registers(keys.slice(begin, end - begin), half - begin, slot - begin);
        thread::sync_threads();
        let first = if upwards { slot } else { end - VT as u32 - (slot - begin) };
        // SAFETY: all threads of the block are here.
        unsafe { tile::store_blocked_or_reversed(merged, first, upwards, keys) };
        level += 1;
        thread::sync_threads();
    }
}
