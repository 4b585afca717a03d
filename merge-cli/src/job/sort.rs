//! The jobs of `gmerge sort`. Flags select a merge, a check, the first keys, segments or records instead of a sort of
//! keys.

use super::keys::{KeyFlags, ValueFiles, order_of, resources};
use super::names::Names;
use super::records::TYPE_OF_FIELD;
use super::refuse::{self, Flag};
use super::{IndexLimit, Job, Payload, Resources, SegmentBounds, Segments, Sort, Top, check, merge, records, tables};
use crate::args::{EngineArgs, SortArgs};
use crate::coding::Coding;
use crate::file::input::check_standard_input;
use crate::file::offsets::Offsets;
use crate::file::{Concatenation, Form, Input, Output, Outputs, Target};
use crate::format::{self, Container};
use crate::say::error::{Failure, Result};
use crate::spec::{EngineChoice, KeyType, Processors, SortKernel};
use crate::table::Limits;
use std::path::{Path, PathBuf};

/// The job of these flags.
pub fn job(args: SortArgs) -> Result<Job> {
    refuse_combinations(&args)?;
    // Only the files say whether --key is about records or tables.
    let (unless_records, of_tables) = (refuse_records(&args, args.records.flag()), how_to_sort_tables(&args));
    let flags = args.common.key_flags(args.writing.format, order_of(args.reverse, args.order));
    let flags = KeyFlags { is_typed: flags.is_typed || args.records.record_size.is_some(), ..flags };
    let (parallel, stats) = (args.common.parallel, args.common.stats);
    let processors = processors_of(args.engine, args.kernel)?;
    let resources = Resources { sort_kernel: args.kernel.into(), ..resources(processors, parallel, args.memory) };
    let (unique, verify) = (args.unique, args.check);
    let Names { inputs, values, list } = Names::of("IN", args.inputs, args.list, args.values, !args.merge)?;
    if args.only_check || args.only_check_silently {
        let input = only_input(&inputs, args.only_check)?;
        let how = check::How { unique, silent: args.only_check_silently };
        return check::keys_or_records(input, flags, args.records, how, resources, stats);
    }
    let output = args.output.unwrap_or_else(|| "-".into());
    check_standard_inputs(&inputs, &values, args.segments.as_deref())?;
    // An output that cannot be written is an error before a pipe is read.
    let (target, values_target) = Target::find_both(&output, args.values_out.as_deref(), args.writing.sync)?;
    list.check_targets(&target, values_target.as_ref())?;
    if args.merge {
        let value_files = ValueFiles::EachByMerge;
        let flags = merge::Flags { flags, assume_sorted: false, unique, verify, kernel: None, value_files };
        return merge::job(flags, &inputs, &values, target, values_target, resources, stats);
    }
    let mut inputs = flags.open_all(&inputs)?;
    if tables::are_meant(&args.records, &inputs, Some(&output), flags, Some(of_tables)) {
        return tables::sort(args.records, inputs, target, flags, of_tables, resources, stats);
    }
    of_tables.refuse_compression()?;
    let header = args.skip.map(|count| skip(&mut inputs, count)).transpose()?;
    unless_records?;
    if records::are_meant(&args.records, &inputs) {
        let how = records::How { header, verify };
        return records::sort(args.records, inputs, target, flags, how, resources, stats);
    }
    let key_type = flags.decide(&mut inputs, (!args.argsort).then_some(&*output))?;
    let mut stats = flags.stats(if args.top.is_some() { "top" } else { "sort" }, key_type, stats);
    stats.kernel = resources.sort_kernel_name();
    if args.argsort {
        let (output, limit) = output_of_indices(target, flags)?;
        let (keys, payload, outputs) =
            (Concatenation::new(inputs), Payload::Indices(limit), Outputs { keys: output, values: None });
        return Ok(Job::Sort(Sort { keys, key_type, payload, outputs, unique, verify, resources, stats }));
    }
    let output = flags.output(target, key_type, &inputs)?.behind(header)?;
    let size = key_type.size();
    let (values, outputs) = flags.open_values(&values, values_target, &inputs, size, output, ValueFiles::OneOrEach)?;
    let values = values.map(Concatenation::new);
    let keys = Concatenation::new(inputs);
    if let Some(bounds) = bounds_of(args.segments.as_deref(), args.segment_len, flags)? {
        return Ok(Job::Segments(Segments { keys, key_type, values, bounds, outputs, resources, stats }));
    }
    if let Some(count) = args.top {
        return Ok(Job::Top(Top { keys, key_type, count, output: outputs.keys, verify, resources, stats }));
    }
    let payload = values.map_or(Payload::None, Payload::Values);
    Ok(Job::Sort(Sort { keys, key_type, payload, outputs, unique, verify, resources, stats }))
}

