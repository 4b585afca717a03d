//! Who used a location last: the record from which uninitialised reads and races are found.
//!
//! Blocks run one after another, so one number tells when an access happened: the *phase*, which goes up when a launch
//! or a block starts and when a block passes a barrier. An access is ordered before the running thread's if
//!
//! - its phase is over and belongs to this block (a barrier lies between) or to an earlier launch, or
//! - it is in the current phase and by the same thread, or
//! - it is in the current phase and by a lane of the same warp, before a `sync_warp` that the running thread knows of.
//!
//! For the last one a warp counts its `sync_warp`s. An access keeps the count as its *stamp*, and each lane keeps, for
//! each lane, the number of the latest `sync_warp` that orders what that lane did before its own doings.
//!
//! A location keeps its last write, the lanes of one warp that read it since, and one more reader of another warp or
//! block. That suffices for a later write that is not ordered after all reads to conflict with a remembered one: a
//! thread is never ordered after readers of two warps in one phase, nor after a reader in another block. There is one
//! exception: a read by a lane that has since synchronised with a part of its warp may be forgotten once another lane,
//! not in that part, reads the location.
//!
//! Atomic updates do not conflict with each other, but with all other unordered accesses. The last write may therefore
//! be one of several lanes, and there may be another updater of another warp or block, as for reads.
//!
//! The destination of an asynchronous copy is written when the copying thread waits for it. Until then every access to
//! it is wrong.

use super::fault::Access;
use core::panic::Location;
use std::{boxed::Box, vec, vec::Vec};

pub(super) const WARP: usize = crate::warp::WARP_SIZE as usize;

/// The phase of what the host wrote, below every launch's. Zero is before all.
pub(super) const HOST_PHASE: u32 = 1;

/// The running thread and its moment.
#[derive(Clone, Copy, Default)]
pub(super) struct Now {
    pub phase: u32,
    /// First phase of the launch.
    pub launch_start: u32,
    /// First phase of the block.
    pub block_start: u32,
    /// How often the warp has synchronised.
    pub stamp: u32,
    /// The thread's linear index in the block.
    pub thread: u16,
    /// For each lane the number of the latest `sync_warp` that orders its earlier accesses before the thread's. Like
    /// `latest` of no meaning while `stamp` is 0.
    pub known: [u32; WARP],
    /// For each lane the number of the latest `sync_warp` that it took part in.
    pub latest: [u32; WARP],
}

impl Now {
    fn warp(&self) -> u8 {
        (self.thread as usize / WARP) as u8
    }

    fn lane(&self) -> usize {
        self.thread as usize % WARP
    }

    /// Those of `lanes` of the thread's own warp whose accesses at `stamp` are not ordered before the thread's.
    fn unordered(&self, lanes: u32, stamp: u32) -> u32 {
        let others = lanes & !(1 << self.lane());
        // As long as the warp has not synchronised, none are.
        if others == 0 || self.stamp == 0 { others } else { others & lanes_up_to(&self.known, stamp) }
    }
}

/// The lanes with a number of at most `limit`.
fn lanes_up_to(numbers: &[u32; WARP], limit: u32) -> u32 {
    numbers.iter().enumerate().fold(0, |lanes, (lane, &number)| lanes | (u32::from(number <= limit) << lane))
}

/// What holds for all of a memory.
#[derive(Clone, Copy)]
pub(super) struct Era {
    /// Accesses in phases below this one are ordered before everything now.
    pub start: u32,
    /// Writes in phases below this one do not count: the location is uninitialised.
    pub first_write: u32,
}

type Caller = &'static Location<'static>;

/// Lanes of one warp that accessed a location in one way, at one stamp.
#[derive(Clone, Copy)]
struct Lanes {
    /// Of the last one.
    location: Option<Caller>,
    phase: u32,
    stamp: u32,
    lanes: u32,
    warp: u8,
    access: Access,
}

/// A thread of another warp or block than the last [`Lanes`], or one that read the location as constant.
#[derive(Clone, Copy)]
struct Other {
    location: Option<Caller>,
    phase: u32,
    thread: u16,
    access: Access,
}

