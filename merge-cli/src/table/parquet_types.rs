//! Types that Parquet stores in place of some of Arrow's, as other writers do.
//!
//! | Arrow | Parquet |
//! | --- | --- |
//! | dates in milliseconds | dates in days |
//! | timestamps and times in seconds | the same in milliseconds |
//! | a union | none |
//!
//! Tables get these types when they are read, so that keys, runs and the output have the same.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Time32MillisecondType, Time32SecondType, TimestampMillisecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, TimeUnit};
use std::sync::Arc;

const MILLISECONDS_A_DAY: i64 = 24 * 60 * 60 * 1000;

/// The type of a column of type `data_type` in a Parquet file, or `None` if there is none.
pub fn stored_type(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::Date64 => DataType::Date32,
        DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
        DataType::Timestamp(TimeUnit::Second, zone) => DataType::Timestamp(TimeUnit::Millisecond, zone.clone()),
        DataType::Union(..) => return None,
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(stored_field).collect::<Option<_>>()?),
        DataType::Dictionary(index, values) => DataType::Dictionary(index.clone(), Box::new(stored_type(values)?)),
        DataType::List(item) => DataType::List(stored_field(item)?),
        DataType::LargeList(item) => DataType::LargeList(stored_field(item)?),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(stored_field(item)?, *length),
        DataType::ListView(item) => DataType::ListView(stored_field(item)?),
        DataType::LargeListView(item) => DataType::LargeListView(stored_field(item)?),
        DataType::RunEndEncoded(ends, values) => DataType::RunEndEncoded(ends.clone(), stored_field(values)?),
        DataType::Map(entries, is_sorted) => DataType::Map(stored_field(entries)?, *is_sorted),
        other => other.clone(),
    })
}

fn stored_field(field: &FieldRef) -> Option<FieldRef> {
    let data_type = stored_type(field.data_type())?;
    Some(Arc::new(Field::clone(field).with_data_type(data_type)))
}

/// The schema of a table in a Parquet file. Columns for which Parquet has no type are as they are.
pub fn stored_schema(schema: &Schema) -> Schema {
    let fields = schema.fields().iter().map(|field| stored_field(field).unwrap_or_else(|| field.clone()));
    Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone())
}

/// The rows of `batch` with a [`stored_schema`].
///
/// # Errors
/// A value that the type in Parquet does not have.
pub fn stored_batch(batch: &RecordBatch, schema: &Arc<Schema>) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| {
        stored(column, field.data_type()).map_err(|error| match error {
            ArrowError::CastError(text) => ArrowError::CastError(format!("column {:?}: {text}", field.name())),
            error => error,
        })
    });
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns.collect::<Result<_, _>>()?, &options)
}

/// The values of `array` as type `to`, which is its [`stored_type`].
fn stored(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == to {
        return Ok(array.clone());
    }
    let refused = |value: i64, what| ArrowError::CastError(format!("{value} {what}, as Parquet has them"));
    Ok(match array.data_type() {
        DataType::Date64 => {
            let days = array.as_primitive::<Date64Type>().try_unary::<_, Date32Type, _>(|value| {
                let day = (value % MILLISECONDS_A_DAY == 0).then_some(value / MILLISECONDS_A_DAY);
                let day = day.and_then(|day| i32::try_from(day).ok());
                day.ok_or_else(|| refused(value, "milliseconds are no date in days"))
            });
            Arc::new(days?)
        }
        DataType::Time32(TimeUnit::Second) => {
            let times = array.as_primitive::<Time32SecondType>().try_unary::<_, Time32MillisecondType, _>(|value| {
                value.checked_mul(1000).ok_or_else(|| refused(value.into(), "seconds are no time in milliseconds"))
            });
            Arc::new(times?)
        }
        DataType::Timestamp(TimeUnit::Second, zone) => {
            let times = array.as_primitive::<TimestampSecondType>();
            let times = times.try_unary::<_, TimestampMillisecondType, _>(|value| {
                value.checked_mul(1000).ok_or_else(|| refused(value, "seconds are no timestamp in milliseconds"))
            });
            Arc::new(times?.with_timezone_opt(zone.clone()))
        }
        _ => {
            let data = array.to_data();
            let children = data.child_data().iter().map(|child| {
                let child_type = stored_type(child.data_type()).unwrap_or_else(|| child.data_type().clone());
                Ok(stored(&make_array(child.clone()), &child_type)?.to_data())
            });
            let children = children.collect::<Result<_, ArrowError>>()?;
            make_array(data.into_builder().data_type(to.clone()).child_data(children).build()?)
        }
    })
}
