//! A merge of sorted files, in memory or while they are read.

use super::checksum::Checksum;
use super::engine::{ChosenEngine, work_of};
use super::finish;
use super::in_memory::{self, Files, Merged};
use super::runs::Runs;
use super::spilled::{self, Carried, PayloadSource, SortedSource};
use super::verify::{Expected, verify};
use super::written::{Form, Writing, Written};
use crate::coding::Word;
use crate::file::values::known_width;
use crate::file::{Concatenation, Input, Output, Outputs, Writers};
use crate::job::{Items, Keep, Merge};
use crate::os::{limits, threads};
use crate::plan::{self, Destination, MergeFacts};
use crate::say::error::Result;
use crate::say::stats::{Phase, Stats};
use merge_host::external::Target;
use merge_host::external::{Options, Shape};
use merge_host::{MergeKernel, Work, unique};

/// Merges files.
pub fn run<W: Word>(mut job: Merge) -> Result<()> {
    let sizes = Sizes::of::<W>(&job)?;
    job.outputs.set_width(sizes.width.unwrap_or(1));
    let options = options::<W>(&job, &sizes)?;
    let Merge { inputs, items, values, kernel, mut outputs, keep, verify: is_verified, assume_sorted, .. } = job;
    let (resources, stats) = (job.resources, job.stats);
    let (width, written) = (sizes.width.unwrap_or(0), sizes.written());
    outputs.expect(written);
    let checksum = is_verified.then(Checksum::default);
    let word_type = items.word_type();
    let mut merging = Progress { items, keep, checksum, assume_sorted, stats, width };
    let (writers, count) = match options {
        Some(options) => merging.streamed::<W>(options, inputs, values, outputs)?,
        None => {
            let work = work_of(sizes.count, |keys| Work::merge::<W>(keys).with_values(width));
            let engine = ChosenEngine::start(resources.processors, word_type, work)?;
            let kernel = if inputs.len() == 2 { Some(kernel.unwrap_or(MergeKernel::Auto)) } else { None };
            let checksum = merging.checksum.clone().filter(|_| keep == Keep::All);
            let files = Files { inputs, values, assume_sorted, checksum };
            merging.in_memory::<W>(Runs::Whole(kernel), engine, files, outputs)?
        }
    };
    let Progress { items, keep, checksum, mut stats, width, .. } = merging;
    if let Some(checksum) = checksum {
        let unique = keep != Keep::All;
        // The payload of a record is the record itself.
        let width = if items.records().is_some() { 0 } else { width };
        let expected = Expected { count, checksum: checksum.get(), unique, width };
        let read = stats.keys;
        stats.time(Phase::Check, || verify::<W>(&items, &writers, expected, read))?;
    }
    finish(writers, stats)
}

/// The sizes of a merge, as far as they are known before anything is read.
struct Sizes {
    /// The number of keys, if all inputs tell theirs.
    count: Option<u64>,
    /// The keys of the inputs that tell their number.
    least: u64,
    /// Bytes of a payload: a value or a record.
    width: Option<usize>,
    /// Bytes of a key or record in the output.
    size: usize,
    /// Whether equal keys are written once.
    unique: bool,
}

impl Sizes {
    fn of<W: Word>(job: &Merge) -> Result<Self> {
        let counts = job.inputs.iter().map(|input| job.items.count(input)).collect::<Result<Vec<_>>>()?;
        let size = job.items.size();
        let width = match (&job.values, &job.items) {
            (None, Items::Keys(_)) => Some(0),
            (None, Items::Records(_)) => Some(size),
            (Some(values), _) => known_width(&job.inputs, W::SIZE, values)?,
        };
        let (count, least) = (counts.iter().copied().sum(), counts.iter().flatten().sum());
        Ok(Self { count, least, width, size, unique: job.keep != Keep::All })
    }

    /// The number of keys of the output.
    fn written(&self) -> Option<u64> {
        self.count.filter(|_| !self.unique)
    }

    /// Bytes of keys and values that the outputs will have at least.
    fn least_bytes(&self) -> [u128; 2] {
        let keys = u128::from(if self.unique { 0 } else { self.least });
        [self.size, self.width.unwrap_or(0)].map(|size| keys * size as u128)
    }

    /// Bytes of keys and values that the outputs will have at most.
    fn most_bytes(&self) -> Option<[u128; 2]> {
        let (count, width) = self.count.zip(self.width)?;
        Some([self.size, width].map(|size| u128::from(count) * size as u128))
    }
}

