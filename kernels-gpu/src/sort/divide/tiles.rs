//! The tiles of the segments of a level, of which each block moves some.

use super::digits::Digits;
use super::offsets::Offsets;
use super::workspace::{Plan, Segment, Workspace};
use crate::key::Bits;
use core::marker::PhantomData;
use core::ops::Range;
use cuda_std::prelude::*;

/// A tile of a segment.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    plan: Plan,
    workspace: Workspace,
    /// Its number, of the tiles of all parts.
    number: u32,
    /// The index of its first key.
    pub begin: u32,
    /// How many keys it has.
    pub len: u32,
    /// Whether their digits are linear.
    pub is_linear: bool,
}

impl Tile {
    /// The number of its part.
    #[inline(always)]
    fn part(self) -> u32 {
        self.number / self.plan.tiles.max(1)
    }

    /// The number of the segment. Read anew at each call, as all that is below: to keep it takes registers.
    #[inline(always)]
    fn segment(self) -> u32 {
        self.workspace.segment_of_part(self.part())
    }

    /// How keys become digits.
    #[inline(always)]
    pub fn digits<B: Bits>(self) -> Digits<B> {
        self.workspace.segment(self.segment()).digits
    }

    /// Where the segment's keys go.
    #[inline(always)]
    pub fn offsets(self) -> Offsets {
        self.workspace.offsets(self.plan, self.segment())
    }

    /// The tiles of its part before it, by their numbers in the segment.
    #[inline(always)]
    pub fn before<B: Bits>(self) -> Range<u32> {
        let first = self.part_of_segment::<B>() * self.plan.tiles;
        first..first + self.number % self.plan.tiles.max(1)
    }

    /// Which part of the segment it is in.
    #[inline(always)]
    pub fn part_of_segment<B: Bits>(self) -> u32 {
        self.part() - self.workspace.segment::<B>(self.segment()).first_part
    }
}

/// The tiles of a level that are this block's.
pub(super) struct Tiles<B, const IN_ORDER: bool> {
    plan: Plan,
    workspace: Workspace,
    level: u32,
    next: u32,
    of: PhantomData<B>,
}

impl<B: Bits, const IN_ORDER: bool> Tiles<B, IN_ORDER> {
    /// Those of `level`.
    #[inline(always)]
    pub fn of(plan: Plan, workspace: Workspace, level: u32) -> Self {
        Self { plan, workspace, level, next: thread::block_idx_x(), of: PhantomData }
    }
}

impl<B: Bits, const IN_ORDER: bool> Iterator for Tiles<B, IN_ORDER> {
    type Item = Tile;

    #[inline(always)]
    fn next(&mut self) -> Option<Tile> {
        let Self { plan, workspace, level, .. } = *self;
        // Keys alone have parts of one tile.
        let tiles = if IN_ORDER { plan.tiles.max(1) } else { 1 };
        while self.next < workspace.parts(level) * tiles {
            let number = self.next;
            let (part, of_part) = (number / tiles, number % tiles);
            self.next += thread::grid_dim_x();
            let Segment::<B> { start, len, first_part, skipped, digits, .. } =
                workspace.segment(workspace.segment_of_part(part));
            let begin = ((part - first_part) * tiles + of_part) * plan.tile;
            if !skipped && begin < len {
                let tile_len = plan.tile.min(len - begin);
                let is_linear = digits.is_linear();
                return Some(Tile { plan, workspace, number, begin: start + begin, len: tile_len, is_linear });
            }
        }
        None
    }
}
