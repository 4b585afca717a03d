//! Set operations on sorted files, in memory by any engine, or by the CPU while they are read.
//!
//! The CPU merges files that do not fit in memory. The payload of a key is a byte that names its file. Equal keys are
//! neighbours in the merged keys. Their numbers m from A and n from B determine how often the operation writes the key:
//!
//! ```text
//!   merged   3 3 3 5 5 7          union  3 3 5 7      m, n = 2, 1   1, 1   1, 0
//!   from     A A B A B A
//! ```

use super::engine::{ChosenEngine, work_of};
use super::finish;
use super::order::{first_disorder, not_sorted};
use super::spilled::{self, Carried, PayloadSource, SortedSource};
use super::written::{Chosen, Form, Writing, Written, sources_of};
use crate::coding::Word;
use crate::file::{Input, Output, Outputs, Writer, Writers};
use crate::job::{Items, Keep, Set};
use crate::os::{memory, threads};
use crate::plan::{self, Destination};
use crate::records::Records;
use crate::say::error::{Failure, Result};
use crate::say::stats::{Phase, Stats};
use merge_host::external::{Options, Shape, Target};
use merge_host::{SetOperation, Work};

/// Keys that are written at once.
const BLOCK: usize = 1 << 18;

/// Does a set operation.
pub fn run<W: Word>(job: Set) -> Result<()> {
    let Set { operation, inputs, items, output, assume_sorted, resources, mut stats } = job;
    let counts = inputs.iter().map(|input| items.count(input)).collect::<Result<Vec<_>>>()?;
    let bytes: Option<u64> = inputs.iter().map(Input::length).sum();
    threads::start(resources.threads, threads::useful(bytes))?;
    let most = match counts[..] {
        [Some(a), Some(b)] => Some([operation.most_keys(a as usize, b as usize) as u128 * items.size() as u128, 0]),
        _ => None,
    };
    let destination = Destination::new(&output, None, [0; 2]).or_up_to(most);
    let key_type = match items {
        Items::Keys(key_type) => key_type,
        Items::Records(records) => {
            output.check_needs_no_count("--key")?;
            let options = plan::set_of_records(records.layout.size + 1, destination, &resources)?;
            let sources = RecordSources { records, inputs, counts, checked: !assume_sorted };
            let writers = of_records::<W>(operation, options, sources, output, &mut stats)?;
            return finish(writers, stats);
        }
    };
    let writer = match plan::set(Shape { key: W::SIZE, width: 1 }, bytes, destination, &resources)? {
        Some(options) => streamed::<W>(operation, options, inputs, assume_sorted, output, &mut stats)?,
        None => {
            let work = work_of(counts.into_iter().sum(), Work::set_operation::<W>);
            let engine = ChosenEngine::start(resources.processors.clone(), key_type, work)?;
            in_memory::<W>(operation, engine, inputs, assume_sorted, output, &mut stats)?
        }
    };
    finish([writer], stats)
}

fn in_memory<W: Word>(
    operation: SetOperation,
    mut engine: ChosenEngine,
    mut inputs: Vec<Input>,
    assume_sorted: bool,
    mut output: Output,
    stats: &mut Stats,
) -> Result<Writer> {
    let keys = stats.time(Phase::Read, || inputs.iter_mut().map(Input::read_all::<W>).collect::<Result<Vec<_>>>())?;
    if !assume_sorted {
        for (input, keys) in inputs.iter().zip(&keys) {
            if let Some(index) = stats.time(Phase::Check, || first_disorder(keys, false)) {
                return Err(not_sorted(input, [keys[index - 1], keys[index]], index as u64, "", ""));
            }
        }
    }
    let [a, b] = &keys[..] else { return Err(Failure::new("a set operation has two inputs")) };
    stats.keys = (a.len() + b.len()) as u64;
    let most = operation.most_keys(a.len(), b.len());
    memory::check(most as u128 * W::SIZE as u128, "the output")?;
    let mut out = Vec::new();
    stats.add(engine.run(&mut out, |engine, out| engine.set_operation(operation, a, b, out))?);
    stats.engine = engine.name()?;
    output.check_space(out.len() as u128 * W::SIZE as u128)?;
    output.expect(out.len() as u64);
    let mut writer = output.begin()?;
    stats.time(Phase::Write, || writer.write(&out))?;
    Ok(writer)
}

