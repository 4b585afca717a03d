//! The first N items of the order, without sorting the others.
//!
//! The input is read in parts. For keys alone, the library keeps the candidates of each part ([`TopK`]): equal keys
//! have equal bits, so the choice among them does not matter. Keys with payloads and records are held with their
//! payloads ([`Leading`]). If the memory is too small for the candidates, all items are sorted in chunks, and the first
//! N are written.

use super::engine::{ChosenEngine, cpu};
use crate::coding::Word;
use crate::file::Concatenation;
use crate::os::memory;
use crate::records::Key;
use crate::say::error::{Failure, Result};
use crate::say::stats::{Phase, Stats};
use crate::spec::EngineChoice;
use merge_host::external::Source;
use merge_host::{Engine, SortOptions, SortOrder, TopK, permutation, records};

/// Bytes of keys to read at once.
const BUFFER: u64 = 32 << 20;
/// Bytes of keys to read at once if a GPU selects, because each part is a separate call.
const GPU_BUFFER: u64 = 256 << 20;
/// The least number of items that are held before the first ones of them are selected, so that the selection is worth
/// its fixed cost.
const LEAST_HELD: u64 = 1 << 12;

/// The first items that are wanted, and how they are read.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The number of items.
    pub count: usize,
    /// Bytes to read at once.
    buffer: u64,
}

impl Wanted {
    /// The first `count` items with payloads of `width` bytes, or `None` if the candidates take more than `memory`
    /// bytes.
    pub fn fitting<W: Word>(count: u64, width: usize, engine: EngineChoice, memory: u64) -> Option<Self> {
        let part = if engine == EngineChoice::Gpu { GPU_BUFFER } else { BUFFER };
        let buffer = part.min(memory / 4);
        let count = usize::try_from(count).ok()?;
        let candidates = match width {
            0 => TopK::<W>::max_bytes(count) as u64,
            _ => Leading::<W>::max_bytes(count as u64, width),
        };
        (candidates.saturating_add(buffer) <= memory).then_some(Self { count, buffer })
    }

    /// The first keys, sorted.
    pub fn keys<W: Word>(
        self,
        keys: &mut Concatenation,
        engine: &mut ChosenEngine,
        stats: &mut Stats,
    ) -> Result<Vec<W>> {
        let capacity = (self.buffer / W::SIZE as u64).min(keys.count::<W>()?.unwrap_or(u64::MAX)).max(1);
        let mut part = memory::zeroed::<W>(capacity, "a part of the file")?;
        let mut top = TopK::new(SortOrder::Ascending, self.count);
        loop {
            let read = stats.time(Phase::Read, || keys.read(&mut part))?;
            if read > 0 && self.count > 0 {
                // A GPU that fails has added no keys, so the CPU can add the part.
                stats.add(engine.run(&mut top, |engine, top| top.add(engine, &part[..read]))?);
            }
            stats.keys += read as u64;
            if read < part.len() {
                let (first, _, timing) = top.into_sorted(&cpu())?;
                stats.add(timing);
                return Ok(first);
            }
        }
    }

    /// The first keys of `source` with their payloads of `width` bytes, sorted. Stable. If words are not whole keys,
    /// payloads with equal words are ordered by the key `ties`.
    pub fn items<W: Word>(
        self,
        source: &mut impl Source<W, Error = Failure>,
        width: usize,
        ties: Option<&Key>,
        engine: &mut ChosenEngine,
        stats: &mut Stats,
    ) -> Result<(Vec<W>, Vec<u8>)> {
        let least = self.buffer / (W::SIZE + width) as u64;
        let capacity = least.clamp(1, source.len().unwrap_or(u64::MAX).max(1));
        let mut keys = memory::zeroed::<W>(capacity, "a part of the file")?;
        let mut payload = memory::zeroed::<u8>(capacity * width as u64, "a part of the payloads")?;
        let mut leading = Leading::new(self.count, width, ties)?;
        loop {
            let read = stats.time(Phase::Read, || source.read(&mut keys, &mut payload))?;
            leading.add(&keys[..read], &payload[..read * width], engine, stats)?;
            stats.keys += read as u64;
            if read < keys.len() || source.len() == Some(stats.keys) {
                leading.select(engine, stats)?;
                return Ok((leading.keys, leading.payload));
            }
        }
    }
}

