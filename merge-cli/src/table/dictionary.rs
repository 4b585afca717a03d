//! Dictionaries of columns. Each batch may have a dictionary of its own, and an Arrow file has one for all batches. So
//! a column is held as the indices into one dictionary, which grows as batches are read.

use crate::say::error::{Failure, Result, shortened};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array, downcast_integer, make_array, new_empty_array};
use arrow_array::{ArrowPrimitiveType, PrimitiveArray};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::take::take;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// The dictionaries of all columns that have one, and the schema of the table with and without them.
#[derive(Debug)]
pub struct Dictionaries {
    schema: SchemaRef,
    plain: SchemaRef,
    columns: Vec<Option<Dictionary>>,
}

/// The dictionary of a column.
#[derive(Debug)]
struct Dictionary {
    converter: RowConverter,
    /// The index of each value, by its bytes.
    indices: HashMap<Box<[u8]>, u64>,
    /// All values, in the order of their indices.
    values: ArrayRef,
    /// The dictionary of the last batch, and the new index of each of its values. None if they are the same.
    last: Option<(ArrayRef, Option<ArrayRef>)>,
}

impl Dictionaries {
    /// The dictionaries of a table with this schema, which are still empty.
    ///
    /// # Errors
    /// A dictionary with values of a type that cannot be compared. `path` names the table.
    pub fn new(path: &Path, schema: SchemaRef) -> Result<Self> {
        let mut columns = Vec::new();
        let mut fields: Vec<Field> = Vec::new();
        for field in schema.fields() {
            let DataType::Dictionary(index, values) = field.data_type() else {
                columns.push(None);
                fields.push(field.as_ref().clone());
                continue;
            };
            let converter = RowConverter::new(vec![SortField::new(values.as_ref().clone())]).map_err(|_| {
                let name = shortened(field.name());
                Failure::file(path, format!("column {name:?} is a dictionary of {values}, expected values to compare"))
            })?;
            columns.push(Some(Dictionary {
                converter,
                indices: HashMap::new(),
                values: new_empty_array(values),
                last: None,
            }));
            fields.push(Field::new(field.name(), index.as_ref().clone(), field.is_nullable()));
        }
        Ok(Self { schema, plain: Arc::new(Schema::new(fields)), columns })
    }

    /// Whether no column has a dictionary.
    pub fn is_empty(&self) -> bool {
        self.columns.iter().all(Option::is_none)
    }

    /// The schema of the table.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The schema of [`plain`](Self::plain) batches, with indices in place of dictionaries.
    pub fn plain_schema(&self) -> &SchemaRef {
        &self.plain
    }

    /// A batch of the table with indices in place of dictionaries.
    pub fn plain(&mut self, batch: &RecordBatch) -> std::result::Result<RecordBatch, ArrowError> {
        let columns = batch.columns().iter().zip(&mut self.columns).map(|(column, dictionary)| match dictionary {
            None => Ok(column.clone()),
            Some(dictionary) => dictionary.indices_of(column),
        });
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.plain.clone(), columns.collect::<std::result::Result<_, _>>()?, &options)
    }

    /// A column of a plain batch as a column of the table.
    pub fn restored(&self, index: usize, column: ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
        let Some(dictionary) = &self.columns[index] else { return Ok(column) };
        let data = column.to_data().into_builder().data_type(self.schema.field(index).data_type().clone());
        Ok(make_array(data.child_data(vec![dictionary.values.to_data()]).build()?))
    }
}

impl Dictionary {
    /// The indices of a column in this dictionary, which gets the values that it does not have.
    fn indices_of(&mut self, column: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
        let column = column.as_any_dictionary();
        let is_last = |(values, _): &(ArrayRef, _)| Arc::ptr_eq(values, column.values());
        if !self.last.as_ref().is_some_and(is_last) {
            let new_indices = self.add(column.values(), column.keys().data_type())?;
            self.last = Some((column.values().clone(), new_indices));
        }
        let keys: ArrayRef = make_array(column.keys().to_data());
        match &self.last {
            Some((_, Some(new_indices))) => take(new_indices, &keys, None),
            _ => Ok(keys),
        }
    }

    /// Adds new values, and returns the index of each of `values`. None if each has its own index.
    fn add(&mut self, values: &ArrayRef, index: &DataType) -> std::result::Result<Option<ArrayRef>, ArrowError> {
        let rows = self.converter.convert_columns(std::slice::from_ref(values))?;
        let (mut new_indices, mut added) = (Vec::with_capacity(rows.num_rows()), Vec::new());
        for (i, row) in rows.iter().enumerate() {
            let next = self.indices.len() as u64;
            let index = *self.indices.entry(row.data().into()).or_insert(next);
            if index == next {
                added.push(i as u64);
            }
            new_indices.push(index);
        }
        if !added.is_empty() {
            let added = take(values, &UInt64Array::from(added), None)?;
            self.values = concat(&[&*self.values, &*added])?;
        }
        if new_indices.iter().copied().eq(0..new_indices.len() as u64) {
            return Ok(None);
        }
        macro_rules! narrowed {
            ($t:ty) => {
                narrowed::<$t>(&new_indices)
            };
        }
        downcast_integer! {
            index => (narrowed),
            _ => Err(ArrowError::SchemaError(format!("a dictionary with indices of type {index}")))
        }
        .map(Some)
    }
}

/// The indices as numbers of a type.
fn narrowed<T: ArrowPrimitiveType<Native: TryFrom<u64>>>(indices: &[u64]) -> std::result::Result<ArrayRef, ArrowError> {
    let narrowed = |&index: &u64| {
        T::Native::try_from(index).map_err(|_| {
            ArrowError::ComputeError(format!(
                "all dictionaries together have more values than {} can number",
                T::DATA_TYPE
            ))
        })
    };
    let numbers = indices.iter().map(narrowed).collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(Arc::new(PrimitiveArray::<T>::new(numbers.into(), None)))
}
