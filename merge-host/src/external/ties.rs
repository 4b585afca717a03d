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
//! A group that does not fit in memory is sorted like the whole, by the next 16 bytes in which its keys differ.

use super::error::Error;
use super::source::{Source, Target};
use super::spill::{Extent, ExtentReader, Spill, Spills};
use super::{Options, sort};
use crate::cpu::memory;
use crate::records::{self, RecordKey};
use crate::{Engine, Word, allocation};
use std::fmt;
use std::sync::Arc;

/// The parts of the memory: one of this many for the sort whose target is a [`Ties`], for the sort of a group that does
/// not fit, and for the records of a group.
const SORT_PARTS: u64 = 2;
const GROUP_SORT_PARTS: u64 = 4;
const GROUP_PARTS: u64 = 16;

/// Takes whole records, in the order of their keys.
type Write<'a, E> = Box<dyn FnMut(&mut [u8]) -> Result<(), E> + Send + 'a>;

/// A target of records that an external sort has sorted by the first bytes of their keys. It hands them on in the order
/// of the whole keys. Stable.
///
/// The keys of the sort are [`RecordKey::part`] number 0 of each record, and the payloads are the records. The sort has
/// half of the memory ([`sort_options`](Self::sort_options)). Keys of any length are possible: records with equal parts
/// are sorted by the next parts, in memory or again by an external sort.
pub struct Ties<'a, E> {
    key: &'a RecordKey,
    /// Bytes of a record.
    size: usize,
    /// The number of the part of the keys that records come sorted by.
    part: usize,
    options: Options,
    engine: Engine,
    write: Write<'a, E>,
    failure: fn(Error<E>) -> E,
    /// The part of the records that are held back, because more records may have the same.
    held_part: Option<u128>,
    /// The last of the records that are held back. The others are in `spilled`.
    held: Vec<u8>,
    spilled: Option<Spilled>,
}

/// The first records of a group, in a temporary file.
struct Spilled {
    file: Arc<Spill>,
    records: Extent,
    count: u64,
    /// One of the records.
    first: Vec<u8>,
    /// The number of the first part in which the keys differ, or the number of parts.
    differing: usize,
}

impl<'a, E: Send> Ties<'a, E> {
    /// A target for records of [`Options::width`] bytes. `options` are those of the sort and its target together.
    /// `write` takes one or more whole records at a time. `failure` makes an error of sources and targets.
    pub fn new(
        key: &'a RecordKey,
        options: &Options,
        write: impl FnMut(&mut [u8]) -> Result<(), E> + Send + 'a,
        failure: fn(Error<E>) -> E,
    ) -> Self {
        Self::of_part(0, key, options.clone(), Box::new(write), failure)
    }

    fn of_part(
        part: usize,
        key: &'a RecordKey,
        options: Options,
        write: Write<'a, E>,
        failure: fn(Error<E>) -> E,
    ) -> Self {
        // The target works on a thread of the sort, whose pool is free meanwhile.
        let engine = Engine::cpu().on_current_pool();
        let size = options.width;
        Self { key, size, part, options, engine, write, failure, held_part: None, held: Vec::new(), spilled: None }
    }

    /// The options of the sort whose target this is: those of [`new`](Self::new) with less memory, if the target needs
    /// any.
    pub fn sort_options(&self) -> Options {
        let memory = self.options.memory / if self.has_rest() { SORT_PARTS } else { 1 };
        Options { memory, ..self.options.clone() }
    }

    /// Hands on the last records. Call it after the sort.
    ///
    /// # Errors
    /// The errors of writing and sorting.
    pub fn finish(mut self) -> Result<(), E> {
        self.end_group()
    }

    /// Whether the keys have more parts than those that are equal in a group.
    fn has_rest(&self) -> bool {
        self.part + 1 < self.key.parts()
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
                file: Spills::create(&self.options.folders)?.next(),
                records: Extent::default(),
                count: 0,
                first: memory::collected(self.held[..self.size].iter().copied())?,
                differing: self.key.parts(),
            },
        };
        for record in self.held.chunks_exact(self.size) {
            let mut parts = self.part + 1..spilled.differing;
            let differs = |part: &usize| self.key.part(*part, record) != self.key.part(*part, &spilled.first);
            spilled.differing = parts.find(differs).unwrap_or(spilled.differing);
        }
        spilled.file.append(&mut spilled.records, &self.held)?;
        spilled.count += (self.held.len() / self.size) as u64;
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
            return self.sort_spilled(&spilled);
        }
        let mut held = std::mem::take(&mut self.held);
        self.sort_and_write(held.len() > self.size, &mut held)?;
        held.clear();
        self.held = held;
        Ok(())
    }

    /// Sorts a group in a temporary file by the part in which its keys differ, and hands it on.
    fn sort_spilled(&mut self, spilled: &Spilled) -> Result<(), E> {
        // Groups in groups get less and less memory, but enough to be sorted at all.
        let least = SORT_PARTS * self.options.shape::<u128>().least_memory();
        let options = Options { memory: (self.options.memory / GROUP_SORT_PARTS).max(least), ..self.options.clone() };
        let (write, failure, part) = (&mut self.write, self.failure, spilled.differing);
        let target = Ties::of_part(part, self.key, options, Box::new(&mut **write), failure);
        let (options, mut engine) = (target.sort_options(), &self.engine);
        let reader = ExtentReader::new(&spilled.file, &spilled.records);
        let source = Group { key: self.key, part, reader, left: spilled.count, failure };
        let (target, _) = sort(&options, source, || Ok(target), &mut engine, &mut ()).map_err(failure)?;
        target.finish()
    }

    /// Hands on records whose groups are whole, after a sort if they need it.
    fn sort_and_write(&mut self, needs_sort: bool, records: &mut [u8]) -> Result<(), E> {
        if needs_sort {
            let sorted = records::sort(&self.engine, self.key, self.size, records);
            sorted.map_err(|error| (self.failure)(error.into()))?;
        }
        if records.is_empty() { Ok(()) } else { (self.write)(records) }
    }
}

impl<W: Word, E: Send> Target<W> for Ties<'_, E> {
    type Error = E;

    fn write(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<(), E> {
        if !self.has_rest() {
            return (self.write)(payload);
        }
        let part = |key: &W| Some(key.widened());
        // The records of the group that is held back, those of groups that end in this block, and those of the last.
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

impl<E> fmt::Debug for Ties<'_, E> {
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
