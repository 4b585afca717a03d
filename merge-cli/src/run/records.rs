//! A sort of records: in memory by the first words of their keys, or in chunks with the records as the payload of the
//! first 16 bytes of their keys.

use super::checksum::Checksum;
use super::engine::{ChosenEngine, failure, work_of};
use super::finish;
use super::spilled::{self, KeySource, PayloadSource, add_records};
use super::verify::{Expected, verify_items};
use crate::coding::Word;
use crate::file::blocks::Blocks;
use crate::file::{Concatenation, Input, Output, Writer};
use crate::job::{Resources, SortRecords};
use crate::os::{memory, threads};
use crate::plan::{Destination, SortPlan};
use crate::records::{Key, Layout};
use crate::say::error::{Failure, Result, name};
use crate::say::stats::{Phase, Stats};
use crate::spec::KeyType;
use merge_host::external::{Engines, Shape, Ties};
use merge_host::records::{Sorter, gather};
use merge_host::{Index, Work, parallel, permutation};

/// Bytes of records that a thread reads at once, few enough to stay in its cache.
const BLOCK: usize = 1 << 20;

/// Sorts records.
pub fn sort(job: SortRecords) -> Result<()> {
    let SortRecords { input, layout, order, output, verify, resources, mut stats } = job;
    let key = layout.key(order);
    if verify {
        output.check_can_be_read_back("--output")?;
    }
    let length = input.length();
    for file in input.inputs() {
        file.length().map(|length| layout.count(file.path(), length)).transpose()?;
    }
    output.check_space(length.unwrap_or(0).into())?;
    threads::start(resources.threads, threads::useful(length))?;
    let checksum = verify.then(Checksum::default);
    let sorting = Sorting { key, layout, resources, checksum };
    let (writer, count) = sorting.sort(input, length, output, &mut stats)?;
    if let Some(checksum) = &sorting.checksum {
        stats.time(Phase::Check, || sorting.verify(&writer, count, checksum.get()))?;
    }
    finish([writer], stats)
}

/// How records are sorted.
struct Sorting {
    key: Key,
    layout: Layout,
    resources: Resources,
    /// The checksum of all records that are read, if the output will be verified.
    checksum: Option<Checksum>,
}

impl Sorting {
    /// Sorts the records of `input`, which has `length` bytes, if known. Returns the output and the number of records.
    fn sort(
        &self,
        mut input: Concatenation,
        length: Option<u64>,
        mut output: Output,
        stats: &mut Stats,
    ) -> Result<(Writer, u64)> {
        let is_short = self.key.size() <= size_of::<u32>();
        let (word, key_type) =
            if is_short { (size_of::<u32>(), KeyType::U32) } else { (size_of::<u64>(), KeyType::U64) };
        let size = self.layout.size;
        let count = length.map(|length| length / size as u64);
        let destination = destination(&output, length);
        let files = if count.is_some() { 0 } else { destination.in_memory() };
        let budget = memory::budget(self.resources.memory, files)?;
        let fits = |count: u64| in_memory(word, size, count) + u128::from(destination.in_memory()) <= budget.into();
        let Some(length) = length.filter(|length| fits(length / size as u64)) else {
            return self.spilled(input, count, output, stats);
        };
        // The words of records, with their indices.
        let work = work_of(count, |words| Work::sort::<u64>(words).with_values(size_of::<u64>()));
        let mut engine =
            ChosenEngine::start_sort(self.resources.processors.clone(), self.resources.sort_kernel, key_type, work)?;
        output.expect(count);
        let written = if is_short {
            self.in_memory::<u32>(&mut input, length, &mut engine, output, stats)?
        } else {
            self.in_memory::<u64>(&mut input, length, &mut engine, output, stats)?
        };
        stats.engine = engine.name()?;
        Ok(written)
    }

    /// Sorts records of `length` bytes, which fit in memory, by words of type `W`. Returns the output and the number of
    /// records.
    fn in_memory<W: Word>(
        &self,
        input: &mut Concatenation,
        length: u64,
        engine: &mut ChosenEngine,
        output: Output,
        stats: &mut Stats,
    ) -> Result<(Writer, u64)> {
        // Pages of a file in memory are requested while records are read.
        let mut writer = output.begin()?;
        let blocks = writer.blocks(length)?;
        let (records, mut words) = stats.time(Phase::Read, || self.read::<W>(input, length))?;
        stats.keys = words.len() as u64;
        if let Some(checksum) = &self.checksum {
            add_records(checksum, &records, self.layout.size);
        }
        // Indices of 4 bytes where they suffice.
        if u32::try_from(words.len()).is_ok() {
            self.write_sorted::<W, u32>(engine, &records, &mut words, blocks, stats)?;
        } else {
            self.write_sorted::<W, u64>(engine, &records, &mut words, blocks, stats)?;
        }
        Ok((writer, words.len() as u64))
    }

