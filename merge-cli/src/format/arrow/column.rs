//! The one column of a file, and its schema.

use crate::format::npy;
use crate::say::error::{Failure, Result, shortened, without_kinds};
use crate::spec::{Endian, KeyType};
use arrow_ipc::convert::{schema_to_fb_offset, try_fb_to_schema};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use clap::ValueEnum;
use flatbuffers::{FlatBufferBuilder, WIPOffset};
use std::path::Path;
use std::sync::Arc;

/// A column of numbers, and the schema of a table with this column alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    key_type: KeyType,
    schema: SchemaRef,
}

impl Column {
    /// A column of this name. `None` if Arrow has no type for such keys.
    pub fn new(name: &str, key_type: KeyType) -> Option<Self> {
        let field = Field::new(name, data_type(key_type)?, false);
        Some(Self { key_type, schema: Arc::new(Schema::new(vec![field])) })
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

    /// Reads a schema, which must have one column of numbers.
    pub(super) fn parse(schema: arrow_ipc::Schema) -> std::result::Result<Self, String> {
        if !schema.endianness().equals_to_target_endianness() {
            return Err("is big endian, expected little endian".to_owned());
        }
        let schema = try_fb_to_schema(schema).map_err(|error| without_kinds(&error.to_string()).to_owned())?;
        let [field] = &schema.fields()[..] else {
            let count = schema.fields().len();
            return Err(format!(
                "has {count} columns, expected one: only `gmerge sort`, `merge` and `check` read tables, by --key"
            ));
        };
        let found = field.data_type();
        let is_of = |key_type: &&KeyType| data_type(**key_type).as_ref() == Some(found);
        let Some(&key_type) = KeyType::value_variants().iter().find(is_of) else {
            return Err(format!("column {:?} is of type {found}, expected numbers", shortened(field.name())));
        };
        Ok(Self { key_type, schema: Arc::new(schema) })
    }

    /// Adds the schema to a FlatBuffer.
    pub(super) fn schema<'a>(&self, buffer: &mut FlatBufferBuilder<'a>) -> WIPOffset<arrow_ipc::Schema<'a>> {
        schema_to_fb_offset(buffer, &self.schema)
    }
}

/// Arrow's type of keys. `None` if it has no such type.
fn data_type(key_type: KeyType) -> Option<DataType> {
    Some(match key_type {
        KeyType::U8 => DataType::UInt8,
        KeyType::I8 => DataType::Int8,
        KeyType::U16 => DataType::UInt16,
        KeyType::I16 => DataType::Int16,
        KeyType::F16 => DataType::Float16,
        KeyType::U32 => DataType::UInt32,
        KeyType::I32 => DataType::Int32,
        KeyType::F32 => DataType::Float32,
        KeyType::U64 => DataType::UInt64,
        KeyType::I64 => DataType::Int64,
        KeyType::F64 => DataType::Float64,
        KeyType::Bf16 | KeyType::U128 | KeyType::I128 => return None,
    })
}