/// The record of one location. All zeros: nothing has happened.
#[derive(Clone, Copy)]
struct Cell {
    /// The last write, or atomic updates of a warp.
    write: Lanes,
    /// Another atomic update.
    other_write: Other,
    readers: Lanes,
    /// Another read.
    other: Other,
}

/// An access of the past that conflicts with the present one.
pub(super) struct Past {
    pub phase: u32,
    pub thread: u16,
    pub access: Access,
    pub location: Option<Caller>,
}

/// Why an access is wrong, and the first byte where it is.
pub(super) enum Trouble {
    Uninitialised,
    Race { byte: usize, with: Past },
}

/// Why an access to one cell is wrong.
enum CellTrouble {
    Uninitialised,
    Race(Past),
}

impl Cell {
    fn access(&mut self, access: Access, era: Era, now: &Now, location: Caller) -> Result<(), CellTrouble> {
        match access {
            Access::Read => self.read(era, now, location),
            Access::ReadConstant => self.read_constant(era, now, location),
            Access::Write | Access::Copy => self.write(access, era, now, location),
            Access::Update => self.update(era, now, location),
        }
    }

    fn read(&mut self, era: Era, now: &Now, location: Caller) -> Result<(), CellTrouble> {
        self.check_written(era)?;
        self.check_writes_before(era, now)?;
        let readers = &mut self.readers;
        if readers.are_of(now) {
            readers.join(now, location);
            return Ok(());
        }
        // A constant read and one in another block conflict with any write from now on: they are worth keeping.
        let keep_other = self.other.is_within(era) && (self.other.is_constant() || self.other.phase < now.block_start);
        if readers.unordered(era, now) != 0 && !keep_other {
            self.other = Other::from(readers);
        }
        self.readers = Lanes::new(Access::Read, now, location);
        Ok(())
    }

    fn read_constant(&mut self, era: Era, now: &Now, location: Caller) -> Result<(), CellTrouble> {
        self.check_written(era)?;
        if self.write.phase >= era.start {
            return Err(CellTrouble::Race(self.write.past(self.write.lanes)));
        }
        // One such reader conflicts with every write of the launch, so no other needs to be known.
        if !(self.other.is_constant() && self.other.is_within(era)) {
            let access = Access::ReadConstant;
            self.other = Other { location: Some(location), phase: now.phase, thread: now.thread, access };
        }
        Ok(())
    }

    fn write(&mut self, access: Access, era: Era, now: &Now, location: Caller) -> Result<(), CellTrouble> {
        self.check_writes_before(era, now)?;
        self.check_reads_before(era, now)?;
        *self = Self { write: Lanes::new(access, now, location), ..NOTHING };
        Ok(())
    }

    /// An atomic update. Reads stay known, because a later update need not be ordered after this one.
    fn update(&mut self, era: Era, now: &Now, location: Caller) -> Result<(), CellTrouble> {
        self.check_written(era)?;
        if self.write.access != Access::Update {
            self.check_writes_before(era, now)?;
        }
        self.check_reads_before(era, now)?;
        let write = &mut self.write;
        if write.access == Access::Update && write.are_of(now) {
            write.join(now, location);
            return Ok(());
        }
        let keep_other = self.other_write.is_within(era) && self.other_write.phase < now.block_start;
        if write.access == Access::Update && write.unordered(era, now) != 0 && !keep_other {
            self.other_write = Other::from(write);
        }
        self.write = Lanes::new(Access::Update, now, location);
        Ok(())
    }

    /// The copy to this location has arrived.
    fn finish_copy(&mut self, now: &Now) {
        self.write = Lanes::new(Access::Write, now, self.write.location);
    }

    fn check_written(&self, era: Era) -> Result<(), CellTrouble> {
        if self.write.phase < era.first_write { Err(CellTrouble::Uninitialised) } else { Ok(()) }
    }

    fn check_writes_before(&self, era: Era, now: &Now) -> Result<(), CellTrouble> {
        let write = &self.write;
        let is_under_way = write.access == Access::Copy && write.phase >= era.start;
        write.check_before(if is_under_way { write.lanes } else { write.unordered(era, now) })?;
        self.other_write.check_before(era, now)
    }

