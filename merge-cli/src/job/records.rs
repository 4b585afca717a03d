//! Jobs on records.

use super::keys::KeyFlags;
use super::refuse::Flag;
use crate::args::RecordArgs;
use crate::file::{Form, Input, Output, Target};
use crate::format::npy::{self, FieldKind};
use crate::format::{self, Container, Format};
use crate::records::layout::{Field, no_names};
use crate::records::{Layout, Records};
use crate::say::error::{Failure, Result, name, shortened, shown};
use crate::spec::{Endian, FieldType, KeyField, KeyFields, Location, quoted};
use std::path::Path;

/// The name of records in place of a key type.
pub const RECORD: &str = "record";

/// Why records have no `--type`.
pub const TYPE_OF_FIELD: &str = "records have no type of keys: --key names that of each field, as in 8:u32";

impl RecordArgs {
    /// The flag that makes files records, if given.
    pub fn flag(&self) -> Flag {
        match self.record_size {
            _ if self.rows => ("--rows", true),
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
    let RecordArgs { record_size, key, rows: _ } = args;
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
            (Some(size), [_, ..]) => Layout::new(size, &key, |_| endian, no_names),
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
    if key.is_empty() && !record.whole.is_empty() {
        return Ok(Layout { size: record.size, fields: whole(record) });
    }
    if key.is_empty() {
        let message = format!("holds records: name the fields that order them with --key, {}", fields_of(record));
        return Err(Failure::file(path, message));
    }
    let endian_at = |offset| {
        let named = record.fields.iter().find(|field| field.offset == offset).map(|field| &field.kind);
        let field_type = named.or(record.whole.first()).and_then(|kind| type_of(kind).ok());
        field_type.and_then(FieldType::endian).unwrap_or(Endian::Little)
    };
    Layout::new(record.size, &key, endian_at, |location| named(path, record, location))
}

/// The type of a field of this kind, or the dtype of a field that orders no records.
fn type_of(kind: &FieldKind) -> std::result::Result<FieldType, &str> {
    Ok(match kind {
        FieldKind::Number(key_type, endian) => FieldType::Number(*key_type, Some(*endian)),
        FieldKind::Time(endian) => FieldType::Time(*endian),
        FieldKind::Complex(part, endian) => FieldType::Complex(*part, *endian),
        FieldKind::Text(count, endian) => FieldType::Text(*count, *endian),
        FieldKind::Bytes(count) => FieldType::Bytes(*count),
        FieldKind::Other(dtype) => return Err(dtype),
    })
}

/// The fields of records that are ordered as a whole.
fn whole(record: &npy::Record) -> Vec<Field> {
    let mut offset = 0;
    let fields = record.whole.iter().filter_map(|kind| type_of(kind).ok()).map(|field_type| {
        let endian = field_type.endian().unwrap_or(Endian::Little);
        let field = Field { offset, field_type, endian, descending: false };
        offset += field.size();
        field
    });
    fields.collect()
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

/// The offset and the type of the field that has a name or a number in a record of the file at `path`.
fn named(path: &Path, record: &npy::Record, location: &Location) -> Result<(usize, FieldType)> {
    let name = match location {
        Location::At(offset, field_type) => return Ok((*offset, *field_type)),
        Location::Column(column) if record.is_row => return of_column(path, record, *column),
        Location::Column(_) => return no_names(location),
        Location::Named(name) => name,
    };
    let Some(field) = record.fields.iter().find(|field| field.name == *name) else {
        let (name, fields) = (shortened(name), fields_of(record));
        return Err(Failure::file(path, format!("has no field {name:?} for --key, expected one {fields}")));
    };
    let field_type = type_of(&field.kind).map_err(|dtype| {
        let (name, dtype) = (shortened(name), shown(dtype));
        Failure::file(path, format!("field {name:?} for --key has dtype {dtype}, expected a number, string or bytes"))
    });
    Ok((field.offset, field_type?))
}

/// The offset and the type of a column of rows in the file at `path`.
fn of_column(path: &Path, record: &npy::Record, column: usize) -> Result<(usize, FieldType)> {
    let Some(field_type) = record.whole.get(column).and_then(|kind| type_of(kind).ok()) else {
        let columns = record.whole.len();
        let message = format!("has rows of {columns} items, expected columns 0 to {} in --key", columns - 1);
        return Err(Failure::file(path, message));
    };
    Ok((column * field_type.size(), field_type))
}

/// The output of records of `inputs`.
pub fn output(records: &Records, target: Target, inputs: &[Input], flags: KeyFlags) -> Result<Output> {
    let container = match (format::of_output(&target.path, flags.format)?, inputs.first().and_then(Input::rows)) {
        (Format::Raw, _) => Container::Raw,
        (Format::Npy, Some(rows)) => Container::Npy(rows),
        (Format::Npy, None) => Container::Void,
        (format @ (Format::Arrow | Format::Arrows | Format::Parquet), _) => {
            let by = if flags.format.is_some() { "--format" } else { "--output" };
            let name = format.name();
            let message = format!("no {name} holds records, expected .npy or a raw file by {by}");
            return Err(Failure::file(&target.path, message));
        }
    };
    Ok(Output::new(target, Form { container, ..Form::raw(records.layout.size) }))
}
