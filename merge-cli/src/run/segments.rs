//! A sort of each segment on its own, part by part, on the CPU: a GPU would have to sort all of it twice.

use super::engine::ChosenEngine;
use super::merge;
use crate::coding::{Word, with_word};
use crate::file::offsets::Offsets;
use crate::file::output::commit;
use crate::file::values::{self, Values};
use crate::file::{Concatenation, Output, Writer};
use crate::job::{SegmentBounds, Segments};
use crate::os::{memory, threads};
use crate::plan::Destination;
use crate::say::error::{Failure, Result, name};
use crate::say::stats::{Phase, Stats};
use crate::spec::EngineChoice;
use bytemuck::Pod;
use merge_host::external::Shape;
use merge_host::{Engine, Index, SortOrder, permutation};
use std::path::Path;

/// Sorts segments.
pub fn run(job: Segments) -> Result<()> {
    with_word!(job.key_type.size(), W => sort::<W>(job))
}

fn sort<W: Word>(job: Segments) -> Result<()> {
    let Segments { mut keys, key_type, values, bounds, mut output, resources, mut stats } = job;
    let count = keys.count::<W>()?;
    threads::start(resources.threads, threads::useful(keys.length()))?;
    let bounds = Bounds::read(bounds)?;
    count.map_or(Ok(()), |count| bounds.check(keys.path(), count))?;
    output.check_space(u128::from(count.unwrap_or(0)) * W::SIZE as u128)?;
    let width = values.as_ref().map(|values| values.known_width(&keys, W::SIZE)).transpose()?.flatten();
    let values_bytes = u128::from(count.unwrap_or(0)) * width.unwrap_or(0) as u128;
    values.as_ref().map_or(Ok(()), |values| values.output.check_space(values_bytes))?;
    let bytes = [u128::from(count.unwrap_or(0)) * W::SIZE as u128, values_bytes];
    let destination = Destination::new(&output, values.as_ref().map(|values| &values.output), bytes);
    let memory = memory::budget(resources.memory, destination.in_memory())?;
    let mut engine = ChosenEngine::start(EngineChoice::Cpu, key_type, None)?;

    if let (Some(count), true) = (count, values.is_none() || width.is_some()) {
        output.expect(count);
        let values = values.zip(width);
        let (input, values_output, width) = match values {
            Some((Values { input, output }, width)) => (Some(input), Some(output), width),
            None => (None, None, 0),
        };
        let mut parts = Parts::begin(keys, input, output, values_output, width, count)?;
        stats.keys = count;
        stats.value_size = (width > 0).then_some(width);
        parts.sort::<W>(&bounds, memory, &mut engine, &mut stats)?;
        let Parts { writer, values_writer, .. } = parts;
        stats.time(Phase::Write, || commit([writer].into_iter().chain(values_writer)))?;
    } else {
        // The numbers of a pipe's keys and values are known when all are read.
        let keys_path = keys.path().to_owned();
        let mut all = stats.time(Phase::Read, || keys.read_all::<W>())?;
        stats.keys = all.len() as u64;
        bounds.check(&keys_path, stats.keys)?;
        let offsets = bounds.offsets(all.len());
        let (mut bytes, mut width, mut values_output) = (Vec::new(), 0, None);
        if let Some(Values { mut input, output }) = values {
            bytes = stats.time(Phase::Read, || input.read_all::<u8>())?;
            let lengths = ([stats.keys], [bytes.len() as u64]);
            width = values::width(keys.inputs(), &lengths.0, input.inputs(), &lengths.1)?;
            stats.value_size = Some(width);
            values_output = Some(output);
        }
        stats.add(sort_part(&mut engine, &mut all, &mut bytes, width, &offsets)?);
        let (writer, values_writer) = merge::write(&all, &bytes, width, output, values_output, &mut stats)?;
        stats.time(Phase::Write, || commit([writer].into_iter().chain(values_writer)))?;
    }
    stats.engine = engine.name()?;
    stats.print();
    Ok(())
}

