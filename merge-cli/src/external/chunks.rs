//! From the input to sorted runs.
//!
//! Three threads, each with a chunk of its own, and chunks go round:
//!
//! ```text
//!   read ──► sort ──► write
//!     ▲                 │
//!     └── empty chunks ─┘
//! ```

use super::block::{Along, Block};
use super::coding::Coding;
use super::joined;
use super::run::SpilledRun;
use super::sink::{RunWriter, Target};
use super::sizes::CHUNKS;
use super::spill::Spill;
use crate::commands::values::{gather, number};
use crate::engine::ChosenEngine;
use crate::error::{Failure, Result};
use crate::input::Input;
use crate::key_type::FileKey;
use crate::memory;
use crate::records;
use crate::stats::{Phase, Stats};
use crate::unique::unique;
use merge_host::{Engine, SortOrder, Timing};
use rayon::prelude::*;
use std::fmt::{self, Debug, Formatter};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{channel, sync_channel};

/// Records that a thread makes keys of at once.
const PIECE: usize = 1 << 12;

/// An input, part by part.
pub struct Source<O> {
    pub keys: Input,
    /// The values' file, for [`Along::Values`]. It has a value for each key.
    pub values: Option<Input>,
    pub along: Along,
    pub coding: Coding<O>,
    /// What makes keys of records, where `keys` is a file of records, which are the values.
    pub key_of: Option<KeyOf<O>>,
    /// Keys read so far.
    pub position: u64,
}

/// The key of a record.
pub type KeyOf<O> = Arc<dyn Fn(&[u8]) -> O + Send + Sync>;

impl<O: FileKey> Source<O> {
    /// Reads keys and what goes along to these places of `block`, as many as there are. Fewer only at the end.
    pub fn read(&mut self, block: &mut Block<O>, places: Range<usize>) -> Result<usize> {
        if let Some(key_of) = &self.key_of {
            let count = read_records(&mut self.keys, self.position, block, places, key_of)?;
            self.position += count as u64;
            return Ok(count);
        }
        let begin = places.start;
        let count = (self.coding.read)(&mut self.keys, &mut block.keys[places])?;
        self.prepare(block, begin..begin + count)?;
        Ok(count)
    }

    /// The same input once more, if it can be read twice.
    pub fn again(&self) -> Result<Option<Self>> {
        let values = self.values.as_ref().map(Input::again).transpose()?;
        Ok(match (self.keys.again()?, values) {
            (None, _) | (_, Some(None)) => None,
            (Some(keys), values) => {
                let (key_of, values) = (self.key_of.clone(), values.flatten());
                Some(Self { keys, values, along: self.along, coding: self.coding, key_of, position: 0 })
            }
        })
    }

    /// Reads the keys from key `index` on, as [`read`](Self::read). The input is one that can be read twice.
    pub fn read_from(&mut self, index: u64, block: &mut Block<O>, places: Range<usize>) -> Result<usize> {
        let width = block.width as u64;
        if self.key_of.is_some() {
            self.keys.seek::<u8>(index * width);
        } else {
            self.keys.seek::<O>(index);
        }
        if let Some(values) = &mut self.values {
            values.seek::<u8>(index * width);
        }
        self.position = index;
        self.read(block, places)
    }

    /// Makes keys read, at these places of a block, what is to be sorted.
    pub fn prepare(&mut self, block: &mut Block<O>, places: Range<usize>) -> Result<()> {
        let count = places.len();
        let (keys, values) = block.parts(places);
        (self.coding.encode)(keys);
        if self.along == Along::Places {
            let begin = self.position;
            let places = bytemuck::cast_slice_mut::<u8, u64>(values);
            places.par_iter_mut().enumerate().for_each(|(i, place)| *place = begin + i as u64);
        } else if let Along::Origin(origin) = self.along {
            values.fill(origin);
        } else if let Some(input) = &mut self.values
            && input.read::<u8>(values)? < values.len()
        {
            return Err(Failure::file(input.path(), "has fewer values than there are keys"));
        }
        self.position += count as u64;
        Ok(())
    }
}

impl<O> Debug for Source<O> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("keys", &self.keys).field("position", &self.position).finish_non_exhaustive()
    }
}

