//! A sort of keys alone, of keys with values, or of the indices of keys.
//!
//! ```text
//!   keys alone that fit, from files to a file   read by all threads where the engine sorts, and written from there
//!   indices of keys that fit                    argsort
//!   everything else                             the library's external sort, which spills nothing if all fits
//! ```

use super::checksum::Checksum;
use super::engine::{ChosenEngine, failure, work_of};
use super::finish;
use super::spilled::{self, BufferedSource, IndexOutput, KeySource, PayloadSource, Written, write_indices};
use super::verify::{Expected, verify};
use crate::coding::Word;
use crate::file::values::{self, known_width};
use crate::file::{Concatenation, Output, Outputs, Writers};
use crate::job::{IndexLimit, Payload, Resources, Sort};
use crate::os::{memory, threads};
use crate::plan::{Destination, SortPlan};
use crate::say::error::{Failure, Result};
use crate::say::stats::{Phase, Stats};
use merge_host::external::{Engines, RunError, Shape, Source, Summary, Target};
use merge_host::{Engine, Error, SortOptions, Work, unique_indices};
use std::path::Path;

/// Sorts keys.
pub fn run<W: Word>(job: Sort) -> Result<()> {
    let Sort { keys, key_type, payload, outputs, unique, verify, resources, stats } = job;
    if verify {
        outputs.check_can_be_read_back()?;
    }
    // This is an error if a file does not hold a whole number of keys.
    let count = keys.count::<W>()?;
    if let (Payload::Indices(limit), Some(count)) = (&payload, count) {
        limit.check(count)?;
    }
    threads::start(resources.threads, threads::useful(keys.length()))?;
    let work = work::<W>(count, &payload);
    let engine = ChosenEngine::start_sort(resources.processors.clone(), resources.sort_kernel, key_type, work)?;
    let checksum = verify.then(Checksum::default);
    let sorting = Sorting { resources, engine, unique, checksum, stats };
    match payload {
        Payload::None => sorting.keys::<W>(keys, count, outputs),
        Payload::Indices(limit) => sorting.indices::<W>(keys, count, limit, outputs),
        Payload::Values(values) => sorting.values::<W>(keys, values, outputs),
    }
}

/// The sort of `count` keys as the work for the choice of an engine, as far as it is known now.
fn work<W: Word>(count: Option<u64>, payload: &Payload) -> Option<Work> {
    let work = work_of(count, Work::sort::<W>)?;
    Some(match payload {
        Payload::None => work.from_files(),
        Payload::Indices(_) => work.with_values(size_of::<u64>()),
        Payload::Values(values) => work.with_values((values.length()? / count?.max(1)) as usize),
    })
}

/// The common state of all sorts.
struct Sorting {
    resources: Resources,
    engine: ChosenEngine,
    unique: bool,
    /// The checksum of the keys and values, if the output will be verified.
    checksum: Option<Checksum>,
    stats: Stats,
}

impl Sorting {
    /// Sorts keys alone.
    fn keys<W: Word>(mut self, keys: Concatenation, count: Option<u64>, outputs: Outputs) -> Result<()> {
        let takes_any_order = !self.unique && keys.takes_any_order() && outputs.keys.takes_any_order();
        let streamed = count.filter(|_| takes_any_order);
        // A streamed sort queries the memory of the GPU later.
        let asks_device = streamed.is_none();
        let plan = self.plan::<W>(0, count, &keys, &outputs, asks_device)?;
        if let (Some(count), Some(true)) = (streamed, plan.in_memory) {
            return self.streamed::<W>(keys, count, outputs.keys);
        }
        let source = KeySource::new(keys, PayloadSource::None, count, self.source_checksum());
        self.pairs::<W, _>(plan, source, 0, outputs)
    }

    /// Sorts keys with values.
    fn values<W: Word>(mut self, mut keys: Concatenation, mut values: Concatenation, outputs: Outputs) -> Result<()> {
        if let Some(width) = known_width(keys.inputs(), W::SIZE, values.inputs())? {
            let count = keys.count::<W>()?;
            let plan = self.plan::<W>(width, count, &keys, &outputs, true)?;
            let source = KeySource::new(keys, PayloadSource::Values(values, width), count, self.source_checksum());
            return self.pairs::<W, _>(plan, source, width, outputs);
        }
        // The width of a value follows from the lengths of both inputs, so that both have to be read first.
        let most = memory::budget(self.resources.memory, 0)? / 2;
        let all_keys = self.stats.time(Phase::Read, || read_bounded::<W>(&mut keys, most))?;
        let most = most - size_of_val(&all_keys[..]) as u64;
        let all_values = self.stats.time(Phase::Read, || read_bounded::<u8>(&mut values, most))?;
        let (count, bytes) = (all_keys.len() as u64, all_values.len() as u64);
        let width = match (keys.inputs(), values.inputs()) {
            ([keys], [values]) => {
                values::width(std::slice::from_ref(keys), &[count], std::slice::from_ref(values), &[bytes])?
            }
            _ => {
                return Err(Failure::file(
                    keys.path(),
                    "is one of several files, and some are pipes: with --values, expected regular files",
                ));
            }
        };
        let plan = self.plan::<W>(width, Some(count), &keys, &outputs, true)?;
        let source = BufferedSource::new(all_keys, all_values, self.source_checksum());
        self.pairs::<W, _>(plan, source, width, outputs)
    }

