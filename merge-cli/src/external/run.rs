//! Sorted runs, in the temporary file or in files that someone else has sorted, and reading them part by part.

use super::block::Block;
use super::chunks::Source;
use super::spill::{Extent, ExtentReader, Spill};
use crate::error::Result;
use crate::key_type::FileKey;
use crate::order::first_unsorted;
use std::ops::Range;
use std::sync::Arc;

/// A sorted run.
#[derive(Debug)]
pub enum Run<O> {
    Spilled(SpilledRun),
    File(Box<SortedFile<O>>),
}

impl<O: FileKey> Run<O> {
    /// How many keys it has, if anyone knows before they are read.
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Spilled(run) => Some(run.count),
            Self::File(file) => file.count,
        }
    }

    /// Reads it from its beginning to its end.
    pub fn reader(&mut self) -> Reader<'_, O> {
        let left = self.count().unwrap_or(u64::MAX);
        let from = match self {
            Self::Spilled(SpilledRun { spill, keys, values, .. }) => {
                From::Spilled { keys: ExtentReader::new(spill, keys), values: ExtentReader::new(spill, values) }
            }
            Self::File(file) => From::File(file),
        };
        Reader { from, left }
    }

    /// Gives back the space that it takes in the temporary file.
    pub fn release(self) {
        if let Self::Spilled(SpilledRun { spill, keys, values, .. }) = self {
            spill.release(&keys);
            spill.release(&values);
        }
    }
}

/// A sorted run in the temporary file.
#[derive(Debug)]
pub struct SpilledRun {
    pub spill: Arc<Spill>,
    pub keys: Extent,
    pub values: Extent,
    pub count: u64,
}

/// A file that is sorted, or is said to be.
#[derive(Debug)]
pub struct SortedFile<O> {
    source: Source<O>,
    /// How many keys it has, if it tells.
    count: Option<u64>,
    /// Whether it is an error if it is not sorted.
    checked: bool,
    /// The last key read.
    last: Option<O>,
}

impl<O: FileKey> SortedFile<O> {
    /// `source` begins with its first key. Its order is looked at if `checked`.
    pub fn new(source: Source<O>, checked: bool) -> Result<Self> {
        Ok(Self { count: source.keys.count::<O>()?, source, checked, last: None })
    }

    fn read(&mut self, block: &mut Block<O>, places: Range<usize>) -> Result<usize> {
        let (begin, before) = (places.start, self.source.position);
        let count = self.source.read(block, places)?;
        let keys = &block.keys[begin..begin + count];
        if self.checked {
            self.check(keys, before)?;
        }
        self.last = keys.last().copied().or(self.last);
        Ok(count)
    }

    /// An error if these keys, which come after `before` others, are not in order.
    fn check(&self, keys: &[O], before: u64) -> Result<()> {
        let wrong = |a: &O, b: &O| b.to_ordered() < a.to_ordered();
        let (index, pair) = match (self.last, keys.first()) {
            (Some(last), Some(first)) if wrong(&last, first) => (0, [last, *first]),
            _ => match first_unsorted(keys) {
                Some(index) => (index, [keys[index - 1], keys[index]]),
                None => return Ok(()),
            },
        };
        Err((self.source.coding.not_sorted)(&self.source.keys, pair, before + index as u64))
    }
}

/// What reads a run, part by part.
#[derive(Debug)]
pub struct Reader<'a, O> {
    from: From<'a, O>,
    left: u64,
}

#[derive(Debug)]
enum From<'a, O> {
    Spilled { keys: ExtentReader<'a>, values: ExtentReader<'a> },
    File(&'a mut SortedFile<O>),
}

impl<O: FileKey> Reader<'_, O> {
    /// Keys that were not read yet, at most. None are left as soon as fewer come than there were places for.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Reads the next keys and what goes along to these places of `block`, or to fewer if no more are left, and gives the
    /// places that are filled.
    pub fn read(&mut self, block: &mut Block<O>, places: Range<usize>) -> Result<Range<usize>> {
        let begin = places.start;
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(places.len());
        let count = match &mut self.from {
            From::Spilled { keys: from, values: values_from } => {
                let (keys, values) = block.parts(begin..begin + room);
                from.read(bytemuck::cast_slice_mut(keys))?;
                values_from.read(values)?;
                room
            }
            From::File(file) => file.read(block, begin..begin + room)?,
        };
        self.left = if count < room { 0 } else { self.left - count as u64 };
        Ok(begin..begin + count)
    }
}
