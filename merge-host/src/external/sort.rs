//! Sort of a source in memory or in runs.

use super::block::Block;
use super::chunks::{make_runs, write_run};
use super::engines::Engines;
use super::error::Error;
use super::observer::{Observer, Phase};
use super::passes::Merger;
use super::run::{Run, SpilledRun};
use super::shape::Shape;
use super::sorter::{Chunk, Sorter, lock};
use super::source::{Begin, Input, Source};
use super::spill::Spills;
use super::threads::Helpers;
use super::{Options, Summary};
use crate::Word;
use crate::cpu::memory::{collected, push};
use std::sync::Mutex;

/// A sort of at most this many bytes fits every GPU that has kernels, so the engine is not asked. A GPU takes a while
/// to start, and keys are read meanwhile.
const FITS_EVERY_GPU: u128 = 4 << 30;
/// The least number of keys of a block that the system must provide memory for.
const MIN_BLOCK: usize = 1 << 16;

/// A sort of a source.
pub(super) struct Sort<'a, W, S, G, O> {
    options: &'a Options,
    shape: Shape,
    input: Mutex<Input<W, S>>,
    engines: &'a mut G,
    observer: &'a mut O,
}

impl<'a, W, S, E, G, O> Sort<'a, W, S, G, O>
where
    W: Word,
    S: Source<W, Error = E>,
    E: Send,
    G: Engines<E>,
    O: Observer,
{
    pub(super) fn new(options: &'a Options, source: S, engines: &'a mut G, observer: &'a mut O) -> Self {
        Self { options, shape: options.shape::<W>(), input: Mutex::new(Input::new(source)), engines, observer }
    }

    /// Sorts all keys to the target that `begin` opens.
    pub(super) fn run(mut self, begin: Begin<W, E>) -> Result<Summary, Error<E>> {
        let first = self.read_first()?;
        if lock(&self.input).left() == 0 && self.fits_engine(first.len() as u64)? {
            self.in_memory(first, begin)
        } else {
            self.in_runs(first, begin)
        }
    }

    /// Reads all keys if they can be sorted in memory. If the source does not know its length, reads up to the number
    /// of keys that can. If the source knows that it has too many keys, reads none.
    fn read_first(&mut self) -> Result<Block, Error<E>> {
        let len = lock(&self.input).len();
        let mut block = match len {
            Some(len) if self.fits_memory(len) && self.fits_engine(len)? => Block::new(len as usize, self.shape)?,
            Some(_) => Block::new(0, self.shape)?,
            None => largest_block(self.shape.most_in_memory(self.options.memory), self.shape)?,
        };
        let (input, slots) = (&self.input, 0..block.len());
        let count = self.observer.time(Phase::Read, || lock(input).read(&mut block, slots)).map_err(Error::Other)?;
        block.truncate(count);
        Ok(block)
    }

    fn fits_memory(&self, count: u64) -> bool {
        self.shape.in_memory(count) <= self.options.memory.into()
    }

    /// Whether the engine has memory for `count` keys. They fit in the host's memory.
    fn fits_engine(&mut self, count: u64) -> Result<bool, Error<E>> {
        if self.shape.in_memory(count) <= FITS_EVERY_GPU {
            return Ok(true);
        }
        Ok(self.engines.device_memory()?.is_none_or(|bytes| count <= self.shape.most_on_gpu(bytes)))
    }

    /// Sorts the keys of `block`, which are all keys.
    fn in_memory(self, mut block: Block, begin: Begin<W, E>) -> Result<Summary, Error<E>> {
        let Self { options, input, engines, observer, .. } = self;
        let keys_read = block.len();
        let mut sorter = Sorter::new(&input, engines, observer, options);
        let count = sorter.sort(&mut block, &Chunk { slots: 0..keys_read, index: 0 })?;
        let target = begin().map_err(Error::Other)?;
        if count > 0 {
            let (keys, payload) = block.parts_mut(0..count);
            observer.time(Phase::Write, || target.write(keys, payload)).map_err(Error::Other)?;
        }
        Ok(Summary { keys_read: keys_read as u64, keys_written: count as u64, runs: 0 })
    }

    /// Sorts the keys of `first` and the keys left in the source to runs, and merges the runs.
    fn in_runs(self, first: Block, begin: Begin<W, E>) -> Result<Summary, Error<E>> {
        let Self { options, shape, input, engines, observer } = self;
        let fan_in = shape.fan_in(options.memory, options.fan_in)?;
        let helpers = Helpers::of(engines.cpu()?)?;
        let device = engines.device_memory()?;
        let chunk = shape.chunk(options.memory, device)?;
        let spills = Spills::create(&options.folders)?;

        let most = device.map_or(usize::MAX, |bytes| shape.most_on_gpu(bytes) as usize);
        let sorter = Sorter::new(&input, engines, observer, options);
        let mut runs = spill_block(sorter, first, most, &spills, &helpers)?;
        if lock(&input).left() > 0 {
            let mut sorter = Sorter::new(&input, engines, observer, options);
            runs.extend(make_runs(&input, &mut sorter, &spills, &helpers, (chunk, shape))?);
        }
        let summary = Summary { keys_read: lock(&input).position(), keys_written: 0, runs: runs.len() as u64 };
        drop(input);
        // The merge takes all of the memory, so the kept scratch memory of sorts is freed.
        crate::release_memory();

        let runs: Vec<Run<W, S>> = collected(runs.into_iter().map(Run::Spilled))?;
        let merger = Merger { options, engine: engines.cpu()?, helpers, observer, spills: Some(spills), summary };
        merger.merge(runs, fan_in, begin)
    }
}

/// Sorts the keys of a block, at most `most` at once, and spills them as runs. Drops the sorter and the block.
fn spill_block<W, S, E, G, O>(
    mut sorter: Sorter<W, S, G, O>,
    mut block: Block,
    most: usize,
    spills: &Spills,
    helpers: &Helpers,
) -> Result<Vec<SpilledRun>, Error<E>>
where
    W: Word,
    S: Source<W, Error = E>,
    E: Send,
    G: Engines<E>,
    O: Observer,
{
    let mut runs = Vec::new();
    for begin in (0..block.len()).step_by(most) {
        let chunk = Chunk { slots: begin..block.len().min(begin.saturating_add(most)), index: begin as u64 };
        let count = sorter.sort(&mut block, &chunk)?;
        let write = || write_run::<W, E>(spills, &block, begin..begin + count);
        let run = sorter.observer.time(Phase::Write, || helpers.run(write))?;
        push(&mut runs, run)?;
    }
    Ok(runs)
}

/// A block of `count` slots. While the system does not provide the memory, a number above `MIN_BLOCK` is halved.
fn largest_block(count: u64, shape: Shape) -> Result<Block, crate::Error> {
    let mut count = usize::try_from(count).unwrap_or(usize::MAX);
    loop {
        match Block::new(count, shape) {
            Err(_) if count > MIN_BLOCK => count /= 2,
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_the_system_has_no_memory_for_is_smaller() {
        let block = largest_block(u64::MAX, Shape { key: 8, width: 100 }).unwrap();
        assert!(block.len() >= MIN_BLOCK);
        assert_eq!(largest_block(1000, Shape { key: 1, width: 3 }).unwrap().len(), 1000);
        assert!(largest_block(1000, Shape { key: 1, width: usize::MAX }).is_err());
    }
}