fn streamed<W: Word>(
    operation: SetOperation,
    options: Options,
    inputs: Vec<Input>,
    assume_sorted: bool,
    output: Output,
    stats: &mut Stats,
) -> Result<Writer> {
    let sources = inputs.into_iter().zip(0..).map(|(keys, origin)| {
        let count = keys.count::<W>()?;
        Ok(SortedSource::<W>::new(keys, count, PayloadSource::Origin(origin), !assume_sorted, None))
    });
    let sources = sources.collect::<Result<Vec<_>>>()?;
    let begin = || {
        let (key, kept, writer) = (None, Vec::with_capacity(BLOCK), output.begin()?);
        Ok(Counted { operation, key, times: [0; 2], kept, writer })
    };
    let (mut counted, summary) = spilled::merge::<W, _>(&options, None, sources, begin, stats)?;
    stats.keys = summary.keys_read;
    stats.time(Phase::Write, || {
        counted.keep()?;
        counted.write_kept()
    })?;
    Ok(counted.writer)
}

/// The files of a set operation on records.
struct RecordSources {
    records: Records,
    /// A and B.
    inputs: Vec<Input>,
    /// The number of records of each, if known.
    counts: Vec<Option<u64>>,
    /// Whether an unsorted file is an error.
    checked: bool,
}

impl RecordSources {
    /// The sources of a merge, in the order that the operation needs. One file may be read twice.
    fn of<W: Word>(mut self, operation: SetOperation, options: &Options) -> Result<Vec<SortedSource<W>>> {
        let numbers = sources_of(operation);
        if numbers.len() > self.inputs.len() {
            // The operation is symmetric, so that either file may be the one that is read twice.
            if !self.inputs[0].is_regular() && self.inputs[1].is_regular() {
                self.inputs.swap(0, 1);
                self.counts.swap(0, 1);
            }
            if !self.inputs[0].is_regular() {
                let copy = self.inputs[0].copied(&options.folders)?;
                self.counts[0] = copy.length().map(|bytes| bytes / self.records.layout.size as u64);
                self.inputs[0] = copy;
            }
        }
        let again = self.inputs[0].again()?;
        let mut inputs: Vec<Option<Input>> = self.inputs.into_iter().map(Some).collect();
        let mut again = again.filter(|_| numbers.len() > inputs.len());
        let sources = numbers.iter().zip(0..).filter_map(|(number, origin)| {
            let input = inputs[*number].take().or_else(|| again.take())?;
            let payload = PayloadSource::Records(self.records.clone(), Carried::RecordFrom(origin));
            Some(SortedSource::new(input, self.counts[*number], payload, self.checked, None))
        });
        Ok(sources.collect())
    }
}

/// Does a set operation on records. The payload of a merge is a record and the number of its source.
fn of_records<W: Word>(
    operation: SetOperation,
    options: Options,
    sources: RecordSources,
    output: Output,
    stats: &mut Stats,
) -> Result<Writers> {
    let read_twice = sources_of(operation).len() > sources.inputs.len();
    let ties = Some(&sources.records).filter(|records| records.has_long_key()).map(|records| records.key.clone());
    let sources = sources.of::<W>(operation, &options)?;
    let of_first = if read_twice { sources[0].count() } else { None };
    let begin = || {
        let writing = Writing { form: Form::Record, keep: Keep::All, most: u64::MAX };
        Ok(Chosen::<W>::new(operation, Written::begin(Outputs::from(output), writing, None)?))
    };
    let (chosen, summary) = spilled::merge::<W, _>(&options, ties.as_ref(), sources, begin, stats)?;
    stats.keys = summary.keys_read - of_first.unwrap_or(0);
    Ok(stats.time(Phase::Write, || chosen.finish())?.0)
}

/// Counts equal keys, and writes the number of keys that the operation keeps.
struct Counted<W> {
    operation: SetOperation,
    /// The key that is being counted.
    key: Option<W>,
    /// The number of its occurrences in each file.
    times: [u64; 2],
    /// Keys to write.
    kept: Vec<W>,
    writer: Writer,
}

impl<W: Word> Target<W> for Counted<W> {
    type Error = Failure;

    fn write(&mut self, keys: &mut [W], origins: &mut [u8]) -> Result<()> {
        for (key, origin) in keys.iter().zip(&*origins) {
            if self.key != Some(*key) {
                self.keep()?;
                self.key = Some(*key);
            }
            self.times[usize::from(*origin & 1)] += 1;
        }
        Ok(())
    }
}

impl<W: Word> Counted<W> {
    /// Keeps the counted key as often as the operation does. All its occurrences have been counted.
    fn keep(&mut self) -> Result<()> {
        let ([m, n], Some(key)) = (std::mem::take(&mut self.times), self.key) else { return Ok(()) };
        let times = match self.operation {
            SetOperation::Union => m.max(n),
            SetOperation::Intersection => m.min(n),
            SetOperation::Difference => m.saturating_sub(n),
            SetOperation::SymmetricDifference => m.abs_diff(n),
        };
        for _ in 0..times {
            self.kept.push(key);
            if self.kept.len() == BLOCK {
                self.write_kept()?;
            }
        }
        Ok(())
    }

    fn write_kept(&mut self) -> Result<()> {
        self.writer.write(&self.kept)?;
        self.kept.clear();
        Ok(())
    }
}