    fn check_reads_before(&self, era: Era, now: &Now) -> Result<(), CellTrouble> {
        self.readers.check_before(self.readers.unordered(era, now))?;
        self.other.check_before(era, now)
    }
}

impl Lanes {
    fn new(access: Access, now: &Now, location: impl Into<Option<Caller>>) -> Self {
        let (location, lanes) = (location.into(), 1 << now.lane());
        Self { location, phase: now.phase, stamp: now.stamp, lanes, warp: now.warp(), access }
    }

    /// Whether they are of the running thread's warp, in this phase.
    fn are_of(&self, now: &Now) -> bool {
        self.phase == now.phase && self.warp == now.warp()
    }

    /// Adds the running thread, which is of their warp. Of the others, those stay that may conflict with what is to come.
    fn join(&mut self, now: &Now, location: Caller) {
        // The lanes that stay get the new stamp. That is only true to those that have not synchronised since: their
        // next `sync_warp` has a higher number than both stamps.
        if self.stamp != now.stamp {
            self.lanes = now.unordered(self.lanes, self.stamp);
            if self.lanes != 0 {
                self.lanes &= lanes_up_to(&now.latest, self.stamp);
            }
            self.stamp = now.stamp;
        }
        self.lanes |= 1 << now.lane();
        self.location = Some(location);
    }

    /// Those whose accesses are not ordered before the running thread's.
    fn unordered(&self, era: Era, now: &Now) -> u32 {
        if self.are_of(now) {
            now.unordered(self.lanes, self.stamp)
        } else if self.phase == now.phase || (era.start..now.block_start).contains(&self.phase) {
            self.lanes
        } else {
            0
        }
    }

    /// One of `lanes` as a thread of the block: the lowest.
    fn one(&self, lanes: u32) -> u16 {
        u16::from(self.warp) * WARP as u16 + lanes.trailing_zeros() as u16
    }

    fn past(&self, lanes: u32) -> Past {
        Past { phase: self.phase, thread: self.one(lanes), access: self.access, location: self.location }
    }

    /// A conflict if there are any of `lanes`, which are some of these.
    fn check_before(&self, lanes: u32) -> Result<(), CellTrouble> {
        if lanes == 0 { Ok(()) } else { Err(CellTrouble::Race(self.past(lanes))) }
    }
}

impl Other {
    fn from(lanes: &Lanes) -> Self {
        let Past { phase, thread, access, location } = lanes.past(lanes.lanes);
        Self { location, phase, thread, access }
    }

    fn is_constant(&self) -> bool {
        self.access == Access::ReadConstant
    }

    fn is_within(&self, era: Era) -> bool {
        self.phase >= era.start
    }

    /// In the current phase it is of another warp than the running thread: else the [`Lanes`] beside it, of yet another,
    /// would have conflicted.
    fn check_before(&self, era: Era, now: &Now) -> Result<(), CellTrouble> {
        let is_unordered = self.is_constant() || self.phase < now.block_start || self.phase == now.phase;
        if !(self.is_within(era) && is_unordered) {
            return Ok(());
        }
        let Self { location, phase, thread, access } = *self;
        Err(CellTrouble::Race(Past { phase, thread, access, location }))
    }
}

/// The record of a location before any access: all zeros.
const NOTHING: Cell = {
    let lanes = Lanes { location: None, phase: 0, stamp: 0, lanes: 0, warp: 0, access: Access::Read };
    let other = Other { location: None, phase: 0, thread: 0, access: Access::Read };
    Cell { write: lanes, other_write: other, readers: lanes, other }
};

/// The records of a memory: one a word, and one a byte for the words of which single bytes were used last.
pub(super) struct Shadow {
    /// Bytes of a word.
    word: usize,
    words: Box<[Cell]>,
    /// The words whose records are in `bytes`; empty as long as there are none.
    split: Vec<bool>,
    bytes: Box<[Cell]>,
}

impl Shadow {
    /// For a memory of `bytes` bytes that is mostly used `word` bytes (1, 2, 4 or 8) at a time.
    pub(super) fn new(bytes: usize, word: usize) -> Self {
        Self { word, words: blank(bytes.div_ceil(word)), split: Vec::new(), bytes: Box::default() }
    }

