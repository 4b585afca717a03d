//! The last accesses to each location, which determine uninitialised reads and races.
//!
//! The time of an access is one number, the *phase*: an interval of one block between two of its barriers. A new phase
//! begins when a block starts and when it passes a barrier. Phases are numbered in the order of their starts, over all
//! launches. An access is ordered before the running thread's access in four cases:
//!
//! - Its phase is of an earlier launch, or is over and belongs to this block (a barrier lies between).
//! - It is in the current phase and of the same thread.
//! - It is in the current phase and of a lane of the same warp, before a `sync_warp` that the running thread knows of.
//! - It is of another block, and before a fence that the running thread knows of; see `clock`.
//!
//! For the last two cases, a warp counts its `sync_warp`s and its lanes' fences. An access keeps the count as its
//! *stamp*. Each lane keeps, for each other lane, the number of the latest `sync_warp` that orders the other lane's
//! earlier accesses before its own.
//!
//! A location keeps its last write, the lanes of one warp that have read it since, and one more reader of another warp
//! or block. Within a block this is sufficient: a later write that is not ordered after all reads conflicts with a
//! remembered read. A thread is never ordered after readers of two warps in one phase. There are two exceptions:
//!
//! - A lane reads the location and then synchronises with a part of its warp, or executes a fence. Its read may be
//!   forgotten once a lane outside that part reads the location.
//! - Three blocks read the location, and the writing thread is ordered after only two of them. Another interleaving
//!   keeps the third.
//!
//! Atomic updates conflict with all unordered accesses except atomic updates. The last write may therefore be of
//! several lanes, and there may be one more updater of another warp or block, as for reads.
//!
//! The destination of an asynchronous copy is written when the copying thread waits for it. Until then every access to
//! it is an error.

use super::{
    clock::{Clock, Clocks, Phases},
    fault::Access,
};
use core::{ops::Range, panic::Location};
use std::{boxed::Box, vec, vec::Vec};

pub(super) const WARP: usize = crate::warp::WARP_SIZE as usize;

/// The phase of the host's writes, below the phases of all launches. Phase 0 comes before all others.
pub(super) const HOST_PHASE: u32 = 1;

/// The running thread and its position in time.
#[derive(Clone, Copy, Default)]
pub(super) struct Now {
    pub phase: u32,
    /// First phase of the launch.
    pub launch_start: u32,
    /// Number of `sync_warp`s of the warp, and of fences of its lanes, so far.
    pub stamp: u32,
    /// The thread's linear index in the block.
    pub thread: u16,
    /// For each lane, the number of the latest `sync_warp` that orders its earlier accesses before the thread's.
    /// Meaningless, like `latest`, while `stamp` is 0.
    pub known: [u32; WARP],
    /// For each lane, the number of the latest `sync_warp` that it took part in.
    pub latest: [u32; WARP],
}

impl Now {
    pub(super) fn warp(&self) -> u8 {
        (self.thread as usize / WARP) as u8
    }

    fn lane(&self) -> usize {
        self.thread as usize % WARP
    }

    /// The lanes in `lanes`, of the thread's own warp, with accesses at `stamp` that are not ordered before the
    /// thread's.
    fn unordered(&self, lanes: u32, stamp: u32) -> u32 {
        let others = lanes & !(1 << self.lane());
        // Before the first `sync_warp` of the warp, no accesses are ordered.
        if others == 0 || self.stamp == 0 { others } else { others & lanes_up_to(&self.known, stamp) }
    }
}

/// The lanes with a number of at most `limit`.
pub(super) fn lanes_up_to(numbers: &[u32; WARP], limit: u32) -> u32 {
    numbers.iter().enumerate().fold(0, |lanes, (lane, &number)| lanes | (u32::from(number <= limit) << lane))
}

/// The limits that apply to a whole memory.
#[derive(Clone, Copy)]
pub(super) struct Era {
    /// Accesses in phases below this one are ordered before all accesses now.
    pub start: u32,
    /// Writes in phases below this one do not count: the location is uninitialised.
    pub first_write: u32,
}

/// What an access is ordered after: the running thread, and what it knows of other blocks.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub now: &'a Now,
    pub era: Era,
    /// `None` for memory that no other block uses.
    pub others: Option<Others<'a>>,
}

/// Other blocks of the launch, and what orders their accesses.
#[derive(Clone, Copy)]
pub(super) struct Others<'a> {
    pub phases: &'a Phases,
    /// The running thread's clock.
    pub clock: Option<&'a Clock>,
}

