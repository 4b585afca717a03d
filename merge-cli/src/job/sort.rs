//! The jobs of `gmerge sort`. Flags select a merge, a check, the first keys, segments or records instead of a sort of
//! keys.

use super::keys::{KeyFlags, ValueFiles, order_of, resources, with_counts};
use super::names::Names;
use super::records::TYPE_OF_FIELD;
use super::refuse::{self, Flag};
use super::{Items, Job, Keep, Payload, Resources, SegmentBounds, Segments, Sort, check, merge, numbers, tables};
use crate::args::{EngineArgs, RecordArgs, SortArgs};
use crate::file::input::check_standard_input;
use crate::file::offsets::Offsets;
use crate::file::{Concatenation, Form, InPlace, Input, Output, Outputs, Target, Targets};
use crate::format::{Axis, Container};
use crate::say::error::{Failure, Result};
use crate::spec::{EngineChoice, Processors, SortKernel, StatsFormat};
use crate::table::Limits;
use std::path::{Path, PathBuf};

/// The job of these flags.
pub fn job(args: SortArgs) -> Result<Job> {
    refuse_combinations(&args)?;
    // Only the files say whether --key is about records or tables.
    let of_tables = how_to_sort_tables(&args);
    let flags = key_flags(&args);
    let (parallel, stats) = (args.common.parallel, args.common.stats);
    let processors = processors_of(args.engine, args.kernel)?;
    let resources = Resources { sort_kernel: args.kernel.into(), ..resources(processors, parallel, args.memory) };
    let (keep, verify) = (args.distinct.keep(), args.check);
    let Names { inputs, values, list } = Names::of("IN", args.inputs, args.list, args.values, !args.merge)?;
    if args.only_check || args.only_check_silently {
        let input = only_input(&inputs, if args.only_check { "-c checks" } else { "-C checks" })?;
        let how = check::How { unique: args.distinct.unique, silent: args.only_check_silently };
        return check::keys_or_records(input, flags, args.records, how, resources, stats);
    }
    if args.in_place {
        return in_place(&inputs, flags, (args.records, args.skip), args.writing.sync, resources, stats);
    }
    let output = args.output.unwrap_or_else(|| "-".into());
    check_standard_inputs(&inputs, &values, args.segments.as_deref())?;
    // An output that cannot be written is an error before a pipe is read.
    let (values_out, sync) = (args.written_values.values_out.as_deref(), args.writing.sync);
    let targets = Targets::find(&output, values_out, args.distinct.count.as_deref(), sync)?;
    list.check_targets(&targets)?;
    if args.merge {
        let (tables, value_files) = (of_tables, ValueFiles::EachByMerge);
        let flags = merge::Flags { flags, assume_sorted: false, keep, verify, kernel: None, value_files, tables };
        return merge::job(flags, args.records, &inputs, &values, targets, resources, stats);
    }
    let Targets { keys: target, values: values_target, counts } = targets;
    let mut inputs = flags.open_all(&inputs)?;
    if tables::are_meant(&args.records, &inputs, Some(&output), flags, Some(of_tables)) {
        return tables::job(args.records, inputs, target, flags, of_tables, resources, stats);
    }
    of_tables.refuse_compression()?;
    let header = args.skip.map(|count| skip(&mut inputs, count)).transpose()?;
    let items = Items::decide(args.records, &mut inputs, flags, (!args.argsort).then_some(&*output))?;
    let mut stats = items.stats(if args.top.is_some() { "top" } else { "sort" }, stats);
    stats.kernel = resources.sort_kernel_name();
    let (payload, outputs) = if args.argsort {
        let (output, limit) = numbers::indices(target, flags, "--argsort")?;
        (Payload::Indices(limit), Outputs::from(output))
    } else {
        let output = items.output(target, &inputs, flags)?.behind(header)?;
        let (values, outputs) =
            flags.open_values(&values, values_target, &inputs, items.size(), output, ValueFiles::OneOrEach)?;
        (values.map(Concatenation::new).map_or(Payload::None, Payload::Values), outputs)
    };
    let outputs = with_counts(outputs, counts, flags)?;
    let bounds = match args.axis {
        Some(axis) => Some(rows_along(axis, &inputs)?),
        None => bounds_of(args.segments.as_deref(), args.segment_len, flags)?,
    };
    let keys = Concatenation::new(inputs);
    if let (Some(bounds), &Items::Keys(key_type)) = (bounds, &items) {
        let values = if let Payload::Values(values) = payload { Some(values) } else { None };
        return Ok(Job::Segments(Segments { keys, key_type, values, bounds, outputs, resources, stats }));
    }
    Ok(Job::Sort(Sort { keys, items, payload, outputs, keep, top: args.top, verify, resources, stats }))
}

/// The flags about keys and values.
fn key_flags(args: &SortArgs) -> KeyFlags {
    let flags = args.common.key_flags(args.writing.format, order_of(args.reverse, args.order)).beside(&args.records);
    let axis = match args.axis {
        None => flags.axis,
        Some(0) => Axis::First,
        Some(_) => Axis::Last,
    };
    let flags = KeyFlags { axis, ..flags }.beside_keys_only(&keys_only(args));
    KeyFlags { value_size: args.written_values.value_size, ..flags }
}