/// Files of keys and values that are sorted part by part, each of whole segments.
struct Parts {
    keys: Concatenation,
    values: Option<Concatenation>,
    writer: Writer,
    values_writer: Option<Writer>,
    width: usize,
}

impl Parts {
    fn begin(
        keys: Concatenation,
        values: Option<Concatenation>,
        output: Output,
        values_output: Option<Output>,
        width: usize,
        count: u64,
    ) -> Result<Self> {
        let values_writer = values_output.map(|mut output| {
            output.set_size(width);
            output.expect(count);
            output.begin()
        });
        Ok(Self { keys, values, writer: output.begin()?, values_writer: values_writer.transpose()?, width })
    }

    /// Sorts the segments, as many at once as `memory` bytes are enough for, and writes them.
    fn sort<W: Word>(
        &mut self,
        bounds: &Bounds,
        memory: u64,
        engine: &mut ChosenEngine,
        stats: &mut Stats,
    ) -> Result<()> {
        let shape = Shape { key: W::SIZE, width: self.width };
        // Each segment but the first adds an offset.
        let per_key = shape.in_memory(1 << 33) >> 33;
        let fits = |keys: usize, segments: usize| {
            per_key * keys as u128 + (segments.saturating_sub(1) * size_of::<usize>()) as u128 <= memory.into()
        };
        let mut begin = 0;
        while begin < stats.keys {
            let (end, offsets) = bounds.part(begin, stats.keys, fits);
            if end == begin {
                let end = bounds.end_of_segment(begin, stats.keys);
                let (input, index) = self.keys.locate::<W>(begin);
                let (segment, offset) = (end - begin, input.offset_of::<W>(index));
                let message = format!(
                    "the segment at byte {offset} has {segment} keys, too many for the {memory} bytes of --memory"
                );
                return Err(Failure::file(input.path(), message));
            }
            let mut keys = memory::zeroed::<W>(end - begin, &name(self.keys.path()))?;
            let mut values = memory::zeroed::<u8>((end - begin) * self.width as u64, "the values")?;
            stats.time(Phase::Read, || self.read(&mut keys, &mut values))?;
            stats.add(sort_part(engine, &mut keys, &mut values, self.width, &offsets)?);
            stats.time(Phase::Write, || {
                self.writer.write(&keys)?;
                self.values_writer.as_mut().map_or(Ok(()), |writer| writer.write(&values))
            })?;
            begin = end;
        }
        Ok(())
    }

    fn read<W: Word>(&mut self, keys: &mut [W], values: &mut [u8]) -> Result<()> {
        self.keys.read(keys)?;
        self.values.as_mut().map_or(Ok(0), |input| input.read(values)).map(|_| ())
    }
}

/// Sorts the segments of `keys` between `offsets`, with values of `width` bytes.
fn sort_part<W: Word>(
    engine: &mut ChosenEngine,
    keys: &mut [W],
    values: &mut [u8],
    width: usize,
    offsets: &[usize],
) -> Result<merge_host::Timing> {
    match width {
        0 => engine.run(&mut { keys }, |engine, keys| engine.sort_segments(SortOrder::Ascending, keys, offsets)),
        4 => sort_numbers::<W, u32>(engine, keys, values, offsets),
        8 => sort_numbers::<W, u64>(engine, keys, values, offsets),
        _ if u32::try_from(keys.len()).is_ok() => sort_by_index::<W, u32>(engine, keys, values, width, offsets),
        _ => sort_by_index::<W, u64>(engine, keys, values, width, offsets),
    }
}

/// Sorts with values that are numbers of type `V`.
fn sort_numbers<W: Word, V: Pod + Send + Sync>(
    engine: &mut ChosenEngine,
    keys: &mut [W],
    values: &mut [u8],
    offsets: &[usize],
) -> Result<merge_host::Timing> {
    // Bytes need not begin where numbers may.
    let mut numbers: Vec<V> = bytemuck::pod_collect_to_vec(values);
    let timing = sort_pairs(engine, keys, &mut numbers, offsets)?;
    values.copy_from_slice(bytemuck::cast_slice(&numbers));
    Ok(timing)
}