impl<'a> At<'a> {
    /// An access of the thread `now`, with these clocks, to global memory. Memory that the host has not written needs a
    /// later era.
    pub(super) fn in_global(now: &'a Now, phases: &'a Phases, clocks: &'a Clocks) -> Self {
        let era = Era { start: now.launch_start, first_write: 0 };
        Self { now, era, others: Some(Others { phases, clock: clocks.current.as_deref() }) }
    }

    /// The running thread's block, as its linear index.
    pub(super) fn own_block(&self) -> Option<u32> {
        self.others?.phases.block(self.now.phase)
    }

    /// Whether `phase`, of this launch, is of the running thread's block.
    pub(super) fn is_own_block(&self, phase: u32) -> bool {
        let Some(Others { phases, .. }) = self.others else { return true };
        phase == self.now.phase || phases.block(phase) == self.own_block()
    }

    /// Whether an access of thread `thread` of a block is ordered before the running thread's, by phases or fences.
    pub(super) fn is_ordered(&self, phase: u32, thread: u16, stamp: u32) -> bool {
        self.unordered(phase, (thread as usize / WARP) as u8, (1 << (thread as usize % WARP), stamp)) == 0
    }

    /// The lanes in `lanes` of `warp` that no order puts before the running thread. They made accesses at `stamp` in
    /// `phase`, which is not the current one.
    fn unordered(&self, phase: u32, warp: u8, (lanes, stamp): (u32, u32)) -> u32 {
        let Some(Others { phases, clock }) = self.others.filter(|_| phase >= self.era.start) else { return 0 };
        if self.is_own_block(phase) {
            return 0;
        }
        match (phases.block(phase), clock) {
            (Some(block), Some(clock)) => clock.unordered(block, phase, warp, (lanes, stamp)),
            _ => lanes,
        }
    }
}

type Caller = &'static Location<'static>;

/// Lanes of one warp with the same kind of access to a location, at one stamp.
#[derive(Clone, Copy)]
struct Lanes {
    /// The source location of the last access.
    location: Option<Caller>,
    phase: u32,
    stamp: u32,
    lanes: u32,
    warp: u8,
    access: Access,
    /// Whether [`Extra`] has one more access of this kind.
    has_other: bool,
}

/// A thread of another warp or block than the last [`Lanes`], or one that has read the location as constant.
#[derive(Clone, Copy)]
struct Other {
    location: Option<Caller>,
    phase: u32,
    stamp: u32,
    thread: u16,
    access: Access,
}

/// The record of one location. All zeros if there was no access.
#[derive(Clone, Copy)]
struct Cell {
    /// The last write, or atomic updates of a warp.
    write: Lanes,
    readers: Lanes,
}

/// The rest of the record of one location. It lies apart, because few locations need it, and the smaller a [`Cell`]
/// is, the more of them fit a processor's cache.
#[derive(Clone, Copy)]
struct Extra {
    /// One more atomic update.
    write: Other,
    /// One more read.
    reader: Other,
}

/// An earlier access that conflicts with the present one.
pub(super) struct Past {
    pub phase: u32,
    stamp: u32,
    pub thread: u16,
    pub access: Access,
    pub location: Option<Caller>,
}

/// The reason that an access is wrong, and its first wrong byte.
pub(super) enum Trouble {
    Uninitialised,
    Race { byte: usize, with: Past },
}

/// The reason that an access to one cell is wrong.
enum CellTrouble {
    Uninitialised,
    Race(Past),
}

impl Cell {
    /// Checks and records an access to the location with this record, and its `extra` part.
    fn access(&mut self, extra: &mut Extra, access: Access, at: &At<'_>, location: Caller) -> Result<(), CellTrouble> {
        match access {
            Access::Read => self.read(extra, at, location),
            Access::ReadConstant => self.read_constant(extra, at, location),
            Access::Write | Access::Copy => self.write(extra, access, at, location),
            Access::Update => self.update(extra, at, location),
        }
    }

    fn read(&mut self, extra: &mut Extra, at: &At<'_>, location: Caller) -> Result<(), CellTrouble> {
        self.check_written(at.era)?;
        self.check_writes_before(extra, at)?;
        let readers = &mut self.readers;
        if readers.are_of(at.now) {
            readers.join(at.now, location);
            return Ok(());
        }
        if readers.unordered(at) != 0 {
            // A constant read conflicts with every later write, and a read in another block with most, so that they
            // are kept.
            let keep = |other: &Other| other.is_within(at.era) && (other.is_constant() || other.is_elsewhere(at));
            if !(readers.has_other && keep(&extra.reader)) {
                (extra.reader, readers.has_other) = (Other::from(readers), true);
            }
        }
        *readers = Lanes { has_other: readers.has_other, ..Lanes::new(Access::Read, at.now, location) };
        Ok(())
    }