/// Reads records, which come after `before` others, to these places of a block, as its values, and makes their keys.
fn read_records<O: FileKey>(
    input: &mut Input,
    before: u64,
    block: &mut Block<O>,
    places: Range<usize>,
    key_of: &KeyOf<O>,
) -> Result<usize> {
    let size = block.width;
    let (keys, values) = block.parts(places);
    let bytes = input.read::<u8>(values)?;
    let count = records::count(input, before * size as u64 + bytes as u64, size)? - before;
    let made = keys.par_iter_mut().zip(values[..bytes].par_chunks(size)).with_min_len(PIECE);
    made.for_each(|(key, record)| *key = key_of(record));
    Ok(count as usize)
}

/// Sorts blocks, ascending.
#[derive(Debug)]
pub struct Sorter<'a, O> {
    pub engine: &'a mut ChosenEngine,
    pub unique: bool,
    /// What is read again where a GPU has failed and left anything behind.
    again: Option<Source<O>>,
    /// Scratch memory for values that are moved by their places.
    places: Vec<u32>,
    spare: Vec<u64>,
}

/// The first keys of a block, and where they come from.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    /// How many there are.
    pub count: usize,
    /// How many come before them in the input.
    pub before: u64,
}

impl<'a, O: FileKey> Sorter<'a, O> {
    /// Sorts blocks of the keys that `source` gives.
    pub fn new(engine: &'a mut ChosenEngine, unique: bool, source: &Source<O>) -> Result<Self> {
        Ok(Self { engine, unique, again: source.again()?, places: Vec::new(), spare: Vec::new() })
    }

    /// Sorts a chunk, with what goes along, and gives how many keys are left of it, which is fewer only where just the
    /// first of equal keys is wanted.
    pub fn sort(&mut self, block: &mut Block<O>, chunk: Chunk, stats: &mut Stats) -> Result<usize> {
        let (width, count) = (block.width, chunk.count);
        let timing = match width {
            0 => {
                let sort = |engine: &Engine, block: &mut Block<O>| {
                    engine.sort_with(SortOrder::Ascending, block.parts(0..count).0)
                };
                self.engine.run(block, sort, |block| restore(&mut self.again, block, chunk))?
            }
            4 => self.sort_pairs::<u32>(block, chunk)?,
            8 => self.sort_pairs::<u64>(block, chunk)?,
            _ => self.sort_by_place(block, chunk)?,
        };
        stats.add(timing);
        let (keys, values) = block.parts(0..count);
        Ok(if self.unique { stats.time(Phase::Compute, || unique(keys, values, width, None)) } else { count })
    }

    fn sort_pairs<V: bytemuck::Pod + Send + Sync>(&mut self, block: &mut Block<O>, chunk: Chunk) -> Result<Timing> {
        let sort = |engine: &Engine, block: &mut Block<O>| {
            let (keys, values) = block.parts(0..chunk.count);
            engine.sort_pairs::<O, V>(SortOrder::Ascending, keys, bytemuck::cast_slice_mut(values))
        };
        self.engine.run(block, sort, |block| restore(&mut self.again, block, chunk))
    }

    fn sort_by_place(&mut self, block: &mut Block<O>, chunk: Chunk) -> Result<Timing> {
        let (room, count) = (block.keys.len(), chunk.count);
        if self.places.len() < room {
            self.places = memory::zeroed(room as u64, "the values' places")?;
            self.spare = memory::zeroed((room * block.width).div_ceil(8) as u64, "the values in their order")?;
        }
        let places = &mut self.places[..count];
        number(places);
        let sort = |engine: &Engine, (block, places): &mut (&mut Block<O>, &mut [u32])| {
            engine.sort_pairs(SortOrder::Ascending, block.parts(0..count).0, places)
        };
        let timing = self.engine.run(&mut (&mut *block, places), sort, |(block, places)| {
            number(places);
            restore(&mut self.again, block, chunk)
        })?;
        let spare: &mut [u8] = bytemuck::cast_slice_mut(&mut self.spare);
        let bytes = count * block.width;
        gather(block.width, &[block.values(0..count)], &self.places[..count], &mut spare[..bytes]);
        block.swap_values(&mut self.spare);
        Ok(timing)
    }
}

