//! A sort of each segment on its own, part by part.

use super::engine::{ChosenEngine, failure, work_of};
use super::finish;
use super::in_memory::write_all;
use crate::coding::Word;
use crate::file::offsets::Offsets;
use crate::file::values::{self, known_width};
use crate::file::{Concatenation, Outputs, Writers};
use crate::job::{SegmentBounds, Segments};
use crate::os::{memory, threads};
use crate::plan::{Destination, most_on_device};
use crate::say::error::{Failure, Result, name};
use crate::say::stats::{Phase, Stats};
use crate::spec::EngineChoice;
use bytemuck::Pod;
use merge_host::external::{Engines, RunError, Shape};
use merge_host::{Engine, Index, SortOrder, Timing, Work, permutation};
use std::path::Path;

/// Sorts segments.
pub fn run<W: Word>(job: Segments) -> Result<()> {
    let Segments { keys, key_type, values, bounds, mut outputs, resources, mut stats } = job;
    let count = keys.count::<W>()?;
    threads::start(resources.threads, threads::useful(keys.length()))?;
    let bounds = Bounds::read(bounds)?;
    count.map_or(Ok(()), |count| bounds.check(keys.path(), count))?;
    let width = match &values {
        Some(values) => known_width(keys.inputs(), W::SIZE, values.inputs())?,
        None => Some(0),
    };
    let bytes = [W::SIZE, width.unwrap_or(0)].map(|size| u128::from(count.unwrap_or(0)) * size as u128);
    outputs.check_space(bytes)?;
    let destination = Destination::new(&outputs.keys, outputs.values.as_ref(), bytes);
    let memory = memory::budget(resources.memory, destination.in_memory())?;
    let work =
        work_of(count, |keys| Work::sort_segments::<W>(keys, bounds.count(keys)).with_values(width.unwrap_or(0)));
    let processors = resources.processors.clone();
    let is_on_gpu = processors.engine == EngineChoice::Gpu;
    let mut engine = ChosenEngine::start(processors, key_type, work)?;

    let is_known = values.as_ref().is_none_or(|values| values.length().is_some());
    let writers = if let Some((count, width)) = count.zip(width).filter(|_| is_known) {
        outputs.expect(count);
        outputs.set_width(width);
        let mut parts = Parts { keys, values, writers: outputs.begin()?, width };
        let shape = Shape { key: W::SIZE, width };
        // Other engines sort a part that does not fit a GPU on the CPU.
        let mut device = || if is_on_gpu { engine.memory_of_each_gpu() } else { Ok(None) };
        let on_gpu = most_on_device(shape, count, &mut device)?;
        stats.keys = count;
        stats.value_size = (width > 0).then_some(width);
        parts.sort::<W>(&bounds, Capacity { shape, memory, on_gpu }, &mut engine, &mut stats)?;
        parts.writers
    } else {
        sort_pipe::<W>(keys, values, &bounds, outputs, &mut engine, &mut stats)?
    };
    stats.engine = engine.name()?;
    finish(writers, stats)
}

/// Sorts segments whose number of keys or width of values is known only after all has been read.
fn sort_pipe<W: Word>(
    mut keys: Concatenation,
    values: Option<Concatenation>,
    bounds: &Bounds,
    outputs: Outputs,
    engine: &mut ChosenEngine,
    stats: &mut Stats,
) -> Result<Writers> {
    let keys_path = keys.path().to_owned();
    let mut all = stats.time(Phase::Read, || keys.read_all::<W>())?;
    stats.keys = all.len() as u64;
    bounds.check(&keys_path, stats.keys)?;
    let offsets = bounds.offsets(all.len());
    let (mut bytes, mut width) = (Vec::new(), 0);
    if let Some(mut values) = values {
        bytes = stats.time(Phase::Read, || values.read_all::<u8>())?;
        let lengths = ([stats.keys], [bytes.len() as u64]);
        width = values::width(keys.inputs(), &lengths.0, values.inputs(), &lengths.1)?;
        stats.value_size = Some(width);
    }
    // A pipe cannot be read again.
    stats.add(Part { keys: &mut all, values: &mut bytes, width, offsets: &offsets }.sort(engine, |_| Ok(false))?);
    write_all(outputs, &all, &bytes, width, stats)
}

/// Files of keys and values that are sorted part by part, each of whole segments.
struct Parts {
    keys: Concatenation,
    values: Option<Concatenation>,
    writers: Writers,
    width: usize,
}

