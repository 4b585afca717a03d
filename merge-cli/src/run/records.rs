//! A sort of records in memory, by the first words of their keys. No record is moved before it is written.

use super::checksum::Checksum;
use super::engine::{ChosenEngine, failure, work_of};
use super::spilled::add_records;
use crate::coding::Word;
use crate::file::blocks::Blocks;
use crate::file::{Concatenation, Output, Writer};
use crate::job::Resources;
use crate::os::memory;
use crate::records::Records;
use crate::say::error::{Result, name};
use crate::say::stats::{Phase, Stats};
use crate::spec::KeyType;
use merge_host::records::{Sorter, gather};
use merge_host::{Index, Work, parallel, permutation};

/// A sort of records in memory.
#[derive(Debug)]
pub struct Sorting<'a> {
    pub records: &'a Records,
    pub resources: &'a Resources,
    /// The checksum of all records that are read, if the output will be verified.
    pub checksum: Option<&'a Checksum>,
}

impl Sorting<'_> {
    /// Bytes of memory to sort records of `length` bytes.
    pub fn in_memory(&self, length: u64) -> u128 {
        let size = self.records.layout.size;
        in_memory(self.word_type().size(), size, length / size as u64)
    }

    /// The type of the first words.
    fn word_type(&self) -> KeyType {
        if self.records.key.size() <= size_of::<u32>() { KeyType::U32 } else { KeyType::U64 }
    }

    /// Sorts the records of `input`, which has `length` bytes.
    pub fn sort(&self, mut input: Concatenation, length: u64, mut output: Output, stats: &mut Stats) -> Result<Writer> {
        let count = length / self.records.layout.size as u64;
        // The words of records, with their indices.
        let work = work_of(Some(count), |words| Work::sort::<u64>(words).with_values(size_of::<u64>()));
        let Resources { processors, sort_kernel, .. } = self.resources;
        let mut engine = ChosenEngine::start_sort(processors.clone(), *sort_kernel, self.word_type(), work)?;
        output.expect(count);
        let writer = match self.word_type() {
            KeyType::U32 => self.sort_by::<u32>(&mut input, length, &mut engine, output, stats)?,
            _ => self.sort_by::<u64>(&mut input, length, &mut engine, output, stats)?,
        };
        stats.engine = engine.name()?;
        Ok(writer)
    }

    /// Sorts records by words of type `W`.
    fn sort_by<W: Word>(
        &self,
        input: &mut Concatenation,
        length: u64,
        engine: &mut ChosenEngine,
        output: Output,
        stats: &mut Stats,
    ) -> Result<Writer> {
        // Pages of a file in memory are requested while records are read.
        let mut writer = output.begin()?;
        let blocks = writer.blocks(length)?;
        let (records, mut words) = stats.time(Phase::Read, || self.read::<W>(input, length))?;
        stats.keys = words.len() as u64;
        if let Some(checksum) = self.checksum {
            add_records(checksum, &records, self.records.layout.size);
        }
        // Indices of 4 bytes where they suffice.
        if u32::try_from(words.len()).is_ok() {
            self.write_sorted::<W, u32>(engine, &records, &mut words, blocks, stats)?;
        } else {
            self.write_sorted::<W, u64>(engine, &records, &mut words, blocks, stats)?;
        }
        Ok(writer)
    }

    /// All records, and the first words of their keys.
    fn read<W: Word>(&self, input: &mut Concatenation, length: u64) -> Result<(Vec<u8>, Vec<W>)> {
        let size = self.records.layout.size;
        let block = (input.block() / size).max(1);
        let first_words =
            |records: &[u8], words: &mut [W]| Sorter::first_words(&self.records.key, size, records, words);
        // A pipe is read in order, even if a header gives its length.
        if !input.takes_any_order() {
            let records = input.read_all::<u8>()?;
            let count = self.records.layout.count(input.path(), records.len() as u64)?;
            let mut words = memory::zeroed::<W>(count, "the records' keys")?;
            let blocks = records.chunks(block * size).zip(words.chunks_mut(block));
            parallel::for_each(blocks, |(records, words)| first_words(records, words));
            return Ok((records, words));
        }
        let mut records = memory::zeroed::<u8>(length, &name(input.path()))?;
        let mut words = memory::zeroed::<W>(length / size as u64, "the records' keys")?;
        memory::prefer_large_pages(&mut records);
        memory::prefer_large_pages(&mut words);
        input.read_blocks((&mut records, size), &mut words, block, first_words)?;
        Ok((records, words))
    }

    /// Sorts the indices of the records, and writes the records in their order.
    fn write_sorted<W: Word, I: Index>(
        &self,
        engine: &mut ChosenEngine,
        records: &[u8],
        words: &mut [W],
        blocks: Blocks,
        stats: &mut Stats,
    ) -> Result<()> {
        let size = self.records.layout.size;
        let mut order = memory::zeroed::<I>(words.len() as u64, "the records' indices")?;
        memory::prefer_large_pages(&mut order);
        stats.time(Phase::Compute, || permutation::fill_identity(&mut order));
        let sorter = Sorter { records, size, key: &self.records.key, kernel: self.resources.sort_kernel };
        sorter.sort(engine, words, &mut order, stats).map_err(failure)?;
        stats.time(Phase::Write, || blocks.write(|begin, block| gather(records, size, &order, begin, block)))
    }
}

/// Bytes of memory to sort `count` records of `size` bytes by words of `word` bytes: records, words and indices, and
/// scratch memory for the words and indices.
fn in_memory(word: usize, size: usize, count: u64) -> u128 {
    let index = if count > u32::MAX.into() { size_of::<u64>() } else { size_of::<u32>() };
    u128::from(count) * (size + 2 * (word + index)) as u128
}
