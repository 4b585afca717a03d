//! Records whose keys are longer than the numbers that an external sort compares.
//!
//! The sort compares the first 16 bytes of the keys. Its target gets records with equal first bytes one after the
//! other, and sorts each such group by the rest of the keys:
//!
//! ```text
//!   first bytes   1 │ 3 3 3 │ 4 │ 7 7 7 7 7 7 7 ┄      in order
//!   the rest      5 │ 8 2 9 │ 0 │ 6 1 4 4 9 0 2 ┄      sorted in each group; the last group may go on
//! ```
//!
//! A group that does not fit in memory is sorted like the whole, by the next 16 bytes in which its keys differ. The
//! result is a list of pieces in temporary files: sorted records, and groups that are too large again. Only one of them
//! is sorted at a time, so that groups in groups need no more memory.

use super::error::{Error, ScratchError, TooLittleMemory};
use super::source::{Source, Target};
use super::spill::{Extent, ExtentReader, Spill, Spills};
use super::{Options, sort};
use crate::cpu::memory;
use crate::records::{self, RecordKey};
use crate::{Engine, Word, allocation, parallel};
use std::fmt;
use std::sync::Arc;

/// A sort whose target is a [`Ties`] has half of the memory. A group that does not fit has a quarter for its sort. The
/// records that are held back have a sixteenth.
const SORT_PARTS: u64 = 2;
const GROUP_SORT_PARTS: u64 = 4;
const GROUP_PARTS: u64 = 16;

/// The most records that the next target gets at once.
const NUMBERED: u64 = 1 << 16;
/// Records that a thread compares at once.
const BLOCK: usize = 1 << 10;

/// A target of records that an external sort or merge has ordered by the first bytes of their keys. It hands them on to
/// another target in the order of the whole keys. Stable.
///
/// The keys of the sort are [`RecordKey::part`] number 0 of each record, and the payloads are the records. The sort has
/// half of the memory ([`sort_options`](Self::sort_options)). Keys of any length are possible: records with equal parts
/// are sorted by the next parts, in memory or again by an external sort.
///
/// The other target gets the records as payloads. The words that it gets as keys tell equal keys apart: the words of
/// two neighbours are equal if and only if the whole keys of their records are.
pub struct Ties<'a, W, E> {
    key: &'a RecordKey,
    /// Bytes of a record.
    size: usize,
    /// The number of the part of the keys that records come sorted by.
    part: usize,
    options: Options,
    engine: Engine,
    out: Out<'a, W, E>,
    failure: fn(Error<E>) -> E,
    /// The temporary files, created for the first group that does not fit in memory.
    spills: Option<Arc<Spills>>,
    /// The part of the records that are held back, because more records may have the same.
    held_part: Option<u128>,
    /// The last of the records that are held back. The others are in `spilled`.
    held: Vec<u8>,
    spilled: Option<Spilled>,
}

/// Where records in order go.
enum Out<'a, W, E> {
    Target(Numbered<'a, W, E>),
    Pieces(Vec<Piece>),
}

/// A target with the number of the last group of equal keys.
struct Numbered<'a, W, E> {
    target: Box<dyn Target<W, Error = E> + 'a>,
    number: u128,
    /// The last record.
    last: Vec<u8>,
    words: Vec<W>,
}

impl<W: Word, E: Send> Numbered<'_, W, E> {
    /// Writes records of `size` bytes, with the numbers of their groups as keys.
    fn write(&mut self, key: &RecordKey, size: usize, records: &mut [u8]) -> Result<(), E> {
        let Self { target, number, last, words } = self;
        words.resize(records.len() / size, W::narrowed(0));
        let record = |i: usize| &records[i * size..][..size];
        parallel::for_each(words.chunks_mut(BLOCK).enumerate(), |(block, words)| {
            for (i, word) in (block * BLOCK..).zip(words) {
                let is_new = i > 0 && key.compare(record(i - 1), record(i)).is_ne();
                *word = W::narrowed(is_new.into());
            }
        });
        *number += u128::from(!last.is_empty() && key.compare(last, record(0)).is_ne());
        for word in &mut *words {
            *number += word.widened();
            // The numbers of neighbours differ by at most 1, so that a word of one byte suffices.
            *word = W::narrowed(*number);
        }
        last.clear();
        last.extend_from_slice(record(words.len() - 1));
        target.write(words, records)
    }
}