    /// All records, and the first words of their keys.
    fn read<W: Word>(&self, input: &mut Concatenation, length: u64) -> Result<(Vec<u8>, Vec<W>)> {
        let (size, block) = (self.layout.size, (BLOCK / self.layout.size).max(1));
        let first_words = |records: &[u8], words: &mut [W]| Sorter::first_words(&self.key, size, records, words);
        // A pipe is read in order, even if a header gives its length.
        if !input.takes_any_order() {
            let records = input.read_all::<u8>()?;
            let count = self.layout.count(input.path(), records.len() as u64)?;
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
        let size = self.layout.size;
        let mut order = memory::zeroed::<I>(words.len() as u64, "the records' indices")?;
        memory::prefer_large_pages(&mut order);
        stats.time(Phase::Compute, || permutation::fill_identity(&mut order));
        let sorter = Sorter { records, size, key: &self.key, kernel: self.resources.sort_kernel };
        sorter.sort(engine, words, &mut order, stats).map_err(failure)?;
        stats.time(Phase::Write, || blocks.write(|begin, block| gather(records, size, &order, begin, block)))
    }

    /// Sorts records in chunks. Up to 16 bytes of the key of a record are encoded as one number.
    fn spilled(
        &self,
        input: Concatenation,
        count: Option<u64>,
        output: Output,
        stats: &mut Stats,
    ) -> Result<(Writer, u64)> {
        if self.key.size() <= size_of::<u64>() {
            self.spilled_by::<u64>(KeyType::U64, input, count, output, stats)
        } else {
            self.spilled_by::<u128>(KeyType::U128, input, count, output, stats)
        }
    }

    fn spilled_by<W: Word>(
        &self,
        key_type: KeyType,
        input: Concatenation,
        count: Option<u64>,
        mut output: Output,
        stats: &mut Stats,
    ) -> Result<(Writer, u64)> {
        let width = self.layout.size;
        let work = work_of(count, |keys| Work::sort::<W>(keys).with_values(width));
        let mut engine =
            ChosenEngine::start_sort(self.resources.processors.clone(), self.resources.sort_kernel, key_type, work)?;
        let destination = destination(&output, input.length());
        let mut device = || engine.device_memory().map_err(failure);
        let shape = Shape { key: W::SIZE, width };
        let plan = SortPlan::new(shape, count, destination, &self.resources, &mut device, input.path())?;
        let records = PayloadSource::Records(self.layout.clone(), self.key.clone());
        let source = KeySource::new(input, records, count, self.checksum.clone());
        let options = plan.options(width, false, &self.resources);
        let mut writer = None;
        let opened = &mut writer;
        let begin = |count| {
            output.expect(count);
            let writer = opened.insert(output.begin()?);
            Ok(Ties::new(&self.key, &options, |records| writer.write::<u8>(records), spilled::failure))
        };
        let of_sort = Ties::<Failure>::sort_options(&self.key, &options);
        let (target, summary) = spilled::sort::<W, _>(&of_sort, source, begin, &mut engine, stats)?;
        stats.time(Phase::Write, || target.finish())?;
        stats.keys = summary.keys_read;
        stats.engine = engine.name()?;
        Ok((writer.expect("the sort has opened the output"), summary.keys_written))
    }

    /// An error unless `count` records were written in order, with the checksum `expected`.
    fn verify(&self, writer: &Writer, count: u64, checksum: u64) -> Result<()> {
        let size = self.layout.size;
        let expected = Expected { count, checksum, unique: false, width: 0 };
        let first = |records: &[u8]| self.key.first_disorder(size, records, false);
        let show = |_: &Input, _, _: [&[u8]; 2]| ": its key is less than the one before it".to_owned();
        let add = |checksum: &Checksum, records: &[u8], _: &[u8], _| add_records(checksum, records, size);
        verify_items(size, writer, None, expected, first, show, add)
    }
}

/// The output of records of `length` bytes in all, if known.
fn destination(output: &Output, length: Option<u64>) -> Destination<'_> {
    let bytes = length.map(|length| [length.into(), 0]);
    Destination::new(output, None, bytes.unwrap_or_default()).or_up_to(bytes)
}

/// Bytes of memory to sort `count` records of `size` bytes by words of `word` bytes: records, words and indices, and
/// scratch memory for the words and indices.
fn in_memory(word: usize, size: usize, count: u64) -> u128 {
    let index = if count > u32::MAX.into() { size_of::<u64>() } else { size_of::<u32>() };
    u128::from(count) * (size + 2 * (word + index)) as u128
}
