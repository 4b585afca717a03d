//! `gmerge sort`

use crate::args::SortArgs;
use crate::engine::{ChosenEngine, start_threads};
use crate::error::Result;
use crate::input::Input;
use crate::key_type::{FileKey, KeyType, with_key_type};
use crate::output::{self, Output};
use crate::stats::{Phase, Stats};

pub fn run(args: &SortArgs) -> Result<()> {
    let key_type = KeyType::of(args.common.key_type, &[&args.input, &args.output.output])?;
    with_key_type!(key_type, K => sort::<K>(args))
}

fn sort<K: FileKey>(args: &SortArgs) -> Result<()> {
    let mut stats = Stats::begin::<K>("sort");
    let mut input = Input::open(&args.input)?;
    let count = input.count::<K>()?;
    let output = Output::prepare(&args.output.output)?;
    output.check_space(u128::from(count.unwrap_or(0)) * K::SIZE as u128)?;
    start_threads(args.common.parallel)?;

    let mut engine = ChosenEngine::start(args.engine.engine, args.common.parallel)?;
    let mut keys = stats.time(Phase::Read, || input.read_all::<K>())?;
    // A sort that fails half-way leaves the keys in any state.
    let read_again = |keys: &mut Vec<K>| {
        let possible = input.rewind();
        if possible {
            *keys = Vec::new();
            *keys = input.read_all()?;
        }
        Ok(possible)
    };
    stats.add(engine.run(&mut keys, |engine, keys| engine.sort(keys), read_again)?);
    stats.time(Phase::Write, || output::finish([output.write(bytemuck::cast_slice(&keys))?]))?;

    stats.engine = engine.name()?;
    stats.keys = keys.len() as u64;
    stats.print(args.common.stats);
    Ok(())
}
