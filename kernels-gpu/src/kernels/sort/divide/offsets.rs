//! The counters of a segment: the places of the keys of each digit.
//!
//! ```text
//!   digits     │   0   │   1   │   2   │ …     number of keys, and later their start
//!   parts      │ 0 1 2 │ 0 1 2 │ 0 1 2 │ …     of each digit in each part, and later in the parts before
//!   tiles      │ 0 1 │ 2 3 │ …                 number in each tile, two digits in a word
//! ```
//!
//! Keys without values have only the counters of digits. Each tile adds the number of keys that it moves to the place
//! of the digit's next key. That scatter is not stable.

use super::workspace::{Plan, Workspace};
use cuda_std::prelude::*;

/// The counters of a segment.
#[derive(Clone, Copy)]
pub(super) struct Offsets {
    workspace: Workspace,
    /// Word of the first counter.
    first: u32,
    digits: u32,
    parts: u32,
}

impl Offsets {
    /// The counters from word `first` on, of a segment of `len` keys.
    #[inline(always)]
    pub fn new(workspace: Workspace, plan: Plan, first: u32, digits: u32, len: u32) -> Self {
        Self { workspace, first, digits, parts: plan.parts(len) }
    }

    /// The number of digits.
    #[inline(always)]
    pub fn digits(self) -> u32 {
        self.digits
    }

    /// Number of digits that have room: the number of digits, rounded up to an even number.
    #[inline(always)]
    fn room(self) -> u32 {
        self.digits.next_multiple_of(2)
    }

    /// Number of keys of each digit, and later the index of its first key. Without values, the index of the digit's
    /// next key.
    #[inline(always)]
    pub fn begins(self) -> GlobalMut<u32> {
        self.workspace.counters(self.first, self.digits)
    }

    /// Number of keys of `digit` in each part, and later the number of such keys in the parts before.
    #[inline(always)]
    pub fn of_parts(self, digit: u32) -> GlobalMut<u32> {
        self.workspace.counters(self.first + self.room() + digit * self.parts, self.parts)
    }

    /// Number of keys of each digit in tile `tile` of the segment, two in a word. These counters are missing if parts
    /// have one tile.
    #[inline(always)]
    pub fn of_tile(self, tile: u32) -> GlobalMut<u32> {
        let first = self.first + self.room() * (1 + self.parts);
        self.workspace.counters(first + tile * (self.room() / 2), self.room() / 2)
    }
}
