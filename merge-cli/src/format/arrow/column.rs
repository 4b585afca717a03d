//! The one column of a file: its schema, read and written.

use super::MAX_METADATA;
use super::flatbuffer::{Damaged, Fields, Table, Value};
use crate::format::npy;
use crate::say::error::{Failure, Result, shortened};
use crate::spec::{Endian, KeyType, Kind};
use clap::ValueEnum;
use std::path::Path;

/// Names of the types in Arrow's union `Type`, from 0.
const TYPES: [&str; 27] = [
    "no type",
    "Null",
    "Int",
    "FloatingPoint",
    "Binary",
    "Utf8",
    "Bool",
    "Decimal",
    "Date",
    "Time",
    "Timestamp",
    "Interval",
    "List",
    "Struct",
    "Union",
    "FixedSizeBinary",
    "FixedSizeList",
    "Map",
    "Duration",
    "LargeBinary",
    "LargeUtf8",
    "LargeList",
    "RunEndEncoded",
    "BinaryView",
    "Utf8View",
    "ListView",
    "LargeListView",
];
/// The least overhead of a key and its value in a buffer, in bytes.
const PAIR: usize = 16;
const INT: u8 = 2;
const FLOATING_POINT: u8 = 3;

/// Keys and their values, of a schema or a field.
type Metadata = Vec<(Vec<u8>, Vec<u8>)>;

/// A column of numbers, and the other contents of its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    key_type: KeyType,
    data_type: DataType,
    name: Vec<u8>,
    is_nullable: bool,
    metadata: Metadata,
    schema_metadata: Metadata,
}

impl Column {
    /// A column of this name. `None` if Arrow has no type for such keys.
    pub fn new(name: &str, key_type: KeyType) -> Option<Self> {
        let (data_type, name) = (DataType::of(key_type)?, name.into());
        let (metadata, schema_metadata) = (Metadata::new(), Metadata::new());
        Some(Self { key_type, data_type, name, is_nullable: false, metadata, schema_metadata })
    }

    /// The column of an output to `path`: the column of the input, if it has this type, otherwise a column named
    /// "keys".
    ///
    /// # Errors
    ///
    /// Arrow has no type for these keys.
    pub fn of_output(path: &Path, input: Option<&Self>, key_type: KeyType) -> Result<Self> {
        match input {
            Some(column) if column.key_type == key_type => Ok(column.clone()),
            _ => Self::new("keys", key_type).ok_or_else(|| {
                let message = format!("Arrow has no type for {key_type} keys: write them with --format raw");
                Failure::file(path, message)
            }),
        }
    }

    /// The type of the numbers.
    pub fn key_type(&self) -> KeyType {
        self.key_type
    }

    /// The rows of an array that holds the numbers.
    pub fn rows(&self) -> Option<npy::Rows> {
        Some(npy::Rows::of_numbers(&npy::Number::plain(self.key_type)?, Endian::Little))
    }

    /// Reads a `Schema`, which must have one column of numbers.
    pub(super) fn parse(schema: Table) -> std::result::Result<Self, String> {
        if schema.i16(0)? != 0 {
            return Err("is big endian, expected little endian".to_owned());
        }
        let mut fields = schema.tables(1)?;
        let (count, field) = (fields.len(), fields.next());
        let (1, Some(field)) = (count, field) else {
            return Err(format!("has {count} columns, expected one: save the column of keys by itself"));
        };
        let field = field?;
        let name = field.bytes(0, 1)?;
        let found = DataType::parse(field)?;
        let key_type = KeyType::value_variants().iter().find(|&&key_type| DataType::of(key_type) == found);
        let (Some(data_type), Some(&key_type)) = (found, key_type) else {
            let (name, found) = (shortened(&String::from_utf8_lossy(name)), type_name(field)?);
            return Err(format!("column {name:?} is of type {found}, expected numbers"));
        };
        Ok(Self {
            key_type,
            data_type,
            name: name.to_vec(),
            is_nullable: field.u8(1)? != 0,
            metadata: metadata(field, 6)?,
            schema_metadata: metadata(schema, 2)?,
        })
    }

