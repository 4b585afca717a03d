//! A merge of sorted files, in memory or while they are read.

use super::checksum::Checksum;
use super::engine::{ChosenEngine, work_of};
use super::in_memory::{self, Files, Merged, Merging, Runs, split_values};
use super::order::first_disorder;
use super::spilled::{self, Outputs, PayloadSource, SortedSource};
use super::verify::{Expected, verify};
use crate::coding::{Word, with_word};
use crate::file::output::commit;
use crate::file::values::known_width;
use crate::file::{Concatenation, Input, Output, Writer};
use crate::job::Merge;
use crate::os::{limits, threads};
use crate::plan::{self, Destination, MergeFacts};
use crate::say::error::{Failure, Result};
use crate::say::stats::{Phase, Stats};
use merge_host::external::{Options, Shape};
use merge_host::{MergeKernel, Work, unique};

/// Merges files.
pub fn run(job: Merge) -> Result<()> {
    with_word!(job.key_type.size(), W => merge::<W>(job))
}

fn merge<W: Word>(job: Merge) -> Result<()> {
    let Merge {
        inputs,
        key_type,
        values,
        kernel,
        mut output,
        unique,
        verify: is_verified,
        assume_sorted,
        resources,
        stats,
    } = job;
    if is_verified {
        output.check_can_be_read_back("--output")?;
        values.iter().try_for_each(|values| values.output.check_can_be_read_back("--values-out"))?;
    }
    let counts = inputs.iter().map(Input::count::<W>).collect::<Result<Vec<_>>>()?;
    let count: Option<u64> = counts.iter().copied().sum();
    let known = u128::from(if unique { 0 } else { counts.iter().flatten().sum() });
    output.check_space(known * W::SIZE as u128)?;
    let width = match &values {
        None => Some(0),
        Some(values) => known_width(&inputs, W::SIZE, &values.input)?,
    };
    let (values, mut values_output) = split_values(values);
    let bytes = [known * W::SIZE as u128, known * width.unwrap_or(0) as u128];
    let most = count.zip(width).map(|(count, width)| [W::SIZE, width].map(|size| u128::from(count) * size as u128));
    if let Some(output) = &mut values_output {
        output.set_size(width.unwrap_or(1));
        output.check_space(bytes[1])?;
    }
    let written = count.filter(|_| !unique);
    output.expect(written);
    values_output.iter_mut().for_each(|output| output.expect(written));
    threads::start(resources.threads, threads::useful(inputs.iter().map(Input::length).sum()))?;

    let files_per_input = if values.is_some() { 2 } else { 1 };
    let max_open = limits::open_files(inputs.len() * files_per_input) / files_per_input;
    let path = inputs.first().map_or_else(|| output.path().to_owned(), |input| input.path().to_owned());
    let facts = MergeFacts {
        shape: Shape { key: W::SIZE, width: width.unwrap_or(0) },
        files: inputs.len(),
        count: count.filter(|_| width.is_some()),
        needs_count: written.is_none() && [&output].into_iter().chain(&values_output).any(Output::needs_count)
            || width.is_none(),
        may_fail_late: assume_sorted || output.folder().is_some(),
        kernel: kernel.map(MergeKernel::name),
        destination: Destination::new(&output, values_output.as_ref(), bytes).or_up_to(most),
        path: &path,
    };
    // Values of no bytes are those of no keys.
    let options = match (width, &values) {
        (Some(0), Some(_)) => None,
        _ => plan::merge(facts, &resources, max_open)?,
    };
    let mut merging = Progress {
        unique,
        checksum: is_verified.then(Checksum::default),
        assume_sorted,
        stats,
        width: width.unwrap_or(0),
    };
    let (keys, values_writer, count) = match options {
        Some(options) => merging.streamed::<W>(Options { unique, ..options }, inputs, values, output, values_output)?,
        None => {
            let work = work_of(count, |keys| Work::merge::<W>(keys).with_values(width.unwrap_or(0)));
            let engine = ChosenEngine::start(resources.processors.clone(), key_type, work)?;
            let kernel = if inputs.len() == 2 { Some(kernel.unwrap_or(MergeKernel::Auto)) } else { None };
            let checksum = merging.checksum.clone().filter(|_| !unique);
            let files = Files { inputs, values, assume_sorted, checksum };
            merging.in_memory::<W>(Whole { kernel }, engine, files, output, values_output)?
        }
    };
    let Progress { unique, checksum, assume_sorted: _, mut stats, width } = merging;
    if let Some(checksum) = checksum {
        let expected = Expected { count, checksum: checksum.get(), unique, width };
        stats.time(Phase::Check, || verify::<W>(&keys, values_writer.as_ref(), expected))?;
    }
    stats.time(Phase::Write, || commit([keys].into_iter().chain(values_writer)))?;
    stats.print();
    Ok(())
}

