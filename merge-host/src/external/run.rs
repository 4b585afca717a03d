//! Sorted runs, in the temporary file or from sorted sources, and their readers.

use super::block::Block;
use super::error::{Error, ScratchError};
use super::source::{Input, Source};
use super::spill::{Extent, ExtentReader, Spill};
use crate::Word;
use std::ops::Range;
use std::sync::Arc;

/// A sorted run.
#[derive(Debug)]
pub(super) enum Run<W, S> {
    Spilled(SpilledRun),
    Source(Input<W, S>),
}

/// A sorted run in the temporary file.
#[derive(Debug)]
pub(super) struct SpilledRun {
    spill: Arc<Spill>,
    keys: Extent,
    payload: Extent,
    count: u64,
}

impl<W: Word, S: Source<W>> Run<W, S> {
    /// The greatest number of keys to read.
    pub(super) fn left(&self) -> u64 {
        match self {
            Self::Spilled(run) => run.count,
            Self::Source(input) => input.left(),
        }
    }

    /// Frees the run's space in the temporary file, and returns the number of keys read if the run is a source.
    pub(super) fn release(self) -> u64 {
        match self {
            Self::Spilled(SpilledRun { spill, keys, payload, .. }) => {
                spill.release(&keys);
                spill.release(&payload);
                0
            }
            Self::Source(input) => input.position(),
        }
    }

    /// A reader of the run from its beginning to its end.
    pub(super) fn reader(&mut self) -> Reader<'_, W, S> {
        match self {
            Self::Spilled(SpilledRun { spill, keys, payload, count }) => Reader::Spilled {
                keys: ExtentReader::new(spill, keys),
                payload: ExtentReader::new(spill, payload),
                left: *count,
            },
            Self::Source(input) => Reader::Source(input),
        }
    }
}

/// A run that is being written to the temporary file.
#[derive(Debug)]
pub(super) struct RunWriter(SpilledRun);

impl RunWriter {
    /// An empty run.
    pub(super) fn new(spill: Arc<Spill>) -> Self {
        Self(SpilledRun { spill, keys: Extent::default(), payload: Extent::default(), count: 0 })
    }

    /// The run with all keys written.
    pub(super) fn finish(self) -> SpilledRun {
        self.0
    }

    /// Appends keys with their payloads.
    pub(super) fn write<W: Word>(&mut self, keys: &[W], payload: &[u8]) -> Result<(), ScratchError> {
        let SpilledRun { spill, keys: key_extent, payload: payload_extent, count } = &mut self.0;
        *count += keys.len() as u64;
        spill.append(key_extent, bytemuck::cast_slice(keys))?;
        spill.append(payload_extent, payload)
    }
}

/// Reads a run part by part.
#[derive(Debug)]
pub(super) enum Reader<'a, W, S> {
    Spilled { keys: ExtentReader<'a>, payload: ExtentReader<'a>, left: u64 },
    Source(&'a mut Input<W, S>),
}

impl<W: Word, S: Source<W>> Reader<'_, W, S> {
    /// The greatest number of keys left to read. 0 is exact.
    pub(super) fn left(&self) -> u64 {
        match self {
            Self::Spilled { left, .. } => *left,
            Self::Source(input) => input.left(),
        }
    }

    /// Fills `slots` of `block` from the front with the next keys, and returns their number. It is less than the number
    /// of slots only at the end.
    pub(super) fn read(&mut self, block: &mut Block, slots: Range<usize>) -> Result<usize, Error<S::Error>> {
        match self {
            Self::Spilled { keys: from, payload: payload_from, left } => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(slots.len());
                let (keys, payload) = block.parts_mut::<W>(slots.start..slots.start + count);
                from.read(bytemuck::cast_slice_mut(keys))?;
                payload_from.read(payload)?;
                *left -= count as u64;
                Ok(count)
            }
            Self::Source(input) => input.read(block, slots).map_err(Error::Other),
        }
    }
}
