//! The jobs of `gmerge check`, and of `gmerge sort -c` and `-C`.

use super::keys::{KeyFlags, order_of, resources};
use super::{Check, CheckRecords, Items, Job, Resources, records, refuse, tables};
use crate::args::{CheckArgs, CommonArgs, MemoryArgs, RecordArgs};
use crate::records::Records;
use crate::say::error::Result;
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
    let flags = common.key_flags(None, order_of(reverse, order)).beside(&records);
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
    let items = Items::decide(record_args, &mut inputs, flags, None)?;
    let stats = items.stats("check", stats);
    let [input] = inputs;
    Ok(match items {
        Items::Keys(key_type) => Job::Check(Check { input, key_type, unique, silent, resources, stats }),
        Items::Records(Records { layout, key: _ }) => {
            let order = flags.order;
            Job::CheckRecords(CheckRecords { input, layout, order, unique, silent, resources, stats })
        }
    })
}