/// Reads a chunk again, if that is possible.
fn restore<O: FileKey>(again: &mut Option<Source<O>>, block: &mut Block<O>, chunk: Chunk) -> Result<bool> {
    let Some(source) = again else { return Ok(false) };
    Ok(source.read_from(chunk.before, block, 0..chunk.count)? == chunk.count)
}

/// Reads all of the input, sorts it in chunks of `chunk` keys and spills each as a run.
pub fn make_runs<O: FileKey>(
    source: &mut Source<O>,
    sorter: &mut Sorter<O>,
    spill: &Arc<Spill>,
    chunk: usize,
    stats: &mut Stats,
) -> Result<Vec<SpilledRun>> {
    let width = source.along.width();
    std::thread::scope(|scope| {
        let (give_back, empty) = channel();
        for _ in 0..CHUNKS {
            let _ = give_back.send(Block::<O>::new(chunk, width)?);
        }
        let (read, unsorted) = sync_channel(1);
        let (sorted, unwritten) = sync_channel::<(Block<O>, usize)>(1);
        let reader = scope.spawn(move || {
            for mut block in empty {
                let before = source.position;
                let count = source.read(&mut block, 0..chunk)?;
                // The other side is closed where something else failed.
                if count == 0 || read.send((block, Chunk { count, before })).is_err() || count < chunk {
                    break;
                }
            }
            Ok(())
        });
        let writer = scope.spawn(move || {
            let mut runs = Vec::new();
            for (mut block, count) in unwritten {
                runs.push(write_run(spill, &mut block, count)?);
                let _ = give_back.send(block);
            }
            Ok(runs)
        });
        let sorting: Result<()> = (|| {
            while let Ok((mut block, chunk)) = stats.time(Phase::Read, || unsorted.recv()) {
                let count = sorter.sort(&mut block, chunk, stats)?;
                if stats.time(Phase::Write, || sorted.send((block, count))).is_err() {
                    break;
                }
            }
            // Now the others have nothing more to wait for.
            drop((sorted, unsorted));
            Ok(())
        })();
        let runs = stats.time(Phase::Write, || joined(writer));
        joined(reader)?;
        sorting?;
        runs
    })
}

/// Spills the first `count` keys of a sorted block.
pub fn write_run<O: FileKey>(spill: &Arc<Spill>, block: &mut Block<O>, count: usize) -> Result<SpilledRun> {
    let mut run = RunWriter::begin(spill, count as u64, O::SIZE, block.width);
    let (keys, values) = block.parts(0..count);
    run.write(keys, values)?;
    Ok(run.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_chunk_that_is_read_again_is_what_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (keys, values) = (folder.path().join("keys"), folder.path().join("values"));
        fs::write(&keys, [3, 1, 4, 1, 5, 9]).unwrap();
        fs::write(&values, "aabbccddeeff").unwrap();
        let open = |path: &std::path::Path| Input::open(path).unwrap();
        let coding = Coding::of::<u8>(SortOrder::Descending);
        let key_of: KeyOf<u8> = Arc::new(|record| record[0]);
        for (along, keys, values, key_of) in [
            (Along::Nothing, &keys, None, None),
            (Along::Values(2), &keys, Some(open(&values)), None),
            (Along::Places, &keys, None, None),
            (Along::Values(2), &values, None, Some(key_of)),
        ] {
            let mut source = Source { keys: open(keys), values, along, coding, key_of, position: 0 };
            let mut again = source.again().unwrap();
            let block = || Block::<u8>::new(4, along.width()).unwrap();
            let (mut first, mut second, mut found) = (block(), block(), block());
            assert_eq!(source.read(&mut first, 0..4).unwrap(), 4);
            assert_eq!(source.read(&mut second, 0..4).unwrap(), 2);
            for (block, before, count) in [(&second, 4, 2), (&first, 0, 4), (&second, 4, 2)] {
                assert!(restore(&mut again, &mut found, Chunk { count, before }).unwrap(), "{along:?}");
                assert_eq!(found.keys[..count], block.keys[..count], "{along:?}");
                assert_eq!(found.values(0..count), block.values(0..count), "{along:?}");
            }
        }
    }
}
