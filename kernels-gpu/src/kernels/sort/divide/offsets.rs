//! The counters of a segment: where the keys of each digit go.
//!
//! ```text
//!   digits     │   0   │   1   │   2   │ …     how many keys; then where they begin
//!   parts      │ 0 1 2 │ 0 1 2 │ 0 1 2 │ …     of each digit in each part: how many; then how many in those before
//!   tiles      │ 0 1 │ 2 3 │ …                 in each tile, of two digits a word: how many
//! ```
//!
//! Keys alone have those of digits only: each tile that moves some adds how many to where the next ones go. That is in
//! no order.

use super::workspace::{Plan, Workspace};
use cuda_std::prelude::*;

/// The counters of a segment.
#[derive(Clone, Copy)]
pub(super) struct Offsets {
    workspace: Workspace,
    /// The word of the first.
    first: u32,
    digits: u32,
    parts: u32,
}

impl Offsets {
    /// Those from word `first` on of a segment of `len` keys.
    #[inline(always)]
    pub fn new(workspace: Workspace, plan: Plan, first: u32, digits: u32, len: u32) -> Self {
        Self { workspace, first, digits, parts: plan.parts(len) }
    }

    /// The number of digits.
    #[inline(always)]
    pub fn digits(self) -> u32 {
        self.digits
    }

    /// How many digits there are room for: an even number.
    #[inline(always)]
    fn room(self) -> u32 {
        self.digits.next_multiple_of(2)
    }

    /// How many keys each digit has, and then where they begin; for keys alone, where the next one goes.
    #[inline(always)]
    pub fn begins(self) -> GlobalMut<u32> {
        self.workspace.counters(self.first, self.digits)
    }

    /// How many keys of `digit` each part has, and then how many those before it have.
    #[inline(always)]
    pub fn of_parts(self, digit: u32) -> GlobalMut<u32> {
        self.workspace.counters(self.first + self.room() + digit * self.parts, self.parts)
    }

    /// How many keys of each digit tile `tile` of the segment has. There are none if parts are of one tile.
    #[inline(always)]
    pub fn of_tile(self, tile: u32) -> GlobalMut<u32> {
        let first = self.first + self.room() * (1 + self.parts);
        self.workspace.counters(first + tile * (self.room() / 2), self.room() / 2)
    }
}