/// The first `most` of items that come in parts.
struct Leading<'a, W> {
    most: usize,
    width: usize,
    ties: Option<&'a Key>,
    /// The candidates. The first `most` of them are selected when there are `capacity`.
    keys: Vec<W>,
    payload: Vec<u8>,
    capacity: usize,
    /// The last of `most` items: items that do not precede it are no candidates.
    last: Option<(W, Vec<u8>)>,
}

impl<'a, W: Word> Leading<'a, W> {
    fn new(most: usize, width: usize, ties: Option<&'a Key>) -> Result<Self> {
        let (mut keys, mut payload, capacity) = (Vec::new(), Vec::new(), Self::capacity(most as u64) as usize);
        memory::reserve(&mut keys, capacity, "the first keys")?;
        memory::reserve(&mut payload, capacity * width, "the first payloads")?;
        Ok(Self { most, width, ties, keys, payload, capacity, last: None })
    }

    /// The number of candidates that are held.
    fn capacity(most: u64) -> u64 {
        most.saturating_mul(2).max(LEAST_HELD)
    }

    /// Bytes that the candidates take, with the memory of a selection.
    fn max_bytes(most: u64, width: usize) -> u64 {
        // Candidates and selected items, and the indices and words of a sort with its scratch memory.
        let each = 2 * (W::SIZE + width) as u64 + 2 * (size_of::<u64>() + W::SIZE) as u64;
        Self::capacity(most).saturating_mul(each)
    }

    /// Adds items, which follow those added before.
    fn add(&mut self, keys: &[W], payload: &[u8], engine: &mut ChosenEngine, stats: &mut Stats) -> Result<()> {
        if self.most == 0 {
            return Ok(());
        }
        for (key, payload) in keys.iter().zip(payload.chunks_exact(self.width)) {
            if self.last.as_ref().is_some_and(|last| !self.precedes((*key, payload), last)) {
                continue;
            }
            self.keys.push(*key);
            self.payload.extend_from_slice(payload);
            if self.keys.len() == self.capacity {
                self.select(engine, stats)?;
            }
        }
        Ok(())
    }

    fn precedes(&self, (key, payload): (W, &[u8]), (last, last_payload): &(W, Vec<u8>)) -> bool {
        let is_tie = || self.ties.is_some_and(|ties| ties.compare(payload, last_payload).is_lt());
        key < *last || key == *last && is_tie()
    }

    /// Sorts the candidates, and keeps the first ones.
    fn select(&mut self, engine: &mut ChosenEngine, stats: &mut Stats) -> Result<()> {
        let Self { most, width, ties, ref keys, ref payload, .. } = *self;
        let mut order = memory::zeroed::<u64>(keys.len() as u64, "the indices of the first keys")?;
        let sort = |engine: &Engine, order: &mut Vec<u64>| match ties {
            Some(ties) => records::argsort(engine, ties, width, payload, order),
            None => engine.argsort(SortOptions::default(), keys, order),
        };
        stats.add(engine.run(&mut order, sort)?);
        order.truncate(most);
        let mut first = memory::zeroed::<W>(order.len() as u64, "the first keys")?;
        let mut payloads = memory::zeroed::<u8>((order.len() * width) as u64, "the first payloads")?;
        stats.time(Phase::Compute, || {
            permutation::gather(W::SIZE, &[bytemuck::cast_slice(keys)], &order, bytemuck::cast_slice_mut(&mut first));
            permutation::gather(width, &[payload], &order, &mut payloads);
        });
        self.keys.clear();
        self.keys.extend_from_slice(&first);
        self.payload.clear();
        self.payload.extend_from_slice(&payloads);
        if let Some(key) = first.last().filter(|_| first.len() == most) {
            self.last = Some((*key, payloads[(most - 1) * width..].to_vec()));
        }
        Ok(())
    }
}
