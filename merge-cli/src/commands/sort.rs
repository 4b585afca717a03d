//! `gmerge sort`

use super::sort_segments;
use super::sort_through;
use super::sort_values::ValueFile;
use crate::args::SortArgs;
use crate::engine::{ChosenEngine, start_threads};
use crate::error::{Failure, Result, name};
use crate::external::{Along, Coding, External, Outputs, Shape, Source, check_space};
use crate::format;
use crate::input::{Input, check_standard_input};
use crate::key_type::{Element, FileKey, with_key_type};
use crate::memory;
use crate::order::order_of;
use crate::output::{self, Output, Writer};
use crate::records::Layout;
use crate::report;
use crate::stats::{Phase, Stats};
use crate::unique::{unique, unique_places};
use crate::verify::Expected;
use merge_host::{Engine, SortOrder};

/// Memory that every GPU has free that the kernels run on. What takes less is sorted without asking how much there is.
const EVERY_GPU: u64 = 4 << 30;
/// Numbers that there is memory for, or the program cannot work at all.
const FEW: u64 = 1 << 16;

pub fn run(args: &SortArgs) -> Result<()> {
    if let Some(layout) = Layout::of(&args.records)? {
        return super::records::sort(args, &layout);
    }
    check_standard_input([("IN", &*args.input)].into_iter().chain(args.values.iter().map(|path| ("V", &**path))))?;
    let mut inputs = [Input::open(&args.input)?];
    // Places are no keys: what their file is called says nothing about the keys.
    let output = (!args.argsort).then_some(&*args.output.output);
    let key_type = format::detect(&args.common, &mut inputs, output)?;
    with_key_type!(key_type, K => sort::<K>(args, inputs))
}

/// How to go about a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    /// All at once, in memory.
    InMemory,
    /// In chunks, which are spilled as runs and merged.
    External,
    /// Nobody knows how much there is. Up to so many keys are sorted in memory, and more in chunks.
    Undecided { most: u64 },
}

impl Plan {
    /// The plan for `count` keys, if that is known, in so many bytes of memory. `device` are those of the GPU, if one is
    /// to sort more than any GPU can.
    fn choose(shape: Shape, count: Option<u64>, memory: u64, device: Option<u64>) -> Self {
        let Some(count) = count else { return Self::Undecided { most: shape.most_in_memory(memory) } };
        let fits_device = device.is_none_or(|bytes| count <= shape.most_on_gpu(bytes));
        if shape.in_memory(count) <= memory.into() && fits_device { Self::InMemory } else { Self::External }
    }
}

fn sort<K: FileKey>(args: &SortArgs, inputs: [Input; 1]) -> Result<()> {
    if args.segments.are_given() {
        return sort_segments::run::<K>(args, inputs);
    }
    let stats = Stats::begin::<K>("sort");
    let count = inputs[0].count::<K>()?;
    let output = if args.argsort {
        Output::prepare_keys::<u64>(&args.output.as_output(), &args.common, &[])?
    } else {
        Output::prepare_keys::<K>(&args.output.as_output(), &args.common, &inputs)?
    };
    let [input] = inputs;
    let size = if args.argsort { size_of::<u64>() } else { K::SIZE };
    let size = u128::from(count.unwrap_or(0)) * size as u128;
    if args.check && !output.can_be_checked() {
        return Err(Failure::file(&args.output.output, "cannot be read back for --check, expected a file"));
    }
    // Nobody knows how many keys are the first of equal ones.
    let output_bytes = if args.unique { 0 } else { size };
    output.check_space(output_bytes)?;
    let values = ValueFile::open(args, count, &output)?;
    let memory = memory::budget(args.memory.memory)?;
    start_threads(args.common.parallel)?;

    let engine = ChosenEngine::start::<K>(args.engine.engine, args.common.parallel)?;
    let order = order_of(args.reverse);
    let sort = Sort { args, order, memory, engine, input, output, output_bytes, stats };
    match values {
        Some(values) => sort.run_with_values::<K>(count, values),
        None => sort.run::<K>(count),
    }
}

/// A sort, ready to begin.
pub struct Sort<'a> {
    pub args: &'a SortArgs,
    pub order: SortOrder,
    /// Bytes of memory that may be used.
    pub memory: u64,
    pub engine: ChosenEngine,
    /// The keys.
    pub input: Input,
    /// For the keys, or their places.
    pub output: Output,
    /// Bytes that will go there at least.
    pub output_bytes: u128,
    pub stats: Stats,
}

