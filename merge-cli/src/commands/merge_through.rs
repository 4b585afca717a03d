//! Merges files while they are read, so that of each there is only a part in memory.

use super::pair::Merge;
use super::values::ValueFiles;
use crate::args::{EngineChoice, MemoryArgs};
use crate::engine::cpu;
use crate::error::{Failure, Result};
use crate::external::{Along, Coding, External, Outputs, Shape, SortedFile, Source, check_space};
use crate::input::Input;
use crate::key_type::FileKey;
use crate::memory;
use crate::order::order_of;
use crate::output::{self, Output};
use crate::report;
use crate::stats::{Phase, Stats};

/// Bytes of keys that are merged faster while they are read: the memory for a part is used again for the next one, and
/// reading, merging and writing go on at the same time.
const WORTH_IT: u128 = 64 << 20;
/// Bytes of memory that are enough for that, and for each of many files.
const ENOUGH: u64 = 512 << 20;
const ENOUGH_FOR_A_FILE: u64 = 2 << 20;

/// How to merge so, if that is better than in memory: files that do not fit, large ones, and pipes, of which nobody knows
/// how long they are.
pub fn plan<K: FileKey>(
    files: &Merge,
    args: &MemoryArgs,
    counts: &[Option<u64>],
    values: Option<&ValueFiles>,
    output: &Output,
) -> Result<Option<External>> {
    let budget = memory::budget(args.memory)?;
    let memory = budget.min(ENOUGH.max(ENOUGH_FOR_A_FILE * counts.len() as u64));
    let known: Option<Vec<u64>> = counts.iter().copied().collect();
    let engine = files.args.engine.engine;
    let (along, total) = match (&known, values) {
        (Some(counts), None) => (Along::Nothing, Some(counts.iter().sum())),
        // Without any keys there are no values.
        (Some(counts), Some(values)) => match values.width(files, counts)? {
            Some(width) if width > 0 => (Along::Values(width), Some(counts.iter().sum())),
            _ => return Ok(None),
        },
        (None, None) if engine != EngineChoice::Gpu && !output.needs_count() => (Along::Nothing, None),
        (None, _) => return Ok(None),
    };
    let shape = Shape { key: K::SIZE, along };
    let external = External { shape, memory, folder: args.folder(), batch_size: args.batch_size, unique: false };
    let at_once = || -> Result<bool> { Ok(counts.len() <= shape.fan_in(memory, args.batch_size)?) };
    let Some(count) = total else {
        // More of them than can be merged at once would have to be counted first.
        if !at_once()? {
            return Ok(None);
        }
        report::verbose(format_args!("plan: merged while read, as pipes do not tell how long they are"));
        return Ok(Some(external));
    };
    let needed = shape.in_memory(count);
    if needed <= budget.into() {
        let bytes = u128::from(count) * K::SIZE as u128;
        // What a pipe has taken does not come back, where a file turns out not to be sorted.
        let is_safe = files.args.assume_sorted || output.folder().is_some();
        let is_faster = along == Along::Nothing && engine != EngineChoice::Gpu && bytes >= WORTH_IT && is_safe;
        if !is_faster || !at_once()? {
            report::verbose(format_args!("plan: in memory, of which {budget} bytes may be used"));
            return Ok(None);
        }
    }
    if engine == EngineChoice::Gpu {
        return Err(Failure::new(format!(
            "--engine gpu: merges in memory, and these files take {needed} bytes, of {budget} that may be used; --engine \
             auto merges them on the CPU while they are read"
        )));
    }
    report::verbose(format_args!("plan: merged while read, with {memory} bytes of memory"));
    if !at_once()? {
        let bytes = u128::from(count) * (K::SIZE + along.width()) as u128;
        let output = output.folder().map(|folder| (folder, bytes));
        check_space(&external.folder, bytes, output, files.keys[0])?;
    }
    Ok(Some(external))
}

/// Files to merge.
pub struct Through<'a> {
    pub files: &'a Merge<'a>,
    pub external: External,
    pub inputs: Vec<Input>,
    /// How many keys each input has, if it tells.
    pub counts: Vec<Option<u64>>,
    pub values: Option<ValueFiles>,
    pub output: Output,
    pub stats: Stats,
}

/// Merges the files, and writes the output.
pub fn run<K: FileKey>(through: Through) -> Result<()> {
    let Through { files, external, inputs, counts, values, mut output, mut stats } = through;
    let (args, along) = (files.args, external.shape.along);
    let coding = Coding::of::<K>(order_of(args.reverse));
    let (value_inputs, value_output) = values.map(|values| (values.inputs, values.output)).unzip();
    let mut value_inputs = value_inputs.into_iter().flatten();
    let runs = inputs.into_iter().map(|keys| {
        let values = if along == Along::Nothing { None } else { value_inputs.next() };
        SortedFile::new(Source { keys, values, along, coding, key_of: None, position: 0 }, !args.assume_sorted)
    });
    let runs = runs.collect::<Result<Vec<_>>>()?;
    if let Some(count) = counts.iter().copied().sum() {
        output.expect(count);
    }
    // The merges of parts are short, and the GPU is far away.
    let engine = cpu(args.common.parallel)?;
    stats.engine = engine.kind().name();
    let begin = || {
        let values = value_output.map(Output::begin).transpose()?;
        Ok(Outputs { keys: Some(output.begin()?), values, coding })
    };
    let (outputs, count) = external.merge(runs, &engine, begin, &mut stats)?;
    stats.keys = count;
    if let Along::Values(width) = along {
        stats.value_size = Some(width);
    }
    let writers: Vec<_> = [outputs.keys, outputs.values].into_iter().flatten().collect();
    stats.time(Phase::Write, || output::finish(writers))?;
    stats.print(args.common.stats);
    Ok(())
}
