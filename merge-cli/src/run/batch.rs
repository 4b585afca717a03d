//! A merge of many pairs of runs.

use super::engine::{ChosenEngine, work_of};
use super::finish;
use super::in_memory::{self, Files, Merged, split_values};
use super::merge::Columns;
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
    let Batch { inputs, key_type, values, runs, output, assume_sorted, resources, mut stats } = job;
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
    let columns = Columns { keys: &keys, values: &values, width };
    let (keys, values) = columns.write(output, values_output, &mut stats)?;
    finish([keys].into_iter().chain(values), stats)
}
