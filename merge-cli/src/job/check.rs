//! The jobs of `gmerge check`, and of `gmerge sort -c` and `-C`.

use super::keys::{KeyFlags, order_of, resources};
use super::{Check, CheckRecords, Job, Resources, records, refuse, tables};
use crate::args::{CheckArgs, CommonArgs, MemoryArgs, RecordArgs};
use crate::say::error::Result;
use crate::say::stats::Stats;
use crate::spec::{EngineChoice, StatsFormat};
use std::path::Path;

/// How to check.
#[derive(Clone, Copy, Debug)]
pub struct How {
    pub unique: bool,
    /// Whether only the exit code reports the result.
    pub silent: bool,
}

/// The job of `gmerge check`.
pub fn job(args: CheckArgs) -> Result<Job> {
    let CheckArgs { input, reverse, order, unique, records, common } = args;
    let CommonArgs { key_type, endian: _, parallel, stats } = common;
    refuse::beside(records.flag(), &[("--type", key_type.is_some())], records::TYPE_OF_FIELD)?;
    let memory = MemoryArgs::default();
    let flags = common.key_flags(None, order_of(reverse, order));
    let flags = KeyFlags { is_typed: flags.is_typed || records.record_size.is_some(), ..flags };
    let resources = resources(EngineChoice::Cpu, parallel, memory);
    keys_or_records(&input, flags, records, How { unique, silent: false }, resources, stats)
}

/// The job of a check of the file at `path`.
pub fn keys_or_records(
    path: &Path,
    flags: KeyFlags,
    record_args: RecordArgs,
    how: How,
    resources: Resources,
    stats: Option<StatsFormat>,
) -> Result<Job> {
    let How { unique, silent } = how;
    let mut inputs = [flags.open_keys(path)?];
    if tables::are_meant(&record_args, &inputs, None, flags, None) {
        let [input] = inputs;
        return tables::check(record_args, input, flags, how, resources, stats);
    }
    if records::are_meant(&record_args, &inputs) {
        let layout = records::layout(record_args, &inputs, flags)?;
        let stats = Stats::begin("check", records::RECORD, layout.size, stats);
        let [input] = inputs;
        return Ok(Job::CheckRecords(CheckRecords {
            input,
            layout,
            order: flags.order,
            unique,
            silent,
            resources,
            stats,
        }));
    }
    let key_type = flags.decide(&mut inputs, None)?;
    let stats = flags.stats("check", key_type, stats);
    let [input] = inputs;
    Ok(Job::Check(Check { input, key_type, unique, silent, resources, stats }))
}