    fn read_constant(&mut self, extra: &mut Extra, at: &At<'_>, location: Caller) -> Result<(), CellTrouble> {
        self.check_written(at.era)?;
        if self.write.phase >= at.era.start {
            return Err(CellTrouble::Race(self.write.past(self.write.lanes)));
        }
        // One such reader conflicts with every write of the launch, so that one is enough.
        if !(self.readers.has_other && extra.reader.is_constant() && extra.reader.is_within(at.era)) {
            extra.reader = Other::from(&Lanes::new(Access::ReadConstant, at.now, location));
            self.readers.has_other = true;
        }
        Ok(())
    }

    fn write(&mut self, extra: &Extra, access: Access, at: &At<'_>, location: Caller) -> Result<(), CellTrouble> {
        self.check_writes_before(extra, at)?;
        self.check_reads_before(extra, at)?;
        *self = Self { write: Lanes::new(access, at.now, location), ..NOTHING };
        Ok(())
    }

    /// An atomic update. Reads are kept, because a later update need not be ordered after this one.
    fn update(&mut self, extra: &mut Extra, at: &At<'_>, location: Caller) -> Result<(), CellTrouble> {
        self.check_written(at.era)?;
        let is_update = self.write.access == Access::Update;
        if !is_update {
            self.check_writes_before(extra, at)?;
        }
        self.check_reads_before(extra, at)?;
        let write = &mut self.write;
        if is_update && write.are_of(at.now) {
            write.join(at.now, location);
            return Ok(());
        }
        if is_update && write.unordered(at) != 0 {
            let keep = |other: &Other| other.is_within(at.era) && other.is_elsewhere(at);
            if !(write.has_other && keep(&extra.write)) {
                (extra.write, write.has_other) = (Other::from(write), true);
            }
        }
        *write = Lanes { has_other: write.has_other, ..Lanes::new(Access::Update, at.now, location) };
        Ok(())
    }

    /// The copy to this location has arrived.
    fn finish_copy(&mut self, now: &Now) {
        let Lanes { location, has_other, .. } = self.write;
        self.write = Lanes { has_other, ..Lanes::new(Access::Write, now, location) };
    }

    fn check_written(&self, era: Era) -> Result<(), CellTrouble> {
        if self.write.phase < era.first_write { Err(CellTrouble::Uninitialised) } else { Ok(()) }
    }

    fn check_writes_before(&self, extra: &Extra, at: &At<'_>) -> Result<(), CellTrouble> {
        let write = &self.write;
        let is_under_way = write.access == Access::Copy && write.phase >= at.era.start;
        write.check_before(if is_under_way { write.lanes } else { write.unordered(at) })?;
        if write.has_other { extra.write.check_before(at) } else { Ok(()) }
    }

    fn check_reads_before(&self, extra: &Extra, at: &At<'_>) -> Result<(), CellTrouble> {
        self.readers.check_before(self.readers.unordered(at))?;
        if self.readers.has_other { extra.reader.check_before(at) } else { Ok(()) }
    }
}

impl Lanes {
    fn new(access: Access, now: &Now, location: impl Into<Option<Caller>>) -> Self {
        let (location, lanes) = (location.into(), 1 << now.lane());
        Self { location, phase: now.phase, stamp: now.stamp, lanes, warp: now.warp(), access, has_other: false }
    }

    /// Whether the lanes are in the running thread's warp, and their accesses in the current phase.
    fn are_of(&self, now: &Now) -> bool {
        self.phase == now.phase && self.warp == now.warp()
    }

