//! A sort of keys or records: alone, with values, or of their indices; all, one of equal ones, or the first ones.
//!
//! ```text
//!   keys alone that fit, from files to a file   read by all threads where the engine sorts, and written from there
//!   records that fit                            sorted by the first words of their keys, written from where they lie
//!   indices of keys that fit                    argsort
//!   the first items of the order                candidates are selected from parts of the input
//!   everything else                             the library's external sort, which spills nothing if all fits
//! ```

use super::checksum::Checksum;
use super::engine::{ChosenEngine, failure, work_of};
use super::spilled::{self, BufferedSource, Carried, KeySource, PayloadSource};
use super::top::Wanted;
use super::verify::{Expected, verify};
use super::written::{Form, Writing, Written, write_numbers};
use super::{finish, records};
use crate::coding::Word;
use crate::file::values::{self, known_width};
use crate::file::{Concatenation, Output, Outputs, Writers};
use crate::job::{Items, Keep, NumberLimit, Payload, Resources, Sort};
use crate::os::{memory, threads};
use crate::plan::{self, Destination, SortPlan};
use crate::records::Key;
use crate::say::error::{Failure, Result};
use crate::say::stats::{Phase, Stats};
use merge_host::external::{Engines, RunError, Shape, Source, Target};
use merge_host::{Engine, Error, SortOptions, Work, unique_indices};
use std::path::{Path, PathBuf};

/// Sorts keys or records.
pub fn run<W: Word>(job: Sort) -> Result<()> {
    let Sort { keys, items, payload, outputs, keep, top, verify, resources, mut stats } = job;
    if verify {
        outputs.check_can_be_read_back()?;
    }
    // This is an error if a file does not hold a whole number of keys.
    let count = items.count_all(keys.inputs())?;
    if let (Payload::Indices(limit), Some(count)) = (&payload, count) {
        limit.check_indices(count)?;
    }
    let checksum = verify.then(Checksum::default);
    let all = keep == Keep::All && top.is_none();
    if let (Items::Records(records), Payload::None, true) = (&items, &payload, all) {
        let sorting = records::Sorting { records, resources: &resources, checksum: checksum.as_ref() };
        if let Some(length) = fitting_length(&sorting, &keys, &outputs.keys)? {
            outputs.keys.check_space(length.into())?;
            threads::start(resources.threads, threads::useful(Some(length)))?;
            let writers = Writers::from(sorting.sort(keys, length, outputs.keys, &mut stats)?);
            return end::<W>(&items, writers, (stats.keys, keep), checksum, stats);
        }
    }
    threads::start(resources.threads, threads::useful(keys.length()))?;
    let work = work::<W>(count, &items, &payload);
    let word_type = items.word_type();
    let engine = ChosenEngine::start_sort(resources.processors.clone(), resources.sort_kernel, word_type, work)?;
    let most = top.unwrap_or(u64::MAX);
    let sorting = Sorting { resources, engine, items, keep, most, checksum, stats };
    match (payload, sorting.items.clone()) {
        (Payload::None, Items::Keys(_)) => sorting.keys::<W>(keys, count, outputs),
        (Payload::Indices(limit), Items::Keys(_)) => sorting.indices::<W>(keys, count, limit, outputs),
        (Payload::Values(values), Items::Keys(_)) => sorting.values::<W>(keys, values, outputs),
        (payload, Items::Records(records)) => {
            let (form, carried) = match payload {
                Payload::Indices(limit) => (Form::Index, Carried::Index(limit)),
                Payload::None | Payload::Values(_) => (Form::Record, Carried::Record),
            };
            sorting.files::<W>(keys, PayloadSource::Records(records, carried), count, (form, None), outputs)
        }
    }
}

/// The length of records in bytes, if it is known and the records fit in memory. An error if they have to fit.
fn fitting_length(sorting: &records::Sorting, keys: &Concatenation, output: &Output) -> Result<Option<u64>> {
    let Some(length) = keys.length() else { return Ok(None) };
    let needed = sorting.in_memory(length);
    if output.is_in_place() {
        plan::in_place(needed, sorting.resources, keys.path())?;
        return Ok(Some(length));
    }
    let budget = memory::budget(sorting.resources.memory, 0)?;
    let files = Destination::new(output, None, [length.into(), 0]).in_memory();
    let fits = budget.checked_sub(files).is_some_and(|memory| needed <= memory.into());
    Ok(fits.then_some(length))
}

