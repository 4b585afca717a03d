//! Types of columns that change, or must not change, in Parquet outputs.

use crate::common::{Folder, Random};
use crate::tables::encoded;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowWriter, encode_arrow_schema};
use parquet::basic::LogicalType;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Columns of dates in milliseconds, and of timestamps and times in seconds: plain, nested and with a dictionary. With
/// `stored`, they have the types that Parquet has: dates in days, and milliseconds in place of seconds.
fn columns(numbers: &[i32], nulls: &NullBuffer, stored: bool) -> RecordBatch {
    let nulls = || Some(nulls.clone());
    let seconds: Vec<i64> = numbers.iter().map(|&number| i64::from(number)).collect();
    let times: ArrayRef = {
        let times = numbers.iter().map(|number| number.rem_euclid(86_400));
        match stored {
            false => Arc::new(Time32SecondArray::new(times.collect(), nulls())),
            true => Arc::new(Time32MillisecondArray::new(times.map(|time| 1000 * time).collect(), nulls())),
        }
    };
    let timestamps = |zone: Option<&str>| -> ArrayRef {
        match stored {
            false => Arc::new(TimestampSecondArray::new(seconds.clone().into(), nulls()).with_timezone_opt(zone)),
            true => {
                let milliseconds = seconds.iter().map(|second| 1000 * second).collect();
                Arc::new(TimestampMillisecondArray::new(milliseconds, nulls()).with_timezone_opt(zone))
            }
        }
    };
    let dates: ArrayRef = match stored {
        false => Arc::new(Date64Array::new(seconds.iter().map(|day| 86_400_000 * day).collect(), nulls())),
        true => Arc::new(Date32Array::new(numbers.to_vec().into(), nulls())),
    };
    let rows = numbers.len() as i32;
    let item = Arc::new(Field::new("item", times.data_type().clone(), true));
    let lists = ListArray::new(item, OffsetBuffer::from_lengths(numbers.iter().map(|_| 1)), times.clone(), nulls());
    let of_struct = vec![Field::new("t", timestamps(None).data_type().clone(), true)];
    let structs = StructArray::new(of_struct.into(), vec![timestamps(None)], nulls());
    let index = Int32Array::new((0..rows).collect(), nulls());
    // A dictionary becomes a plain column where the file says nothing about it.
    let dictionary: ArrayRef =
        if stored { timestamps(None) } else { Arc::new(DictionaryArray::new(index, timestamps(None))) };
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..i64::from(rows)));
    let columns: [(&str, ArrayRef); 7] = [
        ("date", dates),
        ("time", times),
        ("zoned", timestamps(Some("+02:00"))),
        ("list", Arc::new(lists)),
        ("struct", Arc::new(structs)),
        ("dictionary", dictionary),
        ("row", numbers),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

/// The rows of a Parquet file, with the types that it has for all readers.
fn read(path: &Path) -> RecordBatch {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let bytes = Bytes::from(fs::read(path).unwrap());
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options).unwrap();
    let schema = builder.schema().clone();
    let batches = builder.build().unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    concat_batches(&schema, &batches).unwrap()
}

/// The batch with the schema of another. Only the time zones of their types may differ.
fn with_schema(batch: &RecordBatch, like: &RecordBatch) -> RecordBatch {
    let columns = batch.columns().iter().zip(like.columns()).map(|(column, like)| {
        let data = column.to_data().into_builder().data_type(like.data_type().clone());
        make_array(data.build().unwrap())
    });
    RecordBatch::try_new(like.schema(), columns.collect()).unwrap()
}

#[test]
fn dates_and_seconds_have_the_types_of_parquet() {
    let (mut random, folder) = (Random::new(), Folder::new());
    for rows in [0, 1, 3000] {
        let numbers: Vec<i32> = (0..rows).map(|_| random.below(200_000) as i32 - 100_000).collect();
        let nulls = NullBuffer::from_iter((0..rows).map(|_| random.below(10) > 0));
        let (input, stored) = (columns(&numbers, &nulls, false), columns(&numbers, &nulls, true));
        fs::write(folder.path("in.arrow"), encoded("arrow", None, &input.schema(), std::slice::from_ref(&input)))
            .unwrap();
        for key in ["date", "zoned", "dictionary", "struct"] {
            // Nulls are last.
            let mut order: Vec<usize> = (0..rows).collect();
            order.sort_by_key(|&row| (nulls.is_null(row), if nulls.is_null(row) { 0 } else { numbers[row] }));
            let order = UInt64Array::from_iter_values(order.into_iter().map(|row| row as u64));
            let expected = take_record_batch(&stored, &order).unwrap();
            let flags = if rows < 3000 { "" } else { "-S 1M" };
            folder.run(&format!("sort in.arrow --key {key} -o out.parquet --check {flags}")).succeeds();
            let found = read(&folder.path("out.parquet"));
            let types = |batch: &RecordBatch| -> Vec<DataType> {
                batch.schema().fields().iter().map(|field| field.data_type().clone()).collect()
            };
            let utc = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
            let expected_types = types(&expected).into_iter();
            let expected_types: Vec<_> =
                expected_types.enumerate().map(|(i, found)| if i == 2 { utc.clone() } else { found }).collect();
            assert_eq!(types(&found), expected_types);
            assert_eq!(with_schema(&found, &expected), expected, "{rows} rows by {key}");
        }
        // Both have the same types when they are read.
        folder.run("merge in.arrow in.arrow --key row -o out.parquet").succeeds();
        folder.run("merge in.arrow out.parquet --key row -o more.parquet --check").succeeds();
    }
}

