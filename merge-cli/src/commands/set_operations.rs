//! `gmerge union`, `intersect`, `difference` and `symmetric-difference`

use crate::args::{EngineChoice, SetArgs};
use crate::engine::{ChosenEngine, start_threads};
use crate::error::{Failure, Result};
use crate::input::{Input, check_standard_input};
use crate::key_type::{FileKey, KeyType, with_key_type};
use crate::memory;
use crate::order::{first_unsorted, not_sorted};
use crate::output::{self, Output};
use crate::stats::{Phase, Stats};
use merge_host::SetOperation;

pub fn run(operation: SetOperation, args: &SetArgs) -> Result<()> {
    let files = [&*args.a, &*args.b, &*args.output.output];
    with_key_type!(KeyType::of(args.common.key_type, &files)?, K => set_operation::<K>(operation, args))
}

fn set_operation<K: FileKey>(operation: SetOperation, args: &SetArgs) -> Result<()> {
    let mut stats = Stats::begin::<K>(operation.name());
    check_standard_input([("A", &*args.a), ("B", &*args.b)].into_iter())?;
    let [mut a, mut b] = [Input::open(&args.a)?, Input::open(&args.b)?];
    let _ = (a.count::<K>()?, b.count::<K>()?);
    let output = Output::prepare(&args.output.output)?;
    start_threads(args.common.parallel)?;

    let mut engine = ChosenEngine::start::<K>(EngineChoice::Cpu, args.common.parallel)?;
    let (a_keys, b_keys) = stats.time(Phase::Read, || Ok::<_, Failure>((a.read_all::<K>()?, b.read_all::<K>()?)))?;
    if !args.assume_sorted {
        for (input, keys) in [(&a, &a_keys), (&b, &b_keys)] {
            if let Some(index) = stats.time(Phase::Check, || first_unsorted(keys)) {
                return Err(not_sorted(input, keys, index, ""));
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
