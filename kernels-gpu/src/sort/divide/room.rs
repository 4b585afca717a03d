//! Where the keys of each digit of a segment go.
//!
//! ```text
//!   memory            ····│········│········│········│····      sectors
//!   keys of a digit     │ begin                    end │
//!   whole sectors         │ 0 →    │ 1               │
//!   others              │0│                 │ ← 3 2 1 │
//! ```
//!
//! A sector, of 32 bytes, is what the memory reads and writes. One that two blocks write a part of each takes it several times as long
//! as a whole one. Where there are few keys for each digit, and for keys alone, keys go one after the other instead, in no sectors.

use super::workspace::Workspace;
use cuda_std::prelude::*;

/// Keys of whole sectors of all arrays, whose elements have at least 4 bytes.
pub(super) const SECTOR: u32 = 8;

/// The room of a segment's keys.
#[derive(Clone, Copy)]
pub(super) struct Room {
    workspace: Workspace,
    /// The number of its first counter.
    first: u32,
    digits: u32,
    /// Keys of a sector, or 1 if these are not whole.
    sector: u32,
}

impl Room {
    /// Of segment `segment`. Where keys go in whole sectors, these are of `sector` keys: [`SECTOR`], or 1 for keys alone.
    #[inline(always)]
    pub fn of(workspace: Workspace, segment: u32, sector: u32) -> Self {
        let (first, digits, is_whole) = workspace.room(segment);
        Self { workspace, first, digits, sector: if is_whole { sector } else { 1 } }
    }

    /// How many counters a segment of `digits` digits has.
    #[inline(always)]
    pub const fn counters(digits: u32, is_whole: bool) -> u32 {
        if is_whole { 3 * digits + 1 } else { digits }
    }

    /// The number of digits.
    #[inline(always)]
    pub fn digits(self) -> u32 {
        self.digits
    }

    /// Keys of a sector, or 1.
    #[inline(always)]
    pub fn sector(self) -> u32 {
        self.sector
    }

    /// How many keys each digit has. Later on it is where they begin, and at the end where the segment ends; but if sectors are not
    /// whole, where the next key goes.
    #[inline(always)]
    pub fn begins(self) -> GlobalMut<u32> {
        self.workspace.counters(self.first, self.digits + u32::from(self.sector > 1))
    }

    /// Where the next whole sector of each digit goes.
    #[inline(always)]
    fn next(self) -> GlobalMut<u32> {
        let first = self.first + if self.sector > 1 { self.digits + 1 } else { 0 };
        self.workspace.counters(first, self.digits)
    }

    /// How many keys of each digit go in no whole sectors.
    #[inline(always)]
    fn others(self) -> GlobalMut<u32> {
        self.workspace.counters(self.first + 2 * self.digits + 1, self.digits)
    }

    /// Begins with the whole sectors of `digit`, whose keys begin at `begin`. One thread does so for each digit.
    #[inline(always)]
    pub fn begin(self, digit: u32, begin: u32) {
        self.begins().set(digit as usize, begin);
        if self.sector > 1 {
            self.next().set(digit as usize, begin.next_multiple_of(self.sector));
            self.others().set(digit as usize, 0);
        }
    }

    /// Notes where the segment ends. One thread does so.
    #[inline(always)]
    pub fn end(self, end: u32) {
        if self.sector > 1 {
            self.begins().set(self.digits as usize, end);
        }
    }

    /// Reserves room for so many keys of a digit, in whole sectors. If [`holds`](Self::holds) says so, it begins at what this gives.
    #[inline(always)]
    #[track_caller]
    pub fn reserve(self, digit: u32, keys: u32) -> u32 {
        self.next().fetch_add(digit as usize, keys)
    }

    /// Whether whole sectors of `keys` keys that begin at `begin` are the digit's.
    #[inline(always)]
    #[track_caller]
    pub fn holds(self, digit: u32, begin: u32, keys: u32) -> bool {
        self.sector == 1 || begin + keys <= self.begins().get(digit as usize + 1) & !(self.sector - 1)
    }

    /// A place of a digit where no whole sector goes, for one key.
    #[inline(always)]
    #[track_caller]
    pub fn other(self, digit: u32) -> u32 {
        let i = self.others().fetch_add(digit as usize, 1);
        let (begin, end) = (self.begins().get(digit as usize), self.begins().get(digit as usize + 1));
        let before = begin.next_multiple_of(self.sector) - begin;
        if i < before { begin + i } else { end - 1 - (i - before) }
    }
}
