//! The jobs of the commands that merge: `merge`, `batch` and the set operations.

use super::keys::{KeyFlags, ValueFiles, order_of, resources, with_counts};
use super::names::Names;
use super::records::TYPE_OF_FIELD;
use super::refuse::{self, Flag};
use super::{Batch, BatchRuns, Items, Job, Keep, Merge, Resources, Set, tables};
use crate::args::{
    BatchArgs, CommonArgs, EngineArgs, MemoryArgs, MergeArgs, MergingArgs, RecordArgs, SetArgs, WrittenValuesArgs,
};
use crate::file::input::check_standard_input;
use crate::file::offsets::Offsets;
use crate::file::{Target, Targets};
use crate::say::error::{Failure, Result};
use crate::spec::{EngineChoice, Kernel, StatsFormat};
use crate::table::Limits;
use merge_host::{MergeKernel, SetOperation};
use std::path::PathBuf;

/// Flags of a merge of whole files.
#[derive(Clone, Copy, Debug)]
pub struct Flags {
    pub flags: KeyFlags,
    pub assume_sorted: bool,
    pub keep: Keep,
    pub verify: bool,
    /// The kernel for two files.
    pub kernel: Option<Kernel>,
    pub value_files: ValueFiles,
    /// How tables are merged, if the inputs are tables.
    pub tables: tables::How,
}

/// The job of `gmerge merge`.
pub fn merge(args: MergeArgs) -> Result<Job> {
    let tables = how_to_merge_tables(&args);
    let MergeArgs { inputs, list, values, merging, distinct, records, table: _, check: verify, kernel, memory } = args;
    let MergingArgs { output, written_values, reverse, order, assume_sorted, engine, common } = merging;
    refuse_with_records(&records, &common, &engine)?;
    let values_flag = ("--values", values.is_given());
    refuse::beside(records.flag(), &[values_flag], "all bytes of a record move with its key")?;
    let kernel_flag = ("--kernel", !kernel.is_general());
    refuse::beside(records.flag(), &[kernel_flag], "that kernel merges keys alone; take auto")?;
    let WrittenValuesArgs { values_out, value_size } = written_values;
    let flags = common.key_flags(output.writing.format, order_of(reverse, order)).beside(&records);
    let flags = KeyFlags { value_size, ..flags }.beside_keys_only(&[values_flag, kernel_flag, on_gpu(&engine)]);
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
    let kernel = (count == 2).then_some(kernel);
    let keep = distinct.keep();
    let flags = Flags { flags, assume_sorted, keep, verify, kernel, value_files: ValueFiles::Each, tables };
    let targets = Targets::find(&output.output, values_out.as_deref(), distinct.count.as_deref(), output.writing.sync)?;
    list.check_targets(&targets)?;
    job(flags, records, &inputs, &values, targets, resources, stats)
}

/// How tables are merged, if the inputs are tables.
fn how_to_merge_tables(args: &MergeArgs) -> tables::How {
    let refused = refuse::first(&[
        ("--count", args.distinct.count.is_some()),
        ("--device", args.merging.engine.device.is_some()),
        ("--kernel", args.kernel != Kernel::Auto),
        ("--last", args.distinct.last),
        ("--values", args.values.is_given()),
    ]);
    tables::How {
        task: tables::Task::Merge { assume_sorted: args.merging.assume_sorted },
        limits: Limits { unique: args.distinct.unique, most: u64::MAX },
        verify: args.check,
        compression: args.table.compression,
        refused,
    }
}

/// Refuses flags that cannot be used with records by a command that merges.
fn refuse_with_records(records: &RecordArgs, common: &CommonArgs, engine: &EngineArgs) -> Result<()> {
    refuse::beside(records.flag(), &[("--type", common.key_type.is_some())], TYPE_OF_FIELD)?;
    refuse::beside(records.flag(), &[on_gpu(engine)], "the CPU merges records while they are read")
}

