//! A merge of runs through windows in a core's cache.
//!
//! Of each run, a short part is copied next to the core that merges it. What can be merged of these windows (see
//! [`merge_host::external::window`]) is written from the cache, too. So each key comes from memory once and goes there
//! once.

use crate::bytes::Bytes;
use crate::merge::{Merger, Part, is_indexed};
use merge_cli::shared::{Failure, Result, Word, memory};
use merge_host::Engine;
use merge_host::external::Source;
use merge_host::external::window::{Window, splits};
use std::ops::Range;

/// Bytes of all windows together. They fit a core's second-level cache, with what is merged and its scratch memory.
const WINDOWS: usize = 256 << 10;
/// A window is refilled when less than one part in so many is left of it.
const SHORT: usize = 4;

/// The part of a run that is in the cache.
struct Stream<W, S> {
    source: S,
    keys: Vec<W>,
    payload: Bytes,
    /// Where the keys are that are not merged yet.
    here: Range<usize>,
    /// The number of keys that are not read yet.
    behind: u64,
}

/// Keys of a window, where there are so many.
fn slot<W: Word>(sources: usize, width: usize) -> usize {
    (WINDOWS / sources.max(1) / (W::SIZE + width)).max(2 * SHORT)
}

/// Bytes of memory that a merge of so many sources takes, at most: its windows, what is merged of them, and scratch
/// memory.
pub fn memory<W: Word>(sources: usize, width: usize) -> usize {
    let indices = if is_indexed(width) { 3 * size_of::<u32>() } else { 0 };
    (slot::<W>(sources, width) * sources).saturating_mul(3 * (W::SIZE + width) + indices)
}

/// Merges `sources`, each of which knows its number of keys, with payloads of `width` bytes. Calls `write` with merged
/// keys and their payload, and their number before that. Of equal keys, those of an earlier source come first.
///
/// # Errors
/// If a source cannot be read or a key not be written, or there is too little memory.
pub fn merge<W: Word, S: Source<W, Error = Failure>>(
    sources: Vec<S>,
    width: usize,
    mut write: impl FnMut(u64, &[W], &[u8]) -> Result<()>,
) -> Result<()> {
    let slot = slot::<W>(sources.len(), width);
    let mut merger = Merger::new(Engine::cpu_with_threads(1)?, slot * sources.len(), width)?;
    let streams = sources.into_iter().map(|source| Stream::new(source, slot, width));
    let mut streams = streams.collect::<Result<Vec<_>>>()?;
    let mut written = 0;
    loop {
        streams.iter_mut().try_for_each(Stream::refill)?;
        let splits = splits(&streams.iter().map(Stream::window).collect::<Vec<_>>());
        let count: usize = splits.iter().sum();
        if count == 0 {
            return Ok(());
        }
        let parts: Vec<Part<W>> =
            streams.iter().zip(&splits).map(|(stream, split)| stream.first(*split, width)).collect();
        let (keys, payload) = merger.merge(&parts)?;
        write(written, keys, payload)?;
        written += count as u64;
        streams.iter_mut().zip(&splits).for_each(|(stream, split)| stream.here.start += split);
    }
}

impl<W: Word, S: Source<W, Error = Failure>> Stream<W, S> {
    fn new(source: S, slot: usize, width: usize) -> Result<Self> {
        let behind = source.len().ok_or_else(|| Failure::new("a run of unknown length"))?;
        let keys = memory::zeroed(slot as u64, "a part of a run")?;
        Ok(Self { source, keys, payload: Bytes::zeroed(slot, width)?, here: 0..0, behind })
    }

    /// Moves what is left of a short window to its begin, and reads on behind it.
    fn refill(&mut self) -> Result<()> {
        let Self { source, keys, payload, here, behind } = self;
        if *behind == 0 || here.len() > keys.len() / SHORT {
            return Ok(());
        }
        let (left, width) = (here.len(), payload.get().len() / keys.len());
        keys.copy_within(here.clone(), 0);
        payload.get_mut().copy_within(here.start * width..here.end * width, 0);
        let wanted = (keys.len() - left).min(usize::try_from(*behind).unwrap_or(usize::MAX));
        let bytes = left * width..(left + wanted) * width;
        let read = source.read(&mut keys[left..left + wanted], &mut payload.get_mut()[bytes])?;
        *behind = if read < wanted { 0 } else { *behind - read as u64 };
        *here = 0..left + read;
        Ok(())
    }

    fn window(&self) -> Window<'_, W> {
        Window { keys: &self.keys[self.here.clone()], continues: self.behind > 0 }
    }

    /// The first keys of the window.
    fn first(&self, count: usize, width: usize) -> Part<'_, W> {
        let here = self.here.start..self.here.start + count;
        (&self.keys[here.clone()], &self.payload.get()[here.start * width..here.end * width])
    }
}
