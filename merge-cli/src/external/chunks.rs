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
use crate::stats::{Phase, Stats};
use crate::unique::unique;
use merge_host::{Engine, SortOrder};
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
pub type KeyOf<O> = Box<dyn Fn(&[u8]) -> O + Send + Sync>;

impl<O: FileKey> Source<O> {
    /// Reads keys and what goes along to these places of `block`, as many as there are. Fewer only at the end.
    pub fn read(&mut self, block: &mut Block<O>, places: Range<usize>) -> Result<usize> {
        if let Some(key_of) = &self.key_of {
            let count = read_records(&mut self.keys, block, places, key_of)?;
            self.position += count as u64;
            return Ok(count);
        }
        let begin = places.start;
        let count = (self.coding.read)(&mut self.keys, &mut block.keys[places])?;
        self.prepare(block, begin..begin + count)?;
        Ok(count)
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

/// Reads records to these places of a block, as its values, and makes their keys.
fn read_records<O: FileKey>(
    input: &mut Input,
    block: &mut Block<O>,
    places: Range<usize>,
    key_of: &KeyOf<O>,
) -> Result<usize> {
    let size = block.width;
    let (keys, records) = block.parts(places);
    let bytes = input.read::<u8>(records)?;
    if !bytes.is_multiple_of(size) {
        let expected = format!("a multiple of {size}, the size of a record");
        return Err(Failure::file(
            input.path(),
            format!("ends after {} bytes of a record, expected {expected}", bytes % size),
        ));
    }
    let made = keys.par_iter_mut().zip(records[..bytes].par_chunks(size)).with_min_len(PIECE);
    made.for_each(|(key, record)| *key = key_of(record));
    Ok(bytes / size)
}

/// Sorts blocks, ascending.
#[derive(Debug)]
pub struct Sorter<'a> {
    pub engine: &'a mut ChosenEngine,
    pub unique: bool,
    /// Scratch memory for values that are moved by their places.
    places: Vec<u32>,
    spare: Vec<u64>,
}

impl<'a> Sorter<'a> {
    pub fn new(engine: &'a mut ChosenEngine, unique: bool) -> Self {
        Self { engine, unique, places: Vec::new(), spare: Vec::new() }
    }

    /// Sorts the first `count` keys of a block, with what goes along, and gives how many are left of them, which is fewer
    /// only where just the first of equal keys is wanted.
    pub fn sort<O: FileKey>(&mut self, block: &mut Block<O>, count: usize, stats: &mut Stats) -> Result<usize> {
        let width = block.width;
        let (keys, values) = block.parts(0..count);
        let timing = match width {
            0 => {
                let sort = |engine: &Engine, keys: &mut &mut [O]| engine.sort_with(SortOrder::Ascending, keys);
                self.engine.run(&mut { keys }, sort, |_| Ok(false))?
            }
            4 => self.sort_pairs::<O, u32>(keys, bytemuck::cast_slice_mut(values))?,
            8 => self.sort_pairs::<O, u64>(keys, bytemuck::cast_slice_mut(values))?,
            _ => self.sort_by_place(block, count)?,
        };
        stats.add(timing);
        let (keys, values) = block.parts(0..count);
        Ok(if self.unique { stats.time(Phase::Compute, || unique(keys, values, width, None)) } else { count })
    }

    fn sort_pairs<O: FileKey, V: bytemuck::Pod + Send + Sync>(
        &mut self,
        keys: &mut [O],
        values: &mut [V],
    ) -> Result<merge_host::Timing> {
        let sort = |engine: &Engine, pairs: &mut (&mut [O], &mut [V])| {
            engine.sort_pairs(SortOrder::Ascending, pairs.0, pairs.1)
        };
        self.engine.run(&mut (keys, values), sort, |_| Ok(false))
    }

    fn sort_by_place<O: FileKey>(&mut self, block: &mut Block<O>, count: usize) -> Result<merge_host::Timing> {
        let room = block.keys.len();
        if self.places.len() < room {
            self.places = memory::zeroed(room as u64, "the values' places")?;
            self.spare = memory::zeroed((room * block.width).div_ceil(8) as u64, "the values in their order")?;
        }
        let mut places = std::mem::take(&mut self.places);
        number(&mut places[..count]);
        let timing = self.sort_pairs(block.parts(0..count).0, &mut places[..count])?;
        let spare: &mut [u8] = bytemuck::cast_slice_mut(&mut self.spare);
        let bytes = count * block.width;
        gather(block.width, &[block.values(0..count)], &places[..count], &mut spare[..bytes]);
        block.swap_values(&mut self.spare);
        self.places = places;
        Ok(timing)
    }
}

/// Reads all of the input, sorts it in chunks of `chunk` keys and spills each as a run.
pub fn make_runs<O: FileKey>(
    source: &mut Source<O>,
    sorter: &mut Sorter,
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
                let count = source.read(&mut block, 0..chunk)?;
                // The other side is closed where something else failed.
                if count == 0 || read.send((block, count)).is_err() || count < chunk {
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
            while let Ok((mut block, count)) = stats.time(Phase::Read, || unsorted.recv()) {
                let count = sorter.sort(&mut block, count, stats)?;
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
