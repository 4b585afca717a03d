//! Jobs on records.

use super::keys::KeyFlags;
use super::refuse::Flag;
use super::{Job, Resources, SortRecords};
use crate::args::RecordArgs;
use crate::file::{Concatenation, Form, Input, Output, Target};
use crate::format::npy::{self, FieldKind};
use crate::format::{self, Container, Format};
use crate::records::Layout;
use crate::records::layout::no_names;
use crate::say::error::{Failure, Result, name, shortened, shown};
use crate::say::stats::Stats;
use crate::spec::{Endian, FieldType, KeyField, KeyFields, StatsFormat, quoted};
use std::path::Path;

/// The name of records in place of a key type.
pub const RECORD: &str = "record";

/// Why records have no `--type`.
pub const TYPE_OF_FIELD: &str = "records have no type of keys: --key names that of each field, as in 8:u32";

impl RecordArgs {
    /// The flag that makes files records, if given.
    pub fn flag(&self) -> Flag {
        match self.record_size {
            Some(_) => ("--record-size", true),
            None => ("--key", !self.key.is_empty()),
        }
    }
}

/// Whether the files are records: by the flags, or by the header of an input.
pub fn are_meant(args: &RecordArgs, inputs: &[Input]) -> bool {
    args.flag().1 || inputs.iter().any(|input| input.header_record().is_some())
}

/// The layout of the records in `inputs`: from `--record-size` and `--key`, or from an .npy file's structured dtype.
pub fn layout(args: RecordArgs, inputs: &[Input], flags: KeyFlags) -> Result<Layout> {
    let RecordArgs { record_size, key } = args;
    let key: Vec<KeyField> = key.into_iter().flat_map(|KeyFields(fields)| fields).collect();
    if let Some(field) = key.iter().find(|field| field.nulls_first) {
        return Err(Failure::new(format!("--key {field}: records have no nulls, expected the column of a table")));
    }
    let endian = flags.endian.unwrap_or(Endian::Little);
    let Some(record) = inputs.iter().find_map(Input::header_record) else {
        if let Some(typed) = inputs.iter().find(|input| input.header_type().is_some()) {
            let (key_type, _) = typed.header_type().unwrap_or((crate::spec::KeyType::U8, endian));
            return Err(Failure::file(
                typed.path(),
                format!("holds {key_type} keys by its header, expected records by --record-size and --key"),
            ));
        }
        return match (record_size, &key[..]) {
            (Some(size), [_, ..]) => Layout::new(size, &key, |_| endian, |name| Err(no_names(name))),
            (Some(_), []) => Err(Failure::new("--record-size needs --key, which names the fields that order records")),
            (None, _) => Err(Failure::new(
                "--key needs --record-size, the bytes of a record, which only .npy files with a structured dtype tell",
            )),
        };
    };
    for input in inputs {
        if input.rows() != inputs[0].rows() {
            let first = name(inputs[0].path());
            return Err(Failure::file(input.path(), format!("holds records of another dtype than {first}")));
        }
    }
    let path = inputs[0].path();
    if let Some(size) = record_size.filter(|size| *size != record.size) {
        let found = record.size;
        return Err(Failure::file(
            path,
            format!("holds records of {found} bytes by its header, expected {size} by --record-size"),
        ));
    }
    if key.is_empty() {
        let message = format!("holds records: name the fields that order them with --key, {}", fields_of(record));
        return Err(Failure::file(path, message));
    }
    let endian_at = |offset| match record.fields.iter().find(|field| field.offset == offset).map(|field| &field.kind) {
        Some(FieldKind::Number(_, endian)) => *endian,
        _ => Endian::Little,
    };
    Layout::new(record.size, &key, endian_at, |name| named(path, record, name))
}

/// The fields that `--key` can name, for a message.
fn fields_of(record: &npy::Record) -> String {
    match &record.fields[..] {
        [] => format!("such as 0:bytes{}", record.size),
        fields => {
            "of ".to_owned() + &shown(&fields.iter().map(|field| quoted(&field.name)).collect::<Vec<_>>().join(", "))
        }
    }
}

/// The offset and the type of the field `name` in a record of the file at `path`.
fn named(path: &Path, record: &npy::Record, name: &str) -> Result<(usize, FieldType)> {
    let Some(field) = record.fields.iter().find(|field| field.name == name) else {
        let (name, fields) = (shortened(name), fields_of(record));
        return Err(Failure::file(path, format!("has no field {name:?} for --key, expected one {fields}")));
    };
    match &field.kind {
        FieldKind::Number(key_type, endian) => Ok((field.offset, FieldType::Number(*key_type, Some(*endian)))),
        FieldKind::Bytes(count) => Ok((field.offset, FieldType::Bytes(*count))),
        FieldKind::Other(dtype) => {
            let name = shortened(name);
            Err(Failure::file(
                path,
                format!("field {name:?} for --key has dtype {}, expected a number or bytes", shown(dtype)),
            ))
        }
    }
}

/// How to sort records.
#[derive(Debug)]
pub struct How {
    /// The bytes before the records, which are copied.
    pub header: Option<Vec<u8>>,
    /// Whether the output is read back and checked.
    pub verify: bool,
}

/// The job of a sort of records.
pub fn sort(
    args: RecordArgs,
    inputs: Vec<Input>,
    target: Target,
    flags: KeyFlags,
    How { header, verify }: How,
    resources: Resources,
    stats: Option<StatsFormat>,
) -> Result<Job> {
    let (flag, _) = args.flag();
    let layout = layout(args, &inputs, flags)?;
    let mut stats = Stats::begin("sort", RECORD, layout.size, stats);
    stats.kernel = resources.sort_kernel_name();
    let container = match (format::of_output(&target.path, flags.format)?, inputs[0].rows()) {
        (Format::Raw, _) => Container::Raw,
        (Format::Npy, Some(rows)) => Container::Npy(rows),
        (Format::Npy, None) => Container::Void,
        (format @ (Format::Arrow | Format::Arrows | Format::Parquet), _) => {
            let by = if flags.format.is_some() { "--format" } else { "--output" };
            let message = format!("{by} and {flag} cannot be used together: no {} holds records", format.name());
            return Err(Failure::file(&target.path, message));
        }
    };
    let output = Output::new(target, Form { container, ..Form::raw(layout.size) }).behind(header)?;
    let input = Concatenation::new(inputs);
    Ok(Job::SortRecords(SortRecords { input, layout, order: flags.order, output, verify, resources, stats }))
}