/// The sort of one file that is written over itself.
fn in_place(
    inputs: &[PathBuf],
    flags: KeyFlags,
    (records, header): (RecordArgs, Option<u64>),
    sync: bool,
    resources: Resources,
    stats: Option<StatsFormat>,
) -> Result<Job> {
    let mut place = InPlace::open(only_input(inputs, "--in-place sorts")?, sync)?;
    let mut inputs = flags.open_all(inputs)?;
    if let Some(count) = header {
        skip(&mut inputs, count)?;
    }
    place.begin = inputs[0].begin_in_place()?;
    let items = Items::decide(records, &mut inputs, flags, None)?;
    let mut stats = items.stats("sort", stats);
    stats.kernel = resources.sort_kernel_name();
    let form = Form { container: Container::Raw, coding: inputs[0].coding(), size: items.size() };
    let outputs = Outputs::from(Output::new(Target::from(place), form));
    let (keys, payload) = (Concatenation::new(inputs), Payload::None);
    Ok(Job::Sort(Sort { keys, items, payload, outputs, keep: Keep::All, top: None, verify: false, resources, stats }))
}

/// The flags that are for keys only.
fn keys_only(args: &SortArgs) -> [Flag; 3] {
    let on_gpu = args.engine.engine == EngineChoice::Gpu;
    [("--values", args.values.is_given()), segments_flag(args), ("--engine gpu with --merge", args.merge && on_gpu)]
}

/// The flag about segments, if given.
fn segments_flag(args: &SortArgs) -> Flag {
    match args.segments {
        _ if args.axis.is_some() => ("--axis", true),
        Some(_) => ("--segments", true),
        None => ("--segment-len", args.segment_len.is_some()),
    }
}

/// The processors that sort. A named kernel needs a GPU.
fn processors_of(engine: EngineArgs, kernel: SortKernel) -> Result<Processors> {
    let processors = engine.processors()?;
    let engine = if kernel == SortKernel::Auto { processors.engine } else { EngineChoice::Gpu };
    Ok(Processors { engine, ..processors })
}

/// How tables are sorted or merged, if the inputs are tables.
fn how_to_sort_tables(args: &SortArgs) -> tables::How {
    let refused = refuse::first(&[
        ("--argsort", args.argsort),
        ("--count", args.distinct.count.is_some()),
        ("--device", args.engine.device.is_some()),
        ("--kernel", args.kernel != SortKernel::Auto),
        ("--last", args.distinct.last),
        ("--segments", args.segments.is_some()),
        ("--segment-len", args.segment_len.is_some()),
        ("--skip", args.skip.is_some()),
        ("--values", args.values.is_given()),
    ]);
    let limits = Limits { unique: args.distinct.unique, most: args.top.unwrap_or(u64::MAX) };
    let task = if args.merge { tables::Task::Merge { assume_sorted: false } } else { tables::Task::Sort };
    tables::How { task, limits, verify: args.check, compression: args.table.compression, refused }
}

/// The first `count` bytes of the one input, behind which the keys or records begin.
fn skip(inputs: &mut [Input], count: u64) -> Result<Vec<u8>> {
    match inputs {
        [input] => input.skip(count),
        _ => Err(Failure::new(format!("--skip copies the header of one file IN, found {}", inputs.len()))),
    }
}

/// The one file that a flag is for. `does` is the flag and its verb.
fn only_input<'a>(inputs: &'a [PathBuf], does: &str) -> Result<&'a PathBuf> {
    match inputs {
        [input] => Ok(input),
        _ => Err(Failure::new(format!("{does} one file IN, found {}: run it for each", inputs.len()))),
    }
}

/// Where the segments begin and end, if there are segments.
fn bounds_of(offsets: Option<&Path>, length: Option<usize>, flags: KeyFlags) -> Result<Option<SegmentBounds>> {
    let Some(path) = offsets else { return Ok(length.map(SegmentBounds::OfLength)) };
    Ok(Some(SegmentBounds::Between(Offsets::open(path, flags.endian)?)))
}

/// The rows along an axis of arrays. It must be the last one, or the first one of arrays that are read transposed.
fn rows_along(axis: i64, inputs: &[Input]) -> Result<SegmentBounds> {
    let Some((input, rows)) = inputs.iter().find_map(|input| Some((input, input.rows()?))) else {
        return Err(Failure::new("--axis needs an .npy array with two dimensions or more"));
    };
    let last = rows.shape.len() as i64;
    if ![0, -1, last].contains(&axis) {
        let dimensions = last + 1;
        let message = format!("has {dimensions} dimensions, expected --axis 0, the first, or {last} or -1, the last");
        return Err(Failure::file(input.path(), message));
    }
    match rows.shape.last() {
        Some(&length) if rows.shape.iter().all(|length| *length > 0) => {
            Ok(SegmentBounds::OfLength(usize::try_from(length).unwrap_or(usize::MAX)))
        }
        _ => Err(Failure::file(input.path(), "has rows without keys, expected at least one key in a row for --axis")),
    }
}

