//! The tiles of the segments of a level, and their assignment to blocks.

use super::digits::{Curve, Digits};
use super::offsets::Offsets;
use super::workspace::{Plan, Segment, Workspace};
use crate::elements::has_values;
use crate::key::Bits;
use core::marker::PhantomData;
use core::ops::Range;
use cuda_std::prelude::*;

/// A tile of a segment.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    plan: Plan,
    workspace: Workspace,
    /// Its number among the tiles of all parts.
    number: u32,
    /// Index of its first key.
    pub begin: u32,
    /// Number of its keys.
    pub len: u32,
    /// Curve along which the digits of the keys are linear.
    pub curve: Curve,
}

impl Tile {
    /// The number of its part.
    #[inline(always)]
    fn part(self) -> u32 {
        self.number / self.plan.tiles.max(1)
    }

    /// The number of the segment. This and the results below are read again at each call: to keep them takes registers.
    #[inline(always)]
    fn segment(self) -> u32 {
        self.workspace.segment_of_part(self.part())
    }

    /// How keys become digits.
    #[inline(always)]
    pub fn digits<B: Bits>(self) -> Digits<B> {
        self.workspace.segment(self.segment()).digits
    }

    /// Places of the segment's keys.
    #[inline(always)]
    pub fn offsets(self) -> Offsets {
        self.workspace.offsets(self.plan, self.segment())
    }

    /// The tiles before it in its part, by their numbers in the segment.
    #[inline(always)]
    pub fn before<B: Bits>(self) -> Range<u32> {
        let first = self.part_of_segment::<B>() * self.plan.tiles;
        first..first + self.number % self.plan.tiles.max(1)
    }

    /// Number of its part within the segment.
    #[inline(always)]
    pub fn part_of_segment<B: Bits>(self) -> u32 {
        self.part() - self.workspace.segment::<B>(self.segment()).first_part
    }
}

/// From this level on, a block takes all tiles of a part, one after another. As a rule nothing is left to divide. The
/// launch has few blocks, and each of them looks at several parts.
pub const FEW_LEFT: u32 = 2;

/// This block's tiles of a level, of keys with values of type `V`.
pub(super) struct Tiles<B, V> {
    plan: Plan,
    workspace: Workspace,
    level: u32,
    next: u32,
    of: PhantomData<(B, V)>,
}

impl<B: Bits, V: Word> Tiles<B, V> {
    /// This block's tiles of `level`.
    #[inline(always)]
    pub fn of(plan: Plan, workspace: Workspace, level: u32) -> Self {
        let next = thread::block_idx_x() * if level < FEW_LEFT { 1 } else { Self::of_part(plan) };
        Self { plan, workspace, level, next, of: PhantomData }
    }

    /// Tiles of a part. Without values, a part is one tile.
    #[inline(always)]
    fn of_part(plan: Plan) -> u32 {
        if has_values::<V>() { plan.tiles.max(1) } else { 1 }
    }

    /// The next tile. It stays the next one until [`pass`](Self::pass).
    #[inline(always)]
    pub fn next(&mut self) -> Option<Tile> {
        let Self { plan, workspace, level, .. } = *self;
        let tiles = Self::of_part(plan);
        while self.next < workspace.parts(level) * tiles {
            let number = self.next;
            let (part, of_part) = (number / tiles, number % tiles);
            let Segment::<B> { start, len, first_part, skipped, digits, .. } =
                workspace.segment(workspace.segment_of_part(part));
            let begin = ((part - first_part) * tiles + of_part) * plan.tile;
            if !skipped && begin < len {
                let (tile_len, curve) = (plan.tile.min(len - begin), digits.curve);
                return Some(Tile { plan, workspace, number, begin: start + begin, len: tile_len, curve });
            }
            // That was the last tile of its part.
            self.next = if level < FEW_LEFT { number + thread::grid_dim_x() } else { Self::next_part(part, tiles) };
        }
        None
    }

    /// Passes the next tile.
    #[inline(always)]
    pub fn pass(&mut self) {
        let tiles = Self::of_part(self.plan);
        let number = self.next;
        self.next = if self.level < FEW_LEFT {
            number + thread::grid_dim_x()
        } else if number % tiles + 1 < tiles {
            number + 1
        } else {
            Self::next_part(number / tiles, tiles)
        };
    }

    /// The first tile of the block's next part.
    #[inline(always)]
    fn next_part(part: u32, tiles: u32) -> u32 {
        (part + thread::grid_dim_x()) * tiles
    }
}
