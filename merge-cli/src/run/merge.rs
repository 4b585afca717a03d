//! A merge of sorted files, in memory or while they are read.

use super::checksum::Checksum;
use super::engine::{ChosenEngine, work_of};
use super::finish;
use super::in_memory::{self, Files, Merged, write_all};
use super::runs::Runs;
use super::spilled::{self, PayloadSource, SortedSource, Written};
use super::verify::{Expected, verify};
use crate::coding::Word;
use crate::file::values::known_width;
use crate::file::{Concatenation, Input, Output, Outputs, Writers};
use crate::job::Merge;
use crate::os::{limits, threads};
use crate::plan::{self, Destination, MergeFacts};
use crate::say::error::Result;
use crate::say::stats::{Phase, Stats};
use merge_host::external::{Options, Shape};
use merge_host::{MergeKernel, Work, unique};

/// Merges files.
pub fn run<W: Word>(mut job: Merge) -> Result<()> {
    let sizes = Sizes::of::<W>(&job)?;
    job.outputs.set_width(sizes.width.unwrap_or(1));
    let options = options::<W>(&job, &sizes)?;
    let Merge { inputs, key_type, values, kernel, mut outputs, unique, verify: is_verified, assume_sorted, .. } = job;
    let (resources, stats) = (job.resources, job.stats);
    let (width, written) = (sizes.width.unwrap_or(0), sizes.written());
    outputs.expect(written);
    let checksum = is_verified.then(Checksum::default);
    let mut merging = Progress { unique, checksum, assume_sorted, stats, width };
    let (writers, count) = match options {
        Some(options) => merging.streamed::<W>(Options { unique, ..options }, inputs, values, outputs)?,
        None => {
            let work = work_of(sizes.count, |keys| Work::merge::<W>(keys).with_values(width));
            let engine = ChosenEngine::start(resources.processors, key_type, work)?;
            let kernel = if inputs.len() == 2 { Some(kernel.unwrap_or(MergeKernel::Auto)) } else { None };
            let checksum = merging.checksum.clone().filter(|_| !unique);
            let files = Files { inputs, values, assume_sorted, checksum };
            merging.in_memory::<W>(Runs::Whole(kernel), engine, files, outputs)?
        }
    };
    let Progress { unique, checksum, assume_sorted: _, mut stats, width } = merging;
    if let Some(checksum) = checksum {
        let expected = Expected { count, checksum: checksum.get(), unique, width };
        stats.time(Phase::Check, || verify::<W>(&writers, expected))?;
    }
    finish(writers, stats)
}

/// The sizes of a merge, as far as they are known before anything is read.
struct Sizes {
    /// The number of keys, if all inputs tell theirs.
    count: Option<u64>,
    /// The keys of the inputs that tell their number.
    least: u64,
    /// Bytes of a value.
    width: Option<usize>,
    /// Whether equal keys are written once.
    unique: bool,
}

impl Sizes {
    fn of<W: Word>(job: &Merge) -> Result<Self> {
        let counts = job.inputs.iter().map(Input::count::<W>).collect::<Result<Vec<_>>>()?;
        let width = match &job.values {
            None => Some(0),
            Some(values) => known_width(&job.inputs, W::SIZE, values)?,
        };
        let (count, least) = (counts.iter().copied().sum(), counts.iter().flatten().sum());
        Ok(Self { count, least, width, unique: job.unique })
    }

    /// The number of keys of the output.
    fn written(&self) -> Option<u64> {
        self.count.filter(|_| !self.unique)
    }

    /// Bytes of keys and values that the outputs will have at least.
    fn least_bytes<W: Word>(&self) -> [u128; 2] {
        let keys = u128::from(if self.unique { 0 } else { self.least });
        [keys * W::SIZE as u128, keys * self.width.unwrap_or(0) as u128]
    }

    /// Bytes of keys and values that the outputs will have at most.
    fn most_bytes<W: Word>(&self) -> Option<[u128; 2]> {
        let (count, width) = self.count.zip(self.width)?;
        Some([W::SIZE, width].map(|size| u128::from(count) * size as u128))
    }
}

/// How to merge the files while they are read, or `None` to merge them in memory. Checks the outputs before, and starts
/// the threads.
fn options<W: Word>(job: &Merge, sizes: &Sizes) -> Result<Option<Options>> {
    let (inputs, outputs) = (&job.inputs, &job.outputs);
    if job.verify {
        outputs.check_can_be_read_back()?;
    }
    let bytes = sizes.least_bytes::<W>();
    outputs.check_space(bytes)?;
    threads::start(job.resources.threads, threads::useful(inputs.iter().map(Input::length).sum()))?;

    let files_per_input = outputs.iter().count();
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
        destination: Destination::new(&outputs.keys, outputs.values.as_ref(), bytes).or_up_to(sizes.most_bytes::<W>()),
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
    unique: bool,
    /// The checksum, if the output will be verified: of all keys and values that are read, or with `unique` that are
    /// written.
    checksum: Option<Checksum>,
    assume_sorted: bool,
    stats: Stats,
    /// Bytes of a value.
    width: usize,
}

impl Progress {
    /// Merges files while they are read, so that only a part of each is in memory.
    fn streamed<W: Word>(
        &mut self,
        options: Options,
        inputs: Vec<Input>,
        values: Option<Vec<Input>>,
        outputs: Outputs,
    ) -> Result<(Writers, u64)> {
        let mut values = values.into_iter().flatten();
        let of_sources = self.checksum.clone().filter(|_| !self.unique);
        let sources = inputs.into_iter().map(|keys| {
            let payload = values.next().map_or(PayloadSource::None, |values| {
                PayloadSource::Values(Concatenation::new(vec![values]), self.width)
            });
            SortedSource::<W>::new(keys, payload, !self.assume_sorted, of_sources.clone())
        });
        let sources = sources.collect::<Result<Vec<_>>>()?;
        let checksum = self.checksum.clone().filter(|_| self.unique);
        let begin = || Ok(Written { writers: outputs.begin()?, checksum });
        let (Written { writers, .. }, summary) = spilled::merge::<W, _>(&options, sources, begin, &mut self.stats)?;
        self.stats.keys = summary.keys_read;
        self.stats.value_size = writers.values.as_ref().map(|_| self.width);
        Ok((writers, summary.keys_written))
    }

    /// Merges files that fit in memory.
    fn in_memory<W: Word>(
        &mut self,
        runs: Runs,
        mut engine: ChosenEngine,
        files: Files,
        outputs: Outputs,
    ) -> Result<(Writers, u64)> {
        let merged = in_memory::merge::<W>(files, &runs, &mut engine, &mut self.stats)?;
        let Merged { mut keys, mut values, width } = merged;
        self.width = width;
        if self.unique {
            let kept = self.stats.time(Phase::Compute, || unique(&mut keys, &mut values, width, None));
            keys.truncate(kept);
            values.truncate(kept * width);
        }
        if let Some(checksum) = self.checksum.as_ref().filter(|_| self.unique) {
            checksum.add(&keys, &values, width);
        }
        self.stats.engine = engine.name()?;
        let writers = write_all::<W>(outputs, &keys, &values, width, &mut self.stats)?;
        Ok((writers, keys.len() as u64))
    }
}
