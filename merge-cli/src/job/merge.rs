//! The jobs of the commands that merge: `merge`, `batch` and the set operations.

use super::keys::{KeyFlags, ValueFiles, order_of, resources};
use super::names::Names;
use super::{Batch, BatchRuns, Job, Merge, Resources, Set, refuse};
use crate::args::{BatchArgs, CommonArgs, MemoryArgs, MergeArgs, MergingArgs, SetArgs};
use crate::file::Target;
use crate::file::input::check_standard_input;
use crate::file::offsets::Offsets;
use crate::say::error::{Failure, Result};
use crate::spec::{Kernel, StatsFormat};
use merge_host::{MergeKernel, SetOperation};
use std::path::PathBuf;

/// Flags of a merge of whole files.
#[derive(Clone, Copy, Debug)]
pub struct Flags {
    pub flags: KeyFlags,
    pub assume_sorted: bool,
    pub unique: bool,
    pub verify: bool,
    /// The kernel for two files.
    pub kernel: Option<Kernel>,
    pub value_files: ValueFiles,
}

/// The job of `gmerge merge`.
pub fn merge(args: MergeArgs) -> Result<Job> {
    let MergeArgs { inputs, list, values, merging, unique, check: verify, kernel, memory } = args;
    let MergingArgs { output, values_out, reverse, order, assume_sorted, engine, common } = merging;
    let CommonArgs { key_type: _, endian: _, parallel, stats } = common;
    let resources = resources(engine.processors()?, parallel, memory);
    let Names { inputs, values, list } = Names::of("FILE", inputs, list, values, false)?;
    let name = MergeKernel::from(kernel);
    let count = inputs.len();
    if count != 2 && kernel != Kernel::Auto {
        return Err(Failure::new(format!("--kernel {name} merges two files, found {count}; take auto")));
    }
    if !values.is_empty() && !kernel.is_general() {
        return Err(Failure::new(format!(
            "--kernel {name} merges keys only; with --values, take auto or merge-path, which are the same"
        )));
    }
    let flags = common.key_flags(output.writing.format, order_of(reverse, order));
    let kernel = (count == 2).then_some(kernel);
    let flags = Flags { flags, assume_sorted, unique, verify, kernel, value_files: ValueFiles::Each };
    let (target, values_target) = Target::find_both(&output.output, values_out.as_deref(), output.writing.sync)?;
    list.check_targets(&target, values_target.as_ref())?;
    job(flags, &inputs, &values, target, values_target, resources, stats)
}

/// The job of a merge of the files at `inputs`, with the files of their values, if any.
pub fn job(
    flags: Flags,
    inputs: &[PathBuf],
    values: &[PathBuf],
    target: Target,
    values_target: Option<Target>,
    resources: Resources,
    stats: Option<StatsFormat>,
) -> Result<Job> {
    let Flags { flags, assume_sorted, unique, verify, kernel, value_files } = flags;
    check_standard_inputs(inputs, values, &[])?;
    let mut inputs = flags.open_all(inputs)?;
    let key_type = flags.decide(&mut inputs, Some(&target.path))?;
    let mut stats = flags.stats("merge", key_type, stats);
    stats.kernel = kernel.map(|kernel| MergeKernel::from(kernel).name());
    let output = flags.output(target, key_type, &inputs)?;
    let (values, outputs) = flags.open_values(values, values_target, &inputs, key_type.size(), output, value_files)?;
    let kernel = kernel.filter(|kernel| !kernel.is_general()).map(MergeKernel::from);
    Ok(Job::Merge(Merge { inputs, key_type, values, kernel, outputs, unique, verify, assume_sorted, resources, stats }))
}

/// The job of `gmerge batch`.
pub fn batch(args: BatchArgs) -> Result<Job> {
    let BatchArgs { a, b, values, merging, d, a_len, offsets } = args;
    let MergingArgs { output, values_out, reverse, order, assume_sorted, engine, common } = merging;
    let CommonArgs { key_type: _, endian: _, parallel, stats } = common;
    let resources = resources(engine.processors()?, parallel, MemoryArgs::default());
    let inputs = [a, b];
    let lengths = [("-d", d.is_some()), ("--a-len", a_len.is_some())];
    refuse::beside(("--offsets", !offsets.is_empty()), &lengths, "the offsets tell the lengths of all runs")?;
    check_standard_inputs(&inputs, &values, &offsets)?;
    let runs = match &offsets[..] {
        [a, b] => BatchRuns::Between([Offsets::open(a, common.endian)?, Offsets::open(b, common.endian)?]),
        _ => {
            // Without offsets, clap requires -d.
            let d = d.unwrap_or(1);
            let a_len = a_len.unwrap_or(d / 2);
            if a_len > d {
                return Err(Failure::new(format!("--a-len is {a_len}, expected at most {d}, the -d given")));
            }
            BatchRuns::OfLength { d, a_len }
        }
    };
    let flags = common.key_flags(output.writing.format, order_of(reverse, order));
    let (target, values_target) = Target::find_both(&output.output, values_out.as_deref(), output.writing.sync)?;
    let mut inputs = flags.open_all(&inputs)?;
    let key_type = flags.decide(&mut inputs, Some(&target.path))?;
    let stats = flags.stats("batch", key_type, stats);
    let output = flags.output(target, key_type, &inputs)?;
    let size = key_type.size();
    let (values, outputs) = flags.open_values(&values, values_target, &inputs, size, output, ValueFiles::Each)?;
    Ok(Job::Batch(Batch { inputs, key_type, values, runs, outputs, assume_sorted, resources, stats }))
}

/// The job of a set operation.
pub fn set(operation: SetOperation, args: SetArgs) -> Result<Job> {
    let SetArgs { a, b, output, reverse, order, assume_sorted, memory, engine, common } = args;
    let CommonArgs { key_type: _, endian: _, parallel, stats } = common;
    let memory = MemoryArgs { memory, ..MemoryArgs::default() };
    let resources = resources(engine.processors()?, parallel, memory);
    let inputs = [a, b];
    check_standard_inputs(&inputs, &[], &[])?;
    let flags = common.key_flags(output.writing.format, order_of(reverse, order));
    let target = Target::find(&output.output, output.writing.sync)?;
    let mut inputs = flags.open_all(&inputs)?;
    let key_type = flags.decide(&mut inputs, Some(&target.path))?;
    let stats = flags.stats(operation.name(), key_type, stats);
    let output = flags.output(target, key_type, &inputs)?;
    Ok(Job::Set(Set { operation, inputs, key_type, output, assume_sorted, resources, stats }))
}

/// An error if more than one of the inputs is standard input. Messages call two files A and B, and number more files.
fn check_standard_inputs(inputs: &[PathBuf], values: &[PathBuf], offsets: &[PathBuf]) -> Result<()> {
    let two = inputs.len() == 2;
    let all = [("F", "", inputs), ("V", "V", values), ("O", "O", offsets)];
    let named = all.into_iter().flat_map(|(letter, prefix, paths)| {
        paths.iter().enumerate().map(move |(i, path)| {
            let name = if two { format!("{prefix}{}", ["A", "B"][i.min(1)]) } else { format!("{letter}{}", i + 1) };
            (name, &**path)
        })
    });
    check_standard_input(named)
}
