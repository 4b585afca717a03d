//! `gmerge union`, `intersect`, `difference` and `symmetric-difference`

use super::set_through;
use crate::args::{EngineChoice, SetArgs};
use crate::engine::{ChosenEngine, start_threads};
use crate::error::{Failure, Result};
use crate::format;
use crate::input::{Input, check_standard_input};
use crate::key_type::{FileKey, with_key_type};
use crate::memory;
use crate::order::{first_unsorted, not_sorted};
use crate::output::{self, Output};
use crate::stats::{Phase, Stats};
use merge_host::{SetOperation, SortOrder};

pub fn run(operation: SetOperation, args: &SetArgs) -> Result<()> {
    check_standard_input([("A", &*args.a), ("B", &*args.b)].into_iter())?;
    let mut inputs = [Input::open(&args.a)?, Input::open(&args.b)?];
    let key_type = format::detect(&args.common, &mut inputs, Some(&args.output.output))?;
    with_key_type!(key_type, K => set_operation::<K>(operation, args, inputs))
}

fn set_operation<K: FileKey>(operation: SetOperation, args: &SetArgs, inputs: [Input; 2]) -> Result<()> {
    let mut stats = Stats::begin::<K>(operation.name());
    let output = Output::prepare_keys::<K>(&args.output, &args.common, &inputs)?;
    let [mut a, mut b] = inputs;
    let counts = (a.count::<K>()?, b.count::<K>()?);
    start_threads(args.common.parallel)?;
    let memory = memory::budget(args.memory)?;
    if let (Some(m), Some(n)) = counts
        && 2 * (u128::from(m) + u128::from(n)) * K::SIZE as u128 > memory.into()
    {
        return set_through::run::<K>(operation, args, [a, b], output, memory, stats);
    }

    let mut engine = ChosenEngine::start::<K>(EngineChoice::Cpu, args.common.parallel)?;
    let (a_keys, b_keys) = stats.time(Phase::Read, || Ok::<_, Failure>((a.read_all::<K>()?, b.read_all::<K>()?)))?;
    if !args.assume_sorted {
        for (input, keys) in [(&a, &a_keys), (&b, &b_keys)] {
            if let Some(index) = stats.time(Phase::Check, || first_unsorted(keys)) {
                return Err(not_sorted(SortOrder::Ascending, input, &keys[index - 1..], index as u64, ""));
            }
        }
    }
    stats.keys = (a_keys.len() + b_keys.len()) as u64;
    let most = operation.most_keys(a_keys.len(), b_keys.len());
    memory::check(most as u128 * K::SIZE as u128, "the output")?;
    let mut out = Vec::new();
    stats.add(engine.run(
        &mut out,
        |engine, out| engine.set_operation(operation, &a_keys, &b_keys, out),
        |_| Ok(true),
    )?);
    output.check_space(out.len() as u128 * K::SIZE as u128)?;
    stats.time(Phase::Write, || output::finish([output.write(bytemuck::cast_slice(&out))?]))?;
    stats.engine = engine.name()?;
    stats.print(args.common.stats);
    Ok(())
}