/// Records in a temporary file, one piece of some that follow each other.
enum Piece {
    Sorted(Stored),
    Group(Spilled),
}

/// Records in a temporary file.
struct Stored {
    file: Arc<Spill>,
    records: Extent,
    count: u64,
}

/// The first records of a group, in a temporary file.
struct Spilled {
    stored: Stored,
    /// One of the records.
    first: Vec<u8>,
    /// The number of the first part in which the keys differ, or the number of parts.
    differing: usize,
}

impl Stored {
    fn append(&mut self, records: &[u8], size: usize) -> Result<(), ScratchError> {
        self.count += (records.len() / size) as u64;
        self.file.append(&mut self.records, records)
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        self.file.release(&self.records);
    }
}

impl<'a, W: Word, E: Send> Ties<'a, W, E> {
    /// A target for records of [`Options::width`] bytes. `options` are those of the sort and its target together.
    /// `target` is where the records go, in the order of their whole keys. `failure` makes an error of sources and
    /// targets.
    ///
    /// # Panics
    /// The target panics if [`RecordKey::check`] returns an error for records of this size.
    pub fn new(
        key: &'a RecordKey,
        options: &Options,
        target: impl Target<W, Error = E> + 'a,
        failure: fn(Error<E>) -> E,
    ) -> Self {
        let out = Numbered { target: Box::new(target), number: 0, last: Vec::new(), words: Vec::new() };
        let out = Out::Target(out);
        // The target works on a thread of the sort, whose pool is free meanwhile.
        let engine = Engine::cpu().on_current_pool();
        let (size, options) = (options.width, options.clone());
        let (held_part, held, spilled, spills) = (None, Vec::new(), None, None);
        Self { key, size, part: 0, options, engine, out, failure, spills, held_part, held, spilled }
    }

    /// The options of a sort or merge with such a target, if `options` are those of both together. The target needs
    /// memory only for keys of several parts. With these, all records are kept: [`Options::unique`] is ignored.
    pub fn sort_options(key: &RecordKey, options: &Options) -> Options {
        options_before(key, 0, options)
    }

    /// The error of a sort or merge with [`sort_options`](Self::sort_options), as one of both together: with too little
    /// memory, it has the memory of both.
    pub fn sort_error(key: &RecordKey, options: &Options, error: Error<E>) -> Error<E> {
        match error {
            // The memory of a GPU is not divided.
            Error::TooLittleMemory(error) if error.memory == options_before(key, 0, options).memory => {
                let needed = error.needed.saturating_mul(sort_parts(key, 0));
                TooLittleMemory { memory: options.memory, needed, ..error }.into()
            }
            error => error,
        }
    }

    /// Hands on the last records. Call it after the sort.
    ///
    /// # Errors
    /// The errors of writing and sorting.
    pub fn finish(mut self) -> Result<(), E> {
        self.end_group()
    }

    /// The temporary file for the next group or piece.
    fn next_file(&mut self) -> Result<Stored, Error<E>> {
        let spills = match self.spills.take() {
            Some(spills) => spills,
            None => Arc::new(Spills::create(&self.options.folders)?),
        };
        let file = spills.next();
        self.spills = Some(spills);
        Ok(Stored { file, records: Extent::default(), count: 0 })
    }

    /// Adds records to the group that is held back.
    fn hold(&mut self, records: &[u8]) -> Result<(), Error<E>> {
        allocation::handled(|| self.held.try_reserve(records.len()))
            .map_err(|_| memory::out_of_memory::<u8>(self.held.len().saturating_add(records.len())))?;
        self.held.extend_from_slice(records);
        if self.held.len() as u64 > self.options.memory / GROUP_PARTS {
            self.spill()?;
        }
        Ok(())
    }

