//! The key of a row: a byte string that has the order of the rows.

use super::list_of_columns;
use crate::coding::{Coding, KeyOrder, Word};
use crate::say::error::{Failure, Result, shortened};
use crate::spec::{Endian, KeyField, KeyType, Location};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BinaryArray, PrimitiveArray, RecordBatch};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType, Schema, SortOptions};
use merge_host::{NanOrder, SortOrder, parallel};
use std::path::Path;
use std::sync::Arc;

/// The columns that order the rows of a table.
#[derive(Debug)]
pub struct TableKey {
    /// The index of each column, and the coding of floating-point numbers.
    columns: Vec<(usize, Option<Coding>)>,
    converter: RowConverter,
}

impl TableKey {
    /// The key of `fields` in a table with this schema. `order` may reverse all fields, but not where nulls are.
    ///
    /// # Errors
    /// A field that names no column, or a column that cannot be a key. `path` names the table.
    pub fn new(path: &Path, schema: &Schema, fields: &[KeyField], order: KeyOrder) -> Result<Self> {
        let mut columns = Vec::new();
        let mut sort_fields = Vec::new();
        for field in fields {
            let index = index_of(path, schema, field)?;
            if columns.iter().any(|(other, _)| *other == index) {
                let name = shortened(schema.field(index).name());
                return Err(Failure::file(path, format!("--key names column {name:?} twice, expected each once")));
            }
            let data_type = schema.field(index).data_type();
            let descending = field.descending != (order.direction == SortOrder::Descending);
            let direction = if descending { SortOrder::Descending } else { SortOrder::Ascending };
            let coding = coding_of(data_type, KeyOrder { direction, ..order });
            let cannot = |why: String| {
                let name = shortened(schema.field(index).name());
                Err(Failure::file(path, format!("column {name:?} is of type {data_type}, {why}")))
            };
            if coding.is_none() && order.nans != NanOrder::Total && has_floats(data_type) {
                return cannot("whose numbers are in total order: sort it with --nan total".to_owned());
            }
            // The coding has the direction.
            let options = SortOptions { descending: descending && coding.is_none(), nulls_first: field.nulls_first };
            let sort_field = SortField::new_with_options(coded_type(data_type), options);
            if !RowConverter::supports_fields(std::slice::from_ref(&sort_field)) {
                return cannot("which cannot be a key".to_owned());
            }
            columns.push((index, coding));
            sort_fields.push(sort_field);
        }
        let converter = RowConverter::new(sort_fields).map_err(|error| super::failure(path, &error))?;
        Ok(Self { columns, converter })
    }

    /// The keys of the rows of a batch.
    pub fn of_batch(&self, batch: &RecordBatch) -> std::result::Result<BinaryArray, ArrowError> {
        let coded = |&(index, coding): &(usize, Option<Coding>)| {
            coding.map_or_else(|| batch.column(index).clone(), |coding| coded(batch.column(index), coding))
        };
        let columns: Vec<ArrayRef> = self.columns.iter().map(coded).collect();
        self.converter.convert_columns(&columns)?.try_into_binary()
    }

    /// The keys of the rows of each batch, on all threads. The table is at `path`, and a batch comes with its number of
    /// bytes.
    pub fn of_batches(&self, batches: &[(RecordBatch, u64)], path: &Path) -> Result<Vec<BinaryArray>> {
        let keys = parallel::map(batches, |(batch, _)| self.of_batch(batch));
        keys.into_iter().collect::<std::result::Result<_, _>>().map_err(|error| super::failure(path, &error))
    }
}

/// The index of the column that a field names.
fn index_of(path: &Path, schema: &Schema, field: &KeyField) -> Result<usize> {
    let Location::Named(name) = &field.location else {
        let message = format!("is a table: --key names columns, expected one {}", list_of_columns(schema));
        return Err(Failure::file(path, message));
    };
    let mut found = schema.fields().iter().enumerate().filter(|(_, field)| field.name() == name);
    let shown = shortened(name);
    match (found.next(), found.next()) {
        (Some((index, _)), None) => Ok(index),
        (None, _) => {
            let columns = list_of_columns(schema);
            Err(Failure::file(path, format!("has no column {shown:?} for --key, expected one {columns}")))
        }
        (Some(_), Some(_)) => {
            Err(Failure::file(path, format!("has several columns {shown:?}, expected one for --key")))
        }
    }
}

/// The coding of a column of floating-point numbers, with or without a dictionary.
fn coding_of(data_type: &DataType, order: KeyOrder) -> Option<Coding> {
    let key_type = match data_type {
        DataType::Float16 => KeyType::F16,
        DataType::Float32 => KeyType::F32,
        DataType::Float64 => KeyType::F64,
        DataType::Dictionary(_, values) => return coding_of(values, order),
        _ => return None,
    };
    Some(Coding { key_type, endian: Endian::Little, order, has_nat: false })
}

/// The type of a column after its floating-point numbers are encoded.
fn coded_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Float16 => DataType::UInt16,
        DataType::Float32 => DataType::UInt32,
        DataType::Float64 => DataType::UInt64,
        DataType::Dictionary(keys, values) => DataType::Dictionary(keys.clone(), coded_type(values).into()),
        other => other.clone(),
    }
}

/// Whether a nested type has floating-point numbers.
fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => has_floats(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| has_floats(field.data_type())),
        DataType::Dictionary(_, values) => has_floats(values),
        other => other.is_floating(),
    }
}

/// A column of floating-point numbers, encoded.
fn coded(column: &ArrayRef, coding: Coding) -> ArrayRef {
    if let Some(dictionary) = column.as_any_dictionary_opt() {
        return dictionary.with_values(coded(dictionary.values(), coding));
    }
    match column.data_type() {
        DataType::Float16 => words::<Float16Type, UInt16Type>(column, coding),
        DataType::Float32 => words::<Float32Type, UInt32Type>(column, coding),
        _ => words::<Float64Type, UInt64Type>(column, coding),
    }
}

/// The numbers of a column, encoded as words. The slots of nulls have any words.
fn words<F: ArrowPrimitiveType, W: ArrowPrimitiveType<Native: Word>>(column: &ArrayRef, coding: Coding) -> ArrayRef
where
    F::Native: bytemuck::NoUninit,
{
    let column = column.as_primitive::<F>();
    let mut words: Vec<W::Native> = bytemuck::pod_collect_to_vec(column.values());
    coding.encode(&mut words);
    Arc::new(PrimitiveArray::<W>::new(words.into(), column.nulls().cloned()))
}