impl Parts {
    /// Sorts the segments in parts that fit `capacity`, and writes them.
    fn sort<W: Word>(
        &mut self,
        bounds: &Bounds,
        capacity: Capacity,
        engine: &mut ChosenEngine,
        stats: &mut Stats,
    ) -> Result<()> {
        let fits =
            |keys: usize, segments: usize| capacity.fits_memory(keys, segments) && keys as u64 <= capacity.on_gpu;
        let mut begin = 0;
        while begin < stats.keys {
            let (end, offsets) = bounds.part(begin, stats.keys, fits);
            if end == begin {
                let end = bounds.end_of_segment(begin, stats.keys);
                let (input, index) = self.keys.locate::<W>(begin);
                let (segment, offset) = (end - begin, input.offset_of::<W>(index));
                let too_many = if capacity.fits_memory(segment as usize, 1) {
                    format!("more than the {} that the GPU has memory for", capacity.on_gpu)
                } else {
                    format!("too many for the {} bytes of --memory", capacity.memory)
                };
                let message = format!("the segment at byte {offset} has {segment} keys, {too_many}");
                return Err(Failure::file(input.path(), message));
            }
            let mut keys = memory::zeroed::<W>(end - begin, &name(self.keys.path()))?;
            let mut values = memory::zeroed::<u8>((end - begin) * self.width as u64, "the values")?;
            stats.time(Phase::Read, || self.read(&mut keys, &mut values))?;
            let part = Part { keys: &mut keys, values: &mut values, width: self.width, offsets: &offsets };
            stats.add(part.sort(engine, |keys| self.read_again(begin, keys))?);
            stats.time(Phase::Write, || self.writers.write(&keys, &values))?;
            begin = end;
        }
        Ok(())
    }

    fn read<W: Word>(&mut self, keys: &mut [W], values: &mut [u8]) -> Result<()> {
        self.keys.read(keys)?;
        self.values.as_mut().map_or(Ok(0), |input| input.read(values)).map(|_| ())
    }

    /// Reads the keys from index `begin` on again, if possible.
    fn read_again<W: Word>(&self, begin: u64, keys: &mut [W]) -> Result<bool> {
        let Some(mut again) = self.keys.again()? else { return Ok(false) };
        again.seek::<W>(begin);
        Ok(again.read(keys)? == keys.len())
    }
}

/// The memory that limits a part.
#[derive(Clone, Copy)]
struct Capacity {
    shape: Shape,
    /// Bytes for keys, values and scratch memory.
    memory: u64,
    /// The most keys that the GPU sorts at once, if a GPU has to sort.
    on_gpu: u64,
}

impl Capacity {
    /// Whether the CPU has memory to sort `keys` keys in `segments` segments at once.
    fn fits_memory(self, keys: usize, segments: usize) -> bool {
        let per_key = self.shape.in_memory(1 << 33) >> 33;
        // Each segment except the first adds an offset.
        let offsets = segments.saturating_sub(1) * size_of::<usize>();
        per_key * keys as u128 + offsets as u128 <= self.memory.into()
    }
}

/// Segments in memory, with values of `width` bytes.
struct Part<'a, W> {
    keys: &'a mut [W],
    values: &'a mut [u8],
    width: usize,
    offsets: &'a [usize],
}

impl<W: Word> Part<'_, W> {
    /// Sorts the segments. If a GPU fails, `read_again` restores the keys. If it returns `true`, the CPU sorts them.
    fn sort(self, engine: &mut impl Engines<Failure>, read_again: impl Fn(&mut [W]) -> Result<bool>) -> Result<Timing> {
        match self.width {
            0 => self.sort_keys(engine, read_again),
            4 => self.sort_numbers::<u32>(engine, read_again),
            8 => self.sort_numbers::<u64>(engine, read_again),
            _ if u32::try_from(self.keys.len()).is_ok() => self.sort_by_index::<u32>(engine, read_again),
            _ => self.sort_by_index::<u64>(engine, read_again),
        }
    }

    /// Sorts without values.
    fn sort_keys(
        mut self,
        engine: &mut impl Engines<Failure>,
        read_again: impl Fn(&mut [W]) -> Result<bool>,
    ) -> Result<Timing> {
        let sort = |engine: &Engine, keys: &mut &mut [W]| {
            engine.sort_segments(SortOrder::Ascending, &mut **keys, self.offsets).map_err(RunError::Engine)
        };
        engine.run(&mut self.keys, sort, |keys| read_again(keys)).map_err(failure)
    }

    /// Sorts keys with numbers of type `V` as values.
    fn sort_numbers<V: Pod + Send + Sync>(
        self,
        engine: &mut impl Engines<Failure>,
        read_again: impl Fn(&mut [W]) -> Result<bool>,
    ) -> Result<Timing> {
        // Bytes need not be aligned for numbers.
        let mut numbers: Vec<V> = bytemuck::pod_collect_to_vec(self.values);
        let restore = |numbers: &mut [V]| bytemuck::cast_slice_mut(numbers).copy_from_slice(self.values);
        let timing = sort_pairs(engine, self.keys, &mut numbers, self.offsets, read_again, restore)?;
        self.values.copy_from_slice(bytemuck::cast_slice(&numbers));
        Ok(timing)
    }

    /// Sorts keys with the indices of their values. The values are moved only once.
    fn sort_by_index<I: Index>(
        self,
        engine: &mut impl Engines<Failure>,
        read_again: impl Fn(&mut [W]) -> Result<bool>,
    ) -> Result<Timing> {
        let mut order = memory::zeroed::<I>(self.keys.len() as u64, "the indices of the values")?;
        permutation::fill_identity(&mut order);
        let timing = sort_pairs(engine, self.keys, &mut order, self.offsets, read_again, permutation::fill_identity)?;
        let unsorted = self.values.to_vec();
        permutation::gather(self.width, &[&unsorted], &order, self.values);
        Ok(timing)
    }
}

