//! Assignment of a level's units to blocks: one unit a round. The words of the next unit are loaded during the round
//! before.

use super::{UNIT_WORDS, Unit, Workspace};
use crate::block::shared_memory::shared_memory;
use crate::key::Bits;
use core::hint::assert_unchecked;
use cuda_std::prelude::*;
use cuda_std::shared;

shared_memory! {
    /// Shared memory of a block for its units.
    pub(super) struct RoundMemory() {
        /// The words of the current unit and of the next one.
        words: [u32; 2 * UNIT_WORDS],
    }
}

/// Step of the block's unit number, among the units of a round, from one round to the next.
const STEP: u32 = 7;

/// The unit of a round.
#[derive(Clone, Copy)]
pub(super) struct UnitOfRound(Shared<u32>);

impl UnitOfRound {
    /// The unit, read again at each call: to keep it takes registers.
    #[inline(always)]
    #[track_caller]
    pub fn get(self) -> Unit {
        Unit::of([self.0.get(0), self.0.get(1), self.0.get(2)])
    }
}

/// This block's units of a level, in rounds.
pub(super) struct Rounds<B, V> {
    workspace: Workspace<B, V>,
    level: u32,
    words: Shared<u32>,
    round: u32,
}

impl<B: Bits, V: Word> Rounds<B, V> {
    /// Begins with the block's first unit. Ends with a barrier.
    ///
    /// # Safety
    /// All threads of the block make this call, and nothing else uses the memory.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn begin(workspace: Workspace<B, V>, level: u32, RoundMemory { words }: RoundMemory) -> Self {
        let rounds = Self { workspace, level, words, round: 0 };
        rounds.fetch(0);
        shared::wait_for_copies();
        thread::sync_threads();
        rounds
    }

    /// The unit of this round, if there is one. Starts the load of the next unit's words.
    #[inline(always)]
    #[track_caller]
    pub fn unit(&self) -> Option<UnitOfRound> {
        if self.number(self.round) >= self.count() {
            return None;
        }
        self.fetch(self.round + 1);
        Some(UnitOfRound(self.words.slice(self.round % 2 * UNIT_WORDS as u32, UNIT_WORDS as u32)))
    }

    /// Ends the round, with a barrier.
    ///
    /// # Safety
    /// All threads of the block make this call.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn pass(&mut self) {
        shared::wait_for_copies();
        thread::sync_threads();
        self.round += 1;
    }

    /// Number of units of the level.
    #[inline(always)]
    #[track_caller]
    fn count(&self) -> u32 {
        self.workspace.counters().get(self.level as usize)
    }

    /// The number of the block's unit in a round. The order of the blocks rotates from round to round. Otherwise some
    /// blocks could get all units that are not full.
    #[inline(always)]
    fn number(&self, round: u32) -> u32 {
        let blocks = thread::grid_dim_x();
        // SAFETY: a grid has at least one block. The assumption removes the code of a panic for a division by 0.
        unsafe { assert_unchecked(blocks != 0) };
        round * blocks + (thread::block_idx_x() + round * STEP) % blocks
    }

    /// Starts the load of the words of a round's unit.
    #[inline(always)]
    #[track_caller]
    fn fetch(&self, round: u32) {
        let (word, i) = (thread::thread_idx_x(), self.number(round));
        if word < UNIT_WORDS as u32 && i < self.count() {
            let slot = round % 2 * UNIT_WORDS as u32 + word;
            let units = self.workspace.units(self.level);
            self.words.copy_async_mut(slot, units, UNIT_WORDS * i as usize + word as usize);
        }
    }
}