    /// Writes the indices of keys in sorted order.
    fn indices<W: Word>(
        mut self,
        mut keys: Concatenation,
        count: Option<u64>,
        limit: IndexLimit,
        outputs: Outputs,
    ) -> Result<()> {
        let (width, size) = (size_of::<u64>(), outputs.keys.size());
        let plan = self.plan::<W>(width, count, &keys, &outputs, true)?;
        let mut output = outputs.keys;
        let (known, count) = (count, count.filter(|_| plan.in_memory == Some(true)));
        let (writer, written) = if let Some(count) = count {
            let keys = self.stats.time(Phase::Read, || keys.read_all::<W>())?;
            let mut indices = memory::zeroed::<u64>(count, "the indices")?;
            let options = SortOptions::default().kernel(self.resources.sort_kernel);
            let sort = |engine: &Engine, indices: &mut Vec<u64>| engine.argsort(options, &keys, indices);
            self.stats.add(self.engine.run(&mut indices, sort)?);
            if self.unique {
                let kept = self.stats.time(Phase::Compute, || unique_indices(&keys, &mut indices));
                indices.truncate(kept);
            }
            self.stats.keys = count;
            output.expect(indices.len() as u64);
            let mut writer = output.begin()?;
            self.stats.time(Phase::Write, || write_indices(&mut writer, size, &indices))?;
            (writer, indices.len() as u64)
        } else {
            if self.unique {
                output.check_needs_no_count("--unique")?;
            }
            let source = KeySource::new(keys, PayloadSource::Indices(limit), known, None);
            let begin = |count| {
                output.expect(count);
                Ok(IndexOutput { writer: output.begin()?, size })
            };
            let (target, summary) = self.external::<W, _, _>(plan, source, width, begin)?;
            (target.writer, summary.keys_written)
        };
        self.finish::<W>(writer.into(), written, 0)
    }

    /// Sorts the keys of `source`, each with a payload of `width` bytes.
    fn pairs<W: Word, S: Source<W, Error = Failure>>(
        mut self,
        plan: SortPlan,
        source: S,
        width: usize,
        mut outputs: Outputs,
    ) -> Result<()> {
        if self.unique {
            outputs.iter().try_for_each(|output| output.check_needs_no_count("--unique"))?;
        }
        if outputs.values.is_some() {
            outputs.set_width(width);
            self.stats.value_size = Some(width);
        }
        // The output does not contain the dropped keys, so the checksum covers the written keys.
        let checksum = self.checksum.clone().filter(|_| self.unique);
        let begin = |count| {
            outputs.expect(count);
            Ok(Written { writers: outputs.begin()?, checksum })
        };
        self.pairs_to::<W, _>(plan, source, width, begin)
    }

    /// Sorts the keys of `source` to the outputs that `begin` opens.
    fn pairs_to<W: Word, S: Source<W, Error = Failure>>(
        mut self,
        plan: SortPlan,
        source: S,
        width: usize,
        begin: impl FnOnce(Option<u64>) -> Result<Written>,
    ) -> Result<()> {
        let (Written { writers, .. }, summary) = self.external::<W, _, _>(plan, source, width, begin)?;
        self.finish::<W>(writers, summary.keys_written, width)
    }

    /// The checksum that a source adds its keys to.
    fn source_checksum(&self) -> Option<Checksum> {
        self.checksum.clone().filter(|_| !self.unique)
    }

    /// The plan for `count` keys with payloads of `width` bytes. An error if there is no space for the outputs. Unless
    /// `asks_device`, it assumes that all keys fit a GPU.
    fn plan<W: Word>(
        &mut self,
        width: usize,
        count: Option<u64>,
        keys: &Concatenation,
        outputs: &Outputs,
        asks_device: bool,
    ) -> Result<SortPlan> {
        // With `unique`, the number of written keys is unknown.
        let written = u128::from(count.filter(|_| !self.unique).unwrap_or(0));
        let size = outputs.keys.size() as u128;
        let bytes = [written * size, written * outputs.values.as_ref().map_or(0, |_| width) as u128];
        outputs.check_space(bytes)?;
        let most = count.map(u128::from).map(|count| [count * size, count * width as u128]);
        let destination = Destination::new(&outputs.keys, outputs.values.as_ref(), bytes).or_up_to(most);
        let shape = Shape { key: W::SIZE, width };
        let mut device = || if asks_device { self.engine.device_memory().map_err(failure) } else { Ok(None) };
        SortPlan::new(shape, count, destination, &self.resources, &mut device, keys.path())
    }

