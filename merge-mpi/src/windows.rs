//! A merge of runs through windows in a core's cache.
//!
//! A window is a short part of a run, copied into the cache of the core that merges it. The keys that can be merged
//! from the windows (see [`merge_host::external::window`]) are also written from the cache. So each key is read from
//! memory once and written to memory once.

use crate::bytes::Bytes;
use crate::merge::{Merger, Part, is_indexed};
use merge_cli::shared::{Failure, Result, Word, memory};
use merge_host::Engine;
use merge_host::external::Source;
use merge_host::external::window::{Window, splits};
use std::ops::Range;

/// Bytes of all windows together. With the merged keys and scratch memory, they fit a core's second-level cache.
const WINDOWS: usize = 256 << 10;
/// A window is refilled when less than 1 / `SHORT` of its keys remain.
const SHORT: usize = 4;

/// A run and its window.
struct Stream<W, S> {
    source: S,
    keys: Vec<W>,
    payload: Bytes,
    /// The range of keys in the window that are not merged yet.
    here: Range<usize>,
    /// The number of unread keys behind the window.
    behind: u64,
}

/// The capacity of a window, in keys.
fn slot<W: Word>(sources: usize, width: usize) -> usize {
    (WINDOWS / sources.max(1) / (W::SIZE + width)).max(2 * SHORT)
}

/// The most bytes of memory of a merge of `sources` sources: windows, merged keys, and scratch memory.
pub fn memory<W: Word>(sources: usize, width: usize) -> usize {
    let indices = if is_indexed(width) { 3 * size_of::<u32>() } else { 0 };
    (slot::<W>(sources, width) * sources).saturating_mul(3 * (W::SIZE + width) + indices)
}

/// Merges `sources` with payloads of `width` bytes. Each source knows its number of keys. Calls `write` with the index
/// of the first merged key, the merged keys, and their payload. Equal keys keep the order of the sources.
///
/// # Errors
/// If reading a source or writing fails, or there is too little memory.
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

    /// Moves the remaining keys of a short window to its beginning, and fills the rest from the source.
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
