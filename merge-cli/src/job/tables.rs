//! Jobs on tables.

use super::keys::KeyFlags;
use super::{CheckTable, Job, Resources, Tables, check, refuse};
use crate::args::RecordArgs;
use crate::file::{Form, Input, Output, Target};
use crate::format::{self, Format};
use crate::say::error::{Failure, Result, name};
use crate::say::stats::Stats;
use crate::spec::{Compression, EngineChoice, KeyField, KeyFields, KeyType, Location, StatsFormat};
use crate::table::{Dictionaries, Limits, Reader, TableKey, TableOutput, common_schema, list_of_columns};
use arrow_schema::Schema;
use std::path::Path;

/// The name of rows in place of a key type.
const ROW: &str = "row";

/// What is done with tables.
#[derive(Clone, Copy, Debug)]
pub enum Task {
    Sort,
    /// The tables are sorted, which is checked unless it is assumed.
    Merge {
        assume_sorted: bool,
    },
}

/// How to sort or merge tables.
#[derive(Clone, Copy, Debug)]
pub struct How {
    pub task: Task,
    pub limits: Limits,
    /// Whether the output is read back.
    pub verify: bool,
    pub compression: Option<Compression>,
    /// A flag that was given and that tables do not have.
    pub refused: Option<&'static str>,
}

impl How {
    /// An error if there is a compression, for inputs that are no tables.
    pub fn refuse_compression(self) -> Result<()> {
        match self.compression {
            Some(_) => Err(Failure::new("--compression is for tables, expected Arrow or Parquet files")),
            None => Ok(()),
        }
    }
}

/// Whether the inputs are tables: by their content, or because only tables have such a key or such an output. One
/// column of numbers is a file of keys otherwise.
pub fn are_meant(
    args: &RecordArgs,
    inputs: &[Input],
    target: Option<&Path>,
    flags: KeyFlags,
    how: Option<How>,
) -> bool {
    let is_parquet = target.is_some_and(|path| flags.format.or(Format::of_extension(path)) == Some(Format::Parquet));
    let wants_table = args.flag().1 || is_parquet || how.is_some_and(|how| how.compression.is_some());
    let is_table = |input: &Input| input.check_is_no_table().is_err() || wants_table && input.table_format().is_some();
    inputs.iter().any(is_table)
}

/// Refuses flags that tables do not have: `refused`, or one of all commands. Without a key, the error is the reason why
/// an input is no file of keys, if there is one.
fn refuse_flags(
    inputs: &[Input],
    args: &RecordArgs,
    flags: KeyFlags,
    resources: &Resources,
    refused: Option<&str>,
) -> Result<()> {
    let common = [
        ("--record-size", args.record_size.is_some()),
        ("--type", flags.key_type.is_some()),
        ("--endian", flags.endian.is_some()),
        ("--engine gpu", resources.processors.engine == EngineChoice::Gpu),
    ];
    let refused = refused.or_else(|| refuse::first(&common));
    let (Some(flag), Some(input)) = (refused, inputs.iter().find(|input| input.table_format().is_some())) else {
        return Ok(());
    };
    if args.key.is_empty() {
        inputs.iter().try_for_each(Input::check_is_no_table)?;
    }
    Err(Failure::file(input.path(), format!("is a table, and {flag} is for files of keys or records")))
}

/// The job of a sort or a merge of tables.
pub fn job(
    args: RecordArgs,
    inputs: Vec<Input>,
    target: Target,
    flags: KeyFlags,
    how: How,
    resources: Resources,
    stats: Option<StatsFormat>,
) -> Result<Job> {
    let How { task, limits, verify, compression, refused } = how;
    let first = inputs.first().and_then(Input::table_format).unwrap_or(Format::Arrow);
    let output = Output::new(target, Form::raw(1));
    if verify {
        output.check_can_be_read_back("--output")?;
    }
    inputs.iter().try_for_each(|input| output.check_is_no_input(input))?;
    let length = inputs.iter().map(Input::length).sum();
    refuse_flags(&inputs, &args, flags, &resources, refused)?;
    let format = format_of_output(output.path(), flags.format, first);
    if format.is_err() && args.key.is_empty() {
        inputs.iter().try_for_each(Input::check_is_no_table)?;
    }
    let (format, mut readers) = (format?, open(inputs)?);
    if format == Format::Parquet {
        readers.iter_mut().for_each(Reader::convert_to_parquet_types);
    }
    let schema = common_schema(&readers)?;
    let path = readers[0].path();
    let key = TableKey::new(path, &schema, &fields(args, path, &schema)?, flags.order)?;
    let output = TableOutput { output, format, compression };
    output.check(&schema)?;
    let dictionaries = Dictionaries::new(path, schema)?;
    let operation = match task {
        Task::Merge { .. } => "merge",
        Task::Sort if limits.most < u64::MAX => "top",
        Task::Sort => "sort",
    };
    let stats = Stats::begin(operation, ROW, 0, stats);
    Ok(Job::Tables(Tables { task, readers, length, key, dictionaries, limits, output, verify, resources, stats }))
}