    /// Checks and records an access to `size` bytes (1, 2, 4 or 8) at `offset`, a multiple of `size`.
    pub(super) fn access(
        &mut self,
        access: Access,
        (offset, size): (usize, usize),
        era: Era,
        now: &Now,
        location: Caller,
    ) -> Result<(), Trouble> {
        if size < self.word {
            return self.access_bytes(access, (offset, size), era, now, location);
        }
        // A word is a power of two.
        let shift = self.word.trailing_zeros();
        for at in offset >> shift..(offset + size) >> shift {
            if self.split.is_empty() || !self.split[at] {
                self.words[at].access(access, era, now, location).map_err(|t| t.at(at * self.word))?;
            } else {
                self.access_split(access, at, era, now, location)?;
            }
        }
        Ok(())
    }

    /// A part of a word: the word's record becomes one for each byte.
    #[cold]
    fn access_bytes(
        &mut self,
        access: Access,
        (offset, size): (usize, usize),
        era: Era,
        now: &Now,
        location: Caller,
    ) -> Result<(), Trouble> {
        if self.split.is_empty() {
            self.split = vec![false; self.words.len()];
            self.bytes = blank(self.words.len() * self.word);
        }
        let at = offset / self.word;
        if !self.split[at] {
            self.bytes[at * self.word..][..self.word].fill(self.words[at]);
            self.split[at] = true;
        }
        for byte in offset..offset + size {
            self.bytes[byte].access(access, era, now, location).map_err(|t| t.at(byte))?;
        }
        Ok(())
    }

    /// A whole word whose bytes have records of their own. A write makes them one again.
    #[cold]
    fn access_split(
        &mut self,
        access: Access,
        at: usize,
        era: Era,
        now: &Now,
        location: Caller,
    ) -> Result<(), Trouble> {
        for byte in at * self.word..(at + 1) * self.word {
            self.bytes[byte].access(access, era, now, location).map_err(|t| t.at(byte))?;
        }
        if access == Access::Write {
            self.words[at] = self.bytes[at * self.word];
            self.split[at] = false;
        }
        Ok(())
    }

    /// The copy to `size` bytes at `offset`, whole words, has arrived.
    pub(super) fn finish_copy(&mut self, (offset, size): (usize, usize), now: &Now) {
        for at in offset / self.word..(offset + size) / self.word {
            if self.split.is_empty() || !self.split[at] {
                self.words[at].finish_copy(now);
            } else {
                self.bytes[at * self.word..][..self.word].iter_mut().for_each(|cell| cell.finish_copy(now));
            }
        }
    }

    /// The first of the `bytes` bytes that was never written.
    pub(super) fn first_unwritten(&self, bytes: usize) -> Option<usize> {
        let unwritten = |cell: &Cell| cell.write.phase == 0;
        (0..bytes.div_ceil(self.word)).find_map(|at| {
            let first = at * self.word;
            if self.split.is_empty() || !self.split[at] {
                return unwritten(&self.words[at]).then_some(first);
            }
            (first..bytes.min(first + self.word)).find(|&byte| unwritten(&self.bytes[byte]))
        })
    }

    /// Forgets who did what and when, but not what was written, so that phases can be counted from the start again.
    pub(super) fn forget_order(&mut self) {
        for cell in self.words.iter_mut().chain(&mut self.bytes) {
            let phase = cell.write.phase.min(HOST_PHASE);
            *cell = Cell { write: Lanes { phase, ..NOTHING.write }, ..NOTHING };
        }
    }
}

impl CellTrouble {
    #[cold]
    fn at(self, byte: usize) -> Trouble {
        match self {
            Self::Uninitialised => Trouble::Uninitialised,
            Self::Race(with) => Trouble::Race { byte, with },
        }
    }
}

/// Cells with nothing in them. Pages come from the system zeroed, so that what is never used costs nothing.
fn blank(cells: usize) -> Box<[Cell]> {
    // SAFETY: all zeros are a `Cell`: `None`s, zeros and `Access::Read`, the first of its kind (see `NOTHING`).
    unsafe { Box::<[Cell]>::new_zeroed_slice(cells).assume_init() }
}