/// Sorts with the indices of the values, which are moved once.
fn sort_by_index<W: Word, I: Index>(
    engine: &mut ChosenEngine,
    keys: &mut [W],
    values: &mut [u8],
    width: usize,
    offsets: &[usize],
) -> Result<merge_host::Timing> {
    let mut order = memory::zeroed::<I>(keys.len() as u64, "the indices of the values")?;
    permutation::fill_identity(&mut order);
    let timing = sort_pairs(engine, keys, &mut order, offsets)?;
    let unsorted = values.to_vec();
    permutation::gather(width, &[&unsorted], &order, values);
    Ok(timing)
}

fn sort_pairs<W: Word, V: Pod + Send + Sync>(
    engine: &mut ChosenEngine,
    keys: &mut [W],
    values: &mut [V],
    offsets: &[usize],
) -> Result<merge_host::Timing> {
    engine.run(&mut (keys, values), |engine: &Engine, (keys, values)| {
        engine.sort_segments_pairs(SortOrder::Ascending, keys, values, offsets)
    })
}

/// Where segments begin and end.
enum Bounds {
    Between(Offsets),
    OfLength(usize),
}

impl Bounds {
    /// Reads the offsets, if there is a file of them.
    fn read(bounds: SegmentBounds) -> Result<Self> {
        match bounds {
            SegmentBounds::Between(input) => Ok(Self::Between(Offsets::read(input)?)),
            SegmentBounds::OfLength(length) => Ok(Self::OfLength(length)),
        }
    }

    /// An error unless the `keys` keys of the file at `path` can be divided into these segments.
    fn check(&self, path: &Path, keys: u64) -> Result<()> {
        match self {
            Self::Between(offsets) => offsets.check(path, keys),
            Self::OfLength(length) if keys.is_multiple_of(*length as u64) => Ok(()),
            Self::OfLength(length) => {
                let message = format!("has {keys} keys, expected a multiple of {length}, the --segment-len given");
                Err(Failure::file(path, message))
            }
        }
    }

    /// The end of the longest part of whole segments from the key at `begin` on whose numbers of keys and segments are as
    /// `fits` allows, and the offsets of its segments, from 0.
    fn part(&self, begin: u64, keys: u64, fits: impl Fn(usize, usize) -> bool) -> (u64, Vec<usize>) {
        match self {
            Self::Between(offsets) => {
                let offsets = offsets.get();
                // Of empty segments at the same offset, those before the last belong to the part before.
                let first = offsets.partition_point(|&offset| offset as u64 <= begin).saturating_sub(1);
                let rest = &offsets[first..];
                let last = last_that(rest.len(), |i| fits(rest[i] - rest[0], i));
                (rest[last] as u64, rest[..=last].iter().map(|offset| offset - rest[0]).collect())
            }
            Self::OfLength(length) => {
                let segments = (keys - begin) as usize / length;
                let end = begin + (last_that(segments + 1, |i| fits(i * length, i)) * length) as u64;
                let count = (end - begin) as usize;
                (end, (0..count).step_by(*length).chain([count]).collect())
            }
        }
    }

    /// The end of the segment that begins at the key at `begin`.
    fn end_of_segment(&self, begin: u64, keys: u64) -> u64 {
        match self {
            Self::Between(offsets) => {
                let offsets = offsets.get();
                let next = offsets.partition_point(|&offset| offset as u64 <= begin);
                offsets.get(next).map_or(keys, |&offset| offset as u64)
            }
            Self::OfLength(length) => keys.min(begin + *length as u64),
        }
    }

    /// The offsets of all segments of that many keys.
    fn offsets(&self, keys: usize) -> Vec<usize> {
        match self {
            Self::Between(offsets) => offsets.get().to_vec(),
            Self::OfLength(length) => (0..keys).step_by(*length).chain([keys]).collect(),
        }
    }
}

/// The last of `0..count` for which `holds`, which is true up to some number and false from there on; or 0.
fn last_that(count: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}