impl Sort<'_> {
    /// Sorts keys that have no values. There are `count`, if that is known.
    fn run<K: FileKey>(mut self, count: Option<u64>) -> Result<()> {
        let along = if self.args.argsort { Along::Places } else { Along::Nothing };
        let shape = Shape { key: K::SIZE, along };
        match self.plan(shape, count)? {
            Plan::InMemory => match count {
                Some(count) if self.goes_through() => {
                    self.stats.keys = count;
                    let Self { args, order, mut engine, input, output, mut stats, .. } = self;
                    let keys = sort_through::run::<K>(order, &input, count, output, &mut engine, &mut stats)?;
                    stats.engine = engine.name()?;
                    Written { keys: Some(keys), values: None, count, width: 0 }.finish::<K>(args, order, stats)
                }
                _ => {
                    let keys = self.stats.time(Phase::Read, || self.input.read_all::<K>())?;
                    self.in_memory(keys)
                }
            },
            Plan::External => self.external::<K>(shape, count, None, None),
            Plan::Undecided { most } => {
                let (keys, all) = self.stats.time(Phase::Read, || read_at_most::<K>(&mut self.input, most))?;
                if all { self.in_memory(keys) } else { self.external(shape, None, Some(keys), None) }
            }
        }
    }

    /// Whether keys can be read where they are sorted and written from there.
    fn goes_through(&self) -> bool {
        !self.args.argsort && !self.args.unique && self.input.is_regular() && self.output.takes_any_order()
    }

    fn run_with_values<K: FileKey>(mut self, count: Option<u64>, values: ValueFile) -> Result<()> {
        let width = count.map(|count| values.width(self.args, count)).transpose()?.flatten();
        if let Some(width) = width {
            let shape = Shape { key: K::SIZE, along: Along::Values(width) };
            if self.plan(shape, count)? == Plan::External {
                return self.external::<K>(shape, count, None, Some(values));
            }
        }
        let most = self.memory / (2 * K::SIZE as u64);
        let (keys, all) = self.stats.time(Phase::Read, || read_at_most::<K>(&mut self.input, most))?;
        if !all {
            return Err(self.too_long());
        }
        let order = self.order;
        values.sort(self, order, keys)
    }

    /// An error about keys and values of which nobody knows how many there are.
    pub fn too_long(&self) -> Failure {
        let message = format!(
            "with its values, does not fit in the {} bytes of --memory: for that, expected two files, and no pipes",
            self.memory
        );
        Failure::file(&self.args.input, message)
    }

    fn plan(&mut self, shape: Shape, count: Option<u64>) -> Result<Plan> {
        // A GPU takes a while to start, and small inputs are read meanwhile.
        let large = count.is_some_and(|count| shape.in_memory(count) > EVERY_GPU.into());
        let device = if large { self.engine.device_memory()? } else { None };
        let plan = Plan::choose(shape, count, self.memory, device);
        match plan {
            Plan::InMemory => {
                report::verbose(format_args!("plan: in memory, of which {} bytes may be used", self.memory))
            }
            Plan::External => report::verbose(format_args!("plan: in chunks, with {} bytes of memory", self.memory)),
            Plan::Undecided { most } => {
                report::verbose(format_args!("plan: up to {most} keys in memory, more in chunks"))
            }
        }
        Ok(plan)
    }

    fn in_memory<K: FileKey>(self, mut keys: Vec<K>) -> Result<()> {
        let Self { args, order, mut engine, mut input, output, mut stats, .. } = self;
        stats.keys = keys.len() as u64;
        let mut written = Written { keys: None, values: None, count: keys.len() as u64, width: 0 };
        if args.argsort {
            let mut places = memory::zeroed::<u64>(stats.keys, "the output")?;
            // The keys are still what they were, and every place is written again.
            stats.add(engine.run(&mut places, |engine, places| engine.argsort(order, &keys, places), |_| Ok(true))?);
            if args.unique {
                let count = stats.time(Phase::Compute, || unique_places(&keys, &mut places));
                places.truncate(count);
            }
            written.values = Some(stats.time(Phase::Write, || output.write(bytemuck::cast_slice(&places)))?);
        } else {
            let sort = |engine: &Engine, keys: &mut Vec<K>| engine.sort_with(order, keys);
            stats.add(engine.run(&mut keys, sort, |keys| input.read_again(keys))?);
            if args.unique {
                let count = stats.time(Phase::Compute, || unique(&mut keys, &mut [], 0, None));
                keys.truncate(count);
            }
            written.count = keys.len() as u64;
            written.keys = Some(stats.time(Phase::Write, || output.write(bytemuck::cast_slice(&keys)))?);
        }
        stats.engine = engine.name()?;
        written.finish::<K>(args, order, stats)
    }

    /// Sorts keys in chunks. `first` are those that were read already.
    fn external<K: FileKey>(
        self,
        shape: Shape,
        count: Option<u64>,
        first: Option<Vec<K>>,
        values: Option<ValueFile>,
    ) -> Result<()> {
        let Self { args, order, memory, engine, input, mut output, output_bytes, mut stats } = self;
        if let Some(count) = count
            && !args.unique
        {
            output.expect(count);
        }
        let folder = args.memory.folder();
        let width = shape.along.width();
        let spilled = u128::from(count.unwrap_or(0)) * (K::SIZE + width) as u128;
        check_space(&folder, spilled, output.folder().map(|folder| (folder, output_bytes)), &args.input)?;

        let external = External { shape, memory, folder, batch_size: args.memory.batch_size, unique: args.unique };
        let coding = Coding::of::<K>(order);
        let (values_input, values_output) = values.map(|values| (values.input, values.output)).unzip();
        let source =
            Source { keys: input, values: values_input, along: shape.along, coding, key_of: None, position: 0 };
        let begin = || {
            let first = Some(output.begin()?);
            if shape.along == Along::Places {
                return Ok(Outputs { keys: None, values: first, coding });
            }
            Ok(Outputs { keys: first, values: values_output.map(Output::begin).transpose()?, coding })
        };
        let (outputs, count) = external.sort(source, first.map(bytemuck::cast_vec), engine, begin, &mut stats)?;
        if let Along::Values(width) = shape.along {
            stats.value_size = Some(width);
        }
        let Outputs { keys, values, .. } = outputs;
        Written { keys, values, count, width }.finish::<K>(args, order, stats)
    }
}