    /// The fields of a `Schema`.
    pub(super) fn schema(&self) -> Fields<'_> {
        let (type_number, type_fields) = self.data_type.encode();
        let field = vec![
            (0, Value::String(&self.name)),
            (1, Value::U8(self.is_nullable.into())),
            (2, Value::U8(type_number)),
            (3, Value::Table(type_fields)),
            // Some readers require the vector of children, which is empty for numbers.
            (5, Value::Tables(Vec::new())),
            (6, Value::Tables(key_values(&self.metadata))),
        ];
        vec![(1, Value::Tables(vec![field])), (2, Value::Tables(key_values(&self.schema_metadata)))]
    }
}

/// Arrow's type of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DataType {
    Int {
        bits: i32,
        is_signed: bool,
    },
    /// 0 is half precision, 1 single precision, 2 double precision.
    FloatingPoint {
        precision: i16,
    },
}

impl DataType {
    /// The type of keys. `None` if Arrow has no such type.
    fn of(key_type: KeyType) -> Option<Self> {
        match (key_type.kind(), key_type.size()) {
            // Neither numbers of 16 bytes nor bfloat16.
            (_, 16) => None,
            (Kind::Float, 2) if key_type == KeyType::Bf16 => None,
            (Kind::Float, size) => Some(Self::FloatingPoint { precision: size.ilog2() as i16 - 1 }),
            (kind, size) => Some(Self::Int { bits: 8 * size as i32, is_signed: kind == Kind::Signed }),
        }
    }

    /// The number of the type in the union `Type`, and the fields of its table.
    fn encode(self) -> (u8, Fields<'static>) {
        match self {
            Self::Int { bits, is_signed } => (INT, vec![(0, Value::I32(bits)), (1, Value::U8(is_signed.into()))]),
            Self::FloatingPoint { precision } => (FLOATING_POINT, vec![(0, Value::I16(precision))]),
        }
    }

    /// The type of a `Field`, if it is a type of numbers.
    fn parse(field: Table) -> std::result::Result<Option<Self>, Damaged> {
        let Some(table) = field.table(3)? else { return Ok(None) };
        Ok(match field.u8(2)? {
            // A dictionary holds the numbers, and the column their indices.
            _ if field.table(4)?.is_some() => None,
            INT => Some(Self::Int { bits: table.i32(0)?, is_signed: table.u8(1)? != 0 }),
            FLOATING_POINT => Some(Self::FloatingPoint { precision: table.i16(0)? }),
            _ => None,
        })
    }
}

/// The name of the type of a `Field`.
fn type_name(field: Table) -> std::result::Result<String, Damaged> {
    let number = field.u8(2)?;
    let name = TYPES.get(usize::from(number)).map_or_else(|| number.to_string(), |&name| name.to_owned());
    Ok(if field.table(4)?.is_some() { format!("{name} in a dictionary") } else { name })
}

/// The keys and values in a slot of a table. Overlapping strings could take much more memory than their buffer. So the
/// total size is limited to the size that fits a buffer without overlaps.
fn metadata(table: Table, slot: usize) -> std::result::Result<Metadata, Damaged> {
    let mut left = MAX_METADATA;
    let mut metadata = Metadata::new();
    for pair in table.tables(slot)? {
        let pair = pair?;
        let (key, value) = (pair.bytes(0, 1)?, pair.bytes(1, 1)?);
        left = left.checked_sub(PAIR + key.len() + value.len()).ok_or(Damaged)?;
        metadata.push((key.to_vec(), value.to_vec()));
    }
    Ok(metadata)
}

fn key_values(metadata: &Metadata) -> Vec<Fields<'_>> {
    let pairs = metadata.iter();
    pairs.map(|(key, value)| vec![(0, Value::String(key)), (1, Value::String(value))]).collect()
}
