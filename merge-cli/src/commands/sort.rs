//! `gmerge sort`

use super::sort_segments;
use super::sort_through;
use super::sort_values::ValueFile;
use crate::args::SortArgs;
use crate::engine::{ChosenEngine, start_threads};
use crate::error::Result;
use crate::format;
use crate::input::{Input, check_standard_input};
use crate::key_type::{FileKey, with_key_type};
use crate::memory;
use crate::output::{self, Output};
use crate::records::Layout;
use crate::stats::{Phase, Stats};
use merge_host::SortOrder;

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

fn sort<K: FileKey>(args: &SortArgs, inputs: [Input; 1]) -> Result<()> {
    if args.segments.are_given() {
        return sort_segments::run::<K>(args, inputs);
    }
    let mut stats = Stats::begin::<K>("sort");
    let count = inputs[0].count::<K>()?;
    let output = if args.argsort {
        Output::prepare_keys::<u64>(&args.output.as_output(), &args.common, &[])?
    } else {
        Output::prepare_keys::<K>(&args.output.as_output(), &args.common, &inputs)?
    };
    let [mut input] = inputs;
    let size = if args.argsort { size_of::<u64>() } else { K::SIZE };
    output.check_space(u128::from(count.unwrap_or(0)) * size as u128)?;
    let values = ValueFile::open(args, count, &output)?;
    start_threads(args.common.parallel)?;

    let mut engine = ChosenEngine::start::<K>(args.engine.engine, args.common.parallel)?;
    let order = if args.reverse { SortOrder::Descending } else { SortOrder::Ascending };
    if let Some(count) = count
        && values.is_none()
        && !args.argsort
        && output.takes_any_order()
        && input.is_regular()
    {
        stats.keys = count;
        sort_through::run::<K>(order, &input, count, output, &mut engine, &mut stats)?;
        stats.engine = engine.name()?;
        stats.print(args.common.stats);
        return Ok(());
    }
    let mut keys = stats.time(Phase::Read, || input.read_all::<K>())?;
    stats.keys = keys.len() as u64;
    if let Some(values) = values {
        values.sort(args, order, &mut engine, (input, keys), output, &mut stats)?;
    } else if args.argsort {
        let mut places = memory::zeroed::<u64>(stats.keys, "the output")?;
        // The keys are still what they were, and every place is written again.
        stats.add(engine.run(&mut places, |engine, places| engine.argsort(order, &keys, places), |_| Ok(true))?);
        stats.time(Phase::Write, || output::finish([output.write(bytemuck::cast_slice(&places))?]))?;
    } else {
        let sort = |engine: &merge_host::Engine, keys: &mut Vec<K>| engine.sort_with(order, keys);
        stats.add(engine.run(&mut keys, sort, |keys| input.read_again(keys))?);
        stats.time(Phase::Write, || output::finish([output.write(bytemuck::cast_slice(&keys))?]))?;
    }
    stats.engine = engine.name()?;
    stats.print(args.common.stats);
    Ok(())
}