/// The flag that a GPU has to merge.
fn on_gpu(engine: &EngineArgs) -> Flag {
    ("--engine gpu", engine.engine == EngineChoice::Gpu)
}

/// The job of a merge of the files at `inputs`, with the files of their values, if any.
pub fn job(
    flags: Flags,
    records: RecordArgs,
    inputs: &[PathBuf],
    values: &[PathBuf],
    targets: Targets,
    resources: Resources,
    stats: Option<StatsFormat>,
) -> Result<Job> {
    let Flags { flags, assume_sorted, keep, verify, kernel, value_files, tables: of_tables } = flags;
    let Targets { keys: target, values: values_target, counts } = targets;
    check_standard_inputs(inputs, values, &[])?;
    let mut inputs = flags.open_all(inputs)?;
    if tables::are_meant(&records, &inputs, Some(&target.path), flags, Some(of_tables)) {
        return tables::job(records, inputs, target, flags, of_tables, resources, stats);
    }
    of_tables.refuse_compression()?;
    let items = Items::decide(records, &mut inputs, flags, Some(&target.path))?;
    let mut stats = items.stats("merge", stats);
    stats.kernel = kernel.map(|kernel| MergeKernel::from(kernel).name());
    let output = items.output(target, &inputs, flags)?;
    let (values, outputs) = flags.open_values(values, values_target, &inputs, items.size(), output, value_files)?;
    let outputs = with_counts(outputs, counts, flags)?;
    let kernel = kernel.filter(|kernel| !kernel.is_general()).map(MergeKernel::from);
    Ok(Job::Merge(Merge { inputs, items, values, kernel, outputs, keep, verify, assume_sorted, resources, stats }))
}

/// The job of `gmerge batch`.
pub fn batch(args: BatchArgs) -> Result<Job> {
    let BatchArgs { a, b, values, merging, d, a_len, offsets } = args;
    let MergingArgs { output, written_values, reverse, order, assume_sorted, engine, common } = merging;
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
    let WrittenValuesArgs { values_out, value_size } = written_values;
    let flags = KeyFlags { value_size, ..common.key_flags(output.writing.format, order_of(reverse, order)) };
    let Targets { keys: target, values: values_target, counts: _ } =
        Targets::find(&output.output, values_out.as_deref(), None, output.writing.sync)?;
    let mut inputs = flags.open_all(&inputs)?;
    let key_type = flags.decide(&mut inputs, Some(&target.path))?;
    let stats = Items::Keys(key_type).stats("batch", stats);
    let output = flags.output(target, key_type, &inputs)?;
    let size = key_type.size();
    let (values, outputs) = flags.open_values(&values, values_target, &inputs, size, output, ValueFiles::Each)?;
    Ok(Job::Batch(Batch { inputs, key_type, values, runs, outputs, assume_sorted, resources, stats }))
}

/// The job of a set operation.
pub fn set(operation: SetOperation, args: SetArgs) -> Result<Job> {
    let SetArgs { a, b, output, reverse, order, assume_sorted, memory, records, engine, common } = args;
    refuse_with_records(&records, &common, &engine)?;
    let flags = common.key_flags(output.writing.format, order_of(reverse, order)).beside(&records);
    let flags = flags.beside_keys_only(&[on_gpu(&engine)]);
    let CommonArgs { key_type: _, endian: _, parallel, stats } = common;
    let memory = MemoryArgs { memory, ..MemoryArgs::default() };
    let resources = resources(engine.processors()?, parallel, memory);
    let inputs = [a, b];
    check_standard_inputs(&inputs, &[], &[])?;
    let target = Target::find(&output.output, output.writing.sync)?;
    let mut inputs = flags.open_all(&inputs)?;
    let items = Items::decide(records, &mut inputs, flags, Some(&target.path))?;
    let stats = items.stats(operation.name(), stats);
    let output = items.output(target, &inputs, flags)?;
    Ok(Job::Set(Set { operation, inputs, items, output, assume_sorted, resources, stats }))
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