/// What a merge has come to.
struct Progress {
    unique: bool,
    /// Of the keys and values that are read, or with `unique` written, if the output will be verified.
    checksum: Option<Checksum>,
    assume_sorted: bool,
    stats: Stats,
    /// Bytes of a value.
    width: usize,
}

/// Outputs on their way, and the number of their keys.
type Written = (Writer, Option<Writer>, u64);

impl Progress {
    /// Merges files while they are read, so that only a part of each is in memory.
    fn streamed<W: Word>(
        &mut self,
        options: Options,
        inputs: Vec<Input>,
        values: Option<Vec<Input>>,
        output: Output,
        values_output: Option<Output>,
    ) -> Result<Written> {
        let mut values = values.into_iter().flatten();
        let of_sources = self.checksum.clone().filter(|_| !self.unique);
        let sources = inputs.into_iter().map(|keys| {
            let payload = values.next().map_or(PayloadSource::None, |values| {
                PayloadSource::Values(Concatenation::new(vec![values]), self.width)
            });
            SortedSource::<W>::new(keys, payload, !self.assume_sorted, of_sources.clone())
        });
        let sources = sources.collect::<Result<Vec<_>>>()?;
        let of_outputs = self.checksum.clone().filter(|_| self.unique);
        let begin = || {
            let (keys, values) = (output.begin()?, values_output.map(Output::begin).transpose()?);
            Ok(Outputs { keys, values, checksum: of_outputs })
        };
        let merged = spilled::merge::<W, _>(&options, sources, begin, &mut self.stats)?;
        let (Outputs { keys, values, checksum: _ }, summary) = merged;
        self.stats.keys = summary.keys_read;
        self.stats.value_size = values.as_ref().map(|_| self.width);
        Ok((keys, values, summary.keys_written))
    }

    /// Merges files that fit in memory.
    fn in_memory<W: Word>(
        &mut self,
        whole: Whole,
        mut engine: ChosenEngine,
        files: Files,
        output: Output,
        values_output: Option<Output>,
    ) -> Result<Written> {
        let merged = in_memory::merge::<W>(files, &whole, &mut engine, &mut self.stats)?;
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
        let written = write(&keys, &values, width, output, values_output, &mut self.stats)?;
        Ok((written.0, written.1, keys.len() as u64))
    }
}

/// Writes merged keys, and their values of `width` bytes.
pub fn write<W: Word>(
    keys: &[W],
    values: &[u8],
    width: usize,
    mut output: Output,
    values_output: Option<Output>,
    stats: &mut Stats,
) -> Result<(Writer, Option<Writer>)> {
    stats.time(Phase::Write, || {
        output.expect(keys.len() as u64);
        let mut writer = output.begin()?;
        writer.write(keys)?;
        let write_values = |mut output: Output| {
            output.set_size(width);
            output.expect(keys.len() as u64);
            let mut writer = output.begin()?;
            writer.write(values)?;
            Ok::<_, Failure>(writer)
        };
        Ok((writer, values_output.map(write_values).transpose()?))
    })
}

/// One run in each file.
struct Whole {
    /// For two files.
    kernel: Option<MergeKernel>,
}

impl<W: Word> Merging<W> for Whole {
    fn first_disorder(&self, _input: usize, keys: &[W]) -> Option<usize> {
        first_disorder(keys, false)
    }

    fn runs(&self) -> Runs<'_> {
        Runs::Whole(self.kernel)
    }
}