    /// Adds the running thread, which is in the same warp. Keeps the other lanes that may conflict with later accesses.
    fn join(&mut self, now: &Now, location: Caller) {
        // The kept lanes get the new stamp. This is correct only for lanes that have not synchronised since: their next
        // `sync_warp` has a higher number than both stamps.
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

    /// The lanes with accesses that are not ordered before the running thread's.
    fn unordered(&self, at: &At<'_>) -> u32 {
        if self.are_of(at.now) {
            at.now.unordered(self.lanes, self.stamp)
        } else if self.phase == at.now.phase {
            self.lanes
        } else {
            at.unordered(self.phase, self.warp, (self.lanes, self.stamp))
        }
    }

    /// The lowest lane in `lanes`, as a thread of the block.
    fn one(&self, lanes: u32) -> u16 {
        u16::from(self.warp) * WARP as u16 + lanes.trailing_zeros() as u16
    }

    fn past(&self, lanes: u32) -> Past {
        Past {
            phase: self.phase,
            stamp: self.stamp,
            thread: self.one(lanes),
            access: self.access,
            location: self.location,
        }
    }

    /// An error if `lanes`, a subset of `self.lanes`, is not empty.
    fn check_before(&self, lanes: u32) -> Result<(), CellTrouble> {
        if lanes == 0 { Ok(()) } else { Err(CellTrouble::Race(self.past(lanes))) }
    }
}

impl Other {
    fn from(lanes: &Lanes) -> Self {
        let Past { phase, stamp, thread, access, location } = lanes.past(lanes.lanes);
        Self { location, phase, stamp, thread, access }
    }

    fn is_constant(&self) -> bool {
        self.access == Access::ReadConstant
    }

    /// Whether the access is of another block and not ordered before the running thread's.
    fn is_elsewhere(&self, at: &At<'_>) -> bool {
        self.phase != at.now.phase && !at.is_ordered(self.phase, self.thread, self.stamp)
    }

    fn is_within(&self, era: Era) -> bool {
        self.phase >= era.start
    }

    /// An access in the current phase is of another warp than the running thread. Otherwise the [`Lanes`] beside it, of
    /// a third warp, would have conflicted.
    fn check_before(&self, at: &At<'_>) -> Result<(), CellTrouble> {
        let is_unordered = self.is_constant() || self.phase == at.now.phase || self.is_elsewhere(at);
        if !(self.is_within(at.era) && is_unordered) {
            return Ok(());
        }
        let Self { location, phase, stamp, thread, access } = *self;
        Err(CellTrouble::Race(Past { phase, stamp, thread, access, location }))
    }
}

/// The record of a location before any access: all zeros.
const NOTHING: Cell = {
    let lanes = Lanes { location: None, phase: 0, stamp: 0, lanes: 0, warp: 0, access: Access::Read, has_other: false };
    Cell { write: lanes, readers: lanes }
};

/// The records of some locations.
#[derive(Default)]
struct Records {
    cells: Box<[Cell]>,
    extra: Box<[Extra]>,
}

impl Records {
    /// Empty records. The system provides zeroed pages, so that unused ones cost nothing.
    fn blank(count: usize) -> Self {
        // SAFETY: all zeros are a valid `Cell` and a valid `Extra`: `None`s, zeros, `false`s and `Access::Read`, which
        // is 0 (see `NOTHING`).
        unsafe {
            Self {
                cells: Box::new_zeroed_slice(count).assume_init(),
                extra: Box::new_zeroed_slice(count).assume_init(),
            }
        }
    }

    fn access(&mut self, i: usize, access: Access, at: &At<'_>, location: Caller) -> Result<(), CellTrouble> {
        self.cells[i].access(&mut self.extra[i], access, at, location)
    }

    /// Record `i`.
    fn get(&self, i: usize) -> (Cell, Extra) {
        (self.cells[i], self.extra[i])
    }

    /// Sets the records in `range`.
    fn fill(&mut self, range: Range<usize>, (cell, extra): (Cell, Extra)) {
        self.cells[range.clone()].fill(cell);
        self.extra[range].fill(extra);
    }
}

/// The records of a memory: one per word, or one per byte of words that were accessed in parts.
pub(super) struct Shadow {
    /// Bytes per word.
    word: usize,
    words: Records,
    /// Whether a word's records are in `bytes`. Empty if no word's are.
    split: Vec<bool>,
    bytes: Records,
}

impl Shadow {
    /// The records of a memory of `bytes` bytes, usually accessed `word` bytes (1, 2, 4 or 8) at a time.
    pub(super) fn new(bytes: usize, word: usize) -> Self {
        Self { word, words: Records::blank(bytes.div_ceil(word)), split: Vec::new(), bytes: Records::default() }
    }

