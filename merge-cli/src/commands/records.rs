//! `gmerge sort` and `gmerge check` of records.

use super::records_external::Many;
use super::values::{Index, number};
use crate::args::{CheckArgs, SortArgs};
use crate::engine::{ChosenEngine, start_threads};
use crate::error::{Failure, Result, name};
use crate::input::Input;
use crate::memory;
use crate::output::{self, Blocks, Output};
use crate::records::{Key, Layout, Sorter, WordNumber, count, gather};
use crate::stats::{Phase, Stats};
use rayon::prelude::*;

/// Bytes of records that a thread reads at once, few enough to stay in its cache.
const PIECE: usize = 1 << 20;
/// Bytes of records that are checked at once, so that a file of any size can be.
const ROOM: usize = 64 << 20;
/// Of a pipe so many parts fit in the memory: one is read ahead, and copied to memory that grows.
const PARTS: u64 = 4;
/// The name of a record, where other files have a type.
const RECORD: &str = "record";

/// Sorts records.
pub fn sort(args: &SortArgs, layout: &Layout) -> Result<()> {
    let key = Key::new(layout, args.reverse);
    let short = key.words().len() == 1 && key.words()[0].size() <= size_of::<u32>();
    let work = Work { args, size: layout.size, key };
    if short { work.run::<u32>() } else { work.run::<u64>() }
}

struct Work<'a> {
    args: &'a SortArgs,
    size: usize,
    key: Key,
}

impl Work<'_> {
    /// Sorts by words that are numbers of type `W`.
    fn run<W: WordNumber>(&self) -> Result<()> {
        let args = self.args;
        let mut stats = Stats::begin_sized("sort", RECORD, self.size);
        let mut input = Input::open(&args.input)?;
        let length = input.count::<u8>()?;
        if let Some(length) = length {
            count(&input, length, self.size)?;
        }
        let output = Output::prepare(&args.output.output)?;
        output.check_space(length.unwrap_or(0).into())?;
        start_threads(args.common.parallel)?;
        let memory = memory::budget(args.memory.memory)?;
        if !self.fits::<W>(&mut input, length, memory)? {
            let (size, key) = (self.size, self.key.clone());
            return Many { args, size, key, memory, input, length, output, stats }.sort();
        }

        let mut engine = ChosenEngine::start::<W>(args.engine.engine, args.common.parallel)?;
        let mut writer = output.begin()?;
        let (records, mut words, blocks);
        if let Some(length) = length {
            blocks = writer.blocks(length)?;
            (records, words) = stats.time(Phase::Read, || self.read::<W>(&mut input, Some(length)))?;
        } else {
            (records, words) = stats.time(Phase::Read, || self.read::<W>(&mut input, None))?;
            blocks = writer.blocks(records.len() as u64)?;
        }
        stats.keys = words.len() as u64;
        // Places of half the size where they suffice.
        if u32::try_from(words.len()).is_ok() {
            self.finish::<W, u32>(&mut engine, &records, &mut words, blocks, &mut stats)?;
        } else {
            self.finish::<W, u64>(&mut engine, &records, &mut words, blocks, &mut stats)?;
        }
        stats.time(Phase::Write, || output::finish([writer]))?;
        stats.engine = engine.name()?;
        stats.print(args.common.stats);
        Ok(())
    }

    /// Whether all records can be sorted in so many bytes of memory. Of a pipe, as much is read as it takes to know.
    fn fits<W: WordNumber>(&self, input: &mut Input, length: Option<u64>, memory: u64) -> Result<bool> {
        // The words and places, and as many again to sort with.
        let needed = |length: u64| {
            let count = length / self.size as u64;
            let place = if count > u32::MAX.into() { size_of::<u64>() } else { size_of::<u32>() };
            u128::from(length) + u128::from(count) * 2 * (size_of::<W>() + place) as u128
        };
        Ok(match length {
            Some(length) => needed(length) <= memory.into(),
            None => input.has_at_most(memory / PARTS)?,
        })
    }

    /// All records, and the first words of their keys.
    fn read<W: WordNumber>(&self, input: &mut Input, length: Option<u64>) -> Result<(Vec<u8>, Vec<W>)> {
        let what = name(input.path());
        let Some(length) = length else {
            let records = input.read_all::<u8>()?;
            let mut words = memory::zeroed::<W>(count(input, records.len() as u64, self.size)?, "the records' keys")?;
            let pieces = records.par_chunks(self.piece() * self.size).zip(words.par_chunks_mut(self.piece()));
            pieces.for_each(|(records, words)| Sorter::first_words(&self.key, self.size, records, words));
            return Ok((records, words));
        };
        let count = count(input, length, self.size)?;
        let mut records = memory::zeroed::<u8>(length, &what)?;
        let mut words = memory::zeroed::<W>(count, "the records' keys")?;
        memory::prefer_large_pages(&mut records);
        memory::prefer_large_pages(&mut words);
        let along = words.par_chunks_mut(self.piece());
        input.read_pieces(&mut records, self.piece() * self.size, along, |records, words| {
            Sorter::first_words(&self.key, self.size, records, words);
        })?;
        Ok((records, words))
    }

    /// Records that a thread reads at once.
    fn piece(&self) -> usize {
        (PIECE / self.size).max(1)
    }

    /// Sorts the places of the records, and writes the records in their order.
    fn finish<W: WordNumber, I: Index>(
        &self,
        engine: &mut ChosenEngine,
        records: &[u8],
        words: &mut [W],
        blocks: Blocks,
        stats: &mut Stats,
    ) -> Result<()> {
        let mut places = memory::zeroed::<I>(words.len() as u64, "the records' places")?;
        memory::prefer_large_pages(&mut places);
        let sorter = Sorter { records, size: self.size, key: &self.key };
        stats.time(Phase::Compute, || number(&mut places));
        sorter.sort(engine, words, &mut places, stats)?;
        stats.time(Phase::Write, || {
            blocks.write(|begin, block: &mut [u8]| gather(records, self.size, &places, begin, block))
        })
    }
}