/// Verifies the outputs if there is a checksum, and makes them permanent. They have `count` items.
fn end<W: Word>(
    items: &Items,
    writers: Writers,
    (count, keep): (u64, Keep),
    checksum: Option<Checksum>,
    mut stats: Stats,
) -> Result<()> {
    if let Some(checksum) = &checksum {
        let width = stats.value_size.unwrap_or(0);
        let expected = Expected { count, checksum: checksum.get(), unique: keep != Keep::All, width };
        let read = stats.keys;
        stats.time(Phase::Check, || verify::<W>(items, &writers, expected, read))?;
    }
    finish(writers, stats)
}

/// The sort of `count` items as the work for the choice of an engine, as far as it is known now.
fn work<W: Word>(count: Option<u64>, items: &Items, payload: &Payload) -> Option<Work> {
    let work = work_of(count, Work::sort::<W>)?;
    Some(match (payload, items) {
        (Payload::None, Items::Keys(_)) => work.from_files(),
        (Payload::None, Items::Records(records)) => work.with_values(records.layout.size),
        (Payload::Indices(_), _) => work.with_values(size_of::<u64>()),
        (Payload::Values(values), _) => work.with_values((values.length()? / count?.max(1)) as usize),
    })
}

/// The common state of all sorts.
struct Sorting {
    resources: Resources,
    engine: ChosenEngine,
    items: Items,
    keep: Keep,
    /// The most items to write.
    most: u64,
    /// The checksum of the keys and values, if the output will be verified.
    checksum: Option<Checksum>,
    stats: Stats,
}

/// The input of a sort.
struct Facts {
    /// The number of items, if known.
    count: Option<u64>,
    /// Bytes of a payload.
    width: usize,
    /// The key that orders payloads with equal words, if words are not whole keys.
    ties: Option<Key>,
    /// The first file.
    path: PathBuf,
    /// What is written of an item.
    form: Form,
    /// The plan, if it is known.
    plan: Option<SortPlan>,
}

impl Sorting {
    /// Sorts keys alone.
    fn keys<W: Word>(mut self, mut keys: Concatenation, count: Option<u64>, mut outputs: Outputs) -> Result<()> {
        if let Some(wanted) = self.wanted::<W>(count, 0, &outputs)? {
            let first = wanted.keys::<W>(&mut keys, &mut self.engine, &mut self.stats)?;
            outputs.expect(first.len() as u64);
            return self.write(outputs, Form::Key, first, Vec::new());
        }
        if let Some(count) = count.filter(|_| outputs.keys.is_in_place()) {
            return self.in_place::<W>(keys, count, outputs);
        }
        let takes_any_order = self.writes_all() && keys.takes_any_order() && outputs.keys.takes_any_order();
        let streamed = count.filter(|_| takes_any_order);
        // A streamed sort queries the memory of the GPU later.
        let plan = self.plan::<W>(0, count, keys.path(), &outputs, streamed.is_none())?;
        if let (Some(count), Some(true)) = (streamed, plan.in_memory) {
            return self.streamed::<W>(keys, count, outputs.keys);
        }
        self.files::<W>(keys, PayloadSource::None, count, (Form::Key, Some(plan)), outputs)
    }