#[test]
fn values_that_parquet_does_not_have_are_errors() {
    let folder = Folder::new();
    let refused = |column: ArrayRef, what: &str| {
        let batch = RecordBatch::try_from_iter([("c", column)]).unwrap();
        fs::write(folder.path("in.arrow"), encoded("arrow", None, &batch.schema(), &[batch])).unwrap();
        fs::write(folder.path("out.parquet"), "old").unwrap();
        folder.run("sort in.arrow --key c -o out.parquet").fails(2, &["in.arrow: ", "column \"c\": ", what]);
        assert_eq!(fs::read(folder.path("out.parquet")).unwrap(), b"old");
        folder.run("sort in.arrow --key c -o out.arrow --check").succeeds();
    };
    refused(Arc::new(Date64Array::from(vec![0, 86_400_001])), "86400001 milliseconds are no date in days");
    refused(Arc::new(Date64Array::from(vec![86_400_000 << 31])), "milliseconds are no date in days");
    refused(Arc::new(TimestampSecondArray::from(vec![1 << 62])), "4611686018427387904 seconds are no timestamp");
    refused(Arc::new(Time32SecondArray::from(vec![1 << 30])), "1073741824 seconds are no time");
}

#[test]
fn the_time_zone_of_seconds_is_kept() {
    let folder = Folder::new();
    // As pyarrow writes timestamps in seconds: in milliseconds, beside a schema with seconds.
    let zoned = |unit, zone: &str| {
        let field = Field::new("t", DataType::Timestamp(unit, Some(zone.into())), true);
        Arc::new(Schema::new(vec![field]))
    };
    let written = encode_arrow_schema(&zoned(TimeUnit::Second, "Europe/Berlin"));
    let entry = KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), written);
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![entry])).build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let values = TimestampMillisecondArray::from(vec![Some(5000), None, Some(2000)]).with_timezone("UTC");
    let batch = RecordBatch::try_new(zoned(TimeUnit::Millisecond, "UTC"), vec![Arc::new(values)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new_with_options(&mut bytes, batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    fs::write(folder.path("in.parquet"), bytes).unwrap();
    folder.run("sort in.parquet --key t -o out.parquet --check").succeeds();
    let bytes = Bytes::from(fs::read(folder.path("out.parquet")).unwrap());
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
    assert_eq!(reader.schema().fields(), zoned(TimeUnit::Millisecond, "Europe/Berlin").fields());
    let sorted = read(&folder.path("out.parquet"));
    let expected = TimestampMillisecondArray::from(vec![Some(2000), Some(5000), None]).with_timezone("UTC");
    assert_eq!(sorted.column(0).as_any().downcast_ref(), Some(&expected));
}

#[test]
fn uuids_and_json_are_kept() {
    let folder = Folder::new();
    let extension = |name: &str| {
        HashMap::from([
            ("ARROW:extension:name".to_owned(), name.to_owned()),
            ("ARROW:extension:metadata".to_owned(), String::new()),
        ])
    };
    let fields = vec![
        Field::new("u", DataType::FixedSizeBinary(16), true).with_metadata(extension("arrow.uuid")),
        Field::new("j", DataType::Utf8, true).with_metadata(extension("arrow.json")),
    ];
    let uuids = FixedSizeBinaryArray::try_from_iter([[9; 16], [7; 16]].into_iter()).unwrap();
    let texts = StringArray::from(vec!["{}", "[1]"]);
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(uuids), Arc::new(texts)]).unwrap();
    fs::write(folder.path("in.arrow"), encoded("arrow", None, &schema, &[batch])).unwrap();
    folder.run("sort in.arrow --key u -o a.parquet").succeeds();
    folder.run("sort a.parquet --key u -o b.parquet --check").succeeds();
    for name in ["a.parquet", "b.parquet"] {
        let bytes = Bytes::from(fs::read(folder.path(name)).unwrap());
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
        let types = reader.parquet_schema().columns().iter().map(|column| column.logical_type_ref().cloned());
        assert_eq!(types.collect::<Vec<_>>(), [Some(LogicalType::Uuid), Some(LogicalType::Json)], "{name}");
    }
}