    /// Sorts the `count` keys of regular files, which fit in memory, to a regular file. With a GPU, the memory of this
    /// program never holds all keys at once.
    fn streamed<W: Word>(mut self, keys: Concatenation, count: u64, mut output: Output) -> Result<()> {
        let too_many = || Failure::file(keys.path(), format!("has {count} keys, more than this machine can address"));
        let len = usize::try_from(count).map_err(|_| too_many())?;
        output.expect(count);
        let folder = output.folder().map(Path::to_path_buf);
        let mut writer = output.begin()?;
        // While a GPU starts, the system allocates the pages of an output in memory.
        let region = self.stats.time(Phase::Write, || writer.region(count * W::SIZE as u64))?;
        let shape = Shape { key: W::SIZE, width: 0 };
        if !SortPlan::fits_device(shape, count, &mut || self.engine.device_memory().map_err(failure))? {
            drop(region);
            writer.withdraw_region()?;
            let bytes = u128::from(count) * W::SIZE as u128;
            let destination = Destination::of_keys(folder.as_deref(), bytes);
            let plan = SortPlan::in_chunks(shape, count, destination, &self.resources, keys.path())?;
            let source = KeySource::new(keys, PayloadSource::None, Some(count), self.source_checksum());
            let begin = |_| Ok(Written { writers: writer.into(), checksum: None });
            return self.pairs_to::<W, _>(plan, source, 0, begin);
        }
        let options = SortOptions::default().kernel(self.resources.sort_kernel);
        let sort = |engine: &Engine, checksum: &mut Option<Checksum>| {
            // Each attempt reads every key, so the checksum begins anew.
            *checksum = checksum.as_ref().map(|_| Checksum::default());
            let read = |begin: usize, part: &mut [W]| {
                keys.read_at(begin as u64, part).map_err(RunError::Other)?;
                checksum.iter().for_each(|checksum| checksum.add(part, &[], 0));
                Ok(())
            };
            let write = |begin: usize, part: &[W]| region.write(begin as u64, part).map_err(RunError::Other);
            engine.sort_streamed(options, len, read, write).map_err(|error| match error {
                RunError::Engine(Error::OutOfHostMemory { needed }) => {
                    let message = format!("takes {needed} bytes of memory, and the system gives none");
                    RunError::Other(Failure::file(keys.path(), message))
                }
                error => error,
            })
        };
        // A second attempt reads every key and writes the whole output again.
        let timing = Engines::run(&mut self.engine, &mut self.checksum, sort, |_| Ok(true)).map_err(failure)?;
        self.stats.keys = count;
        self.stats.add_streamed(timing);
        drop(region);
        self.finish::<W>(writer.into(), count, 0)
    }

    /// The library's external sort.
    fn external<W: Word, S: Source<W, Error = Failure>, T: Target<W, Error = Failure>>(
        &mut self,
        plan: SortPlan,
        source: S,
        width: usize,
        begin: impl FnOnce(Option<u64>) -> Result<T>,
    ) -> Result<(T, Summary)> {
        let options = plan.options(width, self.unique, &self.resources);
        let (target, summary) = spilled::sort::<W, _>(&options, source, begin, &mut self.engine, &mut self.stats)?;
        self.stats.keys = summary.keys_read;
        Ok((target, summary))
    }

    /// Verifies outputs of `count` keys if requested, and makes them permanent.
    fn finish<W: Word>(mut self, writers: Writers, count: u64, width: usize) -> Result<()> {
        self.stats.engine = self.engine.name()?;
        if let Some(checksum) = &self.checksum {
            let expected = Expected { count, checksum: checksum.get(), unique: self.unique, width };
            self.stats.time(Phase::Check, || verify::<W>(&writers, expected))?;
        }
        finish(writers, self.stats)
    }
}

/// All items of pipes. An error if they have more than `most` bytes.
fn read_bounded<W: Word>(input: &mut Concatenation, most: u64) -> Result<Vec<W>> {
    let most = most / W::SIZE as u64;
    // The system provides a page at the first write to it.
    let mut items = memory::zeroed::<W>(most + 1, "the input")?;
    let read = input.read(&mut items)?;
    if read as u64 > most {
        let message = "with its values, does not fit in the memory that may be used: expected regular files, and no \
                       pipes: regular files are sorted in chunks";
        return Err(Failure::file(input.path(), message));
    }
    items.truncate(read);
    Ok(items)
}