/// Outputs with all that belongs there.
pub struct Written {
    pub keys: Option<Writer>,
    /// Values, or places.
    pub values: Option<Writer>,
    /// Keys of the output.
    pub count: u64,
    /// Bytes of a value.
    pub width: usize,
}

impl Written {
    /// Checks the outputs if that is wanted, and makes them permanent.
    pub fn finish<K: FileKey>(self, args: &SortArgs, order: SortOrder, mut stats: Stats) -> Result<()> {
        if args.check {
            let expected = Expected { count: self.count, order, unique: args.unique };
            let width = self.width;
            stats.time(Phase::Check, || {
                self.keys.iter().try_for_each(|keys| expected.check::<K>(keys))?;
                self.values.iter().try_for_each(|values| expected.check_values(values, width))
            })?;
        }
        let writers: Vec<Writer> = [self.keys, self.values].into_iter().flatten().collect();
        stats.time(Phase::Write, || output::finish(writers))?;
        stats.print(args.common.stats);
        Ok(())
    }
}

/// Reads all there is, or more than `most` where there is more. Tells whether it was all.
pub fn read_at_most<T: Element>(input: &mut Input, most: u64) -> Result<(Vec<T>, bool)> {
    if let Some(count) = input.count::<T>()? {
        return if count <= most { Ok((input.read_all()?, true)) } else { Ok((Vec::new(), false)) };
    }
    // One more tells whether it was all. The system gives the memory when something is read to it.
    let mut room = most.saturating_add(1);
    let mut read = loop {
        match memory::zeroed::<T>(room, &name(input.path())) {
            Ok(read) => break read,
            Err(failure) if room < FEW => return Err(failure),
            Err(_) => room /= 2,
        }
    };
    let count = input.read(&mut read)?;
    let all = count < read.len();
    read.truncate(count);
    Ok((read, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_sorted_in_memory() {
        let shape = Shape { key: 4, along: Along::Nothing };
        let plan = |count, device| Plan::choose(shape, count, 8000, device);
        assert_eq!(plan(Some(0), None), Plan::InMemory);
        assert_eq!(plan(Some(1000), None), Plan::InMemory);
        assert_eq!(plan(Some(1001), None), Plan::External);
        assert_eq!(plan(Some(u64::MAX), None), Plan::External);
        assert_eq!(plan(None, None), Plan::Undecided { most: 1000 });
        // A GPU may have less memory, and never makes room for more.
        assert_eq!(plan(Some(1000), Some(8000)), Plan::InMemory);
        assert_eq!(plan(Some(1000), Some(7999)), Plan::External);
        assert_eq!(plan(Some(1001), Some(1 << 40)), Plan::External);
    }

    #[test]
    fn what_goes_along_takes_memory_too() {
        let plan = |along, memory| Plan::choose(Shape { key: 8, along }, Some(1000), memory, None);
        for (along, needed) in [
            (Along::Values(4), 24_000),
            (Along::Values(8), 32_000),
            (Along::Values(100), 212_000),
            (Along::Values(1), 25_000),
            (Along::Places, 40_000),
        ] {
            assert_eq!(plan(along, needed), Plan::InMemory, "{along:?}");
            assert_eq!(plan(along, needed - 1), Plan::External, "{along:?}");
        }
    }

    #[test]
    fn a_pipe_is_read_up_to_what_fits() {
        // This file claims to be empty, as a pipe would.
        let length = std::fs::read("/proc/self/limits").unwrap().len();
        let read = |most| {
            let mut input = Input::open("/proc/self/limits".as_ref()).unwrap();
            let (read, all) = read_at_most::<u8>(&mut input, most).unwrap();
            (read.len(), all)
        };
        assert_eq!(read(length as u64), (length, true));
        assert_eq!(read(10), (11, false));
        assert_eq!(read(u64::MAX >> 8), (length, true));
    }
}