/// How to merge the files while they are read, or `None` to merge them in memory. Checks the outputs before, and starts
/// the threads.
fn options<W: Word>(job: &Merge, sizes: &Sizes) -> Result<Option<Options>> {
    let (inputs, outputs) = (&job.inputs, &job.outputs);
    if job.verify {
        outputs.check_can_be_read_back()?;
    }
    let is_records = job.items.records().is_some();
    let by_target = job.keep == Keep::Last || outputs.counts.is_some();
    if sizes.unique && (is_records || by_target) {
        outputs.iter().try_for_each(|output| output.check_needs_no_count("--unique"))?;
    } else if is_records && sizes.count.is_none() {
        outputs.keys.check_needs_no_count("a pipe with --key")?;
    }
    let bytes = sizes.least_bytes();
    outputs.check_space(bytes)?;
    threads::start(job.resources.threads, threads::useful(inputs.iter().map(Input::length).sum()))?;

    let files_per_input = 1 + usize::from(job.values.is_some());
    let max_open = limits::open_files(inputs.len() * files_per_input) / files_per_input;
    let path = inputs.first().map_or_else(|| outputs.keys.path().to_owned(), |input| input.path().to_owned());
    let needs_count = outputs.iter().any(Output::needs_count);
    let facts = MergeFacts {
        shape: Shape { key: W::SIZE, width: sizes.width.unwrap_or(0) },
        files: inputs.len(),
        count: sizes.count.filter(|_| sizes.width.is_some()),
        needs_count: sizes.written().is_none() && needs_count || sizes.width.is_none(),
        may_fail_late: job.assume_sorted || outputs.keys.folder().is_some(),
        kernel: job.kernel.map(MergeKernel::name),
        records: job.items.records(),
        destination: Destination::new(&outputs.keys, outputs.values.as_ref(), bytes).or_up_to(sizes.most_bytes()),
        path: &path,
    };
    // Values have a width of 0 bytes only if there are no keys.
    match (sizes.width, &outputs.values) {
        (Some(0), Some(_)) => Ok(None),
        _ => plan::merge(facts, &job.resources, max_open),
    }
}

/// The state of a merge.
struct Progress {
    items: Items,
    keep: Keep,
    /// The checksum, if the output will be verified: of all keys and values that are read, or with `unique` that are
    /// written.
    checksum: Option<Checksum>,
    assume_sorted: bool,
    stats: Stats,
    /// Bytes of a payload.
    width: usize,
}

impl Progress {
    /// The checksum that written items are added to, if they are not all that is read.
    fn written_checksum(&self) -> Option<Checksum> {
        self.checksum.clone().filter(|_| self.keep != Keep::All)
    }

    /// Merges files while they are read, so that only a part of each is in memory.
    fn streamed<W: Word>(
        &mut self,
        options: Options,
        inputs: Vec<Input>,
        values: Option<Vec<Input>>,
        outputs: Outputs,
    ) -> Result<(Writers, u64)> {
        let records = self.items.records().cloned();
        let form = if records.is_some() { Form::Record } else { Form::Key };
        // The merge keeps the first of keys with equal words.
        let is_long = records.as_ref().is_some_and(|records| records.has_long_key());
        let by_merge = self.keep == Keep::First && outputs.counts.is_none() && !is_long;
        let mut values = values.into_iter().flatten();
        let of_sources = self.checksum.clone().filter(|_| self.keep == Keep::All);
        let sources = inputs.into_iter().map(|keys| {
            let payload = match (&records, values.next()) {
                (Some(records), _) => PayloadSource::Records(records.clone(), Carried::Record),
                (None, Some(values)) => PayloadSource::Values(Concatenation::new(vec![values]), self.width),
                (None, None) => PayloadSource::None,
            };
            let count = self.items.count(&keys)?;
            Ok(SortedSource::<W>::new(keys, count, payload, !self.assume_sorted, of_sources.clone()))
        });
        let sources = sources.collect::<Result<Vec<_>>>()?;
        let keep = if by_merge { Keep::All } else { self.keep };
        let (writing, checksum) = (Writing { form, keep, most: u64::MAX }, self.written_checksum());
        let options = Options { unique: by_merge, ..options };
        let ties = records.filter(|_| is_long).map(|records| records.key);
        let begin = || Written::<W>::begin(outputs, writing, checksum);
        let merged = spilled::merge::<W, _>(&options, ties.as_ref(), sources, begin, &mut self.stats)?;
        let (written, summary) = merged;
        let (writers, count) = self.stats.time(Phase::Write, || written.finish())?;
        self.stats.keys = summary.keys_read;
        self.stats.value_size = writers.values.as_ref().map(|_| self.width);
        Ok((writers, count))
    }

    /// Merges files that fit in memory.
    fn in_memory<W: Word>(
        &mut self,
        runs: Runs,
        mut engine: ChosenEngine,
        files: Files,
        mut outputs: Outputs,
    ) -> Result<(Writers, u64)> {
        let merged = in_memory::merge::<W>(files, &runs, &mut engine, &mut self.stats)?;
        let Merged { mut keys, mut values, width } = merged;
        self.width = width;
        self.stats.engine = engine.name()?;
        outputs.set_width(width);
        let mut keep = self.keep;
        if keep == Keep::First && outputs.counts.is_none() {
            let kept = self.stats.time(Phase::Compute, || unique(&mut keys, &mut values, width, None));
            keys.truncate(kept);
            values.truncate(kept * width);
            keep = Keep::All;
        }
        outputs.expect(Some(keys.len() as u64).filter(|_| keep == Keep::All));
        let writing = Writing { form: Form::Key, keep, most: u64::MAX };
        let mut written = Written::<W>::begin(outputs, writing, self.written_checksum())?;
        self.stats.time(Phase::Write, || {
            if !keys.is_empty() {
                written.write(&mut keys, &mut values)?;
            }
            written.finish()
        })
    }
}
