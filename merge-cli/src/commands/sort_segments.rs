//! `gmerge sort --segments` and `--segment-len`: each segment of the input is sorted on its own.
//!
//! On the CPU: a GPU would have to sort all of it twice.

use super::sort::Sort;
use super::sort_values::ValueFile;
use crate::args::{EngineChoice, SegmentArgs, SortArgs};
use crate::engine::{ChosenEngine, start_threads};
use crate::error::{Failure, Result, name};
use crate::external::{Along, Shape};
use crate::input::{Input, check_standard_input};
use crate::key_type::FileKey;
use crate::memory;
use crate::offsets::Offsets;
use crate::order::order_of;
use crate::output::{self, Output, Writer};
use crate::stats::{Phase, Stats};
use bytemuck::Pod;
use merge_host::{Engine, Error, SortOrder, Timing};
use std::path::Path;

pub fn run<K: FileKey>(args: &SortArgs, inputs: [Input; 1]) -> Result<()> {
    let mut stats = Stats::begin::<K>("sort");
    if args.engine.engine == EngineChoice::Gpu {
        return Err(Failure::new("--engine gpu: segments are sorted on the CPU"));
    }
    let files = [("IN", Some(&args.input)), ("OFFSETS", args.segments.segments.as_ref()), ("V", args.values.as_ref())];
    check_standard_input(files.into_iter().filter_map(|(name, path)| Some((name, &**path?))))?;
    let count = inputs[0].count::<K>()?;
    start_threads(args.common.parallel)?;
    let segments = Segments::of(&args.segments)?;
    count.map_or(Ok(()), |count| segments.check(&args.input, count))?;
    let output = Output::prepare_keys::<K>(&args.output.as_output(), &args.common, &inputs)?;
    let [mut input] = inputs;
    output.check_space(u128::from(count.unwrap_or(0)) * K::SIZE as u128)?;
    let values = ValueFile::open(args, count, &output)?;

    let mut engine = ChosenEngine::start::<K>(EngineChoice::Cpu, args.common.parallel)?;
    let (memory, order) = (memory::budget(args.memory.memory)?, order_of(args.reverse));
    if let (Some(count), None) = (count, &values) {
        stats.keys = count;
        let offsets = segments.offsets(count as usize);
        let writer = part_by_part::<K>(order, &mut input, &offsets, output, memory, &mut engine, &mut stats)?;
        stats.time(Phase::Write, || output::finish([writer]))?;
        stats.engine = engine.name()?;
        stats.print(args.common.stats);
        return Ok(());
    }
    let mut keys = stats.time(Phase::Read, || input.read_all::<K>())?;
    stats.keys = keys.len() as u64;
    segments.check(&args.input, stats.keys)?;
    let how = Sorting { order, offsets: Some(segments.offsets(keys.len())) };
    if let Some(values) = values {
        let sort = Sort { args, order, memory, engine, input, output, output_bytes: 0, stats };
        return values.sort(sort, how, keys);
    }
    let sort = |engine: &Engine, keys: &mut Vec<K>| how.sort(engine, keys);
    stats.add(engine.run(&mut keys, sort, |keys| input.read_again(keys))?);
    stats.time(Phase::Write, || output::finish([output.write(bytemuck::cast_slice(&keys))?]))?;
    stats.engine = engine.name()?;
    stats.print(args.common.stats);
    Ok(())
}

/// Sorts the segments between `offsets`, as many at once as `memory` bytes are enough for, and writes them.
fn part_by_part<K: FileKey>(
    order: SortOrder,
    input: &mut Input,
    mut offsets: &[usize],
    mut output: Output,
    memory: u64,
    engine: &mut ChosenEngine,
    stats: &mut Stats,
) -> Result<Writer> {
    output.expect(stats.keys);
    let mut writer = output.begin()?;
    let most =
        usize::try_from(Shape { key: K::SIZE, along: Along::Nothing }.most_in_memory(memory)).unwrap_or(usize::MAX);
    while let [begin, _, ..] = *offsets {
        let last = offsets.partition_point(|&offset| offset - begin <= most) - 1;
        if last == 0 {
            let (keys, place) = (offsets[1] - begin, input.offset_of::<K>(begin as u64));
            let message =
                format!("the segment at byte {place} has {keys} keys, too many for the {memory} bytes of --memory");
            return Err(Failure::file(input.path(), message));
        }
        let part = offsets[..=last].iter().map(|offset| offset - begin).collect();
        let how = Sorting { order, offsets: Some(part) };
        let mut keys = memory::zeroed::<K>((offsets[last] - begin) as u64, &name(input.path()))?;
        stats.time(Phase::Read, || input.read(&mut keys))?;
        stats.add(engine.run(&mut keys, |engine: &Engine, keys| how.sort(engine, keys), |_| Ok(false))?);
        stats.time(Phase::Write, || writer.write(bytemuck::cast_slice(&keys)))?;
        offsets = &offsets[last..];
    }
    Ok(writer)
}

/// How the command line tells where segments are.
enum Segments {
    Between(Offsets),
    OfLength(usize),
}

impl Segments {
    fn of(args: &SegmentArgs) -> Result<Self> {
        match &args.segments {
            Some(path) => Ok(Self::Between(Offsets::read(path)?)),
            // Without a file of offsets, this is given.
            None => Ok(Self::OfLength(args.segment_len.unwrap_or(1))),
        }
    }

    /// An error unless the file at `path`, which has so many keys, can be divided into these segments.
    fn check(&self, path: &Path, keys: u64) -> Result<()> {
        match self {
            Self::Between(offsets) => offsets.check(path, keys),
            Self::OfLength(length) if keys.is_multiple_of(*length as u64) => Ok(()),
            Self::OfLength(length) => {
                let name = name(path);
                Err(Failure::new(format!(
                    "{name}: has {keys} keys, expected a multiple of {length}, the --segment-len given"
                )))
            }
        }
    }

    /// Where segments of so many keys begin, and the last one ends.
    fn offsets(self, keys: usize) -> Vec<usize> {
        match self {
            Self::Between(offsets) => offsets.into_inner(),
            Self::OfLength(length) => (0..keys).step_by(length).chain([keys]).collect(),
        }
    }
}

/// How keys are sorted.
pub struct Sorting {
    order: SortOrder,
    /// Where segments begin that are sorted each on its own, and the last one ends.
    offsets: Option<Vec<usize>>,
}

impl From<SortOrder> for Sorting {
    fn from(order: SortOrder) -> Self {
        Self { order, offsets: None }
    }
}

impl Sorting {
    /// Sorts keys.
    pub fn sort<K: FileKey>(&self, engine: &Engine, keys: &mut [K]) -> std::result::Result<Timing, Error> {
        match &self.offsets {
            Some(offsets) => engine.sort_segments(self.order, keys, offsets),
            None => engine.sort_with(self.order, keys),
        }
    }

    /// Sorts keys with values.
    pub fn sort_pairs<K: FileKey, V: Pod + Send + Sync>(
        &self,
        engine: &Engine,
        keys: &mut [K],
        values: &mut [V],
    ) -> std::result::Result<Timing, Error> {
        match &self.offsets {
            Some(offsets) => engine.sort_segments_pairs(self.order, keys, values, offsets),
            None => engine.sort_pairs(self.order, keys, values),
        }
    }
}
