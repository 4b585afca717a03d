//! A merge of many pairs of runs.

use super::engine::{ChosenEngine, work_of};
use super::finish;
use super::in_memory::{self, Files, Merged, write_all};
use super::runs::Runs;
use crate::coding::Word;
use crate::file::Input;
use crate::file::offsets::Offsets;
use crate::file::values::known_width;
use crate::job::{Batch, BatchRuns};
use crate::os::{memory, threads};
use crate::plan::Destination;
use crate::say::error::{Result, name};
use merge_host::Work;
use merge_host::external::Shape;

/// Merges the pairs of runs of two files.
pub fn run<W: Word>(job: Batch) -> Result<()> {
    let Batch { inputs, key_type, values, runs, outputs, assume_sorted, resources, mut stats } = job;
    let counts = inputs.iter().map(Input::count::<W>).collect::<Result<Vec<_>>>()?;
    let known = u128::from(counts.iter().flatten().sum::<u64>());
    let width = match &values {
        Some(values) => known_width(&inputs, W::SIZE, values)?.unwrap_or(0),
        None => 0,
    };
    let bytes = [W::SIZE, width].map(|size| known * size as u128);
    outputs.check_space(bytes)?;
    let files = Destination::new(&outputs.keys, outputs.values.as_ref(), bytes).in_memory();
    let shape = Shape { key: W::SIZE, width };
    let purpose =
        format!("the batch of {}", inputs.iter().map(|input| name(input.path())).collect::<Vec<_>>().join(" and "));
    memory::check(shape.in_memory(counts.iter().flatten().sum()) + u128::from(files), &purpose)?;
    threads::start(resources.threads, threads::useful(inputs.iter().map(Input::length).sum()))?;
    let work = work_of(counts.iter().copied().sum(), |keys| Work::merge::<W>(keys).with_values(width));
    let mut engine = ChosenEngine::start(resources.processors.clone(), key_type, work)?;
    let runs = match runs {
        BatchRuns::OfLength { d, a_len } => Runs::OfLength { d, a_len },
        BatchRuns::Between([a, b]) => {
            let offsets = [Offsets::read(a)?, Offsets::read(b)?];
            offsets[0].check_as_many(&offsets[1])?;
            Runs::Between(offsets)
        }
    };
    let counts: Option<Vec<u64>> = counts.into_iter().collect();
    counts.map_or(Ok(()), |counts| runs.check_counts(&inputs, &counts))?;
    let files = Files { inputs, values, assume_sorted, checksum: None };
    let Merged { keys, values, width } = in_memory::merge::<W>(files, &runs, &mut engine, &mut stats)?;
    stats.engine = engine.name()?;
    let writers = write_all::<W>(outputs, &keys, &values, width, &mut stats)?;
    finish(writers, stats)
}