/// The processors that sort. A named kernel needs a GPU.
fn processors_of(engine: EngineArgs, kernel: SortKernel) -> Result<Processors> {
    let processors = engine.processors()?;
    let engine = if kernel == SortKernel::Auto { processors.engine } else { EngineChoice::Gpu };
    Ok(Processors { engine, ..processors })
}

/// How tables are sorted, if the inputs are tables.
fn how_to_sort_tables(args: &SortArgs) -> tables::How {
    let flags: [Flag; 8] = [
        ("--argsort", args.argsort),
        ("--check", args.check),
        ("--device", args.engine.device.is_some()),
        ("--kernel", args.kernel != SortKernel::Auto),
        ("--segments", args.segments.is_some()),
        ("--segment-len", args.segment_len.is_some()),
        ("--skip", args.skip.is_some()),
        ("--values", args.values.is_given()),
    ];
    let refused = flags.into_iter().find_map(|(flag, given)| given.then_some(flag));
    let limits = Limits { unique: args.unique, most: args.top.unwrap_or(u64::MAX) };
    tables::How { limits, compression: args.compression, refused }
}

/// The first `count` bytes of the one input, behind which the keys or records begin.
fn skip(inputs: &mut [Input], count: u64) -> Result<Vec<u8>> {
    match inputs {
        [input] => input.skip(count),
        _ => Err(Failure::new(format!("--skip copies the header of one file IN, found {}", inputs.len()))),
    }
}

/// The one file that `-c` or `-C` checks.
fn only_input(inputs: &[PathBuf], is_reported: bool) -> Result<&PathBuf> {
    let [input] = inputs else {
        let (flag, count) = (if is_reported { "-c" } else { "-C" }, inputs.len());
        return Err(Failure::new(format!("{flag} checks one file IN, found {count}: check each on its own")));
    };
    Ok(input)
}

/// Where the segments begin and end, if there are segments.
fn bounds_of(offsets: Option<&Path>, length: Option<usize>, flags: KeyFlags) -> Result<Option<SegmentBounds>> {
    let Some(path) = offsets else { return Ok(length.map(SegmentBounds::OfLength)) };
    Ok(Some(SegmentBounds::Between(Offsets::open(path, flags.endian)?)))
}

/// Refuses flags that cannot be used together.
fn refuse_combinations(args: &SortArgs) -> Result<()> {
    let given = |path: &Option<PathBuf>| path.is_some();
    let on_gpu: Flag = ("--engine gpu", args.engine.engine == EngineChoice::Gpu);
    let device: Flag = ("--device", args.engine.device.is_some());
    let on_cpu: Flag = ("--engine cpu", args.engine.engine == EngineChoice::Cpu);
    let kernel: Flag = ("--kernel merge-path", args.kernel == SortKernel::MergePath);
    let values: Flag = ("--values", args.values.is_given());
    let unique: Flag = ("--unique", args.unique);
    let verify: Flag = ("--check", args.check);
    let check: Flag = if args.only_check { ("-c", true) } else { ("-C", args.only_check_silently) };
    let merge: Flag = ("--merge", args.merge);
    let top: Flag = ("--top", args.top.is_some());
    let skip: Flag = ("--skip", args.skip.is_some());
    let argsort: Flag = ("--argsort", args.argsort);
    let segments: Flag = match args.segments {
        Some(_) => ("--segments", true),
        None => ("--segment-len", args.segment_len.is_some()),
    };
    let records = args.records.flag();
    // Without a size, --key may be the key of a table.
    let sized: Flag = ("--record-size", args.records.record_size.is_some());
    refuse::beside(("-c", args.only_check), &[("-C", args.only_check_silently)], "-c prints a message, and -C none")?;
    refuse_tasks(args, check, "checks one file")?;
    refuse_records(args, sized)?;
    refuse::beside(merge, &[records], "--merge takes files of sorted keys, without records or tables")?;
    refuse::beside(kernel, &[on_cpu], "merge-path is a kernel of the GPU")?;
    let written = [
        ("--output", given(&args.output)),
        ("--format", args.writing.format.is_some()),
        ("--sync", args.writing.sync),
        values,
        verify,
        skip,
    ];
    refuse::beside(check, &written, &format!("{} writes nothing", check.0))?;
    refuse::beside(check, &[on_gpu, device, kernel], "the CPU checks files")?;
    refuse::beside(top, &[values], "--top selects keys without their values")?;
    refuse::beside(top, &[unique], "--top counts equal keys, too")?;
    refuse::beside(top, &[kernel], "--top selects keys, and that kernel sorts them")?;
    refuse::beside(merge, &[kernel], "--merge takes sorted files, and that kernel sorts")?;
    refuse::beside(argsort, &[values], "--argsort writes indices, by which other programs can move values")?;
    refuse::beside(argsort, &[skip], "--skip copies a header before keys, and --argsort writes indices")?;
    refuse::beside(merge, &[skip], "--skip copies the header of one file")?;
    refuse::beside(argsort, &[verify], "--check reads keys back, and --argsort writes indices")?;
    refuse::beside(segments, &[unique], "a segment with fewer keys would have other offsets")?;
    refuse::beside(segments, &[verify], "--check expects one order of all keys")?;
    refuse::beside(segments, &[kernel], "segments are sorted by kernels of their own")?;
    refuse::beside(records, &[("--type", args.common.key_type.is_some())], TYPE_OF_FIELD)?;
    refuse::beside(records, &[values], "all bytes of a record move with its key")
}