    /// Moves the records that are held back to a temporary file.
    fn spill(&mut self) -> Result<(), Error<E>> {
        let mut spilled = match self.spilled.take() {
            Some(spilled) => spilled,
            None => Spilled {
                stored: self.next_file()?,
                first: memory::collected(self.held[..self.size].iter().copied())?,
                differing: self.key.parts(),
            },
        };
        for record in self.held.chunks_exact(self.size) {
            let mut parts = self.part + 1..spilled.differing;
            let differs = |part: &usize| self.key.part(*part, record) != self.key.part(*part, &spilled.first);
            spilled.differing = parts.find(differs).unwrap_or(spilled.differing);
        }
        spilled.stored.append(&self.held, self.size)?;
        self.held.clear();
        self.spilled = Some(spilled);
        Ok(())
    }

    /// Sorts the group that is held back, and hands it on.
    fn end_group(&mut self) -> Result<(), E> {
        if self.spilled.is_some() && !self.held.is_empty() {
            self.spill().map_err(self.failure)?;
        }
        if let Some(spilled) = self.spilled.take() {
            return match &mut self.out {
                Out::Target(_) => self.sort_spilled(spilled),
                Out::Pieces(pieces) => {
                    memory::push(pieces, Piece::Group(spilled)).map_err(|e| (self.failure)(e.into()))
                }
            };
        }
        let mut held = std::mem::take(&mut self.held);
        self.sort_and_write(held.len() > self.size, &mut held)?;
        held.clear();
        self.held = held;
        Ok(())
    }

    /// Sorts a group in a temporary file, and hands it on.
    fn sort_spilled(&mut self, spilled: Spilled) -> Result<(), E> {
        // A list of pieces instead of recursion: there may be groups in groups as often as keys have parts.
        let mut pieces = vec![Piece::Group(spilled)];
        while let Some(piece) = pieces.pop() {
            match piece {
                Piece::Group(group) if group.differing < self.key.parts() => {
                    for piece in self.sort_group(&group)?.into_iter().rev() {
                        memory::push(&mut pieces, piece).map_err(|error| (self.failure)(error.into()))?;
                    }
                }
                Piece::Group(Spilled { stored, .. }) | Piece::Sorted(stored) => self.hand_on_stored(&stored)?,
            }
        }
        Ok(())
    }

    /// Sorts a group in a temporary file by the part in which its keys differ.
    fn sort_group(&mut self, group: &Spilled) -> Result<Vec<Piece>, E> {
        // The sort whose target this is has its memory meanwhile.
        let least = SORT_PARTS * self.options.shape::<u128>().least_memory();
        let memory = (self.options.memory / GROUP_SORT_PARTS).max(least);
        let (key, failure, part) = (self.key, self.failure, group.differing);
        let target: Ties<u128, E> = Ties {
            key,
            size: self.size,
            part,
            options: Options { memory, ..self.options.clone() },
            engine: self.engine.clone(),
            out: Out::Pieces(Vec::new()),
            failure,
            spills: self.spills.clone(),
            held_part: None,
            held: Vec::new(),
            spilled: None,
        };
        let (options, mut engine) = (options_before(key, part, &target.options), &self.engine);
        let reader = ExtentReader::new(&group.stored.file, &group.stored.records);
        let source = Group { key, part, reader, left: group.stored.count, failure };
        let (mut target, _) = sort(&options, source, || Ok(target), &mut engine, &mut ()).map_err(failure)?;
        target.end_group()?;
        let Out::Pieces(pieces) = target.out else { return Ok(Vec::new()) };
        Ok(pieces)
    }

    /// The most records to hand on at once.
    fn most_at_once(&self) -> u64 {
        (self.options.memory / GROUP_PARTS / self.size as u64).clamp(1, NUMBERED)
    }

    /// Hands on records of a temporary file that are in order.
    fn hand_on_stored(&mut self, stored: &Stored) -> Result<(), E> {
        let most = self.most_at_once().min(stored.count.max(1));
        let block = memory::zeroed::<u8>(most as usize * self.size);
        let mut block = block.map_err(|error| (self.failure)(error.into()))?;
        let (mut reader, mut left) = (ExtentReader::new(&stored.file, &stored.records), stored.count);
        while left > 0 {
            let count = left.min(most);
            let records = &mut block[..count as usize * self.size];
            reader.read(records).map_err(|error| (self.failure)(error.into()))?;
            self.hand_on(records)?;
            left -= count;
        }
        Ok(())
    }