    /// Sorts keys with values.
    fn values<W: Word>(mut self, mut keys: Concatenation, mut values: Concatenation, outputs: Outputs) -> Result<()> {
        // Several files of values are read as one, so that only their lengths tell a file with too few values.
        let is_checked = keys.length().zip(values.length()).is_some() || values.inputs().len() == 1;
        let width = known_width(keys.inputs(), W::SIZE, values.inputs())?;
        if let Some(width) = width.filter(|_| is_checked) {
            let count = keys.count::<W>()?;
            return self.files::<W>(keys, PayloadSource::Values(values, width), count, (Form::Key, None), outputs);
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
                    "is one of several files, and some are pipes: with --values, expected regular files, or one file \
                     of values and --value-size",
                ));
            }
        };
        let source = BufferedSource::new(all_keys, all_values, self.source_checksum());
        let path = keys.path().to_path_buf();
        let facts = Facts { count: Some(count), width, ties: None, path, form: Form::Key, plan: None };
        self.external::<W, _>(source, facts, outputs)
    }

    /// Writes the indices of keys in sorted order.
    fn indices<W: Word>(
        mut self,
        mut keys: Concatenation,
        count: Option<u64>,
        limit: NumberLimit,
        mut outputs: Outputs,
    ) -> Result<()> {
        let sorts_all = self.most == u64::MAX && self.keep != Keep::Last && outputs.counts.is_none();
        let mut plan = None;
        if sorts_all {
            plan = Some(self.plan::<W>(size_of::<u64>(), count, keys.path(), &outputs, true)?);
        }
        if let (Some(count), Some(SortPlan { in_memory: Some(true), .. })) = (count, &plan) {
            let keys = self.stats.time(Phase::Read, || keys.read_all::<W>())?;
            let mut indices = memory::zeroed::<u64>(count, "the indices")?;
            let options = SortOptions::default().kernel(self.resources.sort_kernel);
            let sort = |engine: &Engine, indices: &mut Vec<u64>| engine.argsort(options, &keys, indices);
            self.stats.add(self.engine.run(&mut indices, sort)?);
            if self.keep == Keep::First {
                let kept = self.stats.time(Phase::Compute, || unique_indices(&keys, &mut indices));
                indices.truncate(kept);
            }
            self.stats.keys = count;
            let size = outputs.keys.size();
            outputs.expect(indices.len() as u64);
            let mut writers = outputs.begin()?;
            self.stats.time(Phase::Write, || write_numbers(&mut writers.keys, size, &indices))?;
            return self.finish::<W>(writers, indices.len() as u64);
        }
        self.files::<W>(keys, PayloadSource::Indices(limit), count, (Form::Index, plan), outputs)
    }

    /// Sorts the items of files, `count` if known. The plan is made unless it is given.
    fn files<W: Word>(
        self,
        keys: Concatenation,
        payload: PayloadSource,
        count: Option<u64>,
        (form, plan): (Form, Option<SortPlan>),
        outputs: Outputs,
    ) -> Result<()> {
        let (width, ties, path) = (payload.width(), payload.ties(), keys.path().to_path_buf());
        let source = KeySource::new(keys, payload, count, self.source_checksum());
        self.external::<W, _>(source, Facts { count, width, ties, path, form, plan }, outputs)
    }

    /// Sorts the items of a source.
    fn external<W: Word, S: Source<W, Error = Failure>>(
        mut self,
        mut source: S,
        facts: Facts,
        mut outputs: Outputs,
    ) -> Result<()> {
        let Facts { count, width, ties, path, form, plan } = facts;
        if self.keep != Keep::All {
            outputs.iter().try_for_each(|output| output.check_needs_no_count("--unique"))?;
        }
        if outputs.values.is_some() {
            outputs.set_width(width);
            self.stats.value_size = Some(width);
        }
        if width > 0
            && let Some(wanted) = self.wanted::<W>(count, width, &outputs)?
        {
            let ties = ties.as_ref();
            let (keys, payload) = wanted.items::<W>(&mut source, width, ties, &mut self.engine, &mut self.stats)?;
            outputs.expect(keys.len() as u64);
            return self.write(outputs, form, keys, payload);
        }
        let plan = plan.map_or_else(|| self.plan::<W>(width, count, &path, &outputs, true), Ok)?;
        // The sort keeps the first of keys with equal words.
        let by_sort = self.keep == Keep::First && outputs.counts.is_none() && ties.is_none();
        let options = plan.options(width, by_sort, &self.resources);
        let keep = if by_sort { Keep::All } else { self.keep };
        let (most, checksum) = (self.most, self.written_checksum());
        let begin = |count: Option<u64>| {
            outputs.expect(count.filter(|_| keep == Keep::All).map(|count| count.min(most)));
            Written::<W>::begin(outputs, Writing { form, keep, most }, checksum)
        };
        let sorted = spilled::sort::<W, _>(&options, ties.as_ref(), source, begin, &mut self.engine, &mut self.stats);
        let (written, summary) = sorted?;
        self.stats.keys = summary.keys_read;
        let (writers, count) = self.stats.time(Phase::Write, || written.finish())?;
        self.finish::<W>(writers, count)
    }

    /// The first items, if they are wanted and fit in memory.
    fn wanted<W: Word>(&self, count: Option<u64>, width: usize, outputs: &Outputs) -> Result<Option<Wanted>> {
        if self.most == u64::MAX {
            return Ok(None);
        }
        let destination = self.destination(width, count, outputs)?;
        let budget = memory::budget(self.resources.memory, destination.in_memory())?;
        let most = self.most.min(count.unwrap_or(u64::MAX));
        Ok(Wanted::fitting::<W>(most, width, self.resources.processors.engine, budget))
    }

    /// Writes items that are sorted.
    fn write<W: Word>(mut self, outputs: Outputs, form: Form, mut keys: Vec<W>, mut payload: Vec<u8>) -> Result<()> {
        let writing = Writing { form, keep: self.keep, most: self.most };
        let mut written = Written::<W>::begin(outputs, writing, self.written_checksum())?;
        let (writers, count) = self.stats.time(Phase::Write, || {
            if !keys.is_empty() {
                written.write(&mut keys, &mut payload)?;
            }
            written.finish()
        })?;
        self.finish::<W>(writers, count)
    }

    /// Whether the output has all items that are read, so that one checksum is that of both.
    fn writes_all(&self) -> bool {
        self.keep == Keep::All && self.most == u64::MAX
    }

    /// The checksum that a source adds its items to.
    fn source_checksum(&self) -> Option<Checksum> {
        self.checksum.clone().filter(|_| self.writes_all())
    }

    /// The checksum that written items are added to.
    fn written_checksum(&self) -> Option<Checksum> {
        self.checksum.clone().filter(|_| !self.writes_all())
    }

    /// The outputs of up to `count` items with payloads of `width` bytes. An error if there is no space for them.
    fn destination<'a>(&self, width: usize, count: Option<u64>, outputs: &'a Outputs) -> Result<Destination<'a>> {
        let most = count.map(|count| count.min(self.most));
        // With `unique`, the number of written keys is unknown.
        let least = most.filter(|_| self.keep == Keep::All).unwrap_or(0);
        let bytes = |count: u64| {
            let values = outputs.values.as_ref().map_or(0, |_| width);
            [outputs.keys.size(), values].map(|size| u128::from(count) * size as u128)
        };
        outputs.check_space(bytes(least))?;
        Ok(Destination::new(&outputs.keys, outputs.values.as_ref(), bytes(least)).or_up_to(most.map(bytes)))
    }

    /// The plan for `count` keys with payloads of `width` bytes. An error if there is no space for the outputs. Unless
    /// `asks_device`, it assumes that all keys fit a GPU.
    fn plan<W: Word>(
        &mut self,
        width: usize,
        count: Option<u64>,
        path: &Path,
        outputs: &Outputs,
        asks_device: bool,
    ) -> Result<SortPlan> {
        let destination = self.destination(width, count, outputs)?;
        let shape = Shape { key: W::SIZE, width };
        let mut device = || if asks_device { self.engine.device_memory().map_err(failure) } else { Ok(None) };
        SortPlan::new(shape, count, destination, &self.resources, &mut device, path)
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
            let begin = |_| Ok(Written::<W>::resume(writer.into()));
            let options = plan.options(0, false, &self.resources);
            let (written, summary) =
                spilled::sort::<W, _>(&options, None, source, begin, &mut self.engine, &mut self.stats)?;
            self.stats.keys = summary.keys_read;
            let (writers, count) = written.finish()?;
            return self.finish::<W>(writers, count);
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
        self.finish::<W>(writer.into(), count)
    }

    /// Sorts the `count` keys of a file in memory, and writes them over it.
    fn in_place<W: Word>(mut self, mut keys: Concatenation, count: u64, outputs: Outputs) -> Result<()> {
        let shape = Shape { key: W::SIZE, width: 0 };
        plan::in_place(shape.in_memory(count), &self.resources, keys.path())?;
        self.destination(0, Some(count), &outputs)?;
        let mut sorted = self.stats.time(Phase::Read, || keys.read_all::<W>())?;
        let options = SortOptions::default().kernel(self.resources.sort_kernel);
        let sort = |engine: &Engine, sorted: &mut Vec<W>| Ok(engine.sort_with(options, &mut sorted[..])?);
        // A GPU that fails leaves the keys in any state.
        let restore = |sorted: &mut Vec<W>| {
            keys.seek::<W>(0);
            keys.read(sorted).map(|_| true)
        };
        let timing = Engines::run(&mut self.engine, &mut sorted, sort, restore).map_err(failure)?;
        self.stats.keys = count;
        self.stats.add(timing);
        self.write(outputs, Form::Key, sorted, Vec::new())
    }

    /// Verifies outputs of `count` items if requested, and makes them permanent.
    fn finish<W: Word>(mut self, writers: Writers, count: u64) -> Result<()> {
        self.stats.engine = self.engine.name()?;
        end::<W>(&self.items, writers, (count, self.keep), self.checksum, self.stats)
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
                       pipes, or --value-size: then they are sorted in chunks";
        return Err(Failure::file(input.path(), message));
    }
    items.truncate(read);
    Ok(items)
}