/// Refuses flags that cannot be used together.
fn refuse_combinations(args: &SortArgs) -> Result<()> {
    let given = |path: &Option<PathBuf>| path.is_some();
    let on_gpu: Flag = ("--engine gpu", args.engine.engine == EngineChoice::Gpu);
    let device: Flag = ("--device", args.engine.device.is_some());
    let on_cpu: Flag = ("--engine cpu", args.engine.engine == EngineChoice::Cpu);
    let kernel: Flag = ("--kernel merge-path", args.kernel == SortKernel::MergePath);
    let values: Flag = ("--values", args.values.is_given());
    let unique: Flag = ("--unique", args.distinct.unique);
    let last: Flag = ("--last", args.distinct.last);
    let count: Flag = ("--count", given(&args.distinct.count));
    let verify: Flag = ("--check", args.check);
    let check: Flag = if args.only_check { ("-c", true) } else { ("-C", args.only_check_silently) };
    let merge: Flag = ("--merge", args.merge);
    let top: Flag = ("--top", args.top.is_some());
    let skip: Flag = ("--skip", args.skip.is_some());
    let compression: Flag = ("--compression", args.table.compression.is_some());
    let argsort: Flag = ("--argsort", args.argsort);
    let segments = segments_flag(args);
    let records = args.records.flag();
    refuse::beside(("-c", args.only_check), &[("-C", args.only_check_silently)], "-c prints a message, and -C none")?;
    refuse_tasks(args, &[check, merge, top, argsort, records])?;
    refuse::beside(kernel, &[on_cpu], "merge-path is a kernel of the GPU")?;
    let written = [
        ("--output", given(&args.output)),
        ("--format", args.writing.format.is_some()),
        ("--sync", args.writing.sync),
        compression,
        values,
        last,
        count,
        verify,
        skip,
    ];
    refuse::beside(check, &written, &format!("{} writes nothing", check.0))?;
    refuse_in_place(args, &[check, values, unique, count, compression, merge, top, argsort, verify, segments])?;
    refuse::beside(check, &[on_gpu, device, kernel], "the CPU checks files")?;
    refuse::beside(top, &[unique], "--top counts equal keys, too")?;
    refuse::beside(top, &[kernel], "--top selects keys, and that kernel sorts them")?;
    refuse::beside(merge, &[kernel], "--merge takes sorted files, and that kernel sorts")?;
    refuse::beside(argsort, &[values], "--argsort writes indices, by which other programs can move values")?;
    refuse::beside(argsort, &[skip], "--skip copies a header before keys, and --argsort writes indices")?;
    refuse::beside(merge, &[skip], "--skip copies the header of one file")?;
    refuse::beside(argsort, &[verify], "--check reads keys back, and --argsort writes indices")?;
    refuse::beside(segments, &[unique], "a segment with fewer keys would have other offsets")?;
    refuse::beside(segments, &[verify], "--check expects one order of all keys")?;
    let first_axis = ("--axis 0", args.axis == Some(0));
    refuse::beside(first_axis, &[values], "values are in the order of rows, and columns are read one by one")?;
    refuse::beside(segments, &[kernel], "segments are sorted by kernels of their own")?;
    refuse::beside(records, &[("--type", args.common.key_type.is_some())], TYPE_OF_FIELD)?;
    refuse::beside(records, &[values], "all bytes of a record move with its key")?;
    let merged = (records.0, records.1 && args.merge);
    refuse::beside(merged, &[on_gpu], "with --merge, the CPU merges records while they are read")
}

/// Refuses `--in-place` beside `others` and the flags that name other files.
fn refuse_in_place(args: &SortArgs, others: &[Flag]) -> Result<()> {
    let files = [
        ("--output", args.output.is_some()),
        ("--format", args.writing.format.is_some()),
        ("--files0-from", args.list.files0_from.is_some()),
    ];
    let flags = [&files, others].concat();
    refuse::beside(("--in-place", args.in_place), &flags, "--in-place writes all keys of one file over that file")
}

/// Refuses two tasks at once: two of these flags or of the flags about segments.
fn refuse_tasks(args: &SortArgs, [check, merge, top, argsort, records]: &[Flag; 5]) -> Result<()> {
    let segments = [
        (("--segments", args.segments.is_some()), "sorts each segment of keys on its own"),
        (("--segment-len", args.segment_len.is_some()), "sorts segments of keys of one length"),
        (("--axis", args.axis.is_some()), "sorts each row of an array on its own"),
    ];
    let (check, merge) = ((*check, "checks one file"), (*merge, "merges files of sorted keys"));
    let with = |tasks: &[(Flag, &'static str)]| refuse::more_than_one(&[tasks, &segments].concat());
    with(&[check, merge, (*top, "writes the first keys of the order only")])?;
    with(&[check, merge, (*argsort, "writes the indices of keys")])?;
    with(&[(*records, "is about records")])
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