    /// Hands on records in order.
    fn hand_on(&mut self, records: &mut [u8]) -> Result<(), E> {
        let (size, most) = (self.size, self.most_at_once() as usize);
        match &mut self.out {
            Out::Target(target) => {
                records.chunks_mut(most * size).try_for_each(|records| target.write(self.key, size, records))
            }
            Out::Pieces(_) => self.store(records).map_err(self.failure),
        }
    }

    /// Appends sorted records to the last piece, or to a new one behind a group.
    fn store(&mut self, records: &[u8]) -> Result<(), Error<E>> {
        let Out::Pieces(pieces) = &mut self.out else { return Ok(()) };
        let mut piece = match pieces.pop_if(|piece| matches!(piece, Piece::Sorted(_))) {
            Some(Piece::Sorted(stored)) => stored,
            _ => self.next_file()?,
        };
        piece.append(records, self.size)?;
        if let Out::Pieces(pieces) = &mut self.out {
            memory::push(pieces, Piece::Sorted(piece))?;
        }
        Ok(())
    }

    /// Hands on records whose groups are whole, after a sort if they need it.
    fn sort_and_write(&mut self, needs_sort: bool, records: &mut [u8]) -> Result<(), E> {
        if needs_sort {
            let sorted = records::sort(&self.engine, self.key, self.size, records);
            sorted.map_err(|error| (self.failure)(error.into()))?;
        }
        if records.is_empty() { Ok(()) } else { self.hand_on(records) }
    }
}

/// The options of a sort by part `part`, beside a target with `options`.
fn options_before(key: &RecordKey, part: usize, options: &Options) -> Options {
    // The sort would take records with equal parts for equal ones.
    Options { memory: options.memory / sort_parts(key, part), unique: false, ..options.clone() }
}

/// A sort by part `part` has 1 / `sort_parts` of the memory.
fn sort_parts(key: &RecordKey, part: usize) -> u64 {
    if has_rest(key, part) { SORT_PARTS } else { 1 }
}

/// Whether records with equal parts up to number `part` may still differ.
fn has_rest(key: &RecordKey, part: usize) -> bool {
    part + 1 < key.parts()
}

impl<W: Word, E: Send> Target<W> for Ties<'_, W, E> {
    type Error = E;

    fn write(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<(), E> {
        if !has_rest(self.key, self.part) {
            return match &mut self.out {
                // The words are whole keys.
                Out::Target(out) if self.part == 0 => out.target.write(keys, payload),
                _ => self.hand_on(payload),
            };
        }
        let part = |key: &W| Some(key.widened());
        // First come records of the group that is held back, then whole groups, then a group that may go on.
        let of_held = keys.partition_point(|key| part(key) == self.held_part);
        let (records, rest) = payload.split_at_mut(of_held * self.size);
        self.hold(records).map_err(self.failure)?;
        let keys = &keys[of_held..];
        let Some(last) = keys.last() else { return Ok(()) };
        self.end_group()?;
        let whole = keys.partition_point(|key| key < last);
        let (records, group) = rest.split_at_mut(whole * self.size);
        self.sort_and_write(keys[..whole].windows(2).any(|pair| pair[0] == pair[1]), records)?;
        self.held_part = part(last);
        self.hold(group).map_err(self.failure)
    }
}

impl<W, E> fmt::Debug for Ties<'_, W, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ties").field("part", &self.part).field("options", &self.options).finish_non_exhaustive()
    }
}

/// The records of a group in a temporary file, with one part of their keys.
struct Group<'a, E> {
    key: &'a RecordKey,
    part: usize,
    reader: ExtentReader<'a>,
    left: u64,
    failure: fn(Error<E>) -> E,
}

impl<E: Send> Source<u128> for Group<'_, E> {
    type Error = E;

    fn len(&self) -> Option<u64> {
        Some(self.left)
    }

    fn read(&mut self, keys: &mut [u128], payload: &mut [u8]) -> Result<usize, E> {
        let width = payload.len() / keys.len();
        let count = keys.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let (keys, records) = (&mut keys[..count], &mut payload[..count * width]);
        self.reader.read(records).map_err(|error| (self.failure)(error.into()))?;
        keys.iter_mut().zip(records.chunks(width)).for_each(|(key, record)| *key = self.key.part(self.part, record));
        self.left -= count as u64;
        Ok(count)
    }
}
