//! The rounds of a tile: pairs of lists in shared memory are merged, until one list is left.
//!
//! ```text
//!   segments   │░░→ ←░░░│░→ ←░░│░░→ ←░│░░→ ←░░│     round 0 makes a list of each pair
//!   lists      │░░░░░→     ←░░░│░░░→     ←░░░░│     every other list descends, so that two ends meet
//!              │░░░░░░░░→             ←░░░░░░░│     each round makes one of two
//!              │░░░░░░░░░░░░░░░               │
//! ```
//!
//! In each round, a thread merges the same VT slots, in whichever list they are.

use super::plan::Plan;
use crate::block::tile;
use crate::kernels::sort::runs::MAX_RUNS;
use crate::key::Bits;
use cuda_std::prelude::*;

/// Two runs to be merged. Slots `begin .. half` ascend, and slots `half .. end` descend; greatest keys may follow the
/// last key.
#[derive(Clone, Copy)]
pub(in crate::kernels::sort) struct List {
    pub(in crate::kernels::sort) begin: u32,
    pub(in crate::kernels::sort) half: u32,
    pub(in crate::kernels::sort) end: u32,
}

/// A thread's slots in a tile, from `slot` on. They are in a pair if they are before the end.
#[derive(Clone, Copy)]
pub(in crate::kernels::sort) struct Position {
    slot: u32,
    pub(in crate::kernels::sort) pair: Option<u32>,
}

impl Plan {
    /// End of the last pair.
    #[inline(always)]
    fn end_of_siblings(self) -> u32 {
        self.siblings.get(MAX_RUNS / 2)
    }

    /// Number of rounds.
    #[inline(always)]
    pub(in crate::kernels::sort) fn levels(self) -> u32 {
        self.segments.get(0).next_power_of_two().trailing_zeros()
    }

    /// The list of pairs that round `level` merges to slot `slot` and others, and whether its result ascends. A thread
    /// beyond the last pair has its own list of `items_per_thread` slots.
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
        // The second half of the next list descends from its end.
        (List { begin, half, end }, list.is_multiple_of(2))
    }

    /// The position of the thread with slots from `slot` on.
    #[inline(always)]
    pub(in crate::kernels::sort) fn position(self, slot: u32) -> Position {
        Position { slot, pair: (slot < self.end_of_siblings()).then(|| self.siblings_of(slot)) }
    }

    /// The pair of slot `slot`, if the slot is before the end.
    #[inline(always)]
    fn siblings_of(self, slot: u32) -> u32 {
        let (mut pair, mut half) = (0, MAX_RUNS / 4);
        // The last pair that begins at or before the slot: empty pairs before it begin at the same slot.
        while half > 0 {
            if self.siblings.get(pair + half) <= slot {
                pair += half;
            }
            half /= 2;
        }
        pair
    }
}

/// Merges the segments of a tile in shared memory by rounds. Round `level` merges lists of `1 << level` pairs of
/// segments, each from its two halves. The caller has waited for its copies; the barrier behind them is in this
/// function.
#[inline(always)]
#[track_caller]
pub(in crate::kernels::sort) fn merge_segments<B: Bits, const NT: usize, const VT: usize>(plan: Plan, keys: Shared<B>) {
    // A thread beyond the last pair merges its own list, so that all threads do the same work.
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
        // SAFETY: `levels` is the same for all threads, so that all `NT` threads of the block make the call. Each
        // thread stores `VT` slots of its own. Barriers come before and after.
        unsafe { tile::store_blocked_or_reversed(merged, first, upwards, keys) };
        level += 1;
        thread::sync_threads();
    }
}