/// Sorts the segments of `keys` between `offsets` with `values`. If a GPU fails, `read_again` restores the keys and
/// `restore` the values.
fn sort_pairs<W: Word, V: Pod + Send + Sync>(
    engine: &mut impl Engines<Failure>,
    keys: &mut [W],
    values: &mut [V],
    offsets: &[usize],
    read_again: impl Fn(&mut [W]) -> Result<bool>,
    restore: impl Fn(&mut [V]),
) -> Result<Timing> {
    let sort = |engine: &Engine, (keys, values): &mut (&mut [W], &mut [V])| {
        let elements = (&mut **keys, &mut **values);
        engine.sort_segments(SortOrder::Ascending, elements, offsets).map_err(RunError::Engine)
    };
    let restored = |(keys, values): &mut (&mut [W], &mut [V])| {
        restore(values);
        read_again(keys)
    };
    engine.run(&mut (keys, values), sort, restored).map_err(failure)
}

/// The bounds of segments.
enum Bounds {
    Between(Offsets),
    OfLength(usize),
}

impl Bounds {
    /// Reads the file of offsets, if there is one.
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

    /// The number of segments of `keys` keys.
    fn count(&self, keys: usize) -> usize {
        match self {
            Self::Between(offsets) => offsets.get().len() - 1,
            Self::OfLength(length) => keys / length,
        }
    }

    /// The longest part of whole segments from index `begin` on for which `fits` allows the numbers of keys and
    /// segments. Returns its end, and the offsets of its segments, beginning with 0.
    fn part(&self, begin: u64, keys: u64, fits: impl Fn(usize, usize) -> bool) -> (u64, Vec<usize>) {
        match self {
            Self::Between(offsets) => {
                let offsets = offsets.get();
                // If several segments begin here, all but the last are empty and belong to the previous part.
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

    /// The end of the segment that begins at index `begin`.
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

    /// The offsets of all segments of `keys` keys.
    fn offsets(&self, keys: usize) -> Vec<usize> {
        match self {
            Self::Between(offsets) => offsets.get().to_vec(),
            Self::OfLength(length) => (0..keys).step_by(*length).chain([keys]).collect(),
        }
    }
}

/// The last number of `0..count` for which `holds` is true, or 0. `holds` is true up to some number and false beyond.
fn last_that(count: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorts twice, like a sort after a GPU that failed when it had written its results.
    struct SecondTry(Engine);

    impl Engines<Failure> for SecondTry {
        fn run<T>(
            &mut self,
            data: &mut T,
            work: impl Fn(&Engine, &mut T) -> std::result::Result<Timing, RunError<Failure>>,
            restore: impl FnOnce(&mut T) -> Result<bool>,
        ) -> std::result::Result<Timing, RunError<Failure>> {
            work(&self.0, data)?;
            assert!(restore(data).map_err(RunError::Other)?, "the keys are restored");
            work(&self.0, data)
        }

        fn device_memory(&mut self) -> std::result::Result<Option<u64>, RunError<Failure>> {
            Ok(None)
        }

        fn cpu(&mut self) -> std::result::Result<&Engine, RunError<Failure>> {
            Ok(&self.0)
        }
    }

    #[test]
    fn what_a_gpu_has_written_before_it_failed_is_restored() {
        let (unsorted, offsets) = ([5u32, 7, 5, 2, 9, 5, 7, 1], [0, 4, 4, 8]);
        for width in [0, 3, 4, 8, 12] {
            let row = |i: u8| (0..width as u8).map(move |byte| 16 * i + byte);
            let (mut keys, mut values) = (unsorted, (0..8).flat_map(row).collect::<Vec<u8>>());
            let part = Part { keys: &mut keys, values: &mut values, width, offsets: &offsets };
            let read_again = |keys: &mut [u32]| {
                keys.copy_from_slice(&unsorted);
                Ok(true)
            };
            part.sort(&mut SecondTry(Engine::cpu()), read_again).unwrap();
            assert_eq!(keys, [2, 5, 5, 7, 1, 5, 7, 9]);
            assert_eq!(values, [3, 0, 2, 1, 7, 5, 6, 4].into_iter().flat_map(row).collect::<Vec<u8>>(), "{width}");
        }
    }
}