/// Tells whether records are in order.
pub fn check(args: &CheckArgs, layout: &Layout) -> Result<()> {
    let (size, key) = (layout.size, Key::new(layout, false));
    let mut stats = Stats::begin_sized("check", RECORD, size);
    let mut input = Input::open(&args.input)?;
    let length = input.count::<u8>()?;
    if let Some(length) = length {
        count(&input, length, size)?;
    }
    start_threads(args.common.parallel)?;

    // The first place is for the last record of the part before.
    let room = (ROOM / size).max(1) * size;
    let room = length.map_or(room, |length| room.min(length as usize));
    let mut bytes = memory::zeroed::<u8>((room + size) as u64, "a part of the file")?;
    let mut begin = size;
    let mut disorder = None;
    while disorder.is_none() {
        let read = stats.time(Phase::Read, || input.read(&mut bytes[size..]))?;
        let records = count(&input, stats.keys * size as u64 + read as u64, size)? - stats.keys;
        let part = &bytes[begin..size + read];
        disorder = stats.time(Phase::Check, || first_unsorted(&key, size, part)).map(|i| {
            let index = stats.keys - ((size - begin) / size) as u64 + i as u64;
            let [before, after] = [i - 1, i].map(|i| layout.show(&part[i * size..][..size]));
            Failure::disorder(&args.input, format!("disorder at index {index}: {after} after {before}"))
        });
        stats.keys += records;
        if read < room || read == 0 {
            break;
        }
        bytes.copy_within(room.., 0);
        begin = 0;
    }
    stats.print(args.common.stats);
    disorder.map_or(Ok(()), Err)
}

/// The first of these records that comes before the one before it.
fn first_unsorted(key: &Key, size: usize, records: &[u8]) -> Option<usize> {
    let record = |i: usize| &records[i * size..][..size];
    let unsorted = |i: &usize| key.compare_from(0, record(i - 1), record(*i)).is_gt();
    (1..records.len() / size).into_par_iter().with_min_len((PIECE / size).max(1)).find_first(unsorted)
}
