//! A merge of many pairs of runs.

use super::engine::{ChosenEngine, work_of};
use super::in_memory::{self, Files, Merged, Merging, Runs, split_values};
use super::merge::Columns;
use super::order::{first_disorder_between, first_disorder_in_runs};
use crate::coding::{Word, with_word};
use crate::file::Input;
use crate::file::offsets::Offsets;
use crate::file::output::commit;
use crate::file::values::known_width;
use crate::job::{Batch, BatchRuns};
use crate::os::{memory, threads};
use crate::plan::Destination;
use crate::say::error::{Failure, Result, name};
use crate::say::stats::Phase;
use merge_host::Work;
use merge_host::external::Shape;
use std::path::PathBuf;

/// Merges the pairs of runs of two files.
pub fn run(job: Batch) -> Result<()> {
    with_word!(job.key_type.size(), W => batch::<W>(job))
}

fn batch<W: Word>(job: Batch) -> Result<()> {
    let Batch { inputs, key_type, values, runs, output, assume_sorted, resources, mut stats } = job;
    let paths = inputs.iter().map(|input| input.path().to_owned()).collect();
    let counts = inputs.iter().map(Input::count::<W>).collect::<Result<Vec<_>>>()?;
    let known = u128::from(counts.iter().flatten().sum::<u64>());
    output.check_space(known * W::SIZE as u128)?;
    let mut width = 0;
    if let Some(values) = &values {
        width = known_width(&inputs, W::SIZE, &values.input)?.unwrap_or(0);
        values.output.check_space(known * width as u128)?;
    }
    let bytes = [W::SIZE, width].map(|size| known * size as u128);
    let values_output = values.as_ref().map(|values| &values.output);
    let files = Destination::new(&output, values_output, bytes).in_memory();
    let shape = Shape { key: W::SIZE, width };
    let purpose =
        format!("the batch of {}", inputs.iter().map(|input| name(input.path())).collect::<Vec<_>>().join(" and "));
    memory::check(shape.in_memory(counts.iter().flatten().sum()) + u128::from(files), &purpose)?;
    threads::start(resources.threads, threads::useful(inputs.iter().map(Input::length).sum()))?;
    let work = work_of(counts.iter().copied().sum(), |keys| Work::merge::<W>(keys).with_values(width));
    let mut engine = ChosenEngine::start(resources.processors.clone(), key_type, work)?;
    let (values, values_output) = split_values(values);
    let counts: Option<Vec<u64>> = counts.into_iter().collect();
    let files = Files { inputs, values, assume_sorted, checksum: None };
    let merged = match runs {
        BatchRuns::OfLength { d, a_len } => {
            let runs = RunsOfLength { d, lengths: [a_len, d - a_len], paths };
            counts.map_or(Ok(()), |counts| Merging::<W>::check_counts(&runs, &counts))?;
            in_memory::merge::<W>(files, &runs, &mut engine, &mut stats)
        }
        BatchRuns::Between([a, b]) => {
            let offsets = [Offsets::read(a)?, Offsets::read(b)?];
            offsets[0].check_as_many(&offsets[1])?;
            let runs = RunsBetween { offsets, paths };
            counts.map_or(Ok(()), |counts| Merging::<W>::check_counts(&runs, &counts))?;
            in_memory::merge::<W>(files, &runs, &mut engine, &mut stats)
        }
    };
    let Merged { keys, values, width } = merged?;
    stats.engine = engine.name()?;
    let columns = Columns { keys: &keys, values: &values, width };
    let (keys, values) = columns.write(output, values_output, &mut stats)?;
    stats.time(Phase::Write, || commit([keys].into_iter().chain(values)))?;
    stats.print();
    Ok(())
}

/// Many runs of equal length in each file.
struct RunsOfLength {
    d: usize,
    /// Keys of a run, in A and in B.
    lengths: [usize; 2],
    paths: Vec<PathBuf>,
}

impl<W: Word> Merging<W> for RunsOfLength {
    fn check_counts(&self, counts: &[u64]) -> Result<()> {
        let mut runs = [None; 2];
        for (i, &count) in counts.iter().enumerate() {
            let (name, length) = (name(&self.paths[i]), self.lengths[i] as u64);
            // If the runs of a side have no keys, their number is the number of runs of the other side.
            if length == 0 && count > 0 {
                let side = ["A", "B"][i];
                return Err(Failure::new(format!(
                    "{name}: has {count} keys, expected none: -d and --a-len leave no keys of {side} in a run"
                )));
            }
            if length > 0 {
                if !count.is_multiple_of(length) {
                    return Err(Failure::new(format!(
                        "{name}: has {count} keys, expected a multiple of {length}, the length of its runs \
                         by -d and --a-len"
                    )));
                }
                runs[i] = Some(count / length);
            }
        }
        if let [Some(of_a), Some(of_b)] = runs
            && of_a != of_b
        {
            let [a_name, b_name] = [0, 1].map(|i| name(&self.paths[i]));
            let [a_len, b_len] = self.lengths;
            let (a, b) = (counts[0], counts[1]);
            return Err(Failure::new(format!(
                "{a_name}: {a} keys in runs of {a_len} make {of_a}, expected as many runs as in \
                 {b_name}: {b} keys in runs of {b_len} make {of_b}"
            )));
        }
        Ok(())
    }

    fn first_disorder(&self, input: usize, keys: &[W]) -> Option<usize> {
        first_disorder_in_runs(keys, self.lengths[input])
    }

    fn location(&self, input: usize, index: usize) -> String {
        format!(" (in run {})", index / self.lengths[input])
    }

    fn sort_flags(&self, input: usize) -> String {
        format!(" --segment-len {}", self.lengths[input])
    }

    fn runs(&self) -> Runs<'_> {
        Runs::OfLength { d: self.d, a_len: self.lengths[0] }
    }
}

/// Many runs of any lengths in each file.
struct RunsBetween {
    /// The offsets of the runs of A and of B.
    offsets: [Offsets; 2],
    paths: Vec<PathBuf>,
}

impl<W: Word> Merging<W> for RunsBetween {
    fn check_counts(&self, counts: &[u64]) -> Result<()> {
        let mut inputs = self.offsets.iter().zip(&self.paths).zip(counts);
        inputs.try_for_each(|((offsets, path), &count)| offsets.check(path, count))
    }

    fn first_disorder(&self, input: usize, keys: &[W]) -> Option<usize> {
        first_disorder_between(keys, self.offsets[input].get())
    }

    fn location(&self, input: usize, index: usize) -> String {
        format!(" (in run {})", self.offsets[input].run_of(index))
    }

    fn sort_flags(&self, input: usize) -> String {
        format!(" --segments {}", self.offsets[input].name())
    }

    fn runs(&self) -> Runs<'_> {
        Runs::Between(self.offsets.each_ref().map(Offsets::get))
    }
}