    /// Checks and records an access to `size` bytes (1, 2, 4 or 8) at `offset`, a multiple of `size`.
    pub(super) fn access(
        &mut self,
        access: Access,
        (offset, size): (usize, usize),
        at: &At<'_>,
        location: Caller,
    ) -> Result<(), Trouble> {
        if size < self.word {
            return self.access_bytes(access, (offset, size), at, location);
        }
        // `word` is a power of two.
        let shift = self.word.trailing_zeros();
        for word in offset >> shift..(offset + size) >> shift {
            if self.split.is_empty() || !self.split[word] {
                self.words.access(word, access, at, location).map_err(|t| t.at(word * self.word))?;
            } else {
                self.access_split(access, word, at, location)?;
            }
        }
        Ok(())
    }

    /// Gives a word one record per byte, if it has not got them.
    fn split(&mut self, word: usize) {
        if self.split.is_empty() {
            self.split = vec![false; self.words.cells.len()];
            self.bytes = Records::blank(self.words.cells.len() * self.word);
        }
        if !self.split[word] {
            self.bytes.fill(word * self.word..(word + 1) * self.word, self.words.get(word));
            self.split[word] = true;
        }
    }

    /// Accesses a part of a word: the word's record becomes one record per byte.
    #[cold]
    fn access_bytes(
        &mut self,
        access: Access,
        (offset, size): (usize, usize),
        at: &At<'_>,
        location: Caller,
    ) -> Result<(), Trouble> {
        self.split(offset / self.word);
        for byte in offset..offset + size {
            self.bytes.access(byte, access, at, location).map_err(|t| t.at(byte))?;
        }
        Ok(())
    }

    /// Accesses a whole word that has one record per byte. A write merges the records.
    #[cold]
    fn access_split(&mut self, access: Access, word: usize, at: &At<'_>, location: Caller) -> Result<(), Trouble> {
        for byte in word * self.word..(word + 1) * self.word {
            self.bytes.access(byte, access, at, location).map_err(|t| t.at(byte))?;
        }
        if access == Access::Write {
            self.words.fill(word..word + 1, self.bytes.get(word * self.word));
            self.split[word] = false;
        }
        Ok(())
    }

    /// The copy to `size` bytes at `offset`, a multiple of the word size, has arrived.
    pub(super) fn finish_copy(&mut self, (offset, size): (usize, usize), now: &Now) {
        for at in offset / self.word..(offset + size) / self.word {
            if self.split.is_empty() || !self.split[at] {
                self.words.cells[at].finish_copy(now);
            } else {
                self.bytes.cells[at * self.word..][..self.word].iter_mut().for_each(|cell| cell.finish_copy(now));
            }
        }
    }

    /// The first of these bytes that was never written.
    pub(super) fn first_unwritten(&self, mut bytes: Range<usize>) -> Option<usize> {
        bytes.find(|&byte| !self.is_written(byte))
    }

    fn is_written(&self, byte: usize) -> bool {
        let word = byte / self.word;
        let is_split = !self.split.is_empty() && self.split[word];
        let cell = if is_split { &self.bytes.cells[byte] } else { &self.words.cells[word] };
        cell.write.phase != 0
    }

    /// These bytes in ranges, each with whether its bytes are written.
    pub(super) fn written_ranges(&self, bytes: Range<usize>) -> Vec<(Range<usize>, bool)> {
        let mut ranges: Vec<(Range<usize>, bool)> = Vec::new();
        for byte in bytes {
            let written = self.is_written(byte);
            match ranges.last_mut() {
                Some((range, of)) if *of == written => range.end = byte + 1,
                _ => ranges.push((byte..byte + 1, written)),
            }
        }
        ranges
    }

    /// The host has written these bytes after all launches so far, with values that are written or not.
    pub(super) fn host_has_written(&mut self, bytes: Range<usize>, is_written: bool) {
        let phase = if is_written { HOST_PHASE } else { 0 };
        let written = Cell { write: Lanes { phase, ..NOTHING.write }, ..NOTHING };
        let whole = bytes.start.next_multiple_of(self.word)..bytes.end / self.word * self.word;
        let [first, last] =
            if whole.is_empty() { [bytes.clone(), 0..0] } else { [bytes.start..whole.start, whole.end..bytes.end] };
        for byte in first.chain(last) {
            self.split(byte / self.word);
            self.bytes.cells[byte] = written;
        }
        for word in whole.start / self.word..whole.end / self.word {
            self.words.cells[word] = written;
            if !self.split.is_empty() {
                self.split[word] = false;
            }
        }
    }

    /// Forgets the order of accesses, but not which locations were written, so that phases can start again.
    pub(super) fn forget_order(&mut self) {
        for cell in self.words.cells.iter_mut().chain(&mut self.bytes.cells) {
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