/// Refuses flags that records do not have. `records` is the flag that makes the files records.
fn refuse_records(args: &SortArgs, records: Flag) -> Result<()> {
    refuse_tasks(args, records, "is about records")?;
    let unique = ("--unique", args.unique && !args.only_check && !args.only_check_silently);
    refuse::beside(records, &[unique], "records with equal keys may differ in their other bytes")
}

/// Refuses a task beside another one, and two tasks other than it. `does` says what the task does.
fn refuse_tasks(args: &SortArgs, task: Flag, does: &str) -> Result<()> {
    let all = [
        (("--merge", args.merge), "merges files of sorted keys"),
        (("--top", args.top.is_some()), "writes the first keys of the order only"),
        (("--argsort", args.argsort), "writes the indices of keys"),
        (("--segments", args.segments.is_some()), "sorts each segment of keys on its own"),
        (("--segment-len", args.segment_len.is_some()), "sorts segments of keys of one length"),
    ];
    refuse::more_than_one(&[&[(task, does)], &all[..]].concat())
}

/// An error if more than one of the inputs is standard input.
fn check_standard_inputs(inputs: &[PathBuf], values: &[PathBuf], segments: Option<&Path>) -> Result<()> {
    let numbered = |name: &'static str, paths: &[PathBuf]| {
        let one = paths.len() == 1;
        move |i: usize| if one { name.to_owned() } else { format!("{name}{}", i + 1) }
    };
    let (input, value) = (numbered("IN", inputs), numbered("V", values));
    let inputs = inputs.iter().enumerate().map(|(i, path)| (input(i), &**path));
    let values = values.iter().enumerate().map(|(i, path)| (value(i), &**path));
    check_standard_input(inputs.chain(values).chain(segments.map(|path| ("OFFSETS".to_owned(), path))))
}

/// The output of indices of keys: integers of the type in its extension, by default `u64`. Also returns the limit of
/// this type.
fn output_of_indices(target: Target, flags: KeyFlags) -> Result<(Output, IndexLimit)> {
    let path = &target.path;
    let named = KeyType::of_extension(path).map(|(key_type, _)| key_type);
    let key_type = match named {
        None => KeyType::U64,
        Some(key_type @ (KeyType::U32 | KeyType::I32 | KeyType::U64 | KeyType::I64)) => key_type,
        Some(other) => {
            let message =
                format!("indices do not fit in {other} numbers, expected .u64, .u32, .i64 or .i32 with --argsort");
            return Err(Failure::file(path, message));
        }
    };
    let format = format::of_output(path, flags.format)?;
    let endian = format::endian_of_output(path, format, flags.endian, None);
    let container = Container::of_keys(path, format, key_type, endian, None, None)?;
    // Indices are not negative, so that their encoding is the identity of an unsigned type.
    let unsigned = if key_type.size() == 4 { KeyType::U32 } else { KeyType::U64 };
    let coding = Coding::total(unsigned, endian);
    let limit = IndexLimit { path: path.to_owned(), key_type };
    Ok((Output::new(target, Form { container, coding, size: key_type.size() }), limit))
}
