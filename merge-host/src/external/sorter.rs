//! Sorts blocks in memory.

use super::block::{Block, zeroed_bytes};
use super::engines::Engines;
use super::error::Error;
use super::observer::{Observer, Phase};
use super::source::{Input, Source};
use crate::permutation::{fill_identity, gather};
use crate::{Engine, Index, SortOrder, Timing, Word};
use bytemuck::cast_slice_mut;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sorts the keys of a source that are in blocks.
#[derive(Debug)]
pub(super) struct Sorter<'a, W, S, G, O> {
    input: &'a Mutex<Input<W, S>>,
    engines: &'a mut G,
    pub(super) observer: &'a mut O,
    unique: bool,
    /// Memory for indices, of 4 or 8 bytes, and for payloads in their order.
    permutation: Vec<u64>,
    gathered: Vec<u64>,
}

/// Keys of a block, and where they come from.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// Their slots.
    pub(super) slots: Range<usize>,
    /// The index of the first of them in the source.
    pub(super) index: u64,
}

/// Locks the source. Nothing is left half-done where another thread has panicked.
pub(super) fn lock<I>(input: &Mutex<I>) -> MutexGuard<'_, I> {
    input.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a, W, S, E, G, O> Sorter<'a, W, S, G, O>
where
    W: Word,
    S: Source<W, Error = E>,
    G: Engines<E>,
    O: Observer,
{
    pub(super) fn new(input: &'a Mutex<Input<W, S>>, engines: &'a mut G, observer: &'a mut O, unique: bool) -> Self {
        Self { input, engines, observer, unique, permutation: Vec::new(), gathered: Vec::new() }
    }

    /// Sorts a chunk with its payloads. Returns how many keys are left at its front, which are fewer only where just the
    /// first of equal keys are wanted.
    pub(super) fn sort(&mut self, block: &mut Block, chunk: &Chunk) -> Result<usize, Error<E>> {
        let count = chunk.slots.len();
        let timing = match block.width() {
            0 => self.run(block, chunk, |engine, keys, _| engine.sort(keys)),
            4 => self.run(block, chunk, sort_pairs::<W, u32>),
            8 => self.run(block, chunk, sort_pairs::<W, u64>),
            _ if u32::try_from(count).is_ok() => self.sort_by_index::<u32>(block, chunk),
            _ => self.sort_by_index::<u64>(block, chunk),
        }?;
        self.observer.add(timing);
        if !self.unique {
            return Ok(count);
        }
        Ok(self.observer.time(Phase::Compute, || block.unique::<W>(chunk.slots.clone(), None)))
    }

    /// Runs `sort` on the keys and payloads of a chunk.
    fn run(
        &mut self,
        block: &mut Block,
        chunk: &Chunk,
        sort: impl Fn(&Engine, &mut [W], &mut [u8]) -> Result<Timing, crate::Error>,
    ) -> Result<Timing, Error<E>> {
        let sort = |engine: &Engine, block: &mut Block| {
            let (keys, payload) = block.parts_mut(chunk.slots.clone());
            Ok(sort(engine, keys, payload)?)
        };
        let input = self.input;
        Ok(self.engines.run(block, sort, |block| restore(input, block, chunk))?)
    }

    /// Sorts keys and their indices, and gathers the payloads in that order.
    fn sort_by_index<I: Index>(&mut self, block: &mut Block, chunk: &Chunk) -> Result<Timing, Error<E>> {
        let (width, count) = (block.width(), chunk.slots.len());
        reserve(&mut self.permutation, count, size_of::<I>())?;
        reserve(&mut self.gathered, count, width)?;
        let permutation: &mut [I] = &mut cast_slice_mut(&mut self.permutation)[..count];
        self.observer.time(Phase::Compute, || fill_identity(permutation));

        let mut data = (&mut *block, permutation);
        let sort = |engine: &Engine, (block, permutation): &mut (&mut Block, &mut [I])| {
            let (keys, _) = block.parts_mut::<W>(chunk.slots.clone());
            Ok(engine.sort_pairs(SortOrder::Ascending, keys, permutation)?)
        };
        let input = self.input;
        let timing = self.engines.run(&mut data, sort, |(block, permutation)| {
            fill_identity(permutation);
            restore(input, block, chunk)
        })?;

        let (_, permutation) = data;
        let spare = &mut self.gathered;
        self.observer.time(Phase::Compute, || {
            let gathered = &mut cast_slice_mut(spare)[..count * width];
            gather(width, &[block.parts::<W>(chunk.slots.clone()).1], permutation, gathered);
            if count == block.len() {
                block.swap_payload(spare);
            } else {
                block.parts_mut::<W>(chunk.slots.clone()).1.copy_from_slice(gathered);
            }
        });
        Ok(timing)
    }
}

/// Makes `memory` large enough for `count` values of `width` bytes, which are lost if it was not.
fn reserve(memory: &mut Vec<u64>, count: usize, width: usize) -> Result<(), crate::Error> {
    if size_of_val(&memory[..]) < count * width {
        *memory = Vec::new();
        *memory = zeroed_bytes(count, width)?;
    }
    Ok(())
}

fn sort_pairs<W: Word, V: bytemuck::Pod + Send + Sync>(
    engine: &Engine,
    keys: &mut [W],
    payload: &mut [u8],
) -> Result<Timing, crate::Error> {
    engine.sort_pairs::<W, V>(SortOrder::Ascending, keys, cast_slice_mut(payload))
}

/// Reads a chunk again, if that is possible.
fn restore<W: Word, S: Source<W>>(
    input: &Mutex<Input<W, S>>,
    block: &mut Block,
    chunk: &Chunk,
) -> Result<bool, S::Error> {
    lock(input).read_again(chunk.index, block, chunk.slots.clone())
}