/// The job of a check of the order of a table.
pub fn check(
    args: RecordArgs,
    input: Input,
    flags: KeyFlags,
    how: check::How,
    resources: Resources,
    stats: Option<StatsFormat>,
) -> Result<Job> {
    refuse_flags(std::slice::from_ref(&input), &args, flags, &resources, None)?;
    let length = input.length();
    let reader = open(vec![input])?.pop().ok_or_else(Failure::reported)?;
    let (path, schema) = (reader.path(), reader.schema());
    let key = TableKey::new(path, schema, &fields(args, path, schema)?, flags.order)?;
    let stats = Stats::begin("check", ROW, 0, stats);
    let check::How { unique, silent } = how;
    Ok(Job::CheckTable(CheckTable { reader, length, key, unique, silent, resources, stats }))
}

/// Opens tables, and reads their schemas.
fn open(inputs: Vec<Input>) -> Result<Vec<Reader>> {
    let first = inputs.iter().find(|input| input.table_format().is_some()).map(|input| input.path().to_owned());
    let open = |input: Input| {
        let Some(format) = input.table_format() else {
            let first = first.as_deref().map(name).unwrap_or_default();
            return Err(Failure::file(
                input.path(),
                format!("is no table, expected an Arrow or Parquet file as {first}"),
            ));
        };
        let (is_open, reason) = (input.is_open(), input.check_is_no_table());
        let mut reader = match (Reader::open(input.into_bytes()?, format), format) {
            (Ok(reader), _) => reader,
            (Err(failure), Format::Parquet) => return Err(failure),
            // Files of which not even the schema can be read are damaged.
            (Err(failure), _) => return Err(reason.err().unwrap_or(failure)),
        };
        if !is_open {
            reader.close();
        }
        Ok(reader)
    };
    inputs.into_iter().map(open).collect()
}

/// The columns of `--key`, or the only column.
fn fields(args: RecordArgs, path: &Path, schema: &Schema) -> Result<Vec<KeyField>> {
    let fields: Vec<KeyField> = args.key.into_iter().flat_map(|KeyFields(fields)| fields).collect();
    match (&fields[..], &schema.fields()[..]) {
        ([_, ..], _) => Ok(fields),
        ([], [column]) => {
            let location = Location::Named(column.name().clone());
            Ok(vec![KeyField { location, descending: false, nulls_first: false }])
        }
        ([], columns) => {
            let (count, columns) = (columns.len(), list_of_columns(schema));
            Err(Failure::file(
                path,
                format!("is a table of {count} columns: name those that order it with --key, {columns}"),
            ))
        }
    }
}

/// The format of the output at `path`: the format of the flag or the extension, or else that of the first input.
fn format_of_output(path: &Path, forced: Option<Format>, first: Format) -> Result<Format> {
    let expected = "expected .arrow, .arrows or .parquet, or --format, for a table";
    let found = forced.or(Format::of_extension(path));
    match found {
        Some(format @ (Format::Arrow | Format::Arrows | Format::Parquet)) => Ok(format),
        Some(format) => Err(Failure::file(path, format!("is a {}, {expected}", format.name()))),
        None if KeyType::of_extension(path).is_some() => Err(Failure::file(path, format!("is a raw file, {expected}"))),
        None => format::of_output(path, None).map(|_| first),
    }
}
