//! Sort of blocks in memory.

use super::Options;
use super::block::{Block, zeroed_bytes};
use super::engines::Engines;
use super::error::Error;
use super::observer::Observer;
use super::source::{Input, Source};
use crate::permutation::{fill_identity_on, gather_with};
use crate::{ElementsMut, Engine, Index, SortOptions, Timing, Word};
use bytemuck::{Pod, cast_slice_mut};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sorts blocks of keys of a source.
#[derive(Debug)]
pub(super) struct Sorter<'a, W, S, G, O> {
    input: &'a Mutex<Input<W, S>>,
    engines: &'a mut G,
    pub(super) observer: &'a mut O,
    unique: bool,
    options: SortOptions,
    /// Memory for indices of 4 or 8 bytes, and for payloads in the order of the indices.
    permutation: Vec<u64>,
    gathered: Vec<u64>,
}

/// Keys of a block, and their position in the source.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// The slots of the keys.
    pub(super) slots: Range<usize>,
    /// The index of the first key in the source.
    pub(super) index: u64,
}

/// Locks the source. A panic of another thread leaves it in a consistent state.
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
    pub(super) fn new(
        input: &'a Mutex<Input<W, S>>,
        engines: &'a mut G,
        observer: &'a mut O,
        options: &Options,
    ) -> Self {
        let (unique, options) = (options.unique, SortOptions::default().kernel(options.kernel));
        Self { input, engines, observer, unique, options, permutation: Vec::new(), gathered: Vec::new() }
    }

    /// Sorts a chunk with its payloads. Returns the number of keys at its front: all, or the number of distinct keys if
    /// only the first of equal keys is kept.
    pub(super) fn sort(&mut self, block: &mut Block, chunk: &Chunk) -> Result<usize, Error<E>> {
        match block.width() {
            0 => {
                let how = (self.unique, self.options);
                self.run(block, chunk, |engine, keys, _| sort_elements(engine, how, keys))
            }
            4 => self.sort_numbers::<u32>(block, chunk),
            8 => self.sort_numbers::<u64>(block, chunk),
            _ if u32::try_from(chunk.slots.len()).is_ok() => self.sort_by_index::<u32>(block, chunk),
            _ => self.sort_by_index::<u64>(block, chunk),
        }
    }

    /// Runs `sort` on the keys and payloads of a chunk. Returns the number of keys that `sort` keeps.
    fn run(
        &mut self,
        block: &mut Block,
        chunk: &Chunk,
        sort: impl Fn(&Engine, &mut [W], &mut [u8]) -> Result<(usize, Timing), crate::Error>,
    ) -> Result<usize, Error<E>> {
        let sort = |engine: &Engine, (block, left): &mut (&mut Block, usize)| {
            let (keys, payload) = block.parts_mut(chunk.slots.clone());
            let timing;
            (*left, timing) = sort(engine, keys, payload)?;
            Ok(timing)
        };
        let (input, mut data) = (self.input, (block, 0));
        let timing = self.engines.run(&mut data, sort, |(block, _)| restore(input, block, chunk))?;
        self.observer.add(timing);
        Ok(data.1)
    }

    /// Sorts keys with payloads that are numbers of type `V`.
    fn sort_numbers<V: Pod + Send + Sync>(&mut self, block: &mut Block, chunk: &Chunk) -> Result<usize, Error<E>> {
        let how = (self.unique, self.options);
        self.run(block, chunk, |engine, keys, payload| {
            sort_elements::<W, V>(engine, how, (keys, cast_slice_mut(payload)))
        })
    }

    /// Sorts keys and their indices, and gathers the payloads in the order of the indices.
    fn sort_by_index<I: Index>(&mut self, block: &mut Block, chunk: &Chunk) -> Result<usize, Error<E>> {
        let (width, count) = (block.width(), chunk.slots.len());
        reserve(&mut self.permutation, count, size_of::<I>())?;
        reserve(&mut self.gathered, count, width)?;
        let permutation: &mut [I] = &mut cast_slice_mut(&mut self.permutation)[..count];
        let gathered = &mut cast_slice_mut(&mut self.gathered)[..count * width];
        let (how, mut data) = ((self.unique, self.options), (&mut *block, permutation, gathered, 0));
        let sort =
            |engine: &Engine, (block, permutation, gathered, left): &mut (&mut Block, &mut [I], &mut [u8], _)| {
                let (keys, payload) = block.parts_mut::<W>(chunk.slots.clone());
                let filled = engine.compute(count, |threads| fill_identity_on(threads, permutation))?;
                let (kept, sorted) = sort_elements(engine, how, (keys, &mut **permutation))?;
                // The gather uses the memory of the sort, which would be kept for the next sort.
                crate::release_memory();
                let moved = engine.compute(payload.len() / size_of::<u64>(), |threads| {
                    let (indices, out) = (&permutation[..kept], &mut gathered[..kept * width]);
                    gather_with(width, indices, out, threads, |index| &payload[index * width..][..width]);
                })?;
                *left = kept;
                Ok(sorted.and_compute(filled + moved))
            };
        let input = self.input;
        let timing = self.engines.run(&mut data, sort, |(block, ..)| restore(input, block, chunk))?;
        self.observer.add(timing);

        let (_, _, gathered, left) = data;
        if count == block.len() {
            block.swap_payload(&mut self.gathered);
        } else {
            block.parts_mut::<W>(chunk.slots.clone()).1[..left * width].copy_from_slice(&gathered[..left * width]);
        }
        Ok(left)
    }
}

/// Makes `memory` large enough for `count` values of `width` bytes. Growing it loses the contents.
fn reserve(memory: &mut Vec<u64>, count: usize, width: usize) -> Result<(), crate::Error> {
    if size_of_val(&memory[..]) < count * width {
        *memory = Vec::new();
        *memory = zeroed_bytes(count, width)?;
    }
    Ok(())
}

/// Sorts elements, and keeps only the first of equal keys if `unique`. Returns the number of elements kept.
fn sort_elements<W: Word, V: Copy + Send + Sync>(
    engine: &Engine,
    (unique, options): (bool, SortOptions),
    elements: impl ElementsMut<W, V>,
) -> Result<(usize, Timing), crate::Error> {
    if unique {
        return engine.sort_unique(options, elements);
    }
    let len = elements.len();
    Ok((len, engine.sort_with(options, elements)?))
}

/// Reads a chunk again. Returns `false` if that is not possible.
fn restore<W: Word, S: Source<W>>(
    input: &Mutex<Input<W, S>>,
    block: &mut Block,
    chunk: &Chunk,
) -> Result<bool, S::Error> {
    lock(input).read_again(chunk.index, block, chunk.slots.clone())
}
